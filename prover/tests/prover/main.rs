//! Tests of the prover as its users see it, against bellperson where it does the same.

mod against_bellperson;
mod bad_files;
mod corpus;
mod front;
mod support;
mod verification;

//! Tests of the prover as its users see it, against bellperson where it does the same.

mod against_bellperson;
mod bad_files;
mod corpus;
mod front;
#[path = "../points/mod.rs"]
mod points;
mod support;
mod verification;

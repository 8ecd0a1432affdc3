//! Field arithmetic.
#![no_std]

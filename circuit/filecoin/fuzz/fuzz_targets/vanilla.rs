//! Bincode vanilla proofs of all kinds: `cargo fuzz run vanilla`.

#![no_main]

#[path = "../../tests/common/replay.rs"]
mod replay;

libfuzzer_sys::fuzz_target!(|data: &[u8]| replay::vanilla(data));

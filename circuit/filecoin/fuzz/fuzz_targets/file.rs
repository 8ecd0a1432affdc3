//! Request files in all formats: `cargo fuzz run file`.

#![no_main]

#[path = "../../tests/common/replay.rs"]
mod replay;

libfuzzer_sys::fuzz_target!(|data: &[u8]| replay::file(data));

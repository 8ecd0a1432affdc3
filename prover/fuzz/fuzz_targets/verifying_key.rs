//! Fuzzes the parser of verifying keys.
#![no_main]

#[path = "../checks.rs"]
mod checks;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    checks::verifying_key(bytes);
});

//! See `bodies/import.rs`.
#![no_main]

#[path = "../bodies/import.rs"]
#[expect(dead_code, reason = "each target runs one of the bodies")]
mod import;

libfuzzer_sys::fuzz_target!(|input: &[u8]| import::properties(input));

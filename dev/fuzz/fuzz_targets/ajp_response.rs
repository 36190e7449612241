//! See `bodies/ajp.rs`.
#![no_main]

#[path = "../bodies/ajp.rs"]
#[expect(dead_code, reason = "each target runs one of the bodies")]
mod ajp;

libfuzzer_sys::fuzz_target!(|input: &[u8]| ajp::response(input));

//! See `bodies/http1.rs`.
#![no_main]

#[path = "../bodies/http1.rs"]
#[expect(dead_code, reason = "each target runs one of the bodies")]
mod http1;

libfuzzer_sys::fuzz_target!(|input: &[u8]| http1::response(input));

//! See `bodies/tls.rs`.
#![no_main]

#[path = "../bodies/tls.rs"]
#[expect(dead_code, reason = "each target runs one of the bodies")]
mod tls;

libfuzzer_sys::fuzz_target!(|input: &[u8]| tls::dialogue(input));

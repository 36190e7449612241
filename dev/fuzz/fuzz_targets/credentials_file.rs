//! See `bodies/credentials.rs`.
#![no_main]

#[path = "../bodies/credentials.rs"]
#[expect(dead_code, reason = "each target runs one of the bodies")]
mod credentials;

libfuzzer_sys::fuzz_target!(|input: &[u8]| credentials::file(input));

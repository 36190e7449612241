//! See `bodies/http2.rs`.
#![no_main]

#[path = "../bodies/http2.rs"]
#[expect(dead_code, reason = "each target runs one of the bodies")]
mod http2;

libfuzzer_sys::fuzz_target!(|input: &[u8]| http2::server(input));

//! See `bodies/http2_codec.rs`.
#![no_main]

#[path = "../bodies/http2_codec.rs"]
#[expect(dead_code, reason = "each target runs one of the bodies")]
mod http2_codec;

libfuzzer_sys::fuzz_target!(|input: &[u8]| http2_codec::server(input));

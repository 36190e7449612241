//! See `bodies/hpack.rs`.
#![no_main]

#[path = "../bodies/hpack.rs"]
#[expect(dead_code, reason = "each target runs one of the bodies")]
mod hpack;

libfuzzer_sys::fuzz_target!(|input: &[u8]| hpack::decode(input));

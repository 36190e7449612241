//! See `bodies/cache.rs`.
#![no_main]

#[path = "../bodies/cache.rs"]
#[expect(dead_code, reason = "each target runs one of the bodies")]
mod cache;

libfuzzer_sys::fuzz_target!(|input: &[u8]| cache::judge(input));

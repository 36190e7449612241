//! See `bodies/memcache.rs`.
#![no_main]

#[path = "../bodies/memcache.rs"]
mod memcache;

libfuzzer_sys::fuzz_target!(|input: &[u8]| memcache::reply(input));

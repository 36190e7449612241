//! See `bodies/proxy.rs`.
#![no_main]

#[path = "../bodies/proxy.rs"]
mod proxy;

libfuzzer_sys::fuzz_target!(|input: &[u8]| proxy::header(input));

//! See `bodies/cors.rs`.
#![no_main]

#[path = "../bodies/cors.rs"]
mod cors;

libfuzzer_sys::fuzz_target!(|input: &[u8]| cors::origin(input));

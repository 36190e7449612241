//! See `bodies/mcmp.rs`.
#![no_main]

#[path = "../bodies/mcmp.rs"]
mod mcmp;

libfuzzer_sys::fuzz_target!(|input: &[u8]| mcmp::messages(input));

//! See `bodies/config.rs`.
#![no_main]

#[path = "../bodies/config.rs"]
mod config;

libfuzzer_sys::fuzz_target!(|input: &[u8]| config::config(input));

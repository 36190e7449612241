//! The rules of a shared HTTP cache (RFC 9111), as pure functions.
//!
//! They decide what may be stored ([`storable`]), how long it is fresh ([`freshness`]), which requests it
//! answers ([`vary`], [`verdict`]), how a 304 changes it ([`merge`]), and what a purge removes ([`bans`]).
//! Times are arguments, in milliseconds since the beginning of 1970. This crate stores nothing and reads no
//! clock.
#![forbid(unsafe_code)]

pub mod bans;
pub mod date;
pub mod directives;
pub mod freshness;
pub mod key;
pub mod media;
pub mod merge;
pub mod object;
pub mod storable;
pub mod tags;
pub mod vary;
pub mod verdict;

/// Milliseconds since the beginning of 1970.
pub type Millis = u64;

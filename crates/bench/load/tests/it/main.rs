//! The engine against servers that answer, misbehave, stall, or are not there.

#![expect(
    clippy::unwrap_used,
    reason = "in a test, a panic is how a failure is told"
)]

mod ajp;
mod bench;
mod counts;
mod data;
mod ending;
mod failures;
mod http2;
mod memcached;
mod open;
mod planted;
mod server;
mod silence;
mod stress;
mod tls;

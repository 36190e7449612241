//! The lab on real servers: what fires its gates, and a duel.

#![expect(
    clippy::unwrap_used,
    reason = "the whole crate is a test; clippy exempts only the functions marked as one"
)]

mod duel;
mod gate;
mod planted;
mod scene;
mod texts;

//! The lab on real servers: what fires its gates.

#![expect(
    clippy::unwrap_used,
    reason = "the whole crate is a test; clippy exempts only the functions marked as one"
)]

mod gate;
mod scene;
mod texts;

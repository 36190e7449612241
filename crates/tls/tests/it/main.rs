//! Tests of the crate from outside.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "the whole crate is a test; clippy exempts only the functions marked as one"
)]

mod corpus;

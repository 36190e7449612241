//! Sources against what they meet on the network.

#![expect(
    clippy::unwrap_used,
    reason = "the whole crate is a test; clippy exempts only the functions marked as one"
)]

mod kubernetes;
mod mcmp;

use catamaran_testkit::replay_corpus;

#[path = "../../../../../dev/fuzz/bodies/mcmp.rs"]
mod bodies;

#[test]
fn mcmp_messages() {
    replay_corpus("mcmp_messages", bodies::messages);
}

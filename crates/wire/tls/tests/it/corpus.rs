//! The committed fuzz corpora, replayed through the code that the fuzzer runs.

use catamaran_testkit::replay_corpus;

#[path = "../../../../../dev/fuzz/bodies/tls.rs"]
mod bodies;

#[test]
fn raw() {
    replay_corpus("tls_raw", bodies::raw);
}

#[test]
fn dialogue() {
    replay_corpus("tls_dialogue", bodies::dialogue);
}

/// Bytes of the whole handshake, each flipped in a dialogue of its own.
#[test]
fn a_flipped_byte_changes_nothing_that_arrives() {
    for at in (0_u16..1200).step_by(3) {
        let [high, low] = at.to_be_bytes();
        bodies::dialogue(&[1, high, low, 0x41, 255, 80]);
    }
}

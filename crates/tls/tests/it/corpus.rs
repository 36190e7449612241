//! The committed fuzz corpora, replayed through the code that the fuzzer runs.

use std::fs;
use std::path::Path;

#[path = "../../../../fuzz/bodies/tls.rs"]
mod bodies;

/// Feeds every file of a target's corpus to `body`.
fn replay(target: &str, body: fn(&[u8])) {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../fuzz/corpus")
        .join(target);
    let mut files = 0;
    for entry in fs::read_dir(&corpus).expect("the corpus is committed") {
        let path = entry.unwrap().path();
        // Shown only if the run fails.
        println!("{}", path.display());
        body(&fs::read(path).unwrap());
        files += 1;
    }
    assert!(files > 5, "{files} files");
}

#[test]
fn raw() {
    replay("tls_raw", bodies::raw);
}

#[test]
fn dialogue() {
    replay("tls_dialogue", bodies::dialogue);
}

/// Bytes of the whole handshake, each flipped in a dialogue of its own.
#[test]
fn a_flipped_byte_changes_nothing_that_arrives() {
    for at in (0_u16..1200).step_by(3) {
        let [high, low] = at.to_be_bytes();
        bodies::dialogue(&[1, high, low, 0x41, 255, 80]);
    }
}

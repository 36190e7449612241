//! The committed fuzz corpora, replayed through the code that the fuzzer runs.

use std::fs;
use std::path::Path;

#[path = "../../../../fuzz/bodies/ajp.rs"]
pub(crate) mod bodies;

/// Feeds every file of a target's corpus to `body`.
fn replay(target: &str, body: fn(&[u8])) {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../fuzz/corpus")
        .join(target);
    let mut files = 0;
    for entry in fs::read_dir(&corpus).expect("the corpus is committed") {
        body(&fs::read(entry.unwrap().path()).unwrap());
        files += 1;
    }
    assert!(files > 0, "{} is empty", corpus.display());
}

#[test]
fn packet() {
    replay("ajp_packet", bodies::packet);
}

#[test]
fn forward_request() {
    replay("ajp_forward_request", bodies::forward_request);
}

#[test]
fn response() {
    replay("ajp_response", bodies::response);
}

#[test]
fn exchange() {
    replay("ajp_exchange", bodies::exchange);
}

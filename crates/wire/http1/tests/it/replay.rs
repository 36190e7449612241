//! Runs the committed fuzzing corpus through the bodies of the fuzz targets.

use catamaran_testkit::replay_corpus;

use crate::invariants;

#[test]
fn requests() {
    replay_corpus("http1_request", invariants::request);
}

#[test]
fn responses() {
    replay_corpus("http1_response", invariants::response);
}

#[test]
fn chunked_bodies() {
    replay_corpus("http1_chunked", invariants::chunked);
}

#[test]
fn exchanges() {
    replay_corpus("http1_exchange", invariants::exchange);
}

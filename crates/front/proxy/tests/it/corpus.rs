//! The committed fuzz corpus, replayed through the code that the fuzzer runs.

use catamaran_testkit::replay_corpus;

#[path = "../../../../../dev/fuzz/bodies/http2.rs"]
mod bodies;

#[path = "../../../../../dev/fuzz/bodies/cors.rs"]
mod origins;

#[test]
fn cors_origin() {
    replay_corpus("cors_origin", origins::origin);
}

#[test]
fn http2_listener() {
    replay_corpus("http2_listener", bodies::listener);
}

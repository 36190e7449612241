//! The committed fuzz corpora, replayed through the code that the fuzzer runs.

use catamaran_testkit::replay_corpus;

#[path = "../../../../../dev/fuzz/bodies/ajp.rs"]
pub(crate) mod bodies;

#[test]
fn packet() {
    replay_corpus("ajp_packet", bodies::packet);
}

#[test]
fn forward_request() {
    replay_corpus("ajp_forward_request", bodies::forward_request);
}

#[test]
fn response() {
    replay_corpus("ajp_response", bodies::response);
}

#[test]
fn exchange() {
    replay_corpus("ajp_exchange", bodies::exchange);
}

//! The committed fuzz corpus, replayed through the code that the fuzzer runs.

use catamaran_testkit::replay_corpus;

#[path = "../../../../../dev/fuzz/bodies/proxy.rs"]
mod bodies;

#[test]
fn proxy_header() {
    replay_corpus("proxy_header", bodies::header);
}

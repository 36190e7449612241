//! The committed fuzz corpus, replayed through the code that the fuzzer runs.

use catamaran_testkit::replay_corpus;

#[path = "../../../../../dev/fuzz/bodies/cache.rs"]
mod bodies;

#[test]
fn cache_judge() {
    replay_corpus("cache_judge", bodies::judge);
}

#[test]
fn cache_object() {
    replay_corpus("cache_object", bodies::object);
}

//! The committed fuzz corpus, replayed through the code that the fuzzer runs.

use catamaran_testkit::replay_corpus;

#[path = "../../../../../dev/fuzz/bodies/cache.rs"]
mod bodies;

#[test]
fn cache_judge() {
    let files = replay_corpus("cache_judge", bodies::judge);
    assert!(files > 10, "{files} files");
}

#[test]
fn cache_object() {
    let files = replay_corpus("cache_object", bodies::object);
    assert!(files > 10, "{files} files");
}

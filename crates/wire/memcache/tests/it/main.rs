//! The committed fuzz corpus, replayed through the code that the fuzzer runs.

use catamaran_testkit::replay_corpus;

#[path = "../../../../../dev/fuzz/bodies/memcache.rs"]
mod bodies;

#[test]
fn memcache_reply() {
    replay_corpus("memcache_reply", bodies::reply);
}

//! Runs the committed fuzzing corpus through the body of the fuzz target.

use catamaran_testkit::replay_corpus;

#[path = "../../../../../dev/fuzz/bodies/config.rs"]
mod body;

#[test]
fn corpus_holds() {
    replay_corpus("config", body::config);
}

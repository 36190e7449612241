//! The committed corpora of the fuzz targets, replayed in tests.

use std::fs;
use std::path::Path;

/// Feeds every file of a target's corpus to `body`, the code that the fuzzer runs.
///
/// # Panics
/// The corpus is missing or empty, or `body` panics.
#[expect(clippy::print_stdout, reason = "tells the file, only if its run fails")]
pub fn replay_corpus(target: &str, body: fn(&[u8])) {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../fuzz/corpus")
        .join(target);
    let mut files = 0;
    for entry in fs::read_dir(&corpus).expect("the corpus is committed") {
        let path = entry.expect("a readable directory").path();
        println!("{}", path.display());
        body(&fs::read(&path).expect("a readable file"));
        files += 1;
    }
    assert!(files > 0, "{} is empty", corpus.display());
}

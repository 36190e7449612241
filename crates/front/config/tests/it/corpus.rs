//! Runs the committed fuzzing corpus through the body of the fuzz target.

use std::path::Path;

#[path = "../../../../../dev/fuzz/bodies/config.rs"]
mod body;

#[test]
fn corpus_holds() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../dev/fuzz/corpus/config");
    let mut files = 0;
    for entry in std::fs::read_dir(corpus).unwrap() {
        let path = entry.unwrap().path();
        // Shown only if the run fails.
        println!("{}", path.display());
        body::config(&std::fs::read(&path).unwrap());
        files += 1;
    }
    assert!(files >= 15, "{files} files");
}

//! Runs the committed fuzzing corpus through the bodies of the fuzz targets.

use std::fs;
use std::path::Path;

use crate::invariants;

#[expect(clippy::print_stdout, reason = "tells the file, only if its run fails")]
fn replay(target: &str, run: fn(&[u8])) {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../fuzz/corpus")
        .join(target);
    let mut files = 0;
    for entry in fs::read_dir(&corpus).expect("the corpus is committed") {
        let path = entry.expect("a readable directory").path();
        let data = fs::read(&path).expect("a readable file");
        println!("{}", path.display());
        run(&data);
        files += 1;
    }
    assert!(files > 0, "{} is empty", corpus.display());
}

#[test]
fn requests() {
    replay("http1_request", invariants::request);
}

#[test]
fn responses() {
    replay("http1_response", invariants::response);
}

#[test]
fn chunked_bodies() {
    replay("http1_chunked", invariants::chunked);
}

#[test]
fn exchanges() {
    replay("http1_exchange", invariants::exchange);
}

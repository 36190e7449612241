//! The committed fuzzing corpora, and any text at all.

use std::path::Path;

use proptest::prelude::*;

mod golden;

#[path = "../../../../../dev/fuzz/bodies/import.rs"]
mod body;

/// The body of a fuzz target.
type Body = fn(&[u8]);

#[test]
fn corpora_hold() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../dev/fuzz/corpus");
    let targets: [(&str, Body); 3] = [
        ("import_httpd", body::httpd),
        ("import_nginx", body::nginx),
        ("import_properties", body::properties),
    ];
    for (target, body) in targets {
        let mut files = 0;
        for entry in std::fs::read_dir(corpus.join(target)).unwrap() {
            body(&std::fs::read(entry.unwrap().path()).unwrap());
            files += 1;
        }
        assert!(files >= 2, "{files} files of {target}");
    }
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused_with_its_line(text in "[a/<>=\"\\\\#;{}\n $é]{0,60}") {
        body::httpd(text.as_bytes());
        body::nginx(text.as_bytes());
        body::properties(text.as_bytes());
    }
}

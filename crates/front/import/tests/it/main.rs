//! The committed fuzzing corpora, and any text at all.

use catamaran_testkit::replay_corpus;
use proptest::prelude::*;

mod golden;

#[path = "../../../../../dev/fuzz/bodies/import.rs"]
mod body;

#[test]
fn corpora_hold() {
    replay_corpus("import_httpd", body::httpd);
    replay_corpus("import_nginx", body::nginx);
    replay_corpus("import_properties", body::properties);
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused_with_its_line(text in "[a/<>=\"\\\\#;{}\n $é]{0,60}") {
        body::httpd(text.as_bytes());
        body::nginx(text.as_bytes());
        body::properties(text.as_bytes());
    }
}

//! The reference page in the repository is the one the code writes.

use std::path::Path;

#[test]
fn reference_page_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let first = page
        .lines()
        .zip(catamaran_config::reference().lines().map(str::to_owned))
        .find(|(committed, written)| committed != written);
    assert!(
        page == catamaran_config::reference(),
        "docs/reference.md is stale, first at {first:?}; write it anew: \
         cargo run -p catamaran-config --example reference > docs/reference.md"
    );
}

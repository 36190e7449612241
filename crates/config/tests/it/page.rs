//! The documentation agrees with the code: the reference page is the one the code writes, and the
//! configurations in the README can be used.

use std::path::Path;

use catamaran_config::{parse, reference};

#[test]
fn reference_page_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let first = page
        .lines()
        .zip(reference().lines().map(str::to_owned))
        .find(|(committed, written)| committed != written);
    assert!(
        page == reference(),
        "docs/reference.md is stale, first at {first:?}; write it anew: \
         cargo run -p catamaran-config --example reference > docs/reference.md"
    );
}

#[test]
fn configurations_in_the_readme_can_be_used() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md");
    let readme = std::fs::read_to_string(path).unwrap();
    let blocks: Vec<&str> = readme
        .split("```toml\n")
        .skip(1)
        .map(|rest| rest.split("```").next().unwrap_or_default())
        .collect();
    assert!(!blocks.is_empty());
    for block in blocks {
        let said = parse("README.md", block).map_or_else(
            |report| report.to_string(),
            |loaded| loaded.report.to_string(),
        );
        assert_eq!(said, "", "{block}");
    }
}

#[test]
fn the_file_for_those_who_come_from_mod_jk_can_be_used() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/coming-from-mod_jk.md");
    let page = std::fs::read_to_string(path).unwrap();
    let begun = page.split("```toml\n").nth(1).expect("a file");
    let text = begun.split("```").next().expect("its end");
    let loaded = parse("coming.toml", text).map_err(|report| report.to_string());
    assert_eq!(loaded.map(|it| it.config.upstreams.len()), Ok(1));
}

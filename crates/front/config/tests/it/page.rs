//! The documentation agrees with the code: the reference page is the one the code writes, and the
//! configurations in the README can be used.

use std::path::Path;
use std::time::Duration;

use catamaran_config::{parse, reference};

#[test]
fn reference_page_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/reference.md");
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
fn the_index_leads_to_every_table_and_key_once() {
    let page = reference();
    let index = page.split("\n## ").find(|it| it.starts_with("Index\n"));
    let index = index.expect("an index");
    let headings = |mark: &str| page.lines().filter(|line| line.starts_with(mark)).count();
    let mut links: Vec<&str> = (index.split("](#").skip(1))
        .map(|rest| rest.split(')').next().unwrap_or_default())
        .collect();
    // But for the index itself.
    assert_eq!(links.len(), headings("## ") + headings("### ") - 1);
    links.sort_unstable();
    links.dedup();
    assert_eq!(links.len(), headings("## ") + headings("### ") - 1);
    for link in [
        "[`[[listen]]`](#listen)",
        "[`[upstream.NAME.sticky]`](#upstreamnamesticky)",
        "[`[route.request_headers]`](#routerequest_headers)",
        "[`connections_per_address`](#connections_per_address)",
        // The second key of that name on the page, of a backend.
        "[`connections_max`](#connections_max-1)",
    ] {
        assert!(index.contains(link), "{link}");
    }
}

#[test]
fn no_key_speaks_of_a_policy_that_is_none() {
    let page = reference();
    let named = page.split("policy = \"").skip(1);
    let named: Vec<&str> = named.filter_map(|rest| rest.split('"').next()).collect();
    for policy in named {
        let values = format!("`\"{policy}\"`");
        assert!(page.contains(&values), "no value of `policy`: {policy}");
    }
}

#[test]
fn configurations_in_the_readme_can_be_used() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../README.md");
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
fn the_files_for_those_who_come_from_mod_jk_can_be_used() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/coming-from-mod_jk.md");
    let page = std::fs::read_to_string(path).unwrap();
    let blocks = page.split("```toml\n").skip(1);
    let blocks: Vec<&str> = blocks.map(|it| it.split("```").next().unwrap()).collect();
    let [patient, slow_route, whole] = blocks[..] else {
        panic!("three blocks: {blocks:?}")
    };
    let used = |text: &str| {
        let loaded = parse("coming.toml", text).map_err(|report| report.to_string());
        loaded.unwrap().config
    };
    let timeouts = |text: &str| {
        let backend = used(text).upstreams[0].backends[0].clone();
        (backend.first_byte_timeout, backend.idle_body_timeout)
    };
    let (day, minute) = (Duration::from_secs(24 * 3600), Duration::from_secs(60));
    assert_eq!(timeouts(whole), (2 * minute, minute));
    // The lines for who has no `reply_timeout`, in their place.
    let lines = patient.split_once("[upstream.lb]\n").unwrap().1;
    let patient = whole.replace("first_byte_timeout = \"2m\"\n", lines);
    assert_eq!(timeouts(&patient), (day, day));
    let routes = used(&format!("{whole}{slow_route}")).routes;
    let slow = routes.iter().find(|route| route.path == "/app/reports");
    let rules = slow.unwrap().rules.clone().unwrap();
    assert_eq!(rules.first_byte_timeout, Some(30 * minute));
}

//! Tests that the page of metrics can be parsed, is complete, and is described.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

use catamaran_upstream::{BackendCounts, FiguresTotals};

use super::*;
use crate::admin::exposition::Kind;
use crate::counters::{Culprit, LastReload, Reason};

/// One sample: its labels and its value.
type Sample = (Vec<(String, String)>, f64);

/// Parses a page as the format's definition says; panics at anything else.
fn parse(page: &str) -> BTreeMap<String, (String, Vec<Sample>)> {
    assert!(page.ends_with('\n'), "the last line ends, too");
    let mut families: BTreeMap<String, (String, Vec<Sample>)> = BTreeMap::new();
    let mut lines = page.lines().peekable();
    while let Some(line) = lines.next() {
        let (name, help) = line
            .strip_prefix("# HELP ")
            .unwrap()
            .split_once(' ')
            .unwrap();
        assert!(!help.is_empty());
        let line = lines.next().unwrap();
        let (typed, kind) = line
            .strip_prefix("# TYPE ")
            .unwrap()
            .split_once(' ')
            .unwrap();
        assert_eq!(typed, name);
        assert!(matches!(kind, "counter" | "gauge" | "histogram"), "{kind}");
        let mut samples = Vec::new();
        while let Some(line) = lines.next_if(|line| !line.starts_with('#')) {
            let rest = line.strip_prefix(name).unwrap();
            let suffixes = match kind {
                "histogram" => &["_bucket", "_sum", "_count"][..],
                _ => &[],
            };
            let mut cut = suffixes.iter().filter_map(|it| rest.strip_prefix(it));
            let rest = cut.next().unwrap_or(rest);
            let (labels, value) = match rest.strip_prefix('{') {
                Some(rest) => parse_labels(rest),
                None => (Vec::new(), rest),
            };
            samples.push((labels, value.strip_prefix(' ').unwrap().parse().unwrap()));
        }
        let earlier = families.insert(name.to_owned(), (kind.to_owned(), samples));
        assert!(earlier.is_none(), "{name} is there twice");
    }
    families
}

fn parse_labels(mut rest: &str) -> (Vec<(String, String)>, &str) {
    let mut labels = Vec::new();
    loop {
        let (name, quoted) = rest.split_once("=\"").unwrap();
        assert!(is_name(name), "{name}");
        let mut value = String::new();
        let mut characters = quoted.char_indices();
        let end = loop {
            match characters.next().unwrap() {
                (at, '"') => break at,
                (_, '\\') => match characters.next().unwrap().1 {
                    'n' => value.push('\n'),
                    escaped @ ('\\' | '"') => value.push(escaped),
                    other => panic!("\\{other} means nothing"),
                },
                (_, other) => value.push(other),
            }
        };
        labels.push((name.to_owned(), value));
        rest = &quoted[end + 1..];
        match rest.strip_prefix(',') {
            Some(next) => rest = next,
            None => return (labels, rest.strip_prefix('}').unwrap()),
        }
    }
}

/// Whether a name is `[a-z_][a-z0-9_]*`, which is stricter than the format.
fn is_name(name: &str) -> bool {
    let letters = |it: char| it.is_ascii_lowercase() || it == '_';
    name.starts_with(letters) && name.chars().all(|it| letters(it) || it.is_ascii_digit())
}

fn observed() -> Observation {
    let mut counters = CountersSnapshot {
        accepted: 7,
        retries: 3,
        last_reload: LastReload {
            at: UNIX_EPOCH + Duration::from_secs(9),
            applied: false,
            ..LastReload::default()
        },
        ..CountersSnapshot::default()
    };
    counters.responses[2] = 41;
    counters.responses[0] = 1;
    let reason = Reason::new(Culprit::Front, "retry-budget");
    counters.reasons.insert(reason, 5);
    let counts = BackendCounts {
        share: 10,
        probes_failed: 4,
        abandoned: 2,
        abandoned_total: 6,
        ..BackendCounts::default()
    };
    let mut totals = FiguresTotals {
        attempts: 12,
        ..FiguresTotals::default()
    };
    totals.responses[5] = 8;
    totals
        .failures
        .insert((Culprit::Backend, "connect-failed"), 2);
    Observation {
        counters,
        backends: vec![BackendStatus {
            upstream: "a \"b\"".to_owned(),
            backend: "ajp+unix:/c\\d\ne".to_owned(),
            counts,
            name_age: Some(Duration::from_secs(7)),
            totals,
            active: false,
            retired: true,
        }],
        generation: 3,
        usage: Some(Usage {
            cpu: Duration::from_millis(1250),
            open_files_max: None,
            ..Usage::default()
        }),
        ready: true,
        ..Observation::default()
    }
}

#[test]
fn every_family_is_told_once_and_can_be_read() {
    let told = parse(&render(&observed(), Format::Text));
    let kinds: BTreeMap<_, _> = families().map(|it| (it.name, it.kind.name())).collect();
    let told_kinds: BTreeMap<_, _> = told
        .iter()
        .map(|(name, (kind, _))| (name.as_str(), kind.as_str()))
        .collect();
    assert_eq!(told_kinds, kinds);
    assert_eq!(families().count(), kinds.len(), "each name once");
}

#[test]
fn names_follow_the_conventions() {
    for family in families() {
        assert!(
            is_name(family.name)
                && ["catamaran_", "process_"]
                    .iter()
                    .any(|prefix| family.name.starts_with(prefix))
        );
        let total = family.name.ends_with("_total");
        assert_eq!(total, family.kind == Kind::Counter, "{}", family.name);
        if family.kind == Kind::Histogram {
            assert!(family.name.ends_with("_seconds"), "{}", family.name);
        }
        assert!(family.help.ends_with('.'), "{}", family.name);
    }
}

#[test]
fn values_and_labels_arrive() {
    let told = parse(&render(&observed(), Format::Text));
    let sample = |name: &str, labels: &[(&str, &str)]| {
        let labels: Vec<_> = labels
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        let samples = &told[name].1;
        let found = samples.iter().find(|(it, _)| *it == labels);
        found
            .unwrap_or_else(|| panic!("{name} {samples:?}"))
            .1
            .to_string()
    };
    let backend = [("upstream", "a \"b\""), ("backend", "ajp+unix:/c\\d\ne")];
    let failed = [backend[0], backend[1], ("result", "failed")];
    let class = [backend[0], backend[1], ("class", "5xx")];
    let reason = [
        backend[0],
        backend[1],
        ("culprit", "backend"),
        ("reason", "connect-failed"),
    ];
    let infinite = [backend[0], backend[1], ("le", "+Inf")];
    for (name, labels, expected) in [
        ("catamaran_connections_accepted_total", &[][..], "7"),
        ("catamaran_responses_total", &[("class", "2xx")], "41"),
        ("catamaran_responses_total", &[("class", "none")], "1"),
        (
            "catamaran_reasons_total",
            &[("culprit", "front"), ("reason", "retry-budget")],
            "5",
        ),
        ("catamaran_ready", &[], "1"),
        ("catamaran_draining", &[], "0"),
        ("catamaran_backend_up", &backend, "1"),
        ("catamaran_backend_exchanges_abandoned", &backend, "2"),
        ("catamaran_backend_exchanges_abandoned_total", &backend, "6"),
        ("catamaran_backend_share_ratio", &backend, "0.1"),
        ("catamaran_backend_probes_total", &failed, "4"),
        ("catamaran_backend_retired", &backend, "1"),
        ("catamaran_backend_attempts_total", &backend, "12"),
        ("catamaran_backend_responses_total", &class, "8"),
        ("catamaran_backend_failures_total", &reason, "2"),
        ("catamaran_backend_first_byte_seconds", &infinite, "0"),
        ("catamaran_config_generation", &[], "3"),
        ("catamaran_config_last_reload_successful", &[], "0"),
        ("catamaran_config_last_reload_timestamp_seconds", &[], "9"),
        ("process_cpu_seconds_total", &[], "1.25"),
        ("process_max_fds", &[], "inf"),
    ] {
        assert_eq!(sample(name, labels), expected, "{name}");
    }
}

#[test]
fn the_page_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/metrics.md");
    let page = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        page == metrics_reference(),
        "docs/metrics.md is stale; write it anew: \
         cargo run -p catamaran-proxy --example metrics > docs/metrics.md"
    );
}

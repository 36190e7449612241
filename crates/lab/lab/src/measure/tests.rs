use std::collections::{BTreeMap, BTreeSet};

use catamaran_load::report::Report;

use super::*;
use crate::sample::Sample;

#[test]
fn what_is_of_the_machine_is_no_count() {
    for (name, spoiler) in [
        ("free", Spoiler::Machine),
        ("disk", Spoiler::Machine),
        ("cpu.front", Spoiler::Machine),
        ("ab1.longest", Spoiler::Times),
        ("memory", Spoiler::Nothing),
    ] {
        let measure = Measure::parse(name).unwrap();
        assert_eq!(measure.record().spoiler, spoiler, "{name}");
    }
}

#[test]
fn names_units_and_words() {
    for (name, unit, words, place) in [
        ("throughput", "req/s", ["has", "throughput"], ""),
        (
            "cpu.front",
            "µs/req",
            ["takes", "CPU"],
            " on the server front",
        ),
        ("p99@0.5", "ms", ["has", "p99"], " at 50 % of the capacity"),
        ("connect", "µs/req", ["spends", "time on connecting"], ""),
        ("free", "MiB", ["leaves", "free memory"], ""),
        (
            "ab1.longest",
            "ms",
            ["has", "longest request of a first run"],
            "",
        ),
        (
            "ab.throughput",
            "req/s",
            ["has", "throughput in a settled run"],
            "",
        ),
        (
            "bytes.upstream",
            "B/req",
            ["moves", "bytes"],
            " to the application",
        ),
        (
            "bytes.front.http",
            "B/req",
            ["moves", "bytes"],
            " on the hop front.http",
        ),
    ] {
        let measure = Measure::parse(name).unwrap();
        assert_eq!((measure.unit(), measure.words()), (unit, words));
        assert_eq!(measure.place(), place);
    }
}

#[test]
fn maxima_and_unknown_names_are_faults() {
    assert!(
        Measure::parse("max")
            .unwrap_err()
            .contains("one request of all")
    );
    for name in [
        "speed",
        "bytes",
        "bytes.front",
        "cpu.",
        "p50.front",
        "ab1",
        "ab3.longest",
    ] {
        let fault = Measure::parse(name).unwrap_err();
        let words = format!("no measure `{name}`; there are throughput");
        assert!(fault.starts_with(&words), "{fault}");
    }
    let fault = Measure::parse("memory@0.5").unwrap_err();
    assert_eq!(
        fault,
        "`memory@0.5`: only p50, p90, p99, cpu, variation have a share, such as p99@0.5"
    );
}

#[test]
fn a_stored_name_that_is_no_measure_is_a_fault() {
    let stored: Measure = serde_json::from_str("\"cpu.front\"").unwrap();
    assert_eq!(serde_json::to_string(&stored).unwrap(), "\"cpu.front\"");
    let fault = serde_json::from_str::<Measure>("\"speed\"").unwrap_err();
    assert!(fault.to_string().contains("no measure `speed`"), "{fault}");
}

#[test]
fn each_record_is_whole_and_stands_once() {
    let names: BTreeSet<&str> = MEASURES.iter().map(|record| record.name).collect();
    assert_eq!(names.len(), MEASURES.len());
    for record in MEASURES {
        assert!(
            record.words.iter().all(|words| !words.is_empty()),
            "{record:?}"
        );
        let fits = match record.kind {
            MeasureKind::Rate => record.unit.contains("/s"),
            MeasureKind::Time => ["ms", "µs/req"].contains(&record.unit),
            MeasureKind::Share => ["", "%"].contains(&record.unit),
            MeasureKind::Count => !record.unit.is_empty() && !record.unit.contains("/s"),
        };
        assert!(fits, "{record:?}");
    }
}

/// Reads the first column of the table of measures in docs/lab.md.
#[test]
fn the_page_has_each_record_and_no_other() {
    let page = include_str!("../../../../../docs/lab.md");
    let (_, table) = page
        .split_once("\n| measure | meaning |\n|---|---|\n")
        .unwrap();
    let rows = table.lines().take_while(|line| line.starts_with('|'));
    let cells = rows.filter_map(|row| row.split('|').nth(1));
    let names: BTreeSet<&str> = cells
        .flat_map(|cell| cell.split('`').skip(1).step_by(2))
        .collect();
    for record in MEASURES {
        let base = record.name.split('.').next().unwrap();
        let is_there = names
            .iter()
            .any(|name| name.split('.').next() == Some(base));
        assert!(is_there, "docs/lab.md has no `{}`", record.name);
    }
    for name in names {
        let base = name.split('.').next().unwrap();
        let is_known = MEASURES
            .iter()
            .any(|record| record.name.split('.').next() == Some(base));
        assert!(is_known, "docs/lab.md has `{name}`, which is no measure");
    }
}

/// A report of a load, and two samples taken 2 s apart.
fn shown() -> (Report, [Sample; 2]) {
    let mut document = Report::default();
    document.throughput.requests_per_s = 500.0;
    document.latency.total.percentile_max = Some(90.0);
    document.latency.total.p50_us = 1500;
    document.latency.total.p90_us = 2500;
    document.latency.total.p99_us = 9000;
    document.requests.completed = 100;
    document.latency.connect.count = 50;
    document.latency.connect.mean_us = 80;
    let mut samples = [Sample::default(), Sample::default()];
    samples[1].time_s = 2.0;
    for (sample, reads) in samples.iter_mut().zip([10, 16]) {
        sample.memory.free = 3 << 20;
        sample.disks.entry("vda".to_owned()).or_default().reads = reads;
    }
    (document, samples)
}

#[test]
fn measures_are_read_from_what_a_run_has_shown() {
    let (document, samples) = shown();
    let micros = std::time::Duration::from_micros;
    let cpu = BTreeMap::from([
        ("app".to_owned(), micros(4000)),
        ("front".to_owned(), micros(2000)),
    ]);
    let ab1 = AbFigures {
        throughput: Some(1098.36),
        longest_ms: Some(1552.0),
    };
    let calls = BTreeMap::new();
    let evidence = Evidence {
        document: &document,
        requests: 100,
        failed: 3,
        errors: 5,
        acted: 0,
        has_several: true,
        cpu: &cpu,
        disks: &BTreeMap::from([("front".to_owned(), 4096), ("app".to_owned(), 1024)]),
        tested: Some("front"),
        opened: 50,
        waited: 25,
        calls: CallCounts {
            calls: &calls,
            requests: 100,
        },
        bytes: BTreeMap::from([("upstream".to_owned(), 900.0)]),
        memory: Some(BTreeMap::from([("app".to_owned(), 5 << 20)])),
        held: BTreeMap::from([(String::new(), 70.0), ("app".to_owned(), 60.0)]),
        samples: &samples,
        jvms: &[],
        is_published: true,
        first: None,
        published: &BTreeMap::from([("ab1".to_owned(), ab1)]),
    };
    let measures = evidence.measures();
    for name in [
        "p99",
        "variation",
        "silences",
        "first",
        "acted",
        "syscalls",
        "ab2.longest",
    ] {
        assert!(!measures.contains_key(name), "of {name} nothing was shown");
    }
    for (name, value) in READ {
        let found = measures[*name];
        assert!((found / value - 1.0).abs() < 1e-9, "{name} {found}");
    }
}

/// The measures of that run.
const READ: &[(&str, f64)] = &[
    ("ab1.longest", 1552.0),
    ("ab1.throughput", 1098.36),
    ("bytes.upstream", 900.0),
    ("capacity", 50_000.0),
    ("connect", 40.0),
    ("cpu", 60.0),
    ("cpu.app", 40.0),
    ("cpu.front", 20.0),
    ("disk", 3.0),
    ("errors", 5.0),
    ("failed", 3.0),
    ("free", 3.0),
    ("held", 70.0),
    ("held.app", 60.0),
    ("io", 51.2),
    ("io.front", 40.96),
    ("memory", 5.0),
    ("memory.app", 5.0),
    ("p50", 1.5),
    ("p90", 2.5),
    ("sockets", 0.5),
    ("throughput", 500.0),
    ("time_wait", 0.25),
];

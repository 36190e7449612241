//! Tests reports of each experiment's whole form, with made-up runs.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::json;

use crate::experiment::{Experiment, Form};
use crate::host::Host;
use crate::result::{PrintedRun, PublishedResult, ResultDocument, StoredResult};
use crate::run::{Run, Second};
use crate::sample::{CoreSample, JvmSample, Sample};
use crate::{builtin, published, report};

/// The largest result that all rounds of an experiment's whole form can have.
fn result(name: &str) -> ResultDocument {
    let experiment = builtin::experiment(name, Form::default()).unwrap();
    let again = experiment.as_published.iter();
    let as_published = again.map(|run| PrintedRun {
        name: run.name.clone(),
        deviations: run.deviations.clone(),
        text: published::BUILTIN[4].1.to_owned(),
    });
    let stored = StoredResult {
        host: Host {
            processor: "A processor with a rather long name".to_owned(),
            ..Host::default()
        },
        servers: Vec::new(),
        runs: runs(&experiment),
        as_published: as_published.collect(),
        note: "Made up, by `a test`.".to_owned(),
        capacity: BTreeMap::new(),
        experiment,
    };
    let mut result = ResultDocument::of(&stored, true);
    result.add_over_time(&stored.runs, |_| Some(samples()));
    result
}

fn runs(experiment: &Experiment) -> Vec<Run> {
    let rounds = experiment.rounds;
    let all = (0..rounds).flat_map(|round| (0..experiment.cells.len()).map(move |it| (round, it)));
    all.map(|(round, cell)| run(experiment, round, cell))
        .collect()
}

/// A made-up run with all measures that the experiment may have; its figures depend on cell and round.
fn run(experiment: &Experiment, round: usize, cell: usize) -> Run {
    let claimed = experiment
        .claims
        .iter()
        .map(|claim| claim.measure.name().to_owned());
    let usual = MEASURES.iter().map(|name| (*name).to_owned());
    let names: Vec<String> = claimed.chain(usual).collect();
    let noise = |number: usize| ((cell * 7 + round * 13 + number * 29) % 97) as f64 / 97.0;
    let value = |(number, name): (usize, String)| {
        let size = if name == "throughput" { 9000.0 } else { 30.0 };
        (name, size * (1.0 + cell as f64 / 9.0 + noise(number) / 4.0))
    };
    let calls = CALLS.iter().enumerate().map(|(number, name)| {
        let count = 1.0 + noise(number);
        ((*name).to_owned(), count)
    });
    let second = Second {
        completed: 9000 + cell as u64 * 50,
        p99_ms: Some(12.5),
    };
    let mut run = Run {
        cell,
        levels: experiment.cells[cell].clone(),
        round,
        measures: names.into_iter().enumerate().map(value).collect(),
        calls: [("front".to_owned(), calls.collect())].into(),
        seconds: vec![second; 5],
        ..Run::default()
    };
    run.facts.completed = 45_000;
    let latency =
        json!({"mean": 10.0, "rounding": 0.001, "stddev": 2.5, "median": 9.5, "max": 40.0});
    run.facts.latency_ms = serde_json::from_value(latency).unwrap();
    run
}

fn samples() -> String {
    let mut lines = String::new();
    for second in 0..6 {
        let time = f64::from(second);
        let core = CoreSample {
            user: time * 0.6,
            system: time * 0.3,
            total: time,
            ..CoreSample::default()
        };
        let jvm = JvmSample {
            heap: 32 << 20,
            collecting_s: time * 0.01,
            ..JvmSample::default()
        };
        let sample = Sample {
            time_s: time,
            cores: vec![core; 2],
            servers: [
                ("front".to_owned(), time * 0.7),
                ("app".to_owned(), time * 0.2),
            ]
            .into(),
            jvms: [("app".to_owned(), jvm)].into(),
            ..Sample::default()
        };
        writeln!(lines, "{}", serde_json::to_string(&sample).unwrap()).unwrap();
    }
    lines
}

#[test]
fn a_report_of_any_experiment_is_small() {
    let pages: Vec<(&str, String)> = builtin::names()
        .map(|name| (name, report::html(&result(name))))
        .collect();
    for (name, page) in &pages {
        assert!(page.len() <= PAGE_MAX, "{name}: {} bytes", page.len());
    }
}

#[test]
fn a_published_test_is_shown_beside_its_repetition() {
    for (name, theirs) in [
        ("keepalive", "16804.0/s"),
        ("ajp-vs-http", "1989.2/s"),
        ("io-models", "1248.4/s"),
        ("gateway", "3223 TPS [3200..3400]"),
        ("modules", "AJP over HTTP"),
    ] {
        let result = result(name);
        let texts = [report::html(&result), report::markdown(&result)];
        for text in &texts {
            let claims = text
                .find("Ratios are taken")
                .or_else(|| text.find("## Claims"))
                .unwrap();
            let place = text.find(theirs).unwrap_or(usize::MAX);
            assert!(place < claims, "{name}: {theirs}");
        }
        assert_eq!(result.as_published.is_empty(), name == "modules");
        let has_gates = |run: &PublishedResult| !run.found.is_empty();
        assert!(result.published.iter().any(has_gates), "{name}");
        assert!(
            result.claims.iter().any(|claim| claim.published.is_some()) || name == "gateway",
            "{name}"
        );
    }
}

/// The largest size of a report, in bytes.
const PAGE_MAX: usize = 500_000;

const MEASURES: [&str; 14] = [
    "throughput",
    "p50",
    "p90",
    "p99",
    "p99@0.5",
    "cpu",
    "cpu.front",
    "cpu.app",
    "syscalls",
    "memory",
    "heap.app",
    "bytes.front.http",
    "bytes.upstream",
    "sockets",
];

const CALLS: [&str; 8] = [
    "accept4",
    "close",
    "epoll_ctl",
    "epoll_wait",
    "openat",
    "read",
    "setsockopt",
    "writev",
];

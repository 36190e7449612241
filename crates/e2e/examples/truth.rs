//! Whether the lab finds what is there, and nothing else.
//!
//! ```text
//! cargo run --release -p catamaran-e2e --example truth -- same [TIMES] | more
//! ```
//!
//! `same` sets nginx beside itself, in 40 experiments of 12 rounds of half a second unless TIMES says otherwise,
//! and counts how many intervals of 95 % exclude 1: about one in 25 should, whatever else the machine does.
//! `more` sets a server beside itself that computes 0.7 µs longer for each request, about a tenth, and says what
//! twelve rounds make of it. Verdicts are taken from the runs as they are: gates forbid claims on a busy machine, and it is the
//! intervals that are tried here.
//!
//! It needs root, two cores and nginx (`cargo xtask needs`), and takes 25 minutes, or one. The binary is that of
//! `CATAMARAN_BIN`, else the newest in the target directory.

#![expect(clippy::print_stdout, reason = "its output is the report")]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::{Context as _, bail, ensure};
use catamaran_e2e::binary;
use catamaran_stats::order::{MedianInterval, median_interval};
use serde_json::Value;

fn main() -> ExitCode {
    match run(&std::env::args().skip(1).collect::<Vec<_>>()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("{error:?}");
            ExitCode::from(2)
        }
    }
}

fn run(words: &[String]) -> anyhow::Result<()> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        ["same"] => same(TIMES),
        ["same", times] => same(times.parse().context(USAGE)?),
        ["more"] => more(),
        _ => bail!(USAGE),
    }
}

/// How often one and the same server seems to differ from itself.
fn same(times: u64) -> anyhow::Result<()> {
    let mut calls = BTreeMap::from(MEASURES.map(|name| (name, 0)));
    for seed in 1..=times {
        let server = "target = 'nginx'\n";
        let intervals = intervals(&experiment(seed, server))?;
        for (name, interval) in &intervals {
            println!("{seed:3} {name:10} {}", words_of(interval));
            if interval.excludes(1.0) {
                *calls.entry(name).or_default() += 1;
            }
        }
    }
    for (name, count) in calls {
        println!("{name}: {count} of {times} intervals exclude 1");
    }
    Ok(())
}

/// What a tenth more CPU time comes to.
fn more() -> anyhow::Result<()> {
    let server =
        "target = 'bare'\nset = { spin = \"{{ '0.7us' if factor.side == 'b' else '0us' }}\" }\n";
    for (name, interval) in intervals(&experiment(1, server))? {
        let found = if interval.excludes(1.0) {
            "found"
        } else {
            "not shown"
        };
        println!("{name:10} {} {found}", words_of(&interval));
    }
    Ok(())
}

fn words_of(interval: &MedianInterval) -> String {
    let MedianInterval {
        low, median, high, ..
    } = interval;
    format!("{median:.3} [{low:.3}..{high:.3}]")
}

/// Runs an experiment; of each measure the second side over the first.
fn intervals(text: &str) -> anyhow::Result<Vec<(&'static str, MedianInterval)>> {
    let directory = tempfile::tempdir()?;
    let (file, out) = (
        directory.path().join("truth.toml"),
        directory.path().join("out"),
    );
    fs::write(&file, text)?;
    let mut command = Command::new(binary()?);
    command
        .args(["lab", "run"])
        .arg(&file)
        .arg("--out")
        .arg(&out);
    let ended = command.output()?;
    ensure!(
        ended.status.success(),
        "{}",
        String::from_utf8_lossy(&ended.stderr)
    );
    let runs = runs(&out)?;
    let of = |name: &'static str| {
        let ratios: Vec<f64> = runs
            .values()
            .filter_map(|sides| ratio(sides, name))
            .collect();
        let interval = median_interval(&ratios, LEVEL);
        let few = || format!("{} valid rounds are too few for {name}", ratios.len());
        Ok((name, interval.with_context(few)?))
    };
    MEASURES.into_iter().map(of).collect()
}

/// The valid runs of each round, by side.
fn runs(out: &Path) -> anyhow::Result<BTreeMap<u64, BTreeMap<String, Value>>> {
    let mut rounds: BTreeMap<u64, BTreeMap<String, Value>> = BTreeMap::new();
    for line in fs::read_to_string(out.join("runs.jsonl"))?.lines() {
        let run: Value = serde_json::from_str(line)?;
        let gates = run["gates"].as_array().into_iter().flatten();
        if gates.clone().any(|gate| gate["effect"] == "void") {
            continue;
        }
        let round = run["round"].as_u64().context("a run without its round")?;
        let side = run["levels"]["side"]
            .as_str()
            .context("a run without its side")?;
        let sides = rounds.entry(round).or_default();
        sides.insert(side.to_owned(), run["measures"].clone());
    }
    Ok(rounds)
}

/// Side b over side a, if both are valid.
fn ratio(sides: &BTreeMap<String, Value>, name: &str) -> Option<f64> {
    let of = |side: &str| sides.get(side)?[name].as_f64();
    Some(of("b")? / of("a")?)
}

/// Two sides of one server; they differ in what `server` makes of `factor.side` alone.
fn experiment(seed: u64, server: &str) -> String {
    format!(
        "name = 'truth'\nquestion = 'Are a and b the same?'\ncontrol = {{ side = 'a' }}\n\
         [factor]\nside = ['a', 'b']\n[run]\nrounds = 12\nseed = {seed}\n\
         [[server]]\nname = 'server'\ncore = 1\n{server}\
         [load]\nurl = '{{{{ server.server.http }}}}/'\ncore = 0\nclients = 50\nkeep_alive = 'on'\n\
         time = '500ms'\nwarm = {{ at_least = '300ms', at_most = '300ms' }}\n\
         [expect]\nstatus = 200\nkept = 'on'\n\
         [[claim]]\nsays = 'b takes the CPU time of a'\nmeasure = 'cpu'\n\
         level = {{ side = 'b' }}\nover = {{ side = 'a' }}\nexpect = 'same'\n"
    )
}

const USAGE: &str = "usage: truth same [TIMES] | more";
const TIMES: u64 = 40;
const MEASURES: [&str; 4] = ["cpu", "throughput", "p50", "p99"];
const LEVEL: f64 = 0.95;

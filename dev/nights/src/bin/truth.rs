//! Checks whether the lab finds a difference that exists, and none that does not.
//!
//! ```text
//! cargo run --release -p catamaran-nights --bin truth -- same [TIMES] | more | copy [TIMES] | planted
//! ```
//!
//! `same` compares nginx with itself, in 40 experiments of 12 rounds of half a second unless TIMES says otherwise,
//! and counts how many intervals of 95 % exclude 1: about one in 20 should, whatever else the machine does. `more`
//! compares a server with itself that computes 0.7 µs longer for each request, about a tenth, and prints the interval
//! of twelve rounds. Both use all runs, because gates forbid claims on a busy machine, and only intervals are checked
//! here.
//!
//! `copy` runs `lab run --against` a byte copy of the binary, ten times unless TIMES says otherwise, on a server of
//! ours: twelve rounds of 0.8 s, each with new starts, so that each of the four claims can be shown. It prints all
//! verdicts, and exits with 1 if any is a difference. `planted` is the same plan, but the server computes 0.7 µs
//! longer for each request with the new binary, about a tenth; it exits with 1 unless this is shown. Both respect
//! gates. (With a front before it, the sum of CPU time would hardly change: the front would get more responses at
//! each turn of its event loop, and need less time for each.)
//!
//! It needs root, two cores and nginx (`cargo xtask needs`), and takes 25 minutes (`same`), ten (`copy`), or one. The binary is that of
//! `CATAMARAN_BIN`, else the newest in the target directory.

#![expect(clippy::print_stdout, reason = "its output is the report")]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::{Context as _, bail, ensure};
use catamaran_e2e::binary;
use catamaran_stats::signed_rank::{self, Centre};
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
        ["copy"] => copy(COPIES),
        ["copy", times] => copy(times.parse().context(USAGE)?),
        ["planted"] => planted(),
        _ => bail!(USAGE),
    }
}

/// Counts how often a server seems to differ from itself.
fn same(times: u64) -> anyhow::Result<()> {
    let mut calls = BTreeMap::from(MEASURES.map(|name| (name, 0)));
    for seed in 1..=times {
        let server = "target = 'nginx'\n";
        let intervals = intervals(&experiment(seed, server))?;
        for (name, interval) in &intervals {
            println!("{seed:3} {name:10} {}", words_of(interval));
            if interval.excludes(0.0) {
                *calls.entry(name).or_default() += 1;
            }
        }
    }
    for (name, count) in calls {
        println!("{name}: {count} of {times} intervals exclude 1");
    }
    Ok(())
}

/// Prints what the lab finds if one side needs a tenth more CPU time.
fn more() -> anyhow::Result<()> {
    let server = format!(
        "target = 'bare'\nset = {{ spin = \"{{{{ '{PLANTED}' if factor.side == 'b' else '0us' }}}}\" }}\n"
    );
    for (name, interval) in intervals(&experiment(1, &server))? {
        let found = if interval.excludes(0.0) {
            "found"
        } else {
            "not shown"
        };
        println!("{name:10} {} {found}", words_of(&interval));
    }
    Ok(())
}

/// Counts how often a byte copy of the binary seems to differ from the binary.
fn copy(times: u64) -> anyhow::Result<()> {
    let mut shown = 0;
    for seed in 1..=times {
        println!("{seed}:");
        let claims = against(&plan(seed, "0us"))?;
        shown += claims.iter().filter(|claim| is_shown(claim)).count();
    }
    println!("{shown} differences shown in {times} experiments");
    ensure!(
        shown == 0,
        "a copy of the binary is shown to differ from it"
    );
    Ok(())
}

/// Checks that the lab shows it if the new binary computes for [`PLANTED`] more for each request.
fn planted() -> anyhow::Result<()> {
    let claims = against(&plan(1, PLANTED))?;
    let cpu = claims.iter().find(|claim| claim["measure"] == "cpu");
    let is_found = cpu.is_some_and(|claim| is_shown(claim) && claim["ratio"].as_f64() > Some(1.0));
    ensure!(is_found, "a tenth more CPU time is not shown");
    Ok(())
}

fn is_shown(claim: &Value) -> bool {
    claim["verdict"] == "differs" || claim["verdict"] == "differs-little"
}

/// Runs an experiment against a byte copy of the binary, and prints its claims.
fn against(text: &str) -> anyhow::Result<Vec<Value>> {
    let directory = tempfile::tempdir()?;
    let place = |name: &str| directory.path().join(name);
    fs::write(place("copy.toml"), text)?;
    // A path of another length would move the stack to other addresses, which twelve starts show as a difference.
    for name in ["new", "old"] {
        fs::copy(binary()?, place(name))?;
    }
    let mut command = Command::new(place("new"));
    command.args(["lab", "run"]).arg(place("copy.toml"));
    command.arg("--against").arg(place("old"));
    let output = command.arg("--out").arg(place("out")).output()?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{errors}");
    let text = fs::read_to_string(place("out").join("result.json"))?;
    let result: Value = serde_json::from_str(&text)?;
    let claims = result["claims"].as_array().context("no claims")?;
    for claim in claims {
        let word = |key: &str| claim[key].as_str().unwrap_or_default().to_owned();
        println!(
            "  {:10} {:14} {}",
            word("measure"),
            word("verdict"),
            word("sentence")
        );
    }
    Ok(claims.clone())
}

/// The plan of a server of ours that computes `more` for each answer with the new binary.
fn plan(seed: u64, more: &str) -> String {
    format!(
        "name = 'copy'\nquestion = 'Is a copy the same?'\ncontrol = {{ side = 'one' }}\n\
         [factor]\nside = ['one']\n[run]\nrounds = 12\nseed = {seed}\n\
         [[server]]\nname = 'app'\ntarget = 'bare'\ncore = 1\n\
         set = {{ spin = \"{{{{ '{more}' if factor.binary|default('old') == 'new' else '0us' }}}}\" }}\n\
         [load]\nurl = '{{{{ server.app.http }}}}/'\ncore = 0\npreempts = true\nclients = 50\nkeep_alive = 'on'\n\
         time = '800ms'\nwarm = {{ at_least = '400ms', at_most = '400ms' }}\n\
         [expect]\nstatus = 200\nbody_bytes = 347\nkept = 'on'\n[measure]\nmemory = ['app']\n"
    )
}

/// The ratio with its interval, of which `interval` has the logarithms.
fn words_of(interval: &Centre) -> String {
    let Centre {
        low,
        estimate,
        high,
    } = interval;
    let [low, ratio, high] = [low, estimate, high].map(|log| log.exp());
    format!("{ratio:.3} [{low:.3}..{high:.3}]")
}

/// Runs an experiment; returns for each measure the interval of the logarithm of side b over side a.
fn intervals(text: &str) -> anyhow::Result<Vec<(&'static str, Centre)>> {
    let directory = tempfile::tempdir()?;
    let (file, out) = (
        directory.path().join("truth.toml"),
        directory.path().join("out"),
    );
    fs::write(&file, text)?;
    let mut command = Command::new(binary()?);
    command.args(["lab", "run"]).arg(&file);
    let output = command.arg("--out").arg(&out).output()?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{errors}");
    let runs = runs(&out)?;
    let mut intervals = Vec::new();
    for measure in MEASURES {
        let ratios = runs.values().filter_map(|sides| ratio(sides, measure));
        let logs: Vec<f64> = ratios.map(f64::ln).collect();
        let interval = signed_rank::centre(&logs, LEVEL)
            .with_context(|| format!("{} valid rounds are too few for {measure}", logs.len()))?;
        intervals.push((measure, interval));
    }
    Ok(intervals)
}

/// The measures of the runs that are not void, by round and by side.
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

/// The ratio of a measure on side b to that on side a; `None` if a run is missing.
fn ratio(sides: &BTreeMap<String, Value>, name: &str) -> Option<f64> {
    let of = |side: &str| sides.get(side)?[name].as_f64();
    Some(of("b")? / of("a")?)
}

/// An experiment with two sides of one server; they differ only in what `server` does with `factor.side`.
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

/// How much longer the slower side computes for each request: about a tenth of its CPU time.
const PLANTED: &str = "0.7us";

const USAGE: &str = "usage: truth same [TIMES] | more | copy [TIMES] | planted";
const TIMES: u64 = 40;
const COPIES: u64 = 10;
const MEASURES: [&str; 4] = ["cpu", "throughput", "p50", "p99"];
const LEVEL: f64 = 0.95;

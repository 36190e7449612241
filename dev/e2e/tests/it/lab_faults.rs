//! Faults planted in one of two levels of an experiment, on real processes: what the lab says of them.
//!
//! The older binary of `lab run --against` is a shell script. It runs the real one, and does something to it.

use std::fs;
use std::path::Path;
use std::time::Duration;

use catamaran_e2e::{binary, catamaran};
use catamaran_testkit::{Deadline, Process, write_script};
use serde_json::Value;

use crate::one_server::OneServer;

/// What the lab has made of an experiment.
struct Ended {
    said: String,
    result: Value,
    reports: [String; 2],
}

impl Ended {
    fn claim(&self, measure: &str) -> &Value {
        let claims = self.result["claims"].as_array().unwrap();
        let claim = claims.iter().find(|it| it["measure"] == measure);
        claim.unwrap_or_else(|| panic!("{measure}: {claims:#?}"))
    }

    /// The words of the gate that forbids the claim on `measure`; `None` on a machine that is too busy for any claim on
    /// times, which other gates forbid then. Fails if none does.
    #[track_caller]
    fn forbids(&self, gate: &str, measure: &str) -> Option<&str> {
        let claim = self.claim(measure);
        assert_eq!(claim["verdict"], "no-claim", "{claim:#}\n{}", self.said);
        let gates = claim["gates"].as_array().unwrap();
        let is_it = |it: &&Value| it["gate"] == gate && it["effect"] == "claim";
        let fired = gates.iter().find(is_it);
        let is_busy = |it: &Value| it["effect"] == "time" || it["effect"] == "machine";
        assert!(
            fired.is_some() || gates.iter().any(is_busy),
            "{gate}: {claim:#}"
        );
        fired.and_then(|it| it["words"].as_str())
    }

    fn cell(&self, binary: &str) -> &Value {
        let cells = self.result["cells"].as_array().unwrap();
        let cell = cells.iter().find(|it| it["levels"]["binary"] == binary);
        cell.unwrap()
    }
}

/// Runs so many rounds against a binary that does this, words of the shell, before it becomes the real one.
fn run(fault: &str, rounds: u32, times: [&str; 2]) -> Ended {
    run_to(fault, rounds, times, 0)
}

/// The same, to an end with this exit code.
fn run_to(fault: &str, rounds: u32, times: [&str; 2], code: i32) -> Ended {
    let directory = tempfile::tempdir().unwrap();
    let place = |name: &str| directory.path().join(name);
    let script = format!(
        "if [ \"$1 $2 $3\" = 'lab extra bare' ]; then\ncd {}\n{fault}\nfi\nexec {} \"$@\"\n",
        directory.path().display(),
        binary().unwrap().display()
    );
    write_script(&place("old"), &script).unwrap();
    let plan = OneServer {
        name: "planted",
        target: "bare",
        times,
        rounds,
        claims: "cpu",
        measure: "",
    };
    fs::write(place("plan.toml"), plan.text()).unwrap();
    let path = |name: &str| place(name).display().to_string();
    let words = ["lab", "run", &path("plan.toml"), "--exploratory"];
    let more = ["--against", &path("old"), "--out", &path("result")];
    let mut process: Process = catamaran(&[&words[..], &more].concat()).unwrap();
    let status = process
        .wait(Deadline::after(Duration::from_secs(300)))
        .unwrap();
    let said = format!("{}{}", process.stdout(), process.stderr());
    assert_eq!(status.code(), Some(code), "{said}");
    let read = |name: &str| fs::read_to_string(Path::new(&path("result")).join(name)).unwrap();
    Ended {
        said,
        result: serde_json::from_str(&read("result.json")).unwrap(),
        reports: [read("report.md"), read("report.html")],
    }
}

/// Of three starts one ends at once, and one is killed while it serves. Each round finds one that serves.
#[test]
fn a_server_that_crashes_is_a_result() {
    let fault = "n=$(cat starts 2>/dev/null || echo 0); n=$((n + 1)); echo $n > starts\n\
                 case $((n % 3)) in\n\
                 1) echo 'out of luck' >&2; exit 3;;\n\
                 2) (sleep 0.3; kill -KILL $$) & ;;\n\
                 esac";
    let ended = run(fault, 12, ["100ms", "600ms"]);
    assert_eq!(ended.result["is_complete"], true, "{}", ended.said);
    // It ends at a look once all claims are decided or forbidden.
    let rounds = &ended.result["rounds"];
    assert!((8..=12).contains(&rounds.as_u64().unwrap()), "{rounds}");
    let old = ended.cell("old");
    assert_eq!(
        &old["runs"], rounds,
        "replacements were found: {}",
        ended.said
    );
    // On p99 nothing is claimed anyway: the load generator is the limit.
    for measure in ["cpu", "throughput"] {
        let words = ended.forbids("survivors", measure).unwrap();
        assert!(
            words.contains("with binary=old were void (died "),
            "{words}"
        );
        let survivors = ended.claim(measure)["survivors"].as_array().unwrap();
        let of_old = survivors.iter().find(|it| it["is_above"] == false).unwrap();
        assert!(of_old["void"].as_u64() >= Some(16), "{of_old}");
        assert!(of_old["gates"]["not-ready"].as_u64() >= Some(8), "{of_old}");
        // Those that a busy machine had not started when they were killed were never ready.
        assert!(of_old["gates"]["died"].as_u64() >= Some(4), "{of_old}");
    }
    let words = "ended with exit status 3 before it served: out of luck";
    assert!(ended.said.contains(words), "{}", ended.said);
    for report in &ended.reports {
        assert!(report.contains("Void runs: "), "{report}");
        assert!(report.contains(words), "{report}");
    }
    assert!(ended.said.contains("Void runs: "), "{}", ended.said);
}

#[test]
fn a_level_that_never_serves_is_a_result() {
    let ended = run_to("echo 'no luck' >&2; exit 3", 6, ["50ms", "200ms"], 1);
    assert_eq!(ended.result["is_complete"], true, "{}", ended.said);
    assert_eq!(ended.cell("old")["runs"], 0);
    // Three times in the first round, then once in each.
    assert_eq!(ended.cell("old")["void"], 8, "{}", ended.said);
    let words = ended.forbids("survivors", "cpu");
    assert_eq!(
        words.unwrap(),
        "None of the 8 runs with binary=old was valid (not-ready 8)."
    );
}

/// It computes beside the server, on the same core, for the first seconds after each start. Throughput is not looked at:
/// beside other work six starts may not show that it moved.
#[test]
fn a_server_that_is_cold_at_first_has_no_claim() {
    let fault = "timeout 2 sh -c 'while :; do :; done' &";
    let ended = run(fault, 6, ["100ms", "3s"]);
    if let Some(words) = ended.forbids("unsteady", "cpu") {
        assert!(
            words.starts_with("Within the measured span the ratio moved from ×"),
            "{words}"
        );
    }
}

/// It stands still for 200 ms in each second, in which each client has one request under way.
#[test]
fn a_server_that_stalls_has_no_claim_on_percentiles() {
    let fault = "(while sleep 0.8; do kill -STOP $$; sleep 0.2; kill -CONT $$; done) &";
    let ended = run(fault, 9, ["100ms", "2400ms"]);
    if let Some(words) = ended.forbids("silences", "p99") {
        let rounds = &ended.result["rounds"];
        let all = format!(" {rounds} of {rounds} with binary=old, of ");
        assert!(words.contains(&all), "{words}");
    }
    let old = &ended.cell("old")["measures"];
    assert!(old["silences"]["median"].as_f64() >= Some(1.0), "{old:#}");
    assert!(
        old["longest_silence"]["median"].as_f64() >= Some(150.0),
        "{old:#}"
    );
    let gates = ended.result["gates"].as_array().unwrap();
    let fired = gates.iter().find(|it| it["gate"] == "silences").unwrap();
    assert_eq!(fired["effect"], "note", "{fired}");
    for report in &ended.reports {
        assert!(report.contains("longest_silence (ms)"), "{report}");
    }
}

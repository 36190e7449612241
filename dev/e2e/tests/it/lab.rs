//! `lab run` on a real nginx: what it writes and says, not which figures.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use catamaran_e2e::{binary, catamaran};
use catamaran_testkit::{Deadline, Process};
use serde_json::Value;

use crate::builds::profile;
use crate::one_server::OneServer;

#[test]
fn an_experiment_runs_from_its_file_to_its_report() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("pages.toml");
    fs::write(&file, EXPERIMENT).unwrap();
    let out = directory.path().join("result");
    let words = [
        "lab",
        "run",
        file.to_str().unwrap(),
        "--strace",
        "--out",
        out.to_str().unwrap(),
    ];
    let mut process: Process = catamaran(&words).unwrap();
    // Each of the twelve runs starts a server, and a busy machine may void some.
    let status = process
        .wait(Deadline::after(Duration::from_secs(240)))
        .unwrap();
    let said = format!("{}{}", process.stdout(), process.stderr());
    assert_eq!(status.code(), Some(0), "{said}");
    assert!(said.contains("round 6/6, 2/2"), "{said}");

    let text = read(&out, "result.json");
    let result: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(result["schema"], "catamaran-lab/1");
    has_no_path_of_the_machine(&text, &result);
    assert_eq!(result["is_complete"], true);
    names_the_build(&result, &[&said, &read(&out, "report.md")]);
    assert_eq!(result["orders"].as_array().unwrap().len(), 6);
    let cells = result["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 2);
    for cell in cells {
        for name in [
            "throughput",
            "cpu",
            "syscalls",
            "bytes.nginx.http",
            "memory",
        ] {
            assert!(
                cell["measures"][name]["median"].as_f64().unwrap() > 0.0,
                "{name} {cell}"
            );
        }
        for name in ["cpu.user", "memory.slab", "server.nginx"] {
            assert!(cell["over_time"]["rows"][name].is_string(), "{name} {cell}");
        }
    }
    let page = read(&out, "report.html");
    assert!(page.contains("A longer page takes more bytes") && page.ends_with("</html>\n"));
    assert!(
        page.contains("listen 127.0.0.1:"),
        "the configuration of nginx"
    );
    assert!(page.contains("<h3>CPU of each server <small>"), "over time");
    assert!(read(&out, "report.md").starts_with("# Does a longer page take more bytes?"));
    assert!(read(&out, "runs.jsonl").lines().count() >= 12);
    assert!(read(&out, "runs/1/latency.hlog").starts_with("#[Histogram log format version"));

    // What follows from the same runs is the same.
    let words = ["lab", "report", out.to_str().unwrap()];
    let mut process: Process = catamaran(&words).unwrap();
    assert!(process.wait(Deadline::default()).unwrap().success());
    assert_eq!(read(&out, "report.html"), page);

    // A table of each cell's server, with times. The master of nginx sleeps.
    let said = done(&["lab", "report", out.to_str().unwrap(), "--strace"]);
    let head = "% time     seconds  usecs/call     calls    errors syscall";
    assert!(said.matches(head).count() >= 2, "{said}");
    assert!(
        said.contains("\nnginx, the one process that called anything:"),
        "{said}"
    );
    let row = said.lines().find(|line| line.ends_with(" accept4"));
    let words: Vec<&str> = row.unwrap().split_whitespace().collect();
    assert!(words[1].parse::<f64>().is_ok(), "seconds: {words:?}");
    assert!(words[3].parse::<u64>().unwrap() > 0, "calls: {words:?}");
}

/// The result has the build, and those who read of figures are told if it is a slow one.
fn names_the_build(result: &Value, texts: &[&str]) {
    let profile = profile();
    assert_eq!(result["host"]["build"], profile);
    let warning = format!("This is a {profile} build of catamaran");
    for text in texts {
        assert_eq!(text.contains(&warning), profile != "dist", "{text}");
    }
}

#[test]
fn what_goes_on_beside_a_load_and_after_an_interruption() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("busy.toml");
    fs::write(&file, BUSY).unwrap();
    let out = directory.path().join("result");
    let place = out.to_str().unwrap();
    // The file has 9.
    let words = ["lab", "run", file.to_str().unwrap(), "--out", place];
    let said = done(&[&words[..], &["--rounds", "6", "--no-bpf"]].concat());
    assert!(said.contains("capacity, 2/2"), "{said}");
    assert!(!said.contains("exploratory"), "six starts can show a claim");
    let runs = read(&out, "runs.jsonl");
    let mut reloads = 0.0;
    for line in runs.lines() {
        let run: Value = serde_json::from_str(line).unwrap();
        let measures = &run["measures"];
        // The application is 2 ms away; a time below would have another cause than a fast machine.
        assert!(measures["p50"].as_f64().unwrap() >= 2.0, "{line}");
        for name in ["failed", "held.front", "cpu.front"] {
            assert!(measures[name].is_number(), "{name} {line}");
        }
        // On a machine that is too busy for the rate, a gate says that nothing is known of it.
        let refused = line.contains("Nothing is measured at 50 % of the capacity");
        for name in ["p50@0.5", "cpu.front@0.5"] {
            assert_ne!(measures[name].is_number(), refused, "{name} {line}");
        }
        // A busy machine may find no time for one within the span.
        let acted = measures["acted"].as_f64().unwrap_or(0.0);
        if run["levels"]["event"] == "reload" {
            reloads += acted;
        } else {
            assert_eq!(acted, 0.0, "{line}");
        }
    }
    assert!(reloads >= 1.0, "{runs}");
    let servers: Value = serde_json::from_str(&read(&out, "servers.json")).unwrap();
    assert_eq!(servers[0]["command"][0], "catamaran", "{servers}");

    // As if it had been killed in the middle of its third round.
    let lines: Vec<&str> = runs.lines().take(5).collect();
    fs::write(out.join("runs.jsonl"), lines.join("\n") + "\n").unwrap();
    let said = done(&["lab", "run", "--resume", place]);
    assert!(
        !said.contains("round 1/6") && said.contains("round 6/6, 2/2"),
        "as many as --rounds asked for: {said}"
    );
    assert!(!said.contains("capacity, "), "it was kept: {said}");
    let result: Value = serde_json::from_str(&read(&out, "result.json")).unwrap();
    assert_eq!(result["is_complete"], true);
    assert_eq!(result["orders"].as_array().unwrap().len(), 6);

    names_what_is_not_counted(&out, &result);

    let said = done(&["lab", "export", place, "--nmon"]);
    assert!(said.contains("files run.nmon"), "{said}");
    assert!(read(&out, "runs/1/run.nmon").starts_with("AAA,progname,catamaran\n"));
    let mut process: Process = catamaran(&["lab", "compare", place, place]).unwrap();
    let status = process.wait(Deadline::default()).unwrap();
    assert!(
        matches!(status.code(), Some(0 | 3)),
        "nothing is worse than itself: {status}"
    );
    assert!(process.stdout().contains("\"A reload fails no request\""));
}

/// A page of a program that load and server have both must count for neither.
#[test]
fn a_copy_of_the_binary_takes_the_same_memory() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("copy.toml");
    fs::write(&file, COPY.text()).unwrap();
    let copy = directory.path().join("copy");
    // By a child: what this process has open to write, children of other tests have open, too, and nobody can run it.
    let mut copies = Command::new("cp");
    let copied = copies.arg(binary().unwrap()).arg(&copy).status().unwrap();
    assert!(copied.success());
    // Servers are started elsewhere.
    let depth = std::env::current_dir().unwrap().components().count();
    let relative = format!(
        "{}{}",
        "../".repeat(depth - 1),
        &copy.to_str().unwrap()[1..]
    );
    let out = directory.path().join("result");
    done(&[
        "lab",
        "run",
        file.to_str().unwrap(),
        "--against",
        &relative,
        "--out",
        out.to_str().unwrap(),
    ]);
    let result: Value = serde_json::from_str(&read(&out, "result.json")).unwrap();
    assert_eq!(result["memory"], "allocated");
    let claims = result["claims"].as_array().unwrap();
    let memory = claims.iter().find(|it| it["measure"] == "memory").unwrap();
    let ratio = memory["ratio"].as_f64().unwrap();
    assert!((0.9..1.1).contains(&ratio), "{memory}");
    assert_ne!(memory["verdict"], "differs", "{memory}");
    let starts = memory["starts"].as_array().unwrap().len();
    assert!(
        (8..=9).contains(&starts),
        "at least up to the first look: {starts}"
    );
}

#[test]
fn a_plan_that_can_show_nothing_does_not_begin() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("few.toml");
    let few = COPY.text().replace("core = 1\n", "core = 1\nrestart = 3\n");
    assert_ne!(few, COPY.text());
    fs::write(&file, few).unwrap();
    let file = file.to_str().unwrap();
    let mut process: Process = catamaran(&["lab", "run", file]).unwrap();
    let status = process.wait(Deadline::default()).unwrap();
    assert_eq!(status.code(), Some(2));
    let said = process.stderr();
    assert!(
        said.contains("no claim can be shown: it needs 6 starts of servers, and there are 3."),
        "{said}"
    );
    assert!(said.contains("--exploratory"), "{said}");
    let said = done(&["lab", "list", "--check", file]);
    assert!(said.contains("no claim can be shown"), "{said}");
}

fn has_no_path_of_the_machine(text: &str, result: &Value) {
    let conf = result["servers"][0]["files"]["nginx.conf"].as_str();
    let pid = "\npid RUN/nginx/nginx.pid;";
    assert!(conf.unwrap().contains(pid), "{text}");
    assert!(!text.contains("/tmp/"), "{text}");
}

/// As where the kernel forbids BPF.
fn names_what_is_not_counted(out: &Path, result: &Value) {
    let claims = result["claims"].as_array().unwrap();
    let claim = claims.iter().find(|it| it["measure"] == "syscalls.front");
    let ratio = claim.unwrap()["ratio"].as_f64();
    assert!(ratio.is_some_and(|ratio| ratio > 0.0), "{claim:?}");
    for cell in result["cells"].as_array().unwrap() {
        let measures = cell["measures"].as_object().unwrap();
        for name in ["syscalls", "syscalls.front"] {
            assert!(measures.contains_key(name), "{name} {cell}");
        }
        assert!(!measures.contains_key("bytes.upstream"), "{cell}");
    }
    for report in ["report.md", "report.html"] {
        let text = read(out, report);
        for words in [
            "System calls are counted by strace, in a span of their own whose times are not looked at: \
             --no-bpf asked for that.",
            "Bytes of hops are not counted: --no-bpf asked for that.",
        ] {
            assert!(text.contains(words), "{words} {text}");
        }
    }
}

/// Runs it to its good end; what it says.
fn done(words: &[&str]) -> String {
    let mut process: Process = catamaran(words).unwrap();
    let status = process
        .wait(Deadline::after(Duration::from_secs(240)))
        .unwrap();
    let said = format!("{}{}", process.stdout(), process.stderr());
    assert_eq!(status.code(), Some(0), "{said}");
    said
}

fn read(directory: &Path, name: &str) -> String {
    fs::read_to_string(directory.join(name)).unwrap()
}

/// Two cells whose bytes differ for sure, whatever a busy machine does to times.
const EXPERIMENT: &str = r#"
name = "pages"
question = "Does a longer page take more bytes?"
control = { bytes = 100 }
[factor]
bytes = [100, 3000]
[[server]]
name = "nginx"
target = "nginx"
set = { page_bytes = "{{ factor.bytes }}" }
[load]
url = "{{ server.nginx.http }}/"
clients = 16
keep_alive = "on"
time = "300ms"
warm = { at_least = "50ms", at_most = "50ms" }
crowd = { kind = "idle", clients = 3, every = "1s" }
[expect]
status = 200
body_bytes = "{{ factor.bytes }}"
kept = "on"
[measure]
syscalls = ["nginx"]
bytes = ["nginx.http"]
memory = ["nginx"]
[run]
rounds = 6
seed = 1
[[claim]]
says = "A longer page takes more bytes"
measure = "bytes.nginx.http"
level = { bytes = 3000 }
over = { bytes = 100 }
expect = "more"
"#;

/// One server of ours.
const COPY: OneServer<'_> = OneServer {
    name: "copy",
    target: "app",
    times: ["50ms", "150ms"],
    rounds: 9,
    claims: "memory",
    measure: "memory = [\"app\"]",
};

/// Two cells that share an application behind a link, with all that may go on beside a load.
const BUSY: &str = r#"
name = "busy"
question = "Does a reload fail requests?"
control = { event = "none", site = "one" }
nest = ["site"]
[factor]
event = ["none", "reload"]
site = ["one"]
[[server]]
name = "app"
target = "app"
[[server]]
name = "link"
target = "link"
set = { round_trip = "2ms", to = "{{ server.app.http }}" }
[[server]]
name = "front"
target = "nginx"
set = { backend = "{{ server.link.http }}", ready_path = "/" }
[[action]]
server = "front"
do = "{{ factor.event }}"
every = "50ms"
[load]
url = "{{ server.front.http }}/"
clients = 4
keep_alive = "on"
time = "300ms"
warm = { at_least = "50ms", at_most = "50ms" }
shares = [0.5]
crowd = { kind = "drip", clients = 3, every = "5ms" }
[[beside]]
url = "{{ server.front.http }}/"
clients = 2
keep_alive = "off"
rate = 50
[expect]
status = 200
body_bytes = 347
delay = "2ms"
[gates]
failed = "off"
late = "off"
[measure]
memory = ["front"]
syscalls = ["front"]
bytes = ["front.http", "app.http"]
[run]
rounds = 9
seed = 1
[[claim]]
says = "A reload fails no request"
measure = "failed"
level = { event = "reload" }
over = { event = "none" }
expect = "same"
[[claim]]
says = "A reload takes system calls"
measure = "syscalls.front"
level = { event = "reload" }
over = { event = "none" }
expect = "more"
"#;

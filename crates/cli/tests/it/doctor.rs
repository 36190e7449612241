//! `doctor`: each limit that is lowered is found, and nothing else changes.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use catamaran_testkit::{Deadline, DnsAnswer, DnsRecord, DnsServer, Process, Signal, dns};
use serde_json::Value;

use super::{catamaran, outcome};

/// The verdict on each thing that was looked at. `before` is a command that runs the doctor.
fn verdicts(before: &[&str], config: &Path, dial: bool) -> BTreeMap<String, String> {
    let mut words = before.to_vec();
    words.extend([
        env!("CARGO_BIN_EXE_catamaran"),
        "doctor",
        "--json",
        "--config",
    ]);
    words.push(config.to_str().expect("the path is UTF-8"));
    words.extend(dial.then_some("--dial"));
    let mut command = Command::new(words[0]);
    let output = command.args(&words[1..]).stdin(Stdio::null()).output();
    let output = output.expect("it starts");
    let document: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)));
    let enough = document["enough"].as_bool().expect("a verdict");
    assert_eq!(output.status.code(), Some(if enough { 0 } else { 1 }));
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    let checks = document["checks"].as_array().expect("a list").iter();
    checks
        .map(|check| (text(&check["what"]), text(&check["verdict"])))
        .collect()
}

/// What is there with another verdict than in `base`.
fn changed(base: &BTreeMap<String, String>, found: &BTreeMap<String, String>) -> Vec<String> {
    let changed = found
        .iter()
        .filter(|(what, it)| base.get(*what) != Some(*it));
    changed
        .map(|(what, word)| format!("{what}: {word}"))
        .collect()
}

fn configuration(folder: &Path, more: &str) -> PathBuf {
    let path = folder.join("catamaran.toml");
    let text = format!(
        "[server]\nworkers = 1\nconnections_max = 500\n[[listen]]\naddress = \"127.0.0.1:0\"\n\
         [upstream.tomcat]\n{more}\n[[route]]\npath = \"/\"\nupstream = \"tomcat\"\n"
    );
    fs::write(&path, text).expect("the folder is ours");
    path
}

#[test]
fn a_lowered_limit_of_open_files_is_found_alone() {
    let folder = tempfile::tempdir().unwrap();
    let config = configuration(folder.path(), BACKEND);
    let enough = verdicts(&["prlimit", "--nofile=764:764"], &config, false);
    assert_eq!(enough["open files"], "ok");
    let short = verdicts(&["prlimit", "--nofile=763:763"], &config, false);
    assert_eq!(changed(&enough, &short), ["open files: short"]);
}

#[test]
fn members_that_are_found_count_like_backends() {
    let folder = tempfile::tempdir().unwrap();
    let members =
        "[upstream.tomcat.members]\nfrom = \"file\"\npath = \"members.toml\"\nmembers_max = 5\n";
    let config = configuration(folder.path(), &format!("{BACKEND}{members}"));
    let member =
        |port: u16| format!("[[member]]\nname = \"{port}\"\nurl = \"ajp://127.0.0.1:{port}\"\n");
    fs::write(folder.path().join("members.toml"), member(10) + &member(11)).unwrap();
    let with = |files: u32| {
        let limit = format!("--nofile={files}:{files}");
        verdicts(&["prlimit", &limit], &config, false)
    };
    // Three backends have 200 connections each, five members and one backend three times as many more.
    let enough = with(1764);
    assert_eq!(enough["open files"], "ok");
    assert_eq!(enough["members of tomcat"], "ok");
    assert_eq!(changed(&enough, &with(1164)), ["members of tomcat: note"]);
    assert_eq!(
        changed(&enough, &with(1163)),
        ["members of tomcat: note", "open files: short"]
    );
}

#[test]
fn names_are_asked_for_and_nodes_cannot_be() {
    let folder = tempfile::tempdir().unwrap();
    let server = DnsServer::start();
    let records = [1, 2, 3].map(|host| DnsRecord::A([192, 0, 2, host].into()));
    server.set("app.test", dns::A, DnsAnswer::Records(60, records.into()));
    server.set("app.test", dns::AAAA, DnsAnswer::Records(60, Vec::new()));
    let told = |source: &str| {
        let more = format!("[upstream.tomcat.members]\n{source}");
        let config = configuration(folder.path(), &more);
        let (_, text, stderr) = outcome(&["doctor", "--config", config.to_str().unwrap()]);
        let line = text
            .lines()
            .find_map(|line| line.split_once(" members of tomcat = "));
        let (_, line) = line.unwrap_or_else(|| panic!("{text}{stderr}"));
        (line.to_owned(), text)
    };
    let by_name = format!(
        "from = \"dns\"\nname = \"app.test\"\nprotocol = \"ajp\"\nport = 8009\nresolver = \"{}\"\n",
        server.address()
    );
    let (line, text) = told(&by_name);
    assert!(
        line.starts_with("3 by dns (200 connections each; "),
        "{line}"
    );
    assert!(text.contains("1164 needed"), "{text}");
    server.set("app.test", dns::A, DnsAnswer::NxDomain);
    server.set("app.test", dns::AAAA, DnsAnswer::NxDomain);
    let (line, text) = told(&by_name);
    assert!(
        line.starts_with("none known: app.test has no addresses ("),
        "{line}"
    );
    assert!(text.contains("564 needed"), "{text}");
    let nodes = "from = \"mcmp\"\n[mcmp]\nlisten = \"127.0.0.1:6666\"\npeers = \"10.0.0.0/24\"\n";
    let (line, _) = told(nodes);
    assert!(
        line.starts_with("none known: nodes announce themselves"),
        "{line}"
    );
}

#[test]
fn fewer_cores_than_workers_are_found_alone() {
    let folder = tempfile::tempdir().unwrap();
    let config = configuration(folder.path(), BACKEND);
    let text = fs::read_to_string(&config).unwrap();
    let enough = verdicts(&["taskset", "-c", "0"], &config, false);
    fs::write(&config, text.replace("workers = 1\n", "workers = 2\n")).unwrap();
    let short = verdicts(&["taskset", "-c", "0"], &config, false);
    assert_eq!(changed(&enough, &short), ["usable cores: short"]);
}

/// In a network namespace of their own, the sysctls of a network belong to this test.
#[test]
fn each_lowered_sysctl_of_a_namespace_is_found_alone() {
    let folder = tempfile::tempdir().unwrap();
    let config = configuration(folder.path(), BACKEND);
    let within = |set: &str| {
        let script = format!("set -e; ip link set lo up; {set} exec \"$0\" \"$@\"");
        let before = ["unshare", "--net", "sh", "-c", &script];
        verdicts(&before, &config, false)
    };
    // A new network has defaults of its own.
    let base = within("sysctl -qw net.ipv4.tcp_max_syn_backlog=4096 net.core.somaxconn=4096;");
    let high = "sysctl -qw net.ipv4.tcp_max_syn_backlog=4096 net.core.somaxconn=4096";
    for (sysctl, expected) in [
        ("net.core.somaxconn=128", "net.core.somaxconn: short"),
        (
            "net.ipv4.tcp_max_syn_backlog=128",
            "net.ipv4.tcp_max_syn_backlog: short",
        ),
        (
            "net.ipv4.tcp_syncookies=0",
            "net.ipv4.tcp_syncookies: short",
        ),
        (
            "net.ipv4.ip_local_port_range='60000 60198'",
            "net.ipv4.ip_local_port_range to 127.0.0.1:9: short",
        ),
        (
            "net.ipv4.tcp_fin_timeout=15",
            "net.ipv4.tcp_fin_timeout: folklore",
        ),
        (
            "net.ipv4.tcp_timestamps=0",
            "net.ipv4.tcp_timestamps: folklore",
        ),
    ] {
        let found = within(&format!("{high}; sysctl -qw {sysctl};"));
        assert_eq!(changed(&base, &found), [expected], "{sysctl}");
    }
}

/// A cgroup of its own with one limit, in whichever version of cgroups the machine has.
struct Cgroup(PathBuf);

impl Cgroup {
    /// `one` and `two` are the file and the value of the limit in both versions.
    fn new(controller: &str, one: (&str, &str), two: (&str, &str)) -> Self {
        let all = Path::new("/sys/fs/cgroup");
        let name = format!("catamaran-doctor-{controller}-{}", std::process::id());
        let is_two = all.join("cgroup.controllers").exists();
        let (above, (file, value)) = if is_two {
            (all.to_owned(), two)
        } else {
            (all.join(controller), one)
        };
        if is_two {
            let control = all.join("cgroup.subtree_control");
            fs::write(control, format!("+{controller}")).expect("root lends controllers");
        }
        let group = Self(above.join(name));
        fs::create_dir(&group.0).expect("root makes cgroups");
        fs::write(group.0.join(file), value).expect("the controller is there");
        group
    }

    /// The verdicts of a doctor who is in it.
    fn verdicts(&self, config: &Path) -> BTreeMap<String, String> {
        let procs = self.0.join("cgroup.procs");
        let script = format!("echo $$ > {} && exec \"$0\" \"$@\"", procs.display());
        verdicts(&["sh", "-c", &script], config, false)
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        fs::remove_dir(&self.0).ok();
    }
}

#[test]
fn each_limit_of_a_cgroup_is_found_alone() {
    let folder = tempfile::tempdir().unwrap();
    let config = configuration(folder.path(), BACKEND);
    let base = verdicts(&["env"], &config, false);
    for (controller, one, two, expected) in [
        (
            "cpu",
            ("cpu.cfs_quota_us", "50000"),
            ("cpu.max", "50000 100000"),
            "cgroup cpu.max: short",
        ),
        (
            "memory",
            ("memory.limit_in_bytes", "32M"),
            ("memory.max", "32M"),
            "cgroup memory.max: short",
        ),
        (
            "pids",
            ("pids.max", "16"),
            ("pids.max", "16"),
            "cgroup pids.max: short",
        ),
    ] {
        let group = Cgroup::new(controller, one, two);
        assert_eq!(changed(&base, &group.verdicts(&config)), [expected]);
    }
}

#[test]
fn a_taken_address_and_a_secret_that_everybody_reads_are_found() {
    let folder = tempfile::tempdir().unwrap();
    let secret = folder.path().join("ajp.secret");
    fs::write(&secret, "hunter2\n").unwrap();
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o640)).unwrap();
    let more = format!("secret_file = \"ajp.secret\"\n{BACKEND}");
    let config = configuration(folder.path(), &more);
    let base = verdicts(&["env"], &config, false);
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o644)).unwrap();
    let found = verdicts(&["env"], &config, false);
    assert_eq!(
        changed(&base, &found),
        [format!("mode of {}: short", secret.display())]
    );

    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let text = fs::read_to_string(&config).unwrap();
    fs::write(&config, text.replace("127.0.0.1:0", &address)).unwrap();
    let found = verdicts(&["env"], &config, false);
    assert_eq!(found[&format!("address {address}")], "short");
}

#[test]
fn dial_tells_a_right_secret_from_a_wrong_one_and_from_nobody() {
    let folder = tempfile::tempdir().unwrap();
    let secret = folder.path().join("app.secret");
    fs::write(&secret, "hunter2\n").unwrap();
    let file = secret.to_str().unwrap();
    let mut app = catamaran(&["app", "--ajp=127.0.0.1:0", "--secret-file", file]);
    let mut app = Process::spawn(&mut app).unwrap();
    let url = |line: &str| Some(line.strip_prefix("listening on ")?.to_owned());
    let url = app.wait_for_line("an address", url).unwrap();
    let asked = |secret: &str, url: &str| {
        let more = format!(
            "secret = \"{secret}\"\n[[upstream.tomcat.backend]]\nname = \"one\"\nurl = \"{url}\"\n"
        );
        let config = configuration(folder.path(), &more);
        let (_, text, _) = outcome(&["doctor", "--dial", "--config", config.to_str().unwrap()]);
        let line = text
            .lines()
            .find(|line| line.contains("backend tomcat/one"));
        line.expect("the backend was asked").to_owned()
    };
    // An application that stands still for a second has not answered in time.
    let answered = |secret: &str, verdict: &str, words: &str| {
        let is_told = || {
            let told = asked(secret, &url);
            (told.starts_with(verdict) && told.contains(words)).then_some(())
        };
        Deadline::default().poll(words, is_told).unwrap();
    };
    answered("hunter2", "ok ", "HEAD /");
    answered("other", "short ", "is `secret` right?");
    app.signal(Signal::Terminate).unwrap();
    app.wait(Deadline::default()).unwrap();
    let nobody = asked("hunter2", &url);
    assert!(nobody.starts_with("short "), "{nobody}");
}

#[test]
fn without_a_file_the_defaults_are_asked_for() {
    let (code, text, _) = outcome(&["doctor"]);
    assert!(matches!(code, Some(0 | 1)));
    assert!(text.contains("20064 needed"), "{text}");
    let (code, _, stderr) = outcome(&["doctor", "--dial"]);
    assert_eq!(code, Some(2), "{stderr}");
}

const BACKEND: &str = "[[upstream.tomcat.backend]]\nurl = \"ajp://127.0.0.1:9\"\n";

//! The unit file in `docs/examples`: systemd takes it, finds it hardened, and it forbids nothing that the
//! front needs.

use std::collections::BTreeSet;
use std::fs;
use std::net::SocketAddr;
use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::process::Command;

use catamaran_e2e::binary;
use catamaran_gauge::process::tree;
use catamaran_testkit::{Deadline, HttpClient, Process, Signal, signal_process};

use crate::reload::application;

fn unit() -> PathBuf {
    let file = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/examples/catamaran.service"
    );
    PathBuf::from(file)
}

/// Runs systemd-analyze, which must find nothing wrong; gives what it said.
fn analyze(arguments: &[&str]) -> String {
    let output = Command::new("systemd-analyze")
        .args(arguments)
        .env("SYSTEMD_COLORS", "0")
        .output()
        .expect("systemd is installed: `cargo xtask needs`");
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert!(output.status.success(), "{arguments:?}: {said}");
    said
}

#[test]
fn it_is_hardened() {
    let unit = unit();
    // In tenths: below 2.0.
    analyze(&[
        "security",
        "--offline=true",
        "--threshold=19",
        unit.to_str().unwrap(),
    ]);
}

#[test]
fn systemd_takes_it_with_and_without_what_is_commented_out() {
    let text = fs::read_to_string(unit()).unwrap();
    let binary = binary().unwrap();
    let here = text.replace("/usr/local/bin/catamaran", &binary.to_string_lossy());
    assert_ne!(here, text);
    let all = here.replace("\n#LoadCredential=", "\nLoadCredential=");
    assert_ne!(all, here);
    for text in [here, all] {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("catamaran.service");
        fs::write(&file, text).unwrap();
        let said = analyze(&["verify", "--recursive-errors=no", file.to_str().unwrap()]);
        assert_eq!(said, "");
    }
}

/// A minimal Debian has a shell, and no program `kill`, which is of procps.
#[test]
fn a_reload_needs_no_other_package() {
    let text = fs::read_to_string(unit()).unwrap();
    let reload = text
        .lines()
        .find_map(|line| line.strip_prefix("ExecReload="));
    let line = reload.and_then(|it| it.strip_prefix("/bin/sh -c '")?.strip_suffix('\''));
    // systemd makes one `$` of two.
    let line = line.expect("a line of the shell").replace("$$", "$");
    // Whoever runs the tests may ignore the signal, as `nohup` does.
    let mut told = Command::new("env");
    told.args(["--default-signal=HUP", "sleep", "60"]);
    let mut told = Process::spawn(&mut told).unwrap();
    let name = format!("/proc/{}/comm", told.id());
    Deadline::default()
        .poll("env that has become sleep", || {
            let name = fs::read_to_string(&name).ok()?;
            (name.trim_end() == "sleep").then_some(())
        })
        .unwrap();
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", &line]).env_clear();
    shell
        .env("PATH", "/nonexistent")
        .env("MAINPID", told.id().to_string());
    let mut shell = Process::spawn(&mut shell).unwrap();
    assert!(shell.wait(Deadline::default()).unwrap().success());
    assert_eq!(told.wait(Deadline::default()).unwrap().signal(), Some(1));
}

/// The system calls of these groups, and of the groups in them.
fn calls_of(groups: &str) -> BTreeSet<String> {
    let mut calls = BTreeSet::new();
    for group in groups.split_whitespace() {
        let listed = analyze(&["syscall-filter", group]);
        for line in listed.lines().skip(1).map(str::trim) {
            match line {
                line if line.starts_with('@') => calls.extend(calls_of(line)),
                line if line.starts_with('#') || line.is_empty() => {}
                line => {
                    calls.insert(line.to_owned());
                }
            }
        }
    }
    calls
}

/// What the filter of the unit lets through.
fn allowed() -> BTreeSet<String> {
    let text = fs::read_to_string(unit()).unwrap();
    let mut calls = calls_of("@default");
    for filter in text
        .lines()
        .filter_map(|line| line.strip_prefix("SystemCallFilter="))
    {
        match filter.strip_prefix('~') {
            None => calls.extend(calls_of(filter)),
            Some(forbidden) => {
                let forbidden = calls_of(forbidden);
                calls.retain(|call| !forbidden.contains(call));
            }
        }
    }
    calls
}

/// What a front does from its start over a change, a reload and an upgrade to its end, as strace counts it.
fn calls_of_a_life() -> Vec<String> {
    let (_application, url) = application();
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path().display();
    let config = format!(
        "[[listen]]\naddress = \"127.0.0.1:0\"\n[[listen]]\naddress = \"unix:{at}/front.sock\"\n\
         [[route]]\nupstream = \"app\"\n[[upstream.app.backend]]\nname = \"a\"\nurl = \"{url}\"\n\
         [admin]\naddress = \"unix:{at}/admin.sock\"\nstate_file = \"{at}/state.json\"\n\
         [log]\naccess = \"{at}/access.log\"\n"
    );
    let file = directory.path().join("catamaran.toml");
    fs::write(&file, config).unwrap();
    let counts = directory.path().join("counts");
    let mut strace = Command::new("strace");
    strace.args(["-f", "-c", "-U", "name", "-o"]).arg(&counts);
    strace.arg(binary().unwrap()).arg("serve").arg("--config");
    let mut strace = Process::spawn(strace.arg(&file)).unwrap();
    let admin = |line: &str| line.contains("admin on").then_some(());
    strace.wait_for_line("the admin listener", admin).unwrap();
    let address: SocketAddr = strace
        .wait_for_line("the listener", |line| {
            let (_, address) = line.split_once("listening on http://")?;
            address.trim().parse().ok()
        })
        .unwrap();
    let mut client = HttpClient::connect(address).unwrap();
    let answer = client.ask(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
    assert_eq!(answer.status, 200);
    drop(client);
    let admin = format!("unix:{at}/admin.sock");
    for arguments in [&["status"][..], &["weight", "app/a", "2"], &["reload"]] {
        let mut command = Command::new(binary().unwrap());
        let output = command.args(arguments).args(["--admin", &admin]).output();
        let output = output.unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {said}");
    }
    let tree = tree(strace.id()).unwrap();
    let front = *tree.iter().find(|id| **id != strace.id()).unwrap();
    signal_process(front, Signal::User2).unwrap();
    let successor = strace
        .wait_for_line("a successor", |line| {
            line.rsplit_once("draining process=")?.1.trim().parse().ok()
        })
        .unwrap();
    signal_process(successor, Signal::Terminate).unwrap();
    let status = strace.wait(Deadline::default()).unwrap();
    assert!(status.success(), "{status}: {}", strace.stderr());
    let names = fs::read_to_string(counts).unwrap();
    let names = names.lines().map(|line| line.trim().to_owned());
    let is_name = |name: &String| {
        !["", "syscall", "total"].contains(&name.as_str()) && !name.starts_with('-')
    };
    names.filter(is_name).collect()
}

#[test]
fn its_filter_of_system_calls_lets_the_front_live() {
    let (used, allowed) = (calls_of_a_life(), allowed());
    assert!(used.len() > 30 && allowed.contains("read"), "{used:?}");
    let forbidden: Vec<&String> = used.iter().filter(|it| !allowed.contains(*it)).collect();
    assert!(forbidden.is_empty(), "{forbidden:?}");
    assert!(!allowed.contains("mount") && !allowed.contains("ptrace"));
}

//! A process that is killed leaves nothing: its guard sees to that.

use std::io::{BufRead as _, BufReader, Read as _};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use catamaran_gauge::process;
use catamaran_testkit::Deadline;
use catamaran_tier::Space;

use crate::{own_name, start};

#[expect(
    clippy::print_stdout,
    reason = "the test that has started this reads it"
)]
/// Starts a server, says where everything is, and waits to be killed.
fn be_killed(kind: &str) {
    let space = match kind {
        "isolated" => Space::isolated(&own_name("victim")).unwrap(),
        _ => Space::shared().unwrap(),
    };
    let nginx = start(&space, "nginx", &[]).unwrap();
    println!("directory {}", space.directory().display());
    for id in nginx.processes() {
        println!("process {id}");
    }
    println!("process {}", space.anchor());
    if let Some(group) = space.group() {
        println!("directory {}", group.path().display());
        println!("directory /run/netns/{}", own_name("victim"));
    }
    println!("waiting");
    let _ = std::io::stdin().read(&mut [0]);
}

fn check(kind: &str) {
    let mut victim: Child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", TEST, "--nocapture"])
        .env(VICTIM, kind)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let (mut directories, mut processes) = (Vec::new(), Vec::new());
    for line in BufReader::new(victim.stdout.take().unwrap()).lines() {
        let line = line.unwrap();
        match line.split_once(' ') {
            Some(("directory", path)) => directories.push(PathBuf::from(path)),
            Some(("process", id)) => processes.push(id.parse::<u32>().unwrap()),
            _ if line == "waiting" => break,
            _ => {}
        }
    }
    assert!(
        directories.iter().all(|path| path.exists()),
        "{directories:?}"
    );
    assert!(processes.len() > 2, "{processes:?}");
    victim.kill().unwrap();
    victim.wait().unwrap();
    let gone = || {
        let left = directories.iter().any(|path| path.exists());
        let running = processes
            .iter()
            .any(|id| !process::tree(*id).unwrap().is_empty());
        (!left && !running).then_some(())
    };
    Deadline::default()
        .poll("the end of everything", gone)
        .unwrap();
}

#[test]
fn nothing_is_left_when_this_process_is_killed() {
    if let Some(kind) = std::env::var_os(VICTIM) {
        return be_killed(kind.to_str().unwrap());
    }
    check("shared");
    check("isolated");
}

/// What the test below has in its environment when it is to be the process that is killed.
const VICTIM: &str = "CATAMARAN_TIER_VICTIM";
const TEST: &str = "guarded::nothing_is_left_when_this_process_is_killed";

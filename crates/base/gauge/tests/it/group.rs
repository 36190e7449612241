//! Groups hold what their processes start, and obey.

use std::time::Duration;

use catamaran_gauge::{CpuLimit, process};
use catamaran_testkit::Deadline;

use crate::{Talker, group};

#[test]
fn killing_a_group_leaves_no_orphan() {
    let group = group("kill");
    let mut shell = Talker::start(group.command("sh").args(["-c", ORPHAN]));
    let orphan: u32 = shell.line().parse().unwrap();
    let found = group.processes().unwrap();
    assert!(
        found.contains(&orphan) && found.contains(&shell.child.id()),
        "{found:?}"
    );
    let tree = || process::tree(shell.child.id()).unwrap();
    let orphaned = || (!tree().contains(&orphan)).then_some(());
    Deadline::default()
        .poll("its parent's end", orphaned)
        .unwrap();
    group.kill().unwrap();
    assert!(group.processes().unwrap().is_empty());
}

#[test]
fn a_quota_stops_a_group_and_goes_with_it() {
    let mut group = group("quota");
    assert_eq!(group.stops().unwrap(), None);
    let quota = CpuLimit::Quota {
        time: Duration::from_millis(1),
        period: Duration::from_millis(10),
    };
    group.limit(quota).unwrap();
    let twin = group.twin();
    let mut shell = Talker::start(
        group
            .command("sh")
            .args(["-c", "echo on; while :; do :; done"]),
    );
    assert_eq!(shell.line(), "on");
    let stops = || {
        let stops = group.stops().unwrap().unwrap();
        (stops.stopped > 2).then_some(stops)
    };
    let stops = Deadline::default()
        .poll("a quota that is used up", stops)
        .unwrap();
    assert!(stops.periods >= stops.stopped, "{stops:?}");
    let Some(twin) = twin else { return };
    let processes = std::fs::read_to_string(twin.join("cgroup.procs")).unwrap();
    assert_eq!(processes.trim(), shell.child.id().to_string());
    drop(group);
    assert!(!twin.exists());
}

#[test]
fn a_dropped_group_is_gone_with_those_below_it() {
    let group = group("drop");
    let below = group.child("below").unwrap();
    let mut shell = Talker::start(below.command("sh").args(["-c", ORPHAN]));
    let orphan: u32 = shell.line().parse().unwrap();
    assert!(group.processes().unwrap().contains(&orphan));
    let paths = [group.path().to_owned(), below.path().to_owned()];
    drop(group);
    assert!(paths.iter().all(|path| !path.exists()), "{paths:?}");
    assert!(below.cpu().is_err());
    let status = shell.child.wait().unwrap();
    assert!(!status.success(), "{status}");
}

#[test]
fn a_running_process_can_be_taken() {
    let group = group("enter");
    let shell = Talker::start(std::process::Command::new("sh").args(["-c", "read -r _"]));
    group.enter(shell.child.id()).unwrap();
    assert_eq!(group.processes().unwrap(), [shell.child.id()]);
    let fault = group.enter(5_000_000).unwrap_err().to_string();
    assert!(fault.contains("cgroup.procs"), "{fault}");
}

/// Starts a process whose parent ends at once, and says its id.
const ORPHAN: &str = "(setsid sleep 600 & echo $!); read -r _";

//! System calls, held against `strace -c` of the same process at the same time.

use std::time::Duration;

use catamaran_gauge::{Counts, Strace, Syscalls};

use crate::{Talker, group, within_a_percent};

#[test]
fn calls_are_those_of_strace() {
    let group = group("syscalls");
    let other = crate::group("syscalls-other");
    let mut dd = Talker::start(group.command("bash").args(["-c", SCRIPT]));
    dd.line();
    let strace = Strace::follow(&[dd.child.id()]).unwrap();
    let syscalls = Syscalls::count(&[&group, &other]).unwrap();
    let before = syscalls.of(&group).unwrap();
    dd.tell("go");
    dd.child.wait().unwrap();
    let expected = strace.finish().unwrap();
    let counts = syscalls.of(&group).unwrap() - &before;
    assert!(expected.of("read") >= 20_000, "{expected:?}");
    within_a_percent(as_float(counts.total()), as_float(expected.total()));
    for name in ["read", "write", "execve"] {
        let (found, expected) = (counts.of(name), expected.of(name));
        assert!(
            found.abs_diff(expected) <= 1,
            "{name}: {found}, strace says {expected}"
        );
    }
    assert_eq!(syscalls.of(&other).unwrap().total(), 0);
    assert!(syscalls.of_processes(&group).unwrap().is_empty());
}

/// Plainly and in detail at the same time, beside strace.
#[test]
fn errors_are_those_of_strace() {
    let group = group("errors");
    let mut shell = Talker::start(group.command("bash").args(["-c", FAILING]));
    shell.line();
    let strace = Strace::follow(&[shell.child.id()]).unwrap();
    let plain = Syscalls::count(&[&group]).unwrap();
    let detailed = Syscalls::count_in_detail(&[&group]).unwrap();
    shell.tell("go");
    shell.child.wait().unwrap();
    let expected = strace.finish().unwrap();
    let stat = ["newfstatat", "stat"];
    let of = |counts: &Counts| {
        let calls = stat.map(|name| counts.call(name));
        (
            calls[0].calls + calls[1].calls,
            calls[0].errors + calls[1].errors,
        )
    };
    let failed = of(&expected).1;
    assert!(failed >= 1000, "{expected:?}");
    for counts in [plain.of(&group).unwrap(), detailed.of(&group).unwrap()] {
        let all = |counts: &Counts| counts.iter().map(|(_, call)| call.errors).sum::<u64>();
        within_a_percent(as_float(all(&counts)), as_float(all(&expected)));
        assert!(
            of(&counts).1.abs_diff(failed) <= 1,
            "{counts:?}, strace says {expected:?}"
        );
        assert!(
            of(&counts).0 > failed,
            "those that succeed are counted, too: {counts:?}"
        );
    }
}

#[test]
fn time_and_processes_are_told_apart() {
    let group = group("processes");
    let mut shell = Talker::start(group.command("bash").args(["-c", WAITING]));
    shell.line();
    let syscalls = Syscalls::count_in_detail(&[&group]).unwrap();
    shell.tell("go");
    shell.child.wait().unwrap();
    let all = syscalls.of(&group).unwrap();
    let processes = syscalls.of_processes(&group).unwrap();
    assert!(processes.contains_key(&shell.child.id()), "{processes:?}");
    assert_eq!(
        processes.len(),
        3,
        "the shell and what it has started: {processes:?}"
    );
    let sum: u64 = processes.values().map(Counts::total).sum();
    assert_eq!(sum, all.total());
    let slept = |counts: &Counts| counts.call("clock_nanosleep").time;
    let sleepers = processes.values().filter(|it| !slept(it).is_zero());
    let mut times: Vec<Duration> = sleepers.map(slept).collect();
    times.sort_unstable();
    assert_eq!(times.len(), 2, "{processes:?}");
    assert!(times[0] >= Duration::from_millis(50) && times[1] >= Duration::from_millis(100));
    assert_eq!(slept(&all), times[0] + times[1]);
}

fn as_float(count: u64) -> f64 {
    f64::from(u32::try_from(count).unwrap())
}

/// 20,000 reads and writes, once it is told to begin.
const SCRIPT: &str =
    "echo; read -r _; exec dd if=/dev/zero of=/dev/null bs=1 count=20000 status=none";

/// A thousand looks at a file that there is not, and some at one that there is.
const FAILING: &str = "echo; read -r _; \
    for ((i = 0; i < 1000; i++)); do [[ -e /nowhere ]]; done; \
    for ((i = 0; i < 10; i++)); do [[ -e / ]]; done";

/// Two processes that sleep for different times.
const WAITING: &str = "echo; read -r _; sleep 0.05 & sleep 0.1 & wait";

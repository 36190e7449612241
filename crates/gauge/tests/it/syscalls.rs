//! System calls, held against `strace -c` of the same process at the same time.

use catamaran_gauge::{Strace, Syscalls};

use crate::{Talker, group, within_a_percent};

#[test]
fn calls_are_those_of_strace() {
    let Some(group) = group("syscalls") else {
        return;
    };
    let Some(other) = crate::group("syscalls-other") else {
        return;
    };
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
}

fn as_float(count: u64) -> f64 {
    f64::from(u32::try_from(count).unwrap())
}

/// 20,000 reads and writes, once it is told to begin.
const SCRIPT: &str =
    "echo; read -r _; exec dd if=/dev/zero of=/dev/null bs=1 count=20000 status=none";

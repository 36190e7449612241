//! CPU time, held against getrusage(2) as `times` of a shell prints it.

use std::process::Command;

use catamaran_gauge::cpu;

use crate::{Talker, group, within_a_percent};

#[test]
fn a_group_has_the_time_of_children_that_have_ended() {
    let group = group("cpu");
    let mut bash = Talker::start(group.command("bash").args(["-c", SCRIPT]));
    let expected = seconds(&bash.line()) + seconds(&bash.line());
    let cpu = group.cpu().unwrap();
    assert!(cpu.user > cpu.system, "{cpu:?}");
    within_a_percent(cpu.total().as_secs_f64(), expected);
}

#[test]
fn a_process_has_its_own_time_alone() {
    let mut bash = Talker::start(Command::new("bash").args(["-c", SCRIPT]));
    let expected = seconds(&bash.line()) + seconds(&bash.line());
    let alone = cpu::of_process(bash.child.id())
        .unwrap()
        .total()
        .as_secs_f64();
    assert!(
        alone < expected / 2.0,
        "the child's time is not its own: {alone} of {expected}"
    );
}

/// A line such as `0m1.234s 0m0.056s`.
fn seconds(line: &str) -> f64 {
    let times = line.split_whitespace().map(|time| {
        let (minutes, seconds) = time.trim_end_matches('s').split_once('m').unwrap();
        minutes.parse::<f64>().unwrap() * 60.0 + seconds.parse::<f64>().unwrap()
    });
    times.sum()
}

/// Computes in a child, waits for it, and prints its own time and that of its children.
const SCRIPT: &str = "(i=0; while ((i < 600000)); do ((i++)); done); times; read -r _";

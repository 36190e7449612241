//! Gates on the machine: time, memory and ports that it withheld, and other work on it.

use catamaran_gauge::machine::{Check, OPEN_FILES};
use catamaran_units::show_count;

use super::{Effect, GateFinding, GateRecord, LimitGate, PairGate, RunGate};
use crate::facts::{Facts, ShareFacts};

pub(super) static RUN_GATES: &[RunGate] = &[
    RunGate {
        name: "foreign",
        words: "other processes took over 5 % of the cores' time, or a hypervisor over 1 %",
        rank: 110,
        applies: Facts::has_machine,
        check: foreign,
    },
    RunGate {
        name: "ports",
        words: "over 80 % of the local ports are in TIME_WAIT",
        rank: 120,
        applies: |facts| {
            facts
                .machine
                .as_ref()
                .is_some_and(|it| it.ports_used.is_some())
        },
        check: ports,
    },
    RunGate {
        name: "backlog",
        words: "handshakes were dropped because a queue was full",
        rank: 130,
        applies: Facts::has_machine,
        check: backlog,
    },
    RunGate {
        name: "throttled",
        words: "a CPU quota that no `core_share` declares stopped the experiment",
        rank: 150,
        applies: Facts::has_machine,
        check: throttled,
    },
    RunGate {
        name: "own-cost",
        words: "the lab's own process took over 2 % of the measured CPU time",
        rank: 190,
        applies: Facts::has_machine,
        check: own_cost,
    },
];

pub(super) static PAIR_GATES: &[PairGate] = &[GateRecord {
    name: "foreign",
    words: "two levels that differ in it by over 5 points are not compared",
    rank: 40,
    check: unequal_foreign,
}];

pub(super) static LIMIT_GATES: &[LimitGate] = &[GateRecord {
    name: "files",
    words: "one process may have fewer files open than the largest cell needs",
    rank: 10,
    check: files,
}];

/// Fires if a hypervisor or other processes took much of the cores' time.
fn foreign(facts: &Facts) -> Option<GateFinding> {
    let machine = facts.machine.as_ref()?;
    let fire = |words| Some(GateFinding::new("foreign", Effect::Note, words));
    if machine.steal > STEAL {
        return fire(format!(
            "A hypervisor gave {:.0} % of the cores' time to others: times and CPU are this \
             machine's.",
            machine.steal * 100.0
        ));
    }
    if machine.foreign > FOREIGN {
        return fire(format!(
            "Other processes took {:.0} % of the cores' time: times and CPU are this machine's.",
            machine.foreign * 100.0
        ));
    }
    None
}

/// Fires if other processes took more of the cores' time from one run than from the other.
fn unequal_foreign(one: &Facts, other: &Facts) -> Option<GateFinding> {
    let [first, second] = [one.machine.as_ref()?, other.machine.as_ref()?].map(|it| it.foreign);
    if (first - second).abs() <= FOREIGN_APART {
        return None;
    }
    let words = format!(
        "Other processes took {:.0} % of the cores' time from one level and {:.0} % from the other.",
        first * 100.0,
        second * 100.0
    );
    Some(GateFinding::new("foreign", Effect::Machine, words))
}

/// Fires if most local ports were in TIME_WAIT.
fn ports(facts: &Facts) -> Option<GateFinding> {
    let used = facts.machine.as_ref()?.ports_used?;
    (used > PORTS_USED_MAX).then(|| {
        let words = format!(
            "{:.0} % of the local ports wait in TIME_WAIT: connects may have failed or been slow.",
            used * 100.0
        );
        GateFinding::new("ports", Effect::Void, words)
    })
}

/// Fires if handshakes were dropped because a listening queue was full.
fn backlog(facts: &Facts) -> Option<GateFinding> {
    let dropped = facts.machine.as_ref()?.listen_overflows;
    (dropped > 0).then(|| {
        let words = format!(
            "{} handshakes were dropped because a listening queue was full: clients tried again a \
             second later.",
            show_count(dropped)
        );
        GateFinding::new("backlog", Effect::Void, words)
    })
}

/// Fires if the kernel killed processes, if a CPU quota that no `core_share` declares stopped them, or if a server had
/// more than its declared part of a core.
fn throttled(facts: &Facts) -> Option<GateFinding> {
    let machine = facts.machine.as_ref()?;
    let fire = |words| Some(GateFinding::new("throttled", Effect::Void, words));
    if machine.oom_kills > 0 {
        return fire(format!(
            "The kernel killed {} processes for want of memory.",
            machine.oom_kills
        ));
    }
    if machine.throttled > 0 {
        return fire(format!(
            "A CPU quota stopped the experiment in {} periods (nr_throttled), which no `core_share` declares.",
            machine.throttled
        ));
    }
    machine
        .shares
        .iter()
        .find_map(|(name, share)| beyond_its_part(name, share))
}

/// The finding if a server had more than its declared part of a core; `None` if it did not.
fn beyond_its_part(name: &str, share: &ShareFacts) -> Option<GateFinding> {
    if share.used <= share.declared * SHARE_BEYOND {
        return None;
    }
    let percent = |part: f64| part * 100.0;
    let words = format!(
        "The server {name} took {:.0} % of its core, {:.0} % are declared",
        percent(share.used),
        percent(share.declared)
    );
    Some(if share.is_weight {
        let why = "beside a spinner it also gets what other servers leave, so ratios of throughput are too near to 1";
        GateFinding::new("throttled", Effect::Note, format!("{words}: {why}."))
    } else {
        let words = format!("{words}: its quota did not hold it.");
        GateFinding::new("throttled", Effect::Time, words)
    })
}

/// Fires if the lab itself used much CPU time.
fn own_cost(facts: &Facts) -> Option<GateFinding> {
    let cost = facts.machine.as_ref()?.own_cost?;
    (cost > OWN_COST_MAX).then(|| {
        let words = format!(
            "Measuring took {:.1} % of the CPU time that was measured.",
            cost * 100.0
        );
        GateFinding::new("own-cost", Effect::Machine, words)
    })
}

/// Fires if a process may not open as many files as the largest cell needs.
fn files(limits: &[Check]) -> Option<GateFinding> {
    let files = limits.iter().find(|limit| limit.what == OPEN_FILES)?;
    files.is_short().then(|| {
        let words = format!(
            "{} open files are allowed, {}; {}",
            files.value, files.needed, files.command
        );
        GateFinding::new("files", Effect::Refuse, words)
    })
}

/// The largest share of the cores' time for other processes, and for other machines.
const FOREIGN: f64 = 0.05;
const STEAL: f64 = 0.01;

/// The largest difference between two runs' shares of other work.
const FOREIGN_APART: f64 = 0.05;

const PORTS_USED_MAX: f64 = 0.8;

/// The largest ratio of the used to the declared part of a core. Within a second the kernel is less exact: with periods
/// of 10 ms it gave up to 7 % more than was declared.
const SHARE_BEYOND: f64 = 1.1;

const OWN_COST_MAX: f64 = 0.02;

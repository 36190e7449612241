//! Gates on servers: what they answered, and whether they were in the state that the experiment needs.

use super::{Effect, GateFinding, GateRecord, PairGate, RunGate, part_of};
use crate::facts::{Facts, LevelChange, MachineFacts, PathFacts};

pub(super) static RUN_GATES: &[RunGate] = &[
    RunGate {
        name: "status",
        words: "answers have another status than expected",
        rank: 10,
        applies: |facts| facts.expect.status.is_some(),
        check: status,
    },
    RunGate {
        name: "body",
        words: "bodies have another length than expected",
        rank: 20,
        applies: has_length,
        check: body,
    },
    RunGate {
        name: "body",
        words: "differ in length or checksum without `varies`",
        rank: 220,
        applies: has_length,
        check: body_lengths,
    },
    RunGate {
        name: "body",
        words: "differ in length or checksum without `varies`",
        rank: 221,
        applies: has_length,
        check: body_content,
    },
    RunGate {
        name: "keep-alive",
        words: "fewer than 1 − 1.5/limit (99 % without a limit) were kept",
        rank: 30,
        applies: |facts| facts.expect.kept.is_some(),
        check: keep_alive,
    },
    RunGate {
        name: "failed",
        words: "a request had no good answer",
        rank: 40,
        applies: |_| true,
        check: failed,
    },
    RunGate {
        name: "path",
        words: "a server was asked less often than `asked` of `[expect]` says",
        rank: 50,
        applies: |facts| !facts.asked.is_empty(),
        check: path,
    },
    RunGate {
        name: "idle-server",
        words: "in a closed loop the server's core was busy under 90 %",
        rank: 80,
        applies: has_busy_cores,
        check: idle_server,
    },
    RunGate {
        name: UNSTEADY,
        words: "the rate or the CPU time of a request still moved by over 5 % after the warm-up",
        rank: 100,
        applies: is_watched,
        check: unsteady,
    },
    RunGate {
        name: "died",
        words: "a server ended, did not do what it was told, or its log has an alarming line",
        rank: 140,
        applies: Facts::has_machine,
        check: died,
    },
    RunGate {
        name: "not-ready",
        words: "a server was started and did not serve in time, or ended before",
        rank: 225,
        applies: Facts::has_machine,
        // A run with this finding has no facts: `drive` fires the gate.
        check: |_| None,
    },
    RunGate {
        name: "capped",
        words: "a server's log says that a maximum of its own was reached",
        rank: 170,
        applies: Facts::has_machine,
        check: capped,
    },
];

pub(super) static PAIR_GATES: &[PairGate] = &[
    GateRecord {
        name: "unequal-answers",
        words: "the answers of two compared runs differ outside the body",
        rank: 10,
        check: unequal_answers,
    },
    GateRecord {
        name: "failed",
        words: "one of two compared runs had such requests and the other had none",
        rank: 20,
        check: unequal_failures,
    },
    GateRecord {
        name: "confounded",
        words: "the levels of a claim also differ by over 0.5 in connections that servers open to each other",
        rank: 50,
        check: confounded,
    },
];

/// Gates on an experiment's file.
pub static FILE_GATES: &[GateRecord<()>] = &[
    // `experiment/lines` fires it, as a fault of the file.
    GateRecord {
        name: "lines",
        words: "servers of different kinds that a claim compares differ in a parameter of the same name",
        rank: 0,
        check: (),
    },
];

/// Fires if responses had another status than the expected one.
fn status(facts: &Facts) -> Option<GateFinding> {
    let expected = facts.expect.status?;
    if facts.statuses.is_empty() && expected < 300 {
        return non_2xx(facts);
    }
    let mut others = facts.statuses.clone();
    others.remove(&expected);
    // The most frequent of them is named.
    let (status, _) = others.iter().max_by_key(|(_, count)| **count)?;
    let wrong: u64 = others.values().sum();
    let words = format!(
        "{} answers were {status} and not {expected}",
        part_of(wrong, facts.completed)
    );
    if facts.is_rare(wrong) {
        let words = format!("{words}.");
        return Some(GateFinding::new("status", Effect::Note, words));
    }
    let what = match status {
        300..400 => "a redirect was measured",
        400.. => "an error was measured",
        _ => "something else was measured",
    };
    let words = format!("{words}: {what}.");
    Some(GateFinding::new("status", Effect::Void, words))
}

/// The gate `status` for tools that print only the number of responses that were not 2xx.
fn non_2xx(facts: &Facts) -> Option<GateFinding> {
    let count = facts.non_2xx.filter(|count| *count > 0)?;
    let part = part_of(count, facts.completed);
    if facts.is_rare(count) {
        let words = format!("{part} answers were not 2xx.");
        return Some(GateFinding::new("status", Effect::Note, words));
    }
    let what = if count == facts.completed {
        "a redirect or an error was measured, not the page"
    } else {
        "redirects or errors are part of the figures"
    };
    let words = format!("{part} answers were not 2xx: {what}.");
    Some(GateFinding::new("status", Effect::Void, words))
}

/// Fires if the mean length of bodies is not the expected one.
fn body(facts: &Facts) -> Option<GateFinding> {
    let (expected, mean) = (facts.expect.body_bytes?, facts.body_bytes?);
    // Half a byte is the rounding of the mean. Bytes of requests that were cut at the end may be counted, too.
    let error_max = 0.5 + expected as f64 * ROUNDING;
    ((mean - expected as f64).abs() > error_max).then(|| {
        let words = format!("Bodies had {mean:.1} bytes on average, {expected} were expected.");
        GateFinding::new("body", Effect::Void, words)
    })
}

/// Fires if bodies of the same length had other bytes than the first one.
fn body_content(facts: &Facts) -> Option<GateFinding> {
    let other = facts.other_body;
    (other > 0).then(|| {
        let words = format!(
            "{} bodies had other bytes than the first one: not one page was measured.",
            part_of(other, facts.completed)
        );
        GateFinding::new("body", Effect::Void, words)
    })
}

/// Fires if bodies were not as long as the first one, where a length is expected.
fn body_lengths(facts: &Facts) -> Option<GateFinding> {
    let other = facts.other_length;
    (other > 0 && facts.expect.body_bytes.is_some()).then(|| {
        let words = format!(
            "{} bodies were not as long as the first one.",
            part_of(other, facts.completed)
        );
        GateFinding::new("body", Effect::Void, words)
    })
}

/// Fires if connections were not kept although keep-alive was asked for, or kept although it was not.
fn keep_alive(facts: &Facts) -> Option<GateFinding> {
    let (is_asked_for, kept) = (facts.expect.kept?, facts.kept?);
    if facts.completed == 0 {
        return None;
    }
    let share = kept as f64 / facts.completed as f64;
    let (is_wrong, asked) = if is_asked_for {
        let least = least_kept(facts.expect.kept_requests_max);
        (share < least, "asked for")
    } else {
        (kept > 0, "not asked for")
    };
    is_wrong.then(|| {
        let part = part_of(kept, facts.completed);
        let words = format!("Keep-alive was {asked}, and {part} connections were kept.");
        GateFinding::new("keep-alive", Effect::Void, words)
    })
}

/// The least share of responses after which the connection must be kept, if the server closes it after `limit`
/// requests; 0: it never does. A connection that ends with the run had fewer requests, so 1.5 closes in `limit`
/// responses are allowed.
fn least_kept(limit: u64) -> f64 {
    match limit {
        0 => 0.99,
        limit => (1.0 - 1.5 / limit as f64).clamp(0.0, 0.99),
    }
}

/// Fires if requests failed, or none was answered.
fn failed(facts: &Facts) -> Option<GateFinding> {
    let all = facts.completed + facts.failed;
    if all == 0 {
        let words = "No request was answered.";
        return Some(GateFinding::new("failed", Effect::Void, words));
    }
    (facts.failed > 0).then(|| {
        let words = format!(
            "{} requests had no good answer.",
            part_of(facts.failed, all)
        );
        let effect = if facts.is_rare(facts.failed) {
            Effect::Note
        } else {
            Effect::Void
        };
        GateFinding::new("failed", effect, words)
    })
}

/// Fires if a server received fewer requests than the cell's path needs.
fn path(facts: &Facts) -> Option<GateFinding> {
    if facts.completed == 0 {
        return None;
    }
    let mut servers = facts.asked.iter();
    let words = servers.find_map(|(name, asked)| not_asked(name, asked))?;
    Some(GateFinding::new("path", Effect::Void, words))
}

/// A sentence if a server received too few requests; `None` if it did not. Where requests were not counted, its CPU
/// time shows whether it can have answered any.
fn not_asked(name: &str, asked: &PathFacts) -> Option<String> {
    let PathFacts {
        expected,
        counted,
        cpu_us,
    } = *asked;
    if let Some(counted) = counted
        && counted < expected * (1.0 - LOST_MAX)
    {
        return Some(format!(
            "The server {name} was asked {counted:.2} times for each answer, at least {expected} expected: another server \
             answered in its place."
        ));
    }
    let cpu = cpu_us.filter(|cpu| *cpu < expected * CPU_MIN_US)?;
    Some(format!(
        "The server {name} took {cpu:.2} µs of CPU time for each answer, too little to be asked {expected} times: another \
         server answered in its place."
    ))
}

/// Fires if the load was at its limit in a closed loop, but the server was not: it did not use its core, or its part of
/// one.
fn idle_server(facts: &Facts) -> Option<GateFinding> {
    let machine = facts.machine.as_ref()?;
    if let Some(fired) = below_its_part(facts) {
        return Some(fired);
    }
    let (load, server) = (machine.load_core?, machine.server_core?);
    let is_closed_loop = facts.clients.is_some();
    (is_closed_loop && server < SERVER_BUSY && load >= LOAD_BUSY).then(|| {
        let words = format!(
            "The server's core was busy {:.0} % of the time, the load's {:.0} %: throughput is not \
             the server's.",
            server * 100.0,
            load * 100.0
        );
        GateFinding::new("idle-server", Effect::Time, words)
    })
}

/// Fires if the server in front did not use its declared part of a core, by which it should be the limit.
fn below_its_part(facts: &Facts) -> Option<GateFinding> {
    let mut shares = facts.machine.as_ref()?.shares.iter();
    let (name, share) = shares.find(|(_, share)| share.is_tested)?;
    let is_closed_loop = facts.clients.is_some();
    (is_closed_loop && share.used < share.declared * SERVER_BUSY).then(|| {
        let words = format!(
            "The server {name} took {:.0} % of its core, {:.0} % are declared: throughput is not its own.",
            share.used * 100.0,
            share.declared * 100.0
        );
        GateFinding::new("idle-server", Effect::Time, words)
    })
}

/// Fires if the server was not warm when measuring began, or if a level changed within the span.
fn unsteady(facts: &Facts) -> Option<GateFinding> {
    let machine = facts.machine.as_ref()?;
    if let Some(compiling) = machine.compiling.filter(|share| *share > COMPILING_MAX) {
        let words = format!(
            "The compilers of a Java virtual machine took {compiling:.2} of a core: it was not warm."
        );
        let effect = if compiling > COMPILING_COUNTS {
            Effect::Machine
        } else {
            Effect::Note
        };
        return Some(GateFinding::new(UNSTEADY, effect, words));
    }
    let words = match &machine.changed {
        Some(change) => change_words(change),
        None => movement_words(machine)?,
    };
    Some(GateFinding::new(UNSTEADY, Effect::Note, words))
}

fn change_words(change: &LevelChange) -> String {
    let verb = if change.shift > 0.0 { "rose" } else { "fell" };
    let others = match change.others {
        Some([before, after]) if change.is_of_others() => format!(
            ": others took {:.0} % of the servers' cores before that, and {:.0} % after it",
            before * 100.0,
            after * 100.0
        ),
        _ => String::new(),
    };
    format!(
        "Within the run, {:.1} s after its beginning, the {} {verb} by {:.0} %{others}.",
        change.after_s,
        change.what,
        change.shift.abs() * 100.0
    )
}

/// A sentence on the movement that was left after the warm-up, or that noise may have hidden; `None` if the server was
/// steady.
fn movement_words(machine: &MachineFacts) -> Option<String> {
    if let Some(hidden) = machine.hidden {
        if hidden >= 1.0 {
            let words = "The warm-up was too short to tell whether the server is steady.";
            return Some(words.to_owned());
        }
        return Some(format!(
            "After the warm-up the rate or the CPU time of a request may still have moved by {:.0} %: noise \
             would have hidden it.",
            hidden * 100.0
        ));
    }
    let moving = machine
        .moving
        .filter(|moving| moving.abs() > MOVEMENT_MAX)?;
    let direction = if moving > 0.0 { "up" } else { "down" };
    Some(format!(
        "After the warm-up the rate or the CPU time of a request still moved {direction} by {:.0} %.",
        moving.abs() * 100.0
    ))
}

/// Fires if a server ended, or logged one of the alarms of its target.
fn died(facts: &Facts) -> Option<GateFinding> {
    let machine = facts.machine.as_ref()?;
    let first = machine.alarms.first()?;
    let more = match machine.alarms.len() {
        1 => String::new(),
        count => format!(" (and {} more)", count - 1),
    };
    Some(GateFinding::new(
        "died",
        Effect::Void,
        format!("{first}{more}"),
    ))
}

/// Fires if a server logged that it had reached a maximum of its own.
fn capped(facts: &Facts) -> Option<GateFinding> {
    let first = facts.machine.as_ref()?.capped.first()?;
    let words = format!("A maximum of the server's was reached: {first}");
    Some(GateFinding::new("capped", Effect::Note, words))
}

/// Fires if the heads of responses differ in length: then the bytes of a hop also compare heads.
fn unequal_answers(one: &Facts, other: &Facts) -> Option<GateFinding> {
    let (first, second) = (one.head_bytes?, other.head_bytes?);
    let difference = (first - second).abs();
    (difference >= 0.5).then(|| {
        let words = format!(
            "Beside the body, answers differ by {difference:.1} bytes ({first:.1} and {second:.1}): bytes on this hop \
             compare heads, not what is claimed."
        );
        GateFinding::new("unequal-answers", Effect::Note, words)
    })
}

/// Fires if only one of two runs had failed requests.
fn unequal_failures(one: &Facts, other: &Facts) -> Option<GateFinding> {
    let has_only_one_failed = (one.failed > 0) != (other.failed > 0);
    has_only_one_failed.then(|| {
        let words = format!(
            "One run had {} failed requests and the other {}: a failed request costs less than an \
             answer.",
            one.failed, other.failed
        );
        let effect = if one.is_rare(one.failed) && other.is_rare(other.failed) {
            Effect::Note
        } else {
            Effect::Void
        };
        GateFinding::new("failed", effect, words)
    })
}

/// Fires if one of two levels reuses connections to the application and the other does not, which may explain their
/// difference.
fn confounded(one: &Facts, other: &Facts) -> Option<GateFinding> {
    let (first, second) = (one.dials?, other.dials?);
    ((first - second).abs() > DIALS_APART).then(|| {
        let words = format!(
            "Confounded with reuse: the servers opened {first:.2} connections to each other for a \
             request at one level, {second:.2} at the other."
        );
        GateFinding::new("confounded", Effect::Note, words)
    })
}

fn has_length(facts: &Facts) -> bool {
    facts.expect.body_bytes.is_some()
}

/// Whether it is known how busy the cores, or parts of one, of load and server were.
fn has_busy_cores(facts: &Facts) -> bool {
    let Some(machine) = &facts.machine else {
        return false;
    };
    let has_cores = machine.server_core.is_some() && machine.load_core.is_some();
    has_cores || !machine.shares.is_empty()
}

fn is_watched(facts: &Facts) -> bool {
    let machine = facts.machine.as_ref();
    machine.is_some_and(|machine| machine.moving.is_some() || machine.hidden.is_some())
}

/// The largest relative error of the mean length of a body, because of unfinished requests.
const ROUNDING: f64 = 0.01;

/// The largest share of requests that may be missing: requests at the ends of the span may be counted by the load but
/// not at the server.
const LOST_MAX: f64 = 0.01;

/// The least CPU time per request in microseconds. No server needs less for reading a request and writing a response
/// over TCP.
const CPU_MIN_US: f64 = 0.5;

/// The share of its time from which a core counts as busy.
pub(crate) const SERVER_BUSY: f64 = 0.9;
pub(crate) const LOAD_BUSY: f64 = 0.9;

/// The name of the gate on servers that were not warm, or that changed.
pub(crate) const UNSTEADY: &str = "unsteady";

/// The largest CPU time of the compilers in a warm virtual machine, as a share of the span.
pub(crate) const COMPILING_MAX: f64 = 0.02;

/// The share of a core from which compiling can change CPU time per request by more than the usual margin of claims.
const COMPILING_COUNTS: f64 = 0.05;

/// The largest share by which throughput and CPU time per request may move within a run.
const MOVEMENT_MAX: f64 = catamaran_stats::MOVEMENT_MAX;

/// The gate `confounded` fires if two levels differ by more than this in the number of connections that servers open
/// to each other for each request.
const DIALS_APART: f64 = 0.5;

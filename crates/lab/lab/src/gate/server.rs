//! Gates that look at servers: what they answered, and whether they were what they should be.

use super::{Effect, GateFinding, GateRecord, PairGate, RunGate, of};
use crate::facts::{Facts, LevelChange, PathFacts};

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
        // Such a run has no facts: `drive` fires it.
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

/// Gates that a file is read with.
pub static FILE_GATES: &[GateRecord<()>] = &[
    // Of an experiment's file: `experiment/lines` makes it a fault.
    GateRecord {
        name: "lines",
        words: "servers of different kinds that a claim compares differ in a parameter of the same name",
        rank: 0,
        check: (),
    },
];

/// Whether all answers had the status that was asked for.
fn status(facts: &Facts) -> Option<GateFinding> {
    let expected = facts.expect.status?;
    let others = || {
        facts
            .statuses
            .iter()
            .filter(|(status, _)| **status != expected)
    };
    let wrong: u64 = others().map(|(_, count)| count).sum();
    if let Some((status, _)) = others().max_by_key(|(_, count)| **count) {
        let what = match status {
            300..400 => "a redirect was measured",
            400.. => "an error was measured",
            _ => "something else was measured",
        };
        let part = of(wrong, facts.completed);
        if facts.is_rare(wrong) {
            let words = format!("{part} answers were {status} and not {expected}.");
            return Some(GateFinding::new("status", Effect::Note, words));
        }
        let words = format!("{part} answers were {status} and not {expected}: {what}.");
        return Some(GateFinding::new("status", Effect::Void, words));
    }
    // Most tools say no more than this.
    let other = facts
        .non_2xx
        .filter(|_| facts.statuses.is_empty() && expected < 300)?;
    if other == 0 {
        return None;
    }
    let part = of(other, facts.completed);
    if facts.is_rare(other) {
        let words = format!("{part} answers were not 2xx.");
        return Some(GateFinding::new("status", Effect::Note, words));
    }
    let what = if other == facts.completed {
        "a redirect or an error was measured, not the page"
    } else {
        "redirects or errors are part of the figures"
    };
    let words = format!("{part} answers were not 2xx: {what}.");
    Some(GateFinding::new("status", Effect::Void, words))
}

/// Whether all bodies were as long as asked for.
fn body(facts: &Facts) -> Option<GateFinding> {
    let (expected, found) = (facts.expect.body_bytes?, facts.body_bytes?);
    // A mean: requests that were cut at the end may have left bytes of theirs.
    ((found - expected as f64).abs() > 0.5 + expected as f64 * ROUNDING).then(|| {
        let words = format!("Bodies had {found:.1} bytes on average, {expected} were expected.");
        GateFinding::new("body", Effect::Void, words)
    })
}

/// Whether bodies of the same length have other bytes than the first one.
fn body_content(facts: &Facts) -> Option<GateFinding> {
    let other = facts.other_body;
    (other > 0).then(|| {
        let words = format!(
            "{} bodies had other bytes than the first one: not one page was measured.",
            of(other, facts.completed)
        );
        GateFinding::new("body", Effect::Void, words)
    })
}

/// Whether bodies differ among themselves.
fn body_lengths(facts: &Facts) -> Option<GateFinding> {
    let other = facts.other_length;
    (other > 0 && facts.expect.body_bytes.is_some()).then(|| {
        let words = format!(
            "{} bodies were not as long as the first one.",
            of(other, facts.completed)
        );
        GateFinding::new("body", Effect::Void, words)
    })
}

/// Whether connections were kept as asked for.
fn keep_alive(facts: &Facts) -> Option<GateFinding> {
    let (wanted, kept) = (facts.expect.kept?, facts.kept?);
    let all = facts.completed;
    if all == 0 {
        return None;
    }
    let share = kept as f64 / all as f64;
    let words = match wanted {
        true if share < least_kept(facts.expect.kept_requests_max) => {
            format!(
                "Keep-alive was asked for, and {} connections were kept.",
                of(kept, all)
            )
        }
        false if kept > 0 => {
            format!(
                "Keep-alive was not asked for, and {} connections were kept.",
                of(kept, all)
            )
        }
        _ => return None,
    };
    Some(GateFinding::new("keep-alive", Effect::Void, words))
}

/// The least share of kept answers if the server closes a connection after `limit` requests; 0: it does not. Each
/// connection that ends with the run may have closed early, hence not 1 but 1.5.
fn least_kept(limit: u64) -> f64 {
    match limit {
        0 => 0.99,
        limit => (1.0 - 1.5 / limit as f64).clamp(0.0, 0.99),
    }
}

/// Whether all requests were answered.
fn failed(facts: &Facts) -> Option<GateFinding> {
    let all = facts.completed + facts.failed;
    if all == 0 {
        let words = "No request was answered.";
        return Some(GateFinding::new("failed", Effect::Void, words));
    }
    (facts.failed > 0).then(|| {
        let words = format!("{} requests had no good answer.", of(facts.failed, all));
        let effect = if facts.is_rare(facts.failed) {
            Effect::Note
        } else {
            Effect::Void
        };
        GateFinding::new("failed", effect, words)
    })
}

/// Whether each server of a cell was asked as often as its place in the path wants.
fn path(facts: &Facts) -> Option<GateFinding> {
    if facts.completed == 0 {
        return None;
    }
    let mut servers = facts.asked.iter();
    let words = servers.find_map(|(name, asked)| not_asked(name, asked))?;
    Some(GateFinding::new("path", Effect::Void, words))
}

/// What is wrong with a server's part; `None` if nothing is. Where requests were not counted, CPU time tells a server that
/// took none.
fn not_asked(name: &str, asked: &PathFacts) -> Option<String> {
    let PathFacts {
        expected,
        counted,
        cpu_us,
    } = *asked;
    let is_seldom = counted.is_some_and(|counted| counted < expected * (1.0 - LOST_MAX));
    if let Some(counted) = counted.filter(|_| is_seldom) {
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

/// Whether a closed loop kept the server busy: its core, or the part of the core that it may have.
fn idle_server(facts: &Facts) -> Option<GateFinding> {
    let machine = facts.machine.as_ref()?;
    if let Some(fired) = below_its_part(facts) {
        return Some(fired);
    }
    let (load, server) = (machine.load_core?, machine.server_core?);
    (facts.clients.is_some() && server < SERVER_BUSY && load >= LOAD_BUSY).then(|| {
        let words = format!(
            "The server's core was busy {:.0} % of the time, the load's {:.0} %: throughput is not \
             the server's.",
            server * 100.0,
            load * 100.0
        );
        GateFinding::new("idle-server", Effect::Time, words)
    })
}

/// The server in front is to be the limit, by its declared part.
fn below_its_part(facts: &Facts) -> Option<GateFinding> {
    let mut shares = facts.machine.as_ref()?.shares.iter();
    let (name, share) = shares.find(|(_, share)| share.is_tested)?;
    (facts.clients.is_some() && share.used < share.declared * SERVER_BUSY).then(|| {
        let words = format!(
            "The server {name} took {:.0} % of its core, {:.0} % are declared: throughput is not its own.",
            share.used * 100.0,
            share.declared * 100.0
        );
        GateFinding::new("idle-server", Effect::Time, words)
    })
}

/// Whether the server was warm when measuring began, and stayed what it was.
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
    if let Some(LevelChange {
        what,
        after_s,
        shift,
    }) = &machine.changed
    {
        let way = if *shift > 0.0 { "rose" } else { "fell" };
        let words = format!(
            "Within the run, {after_s:.1} s after its beginning, the {what} {way} by {:.0} %.",
            shift.abs() * 100.0
        );
        return Some(GateFinding::new(UNSTEADY, Effect::Note, words));
    }
    let words = match (machine.moving, machine.hidden) {
        (_, Some(hidden)) if hidden >= 1.0 => {
            "The warm-up was too short to tell whether the server is steady.".to_owned()
        }
        (_, Some(hidden)) => format!(
            "After the warm-up the rate or the CPU time of a request may still have moved by {:.0} %: noise \
             would have hidden it.",
            hidden * 100.0
        ),
        (Some(moving), None) if moving.abs() > MOVEMENT_MAX => {
            let way = if moving > 0.0 { "up" } else { "down" };
            format!(
                "After the warm-up the rate or the CPU time of a request still moved {way} by {:.0} %.",
                moving.abs() * 100.0
            )
        }
        _ => return None,
    };
    Some(GateFinding::new(UNSTEADY, Effect::Note, words))
}

/// Whether servers lived and had nothing to complain about.
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

/// Whether a server had reached a maximum of its own.
fn capped(facts: &Facts) -> Option<GateFinding> {
    let first = facts.machine.as_ref()?.capped.first()?;
    let words = format!("A maximum of the server's was reached: {first}");
    Some(GateFinding::new("capped", Effect::Note, words))
}

/// Heads of different length: the servers said different things, and bytes compare that.
fn unequal_answers(one: &Facts, other: &Facts) -> Option<GateFinding> {
    let apart = one.head_bytes? - other.head_bytes?;
    (apart.abs() >= 0.5).then(|| {
        let words = format!(
            "Beside the body, answers differ by {:.1} bytes ({:.1} and {:.1}): bytes on this hop \
             compare heads, not what is claimed.",
            apart.abs(),
            one.head_bytes.unwrap_or_default(),
            other.head_bytes.unwrap_or_default()
        );
        GateFinding::new("unequal-answers", Effect::Note, words)
    })
}

/// A run with failures beside one without.
fn unequal_failures(one: &Facts, other: &Facts) -> Option<GateFinding> {
    let failed = (one.failed > 0) != (other.failed > 0);
    failed.then(|| {
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

/// One of the two reuses connections to the application and the other does not. That alone may explain the
/// difference.
fn confounded(one: &Facts, other: &Facts) -> Option<GateFinding> {
    let (one, other) = (one.dials?, other.dials?);
    ((one - other).abs() > DIALS_APART).then(|| {
        let words = format!(
            "Confounded with reuse: the servers opened {one:.2} connections to each other for a \
             request at one level, {other:.2} at the other."
        );
        GateFinding::new("confounded", Effect::Note, words)
    })
}

fn has_length(facts: &Facts) -> bool {
    facts.expect.body_bytes.is_some()
}

fn has_busy_cores(facts: &Facts) -> bool {
    let machine = facts.machine.as_ref();
    machine.is_some_and(|it| it.server_core.and(it.load_core).is_some() || !it.shares.is_empty())
}

fn is_watched(facts: &Facts) -> bool {
    let machine = facts.machine.as_ref();
    machine.is_some_and(|it| it.moving.is_some() || it.hidden.is_some())
}

/// The share by which unfinished requests may change the mean length of a body.
const ROUNDING: f64 = 0.01;

/// The share of requests that may be missing: those at the span's end may be counted at one end of it alone.
const LOST_MAX: f64 = 0.01;

/// No server reads a request and writes an answer, two system calls with TCP behind them, in less, in microseconds.
const CPU_MIN_US: f64 = 0.5;

/// The share of its time from which a core counts as busy.
pub(crate) const SERVER_BUSY: f64 = 0.9;
pub(crate) const LOAD_BUSY: f64 = 0.9;

/// A server that was not warm, or did not stay what it was.
pub(crate) const UNSTEADY: &str = "unsteady";

/// The CPU time that the compilers of a warm virtual machine may take, as a share of the span.
pub(crate) const COMPILING_MAX: f64 = 0.02;

/// The share of a core from which compiling may take more of a request's CPU time than the usual margin of a claim.
const COMPILING_COUNTS: f64 = 0.05;

/// The share by which throughput and CPU per request may move within a run.
const MOVEMENT_MAX: f64 = catamaran_stats::MOVEMENT_MAX;

/// The difference that two levels may have in connections opened for a request.
const DIALS_APART: f64 = 0.5;

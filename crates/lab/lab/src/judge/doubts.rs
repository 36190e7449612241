//! Gates on the text of a single run: what the tool says about it, and what the tool's way of counting leaves open.

use catamaran_units::show_count;

use super::{CHECKS, LONGEST, SAMPLED, STOPPED, TIMEOUTS, UNCONNECTED, limit_of, note};
use crate::experiment::Selection;
use crate::facts::{Facts, RARE};
use crate::gate::{self, Effect, GateFinding};
use crate::published::{Checks, TextFigures};

/// Findings on what the tool says, and on what its way of counting leaves open.
pub(super) fn doubts(figures: &TextFigures) -> Vec<GateFinding> {
    let mut found = failings(figures);
    let tool = figures.tool;
    if let Some(other @ 1..) = figures.other_length {
        let words = format!(
            "{tool} calls {} answers failed because their bodies are not as long as the first one: the page \
             varies, or answers broke off.",
            show_count(other)
        );
        found.push(note("body", words));
    }
    if tool == "hey" && figures.completed > Some(0) {
        let words =
            "hey does not notice bodies that break off, and counts the length that was announced.";
        found.push(note("body", words.to_owned()));
    }
    if figures.unexplained > 0 {
        let words = format!(
            "{tool} calls {} requests failed, and the line with the reasons is missing: they may have had \
             no answer, or one of another length.",
            show_count(figures.unexplained)
        );
        found.push(note("failed", words));
    }
    found.extend(late(figures));
    let completed = figures.completed.unwrap_or(0);
    if let Some(kept @ 1..) = figures.kept
        && (kept as f64) < completed as f64 * KEPT_MOST
    {
        let words = format!(
            "Keep-alive was asked for, and {} of {} connections were kept: connecting again is part of the \
             figures.",
            show_count(kept),
            show_count(completed)
        );
        found.push(note("keep-alive", words));
    }
    if let (Some(times), Some(seconds)) = (figures.total_ms, figures.seconds) {
        let usual = times.median.unwrap_or(times.mean) + times.rounding;
        let longest = times.max / 1000.0;
        if times.max >= usual * LONGEST_TIMES && longest >= seconds * LONGEST_SHARE {
            let words = format!(
                "The longest request took {longest:.1} s of the run's {seconds:.1} s: if the run waited for \
                 it, the rate is that of one request."
            );
            found.push(note(LONGEST, words));
        }
    }
    found
}

/// A finding if requests took longer than the tool's timeout. Their times are missing from its latencies, so if there
/// are many, its percentiles are too low.
fn late(figures: &TextFigures) -> Option<GateFinding> {
    let (tool, late) = (figures.tool, figures.late.filter(|late| *late > 0)?);
    // Some tools do not count them among the completed requests.
    let requests = figures.completed.unwrap_or(0).max(late);
    let (effect, meaning) = if late as f64 > requests as f64 * RARE {
        (Effect::Time, "latencies are of the others")
    } else {
        (Effect::Note, "latencies leave them out or cut them")
    };
    let words = format!(
        "{} requests took longer than {tool} waits: {meaning}.",
        show_count(late)
    );
    Some(GateFinding::new(TIMEOUTS, effect, words))
}

/// Findings if the run did not do what it was to do, as the tool itself says.
fn failings(figures: &TextFigures) -> Vec<GateFinding> {
    let mut found = Vec::new();
    let tool = figures.tool;
    let completed = figures.completed.unwrap_or(0);
    let effect_of = |part: u64, whole: u64| {
        if part as f64 > whole as f64 * RARE {
            Effect::Void
        } else {
            Effect::Note
        }
    };
    if let (Some(seconds), Some(asked)) = (figures.seconds, figures.asked_seconds)
        && seconds < asked * STOPPED_NOTE
    {
        let effect = if seconds < asked * STOPPED_VOID {
            Effect::Void
        } else {
            Effect::Note
        };
        let words = format!("{tool} was to run for {asked} s and ended after {seconds} s.");
        found.push(GateFinding::new(STOPPED, effect, words));
    }
    if let (lost @ 1.., Some(clients)) = (figures.unconnected, figures.clients) {
        let words = format!(
            "{} connections could not be opened: the load was that of the others.",
            gate::part_of(lost, clients)
        );
        found.push(GateFinding::new(
            UNCONNECTED,
            effect_of(lost, clients),
            words,
        ));
    }
    if let Some(Checks {
        made,
        failed: failed @ 1..,
    }) = figures.checks
    {
        let words = format!(
            "{} checks of the script failed: answers were not those that were to be measured.",
            gate::part_of(failed, made)
        );
        found.push(GateFinding::new(CHECKS, effect_of(failed, made), words));
    }
    if let dropped @ 1.. = figures.dropped {
        let words = format!(
            "{} iterations were due and not begun, because no client was free: latencies leave out how long they \
             would have waited.",
            show_count(dropped)
        );
        found.push(GateFinding::new(
            "late",
            effect_of(dropped, completed + dropped),
            words,
        ));
    }
    if let Some(sampled) = figures.sampled {
        let words = format!(
            "{tool} keeps the first {} results: statuses and percentiles of the other {} are not known, and its average is \
             too long by that part.",
            show_count(sampled),
            show_count(completed - sampled)
        );
        found.push(note(SAMPLED, words));
    }
    found.extend(beyond_rate(figures));
    found
}

/// A finding if wrk2 was asked for a higher rate than its connections could carry, which it does not print. It is seen
/// from more requests being due at the median latency than there are connections.
fn beyond_rate(figures: &TextFigures) -> Option<GateFinding> {
    let (rate, clients, times) = (figures.rate?, figures.clients?, figures.total_ms?);
    let median = match times.median {
        Some(median) => median,
        // The median differs from the mean by at most the standard deviation.
        None => times.mean - figures.deviation_ms?,
    };
    let due = rate * median / 1000.0;
    if figures.tool != "wrk2" || due <= clients as f64 * BEYOND {
        return None;
    }
    let words = format!(
        "Rate times latency says that {due:.0} requests were due at once, and {clients} connections carry one each: \
         wrk2 was asked for a higher rate than the {rate:.1}/s that it reached, and latencies grow with the length of \
         the run."
    );
    Some(GateFinding::new("late", Effect::Void, words))
}

/// Findings on any single run, whatever the tool; `warm_up_s` is the length of its warm-up in seconds, if one is named.
pub(super) fn general(tool: &str, facts: &Facts, warm_up_s: Option<f64>) -> Vec<GateFinding> {
    let mut found = Vec::new();
    let seconds = facts.seconds.unwrap_or(f64::INFINITY);
    let warm_up_s = warm_up_s.unwrap_or_default();
    if seconds < SHORT_S && warm_up_s < WARM_S {
        let words = if warm_up_s > 0.0 {
            format!(
                "{seconds:.1} s after a warm-up of {warm_up_s} s: a JVM is cold for 12 to 25 s."
            )
        } else {
            format!(
                "{seconds:.1} s, and no warm-up is named: the server may have been cold, as a JVM is for \
                 12 to 25 s."
            )
        };
        found.push(note("unsteady", words));
    }
    if tool != "bench"
        && facts.completed > 0
        && facts.non_2xx.is_none()
        && facts.statuses.is_empty()
    {
        let words = format!(
            "{tool} counts redirects among good answers and prints no statuses: nothing shows that the page \
             was measured."
        );
        found.push(note("status", words));
    }
    if tool != "bench" {
        let words =
            format!("{tool} does not say how busy it was itself: it may have been the limit.");
        found.push(note("generator", words));
    }
    let words = limit_of(Selection::OneRun);
    found.push(note("published", words.to_owned()));
    found
}

/// The share of kept responses below which there is a remark. A server that closes connections after 100 requests, as
/// Apache does by default, keeps 99 %; some connections may end with the run.
const KEPT_MOST: f64 = 0.985;

/// The longest request leads to a remark if it took at least this many times the usual time, and at least this share of
/// the run.
const LONGEST_TIMES: f64 = 3.0;
const LONGEST_SHARE: f64 = 0.5;

/// The shares of the planned duration below which a run that ended early gets a remark, or is void.
const STOPPED_NOTE: f64 = 0.9;
const STOPPED_VOID: f64 = 0.1;

/// The least ratio of requests due at once to connections that shows a missed rate; a smaller excess may come from
/// rounding.
const BEYOND: f64 = 1.1;

/// The length in seconds below which a run without a warm-up may show a cold server.
const SHORT_S: f64 = 30.0;

/// The length in seconds of a warm-up after which also a JVM is warm.
const WARM_S: f64 = 25.0;

//! A gate: conditions on a run's figures, each decided by the confidence interval of its figure.
//!
//! A run is a sample. A condition fails if the whole interval of its figure is beyond the limit,
//! passes if no part of it is, and is undecided otherwise. Responses that are not 2xx and requests
//! without a response fail the gate unless they are waived, since a fast error page would pass any
//! limit of latency. Lateness of the generator makes the gate undecided. So does a closed loop
//! whose clients waited for so long that the requests which they did not send might break the limit
//! of a percentile.

mod condition;
mod figure;

use std::time::Duration;

use catamaran_stats::estimate::INDEPENDENT_MIN;
use catamaran_stats::is_quotable;
pub use condition::{Condition, ConditionFault, Waiver};
use condition::{Limit, Measure, Side};
use figure::Figure;

use crate::document;
use crate::report::{Ending, Report, Warning, WarningWeight};

/// The verdict of a gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// The limit of the condition is kept.
    Passed,
    /// The run is not enough to decide the condition.
    Undecided,
    /// The limit of the condition is broken.
    Failed,
}

/// A gate: the conditions that a run must meet.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Gate {
    /// The conditions that the user has set.
    pub conditions: Vec<Condition>,
    /// Faults that the user has waived, so that they do not fail the gate.
    pub waived: Vec<Waiver>,
}

impl Verdict {
    /// The verdict as a word in texts and files.
    pub fn word(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Undecided => "undecided",
            Self::Failed => "failed",
        }
    }

    /// The verdict whose word is `word`; `None` if there is none.
    pub fn named(word: &str) -> Option<Self> {
        let all = [Self::Passed, Self::Undecided, Self::Failed];
        all.into_iter().find(|verdict| verdict.word() == word)
    }
}

impl Gate {
    /// Judges a run by all conditions.
    pub fn judge(&self, report: &Report) -> document::Gate {
        let disturbance = if self.waived.contains(&Waiver::Invalid) {
            None
        } else {
            Disturbance::of(report)
        };
        let mut conditions: Vec<_> = self
            .conditions
            .iter()
            .map(|condition| judge(condition, report, disturbance.as_ref()))
            .collect();
        let mut measures = self.conditions.iter().map(|condition| condition.measure);
        let limits_errors = measures.any(|measure| measure == Measure::Errors);
        for (waiver, condition) in built_in_conditions(report, limits_errors) {
            if !self.waived.contains(&waiver) {
                conditions.push(condition);
            }
        }
        result(conditions)
    }
}

/// The result of a gate, whose verdict is the worst of its conditions.
pub(crate) fn result(conditions: Vec<document::Condition>) -> document::Gate {
    let verdicts = conditions
        .iter()
        .filter_map(|condition| Verdict::named(&condition.verdict));
    let worst = verdicts.max().unwrap_or(Verdict::Passed);
    document::Gate {
        verdict: worst.word().to_owned(),
        conditions,
    }
}

/// Judges a run by one condition of the user. A condition that only faults of this machine break is undecided.
fn judge(
    condition: &Condition,
    report: &Report,
    disturbance: Option<&Disturbance>,
) -> document::Condition {
    let figure = match condition.measure {
        Measure::Rate => figure::rate(report),
        Measure::Errors => figure::errors(report, 0),
        Measure::Percentile(percent) => figure::percentile(report, percent),
    };
    let (low, high) = figure.interval.unwrap_or_default();
    let (mut verdict, mut reason) = decide(condition, &figure, report);
    if verdict == Verdict::Failed
        && let Some(excuse) = own_fault(condition, low, report, disturbance)
    {
        (verdict, reason) = (Verdict::Undecided, Some(excuse));
    }
    document::Condition {
        condition: condition.text.clone(),
        verdict: verdict.word().to_owned(),
        unit: Some(condition.measure.unit().to_owned()),
        value: figure.value,
        low,
        high,
        reason,
    }
}

/// Why a broken condition might hold without the faults of this machine; `None`: it would be broken even so. `low` is
/// the lower end of the figure's interval.
fn own_fault(
    condition: &Condition,
    low: Option<f64>,
    report: &Report,
    disturbance: Option<&Disturbance>,
) -> Option<String> {
    if condition.measure == Measure::Errors {
        let lacks = own_lacks(report);
        let servers_errors = figure::errors(report, lacks);
        let is_broken = decide(condition, &servers_errors, report).0 == Verdict::Failed;
        return (lacks > 0 && !is_broken).then(|| OWN_LACK.to_owned());
    }
    let disturbance = disturbance?;
    if condition.breaks_without(low, disturbance.longest) {
        return None;
    }
    Some(disturbance.reason())
}

/// The verdict on a condition by the interval of its figure, with the reason if it is undecided.
fn decide(condition: &Condition, figure: &Figure, report: &Report) -> (Verdict, Option<String>) {
    let Limit { side, value: limit } = condition.limit;
    if condition.measure == Measure::Errors && limit == 0.0 && side == Side::Above {
        // A figure of zero passes: that none were observed is certain, though it does not prove that none can occur.
        let verdict = if figure.value == Some(0.0) {
            Verdict::Passed
        } else {
            Verdict::Failed
        };
        return (verdict, None);
    }
    let Some((low, high)) = figure.interval else {
        let reason =
            "the run is too short for an interval: it needs six parts of 100 ms with answers";
        return (Verdict::Undecided, Some(reason.to_owned()));
    };
    // An end that is not known lies among requests without a response, which took longest.
    let low = low.unwrap_or(f64::INFINITY);
    let high = high.unwrap_or(f64::INFINITY);
    let (breaks, holds) = match side {
        Side::Above => (low > limit, high <= limit),
        Side::Below => (high < limit, low >= limit),
    };
    if breaks {
        return (Verdict::Failed, None);
    }
    if !holds {
        return (Verdict::Undecided, Some(within(figure)));
    }
    if let Measure::Percentile(percent) = condition.measure {
        let requests = report.requests.started;
        if !is_quotable(percent, requests) {
            let reason = format!("{requests} requests are too few for p{percent}");
            return (Verdict::Undecided, Some(reason));
        }
        if let Some(reason) = coordinated_omission(percent, limit, report) {
            return (Verdict::Undecided, Some(reason));
        }
    }
    (Verdict::Passed, None)
}

/// Why a percentile that is within its limit decides nothing: clients of a closed loop waited in
/// stalls, and the requests that they did not send meanwhile might have broken the limit.
fn coordinated_omission(percent: f64, limit_ms: f64, report: &Report) -> Option<String> {
    let is_open_loop = report.latency.corrected.is_some();
    if is_open_loop {
        return None;
    }
    let limit = Duration::from_secs_f64(limit_ms / 1000.0);
    let stall_min = limit.max(report.silence_min);
    let answered = &report.latency.total.histogram;
    let unfinished = &report.unfinished.ages;
    let busy = (answered.sum() + unfinished.sum()).as_secs_f64();
    let stalled = answered.beyond(limit, stall_min) + unfinished.beyond(limit, stall_min);
    let share = stalled.as_secs_f64() / busy.max(f64::MIN_POSITIVE);
    // Had requests been sent in that time, this share of them would have been beyond the limit.
    (share > 1.0 - percent / 100.0).then(|| {
        format!(
            "clients waited beyond the limit for {:.0} % of their time, in stalls, and sent nothing \
             meanwhile: a closed loop does not tell; --rate does",
            share * 100.0
        )
    })
}

/// A fault of the generator that may have lengthened latencies.
struct Disturbance {
    /// The token of the warning about the fault.
    token: String,
    /// The most time that the fault can have added to a latency.
    longest: Duration,
}

impl Disturbance {
    /// The largest disturbance that the report's warnings show; `None` if there was none.
    fn of(report: &Report) -> Option<Self> {
        let warnings = report.warnings.iter();
        let disturbances = warnings.filter_map(|warning| Self::of_warning(warning, report));
        disturbances.max_by_key(|disturbance| disturbance.longest)
    }

    /// The disturbance that `warning` is about; `None` if it is not about the generator.
    fn of_warning(warning: &Warning, report: &Report) -> Option<Self> {
        let longest = match warning {
            Warning::GeneratorLate { p99 } => *p99,
            Warning::GeneratorStalled { total, .. } => *total,
            Warning::GeneratorStarved { starved, .. } => report.elapsed.mul_f64(*starved),
            // A thread that is always busy may delay requests without a bound.
            Warning::GeneratorSaturated { .. } => Duration::MAX,
            _ => return None,
        };
        let token = warning.token().to_owned();
        Some(Self { token, longest })
    }

    fn reason(&self) -> String {
        format!(
            "the limit might hold without what the generator did itself ({})",
            self.token
        )
    }
}

/// The reason why a condition is undecided: its limit is within the figure's interval.
fn within(figure: &Figure) -> String {
    match figure.independent {
        Some(parts) if parts < INDEPENDENT_MIN => format!(
            "the run is too short: neighbouring parts are so alike that all count as {parts:.1} \
             independent ones; a run several times as long tells more"
        ),
        _ => "the limit lies within the interval: a longer run tells more".to_owned(),
    }
}

/// The conditions that hold for any run, each with the waiver that switches it off. `limits_errors`: the user has set a
/// limit of errors, which counts failed requests itself and says how many are allowed.
fn built_in_conditions(report: &Report, limits_errors: bool) -> Vec<(Waiver, document::Condition)> {
    let mut conditions = Vec::new();
    if !limits_errors {
        let non_2xx = report.requests.non_2xx;
        let unsent = report.unfinished.unsent;
        let failed = report.requests.failed + report.unfinished.hung;
        let failed_by_server = failed.saturating_sub(own_lacks(report));
        for (waiver, count, by_server) in [
            (Waiver::Non2xx, non_2xx, non_2xx),
            (Waiver::Unsent, unsent, unsent),
            (Waiver::Failed, failed, failed_by_server),
        ] {
            conditions.push((waiver, none_of(waiver, count, by_server)));
        }
    }
    conditions.push((Waiver::Invalid, validity(report)));
    conditions
}

/// The condition that no request has the fault of `waiver`. `count` requests have it; the server is to blame for
/// `by_server` of them.
fn none_of(waiver: Waiver, count: u64, by_server: u64) -> document::Condition {
    let (verdict, reason) = if count == 0 {
        (Verdict::Passed, None)
    } else if by_server == 0 {
        (Verdict::Undecided, Some(OWN_LACK.to_owned()))
    } else {
        (Verdict::Failed, None)
    };
    document::Condition {
        condition: format!("{}>0", waiver.word()),
        verdict: verdict.word().to_owned(),
        unit: Some("requests".to_owned()),
        value: Some(count as f64),
        low: Some(count as f64),
        high: Some(count as f64),
        reason,
    }
}

/// The condition that the run is valid. An invalid run fails only if the server is to blame: it did not respond.
fn validity(report: &Report) -> document::Condition {
    let reason = invalid(report);
    let is_unanswered = report.requests.completed == 0;
    let verdict = match &report.ending {
        _ if reason.is_none() => Verdict::Passed,
        Ending::Failure(error) if error.kind.is_own() => Verdict::Undecided,
        Ending::Failure(_) | Ending::Idle => Verdict::Failed,
        Ending::Requests | Ending::Duration if is_unanswered => Verdict::Failed,
        Ending::Requests | Ending::Duration | Ending::Stopped => Verdict::Undecided,
    };
    document::Condition {
        condition: Waiver::Invalid.word().to_owned(),
        verdict: verdict.word().to_owned(),
        unit: None,
        value: None,
        low: None,
        high: None,
        reason,
    }
}

/// The number of requests that failed because this machine lacked something, such as ports.
fn own_lacks(report: &Report) -> u64 {
    let failures = report.failures.iter();
    let own = failures.filter(|(kind, _)| kind.is_own());
    own.map(|(_, count)| count).sum()
}

/// Why the figures of a run are not those of the server; `None` if they are. What to do about it is in the warning.
pub fn invalid(report: &Report) -> Option<String> {
    match &report.ending {
        Ending::Failure(error) => return Some(format!("the run was given up: {}", error.message)),
        Ending::Idle => {
            return Some("the run was given up: nothing came from the server".to_owned());
        }
        Ending::Stopped => return Some("the run was stopped by hand".to_owned()),
        Ending::Requests | Ending::Duration => {}
    }
    if report.requests.completed == 0 {
        return Some("no request was answered".to_owned());
    }
    let mut warnings = report.warnings.iter();
    let invalidating = warnings.find(|warning| warning.weight() == WarningWeight::Invalid);
    invalidating.map(Warning::finding)
}

const OWN_LACK: &str = "this machine had no descriptor or no port for them";

#[cfg(test)]
pub(crate) mod tests;

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
use catamaran_stats::{Histogram, is_quotable};
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
        let has_errors = self
            .conditions
            .iter()
            .any(|it| it.measure == Measure::Errors);
        let all_own = own_conditions(report, has_errors);
        let own = all_own
            .into_iter()
            .filter(|(waiver, _)| !self.waived.contains(waiver));
        let is_waived = self.waived.contains(&Waiver::Invalid);
        let disturbance = Disturbance::of(report).filter(|_| !is_waived);
        let asked = self
            .conditions
            .iter()
            .map(|condition| judge(condition, report, disturbance.as_ref()));
        let conditions: Vec<_> = asked.chain(own.map(|(_, judged)| judged)).collect();
        let worst = conditions
            .iter()
            .filter_map(|it| Verdict::named(&it.verdict))
            .max();
        document::Gate {
            verdict: worst.unwrap_or(Verdict::Passed).word().to_owned(),
            conditions,
        }
    }
}

/// Judges a run by one condition of the user.
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
    let (mut verdict, mut reason) = decide(condition, &figure, report);
    let low = figure.interval.and_then(|(low, _)| low);
    if let (Verdict::Failed, Some(own)) = (verdict, disturbance)
        && !condition.breaks_without(low, own.longest)
    {
        (verdict, reason) = (Verdict::Undecided, Some(own.reason()));
    }
    let lacks = own_lacks(report);
    if verdict == Verdict::Failed && condition.measure == Measure::Errors && lacks > 0 {
        let left = figure::errors(report, lacks);
        if decide(condition, &left, report).0 != Verdict::Failed {
            (verdict, reason) = (Verdict::Undecided, Some(OWN_LACK.to_owned()));
        }
    }
    document::Condition {
        condition: condition.text.clone(),
        verdict: verdict.word().to_owned(),
        unit: Some(condition.measure.unit().to_owned()),
        value: figure.value,
        low,
        high: figure.interval.and_then(|(_, high)| high),
        reason,
    }
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
    if let Measure::Percentile(percent) = condition.measure
        && !is_quotable(percent, report.requests.started)
    {
        let reason = format!(
            "{} requests are too few for p{percent}",
            report.requests.started
        );
        return (Verdict::Undecided, Some(reason));
    }
    if let Measure::Percentile(percent) = condition.measure
        && let Some(reason) = hidden(percent, limit, report)
    {
        return (Verdict::Undecided, Some(reason));
    }
    (Verdict::Passed, None)
}

/// Why a percentile that is within its limit decides nothing: clients of a closed loop waited in
/// stalls, and the requests that they did not send meanwhile might have broken the limit.
fn hidden(percent: f64, limit_ms: f64, report: &Report) -> Option<String> {
    if report.latency.corrected.is_some() {
        return None;
    }
    let limit = Duration::from_secs_f64(limit_ms / 1000.0);
    let from = limit.max(report.silence_min);
    let waits = [&report.latency.total.histogram, &report.unfinished.ages];
    let sum = |of: &dyn Fn(&Histogram) -> Duration| waits.map(of).iter().sum::<Duration>();
    let busy = sum(&|times| times.sum()).as_secs_f64();
    let share = sum(&|times| times.beyond(limit, from)).as_secs_f64() / busy.max(f64::MIN_POSITIVE);
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
        let disturbance = |warning: &Warning| {
            let longest = match warning {
                Warning::GeneratorLate { p99 } => *p99,
                Warning::GeneratorStalled { total, .. } => *total,
                Warning::GeneratorStarved { starved, .. } => report.elapsed.mul_f64(*starved),
                Warning::GeneratorSaturated { .. } => Duration::MAX,
                _ => return None,
            };
            let token = warning.token().to_owned();
            Some(Self { token, longest })
        };
        let found = report.warnings.iter().filter_map(disturbance);
        found.max_by_key(|it| it.longest)
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

/// The conditions that hold for any run, each with the waiver that switches it off.
fn own_conditions(report: &Report, has_errors: bool) -> Vec<(Waiver, document::Condition)> {
    let counts = &report.requests;
    let count = |waiver: Waiver, count: u64, of_server: u64| {
        let verdict = match (count, of_server) {
            (0, _) => Verdict::Passed,
            (_, 0) => Verdict::Undecided,
            _ => Verdict::Failed,
        };
        let condition = document::Condition {
            condition: format!("{}>0", waiver.word()),
            verdict: verdict.word().to_owned(),
            unit: Some("requests".to_owned()),
            value: Some(count as f64),
            low: Some(count as f64),
            high: Some(count as f64),
            reason: (verdict == Verdict::Undecided).then(|| OWN_LACK.to_owned()),
        };
        (waiver, condition)
    };
    let unsent = report.unfinished.unsent;
    let failed = counts.failed + report.unfinished.hung;
    let of_server = failed.saturating_sub(own_lacks(report));
    let mut own = Vec::new();
    // A limit of errors counts these faults itself and says how many are allowed.
    if !has_errors {
        own.push(count(Waiver::Non2xx, counts.non_2xx, counts.non_2xx));
        own.push(count(Waiver::Unsent, unsent, unsent));
        own.push(count(Waiver::Failed, failed, of_server));
    }
    let reason = invalid(report);
    let verdict = match (&reason, &report.ending) {
        (None, _) => Verdict::Passed,
        (_, Ending::Failure(error)) if error.kind.is_own() => Verdict::Undecided,
        (_, Ending::Failure(_) | Ending::Idle) => Verdict::Failed,
        (_, Ending::Requests | Ending::Duration) if report.requests.completed == 0 => {
            Verdict::Failed
        }
        _ => Verdict::Undecided,
    };
    let invalid = document::Condition {
        condition: Waiver::Invalid.word().to_owned(),
        verdict: verdict.word().to_owned(),
        unit: None,
        value: None,
        low: None,
        high: None,
        reason,
    };
    own.push((Waiver::Invalid, invalid));
    own
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
    let found = warnings.find(|warning| warning.weight() == WarningWeight::Invalid);
    found.map(Warning::finding)
}

const OWN_LACK: &str = "this machine had no descriptor or no port for them";

#[cfg(test)]
pub(crate) mod tests;

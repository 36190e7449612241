//! Renders the five lines with which a report begins, and which a terminal shows during a run.
//!
//! The lines tell whether the figures are valid, the rate, the latency, the failures and the
//! statuses. The verdict is first, so that a reader knows whether the rest counts. Each line fits
//! 60 columns unless there are many warnings.

use std::time::Duration;

use catamaran_stats::LatencyFloor;

use super::per_second;
use crate::gate::invalid;
use crate::report::{Operations, Report, Warning, WarningWeight};

/// The figures of the five lines, of a run that has ended or not.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Facts {
    /// The number of complete responses per second.
    pub per_second: f64,
    /// The rate of the plan, in requests per second; `None` in a closed loop.
    pub asked_per_second: Option<f64>,
    /// The median latency and the 99th percentile; `None` without responses.
    pub latency: Option<[LatencyFloor; 2]>,
    /// Whether latency counts from the time at which a request was due.
    pub is_corrected: bool,
    /// The number of requests that failed.
    pub failed: u64,
    /// Requests without a response, each kind with its count: never sent, hung or cut; while a run
    /// lasts, those that wait.
    pub unanswered: Vec<(&'static str, u64)>,
    /// The number of all requests so far.
    pub requests: u64,
    /// The numbers of responses by the first digit of their status, from 1 on.
    pub statuses: [u64; 5],
    /// The results of operations on memcached, shown in place of statuses; `None` for other protocols.
    pub operations: Option<Operations>,
    /// The label and the text of the first line: the verdict, or how long the run will last.
    pub first: (&'static str, String),
}

/// The five lines of a run that has ended.
pub fn verdict(report: &Report) -> [String; 5] {
    lines(&facts(report))
}

/// The five lines with the figures `facts`.
pub fn lines(facts: &Facts) -> [String; 5] {
    let asked = match facts.asked_per_second {
        Some(rate) => format!(", {rate:.1}/s were asked for"),
        None => String::new(),
    };
    let note = if facts.is_corrected {
        ", corrected"
    } else {
        ""
    };
    let latency = match facts.latency {
        Some([median, p99]) => format!("p50 {}, p99 {}{note}", time(median), time(p99)),
        None => "no answers".to_owned(),
    };
    let mut unanswered = String::new();
    for (word, count) in &facts.unanswered {
        if *count > 0 {
            unanswered += &format!(", {word} {count}");
        }
    }
    let (label, first) = &facts.first;
    [
        line(label, first),
        line("Rate", &format!("{:.1}/s{asked}", facts.per_second)),
        line("Latency", &latency),
        line(
            "Failed",
            &format!(
                "{}{unanswered}, of {} requests",
                facts.failed, facts.requests
            ),
        ),
        match &facts.operations {
            Some(operations) => line("Answers", &super::memcached::answers(operations)),
            None => line("Statuses", &statuses(facts.statuses)),
        },
    ]
}

/// The facts of the five lines, for a report of a run that has ended.
fn facts(report: &Report) -> Facts {
    let latency = &report.latency;
    let percentiles = match latency.censored() {
        Some(corrected) => corrected.percentiles([50.0, 99.0]),
        None => [50.0, 99.0].map(|percent| LatencyFloor {
            at_least: latency.total.histogram.percentile(percent),
            is_exact: true,
        }),
    };
    let mut statuses = [0; 5];
    for (status, count) in &report.statuses {
        let first_digit = usize::from(status / 100);
        // Statuses below 100 and above 599 have no class.
        if (1..=5).contains(&first_digit) {
            statuses[first_digit - 1] += count;
        }
    }
    let unfinished = &report.unfinished;
    Facts {
        per_second: per_second(report.in_span.completed, report.elapsed),
        asked_per_second: report.subject.rate,
        latency: (report.requests.completed > 0).then_some(percentiles),
        is_corrected: latency.corrected.is_some(),
        failed: report.requests.failed,
        unanswered: vec![
            ("unsent", unfinished.unsent),
            ("hung", unfinished.hung),
            ("cut", unfinished.cut),
        ],
        requests: report.requests.started,
        statuses,
        operations: report.operations,
        first: ("Verdict", judgement(report)),
    }
}

/// Whether the figures of a run can be trusted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Judgement {
    /// The judgement as a word: `valid`, `imprecise`, `doubtful` or `invalid`.
    pub(crate) word: &'static str,
    /// The reason: what makes the figures invalid, or the kinds of warnings that make them doubtful or imprecise;
    /// `None` if they are valid.
    pub(crate) reason: Option<String>,
}

impl Judgement {
    /// Judges a run by its gravest warning, and by why it ended.
    pub(crate) fn of(report: &Report) -> Self {
        if let Some(reason) = invalid(report).or_else(|| errors_alone(report)) {
            return Self {
                word: "invalid",
                reason: Some(reason),
            };
        }
        for (word, weight) in [
            ("doubtful", WarningWeight::Doubt),
            ("imprecise", WarningWeight::Imprecise),
        ] {
            let warnings = report.warnings.iter();
            let of_weight = warnings.filter(|warning| warning.weight() == weight);
            let tokens: Vec<&str> = of_weight.map(Warning::token).collect();
            if !tokens.is_empty() {
                return Self {
                    word,
                    reason: Some(tokens.join(", ")),
                };
            }
        }
        Self {
            word: "valid",
            reason: None,
        }
    }
}

/// The reason why the figures are invalid, if every response was an error.
fn errors_alone(report: &Report) -> Option<String> {
    let good: u64 = report.statuses.range(..400).map(|(_, count)| count).sum();
    (!report.statuses.is_empty() && good == 0).then(|| "each answer was an error page".to_owned())
}

/// A verdict's word as people read it.
#[must_use]
pub(super) fn verdict_phrase(word: &str) -> &str {
    match word {
        "imprecise" => "valid, imprecise",
        word => word,
    }
}

fn judgement(report: &Report) -> String {
    let judgement = Judgement::of(report);
    let phrase = verdict_phrase(judgement.word);
    match judgement.reason {
        Some(reason) => format!("{phrase}: {reason}"),
        None => phrase.to_owned(),
    }
}

/// The numbers of responses from 1xx to 5xx, without those that are zero.
fn statuses(classes: [u64; 5]) -> String {
    let mut parts = Vec::new();
    for (class, count) in (1..).zip(classes) {
        if count > 0 {
            parts.push(format!("{class}xx {count}"));
        }
    }
    if parts.is_empty() {
        "none".to_owned()
    } else {
        parts.join(", ")
    }
}

/// A latency; `>` before it says that the true one is longer, because requests without an answer are not in it.
fn time(bound: LatencyFloor) -> String {
    let sign = if bound.is_exact { "" } else { "> " };
    let time = bound.at_least;
    if time >= Duration::from_secs(10) {
        format!("{sign}{:.2} s", time.as_secs_f64())
    } else {
        format!("{sign}{:.3} ms", time.as_secs_f64() * 1000.0)
    }
}

fn line(label: &str, text: &str) -> String {
    format!("{label:<10}{text}")
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    #[test]
    fn a_run_that_is_too_short_is_imprecise() {
        let mut report = sample::report();
        report.warnings = vec![
            Warning::Short,
            Warning::BodyLengthChanged { count: 1, of: 3 },
            Warning::Build("release"),
        ];
        assert_eq!(
            verdict(&report),
            [
                "Verdict   valid, imprecise: short",
                "Rate      250.0/s",
                "Latency   p50 4.403 ms, p99 5.200 ms",
                "Failed    0, of 3 requests",
                "Statuses  2xx 3",
            ]
        );
    }

    #[test]
    fn the_worst_warning_gives_the_word() {
        let mut report = sample::report();
        let few = Warning::FewSamples {
            samples: 3,
            percentile_max: 0.0,
        };
        for (warning, word, reason) in [
            (Warning::Build("release"), "valid", None),
            (few, "imprecise", Some("few-samples")),
            (Warning::Resent { count: 1 }, "doubtful", Some("resent")),
        ] {
            report.warnings.push(warning);
            let judgement = Judgement::of(&report);
            assert_eq!(
                (judgement.word, judgement.reason.as_deref()),
                (word, reason)
            );
        }
    }

    #[test]
    fn a_run_of_error_pages_is_invalid() {
        let mut report = sample::report();
        report.statuses = [(404, 2), (500, 1)].into();
        let [first, ..] = verdict(&report);
        assert_eq!(first, "Verdict   invalid: each answer was an error page");
        report.statuses = [(302, 3)].into();
        assert_eq!(Judgement::of(&report).word, "valid");
    }

    #[test]
    fn an_invalid_run_says_why() {
        let mut report = sample::report();
        report.warnings = vec![Warning::GeneratorLate {
            p99: Duration::from_millis(7),
        }];
        let [first, ..] = verdict(&report);
        assert!(
            first.starts_with("Verdict   invalid: the generator sent its requests late"),
            "{first}"
        );
        report.warnings.clear();
        let [first, ..] = verdict(&report);
        assert_eq!(first, "Verdict   valid");
    }

    #[test]
    fn large_figures_fit_sixty_columns() {
        let bound = LatencyFloor {
            at_least: Duration::from_micros(9_999_999),
            is_exact: false,
        };
        let facts = Facts {
            per_second: 1_234_567.8,
            asked_per_second: Some(1_234_567.8),
            latency: Some([bound; 2]),
            is_corrected: true,
            failed: 123_456,
            unanswered: vec![("waiting", 12_345)],
            requests: 123_456_789,
            statuses: [0, 123_456_789, 123, 4567, 8901],
            operations: None,
            first: ("Left", "1234 s".to_owned()),
        };
        for line in lines(&facts) {
            assert!(line.len() <= 60, "{line}");
        }
    }
}

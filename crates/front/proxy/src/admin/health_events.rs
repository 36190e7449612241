//! Events of backends: a backend is left out or comes back, begins to answer mostly 5xx or recovers.
//!
//! Once a second each backend is compared with its state at the last check. A backend that was out and back within a
//! second is noticed by its counters.

use std::collections::HashMap;
use std::sync::Arc;

use catamaran_upstream::Backend;

use crate::control::events::{Events, Kind};

/// The state of each backend at the last check, by its number.
#[derive(Debug, Default)]
pub(super) struct HealthWatch(HashMap<u64, HealthRecord>);

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct HealthRecord {
    ejections: u64,
    is_out: bool,
    /// How long it was out in all, in seconds.
    downtime: u64,
    /// Whether most of its responses are 5xx.
    is_failing: bool,
    /// Whether the backend was there at the last check.
    is_present: bool,
}

impl HealthWatch {
    /// Compares all backends of the site with the last check, adds events for changes, and forgets backends that are
    /// gone.
    pub(super) fn check<'b>(
        &mut self,
        backends: impl Iterator<Item = &'b Arc<Backend>>,
        events: &Events,
    ) {
        for record in self.0.values_mut() {
            record.is_present = false;
        }
        for backend in backends {
            let counts = backend.counts();
            let state = backend.state();
            let cause = state.cause();
            let snapshot = backend.figures().snapshot();
            let errors = snapshot.responses_minute[5];
            let responses = snapshot.responses_minute.iter().sum();
            let known = self.0.entry(backend.number()).or_default();
            let now = HealthRecord {
                ejections: counts.ejections,
                is_out: cause.is_some(),
                downtime: counts.down.as_secs(),
                is_failing: is_failing(known.is_failing, errors, responses),
                is_present: true,
            };
            let name = &backend.settings().name;
            for text in known.changes(&now, cause.unwrap_or_default(), errors, responses) {
                events.push(Kind::Health, backend.upstream(), name, text);
            }
            *known = now;
        }
        self.0.retain(|_, record| record.is_present);
    }
}

impl HealthRecord {
    /// The texts of the events for the changes from `self` to `now`.
    fn changes(&self, now: &Self, cause: &str, errors: u64, responses: u64) -> Vec<String> {
        let mut texts = Vec::new();
        let ejected = now.ejections - self.ejections;
        match (self.is_out, now.is_out) {
            // A backend may have come back and been ejected again since the last check.
            (_, true) if ejected > 0 => texts.push(format!("out: {cause}")),
            (true, false) => texts.push(format!("back; in all it was out for {} s", now.downtime)),
            (false, false) if ejected > 0 => {
                texts.push(format!("out and back within a second, {ejected} times"));
            }
            _ => {}
        }
        let ratio = || format!("{errors} of {responses} responses within the last minute");
        match (self.is_failing, now.is_failing) {
            (false, true) => texts.push(format!("answers 5xx: {}", ratio())),
            (true, false) => texts.push(format!("answers well again: 5xx were {}", ratio())),
            _ => {}
        }
        texts
    }
}

/// Whether at least half of the last minute's responses, and at least [`ERRORS_MIN`], are 5xx.
pub(super) fn is_mostly_5xx(errors: u64, responses: u64) -> bool {
    is_failing(false, errors, responses)
}

/// Whether the state "mostly 5xx" holds: it begins with [`is_mostly_5xx`], and ends when fewer than a tenth are 5xx.
/// `before` is the state at the last check.
fn is_failing(before: bool, errors: u64, responses: u64) -> bool {
    if before {
        return errors > 0 && 10 * errors >= responses;
    }
    errors >= ERRORS_MIN && 2 * errors >= responses
}

/// The least number of responses 5xx within a minute for which there is an event.
const ERRORS_MIN: u64 = 10;

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(before: &HealthRecord, now: &HealthRecord) -> Vec<String> {
        before.changes(now, "it cannot be connected to", 30, 30)
    }

    #[test]
    fn out_and_back_are_told() {
        let well = HealthRecord::default();
        let out = HealthRecord {
            ejections: 1,
            is_out: true,
            ..well.clone()
        };
        let back = HealthRecord {
            is_out: false,
            downtime: 7,
            ..out.clone()
        };
        assert_eq!(texts(&well, &out), ["out: it cannot be connected to"]);
        assert_eq!(texts(&out, &out), [""; 0]);
        assert_eq!(texts(&out, &back), ["back; in all it was out for 7 s"]);
        let flapped = HealthRecord {
            ejections: 3,
            ..back.clone()
        };
        assert_eq!(
            texts(&back, &flapped),
            ["out and back within a second, 2 times"]
        );
        let again = HealthRecord {
            ejections: 2,
            ..out.clone()
        };
        assert_eq!(texts(&out, &again), ["out: it cannot be connected to"]);
    }

    #[test]
    fn answers_that_are_mostly_5xx_are_told_once() {
        let well = HealthRecord::default();
        let bad = HealthRecord {
            is_failing: true,
            ..HealthRecord::default()
        };
        let said = ["answers 5xx: 30 of 30 responses within the last minute"];
        assert_eq!(texts(&well, &bad), said);
        assert_eq!(texts(&bad, &bad), [""; 0]);
        assert!(texts(&bad, &well)[0].starts_with("answers well again"));
        assert!(is_failing(false, 30, 30) && is_failing(false, 10, 20));
        assert!(!is_failing(false, 9, 9) && !is_failing(false, 10, 21));
        assert!(is_failing(true, 1, 10) && !is_failing(true, 1, 11) && !is_failing(true, 0, 0));
    }
}

//! The last changes and failures, which the admin API shows.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::lock::lock;

#[derive(Debug, Default)]
pub(crate) struct Events(Mutex<Ring>);

#[derive(Debug, Default)]
struct Ring {
    events: VecDeque<Event>,
    /// The number of the last event; the first is 1.
    last: u64,
}

/// A change or failure, for operators.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Event {
    pub(crate) number: u64,
    /// The time, in milliseconds of the Unix epoch.
    pub(crate) at: u64,
    pub(crate) kind: Kind,
    pub(crate) upstream: String,
    pub(crate) backend: String,
    pub(crate) text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// An operator, a deadline or a reload changed something.
    Change,
    /// A backend was left out, came back, or answers mostly 5xx.
    Health,
    /// A request failed on a backend.
    Failure,
}

impl Kind {
    pub(crate) fn token(self) -> &'static str {
        match self {
            Self::Change => "change",
            Self::Health => "health",
            Self::Failure => "failure",
        }
    }
}

impl Events {
    /// Adds an event. At [`EVENTS_MAX`] the oldest failure is dropped, or else the oldest event.
    pub(crate) fn push(&self, kind: Kind, upstream: &str, backend: &str, text: String) {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH);
        let millis = since_epoch.map_or(0, |since| since.as_millis());
        let mut ring = self.lock();
        ring.last += 1;
        let event = Event {
            number: ring.last,
            at: u64::try_from(millis).unwrap_or(u64::MAX),
            kind,
            upstream: upstream.to_owned(),
            backend: backend.to_owned(),
            text,
        };
        if ring.events.len() == EVENTS_MAX {
            // Failures make room first: a thousand requests may fail within a second, and the event that tells the
            // cause must stay.
            let is_failure = |event: &Event| event.kind == Kind::Failure;
            let oldest = ring.events.iter().position(is_failure).unwrap_or(0);
            ring.events.remove(oldest);
        }
        ring.events.push_back(event);
    }

    /// The events with a higher number than `number`, in their order.
    pub(crate) fn after(&self, number: u64) -> Vec<Event> {
        let ring = self.lock();
        let later = |event: &&Event| event.number > number;
        ring.events.iter().filter(later).cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, Ring> {
        lock(&self.0)
    }
}

/// The most events that are kept.
const EVENTS_MAX: usize = 1000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_thousand_are_kept_by_number() {
        let events = Events::default();
        for number in 1..=1005 {
            events.push(Kind::Failure, "u", "b", format!("{number}"));
        }
        let all = events.after(0);
        assert_eq!((all.len(), all[0].number), (1000, 6));
        let last = events.after(1004);
        assert_eq!((last.len(), &last[0].text[..]), (1, "1005"));
        assert_eq!(events.after(u64::MAX), []);
    }

    #[test]
    fn failures_do_not_drive_out_what_they_failed_of() {
        let events = Events::default();
        events.push(Kind::Health, "u", "b", "out".to_owned());
        (0..2000).for_each(|_| events.push(Kind::Failure, "u", "b", "reset".to_owned()));
        let all = events.after(0);
        assert_eq!(
            (all.len(), all[0].kind, all[0].number),
            (1000, Kind::Health, 1)
        );
        (0..1000).for_each(|_| events.push(Kind::Change, "u", "b", "drain".to_owned()));
        events.push(Kind::Change, "u", "b", "last".to_owned());
        assert_eq!(events.after(0).last().map(|it| &it.text[..]), Some("last"));
        assert_eq!(events.after(0).len(), 1000);
    }
}

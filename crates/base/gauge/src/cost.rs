//! The cost of measuring: CPU time that is not the servers'.
//!
//! It is the CPU time of this process. BPF programs run inside the calls and packets that they count,
//! so their time is part of the CPU time of the processes that make them.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::cpu::of_this_thread;

/// The account of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cost(BTreeMap<&'static str, QuestionCost>);

/// What one kind of question has cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QuestionCost {
    /// How often it was asked.
    pub times: u64,
    /// CPU time that this took, exact to about a microsecond each.
    pub cpu: Duration,
}

impl Cost {
    /// Asks, and books the CPU time of this thread under `what`.
    pub fn of<T>(&mut self, what: &'static str, ask: impl FnOnce() -> T) -> T {
        let before = of_this_thread();
        let answer = ask();
        let spent = self.0.entry(what).or_default();
        spent.times += 1;
        spent.cpu += of_this_thread().saturating_sub(before);
        answer
    }

    /// What each kind of question has cost, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, QuestionCost)> {
        self.0.iter().map(|(what, spent)| (*what, *spent))
    }

    /// What all have cost.
    #[must_use]
    pub fn total(&self) -> Duration {
        self.0.values().map(|spent| spent.cpu).sum()
    }

    /// The total as a share of the CPU time that was measured; `None` if that is none.
    #[must_use]
    pub fn share(&self, measured: Duration) -> Option<f64> {
        (!measured.is_zero()).then(|| self.total().div_duration_f64(measured))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_booked_and_waiting_is_not() {
        let mut cost = Cost::default();
        let (mut left, right) = std::os::unix::net::UnixStream::pair().unwrap();
        left.set_read_timeout(Some(Duration::from_millis(200)))
            .unwrap();
        let waited = cost.of("waiting", || std::io::Read::read(&mut left, &mut [0]));
        assert!(waited.is_err(), "nobody writes");
        drop(right);
        let start = of_this_thread();
        cost.of("work", || {
            while of_this_thread() - start < Duration::from_millis(20) {}
        });
        let spent: BTreeMap<_, _> = cost.iter().collect();
        assert!(spent["work"].cpu >= Duration::from_millis(20));
        assert!(spent["waiting"].cpu < spent["work"].cpu);
        assert_eq!(spent["work"].times, 1);
        assert_eq!(cost.total(), spent["work"].cpu + spent["waiting"].cpu);
        assert_eq!(cost.share(Duration::ZERO), None);
        assert!(cost.share(Duration::from_millis(20)).unwrap() >= 1.0);
    }
}

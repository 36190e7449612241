//! The facts of a run that was made in several spans.

use std::collections::BTreeMap;

use super::{Facts, LatencyFacts, MachineFacts, PathFacts, ShareFacts, SilenceFacts};

impl Facts {
    /// Joins the facts of two spans. Counts are added; shares, rates and means are weighted by time or by responses.
    /// Taking `next` apart makes the compiler ask for a rule for each new fact.
    pub(crate) fn and(self, next: Self) -> Self {
        let Self {
            expect,
            clients,
            seconds,
            completed,
            failed,
            statuses,
            non_2xx,
            kept,
            body_bytes,
            head_bytes,
            other_length,
            other_body,
            dials,
            rate,
            latency_ms,
            generator_busy,
            generator_starved,
            judges_itself,
            is_paced,
            warnings,
            silences,
            asked,
            machine,
        } = next;
        let answers = Weights([self.completed, completed].map(|count| count as f64));
        let times = Weights([self.seconds, seconds].map(Option::unwrap_or_default));
        Self {
            expect,
            clients,
            seconds: one_or_both([self.seconds, seconds], |one, other| one + other),
            completed: self.completed + completed,
            failed: self.failed + failed,
            statuses: joined_maps([self.statuses, statuses], |one, other| one + other),
            non_2xx: one_or_both([self.non_2xx, non_2xx], |one, other| one + other),
            kept: one_or_both([self.kept, kept], |one, other| one + other),
            body_bytes: answers.mean([self.body_bytes, body_bytes]),
            head_bytes: answers.mean([self.head_bytes, head_bytes]),
            other_length: self.other_length + other_length,
            other_body: self.other_body + other_body,
            dials: answers.mean([self.dials, dials]),
            rate: times.mean([self.rate, rate]),
            latency_ms: one_or_both([self.latency_ms, latency_ms], |one, other| {
                one.and(other, answers)
            }),
            generator_busy: times.mean([self.generator_busy, generator_busy]),
            generator_starved: times.mean([self.generator_starved, generator_starved]),
            judges_itself: self.judges_itself && judges_itself,
            is_paced: self.is_paced || is_paced,
            warnings: joined_maps([self.warnings, warnings], |one, _| one),
            silences: one_or_both([self.silences, silences], SilenceFacts::and),
            asked: joined_maps([self.asked, asked], |one, other| one.and(other, answers)),
            machine: one_or_both([self.machine, machine], |one, other| one.and(other, times)),
        }
    }
}

impl SilenceFacts {
    fn and(self, next: Self) -> Self {
        let longer = if next.longest_ms > self.longest_ms {
            next
        } else {
            self
        };
        Self {
            count: self.count + next.count,
            ..longer
        }
    }
}

impl PathFacts {
    fn and(self, next: Self, answers: Weights) -> Self {
        let Self {
            expected,
            counted,
            cpu_us,
        } = next;
        Self {
            expected,
            counted: answers.mean([self.counted, counted]),
            cpu_us: answers.mean([self.cpu_us, cpu_us]),
        }
    }
}

impl LatencyFacts {
    /// Joins latencies. The median of both is approximated by the mean of the two medians.
    fn and(self, next: Self, answers: Weights) -> Self {
        let Self {
            mean,
            rounding,
            stddev,
            min,
            median,
            max,
        } = next;
        Self {
            mean: answers.mean_of([self.mean, mean]),
            rounding: self.rounding.max(rounding),
            stddev: answers.mean([self.stddev, stddev]),
            // One that is not known may have been shorter.
            min: self.min.zip(min).map(|(one, other)| one.min(other)),
            median: answers.mean([self.median, median]),
            max: self.max.max(max),
        }
    }
}

impl MachineFacts {
    /// Joins the states of the machine.
    fn and(self, next: Self, times: Weights) -> Self {
        let Self {
            load_core,
            server_core,
            foreign,
            steal,
            listen_overflows,
            ports_used,
            warmed_s,
            moving,
            hidden,
            changed,
            alarms,
            compiling,
            capped,
            throttled,
            shares,
            oom_kills,
            uncounted,
            by_strace,
            own_cost,
        } = next;
        Self {
            load_core: times.mean([self.load_core, load_core]),
            server_core: times.mean([self.server_core, server_core]),
            foreign: times.mean_of([self.foreign, foreign]),
            steal: times.mean_of([self.steal, steal]),
            listen_overflows: self.listen_overflows + listen_overflows,
            ports_used: one_or_both([self.ports_used, ports_used], f64::max),
            warmed_s: self.warmed_s.or(warmed_s),
            moving: self.moving.or(moving),
            hidden: self.hidden.or(hidden),
            changed: self.changed.or(changed),
            alarms: [self.alarms, alarms].concat(),
            compiling: times.mean([self.compiling, compiling]),
            capped: [self.capped, capped].concat(),
            throttled: self.throttled + throttled,
            shares: joined_maps([self.shares, shares], |one, other| one.and(other, times)),
            oom_kills: self.oom_kills + oom_kills,
            uncounted: joined_maps([self.uncounted, uncounted], |one, _| one),
            by_strace: self.by_strace.or(by_strace),
            own_cost: times.mean([self.own_cost, own_cost]),
        }
    }
}

impl ShareFacts {
    /// Joins the parts of a core that a server has used.
    fn and(self, next: Self, times: Weights) -> Self {
        let Self {
            declared,
            used,
            is_weight,
            is_tested,
            periods,
            stopped,
        } = next;
        Self {
            declared,
            used: times.mean_of([self.used, used]),
            is_weight,
            is_tested,
            periods: self.periods + periods,
            stopped: self.stopped + stopped,
        }
    }
}

/// The weights of two spans in a mean of both.
#[derive(Clone, Copy)]
struct Weights([f64; 2]);

impl Weights {
    /// The weighted mean of two values; if one is not known, the other.
    fn mean(self, values: [Option<f64>; 2]) -> Option<f64> {
        one_or_both(values, |one, other| self.mean_of([one, other]))
    }

    fn mean_of(self, [first, second]: [f64; 2]) -> f64 {
        let Self([first_weight, second_weight]) = self;
        let sum = first_weight + second_weight;
        // Spans without responses have equal weights.
        let part_of_second = if sum > 0.0 { second_weight / sum } else { 0.5 };
        first + (second - first) * part_of_second
    }
}

/// Both values joined by `and`; if one is not known, the other.
fn one_or_both<T>([first, second]: [Option<T>; 2], and: impl FnOnce(T, T) -> T) -> Option<T> {
    match (first, second) {
        (Some(first), Some(second)) => Some(and(first, second)),
        (first, second) => first.or(second),
    }
}

/// All entries of two maps; an entry in both is joined by `and`.
fn joined_maps<K: Ord, V>(
    [mut entries, next]: [BTreeMap<K, V>; 2],
    and: impl Fn(V, V) -> V,
) -> BTreeMap<K, V> {
    for (key, value) in next {
        let joined = match entries.remove(&key) {
            Some(before) => and(before, value),
            None => value,
        };
        entries.insert(key, joined);
    }
    entries
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_added_and_shares_weighed() {
        let of = |completed: u16, seconds: f64, share: f64| Facts {
            completed: completed.into(),
            seconds: Some(seconds),
            statuses: BTreeMap::from([(200, completed.into()), (completed, 1)]),
            body_bytes: Some(share * 1000.0),
            generator_busy: Some(share),
            silences: Some(SilenceFacts {
                count: 1,
                min_ms: 100.0,
                longest_ms: share * 100.0,
                from_s: share,
            }),
            machine: Some(MachineFacts {
                foreign: share,
                throttled: 2,
                moving: (share > 0.5).then_some(share),
                alarms: vec![format!("{share}")],
                ..MachineFacts::default()
            }),
            ..Facts::default()
        };
        let both = of(100, 3.0, 0.2).and(of(300, 1.0, 0.6));
        assert_eq!((both.completed, both.seconds), (400, Some(4.0)));
        let statuses = BTreeMap::from([(100, 1), (200, 400), (300, 1)]);
        assert_eq!(both.statuses, statuses);
        assert!((both.body_bytes.unwrap() - 500.0).abs() < 1e-9);
        assert!((both.generator_busy.unwrap() - 0.3).abs() < 1e-9);
        let silences = both.silences.unwrap();
        assert_eq!((silences.count, silences.longest_ms), (2, 60.0));
        let machine = both.machine.unwrap();
        assert!((machine.foreign - 0.3).abs() < 1e-9);
        assert_eq!((machine.throttled, machine.moving), (4, Some(0.6)));
        assert_eq!(machine.alarms, ["0.2", "0.6"]);
        assert_eq!(machine.own_cost, None);
    }
}

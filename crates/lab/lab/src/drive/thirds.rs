//! Computes measures for each third of a span, so that a claim can check whether it holds in all of them.

use std::collections::BTreeMap;

use catamaran_load::document::Tick;
use catamaran_load::report::{Report, SecondFacts};

use super::stage::Stage;
use super::watch::Cpus;

/// Collects the ticks of a load generator, to compute measures for each third of its span.
#[derive(Debug, Default)]
pub(super) struct Thirds {
    moments: Vec<Moment>,
}

/// Sums since the beginning of the load, at one tick.
#[derive(Debug)]
struct Moment {
    elapsed_s: f64,
    completed: u64,
    /// The CPU time of each server in seconds; `None` if it has no group.
    cpus: Cpus,
}

/// The values of each measure, by name, in the three thirds in order.
pub(super) type ThirdValues = BTreeMap<String, [f64; 3]>;

impl Thirds {
    /// Notes a tick. The span begins at the end of the first tick, in which connections are opened.
    pub(super) fn take(&mut self, tick: &Tick, cpus: &Cpus) {
        self.moments.push(Moment {
            elapsed_s: tick.elapsed_s,
            completed: tick.completed,
            cpus: cpus.clone(),
        });
    }

    /// The measures in each third, by name; empty if the span was too short, or had no ticks.
    pub(super) fn values(&self, stage: &Stage, document: &Report) -> ThirdValues {
        let names = stage.servers.iter().map(|it| it.record.name.as_str());
        self.of(&names.collect::<Vec<_>>(), document)
    }

    /// The measures in each third; `servers` are the names of the servers whose CPU time was noted.
    fn of(&self, servers: &[&str], document: &Report) -> ThirdValues {
        let mut values = ThirdValues::new();
        let Some(parts) = self.parts() else {
            return values;
        };
        // Without any response there is nothing to compare.
        if parts.iter().all(|part| part.answers == 0.0) {
            return values;
        }
        let parts = parts.map(|part| Part {
            answers: part.answers.max(NO_ANSWER),
            ..part
        });
        let rates = parts.each_ref().map(|part| part.answers / part.seconds);
        // The schedule of an open loop decides its rate, and its latency does not follow from the rate.
        let is_open = document.rate_asked_per_s.is_some();
        if !is_open {
            values.insert("throughput".to_owned(), rates);
        }
        let mut insert = |name: String, value_of: &dyn Fn(&Part) -> Option<f64>| {
            if let [Some(first), Some(middle), Some(last)] = parts.each_ref().map(value_of) {
                values.insert(name, [first, middle, last]);
            }
        };
        insert("cpu".to_owned(), &|part| {
            let sum: Option<f64> = part.cpus.iter().copied().sum();
            Some(sum? / part.answers * MICROS)
        });
        for (number, name) in servers.iter().enumerate() {
            insert(format!("cpu.{name}"), &|part| {
                let cpu_s = (*part.cpus.get(number)?)?;
                Some(cpu_s / part.answers * MICROS)
            });
        }
        let latencies = latencies(document);
        if latencies.is_empty() && !is_open {
            // The latency of a closed loop follows from its rate by Little's law.
            let clients = document.concurrency as f64;
            let latency = rates.map(|rate| clients / rate * 1000.0);
            values.extend(PERCENTILES.map(|name| (name.to_owned(), latency)));
        }
        values.extend(latencies);
        values
    }

    /// The increases in the three thirds; `None` if there are too few moments.
    fn parts(&self) -> Option<[Part; 3]> {
        let (begin, end) = (self.moments.first()?, self.moments.last()?);
        if self.moments.len() < MOMENTS_MIN {
            return None;
        }
        let third = (end.elapsed_s - begin.elapsed_s) / 3.0;
        let is_in_first = |it: &&Moment| it.elapsed_s <= begin.elapsed_s + third + ROUNDING;
        let is_in_last = |it: &&Moment| it.elapsed_s >= end.elapsed_s - third - ROUNDING;
        let first_end = self.moments.iter().rfind(is_in_first)?;
        let last_begin = self.moments.iter().find(is_in_last)?;
        let parts = [
            Part::between(begin, first_end),
            Part::between(first_end, last_begin),
            Part::between(last_begin, end),
        ];
        parts.iter().all(|part| part.seconds > 0.0).then_some(parts)
    }
}

/// The increase of the sums in one third.
struct Part {
    seconds: f64,
    answers: f64,
    cpus: Cpus,
}

impl Part {
    fn between(begin: &Moment, end: &Moment) -> Self {
        let cpus = begin.cpus.iter().zip(&end.cpus);
        Self {
            seconds: end.elapsed_s - begin.elapsed_s,
            answers: end.completed.saturating_sub(begin.completed) as f64,
            cpus: cpus.map(|(begin, end)| Some((*end)? - (*begin)?)).collect(),
        }
    }
}

/// The percentiles of the whole seconds in each third; empty if these are too few.
fn latencies(document: &Report) -> ThirdValues {
    let whole = document.elapsed.as_secs() as usize;
    let seconds = &document.seconds[..whole.min(document.seconds.len())];
    let third = seconds.len() / 3;
    let mut latencies = ThirdValues::new();
    if third == 0 {
        return latencies;
    }
    let (first, others) = seconds.split_at(third);
    let (middle, last) = others.split_at(others.len() - third);
    let percentiles: [fn(&SecondFacts) -> Option<u64>; 2] =
        [|second| second.p50_us, |second| second.p99_us];
    for (name, micros) in PERCENTILES.into_iter().zip(percentiles) {
        // The mean in milliseconds; `None` if any second has no percentile.
        let mean = |part: &[SecondFacts]| {
            let sum = part.iter().map(micros).sum::<Option<u64>>()?;
            Some(sum as f64 / part.len() as f64 / 1000.0)
        };
        if let (Some(first), Some(middle), Some(last)) = (mean(first), mean(middle), mean(last)) {
            latencies.insert(name.to_owned(), [first, middle, last]);
        }
    }
    latencies
}

/// The percentiles that a report has for each second.
const PERCENTILES: [&str; 2] = ["p50", "p99"];

/// The least number of moments: one value for each third.
const MOMENTS_MIN: usize = 4;

/// The time by which a tick may be late, in seconds.
const ROUNDING: f64 = 0.05;

/// The number of responses assumed in a third that has none: its rate must be a number, lower than any other.
const NO_ANSWER: f64 = 0.5;

const MICROS: f64 = 1e6;

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn thirds(seconds: f64, rate: fn(f64) -> f64, cpu: fn(f64) -> f64) -> Thirds {
        let mut thirds = Thirds::default();
        let mut tick = Tick::default();
        let mut cpu_s = 0.0;
        while tick.elapsed_s < seconds - 0.1 {
            tick.elapsed_s += 0.2;
            let answers = rate(tick.elapsed_s) * 0.2;
            tick.completed += answers.round() as u64;
            cpu_s += answers * cpu(tick.elapsed_s);
            thirds.take(&tick, &vec![Some(cpu_s), Some(2.0 * cpu_s)]);
        }
        thirds
    }

    fn second(micros: u64) -> SecondFacts {
        SecondFacts {
            p50_us: Some(micros),
            p99_us: Some(10 * micros),
            ..Default::default()
        }
    }

    #[test]
    fn a_measure_has_its_own_beginning_and_end() {
        let rate = |at| match at {
            ..2.1 => 1000.0,
            ..4.3 => 4000.0,
            _ => 2000.0,
        };
        let cpu = |at| match at {
            ..2.1 => 20e-6,
            ..4.3 => 40e-6,
            _ => 10e-6,
        };
        let mut document = Report {
            concurrency: 10,
            elapsed: Duration::from_secs(6),
            seconds: [4, 4, 6, 6, 2, 2].map(|ms| second(ms * 1000)).to_vec(),
            ..Report::default()
        };
        let servers = ["app", "front"];
        let values = thirds(6.0, rate, cpu).of(&servers, &document);
        for (name, expected) in [
            ("throughput", [1000.0, 4000.0, 2000.0]),
            ("cpu", [60.0, 120.0, 30.0]),
            ("cpu.app", [20.0, 40.0, 10.0]),
            ("cpu.front", [40.0, 80.0, 20.0]),
            ("p50", [4.0, 6.0, 2.0]),
            ("p99", [40.0, 60.0, 20.0]),
        ] {
            for (found, expected) in values[name].into_iter().zip(expected) {
                assert!((found / expected - 1.0).abs() < 0.01, "{name} {values:?}");
            }
        }
        // Of two seconds no third is whole: the rate says what latencies are.
        document.elapsed = Duration::from_secs(2);
        let short = thirds(2.0, |_| 1000.0, cpu).of(&servers, &document);
        assert!((short["p99"][0] - 10.0).abs() < 0.1, "{short:?}");
        // By a schedule the rate is the schedule's.
        document.rate_asked_per_s = Some(1000.0);
        let open = thirds(2.0, |_| 1000.0, cpu).of(&servers, &document);
        assert!(open.contains_key("cpu") && open.len() == 3, "{open:?}");
    }

    #[test]
    fn a_span_of_a_few_ticks_has_no_thirds() {
        let document = Report::default();
        assert!(Thirds::default().of(&[], &document).is_empty());
        let few = thirds(0.6, |_| 1000.0, |_| 1e-6);
        assert!(few.of(&["app", "front"], &document).is_empty());
        let dead = thirds(3.0, |_| 0.0, |_| 1e-6);
        assert!(dead.of(&["app", "front"], &document).is_empty());
    }

    /// A server that does not respond for a third has another rate there, not a missing one.
    #[test]
    fn a_third_without_an_answer_has_a_level() {
        let rate = |at| if at < 3.1 { 0.0 } else { 1000.0 };
        let values = thirds(9.0, rate, |_| 1e-6).of(&["app", "front"], &Report::default());
        let [first, middle, last] = values["throughput"];
        assert!(0.0 < first && first < 1.0, "{values:?}");
        assert!(middle > 900.0 && last > 900.0, "{values:?}");
    }
}

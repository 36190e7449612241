//! What measures come to in the first third of a span and in its last, so that a claim can ask whether it depends on when
//! one looks.

use std::collections::BTreeMap;

use catamaran_load::document::{Document, Tick};

use super::stage::Stage;
use super::watch::Cpus;

/// Takes what a load generator tells on its way.
#[derive(Debug, Default)]
pub(super) struct Thirds {
    moments: Vec<Moment>,
}

/// Sums since the beginning.
#[derive(Debug)]
struct Moment {
    elapsed_s: f64,
    completed: u64,
    /// CPU time of each server in seconds, `None` if it has no group.
    cpus: Cpus,
}

/// The values of a measure in the first third and in the last.
pub(super) type Ends = BTreeMap<String, [f64; 2]>;

impl Thirds {
    /// The first tick has the connecting in it: the span begins at its end.
    pub(super) fn take(&mut self, tick: &Tick, cpus: &Cpus) {
        self.moments.push(Moment {
            elapsed_s: tick.elapsed_s,
            completed: tick.completed,
            cpus: cpus.clone(),
        });
    }

    /// By the name of the measure; empty if the span was too short, or nobody told how far it was.
    pub(super) fn ends(&self, stage: &Stage, document: &Document) -> Ends {
        let names = stage.servers.iter().map(|it| it.record.name.as_str());
        self.of(&names.collect::<Vec<_>>(), document)
    }

    fn of(&self, servers: &[&str], document: &Document) -> Ends {
        let mut ends = Ends::new();
        let Some([first, last]) = self.parts() else {
            return ends;
        };
        let parts = [first, last].map(|(from, to)| Part {
            seconds: to.elapsed_s - from.elapsed_s,
            answers: to.completed.saturating_sub(from.completed) as f64,
            cpus: from
                .cpus
                .iter()
                .zip(&to.cpus)
                .map(|(from, to)| Some((*to)? - (*from)?))
                .collect(),
        });
        if parts.iter().any(|part| part.answers == 0.0) {
            return ends;
        }
        let rates = [&parts[0], &parts[1]].map(|part| part.answers / part.seconds);
        let is_open = document.rate_asked_per_s.is_some();
        if !is_open {
            ends.insert("throughput".to_owned(), rates);
        }
        let mut put = |name: String, of: &dyn Fn(&Part) -> Option<f64>| {
            if let [Some(first), Some(last)] = [of(&parts[0]), of(&parts[1])] {
                ends.insert(name, [first, last]);
            }
        };
        put("cpu".to_owned(), &|part| {
            let all: Option<f64> = part.cpus.iter().copied().sum();
            Some(all? / part.answers * MICROS)
        });
        for (number, name) in servers.iter().enumerate() {
            put(format!("cpu.{name}"), &|part| {
                Some((*part.cpus.get(number)?)? / part.answers * MICROS)
            });
        }
        let seconds = latencies(document);
        if seconds.is_empty() && !is_open {
            // By Little's law a closed loop's latency is what its rate says.
            let clients = document.concurrency as f64;
            let latency = rates.map(|rate| clients / rate * 1000.0);
            ends.extend(PERCENTILES.map(|name| (name.to_owned(), latency)));
        }
        ends.extend(seconds);
        ends
    }

    /// Where the first third begins and ends, and the last one.
    fn parts(&self) -> Option<[(&Moment, &Moment); 2]> {
        let (begin, end) = (self.moments.first()?, self.moments.last()?);
        if self.moments.len() < MOMENTS_MIN {
            return None;
        }
        let third = (end.elapsed_s - begin.elapsed_s) / 3.0;
        let is_first = |it: &&Moment| it.elapsed_s <= begin.elapsed_s + third + ROUNDING;
        let is_last = |it: &&Moment| it.elapsed_s >= end.elapsed_s - third - ROUNDING;
        let first = self.moments.iter().rfind(is_first)?;
        let last = self.moments.iter().find(is_last)?;
        let has_length = |from: &Moment, to: &Moment| to.elapsed_s > from.elapsed_s;
        let is_whole = has_length(begin, first) && has_length(last, end);
        is_whole.then_some([(begin, first), (last, end)])
    }
}

/// What happened in a third.
struct Part {
    seconds: f64,
    answers: f64,
    cpus: Cpus,
}

/// Percentiles of the whole seconds in the first third and in the last; none if these are too few.
fn latencies(document: &Document) -> Ends {
    let whole = document.elapsed_s as usize;
    let seconds = &document.seconds[..whole.min(document.seconds.len())];
    let third = seconds.len() / 3;
    let sides = [&seconds[..third], &seconds[seconds.len() - third..]];
    let of = |micros: fn(&catamaran_load::document::SecondFacts) -> Option<u64>| {
        let mean = |side: &[catamaran_load::document::SecondFacts]| {
            let sum: u64 = side.iter().map(micros).sum::<Option<u64>>()?;
            (!side.is_empty()).then(|| sum as f64 / side.len() as f64 / 1000.0)
        };
        Some([mean(sides[0])?, mean(sides[1])?])
    };
    let all = PERCENTILES
        .into_iter()
        .zip([of(|second| second.p50_us), of(|second| second.p99_us)]);
    all.filter_map(|(name, ends)| Some((name.to_owned(), ends?)))
        .collect()
}

/// Those that seconds have.
const PERCENTILES: [&str; 2] = ["p50", "p99"];

/// A value for each third at least.
const MOMENTS_MIN: usize = 4;

/// A tick may come so many seconds late.
const ROUNDING: f64 = 0.05;

const MICROS: f64 = 1e6;

#[cfg(test)]
mod tests {
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

    fn second(micros: u64) -> catamaran_load::document::SecondFacts {
        catamaran_load::document::SecondFacts {
            p50_us: Some(micros),
            p99_us: Some(10 * micros),
            ..Default::default()
        }
    }

    #[test]
    fn a_measure_has_its_own_beginning_and_end() {
        let rate = |at| if at < 3.1 { 1000.0 } else { 2000.0 };
        let cpu = |at| if at < 3.1 { 20e-6 } else { 10e-6 };
        let mut document = Document {
            concurrency: 10,
            elapsed_s: 6.0,
            seconds: [4, 4, 4, 2, 2, 2].map(|ms| second(ms * 1000)).to_vec(),
            ..Document::default()
        };
        let servers = ["app", "front"];
        let ends = thirds(6.0, rate, cpu).of(&servers, &document);
        for (name, expected) in [
            ("throughput", [1000.0, 2000.0]),
            ("cpu", [60.0, 30.0]),
            ("cpu.app", [20.0, 10.0]),
            ("cpu.front", [40.0, 20.0]),
            ("p50", [4.0, 2.0]),
            ("p99", [40.0, 20.0]),
        ] {
            let [first, last] = ends[name];
            assert!((first / expected[0] - 1.0).abs() < 0.01, "{name} {ends:?}");
            assert!((last / expected[1] - 1.0).abs() < 0.01, "{name} {ends:?}");
        }
        // Of two seconds no third is whole: the rate says what latencies are.
        document.elapsed_s = 2.0;
        let short = thirds(2.0, |_| 1000.0, cpu).of(&servers, &document);
        assert!((short["p99"][0] - 10.0).abs() < 0.1, "{short:?}");
        // By a schedule the rate is the schedule's.
        document.rate_asked_per_s = Some(1000.0);
        let open = thirds(2.0, |_| 1000.0, cpu).of(&servers, &document);
        assert!(open.contains_key("cpu") && open.len() == 3, "{open:?}");
    }

    #[test]
    fn a_span_of_a_few_ticks_has_no_thirds() {
        let document = Document::default();
        assert!(Thirds::default().of(&[], &document).is_empty());
        let few = thirds(0.6, |_| 1000.0, |_| 1e-6);
        assert!(few.of(&["app", "front"], &document).is_empty());
        let dead = thirds(3.0, |_| 0.0, |_| 1e-6);
        assert!(dead.of(&["app", "front"], &document).is_empty());
    }
}

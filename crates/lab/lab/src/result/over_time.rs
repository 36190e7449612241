//! The values of one run second by second, for plots: from its samples and its load, thinned.

use std::collections::BTreeMap;

use catamaran_gauge::network::Interface;
use catamaran_gauge::system::Disk;
use catamaran_stats::Spread;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::ResultDocument;
use crate::run::{Run, median_run};
use crate::sample::Sample;

/// One run of a cell over time: the valid run with the cell's median throughput (the lower one of two).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct OverTime {
    /// The run's round, counted from 0.
    pub round: usize,
    /// The boundaries of the sampled values, in seconds since the load began: one more than there are values.
    pub edges_s: Values,
    /// The values by name. From the load, for seconds from 0 on: `answers` (1/s) and `p99` (ms).
    /// From samples, at the places in `edges_s`: `cpu.user`, `.system`, `.wait`, `.steal` (% of all
    /// cores), `server.NAME` (% of a core), `network.sent` (MiB/s), `network.packets` (1/s, sent),
    /// `disk.read`, `.written` (MiB/s), `.transfers` (1/s), `memory.free`, `.slab`, `.tcp` (MiB),
    /// `heap.NAME` (MiB), `collecting.NAME` (ms/s).
    pub rows: BTreeMap<String, Values>,
    /// The spans without a response, in the order of time: from and to of each, in seconds since the load began.
    #[serde(default, skip_serializing_if = "Values::is_empty")]
    pub silences_s: Values,
    /// The number of seconds that each value of `answers` and `p99` covers: 1 unless they were thinned.
    #[serde(default = "every_second")]
    pub answers_every: usize,
}

/// Numbers with three digits. In JSON they are one text, separated by spaces, which takes a fifth of the space.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Values(pub Vec<f64>);

impl Values {
    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl ResultDocument {
    /// Adds to each cell its median run over time. `samples` returns the lines of `samples.jsonl`
    /// for the number of a run, counted from 0; runs without samples are left out.
    pub fn add_over_time(&mut self, runs: &[Run], samples: impl Fn(usize) -> Option<String>) {
        // A published form has few cells, and its plots are compared with curves of a minute and more.
        let values_max = if self.is_published {
            PUBLISHED_VALUES_MAX
        } else {
            VALUES_MAX
        };
        for (cell, result) in self.cells.iter_mut().enumerate() {
            result.over_time = median_run(runs, cell).and_then(|(number, run)| {
                let text = samples(number)?;
                let lines = text.lines();
                let samples = lines.map_while(|line| serde_json::from_str(line).ok());
                OverTime::of(run, &samples.collect::<Vec<Sample>>(), values_max)
            });
        }
    }
}

impl OverTime {
    /// The values of a run with its samples, at most `values_max` in each row; `None` with fewer than two samples.
    fn of(run: &Run, samples: &[Sample], values_max: usize) -> Option<Self> {
        let samples = with_joined_end(samples);
        let [first, .., last] = &samples[..] else {
            return None;
        };
        let started_at_s = if run.started_at_s > 0.0 {
            run.started_at_s
        } else {
            first.time_s
        };
        let spans = samples.len() - 1;
        let thinned = samples[..spans].iter().step_by(spans.div_ceil(values_max));
        let kept: Vec<&Sample> = thinned.chain([last]).copied().collect();
        let mut rows = BTreeMap::new();
        for pair in kept.windows(2) {
            for (name, value) in values(pair[0], pair[1]) {
                let row: &mut Values = rows.entry(name).or_default();
                row.0.push(value);
            }
        }
        let answers_every = run.seconds.len().div_ceil(values_max).max(1);
        rows.extend(of_load(run, answers_every));
        // A row that some samples lack, such as of a server that was started again, would have other boundaries.
        let is_whole = |name: &str, row: &Values| is_of_load(name) || row.0.len() + 1 == kept.len();
        rows.retain(|name, row| !row.0.is_empty() && is_whole(name, row));
        let edges = kept
            .iter()
            .map(|sample| (sample.time_s - started_at_s).max(0.0));
        Some(Self {
            round: run.round,
            edges_s: Values(edges.collect()),
            rows,
            silences_s: Values(run.silences.concat()),
            answers_every,
        })
    }

    /// The spans without a response, each from and to.
    #[must_use]
    pub fn silences(&self) -> Vec<(f64, f64)> {
        let spans = self.silences_s.0.chunks_exact(2);
        spans.map(|span| (span[0], span[1])).collect()
    }

    /// The boundaries of the values in the row `name`, in seconds since the load began.
    #[must_use]
    pub fn edges(&self, name: &str) -> Vec<f64> {
        if !is_of_load(name) {
            return self.edges_s.0.clone();
        }
        let count = self.rows.get(name).map_or(0, |row| row.0.len());
        let edges = 0..=count;
        edges
            .map(|edge| (edge * self.answers_every) as f64)
            .collect()
    }
}

/// The samples, without the last one but one if the interval after it is short: the last sample is taken when the load
/// ends, not at a whole second.
fn with_joined_end(samples: &[Sample]) -> Vec<&Sample> {
    let mut joined: Vec<&Sample> = samples.iter().collect();
    if let [.., before, last_but_one, end] = samples {
        let last_span = end.time_s - last_but_one.time_s;
        if last_span < (last_but_one.time_s - before.time_s) / 2.0 {
            joined.remove(joined.len() - 2);
        }
    }
    joined
}

/// Whether the row `name` is from the load generator's report, and not from samples.
fn is_of_load(name: &str) -> bool {
    ["answers", "p99"].contains(&name)
}

/// The responses and percentiles of each second, or their means over `every` seconds.
fn of_load(run: &Run, every: usize) -> [(String, Values); 2] {
    let means = |values: Vec<f64>| {
        let parts = values.chunks_exact(every);
        let part_means = parts.filter_map(|part| Some(Spread::of(part)?.mean));
        Values(part_means.collect())
    };
    let answers = run
        .seconds
        .iter()
        .map(|second| second.completed as f64)
        .collect();
    // A second without a response has no percentile; then the row is left out.
    let p99: Option<Vec<f64>> = run.seconds.iter().map(|second| second.p99_ms).collect();
    [
        ("answers".to_owned(), means(answers)),
        ("p99".to_owned(), means(p99.unwrap_or_default())),
    ]
}

/// The values between two samples, by name; a level, such as memory, is that of the later sample.
fn values(before: &Sample, after: &Sample) -> Vec<(String, f64)> {
    let span = (after.time_s - before.time_s).max(1e-9);
    let mut values = Vec::new();
    let mut put = |name: &str, value: f64| values.push((name.to_owned(), value));
    let cores = |time| after.cores_since(before, time);
    let total = cores(|core| core.total);
    if total > 0.0 {
        put("cpu.user", cores(|core| core.user) / total * 100.0);
        put("cpu.system", cores(|core| core.system) / total * 100.0);
        put("cpu.wait", cores(|core| core.wait) / total * 100.0);
        put("cpu.steal", cores(|core| core.steal) / total * 100.0);
    }
    // On a loopback interface the bytes received are the same as those sent.
    let network = |counter: fn(&Interface) -> u64| {
        increase(&before.interfaces, &after.interfaces, counter) / span
    };
    if !after.interfaces.is_empty() {
        put("network.sent", network(|it| it.sent_bytes) / MIB);
        put("network.packets", network(|it| it.sent_packets));
    }
    let disks = |counter: fn(&Disk) -> u64| increase(&before.disks, &after.disks, counter) / span;
    if !after.disks.is_empty() {
        put("disk.read", disks(|it| it.read_bytes) / MIB);
        put("disk.written", disks(|it| it.written_bytes) / MIB);
        put("disk.transfers", disks(|it| it.reads + it.writes));
    }
    if after.memory.total > 0 {
        put("memory.free", after.memory.free as f64 / MIB);
        put("memory.slab", after.memory.slab as f64 / MIB);
    }
    put("memory.tcp", after.tcp_bytes as f64 / MIB);
    for (name, cpu) in &after.servers {
        let used = cpu - before.servers.get(name).unwrap_or(cpu);
        put(&format!("server.{name}"), used / span * 100.0);
    }
    for (name, jvm) in &after.jvms {
        put(&format!("heap.{name}"), jvm.heap as f64 / MIB);
        let jvm_before = before.jvms.get(name).unwrap_or(jvm);
        let collecting_s = (jvm.collecting_s - jvm_before.collecting_s).max(0.0);
        put(&format!("collecting.{name}"), collecting_s / span * 1000.0);
    }
    values
}

/// The sum of the increases of a counter, over the names that are in both samples.
fn increase<T>(
    before: &BTreeMap<String, T>,
    after: &BTreeMap<String, T>,
    counter: fn(&T) -> u64,
) -> f64 {
    let mut sum = 0;
    for (name, device_after) in after {
        if let Some(device_before) = before.get(name) {
            sum += counter(device_after).saturating_sub(counter(device_before));
        }
    }
    sum as f64
}

impl Serialize for Values {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let words: Vec<String> = self.0.iter().map(|value| three_digits(*value)).collect();
        serializer.serialize_str(&words.join(" "))
    }
}

impl<'de> Deserialize<'de> for Values {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let values: Result<Vec<f64>, _> = text.split_whitespace().map(str::parse).collect();
        values.map(Self).map_err(serde::de::Error::custom)
    }
}

/// The number as a plot needs it: with three digits from 1 to 100, to thousandths below 1, and as a
/// whole number above 100.
fn three_digits(value: f64) -> String {
    let places = match value.abs() {
        size if size >= 99.95 => 0,
        size if size >= 9.995 => 1,
        size if size >= 0.9995 => 2,
        _ => 3,
    };
    let text = format!("{value:.places$}");
    if text.contains('.') {
        return text.trim_end_matches('0').trim_end_matches('.').to_owned();
    }
    text
}

/// The default of [`OverTime::answers_every`]: values were not thinned.
fn every_second() -> usize {
    1
}

const MIB: f64 = 1_048_576.0;

/// The most values in a row: more are thinned, since a panel is about 130 pixels wide.
const VALUES_MAX: usize = 30;

/// The most values in a row for a published form, which has few cells.
const PUBLISHED_VALUES_MAX: usize = 90;

#[cfg(test)]
mod tests {
    use catamaran_gauge::system::Memory;

    use super::*;
    use crate::run::Second;
    use crate::sample::{CoreSample, JvmSample};

    /// A machine that is half busy, with one server and its collections of 30 ms a second.
    fn sample(time_s: f64) -> Sample {
        let core = CoreSample {
            user: time_s * 0.25,
            system: time_s * 0.125,
            wait: time_s * 0.0625,
            steal: 0.0,
            total: time_s,
        };
        let counted = (time_s * 8.0) as u64;
        let lo = Interface {
            sent_bytes: counted << 20,
            sent_packets: counted * 100,
            ..Interface::default()
        };
        let disk = Disk {
            reads: counted,
            writes: counted,
            written_bytes: counted << 19,
            ..Disk::default()
        };
        let jvm = JvmSample {
            heap: 64 << 20,
            collecting_s: time_s * 0.03,
            ..JvmSample::default()
        };
        Sample {
            time_s: 1000.0 + time_s,
            cores: vec![core, core],
            memory: Memory {
                total: 4 << 30,
                free: 2 << 30,
                slab: 80 << 20,
                ..Memory::default()
            },
            tcp_bytes: 3 << 20,
            interfaces: [("lo".to_owned(), lo)].into(),
            disks: [("vda".to_owned(), disk)].into(),
            servers: [("web".to_owned(), time_s * 0.9)].into(),
            jvms: [("web".to_owned(), jvm)].into(),
        }
    }

    fn run(rate: f64, seconds: usize) -> Run {
        Run {
            started_at_s: 1000.25,
            measures: [("throughput".to_owned(), rate)].into(),
            seconds: vec![
                Second {
                    completed: rate as u64,
                    p99_ms: Some(4.0)
                };
                seconds
            ],
            ..Run::default()
        }
    }

    #[test]
    fn counters_become_rates_and_levels_stay() {
        let samples = [sample(0.0), sample(1.0), sample(2.0)];
        let run = Run {
            silences: vec![[0.25, 0.5], [1.0, 2.0]],
            ..run(500.0, 2)
        };
        let over = OverTime::of(&run, &samples, VALUES_MAX).unwrap();
        assert_eq!(over.silences(), [(0.25, 0.5), (1.0, 2.0)]);
        assert_eq!(over.edges_s.0, [0.0, 0.75, 1.75]);
        for (name, expected) in [
            ("answers", 500.0),
            ("p99", 4.0),
            ("cpu.user", 25.0),
            ("cpu.system", 12.5),
            ("cpu.wait", 6.25),
            ("cpu.steal", 0.0),
            ("server.web", 90.0),
            ("network.sent", 8.0),
            ("network.packets", 800.0),
            ("disk.read", 0.0),
            ("disk.written", 4.0),
            ("disk.transfers", 16.0),
            ("memory.free", 2048.0),
            ("memory.slab", 80.0),
            ("memory.tcp", 3.0),
            ("heap.web", 64.0),
            ("collecting.web", 30.0),
        ] {
            let row = &over.rows[name].0;
            assert_eq!(row.len(), 2, "{name}");
            assert!(
                row.iter().all(|it| (it - expected).abs() < 1e-6),
                "{name} {row:?}"
            );
        }
        assert_eq!(over.rows.len(), 17);
        assert_eq!(over.edges("answers"), [0.0, 1.0, 2.0]);
        assert_eq!(over.edges("heap.web"), over.edges_s.0);
    }

    #[test]
    fn a_short_rest_belongs_to_the_second_before() {
        let samples = [sample(0.0), sample(1.0), sample(2.0), sample(2.125)];
        let over = OverTime::of(&run(1.0, 2), &samples, VALUES_MAX).unwrap();
        assert_eq!(over.edges_s.0, [0.0, 0.75, 1.875]);
        let halves = [sample(0.0), sample(1.0), sample(1.75)];
        assert_eq!(
            OverTime::of(&run(1.0, 1), &halves, VALUES_MAX)
                .unwrap()
                .edges_s
                .0
                .len(),
            3
        );
        let short = [sample(0.0), sample(0.25)];
        assert_eq!(
            OverTime::of(&run(1.0, 0), &short, VALUES_MAX)
                .unwrap()
                .edges_s
                .0
                .len(),
            2
        );
        assert_eq!(OverTime::of(&run(1.0, 0), &samples[..1], VALUES_MAX), None);
    }

    #[test]
    fn a_long_run_is_thinned_and_keeps_its_ends() {
        let samples: Vec<Sample> = (0..=100).map(|second| sample(f64::from(second))).collect();
        let long = OverTime::of(&run(500.0, 60), &samples[..=60], PUBLISHED_VALUES_MAX).unwrap();
        assert_eq!(
            long.rows["memory.free"].0.len(),
            60,
            "a minute of a published form is whole"
        );
        let over = OverTime::of(&run(500.0, 100), &samples, VALUES_MAX).unwrap();
        assert_eq!(over.answers_every, 4);
        assert_eq!(over.edges("answers").last(), Some(&100.0));
        assert_eq!(over.edges_s.0.last(), Some(&99.75));
        assert!(over.edges_s.0.len() <= VALUES_MAX + 1);
        assert!(over.rows.values().all(|row| row.0.len() <= VALUES_MAX));
        assert!((over.rows["network.sent"].0[7] - 8.0).abs() < 1e-9);
        let text = serde_json::to_string_pretty(&over).unwrap();
        assert!(text.len() < 3_500, "{} bytes: {text}", text.len());
    }

    #[test]
    fn values_are_one_text_and_read_again() {
        let values = Values(vec![0.0, 0.0624, 3.2751, 25.0, 123_456.7, -0.25]);
        let text = serde_json::to_string(&values).unwrap();
        assert_eq!(text, "\"0 0.062 3.28 25 123457 -0.25\"");
        let read: Values = serde_json::from_str(&text).unwrap();
        assert_eq!(read.0, [0.0, 0.062, 3.28, 25.0, 123_457.0, -0.25]);
        assert!(serde_json::from_str::<Values>("\"1 x\"").is_err());
        let empty: Values = serde_json::from_str("\"\"").unwrap();
        assert_eq!(empty, Values::default());
    }

    #[test]
    fn the_median_run_is_shown_if_it_has_samples() {
        let runs = [run(9.0, 1), run(5.0, 1), run(7.0, 1), run(1.0, 1)];
        assert_eq!(median_run(&runs, 0).unwrap().0, 1);
        assert_eq!(median_run(&runs[..3], 0).unwrap().0, 2);
        assert!(median_run(&runs, 1).is_none());
    }
}

//! How much CPU a front spends on one small response.
//!
//! Rounds are interleaved: each has one measurement of every front, in an order that changes, so
//! that a busy moment of the machine meets all alike. CPU time per request is the figure to look
//! at; requests per second also depend on the load generator, which shares a core with the backend.

use std::time::Duration;

use catamaran_gauge::cpu::{self, Cpu};
use catamaran_gauge::system::{self, Core};

use super::contender::{Contender, FRONT_CORE, Front, LOAD_CORE};
use super::series::{Spread, ratios};
use super::table::Table;
use super::wrk;
use crate::step::say;

/// One measurement of one front.
#[derive(Clone, Copy, Debug)]
struct Sample {
    load: wrk::Report,
    /// Of the front.
    cpu: Cpu,
    /// The front's CPU time as a share of the time that passed.
    front_busy: f64,
    /// How busy the core of load and backend was.
    load_busy: f64,
    /// CPU time of programs that have nothing to do with this, as a share of both cores.
    foreign: f64,
}

/// The samples of one front, a slot for each round; empty where the round was invalid.
#[derive(Debug)]
struct Series {
    contender: Contender,
    samples: Vec<Option<Sample>>,
}

/// Measures, and prints the tables.
pub(super) fn run(fronts: &[Front], rounds: usize, seconds: u32) -> anyhow::Result<()> {
    say(&format!(
        "\n== page: {rounds} rounds of {seconds} s, {} connections, 347 bytes",
        wrk::CONNECTIONS
    ));
    let mut all: Vec<Series> = fronts.iter().map(Series::new).collect();
    for front in fronts {
        wrk::run(front.address, WARM_UP_SECONDS)?;
    }
    for round in 0..rounds {
        for place in order(fronts.len(), round) {
            let sample = measure(&fronts[place], seconds)?;
            all[place].take(sample, round);
        }
    }
    say(&costs(&all).render());
    say(&comparison(&all).render());
    say(NOTE);
    for warning in warnings(&all) {
        say(&format!("warning: {warning}"));
    }
    Ok(())
}

/// Who comes when: everybody once, each round beginning elsewhere, every other one backwards.
pub(super) fn order(fronts: usize, round: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..fronts).collect();
    order.rotate_left(round % fronts.max(1));
    if round % 2 == 1 {
        order.reverse();
    }
    order
}

fn measure(front: &Front, seconds: u32) -> anyhow::Result<Sample> {
    let now = || -> anyhow::Result<(Cpu, Cpu, Vec<Core>)> {
        let all = cpu::of_tree(std::process::id())?;
        Ok((cpu::of_tree(front.server.pid())?, all, system::cores()?))
    };
    let (cpu_before, all_before, cores_before) = now()?;
    let load = wrk::run(front.address, seconds)?;
    let (cpu_after, all_after, cores_after) = now()?;
    let passed = |core: usize| cores_after[core] - cores_before[core];
    let (front_core, load_core) = (passed(FRONT_CORE), passed(LOAD_CORE));
    let cpu = cpu_after - cpu_before;
    let ours = (all_after - all_before).total();
    let taken = |core: Core| core.busy() + core.steal;
    let foreign = (taken(front_core) + taken(load_core)).saturating_sub(ours);
    Ok(Sample {
        load,
        cpu,
        front_busy: cpu.total().div_duration_f64(front_core.total),
        load_busy: load_core.busy().div_duration_f64(load_core.total),
        foreign: foreign.div_duration_f64(front_core.total + load_core.total),
    })
}

impl Sample {
    fn is_valid(&self) -> bool {
        self.load.socket_errors == 0 && self.load.bad_statuses == 0
    }

    /// Microseconds of CPU for each request.
    fn cost(&self) -> f64 {
        self.per_request(self.cpu.total())
    }

    #[expect(clippy::cast_precision_loss, reason = "requests of some seconds")]
    fn per_request(&self, used: Duration) -> f64 {
        used.as_secs_f64() * 1e6 / self.load.requests.max(1) as f64
    }
}

impl Series {
    fn new(front: &Front) -> Self {
        Self {
            contender: front.contender,
            samples: Vec::new(),
        }
    }

    fn take(&mut self, sample: Sample, round: usize) {
        if !sample.is_valid() {
            say(&format!(
                "round {} of {} is invalid: {} socket errors, {} bad statuses",
                round + 1,
                self.contender.name(),
                sample.load.socket_errors,
                sample.load.bad_statuses
            ));
        }
        self.samples.push(Some(sample).filter(Sample::is_valid));
    }

    fn spread(&self, figure: impl Fn(&Sample) -> f64) -> Option<Spread> {
        Spread::of(self.samples.iter().flatten().map(figure))
    }

    fn median(&self, figure: impl Fn(&Sample) -> f64) -> f64 {
        self.spread(figure).map_or(f64::NAN, |spread| spread.median)
    }

    fn costs(&self) -> Vec<Option<f64>> {
        let costs = self
            .samples
            .iter()
            .map(|sample| Some(sample.as_ref()?.cost()));
        costs.collect()
    }

    /// Whether the front had time left while load and backend had none.
    fn is_starved(&self) -> bool {
        let (front, load) = (self.median(|s| s.front_busy), self.median(|s| s.load_busy));
        front < SATURATED && load >= SATURATED
    }

    fn is_disturbed(&self) -> bool {
        self.median(|s| s.foreign) > FOREIGN_MAX
    }
}

/// What the reader of the tables must know, with whom it concerns.
fn warnings(all: &[Series]) -> Vec<String> {
    let concerned = |what: fn(&Series) -> bool| {
        let names = all.iter().filter(|series| what(series));
        names
            .map(|series| series.contender.name())
            .collect::<Vec<_>>()
            .join(", ")
    };
    let starved = concerned(Series::is_starved);
    let disturbed = concerned(Series::is_disturbed);
    let mut warnings = Vec::new();
    if !starved.is_empty() {
        warnings.push(format!(
            "the core of load and backend was the bottleneck: requests per second and percentiles \
             are not the front's own: {starved}"
        ));
    }
    if !disturbed.is_empty() {
        warnings.push(format!(
            "other programs took more than {:.0} % of both cores (foreign): {disturbed}",
            FOREIGN_MAX * 100.0
        ));
    }
    warnings
}

fn costs(all: &[Series]) -> Table {
    let mut table = Table::new(&[
        "front",
        "rounds",
        "req/s",
        "p50 ms",
        "p99 ms",
        "CPU µs/request",
        "user",
        "system",
        "front busy",
        "load busy",
        "foreign",
    ]);
    for series in all {
        let percent =
            |figure: fn(&Sample) -> f64| format!("{:.0} %", series.median(figure) * 100.0);
        let cost = series.spread(Sample::cost);
        table.push(vec![
            series.contender.name().to_owned(),
            series.samples.iter().flatten().count().to_string(),
            format!("{:.0}", series.median(|s| s.load.per_second)),
            format!("{:.2}", series.median(|s| milliseconds(s.load.p50))),
            format!("{:.2}", series.median(|s| milliseconds(s.load.p99))),
            cost.map_or_else(String::new, |cost| format!("{cost:.1}")),
            format!("{:.1}", series.median(|s| s.per_request(s.cpu.user))),
            format!("{:.1}", series.median(|s| s.per_request(s.cpu.system))),
            percent(|s| s.front_busy),
            percent(|s| s.load_busy),
            percent(|s| s.foreign),
        ]);
    }
    table
}

/// What each of ours costs, as a share of every other.
fn comparison(all: &[Series]) -> Table {
    let ours = [Contender::OursAjp, Contender::OursHttp];
    let ours: Vec<&Series> = all.iter().filter(|s| ours.contains(&s.contender)).collect();
    let names = ours.iter().map(|series| series.contender.name());
    let heading: Vec<&str> = std::iter::once("CPU/request of ours / theirs")
        .chain(names)
        .collect();
    let mut table = Table::new(&heading);
    for theirs in all {
        let cells = ours.iter().map(|ours| {
            let ratio = ratios(&ours.costs(), &theirs.costs());
            ratio.map_or_else(String::new, |ratio| format!("{ratio:.2}"))
        });
        let name = theirs.contender.name().to_owned();
        table.push(std::iter::once(name).chain(cells).collect());
    }
    table
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

const NOTE: &str = "Medians over rounds [lowest..highest]; ratios are made within each round. CPU is \
utime+stime of all\nprocesses of the front. The load is closed: percentiles are those of a front under \
all it can take.";

const WARM_UP_SECONDS: u32 = 1;
/// Busier than this, a core had nothing left to give.
const SATURATED: f64 = 0.95;
/// More foreign CPU time than this is worth a word.
const FOREIGN_MAX: f64 = 0.05;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_round_has_everybody_once_in_another_order() {
        assert_eq!(order(4, 0), [0, 1, 2, 3]);
        assert_eq!(order(4, 1), [0, 3, 2, 1]);
        assert_eq!(order(4, 2), [2, 3, 0, 1]);
        for round in 0..9 {
            let mut order = order(4, round);
            order.sort_unstable();
            assert_eq!(order, [0, 1, 2, 3], "{round}");
        }
    }

    fn sample(requests: u64, cpu: f64, socket_errors: u64) -> Sample {
        Sample {
            load: wrk::Report {
                requests,
                per_second: 1.0,
                p50: Duration::from_millis(1),
                p99: Duration::from_millis(2),
                socket_errors,
                bad_statuses: 0,
            },
            cpu: Cpu {
                user: Duration::from_secs_f64(cpu / 2.0),
                system: Duration::from_secs_f64(cpu / 2.0),
            },
            front_busy: 0.5,
            load_busy: 0.99,
            foreign: 0.1,
        }
    }

    fn series(contender: Contender, samples: &[Sample]) -> Series {
        let mut series = Series {
            contender,
            samples: Vec::new(),
        };
        for (round, sample) in samples.iter().enumerate() {
            series.take(*sample, round);
        }
        series
    }

    #[test]
    fn an_invalid_round_counts_for_nobody() {
        let ours = series(
            Contender::OursAjp,
            &[sample(100, 1e-3, 0), sample(1, 9.0, 1)],
        );
        let theirs = series(
            Contender::Nginx,
            &[sample(100, 2e-3, 0), sample(100, 2e-3, 0)],
        );
        let text = comparison(&[ours, theirs]).render();
        assert!(text.contains("0.50 [0.50..0.50]"), "{text}");
    }

    #[test]
    fn a_bottleneck_and_a_busy_machine_are_mentioned_by_name() {
        let busy = series(Contender::Nginx, &[sample(100, 1e-3, 0)]);
        let mut quiet = sample(100, 1e-3, 0);
        (quiet.front_busy, quiet.foreign) = (0.99, 0.01);
        let quiet = series(Contender::Haproxy, &[quiet]);
        let warnings = warnings(&[busy, quiet]);
        assert_eq!(warnings.len(), 2, "{warnings:?}");
        assert!(warnings.iter().all(|warning| warning.ends_with(": nginx")));
    }
}

//! Estimates how long an experiment takes.

use std::fmt;
use std::time::Duration;

use crate::experiment::{Addresses, COUNTED, Experiment, Level, check_server};
use crate::screen;

/// The number of runs and the time of an experiment, if no run is void and intervals are soon narrow enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The number of cells.
    pub cells: usize,
    /// The number of runs in all rounds.
    pub runs: usize,
    /// The time with the shortest warm-ups.
    pub least: Duration,
    /// The time with the longest warm-ups.
    pub most: Duration,
}

/// Estimates the rounds of an experiment from round `from` on, counted from 0.
#[must_use]
pub fn plan(experiment: &Experiment, from: usize) -> Plan {
    let mut plan = Plan {
        cells: experiment.cells.len(),
        runs: 0,
        least: Duration::ZERO,
        most: Duration::ZERO,
    };
    let spans: Vec<Option<Span>> = (0..plan.cells)
        .map(|cell| Span::of(experiment, cell))
        .collect();
    if from == 0 {
        for run in &experiment.as_published {
            if !run.is_every_round {
                let time = published_time(run.requests);
                plan.least += time;
                plan.most += time;
            }
        }
        // A first round without spans at shares finds the capacity of which they are shares.
        if !experiment.shares().is_empty() {
            let cells = screen::cells(experiment, 0, &[]);
            let (mut no_servers, no_shares) = (Vec::new(), 0);
            plan.add(experiment, &cells, &mut no_servers, &spans, no_shares);
        }
    }
    let mut started = Vec::new();
    let shares = experiment.shares().len() as u32;
    for round in from..experiment.rounds_in_all() {
        // Without runs it is open which levels survive a screen, but not how many.
        let cells = screen::cells(experiment, round, &[]);
        plan.runs += cells.len();
        if !experiment.is_never_restarted() {
            started.clear();
        }
        plan.add(experiment, &cells, &mut started, &spans, shares);
    }
    plan
}

/// The time of a run of one cell, by its parts.
#[derive(Clone, Copy)]
struct Span {
    /// The measured span, the span in which calls and bytes are counted, and published runs.
    main: Duration,
    /// One span at a share of the capacity.
    time: Duration,
    /// The time of the shortest and the longest warm-up.
    warm: (Duration, Duration),
    /// The time for the clients of the crowd.
    crowd: Duration,
    /// The additional time if the cell's virtual machines have just been started: their start, and
    /// the shortest warm-up then. `None`: the cell has none.
    fresh: Option<(Duration, Duration)>,
}

impl Span {
    /// The times of the cell with the number `cell`; `None` if its servers cannot be rendered,
    /// which the check of the file rules out.
    fn of(experiment: &Experiment, cell: usize) -> Option<Self> {
        let levels = &experiment.cells[cell];
        let mut addresses = Addresses::new();
        let mut virtual_machines = 0;
        for number in 0..experiment.servers() {
            let server = check_server(experiment, levels, number, &mut addresses).ok()?;
            let is_java = server.is_some_and(|server| server.target.jvm());
            virtual_machines += u32::from(is_java);
        }
        let load = experiment.load(levels, &addresses).ok()?;
        let mut main = load.time;
        if experiment.counts_apart() {
            main += load.time;
        }
        if experiment.is_duel {
            main += COUNTED;
        }
        for run in experiment.every_round(levels) {
            main += of_requests(run.requests);
        }
        // The last run is made again when the servers are warm.
        if let Some(last) = experiment.every_round(levels).last() {
            main += of_requests(last.requests);
        }
        Some(Self {
            main,
            time: load.time,
            warm: load.warm,
            // The servers are warmed up once more when the crowd is connected.
            crowd: load.crowd.map_or(Duration::ZERO, |_| load.warm.0),
            fresh: (virtual_machines > 0).then_some((JAVA * virtual_machines, load.first_warm)),
        })
    }
}

impl Plan {
    /// Adds a round of `cells`, with `shares` spans at shares of the capacity. `started` has the nested levels whose
    /// servers run already; those that this round starts are added to it.
    fn add<'a>(
        &mut self,
        experiment: &'a Experiment,
        cells: &[usize],
        started: &mut Vec<Vec<&'a Level>>,
        spans: &[Option<Span>],
        shares: u32,
    ) {
        for &cell in cells {
            let Some(span) = spans[cell] else {
                continue;
            };
            let levels = &experiment.cells[cell];
            let group: Vec<&Level> = experiment.nest.iter().map(|name| &levels[name]).collect();
            // Without nested levels, each cell has its own servers.
            let is_fresh = group.is_empty() || !started.contains(&group);
            started.push(group);
            let (start, warm_min) = match span.fresh {
                Some(of_jvm) if is_fresh => of_jvm,
                _ => (Duration::ZERO, Duration::ZERO),
            };
            let fixed = RUN + start + span.crowd + span.main + span.time * shares;
            let (at_least, at_most) = span.warm;
            self.least += fixed + at_least.max(warm_min);
            self.most += fixed + at_most.max(warm_min);
        }
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { cells, runs, .. } = self;
        write!(f, "{cells} cells, {runs} runs, about {}", words(self.least))?;
        // Below 10 %, both times look alike.
        if self.most > self.least + self.least / 10 {
            write!(
                f,
                ", or {} if the longest warm-ups are needed",
                words(self.most)
            )?;
        }
        Ok(())
    }
}

/// The time of a published run with this number of requests.
fn published_time(requests: u64) -> Duration {
    PUBLISHED + of_requests(requests)
}

fn of_requests(requests: u64) -> Duration {
    PUBLISHED_REQUEST * u32::try_from(requests).unwrap_or(u32::MAX)
}

fn words(time: Duration) -> String {
    match time.as_secs() {
        seconds @ ..=120 => format!("{seconds} s"),
        seconds => format!("{} minutes", seconds.div_ceil(60)),
    }
}

/// The time in which the servers of a run start and end, on a machine with nothing else to do.
const RUN: Duration = Duration::from_millis(400);
/// The time in which a virtual machine starts.
const JAVA: Duration = Duration::from_millis(1500);
/// The time in which the servers of a published run start, some of them virtual machines.
const PUBLISHED: Duration = Duration::from_secs(2);
/// The time of a request in a published run, on one core whose server has just started.
const PUBLISHED_REQUEST: Duration = Duration::from_micros(70);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builtin;

    const FILE: &str = include_str!("../fixtures/keepalive.toml");

    #[test]
    fn spans_warm_ups_and_starts_are_counted() {
        let quick = Experiment::read("k.toml", FILE, true).unwrap();
        let planned = plan(&quick, 0);
        // Two of five cells warm up twice, since clients come beside the load.
        assert_eq!(planned.to_string(), "5 cells, 30 runs, about 99 s");
        assert_eq!(plan(&quick, 4).runs, 10);
        let whole = plan(&Experiment::read("k.toml", FILE, false).unwrap(), 0);
        assert_eq!(whole.runs, 180);
        assert!(
            whole
                .to_string()
                .ends_with(" if the longest warm-ups are needed")
        );
    }

    #[test]
    fn every_short_form_is_planned_below_two_minutes() {
        for name in builtin::names() {
            let quick = builtin::experiment(name, true).unwrap();
            let planned = plan(&quick, 0);
            assert!(
                planned.least < Duration::from_secs(120),
                "{name}: {planned}"
            );
        }
    }

    #[test]
    fn a_million_requests_take_their_time() {
        assert_eq!(published_time(1_000_000), Duration::from_secs(72));
        assert!(published_time(5000) < Duration::from_secs(3));
    }

    #[test]
    fn a_screen_has_its_own_cells() {
        let text = format!(
            "{FILE}\n[screen]\nrounds = 6\nfactor.idle = [0]\n\
             then = {{ keep = 2, of = \"mpm\", factor.limit = [100], run.rounds = 9 }}\n"
        );
        let experiment = Experiment::read("k.toml", &text, false).unwrap();
        assert_eq!(plan(&experiment, 0).runs, 9 * 6 + 6 * 9);
        assert_eq!(plan(&experiment, 6).runs, 6 * 9);
    }
}

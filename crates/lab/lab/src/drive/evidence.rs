//! Collects the figures of a run's spans, for measures and gates.

use std::collections::BTreeMap;

use super::by_strace::StraceCount;
use super::span::MeasuredSpan;
use super::stage::{RunningServer, Stage};
use super::warm::WarmUpFigures;
use super::{DriveFault, Scene, bench, sample};
use crate::experiment::Load;
use crate::extra::crowd::Tally;
use crate::facts::{Facts, MachineFacts, PathFacts};
use crate::measure::{AbFigures, CallCounts, Evidence};

/// The spans of load in a run.
#[derive(Clone, Copy)]
pub(super) struct Spans<'a> {
    pub(super) load: &'a Load,
    /// The span in which times were taken.
    pub(super) timed: &'a MeasuredSpan,
    /// The span in which calls and bytes were counted; it may be the same as `timed`.
    pub(super) counting: &'a MeasuredSpan,
    /// The counts of strace, in a span of its own; `None` where the kernel counts calls.
    pub(super) strace: Option<&'a StraceCount>,
}

/// What was observed in a run besides its spans. Spans at shares of the capacity have none of this.
#[derive(Debug, Default)]
pub(super) struct Surroundings {
    pub(super) warm_up: WarmUpFigures,
    /// The losses of clients of the crowd, in words; `None`: there were none.
    pub(super) lost: Option<String>,
    /// The memory that servers have allocated: see [`Evidence::memory`].
    pub(super) memory: Option<BTreeMap<String, u64>>,
    /// The memory for each client of a crowd: see [`Evidence::held`].
    pub(super) held: BTreeMap<String, f64>,
    /// The responses per second after a start: see [`Evidence::first`].
    pub(super) first: Option<f64>,
    /// Whether the experiment is a published form: see [`Evidence::is_published`].
    pub(super) is_published: bool,
    /// The figures of published runs: see [`Evidence::published`].
    pub(super) published: BTreeMap<String, AbFigures>,
}

impl<'a> Spans<'a> {
    /// The system calls of the servers: by strace if it has counted them, else by BPF.
    pub(super) fn calls(self) -> CallCounts<'a> {
        let by_strace = self.strace.and_then(StraceCount::calls);
        by_strace.unwrap_or_else(|| CallCounts {
            calls: &self.counting.spent.calls,
            requests: self.counting.requests(),
        })
    }
}

impl Scene<'_> {
    /// Collects the facts that gates check.
    pub(super) fn facts(
        &self,
        stage: &mut Stage,
        spans: Spans<'_>,
        around: &Surroundings,
    ) -> Result<Facts, DriveFault> {
        let Spans {
            load,
            timed,
            counting,
            strace,
        } = spans;
        let (spent, requests) = (&timed.spent, timed.requests());
        let mut uncounted = counting.spent.uncounted();
        // Calls that strace has counted are removed from `uncounted`.
        let by_strace = strace.and_then(|strace| strace.stands_for(&mut uncounted));
        let capped = capped(&mut stage.servers);
        let mut alarms = alarms(&mut stage.servers);
        alarms.extend(around.lost.clone());
        Ok(Facts {
            expect: self.experiment.expect(self.levels, &stage.addresses)?,
            failed: timed.failed(),
            dials: spent.dials(&stage.servers, timed.opened(), requests),
            asked: self.asked(stage, timed, counting)?,
            machine: Some(MachineFacts {
                capped,
                alarms,
                compiling: sample::compiling(&timed.samples),
                warmed_s: around.warm_up.lasted_s,
                moving: around.warm_up.moving,
                hidden: around.warm_up.hidden,
                changed: timed.changed.clone(),
                uncounted,
                by_strace,
                shares: spent.shares(&stage.servers, requests, timed.rate()),
                ..spent.machine(load, &stage.servers)
            }),
            ..Facts::of_document(&timed.report.document)
        })
    }

    /// Reads all measures of the spans, by name.
    pub(super) fn measures(
        &self,
        stage: &Stage,
        spans: Spans<'_>,
        around: &Surroundings,
    ) -> Result<BTreeMap<String, f64>, DriveFault> {
        let timed = spans.timed;
        // The server in front is the last one. It has a capacity only with a declared part of a core.
        let tested = stage.servers.last().filter(|it| it.core_share.is_some());
        let evidence = Evidence {
            document: &timed.report.document,
            requests: timed.requests(),
            failed: timed.failed(),
            errors: timed.errors(),
            acted: timed.acted,
            has_several: self.experiment.servers() > 1,
            cpu: &timed.spent.cpu,
            disks: &timed.spent.disks,
            tested: tested.map(|it| it.record.name.as_str()),
            opened: timed.spent.opened,
            waited: timed.spent.waited,
            calls: spans.calls(),
            bytes: self.bytes(stage, spans)?,
            memory: around.memory.clone(),
            held: around.held.clone(),
            samples: &timed.samples,
            jvms: &self.experiment.measure.jvm,
            is_published: around.is_published,
            first: around.first,
            published: &around.published,
        };
        Ok(evidence.measures())
    }

    /// The bytes of a request by hop. Where the kernel does not count them, the load's own count is
    /// used for hops of clients, unless other clients run beside it.
    fn bytes(&self, stage: &Stage, spans: Spans<'_>) -> Result<BTreeMap<String, f64>, DriveFault> {
        let (experiment, counting) = (self.experiment, spans.counting);
        let counted = &counting.spent;
        let mut bytes = counted.bytes(experiment, &stage.servers, counting.requests());
        if counted.lacks_bytes() && spans.load.crowd.is_none() {
            let beside = experiment.beside(self.levels, &stage.addresses)?;
            let loads = std::iter::once(spans.load).chain(&beside);
            let loads: Vec<_> = loads.zip(spans.timed.reports()).collect();
            let requests = spans.timed.requests();
            bytes.extend(bench::bytes(experiment, &stage.addresses, &loads, requests));
        }
        Ok(bytes)
    }

    /// For each of several servers, the requests that it received for each response to the load,
    /// and how many it should have received.
    fn asked(
        &self,
        stage: &Stage,
        timed: &MeasuredSpan,
        counting: &MeasuredSpan,
    ) -> Result<BTreeMap<String, PathFacts>, DriveFault> {
        if stage.servers.len() < 2 {
            return Ok(BTreeMap::new());
        }
        let expected = self.experiment.asked(self.levels, &stage.addresses)?;
        let received = counting.spent.received(counting.requests());
        let mut facts_by_server = BTreeMap::new();
        for server in &stage.servers {
            let name = &server.record.name;
            let facts = PathFacts {
                expected: expected.get(name).copied().unwrap_or(1.0),
                counted: received.get(name).copied(),
                cpu_us: timed.spent.cpu_us(name, timed.requests()),
            };
            facts_by_server.insert(name.clone(), facts);
        }
        Ok(facts_by_server)
    }
}

/// The alarms in the servers' logs, and servers that have ended.
fn alarms(servers: &mut [RunningServer]) -> Vec<String> {
    let mut alarms = Vec::new();
    for server in servers {
        let name = server.process.name().to_owned();
        if let Some(how) = server.process.ended() {
            alarms.push(format!("{name} ended with {how}"));
        }
        for line in server.process.alarms() {
            alarms.push(format!("{name} says: {}", server.stable.text(&line)));
        }
    }
    alarms
}

/// The lines of servers' logs that say that the server has reached a maximum of its own.
fn capped(servers: &mut [RunningServer]) -> Vec<String> {
    let mut lines = Vec::new();
    for server in servers {
        let name = server.process.name().to_owned();
        for line in server.process.capped() {
            lines.push(format!("{name}: {}", server.stable.text(&line)));
        }
    }
    lines
}

/// A sentence if clients of the crowd have lost requests, or if the crowd has ended early; `None` otherwise.
pub(super) fn lost(tally: Option<Tally>) -> Option<String> {
    match tally {
        None => Some("the clients beside the load ended early".to_owned()),
        Some(Tally { lost: 0, .. }) => None,
        Some(Tally { lost, .. }) => Some(format!(
            "{lost} requests of idle clients had no answer, or no connection"
        )),
    }
}

//! Makes a start of a duel: the servers of all cells are up at once, and are measured in turn in short blocks.
//!
//! Each turn has one block of each cell, in random order; the next turn has the reverse order. So what the machine does
//! within a second affects all cells alike. Calls, bytes and requests between servers are counted in one span after the
//! blocks.

use std::collections::BTreeMap;
use std::time::Duration;

use catamaran_stats::blocks::mirrored;
use catamaran_stats::{Spread, log};

use super::evidence::{Spans, Surroundings};
use super::span::MeasuredSpan;
use super::stage::Stage;
use super::thirds::ThirdValues;
use super::{
    DriveFault, Driver, RunFiles, RunRequest, Scene, Stages, by_strace, counters,
    gates_of_experiment, sample, warm,
};
use crate::experiment::{BLOCK, COUNTED, Experiment, Load};
use crate::facts::Facts;
use crate::gate::check_run;
use crate::measure::{LONGEST_SILENCE, Measure};
use crate::run::{MemoryCount, Run};
use crate::strace::Traces;

impl Driver {
    /// Makes one start of a duel: a run of each cell in `requests`, in their order.
    ///
    /// # Errors
    /// One of the runs could not be made, so there is none; [`DriveFault`] says why.
    pub fn duel(
        &self,
        experiment: &Experiment,
        stages: &mut Stages,
        requests: &[RunRequest<'_>],
    ) -> Result<Vec<(Run, RunFiles)>, DriveFault> {
        for request in requests {
            stages.prepare(self, experiment, request.at)?;
        }
        let mut tiers = Vec::new();
        for request in requests {
            let scene = Scene {
                driver: self,
                experiment,
                levels: &experiment.cells[request.at.cell],
                stop: request.stop,
            };
            let tier = on_stage(stages, scene, |stage| Tier::warm_up(scene, *request, stage))?;
            tiers.push(tier);
        }
        // Each round has another order of cells; all requests are of one round. Without a request there is no cell, and
        // the seed does not matter.
        let round = requests.first().map_or(0, |request| request.at.round);
        let seed = experiment.seed.wrapping_add(round as u64);
        for cell in mirrored(tiers.len(), experiment.turns(), seed).concat() {
            let tier = &mut tiers[cell];
            on_stage(stages, tier.scene, |stage| tier.block(stage))?;
        }
        let mut runs = Vec::new();
        for tier in tiers {
            runs.push(on_stage(stages, tier.scene, |stage| tier.end(stage))?);
        }
        Ok(runs)
    }
}

/// Calls a function with the stage of a cell. A fault of the load is reported as one of the servers if one of them has
/// ended.
fn on_stage<T>(
    stages: &mut Stages,
    scene: Scene<'_>,
    act: impl FnOnce(&mut Stage) -> Result<T, DriveFault>,
) -> Result<T, DriveFault> {
    let stage = stages.standing(scene.levels);
    act(stage).map_err(|fault| fault.or_death_of(&stage.servers))
}

/// A cell during a start: its servers are warm, and some of its blocks are done.
struct Tier<'a> {
    scene: Scene<'a>,
    request: RunRequest<'a>,
    load: Load,
    around: Surroundings,
    blocks: Vec<MeasuredSpan>,
}

impl<'a> Tier<'a> {
    /// Warms a cell's servers up.
    fn warm_up(
        scene: Scene<'a>,
        request: RunRequest<'a>,
        stage: &Stage,
    ) -> Result<Self, DriveFault> {
        let load = scene.experiment.load(scene.levels, &stage.addresses)?;
        let around = Surroundings {
            warm_up: warm::warm(scene.driver, stage, &load, scene.stop)?,
            is_published: scene.experiment.is_published,
            ..Surroundings::default()
        };
        Ok(Self {
            scene,
            request,
            load,
            around,
            blocks: Vec::new(),
        })
    }
    /// Measures one block.
    fn block(&mut self, stage: &Stage) -> Result<(), DriveFault> {
        let block = self.span(stage, BLOCK, false)?;
        self.blocks.push(block);
        Ok(())
    }
    /// Drives the load for `time`; calls and bytes are counted if `is_counting`.
    fn span(
        &self,
        stage: &Stage,
        time: Duration,
        is_counting: bool,
    ) -> Result<MeasuredSpan, DriveFault> {
        let load = Load {
            time,
            ..self.load.clone()
        };
        self.scene.measure(stage, &load, is_counting)
    }

    /// Drives the span for counts, and joins all blocks to one run.
    fn end(mut self, stage: &mut Stage) -> Result<(Run, RunFiles), DriveFault> {
        let scene = self.scene;
        let counting = self.span(stage, COUNTED, true)?;
        let mut strace = None;
        if counting.spent.lacks_calls() {
            strace = Some(by_strace::count(scene, stage, &self.load)?);
        }
        self.around.memory = counters::memory(scene.experiment, &stage.servers);
        let mut figures = BlockFigures::default();
        let mut calls = BTreeMap::new();
        for (number, block) in self.blocks.iter().enumerate() {
            // Counts after the blocks are added to the facts of the last block.
            let is_last = number + 1 == self.blocks.len();
            let spans = Spans {
                load: &self.load,
                timed: block,
                counting: if is_last { &counting } else { block },
                strace: strace.as_ref().filter(|_| is_last),
            };
            if is_last {
                calls = counters::calls_by_request(spans.calls());
            }
            let facts = scene.facts(stage, spans, &self.around)?;
            figures.add(facts, &scene.measures(stage, spans, &self.around)?);
        }
        let traces = match &strace {
            Some(strace) => strace.traces(),
            None => counting.traces,
        };
        let files = files(&self.blocks, &traces, stage);
        let facts = figures.facts.take().unwrap_or_default();
        let first_block = self.blocks.first();
        let started_at = first_block.map(|block| block.report.document.started_at);
        let run = Run {
            cell: self.request.at.cell,
            levels: scene.levels.clone(),
            round: self.request.at.round,
            place: self.request.place,
            attempt: self.request.attempt,
            started_at_s: started_at.unwrap_or_default().as_secs_f64(),
            gates: gates_of_experiment(check_run(&facts), scene.experiment),
            facts,
            measures: figures.measures(),
            blocks: comparable(&figures.values, self.blocks.len()),
            thirds: thirds(&figures.values, self.blocks.len()),
            calls,
            seconds: Vec::new(),
            silences: Vec::new(),
            starts: stage.starts(),
            memory: MemoryCount::Allocated,
        };
        Ok((run, files))
    }
}

/// The figures of the blocks of a run.
#[derive(Debug, Default)]
struct BlockFigures {
    facts: Option<Facts>,
    /// The values of each measure, one for each block that has it.
    values: BTreeMap<String, Vec<f64>>,
}

impl BlockFigures {
    /// Adds a block. Little's law is not checked for it: in such a short time, requests at the ends weigh too much.
    fn add(&mut self, mut facts: Facts, measures: &BTreeMap<String, f64>) {
        facts.warnings.remove("littles-law");
        self.facts = Some(match self.facts.take() {
            Some(before) => before.and(facts),
            None => facts,
        });
        for (name, value) in measures {
            self.values.entry(name.clone()).or_default().push(*value);
        }
    }

    /// The measures of the run.
    fn measures(&self) -> BTreeMap<String, f64> {
        let mut measures = BTreeMap::new();
        for (name, values) in &self.values {
            if let Some(value) = value_of_run(name, values) {
                measures.insert(name.clone(), value);
            }
        }
        measures
    }
}

/// The value of a run from the values of its blocks: the median; for counts that are mostly zero, the sum; for the
/// longest silence, the maximum.
fn value_of_run(name: &str, values: &[f64]) -> Option<f64> {
    let spread = Spread::of(values)?;
    Some(if is_mostly_zero(name) {
        values.iter().sum()
    } else if name == LONGEST_SILENCE {
        spread.max
    } else {
        spread.median
    })
}

/// The measures that all `count` blocks have, which can be compared block by block. Silences are rare, and longer than
/// a block.
fn comparable(measures: &BTreeMap<String, Vec<f64>>, count: usize) -> BTreeMap<String, Vec<f64>> {
    let mut comparable = measures.clone();
    comparable.retain(|name, values| {
        let is_in_all = values.len() == count && values.iter().all(|value| *value > 0.0);
        is_in_all && !is_mostly_zero(name) && *name != LONGEST_SILENCE
    });
    comparable
}

/// The means of the first, the middle and the last third of the blocks, by measure; empty if there are too few blocks.
fn thirds(measures: &BTreeMap<String, Vec<f64>>, count: usize) -> ThirdValues {
    let mut thirds = ThirdValues::new();
    if count < 3 {
        return thirds;
    }
    let ends = [0, count / 3, count - count / 3, count];
    for (name, values) in comparable(measures, count) {
        let mean_of_third = |third: usize| {
            let part = &values[ends[third]..ends[third + 1]];
            part.iter().sum::<f64>() / part.len() as f64
        };
        thirds.insert(name, [0, 1, 2].map(mean_of_third));
    }
    thirds
}

fn is_mostly_zero(name: &str) -> bool {
    Measure::parse(name).is_ok_and(|measure| measure.record().is_mostly_zero)
}

/// The files of a run: the reports of its blocks as a list, and all latencies in one log.
fn files(blocks: &[MeasuredSpan], traces: &Traces, stage: &Stage) -> RunFiles {
    let reports = || blocks.iter().map(|block| &block.report);
    let texts: Vec<&str> = reports().map(|report| report.text.trim_end()).collect();
    let logs = reports().filter_map(|report| log::Log::read(report.latency.as_bytes()).ok());
    let mut latency = Vec::new();
    // Writing to memory does not fail.
    let _ = log::Log::merge(logs).write(&mut latency);
    let samples = blocks.iter().map(|block| sample::lines(&block.samples));
    RunFiles {
        bench: format!("[{}]\n", texts.join(",\n")),
        latency: String::from_utf8(latency).unwrap_or_default(),
        samples: samples.collect(),
        traces: serde_json::to_string(traces).unwrap_or_default(),
        servers: stage.records(),
        printed: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_made_of_its_blocks() {
        let mut found = BlockFigures::default();
        for (number, cpu) in [10.0, 30.0, 20.0, 10.0, 20.0, 60.0].into_iter().enumerate() {
            let mut facts = Facts {
                completed: 100,
                ..Facts::default()
            };
            for token in ["littles-law", "unsent"] {
                facts.warnings.insert(token.to_owned(), token.to_owned());
            }
            let mut measures = BTreeMap::from([("cpu".to_owned(), cpu)]);
            measures.insert("failed".to_owned(), 1.0);
            measures.insert(LONGEST_SILENCE.to_owned(), cpu);
            if number != 3 {
                measures.insert("p99".to_owned(), 2.0);
            }
            found.add(facts, &measures);
        }
        let facts = found.facts.clone().unwrap();
        assert_eq!(facts.completed, 600);
        assert_eq!(facts.warnings.keys().collect::<Vec<_>>(), ["unsent"]);
        let run = found.measures();
        let expected = [
            ("cpu", 20.0),
            ("failed", 6.0),
            (LONGEST_SILENCE, 60.0),
            ("p99", 2.0),
        ];
        assert_eq!(
            run,
            expected
                .map(|(name, value)| (name.to_owned(), value))
                .into()
        );
        let pairs = comparable(&found.values, 6);
        assert_eq!(
            pairs.keys().collect::<Vec<_>>(),
            ["cpu"],
            "one block has no p99"
        );
        let of_thirds = thirds(&found.values, 6);
        assert_eq!(of_thirds["cpu"], [20.0, 15.0, 40.0]);
    }
}

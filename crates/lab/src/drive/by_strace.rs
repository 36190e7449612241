//! System calls where the kernel forbids BPF: strace counts them in a span of its own.
//!
//! Each call stops its process twice then, so that the load is driven once more for it, and nothing else of
//! that span counts.

use std::io;

use catamaran_gauge::{Counts, Strace};

use super::counters::{self, Calls};
use super::stage::Stage;
use super::{DriveFault, Scene};
use crate::experiment::Load;
use crate::gate::uncounted;
use crate::run::Run;
use crate::strace::{Trace, Traces, table_of};

/// What strace has counted, or why it could not.
pub(super) struct Counted {
    calls: Calls,
    requests: u64,
    fault: Option<String>,
}

/// Drives the load once more, with strace at the servers that are to be counted.
pub(super) fn count(scene: Scene<'_>, stage: &Stage, load: &Load) -> Result<Counted, DriveFault> {
    let following = match follow(scene, stage) {
        Ok(following) => following,
        Err(error) => return Ok(Counted::not(&error)),
    };
    let measured = scene.measure(stage, load, false)?;
    let mut calls = Calls::new();
    for (name, strace) in following {
        match strace.finish() {
            Ok(counts) => calls.insert(name, counts),
            Err(error) => return Ok(Counted::not(&error)),
        };
    }
    Ok(Counted {
        calls,
        requests: measured.requests(),
        fault: None,
    })
}

/// Those that are followed already go on alone if one cannot be.
fn follow(scene: Scene<'_>, stage: &Stage) -> io::Result<Vec<(String, Strace)>> {
    stage
        .named(&scene.experiment.measure.syscalls)
        .map(|server| {
            let strace = Strace::follow(&server.process.processes())?;
            Ok((server.record.name.clone(), strace))
        })
        .collect()
}

impl Counted {
    fn not(error: &io::Error) -> Self {
        let fault = match error.kind() {
            io::ErrorKind::NotFound => "the package strace is not installed".to_owned(),
            _ => error.to_string(),
        };
        Self {
            calls: Calls::new(),
            requests: 0,
            fault: Some(fault),
        }
    }

    /// Puts it where counts of the kernel would be, with the reason that they are not.
    pub(super) fn put(&self, scene: Scene<'_>, run: &mut Run) {
        let machine = run.facts.machine.get_or_insert_default();
        let Some(why) = machine.uncounted.remove(uncounted::SYSCALLS) else {
            return;
        };
        if let Some(fault) = &self.fault {
            let why = format!("{why}; nor by strace: {fault}");
            machine
                .uncounted
                .insert(uncounted::SYSCALLS.to_owned(), why);
            return;
        }
        machine.by_strace = Some(why);
        let several = scene.experiment.servers() > 1;
        let measures = counters::measures_of(&self.calls, several, self.requests);
        run.measures.extend(measures);
        run.calls = counters::each(&self.calls, self.requests);
    }

    /// The same as tables.
    pub(super) fn traces(&self) -> Traces {
        let trace = |(name, counts): (&String, &Counts)| {
            let all = table_of(counts, false);
            let trace = Trace {
                all,
                ..Trace::default()
            };
            (name.clone(), trace)
        };
        self.calls.iter().map(trace).collect()
    }
}

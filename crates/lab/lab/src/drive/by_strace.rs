//! Counts system calls by strace, in a span of its own, where the kernel forbids BPF.
//!
//! strace stops a process twice in each call, so the load is driven once more for it, and that span
//! is used for nothing else.

use std::collections::BTreeMap;
use std::io;

use catamaran_gauge::Strace;

use super::counters::CallsByServer;
use super::stage::Stage;
use super::{DriveFault, Scene};
use crate::experiment::Load;
use crate::measure::{CallCounts, SYSCALLS};
use crate::strace::{Trace, Traces, table_of};

/// The system calls that strace has counted, or why it could not count them.
pub(super) struct StraceCount {
    calls: CallsByServer,
    requests: u64,
    fault: Option<String>,
}

/// Drives the load once more, with strace attached to the servers whose calls are counted.
pub(super) fn count(
    scene: Scene<'_>,
    stage: &Stage,
    load: &Load,
) -> Result<StraceCount, DriveFault> {
    let straces = match follow(scene, stage) {
        Ok(straces) => straces,
        Err(error) => return Ok(StraceCount::failed(&error)),
    };
    let is_counting_by_bpf = false;
    let span = scene.measure(stage, load, is_counting_by_bpf)?;
    let mut calls = CallsByServer::new();
    for (name, strace) in straces {
        match strace.finish() {
            Ok(counts) => calls.insert(name, counts),
            Err(error) => return Ok(StraceCount::failed(&error)),
        };
    }
    Ok(StraceCount {
        calls,
        requests: span.requests(),
        fault: None,
    })
}

/// Attaches strace to each server whose calls are counted. If that fails for one, those already attached are detached.
fn follow(scene: Scene<'_>, stage: &Stage) -> io::Result<Vec<(String, Strace)>> {
    let mut straces = Vec::new();
    for server in stage.named(&scene.experiment.measure.syscalls) {
        let strace = Strace::follow(&server.process.processes())?;
        straces.push((server.record.name.clone(), strace));
    }
    Ok(straces)
}

impl StraceCount {
    /// The result if strace could not count.
    fn failed(error: &io::Error) -> Self {
        let fault = match error.kind() {
            io::ErrorKind::NotFound => "the package strace is not installed".to_owned(),
            _ => error.to_string(),
        };
        Self {
            calls: CallsByServer::new(),
            requests: 0,
            fault: Some(fault),
        }
    }

    /// Removes system calls from `uncounted` if strace has counted them, and returns why BPF has
    /// not. If strace has failed too, they stay in it with both reasons.
    pub(super) fn stands_for(&self, uncounted: &mut BTreeMap<String, String>) -> Option<String> {
        let why_not_bpf = uncounted.remove(SYSCALLS)?;
        let Some(fault) = &self.fault else {
            return Some(why_not_bpf);
        };
        let why = format!("{why_not_bpf}; nor by strace: {fault}");
        uncounted.insert(SYSCALLS.to_owned(), why);
        None
    }

    /// The counts with their requests; `None` if strace could not count.
    pub(super) fn calls(&self) -> Option<CallCounts<'_>> {
        self.fault.is_none().then_some(CallCounts {
            calls: &self.calls,
            requests: self.requests,
        })
    }

    /// The counts as tables, by server.
    pub(super) fn traces(&self) -> Traces {
        let mut traces = Traces::new();
        for (name, counts) in &self.calls {
            let trace = Trace {
                all: table_of(counts, false),
                ..Trace::default()
            };
            traces.insert(name.clone(), trace);
        }
        traces
    }
}

//! What a result is made of: the runs of an experiment, and what is to be known of them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::experiment::Experiment;
use crate::host::Host;
use crate::run::{Run, ServerRecord};

/// What a directory of a result has.
#[derive(Debug)]
pub struct StoredResult {
    /// The experiment.
    pub experiment: Experiment,
    /// Where it ran.
    pub host: Host,
    /// What its servers were made of.
    pub servers: Vec<ServerRecord>,
    /// All runs.
    pub runs: Vec<Run>,
    /// Published runs that were made as they were.
    pub as_published: Vec<PrintedRun>,
    /// A note on these runs by the person who made them.
    pub note: String,
    /// What the slowest cell with so many clients does in a second; empty if nobody asked.
    pub capacity: BTreeMap<u64, f64>,
}

#[cfg(test)]
impl StoredResult {
    /// As if these runs had been read.
    pub(crate) fn of(experiment: Experiment, runs: Vec<Run>) -> Self {
        Self {
            experiment,
            host: Host::default(),
            servers: Vec::new(),
            runs,
            as_published: Vec::new(),
            note: String::new(),
            capacity: BTreeMap::new(),
        }
    }
}

/// What a published run has printed here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PrintedRun {
    /// The name of the published text.
    pub name: String,
    /// Where it was not as it was.
    pub deviations: Vec<String>,
    /// What ab prints.
    pub text: String,
}

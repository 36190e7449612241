//! What a result is made of: the runs of an experiment, and what is to be known of them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::experiment::Experiment;
use crate::host::Host;
use crate::run::{Run, ServerRecord};

/// The contents of a result's directory.
#[derive(Debug)]
pub struct StoredResult {
    /// The experiment.
    pub experiment: Experiment,
    /// The machine that it ran on.
    pub host: Host,
    /// The servers' versions, commands and settings.
    pub servers: Vec<ServerRecord>,
    /// All runs.
    pub runs: Vec<Run>,
    /// Published runs that were made as they were.
    pub as_published: Vec<PrintedRun>,
    /// A note on these runs by the person who made them.
    pub note: String,
    /// By number of clients: the slowest cell's requests per second; empty if nothing needed it.
    pub capacity: BTreeMap<u64, f64>,
}

#[cfg(test)]
impl StoredResult {
    /// A result with these runs, without the other files of a directory.
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

/// The output of a published run here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PrintedRun {
    /// The name of the published text.
    pub name: String,
    /// The ways in which it differs from the published run.
    pub deviations: Vec<String>,
    /// The output of ab.
    pub text: String,
}

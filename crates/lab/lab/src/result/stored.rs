//! The material of a result: the runs of an experiment, and facts about them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::experiment::Experiment;
use crate::host::Host;
use crate::run::{Run, ServerRecord};

/// The contents of a result's directory, with the runs.
#[derive(Debug)]
pub struct StoredResult {
    /// The experiment.
    pub experiment: Experiment,
    /// The machine on which the experiment ran.
    pub host: Host,
    /// The records of the servers: versions, commands and settings.
    pub servers: Vec<ServerRecord>,
    /// All runs, void ones included.
    pub runs: Vec<Run>,
    /// The outputs of published runs that were made once in their original form.
    pub as_published: Vec<PrintedRun>,
    /// A note on these runs by the person who made them; empty if there is none.
    pub note: String,
    /// For each number of clients, the requests per second of the slowest cell: the capacity. Empty
    /// if it was not needed.
    pub capacity: BTreeMap<u64, f64>,
}

#[cfg(test)]
impl StoredResult {
    /// A result with the runs `runs` alone, without the other files of a directory.
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

/// The output of a published run that was made here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PrintedRun {
    /// The name of the published text.
    pub name: String,
    /// The ways in which the run here differs from the published one.
    pub deviations: Vec<String>,
    /// The output of ab for the run here.
    pub text: String,
}

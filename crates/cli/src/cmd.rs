//! The commands, one module for each.

pub(crate) mod app;
pub(crate) mod bench;
pub(crate) mod check;
mod client;
pub(crate) mod demo;
pub(crate) mod doctor;
pub(crate) mod explain;
pub(crate) mod front;
pub(crate) mod generate;
pub(crate) mod import;
pub(crate) mod lab;
pub(crate) mod limit;
pub(crate) mod look;
pub(crate) mod operate;
pub(crate) mod probe;
pub(crate) mod purge;
pub(crate) mod serve;
pub(crate) mod status;

use std::fmt::Display;
use std::io;
use std::num::NonZeroUsize;

use crate::own_log;

/// Prints the addresses that the process listens on to standard error. Scripts wait for this line, so its words must
/// not change.
fn announce(addresses: &[impl Display]) -> io::Result<()> {
    addresses
        .iter()
        .try_for_each(|address| own_log::say(format_args!("listening on {address}")))
}

/// Parses a number of workers, with the same limits as the file's `workers`.
fn parse_workers(text: &str) -> Result<NonZeroUsize, String> {
    let workers = text
        .parse()
        .ok()
        .filter(|workers: &NonZeroUsize| workers.get() <= WORKERS_MAX);
    workers.ok_or_else(|| format!("must be a number from 1 to {WORKERS_MAX}"))
}

/// The most workers; each worker is a thread.
const WORKERS_MAX: usize = 1024;

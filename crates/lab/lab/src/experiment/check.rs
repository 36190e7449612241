//! Checks that the servers of an experiment are ones that their targets accept.

use std::collections::BTreeMap;

use catamaran_tier::{Settings, Target, builtin, builtin_names};
use catamaran_toml_file::report::Report;

use super::template::Addresses;
use super::{CellServer, Experiment, Levels};

/// A server of a cell with its target and its settings.
#[derive(Debug)]
pub(crate) struct PreparedServer {
    pub(crate) server: CellServer,
    pub(crate) target: Target,
    pub(crate) settings: Settings,
}

/// Checks the server `number` of a cell, and adds made-up addresses of it; `None` if the cell does not have the server.
pub(crate) fn check_server(
    experiment: &Experiment,
    cell: &Levels,
    number: usize,
    addresses: &mut Addresses,
) -> Result<Option<PreparedServer>, Report> {
    let Some(server) = experiment.server(cell, number, addresses)? else {
        return Ok(None);
    };
    let (target, settings) = prepare(&server)?;
    let mut urls = BTreeMap::new();
    for port in target.ports(&settings)? {
        let url = format!("{port}://127.0.0.1:1");
        urls.insert(port, url);
    }
    addresses.insert(server.name.clone(), urls);
    Ok(Some(PreparedServer {
        server,
        target,
        settings,
    }))
}

/// The target and the settings of a server.
pub(crate) fn prepare(server: &CellServer) -> Result<(Target, Settings), Report> {
    let target = builtin(&server.target).ok_or_else(|| {
        let known: Vec<&str> = builtin_names().collect();
        let what = format!(
            "no target `{}`; there are {}",
            server.target,
            known.join(", ")
        );
        Report::absence(&server.name, what)
    })?;
    let mut values: Vec<(&str, &str)> = Vec::new();
    for (name, value) in &server.set {
        values.push((name, value));
    }
    let settings = target.settings(&values)?;
    Ok((target, settings))
}

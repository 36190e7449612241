//! `asked` in `[expect]`: the number of requests that each server receives for each response to the load.

use std::collections::BTreeMap;

use catamaran_toml_file::report::Report;

use super::load::CellRenderer;
use super::template::Addresses;
use super::{Experiment, Levels};

impl Experiment {
    /// The least number of requests that each server of a cell must receive for each response to the load: the value in
    /// `asked`, or 1 if the server is not named there.
    ///
    /// # Errors
    /// A template does not render, or not to a number; or a name is no server's.
    pub fn asked(
        &self,
        cell: &Levels,
        addresses: &Addresses,
    ) -> Result<BTreeMap<String, f64>, Report> {
        let mut renderer = CellRenderer::new(cell, addresses);
        let mut requests_by_server = BTreeMap::new();
        for (name, level) in &self.expect.asked {
            let number = renderer.level(level);
            match number.parse::<f64>() {
                Ok(times) if times >= 0.0 && times.is_finite() => {
                    requests_by_server.insert(name.clone(), times);
                }
                _ => renderer.fault(format!("asked.{name} = {number}: it is a number from 0")),
            }
            if !self.servers.iter().any(|server| server.name == *name) {
                renderer.fault(format!(
                    "asked has `{name}`, which is no server of this file"
                ));
            }
        }
        renderer.or(requests_by_server)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builtin;

    const FILE: &str = include_str!("../../fixtures/keepalive.toml");

    fn with(asked: &str) -> Result<Experiment, Report> {
        let text = FILE.replacen("[expect]\n", &format!("[expect]\nasked = {asked}\n"), 1);
        Experiment::read("k.toml", &text, false)
    }

    #[test]
    fn times_are_numbers_of_servers_that_there_are() {
        let experiment = with("{ httpd = \"{{ 0.25 if factor.keep == 'on' else 1 }}\" }").unwrap();
        let kept = experiment
            .cells
            .iter()
            .find(|cell| cell["keep"].to_string() == "on");
        let asked = experiment.asked(kept.unwrap(), &Addresses::new()).unwrap();
        assert_eq!(asked, BTreeMap::from([("httpd".to_owned(), 0.25)]));
        for (asked, words) in [
            (
                "{ httpd = \"often\" }",
                "asked.httpd = often: it is a number from 0",
            ),
            (
                "{ nginx = 1 }",
                "asked has `nginx`, which is no server of this file",
            ),
        ] {
            let faults = with(asked).unwrap_err().to_string();
            assert!(faults.contains(words), "{faults}");
        }
    }

    #[test]
    fn a_part_is_expected_of_servers_that_share_requests() {
        let modules = builtin::experiment("modules", false).unwrap();
        let asked = modules.asked(&modules.cells[0], &Addresses::new()).unwrap();
        assert!(
            asked.values().sum::<f64>() <= 1.0 && asked.len() == 3,
            "{asked:?}"
        );
    }
}

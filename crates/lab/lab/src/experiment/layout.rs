//! `[layout]`: what shared a machine in a source, what shares a core here, and which servers' CPU time was the limit.
//!
//! If servers share a core and the load has another one, the most requests that they can answer in a second are the
//! inverse of the CPU time that they spend on one: their capacity. Which servers that are is a matter of the source's
//! layout, so the file declares it, and reports print it beside each verdict on speed.

use serde::{Deserialize, Serialize};
use toml::Spanned;

use super::file::{ExperimentFile, LayoutKeys, Names};
use super::read::FileReader;
use crate::measure::{CAPACITY, CPU, Measure, THROUGHPUT};

/// The layout of an experiment: that of its source, and ours.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Layout {
    /// What shared a machine in the source, in words.
    pub there: String,
    /// What shares each core here.
    pub here: Vec<CoreUse>,
    /// The measures of CPU time whose inverse is the capacity, `cpu` or `cpu.SERVER`: the first is that of the source,
    /// further ones stand beside it where the source does not say what was its limit.
    pub limits: Vec<String>,
}

/// What runs on a core.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CoreUse {
    /// The number of the core; `None`: those that may run on any core.
    pub core: Option<usize>,
    /// The load and the servers there, with the declared parts that they have of it.
    pub programs: Vec<String>,
}

impl Layout {
    /// What is on each core, and what capacity is the inverse of, in a sentence each.
    #[must_use]
    pub fn sentences(&self) -> Vec<String> {
        let cores: Vec<String> = self.here.iter().map(CoreUse::words).collect();
        vec![
            format!("There: {}.", self.there),
            format!("Here: {}.", cores.join("; ")),
            format!("Capacity is {}.", self.capacity()),
        ]
    }

    /// The limit of claims on a measure, in words; `None` if the measure is not about speed.
    #[must_use]
    pub fn limit_of(&self, measure: &Measure) -> Option<String> {
        match measure.base() {
            // The other CPU times are not of what limited the source.
            CPU => {
                let own = measure.name();
                let is_limit = self.limits.iter().any(|limit| limit == own);
                is_limit.then(|| format!("capacity is 1 / `{own}`"))
            }
            THROUGHPUT | CAPACITY => Some(format!("capacity is {}", self.capacity())),
            _ => None,
        }
    }

    fn capacity(&self) -> String {
        let inverse = |limit: &String| format!("1 / `{limit}`");
        let all: Vec<String> = self.limits.iter().map(inverse).collect();
        all.join(" or ")
    }
}

impl CoreUse {
    fn words(&self) -> String {
        let programs = self.programs.join(", ");
        match self.core {
            Some(core) => format!("core {core} has {programs}"),
            None => format!("any core may have {programs}"),
        }
    }
}

impl FileReader<'_> {
    /// Reads the layout of a file, and checks that its limits are CPU times of servers, and that a claim on CPU time is
    /// on one of them. `None`: the file has none.
    pub(super) fn layout(&mut self, file: &ExperimentFile) -> Option<Layout> {
        let table = file.layout.as_ref()?;
        let LayoutKeys { there, limit } = table.get_ref();
        let is_server = |name: &str| {
            let mut servers = file.server.iter();
            servers.any(|server| server.get_ref().name == name)
        };
        for name in limit.all() {
            let is_cpu_time = Measure::parse(name)
                .is_ok_and(|measure| measure.base() == CPU && measure.of().is_none_or(is_server));
            if !is_cpu_time {
                let what = format!("limit = {name}: it is `cpu`, or `cpu.SERVER` of this file");
                self.fault(table, what);
            }
        }
        if limit.all().is_empty() {
            self.fault(table, "`limit` names a measure of CPU time".to_owned());
        }
        self.check_limits(file, limit);
        Some(Layout {
            there: there.clone(),
            here: cores(file),
            limits: limit.all().to_vec(),
        })
    }

    /// Checks that claims on CPU time are on what was the limit.
    fn check_limits(&mut self, file: &ExperimentFile, limit: &Names) {
        for claim in &file.claim {
            let name = &claim.get_ref().measure;
            let is_cpu = Measure::parse(name).is_ok_and(|measure| measure.base() == CPU);
            if is_cpu && !limit.all().contains(name) {
                let what = format!(
                    "{name} was not the limit by [layout]: it is {}",
                    limit.all().join(", ")
                );
                self.fault(claim, what);
            }
        }
    }
}

/// What runs on each core, in the order of cores: the load first, then the servers from the front to the backmost.
fn cores(file: &ExperimentFile) -> Vec<CoreUse> {
    let mut programs = vec![(file.load.get_ref().core, "the load".to_owned())];
    for keys in file.server.iter().rev().map(Spanned::get_ref) {
        let words = match keys.core_share {
            Some(share) => format!("{} ({share} of it)", keys.name),
            None => keys.name.clone(),
        };
        programs.push((keys.core, words));
    }
    let mut numbers: Vec<Option<usize>> = programs.iter().map(|(core, _)| *core).collect();
    numbers.sort_unstable();
    numbers.dedup();
    let core = |number: &Option<usize>| {
        let of_core = programs.iter().filter(|(core, _)| core == number);
        CoreUse {
            core: *number,
            programs: of_core.map(|(_, words)| words.clone()).collect(),
        }
    };
    numbers.iter().map(core).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Experiment;

    const FILE: &str = include_str!("../../fixtures/keepalive.toml");

    fn with(layout: &str) -> Result<Experiment, String> {
        let text = FILE.replacen("[load]\n", &format!("[layout]\n{layout}\n[load]\n"), 1);
        Experiment::read("k.toml", &text, false).map_err(|faults| faults.to_string())
    }

    #[test]
    fn a_layout_says_what_shares_a_core_and_what_capacity_is() {
        let experiment = with("there = \"one machine\"\nlimit = \"cpu\"").unwrap();
        let layout = experiment.layout.unwrap();
        assert_eq!(
            layout.sentences().join(" "),
            "There: one machine. Here: core 0 has the load; core 1 has httpd. Capacity is 1 / `cpu`."
        );
        let limit_of = |name: &str| layout.limit_of(&Measure::parse(name).unwrap());
        assert_eq!(limit_of("throughput").unwrap(), "capacity is 1 / `cpu`");
        assert_eq!(limit_of("cpu").unwrap(), "capacity is 1 / `cpu`");
        assert_eq!((limit_of("cpu.httpd"), limit_of("memory")), (None, None));
    }

    #[test]
    fn a_limit_is_a_cpu_time_of_servers_and_claims_are_on_it() {
        for (layout, expected) in [
            (
                "there = \"\"\nlimit = \"throughput\"",
                "limit = throughput: it is `cpu`, or `cpu.SERVER` of this file",
            ),
            (
                "there = \"\"\nlimit = \"cpu.nginx\"",
                "limit = cpu.nginx: it is",
            ),
            (
                "there = \"\"\nlimit = []",
                "`limit` names a measure of CPU time",
            ),
            (
                "there = \"\"\nlimit = \"cpu.httpd\"",
                "cpu was not the limit by [layout]: it is cpu.httpd",
            ),
        ] {
            let faults = with(layout).unwrap_err();
            assert!(faults.contains(expected), "{faults}");
        }
    }
}

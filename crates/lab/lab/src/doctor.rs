//! What a machine lacks for an experiment: packages, privileges, limits. Nothing is changed.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::{fmt, io};

use catamaran_gauge::limits::{self, Demand, Limit};
use catamaran_gauge::machine::{Check, Machine};
use catamaran_gauge::probe::{self, Way};
pub use catamaran_tier::Programs;
use catamaran_tier::java::{self, Jars};
use catamaran_tier::{Need, Place, needs};
use catamaran_toml_file::report::Report;

use crate::check::{self, PreparedServer};
use crate::experiment::{Experiment, Levels};
use crate::gate::{self, GateFinding, Subject};
use crate::host::slow_build;
use crate::measure::BYTES;
use crate::template::Addresses;

/// What was found.
#[derive(Clone, Debug)]
pub struct Examination {
    /// How each kind of figure is taken.
    pub ways: Vec<Way>,
    /// Limits, and what is needed of them; empty if they cannot be read.
    pub limits: Vec<Limit>,
    /// Settings that old pages recommend, and that make servers differ from elsewhere.
    pub folklore: Vec<Check>,
    /// What servers need and is not there.
    pub missing: Vec<Need>,
    /// The profile that this binary was built with.
    pub build: String,
}

/// Looks at this machine. `space` is the name that a cgroup has while it is tried, `build` the profile
/// that this binary was built with.
///
/// # Errors
/// Servers of the experiment that no target makes.
pub fn examine(
    experiment: &Experiment,
    programs: &Programs,
    space: &str,
    build: &str,
) -> Result<Examination, Report> {
    let limits = limits::check(&demand(experiment)?, limits::sysctl);
    let wanted = wanted(experiment, programs)?;
    let mut ways = probe::ways(space);
    if experiment.has_core_shares() {
        ways.push(probe::shares(space));
    }
    Ok(Examination {
        ways,
        limits: limits.unwrap_or_default(),
        folklore: Machine::here().folklore(),
        missing: needs::missing(&wanted),
        build: build.to_owned(),
    })
}

/// What forbids to begin: a limit that the largest cell would meet.
///
/// # Errors
/// Servers of the experiment that no target makes.
pub fn refusal(experiment: &Experiment) -> Result<Option<GateFinding>, Report> {
    let limits = limits::check(&demand(experiment)?, limits::sysctl);
    let limits = limits.unwrap_or_default();
    Ok(gate::check(&Subject::Limits(&limits)).pop())
}

/// Programs of servers that no package has: this one, the folders of jars that Maven fetches, and
/// modules of servers by their names.
#[must_use]
pub fn programs(catamaran: &Path, modules: &[(String, PathBuf)]) -> Programs {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let folder = |home: &PathBuf| java::ALL.map(|jars| (jars.name.to_owned(), jars.folder(home)));
    let own = ("catamaran".to_owned(), catamaran.to_owned());
    let modules = modules.iter().cloned();
    let jars = home.iter().flat_map(folder);
    jars.chain(modules).chain([own]).collect()
}

/// What an experiment's servers need and is not there.
#[derive(Clone, Debug)]
pub struct MissingNeeds {
    packages: Vec<String>,
    /// What Maven has not fetched yet, and where it belongs.
    jars: Vec<(Jars, PathBuf)>,
    /// Programs without a path.
    others: Vec<Need>,
}

/// What the servers of all cells lack.
///
/// # Errors
/// Servers of the experiment that no target makes.
pub fn lacks(experiment: &Experiment, programs: &Programs) -> Result<MissingNeeds, Report> {
    let wanted = wanted(experiment, programs)?;
    let folders =
        java::ALL.map(|jars| (jars, programs.get(jars.name).cloned().unwrap_or_default()));
    let is_at = |need: &Need, folder: &Path| need.package.is_none() && need.proof == folder;
    let is_jars = |need: &Need| folders.iter().any(|(_, folder)| is_at(need, folder));
    let lacks_jars = folders.iter().filter(|(jars, folder)| {
        wanted.iter().any(|need| is_at(need, folder)) && !jars.are_fetched(folder)
    });
    let missing = needs::missing(&wanted);
    let packages = missing.iter().filter_map(|need| need.package.clone());
    Ok(MissingNeeds {
        packages: packages.collect(),
        jars: lacks_jars.cloned().collect(),
        others: missing
            .into_iter()
            .filter(|need| need.package.is_none() && !is_jars(need))
            .collect(),
    })
}

impl MissingNeeds {
    /// What is missing and what brings it; `None` if nothing is.
    #[must_use]
    pub fn message(&self) -> Option<String> {
        let mut lines = Vec::new();
        if !self.packages.is_empty() {
            let packages = self.packages.join(" ");
            lines.push(format!(
                "not installed: {packages}; `apt-get install {packages}` does it"
            ));
        }
        for (_, folder) in &self.jars {
            lines.push(format!("not fetched: jars in {}", folder.display()));
        }
        for need in &self.others {
            lines.push(format!("there is no {}", need.proof.display()));
        }
        (!lines.is_empty()).then(|| lines.join("\n"))
    }

    /// Installs packages and has Maven fetch containers.
    ///
    /// # Errors
    /// What apt-get or Maven say, or a program that neither has.
    pub fn install(&self) -> io::Result<()> {
        if !self.packages.is_empty() {
            needs::install(&self.packages).map_err(io::Error::other)?;
        }
        for (jars, folder) in &self.jars {
            jars.fetch(folder)?;
        }
        let others = self.others.first();
        others.map_or(Ok(()), |need| {
            Err(io::Error::other(format!(
                "there is no {}",
                need.proof.display()
            )))
        })
    }
}

impl Examination {
    /// Whether the experiment can run, each figure taken by the best way. A slow build can run it, too.
    #[must_use]
    pub fn is_fine(&self) -> bool {
        self.missing.is_empty()
            && self.ways.iter().all(|way| way.why.is_none())
            && self.limits.iter().all(Limit::suffices)
    }
}

/// A line for each thing, with what to do where something is to be done.
impl fmt::Display for Examination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Way { what, by, why } in &self.ways {
            match (why, *what) {
                (None, _) => writeln!(f, "ok       {what}: {by}")?,
                (Some(why), probe::CALLS) => {
                    writeln!(f, "missing  {}", gate::strace_words(why))?;
                }
                (Some(why), probe::BYTES) => {
                    writeln!(f, "missing  {}", gate::uncounted_words(BYTES, why))?;
                }
                (Some(why), probe::SHARES) => {
                    writeln!(
                        f,
                        "missing  {what} (`core_share`): {why}; `lab run` needs them"
                    )?;
                }
                (Some(why), _) => writeln!(
                    f,
                    "missing  {what}: only {by} ({why}); `lab run` needs root"
                )?,
            }
        }
        for limit in &self.limits {
            let (name, value, need) = (limit.name, limit.value, limit.need);
            if limit.suffices() {
                writeln!(f, "ok       {name} = {value}, {need} needed")?;
            } else {
                let (meaning, command) = (limit.meaning, &limit.command);
                writeln!(
                    f,
                    "too low  {name} = {value}, {need} needed ({meaning}): {command}"
                )?;
            }
        }
        for check in &self.folklore {
            let (what, value, said) = (&check.what, &check.value, &check.needed);
            writeln!(f, "folklore {what} = {value}: {said}; {}", check.command)?;
        }
        for need in &self.missing {
            match &need.package {
                Some(package) => writeln!(f, "missing  {package}: apt-get install {package}")?,
                None => writeln!(f, "missing  {}", need.proof.display())?,
            }
        }
        if self.missing.is_empty() {
            writeln!(f, "ok       all servers are installed")?;
        }
        match slow_build(&self.build) {
            None => writeln!(f, "ok       catamaran: {} build", self.build)?,
            Some(said) => writeln!(f, "slow     {said}")?,
        }
        Ok(())
    }
}

/// What the largest cell needs.
fn demand(experiment: &Experiment) -> Result<Demand, Report> {
    let mut demand = Demand::default();
    for cell in &experiment.cells {
        let load = experiment.load(cell, &addresses(experiment, cell)?)?;
        let connections = load.clients + load.crowd.as_ref().map_or(0, |crowd| crowd.clients);
        demand.connections = demand.connections.max(connections);
        demand.burst = demand.burst.max(load.clients);
    }
    Ok(demand)
}

fn addresses(experiment: &Experiment, cell: &Levels) -> Result<Addresses, Report> {
    let mut addresses = Addresses::new();
    for number in 0..experiment.servers() {
        check::server(experiment, cell, number, &mut addresses)?;
    }
    Ok(addresses)
}

/// What the servers of all cells need, each once.
fn wanted(experiment: &Experiment, programs: &Programs) -> Result<Vec<Need>, Report> {
    let mut wanted = Vec::new();
    let mut seen = BTreeSet::new();
    for cell in &experiment.cells {
        let mut addresses = Addresses::new();
        for number in 0..experiment.servers() {
            let made = check::server(experiment, cell, number, &mut addresses)?;
            let Some(PreparedServer {
                target, settings, ..
            }) = made
            else {
                continue;
            };
            let port = |name: String| (name, ([127, 0, 0, 1], 1).into());
            let ports: Vec<_> = target.ports(&settings)?.into_iter().map(port).collect();
            let place = Place {
                directory: Path::new("/"),
                ports: &ports,
                programs,
            };
            for need in target.render(&settings, &place)?.needs {
                if seen.insert((need.package.clone(), need.proof.clone())) {
                    wanted.push(need);
                }
            }
        }
    }
    Ok(wanted)
}

#[cfg(test)]
mod tests {
    use catamaran_gauge::machine::Verdict;

    use super::*;

    #[test]
    fn the_largest_cell_decides_what_is_needed() {
        let text = include_str!("../fixtures/keepalive.toml");
        let experiment = Experiment::read("keepalive.toml", text, false).unwrap();
        let demand = demand(&experiment).unwrap();
        assert_eq!((demand.connections, demand.burst), (300, 100));
        let programs = Programs::from([("catamaran".to_owned(), "/bin/catamaran".into())]);
        let wanted = wanted(&experiment, &programs).unwrap();
        let packages: Vec<_> = wanted
            .iter()
            .filter_map(|need| need.package.as_deref())
            .collect();
        assert_eq!(packages, ["apache2-bin"]);
    }

    #[test]
    fn what_is_missing_is_said_with_what_to_do() {
        let limit = Limit {
            name: "open files",
            meaning: "of a process",
            value: 1024,
            need: 20_000,
            command: "ulimit -n 20000".to_owned(),
        };
        let way = Way {
            what: "CPU time",
            by: "/proc",
            why: Some("no permission".to_owned()),
        };
        let calls = Way {
            what: probe::CALLS,
            by: "strace",
            why: Some("the kernel refuses a program".to_owned()),
        };
        let need = Need {
            package: Some("nginx".to_owned()),
            proof: "/usr/sbin/nginx".into(),
        };
        let folklore = Check::new(Verdict::Folklore, "net.ipv4.tcp_fin_timeout", 15, "no help");
        let examination = Examination {
            ways: vec![way, calls],
            limits: vec![limit],
            folklore: vec![folklore],
            missing: vec![need],
            build: "release".to_owned(),
        };
        assert!(!examination.is_fine());
        let said = examination.to_string();
        for part in [
            "missing  CPU time: only /proc (no permission)",
            "missing  System calls are counted by strace, in a span of their own whose times are not looked at: \
             the kernel refuses a program.",
            "too low  open files = 1024, 20000 needed (of a process): ulimit -n 20000",
            "folklore net.ipv4.tcp_fin_timeout = 15: no help",
            "missing  nginx: apt-get install nginx",
            "slow     This is a release build of catamaran",
        ] {
            assert!(said.contains(part), "{said}");
        }
    }
}

//! Finds what a machine lacks for an experiment: packages, privileges, limits. Nothing is changed.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use catamaran_gauge::machine::{Check, Machine, Verdict};
use catamaran_gauge::probe;
pub use catamaran_tier::Programs;
use catamaran_tier::java::{self, Jars};
use catamaran_tier::then::{self, OldSoftware};
use catamaran_tier::{Need, Place, needs};
use catamaran_toml_file::report::Report;

use crate::experiment::{Addresses, Experiment, Levels, PreparedServer, check_server};
use crate::gate::{GateFinding, check_limits};
use crate::host::slow_build;

/// Checks this machine. `space` is the name of the cgroup with which it tries cgroups; `build` is
/// the profile that this binary was built with.
///
/// # Errors
/// The experiment has servers that their targets cannot make.
pub fn examine(
    experiment: &Experiment,
    programs: &Programs,
    space: &str,
    build: &str,
) -> Result<Vec<Check>, Report> {
    let needed = needs_of_servers(experiment, programs)?;
    let mut checks = probe::ways(space);
    if experiment.has_core_shares() {
        checks.push(probe::shares(space));
    }
    let machine = Machine::here();
    checks.extend(demand(experiment)?.limits(&machine));
    checks.extend(machine.folklore());
    let (unprepared, missing) = unprepared(&needed, programs);
    checks.extend(installation_checks(&missing));
    checks.extend(unprepared.into_iter().map(unprepared_check));
    checks.push(build_check(build));
    Ok(checks)
}

/// The gate that forbids an experiment to begin, because its largest cell would exceed a limit of
/// this machine; `None`: it may begin.
///
/// # Errors
/// The experiment has servers that their targets cannot make.
pub fn refusal(experiment: &Experiment) -> Result<Option<GateFinding>, Report> {
    let limits = demand(experiment)?.limits(&Machine::here());
    Ok(check_limits(&limits))
}

/// Paths of programs that servers need and no package has: this binary, the folders of jars that
/// Maven fetches, those of prepared software, the JDK of old servers ([`JDK`], Debian's if `modules` has no other), and
/// modules of servers by name.
#[must_use]
pub fn programs(catamaran: &Path, modules: &[(String, PathBuf)]) -> Programs {
    let mut programs = Programs::new();
    // Fetched jars and prepared software are in folders below the home directory.
    if let Some(home) = std::env::var_os("HOME").map(PathBuf::from) {
        for jars in java::ALL {
            programs.insert(jars.name.to_owned(), jars.folder(&home));
        }
        let folder = then::folder(&home);
        for software in then::all() {
            programs.insert(software.name.clone(), folder.join(&software.name));
        }
    }
    programs.insert(JDK.to_owned(), PathBuf::from(DEBIAN_JDK));
    programs.extend(modules.iter().cloned());
    programs.insert("catamaran".to_owned(), catamaran.to_owned());
    programs
}

/// Packages, jars and programs that an experiment's servers need and that are not installed.
#[derive(Clone, Debug)]
pub struct MissingNeeds {
    packages: Vec<String>,
    /// The jars that Maven has not fetched yet, each with its folder.
    jars: Vec<(Jars, PathBuf)>,
    /// The names of software of published tests that has not been prepared.
    unprepared: Vec<&'static str>,
    /// Programs whose paths are not known.
    others: Vec<Need>,
}

/// Finds the packages, jars and programs that servers of any cell need and that are not installed.
///
/// # Errors
/// The experiment has servers that their targets cannot make.
pub fn lacks(experiment: &Experiment, programs: &Programs) -> Result<MissingNeeds, Report> {
    let needed = needs_of_servers(experiment, programs)?;
    let is_folder = |need: &Need, folder: &Path| need.package.is_none() && need.proof == folder;
    let folders =
        java::ALL.map(|jars| (jars, programs.get(jars.name).cloned().unwrap_or_default()));
    // A folder of jars may exist without all of them, so it is not decided by `needs::missing`.
    let mut jars_to_fetch = Vec::new();
    for (jars, folder) in &folders {
        let is_needed = needed.iter().any(|need| is_folder(need, folder));
        if is_needed && !jars.are_fetched(folder) {
            jars_to_fetch.push((*jars, folder.clone()));
        }
    }
    let mut packages = Vec::new();
    let mut others = Vec::new();
    let (unprepared, missing) = unprepared(&needed, programs);
    for need in missing {
        let is_jars = folders.iter().any(|(_, folder)| is_folder(&need, folder));
        match need.package {
            Some(package) => packages.push(package),
            None if is_jars => {}
            None => others.push(need),
        }
    }
    Ok(MissingNeeds {
        packages,
        jars: jars_to_fetch,
        unprepared,
        others,
    })
}

/// The software of published tests that is needed and has not been prepared by its current record, and what else is
/// missing.
fn unprepared(needed: &[Need], programs: &Programs) -> (Vec<&'static str>, Vec<Need>) {
    let is_in = |need: &Need, software: &OldSoftware| {
        let folder = programs.get(&software.name);
        need.package.is_none() && folder == Some(&need.proof)
    };
    let mut missing = needs::missing(needed);
    missing.retain(|need| !then::all().iter().any(|software| is_in(need, software)));
    let mut names = Vec::new();
    for software in then::all() {
        // A folder may exist without all of the software, so it is not decided by `needs::missing`.
        let mut of_software = needed.iter().filter(|need| is_in(need, software));
        if of_software.any(|need| !software.is_prepared(&need.proof)) {
            names.push(software.name.as_str());
        }
    }
    (names, missing)
}

/// What to do about software of a published test that has not been prepared.
fn prepare_words(name: &str) -> String {
    format!(
        "not prepared: {name}; `catamaran lab prepare {name}` builds it, and `lab run --now` leaves out what needs it"
    )
}

impl MissingNeeds {
    /// A message on what is missing and how to install it; `None` if nothing is.
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
        lines.extend(self.unprepared.iter().map(|name| prepare_words(name)));
        for need in &self.others {
            lines.push(format!("there is no {}", need.proof.display()));
        }
        (!lines.is_empty()).then(|| lines.join("\n"))
    }

    /// Installs the packages, and has Maven fetch the jars.
    ///
    /// # Errors
    /// apt-get or Maven fails, with its message; or a program is missing that neither can install.
    pub fn install(&self) -> io::Result<()> {
        if !self.packages.is_empty() {
            needs::install(&self.packages).map_err(io::Error::other)?;
        }
        for (jars, folder) in &self.jars {
            jars.fetch(folder)?;
        }
        if let Some(name) = self.unprepared.first() {
            return Err(io::Error::other(prepare_words(name)));
        }
        if let Some(need) = self.others.first() {
            let words = format!("there is no {}", need.proof.display());
            return Err(io::Error::other(words));
        }
        Ok(())
    }
}

/// The connections of the largest cell, to be compared with the machine's limits.
#[derive(Debug, Default)]
struct LoadDemand {
    /// The most connections that one process has open at once.
    connections: u64,
    /// The most connections that come to one listener at once.
    burst: u64,
}

impl LoadDemand {
    fn limits(&self, machine: &Machine) -> Vec<Check> {
        let files = self.connections + SPARE_FILES;
        let reason = format!("connections of the largest cell + {SPARE_FILES}");
        let mut checks = machine.files(files, &reason, None);
        checks.extend(machine.queues(self.burst));
        checks
    }
}

/// The checks of packages and programs: one for each that is missing, or one that all are installed.
fn installation_checks(missing: &[Need]) -> Vec<Check> {
    if missing.is_empty() {
        return vec![Check::of(true, "servers", "all installed", "")];
    }
    let check = |need: &Need| match &need.package {
        Some(package) => Check::of(false, package, "missing", "a server needs it")
            .by(format!("apt-get install {package}")),
        None => Check::of(
            false,
            need.proof.display().to_string(),
            "missing",
            "a server needs it",
        ),
    };
    missing.iter().map(check).collect()
}

/// The check of software of a published test that has not been prepared.
fn unprepared_check(name: &str) -> Check {
    Check::of(false, name, "not prepared", "a server of then needs it")
        .by(format!("catamaran lab prepare {name}"))
}

/// The check of this binary's build: a slow build can run the experiment, but its profile is noted.
fn build_check(build: &str) -> Check {
    match slow_build(build) {
        None => Check::of(true, "catamaran", format!("{build} build"), ""),
        Some(words) => Check::new(Verdict::Note, "catamaran", format!("{build} build"), words),
    }
}

/// The connections that the cell with the most of them needs.
fn demand(experiment: &Experiment) -> Result<LoadDemand, Report> {
    let mut demand = LoadDemand::default();
    for cell in &experiment.cells {
        let load = experiment.load(cell, &addresses(experiment, cell)?)?;
        let of_crowd = load.crowd.as_ref().map_or(0, |crowd| crowd.clients);
        let connections = load.clients + of_crowd;
        demand.connections = demand.connections.max(connections);
        demand.burst = demand.burst.max(load.clients);
    }
    Ok(demand)
}

/// Made-up addresses of a cell's servers, since the templates of its load name them.
fn addresses(experiment: &Experiment, cell: &Levels) -> Result<Addresses, Report> {
    let mut addresses = Addresses::new();
    for number in 0..experiment.servers() {
        // It adds the addresses of this server.
        check_server(experiment, cell, number, &mut addresses)?;
    }
    Ok(addresses)
}

/// The packages and programs that servers of all cells need, each once.
fn needs_of_servers(experiment: &Experiment, programs: &Programs) -> Result<Vec<Need>, Report> {
    let mut needed = Vec::new();
    let mut known = BTreeSet::new();
    for cell in &experiment.cells {
        let mut addresses = Addresses::new();
        for number in 0..experiment.servers() {
            // The cell may do without the server.
            let Some(server) = check_server(experiment, cell, number, &mut addresses)? else {
                continue;
            };
            for need in needs_of_server(&server, programs)? {
                if known.insert((need.package.clone(), need.proof.clone())) {
                    needed.push(need);
                }
            }
        }
    }
    Ok(needed)
}

/// The names of the software of published tests that servers of a cell need.
#[cfg(test)]
pub(crate) fn old_software_of(
    experiment: &Experiment,
    cell: &Levels,
) -> Result<Vec<&'static str>, Report> {
    let mut programs = Programs::new();
    for software in then::all() {
        programs.insert(software.name.clone(), PathBuf::from(&software.name));
    }
    programs.insert(JDK.to_owned(), PathBuf::from(DEBIAN_JDK));
    for name in [
        "catamaran",
        "jars",
        "clients",
        "memcached_clients",
        "nginx_ajp",
    ] {
        programs.insert(name.to_owned(), PathBuf::from("/"));
    }
    let mut of_cell = experiment.clone();
    of_cell.cells = vec![cell.clone()];
    let needed = needs_of_servers(&of_cell, &programs)?;
    Ok(unprepared(&needed, &programs).0)
}

/// The packages and programs that a server needs. Rendering it tells them, and writes nothing, so that the directory
/// and the ports can be made up.
fn needs_of_server(server: &PreparedServer, programs: &Programs) -> Result<Vec<Need>, Report> {
    let PreparedServer {
        target, settings, ..
    } = server;
    let port = |name: String| (name, ([127, 0, 0, 1], 1).into());
    let ports: Vec<_> = target.ports(settings)?.into_iter().map(port).collect();
    let place = Place {
        directory: Path::new("/"),
        ports: &ports,
        programs,
    };
    Ok(target.render(settings, &place)?.needs)
}

/// The name of the JDK that servers of published tests run on: the folder that has `bin/java`.
pub const JDK: &str = "jdk";

/// The folder of Debian's JDK, as targets of old servers name it, too.
const DEBIAN_JDK: &str = "/usr";

/// Open files besides connections: listeners, logs, libraries, and those of a language's runtime.
const SPARE_FILES: u64 = 200;

#[cfg(test)]
mod tests {
    use catamaran_gauge::machine::OPEN_FILES;

    use super::*;

    #[test]
    fn the_largest_cell_decides_what_is_needed() {
        let text = include_str!("../fixtures/keepalive.toml");
        let experiment = Experiment::read("keepalive.toml", text, false).unwrap();
        let demand = demand(&experiment).unwrap();
        assert_eq!((demand.connections, demand.burst), (300, 100));
        let programs = Programs::from([("catamaran".to_owned(), "/bin/catamaran".into())]);
        let wanted = needs_of_servers(&experiment, &programs).unwrap();
        let packages: Vec<_> = wanted
            .iter()
            .filter_map(|need| need.package.as_deref())
            .collect();
        assert_eq!(packages, ["apache2-bin"]);
    }

    #[test]
    fn what_is_missing_is_said_with_what_to_do() {
        let need = Need {
            package: Some("nginx".to_owned()),
            proof: "/usr/sbin/nginx".into(),
        };
        let missing = &installation_checks(&[need])[0];
        assert!(missing.is_short());
        assert_eq!(
            missing.to_string(),
            "short    nginx = missing (a server needs it): apt-get install nginx"
        );
        let slow = build_check("release");
        assert!(!slow.is_short());
        assert!(
            slow.to_string().starts_with(
                "note     catamaran = release build (This is a release build of catamaran"
            ),
            "{slow}"
        );
    }

    #[test]
    fn old_software_that_is_not_prepared_is_said_with_how_to_prepare_it() {
        let folder = tempfile::tempdir().unwrap();
        let of = |name: &str, folder: &Path| (name.to_owned(), folder.to_owned());
        let programs = Programs::from([
            of("httpd-2.0.63", folder.path()),
            of("nginx-0.7.65", Path::new("/nowhere")),
        ]);
        let need = |proof: &Path| Need {
            package: None,
            proof: proof.to_owned(),
        };
        // The folder is there, but nothing says that it is complete.
        let needed = [need(folder.path()), need(Path::new("/no/such"))];
        let (names, missing) = unprepared(&needed, &programs);
        assert_eq!(names, ["httpd-2.0.63"]);
        assert_eq!(missing, needed[1..]);
        let lacks = MissingNeeds {
            packages: Vec::new(),
            jars: Vec::new(),
            unprepared: names,
            others: Vec::new(),
        };
        let words = "not prepared: httpd-2.0.63; `catamaran lab prepare httpd-2.0.63` builds it, and `lab run --now` \
                     leaves out what needs it";
        assert_eq!(lacks.message().unwrap(), words);
        assert_eq!(lacks.install().unwrap_err().to_string(), words);
    }

    #[test]
    fn limits_of_the_machine_are_held_against_the_largest_cell() {
        let demand = LoadDemand {
            connections: u64::MAX / 2,
            burst: 0,
        };
        let limits = demand.limits(&Machine::here());
        assert_eq!(limits[0].what, OPEN_FILES);
        let refused = check_limits(&limits);
        assert_eq!(refused.is_some(), limits[0].is_short());
        assert_eq!(check_limits(&limits[2..]), None);
    }
}

//! Prepares what an experiment needs before anything is started.

use std::path::PathBuf;

use catamaran_lab::doctor::{self, Programs};
use catamaran_lab::experiment::Experiment;
use catamaran_lab::then;

use crate::descriptors::raise_limit;
use crate::failure::Failure;

/// The paths of programs that are in no package: this binary, jars, software that `lab prepare` has built, and those
/// of `--module`.
pub(super) fn programs(modules: &[(String, PathBuf)]) -> Result<Programs, Failure> {
    Ok(doctor::programs(&super::own_path()?, modules))
}

/// The folder into which `lab prepare` builds software if its user names no other.
pub(super) fn then_folder() -> Result<PathBuf, Failure> {
    let home = std::env::home_dir();
    let home = home.ok_or_else(|| Failure::Fault("HOME is not set".to_owned()))?;
    Ok(then::folder(&home))
}

/// The names of the modules that are given by `--module`.
pub(super) fn names(modules: &[(String, PathBuf)]) -> Vec<String> {
    modules.iter().map(|(name, _)| name.clone()).collect()
}

/// Modules with the JDK of `--jdk`, if there is one: all programs that the user has named.
pub(super) fn with_jdk(
    modules: &[(String, PathBuf)],
    jdk: Option<&PathBuf>,
) -> Vec<(String, PathBuf)> {
    let mut given = modules.to_vec();
    given.extend(jdk.map(|folder| (doctor::JDK.to_owned(), folder.clone())));
    given
}

/// Parses the value of `--jdk`: a folder with `bin/java` and `bin/javac`, as an absolute path.
pub(super) fn jdk(text: &str) -> Result<PathBuf, String> {
    let folder = std::fs::canonicalize(text).map_err(|error| error.to_string())?;
    for program in ["bin/java", "bin/javac"] {
        if !folder.join(program).exists() {
            return Err(format!("it has no {program}"));
        }
    }
    Ok(folder)
}

/// Parses the value of `--module`.
pub(super) fn module(text: &str) -> Result<(String, PathBuf), String> {
    let parts = text.split_once('=').filter(|(name, _)| !name.is_empty());
    let (name, file) = parts.ok_or("it is NAME=FILE")?;
    let file = std::fs::canonicalize(file).map_err(|error| format!("{file}: {error}"))?;
    Ok((name.to_owned(), file))
}

/// Parses the value of `--against` into an absolute path. Servers are started in directories of their own, where a
/// relative path would lead elsewhere.
pub(super) fn binary(text: &str) -> Result<PathBuf, String> {
    let path = std::fs::canonicalize(text).map_err(|error| error.to_string())?;
    if !path.is_file() {
        return Err("it is no file".to_owned());
    }
    Ok(path)
}

/// Checks what must exist before anything is started: limits, packages, and containers from Maven's repository.
pub(super) fn check(
    experiment: &Experiment,
    modules: &[(String, PathBuf)],
    is_to_install: bool,
) -> Result<(), Failure> {
    // The servers and the load generator inherit this limit.
    raise_limit();
    let refusal = doctor::refusal(experiment).map_err(|report| Failure::of_report(&report))?;
    if let Some(refusal) = refusal {
        let words = format!("gate {}: {}", refusal.gate, refusal.words);
        return Err(Failure::Fault(words));
    }
    let lacks = doctor::lacks(experiment, &programs(modules)?)
        .map_err(|report| Failure::of_report(&report))?;
    if is_to_install {
        let result = lacks.install();
        return result.map_err(|error| Failure::Fault(error.to_string()));
    }
    match lacks.message() {
        None => Ok(()),
        Some(message) => Err(Failure::Fault(format!(
            "{message}\n`lab run --install` installs packages and fetches jars"
        ))),
    }
}

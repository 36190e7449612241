//! The experiments of this project.

use std::path::Path;

use catamaran_tier::{Fault, Faults};

use crate::experiment::Experiment;

/// Names and files.
const BUILTIN: [(&str, &str); 1] = [("keepalive", include_str!("../experiments/keepalive.toml"))];

/// The names of all.
pub fn names() -> impl Iterator<Item = &'static str> {
    BUILTIN.iter().map(|(name, _)| *name)
}

/// Reads the experiment that is called `name`, or the file of that path.
///
/// # Errors
/// There is none, or everything that is wrong with it.
pub fn experiment(name: &str, is_quick: bool) -> Result<Experiment, Faults> {
    if let Some((_, text)) = BUILTIN.iter().find(|(known, _)| *known == name) {
        return Experiment::read(&format!("{name}.toml"), text, is_quick);
    }
    let fault = |what: String| {
        Faults(vec![Fault {
            place: name.to_owned(),
            what,
        }])
    };
    if !Path::new(name).exists() {
        let known: Vec<&str> = names().collect();
        return Err(fault(format!(
            "no experiment of that name, nor a file; there are {}",
            known.join(", ")
        )));
    }
    let text = std::fs::read_to_string(name).map_err(|error| fault(error.to_string()))?;
    Experiment::read(name, &text, is_quick)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_are_without_fault_whole_and_quick() {
        for name in names() {
            for is_quick in [false, true] {
                let experiment = experiment(name, is_quick).unwrap();
                assert_eq!(experiment.name, name);
                assert!(!experiment.claims.is_empty(), "{name}");
            }
        }
    }

    #[test]
    fn what_is_not_there_is_said_with_what_is() {
        let faults = experiment("keepalife", false).unwrap_err().to_string();
        assert!(faults.contains("there are keepalive"), "{faults}");
    }
}

//! The gate `lines`: servers that a claim compares must not differ in a parameter that the file does not set.
//!
//! Programs have different defaults. A claim that compares two programs is also about their defaults, unless the file
//! sets the parameter for both. It is no fault if the file sets the parameter by a factor that the claim compares.

use std::collections::BTreeMap;

use catamaran_tier::Kind;

use super::check::PreparedServer;
use super::claims::factors_in;
use super::{Experiment, Levels};

/// Those settings of a server that are compared.
struct ComparedSettings {
    /// The kind of server: the name of its target.
    target: String,
    /// The values by the names of the parameters.
    values: BTreeMap<String, String>,
}

/// Finds faults of servers, each with the server's number; `cells` has the servers of each cell.
pub(super) fn check(
    experiment: &Experiment,
    cells: &[Vec<Option<PreparedServer>>],
) -> Vec<(usize, String)> {
    let mut settings = Vec::new();
    for cell in cells {
        let of_cell = cell
            .iter()
            .map(|server| server.as_ref().map(ComparedSettings::of));
        settings.push(of_cell.collect::<Vec<_>>());
    }
    let mut found: Vec<(usize, String)> = Vec::new();
    let cases = experiment.claims.iter().flat_map(|claim| &claim.cases);
    for contrast in cases.flat_map(|case| &case.contrasts) {
        for (above, below) in contrast.above.iter().zip(&contrast.below) {
            let varied = varied_factors(&experiment.cells[*above], &experiment.cells[*below]);
            let pairs = settings[*above].iter().zip(&settings[*below]);
            for (number, pair) in pairs.enumerate() {
                let (Some(server_above), Some(server_below)) = pair else {
                    continue;
                };
                let templates = &experiment.servers[number].set;
                let may_differ = |param: &str| {
                    let template = templates.get(param).map(ToString::to_string);
                    is_varied_by(&template.unwrap_or_default(), &varied)
                };
                let fault = server_above.difference(server_below, may_differ);
                found.extend(fault.map(|what| (number, what)));
            }
        }
    }
    // Several contrasts have the same servers.
    found.sort();
    found.dedup();
    found
}

/// The names of the factors in which two cells differ.
fn varied_factors<'a>(above: &'a Levels, below: &Levels) -> Vec<&'a String> {
    let mut factors = Vec::new();
    for (name, level) in above {
        if below.get(name) != Some(level) {
            factors.push(name);
        }
    }
    factors
}

/// Whether a parameter's template names one of the factors in which two cells differ.
fn is_varied_by(template: &str, varied: &[&String]) -> bool {
    let factors = factors_in(template);
    factors.iter().any(|factor| varied.contains(&factor))
}

impl ComparedSettings {
    /// The settings that decide how the server works: counts, times and choices, but not texts such as paths.
    fn of(server: &PreparedServer) -> Self {
        let is_compared = |name: &str| {
            let mut params = server.target.params();
            params.any(|param| {
                let is_choice = !param.values.is_empty();
                let is_number = matches!(param.kind, Kind::Count | Kind::Duration);
                param.name == name && (is_choice || is_number)
            })
        };
        let mut values = BTreeMap::new();
        for (name, value) in server.settings.iter() {
            if is_compared(name) {
                values.insert(name.to_owned(), value);
            }
        }
        Self {
            target: server.server.target.clone(),
            values,
        }
    }

    /// A message on the parameters in which two servers of different kinds differ, without those that may differ;
    /// `None`: there are none.
    fn difference(&self, other: &Self, may_differ: impl Fn(&str) -> bool) -> Option<String> {
        if self.target == other.target {
            return None;
        }
        let mut params = Vec::new();
        for (name, value) in &self.values {
            // Only parameters that both kinds of server have can be set alike.
            if let Some(of_other) = other.values.get(name)
                && value != of_other
                && !may_differ(name)
            {
                params.push(format!("{name} ({value}, {of_other})"));
            }
        }
        if params.is_empty() {
            return None;
        }
        Some(format!(
            "{} and {} also differ in: {}; `set` makes them alike, or says which factor varies them",
            self.target,
            other.target,
            params.join(", ")
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_factor_that_both_cells_have_alike_varies_nothing() {
        let front = "front".to_owned();
        for (template, expected) in [
            ("{{ lookup({'nginx': 1000}, factor.front, 512) }}", true),
            ("{{ factor.keep }}", false),
            ("{{ factor.fronts }}{{ factor.front }}", true),
            ("512", false),
        ] {
            assert_eq!(is_varied_by(template, &[&front]), expected, "{template}");
        }
    }
}

//! The gate `lines`: servers that a claim compares must not differ in a parameter that the file does not set.
//!
//! Programs have different defaults. A claim that compares two programs is also about their defaults, unless the file
//! sets the parameter for both. It is no fault if the file sets the parameter by a factor that the claim compares.

use std::collections::BTreeMap;

use catamaran_tier::Kind;

use super::Experiment;
use super::check::PreparedServer;
use super::claims::{Contrast, names_in};

/// The kind of a server, and those of its settings that are compared.
type CellSettings = (String, BTreeMap<String, String>);

/// Finds faults of servers, each with the server's number; `made` has the servers of each cell.
pub(super) fn check(
    experiment: &Experiment,
    made: &[Vec<Option<PreparedServer>>],
) -> Vec<(usize, String)> {
    let compared = |cell: &Vec<Option<PreparedServer>>| -> Vec<_> {
        let servers = cell.iter();
        servers.map(|made| made.as_ref().map(compared)).collect()
    };
    let made: Vec<Vec<Option<CellSettings>>> = made.iter().map(compared).collect();
    let mut found: Vec<(usize, String)> = Vec::new();
    let cases = experiment.claims.iter().flat_map(|claim| &claim.cases);
    for Contrast { above, below } in cases.flat_map(|case| &case.contrasts) {
        for (above, below) in above.iter().zip(below) {
            for (number, (one, other)) in made[*above].iter().zip(&made[*below]).enumerate() {
                let (Some(one), Some(other)) = (one, other) else {
                    continue;
                };
                let varied: Vec<&String> = experiment.cells[*above]
                    .iter()
                    .filter(|(name, level)| experiment.cells[*below].get(*name) != Some(*level))
                    .map(|(name, _)| name)
                    .collect();
                let set = &experiment.servers[number].set;
                let is_varied = |name: &str| {
                    let text = set.get(name).map(ToString::to_string);
                    is_varied_by(&text.unwrap_or_default(), &varied)
                };
                let fault = differing(one, other, is_varied);
                found.extend(fault.map(|what| (number, what)));
            }
        }
    }
    found.sort();
    found.dedup();
    found
}

/// Whether a parameter's template names one of the factors in which two cells differ.
fn is_varied_by(template: &str, varied: &[&String]) -> bool {
    let named = names_in(template);
    named.iter().any(|factor| varied.contains(&factor))
}

/// The parameters in which two servers differ, without those for which `is_varied` returns true.
fn differing(
    one: &CellSettings,
    other: &CellSettings,
    is_varied: impl Fn(&str) -> bool,
) -> Option<String> {
    if one.0 == other.0 {
        return None;
    }
    let both = one.1.iter().filter_map(|(name, one)| {
        let other = other.1.get(name)?;
        (one != other && !is_varied(name)).then(|| format!("{name} ({one}, {other})"))
    });
    let both: Vec<String> = both.collect();
    (!both.is_empty()).then(|| {
        format!(
            "{} and {} also differ in: {}; `set` makes them alike, or says which factor varies them",
            one.0,
            other.0,
            both.join(", ")
        )
    })
}

fn compared(made: &PreparedServer) -> CellSettings {
    let is_said = |name: &str| {
        made.target.params().any(|param| {
            param.name == name
                && (!param.values.is_empty() || matches!(param.kind, Kind::Count | Kind::Duration))
        })
    };
    let values = made.settings.iter().filter(|(name, _)| is_said(name));
    let values = values.map(|(name, value)| (name.to_owned(), value));
    (made.server.target.clone(), values.collect())
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

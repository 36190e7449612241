//! The experiments of this project, compiled in.

use std::path::Path;

use catamaran_toml_file::report::Report;

use crate::experiment::{Experiment, Form};

/// The names of this project's experiments.
pub fn names() -> impl Iterator<Item = &'static str> {
    BUILTIN.iter().map(|(name, _)| *name)
}

/// Reads the experiment of this project called `name`, or the experiment's file at that path, in
/// the form `form`; `true` is the short form. Published forms exist only for names.
///
/// # Errors
/// There is no such experiment or file, or its contents are not valid; the report has all faults.
pub fn experiment(name: &str, form: impl Into<Form>) -> Result<Experiment, Report> {
    let form = form.into();
    if form.is_published {
        return published(name, form);
    }
    if let Some((_, text)) = BUILTIN.iter().find(|(known, _)| *known == name) {
        return Experiment::read(&format!("{name}.toml"), text, form);
    }
    if !Path::new(name).exists() {
        let known = names().collect::<Vec<_>>().join(", ");
        let what = format!("no experiment of that name, nor a file; there are {known}");
        return Err(Report::absence(name, what));
    }
    let text =
        std::fs::read_to_string(name).map_err(|error| Report::absence(name, error.to_string()))?;
    Experiment::read(name, &text, form)
}

/// The names of this project's experiments that have a published form: one with the cells of the source.
pub fn published_names() -> impl Iterator<Item = &'static str> {
    PUBLISHED.iter().map(|(name, _)| *name)
}

/// The published form of an experiment, which is a file of its own.
fn published(name: &str, form: Form) -> Result<Experiment, Report> {
    let Some((_, text)) = PUBLISHED.iter().find(|(known, _)| *known == name) else {
        let known = published_names().collect::<Vec<_>>().join(", ");
        let what =
            format!("no experiment of ours has a published form of that name; there are {known}");
        return Err(Report::absence(name, what));
    };
    Experiment::read(&format!("{name}.published.toml"), text, form)
}

/// The experiment that `catamaran demo --tier` starts: a front of ours, two applications of ours,
/// and a small load. It is not for measuring, since it has no factor.
///
/// # Panics
/// Never: a test reads the experiment.
#[must_use]
pub fn demo() -> Experiment {
    let text = include_str!("../experiments/demo.toml");
    let is_quick = false;
    Experiment::read("demo.toml", text, is_quick).expect("it is without fault")
}

/// The names and files of the experiments.
const BUILTIN: [(&str, &str); 20] = [
    ("keepalive", include_str!("../experiments/keepalive.toml")),
    ("static", include_str!("../experiments/static.toml")),
    (
        "ajp-vs-http",
        include_str!("../experiments/ajp-vs-http.toml"),
    ),
    ("io-models", include_str!("../experiments/io-models.toml")),
    ("modules", include_str!("../experiments/modules.toml")),
    ("gateway", include_str!("../experiments/gateway.toml")),
    ("echo", include_str!("../experiments/echo.toml")),
    ("fronts", include_str!("../experiments/fronts.toml")),
    ("reload", include_str!("../experiments/reload.toml")),
    ("redeploy", include_str!("../experiments/redeploy.toml")),
    ("cache", include_str!("../experiments/cache.toml")),
    (
        "memcached-clients",
        include_str!("../experiments/memcached-clients.toml"),
    ),
    (
        "slow-clients",
        include_str!("../experiments/slow-clients.toml"),
    ),
    ("front-page", include_str!("../experiments/front-page.toml")),
    ("front-idle", include_str!("../experiments/front-idle.toml")),
    ("front-bulk", include_str!("../experiments/front-bulk.toml")),
    (
        "front-scale",
        include_str!("../experiments/front-scale.toml"),
    ),
    ("connector", include_str!("../experiments/connector.toml")),
    (
        "connector-idle",
        include_str!("../experiments/connector-idle.toml"),
    ),
    (
        "known-capacity",
        include_str!("../experiments/known-capacity.toml"),
    ),
];

/// The files of published forms, by the names of their experiments.
const PUBLISHED: [(&str, &str); 6] = [
    (
        "ajp-vs-http",
        include_str!("../experiments/ajp-vs-http.published.toml"),
    ),
    (
        "modules",
        include_str!("../experiments/modules.published.toml"),
    ),
    (
        "io-models",
        include_str!("../experiments/io-models.published.toml"),
    ),
    (
        "gateway",
        include_str!("../experiments/gateway.published.toml"),
    ),
    (
        "memcached-clients",
        include_str!("../experiments/memcached-clients.published.toml"),
    ),
    (
        "keepalive",
        include_str!("../experiments/keepalive.published.toml"),
    ),
];

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::experiment::{ERA, Eras, OriginalRun, PublishedFigure, THEN};

    fn published_form(name: &str, eras: Eras) -> Experiment {
        let form = Form {
            is_published: true,
            modules: experiment(name, false).unwrap().known_modules,
            eras,
            ..Form::default()
        };
        experiment(name, form).unwrap()
    }

    #[test]
    fn published_forms_take_at_most_45_minutes_an_era_and_can_decide() {
        for name in published_names() {
            let own = published_form(name, Eras::AsModules);
            assert_eq!((own.name.as_str(), own.is_published), (name, true));
            assert_eq!(
                own.source.split([':', ',']).next(),
                experiment(name, false)
                    .unwrap()
                    .source
                    .split([':', ','])
                    .next()
            );
            let planned = crate::plan::plan(&own, 0);
            assert!(
                planned.most <= Duration::from_secs(45 * 60),
                "{name}: {planned}"
            );
            assert!(own.cells.len() <= 24, "{name}: {} cells", own.cells.len());
            assert!(own.layout.is_some(), "{name} has no layout");
            let reach = crate::claim::reach(&own);
            assert!(
                reach.starts >= 6 && reach.shown == reach.claims,
                "{name}: {reach}"
            );
            let both = published_form(name, Eras::Both);
            let planned = crate::plan::plan(&both, 0);
            assert!(
                planned.most <= Duration::from_secs(2 * 45 * 60),
                "{name}: {planned}"
            );
            // What is measured of the test's own software does not weaken claims on today's.
            let reach_of_both = crate::claim::reach(&both);
            assert!(reach_of_both.shown >= reach.shown, "{name}: {reach}");
        }
    }

    /// Each cell of then needs prepared software, all of it is a module, and no other cell needs any.
    #[test]
    fn published_forms_name_the_software_of_then() {
        for name in published_names() {
            let both = published_form(name, Eras::Both);
            let mut named: Vec<&str> = both.old_software().collect();
            named.sort_unstable();
            let mut needed = Vec::new();
            for cell in &both.cells {
                let of_cell = crate::doctor::old_software_of(&both, cell).unwrap();
                let is_then = cell.get(ERA).is_some_and(|era| era.to_string() == THEN);
                assert_eq!(!of_cell.is_empty(), is_then, "{name}: {cell:?}");
                needed.extend(of_cell);
            }
            needed.sort_unstable();
            needed.dedup();
            assert_eq!(needed, named, "{name}");
        }
    }

    #[test]
    fn a_name_without_a_published_form_is_a_fault() {
        let form = Form {
            is_published: true,
            ..Form::default()
        };
        let fault = experiment("fronts", form).unwrap_err().to_string();
        assert!(fault.contains("there are ajp-vs-http, modules"), "{fault}");
    }

    #[test]
    fn a_published_form_has_no_load_that_preempts() {
        let (_, text) = PUBLISHED
            .iter()
            .find(|(name, _)| *name == "keepalive")
            .unwrap();
        let text = text.replacen("[load]\n", "[load]\npreempts = true\n", 1);
        let fault = Experiment::read("k.toml", &text, false)
            .unwrap_err()
            .to_string();
        assert!(
            fault.contains("a published form has no `preempts`"),
            "{fault}"
        );
    }

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
    fn the_demo_has_one_cell() {
        let demo = demo();
        assert_eq!(demo.cells.len(), 1);
        assert_eq!(demo.servers(), 3);
    }

    #[test]
    fn published_figures_are_used_and_quick_forms_have_their_cells() {
        let mut used = Vec::new();
        for name in names() {
            let [whole, quick] = [false, true].map(|is_quick| experiment(name, is_quick).unwrap());
            for run in &whole.published {
                let is_in = |experiment: &Experiment| experiment.cells.contains(&run.cell);
                let what = format!("{name}: {} {}", run.name, run.says);
                match &run.figures {
                    PublishedFigure::Text(_) => assert!(is_in(&quick), "{what}"),
                    PublishedFigure::Rate { .. } => assert!(is_in(&whole), "{what}"),
                    PublishedFigure::Ratio { cells, claim, .. } => {
                        assert!(cells.is_some(), "{what}");
                        let is_said =
                            |says: &String| whole.claims.iter().any(|claim| claim.says == *says);
                        assert!(claim.iter().all(is_said), "{what}");
                    }
                }
                used.push(run.name.clone());
            }
            let is_cell = |run: &OriginalRun| whole.cells.contains(&run.cell);
            assert!(whole.as_published.iter().all(is_cell), "{name}");
            if whole.source.starts_with("published test") {
                assert!(!whole.published.is_empty(), "{name}");
            }
        }
        for (name, _) in crate::published::BUILTIN {
            assert!(
                used.iter().any(|used| used == name),
                "{name} is in no experiment"
            );
        }
    }

    #[test]
    fn what_is_not_there_is_said_with_what_is() {
        let faults = experiment("keepalife", false).unwrap_err().to_string();
        assert!(faults.contains("there are keepalive"), "{faults}");
    }
}

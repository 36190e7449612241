//! Eras: the factor `era` of a file, with the levels `then` and `now`.
//!
//! An experiment that repeats a published test may have both the test's own software and today's. The level `then` needs
//! software that `catamaran lab prepare` builds, as `[module]` says. Claims are on one era each, so that old software is
//! never averaged with new one.

use catamaran_tier::then;

use super::file::{ClaimKeys, ExperimentFile};
use super::read::FileReader;
use super::{Experiment, Form, Level, Levels};

/// Which levels of a file are read that need software of published tests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Eras {
    /// Those whose software is among the form's modules; without any, only today's software is measured.
    #[default]
    AsModules,
    /// All of them.
    Both,
}

impl Experiment {
    /// The names of the software of published tests that cells of this experiment need, in no particular order.
    pub fn old_software(&self) -> impl Iterator<Item = &str> {
        let modules = self.modules.iter().map(String::as_str);
        modules.filter(|name| is_old_software(name))
    }
}

/// Whether `catamaran lab prepare` builds software of this name.
#[must_use]
pub fn is_old_software(name: &str) -> bool {
    then::find(name).is_some()
}

/// Whether two cells or cases differ in nothing but their era.
pub(crate) fn are_alike_but_for_era(one: &Levels, other: &Levels) -> bool {
    let without_era = |levels: &Levels| {
        let mut levels = levels.clone();
        levels.remove(ERA);
        levels
    };
    without_era(one) == without_era(other)
}

/// The modules whose levels are part of the experiment: those that the form names, and the software of published tests
/// if the form has it.
pub(super) fn modules(form: &Form, file: &ExperimentFile) -> Vec<String> {
    let mut modules = form.modules.clone();
    if form.eras == Eras::Both {
        for name in file.module.keys() {
            if is_old_software(name) && !modules.contains(name) {
                modules.push(name.clone());
            }
        }
    }
    modules
}

impl FileReader<'_> {
    /// Checks the factor `era`: its levels, that the control is of today, that software of published tests is at the
    /// level `then` alone, and that no claim averages eras.
    pub(super) fn check_eras(&mut self, file: &ExperimentFile) {
        let then = Level::Text(THEN.to_owned());
        let now = Level::Text(NOW.to_owned());
        for (name, levels) in &file.module {
            if is_old_software(name) && levels.get_ref().get(ERA) != Some(&then) {
                let what = format!(
                    "{name} is software of a published test: its levels have `{ERA} = \"{THEN}\"`"
                );
                self.fault(levels, what);
            }
        }
        let Some(levels) = file.factor.get(ERA) else {
            return;
        };
        let is_era = |level: &Level| *level == then || *level == now;
        if !levels.get_ref().iter().all(is_era) || !levels.get_ref().contains(&now) {
            let what = format!("the levels of `{ERA}` are `{THEN}` and `{NOW}`");
            self.fault(levels, what);
        }
        if file.control.get_ref().get(ERA) != Some(&now) {
            let what = format!("`control` has `{ERA} = \"{NOW}\"`: the other era may be left out");
            self.fault(&file.control, what);
        }
        for claim in &file.claim {
            if !names_era(claim.get_ref()) {
                let what = format!("a claim is on one era: `each` has `{ERA}`, too");
                self.fault(claim, what);
            }
        }
    }
}

/// Whether a claim has a case for each era, or compares eras.
fn names_era(keys: &ClaimKeys) -> bool {
    let is_compared = match &keys.interaction {
        Some(interaction) => {
            interaction.of.contains_key(ERA) || interaction.across.contains_key(ERA)
        }
        None => keys.level.contains_key(ERA),
    };
    is_compared || keys.each.all().iter().any(|name| name == ERA)
}

/// The factor whose levels are the software of a published test, and today's.
pub const ERA: &str = "era";
/// The level of [`ERA`] for the software of a published test.
pub const THEN: &str = "then";
/// The level of [`ERA`] for today's software.
const NOW: &str = "now";

#[cfg(test)]
mod tests {
    use super::*;

    /// A server of both eras, and a claim on each.
    const FILE: &str = r#"
name = "eras"
question = "?"
source = "published test 004"
form = "published"
control = { era = "now", keep = "off" }
[factor]
era = ["then", "now"]
keep = ["off", "on"]
[module]
"httpd-2.0.63" = { era = "then" }
[[server]]
name = "web"
target = "{{ 'httpd-then' if factor.era == 'then' else 'httpd' }}"
set = { mpm = "prefork", keep_alive = "{{ factor.keep }}", ready_path = "/" }
[load]
url = "{{ server.web.http }}/"
clients = 1
keep_alive = "{{ factor.keep }}"
time = "1s"
warm = { at_least = "1s", at_most = "1s" }
[run]
rounds = 6
seed = 1
[[claim]]
says = "Keep-alive raises throughput"
measure = "throughput"
level = { keep = "on" }
over = { keep = "off" }
each = "era"
expect = "more"
published = 3.21
[[as_published]]
text = "004-on"
cell = { era = "then", keep = "on" }
clients = 1
requests = 10
keep_alive = true
[[as_published]]
text = "004-off"
cell = { era = "now", keep = "off" }
clients = 1
requests = 10
keep_alive = false
"#;

    fn read(form: Form) -> Experiment {
        Experiment::read("eras.toml", FILE, form).unwrap()
    }

    #[test]
    fn software_of_then_is_part_of_it_if_the_form_has_it() {
        let now = read(Form::default());
        assert_eq!((now.cells.len(), now.claims[0].cases.len()), (2, 1));
        assert_eq!(now.old_software().count(), 0);
        let with_then = Form {
            eras: Eras::Both,
            ..Form::default()
        };
        let both = read(with_then);
        assert_eq!((both.cells.len(), both.claims[0].cases.len()), (4, 2));
        assert_eq!(both.old_software().collect::<Vec<_>>(), ["httpd-2.0.63"]);
        // As a stored result names it.
        let again = read(Form {
            modules: both.modules.clone(),
            ..Form::default()
        });
        assert_eq!(again.cells, both.cells);
    }

    #[test]
    fn a_published_run_of_an_era_that_is_left_out_is_left_out() {
        let names = |experiment: &Experiment| -> Vec<String> {
            let runs = experiment.as_published.iter();
            runs.map(|run| run.name.clone()).collect()
        };
        assert_eq!(names(&read(Form::default())), ["004-off"]);
        let both = read(Form {
            eras: Eras::Both,
            ..Form::default()
        });
        assert_eq!(names(&both), ["004-on (then)", "004-off"]);
    }

    /// A module that today's server needs and the old one has.
    #[test]
    fn a_module_may_be_needed_at_one_era_alone() {
        let text = FILE.replace(
            "[module]\n",
            "[module]\nkeeping = { era = \"now\", keep = \"on\" }\n",
        );
        let form = |modules: &[&str]| Form {
            modules: modules.iter().map(|name| (*name).to_owned()).collect(),
            eras: Eras::Both,
            ..Form::default()
        };
        let cells = |modules: &[&str]| -> Vec<String> {
            let read = Experiment::read("eras.toml", &text, form(modules)).unwrap();
            read.cells.iter().map(crate::experiment::label).collect()
        };
        let without = cells(&[]);
        assert_eq!(without.len(), 3, "{without:?}");
        assert!(!without.contains(&"era=now keep=on".to_owned()));
        assert_eq!(cells(&["keeping"]).len(), 4);
    }

    #[test]
    fn eras_are_kept_apart() {
        for (from, to, expected) in [
            (
                "each = \"era\"\n",
                "",
                "a claim is on one era: `each` has `era`, too",
            ),
            (
                "era = [\"then\", \"now\"]",
                "era = [\"then\", \"now\", \"soon\"]",
                "the levels of `era` are `then` and `now`",
            ),
            (
                "control = { era = \"now\"",
                "control = { era = \"then\"",
                "`control` has `era = \"now\"`",
            ),
            (
                "\"httpd-2.0.63\" = { era = \"then\" }",
                "\"httpd-2.0.63\" = { keep = \"on\" }",
                "httpd-2.0.63 is software of a published test",
            ),
        ] {
            assert!(FILE.contains(from), "{from}");
            let text = FILE.replacen(from, to, 1);
            let faults = Experiment::read("eras.toml", &text, true).unwrap_err();
            let faults = faults.to_string();
            assert!(faults.contains(expected), "{faults}");
        }
    }

    #[test]
    fn levels_are_compared_without_their_era() {
        let levels = |era: &str, keep: &str| {
            Levels::from(
                [(ERA, era), ("keep", keep)]
                    .map(|(name, level)| (name.to_owned(), Level::Text(level.to_owned()))),
            )
        };
        assert!(are_alike_but_for_era(
            &levels("then", "on"),
            &levels("now", "on")
        ));
        assert!(!are_alike_but_for_era(
            &levels("now", "off"),
            &levels("now", "on")
        ));
    }
}

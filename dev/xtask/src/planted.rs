//! How often runs of `docs/lab/planted.toml` show what was planted, beside a simulation of as many starts.
//!
//! [`add`] reads results and adds a line for each to [`RUNS`], which is committed. [`page`] makes the tables in
//! docs/lab/method.md from this file alone, so that runs can be added at any time; [`figures`](crate::figures) compares
//! the page with it.

mod found;
mod simulated;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context, ensure};
use catamaran_stats::Share;

use self::found::{ClaimFinding, PlantedRun};
use self::simulated::simulated;
use crate::figures::between;
use crate::published::PageFile;
use crate::step::say;

/// Adds the results in `directories` to the file of runs, and writes the page. A run that is there already, or that was
/// not finished, is left out.
///
/// # Errors
///
/// A directory has no result of the experiment, or a file cannot be read or written.
pub(crate) fn add(root: &Path, directories: &[&str]) -> anyhow::Result<()> {
    let mut runs = load(root)?;
    for directory in directories {
        let run = PlantedRun::of_result(Path::new(directory))?;
        let Some(run) = run else {
            say(&format!("{directory}: not finished, left out"));
            continue;
        };
        let is_same =
            |other: &PlantedRun| (other.started_at_s, other.seed) == (run.started_at_s, run.seed);
        if runs.iter().any(is_same) {
            say(&format!("{directory}: it is there already"));
        } else {
            runs.push(run);
        }
    }
    runs.sort_by_key(|run| (run.started_at_s, run.seed));
    let lines = runs.iter().map(PlantedRun::line);
    let text: String = std::iter::once(found::header()).chain(lines).collect();
    fs::write(root.join(RUNS), text).with_context(|| format!("cannot write {RUNS}"))?;
    let (name, page) = page(root)?;
    fs::write(root.join(&name), page).with_context(|| format!("cannot write {name}"))?;
    say(&format!("{} runs are in {RUNS}", runs.len()));
    Ok(())
}

/// The page of the method, with the tables of all committed runs.
///
/// # Errors
///
/// The file of runs cannot be read, or the page lacks the marks between which the tables are written.
pub(crate) fn page(root: &Path) -> anyhow::Result<PageFile> {
    let runs = load(root)?;
    let before = fs::read_to_string(root.join(PAGE)).context("cannot read the method's page")?;
    let text = between(&before, MARKS, &part(&runs))?;
    Ok((PAGE.to_owned(), text))
}

/// The committed runs, in the order in which they were made.
fn load(root: &Path) -> anyhow::Result<Vec<PlantedRun>> {
    let text =
        fs::read_to_string(root.join(RUNS)).with_context(|| format!("cannot read {RUNS}"))?;
    let mut lines = text.split_inclusive('\n');
    ensure!(
        lines.next() == Some(&found::header()),
        "{RUNS} has other columns than this program"
    );
    let run = |line| PlantedRun::of_line(line).with_context(|| format!("{RUNS}: {line:?}"));
    lines.map(run).collect()
}

/// The tables: one for each form and number of planned starts.
fn part(runs: &[PlantedRun]) -> String {
    let mut groups: BTreeMap<(&str, usize), Vec<&PlantedRun>> = BTreeMap::new();
    for run in runs {
        groups
            .entry((&run.form, run.planned))
            .or_default()
            .push(run);
    }
    let mut text = String::new();
    for ((form, planned), runs) in groups {
        let form = match form {
            found::DUEL => "duels",
            _ => "experiments",
        };
        let _ = write!(
            text,
            "\n{} {form} of at most {planned} starts:\n\n{TABLE_HEAD}",
            runs.len()
        );
        let simulated = simulated(&runs, planned);
        for (number, claim) in CLAIMS.iter().enumerate() {
            let findings: Vec<&ClaimFinding> = runs.iter().map(|run| &run.claims[number]).collect();
            text.push_str(&claim.row(&findings, simulated[number]));
        }
    }
    if runs.is_empty() {
        text.push_str("\nThere is no run yet.\n");
    }
    text.push('\n');
    text
}

/// A claim of the experiment, with what is true of it.
struct PlantedClaim {
    says: &'static str,
    measure: &'static str,
    /// The true ratio of CPU times; throughput has its inverse.
    cost: f64,
}

impl PlantedClaim {
    /// The true ratio of the measure.
    fn truth(&self) -> f64 {
        if self.measure == THROUGHPUT {
            1.0 / self.cost
        } else {
            self.cost
        }
    }

    /// Whether the truth is that nothing differs.
    fn is_of_equals(&self) -> bool {
        self.cost == 1.0
    }

    /// Whether a shown difference is on the side of the planted one. Of servers that do not differ, each is on it.
    fn is_on_its_side(&self, finding: &ClaimFinding) -> bool {
        let is_more = finding.interval.is_some_and(|[_, ratio, _]| ratio > 1.0);
        self.is_of_equals() || is_more == (self.truth() > 1.0)
    }

    /// The row of the claim. A claim that a gate forbids shows nothing and is not among those that could.
    fn row(&self, findings: &[&ClaimFinding], simulated: f64) -> String {
        let (forbidden, allowed): (Vec<&ClaimFinding>, Vec<&ClaimFinding>) = findings
            .iter()
            .copied()
            .partition(|it| it.forbidden_by.is_some());
        let count = |holds: &dyn Fn(&ClaimFinding) -> bool| {
            let those = allowed.iter().filter(|it| holds(it));
            those.count() as u64
        };
        let shown = Share {
            part: count(&|it| it.is_shown() && self.is_on_its_side(it)),
            whole: allowed.len() as u64,
        };
        let other_side = count(&|it| it.is_shown() && !self.is_on_its_side(it));
        let with_interval = count(&|it| it.interval.is_some());
        let holding = count(&|it| {
            let is_within = |[low, _, high]: [f64; 3]| low <= self.truth() && self.truth() <= high;
            it.interval.is_some_and(is_within)
        });
        let planted = if self.is_of_equals() {
            "nothing: wrong".to_owned()
        } else {
            format!("{:.0} %", (self.cost - 1.0) * 100.0)
        };
        let name = if self.measure == THROUGHPUT {
            "throughput"
        } else {
            "CPU time"
        };
        let against = match other_side {
            0 => String::new(),
            count => format!(", and {count} on the other side"),
        };
        format!(
            "| {name} | {planted} | {} | {} of {}{against} | {} | {} | {holding} of {with_interval} |\n",
            words_on(&forbidden),
            shown.part,
            shown.whole,
            interval(shown),
            percent(simulated),
        )
    }
}

/// How many claims are forbidden, by which gates.
fn words_on(forbidden: &[&ClaimFinding]) -> String {
    let mut gates: BTreeMap<&str, usize> = BTreeMap::new();
    for gate in forbidden.iter().filter_map(|it| it.forbidden_by.as_deref()) {
        *gates.entry(gate).or_default() += 1;
    }
    let words: Vec<String> = gates
        .iter()
        .map(|(gate, count)| format!("{count} `{gate}`"))
        .collect();
    if words.is_empty() {
        "0".to_owned()
    } else {
        words.join(", ")
    }
}

/// The exact interval of a share as text.
fn interval(share: Share) -> String {
    if share.whole == 0 {
        return String::new();
    }
    let [low, high] = share.interval(LEVEL);
    format!("{} to {}", percent(low), percent(high))
}

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// The file of runs, and the page with their tables.
const RUNS: &str = "docs/lab/planted-runs.csv";
const PAGE: &str = "docs/lab/method.md";

/// The marks in the page before and after the tables.
const MARKS: [&str; 2] = [
    "<!-- planted: `cargo xtask planted` writes it from planted-runs.csv -->",
    "<!-- end of planted -->",
];

const TABLE_HEAD: &str = "\
| measure | planted | forbidden | shown, of the others | exact interval of 95 % | simulated | intervals with the truth |
|---|---|---|---|---|---|---|
";

/// The confidence level of intervals, and of all claims on one measure together.
const LEVEL: f64 = 0.95;

/// The measures as results name them.
const CPU: &str = "cpu";
const THROUGHPUT: &str = "throughput";

/// The claims of the experiment, those on one measure together.
const CLAIMS: [PlantedClaim; 8] = [
    PlantedClaim {
        says: "The same costs the same CPU time",
        measure: CPU,
        cost: 1.0,
    },
    PlantedClaim {
        says: "3 % more work costs CPU time",
        measure: CPU,
        cost: 1.03,
    },
    PlantedClaim {
        says: "5 % more work costs CPU time",
        measure: CPU,
        cost: 1.05,
    },
    PlantedClaim {
        says: "10 % more work costs CPU time",
        measure: CPU,
        cost: 1.1,
    },
    PlantedClaim {
        says: "The same costs the same throughput",
        measure: THROUGHPUT,
        cost: 1.0,
    },
    PlantedClaim {
        says: "3 % more work costs throughput",
        measure: THROUGHPUT,
        cost: 1.03,
    },
    PlantedClaim {
        says: "5 % more work costs throughput",
        measure: THROUGHPUT,
        cost: 1.05,
    },
    PlantedClaim {
        says: "10 % more work costs throughput",
        measure: THROUGHPUT,
        cost: 1.1,
    },
];

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    fn root() -> PathBuf {
        let manifest = std::env::var_os("CARGO_MANIFEST_DIR").unwrap();
        Path::new(&manifest).ancestors().nth(2).unwrap().to_owned()
    }

    #[test]
    fn the_page_is_as_the_committed_runs_say() {
        let (name, text) = page(&root()).unwrap();
        assert_eq!(fs::read_to_string(root().join(name)).unwrap(), text);
    }

    #[test]
    fn the_claims_are_those_of_the_experiment() {
        let text = fs::read_to_string(root().join("docs/lab/planted.toml")).unwrap();
        let file: toml::Table = text.parse().unwrap();
        let claims = file["claim"].as_array().unwrap();
        let claimed: Vec<[&str; 2]> = claims
            .iter()
            .map(|claim| ["says", "measure"].map(|key| claim[key].as_str().unwrap()))
            .collect();
        let known = CLAIMS.each_ref().map(|claim| [claim.says, claim.measure]);
        assert_eq!(claimed, known);
    }

    /// Runs of eight starts whose claims are all found like this.
    fn found(verdicts: &[(&str, [f64; 3])]) -> Vec<PlantedRun> {
        let run = |(verdict, interval): &(&str, [f64; 3])| {
            let finding = || ClaimFinding::of_words(verdict, Some(*interval), Some(0.01)).unwrap();
            PlantedRun {
                started_at_s: 1,
                seed: 2,
                form: found::DUEL.to_owned(),
                planned: 8,
                rounds: 8,
                build: "dist".to_owned(),
                claims: CLAIMS.iter().map(|_| finding()).collect(),
            }
        };
        verdicts.iter().map(run).collect()
    }

    #[test]
    fn what_is_shown_is_counted_by_its_side_and_what_is_forbidden_apart() {
        let runs = found(&[
            ("differs", [1.02, 1.03, 1.04]),
            ("differs", [0.96, 0.97, 0.98]),
            ("same", [0.99, 1.0, 1.01]),
            ("no-claim:unsteady", [0.99, 1.0, 1.01]),
        ]);
        let text = part(&runs);
        assert!(text.contains("4 duels of at most 8 starts:"), "{text}");
        let row = |begin: &str| {
            let mut lines = text.lines();
            lines.find(|line| line.starts_with(begin)).unwrap()
        };
        let equals = row("| CPU time | nothing: wrong |");
        let words = "| 1 `unsteady` | 2 of 3 | 9.4 % to 99.2 % |";
        assert!(equals.contains(words), "{equals}");
        assert!(equals.ends_with("| 1 of 3 |"), "{equals}");
        let three = row("| CPU time | 3 % |");
        assert!(
            three.contains("| 1 of 3, and 1 on the other side |"),
            "{three}"
        );
        // Throughput falls.
        let three = row("| throughput | 3 % |");
        assert!(
            three.contains("| 1 of 3, and 1 on the other side |"),
            "{three}"
        );
        assert!(three.ends_with("| 1 of 3 |"), "{three}");
        assert!(part(&[]).contains("There is no run yet."));
    }
}

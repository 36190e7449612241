//! A run of the experiment as a line of the file, and what it found of each claim.

use std::fs;
use std::path::Path;

use anyhow::{Context, bail, ensure};
use serde::Deserialize;

use super::CLAIMS;
use crate::figures::LabClaim;

/// A run of the experiment.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct PlantedRun {
    /// When it began, in Unix time.
    pub(super) started_at_s: u64,
    /// The seed of the orders. With the time it tells runs apart.
    pub(super) seed: u64,
    /// [`DUEL`] or [`IN_ROUNDS`].
    pub(super) form: String,
    /// The number of starts of servers that were planned.
    pub(super) planned: usize,
    /// The number of starts that were made, fewer if all claims were decided at a look.
    pub(super) rounds: usize,
    /// The build profile of the binary.
    pub(super) build: String,
    /// What was found of each of [`CLAIMS`], in their order.
    pub(super) claims: Vec<ClaimFinding>,
}

/// What a run found of one claim.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ClaimFinding {
    verdict: &'static str,
    /// The gate that forbids the claim; `None`: none does.
    pub(super) forbidden_by: Option<String>,
    /// The lower end, the ratio and the upper end; `None`: there were too few starts.
    pub(super) interval: Option<[f64; 3]>,
    /// The standard deviation of the logarithms of the starts' ratios; `None` with fewer than two starts.
    pub(super) deviation: Option<f64>,
}

/// The members of a `result.json` that a line has.
#[derive(Deserialize)]
struct PlantedResult {
    name: String,
    is_complete: bool,
    #[serde(default)]
    is_quick: bool,
    #[serde(default)]
    is_duel: bool,
    rounds: usize,
    seed: u64,
    host: PlantedHost,
    claims: Vec<LabClaim>,
}

#[derive(Deserialize)]
struct PlantedHost {
    started_at_s: u64,
    build: String,
}

/// The names of all columns, as a line.
pub(super) fn header() -> String {
    let claims = CLAIMS
        .iter()
        .map(|claim| format!("{} {:.2}", claim.measure, claim.cost));
    let of_run = ["started", "seed", "form", "planned", "starts", "build"];
    let columns = of_run.into_iter().map(str::to_owned).chain(claims);
    columns.collect::<Vec<_>>().join(",") + "\n"
}

impl PlantedRun {
    /// The run in the directory of a result; `None` if it was not finished.
    ///
    /// # Errors
    ///
    /// The directory has no result, or one of another experiment or of the short form.
    pub(super) fn of_result(directory: &Path) -> anyhow::Result<Option<Self>> {
        let file = directory.join("result.json");
        if !file.exists() && directory.join("runs.jsonl").exists() {
            return Ok(None);
        }
        let text =
            fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
        let result: PlantedResult = serde_json::from_str(&text)
            .with_context(|| format!("{} is no result", file.display()))?;
        ensure!(
            result.name == "planted" && !result.is_quick,
            "{} is not of the whole form of docs/lab/planted.toml",
            file.display()
        );
        if !result.is_complete {
            return Ok(None);
        }
        let form = fs::read_to_string(directory.join("form")).unwrap_or_default();
        let mut words = form.split_whitespace();
        let planned = words.find_map(|word| word.strip_prefix("rounds=")?.parse().ok());
        let finding = |says: &str| {
            let found = result.claims.iter().find(|claim| claim.says == says);
            let claim = found.with_context(|| format!("{} lacks {says:?}", file.display()))?;
            ClaimFinding::of_claim(claim)
        };
        let findings = CLAIMS.iter().map(|claim| finding(claim.says));
        Ok(Some(Self {
            started_at_s: result.host.started_at_s,
            seed: result.seed,
            form: if result.is_duel { DUEL } else { IN_ROUNDS }.to_owned(),
            planned: planned.context("`form` does not say how many rounds were planned")?,
            rounds: result.rounds,
            build: result.host.build,
            claims: findings.collect::<anyhow::Result<_>>()?,
        }))
    }

    /// The run of a line.
    ///
    /// # Errors
    ///
    /// The line is not one that [`Self::line`] writes.
    pub(super) fn of_line(line: &str) -> anyhow::Result<Self> {
        let columns: Vec<&str> = line.trim_end().split(',').collect();
        let [started, seed, form, planned, rounds, build, claims @ ..] = &columns[..] else {
            bail!("it has too few columns");
        };
        ensure!([DUEL, IN_ROUNDS].contains(form), "{form:?} is no form");
        ensure!(
            claims.len() == CLAIMS.len(),
            "it has {} claims",
            claims.len()
        );
        Ok(Self {
            started_at_s: started.parse()?,
            seed: seed.parse()?,
            form: (*form).to_owned(),
            planned: planned.parse()?,
            rounds: rounds.parse()?,
            build: (*build).to_owned(),
            claims: claims
                .iter()
                .map(|text| ClaimFinding::of_text(text))
                .collect::<anyhow::Result<_>>()?,
        })
    }

    /// The run as a line.
    pub(super) fn line(&self) -> String {
        let claims: Vec<String> = self.claims.iter().map(ClaimFinding::text).collect();
        format!(
            "{},{},{},{},{},{},{}\n",
            self.started_at_s,
            self.seed,
            self.form,
            self.planned,
            self.rounds,
            self.build,
            claims.join(",")
        )
    }
}

impl ClaimFinding {
    /// What a verdict says; `NO_CLAIM:GATE` names the gate that forbids the claim.
    ///
    /// # Errors
    ///
    /// It is no verdict of the lab.
    pub(super) fn of_words(
        words: &str,
        interval: Option<[f64; 3]>,
        deviation: Option<f64>,
    ) -> anyhow::Result<Self> {
        let (verdict, gate) = match words.split_once(':') {
            Some((verdict, gate)) => (verdict, Some(gate.to_owned())),
            None => (words, None),
        };
        let known = VERDICTS.iter().find(|known| **known == verdict);
        let verdict = known.with_context(|| format!("{verdict:?} is no verdict"))?;
        ensure!(
            gate.is_some() == (*verdict == NO_CLAIM),
            "{words:?}: a gate forbids a claim, and has a name"
        );
        Ok(Self {
            verdict,
            forbidden_by: gate,
            interval,
            deviation,
        })
    }

    fn of_claim(claim: &LabClaim) -> anyhow::Result<Self> {
        let mut forbidding = claim.gates.iter().filter(|gate| gate.effect != "note");
        let words = match forbidding.next() {
            Some(gate) if claim.verdict == NO_CLAIM => format!("{NO_CLAIM}:{}", gate.gate),
            _ => claim.verdict.clone(),
        };
        let interval = match (claim.low, claim.ratio, claim.high) {
            (Some(low), Some(ratio), Some(high)) => Some([low, ratio, high]),
            _ => None,
        };
        Self::of_words(&words, interval, deviation(&claim.starts))
    }

    /// What a column of a line says.
    fn of_text(text: &str) -> anyhow::Result<Self> {
        let parts: Vec<&str> = text.split(' ').collect();
        let [verdict, numbers @ ..] = &parts[..] else {
            bail!("{text:?} has no verdict");
        };
        let number = |text: &&str| match *text {
            UNKNOWN => Ok(None),
            text => text.parse().map(Some),
        };
        let numbers: Vec<Option<f64>> = numbers.iter().map(number).collect::<Result<_, _>>()?;
        let [low, ratio, high, deviation] = numbers[..] else {
            bail!("{text:?} has not four numbers");
        };
        let interval = match (low, ratio, high) {
            (Some(low), Some(ratio), Some(high)) => Some([low, ratio, high]),
            _ => None,
        };
        Self::of_words(verdict, interval, deviation)
    }

    fn text(&self) -> String {
        let gate = match &self.forbidden_by {
            Some(gate) => format!(":{gate}"),
            None => String::new(),
        };
        let interval = match self.interval {
            Some(numbers) => numbers.map(|number| format!("{number:.4}")).join(" "),
            None => [UNKNOWN; 3].join(" "),
        };
        let deviation = match self.deviation {
            Some(deviation) => format!("{deviation:.5}"),
            None => UNKNOWN.to_owned(),
        };
        format!("{}{gate} {interval} {deviation}", self.verdict)
    }

    /// Whether a difference is shown.
    pub(super) fn is_shown(&self) -> bool {
        ["differs", "differs-little"].contains(&self.verdict)
    }
}

/// The standard deviation of the logarithms of ratios; `None` with fewer than two.
fn deviation(ratios: &[f64]) -> Option<f64> {
    let logs: Vec<f64> = ratios.iter().map(|ratio| ratio.ln()).collect();
    let count = logs.len() as f64;
    let mean = logs.iter().sum::<f64>() / count;
    let squares: f64 = logs.iter().map(|log| (log - mean).powi(2)).sum();
    (logs.len() >= 2).then(|| (squares / (count - 1.0)).sqrt())
}

/// The forms of a run.
pub(super) const DUEL: &str = "duel";
const IN_ROUNDS: &str = "rounds";

const NO_CLAIM: &str = "no-claim";

/// The verdicts of the lab.
const VERDICTS: [&str; 7] = [
    "differs",
    "differs-little",
    "suggests",
    "same",
    "not-shown",
    "too-few",
    NO_CLAIM,
];

/// What stands for a number that is not known.
const UNKNOWN: &str = "-";

#[cfg(test)]
mod tests {
    use super::*;

    fn result(directory: &Path, claims: &str, is_complete: bool) {
        let text = format!(
            "{{\"name\": \"planted\", \"is_complete\": {is_complete}, \"is_duel\": true, \"rounds\": 8, \"seed\": 7, \
             \"host\": {{\"started_at_s\": 1795481283, \"build\": \"dist\"}}, \"claims\": [{claims}]}}"
        );
        fs::write(directory.join("result.json"), text).unwrap();
        fs::write(directory.join("form"), "whole rounds=8 duel seed=7").unwrap();
    }

    #[test]
    fn a_result_becomes_a_line_and_a_run_again() {
        let directory = tempfile::tempdir().unwrap();
        let claim = |says: &str, rest: &str| {
            format!("{{\"says\": \"{says}\", \"sentence\": \"\", {rest}}}")
        };
        let claims = CLAIMS.iter().enumerate().map(|(number, it)| match number {
            0 => claim(it.says, "\"verdict\": \"too-few\", \"starts\": [1.0]"),
            1 => claim(
                it.says,
                "\"verdict\": \"no-claim\", \"ratio\": 1.03, \"low\": 1.02, \"high\": 1.04, \"starts\": [1.02, 1.04], \
                 \"gates\": [{\"gate\": \"silences\", \"effect\": \"note\"}, {\"gate\": \"unsteady\", \"effect\": \"claim\"}]",
            ),
            _ => claim(
                it.says,
                "\"verdict\": \"differs\", \"ratio\": 1.03, \"low\": 1.02, \"high\": 1.04, \"starts\": [1.02, 1.04]",
            ),
        });
        let claims: Vec<String> = claims.collect();
        result(directory.path(), &claims.join(","), true);
        let run = PlantedRun::of_result(directory.path()).unwrap().unwrap();
        let line = run.line();
        assert!(
            line.starts_with(
                "1795481283,7,duel,8,8,dist,too-few - - - -,no-claim:unsteady 1.0200 1.0300 1.0400 0.01373,\
                 differs 1.0200 1.0300 1.0400 0.01373,"
            ),
            "{line}"
        );
        let read = PlantedRun::of_line(&line).unwrap();
        assert_eq!(read.line(), line);
        assert_eq!(line.split(',').count(), header().split(',').count());
        result(directory.path(), &claims.join(","), false);
        assert_eq!(PlantedRun::of_result(directory.path()).unwrap(), None);
        result(directory.path(), &claims[1..].join(","), true);
        assert!(PlantedRun::of_result(directory.path()).is_err());
    }

    #[test]
    fn what_is_no_line_is_refused() {
        for line in ["", "1,2,duel,8,8,dist", "1,2,race,8,8,dist,,,,,,,,"] {
            assert!(PlantedRun::of_line(line).is_err(), "{line:?}");
        }
        for text in [
            "differs",
            "differs 1 2",
            "wins 1 1 1 1",
            "no-claim 1 1 1 1",
            "same:foreign 1 1 1 1",
        ] {
            assert!(ClaimFinding::of_text(text).is_err(), "{text:?}");
        }
    }
}

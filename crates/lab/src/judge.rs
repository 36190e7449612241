//! What a published figure cannot carry: the gates, applied to texts of ab and wrk and to reports of
//! `bench --json`.

use std::fmt;

use catamaran_load::document::Document;

use crate::experiment::How;
use crate::gate::{self, Effect, Facts, Fired, thousands};
use crate::published::{self, Calls, Figures, Published, TextFault};

/// What is said of one text, or of two beside each other.
#[derive(Clone, Debug, PartialEq)]
pub struct Judgement {
    /// The names of the texts, and what they say.
    pub title: String,
    /// What they cannot carry.
    pub found: Vec<Fired>,
}

/// Why a text cannot be judged.
#[derive(Debug, thiserror::Error)]
pub enum JudgeFault {
    /// It is no text of a known tool.
    #[error("{name}: {fault}")]
    Text {
        /// The text's name.
        name: String,
        /// What is wrong with it.
        fault: TextFault,
    },
    /// It is JSON, but no report of ours.
    #[error("{name}: {fault}")]
    Report {
        /// The text's name.
        name: String,
        /// What is wrong with it.
        fault: catamaran_load::document::DocumentFault,
    },
}

/// Judges texts, each a name and what is in it: each alone, then each neighbouring pair.
///
/// # Errors
/// The first text that no known tool has printed.
pub fn judge(texts: &[(String, String)]) -> Result<Vec<Judgement>, JudgeFault> {
    let read = texts.iter().map(|(name, text)| Run::read(name, text));
    let runs = read.collect::<Result<Vec<_>, _>>()?;
    let mut judgements: Vec<Judgement> = runs.iter().map(Run::alone).collect();
    let with_figures: Vec<&Run> = runs.iter().filter(|run| run.facts.is_some()).collect();
    judgements.extend(
        with_figures
            .windows(2)
            .filter_map(|pair| pair[0].beside(pair[1])),
    );
    Ok(judgements)
}

/// A text that was read.
struct Run {
    name: String,
    says: String,
    /// `None`: a table of system calls.
    facts: Option<Facts>,
    found: Vec<Fired>,
}

impl Run {
    fn read(name: &str, text: &str) -> Result<Self, JudgeFault> {
        let name = name.to_owned();
        if text.trim_start().starts_with('{') {
            return match Document::parse(text) {
                Ok(document) => Ok(Self::of_document(name, &document)),
                Err(fault) => Err(JudgeFault::Report { name, fault }),
            };
        }
        match published::parse(text) {
            Ok(Published::Run(figures)) => Ok(Self::of_figures(name, &figures)),
            Ok(Published::Calls(calls)) => Ok(Self::of_calls(name, &calls)),
            Err(fault) => Err(JudgeFault::Text { name, fault }),
        }
    }

    fn of_document(name: String, document: &Document) -> Self {
        let mut facts = Facts::of_document(document);
        facts.expect.status = Some(200);
        let mut found = gate::check_run(&facts);
        found.extend(general("bench", &facts));
        Self {
            name,
            says: says("bench", &facts),
            facts: Some(facts),
            found,
        }
    }

    fn of_figures(name: String, figures: &Figures) -> Self {
        let facts = Facts::of_figures(figures);
        let mut found = gate::check_run(&facts);
        found.extend(general(figures.tool, &facts));
        Self {
            name,
            says: says(figures.tool, &facts),
            facts: Some(facts),
            found,
        }
    }

    fn of_calls(name: String, calls: &Calls) -> Self {
        let all: u64 = calls.counts.values().sum();
        let errors: u64 = calls.errors.values().sum();
        let most = calls.counts.iter().max_by_key(|(_, count)| **count);
        let most = most.map_or_else(String::new, |(name, count)| {
            format!(", most of them {name} ({})", thousands(*count))
        });
        let says = format!(
            "strace -c, {} system calls{most}, {} failed",
            thousands(all),
            thousands(errors)
        );
        let words = "Under strace each call stops the process twice: counts hold, times and shares of \
                     time are strace's.";
        Self {
            name,
            says,
            facts: None,
            found: vec![note("strace-times", words.to_owned())],
        }
    }

    fn alone(&self) -> Judgement {
        Judgement {
            title: format!("{}: {}", self.name, self.says),
            found: self.found.clone(),
        }
    }

    /// `None` if nothing is to be said.
    fn beside(&self, other: &Self) -> Option<Judgement> {
        let found = gate::pair::check(self.facts.as_ref()?, other.facts.as_ref()?);
        let (one, two) = (self.facts.as_ref()?.rate, other.facts.as_ref()?.rate);
        let ratio = one.zip(two).map_or_else(String::new, |(one, two)| {
            format!(": rates {one:.1}/s and {two:.1}/s, ratio {:.2}", two / one)
        });
        let title = format!("{} beside {}{ratio}", self.name, other.name);
        Some(Judgement { title, found })
    }
}

/// What holds of any single run.
fn general(tool: &str, facts: &Facts) -> Vec<Fired> {
    let mut found = Vec::new();
    let seconds = facts.seconds.unwrap_or(f64::INFINITY);
    if seconds < SHORT_S {
        found.push(note(
            "unsteady",
            format!("{seconds:.1} s, and no warm-up is named: a JVM takes 12 to 25 s to get warm."),
        ));
    }
    if tool == "wrk" && facts.non_2xx.is_none() {
        let words = "wrk counts redirects among good answers and prints no statuses: nothing shows that \
                     the page was measured.";
        found.push(note("status", words.to_owned()));
    }
    if tool != "bench" {
        let words =
            format!("{tool} does not say how busy it was itself: it may have been the limit.");
        found.push(note("generator", words));
    }
    let words = gate::published::how(How::OneRun);
    found.push(note("published", words.to_owned()));
    found
}

fn note(gate: &str, words: String) -> Fired {
    Fired {
        gate: gate.to_owned(),
        effect: Effect::Note,
        words,
    }
}

fn says(tool: &str, facts: &Facts) -> String {
    let mut parts = vec![tool.to_owned()];
    if let Some(clients) = facts.clients {
        parts.push(format!("{} clients", thousands(clients)));
    }
    parts.push(format!("{} answers", thousands(facts.completed)));
    if let Some(seconds) = facts.seconds {
        parts.push(format!("{seconds:.1} s"));
    }
    if let Some(rate) = facts.rate {
        parts.push(format!("{rate:.1}/s"));
    }
    parts.join(", ")
}

impl fmt::Display for Judgement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.title)?;
        for Fired {
            gate,
            effect,
            words,
        } in &self.found
        {
            let weight = match effect {
                Effect::Refuse => "refuse",
                Effect::Void => "void",
                Effect::Time | Effect::Machine | Effect::Claim => "no claim",
                Effect::Note => "note",
            };
            writeln!(f, "  {weight:<8}  {gate}: {words}")?;
        }
        if self.found.is_empty() {
            writeln!(f, "  nothing found")?;
        }
        Ok(())
    }
}

/// Below this a run without a warm-up is one of a cold server.
const SHORT_S: f64 = 30.0;

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(names: &[&str]) -> Vec<Judgement> {
        let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/published/");
        let texts = names.iter().map(|name| {
            let text = std::fs::read_to_string(format!("{directory}{name}.txt")).unwrap();
            ((*name).to_owned(), text)
        });
        judge(&texts.collect::<Vec<_>>()).unwrap()
    }

    fn fired(judgement: &Judgement) -> Vec<&str> {
        judgement
            .found
            .iter()
            .map(|fired| fired.gate.as_str())
            .collect()
    }

    #[test]
    fn redirects_without_keep_alive_were_measured() {
        for name in ["002-bio-1", "002-bio-2", "002-nio-1", "002-nio-2"] {
            let judgement = &judged(&[name])[0];
            let expected = ["status", "keep-alive", "unsteady", "generator", "published"];
            assert_eq!(fired(judgement), expected, "{name}");
            assert!(
                judgement.found[0]
                    .words
                    .starts_with("5,000 of 5,000 answers were not 2xx")
            );
            assert!(judgement.found[1].words.contains("0 of 5,000"));
            assert_eq!(judgement.found[0].effect, Effect::Void);
        }
    }

    #[test]
    fn heads_of_different_length_were_compared() {
        let judgements = judged(&["000-http", "000-ajp"]);
        let pair = &judgements[2];
        assert!(fired(pair).contains(&"unequal-answers"), "{pair}");
        assert!(pair.to_string().contains("differ by 27.0 bytes"), "{pair}");
    }

    #[test]
    fn maxima_were_compared() {
        let judgements = judged(&["004-off", "004-on"]);
        assert_eq!(fired(&judgements[0]), ["generator", "published"]);
        assert_eq!(fired(&judgements[1]), ["maximum", "generator", "published"]);
        let pair = judgements[2].to_string();
        assert!(pair.contains("ratio 3.21"), "{pair}");
        assert!(pair.contains("a factor of 14 (101 and 1409 ms)"), "{pair}");
    }

    #[test]
    fn a_table_of_calls_has_counts_only() {
        let judgements = judged(&["004-off.strace", "004-on.strace"]);
        assert_eq!(judgements.len(), 2);
        assert!(
            judgements[0]
                .title
                .contains("375,310 system calls, most of them read (67,716)")
        );
        assert_eq!(fired(&judgements[0]), ["strace-times"]);
    }

    #[test]
    fn what_is_no_report_is_named() {
        let texts = [("notes.md".to_owned(), "# Notes".to_owned())];
        let fault = judge(&texts).unwrap_err().to_string();
        assert!(
            fault.starts_with("notes.md: this is no text of ab"),
            "{fault}"
        );
        let texts = [("a.json".to_owned(), "{\"schema\": \"x/1\"}".to_owned())];
        let fault = judge(&texts).unwrap_err().to_string();
        assert!(
            fault.starts_with("a.json: this report is of the version"),
            "{fault}"
        );
    }
}

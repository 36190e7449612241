//! Texts that other tools have printed, with what was true: what is said of them, and nothing else.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use catamaran_lab::gate::Effect;
use catamaran_lab::judge::{GATES, Judgement, judge};
use catamaran_testkit::Cases;
use serde::Deserialize;

/// `texts/truth.toml`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Truth {
    text: Vec<Text>,
}

/// A text, how it was made, and what is to be said of it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Text {
    file: String,
    /// The tool and its version.
    #[expect(dead_code, reason = "for people")]
    tool: String,
    /// How it was called.
    #[expect(dead_code, reason = "for people")]
    command: String,
    /// What the server did, and what was done to the text afterwards.
    #[expect(dead_code, reason = "for people")]
    planted: String,
    /// Parts of the title of each run.
    #[serde(default)]
    says: Vec<String>,
    /// The gates that void it.
    #[serde(default)]
    void: BTreeSet<String>,
    /// The remarks on this text beside those that hold of any.
    #[serde(default)]
    notes: BTreeSet<String>,
    /// A part of the fault, if there is nothing to judge.
    refused: Option<String>,
    /// What is said of pairs.
    #[serde(default)]
    pairs: Vec<String>,
}

impl Text {
    /// What is said wrongly, or not at all; empty if nothing is. `fired` gets the names of all gates that fire.
    fn check(&self, text: String, fired: &mut BTreeSet<String>) -> String {
        let judgements = match (judge(&[(self.file.clone(), text)]), &self.refused) {
            (Err(fault), Some(words)) if fault.to_string().contains(words) => return String::new(),
            (Err(fault), _) => return format!("{fault}\n"),
            (Ok(judgements), None) => judgements,
            (Ok(_), Some(_)) => return format!("{} is not refused\n", self.file),
        };
        let found = judgements.iter().flat_map(|it| &it.found);
        fired.extend(found.map(|it| it.gate.clone()));
        let mut wrong = String::new();
        let all: String = judgements.iter().map(Judgement::to_string).collect();
        for words in self.says.iter().chain(&self.pairs) {
            if !all.contains(words) {
                let _ = writeln!(wrong, "{}: {words:?} is not said", self.file);
            }
        }
        let alone = judgements
            .iter()
            .filter(|it| !it.title.contains(" beside "));
        let mut found: BTreeMap<bool, BTreeSet<String>> = BTreeMap::new();
        for finding in alone.flat_map(|judgement| &judgement.found) {
            let is_note = finding.effect == Effect::Note;
            if !(is_note && USUAL.contains(&finding.gate.as_str())) {
                found
                    .entry(is_note)
                    .or_default()
                    .insert(finding.gate.clone());
            }
        }
        for (is_note, expected) in [(false, &self.void), (true, &self.notes)] {
            let found = found.remove(&is_note).unwrap_or_default();
            if found != *expected {
                let kind = if is_note { "notes" } else { "voids" };
                let _ = writeln!(
                    wrong,
                    "{}: {kind} {found:?}, expected {expected:?}",
                    self.file
                );
            }
        }
        if !wrong.is_empty() {
            wrong.push_str(&all);
        }
        wrong
    }
}

#[test]
fn texts_of_other_tools() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/texts");
    let truth = fs::read_to_string(directory.join("truth.toml")).unwrap();
    let truth: Truth = toml::from_str(&truth).unwrap();
    let printed = Cases::read(directory.join("printed.txt"));
    let mut fired = BTreeSet::new();
    let mut check = |it: &Text| it.check(printed.case(&it.file).text.clone(), &mut fired);
    let wrong: String = truth.text.iter().map(&mut check).collect();
    assert!(wrong.is_empty(), "\n{wrong}");
    for gate in GATES {
        assert!(
            fired.contains(gate.name),
            "no text fires {}: {}",
            gate.name,
            gate.words
        );
    }
    let named: BTreeSet<String> = truth.text.into_iter().map(|it| it.file).collect();
    let all: BTreeSet<String> = printed.iter().map(|it| it.name.clone()).collect();
    assert_eq!(named, all);
    assert!(named.len() >= 40, "{}", named.len());
}

/// Said of any text whose tool does not know better.
const USUAL: [&str; 4] = ["generator", "published", "strace-times", "unsteady"];

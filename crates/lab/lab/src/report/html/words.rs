//! Explains the words of a page, folded away at its end: verdicts, figures, and each gate that the page names.

use std::collections::BTreeSet;

use catamaran_chart::escaped;

use super::page::Page;
use crate::claim::{self, Verdict};
use crate::gate;
use crate::judge;
use crate::result::ResultDocument;

/// Writes the explanations of all verdicts and figures, and of the gates that the page names.
pub(super) fn put(page: &mut Page, result: &ResultDocument) {
    page.fold("What the words mean");
    page.put(format_args!("<dl class=\"words\">\n"));
    for verdict in VERDICTS {
        term(page, verdict.word(), meaning(verdict));
    }
    for (word, meaning) in FIGURES {
        term(page, word, meaning);
    }
    let of_runs = result.gates.iter().map(|fired| fired.gate.as_str());
    let of_claims = result.claims.iter().flat_map(|claim| &claim.gates);
    let named: BTreeSet<&str> = of_runs
        .chain(of_claims.map(|fired| fired.gate.as_str()))
        .collect();
    for name in named {
        term(page, &format!("gate {name}"), &gloss(name));
    }
    page.put(format_args!("</dl>\n"));
    page.end_fold();
}

fn term(page: &mut Page, word: &str, meaning: &str) {
    let (word, meaning) = (escaped(word), escaped(meaning));
    page.put(format_args!("<dt>{word}</dt><dd>{meaning}</dd>\n"));
}

/// The conditions under which the gate `name` fires, from all of its records. For a gate that only another version has,
/// a text that says so.
fn gloss(name: &str) -> String {
    let mut gates = gate::words();
    gates.extend(claim::GATES.iter().map(|gate| (gate.name, gate.words)));
    gates.extend(judge::GATES.iter().map(|gate| (gate.name, gate.words)));
    gates.extend(judge::ROW_GATES.iter().map(|gate| (gate.name, gate.words)));
    let mut conditions: Vec<&str> = Vec::new();
    for (gate, words) in gates {
        if gate == name && !conditions.contains(&words) {
            conditions.push(words);
        }
    }
    if conditions.is_empty() {
        "A gate of an older version.".to_owned()
    } else {
        format!("It fires when {}.", conditions.join("; or when "))
    }
}

fn meaning(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Differs | Verdict::DiffersLittle => {
            "The interval excludes 1, also beside the other claims on the same measure."
        }
        Verdict::Suggests => {
            "The interval excludes 1, but among so many claims that may be chance."
        }
        Verdict::Same => "The whole interval lies within the margin.",
        Verdict::NotShown => {
            "The interval has 1 in it: the sentence says how large a difference it may hide."
        }
        Verdict::TooFew => "There are fewer starts of servers than an interval needs.",
        Verdict::NoClaim => {
            "A gate forbids to conclude anything. The figures are grey and struck out."
        }
    }
}

const VERDICTS: [Verdict; 6] = [
    Verdict::Differs,
    Verdict::Suggests,
    Verdict::Same,
    Verdict::NotShown,
    Verdict::TooFew,
    Verdict::NoClaim,
];

const FIGURES: [(&str, &str); 5] = [
    (
        "start",
        "A start of all servers of a claim. Starts are the sample: rounds that share one count once.",
    ),
    (
        "ratio",
        "The estimate of Hodges and Lehmann of the starts' ratios, with the interval of 95 % of Wilcoxon's test.",
    ),
    (
        "void",
        "A run that shows nothing of what it was meant to show. It is made again, at most twice.",
    ),
    (
        "cell",
        "A combination of levels, such as keep=on at idle=200.",
    ),
    (
        "gate",
        "A condition under which a run, or a conclusion from it, is not valid.",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_gate_has_a_line() {
        let names = gate::run_gates().into_iter();
        for name in names.chain(claim::GATES.iter().map(|gate| gate.name)) {
            let gloss = gloss(name);
            assert!(gloss.starts_with("It fires when "), "{name}: {gloss}");
        }
        assert_eq!(gloss("unheard-of"), "A gate of an older version.");
        let words = gloss("keep-alive");
        assert_eq!(
            words,
            "It fires when fewer than 1 − 1.5/limit (99 % without a limit) were kept."
        );
    }
}

//! Judges published figures by the gates: which conclusions they do not support. It reads texts of load generators and
//! of `strace -c`, whole pages with such texts in them, and reports of `bench --json`.

mod doubts;
mod length;
mod rows;

use std::fmt;

use catamaran_load::report::Report;
use catamaran_units::show_count;
use serde::Serialize;

use self::doubts::{doubts, general};
use self::length::AnswerLength;
pub use self::rows::ROW_GATES;
pub(crate) use self::rows::{check_row, limit_of};
use crate::facts::{Facts, successes_as_one};
use crate::gate::{self, Effect, GateFinding, GateRecord};
use crate::published::{self, Calls, PublishedText, TextFault, TextFigures};

/// The judgement on one run, or on two that are compared.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Judgement {
    /// The names of the runs and their main figures; for two runs, also the ratio of their rates.
    pub title: String,
    /// The conclusions that the runs do not support.
    pub found: Vec<GateFinding>,
}

/// Why a text cannot be judged.
#[derive(Debug, thiserror::Error)]
pub enum JudgeFault {
    /// The text has no whole report of a known tool.
    #[error("{name}: {fault}")]
    Text {
        /// The text's name.
        name: String,
        /// What is wrong with it.
        fault: TextFault,
    },
    /// The text is JSON, but not a valid report of `bench`.
    #[error("{name}: {fault}")]
    Report {
        /// The text's name.
        name: String,
        /// What is wrong with it.
        fault: catamaran_load::report::ReportFault,
    },
}

/// Gates that only texts of other tools can fire, by code in this module.
pub static GATES: &[GateRecord<()>] = &[
    of_texts(
        UNEQUAL_LOAD,
        "two runs are of different tools or numbers of clients, one kept its connections, or their answers differ in length",
    ),
    of_texts(STOPPED, "the tool gave up, or was stopped early"),
    of_texts(UNCONNECTED, "clients never had a connection"),
    of_texts(CHECKS, "checks of the user's script failed"),
    of_texts(
        SAMPLED,
        "the tool kept statuses and times of a part of the answers",
    ),
    of_texts(
        LONGEST,
        "the longest request took half of the run, and three times the median",
    ),
    of_texts(TIMEOUTS, "requests took longer than the tool waits"),
    of_texts(STRACE_TIMES, "a table of `strace -c` has times"),
    of_texts(CUT, "the report was cut"),
];

/// Judges texts, each a name with its contents. First is each run alone, then the runs of one page compared with each
/// other, then texts of a single run each, compared with the next one.
///
/// # Errors
/// The first text that has no whole report of a known tool.
pub fn judge(texts: &[(String, String)]) -> Result<Vec<Judgement>, JudgeFault> {
    let mut sources = Vec::new();
    for (name, text) in texts {
        sources.push(Source::read(name, text)?);
    }
    let runs = sources.iter().flat_map(|source| &source.runs);
    let mut judgements: Vec<Judgement> = runs.map(TextRun::alone).collect();
    for source in &sources {
        let pairs = source.pairs().into_iter();
        judgements.extend(pairs.filter_map(|(one, other)| one.beside(other)));
    }
    // Texts without figures do not separate the texts before and after them, but pages with several runs do.
    let mut before: Option<&TextRun> = None;
    for source in &sources {
        let single = match source.with_figures()[..] {
            [] => continue,
            [run] => Some(run),
            _ => None,
        };
        if let (Some(one), Some(other)) = (before, single) {
            judgements.extend(one.beside(other));
        }
        before = single;
    }
    Ok(judgements)
}

/// A text and the runs in it.
struct Source {
    runs: Vec<TextRun>,
}

impl Source {
    /// Reads a text: a report of `bench --json`, or one with runs of other tools. A report that occurs twice is read
    /// once.
    fn read(name: &str, text: &str) -> Result<Self, JudgeFault> {
        // A mark of the byte order, which some editors write first.
        let text = text.trim_start_matches('\u{feff}');
        let blocks = published::blocks(text);
        // JSON of other tools has no such key: it is a text that is not known.
        let is_of_bench = text.trim_start().starts_with('{') && text.contains("\"schema\"");
        if is_of_bench && blocks.is_empty() {
            let name = name.to_owned();
            return match Report::parse(text) {
                Ok(document) => Ok(Self {
                    runs: vec![TextRun::of_document(name, &document)],
                }),
                Err(fault) => Err(JudgeFault::Report { name, fault }),
            };
        }
        if let Some(fault) = first_fault(&blocks) {
            let name = name.to_owned();
            return Err(JudgeFault::Text { name, fault });
        }
        Ok(Self {
            runs: Self::runs_of_blocks(name, &blocks),
        })
    }

    /// The runs of a text, without those that occur again after their first place.
    fn runs_of_blocks(name: &str, blocks: &[published::Block]) -> Vec<TextRun> {
        let mut runs: Vec<TextRun> = Vec::new();
        // With several different runs, each is named by its line.
        let is_page = blocks
            .iter()
            .any(|block| block.content != blocks[0].content);
        for (index, block) in blocks.iter().enumerate() {
            // Pages contain a listing twice, to be read and to be copied.
            let is_copy =
                |other: &&published::Block| other.content.is_ok() && other.content == block.content;
            let (before, after) = (&blocks[..index], &blocks[index + 1..]);
            if before.iter().any(|other| is_copy(&other)) {
                continue;
            }
            let run_name = if is_page {
                format!("{name}:{}", block.line)
            } else {
                name.to_owned()
            };
            let mut run = TextRun::of_block(run_name, block);
            let copies = after.iter().filter(is_copy);
            let lines: Vec<String> = copies.map(|copy| copy.line.to_string()).collect();
            if !lines.is_empty() {
                run.says += &format!("; again in line {}", lines.join(", "));
            }
            runs.push(run);
        }
        runs
    }

    /// The runs that can be compared: those with facts.
    fn with_figures(&self) -> Vec<&TextRun> {
        let runs = self.runs.iter();
        runs.filter(|run| run.facts.is_some()).collect()
    }

    /// The runs that are compared: each with all others of the page, or each with the next one if there are more than
    /// [`PAGE_RUNS_MAX`].
    fn pairs(&self) -> Vec<(&TextRun, &TextRun)> {
        let runs = self.with_figures();
        let others_max = if runs.len() <= PAGE_RUNS_MAX {
            runs.len()
        } else {
            1
        };
        let mut pairs = Vec::new();
        for (index, run) in runs.iter().enumerate() {
            for other in runs[index + 1..].iter().take(others_max) {
                pairs.push((*run, *other));
            }
        }
        pairs
    }
}

/// The first fault if no block of a text can be read; `None` if any can.
fn first_fault(blocks: &[published::Block]) -> Option<TextFault> {
    if blocks.iter().any(|block| block.content.is_ok()) {
        return None;
    }
    match blocks.first().map(|block| &block.content) {
        Some(Err(fault)) => Some(*fault),
        _ => Some(TextFault::Unknown),
    }
}

/// A run that was read from a text.
struct TextRun {
    name: String,
    says: String,
    tool: &'static str,
    /// The facts for gates; `None` for a table of system calls, and for a report that was cut or that its tool gave up.
    facts: Option<Facts>,
    /// The value of the `Server` field, empty if the server sent none; `None` if it is not known.
    software: Option<String>,
    /// Whether keep-alive was asked for; `None` if that is not known.
    keep_alive: Option<bool>,
    /// The mean length of a response; `None` if it is not known.
    length: Option<AnswerLength>,
    found: Vec<GateFinding>,
}

impl TextRun {
    fn of_block(name: String, block: &published::Block) -> Self {
        match &block.content {
            Ok(PublishedText::Run(figures)) => match &figures.gave_up {
                Some(why) => Self::gave_up(name, figures, why),
                None => Self::of_figures(name, figures),
            },
            Ok(PublishedText::Calls(calls)) => Self::of_calls(name, calls),
            Err(fault) => Self::cut(name, *fault),
        }
    }

    fn of_document(name: String, document: &Report) -> Self {
        let mut facts = Facts::of_document(document);
        // A report does not tell which status was wanted.
        facts.expect.status = Some(200);
        facts.statuses = successes_as_one(facts.statuses);
        let length = facts.body_bytes.map(AnswerLength::Body);
        // A report does not tell whether connections were to be kept, but whether most of them were.
        let keep_alive = facts.kept.map(|kept| kept * 2 > facts.completed);
        let warm_up_s = Some(document.warm_up.duration.as_secs_f64());
        Self {
            keep_alive,
            length,
            ..Self::of_facts(name, "bench", facts, warm_up_s, Vec::new())
        }
    }

    fn of_figures(name: String, figures: &TextFigures) -> Self {
        let facts = Facts::of_figures(figures);
        Self {
            software: figures.software.clone(),
            keep_alive: figures.keep_alive,
            length: AnswerLength::of_figures(figures),
            ..Self::of_facts(
                name,
                figures.tool,
                facts,
                figures.warm_up_s,
                doubts(figures),
            )
        }
    }

    /// A run with the findings of all gates on its facts and of `doubts`. `warm_up_s` is the length of the warm-up in
    /// seconds, if one is named.
    fn of_facts(
        name: String,
        tool: &'static str,
        facts: Facts,
        warm_up_s: Option<f64>,
        doubts: Vec<GateFinding>,
    ) -> Self {
        let mut found = gate::check_run(&facts);
        found.extend(doubts);
        found.extend(general(tool, &facts, warm_up_s));
        Self {
            name,
            says: says(tool, &facts),
            tool,
            facts: Some(facts),
            software: None,
            keep_alive: None,
            length: None,
            found,
        }
    }

    /// A report that was cut: it has no facts.
    fn cut(name: String, fault: TextFault) -> Self {
        let words = format!("{fault}: nothing can be said of this run.");
        Self {
            name,
            says: "a report that was cut".to_owned(),
            tool: "",
            facts: None,
            software: None,
            keep_alive: None,
            length: None,
            found: vec![GateFinding::new(CUT, Effect::Refuse, words)],
        }
    }

    /// A run that its tool ended by an error. It has no facts, since it cannot be compared.
    fn gave_up(name: String, figures: &TextFigures, why: &str) -> Self {
        let facts = Facts::of_figures(figures);
        let answers = show_count(facts.completed);
        let words = format!("{} gave up after {answers} answers: {why}.", figures.tool);
        Self {
            name,
            says: says(figures.tool, &facts),
            tool: figures.tool,
            facts: None,
            software: None,
            keep_alive: None,
            length: None,
            found: vec![GateFinding::new(STOPPED, Effect::Void, words)],
        }
    }

    /// A table of system calls: it has no facts, but a remark on its times.
    fn of_calls(name: String, calls: &Calls) -> Self {
        let sum: u64 = calls.counts.values().sum();
        let errors: u64 = calls.errors.values().sum();
        let most = match calls.counts.iter().max_by_key(|(_, count)| **count) {
            Some((name, count)) => format!(", most of them {name} ({})", show_count(*count)),
            None => String::new(),
        };
        let says = format!(
            "strace -c, {} system calls{most}, {} failed",
            show_count(sum),
            show_count(errors)
        );
        let words = "Under strace each call stops the process twice: counts hold, times and shares of \
                     time are strace's.";
        Self {
            name,
            says,
            tool: "strace -c",
            facts: None,
            software: None,
            keep_alive: None,
            length: None,
            found: vec![note(STRACE_TIMES, words.to_owned())],
        }
    }

    /// The judgement on this run alone.
    fn alone(&self) -> Judgement {
        Judgement {
            title: format!("{}: {}", self.name, self.says),
            found: self.found.clone(),
        }
    }

    /// Compares two runs: the findings of the gates for pairs, and the ratio of their rates. `None` if one of them has
    /// no figures.
    fn beside(&self, other: &Self) -> Option<Judgement> {
        let (one, two) = (self.facts.as_ref()?, other.facts.as_ref()?);
        let mut found = gate::check_pair(one, two);
        let mut findings = found.iter_mut();
        if let Some(unequal) = findings.find(|finding| finding.gate == "unequal-answers")
            && let Some(words) = self.server_line(other)
        {
            unequal.words.push_str(&words);
        }
        let differences = self.unequal_load(other);
        let spoilt: Vec<GateFinding> = [self, other]
            .iter()
            .filter_map(|run| run.spoilt())
            .collect();
        let ratio = if !differences.is_empty() || !spoilt.is_empty() {
            ": no comparison".to_owned()
        } else if let (Some(first), Some(second)) = (one.rate, two.rate)
            && first > 0.0
        {
            let ratio = second / first;
            format!(": rates {first:.1}/s and {second:.1}/s, ratio {ratio:.2}")
        } else {
            String::new()
        };
        for words in differences {
            found.push(GateFinding::new(UNEQUAL_LOAD, Effect::Claim, words));
        }
        found.extend(spoilt);
        let words = "One run each: nothing shows that a second pair would differ in the same way.";
        found.push(note("published", words.to_owned()));
        let title = format!(
            "{} beside {}{ratio}",
            self.name,
            other.name_after(&self.name)
        );
        Some(Judgement { title, found })
    }

    /// The finding that the run's rate cannot be compared, since a gate forbids more than a remark; `None`: none does.
    fn spoilt(&self) -> Option<GateFinding> {
        let mut forbidding: Vec<&GateFinding> = self.found.iter().collect();
        forbidding.retain(|finding| finding.effect != Effect::Note);
        let first = forbidding.first()?;
        let mut gates: Vec<&str> = forbidding
            .iter()
            .map(|finding| finding.gate.as_str())
            .collect();
        gates.dedup();
        let words = format!(
            "The rate of {} is not that of a server ({}): no ratio follows.",
            self.name,
            gates.join(", ")
        );
        Some(GateFinding::new(&first.gate, Effect::Claim, words))
    }

    /// The differences in tool, load and response length between the two runs, one sentence each. If there are any, the
    /// ratio of their rates says nothing about the servers.
    fn unequal_load(&self, other: &Self) -> Vec<String> {
        let mut unequal = Vec::new();
        if self.tool != other.tool {
            unequal.push(format!(
                "{} and {} do not count and time alike.",
                self.tool, other.tool
            ));
        }
        let clients = |run: &Self| run.facts.as_ref()?.clients;
        if let (Some(one), Some(two)) = (clients(self), clients(other))
            && one != two
        {
            unequal.push(format!("{one} clients in one run, {two} in the other."));
        }
        if let (Some(one), Some(two)) = (self.keep_alive, other.keep_alive)
            && one != two
        {
            let keeps = if one { self } else { other };
            let words = format!(
                "Connections were to be kept in {} alone: what differs is what connecting costs.",
                keeps.name
            );
            unequal.push(words);
        }
        if let Some((one, two)) = self.length.zip(other.length)
            && let Some(words) = one.differ(two)
        {
            unequal.push(format!("{words}: these are two pages."));
        }
        unequal
    }

    /// The run's name after the name `before`: only its line, if both are of the same page.
    fn name_after(&self, before: &str) -> String {
        if let (Some((page, line)), Some((other_page, _))) =
            (self.name.rsplit_once(':'), before.rsplit_once(':'))
            && page == other_page
            && line.parse::<usize>().is_ok()
        {
            return format!("line {line}");
        }
        self.name.clone()
    }

    /// A sentence that the responses' lengths differ because only one server sends a `Server` field; `None` if that
    /// does not explain the difference.
    fn server_line(&self, other: &Self) -> Option<String> {
        // A server with an empty name sends no such field.
        let (sender, name) = match (self.software.as_deref()?, other.software.as_deref()?) {
            ("", name) if !name.is_empty() => (other, name),
            (name, "") => (self, name),
            _ => return None,
        };
        let line = format!("Server: {name}");
        let difference = self.facts.as_ref()?.head_bytes? - other.facts.as_ref()?.head_bytes?;
        let explained = line.len() + "\r\n".len();
        if (difference.abs() - explained as f64).abs() >= 1.0 {
            return None;
        }
        Some(format!(
            " The line `{line}` has {explained} bytes, and only the answers of {} have it.",
            sender.name_after(&self.name)
        ))
    }
}

fn note(gate: &str, words: String) -> GateFinding {
    GateFinding::new(gate, Effect::Note, words)
}

/// The title of a run: its tool and main figures.
fn says(tool: &str, facts: &Facts) -> String {
    let mut parts = vec![tool.to_owned()];
    if let Some(clients) = facts.clients {
        parts.push(format!("{} clients", show_count(clients)));
    }
    parts.push(if COUNT_GOOD_ONES.contains(&tool) {
        format!("{} requests", show_count(facts.completed + facts.failed))
    } else {
        format!("{} answers", show_count(facts.completed))
    });
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
        for GateFinding {
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

const fn of_texts(name: &'static str, words: &'static str) -> GateRecord<()> {
    GateRecord {
        name,
        words,
        rank: 0,
        check: (),
    }
}

const UNEQUAL_LOAD: &str = "unequal-load";
const STOPPED: &str = "stopped";
const UNCONNECTED: &str = "unconnected";
const CHECKS: &str = "checks";
const SAMPLED: &str = "sampled";
const LONGEST: &str = "longest";
const TIMEOUTS: &str = "timeouts";
const STRACE_TIMES: &str = "strace-times";
const CUT: &str = "cut";

/// Tools that count a response with a status from 400 on as failed.
const COUNT_GOOD_ONES: [&str; 3] = ["JMeter", "k6", "siege"];

/// The most runs of a page of which each is compared with all others.
const PAGE_RUNS_MAX: usize = 6;

#[cfg(test)]
mod tests;

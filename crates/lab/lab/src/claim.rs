//! From runs to what may be said: ratios within rounds, their intervals, and words.
//!
//! A ratio is taken within a round, so that what changes from round to round cancels out. Rounds that share a start of a
//! server give one value together, their median: what a start has brought is in all of them. What is concluded from starts
//! is in `rule`.

mod bias;
mod control;
mod gates;
mod moved;
mod planted;
mod published;
mod reach;
mod rule;
mod silent;
#[cfg(test)]
mod simulated;
mod starts;
mod stored;
mod survivors;
mod words;

use std::collections::BTreeMap;

use catamaran_stats::looks::SpentLevel;
use catamaran_stats::signed_rank;
use serde::{Deserialize, Serialize};

pub use self::control::ControlRatio;
pub(crate) use self::control::over_control;
use self::gates::SCREENED;
pub use self::gates::{CaseSubject, GATES};
pub use self::planted::PlantedRatio;
pub use self::published::word;
pub use self::reach::{Reach, reach};
use self::rule::{Contender, RatioInterval};
pub(crate) use self::rule::{LEVEL, can_only_suggest, hold_by_measure};
pub(crate) use self::starts::of_rounds;
use self::starts::{Ratio, StartSpans};
pub(crate) use self::stored::{StoredRounds, evaluate_again};
pub use self::survivors::Survival;
use self::words::Words;
use crate::experiment::{Case, Claim, Contrast, Expectation, Experiment, Levels, PublishedRatio};
use crate::facts::Facts;
use crate::gate::{self, Effect, GateFinding};
use crate::measure::{Measure, Spoiler};
use crate::run::Run;
use crate::screen;

/// The result of a claim in one case.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// The claim, in words.
    pub says: String,
    /// The measure that is compared.
    pub measure: Measure,
    /// The levels of this case.
    pub each: Levels,
    /// The ratio: the estimate of Hodges and Lehmann of the logarithms of starts.
    pub ratio: Option<f64>,
    /// The lower end of its interval of 95 %.
    pub low: Option<f64>,
    /// The upper end.
    pub high: Option<f64>,
    /// The ratio of each round, in order.
    pub ratios: Vec<f64>,
    /// The sample: the ratio of each start of servers, the median of its rounds', in order. As `ratios` if servers are
    /// started anew in each round.
    #[serde(default)]
    pub starts: Vec<f64>,
    /// The probability of such ratios if there is no difference, at all looks together.
    pub p: f64,
    /// Whether it holds beside the other claims of its question.
    pub holm: bool,
    /// The number of cases that its question has, itself among them: those on the same measure.
    #[serde(default)]
    pub question: usize,
    /// By how much what the two sides lost differs, as a logarithm: the interval is wider on either side by it.
    #[serde(default, skip_serializing_if = "is_none")]
    pub bias: f64,
    /// Rounds that were made and do not count, by the gate that has taken them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub left_out: BTreeMap<String, usize>,
    /// The verdict.
    pub verdict: Verdict,
    /// The verdict as a sentence.
    pub sentence: String,
    /// The expected result.
    pub expect: Expectation,
    /// Whether it came as expected; `None` if that is open.
    pub as_expected: Option<bool>,
    /// The ratio that was published of this case.
    pub published: Option<PublishedRatio>,
    /// The true ratio, if the servers are made so that it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub planted: Option<PlantedRatio>,
    /// Gates that forbid the claim or limit what it says.
    pub gates: Vec<GateFinding>,
    /// Runs of each of its cells, by validity and gates; empty of a result by an older version.
    #[serde(default)]
    pub survivors: Vec<Survival>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde wants it")]
fn is_none(bias: &f64) -> bool {
    *bias == 0.0
}

/// The verdict on a case of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The interval excludes 1, and it holds beside the other claims of its question.
    Differs,
    /// The interval excludes 1, it holds beside the other claims of its question, and it lies within the margin.
    DiffersLittle,
    /// The interval excludes 1, but among so many claims that may be chance.
    Suggests,
    /// The whole interval lies within the margin.
    Same,
    /// Anything else.
    NotShown,
    /// Valid rounds have fewer than six starts of servers.
    TooFew,
    /// A gate forbids it.
    NoClaim,
}

/// The results of all claims of an experiment.
#[must_use]
pub fn evaluate(experiment: &Experiment, runs: &[Run]) -> Vec<Outcome> {
    evaluate_starts(experiment, &StartSpans::of(experiment), runs)
}

/// The results of all claims; `lasting` says how long the starts of the servers last.
fn evaluate_starts(experiment: &Experiment, lasting: &StartSpans, runs: &[Run]) -> Vec<Outcome> {
    let passes = Passes::of(experiment, runs);
    let drawn = |claim| move |case| (claim, case);
    let cases = experiment
        .claims
        .iter()
        .flat_map(|it| it.cases.iter().map(drawn(it)));
    let estimates = cases.map(|about| passes.estimate(experiment, lasting, about));
    conclude(experiment, estimates.collect())
}

/// The verdicts on all claims: the more a question has, the surer each must be.
fn conclude(experiment: &Experiment, drawn: Vec<CaseEstimate<'_>>) -> Vec<Outcome> {
    let holds = hold(experiment, &drawn);
    let question = |it: &CaseEstimate<'_>| it.claim.measure.base();
    let questions: Vec<&str> = drawn.iter().map(question).collect();
    let planted = planted::of(experiment, &drawn);
    let finish = |(drawn, holm): (CaseEstimate<'_>, bool)| {
        let is_of_question = |it: &&&str| **it == drawn.claim.measure.base();
        let claims = questions.iter().filter(is_of_question).count();
        drawn.finish(holm, claims)
    };
    let outcomes = drawn.into_iter().zip(holds).map(finish);
    let with = |(outcome, planted)| Outcome { planted, ..outcome };
    outcomes.zip(planted).map(with).collect()
}

/// Which cases hold beside the others of their question; none of a short form, whose warm-up is cut short.
fn hold(experiment: &Experiment, drawn: &[CaseEstimate<'_>]) -> Vec<bool> {
    if experiment.is_quick {
        return vec![false; drawn.len()];
    }
    let subject = experiment.subject();
    let contenders = drawn
        .iter()
        .map(|it| it.claim.contender(it.case, it.p, subject));
    rule::hold(&contenders.collect::<Vec<_>>())
}

impl Claim {
    /// A case of it among the others, with its p value.
    fn contender(&self, case: &Case, p: f64, subject: Option<&Levels>) -> Contender<'_> {
        let mut each = case.each.iter();
        let is_of_subject =
            each.all(|(name, level)| subject.is_some_and(|it| it.get(name) == Some(level)));
        Contender {
            question: self.measure.base(),
            is_of_source: is_of_subject && self.published_of(&case.each).is_some(),
            p,
        }
    }
}

/// Whether no further round can change what is said: each claim has a verdict, or a gate forbids it.
#[must_use]
pub fn is_decided(experiment: &Experiment, runs: &[Run]) -> bool {
    let outcomes = evaluate(experiment, runs);
    let is_open = |outcome: &Outcome| {
        let is_screened = outcome.gates.iter().any(|it| it.gate == SCREENED);
        let open = [Verdict::Suggests, Verdict::NotShown, Verdict::TooFew];
        open.contains(&outcome.verdict) && !is_screened
    };
    !outcomes.is_empty() && !outcomes.iter().any(is_open)
}

/// A case's ratios, before other claims are looked at.
#[derive(Clone)]
struct CaseEstimate<'a> {
    claim: &'a Claim,
    case: &'a Case,
    ratios: Vec<Ratio>,
    /// The ratio of each start: the sample.
    starts: Vec<f64>,
    /// See [`Outcome::bias`].
    bias: f64,
    interval: Option<RatioInterval>,
    p: f64,
    /// The fewest starts that have an interval.
    starts_min: usize,
    gates: Vec<GateFinding>,
    /// A gate that has taken rounds away.
    taken: Option<GateFinding>,
    /// See [`Outcome::left_out`].
    left_out: BTreeMap<String, usize>,
    /// The sum of a count at either level, for a claim on a count that is mostly 0.
    counts: Option<[f64; 2]>,
    survivors: Vec<Survival>,
}

type Runs<'a> = BTreeMap<(usize, usize), &'a Run>;

impl<'a> CaseEstimate<'a> {
    fn of(
        experiment: &Experiment,
        lasting: &StartSpans,
        about: (&'a Claim, &'a Case),
        pass: &Pass<'_>,
    ) -> Self {
        let (claim, case) = about;
        let runs = &pass.valid;
        let measure = &claim.measure;
        let rounds = runs.keys().map(|(_, round)| round + 1).max().unwrap_or(0);
        let ratio = |round| {
            let value = ratio(&case.contrasts, measure, round, runs)?;
            Some(Ratio { round, value })
        };
        let ratios: Vec<Ratio> = (0..rounds).filter_map(ratio).collect();
        let starts = lasting.sample(case, &ratios, runs);
        let counted = ratios.iter().map(|ratio| ratio.round);
        let bias = bias::of_case(&case.contrasts, measure, counted, runs);
        let mut gates = beside(claim, &case.contrasts, runs);
        let subject = CaseSubject {
            experiment,
            lasting,
            claim,
            case,
            runs,
        };
        gates.extend(subject.check());
        gates.retain(|fired| !experiment.gates_off.contains(&fired.gate));
        let test = rule::test(&starts, &pass.spent, bias);
        Self {
            claim,
            case,
            bias,
            interval: test.interval,
            p: test.p,
            starts_min: rule::starts_min(&pass.spent),
            gates,
            taken: taken(&case.contrasts, measure, runs),
            left_out: left_out(&case.contrasts, measure, runs),
            counts: measure
                .record()
                .is_mostly_zero
                .then(|| counts(measure, case, runs)),
            ratios,
            starts,
            survivors: Vec::new(),
        }
    }

    /// Takes what became of all runs of its pass, void ones included.
    fn survive(&mut self, experiment: &Experiment, all: &[&Run]) {
        self.survivors = survivors::of_case(experiment, &self.claim.measure, self.case, all);
        // First: what is left when runs were lost has other gates by chance.
        if let Some(fired) = survivors::check(self.claim, &self.survivors) {
            self.gates.insert(0, fired);
        }
    }

    fn finish(self, holm: bool, claims: usize) -> Outcome {
        let claim = self.claim;
        let verdict = self.verdict(holm);
        let drawn = &self;
        let sentence = Words { drawn, claims }.sentence(verdict);
        let interval = self.interval;
        let ratio = interval.map(|interval| interval.ratio);
        let as_expected = as_expected(claim.expect, verdict, ratio);
        let mut gates = self.gates;
        gates.extend(self.taken);
        Outcome {
            says: claim.says.clone(),
            measure: claim.measure.clone(),
            each: self.case.each.clone(),
            ratio,
            low: interval.map(|interval| interval.low),
            high: interval.map(|interval| interval.high),
            ratios: self.ratios.iter().map(|ratio| ratio.value).collect(),
            starts: self.starts,
            p: self.p,
            holm,
            question: claims,
            bias: self.bias,
            left_out: self.left_out,
            verdict,
            sentence,
            expect: claim.expect,
            as_expected,
            published: claim.published_of(&self.case.each),
            planted: None,
            gates,
            survivors: self.survivors,
        }
    }

    fn verdict(&self, holm: bool) -> Verdict {
        if self.gates.iter().any(|fired| fired.effect != Effect::Note) {
            return Verdict::NoClaim;
        }
        let Some(interval) = self.interval else {
            // With as many rounds as have an interval, it is the starts that are too few.
            let lacks_rounds = self.ratios.len() < self.starts_min;
            return match self.taken {
                Some(_) if lacks_rounds => Verdict::NoClaim,
                _ => Verdict::TooFew,
            };
        };
        if self.counts == Some([0.0, 0.0]) {
            return Verdict::Same;
        }
        let margin = 1.0 + self.claim.margin;
        let is_within = interval.high < margin && interval.low > 1.0 / margin;
        match (interval.excludes(1.0), is_within) {
            (true, true) if holm => Verdict::DiffersLittle,
            (true, false) if holm => Verdict::Differs,
            (_, true) => Verdict::Same,
            (true, false) => Verdict::Suggests,
            (false, false) => Verdict::NotShown,
        }
    }
}

/// The runs of a screen, or those after it.
struct Pass<'a> {
    /// Valid ones by cell and round.
    valid: Runs<'a>,
    /// Void ones as well.
    all: Vec<&'a Run>,
    /// How strict the look after these runs is.
    spent: SpentLevel,
}

impl<'a> Pass<'a> {
    fn of(runs: impl Iterator<Item = &'a Run>, spent: SpentLevel) -> Self {
        let all: Vec<&Run> = runs.collect();
        let valid = all.iter().filter(|run| run.is_valid());
        Self {
            valid: valid.map(|run| ((run.cell, run.round), *run)).collect(),
            all,
            spent,
        }
    }
}

/// The runs of a screen, and those after it. Levels go on after a screen because they did well in it, so what is
/// said of them rests on the rounds after it alone.
struct Passes<'a> {
    screen: Pass<'a>,
    after: Pass<'a>,
    /// Cells that were gone on with.
    then: Vec<usize>,
    /// Cells of the screen.
    screened: Vec<usize>,
    /// Rounds of the screen.
    rounds: usize,
}

impl<'a> Passes<'a> {
    fn of(experiment: &Experiment, runs: &'a [Run]) -> Self {
        let rounds = experiment.screened();
        let made = runs.iter().map(|run| run.round + 1).max().unwrap_or(0);
        let spent = SpentLevel::at(made.saturating_sub(rounds), experiment.rounds);
        let once = SpentLevel::of_one_look();
        Self {
            screen: Pass::of(runs.iter().filter(|run| run.round < rounds), once),
            after: Pass::of(runs.iter().filter(|run| run.round >= rounds), spent),
            then: screen::cells(experiment, rounds, runs),
            screened: screen::cells(experiment, 0, runs),
            rounds,
        }
    }

    /// A case's ratios in the runs that it rests on.
    fn estimate<'c>(
        &self,
        experiment: &Experiment,
        lasting: &StartSpans,
        about: (&'c Claim, &'c Case),
    ) -> CaseEstimate<'c> {
        let (pass, screened) = self.of_case(about.1);
        let mut estimate = CaseEstimate::of(experiment, lasting, about, pass);
        estimate.gates.extend(screened);
        estimate.survive(experiment, &pass.all);
        estimate
    }

    /// The runs that a case rests on, and a note if those are the screen's.
    fn of_case(&self, case: &Case) -> (&Pass<'a>, Option<GateFinding>) {
        let all_in = |part: &[usize]| {
            let mut sides = case.contrasts.iter();
            sides.all(|it| {
                it.above
                    .iter()
                    .chain(&it.below)
                    .all(|cell| part.contains(cell))
            })
        };
        if all_in(&self.then) {
            return (&self.after, None);
        }
        let words = if all_in(&self.screened) {
            format!("It rests on the {} rounds of the screen.", self.rounds)
        } else {
            "One of its levels did not go on after the screen.".to_owned()
        };
        (
            &self.screen,
            Some(GateFinding::new(SCREENED, Effect::Note, words)),
        )
    }
}

/// The ratio of a round: the geometric mean over the contrasts. `None` if a run is missing. Of a duel it is that of the pairs
/// of blocks.
fn ratio(contrasts: &[Contrast], measure: &Measure, round: usize, runs: &Runs<'_>) -> Option<f64> {
    let whole = of_sides(contrasts, round, runs, |run| {
        if takes_away(run, measure).is_some() {
            return None;
        }
        let value = run.measures.get(measure.name()).copied()?;
        if measure.record().is_mostly_zero {
            // One more on both sides keeps the sign.
            return Some(value.ln_1p());
        }
        (value > 0.0).then(|| value.ln())
    })?;
    Some(of_blocks(contrasts, measure, round, runs).unwrap_or(whole))
}

/// The ratio of a round by its pairs of blocks; `None` if it was not measured in blocks.
fn of_blocks(
    contrasts: &[Contrast],
    measure: &Measure,
    round: usize,
    runs: &Runs<'_>,
) -> Option<f64> {
    let of_turn = |turn: usize| {
        of_sides(contrasts, round, runs, |run| {
            Some(run.blocks.get(measure.name())?.get(turn)?.ln())
        })
    };
    let turns = (0..).map_while(of_turn);
    let logs: Vec<f64> = turns.map(f64::ln).collect();
    signed_rank::estimate(&logs).map(f64::exp)
}

/// The ratio of the two sides in a round, from the logarithms that `of_run` takes of runs.
fn of_sides(
    contrasts: &[Contrast],
    round: usize,
    runs: &Runs<'_>,
    of_run: impl Fn(&Run) -> Option<f64>,
) -> Option<f64> {
    let value = |cell: &usize| of_run(runs.get(&(*cell, round))?);
    let mut sum = 0.0;
    for contrast in contrasts {
        for cell in &contrast.above {
            sum += value(cell)?;
        }
        for cell in &contrast.below {
            sum -= value(cell)?;
        }
    }
    Some((sum / contrasts.len() as f64).exp())
}

/// A count's sum over all valid runs of either side.
fn counts(measure: &Measure, case: &Case, runs: &Runs<'_>) -> [f64; 2] {
    let sum = |side: fn(&Contrast) -> &Vec<usize>| {
        let is_of = |cell: &usize| case.contrasts.iter().any(|it| side(it).contains(cell));
        let of_side = runs.iter().filter(|((cell, _), _)| is_of(cell));
        of_side
            .filter_map(|(_, run)| run.measures.get(measure.name()))
            .sum()
    };
    [sum(|it| &it.above), sum(|it| &it.below)]
}

/// The gate of a run that forbids to use this measure of it.
fn takes_away<'a>(run: &'a Run, measure: &Measure) -> Option<&'a GateFinding> {
    let record = measure.record();
    run.gates.iter().find(|fired| match fired.effect {
        Effect::Refuse | Effect::Void => true,
        // The gate is of the measured span, and such a measure of what was before.
        Effect::Machine if record.is_cold && fired.gate == gate::UNSTEADY => false,
        Effect::Machine | Effect::Time if bias::is_bounded(run, fired, measure) => false,
        Effect::Machine => record.spoiler != Spoiler::Nothing,
        Effect::Time => record.spoiler == Spoiler::Times,
        // It is of claims, not of runs.
        Effect::Claim | Effect::Note => false,
    })
}

/// One of the gates that have taken rounds away.
fn taken(contrasts: &[Contrast], measure: &Measure, runs: &Runs<'_>) -> Option<GateFinding> {
    let mut of_cells = runs.iter().filter(|((cell, _), _)| is_in(contrasts, *cell));
    of_cells.find_map(|(_, run)| {
        let gate = takes_away(run, measure).or_else(|| not_counted(run, measure));
        gate.cloned()
    })
}

/// The number of rounds that each gate has taken away; a round is counted once, by the first gate.
fn left_out(contrasts: &[Contrast], measure: &Measure, runs: &Runs<'_>) -> BTreeMap<String, usize> {
    let mut rounds: BTreeMap<usize, &str> = BTreeMap::new();
    for ((_, round), run) in runs.iter().filter(|((cell, _), _)| is_in(contrasts, *cell)) {
        if let Some(fired) = takes_away(run, measure) {
            rounds.entry(*round).or_insert(&fired.gate);
        }
    }
    let mut left_out = BTreeMap::new();
    for gate in rounds.into_values() {
        *left_out.entry(gate.to_owned()).or_default() += 1;
    }
    left_out
}

/// The gate of a run that says why it lacks a measure.
fn not_counted<'a>(run: &'a Run, measure: &Measure) -> Option<&'a GateFinding> {
    let name = gate::uncounted_gate(measure.base());
    let mut gates = run.gates.iter();
    let lacks = !run.measures.contains_key(measure.name());
    gates.find(|fired| lacks && fired.gate == name)
}

fn is_in(contrasts: &[Contrast], cell: usize) -> bool {
    contrasts
        .iter()
        .any(|it| it.above.contains(&cell) || it.below.contains(&cell))
}

/// Gates on the two sides set beside each other, as far as they touch the measure.
fn beside(claim: &Claim, contrasts: &[Contrast], runs: &Runs<'_>) -> Vec<GateFinding> {
    let measure = &claim.measure;
    let facts = |is_of: &dyn Fn(usize) -> bool| {
        let of_side = runs.iter().filter(|((cell, _), _)| is_of(*cell));
        mean(&of_side.map(|(_, run)| &run.facts).collect::<Vec<_>>())
    };
    let above = facts(&|cell| contrasts.iter().any(|it| it.above.contains(&cell)));
    let below = facts(&|cell| contrasts.iter().any(|it| it.below.contains(&cell)));
    let (Some(above), Some(below)) = (above, below) else {
        return Vec::new();
    };
    let mut found = gate::check_pair(&above, &below);
    found.retain(|fired| match fired.gate.as_str() {
        "unequal-answers" => measure.base() == "bytes",
        "foreign" => measure.record().spoiler != Spoiler::Nothing,
        "confounded" => !claim.names_reuse,
        // Of several runs the maxima are no more comparable, and no claim is on them.
        _ => false,
    });
    found
}

/// The facts of a side that gates on pairs look at, on average.
fn mean(facts: &[&Facts]) -> Option<Facts> {
    let count = facts.len() as f64;
    let mut mean = (*facts.first()?).clone();
    let heads: Option<Vec<f64>> = facts.iter().map(|facts| facts.head_bytes).collect();
    mean.head_bytes = heads.map(|heads| heads.iter().sum::<f64>() / count);
    let dials: Option<Vec<f64>> = facts.iter().map(|facts| facts.dials).collect();
    mean.dials = dials.map(|dials| dials.iter().sum::<f64>() / count);
    if let Some(machine) = &mut mean.machine {
        let foreign = facts
            .iter()
            .filter_map(|facts| Some(facts.machine.as_ref()?.foreign));
        machine.foreign = foreign.sum::<f64>() / count;
    }
    Some(mean)
}

fn as_expected(expect: Expectation, verdict: Verdict, ratio: Option<f64>) -> Option<bool> {
    let ratio = ratio?;
    match (verdict, expect) {
        (Verdict::Differs | Verdict::DiffersLittle, Expectation::More) => Some(ratio > 1.0),
        (Verdict::Differs | Verdict::DiffersLittle, Expectation::Less) => Some(ratio < 1.0),
        (Verdict::Differs, Expectation::Same) => Some(false),
        (Verdict::Same | Verdict::DiffersLittle, Expectation::Same) => Some(true),
        (Verdict::Same, _) => Some(false),
        _ => None,
    }
}

impl Outcome {
    /// Why nothing may be said of it, as a sentence; `None` if it has a verdict.
    #[must_use]
    pub fn without_verdict(&self) -> Option<&str> {
        let has_none = matches!(self.verdict, Verdict::NoClaim | Verdict::TooFew);
        has_none.then_some(&self.sentence)
    }

    /// Whether it is shown, or shown to be none within the margin.
    #[must_use]
    pub fn is_decided(&self) -> bool {
        use Verdict::{Differs, DiffersLittle, Same};
        matches!(self.verdict, Differs | DiffersLittle | Same)
    }

    /// The gate that forbids it; `None` if none does.
    #[must_use]
    pub fn forbidden_by(&self) -> Option<&str> {
        let mut gates = self.gates.iter();
        let forbids = gates.find(|fired| fired.effect != Effect::Note);
        forbids.map(|fired| fired.gate.as_str())
    }

    /// The size of its sample.
    #[must_use]
    pub fn sample(&self) -> usize {
        self.starts.len()
    }
}

/// A ratio with the digits that tell it from 1.
pub(crate) fn number(ratio: f64) -> String {
    let off = (ratio - 1.0).abs();
    if ratio < 0.1 || off < 0.02 {
        format!("{ratio:.3}")
    } else if ratio < 10.0 {
        format!("{ratio:.2}")
    } else {
        format!("{ratio:.1}")
    }
}

#[cfg(test)]
mod tests;

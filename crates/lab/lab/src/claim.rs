//! Evaluates claims: the ratios of an experiment's runs, their intervals, and the verdicts in words.
//!
//! Ratios are taken within a round, so that what changes from round to round cancels out. Rounds that share a start of
//! a server count as one value, the median of their ratios, since the effects of that start are in all of them. Module
//! `rule` draws the conclusions.

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

/// The result of one case of a claim.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// The claim, in words.
    pub says: String,
    /// The measure that is compared.
    pub measure: Measure,
    /// The levels of this case, of the factors in the claim's `each`.
    pub each: Levels,
    /// The estimate of the ratio, by Hodges and Lehmann from the logarithms of `starts`; `None`: there are too few
    /// starts.
    pub ratio: Option<f64>,
    /// The lower end of the ratio's interval of 95 %; `None` as for `ratio`.
    pub low: Option<f64>,
    /// The upper end of the interval; `None` as for `ratio`.
    pub high: Option<f64>,
    /// The ratio of each round, in order.
    pub ratios: Vec<f64>,
    /// The sample: for each start of servers the median of the ratios of its rounds. The same as `ratios` if servers
    /// are started anew in each round.
    #[serde(default)]
    pub starts: Vec<f64>,
    /// The probability of such ratios if there is no difference, corrected for the number of looks at the claims.
    pub p: f64,
    /// Whether the difference is shown even together with the other claims of its question (Holm's correction).
    pub holm: bool,
    /// The number of cases in the claim's question, this one included. A question is all cases on the same measure.
    #[serde(default)]
    pub question: usize,
    /// The logarithm by which the ratio may be wrong, because one side lost more of its time than the other to
    /// something else than its servers. The interval is wider by it at either end.
    #[serde(default, skip_serializing_if = "is_none")]
    pub bias: f64,
    /// The number of rounds that do not count, by the gate because of which they are left out.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub left_out: BTreeMap<String, usize>,
    /// The verdict.
    pub verdict: Verdict,
    /// The verdict as a sentence.
    pub sentence: String,
    /// The expected result of the comparison.
    pub expect: Expectation,
    /// Whether the result is the expected one; `None`: it is open.
    pub as_expected: Option<bool>,
    /// The ratio that the source has published for this case; `None`: there is none.
    pub published: Option<PublishedRatio>,
    /// The true ratio, if the servers are made so that it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub planted: Option<PlantedRatio>,
    /// The gates that forbid the claim, and remarks of gates on it.
    pub gates: Vec<GateFinding>,
    /// For each cell of the case, how many of its runs were valid, void or left out; empty in a result by an older
    /// version.
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
    /// A difference: the interval excludes 1, even together with the other claims of the question.
    Differs,
    /// A difference, but a small one: the same, and the interval lies within the margin.
    DiffersLittle,
    /// The interval excludes 1, but among so many claims this may be chance.
    Suggests,
    /// No difference beyond the margin: the whole interval lies within it.
    Same,
    /// The interval contains 1, and reaches beyond the margin.
    NotShown,
    /// There are too few starts of servers for an interval.
    TooFew,
    /// A gate forbids the claim.
    NoClaim,
}

/// Evaluates all claims of an experiment by its runs.
#[must_use]
pub fn evaluate(experiment: &Experiment, runs: &[Run]) -> Vec<Outcome> {
    evaluate_starts(experiment, &StartSpans::of(experiment), runs)
}

/// Evaluates all claims; `lasting` has the number of rounds for which servers run.
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

/// The outcomes of all cases, considering that several claims are on the same measure.
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

/// Whether each case holds together with the other cases of its question. None does in the short form, whose warm-up is
/// too short.
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
    /// A case of this claim with its p value, as one of those of its question.
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

/// Whether further rounds are not needed: each claim is shown, shown to be within the margin, forbidden by a gate, or
/// rests on the screen alone.
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

/// The estimate for a case, without regard to other claims.
#[derive(Clone)]
struct CaseEstimate<'a> {
    claim: &'a Claim,
    case: &'a Case,
    ratios: Vec<Ratio>,
    /// The ratio of each start of servers, which are the sample.
    starts: Vec<f64>,
    /// See [`Outcome::bias`].
    bias: f64,
    interval: Option<RatioInterval>,
    p: f64,
    /// The least number of starts for an interval.
    starts_min: usize,
    gates: Vec<GateFinding>,
    /// One of the gates because of which rounds are left out; `None`: no round is.
    taken: Option<GateFinding>,
    /// See [`Outcome::left_out`].
    left_out: BTreeMap<String, usize>,
    /// The sums of the measure on both sides, if it is a count that is mostly 0; else `None`.
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
            spent: &pass.spent,
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

    /// Notes how many runs each cell has lost, and adds the gate on that. `all` are the runs of the pass, void ones
    /// included.
    fn survive(&mut self, experiment: &Experiment, all: &[&Run]) {
        self.survivors = survivors::of_case(experiment, &self.claim.measure, self.case, all);
        // This gate is the first, since lost runs can make other gates fire by chance.
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
            // If enough rounds have a ratio, the cause is that they share starts, not that a gate has left rounds out.
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
    /// The valid runs, by cell and round.
    valid: Runs<'a>,
    /// All runs, void ones included.
    all: Vec<&'a Run>,
    /// How much of the error probability the look after these runs may spend.
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

/// The runs of a screen, and the runs after it. Levels survive a screen because they did well in it, so claims on
/// survivors rest only on the rounds after it.
struct Passes<'a> {
    screen: Pass<'a>,
    after: Pass<'a>,
    /// The cells that take part in the rounds after the screen.
    then: Vec<usize>,
    /// The cells of the screen.
    screened: Vec<usize>,
    /// The number of rounds of the screen.
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

    /// The estimate for a case, by the runs that it rests on.
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

    /// The runs that a case rests on; with a remark if these are the screen's.
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

/// The ratio of a round: the geometric mean over the contrasts; in a duel, the estimate from the ratios of its blocks.
/// `None` if a run or its measure is missing.
fn ratio(contrasts: &[Contrast], measure: &Measure, round: usize, runs: &Runs<'_>) -> Option<f64> {
    let whole = of_sides(contrasts, round, runs, |run| {
        if takes_away(run, measure).is_some() {
            return None;
        }
        let value = run.measures.get(measure.name()).copied()?;
        if measure.record().is_mostly_zero {
            // For counts that may be 0, 1 is added on both sides; this does not change which side is larger.
            return Some(value.ln_1p());
        }
        (value > 0.0).then(|| value.ln())
    })?;
    Some(of_blocks(contrasts, measure, round, runs).unwrap_or(whole))
}

/// The ratio of a round of a duel, estimated from the ratios of blocks that were measured in the same turn; `None` if
/// the runs have no blocks.
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

/// The ratio of the two sides in a round; `of_run` returns the logarithm of a run's value.
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

/// The sums of a count over all valid runs of the numerator, and of the denominator.
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

/// The gate because of which a run's value of this measure must not be used; `None`: it may be used.
fn takes_away<'a>(run: &'a Run, measure: &Measure) -> Option<&'a GateFinding> {
    let record = measure.record();
    run.gates.iter().find(|fired| match fired.effect {
        Effect::Refuse | Effect::Void => true,
        // `unsteady` is about the measured span, but a cold measure is taken before it.
        Effect::Machine if record.is_cold && fired.gate == gate::UNSTEADY => false,
        Effect::Machine | Effect::Time if bias::is_bounded(run, fired, measure) => false,
        Effect::Machine => record.spoiler != Spoiler::Nothing,
        Effect::Time => record.spoiler == Spoiler::Times,
        // These effects are on claims, not on single runs.
        Effect::Claim | Effect::Note => false,
    })
}

/// One of the gates because of which rounds are left out; `None`: no round is.
fn taken(contrasts: &[Contrast], measure: &Measure, runs: &Runs<'_>) -> Option<GateFinding> {
    let mut of_cells = runs.iter().filter(|((cell, _), _)| is_in(contrasts, *cell));
    of_cells.find_map(|(_, run)| {
        let gate = takes_away(run, measure).or_else(|| not_counted(run, measure));
        gate.cloned()
    })
}

/// The number of rounds that each gate makes claims leave out. A round counts once, for the first gate.
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

/// The gate that says why this measure was not counted in a run; `None` if the run has the measure.
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

/// The findings of gates that compare both sides, as far as they concern the measure.
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
        // Other gates on pairs are about single runs, such as their longest requests, and no claim is on these.
        _ => false,
    });
    found
}

/// The mean facts of the runs of one side, for the gates on pairs; `None` without runs.
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
    /// The sentence on why there is no verdict; `None` if there is one.
    #[must_use]
    pub fn without_verdict(&self) -> Option<&str> {
        let has_none = matches!(self.verdict, Verdict::NoClaim | Verdict::TooFew);
        has_none.then_some(&self.sentence)
    }

    /// Whether a difference is shown, or shown to be within the margin.
    #[must_use]
    pub fn is_decided(&self) -> bool {
        use Verdict::{Differs, DiffersLittle, Same};
        matches!(self.verdict, Differs | DiffersLittle | Same)
    }

    /// The name of the gate that forbids the claim; `None` if none does.
    #[must_use]
    pub fn forbidden_by(&self) -> Option<&str> {
        let mut gates = self.gates.iter();
        let forbids = gates.find(|fired| fired.effect != Effect::Note);
        forbids.map(|fired| fired.gate.as_str())
    }

    /// The number of starts of servers that the verdict rests on.
    #[must_use]
    pub fn sample(&self) -> usize {
        self.starts.len()
    }
}

/// A ratio as text, with more digits if it is close to 1.
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

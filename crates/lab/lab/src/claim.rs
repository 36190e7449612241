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
pub(crate) use self::published::UNDECIDED;
pub use self::reach::{Reach, reach};
use self::rule::{Contender, Question, RatioInterval};
pub(crate) use self::rule::{LEVEL, can_only_suggest, hold_by_measure};
pub(crate) use self::starts::of_rounds;
use self::starts::{Ratio, StartSpans};
pub(crate) use self::stored::{StoredRounds, evaluate_again};
pub use self::survivors::Survival;
use self::words::Words;
use crate::experiment::{
    Case, Claim, Contrast, ERA, Expectation, Experiment, Levels, PublishedRatio,
};
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
    /// The number of cases in the claim's question, this one included. A question is all cases on the same measure and
    /// of the same era.
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

/// Evaluates all claims; `start_spans` has the number of rounds for which servers run.
fn evaluate_starts(
    experiment: &Experiment,
    start_spans: &StartSpans,
    runs: &[Run],
) -> Vec<Outcome> {
    let passes = Passes::of(experiment, runs);
    let mut estimates = Vec::new();
    for claim in &experiment.claims {
        for case in &claim.cases {
            estimates.push(passes.estimate(experiment, start_spans, claim, case));
        }
    }
    conclude(experiment, estimates)
}

/// The outcomes of all cases, considering that several claims are on the same measure.
fn conclude(experiment: &Experiment, estimates: Vec<CaseEstimate<'_>>) -> Vec<Outcome> {
    let holds = hold(experiment, &estimates);
    let planted_ratios = planted::of(experiment, &estimates);
    let mut question_sizes: BTreeMap<Question<'_>, usize> = BTreeMap::new();
    for estimate in &estimates {
        *question_sizes.entry(estimate.question()).or_default() += 1;
    }
    let mut outcomes = Vec::new();
    for ((estimate, holm), planted) in estimates.into_iter().zip(holds).zip(planted_ratios) {
        let question_size = question_sizes[&estimate.question()];
        let outcome = estimate.finish(holm, question_size);
        outcomes.push(Outcome { planted, ..outcome });
    }
    outcomes
}

/// Whether each case holds together with the other cases of its question. None does in the short form, whose warm-up is
/// too short.
fn hold(experiment: &Experiment, estimates: &[CaseEstimate<'_>]) -> Vec<bool> {
    if experiment.is_quick {
        return vec![false; estimates.len()];
    }
    let subject = experiment.subject();
    let contenders = estimates
        .iter()
        .map(|estimate| estimate.claim.contender(estimate.case, estimate.p, subject));
    rule::hold(&contenders.collect::<Vec<_>>())
}

impl Claim {
    /// A case of this claim with its p value, as one of those of its question. `subject` has the levels that the
    /// source is about.
    fn contender<'a>(&'a self, case: &'a Case, p: f64, subject: Option<&Levels>) -> Contender<'a> {
        let mut each = case.each.iter();
        // A case without levels of its own is about the subject, too; and so is one of another era.
        let is_of_subject = each.all(|(name, level)| {
            name == ERA || subject.and_then(|levels| levels.get(name)) == Some(level)
        });
        Contender {
            question: Question::of(&self.measure, &case.each),
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
        // Further rounds are not made for cells that only the screen measured.
        let is_screened = outcome.gates.iter().any(|fired| fired.gate == SCREENED);
        let open_verdicts = [Verdict::Suggests, Verdict::NotShown, Verdict::TooFew];
        open_verdicts.contains(&outcome.verdict) && !is_screened
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
    left_out_by: Option<GateFinding>,
    /// See [`Outcome::left_out`].
    left_out: BTreeMap<String, usize>,
    /// The sums of the measure on both sides, if it is a count that is mostly 0; else `None`.
    counts: Option<[f64; 2]>,
    survivors: Vec<Survival>,
}

/// The valid runs, by cell and round.
type Runs<'a> = BTreeMap<(usize, usize), &'a Run>;

/// The number of rounds up to the last one that has a run.
fn rounds_of(runs: &Runs<'_>) -> usize {
    runs.keys().map(|(_, round)| round + 1).max().unwrap_or(0)
}

impl<'a> CaseEstimate<'a> {
    fn question(&self) -> Question<'a> {
        Question::of(&self.claim.measure, &self.case.each)
    }

    /// The estimate by the valid runs of a pass. `survivors` stays empty, since it needs the void runs too.
    fn of(
        experiment: &Experiment,
        start_spans: &StartSpans,
        claim: &'a Claim,
        case: &'a Case,
        pass: &Pass<'_>,
    ) -> Self {
        let runs = &pass.valid;
        let measure = &claim.measure;
        let mut ratios = Vec::new();
        for round in 0..rounds_of(runs) {
            if let Some(value) = ratio(&case.contrasts, measure, round, runs) {
                ratios.push(Ratio { round, value });
            }
        }
        let starts = start_spans.sample(case, &ratios, runs);
        let rounds = ratios.iter().map(|ratio| ratio.round);
        let bias = bias::of_case(&case.contrasts, measure, rounds, runs);
        let mut gates = pair_findings(claim, &case.contrasts, runs);
        let subject = CaseSubject {
            experiment,
            start_spans,
            claim,
            case,
            runs,
            spent: &pass.spent,
        };
        gates.extend(subject.check());
        gates.retain(|fired| !experiment.gates_off.contains(&fired.gate));
        let test = rule::test(&starts, &pass.spent, bias);
        let is_count = measure.record().is_mostly_zero;
        Self {
            claim,
            case,
            bias,
            interval: test.interval,
            p: test.p,
            starts_min: rule::starts_min(&pass.spent),
            gates,
            left_out_by: gate_of_left_out(&case.contrasts, measure, runs),
            left_out: left_out(&case.contrasts, measure, runs),
            counts: is_count.then(|| counts(measure, case, runs)),
            ratios,
            starts,
            survivors: Vec::new(),
        }
    }

    /// Sets `survivors`: how many runs each cell has lost. Adds the gate on them if it fires. `runs` has all runs of
    /// the pass, void ones included.
    fn count_survivors(&mut self, experiment: &Experiment, runs: &[&Run]) {
        self.survivors = survivors::of_case(experiment, &self.claim.measure, self.case, runs);
        // This gate is the first, since lost runs can make other gates fire by chance.
        if let Some(fired) = survivors::check(self.claim, &self.survivors) {
            self.gates.insert(0, fired);
        }
    }

    /// The outcome, if the case holds together with its question (`holm`), which has `question_size` cases.
    fn finish(self, holm: bool, question_size: usize) -> Outcome {
        let claim = self.claim;
        let verdict = self.verdict(holm);
        let words = Words {
            estimate: &self,
            question_size,
        };
        let sentence = words.sentence(verdict);
        let interval = self.interval;
        let ratio = interval.map(|interval| interval.ratio);
        let as_expected = as_expected(claim.expect, verdict, ratio);
        let mut gates = self.gates;
        gates.extend(self.left_out_by);
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
            question: question_size,
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

    /// The verdict; `holm` says whether a difference holds together with the other cases of the question.
    fn verdict(&self, holm: bool) -> Verdict {
        if self.gates.iter().any(|fired| fired.effect != Effect::Note) {
            return Verdict::NoClaim;
        }
        let Some(interval) = self.interval else {
            // If enough rounds have a ratio, the cause is that they share starts, not that a gate has left rounds out.
            let lacks_rounds = self.ratios.len() < self.starts_min;
            return if lacks_rounds && self.left_out_by.is_some() {
                Verdict::NoClaim
            } else {
                Verdict::TooFew
            };
        };
        // What never happened on either side does not differ, however wide the interval is.
        if self.counts == Some([0.0, 0.0]) {
            return Verdict::Same;
        }
        let margin = 1.0 + self.claim.margin;
        let is_within = interval.high < margin && interval.low > 1.0 / margin;
        let is_shown = holm && interval.excludes(1.0);
        if is_shown && is_within {
            Verdict::DiffersLittle
        } else if is_shown {
            Verdict::Differs
        } else if is_within {
            Verdict::Same
        } else if interval.excludes(1.0) {
            Verdict::Suggests
        } else {
            Verdict::NotShown
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
        let mut valid = Runs::new();
        for run in all.iter().filter(|run| run.is_valid()) {
            valid.insert((run.cell, run.round), *run);
        }
        Self { valid, all, spent }
    }
}

/// The runs of a screen, and the runs after it. Levels survive a screen because they did well in it, so claims on
/// survivors rest only on the rounds after it.
struct Passes<'a> {
    screen: Pass<'a>,
    after: Pass<'a>,
    /// The cells that take part in the rounds after the screen.
    cells_after: Vec<usize>,
    /// The cells of the screen.
    screen_cells: Vec<usize>,
    /// The number of rounds of the screen.
    screen_rounds: usize,
}

impl<'a> Passes<'a> {
    fn of(experiment: &Experiment, runs: &'a [Run]) -> Self {
        let screen_rounds = experiment.screened();
        let rounds_made = runs.iter().map(|run| run.round + 1).max().unwrap_or(0);
        // 0 while the screen is still being made.
        let rounds_after = rounds_made.saturating_sub(screen_rounds);
        let in_screen = runs.iter().filter(|run| run.round < screen_rounds);
        let after_screen = runs.iter().filter(|run| run.round >= screen_rounds);
        Self {
            screen: Pass::of(in_screen, SpentLevel::of_one_look()),
            after: Pass::of(
                after_screen,
                SpentLevel::at(rounds_after, experiment.rounds),
            ),
            cells_after: screen::cells(experiment, screen_rounds, runs),
            screen_cells: screen::cells(experiment, 0, runs),
            screen_rounds,
        }
    }

    /// The estimate for a case, by the runs that it rests on.
    fn estimate<'c>(
        &self,
        experiment: &Experiment,
        start_spans: &StartSpans,
        claim: &'c Claim,
        case: &'c Case,
    ) -> CaseEstimate<'c> {
        let (pass, screen_remark) = self.of_case(case);
        let mut estimate = CaseEstimate::of(experiment, start_spans, claim, case, pass);
        estimate.gates.extend(screen_remark);
        estimate.count_survivors(experiment, &pass.all);
        estimate
    }

    /// The runs that a case rests on; with a remark if these are the screen's.
    fn of_case(&self, case: &Case) -> (&Pass<'a>, Option<GateFinding>) {
        let all_cells_are_in = |part: &[usize]| {
            let mut contrasts = case.contrasts.iter();
            contrasts.all(|contrast| {
                let mut cells = contrast.above.iter().chain(&contrast.below);
                cells.all(|cell| part.contains(cell))
            })
        };
        if all_cells_are_in(&self.cells_after) {
            return (&self.after, None);
        }
        let words = if all_cells_are_in(&self.screen_cells) {
            format!(
                "It rests on the {} rounds of the screen.",
                self.screen_rounds
            )
        } else {
            "One of its levels did not go on after the screen.".to_owned()
        };
        let remark = GateFinding::new(SCREENED, Effect::Note, words);
        (&self.screen, Some(remark))
    }
}

/// The ratio of a round: the geometric mean over the contrasts; in a duel, the estimate from the ratios of its blocks.
/// `None` if a run or its measure is missing.
fn ratio(contrasts: &[Contrast], measure: &Measure, round: usize, runs: &Runs<'_>) -> Option<f64> {
    let of_whole_runs = of_sides(contrasts, round, runs, |run| {
        if spoiling_gate(run, measure).is_some() {
            return None;
        }
        let value = run.measures.get(measure.name()).copied()?;
        if measure.record().is_mostly_zero {
            // For counts that may be 0, 1 is added on both sides; this does not change which side is larger.
            return Some(value.ln_1p());
        }
        (value > 0.0).then(|| value.ln())
    })?;
    Some(of_blocks(contrasts, measure, round, runs).unwrap_or(of_whole_runs))
}

/// The ratio of a round of a duel, estimated from the ratios of blocks that were measured in the same turn; `None` if
/// the runs have no blocks.
fn of_blocks(
    contrasts: &[Contrast],
    measure: &Measure,
    round: usize,
    runs: &Runs<'_>,
) -> Option<f64> {
    let ratio_of_turn = |turn: usize| {
        of_sides(contrasts, round, runs, |run| {
            Some(run.blocks.get(measure.name())?.get(turn)?.ln())
        })
    };
    // The first turn that a run does not have is the end of the round.
    let ratios = (0..).map_while(ratio_of_turn);
    let logs: Vec<f64> = ratios.map(f64::ln).collect();
    signed_rank::estimate(&logs).map(f64::exp)
}

/// The ratio of the two sides in a round, which is the geometric mean over the contrasts. `log_of_run` returns the
/// logarithm of a run's value. `None` if any cell has no run, or its run has no value.
fn of_sides(
    contrasts: &[Contrast],
    round: usize,
    runs: &Runs<'_>,
    log_of_run: impl Fn(&Run) -> Option<f64>,
) -> Option<f64> {
    let log_of_cell = |cell: &usize| log_of_run(runs.get(&(*cell, round))?);
    let mut sum = 0.0;
    for contrast in contrasts {
        for cell in &contrast.above {
            sum += log_of_cell(cell)?;
        }
        for cell in &contrast.below {
            sum -= log_of_cell(cell)?;
        }
    }
    Some((sum / contrasts.len() as f64).exp())
}

/// The sums of a count over all valid runs of the numerator, and of the denominator.
fn counts(measure: &Measure, case: &Case, runs: &Runs<'_>) -> [f64; 2] {
    let [mut above, mut below] = [0.0, 0.0];
    for ((cell, _), run) in runs {
        let Some(count) = run.measures.get(measure.name()) else {
            continue;
        };
        if is_above(&case.contrasts, *cell) {
            above += count;
        }
        if is_below(&case.contrasts, *cell) {
            below += count;
        }
    }
    [above, below]
}

/// The gate because of which a run's value of this measure must not be used; `None`: it may be used.
fn spoiling_gate<'a>(run: &'a Run, measure: &Measure) -> Option<&'a GateFinding> {
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
fn gate_of_left_out(
    contrasts: &[Contrast],
    measure: &Measure,
    runs: &Runs<'_>,
) -> Option<GateFinding> {
    let mut of_case = runs.iter().filter(|((cell, _), _)| is_in(contrasts, *cell));
    of_case.find_map(|(_, run)| {
        let gate = spoiling_gate(run, measure).or_else(|| not_counted(run, measure));
        gate.cloned()
    })
}

/// The number of rounds that each gate makes claims leave out. A round counts once, for the first gate.
fn left_out(contrasts: &[Contrast], measure: &Measure, runs: &Runs<'_>) -> BTreeMap<String, usize> {
    let mut gate_of_round: BTreeMap<usize, &str> = BTreeMap::new();
    for ((_, round), run) in runs.iter().filter(|((cell, _), _)| is_in(contrasts, *cell)) {
        if let Some(fired) = spoiling_gate(run, measure) {
            gate_of_round.entry(*round).or_insert(&fired.gate);
        }
    }
    let mut rounds_by_gate = BTreeMap::new();
    for gate in gate_of_round.into_values() {
        *rounds_by_gate.entry(gate.to_owned()).or_default() += 1;
    }
    rounds_by_gate
}

/// The gate that says why this measure was not counted in a run; `None` if the run has the measure.
fn not_counted<'a>(run: &'a Run, measure: &Measure) -> Option<&'a GateFinding> {
    if run.measures.contains_key(measure.name()) {
        return None;
    }
    let name = gate::uncounted_gate(measure.base());
    run.gates.iter().find(|fired| fired.gate == name)
}

/// Whether a cell is in the numerator of any of the contrasts.
fn is_above(contrasts: &[Contrast], cell: usize) -> bool {
    let mut contrasts = contrasts.iter();
    contrasts.any(|contrast| contrast.above.contains(&cell))
}

/// Whether a cell is in the denominator of any of the contrasts.
fn is_below(contrasts: &[Contrast], cell: usize) -> bool {
    let mut contrasts = contrasts.iter();
    contrasts.any(|contrast| contrast.below.contains(&cell))
}

fn is_in(contrasts: &[Contrast], cell: usize) -> bool {
    is_above(contrasts, cell) || is_below(contrasts, cell)
}

/// The findings of gates that compare both sides, as far as they concern the measure.
fn pair_findings(claim: &Claim, contrasts: &[Contrast], runs: &Runs<'_>) -> Vec<GateFinding> {
    let measure = &claim.measure;
    let mean_of = |is_of_side: fn(&[Contrast], usize) -> bool| {
        let of_side = runs
            .iter()
            .filter(|((cell, _), _)| is_of_side(contrasts, *cell));
        mean_facts(&of_side.map(|(_, run)| &run.facts).collect::<Vec<_>>())
    };
    let (Some(above), Some(below)) = (mean_of(is_above), mean_of(is_below)) else {
        return Vec::new();
    };
    let mut findings = gate::check_pair(&above, &below);
    findings.retain(|fired| match fired.gate.as_str() {
        "unequal-answers" => measure.base() == "bytes",
        "foreign" => measure.record().spoiler != Spoiler::Nothing,
        "confounded" => !claim.names_reuse,
        // Other gates on pairs are about single runs, such as their longest requests, and no claim is on these.
        _ => false,
    });
    findings
}

/// The facts of the first run of one side, with the means over all of its runs for the numbers that gates on pairs
/// read; `None` without runs.
fn mean_facts(runs: &[&Facts]) -> Option<Facts> {
    let count = runs.len() as f64;
    let mut mean = (*runs.first()?).clone();
    // A number that any run lacks has no mean.
    let heads: Option<Vec<f64>> = runs.iter().map(|facts| facts.head_bytes).collect();
    mean.head_bytes = heads.map(|heads| heads.iter().sum::<f64>() / count);
    let dials: Option<Vec<f64>> = runs.iter().map(|facts| facts.dials).collect();
    mean.dials = dials.map(|dials| dials.iter().sum::<f64>() / count);
    if let Some(machine) = &mut mean.machine {
        let foreign = runs
            .iter()
            .filter_map(|facts| Some(facts.machine.as_ref()?.foreign));
        machine.foreign = foreign.sum::<f64>() / count;
    }
    Some(mean)
}

/// Whether the result is the expected one; `None`: the verdict is open.
fn as_expected(expect: Expectation, verdict: Verdict, ratio: Option<f64>) -> Option<bool> {
    let ratio = ratio?;
    match verdict {
        Verdict::Differs | Verdict::DiffersLittle => Some(match expect {
            Expectation::More => ratio > 1.0,
            Expectation::Less => ratio < 1.0,
            // A difference within the margin counts as none.
            Expectation::Same => verdict == Verdict::DiffersLittle,
        }),
        Verdict::Same => Some(expect == Expectation::Same),
        Verdict::Suggests | Verdict::NotShown | Verdict::TooFew | Verdict::NoClaim => None,
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
    let distance = (ratio - 1.0).abs();
    if ratio < 0.1 || distance < 0.02 {
        format!("{ratio:.3}")
    } else if ratio < 10.0 {
        format!("{ratio:.2}")
    } else {
        format!("{ratio:.1}")
    }
}

#[cfg(test)]
mod tests;

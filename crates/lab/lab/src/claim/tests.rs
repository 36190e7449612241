mod firing;

use super::*;
use crate::facts::MachineFacts;
use crate::run::MemoryCount;

/// Rounds of `keepalive --quick` in which the level `keep=on` takes `ratio(round)` times the CPU and
/// does as much more work; everything else is alike.
pub(super) fn runs(
    experiment: &Experiment,
    rounds: usize,
    ratio: impl Fn(usize) -> f64,
) -> Vec<Run> {
    let mut runs = Vec::new();
    for round in 0..rounds {
        for (cell, levels) in experiment.cells.iter().enumerate() {
            let factor = if levels["keep"].to_string() == "on" {
                ratio(round)
            } else {
                1.0
            };
            // The machine walks from round to round: it must cancel out.
            let machine = 1.0 + round as f64 / 10.0;
            let value = |name: &str, value: f64| (name.to_owned(), value * machine);
            let measures = [
                value("throughput", 5000.0 / factor),
                value("cpu", 100.0 * factor),
                value("p99", 10.0),
                value("memory", 30.0),
                value("syscalls", 37.0 * factor),
                value("bytes.httpd.http", 1900.0),
            ];
            runs.push(Run {
                cell,
                levels: levels.clone(),
                round,
                measures: BTreeMap::from(measures),
                ..Run::default()
            });
        }
    }
    runs
}

/// Twelve rounds of the cells of the short form.
pub(super) fn experiment() -> Experiment {
    planned(FILE, 12)
}

/// So many rounds, which are evidence, of the cells of a file's short form.
fn planned(text: &str, rounds: usize) -> Experiment {
    let mut experiment = Experiment::read("keepalive.toml", text, true).unwrap();
    (experiment.is_quick, experiment.rounds) = (false, rounds);
    experiment
}

pub(super) fn outcome<'a>(outcomes: &'a [Outcome], says: &str) -> &'a Outcome {
    outcomes
        .iter()
        .find(|outcome| outcome.says == says)
        .unwrap()
}

/// Blocks next to each other share what the machine does, so their pairs tell what the runs' medians do not.
#[test]
fn a_duel_is_decided_by_pairs_of_blocks() {
    let experiment = experiment();
    let mut runs = runs(&experiment, 12, |_| 0.8);
    let machine = [1.0, 3.0, 2.0, 9.0];
    for run in &mut runs {
        let is_kept = run.levels["keep"].to_string() == "on";
        let blocks = machine.map(|machine| machine * if is_kept { 0.5 } else { 1.0 });
        run.blocks.insert("cpu".to_owned(), blocks.to_vec());
    }
    // One block that other work has hit alone.
    runs[0].blocks.get_mut("cpu").unwrap()[1] *= 1.5;
    let outcomes = evaluate(&experiment, &runs);
    let cpu = outcome(&outcomes, "Keep-alive saves CPU");
    let is_near = |outcome: &Outcome, ratio: f64| (outcome.ratio.unwrap() - ratio).abs() < 1e-9;
    assert!(is_near(cpu, 0.5), "{cpu:?}");
    let throughput = outcome(&outcomes, "Keep-alive raises throughput");
    assert_eq!(
        throughput.ratio,
        Some(1.25),
        "of the runs: it has no blocks"
    );
    // A gate takes the whole start away.
    let of_kept = |run: &&mut Run| run.round == 2 && run.levels["keep"].to_string() == "on";
    let late = GateFinding::new("late", Effect::Void, "late".to_owned());
    for run in runs.iter_mut().filter(of_kept) {
        run.gates.push(late.clone());
    }
    let outcomes = evaluate(&experiment, &runs);
    assert_eq!(outcome(&outcomes, "Keep-alive saves CPU").sample(), 11);
}

#[test]
fn a_difference_that_holds_beside_all_other_claims() {
    let experiment = experiment();
    let outcomes = evaluate(
        &experiment,
        &runs(&experiment, 12, |round| 0.5 + round as f64 / 1000.0),
    );
    let cpu = outcome(&outcomes, "Keep-alive saves CPU");
    assert_eq!(cpu.verdict, Verdict::Differs);
    assert_eq!(cpu.as_expected, Some(true));
    assert_eq!(
        cpu.sentence,
        "keep=on takes 0.51 times the CPU of keep=off [0.50..0.51] at mpm=prefork, 12 starts."
    );
    let throughput = outcome(&outcomes, "Keep-alive raises throughput");
    assert_eq!(
        (throughput.verdict, throughput.as_expected),
        (Verdict::Differs, Some(true))
    );
    let p99 = outcome(&outcomes, "Keep-alive makes the slowest requests slower");
    assert_eq!((p99.verdict, p99.as_expected), (Verdict::Same, Some(false)));
    assert!(
        p99.sentence
            .starts_with("No difference beyond 5 %: keep=on has 1.000 times the p99 of keep=off ["),
        "{}",
        p99.sentence
    );
}

#[test]
fn six_rounds_suggest_only() {
    let experiment = planned(FILE, 6);
    let outcomes = evaluate(&experiment, &runs(&experiment, 6, |_| 0.5));
    let cpu = outcome(&outcomes, "Keep-alive saves CPU");
    assert_eq!((cpu.verdict, cpu.as_expected), (Verdict::Suggests, None));
    assert_eq!(
        cpu.sentence,
        "Suggests: keep=on takes 0.50 times the CPU of keep=off [0.50..0.50] at mpm=prefork."
    );
    // The first of its question, by the source: what stands beside it does not weaken it.
    let throughput = outcome(&outcomes, "Keep-alive raises throughput");
    assert_eq!(
        (throughput.verdict, throughput.question),
        (Verdict::Differs, 2)
    );
    let quick = Experiment::read("keepalive.toml", FILE, true).unwrap();
    let outcomes = evaluate(&quick, &runs(&quick, 6, |_| 0.5));
    let is_shown = |it: &Outcome| it.verdict == Verdict::Differs;
    assert!(
        !outcomes.iter().any(is_shown),
        "a short form suggests at most"
    );
}

/// A published ratio is of a single run: its direction is the sentence, and its size refutes nothing.
#[test]
fn a_published_sentence_is_judged_by_its_direction() {
    use catamaran_stats::repetition::Finding;

    let experiment = experiment();
    // ×3.21 of throughput was published. The ratio of throughput is 1 / `cpu`, give or take `noise`.
    for (cpu, noise, expected) in [
        (0.5, 0.01, Finding::Holds),
        (0.31, 0.05, Finding::Holds),
        (1.4, 0.01, Finding::DoesNotHold),
        (1.01, 0.001, Finding::DoesNotHold),
        (0.9, 0.9, Finding::Undecided),
    ] {
        let ratio = |round: usize| cpu * (1.0 + noise * (round as f64 % 5.0 - 2.0)).max(0.1);
        let outcomes = evaluate(&experiment, &runs(&experiment, 12, ratio));
        let throughput = outcome(&outcomes, "Keep-alive raises throughput");
        assert_eq!(throughput.finding(), Some(expected), "{cpu} {throughput:?}");
    }
    // What is only suggested decides nothing.
    let quick = Experiment::read("keepalive.toml", FILE, true).unwrap();
    let outcomes = evaluate(&quick, &runs(&quick, 6, |_| 1.0 / 3.21));
    let throughput = outcome(&outcomes, "Keep-alive raises throughput");
    assert_eq!(throughput.verdict, Verdict::Suggests);
    assert_eq!(throughput.finding(), Some(Finding::Undecided));
    let four = evaluate(&experiment, &runs(&experiment, 4, |_| 1.0 / 3.21));
    let throughput = outcome(&four, "Keep-alive raises throughput");
    assert_eq!(throughput.finding(), Some(Finding::Undecided));
}

#[test]
fn noise_shows_nothing_and_says_what_it_may_hide() {
    let experiment = experiment();
    let noise = |round: usize| if round.is_multiple_of(2) { 0.75 } else { 1.25 };
    let outcomes = evaluate(&experiment, &runs(&experiment, 12, noise));
    let cpu = outcome(&outcomes, "Keep-alive saves CPU");
    assert_eq!(cpu.verdict, Verdict::NotShown);
    assert!(
        cpu.sentence
            .contains("[0.75..1.25] at mpm=prefork; up to ×1.33 may be hidden."),
        "{}",
        cpu.sentence
    );
    assert!(
        cpu.sentence
            .contains("No sensible number of starts would decide it."),
        "{}",
        cpu.sentence
    );
}

#[test]
fn a_server_that_is_not_warm_spoils_only_what_is_measured_warm() {
    let run = |gate| Run {
        gates: vec![GateFinding::new(gate, Effect::Machine, "")],
        ..Run::default()
    };
    let (cold, dear) = (run(gate::UNSTEADY), run("foreign"));
    for (name, is_cold) in [
        ("throughput", false),
        ("ab.throughput", false),
        ("first", true),
        ("ab1.longest", true),
        ("ab2.throughput", true),
    ] {
        let measure = Measure::parse(name).unwrap();
        assert_eq!(spoiling_gate(&cold, &measure).is_none(), is_cold, "{name}");
        assert!(spoiling_gate(&dear, &measure).is_some(), "{name}");
    }
}

#[test]
fn few_rounds_and_void_runs_give_no_verdict() {
    let experiment = planned(FILE, 4);
    let outcomes = evaluate(&experiment, &runs(&experiment, 4, |_| 0.5));
    assert_eq!(outcomes[0].verdict, Verdict::TooFew);
    assert_eq!(
        outcomes[0].sentence,
        "Too few starts, 4 of 6: keep=on has 2.00 to 2.00 times the throughput of keep=off at mpm=prefork."
    );
    let experiment = planned(FILE, 12);
    let mut void = runs(&experiment, 12, |_| 0.5);
    for run in &mut void {
        run.gates.push(GateFinding {
            gate: "status".to_owned(),
            effect: Effect::Void,
            words: "5 of 9 answers were 302.".to_owned(),
        });
    }
    let outcomes = evaluate(&experiment, &void);
    assert_eq!(outcomes[0].verdict, Verdict::NoClaim);
    assert_eq!(
        outcomes[0].sentence,
        "No claim: None of the 12 runs with keep=on was valid (status 12)."
    );
}

/// A look ends the rounds once no further one can change a verdict.
#[test]
fn rounds_end_when_each_claim_is_decided() {
    let mut experiment = experiment();
    let clear = runs(&experiment, 8, |round| 0.5 + round as f64 / 1000.0);
    assert!(is_decided(&experiment, &clear));
    let noise = |round: usize| if round.is_multiple_of(2) { 0.75 } else { 1.25 };
    let mut open = runs(&experiment, 8, noise);
    assert!(!is_decided(&experiment, &open));
    // What a gate forbids is not open, and what it leaves alone is.
    let foreign = |gate| GateFinding::new(gate, Effect::Machine, "Others took the cores.");
    for run in &mut open {
        run.gates.push(foreign("throttled"));
    }
    assert!(!is_decided(&experiment, &open), "calls are counted");
    experiment
        .claims
        .retain(|claim| claim.measure.name() == "cpu");
    assert!(is_decided(&experiment, &open));
    experiment.claims.clear();
    assert!(!is_decided(&experiment, &open));
}

#[test]
fn a_gate_on_times_leaves_counts_alone() {
    let experiment = experiment();
    let mut limited = runs(&experiment, 12, |_| 0.5);
    for run in &mut limited {
        run.gates.push(GateFinding {
            gate: "generator".to_owned(),
            effect: Effect::Time,
            words: "The load generator was the limit.".to_owned(),
        });
    }
    let outcomes = evaluate(&experiment, &limited);
    let throughput = outcome(&outcomes, "Keep-alive raises throughput");
    assert_eq!(throughput.verdict, Verdict::NoClaim);
    assert_eq!(
        throughput.sentence,
        "No claim: The load generator was the limit."
    );
    assert_eq!(
        outcome(&outcomes, "Keep-alive saves CPU").verdict,
        Verdict::Differs
    );
    assert_eq!(
        outcome(&outcomes, "Keep-alive saves system calls").verdict,
        Verdict::Differs
    );
}

#[test]
fn what_was_not_counted_is_not_claimed() {
    let experiment = experiment();
    let mut runs = runs(&experiment, 12, |_| 0.5);
    for run in &mut runs {
        run.measures.remove("syscalls");
        let why = "the kernel refuses a program".to_owned();
        let machine = run.facts.machine.get_or_insert_default();
        machine.uncounted.insert("syscalls".to_owned(), why.clone());
        // The hop of the clients has a figure by another way.
        machine.uncounted.insert("bytes".to_owned(), why);
        run.gates = gate::check_run(&run.facts);
        run.gates.retain(|fired| fired.effect == Effect::Note);
    }
    let outcomes = evaluate(&experiment, &runs);
    let calls = outcome(&outcomes, "Keep-alive saves system calls");
    assert_eq!(calls.verdict, Verdict::NoClaim);
    assert_eq!(
        calls.sentence,
        "No claim: System calls are not counted: the kernel refuses a program."
    );
    let bytes = outcomes.iter().find(|it| it.measure.base() == "bytes");
    assert_eq!(bytes.unwrap().verdict, Verdict::Same);
    let cpu = outcome(&outcomes, "Keep-alive saves CPU");
    assert_eq!(cpu.verdict, Verdict::Differs);
}

#[test]
fn foreign_work_on_one_side_forbids_claims_on_times_and_cpu() {
    let experiment = experiment();
    let mut busy = runs(&experiment, 12, |_| 0.5);
    for run in &mut busy {
        let foreign = if run.levels["keep"].to_string() == "on" {
            0.3
        } else {
            0.0
        };
        run.facts.machine = Some(MachineFacts {
            foreign,
            ..MachineFacts::default()
        });
    }
    let outcomes = evaluate(&experiment, &busy);
    for says in ["Keep-alive raises throughput", "Keep-alive saves CPU"] {
        let outcome = outcome(&outcomes, says);
        assert_eq!(outcome.verdict, Verdict::NoClaim);
        assert!(
            outcome
                .sentence
                .contains("30 % of the cores' time from one level"),
            "{}",
            outcome.sentence
        );
    }
    assert_eq!(
        outcome(&outcomes, "Keep-alive saves system calls").verdict,
        Verdict::Differs
    );
}

#[test]
fn ratios_have_the_digits_that_tell_them_from_one() {
    for (ratio, text) in [
        (0.0123, "0.012"),
        (0.5, "0.50"),
        (1.004, "1.004"),
        (3.21, "3.21"),
        (14.0, "14.0"),
    ] {
        assert_eq!(number(ratio), text);
    }
}

/// The outcome of a claim on failed requests, of which `failed` happen in a run with kept connections.
fn failures(failed: f64) -> Outcome {
    claimed_on("failed", [failed, 0.0])
}

/// The outcome of a claim on this measure, which has these values in each run with kept and with closed connections.
fn claimed_on(measure: &str, values: [f64; 2]) -> Outcome {
    let claim = format!("measure = \"{measure}\"");
    let text = FILE.replacen("measure = \"throughput\"", &claim, 1);
    let experiment = planned(&text, 12);
    let mut runs = runs(&experiment, 12, |_| 1.0);
    for run in &mut runs {
        let is_closed = run.levels["keep"].to_string() != "on";
        let value = values[usize::from(is_closed)];
        run.measures.insert(measure.to_owned(), value);
    }
    outcome(
        &evaluate(&experiment, &runs),
        "Keep-alive raises throughput",
    )
    .clone()
}

#[test]
fn requests_that_failed_are_counted_and_not_divided() {
    let none = failures(0.0);
    assert_eq!(none.verdict, Verdict::Same);
    assert_eq!(
        none.sentence,
        "No request failed at mpm=prefork, 12 starts."
    );
    let some = failures(3.0);
    assert_eq!(some.verdict, Verdict::Differs);
    assert_eq!(
        some.sentence,
        "36 requests failed with keep=on, 0 with keep=off at mpm=prefork, 12 starts."
    );
}

/// A server that stops for 200 ms now and then: claims on its silences say what those on percentiles hide.
#[test]
fn stalls_have_claims_of_their_own() {
    let counted = claimed_on("silences", [2.0, 0.0]);
    assert_eq!(counted.verdict, Verdict::Differs);
    assert_eq!(
        counted.sentence,
        "24 spans were without an answer with keep=on, 0 with keep=off at mpm=prefork, 12 starts."
    );
    let none = claimed_on("silences", [0.0, 0.0]);
    assert_eq!(none.verdict, Verdict::Same);
    assert_eq!(
        none.sentence,
        "No span was without an answer at mpm=prefork, 12 starts."
    );
    let longest = claimed_on("longest_silence", [200.0, 10.0]);
    assert_eq!(longest.verdict, Verdict::Differs);
    assert_eq!(
        longest.sentence,
        "keep=on has 20.0 times the longest span without an answer of keep=off [20.0..20.0] at mpm=prefork, 12 starts."
    );
}

/// The outcomes of `rounds` in which CPU time is halved, with servers that are started anew as `restart` says.
fn restarted(restart: &str, rounds: usize) -> Vec<Outcome> {
    let text = FILE.replacen("core = 1\n", &format!("core = 1\nrestart = {restart}\n"), 1);
    let experiment = planned(&text, rounds);
    evaluate(
        &experiment,
        &runs(&experiment, rounds, |round| 0.5 + round as f64 / 1000.0),
    )
}

#[test]
fn servers_that_are_never_started_anew_prove_nothing() {
    let outcomes = restarted("\"never\"", 12);
    let cpu = outcome(&outcomes, "Keep-alive saves CPU");
    assert_eq!(
        (cpu.verdict, cpu.ratio, cpu.sample()),
        (Verdict::TooFew, None, 1)
    );
    assert_eq!(
        cpu.sentence,
        "Too few starts, 1 of 6: keep=on takes 0.51 times the CPU of keep=off at mpm=prefork."
    );
}

#[test]
fn starts_are_the_sample_and_not_rounds() {
    let outcomes = restarted("3", 15);
    let cpu = outcome(&outcomes, "Keep-alive saves CPU");
    assert_eq!(
        (cpu.verdict, cpu.sample(), cpu.ratios.len()),
        (Verdict::TooFew, 5, 15)
    );
    assert_eq!(
        cpu.sentence,
        "Too few starts, 5 of 6: keep=on takes 0.50 to 0.51 times the CPU of keep=off at mpm=prefork."
    );
    // The median of each start's rounds.
    assert!((cpu.starts[0] - 0.501).abs() < 1e-9, "{cpu:?}");
    let outcomes = restarted("2", 20);
    let cpu = outcome(&outcomes, "Keep-alive saves CPU");
    assert_eq!((cpu.verdict, cpu.sample()), (Verdict::Differs, 10));
    assert!(cpu.sentence.ends_with(", 10 starts."), "{}", cpu.sentence);
    // Of ten that agree, at the last of four looks.
    assert!(cpu.p > 2.0_f64.powi(-9) && cpu.p < 0.004, "{}", cpu.p);
}

#[test]
fn a_start_out_of_turn_is_in_the_block_of_rounds_that_it_is_in() {
    let experiment = experiment();
    let mut runs = runs(&experiment, 12, |_| 0.5);
    for run in &mut runs {
        // One process of each cell for two rounds, but for those that were void between.
        let start = match (run.cell, run.round) {
            (0, 3) => 1_000,
            (cell, round) => (cell * 100 + round / 2) as u64,
        };
        run.starts.insert("httpd".to_owned(), start);
    }
    let outcomes = evaluate(&experiment, &runs);
    let cpu = outcome(&outcomes, "Keep-alive saves CPU");
    assert_eq!(cpu.sample(), 6, "{cpu:?}");
}

#[test]
fn memory_with_shared_pages_is_no_claim_on_our_servers() {
    let ours = FILE.replacen("target = \"httpd\"", "target = \"front\"", 1);
    let ours = ours.split("set = ").next().unwrap().to_owned()
        + ours
            .split_once("\n[load]")
            .map(|(_, rest)| "\n[load]".to_owned() + rest)
            .unwrap()
            .as_str();
    for (text, count, verdict) in [
        (FILE, MemoryCount::Proportional, Verdict::Same),
        (&ours, MemoryCount::Proportional, Verdict::NoClaim),
        (&ours, MemoryCount::Allocated, Verdict::Same),
    ] {
        let experiment = planned(text, 12);
        let mut runs = runs(&experiment, 12, |_| 0.5);
        runs.iter_mut().for_each(|run| run.memory = count);
        let outcomes = evaluate(&experiment, &runs);
        let memory = outcomes
            .iter()
            .find(|it| it.measure.base() == "memory")
            .unwrap();
        assert_eq!(memory.verdict, verdict, "{}", memory.sentence);
        let is_said = memory
            .sentence
            .starts_with("No claim: Memory was counted as PSS: our servers");
        assert_eq!(is_said, verdict == Verdict::NoClaim);
    }
}

/// A result as an older version wrote it: of rounds, with memory as PSS.
fn older(experiment: &Experiment, runs: Vec<Run>) -> crate::result::ResultDocument {
    let stored = crate::result::StoredResult::of(experiment.clone(), runs);
    let mut result = crate::result::ResultDocument::of(&stored, true);
    result.starts.clear();
    for claim in &mut result.claims {
        claim.starts.clear();
        claim.question = 0;
        claim.sentence = "of an older version".to_owned();
    }
    result
}

#[test]
fn an_older_result_is_drawn_anew_by_starts() {
    let text = FILE.replacen("core = 1\n", "core = 1\nrestart = 3\n", 1);
    // One look, as older results had.
    let experiment = planned(&text, 8);
    let mut runs = runs(&experiment, 8, |round| 0.5 + round as f64 / 1000.0);
    let gate = GateFinding::new(
        "generator",
        Effect::Time,
        "The load generator was the limit.",
    );
    let cell = experiment.claims[0].cases[0].contrasts[0].above[0];
    let limited = runs
        .iter_mut()
        .find(|run| (run.cell, run.round) == (cell, 7));
    limited.unwrap().gates.push(gate.clone());
    let expected = evaluate(&experiment, &runs);
    let mut result = older(&experiment, runs);
    // As they were: each round a value.
    result.claims[0].verdict = Verdict::Differs;
    let again = result.claims_again(&experiment);
    assert_eq!(again, expected);
    assert!(
        again
            .iter()
            .any(|it| it.gates.contains(&gate) && it.ratios.len() == 7)
    );
    assert!(again.iter().all(|it| it.sample() <= 4));
    result.claims[0].says = "What no experiment claims".to_owned();
    let again = result.claims_again(&experiment);
    assert_eq!(again[0].verdict, Verdict::NoClaim);
    assert!(again[0].sentence.contains("is not known"));
}

/// Rounds of the quick form of `known-capacity`, of which throughput says `throughput` and CPU time `capacity`.
fn of_known_capacity(throughput: f64, capacity: f64) -> Vec<Outcome> {
    let text = include_str!("../../experiments/known-capacity.toml");
    let experiment = planned(text, 12);
    let mut runs = Vec::new();
    for round in 0..12 {
        for (cell, levels) in experiment.cells.iter().enumerate() {
            let is_slow = levels["takes"].to_string() == "1.20";
            let value = |ratio: f64| {
                let noise = 1.0 + f64::from(cell as u32 % 3 * round % 5) / 1000.0;
                5000.0 * noise / if is_slow { ratio } else { 1.0 }
            };
            let measures = [
                ("throughput", value(throughput)),
                ("capacity", value(capacity)),
            ];
            let measures = measures.map(|(name, value)| (name.to_owned(), value));
            runs.push(Run {
                cell,
                levels: levels.clone(),
                round: round as usize,
                measures: measures.into(),
                ..Run::default()
            });
        }
    }
    evaluate(&experiment, &runs)
}

#[test]
fn what_was_planted_is_told_and_when() {
    let outcomes = of_known_capacity(1.2, 1.2);
    assert_eq!(outcomes.len(), 4, "two claims by two ways");
    for outcome in &outcomes {
        let planted = outcome.planted.unwrap();
        assert_eq!(planted.ratio, 1.2);
        // Beside three others, eight signs are the fewest.
        assert_eq!(planted.decided_after, Some(8), "{outcome:?}");
        assert_eq!(outcome.is_told_truly(), Some(true), "{outcome:?}");
        assert_eq!(outcome.gates, []);
    }
}

#[test]
fn throughput_and_capacity_may_disagree() {
    let outcomes = of_known_capacity(1.14, 1.2);
    for outcome in &outcomes {
        let is_throughput = outcome.measure.name() == "throughput";
        assert_eq!(outcome.is_told_truly(), Some(!is_throughput), "{outcome:?}");
        let off = outcome.off().unwrap();
        assert_eq!(off < -0.03, is_throughput, "{off}");
        let words: Vec<&str> = outcome.gates.iter().map(|it| &it.words[..]).collect();
        let expected = "Throughput has the ratio 1.14, capacity per core 1.20: the throughput is not decided by the CPU \
                        time of the server in front alone.";
        assert_eq!(
            words,
            if is_throughput {
                vec![expected]
            } else {
                vec![]
            }
        );
        assert_eq!(outcome.verdict, Verdict::Differs, "a note forbids nothing");
    }
}

const FILE: &str = include_str!("../../fixtures/keepalive.toml");

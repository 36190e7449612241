//! That each gate on claims can fire: one without a case is a promise.

use std::collections::BTreeSet;

use super::*;
use crate::experiment::Screen;
use crate::facts::SilenceFacts;

#[test]
fn each_gate_on_a_claim_has_a_case_that_fires_it() {
    let quiet = evaluate(&experiment(), &kept(|_| {}));
    assert!(quiet.iter().all(|it| it.gates.is_empty()), "{quiet:#?}");
    for (name, outcomes) in CASES {
        let fired = outcomes();
        let mut fired = fired.iter().flat_map(|it| &it.gates);
        assert!(
            fired.any(|it| it.gate == *name),
            "its case does not fire {name}"
        );
    }
    let cases: BTreeSet<&str> = CASES.iter().map(|(name, _)| *name).collect();
    let gates: BTreeSet<&str> = GATES.iter().map(|gate| gate.name).collect();
    assert_eq!(cases, gates);
}

/// Servers that do not differ but for what is planted: no claim may say that they do, and each names the cause.
#[test]
fn each_planted_fault_of_a_claim_is_named() {
    for (name, disturb, words) in PLANTED {
        let mut runs = runs(&experiment(), 12, |_| 1.0);
        runs.iter_mut().for_each(disturb);
        let outcomes = evaluate(&experiment(), &runs);
        let cpu = outcome(&outcomes, "Keep-alive saves CPU");
        assert_eq!(cpu.verdict, Verdict::NoClaim, "{name}: {}", cpu.sentence);
        assert!(cpu.sentence.contains(words), "{name}: {}", cpu.sentence);
        // The page of the method has a table of all planted faults.
        let row = format!("| {name} | `lab run` | {words} |");
        let page = include_str!("../../../../../../docs/lab/method.md");
        assert!(page.contains(&row), "{row}");
    }
}

fn is_kept(run: &Run) -> bool {
    run.levels["keep"].to_string() == "on"
}

/// Makes a run dearer.
fn cost(run: &mut Run, factor: f64) {
    if let Some(cpu) = run.measures.get_mut("cpu") {
        *cpu *= factor;
    }
}

/// A fault by its name, what it does to a run, and words of the sentence.
type PlantedFault = (&'static str, fn(&mut Run), &'static str);

/// Twelve rounds of which the runs with kept connections are changed.
fn kept(change: fn(&mut Run)) -> Vec<Run> {
    let mut runs = runs(&experiment(), 12, |_| 0.5);
    let is_kept = |run: &&mut Run| run.levels["keep"].to_string() == "on";
    runs.iter_mut().filter(is_kept).for_each(change);
    runs
}

fn silent() -> Vec<Outcome> {
    let mut runs = runs(&experiment(), 12, |_| 0.5);
    for run in &mut runs {
        run.facts.clients = Some(100);
        run.facts.silences = Some(SilenceFacts {
            count: u64::from(run.levels["keep"].to_string() == "on"),
            longest_ms: 203.0,
            ..SilenceFacts::default()
        });
    }
    evaluate(&experiment(), &runs)
}

fn cold() -> Vec<Outcome> {
    let mut runs = kept(|run| {
        run.thirds.insert("cpu".to_owned(), [160.0, 100.0, 100.0]);
    });
    for run in &mut runs {
        run.thirds.entry("cpu".to_owned()).or_insert([100.0; 3]);
    }
    evaluate(&experiment(), &runs)
}

fn lost() -> Vec<Outcome> {
    let runs = kept(|run| {
        let died = GateFinding::new("died", Effect::Void, "httpd ended with signal: 9");
        run.gates.extend((run.round < 9).then_some(died));
    });
    evaluate(&experiment(), &runs)
}

fn screened() -> Vec<Outcome> {
    let mut screened = experiment();
    screened.screen = Some(Screen {
        rounds: 6,
        cells: (0..screened.cells.len()).collect(),
        then: vec![0],
        keep: None,
    });
    evaluate(&screened, &kept(|_| {}))
}

fn shared_pages() -> Vec<Outcome> {
    let (before, after) = FILE.split_once("set = ").unwrap();
    let (_, after) = after.split_once("\n[load]").unwrap();
    let ours = before.replacen("target = \"httpd\"", "target = \"front\"", 1) + "\n[load]" + after;
    let experiment = planned(&ours, 12);
    let mut runs = runs(&experiment, 12, |_| 0.5);
    runs.iter_mut()
        .for_each(|run| run.memory = MemoryCount::Proportional);
    evaluate(&experiment, &runs)
}

fn without_starts() -> Vec<Outcome> {
    let mut result = older(&experiment(), kept(|_| {}));
    result.claims[0].says = "What no experiment claims".to_owned();
    result.claims_again(&experiment())
}

/// A gate, and outcomes of which one has it.
type FiringCase = (&'static str, fn() -> Vec<Outcome>);

const CASES: &[FiringCase] = &[
    ("shared-pages", shared_pages),
    ("capacity", || of_known_capacity(1.14, 1.2)),
    ("unsteady", cold),
    ("silences", silent),
    ("survivors", lost),
    ("screened", screened),
    ("starts", without_starts),
];

const PLANTED: &[PlantedFault] = &[
    (
        "a backup runs whenever one level is measured",
        |run| {
            let machine = run.facts.machine.get_or_insert_default();
            (machine.foreign, machine.server_core) = (0.02, Some(0.99));
            if is_kept(run) {
                run.facts.machine.get_or_insert_default().foreign = 0.4;
                cost(run, 1.3);
            }
        },
        "Other processes took 40 % of the cores' time from one level and 2 % from the other",
    ),
    (
        "one level's log fills its disk in the last third of each run",
        |run| {
            let last = if is_kept(run) { 170.0 } else { 100.0 };
            run.thirds.insert("cpu".to_owned(), [100.0, 100.0, last]);
            cost(run, if is_kept(run) { 1.2 } else { 1.0 });
        },
        "Within the measured span the ratio moved from",
    ),
    (
        "one level's virtual machine compiles through all of its runs",
        |run| {
            if is_kept(run) {
                let words =
                    "The compilers of a Java virtual machine took 0.40 of a core: it was not warm.";
                run.gates
                    .push(GateFinding::new(gate::UNSTEADY, Effect::Machine, words));
                cost(run, 1.4);
            }
        },
        "void or left out (unsteady 12)",
    ),
    (
        "one level crashes in its dear runs, and only the cheap ones are left",
        |run| {
            if is_kept(run) && run.round % 3 != 0 {
                let words = "app ended with signal 11";
                run.gates
                    .push(GateFinding::new("died", Effect::Void, words));
            } else {
                cost(run, if is_kept(run) { 0.7 } else { 1.0 });
            }
        },
        "only the survivors would be compared",
    ),
    (
        "the lab took a third of one level's CPU time, and the run does not say how much",
        |run| {
            if is_kept(run) {
                let words = "Measuring took 30.0 % of the CPU time that was measured.";
                run.gates
                    .push(GateFinding::new("own-cost", Effect::Machine, words));
                cost(run, 1.3);
            }
        },
        "void or left out (own-cost 12)",
    ),
];

//! That each gate can fire: a record that no case fires is a promise.

use super::*;

/// What makes a quiet run one that a gate must fire on.
type Disturbance = fn(&mut Facts);

#[test]
fn each_gate_on_a_run_has_a_case_that_fires_it() {
    let fires = |gate: &RunGate, disturb: &Disturbance| {
        let mut facts = quiet();
        disturb(&mut facts);
        (gate.check)(&facts).is_some_and(|fired| fired.gate == gate.name)
    };
    for gate in RUN_GATES.iter().filter(|it| it.name != NOT_READY) {
        assert!((gate.check)(&quiet()).is_none(), "{}", gate.name);
        let is_fired = CASES.iter().any(|disturb| fires(gate, disturb));
        assert!(is_fired, "no case fires {}: {}", gate.name, gate.words);
    }
    for disturb in CASES {
        let is_of_use = RUN_GATES.iter().any(|gate| fires(gate, disturb));
        assert!(is_of_use, "a case fires nothing");
    }
}

#[test]
fn each_gate_on_a_pair_has_a_case_that_fires_it() {
    let one = Facts {
        dials: Some(0.0),
        ..quiet()
    };
    for gate in PAIR_GATES.iter() {
        assert!((gate.check)(&one, &one).is_none(), "{}", gate.name);
        let is_fired = OTHERS.iter().any(|disturb| {
            let mut other = one.clone();
            disturb(&mut other);
            (gate.check)(&one, &other).is_some_and(|fired| fired.gate == gate.name)
        });
        assert!(is_fired, "no case fires {}: {}", gate.name, gate.words);
    }
}

#[test]
fn each_gate_on_limits_has_a_case_that_fires_it() {
    let files = |is_enough| Check::of(is_enough, "open files", 1024, "10100 needed: for tests");
    for gate in machine::LIMIT_GATES {
        assert!((gate.check)(&[files(true)]).is_none(), "{}", gate.name);
        let fired = (gate.check)(&[files(false)]);
        assert!(
            fired.is_some(),
            "no case fires {}: {}",
            gate.name,
            gate.words
        );
    }
}

fn of_machine(facts: &mut Facts) -> &mut MachineFacts {
    facts.machine.as_mut().expect("a quiet run has them")
}

const CASES: &[Disturbance] = &[
    |it| it.statuses = BTreeMap::from([(302, it.completed)]),
    |it| it.body_bytes = Some(351.0),
    |it| it.other_length = 7,
    |it| it.other_body = 7,
    |it| it.kept = Some(0),
    |it| it.failed = 12,
    |it| it.asked.values_mut().for_each(|it| it.counted = Some(0.5)),
    |it| of_machine(it).moving = Some(0.12),
    |it| of_machine(it).alarms = vec!["app ended with exit status 1".to_owned()],
    |it| of_machine(it).capped = vec!["httpd: reached MaxRequestWorkers".to_owned()],
    |it| {
        let machine = of_machine(it);
        (machine.server_core, machine.load_core) = (Some(0.5), Some(0.99));
    },
    |it| it.latency_ms.as_mut().expect("it has them").mean = 5.0,
    |it| it.generator_starved = Some(0.2),
    |it| {
        it.clients = None;
        let text = "it was late".to_owned();
        it.warnings.insert("generator-late".to_owned(), text);
    },
    |it| it.rate = Some(30_000.0),
    |it| of_machine(it).foreign = 0.3,
    |it| of_machine(it).ports_used = Some(0.9),
    |it| of_machine(it).listen_overflows = 3,
    |it| of_machine(it).throttled = 3,
    |it| of_machine(it).own_cost = Some(0.05),
    |it| it.completed = 100,
    |it| it.latency_ms.as_mut().expect("it has them").max = 400.0,
    |it| {
        let silences = it.silences.as_mut().expect("it has them");
        (silences.count, silences.longest_ms) = (1, 203.0);
    },
    |it| of_machine(it).by_strace = Some("BPF is forbidden".to_owned()),
    |it| {
        let why = "BPF is forbidden".to_owned();
        let bases = ["syscalls", "bytes", REQUESTS];
        of_machine(it).uncounted = bases.map(|base| (base.to_owned(), why.clone())).into();
    },
];

const OTHERS: &[Disturbance] = &[
    |it| it.head_bytes = Some(327.0),
    |it| it.failed = 5,
    |it| it.dials = Some(1.0),
    |it| it.latency_ms.as_mut().expect("it has them").max = 400.0,
    |it| of_machine(it).foreign = 0.2,
];

/// A run without servers has no facts: `drive` fires it by name, and `lab_faults` of the end-to-end tests provokes it.
const NOT_READY: &str = "not-ready";

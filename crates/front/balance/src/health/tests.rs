//! Tests the state machine step by step, and under any order of events.

use proptest::prelude::*;

use super::*;

const fn ms(millis: u64) -> Moment {
    Duration::from_millis(millis)
}

/// An event of a backend, with the expected result.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// A dial that began at this time fails; the flag is whether that puts the backend out.
    Fails {
        began: u64,
        ejects: bool,
    },
    /// An exchange fails; the flag is whether that asks for a probe.
    Fault(bool),
    /// The backend is silent for too long; the flag is whether it becomes suspect.
    Quiet(bool),
    /// A byte arrives from the backend.
    Heard,
    /// The keeper asks for its task while the backend has no exchanges.
    Unused(Task),
    /// The keeper asks for its task.
    Next(Task),
    /// The keeper asks for its task while requests find no other backend.
    Wanted(Task),
    Probed(Outcome),
}

use Outcome::{Answered, Connected, Failed, NotMade};
use Step::{Fails, Fault, Heard, Next, Probed, Quiet, Unused, Wanted};
use Task::{Probe, Rest, Wait};

fn check(name: &str, steps: &[(u64, Step, bool)]) {
    let mut health = Health::default();
    for (index, &(at, step, up)) in steps.iter().enumerate() {
        let now = ms(at);
        match step {
            Fails { began, ejects } => {
                let ejected = health.connect_failed(ms(began), now);
                assert_eq!(ejected, ejects, "{name}, step {index}");
            }
            Fault(verifies) => {
                assert_eq!(health.verify(now), verifies, "{name}, step {index}");
            }
            Quiet(news) => assert_eq!(health.silent(), news, "{name}, step {index}"),
            Heard => assert!(health.heard(), "{name}, step {index}"),
            Next(task) => assert_eq!(health.next(now, false, true), task, "{name}, step {index}"),
            Unused(task) => {
                assert_eq!(health.next(now, false, false), task, "{name}, step {index}");
            }
            Wanted(task) => assert_eq!(health.next(now, true, true), task, "{name}, step {index}"),
            Probed(outcome) => health.probed(now, outcome),
        }
        let is_up = !is_out(&health);
        assert_eq!(is_up, up, "{name}, step {index}: {health:?}");
    }
}

/// Feeds the outcomes of scheduled probes one after the other; returns the backend's condition
/// after each.
fn watched(outcomes: &[Outcome]) -> Vec<Condition> {
    let mut health = Health::default();
    health.watch(Some(WATCH));
    assert!(health.needs_keeper());
    let mut now = ms(0);
    let mut seen = Vec::new();
    for &outcome in outcomes {
        while let Wait(left) = health.next(now, false, true) {
            now += left;
        }
        health.probed(now, outcome);
        seen.push(health.condition());
    }
    seen
}

fn out(cause: Cause, since: u64, next: u64) -> Condition {
    Condition::Out {
        cause,
        since: ms(since),
        next_probe: Some(ms(next)),
    }
}

#[test]
fn a_watched_backend_is_probed_for_ever() {
    let mut health = Health::default();
    health.watch(Some(WATCH));
    assert!(health.needs_keeper() && !health.needs_keeper());
    let mut now = ms(0);
    let mut probes = Vec::new();
    while probes.len() < 4 {
        match health.next(now, false, false) {
            Probe => {
                probes.push(now.as_millis());
                health.probed(now, Answered);
            }
            Wait(left) => now += left,
            Rest => panic!("it rests"),
        }
    }
    assert_eq!(probes, [5000, 10_000, 15_000, 20_000]);
    health.watch(None);
    assert_eq!(health.next(now, false, false), Rest);
    assert!(!health.needs_keeper());
}

#[test]
fn so_many_failures_in_a_row_put_out_and_so_many_answers_bring_back() {
    use Cause::{Failing, Unreachable, Unwell};
    use Condition::Up;
    let rows: &[(&str, &[Outcome], &[Condition])] = &[
        (
            "an answer between begins anew",
            &[WRONG, WRONG, Answered, WRONG, WRONG],
            &[Up; 5],
        ),
        (
            "three failures",
            &[WRONG, SILENT, WRONG],
            &[Up, Up, out(Failing, 15_000, 16_000)],
        ),
        (
            "three silences",
            &[SILENT; 3],
            &[Up, Up, out(Unwell, 15_000, 16_000)],
        ),
        (
            "a refused dial, at once",
            &[Failed],
            &[out(Unreachable, 5000, 6000)],
        ),
        ("of no account", &[WRONG, NotMade, WRONG, NotMade], &[Up; 4]),
        (
            "two answers",
            &[Failed, Answered, Answered],
            &[
                out(Unreachable, 5000, 6000),
                out(Unreachable, 5000, 7000),
                Up,
            ],
        ),
        (
            "connected to, and not well yet",
            &[Failed, Answered, WRONG, Answered, Answered],
            &[
                out(Unreachable, 5000, 6000),
                out(Unreachable, 5000, 7000),
                out(Failing, 5000, 8000),
                out(Failing, 5000, 9000),
                Up,
            ],
        ),
        (
            "excused, and heard of again",
            &[Outcome::Wrong { excused: true }; 3],
            &[Up, Up, Condition::Suspect],
        ),
    ];
    for (name, outcomes, expected) in rows {
        assert_eq!(watched(outcomes), *expected, "{name}");
    }
}

#[test]
fn a_watched_suspect_is_out_at_the_first_unanswered_cping_and_not_at_the_first_wrong_answer() {
    for (outcome, expected) in [(SILENT, true), (WRONG, false)] {
        let mut health = Health::default();
        health.watch(Some(WATCH));
        assert!(health.silent());
        assert_eq!(health.next(ms(10), false, true), Probe);
        health.probed(ms(20), outcome);
        assert_eq!(is_out(&health), expected, "{outcome:?}");
    }
}

#[test]
fn what_may_be_pardoned_is_suspect_when_too_many_others_are_out() {
    let mut health = Health::default();
    health.watch(Some(Watch { down: 1, ..WATCH }));
    for (outcome, expected) in [
        (WRONG, true),
        (WRONG, true),
        (Outcome::Wrong { excused: true }, false),
    ] {
        let mut now = ms(60_000);
        while let Wait(left) = health.next(now, false, true) {
            now += left;
        }
        health.probed(now, outcome);
        assert_eq!(is_out(&health), expected);
    }
    assert_eq!(health.condition(), Condition::Suspect);
    // A backend that cannot be connected to is out whatever the others are.
    health.probed(ms(90_000), Failed);
    assert_eq!(health.standing(), Standing::Out(Cause::Unreachable));
}

fn is_out(health: &Health) -> bool {
    matches!(health.standing(), Standing::Out(_))
}

fn ejects(began: u64) -> Step {
    let ejects = true;
    Fails { began, ejects }
}

fn ignored(began: u64) -> Step {
    let ejects = false;
    Fails { began, ejects }
}

#[test]
fn a_refused_connection_ejects_for_a_second_and_a_probe_brings_back() {
    check(
        "out and back",
        &[
            (0, ejects(0), false),
            (1, ignored(0), false),
            (1, Fault(false), false),
            (400, Next(Wait(ms(600))), false),
            (1000, Next(Probe), false),
            (1010, Probed(Failed), false),
            (1500, Next(Wait(ms(510))), false),
            (2010, Next(Probe), false),
            (2020, Probed(Answered), true),
            (2020, Next(Rest), true),
            (2030, ignored(2019), true),
        ],
    );
}

#[test]
fn a_poison_request_costs_a_probe_a_second_and_no_backend() {
    check(
        "poison",
        &[
            (0, Fault(true), true),
            (0, Next(Probe), true),
            (0, Fault(false), true),
            (5, Probed(Answered), true),
            (5, Next(Rest), true),
            (10, Fault(false), true),
            (1004, Fault(false), true),
            (1005, Fault(true), true),
        ],
    );
}

#[test]
fn two_probes_keep_their_distance_even_when_one_was_begun_for_another_reason() {
    check(
        "distance",
        &[
            (0, Fault(true), true),
            (0, Next(Probe), true),
            (1, ejects(1), false),
            (1400, Probed(Failed), false),
            (1500, Wanted(Wait(ms(900))), false),
            (2400, Next(Probe), false),
        ],
    );
}

#[test]
fn a_failed_verification_ejects() {
    check(
        "verified",
        &[
            (0, Fault(true), true),
            (0, Next(Probe), true),
            (2000, Probed(Failed), false),
            (2000, Next(Wait(ms(1000))), false),
            (3000, Next(Probe), false),
        ],
    );
}

#[test]
fn a_suspect_is_asked_until_a_byte_is_heard() {
    let excused = Outcome::Silent { excused: true };
    check(
        "saturated",
        &[
            (0, Quiet(true), true),
            (0, Quiet(false), true),
            (0, Fault(false), true),
            (0, Next(Probe), true),
            (900, Probed(excused), true),
            (900, Next(Wait(ms(1000))), true),
            (1500, Unused(Wait(ms(400))), true),
            (1900, Next(Probe), true),
            (2800, Probed(excused), true),
            (2900, Heard, true),
            (2900, Next(Rest), true),
        ],
    );
}

#[test]
fn silence_puts_out_what_is_not_excused() {
    let [excused, silent] = [true, false].map(|excused| Outcome::Silent { excused });
    for first in [Quiet(true), Fault(true)] {
        check(
            "hung",
            &[
                (0, first, true),
                (0, Next(Probe), true),
                (1000, Probed(silent), false),
                (1000, Quiet(false), false),
                (2000, Next(Probe), false),
                (2500, Probed(silent), false),
                (3500, Next(Probe), false),
                // The others have gone.
                (4000, Probed(excused), true),
                (5000, Next(Probe), true),
                (5001, Probed(Answered), true),
                (5001, Next(Rest), true),
            ],
        );
    }
    let mut health = Health::default();
    health.connect_failed(ms(0), ms(0));
    assert_eq!(health.standing(), Standing::Out(Cause::Unreachable));
    assert_eq!(health.next(ms(1000), false, true), Probe);
    health.probed(ms(1000), excused);
    assert_eq!(
        health.standing(),
        Standing::Out(Cause::Unreachable),
        "who could not be reached comes back with an answer"
    );
}

/// The outcome of a scheduled probe, or that one is under way, proves nothing about silence that
/// began later.
#[test]
fn a_scheduled_probe_does_not_put_off_the_question_to_a_suspect() {
    for outcome in [Answered, Connected, WRONG] {
        let mut health = Health::default();
        health.watch(Some(WATCH));
        assert_eq!(health.next(ms(0), false, true), Wait(PROBE_PERIOD));
        assert_eq!(health.next(ms(5000), false, true), Probe);
        health.probed(ms(5010), outcome);
        assert!(health.silent());
        assert_eq!(health.next(ms(5020), false, true), Probe, "{outcome:?}");
        health.probed(ms(6020), SILENT);
        assert!(is_out(&health), "{outcome:?}");
    }
    // It ends after the silence was noted.
    let mut health = Health::default();
    health.watch(Some(WATCH));
    assert_eq!(health.next(ms(0), false, true), Wait(PROBE_PERIOD));
    assert_eq!(health.next(ms(5000), false, true), Probe);
    assert!(health.silent());
    health.probed(ms(5010), Connected);
    assert_eq!(health.standing(), Standing::Suspect);
    assert_eq!(health.next(ms(5020), false, true), Probe);
    health.probed(ms(6020), SILENT);
    assert!(is_out(&health), "it could be asked");
}

#[test]
fn a_probe_that_an_operator_asks_for_counts() {
    let mut health = Health::default();
    health.watch(Some(WATCH));
    assert!(health.connect_failed(ms(0), ms(0)));
    health.probed_for_operator(ms(10), Answered);
    assert!(is_out(&health), "two are needed");
    health.probed_for_operator(ms(20), WRONG);
    health.probed_for_operator(ms(30), Answered);
    assert!(is_out(&health), "two in a row");
    // The keeper's own is under way.
    assert_eq!(health.next(ms(1030), false, true), Probe);
    health.probed_for_operator(ms(1040), Answered);
    assert!(!is_out(&health));
    health.probed(ms(1050), WRONG);
    assert!(!is_out(&health), "one of three");
}

#[test]
fn a_suspect_that_cannot_be_asked_comes_back_slowly_when_it_is_unused() {
    let mut health = Health::default();
    assert!(health.silent());
    assert_eq!(health.standing(), Standing::Suspect);
    assert_eq!(health.next(ms(0), false, true), Probe);
    health.probed(ms(5), Connected);
    assert_eq!(
        health.standing(),
        Standing::Suspect,
        "a dial proves nothing"
    );
    assert_eq!(health.next(ms(5000), false, true), Wait(PROBE_PERIOD));
    assert_eq!(health.next(ms(6000), false, false), Wait(PROBE_PERIOD));
    assert_eq!(health.next(ms(7000), false, false), Rest);
    assert_eq!(health.standing(), Standing::Up(Some(ms(7000))));
    // The next time it takes twice as long.
    assert!(health.silent());
    assert_eq!(health.next(ms(9000), false, true), Probe);
    health.probed(ms(9000), Connected);
    assert_eq!(health.next(ms(10_000), false, false), Wait(PROBE_PERIOD));
    assert_eq!(health.next(ms(11_000), false, false), Wait(PROBE_PERIOD));
    assert_eq!(health.next(ms(12_000), false, false), Rest);
}

#[test]
fn silence_is_excused_by_saturation_and_by_the_weight_that_would_be_out() {
    for (saturated, weights, unwell_max, excused) in [
        (false, (1, 2), 50, false),
        (true, (1, 2), 100, true),
        (false, (1, 1), 50, true),
        (false, (2, 3), 50, true),
        (false, (1, 3), 50, false),
        (false, (3, 3), 100, false),
        (false, (1, 100), 0, true),
        (false, (2_000_000, 4_000_000), 50, false),
    ] {
        let case = (saturated, weights, unwell_max);
        assert_eq!(excuses(saturated, weights, unwell_max), excused, "{case:?}");
    }
}

#[test]
fn a_probe_that_could_not_be_made_proves_nothing() {
    check(
        "out of files",
        &[
            (0, Fault(true), true),
            (0, Next(Probe), true),
            (1, Probed(NotMade), true),
            (1, ejects(1), false),
            (1001, Next(Probe), false),
            (1002, Probed(NotMade), false),
            (2002, Next(Probe), false),
        ],
    );
}

#[test]
fn ejected_while_being_verified() {
    for outcome in [Answered, Failed, NotMade] {
        check(
            "both",
            &[
                (0, Fault(true), true),
                (0, Next(Probe), true),
                (100, ejects(50), false),
                (200, Probed(outcome), false),
                (200, Next(Wait(ms(1000))), false),
                (1200, Next(Probe), false),
            ],
        );
    }
}

#[test]
fn flapping_doubles_the_back_off_and_calm_resets_it() {
    let mut health = Health::default();
    let mut now = ms(0);
    for expected in [1, 2, 4, 8, 16, 30, 30] {
        let ejected = now;
        assert!(health.connect_failed(now, now));
        while let Wait(left) = health.next(now, false, true) {
            now += left;
        }
        assert_eq!(now - ejected, Duration::from_secs(expected));
        health.probed(now, Answered);
        now += ms(1);
    }
    now += FLAP_WINDOW;
    assert!(health.connect_failed(now, now));
    assert_eq!(health.next(now + BACK_OFF_MIN, false, true), Probe);
}

#[test]
fn whoever_is_wanted_is_probed_each_second() {
    check(
        "wanted",
        &[
            (0, ejects(0), false),
            (1000, Next(Probe), false),
            (1000, Probed(Answered), true),
            (1001, ejects(1001), false),
            // Two seconds of back-off, of which one is enough if there is nobody else.
            (1500, Wanted(Wait(ms(501))), false),
            (2001, Next(Wait(ms(1000))), false),
            (2001, Wanted(Probe), false),
        ],
    );
}

#[test]
fn one_keeper_at_a_time() {
    let mut health = Health::default();
    assert!(!health.needs_keeper(), "all is well");
    health.connect_failed(ms(0), ms(0));
    assert!(health.needs_keeper());
    assert!(!health.needs_keeper(), "it has one");
    health.resign();
    assert!(health.needs_keeper(), "the next");
    assert_eq!(health.next(ms(1000), false, true), Probe);
    health.probed(ms(1000), Answered);
    assert_eq!(health.next(ms(1000), false, true), Rest);
    health.connect_failed(ms(1001), ms(1001));
    assert!(health.needs_keeper(), "the last one rests");
}

#[test]
fn the_share_ramps_up() {
    let slow_start = Duration::from_secs(10);
    for (age, expected) in [
        (0, 10),
        (900, 10),
        (1100, 11),
        (5000, 50),
        (9999, 99),
        (10_000, 100),
        (u64::MAX, 100),
    ] {
        assert_eq!(share(ms(age), slow_start), expected, "{age}");
    }
    assert_eq!(share(Duration::ZERO, Duration::ZERO), SHARE_FULL);
    assert_eq!(share(Duration::ZERO, Duration::from_nanos(1)), SHARE_MIN);
}

#[derive(Clone, Copy, Debug)]
enum Event {
    Fails,
    Suspect,
    Silent,
    Heard,
    Keep { wanted: bool },
    ProbeEnds(Outcome),
}

fn any_outcome() -> impl Strategy<Value = Outcome> {
    prop_oneof![
        Just(Answered),
        Just(Connected),
        Just(Failed),
        any::<bool>().prop_map(|excused| Outcome::Silent { excused }),
        any::<bool>().prop_map(|excused| Outcome::Wrong { excused }),
    ]
}

fn any_event() -> impl Strategy<Value = Event> {
    prop_oneof![
        Just(Event::Fails),
        Just(Event::Suspect),
        any::<bool>().prop_map(|wanted| Event::Keep { wanted }),
        Just(Event::Silent),
        Just(Event::Heard),
        any_outcome().prop_map(Event::ProbeEnds),
    ]
}

proptest! {
    /// In any order of events: no client ejects, probes keep their distance, an answer brings the
    /// backend back.
    #[test]
    fn invariants(events in prop::collection::vec((0u64..1500, any_event()), 1..200)) {
        let mut health = Health::default();
        let mut now = ms(0);
        let (mut kept, mut probing) = (false, false);
        let mut ended = None;
        let mut ejected = None;
        for (step, event) in events {
            now += ms(step);
            let before = health.standing();
            let out_before = is_out(&health);
            match event {
                Event::Fails => {
                    let ejects = health.connect_failed(now, now);
                    prop_assert_eq!(ejects, !out_before);
                    prop_assert!(is_out(&health));
                }
                Event::Suspect => {
                    health.verify(now);
                    prop_assert_eq!(health.standing(), before, "a client puts nobody out");
                }
                Event::Silent => {
                    health.silent();
                    prop_assert_eq!(is_out(&health), out_before, "silence alone puts nobody out");
                }
                Event::Heard => {
                    health.heard();
                    prop_assert_ne!(health.standing(), Standing::Suspect);
                    prop_assert_eq!(is_out(&health), out_before);
                }
                Event::Keep { wanted } if !probing => {
                    kept |= health.needs_keeper();
                    if !kept {
                        continue;
                    }
                    match health.next(now, wanted, true) {
                        Probe => {
                            probing = true;
                            if let (true, Some(ended)) = (out_before, ended) {
                                prop_assert!(now >= ended + PROBE_PERIOD, "a herd of probes");
                            }
                            if let (true, Some(ejected)) = (out_before, ejected) {
                                prop_assert!(now >= ejected + BACK_OFF_MIN, "too soon");
                            }
                        }
                        Wait(left) => {
                            prop_assert!(!left.is_zero() && left <= PROBE_PERIOD);
                            prop_assert!(!matches!(health.standing(), Standing::Up(_)));
                        }
                        Rest => {
                            kept = false;
                            prop_assert!(!out_before);
                        }
                    }
                }
                Event::ProbeEnds(outcome) if probing => {
                    probing = false;
                    ended = Some(now);
                    health.probed(now, outcome);
                    match outcome {
                        Failed => {
                            // Somebody else's news came first.
                            let settled = matches!(before, Standing::Up(_)) && !is_out(&health);
                            prop_assert!(is_out(&health) || settled);
                        }
                        Outcome::Silent { excused: true } => {
                            prop_assert!(out_before || !is_out(&health), "excused");
                        }
                        Answered | Connected => {
                            prop_assert!(out_before || !is_out(&health));
                        }
                        _ => {}
                    }
                }
                Event::Keep { .. } | Event::ProbeEnds(_) => {}
            }
            let out = is_out(&health);
            if out && !out_before {
                ejected = Some(now);
            }
        }
        // And then the backend is well: it comes back within the longest back-off.
        let well = now;
        if probing {
            health.probed(now, Answered);
        }
        kept |= health.needs_keeper();
        while kept {
            match health.next(now, false, false) {
                Probe => health.probed(now, Answered),
                Wait(left) => now += left,
                Rest => kept = false,
            }
            prop_assert!(now <= well + BACK_OFF_MAX);
        }
        prop_assert!(!is_out(&health));
    }
}

/// A backend is probed every five seconds; three failures put it out, two answers bring it back.
const WATCH: Watch = Watch {
    interval: Duration::from_secs(5),
    up: 2,
    down: 3,
};

const WRONG: Outcome = Outcome::Wrong { excused: false };

const SILENT: Outcome = Outcome::Silent { excused: false };

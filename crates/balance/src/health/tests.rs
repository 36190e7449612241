//! The state machine step by step, and under any order of events.

use proptest::prelude::*;

use super::*;

const fn ms(millis: u64) -> Moment {
    Duration::from_millis(millis)
}

/// Something that happens to a backend, and what must be so afterwards.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// A dial that began at this time fails; whether that puts the backend out.
    Fails {
        began: u64,
        ejects: bool,
    },
    /// An exchange fails; whether that asks for a probe.
    Suspect(bool),
    /// The keeper asks.
    Next(Task),
    /// The keeper asks while requests find no other backend.
    Wanted(Task),
    Probed(Outcome),
}

use Outcome::{Answered, Failed, NotMade};
use Step::{Fails, Next, Probed, Suspect, Wanted};
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
            Suspect(verifies) => {
                assert_eq!(health.suspect(now), verifies, "{name}, step {index}");
            }
            Next(task) => assert_eq!(health.next(now, false), task, "{name}, step {index}"),
            Wanted(task) => assert_eq!(health.next(now, true), task, "{name}, step {index}"),
            Probed(outcome) => health.probed(now, outcome),
        }
        let is_up = health.standing() != Standing::Out;
        assert_eq!(is_up, up, "{name}, step {index}: {health:?}");
    }
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
            (1, Suspect(false), false),
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
            (0, Suspect(true), true),
            (0, Next(Probe), true),
            (0, Suspect(false), true),
            (5, Probed(Answered), true),
            (5, Next(Rest), true),
            (10, Suspect(false), true),
            (1004, Suspect(false), true),
            (1005, Suspect(true), true),
        ],
    );
}

#[test]
fn two_probes_keep_their_distance_even_when_one_was_begun_for_another_reason() {
    check(
        "distance",
        &[
            (0, Suspect(true), true),
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
            (0, Suspect(true), true),
            (0, Next(Probe), true),
            (2000, Probed(Failed), false),
            (2000, Next(Wait(ms(1000))), false),
            (3000, Next(Probe), false),
        ],
    );
}

#[test]
fn a_probe_that_could_not_be_made_proves_nothing() {
    check(
        "out of files",
        &[
            (0, Suspect(true), true),
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
                (0, Suspect(true), true),
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
        while let Wait(left) = health.next(now, false) {
            now += left;
        }
        assert_eq!(now - ejected, Duration::from_secs(expected));
        health.probed(now, Answered);
        now += ms(1);
    }
    now += FLAP_WINDOW;
    assert!(health.connect_failed(now, now));
    assert_eq!(health.next(now + BACK_OFF_MIN, false), Probe);
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
    assert_eq!(health.next(ms(1000), false), Probe);
    health.probed(ms(1000), Answered);
    assert_eq!(health.next(ms(1000), false), Rest);
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
    Keep { wanted: bool },
    ProbeEnds { answered: bool },
}

fn any_event() -> impl Strategy<Value = Event> {
    prop_oneof![
        Just(Event::Fails),
        Just(Event::Suspect),
        any::<bool>().prop_map(|wanted| Event::Keep { wanted }),
        any::<bool>().prop_map(|answered| Event::ProbeEnds { answered }),
    ]
}

proptest! {
    /// Whatever happens: no client ejects, probes keep their distance, an answer brings back.
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
            let out_before = before == Standing::Out;
            match event {
                Event::Fails => {
                    let ejects = health.connect_failed(now, now);
                    prop_assert_eq!(ejects, !out_before);
                    prop_assert_eq!(health.standing(), Standing::Out);
                }
                Event::Suspect => {
                    health.suspect(now);
                    prop_assert_eq!(health.standing(), before, "a client puts nobody out");
                }
                Event::Keep { wanted } if !probing => {
                    kept |= health.needs_keeper();
                    if !kept {
                        continue;
                    }
                    match health.next(now, wanted) {
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
                            prop_assert_eq!(health.standing(), Standing::Out);
                        }
                        Rest => {
                            kept = false;
                            prop_assert!(!out_before);
                        }
                    }
                }
                Event::ProbeEnds { answered } if probing => {
                    probing = false;
                    ended = Some(now);
                    health.probed(now, if answered { Answered } else { Failed });
                    if !answered {
                        prop_assert_eq!(health.standing(), Standing::Out);
                    } else if !out_before {
                        prop_assert_eq!(health.standing(), before, "verified");
                    }
                }
                Event::Keep { .. } | Event::ProbeEnds { .. } => {}
            }
            let out = health.standing() == Standing::Out;
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
            match health.next(now, false) {
                Probe => health.probed(now, Answered),
                Wait(left) => now += left,
                Rest => kept = false,
            }
            prop_assert!(now <= well + BACK_OFF_MAX);
        }
        prop_assert_ne!(health.standing(), Standing::Out);
    }
}

//! Tests which member each session id leads to, with hostile ids, too.

use std::cell::Cell;

use proptest::prelude::*;

use super::*;

/// The affinity of `a` and `b` in domain 1, `c` and `d` in domain 2, `e.f` and `solo` in none. The
/// fallback of `a` is `c`.
fn affinity(force: bool) -> Affinity {
    let home = |route: &str, domain: Option<&str>, fallback| Home {
        route: route.to_owned(),
        domain: domain.map(str::to_owned),
        fallback,
    };
    let rules = Rules {
        separator: Some(b'.'),
        force,
    };
    let homes = [
        home("a", Some("g1"), Some(2)),
        home("b", Some("g1"), None),
        home("c", Some("g2"), Some(99)),
        home("d", Some("g2"), None),
        home("e.f", None, None),
        home("solo", None, None),
    ];
    Affinity::new(rules, homes)
}

/// The members' states at one moment; of several members the last is picked.
#[derive(Default)]
struct Now {
    out: Vec<usize>,
    /// Members that get only requests of their own sessions.
    draining: Vec<usize>,
    /// Members to which others are preferred.
    suspect: Vec<usize>,
    asked: Cell<usize>,
}

impl MemberStates for Now {
    fn is_usable(&self, member: usize) -> bool {
        self.asked.set(self.asked.get() + 1);
        !self.out.contains(&member)
    }

    fn is_eligible(&self, member: usize) -> bool {
        self.is_usable(member)
            && !self.draining.contains(&member)
            && !self.suspect.contains(&member)
    }

    fn is_draining(&self, member: usize) -> bool {
        self.draining.contains(&member)
    }

    fn pick_among(&mut self, members: &[usize]) -> Option<usize> {
        let fits = |it: &&usize| !self.out.contains(it) && !self.draining.contains(it);
        let fitting = || members.iter().rev().filter(fits);
        let sure = fitting().find(|it| !self.suspect.contains(it));
        sure.or_else(|| fitting().next()).copied()
    }
}

fn without_members(out: &[usize]) -> Now {
    Now {
        out: out.to_vec(),
        ..Now::default()
    }
}

/// The decision about ids that are separated by blanks in `ids`.
fn decide(ids: &str, out: &[usize]) -> (Outcome, Option<usize>) {
    let ids = ids.split_whitespace().map(str::as_bytes);
    let decided = affinity(false).decide(ids, None, &mut without_members(out));
    let decision = decided.expect("sessions may move");
    (decision.outcome, decision.member)
}

#[test]
fn a_session_is_kept_by_the_member_it_names() {
    use Outcome::{Ignored, Kept, New, Unknown};
    for (ids, expected) in [
        ("", (New, None)),
        ("3F2A.a", (Kept, Some(0))),
        ("3F2A.solo", (Kept, Some(5))),
        // No route, then an empty one.
        ("3F2A", (Ignored, None)),
        ("3F2A.", (Ignored, None)),
        (".b", (Kept, Some(1))),
        // Routes are compared exactly.
        ("3F2A.A", (Unknown, None)),
        ("3F2A.aa", (Unknown, None)),
        ("a", (Ignored, None)),
        // Routes with dots, ranked routes, ids with dots.
        ("3F2A.e.f", (Kept, Some(4))),
        ("3F2A.c.a.b", (Kept, Some(2))),
        ("3F.2A.b", (Kept, Some(1))),
        ("3F..b", (Kept, Some(1))),
        ("3F.e", (Unknown, None)),
        // Several values: the first that leads anywhere.
        ("3F2A 77 x.nobody 5C.d 5C.a", (Kept, Some(3))),
        ("3F2A x.nobody", (Unknown, None)),
    ] {
        assert_eq!(decide(ids, &[]), expected, "{ids:?}");
    }
}

#[test]
fn a_session_moves_to_where_a_copy_may_be() {
    use Outcome::{Kept, Moved, Unknown};
    for (ids, out, expected) in [
        // The fallback, then the domain, then the next value, then the policy.
        ("x.a", &[0][..], (Moved, Some(2))),
        ("x.a", &[0, 2], (Moved, Some(1))),
        ("x.a x.d", &[0, 1, 2], (Kept, Some(3))),
        ("x.a", &[0, 1, 2], (Moved, None)),
        ("x.b", &[1], (Moved, Some(0))),
        ("x.solo", &[5], (Moved, None)),
        // Ranked routes: the second has the copy.
        ("x.d.b", &[3], (Kept, Some(1))),
        // The domain of a route that nobody has.
        ("x.g2.z", &[], (Moved, Some(3))),
        ("x.g2.z", &[3], (Moved, Some(2))),
        ("x.g2.z", &[2, 3], (Unknown, None)),
        ("x.g2", &[], (Moved, Some(3))),
        // What was known of any value is told.
        ("x.z x.solo y", &[5], (Moved, None)),
    ] {
        assert_eq!(decide(ids, out), expected, "{ids:?} without {out:?}");
    }
}

#[test]
fn a_draining_member_keeps_its_own_and_gets_no_others() {
    let mut now = Now {
        out: vec![0],
        draining: vec![1, 2],
        ..Now::default()
    };
    let affinity = affinity(false);
    let kept = affinity.decide([&b"x.b"[..]], None, &mut now).unwrap();
    assert_eq!((kept.outcome, kept.member), (Outcome::Kept, Some(1)));
    // Neither the fallback nor the domain of `a` takes sessions.
    let moved = affinity.decide([&b"x.a"[..]], None, &mut now).unwrap();
    assert_eq!((moved.outcome, moved.member), (Outcome::Moved, None));
}

#[test]
fn a_suspect_fallback_is_for_want_of_others() {
    let mut now = Now {
        out: vec![0],
        suspect: vec![2],
        ..Now::default()
    };
    let decide = |now: &mut Now| {
        let decision = affinity(false).decide([&b"x.a"[..]], None, now).unwrap();
        (decision.member, decision.by_domain)
    };
    assert_eq!(decide(&mut now), (Some(1), true));
    now.out = vec![0, 1];
    assert_eq!(decide(&mut now), (Some(2), false));
    // Its own sessions stay with one that is suspect.
    let own = affinity(false)
        .decide([&b"x.c"[..]], None, &mut now)
        .unwrap();
    assert_eq!((own.outcome, own.member), (Outcome::Kept, Some(2)));
}

#[test]
fn force_holds_sessions_of_known_members_only() {
    let decide = |ids: &str, out: &[usize]| {
        let ids: Vec<_> = ids.split_whitespace().map(str::as_bytes).collect();
        let decided = affinity(true).decide(ids, None, &mut without_members(out));
        decided
            .map(|it| (it.outcome, it.member, it.held))
            .map_err(|out| out.route.to_vec())
    };
    assert_eq!(decide("x.a", &[]), Ok((Outcome::Kept, Some(0), true)));
    assert_eq!(decide("x.a x.b", &[0]), Err(b"a".to_vec()));
    assert_eq!(
        decide("x.nobody", &[0]),
        Ok((Outcome::Unknown, None, false))
    );
    assert_eq!(decide("x.g1.z", &[0]), Ok((Outcome::Moved, Some(1), false)));
    assert_eq!(decide("x", &[0]), Ok((Outcome::Ignored, None, false)));
    assert_eq!(decide("x.d.b", &[3]), Ok((Outcome::Kept, Some(1), true)));
}

#[test]
fn our_own_cookie_is_the_last_to_be_asked() {
    let decide = |id: &str, own, out: &[usize]| {
        let ids = [id.as_bytes()].into_iter().filter(|id| !id.is_empty());
        let decided = affinity(true).decide(ids, own, &mut without_members(out));
        let decision = decided.expect("nobody is held");
        (decision.outcome, decision.member, decision.held)
    };
    assert_eq!(
        decide("", Some(Some(1)), &[]),
        (Outcome::Kept, Some(1), false)
    );
    assert_eq!(
        decide("x", Some(Some(1)), &[]),
        (Outcome::Kept, Some(1), false)
    );
    assert_eq!(
        decide("x.a", Some(Some(1)), &[]),
        (Outcome::Kept, Some(0), true)
    );
    assert_eq!(
        decide("", Some(Some(1)), &[1]),
        (Outcome::Moved, None, false)
    );
    assert_eq!(decide("", Some(None), &[]), (Outcome::Unknown, None, false));
}

#[test]
fn only_so_many_ids_are_read() {
    let decide = |nobodies: usize| {
        let ids = std::iter::repeat_n(&b"x.z"[..], nobodies).chain([&b"x.a"[..]]);
        let decided = affinity(false).decide(ids, Some(Some(1)), &mut Now::default());
        let decision = decided.expect("sessions may move");
        (decision.member, decision.excess)
    };
    assert_eq!(decide(IDS_MAX - 1), (Some(0), false));
    // The front's own cookie is not one of them.
    assert_eq!(decide(IDS_MAX), (Some(1), true));
    assert_eq!(decide(5000), (Some(1), true));
}

#[test]
fn the_separator_may_be_another_or_none() {
    let decide = |separator, id: &str| {
        let affinity = Affinity {
            rules: Rules {
                separator,
                force: false,
            },
            ..affinity(false)
        };
        let decided = affinity.decide([id.as_bytes()], None, &mut Now::default());
        decided.expect("nobody is held").member
    };
    assert_eq!(decide(Some(b'!'), "x!a"), Some(0));
    assert_eq!(decide(Some(b'!'), "x.a"), None);
    assert_eq!(decide(Some(b'!'), "x!e.f"), Some(4));
    assert_eq!(decide(None, "a"), Some(0));
    assert_eq!(decide(None, "e.f"), Some(4));
    assert_eq!(decide(None, "x.a"), None);
}

#[test]
fn the_first_of_equal_routes_counts() {
    let home = || Home {
        route: "r".to_owned(),
        ..Home::default()
    };
    let rules = Rules {
        separator: Some(b'.'),
        force: false,
    };
    let affinity = Affinity::new(rules, [home(), home()]);
    let decision = affinity
        .decide([&b"x.r"[..]], None, &mut Now::default())
        .unwrap();
    assert_eq!(decision.member, Some(0));
    let none = Affinity::new(rules, []);
    let decision = none
        .decide([&b"x.r"[..]], None, &mut Now::default())
        .unwrap();
    assert_eq!(
        (decision.outcome, decision.member),
        (Outcome::Unknown, None)
    );
}

#[test]
fn a_cookie_of_ours_alone_does_not_hold_a_client_to_a_member_that_drains() {
    let mut now = Now {
        draining: vec![1],
        ..Now::default()
    };
    let own = Some(Some(1));
    let mut decide = |ids: &[&[u8]]| {
        let decision = affinity(false).decide(ids.iter().copied(), own, &mut now);
        let decision = decision.expect("nothing is held");
        (decision.outcome, decision.member)
    };
    assert_eq!(decide(&[]), (Outcome::Moved, None));
    assert_eq!(
        decide(&[b"no-route"]),
        (Outcome::Kept, Some(1)),
        "it has a session"
    );
}

proptest! {
    /// However hostile the ids are, the decision is a member that is fit, or none.
    #[test]
    fn hostile_ids_lead_to_members_that_fit(
        ids in prop::collection::vec("[a-g0-9.]{0,12}", 0..40),
        out in prop::collection::vec(0_usize..6, 0..6),
        own in prop::option::of(prop::option::of(0_usize..6)),
        force: bool,
    ) {
        let mut now = without_members(&out);
        let decided = affinity(force).decide(ids.iter().map(String::as_bytes), own, &mut now);
        match decided {
            Ok(decision) => {
                prop_assert!(decision.member.is_none_or(|member| !out.contains(&member)));
                let chosen = decision.outcome == Outcome::Kept || decision.by_domain;
                prop_assert!(!chosen || decision.member.is_some());
                prop_assert!(!decision.held || decision.outcome == Outcome::Kept);
                let names_none = ids.iter().all(|id| !id.contains('.')) && own.is_none();
                prop_assert!(!names_none || decision.member.is_none());
            }
            Err(_) => prop_assert!(force),
        }
    }

    /// A route with thousands of pieces costs as much as one with a few.
    #[test]
    fn long_routes_are_not_looked_at_to_their_end(pieces in 17_usize..4000, id in "[0-9A-F]{0,8}") {
        let id = format!("{id}{}", ".a".repeat(pieces));
        let mut now = without_members(&[0, 1, 2]);
        let decision = affinity(false).decide([id.as_bytes()], None, &mut now).unwrap();
        prop_assert_eq!((decision.outcome, decision.member), (Outcome::Moved, None));
        prop_assert!(now.asked.get() <= PIECES_MAX + 1, "{} members were asked", now.asked.get());
    }
}

/// The steps of a decision about ids that are separated by blanks in `ids`.
fn steps(ids: &str, own: Option<Option<usize>>, out: &[usize], force: bool) -> Vec<Step> {
    let mut steps = Vec::new();
    let ids = ids
        .split(' ')
        .filter(|id| !id.is_empty())
        .map(str::as_bytes);
    let mut now = without_members(out);
    // Who is told of each step is told of the last one, too, whatever comes of it.
    affinity(force)
        .decide_traced(ids, own, &mut now, &mut steps)
        .ok();
    steps
}

#[test]
fn each_step_is_told() {
    let moved = |named, to, by_domain| Step::Moved {
        named,
        to,
        by_domain,
    };
    assert_eq!(steps("", None, &[], false), []);
    assert_eq!(
        steps("x x.a x.b", None, &[], false),
        [Step::NoRoute, Step::Kept(0)]
    );
    assert_eq!(steps("x.a", None, &[0], false), [moved(Some(0), 2, false)]);
    assert_eq!(
        steps("x.a", None, &[0, 2], false),
        [moved(Some(0), 1, true)]
    );
    assert_eq!(steps("x.g2.z", None, &[], false), [moved(None, 3, true)]);
    assert_eq!(steps("x.a x.b", None, &[0], true), [Step::Held(0)]);
    let lost = [Step::Lost(Some(5)), Step::Lost(None), Step::OwnKept(1)];
    assert_eq!(steps("x.solo x.nobody", Some(Some(1)), &[5], false), lost);
    assert_eq!(steps("", Some(Some(1)), &[1], false), [Step::OwnLost(1)]);
    assert_eq!(steps("", Some(None), &[], false), [Step::OwnUnknown]);
}

proptest! {
    /// The last step that the trace receives agrees with the decision.
    #[test]
    fn steps_end_in_the_decision(
        ids in prop::collection::vec("x\\.(a|b|solo|e\\.f|g1|nobody)", 0..10),
        out in prop::collection::vec(0_usize..6, 0..6),
        own in prop::option::of(prop::option::of(0_usize..6)),
        force: bool,
    ) {
        let decide = || affinity(force).decide(
            ids.iter().map(String::as_bytes), own, &mut without_members(&out),
        ).map(|it| (it.outcome, it.member));
        let expected = match steps(&ids.join(" "), own, &out, force).last() {
            Some(Step::Kept(member) | Step::OwnKept(member)) => Ok((Outcome::Kept, Some(*member))),
            Some(Step::Moved { to, .. }) => Ok((Outcome::Moved, Some(*to))),
            Some(Step::Held(_)) => Err(()),
            _ => Ok((decide().map_or(Outcome::New, |it| it.0), None)),
        };
        prop_assert_eq!(decide().map_err(|_| ()), expected);
    }
}

//! Tests properties that every list has, whatever the source answers.

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::member::{Place, Speech};

fn rules() -> Rules<'static> {
    Rules {
        leave: LEAVE,
        members_max: 1000,
        is_trusted: false,
        is_own: &|_, port| port == 80,
        is_taken: &|name| name == "taken",
    }
}

fn found(number: u8) -> FoundMember {
    let place = Place::Tcp {
        host: format!("10.0.0.{number}"),
        port: 8009,
    };
    FoundMember::new(format!("m{number:03}"), place, Speech::Ajp)
}

fn named(numbers: impl IntoIterator<Item = u8>) -> Answer {
    Answer::members(numbers.into_iter().map(found).collect())
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn step(last: &Members, answer: &Answer, now: u64) -> Members {
    merge(last, answer, seconds(now), &rules()).members
}

fn names(members: &Members, is_meant: impl Fn(&Member) -> bool) -> Vec<String> {
    let meant = members.iter().filter(|it| is_meant(it));
    meant.map(|it| it.found.name.clone()).collect()
}

fn serving(members: &Members) -> Vec<String> {
    names(members, |it| !it.is_leaving())
}

/// Generates answers of a source: members, none, or a failure.
fn answers() -> impl Strategy<Value = Vec<Answer>> {
    let one = prop_oneof![
        8 => vec(0_u8..8, 1..8).prop_map(named),
        1 => Just(named([])),
        1 => Just(Answer::Failed("SERVFAIL".to_owned())),
    ];
    vec(one, 1..20)
}

fn names_it(answer: &Answer, name: &str) -> bool {
    match answer {
        Answer::Members { found, .. } | Answer::Whole { found, .. } => {
            found.iter().any(|it| it.name == name)
        }
        Answer::Failed(_) => true,
    }
}

proptest! {
    #[test]
    fn whoever_each_answer_names_never_drains(mut all in answers(), every in 1_u64..40) {
        for answer in &mut all {
            if let Answer::Members { found: list, .. } = answer {
                list.push(found(9));
            }
        }
        let mut members = step(&Members::default(), &named([9]), 0);
        for (turn, answer) in (1..).zip(&all) {
            members = step(&members, answer, turn * every);
            let own = members.get("m009").expect("it is named each time");
            prop_assert_eq!(own.standing, MemberPresence::Present);
        }
    }

    #[test]
    fn the_same_answer_at_once_changes_nothing(all in answers()) {
        let mut members = Members::default();
        for (turn, answer) in (1..).zip(&all) {
            members = step(&members, answer, turn * 7);
            prop_assert_eq!(&step(&members, answer, turn * 7), &members);
        }
    }

    #[test]
    fn the_order_of_an_answer_does_not_matter(
        before in vec(0_u8..8, 1..8),
        after in vec(0_u8..12, 1..12),
        turn in any::<prop::sample::Index>(),
    ) {
        let last = step(&Members::default(), &named(before), 0);
        let mut other = after.clone();
        other.rotate_left(turn.index(after.len()));
        prop_assert_eq!(step(&last, &named(after), 9), step(&last, &named(other), 9));
    }

    #[test]
    fn a_failure_or_an_empty_answer_keeps_everybody(all in answers(), later in 0_u64..29) {
        let mut members = Members::default();
        for (turn, answer) in (0..).zip(&all) {
            members = step(&members, answer, turn);
        }
        let now = all.len() as u64 - 1;
        for answer in [named([]), Answer::Failed("timeout".to_owned())] {
            let merged = merge(&members, &answer, seconds(now + later), &rules());
            prop_assert!(merged.kept.is_some());
            prop_assert_eq!(serving(&merged.members), serving(&members));
        }
    }

    #[test]
    fn an_answer_never_takes_more_than_half(all in answers(), every in 0_u64..12) {
        let mut members = Members::default();
        for (turn, answer) in (0..).zip(&all) {
            let before = serving(&members);
            let next = step(&members, answer, turn * every);
            let lost = before.iter().filter(|it| !serving(&next).contains(it)).count();
            prop_assert!(lost * 2 <= before.len() || lost <= 1, "{lost} of {}", before.len());
            prop_assert!(before.is_empty() || !serving(&next).is_empty());
            members = next;
        }
    }

    #[test]
    fn a_source_is_never_asked_again_at_once(all in answers(), every in 0_u64..12) {
        let mut members = Members::default();
        for (turn, answer) in (0..).zip(&all) {
            let now = seconds(turn * every);
            let merged = merge(&members, answer, now, &rules());
            prop_assert!(merged.deadlines.ask.is_none_or(|ask| ask > now));
            prop_assert_eq!(merged.deadlines, merged.members.deadlines());
            members = merged.members;
        }
    }

    #[test]
    fn nobody_is_kept_for_ever_whom_no_answer_names(all in answers()) {
        let mut members = Members::default();
        for (turn, answer) in (0..).zip(&all) {
            members = step(&members, answer, turn);
        }
        // One leaves with each answer, then drains.
        let start = all.len() as u64;
        let last = named([9]);
        for turn in 0..20 {
            members = step(&members, &last, start + turn * 5);
        }
        let late = members.pass(seconds(start + 100) + LEAVE);
        prop_assert_eq!(names(&late, |_| true), ["m009"]);
        prop_assert_eq!(late.deadlines(), Deadlines::default());
    }

    #[test]
    fn another_process_goes_on_with_what_it_is_handed(all in answers(), last in 0_u64..1000) {
        let mut members = Members::default();
        for (turn, answer) in (0..).zip(&all) {
            members = step(&members, answer, turn);
        }
        // It counts from elsewhere, and reads what it is told.
        let (old, new) = (all.len() as u64 - 1, last);
        let text = serde_json::to_string(&members.records(seconds(old))).expect("names and numbers");
        let records = serde_json::from_str(&text).expect("as it was written");
        let taken = Members::from_records(records, seconds(new));
        prop_assert_eq!(names(&taken, |_| true), names(&members, |_| true));
        prop_assert_eq!(serving(&taken), serving(&members));
        let left = |members: &Members, now| {
            let gone = members.deadlines().gone;
            gone.map(|it: Duration| it - seconds(now))
        };
        prop_assert_eq!(left(&taken, new), left(&members, old));
        // The same answer changes nothing, if it is the last one again.
        if let Some(answer @ Answer::Members { .. }) = all.last() {
            prop_assert_eq!(serving(&step(&taken, answer, new)), serving(&members));
        }
    }

    #[test]
    fn a_member_drains_for_the_whole_time_unless_it_returns(all in answers(), every in 1_u64..9) {
        let mut members = Members::default();
        for (turn, answer) in (0..).zip(&all) {
            let now = turn * every;
            let next = step(&members, answer, now);
            for member in members.iter() {
                let name = &member.found.name;
                if let MemberPresence::Leaving { until } = member.standing {
                    let is_there = next.get(name).is_some();
                    prop_assert_eq!(is_there, until > seconds(now) || names_it(answer, name) && is_there);
                } else {
                    prop_assert!(next.get(name).is_some(), "{} is gone at once", name);
                }
            }
            members = next;
        }
    }
}

#[test]
fn a_few_that_vanish_leave_at_once_and_many_one_by_one() {
    let all = step(&Members::default(), &named(0..10), 0);
    let most = step(&all, &named(0..5), 10);
    assert_eq!(serving(&most).len(), 5, "half of them leave");
    let cut = merge(&all, &named(0..2), seconds(10), &rules());
    assert_eq!(serving(&cut.members).len(), 10);
    assert_eq!(cut.deadlines.ask, Some(seconds(15)));
    let soon = step(&cut.members, &named(0..2), 14);
    assert_eq!(serving(&soon).len(), 10);
    let one = step(&soon, &named(0..2), 15);
    assert_eq!(names(&one, Member::is_leaving), ["m002"]);
    let two = step(&one, &named(0..2), 20);
    assert_eq!(names(&two, Member::is_leaving), ["m002", "m003"]);
    let back = step(&two, &named(0..10), 25);
    assert_eq!(
        names(&back, |it| it.standing == MemberPresence::Present).len(),
        10
    );
    assert_eq!(back.deadlines(), Deadlines::default());
}

#[test]
fn doubts_wait_while_the_source_fails() {
    let all = step(&Members::default(), &named(0..10), 0);
    let doubted = step(&all, &named(0..2), 10);
    let failed = Answer::Failed("SERVFAIL".to_owned());
    let early = merge(&doubted, &failed, seconds(12), &rules());
    assert_eq!(early.deadlines.ask, Some(seconds(15)));
    let due = merge(&early.members, &failed, seconds(15), &rules());
    assert_eq!(due.deadlines.ask, Some(seconds(20)));
    let one = step(&due.members, &named(0..2), 20);
    assert_eq!(names(&one, Member::is_leaving), ["m002"]);
}

#[test]
fn whoever_says_that_it_leaves_is_believed() {
    let all = step(&Members::default(), &named(0..4), 0);
    let answer = Answer::Members {
        found: vec![found(0)],
        left: vec!["m001".into(), "m002".into(), "m003".into()],
    };
    assert_eq!(serving(&step(&all, &answer, 1)), ["m000"]);
    let last = Answer::Members {
        found: Vec::new(),
        left: (0..4).map(|it| found(it).name).collect(),
    };
    assert_eq!(serving(&step(&all, &last, 1)), [""; 0]);
}

#[test]
fn a_whole_list_is_believed() {
    let whole = |numbers: std::ops::Range<u8>| Answer::Whole {
        found: numbers.map(found).collect(),
        asked: Vec::new(),
    };
    let all = step(&Members::default(), &whole(0..10), 0);
    let three = step(&all, &whole(0..3), 1);
    assert_eq!(names(&three, |_| true), ["m000", "m001", "m002"]);
    let none = merge(&three, &whole(0..0), seconds(2), &rules());
    assert_eq!((none.members.len(), none.kept), (0, None));
    let still = merge(&none.members, &whole(0..0), seconds(3), &rules());
    assert_eq!(still.kept.as_deref(), Some("the answer has no members"));
    // A member that is refused from now on is none.
    let few = Rules {
        members_max: 2,
        ..rules()
    };
    let two = merge(&all, &whole(0..10), seconds(1), &few);
    assert_eq!(names(&two.members, |_| true), ["m000", "m001"]);
    // Another process was handed the list.
    let records = all.records(seconds(1));
    let inherited = Members::from_records(records, seconds(0));
    assert!(step(&inherited, &whole(0..0), 1).is_empty());
    let others = step(&all.superseded(), &whole(0..0), 1);
    assert_eq!(names(&others, Member::is_leaving).len(), 10);
}

#[test]
fn another_source_is_believed_at_its_first_answer() {
    let all = step(&Members::default(), &named(0..4), 0);
    let next = step(&all.superseded(), &named([7]), 1);
    assert_eq!(serving(&next), ["m007"]);
    assert_eq!(names(&next, Member::is_leaving).len(), 4);
    let failed = step(&all.superseded(), &Answer::Failed(String::new()), 1);
    assert_eq!(serving(&step(&failed, &named([7]), 2)), ["m007"]);
}

#[test]
fn a_name_at_another_address_is_the_same_member() {
    let all = step(&Members::default(), &named(0..2), 0);
    let mut moved = found(0);
    moved.place = found(99).place;
    let next = step(&all, &Answer::members(vec![moved.clone(), found(1)]), 1);
    assert_eq!(next.get("m000").map(|it| &it.found), Some(&moved));
    assert_eq!(next.len(), 2);
}

#[test]
fn addresses_that_no_other_host_has_are_refused() {
    let at = |host: &str, port| {
        let place = Place::Tcp {
            host: host.to_owned(),
            port,
        };
        FoundMember::new("x", place, Speech::Http)
    };
    let refused = |one: FoundMember, is_trusted| {
        let rules = Rules {
            is_trusted,
            ..rules()
        };
        let answer = Answer::members(vec![one, found(1)]);
        let merged = merge(&Members::default(), &answer, seconds(0), &rules);
        merged.refused.first().map(|it| it.1)
    };
    for (host, port, expected) in [
        ("127.0.0.1", 8009, Some(Refusal::Loopback)),
        ("127.8.8.8", 8009, Some(Refusal::Loopback)),
        ("::1", 8009, Some(Refusal::Loopback)),
        ("::ffff:127.0.0.1", 8009, Some(Refusal::Loopback)),
        ("169.254.169.254", 80, Some(Refusal::LinkLocal)),
        ("fe80::1", 8009, Some(Refusal::LinkLocal)),
        ("0.0.0.0", 8009, Some(Refusal::NoHost)),
        ("224.0.1.105", 8009, Some(Refusal::NoHost)),
        ("255.255.255.255", 8009, Some(Refusal::NoHost)),
        ("::", 8009, Some(Refusal::NoHost)),
        ("10.0.0.7", 80, Some(Refusal::Own)),
        ("10.0.0.7", 8009, None),
        ("app.internal", 8009, None),
    ] {
        assert_eq!(refused(at(host, port), false), expected, "{host}:{port}");
        assert_eq!(
            refused(at(host, port), true),
            None,
            "{host}:{port} in a file"
        );
    }
}

#[test]
fn the_server_that_was_asked_is_no_member() {
    let answer = Answer::Whole {
        found: (1..4).map(found).collect(),
        asked: vec![
            "[::ffff:10.0.0.1]:8009".parse().expect("an address"),
            "10.0.0.2:6443".parse().expect("an address"),
        ],
    };
    let merged = merge(&Members::default(), &answer, seconds(0), &rules());
    assert_eq!(merged.refused, [("m001".to_owned(), Refusal::ApiServer)]);
    assert_eq!(names(&merged.members, |_| true), ["m002", "m003"]);
}

#[test]
fn names_and_addresses_are_unique_and_there_is_a_limit() {
    let mut twin = found(3);
    twin.name = "twin".to_owned();
    let mut taken = found(4);
    taken.name = "taken".to_owned();
    let mut other = found(1);
    other.place = found(5).place;
    let answer = Answer::members(vec![found(1), other, found(3), twin, taken]);
    let merged = merge(&Members::default(), &answer, seconds(0), &rules());
    assert_eq!(names(&merged.members, |_| true), ["m001", "m003"]);
    let mut refused = merged.refused;
    refused.sort();
    let expected = [
        ("m001", Refusal::NameTwice),
        ("taken", Refusal::NameTaken),
        ("twin", Refusal::AddressTwice),
    ];
    assert_eq!(refused, expected.map(|(name, why)| (name.to_owned(), why)));
    let few = Rules {
        members_max: 2,
        ..rules()
    };
    let known = merge(&Members::default(), &named([8, 9]), seconds(0), &few);
    let more = merge(&known.members, &named(0..10), seconds(0), &few);
    assert_eq!(
        serving(&more.members),
        ["m008", "m009"],
        "those that serve stay"
    );
    assert_eq!(more.refused.len(), 8);
}

const LEAVE: Duration = Duration::from_secs(30);

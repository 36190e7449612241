//! What an answer costs by the number of its members, in instructions.
//!
//! Run a bench build with the number of answers under `valgrind --tool=callgrind`, read
//! `callgrind_annotate --inclusive=yes`, and divide. As a test it makes sure that what changed is merged.

use std::time::Duration;

use catamaran_discover::{Answer, FoundMember, Members, Place, Rules, Speech, merge};

fn main() {
    let answers = std::env::args()
        .find_map(|argument| argument.parse().ok())
        .unwrap_or(ANSWERS);
    assert_eq!(merge_10(answers), (10, answers));
    assert_eq!(merge_1000(answers), (1000, answers));
}

#[inline(never)]
fn merge_10(answers: usize) -> (usize, usize) {
    repeat(10, answers)
}

#[inline(never)]
fn merge_1000(answers: usize) -> (usize, usize) {
    repeat(1000, answers)
}

/// Merges `answers` answers, each of which differs from the one before by one member. Returns the number of
/// members, and the number of answers that changed something.
fn repeat(members: usize, answers: usize) -> (usize, usize) {
    let mut found: Vec<FoundMember> = (0..members).map(member).collect();
    let rules = Rules {
        leave: Duration::from_secs(30),
        members_max: 1000,
        is_trusted: false,
        is_own: &|_, port| port == 80,
        is_taken: &|name| name == "taken",
    };
    let mut last = Members::default();
    let mut changed = 0;
    for turn in 0..answers {
        found[turn % members].weight += 1;
        let answer = Answer::members(found.clone());
        let merged = merge(&last, &answer, Duration::from_secs(turn as u64), &rules);
        changed += usize::from(merged.members != last && merged.refused.is_empty());
        last = merged.members;
    }
    (last.len(), changed)
}

fn member(number: usize) -> FoundMember {
    let place = Place::Tcp {
        host: format!("10.0.{}.{}", number / 250, number % 250 + 1),
        port: 8009,
    };
    FoundMember::new(format!("app-{number}"), place, Speech::Ajp)
}

const ANSWERS: usize = 20;

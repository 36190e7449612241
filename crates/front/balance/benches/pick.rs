//! What a pick costs by the number of members, in instructions.
//!
//! Run a bench build with the number of picks under `valgrind --tool=callgrind`, read
//! `callgrind_annotate --inclusive=yes`, and divide. As a test it makes sure that everybody is
//! picked.

use std::hint::black_box;
use std::time::Duration;

use catamaran_balance::{Members, Policy, Schedule};

struct AllUp;

impl Members for AllUp {
    fn share(&self, _: usize) -> u8 {
        black_box(100)
    }

    fn in_flight(&self, _: usize) -> usize {
        black_box(3)
    }

    fn sessions(&self, _: usize) -> u64 {
        black_box(5)
    }

    fn traffic(&self, _: usize) -> u64 {
        black_box(7)
    }
}

fn main() {
    let picks = std::env::args()
        .find_map(|argument| argument.parse().ok())
        .unwrap_or(PICKS);
    for policy in [Policy::RoundRobin, Policy::LeastInFlight] {
        assert_eq!(pick_of_2(policy, picks), 2);
        assert_eq!(pick_of_24(policy, picks), 24);
        // Among so many, chance leaves some out.
        assert!(pick_of_1000(policy, picks) > 900);
    }
}

#[inline(never)]
fn pick_of_2(policy: Policy, picks: usize) -> usize {
    pick(Schedule::new(policy, [1; 2], 1), 2, picks)
}

#[inline(never)]
fn pick_of_24(policy: Policy, picks: usize) -> usize {
    pick(Schedule::new(policy, [1; 24], 1), 24, picks)
}

#[inline(never)]
fn pick_of_1000(policy: Policy, picks: usize) -> usize {
    pick(Schedule::new(policy, [1; 1000], 1), 1000, picks)
}

/// Says how many of the members were picked.
fn pick(mut schedule: Schedule, members: usize, picks: usize) -> usize {
    let mut picked = vec![false; members];
    for _ in 0..picks {
        let member = schedule.pick(&AllUp, &[], Duration::ZERO);
        picked[member.expect("all are up")] = true;
    }
    picked.iter().filter(|picked| **picked).count()
}

/// Picks if no number is given, as when this runs as a test.
const PICKS: usize = 5000;

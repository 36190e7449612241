//! Tests of intended start times: nothing that a server does moves them.

use std::sync::Arc;
use std::time::Duration;

use super::*;
use crate::plan::{Arrival, Arrivals, Stage};
use crate::stop::Budget;

fn share(requests: Option<u64>) -> Share {
    Arc::new(Budget::new(requests, 1)).share(1)
}

fn schedule(per_second: f64, arrivals: Arrivals, seed: u64) -> Schedule {
    Schedule::new(
        Level::new(per_second, &[]),
        1.0,
        arrivals,
        random(seed, 0),
        0,
    )
}

fn open(schedule: Schedule, backlog_max: usize, requests: Option<u64>) -> Feed {
    let mode = Mode::Open(Open::new(schedule, backlog_max));
    let mut feed = Feed::new(mode, share(requests));
    feed.measure(0, NEVER, None);
    feed
}

fn take(schedule: &mut Schedule, count: usize) -> Vec<u64> {
    let next = || {
        let due = schedule.next();
        schedule.advance();
        due
    };
    std::iter::repeat_with(next).take(count).collect()
}

/// Each request of a log is sent by exactly one thread, at its time.
#[test]
fn listed_arrivals_are_divided_among_threads() {
    let arrivals: Arc<[Arrival]> = (0..7_u32)
        .map(|place| Arrival {
            at_ns: u64::from(place / 2) * 10,
            request: place + 100,
        })
        .collect();
    let mut sent = Vec::new();
    for thread in 0..3 {
        let listed = ArrivalList::new(Arc::clone(&arrivals), thread, 3, 1000);
        let mut feed = open(Schedule::Listed(listed), 10, None);
        assert_eq!(feed.next_due(), 1000 + arrivals[thread].at_ns);
        assert_eq!(feed.collect_due(2000), 0);
        assert_eq!(feed.next_due(), NEVER);
        while let Some(ticket) = feed.claim(0, 2000) {
            assert!(ticket.counted);
            sent.push((ticket.due, ticket.request));
        }
        assert!(feed.is_exhausted(2000));
    }
    sent.sort_unstable();
    let expected = arrivals
        .iter()
        .map(|it| (1000 + it.at_ns, Some(it.request)));
    assert_eq!(sent, expected.collect::<Vec<_>>());
}

#[test]
fn constant_arrivals_have_equal_gaps_and_a_phase_from_the_seed() {
    let due = take(&mut schedule(1000.0, Arrivals::Constant, 1), 1000);
    assert!(due[0] < SECOND / 1000);
    for pair in due.windows(2) {
        assert!((pair[1] - pair[0]).abs_diff(1_000_000) <= 1, "{pair:?}");
    }
    assert_eq!(
        due,
        take(&mut schedule(1000.0, Arrivals::Constant, 1), 1000)
    );
    assert_ne!(
        due[0],
        schedule(1000.0, Arrivals::Constant, 2).next(),
        "another seed has another phase"
    );
}

#[test]
fn poisson_arrivals_have_exponential_gaps() {
    let due = take(&mut schedule(1000.0, Arrivals::Poisson, 7), 100_000);
    let mean = *due.last().unwrap() as f64 / due.len() as f64;
    assert!((mean / 1e6 - 1.0).abs() < 0.02, "{mean}");
    // An exponential gap exceeds its mean with a probability of 1/e.
    let long = due.windows(2).filter(|pair| pair[1] - pair[0] > 1_000_000);
    let part = long.count() as f64 / due.len() as f64;
    assert!((part - (-1.0_f64).exp()).abs() < 0.01, "{part}");
}

#[test]
fn threads_share_the_rate() {
    let level = Level::new(1000.0, &[]);
    let count = |thread| {
        let mut part = Schedule::new(level.clone(), 0.25, Arrivals::Poisson, random(1, thread), 0);
        let due = take(&mut part, 3000);
        due.iter().filter(|due| **due < 10 * SECOND).count()
    };
    let all: usize = (0..4).map(count).sum();
    assert!((9700..10_300).contains(&all), "{all}");
}

/// Threads of one run, and threads of runs with neighbouring seeds, have different random numbers.
#[test]
fn each_thread_of_each_seed_has_its_own_stream() {
    let mut firsts = std::collections::BTreeSet::new();
    for seed in 0..50 {
        for thread in 0..50 {
            firsts.insert(random(seed, thread).u64(..));
        }
    }
    assert_eq!(firsts.len(), 50 * 50);
}

#[test]
fn a_schedule_ends_with_its_stages() {
    let stage = Stage {
        duration: Duration::from_secs(2),
        level: 100.0,
        ramp: true,
    };
    let mut schedule = Schedule::new(
        Level::new(1.0, &[stage]),
        1.0,
        Arrivals::Constant,
        random(3, 0),
        5 * SECOND,
    );
    let due: Vec<u64> = std::iter::from_fn(|| {
        let due = schedule.next();
        schedule.advance();
        (due != NEVER).then_some(due)
    })
    .collect();
    assert!((99..=100).contains(&due.len()), "{}", due.len());
    assert!(
        due.iter()
            .all(|due| (5 * SECOND..=7 * SECOND).contains(due))
    );
    let first_half = due.iter().filter(|due| **due < 6 * SECOND).count();
    assert!((24..=26).contains(&first_half), "{first_half}");
}

#[test]
fn what_is_due_while_nobody_is_free_waits_with_its_time() {
    let mut feed = open(schedule(100.0, Arrivals::Constant, 1), 1000, None);
    assert_eq!(feed.claim(0, 0), None);
    // A second passes in which the server holds all connections.
    assert_eq!(feed.collect_due(SECOND), 0);
    let due: Vec<u64> = std::iter::from_fn(|| feed.claim(0, SECOND))
        .map(|ticket| ticket.due)
        .collect();
    assert_eq!(due.len(), 100);
    assert!(due[0] < SECOND / 100 && due[99] > 98 * SECOND / 100);
}

#[test]
fn a_full_backlog_refuses_and_says_how_often() {
    let mut feed = open(schedule(100.0, Arrivals::Constant, 1), 30, None);
    assert_eq!(feed.collect_due(SECOND), 70);
    assert_eq!(feed.take_unsent().len(), 30);
}

#[test]
fn an_open_loop_sends_its_number_and_ends() {
    let mut feed = open(schedule(100.0, Arrivals::Poisson, 1), 1000, Some(42));
    assert!(!feed.is_exhausted(0));
    feed.collect_due(10 * SECOND);
    assert_eq!(feed.next_due(), NEVER);
    assert!(!feed.is_exhausted(10 * SECOND));
    let sent = std::iter::from_fn(|| feed.claim(0, 10 * SECOND)).count();
    assert_eq!(sent, 42);
    assert!(feed.is_exhausted(10 * SECOND));
}

#[test]
fn requests_of_the_warm_up_do_not_count() {
    let mut feed = Feed::new(Mode::Closed { clients: 1 }, share(Some(1)));
    assert_eq!(
        feed.claim(0, 5),
        Some(Ticket {
            due: 5,
            counted: false,
            request: None,
        })
    );
    feed.measure(10, NEVER, None);
    assert!(feed.claim(0, 9).is_some_and(|ticket| !ticket.counted));
    assert!(feed.claim(0, 10).is_some_and(|ticket| ticket.counted));
    assert_eq!(feed.claim(0, 11), None);
    assert!(feed.is_exhausted(11));
}

#[test]
fn nothing_begins_after_the_end() {
    let mut feed = Feed::new(Mode::Closed { clients: 2 }, share(None));
    feed.measure(0, 100, None);
    assert!(feed.claim(1, 99).is_some());
    assert_eq!(feed.claim(2, 99), None, "a client beyond the level");
    assert_eq!(feed.claim(1, 100), None);
    assert!(feed.is_exhausted(100) && !feed.is_exhausted(99));
    let mut feed = open(schedule(100.0, Arrivals::Constant, 1), 10, None);
    feed.measure(0, SECOND / 2, None);
    feed.collect_due(SECOND);
    assert!(feed.has_waiting(SECOND / 4));
    assert!(feed.is_exhausted(SECOND) && feed.claim(0, SECOND).is_none());
    assert!(!feed.has_waiting(SECOND), "what waits is not to be had");
    assert_eq!(feed.take_unsent().len(), 10);
}

/// A worker that wakes a little late sends the requests that became due just before the end; those
/// that had waited for a connection before stay unsent.
#[test]
fn what_became_due_just_before_the_end_is_sent() {
    let last_due = |arrivals: &[u64]| {
        let arrivals = arrivals.iter().map(|at_ns| Arrival {
            at_ns: *at_ns,
            request: 0,
        });
        let listed = ArrivalList::new(arrivals.collect(), 0, 1, 0);
        let mut feed = open(Schedule::Listed(listed), 10, None);
        feed.measure(0, 1000, None);
        feed
    };
    let mut feed = last_due(&[990, 995, 1000]);
    feed.collect_due(900);
    assert_eq!(feed.collect_due(1020), 0);
    assert!(feed.has_waiting(1020) && !feed.is_exhausted(1020));
    assert_eq!(feed.claim(0, 1020).map(|ticket| ticket.due), Some(990));
    assert_eq!(feed.claim(0, 1021).map(|ticket| ticket.due), Some(995));
    assert_eq!(feed.claim(0, 1021), None, "due at the end is after it");
    assert!(feed.is_exhausted(1021));

    let mut feed = last_due(&[890, 990]);
    feed.collect_due(900);
    feed.collect_due(1020);
    assert!(!feed.has_waiting(1020) && feed.is_exhausted(1020));
    assert_eq!(feed.claim(0, 1020), None);
    assert_eq!(feed.take_unsent(), [890, 990]);

    let mut feed = last_due(&[990]);
    feed.collect_due(1020);
    feed.collect_due(1030);
    assert_eq!(feed.claim(0, 1030), None, "it had its chance");
}

const SECOND: u64 = 1_000_000_000;

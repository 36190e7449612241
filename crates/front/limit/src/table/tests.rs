use std::collections::HashMap;

use proptest::prelude::*;

use super::*;

fn ask(table: &Table, limit: u16, subject: u64) -> Ask {
    Ask {
        limit,
        key: table.key(limit, &subject.to_le_bytes()),
        enforced: true,
    }
}

/// A rate of one request a second.
fn each_second(burst: u32) -> Quota {
    Quota::rate(1, Duration::from_secs(1), burst)
}

#[test]
fn a_key_takes_seventeen_bytes() {
    let table = Table::new(8 << 20, (1, 2));
    assert_eq!(table.bytes() / table.capacity(), 17);
    assert!(table.capacity() > 490_000 && table.bytes() <= 8 << 20);
    assert_eq!(Table::new(0, (1, 2)).capacity(), SLOTS);
}

#[test]
fn all_limits_are_asked_before_any_is_charged() {
    let table = Table::new(1 << 16, (1, 2));
    let quotas = [each_second(3), each_second(1)];
    let both = [ask(&table, 0, 1), ask(&table, 1, 1)];
    assert!(table.take(&both, &quotas, SECOND).passes());
    let refused = table.take(&both, &quotas, SECOND);
    let passes: Vec<bool> = refused.judgements().iter().map(|it| it.passes()).collect();
    assert_eq!((refused.passes(), &passes[..]), (false, &[true, false][..]));
    let left = |asks: &[Ask]| {
        let looked = table.look(asks, &quotas, SECOND);
        quotas[0].left(looked.judgements()[0]).0
    };
    assert_eq!(left(&both[..1]), 1, "the first was charged once");
    // One that is not enforced refuses nothing, and is not charged beyond its burst.
    let dry = [
        both[0],
        Ask {
            enforced: false,
            ..both[1]
        },
    ];
    let outcome = table.take(&dry, &quotas, SECOND);
    assert!(outcome.passes() && !outcome.judgements()[1].passes());
    assert_eq!(left(&both[..1]), 0);
    assert!(table.take(&both[1..], &quotas, 2 * SECOND).passes());
}

#[test]
fn a_refund_takes_back_one_request_and_no_more() {
    let table = Table::new(1 << 16, (1, 2));
    let quotas = [each_second(2)];
    let one = [ask(&table, 0, 1)];
    let take = |now| table.take(&one, &quotas, now).passes();
    let refund = || table.refund(0, one[0].key, quotas[0]);
    refund();
    assert_eq!([take(0), take(0), take(0)], [true, true, false]);
    refund();
    assert_eq!([take(0), take(0)], [true, false]);
    // A refund of what time has paid already grants nothing.
    refund();
    refund();
    refund();
    assert_eq!(
        [take(SECOND), take(SECOND), take(SECOND)],
        [true, true, false]
    );
}

#[test]
fn what_is_given_back_can_be_taken_again() {
    let table = Table::new(1 << 16, (1, 2));
    let quotas = [Quota::InFlight(2)];
    let one = ask(&table, 0, 1);
    assert!(table.take(&[one], &quotas, 0).passes() && table.take(&[one], &quotas, 0).passes());
    assert!(!table.take(&[one], &quotas, 0).passes());
    assert_eq!(table.counts(&quotas, 0), [(1, 2)]);
    table.give_back(0, one.key);
    assert!(table.take(&[one], &quotas, 0).passes());
    for _ in 0..5 {
        table.give_back(0, one.key);
    }
    assert_eq!(table.counts(&quotas, 0), [(0, 0)]);
}

#[test]
fn a_forgotten_key_begins_anew() {
    let table = Table::new(1 << 16, (1, 2));
    let quotas = [each_second(1)];
    let one = ask(&table, 0, 1);
    assert!(table.take(&[one], &quotas, 0).passes() && !table.take(&[one], &quotas, 0).passes());
    assert!(table.forget(0, one.key));
    assert!(table.take(&[one], &quotas, 0).passes());
    assert!(!table.forget(0, ask(&table, 0, 2).key));
    // Two limits have nothing to do with each other, even for one subject.
    assert!(
        table
            .take(&[ask(&table, 1, 1)], &[quotas[0]; 2], 0)
            .passes()
    );
}

/// Row 1 of the specification: exact over threads.
#[test]
fn threads_grant_no_more_than_the_burst() {
    let table = Table::new(1 << 16, (1, 2));
    let quotas = [each_second(100), each_second(250)];
    let asks = [ask(&table, 0, 1), ask(&table, 1, 1)];
    let passed = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (table, passed) = (&table, &passed);
            scope.spawn(move || {
                let mut asks = asks;
                if thread % 2 == 1 {
                    asks.reverse();
                }
                for _ in 0..100 {
                    let outcome = table.take(&asks, &quotas, SECOND);
                    passed.fetch_add(u64::from(outcome.passes()), Ordering::Relaxed);
                }
            });
        }
    });
    assert_eq!(passed.load(Ordering::Relaxed), 100);
}

/// Row 6: clients at twice the rate, beside strange keys that are `overload` times as many as there are slots, each for
/// as long as its debt lasts. Returns how many requests passed for one that the rate and the burst allow.
fn passed_of_allowed(overload: u64, burst: u32) -> f64 {
    let table = Table::new(64 * 17, (3, 4));
    let quotas = [Quota::rate(60, Duration::from_secs(60), burst)];
    let offenders: Vec<Ask> = (0..10).map(|at| ask(&table, 0, at)).collect();
    let mut passed = 0;
    let mut number = 10;
    // Ten minutes in steps of half a second.
    for step in 0..1200 {
        let now = step * SECOND / 2;
        for offender in &offenders {
            passed += u64::from(table.take(&[*offender], &quotas, now).passes());
        }
        for _ in 0..overload * table.capacity() as u64 / 2 {
            number += 1;
            let stranger = ask(&table, 0, number);
            let outcome = table.take(&[stranger], &quotas, now);
            assert!(outcome.passes(), "no newcomer is refused");
        }
    }
    assert!(table.evicted() > 0);
    passed as f64 / (offenders.len() as f64 * f64::from(600 + burst))
}

#[test]
fn an_offender_is_not_forgotten_beside_a_flood_of_strange_keys() {
    for overload in [1, 5, 10] {
        let share = passed_of_allowed(overload, 10);
        assert!((0.98..1.02).contains(&share), "{overload}: {share}");
    }
    // With a burst of one, a key owes nothing as soon as its next request may pass, and may lose its place then.
    let share = passed_of_allowed(5, 1);
    assert!(share < 1.1, "{share}");
}

/// Who chooses when strange keys come between its own requests is kept all the same.
#[test]
fn no_order_of_requests_keeps_a_key_from_being_kept() {
    for between in 0..20 {
        let table = Table::new(0, (5, 6));
        let quotas = [Quota::rate(1, Duration::from_secs(3600), 10)];
        let own = ask(&table, 0, 0);
        let mut number = 1;
        let mut strangers = |count| {
            for _ in 0..count {
                number += 1;
                let _outcome = table.take(&[ask(&table, 0, number)], &quotas, 0);
            }
        };
        strangers(SLOTS);
        let passed = (0..1000).filter(|_| {
            strangers(between);
            table.take(&[own], &quotas, 0).passes()
        });
        let passed = passed.count();
        assert!(passed < 250, "{passed} of 1000 passed, {between} between");
    }
}

/// A request in flight is not forgotten for the sake of a rate, and takes the place of one.
#[test]
fn a_request_in_flight_is_kept_beside_full_rates() {
    let table = Table::new(0, (5, 6));
    let quotas = [each_second(1), Quota::InFlight(2)];
    for subject in 0..100 {
        let _outcome = table.take(&[ask(&table, 0, subject)], &quotas, 0);
    }
    let one = ask(&table, 1, 0);
    assert!(table.take(&[one], &quotas, 0).passes() && table.take(&[one], &quotas, 0).passes());
    for subject in 100..200 {
        let _outcome = table.take(&[ask(&table, 0, subject)], &quotas, 0);
    }
    assert!(!table.take(&[one], &quotas, 0).passes());
}

/// Row 5, scaled: far more keys than there is room for refuse nobody who keeps to the rate, and take no memory.
#[test]
fn a_flood_of_keys_refuses_no_client_within_its_rate() {
    let table = Table::new(1 << 16, (5, 6));
    let quotas = [each_second(2)];
    let strangers = 100 * table.capacity() as u64;
    let before = table.bytes();
    let honest = 0..20;
    let mut number = honest.end;
    // Each honest client asks once a second, while five times as many strangers do as there is room for.
    for second in 0..20 {
        for client in honest.clone() {
            let one = ask(&table, 0, client);
            assert!(table.take(&[one], &quotas, second * SECOND).passes());
        }
        for _ in 0..strangers / 20 {
            number += 1;
            let stranger = ask(&table, 0, number);
            assert!(table.take(&[stranger], &quotas, second * SECOND).passes());
        }
    }
    assert_eq!(table.bytes(), before);
    assert!(table.evicted() > strangers / 2);
}

/// An exact token bucket for each key, in nanoseconds of credit.
#[derive(Default)]
struct Model {
    debts: HashMap<(u16, u64), u128>,
    now: u64,
}

impl Model {
    /// Lets time pass. Time that goes back does not count.
    fn advance(&mut self, now: u64) {
        let passed = u128::from(now.saturating_sub(self.now));
        for debt in self.debts.values_mut() {
            *debt = debt.saturating_sub(passed);
        }
        self.now = now;
    }

    fn passes(&self, limit: u16, subject: u64, (interval, burst): (u64, u32)) -> bool {
        let debt = self
            .debts
            .get(&(limit, subject))
            .copied()
            .unwrap_or_default();
        debt + u128::from(interval) <= u128::from(interval) * u128::from(burst)
    }

    fn charge(&mut self, limit: u16, subject: u64, (interval, burst): (u64, u32)) {
        let debt = self.debts.entry((limit, subject)).or_default();
        *debt = (*debt + u128::from(interval)).min(u128::from(interval) * u128::from(burst));
    }
}

fn quotas() -> [Quota; 3] {
    QUOTAS.map(|(interval, burst)| Quota::Rate { interval, burst })
}

proptest! {
    /// Without evictions the table decides as exact buckets do.
    #[test]
    fn the_table_decides_as_exact_buckets(
        requests in prop::collection::vec((0..3_u16, 0..4_u64, 0..3 * SECOND), 1..200),
    ) {
        let (table, quotas) = (Table::new(1 << 16, (5, 6)), quotas());
        let (mut model, mut now) = (Model::default(), 0);
        for (limit, subject, pause) in requests {
            now += pause;
            model.advance(now);
            let quota = QUOTAS[usize::from(limit)];
            let passes = table.take(&[ask(&table, limit, subject)], &quotas, now).passes();
            prop_assert_eq!(passes, model.passes(limit, subject, quota));
            if passes {
                model.charge(limit, subject, quota);
            }
        }
        prop_assert_eq!(table.evicted(), 0);
    }

    /// With evictions, nobody is refused whom exact buckets let pass.
    #[test]
    fn an_eviction_only_forgives(
        requests in prop::collection::vec((0..3_u16, 0..30_u64, 0..SECOND / 2), 1..400),
    ) {
        let (table, quotas) = (Table::new(0, (7, 8)), quotas());
        let (mut model, mut now) = (Model::default(), 0);
        for (limit, subject, pause) in requests {
            now += pause;
            model.advance(now);
            let quota = QUOTAS[usize::from(limit)];
            if table.take(&[ask(&table, limit, subject)], &quotas, now).passes() {
                model.charge(limit, subject, quota);
            } else {
                prop_assert!(!model.passes(limit, subject, quota));
            }
        }
    }

    /// Any numbers, and a clock that goes anywhere: no panic, and a wait that ends.
    #[test]
    fn any_time_and_any_quota(
        times in prop::collection::vec(any::<u64>(), 1..50),
        interval in 1..u64::MAX, burst in 1..u32::MAX,
    ) {
        let table = Table::new(0, (9, 10));
        let quotas = [Quota::Rate { interval, burst }];
        for now in times {
            let outcome = table.take(&[ask(&table, 0, 1)], &quotas, now);
            prop_assert!(outcome.wait() <= Duration::from_nanos(interval));
            prop_assert!(quotas[0].left(outcome.judgements()[0]).0 <= burst);
        }
    }
}

const SECOND: u64 = 1_000_000_000;

/// Intervals and bursts.
const QUOTAS: [(u64, u32); 3] = [(SECOND, 1), (SECOND / 7, 5), (20 * SECOND, 3)];

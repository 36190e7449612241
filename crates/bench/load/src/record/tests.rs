//! Tests of records: counts add up, memory does not grow, and a stall is visible.

use super::*;

fn flight(due: u64, begun: u64) -> Flight {
    Flight {
        due,
        begun,
        sent: begun,
        status: 200,
        has_length: true,
        counted: true,
        ..Flight::default()
    }
}

/// The bytes of memory that a record takes, with those that it points to.
fn footprint(record: &Record) -> usize {
    size_of_val(record)
        + size_of_val(&*record.statuses)
        + record.seconds.list.capacity() * size_of::<Second>()
        + record.samples.capacity() * size_of::<Sample>()
}

#[test]
fn a_million_answers_take_no_more_memory_than_one() {
    let mut record = Record::new(true, 10, 0, u64::MAX);
    let answer = |record: &mut Record, number: u64| {
        let begun = number % SECOND;
        record.answer(
            &flight(begun, begun),
            begun + number % 60_000_000,
            true,
            true,
        );
    };
    for number in 0..10 {
        answer(&mut record, number);
    }
    let before = footprint(&record);
    for number in 0..1_000_000 {
        answer(&mut record, number);
    }
    assert_eq!(footprint(&record), before);
    assert_eq!(record.total.count(), 1_000_010);
    assert_eq!(record.samples.len(), 10);
}

/// A server responds in 1 ms but stalls for a second; a request is due each 10 ms, on one
/// connection. Raw latency has one bad sample in a thousand, corrected latency a hundred.
#[test]
fn a_stall_shows_in_corrected_latency_only() {
    let mut record = Record::new(true, 0, 0, u64::MAX);
    let mut free_at = 0;
    for number in 0..1000 {
        let due = number * 10 * MILLI;
        let begun = due.max(free_at);
        let service = if number == 500 { 1000 } else { 1 };
        free_at = begun + service * MILLI;
        record.answer(&flight(due, begun), free_at, true, true);
    }
    let corrected = &record.open.as_ref().unwrap().corrected;
    assert!(record.total.percentile(99.0) <= Duration::from_millis(2));
    assert!(corrected.percentile(99.0).at_least > Duration::from_millis(900));
    assert_eq!(record.total.max(), corrected.max().at_least);
}

#[test]
fn each_failure_counts_once_and_ab_counts_as_it_does() {
    let mut record = Record::new(false, 0, 0, u64::MAX);
    record.fail(&flight(0, 0), FailureKind::Reset, 5, true);
    record.fail(&flight(0, 0), FailureKind::Refused, 5, true);
    record.fail(&flight(0, 0), FailureKind::EarlyClose, SECOND, false);
    record.answer(&flight(0, 0), 7, false, false);
    assert_eq!(record.counts.failed, 4);
    assert_eq!(record.failures.total(), 4);
    assert_eq!(record.counts.completed, 1);
    assert_eq!(record.counts.ok, 0);
    let ab = AbCounts {
        connect: 0,
        receive: 1,
        length: 3,
        exceptions: 1,
        write: 0,
    };
    assert_eq!(record.ab, ab);
    let seconds = record.seconds.into_list(SECOND + 1);
    assert_eq!((seconds[0].failed, seconds[1].failed), (3, 1));
}

#[test]
fn merged_records_are_the_sum() {
    let mut one = Record::new(false, 5, 0, u64::MAX);
    let mut other = one.clone();
    one.answer(&flight(0, 0), 3 * SECOND, true, true);
    other.answer(&flight(0, MILLI), 2 * MILLI, false, true);
    other.fail(&flight(0, 0), FailureKind::Timeout, 9, false);
    one.merge(&other);
    assert_eq!(one.counts.completed, 2);
    assert_eq!(one.counts.kept_alive, 1);
    assert_eq!(one.total.count(), 2);
    assert_eq!(one.samples.len(), 2);
    assert_eq!(one.last_end, 3 * SECOND);
    let seconds = one.seconds.into_list(0);
    let completed: Vec<u64> = seconds.iter().map(|second| second.completed).collect();
    assert_eq!(completed, [1, 0, 0, 1]);
}

const MILLI: u64 = 1_000_000;

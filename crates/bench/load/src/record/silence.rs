//! Finds spans of time without a response although requests were waiting for one.
//!
//! Each thread keeps its own spans: from its last response (or from the beginning of the oldest
//! request without one, if later) to its next response, less the time in which the thread stood
//! still, when it could not have seen a response. Where the spans of all threads overlap, the
//! server was silent. The invariant: the spans of a thread are in order and do not overlap.

/// The beginning and the end of a span, in nanoseconds on the run's clock.
pub(crate) type Span = (u64, u64);

/// The spans of one thread without a response.
#[derive(Clone, Debug)]
pub(crate) struct Silences {
    spans: Spans,
    /// The spans in which the thread did not run although it had work.
    standstills: Spans,
    /// The time of the last response.
    last_answer: u64,
    /// The time at which the first request began that has failed since the last response; `None`: none has failed.
    failed_since: Option<u64>,
}

impl Silences {
    /// The silences of a thread whose measured time begins at `origin`.
    pub(crate) fn new(origin: u64) -> Self {
        Self {
            spans: Spans::new(KEPT_MIN),
            standstills: Spans::new(STANDSTILL_MIN),
            last_answer: origin,
            failed_since: None,
        }
    }

    /// Notes that a request that began at `begun` was answered at `end`.
    pub(crate) fn answer(&mut self, begun: u64, end: u64) {
        self.note(begun, end);
        self.last_answer = end;
        self.failed_since = None;
    }

    /// Notes that a request that began at `begun` failed.
    pub(crate) fn fail(&mut self, begun: u64) {
        self.failed_since = Some(self.failed_since.map_or(begun, |since| since.min(begun)));
    }

    /// Notes that a request that began at `begun` had no response at `end`, when the measured time was over.
    pub(crate) fn abandon(&mut self, begun: u64, end: u64) {
        self.fail(begun);
        self.note(begun, end);
        self.last_answer = self.last_answer.max(end);
    }

    /// Notes that the thread should have run its loop at `due` and did at `now`: it was stopped,
    /// had no CPU, or was busy.
    pub(crate) fn come_round(&mut self, due: u64, now: u64) {
        self.standstills.add(due, now);
    }

    /// The spans up to `end` in which the thread stood still.
    pub(crate) fn standstills(&self, end: u64) -> Vec<Span> {
        self.standstills.until(end).collect()
    }

    /// The spans without a response up to `end`, the end of the measured time, with one for
    /// failures since the last response. The time in which the thread stood still is subtracted
    /// from each.
    pub(crate) fn until(&self, end: u64) -> Vec<Span> {
        let mut whole = self.clone();
        if let Some(since) = self.failed_since {
            whole.abandon(since, end);
        }
        let standstills = self.standstills(end);
        let spans = whole.spans.until(end);
        let shortened = spans.map(|span| without_standstills(span, &standstills));
        shortened.filter(|(from, to)| to > from).collect()
    }

    fn note(&mut self, begun: u64, end: u64) {
        let waiting_since = self.failed_since.map_or(begun, |since| since.min(begun));
        self.spans.add(waiting_since.max(self.last_answer), end);
    }
}

/// The span without the standstills in it: its end is earlier by their time.
fn without_standstills(span: Span, standstills: &[Span]) -> Span {
    let (from, to) = span;
    let first = standstills.partition_point(|standstill| standstill.1 <= from);
    let mut stood_still = 0;
    for (begin, end) in &standstills[first..] {
        if *begin >= to {
            break;
        }
        stood_still += end.min(&to) - begin.max(&from);
    }
    (from, to - stood_still)
}

/// Spans in order; if there are too many, only the longest are kept.
#[derive(Clone, Debug)]
struct Spans {
    list: Vec<Span>,
    /// The least length of a span that is kept, in nanoseconds. It grows each time the list is full.
    min: u64,
}

impl Spans {
    fn new(min: u64) -> Self {
        Self {
            list: Vec::new(),
            min,
        }
    }

    /// Adds a span of at least `min`. If the list is full, the shorter half is removed.
    fn add(&mut self, from: u64, to: u64) {
        if self.list.len() >= SPANS_MAX {
            self.forget_shortest(SPANS_MAX / 2);
        }
        if to.saturating_sub(from) >= self.min {
            self.list.push((from, to));
        }
    }

    /// Removes the `count` shortest spans; of equal ones the earlier. Then `min` is the length of
    /// the shortest one left.
    fn forget_shortest(&mut self, count: usize) {
        let mut lengths: Vec<u64> = self.list.iter().map(|(from, to)| to - from).collect();
        lengths.sort_unstable();
        let min = lengths[count];
        let mut equals_to_remove = count - lengths.partition_point(|length| *length < min);
        self.list.retain(|(from, to)| {
            let length = to - from;
            if length == min && equals_to_remove > 0 {
                equals_to_remove -= 1;
                return false;
            }
            length >= min
        });
        self.min = min;
    }

    fn until(&self, end: u64) -> impl Iterator<Item = Span> {
        let spans = self.list.iter().map(move |&(from, to)| (from, to.min(end)));
        spans.filter(|(from, to)| to > from)
    }
}

/// The spans in which all threads were silent at once.
pub(crate) fn common(threads: &[Vec<Span>]) -> Vec<Span> {
    let Some((first, others)) = threads.split_first() else {
        return Vec::new();
    };
    let mut common = first.clone();
    for spans in others {
        common = intersection(&common, spans);
    }
    common
}

/// The spans that lie in a span of both lists.
fn intersection(left: &[Span], right: &[Span]) -> Vec<Span> {
    let (mut left_index, mut right_index) = (0, 0);
    let mut overlaps = Vec::new();
    while let (Some(a), Some(b)) = (left.get(left_index), right.get(right_index)) {
        let overlap = (a.0.max(b.0), a.1.min(b.1));
        if overlap.0 < overlap.1 {
            overlaps.push(overlap);
        }
        // The span that ends first cannot overlap a later one.
        if a.1 < b.1 {
            left_index += 1;
        } else {
            right_index += 1;
        }
    }
    overlaps
}

/// The least pause that counts as a silence, in nanoseconds. It is the longest of 100 ms, ten times
/// the mean time between two responses (`median` divided by the requests `under_way` at once), and
/// twice `median`, since requests that begin together are answered together.
pub(crate) fn threshold(median: u64, under_way: f64) -> u64 {
    let between_answers = median as f64 / under_way.max(1.0);
    let by_rate = (between_answers * BETWEEN_ANSWERS) as u64;
    let by_median = median.saturating_mul(MEDIANS);
    SILENCE_MIN.max(by_rate).max(by_median)
}

/// The least pause that counts as a silence, in nanoseconds.
const SILENCE_MIN: u64 = 100_000_000;

/// The least length of a silence, as a multiple of the mean time between two responses.
const BETWEEN_ANSWERS: f64 = 10.0;

/// The least length of a silence, as a multiple of the median latency.
const MEDIANS: u64 = 2;

/// The least span that is kept, in nanoseconds: shorter ones tell no more of a stall than latencies do.
const KEPT_MIN: u64 = 1_000_000;

/// The least delay of a thread that counts as a standstill, in nanoseconds: some milliseconds are
/// usual on any machine with other work.
const STANDSTILL_MIN: u64 = 10_000_000;

/// The most spans that are kept: when they are reached, the shorter half is dropped.
const SPANS_MAX: usize = 10_000;

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    #[test]
    fn a_span_is_found_at_the_beginning_between_and_at_the_end() {
        let mut silences = Silences::new(S);
        silences.answer(S, 3 * S);
        silences.answer(3 * S, 3 * S + 1);
        silences.answer(3 * S + 1, 5 * S);
        silences.abandon(5 * S, 9 * S);
        let expected = [(S, 3 * S), (3 * S + 1, 5 * S), (5 * S, 8 * S)];
        assert_eq!(silences.until(8 * S), expected);
    }

    /// No request was in flight from 1 s to 7 s.
    #[test]
    fn a_pause_in_which_nothing_was_asked_is_none() {
        let mut silences = Silences::new(0);
        silences.answer(S / 2, S / 2 + 1);
        silences.answer(7 * S, 7 * S + 1);
        assert_eq!(silences.until(8 * S), []);
    }

    #[test]
    fn failures_are_no_answers() {
        let mut silences = Silences::new(0);
        silences.answer(0, 1);
        for at in 1..=20 {
            silences.fail(at * S / 10);
        }
        assert_eq!(silences.until(4 * S), [(S / 10, 4 * S)]);
        silences.answer(2 * S, 2 * S + 1);
        assert_eq!(silences.until(4 * S), [(S / 10, 2 * S + 1)]);
    }

    /// The thread was stopped from 2 s to 4 s while it waited for a response, and from 6 s to 9 s between two.
    #[test]
    fn a_thread_that_stands_still_sees_no_silence() {
        let mut silences = Silences::new(0);
        silences.answer(0, S);
        silences.come_round(2 * S, 4 * S);
        silences.answer(S, 5 * S);
        silences.come_round(6 * S, 9 * S);
        silences.answer(6 * S, 9 * S);
        silences.come_round(9 * S, 9 * S + S / 1000);
        assert_eq!(silences.until(9 * S), [(0, S), (S, 3 * S)]);
        assert_eq!(
            silences.standstills(8 * S),
            [(2 * S, 4 * S), (6 * S, 8 * S)]
        );
    }

    #[test]
    fn a_server_is_silent_where_all_threads_are() {
        let threads = [
            vec![(0, 4 * S), (6 * S, 9 * S)],
            vec![(S, 2 * S), (3 * S, 7 * S), (8 * S, 9 * S)],
        ];
        let expected = [(S, 2 * S), (3 * S, 4 * S), (6 * S, 7 * S), (8 * S, 9 * S)];
        assert_eq!(common(&threads), expected);
        assert_eq!(common(&[]), []);
    }

    #[test]
    fn what_is_a_silence_follows_from_the_rate() {
        const MS: u64 = 1_000_000;
        for (median, under_way, expected) in [
            (MS, 1.0, 100 * MS),
            // One client: as before it, ten answers are missing.
            (50 * MS, 1.0, 500 * MS),
            // Many clients: an answer each 0.2 ms.
            (20 * MS, 100.0, 100 * MS),
            // Many clients that may all be answered at once.
            (900 * MS, 600.0, 1800 * MS),
            // A schedule with less than one request at a time.
            (20 * MS, 0.1, 200 * MS),
        ] {
            assert_eq!(
                threshold(median, under_way),
                expected,
                "{median} {under_way}"
            );
        }
    }

    #[test]
    fn many_spans_leave_the_longest() {
        let mut silences = Silences::new(0);
        for at in 0..3 * SPANS_MAX as u64 {
            silences.answer(at * S, at * S + S / 8);
        }
        silences.answer(0, 40_000 * S);
        let kept = silences.until(u64::MAX).len();
        assert!((SPANS_MAX / 2..=SPANS_MAX).contains(&kept), "{kept}");
        assert_eq!(silences.until(u64::MAX).last().unwrap().1, 40_000 * S);
    }
}

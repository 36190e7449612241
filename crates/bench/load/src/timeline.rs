//! The counts and latencies of each slice of the measured time, for charts over time, and for
//! estimates of how much parts of a run differ.
//!
//! Slices are 100 ms long; when they are too many, ten of them become one. Memory stays within some
//! megabytes, whatever the length of the run. Each thread keeps a timeline of its own; they are
//! added up at the end.

use std::time::Duration;

use catamaran_stats::{Slice, SliceRecorder};

use crate::clock::nanos;

/// The slices of a run, from the beginning of measuring.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timeline {
    /// The length of each slice: 100 ms, 1 s, 10 s and so on.
    pub length: Duration,
    /// The slices in order, without a gap.
    pub slices: Vec<TimeSlice>,
}

/// The counts and latencies of one slice of time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TimeSlice {
    /// The number of requests that failed.
    pub failed: u64,
    /// The number of responses with a status outside 200 to 299.
    pub non_2xx: u64,
    /// The raw latencies of the complete responses.
    pub total: Slice,
    /// The latencies of complete responses from when each request was due; empty in a closed loop.
    pub corrected: Slice,
}

impl Default for Timeline {
    fn default() -> Self {
        Self::new()
    }
}

impl Timeline {
    pub(crate) fn new() -> Self {
        Self {
            length: LENGTH_MIN,
            slices: Vec::new(),
        }
    }

    /// Joins the whole slices of `elapsed` to `count` blocks of equal length, for estimates from blocks;
    /// the slices that remain at the end are left out. With fewer than `count` slices, each is a block.
    pub fn blocks(&self, elapsed: Duration, count: usize) -> Vec<TimeSlice> {
        let intervals = usize::try_from(elapsed.as_nanos() / self.length.as_nanos().max(1));
        let whole = intervals.unwrap_or(usize::MAX).min(self.slices.len());
        let slices_per_block = (whole / count.max(1)).max(1);
        let blocks = self.slices[..whole].chunks_exact(slices_per_block);
        blocks.take(count).map(TimeSlice::sum).collect()
    }

    /// The timeline with slices joined until they are at least `length` long.
    #[must_use]
    pub fn coarser(&self, length: Duration) -> Self {
        let mut coarser = self.clone();
        while coarser.length < length {
            coarser.join();
        }
        coarser
    }

    /// Adds the counts of another thread, slice by slice. The timeline with the shorter slices is joined first,
    /// until both have slices of one length.
    pub(crate) fn add(&mut self, other: &Self) {
        let length = self.length.max(other.length);
        while self.length < length {
            self.join();
        }
        let other = other.coarser(length);
        if self.slices.len() < other.slices.len() {
            self.slices.resize(other.slices.len(), TimeSlice::default());
        }
        for (mine, theirs) in self.slices.iter_mut().zip(&other.slices) {
            mine.add(theirs);
        }
    }

    /// Joins each ten slices to one.
    fn join(&mut self) {
        self.slices = self.slices.chunks(10).map(TimeSlice::sum).collect();
        self.length *= 10;
    }
}

impl TimeSlice {
    fn sum(slices: &[Self]) -> Self {
        let mut sum = Self::default();
        for slice in slices {
            sum.add(slice);
        }
        sum
    }

    fn add(&mut self, other: &Self) {
        self.failed += other.failed;
        self.non_2xx += other.non_2xx;
        self.total.add(&other.total);
        self.corrected.add(&other.corrected);
    }
}

/// Records the timeline of one thread.
#[derive(Clone, Debug)]
pub(crate) struct TimelineRecorder {
    done: Timeline,
    /// The index of the current slice.
    current: usize,
    /// The end of the current slice, in nanoseconds since measuring began.
    end: u64,
    failed: u64,
    non_2xx: u64,
    total: SliceRecorder,
    /// The corrected latencies; `None` in a closed loop.
    corrected: Option<SliceRecorder>,
}

impl TimelineRecorder {
    pub(crate) fn new(is_open: bool) -> Self {
        Self {
            done: Timeline::new(),
            current: 0,
            end: nanos(LENGTH_MIN),
            failed: 0,
            non_2xx: 0,
            total: SliceRecorder::new(),
            corrected: is_open.then(SliceRecorder::new),
        }
    }

    /// Notes a complete response at `at`; all times are nanoseconds.
    pub(crate) fn answer(&mut self, at: u64, is_2xx: bool, total: u64, since_due: u64) {
        self.go_to(at);
        self.non_2xx += u64::from(!is_2xx);
        self.total.record_micros(total / 1000);
        if let Some(corrected) = &mut self.corrected {
            corrected.record_micros(since_due / 1000);
        }
    }

    /// Notes that a request failed at `at`.
    pub(crate) fn fail(&mut self, at: u64) {
        self.go_to(at);
        self.failed += 1;
    }

    /// The latencies of the slices that ended within the last second.
    pub(crate) fn recent(&self) -> Slice {
        let count = (nanos(RECENT) / nanos(self.done.length)).max(1);
        let slices = self.done.slices.iter().rev();
        let mut recent = Slice::default();
        for slice in slices.take(usize::try_from(count).unwrap_or(1)) {
            recent.add(if self.corrected.is_some() {
                &slice.corrected
            } else {
                &slice.total
            });
        }
        recent
    }

    /// Ends the recording, and returns all slices up to now.
    pub(crate) fn finish(mut self) -> Timeline {
        self.flush();
        self.done
    }

    /// Makes the slice that contains `at` the current one.
    fn go_to(&mut self, at: u64) {
        let length = nanos(self.done.length);
        if at < self.end && at + length >= self.end {
            return;
        }
        self.flush();
        if self.done.slices.len() >= self.slices_max() {
            self.done.join();
        }
        // Joining has made the slices longer.
        let length = nanos(self.done.length);
        let index = usize::try_from(at / length).unwrap_or(SLICES_MAX);
        self.current = index.min(SLICES_MAX);
        self.end = (at / length + 1) * length;
    }

    fn slices_max(&self) -> usize {
        if self.done.length == LENGTH_MIN {
            SLICES_SHORT_MAX
        } else {
            SLICES_MAX
        }
    }

    /// Moves what was recorded since the last call into the current slice of the list.
    fn flush(&mut self) {
        let slice = TimeSlice {
            failed: std::mem::take(&mut self.failed),
            non_2xx: std::mem::take(&mut self.non_2xx),
            total: self.total.take(),
            corrected: self
                .corrected
                .as_mut()
                .map_or_else(Slice::default, SliceRecorder::take),
        };
        if slice == TimeSlice::default() {
            return;
        }
        if self.done.slices.len() <= self.current {
            self.done
                .slices
                .resize(self.current + 1, TimeSlice::default());
        }
        self.done.slices[self.current].add(&slice);
    }
}

const RECENT: Duration = Duration::from_secs(1);

const LENGTH_MIN: Duration = Duration::from_millis(100);

/// The most slices of 100 ms: those of half a minute. Then they are joined to longer ones.
const SLICES_SHORT_MAX: usize = 300;

/// The most slices of 1 s or more: two hours of seconds. Then they are joined to longer ones.
const SLICES_MAX: usize = 7200;

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn each_answer_is_in_its_slice() {
        let mut recorder = TimelineRecorder::new(true);
        recorder.answer(50 * MS, true, 3 * MS, 5 * MS);
        recorder.answer(99 * MS, false, 4 * MS, 4 * MS);
        recorder.fail(350 * MS);
        let timeline = recorder.finish();
        let counts = timeline.slices.iter().map(|slice| slice.total.count());
        assert_eq!(counts.collect::<Vec<_>>(), [2, 0, 0, 0]);
        assert_eq!(timeline.slices[0].corrected.max_micros(), 5000);
        assert_eq!(
            (timeline.slices[0].non_2xx, timeline.slices[3].failed),
            (1, 1)
        );
    }

    #[test]
    fn long_runs_have_longer_slices() {
        let mut recorder = TimelineRecorder::new(false);
        for second in 0..40_000_u64 {
            recorder.answer(second * 1000 * MS, true, MS, 0);
        }
        let timeline = recorder.finish();
        assert_eq!(timeline.length, Duration::from_secs(10));
        assert_eq!(timeline.slices.len(), 4000);
        assert!(
            timeline
                .slices
                .iter()
                .all(|slice| slice.total.count() == 10)
        );
    }

    #[test]
    fn threads_add_up() {
        let (mut short, mut long) = (TimelineRecorder::new(false), TimelineRecorder::new(false));
        short.answer(1500 * MS, true, MS, 0);
        for second in 0..60 {
            long.answer(second * 1000 * MS, true, MS, 0);
        }
        let mut sum = short.finish();
        sum.add(&long.finish());
        assert_eq!(sum.length, Duration::from_secs(1));
        let counts = sum.slices.iter().map(|slice| slice.total.count());
        assert_eq!(counts.take(3).collect::<Vec<_>>(), [1, 2, 1]);
    }

    #[test]
    fn blocks_are_of_equal_length() {
        let mut recorder = TimelineRecorder::new(false);
        for tenth in 0..27 {
            recorder.answer(tenth * 100 * MS, true, MS, 0);
        }
        let timeline = recorder.finish();
        let blocks = |millis| timeline.blocks(Duration::from_millis(millis), 6);
        assert_eq!(blocks(550).len(), 5);
        let counts: Vec<u64> = blocks(2650)
            .iter()
            .map(|block| block.total.count())
            .collect();
        assert_eq!(counts, [4; 6]);
    }
}

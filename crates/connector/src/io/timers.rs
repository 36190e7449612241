//! One timer per connection, in a heap that stores the position of each.
//!
//! A timer is only moved to an *earlier* time. If its deadline moves later, it fires early, and its
//! owner then sets it again for the real deadline. So a deadline that every request moves later costs
//! nothing per request, and the heap has at most one entry per connection.

use std::time::Instant;

/// Timers by connection key. Keys are small and dense (slab indices).
#[derive(Debug, Default)]
pub(super) struct Timers {
    /// A binary min-heap by time.
    heap: Vec<(Instant, usize)>,
    /// The index of each key's timer in the heap, or [`NOWHERE`].
    positions: Vec<usize>,
}

impl Timers {
    /// Makes the timer of `key` fire at `at`, unless it is set for an earlier time already.
    pub(super) fn set(&mut self, key: usize, at: Instant) {
        if key >= self.positions.len() {
            self.positions.resize(key + 1, NOWHERE);
        }
        match self.positions[key] {
            NOWHERE => {
                self.positions[key] = self.heap.len();
                self.heap.push((at, key));
                self.sift_up(self.heap.len() - 1);
            }
            position if at < self.heap[position].0 => {
                self.heap[position].0 = at;
                self.sift_up(position);
            }
            _ => {}
        }
    }

    /// Removes the timer of `key`, if it has one.
    pub(super) fn clear(&mut self, key: usize) {
        if let Some(&position) = self.positions.get(key)
            && position != NOWHERE
        {
            self.remove(position);
        }
    }

    /// When the next timer fires; `None` if there is none.
    pub(super) fn next(&self) -> Option<Instant> {
        self.heap.first().map(|(at, _)| *at)
    }

    /// Removes a timer that is due at `now`, and returns its key; `None` if none is due.
    pub(super) fn pop_due(&mut self, now: Instant) -> Option<usize> {
        let (at, key) = *self.heap.first()?;
        if at > now {
            return None;
        }
        self.remove(0);
        Some(key)
    }

    fn remove(&mut self, position: usize) {
        let (_, key) = self.heap.swap_remove(position);
        self.positions[key] = NOWHERE;
        if position < self.heap.len() {
            // The timer that was the last takes the position, and may belong further down or up.
            self.positions[self.heap[position].1] = position;
            self.sift_down(position);
            self.sift_up(position);
        }
    }

    fn sift_up(&mut self, mut position: usize) {
        while position > 0 {
            let parent = (position - 1) / 2;
            if self.heap[parent].0 <= self.heap[position].0 {
                break;
            }
            self.swap(position, parent);
            position = parent;
        }
    }

    fn sift_down(&mut self, mut position: usize) {
        loop {
            let mut least = position;
            for child in [2 * position + 1, 2 * position + 2] {
                if child < self.heap.len() && self.heap[child].0 < self.heap[least].0 {
                    least = child;
                }
            }
            if least == position {
                break;
            }
            self.swap(position, least);
            position = least;
        }
    }

    fn swap(&mut self, a: usize, b: usize) {
        self.heap.swap(a, b);
        self.positions[self.heap[a].1] = a;
        self.positions[self.heap[b].1] = b;
    }
}

const NOWHERE: usize = usize::MAX;

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn drain(timers: &mut Timers, now: Instant) -> Vec<usize> {
        std::iter::from_fn(|| timers.pop_due(now)).collect()
    }

    #[test]
    fn timers_fire_in_order_and_not_before_their_time() {
        let start = super::super::now();
        let at = |ms| start + Duration::from_millis(ms);
        let mut timers = Timers::default();
        for (key, ms) in [(0, 50), (1, 10), (2, 30), (7, 20), (3, 40)] {
            timers.set(key, at(ms));
        }
        assert_eq!(timers.next(), Some(at(10)));
        assert!(drain(&mut timers, at(9)).is_empty());
        assert_eq!(drain(&mut timers, at(30)), [1, 7, 2]);
        assert_eq!(drain(&mut timers, at(99)), [3, 0]);
        assert_eq!(timers.next(), None);
    }

    #[test]
    fn a_timer_moves_to_an_earlier_time_and_not_to_a_later_one() {
        let start = super::super::now();
        let at = |ms| start + Duration::from_millis(ms);
        let mut timers = Timers::default();
        timers.set(0, at(20));
        timers.set(1, at(30));
        timers.set(1, at(10));
        timers.set(0, at(90));
        assert_eq!(drain(&mut timers, at(20)), [1, 0]);
    }

    #[test]
    fn clearing_leaves_the_others_in_order() {
        let start = super::super::now();
        let at = |ms| start + Duration::from_millis(ms);
        let mut timers = Timers::default();
        // A permutation of 0..97, so that the heap gets some shape.
        for key in 0..97 {
            timers.set(key, at((key as u64 * 31) % 97));
        }
        for key in (0..97).step_by(3) {
            timers.clear(key);
            timers.clear(key);
        }
        let mut expected: Vec<usize> = (0..97).filter(|key| key % 3 != 0).collect();
        expected.sort_by_key(|key| (key * 31) % 97);
        assert_eq!(drain(&mut timers, at(97)), expected);
    }
}

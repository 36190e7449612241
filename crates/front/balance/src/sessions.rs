//! Estimates how many sessions were seen lately, with a HyperLogLog for each of several slices of time.
//!
//! Of a session id only the rank of its hash is kept, and the hash has a random key, so that nobody can
//! choose ids that count for many. Noting an id costs a hash and a load, and rarely an atomic maximum.
//! The estimate is nearly exact for few sessions, and within some 3 % for many.
//!
//! A client can invent ids. So an id in a request counts only if the backend is known to have given it
//! out. At first this is unknown for ids that are older than the count: for twice the timeout every id is
//! believed.

mod known;

use std::hash::{BuildHasher as _, RandomState};
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use self::known::KnownIds;
use crate::health::Moment;

/// The sessions that were seen within a time, shared by all workers.
#[derive(Debug)]
pub struct Sessions {
    timeout: Duration,
    /// The registers of all slices of time, one slice after the other.
    registers: Box<[AtomicU8]>,
    /// The number of the current slice of time, counted from [`Moment::ZERO`].
    latest: AtomicU64,
    /// Locked while registers are cleared for another slice.
    turning: Mutex<()>,
    hasher: RandomState,
    born: Moment,
    /// Until this moment every id that a request names counts, and is remembered as known.
    learns_until: Moment,
    known: KnownIds,
    /// How many requests named an id that did not count.
    unknown: AtomicU64,
    /// When a session was last seen, in milliseconds since [`Moment::ZERO`], plus one; 0: never.
    last: AtomicU64,
}

impl Sessions {
    /// Begins to count. A session counts until it was not seen for `timeout`, or up to a fifteenth longer.
    #[must_use]
    pub fn new(timeout: Duration, now: Moment) -> Self {
        let sessions = Self {
            timeout: timeout.max(Duration::from_millis(SLICES as u64)),
            registers: (0..SLICES * REGISTERS).map(|_| AtomicU8::new(0)).collect(),
            latest: AtomicU64::new(0),
            turning: Mutex::default(),
            hasher: RandomState::new(),
            born: now,
            // Twice as long: the container's own timeout may be longer.
            learns_until: now + 2 * timeout,
            known: KnownIds::default(),
            unknown: AtomicU64::new(0),
            last: AtomicU64::new(0),
        };
        sessions
            .latest
            .store(sessions.slice(now), Ordering::Release);
        sessions
    }

    /// Copies the counts with another timeout; all sessions count as seen just now. Which ids are known
    /// must be learned again.
    #[must_use]
    pub fn with_timeout(&self, timeout: Duration, now: Moment) -> Self {
        let other = Self {
            hasher: self.hasher.clone(),
            born: self.born,
            last: AtomicU64::new(self.last.load(Ordering::Relaxed)),
            unknown: AtomicU64::new(self.unknown_total()),
            ..Self::new(timeout, now)
        };
        let place = other.place(other.slice(now));
        for (index, rank) in self.merged(now).into_iter().enumerate() {
            other.registers[place + index].store(rank, Ordering::Relaxed);
        }
        other
    }

    /// How long a session counts after it was last seen.
    #[must_use]
    pub fn timeout(&self) -> Duration {
        self.timeout
    }

    /// Counts a session that belongs to the backend, such as one that it began, and remembers its id.
    pub fn note(&self, id: &[u8], now: Moment) {
        let slice = self.turn(now);
        let hash = self.hasher.hash_one(id);
        self.known.put(hash, slice);
        self.count(hash, slice, now);
    }

    /// Counts a session whose id a request has, if the backend is known to have given out that id. Every id counts
    /// until `learns_until`, and for as long as known ids may be missing because the table of them was full.
    pub fn note_claim(&self, id: &[u8], now: Moment) {
        let slice = self.turn(now);
        let hash = self.hasher.hash_one(id);
        if !self.known.renew(hash, slice) {
            if now < self.learns_until {
                self.known.put(hash, slice);
            } else if !self.known.is_incomplete(slice) {
                self.unknown.fetch_add(1, Ordering::Relaxed);
                return;
            }
        }
        self.count(hash, slice, now);
    }

    /// How many requests named an id that the backend is not known to have given out.
    #[must_use]
    pub fn unknown_total(&self) -> u64 {
        self.unknown.load(Ordering::Relaxed)
    }

    /// Counts a session in the registers of a slice.
    fn count(&self, hash: u64, slice: u64, now: Moment) {
        let index = usize::try_from(hash >> (64 - BITS)).unwrap_or(0);
        // The closing bit bounds the rank.
        let other_bits = (hash << BITS) | (1 << (BITS - 1));
        let rank = u8::try_from(other_bits.leading_zeros() + 1).unwrap_or(u8::MAX);
        let register = &self.registers[self.place(slice) + index];
        if register.load(Ordering::Relaxed) < rank {
            register.fetch_max(rank, Ordering::Relaxed);
        }
        self.last.store(millis(now) + 1, Ordering::Relaxed);
    }

    /// The estimated number of sessions that count at `now`.
    #[must_use]
    pub fn seen(&self, now: Moment) -> u64 {
        estimate(&self.merged(now))
    }

    /// When a session was last seen; `None` if none was.
    #[must_use]
    pub fn last_seen(&self) -> Option<Moment> {
        let last = self.last.load(Ordering::Relaxed).checked_sub(1)?;
        Some(Moment::from_millis(last))
    }

    /// Whether no session is left: none was seen for a whole timeout, and counting began at least that
    /// long ago.
    #[must_use]
    pub fn are_over(&self, now: Moment) -> bool {
        now.saturating_sub(self.born) >= self.timeout && self.seen(now) == 0
    }

    /// The registers of all slices that count at `now`, merged into one set.
    fn merged(&self, now: Moment) -> [u8; REGISTERS] {
        self.turn(now);
        let mut merged = [0; REGISTERS];
        for slice in self.registers.chunks(REGISTERS) {
            for (rank, register) in merged.iter_mut().zip(slice) {
                *rank = register.load(Ordering::Relaxed).max(*rank);
            }
        }
        merged
    }

    /// Clears the slices that are too old; returns the number of the current slice.
    fn turn(&self, now: Moment) -> u64 {
        let slice = self.slice(now);
        let latest = self.latest.load(Ordering::Acquire);
        if slice <= latest {
            // A clock that is a little behind notes in the latest.
            return latest;
        }
        let _turning = self.lock();
        // Another thread may have cleared them before this one got the lock.
        let cleared = self.latest.load(Ordering::Acquire);
        let oldest_kept = (slice + 1).saturating_sub(SLICES as u64);
        for reused in oldest_kept.max(cleared + 1)..=slice {
            let place = self.place(reused);
            for register in &self.registers[place..place + REGISTERS] {
                register.store(0, Ordering::Relaxed);
            }
        }
        let now_latest = slice.max(cleared);
        self.latest.store(now_latest, Ordering::Release);
        now_latest
    }

    /// The number of the slice that contains `now`. All slices except the current one together cover the
    /// timeout.
    fn slice(&self, now: Moment) -> u64 {
        let length = self.timeout.as_millis() / (SLICES as u128 - 1);
        u64::try_from(now.as_millis() / length.max(1)).unwrap_or(u64::MAX)
    }

    /// The index of a slice's first register.
    fn place(&self, slice: u64) -> usize {
        usize::try_from(slice % SLICES as u64).unwrap_or(0) * REGISTERS
    }

    fn lock(&self) -> MutexGuard<'_, ()> {
        self.turning.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Estimates the count from the ranks, after Flajolet, Fusy, Gandouet, Meunier: HyperLogLog, 2007, figure
/// 3. With 64-bit hashes the correction for large numbers is not needed.
fn estimate(ranks: &[u8; REGISTERS]) -> u64 {
    #[expect(clippy::cast_precision_loss, reason = "REGISTERS is small")]
    let count = REGISTERS as f64;
    let sum: f64 = ranks.iter().map(|&rank| (-f64::from(rank)).exp2()).sum();
    let raw = 0.7213 / (1.0 + 1.079 / count) * count * count / sum;
    let empty = ranks.iter().filter(|&&rank| rank == 0).count();
    #[expect(clippy::cast_precision_loss, reason = "no more than REGISTERS")]
    let linear = count * (count / empty as f64).ln();
    let best = if raw <= 2.5 * count && empty > 0 {
        linear
    } else {
        raw
    };
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "finite and not negative"
    )]
    let rounded = best.round() as u64;
    rounded
}

fn millis(moment: Moment) -> u64 {
    u64::try_from(moment.as_millis()).unwrap_or(u64::MAX - 1)
}

/// The number of slices of time; older ones are overwritten.
const SLICES: usize = 16;

/// How many bits of the hash choose a register.
const BITS: u32 = 10;

const REGISTERS: usize = 1 << BITS;

#[cfg(test)]
mod tests {
    use super::*;

    const TIMEOUT: Duration = Duration::from_secs(30);

    fn at(seconds: u64) -> Moment {
        Moment::from_secs(seconds)
    }

    #[test]
    fn few_are_counted_exactly_and_many_nearly() {
        for count in [0_u64, 1, 5, 100, 1000, 20_000] {
            let sessions = Sessions::new(TIMEOUT, at(7));
            for id in 0..count {
                // However often one comes, it is one.
                sessions.note(&id.to_be_bytes(), at(7));
                sessions.note(&id.to_be_bytes(), at(8));
            }
            let seen = sessions.seen(at(8));
            let error = seen.abs_diff(count);
            // Five times the standard error of 1.04/sqrt(1024).
            assert!(error * 6 <= count, "{seen} of {count}");
            assert!(count > 5 || error == 0, "{seen} of {count}");
        }
    }

    #[test]
    fn a_session_counts_for_the_timeout_and_little_longer() {
        let sessions = Sessions::new(TIMEOUT, at(0));
        assert!(
            !sessions.are_over(at(29)),
            "it has not been looked for so long"
        );
        assert!(sessions.are_over(at(30)));
        for start in [100, 301, 519] {
            let (early, late) = (&b"early"[..], &b"late"[..]);
            sessions.note(early, at(start));
            sessions.note(late, at(start + 10));
            assert_eq!(sessions.seen(at(start + 29)), 2);
            assert_eq!(sessions.seen(at(start + 33)), 1);
            assert_eq!(sessions.last_seen(), Some(at(start + 10)));
            assert!(!sessions.are_over(at(start + 39)));
            assert!(sessions.are_over(at(start + 43)));
        }
        // After a long time without any.
        sessions.note(b"x", at(100_000));
        assert_eq!(sessions.seen(at(100_000)), 1);
    }

    #[test]
    fn another_timeout_forgets_nobody() {
        let sessions = Sessions::new(TIMEOUT, at(0));
        sessions.note(b"x", at(50));
        let other = sessions.with_timeout(Duration::from_secs(5), at(60));
        other.note(b"x", at(61));
        assert_eq!(other.seen(at(61)), 1, "ids keep their hashes");
        assert_eq!(other.seen(at(70)), 0);
        assert!(other.are_over(at(70)));
    }

    #[test]
    fn ids_that_a_client_invents_do_not_count() {
        let sessions = Sessions::new(TIMEOUT, at(0));
        // Given out before the count began, as far as anybody knows.
        sessions.note_claim(b"old", at(5));
        sessions.note(b"begun", at(6));
        let visit = |id: &[u8], second: u64| sessions.note_claim(id, at(second));
        for second in (10..=90).step_by(20) {
            visit(b"old", second);
            visit(b"begun", second);
        }
        for second in 91..=200 {
            visit(format!("invented {second}").as_bytes(), second);
            visit(b"always the same", second);
            match second {
                ..=119 => assert!(sessions.seen(at(second)) == 2, "{second}"),
                125.. => assert!(sessions.are_over(at(second)), "{second}"),
                _ => {}
            }
        }
        assert_eq!(sessions.unknown_total(), 220);
        // What the backend gave out counts again when it comes again.
        visit(b"old", 200);
        assert_eq!(sessions.seen(at(201)), 1);
        sessions.note(b"begun later", at(202));
        visit(b"begun later", 230);
        assert!(!sessions.are_over(at(240)));
    }
}

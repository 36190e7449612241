//! The passwords that were right a short time ago, so that not every request of a user costs a hash.
//!
//! A browser sends the password with each request. Remembered is a MAC under a random key of the user, the password and
//! the hash in the file: neither can be guessed from it without the key, and a hash that was changed or removed from the
//! file is not remembered. Only successes are remembered: what clients may invent takes no memory.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::time::Duration;

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

use crate::basic::BasicCredentials;
use crate::users::Candidate;

/// Makes the keys of [`Successes`]. It has no lock: each thread has its own.
#[derive(Clone)]
pub struct SuccessMac {
    /// With the key.
    mac: Hmac<Sha256>,
}

/// What a success is remembered by: a MAC of user, password and hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SuccessKey([u8; 32]);

/// The successes of the last minutes.
#[derive(Debug, Default)]
pub struct Successes {
    /// For each success the time at which it is forgotten.
    ends: HashMap<SuccessKey, Duration>,
    /// The same, the eldest first.
    by_age: VecDeque<SuccessKey>,
}

impl SuccessMac {
    /// `secret` is random and known to nobody.
    #[must_use]
    pub fn new(secret: &[u8; 32]) -> Self {
        let mac = Hmac::new_from_slice(secret).expect("HMAC takes keys of any length");
        Self { mac }
    }

    /// The key by which it is remembered that these credentials were right for this candidate.
    #[must_use]
    pub fn key(&self, credentials: &BasicCredentials, candidate: &Candidate) -> SuccessKey {
        // The fingerprint has one length and a user has no colon, so no other three values give the same bytes.
        let mut mac = self.mac.clone();
        mac.update(&candidate.fingerprint());
        mac.update(credentials.user_and_password().as_bytes());
        SuccessKey(mac.finalize().into_bytes().into())
    }
}

/// Without the key.
impl fmt::Debug for SuccessMac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SuccessMac").finish_non_exhaustive()
    }
}

impl Successes {
    /// The time for which a success is remembered. Requests in that time do not prolong it.
    pub const TIME: Duration = Duration::from_secs(5 * 60);

    /// The most successes; of more the eldest is forgotten.
    pub const COUNT_MAX: usize = 4096;

    /// Whether these credentials were right less than [`Self::TIME`] ago. `now` is the time since a moment that the
    /// caller chooses.
    #[must_use]
    pub fn contains(&self, key: &SuccessKey, now: Duration) -> bool {
        // Comparing byte by byte tells nobody anything: without the secret no key can be chosen.
        self.ends.get(key).is_some_and(|end| now < *end)
    }

    /// Remembers that [`Candidate::verify`] said yes.
    pub fn insert(&mut self, key: SuccessKey, now: Duration) {
        // Two requests may have been hashed at the same time: the first counts.
        if self.contains(&key, now) {
            return;
        }
        while let Some(eldest) = self.by_age.front()
            && (self.by_age.len() == Self::COUNT_MAX || !self.contains(eldest, now))
        {
            self.ends.remove(eldest);
            self.by_age.pop_front();
        }
        self.ends.insert(key, now.saturating_add(Self::TIME));
        self.by_age.push_back(key);
    }

    /// The number of successes that take memory.
    #[must_use]
    pub fn len(&self) -> usize {
        self.by_age.len()
    }

    /// Whether nothing is remembered.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.by_age.is_empty()
    }
}

#[cfg(test)]
mod tests;

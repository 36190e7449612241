//! What is asked of memcached: which operations, on which keys, with which values.

use std::num::{NonZeroU32, NonZeroU64, NonZeroUsize};

use catamaran_memcache::Dialect;

use super::{Numbers, Pace, Plan, Protocol, Request, Samples, Stop, WarmUp};
use crate::memcached::{KEY_START, VALUE_OVERHEAD};

/// The keys and values of operations on memcached.
#[derive(Clone, Debug, PartialEq)]
pub struct Memcached {
    /// Which commands are spoken.
    pub dialect: Dialect,
    /// The number of keys: `catamaran:0` and so on.
    pub keys: NonZeroU64,
    /// Which of them is next.
    pub order: KeyOrder,
    /// The length of a value in bytes: at least [`Memcached::value_min`].
    pub value_bytes: usize,
}

/// Which key an operation is about.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum KeyOrder {
    /// All keys equally often, by chance.
    Uniform,
    /// The key of rank k so often as k to the power of minus this, by chance: the lower its number, the
    /// more often. Above zero.
    Zipf(f64),
    /// One after the other, and then from the first one again.
    InTurn,
}

/// An operation on a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Asks for its value.
    Get,
    /// Stores a value.
    Set,
}

impl Operation {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Get, Self::Set];

    /// Its word on the command line and in reports, and the method of its request.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::Set => "set",
        }
    }

    /// The operation of this word.
    pub fn named(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.word() == word)
    }
}

impl Memcached {
    /// The shortest value that has room for its key and its checksum, in bytes.
    pub fn value_min(&self) -> usize {
        let last = self.keys.get() - 1;
        KEY_START.len() + last.checked_ilog10().unwrap_or(0) as usize + 1 + VALUE_OVERHEAD
    }
}

impl Plan {
    /// The plan that stores a value under each of the keys, before this one is measured. `None`: it is not
    /// about memcached.
    #[must_use]
    pub fn prefill(&self) -> Option<Self> {
        let [target] = self.targets.as_slice() else {
            return None;
        };
        let Protocol::Memcached(asked) = &target.endpoint.protocol else {
            return None;
        };
        let keys = asked.keys;
        let mut target = target.clone();
        target.endpoint.protocol = Protocol::Memcached(Memcached {
            order: KeyOrder::InTurn,
            ..asked.clone()
        });
        target.requests = vec![Request::operation(Operation::Set, NonZeroU32::MIN)];
        let most = usize::try_from(keys.get()).unwrap_or(usize::MAX);
        let concurrency = self.pace.connections().get().min(most).min(CONNECTIONS_MAX);
        let mut connections = self.connections.clone();
        connections.keep_alive = true;
        connections.requests_max = None;
        connections.pipeline = PIPELINE;
        Some(Self {
            targets: vec![target],
            pace: Pace::Closed {
                concurrency: NonZeroUsize::new(concurrency).unwrap_or(NonZeroUsize::MIN),
                spacing: std::time::Duration::ZERO,
            },
            replay: None,
            stages: Vec::new(),
            stop: Stop {
                requests: Some(keys),
                duration: None,
                ..self.stop
            },
            warm_up: WarmUp::None,
            connections,
            samples: Samples::None,
            numbers: Numbers::default(),
            ..self.clone()
        })
    }
}

/// Connections that store values beforehand, at most.
const CONNECTIONS_MAX: usize = 8;

/// Sets that each of them sends before the first is answered.
const PIPELINE: NonZeroU32 = NonZeroU32::new(32).expect("above zero");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_has_room_for_the_longest_key() {
        let asked = |keys| Memcached {
            dialect: Dialect::Meta,
            keys: NonZeroU64::new(keys).unwrap(),
            order: KeyOrder::Uniform,
            value_bytes: 100,
        };
        // `catamaran:9 00000000 `
        for (keys, expected) in [(1, 21), (10, 21), (11, 22), (1_000_000, 26)] {
            assert_eq!(asked(keys).value_min(), expected, "{keys}");
        }
    }
}

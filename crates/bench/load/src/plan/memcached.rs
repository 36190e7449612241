//! The load on memcached: which operations, on which keys, with which values.

use std::num::{NonZeroU32, NonZeroU64, NonZeroUsize};

use catamaran_memcache::Dialect;

use super::{Numbers, Pace, Plan, Protocol, Request, Samples, Stop, WarmUp};
use crate::memcached::{KEY_START, VALUE_OVERHEAD};

/// The options of a load on memcached: protocol, keys and values.
#[derive(Clone, Debug, PartialEq)]
pub struct Memcached {
    /// The protocol: meta or text commands.
    pub dialect: Dialect,
    /// The number of keys; they are `catamaran:0`, `catamaran:1` and so on.
    pub keys: NonZeroU64,
    /// The rule by which the next key is chosen.
    pub order: KeyOrder,
    /// The length of a value in bytes: at least [`Memcached::value_min`].
    pub value_bytes: usize,
}

/// The rule by which an operation's key is chosen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum KeyOrder {
    /// A random key; all keys are equally frequent.
    Uniform,
    /// A random key by Zipf's law with this exponent, above zero: the frequency of the key of rank
    /// k is proportional to 1/k to the power of the exponent, so low numbers are frequent.
    Zipf(f64),
    /// The keys one after the other, again from the first one after the last.
    InTurn,
}

/// The kind of an operation on a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Gets the value of the key.
    Get,
    /// Stores a value under the key.
    Set,
}

impl Operation {
    /// All kinds of operations.
    pub const ALL: [Self; 2] = [Self::Get, Self::Set];

    /// The operation's word on the command line and in reports; it is also its request's method.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::Set => "set",
        }
    }

    /// The operation whose word is `word`; `None` if there is none.
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
    /// The plan of a run that stores a value under each key, before this one is measured. `None`:
    /// this plan is not about memcached.
    #[must_use]
    pub fn prefill(&self) -> Option<Self> {
        let [target] = self.targets.as_slice() else {
            return None;
        };
        let Protocol::Memcached(options) = &target.endpoint.protocol else {
            return None;
        };
        let keys = options.keys;
        let mut set_target = target.clone();
        set_target.endpoint.protocol = Protocol::Memcached(Memcached {
            order: KeyOrder::InTurn,
            ..options.clone()
        });
        set_target.requests = vec![Request::operation(Operation::Set, NonZeroU32::MIN)];
        // A connection without a key to store would be useless.
        let useful = usize::try_from(keys.get()).unwrap_or(usize::MAX);
        let connections_max = useful.min(CONNECTIONS_MAX);
        let concurrency = self.pace.connections().get().min(connections_max);
        let mut connections = self.connections.clone();
        connections.keep_alive = true;
        connections.requests_max = None;
        connections.pipeline = PIPELINE;
        Some(Self {
            targets: vec![set_target],
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

/// The most connections that store values beforehand.
const CONNECTIONS_MAX: usize = 8;

/// The number of sets that each connection sends before the first is answered.
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

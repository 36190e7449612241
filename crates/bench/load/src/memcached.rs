//! Writes operations on memcached, and checks the replies to them.
//!
//! The number of an operation in the run determines its key and the value that it stores, so that a
//! run can be repeated. [`value`] describes how a value contains its key and its checksum.

mod value;
mod zipf;

use std::io::Write as _;
use std::sync::Arc;

use catamaran_memcache::{Dialect, Key, MemcacheSkim, Reply, Skimmer, command};

pub(crate) use self::value::OVERHEAD as VALUE_OVERHEAD;
use self::value::{Check, Filler};
use self::zipf::Zipf;
use crate::client::Step;
use crate::pace;
use crate::plan::{KeyOrder, Memcached, Operation};
use crate::report::FailureKind;

/// The result of an operation that was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Hit,
    Miss,
    Stored,
}

/// Writes the operations of one kind, such as gets.
#[derive(Clone, Debug)]
pub(crate) struct Maker {
    operation: Operation,
    dialect: Dialect,
    keys: u64,
    order: Order,
    filler: Arc<Filler>,
    value_bytes: usize,
}

#[derive(Clone, Copy, Debug)]
enum Order {
    Uniform,
    Zipf(Zipf),
    InTurn,
}

/// An operation and its key, as they were sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeyOperation {
    operation: Operation,
    key: u64,
}

/// An operation with its bytes on the wire.
#[derive(Debug)]
pub(crate) struct OperationBytes {
    pub(crate) sent: KeyOperation,
    pub(crate) bytes: Vec<u8>,
    /// The number of `bytes` that are a value.
    pub(crate) value_bytes: usize,
}

impl Maker {
    pub(crate) fn new(operation: Operation, options: &Memcached) -> Self {
        Self {
            operation,
            dialect: options.dialect,
            keys: options.keys.get(),
            order: match options.order {
                KeyOrder::Uniform => Order::Uniform,
                KeyOrder::Zipf(exponent) => Order::Zipf(Zipf::new(options.keys, exponent)),
                KeyOrder::InTurn => Order::InTurn,
            },
            filler: Arc::new(Filler::new(match operation {
                Operation::Get => 0,
                Operation::Set => options.value_bytes,
            })),
            value_bytes: options.value_bytes,
        }
    }

    /// Writes the operation with the number `number` in the run, from 1.
    pub(crate) fn write(&self, seed: u64, number: u64) -> OperationBytes {
        let key = self.key(seed, number);
        // A u64 has at most 20 digits.
        let mut buffer = Vec::with_capacity(KEY_START.len() + 20);
        let key_bytes = write_key(key, &mut buffer);
        let valid_key = Key::new(key_bytes).expect("letters, a colon and digits");
        let mut bytes = Vec::new();
        let value_bytes = match self.operation {
            Operation::Get => {
                command::get(self.dialect, valid_key, &mut bytes);
                0
            }
            Operation::Set => {
                bytes.reserve_exact(self.value_bytes + COMMAND_BYTES);
                command::set(self.dialect, valid_key, self.value_bytes, &mut bytes);
                let filler = self.filler.piece(number, self.value_bytes);
                value::write(key_bytes, filler, self.value_bytes, &mut bytes);
                bytes.extend_from_slice(command::VALUE_END);
                self.value_bytes
            }
        };
        OperationBytes {
            sent: KeyOperation {
                operation: self.operation,
                key,
            },
            bytes,
            value_bytes,
        }
    }

    /// The number of the key that operation `number` of the run is on.
    fn key(&self, seed: u64, number: u64) -> u64 {
        let random = || pace::random(seed ^ STREAM, number as usize);
        match self.order {
            Order::Uniform => random().u64(..self.keys),
            Order::Zipf(zipf) => zipf.rank(&mut random()) - 1,
            Order::InTurn => number.saturating_sub(1) % self.keys,
        }
    }
}

/// The client's side of a connection: reads replies, and compares each with its operation.
#[derive(Debug)]
pub(crate) struct Client {
    skimmer: Skimmer,
    check: Check,
    key: Vec<u8>,
    /// The last complete reply; `None` before it.
    reply: Option<Reply>,
}

impl Client {
    pub(crate) fn new(dialect: Dialect) -> Self {
        Self {
            skimmer: Skimmer::new(dialect),
            check: Check::default(),
            key: Vec::new(),
            reply: None,
        }
    }

    /// Announces that the next reply is to the operation `sent`.
    pub(crate) fn expect(&mut self, sent: KeyOperation) {
        self.reply = None;
        match sent.operation {
            Operation::Set => self.skimmer.expect_set(),
            Operation::Get => {
                self.key.clear();
                let key_bytes = write_key(sent.key, &mut self.key);
                self.check.begin(key_bytes);
                if let Some(key) = Key::new(key_bytes) {
                    self.skimmer.expect_get(key);
                }
            }
        }
    }

    /// Takes the next step out of `input`, as [`client::Client::receive`](crate::client::Client::receive) does.
    pub(crate) fn receive(&mut self, input: &mut &[u8]) -> Result<Option<Step>, FailureKind> {
        let check = &mut self.check;
        let skimmed = self.skimmer.receive(input, |data| check.add(data));
        Ok(match skimmed.map_err(failure)? {
            None => None,
            Some(MemcacheSkim::Line(bytes)) => Some(Step::Head {
                status: ANSWERED,
                bytes: bytes as u64,
                has_length: true,
            }),
            Some(MemcacheSkim::Data(bytes)) => Some(Step::Body(bytes as u64)),
            Some(MemcacheSkim::End(reply)) => {
                self.reply = Some(reply);
                Some(Step::End)
            }
        })
    }

    pub(crate) fn can_reuse(&self) -> bool {
        self.skimmer.is_idle()
    }

    /// The result of the last operation. The error is a failure after which the connection can still be used.
    pub(crate) fn outcome(&self) -> Result<Outcome, FailureKind> {
        match self.reply {
            Some(Reply::Value { is_own: true }) if self.check.is_right() => Ok(Outcome::Hit),
            Some(Reply::Value { .. }) => Err(FailureKind::WrongValue),
            Some(Reply::Miss) => Ok(Outcome::Miss),
            Some(Reply::Stored) => Ok(Outcome::Stored),
            Some(Reply::NotStored) | None => Err(FailureKind::NotStored),
            Some(Reply::Refused) => Err(FailureKind::ServerError),
        }
    }

    /// The server's message of the last refusal; empty if there was none.
    pub(crate) fn error_message(&self) -> &str {
        self.skimmer.error_message()
    }
}

/// The kind of failure that a fault of the memcached protocol is.
fn failure(fault: catamaran_memcache::Fault) -> FailureKind {
    use catamaran_memcache::Fault;
    match fault {
        Fault::Unsolicited => FailureKind::Excess,
        Fault::Misunderstood => FailureKind::ServerError,
        Fault::Reply | Fault::LineTooLong | Fault::ValueEnd => FailureKind::BadReply,
    }
}

/// Appends the key with this number to `out`; returns it.
fn write_key(number: u64, out: &mut Vec<u8>) -> &[u8] {
    out.extend_from_slice(KEY_START.as_bytes());
    write!(out, "{number}").expect("a vector takes all");
    out
}

/// The prefix of all keys, so that keys of other applications are not touched.
pub(crate) const KEY_START: &str = "catamaran:";

/// The status of every answer of memcached. Its protocol has no statuses, but records of answers need one.
const ANSWERED: u16 = 200;

/// The room for the bytes of a set besides its value; no command needs more.
const COMMAND_BYTES: usize = 64;

/// A constant that makes the random numbers of keys independent of those of schedules, placeholders and
/// weights.
const STREAM: u64 = 0x6B65_7973_0000_0001;

#[cfg(test)]
mod tests {
    use std::num::NonZeroU64;

    use super::*;

    fn maker(operation: Operation, order: KeyOrder) -> Maker {
        let asked = Memcached {
            dialect: Dialect::Text,
            keys: NonZeroU64::new(1000).unwrap(),
            order,
            value_bytes: 40,
        };
        Maker::new(operation, &asked)
    }

    #[test]
    fn the_number_determines_the_operation() {
        let get = maker(Operation::Get, KeyOrder::Uniform);
        let set = maker(Operation::Set, KeyOrder::Uniform);
        for number in 1..100 {
            let (one, other) = (set.write(7, number), set.write(7, number));
            assert_eq!(one.bytes, other.bytes);
            // A get of the same number is of the same key.
            assert_eq!(get.write(7, number).sent.key, one.sent.key);
        }
        let keys = |seed| {
            (1..100)
                .map(|number| get.write(seed, number).sent.key)
                .collect::<Vec<_>>()
        };
        assert_ne!(keys(7), keys(8));
        assert!(keys(7).iter().all(|key| *key < 1000));
    }

    #[test]
    fn keys_in_turn_are_all_of_them() {
        let set = maker(Operation::Set, KeyOrder::InTurn);
        let keys: Vec<u64> = (1..=1001)
            .map(|number| set.write(1, number).sent.key)
            .collect();
        let expected: Vec<u64> = (0..1000).chain([0]).collect();
        assert_eq!(keys, expected);
    }

    /// The outcome of a get of key 5 whose reply has the value `value`.
    fn outcome_of(value: &[u8]) -> Result<Outcome, FailureKind> {
        let mut client = Client::new(Dialect::Text);
        let (operation, key) = (Operation::Get, 5);
        client.expect(KeyOperation { operation, key });
        let head = format!("VALUE catamaran:5 0 {}\r\n", value.len());
        let reply = [head.as_bytes(), value, b"\r\nEND\r\n"].concat();
        let mut input = &reply[..];
        while client.receive(&mut input).unwrap() != Some(Step::End) {}
        assert!(client.can_reuse() && input.is_empty());
        client.outcome()
    }

    #[test]
    fn a_value_of_another_key_or_with_another_byte_is_wrong() {
        let set = maker(Operation::Set, KeyOrder::InTurn);
        let value_of = |number| {
            let bytes = set.write(1, number).bytes;
            let end = bytes.len() - command::VALUE_END.len();
            bytes[end - 40..end].to_vec()
        };
        let own = value_of(6);
        assert_eq!(outcome_of(&own), Ok(Outcome::Hit));
        // One that was stored later, by another operation.
        assert_ne!(own, value_of(1006));
        assert_eq!(outcome_of(&value_of(1006)), Ok(Outcome::Hit));
        let wrong = Err(FailureKind::WrongValue);
        assert_eq!(outcome_of(&value_of(7)), wrong);
        assert_eq!(outcome_of(&own[..39]), wrong);
        assert_eq!(outcome_of(b""), wrong);
        assert_eq!(outcome_of(&[&own[..], b"x"].concat()), wrong);
        for at in 0..own.len() {
            let mut damaged = own.clone();
            damaged[at] ^= 1;
            assert_eq!(outcome_of(&damaged), wrong, "byte {at}");
        }
    }
}

//! Reads replies from a borrowed slice, and keeps nothing of them but the line of a refusal.

use thiserror::Error;

use crate::{Dialect, Key};

/// Reads the replies of one connection, in the order of the commands.
///
/// ```text
/// Idle --expect--> Line --> Data --> DataEnd --> Idle
///                    └── a line that is all ──► Idle
/// any state --> Failed on a fault
/// ```
#[derive(Clone, Debug)]
pub struct Skimmer {
    dialect: Dialect,
    state: State,
    /// The key that was asked for.
    key: Vec<u8>,
    /// The line of the last refusal, or of the fault.
    error_line: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Idle,
    /// Waiting for the first line of the reply to a get or a set.
    Line {
        is_get: bool,
    },
    /// `left` bytes of the value are still to come.
    Data {
        left: u64,
        is_own: bool,
    },
    /// The value is complete; its ending is still to come.
    DataEnd {
        is_own: bool,
    },
    /// The reply was a single line.
    Done(Reply),
    Failed(Fault),
}

/// An event that [`Skimmer::receive`] found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemcacheSkim {
    /// The first line of a reply; the number of its bytes, including its ending.
    Line(usize),
    /// This many bytes of the value were passed to the caller.
    Data(usize),
    /// The reply is complete; comes once after every line.
    End(Reply),
}

/// The meaning of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply {
    /// A value was found.
    Value {
        /// Whether the reply names the key that was asked for.
        is_own: bool,
    },
    /// There is no value under the key.
    Miss,
    /// The value was stored.
    Stored,
    /// The server did not store the value, but reports no error.
    NotStored,
    /// `SERVER_ERROR`: the server failed, and the connection can be used again. [`Skimmer::error_message`] has the
    /// error line.
    Refused,
}

/// Why a connection cannot be used any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Fault {
    /// The bytes are no reply to the command.
    #[error("the reply is none to what was asked")]
    Reply,
    /// A line that is longer than any reply.
    #[error("a line of the reply is longer than {LINE_BYTES_MAX} bytes")]
    LineTooLong,
    /// The value is longer than its line announced, or another line follows it.
    #[error("what follows the value is not the end of the reply")]
    ValueEnd,
    /// `ERROR` or `CLIENT_ERROR`: the server did not understand what it read, so it is unknown what it
    /// reads next.
    #[error("the server did not understand the command")]
    Misunderstood,
    /// Bytes arrived when no reply was expected.
    #[error("there were bytes while no reply was due")]
    Unsolicited,
}

impl Skimmer {
    /// A reader for a connection that uses `dialect`.
    #[must_use]
    pub const fn new(dialect: Dialect) -> Self {
        Self {
            dialect,
            state: State::Idle,
            key: Vec::new(),
            error_line: String::new(),
        }
    }

    /// Expects the reply to a get of this key next.
    pub fn expect_get(&mut self, key: Key<'_>) {
        self.key.clear();
        self.key.extend_from_slice(key.as_bytes());
        self.error_line.clear();
        self.state = State::Line { is_get: true };
    }

    /// Expects the reply to a set next.
    pub fn expect_set(&mut self) {
        self.error_line.clear();
        self.state = State::Line { is_get: false };
    }

    /// Whether all replies that were expected are complete, and the connection can go on.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.state == State::Idle
    }

    /// The error line of a [`Reply::Refused`] or [`Fault::Misunderstood`], until the next reply is
    /// expected; otherwise empty.
    #[must_use]
    pub fn error_message(&self) -> &str {
        &self.error_line
    }

    /// Takes the next event out of `input`; `None` if it needs more bytes: call again with the bytes left
    /// in `input` and more after them. Passes the bytes of a value to `sink`.
    ///
    /// # Errors
    /// [`Fault`]; every further call returns the same.
    pub fn receive(
        &mut self,
        input: &mut &[u8],
        mut sink: impl FnMut(&[u8]),
    ) -> Result<Option<MemcacheSkim>, Fault> {
        match self.state {
            State::Idle if input.is_empty() => Ok(None),
            State::Idle => Err(self.fail(Fault::Unsolicited)),
            State::Line { is_get } => self.receive_line(input, is_get),
            State::Data { .. } if input.is_empty() => Ok(None),
            State::Data { left, is_own } => {
                let len = usize::try_from(left).map_or(input.len(), |left| left.min(input.len()));
                let (data, after) = input.split_at(len);
                *input = after;
                sink(data);
                self.state = match left - len as u64 {
                    0 => State::DataEnd { is_own },
                    left => State::Data { left, is_own },
                };
                Ok(Some(MemcacheSkim::Data(len)))
            }
            State::DataEnd { is_own } => self.receive_data_end(input, is_own),
            State::Done(reply) => {
                self.state = State::Idle;
                Ok(Some(MemcacheSkim::End(reply)))
            }
            State::Failed(fault) => Err(fault),
        }
    }

    /// Reads the first line of a reply.
    fn receive_line(
        &mut self,
        input: &mut &[u8],
        is_get: bool,
    ) -> Result<Option<MemcacheSkim>, Fault> {
        let beginning = &input[..input.len().min(LINE_BYTES_MAX)];
        let Some(end) = beginning.iter().position(|byte| *byte == b'\n') else {
            if input.len() >= LINE_BYTES_MAX {
                return Err(self.fail(Fault::LineTooLong));
            }
            return Ok(None);
        };
        let Some(line) = input[..end].strip_suffix(b"\r") else {
            return Err(self.fail(Fault::Reply));
        };
        let next = if is_get {
            self.value_line(line)
        } else {
            set_reply(self.dialect, line).map(State::Done)
        };
        self.state = match next {
            Some(state) => state,
            None => self.refusal(line),
        };
        if let State::Failed(fault) = self.state {
            return Err(fault);
        }
        *input = &input[end + 1..];
        Ok(Some(MemcacheSkim::Line(end + 1)))
    }

    /// The state after the first line of a get's reply; `None` if the line is malformed.
    fn value_line(&self, line: &[u8]) -> Option<State> {
        let mut words = line.split(|byte| *byte == b' ');
        let (key, length) = match (self.dialect, words.next()?) {
            // Versions differ in whether they repeat the flags that were asked for.
            (Dialect::Meta, b"EN") => {
                let is_own = words.all(|flag| flag.strip_prefix(b"k") == Some(&self.key[..]));
                return is_own.then_some(State::Done(Reply::Miss));
            }
            (Dialect::Text, b"END") => {
                let is_whole_line = words.next().is_none();
                return is_whole_line.then_some(State::Done(Reply::Miss));
            }
            (Dialect::Meta, b"VA") => {
                let length = number(words.next()?)?;
                let key = words.find_map(|flag| flag.strip_prefix(b"k"));
                (key?, length)
            }
            (Dialect::Text, b"VALUE") => {
                let key = words.next()?;
                let _flags = number(words.next()?)?;
                let length = number(words.next()?)?;
                if words.next().is_some() {
                    return None;
                }
                (key, length)
            }
            _ => return None,
        };
        let is_own = key == self.key;
        Some(match length {
            0 => State::DataEnd { is_own },
            left => State::Data { left, is_own },
        })
    }

    /// Reads the end of a value, and in the text dialect the end of the reply.
    fn receive_data_end(
        &mut self,
        input: &mut &[u8],
        is_own: bool,
    ) -> Result<Option<MemcacheSkim>, Fault> {
        let expected: &[u8] = match self.dialect {
            Dialect::Meta => b"\r\n",
            Dialect::Text => b"\r\nEND\r\n",
        };
        let len = input.len().min(expected.len());
        if input[..len] != expected[..len] {
            return Err(self.fail(Fault::ValueEnd));
        }
        if len < expected.len() {
            return Ok(None);
        }
        *input = &input[len..];
        self.state = State::Idle;
        Ok(Some(MemcacheSkim::End(Reply::Value { is_own })))
    }

    /// The state after an error line, or after a line that is no reply at all.
    fn refusal(&mut self, line: &[u8]) -> State {
        let state = if line.starts_with(b"SERVER_ERROR") {
            State::Done(Reply::Refused)
        } else if line == b"ERROR" || line.starts_with(b"CLIENT_ERROR") {
            State::Failed(Fault::Misunderstood)
        } else {
            return State::Failed(Fault::Reply);
        };
        let printable = |byte: &u8| match byte {
            b' '..=b'~' => char::from(*byte),
            _ => '?',
        };
        self.error_line = line.iter().map(printable).collect();
        state
    }

    fn fail(&mut self, fault: Fault) -> Fault {
        self.state = State::Failed(fault);
        fault
    }
}

fn set_reply(dialect: Dialect, line: &[u8]) -> Option<Reply> {
    match (dialect, line) {
        (Dialect::Meta, b"HD") | (Dialect::Text, b"STORED") => Some(Reply::Stored),
        (Dialect::Meta, b"NS") | (Dialect::Text, b"NOT_STORED") => Some(Reply::NotStored),
        _ => None,
    }
}

/// Parses a number of one to ten digits; `None` for anything else.
fn number(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() || digits.len() > DIGITS_MAX {
        return None;
    }
    let mut value = 0;
    for byte in digits {
        if !byte.is_ascii_digit() {
            return None;
        }
        value = value * 10 + u64::from(byte - b'0');
    }
    Some(value)
}

/// The longest line that is a reply, in bytes: a key of 250 bytes and numbers, or the text of an error.
const LINE_BYTES_MAX: usize = 1024;

/// The most digits of lengths and flags, which have 32 bits.
const DIGITS_MAX: usize = 10;

#[cfg(test)]
mod tests;

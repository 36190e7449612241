//! memcached's protocols on the client's side, without I/O: commands become bytes, bytes become events.
//!
//! Two dialects do the same: the meta commands (`mg`, `ms`) of memcached 1.6, and the text commands
//! (`get`, `set`) that all versions and other servers know. [`command`] writes them; a [`Skimmer`] reads
//! the replies in the order in which they were asked for. It keeps no value: the bytes are shown to the
//! caller as they come. The reference is `doc/protocol.txt` of memcached 1.6.
#![forbid(unsafe_code)]

pub mod command;
mod skim;

pub use skim::{Fault, MemcacheSkim, Reply, Skimmer};

/// The kind of commands that a connection uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// The meta commands, since memcached 1.6.
    #[default]
    Meta,
    /// The text commands.
    Text,
}

impl Dialect {
    /// The dialect's name on command lines and in files.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Meta => "meta",
            Self::Text => "text",
        }
    }

    /// The dialect with this name; `None` for any other word.
    #[must_use]
    pub fn named(word: &str) -> Option<Self> {
        [Self::Meta, Self::Text]
            .into_iter()
            .find(|dialect| dialect.word() == word)
    }
}

/// A key that is valid in both dialects: 1 to 250 bytes without spaces and control characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key<'a>(&'a [u8]);

impl<'a> Key<'a> {
    /// Checks a key; `None` if it is empty, too long, or has a space or control character.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Option<Self> {
        let is_plain = bytes.iter().all(|byte| *byte > b' ' && *byte != 0x7F);
        (is_plain && (1..=KEY_BYTES_MAX).contains(&bytes.len())).then_some(Self(bytes))
    }

    /// The bytes of the key.
    #[must_use]
    pub const fn as_bytes(self) -> &'a [u8] {
        self.0
    }
}

/// The longest key in bytes (`KEY_MAX_LENGTH`).
pub const KEY_BYTES_MAX: usize = 250;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_one_word() {
        for bytes in [&b"a"[..], b"user:42/\xc3\xa4", &[b'k'; KEY_BYTES_MAX]] {
            assert_eq!(Key::new(bytes).map(Key::as_bytes), Some(bytes));
        }
        let long = [b'k'; KEY_BYTES_MAX + 1];
        for bytes in [&b""[..], b"a b", b"a\r\nflush_all", b"\0", b"\x7f", &long] {
            assert_eq!(Key::new(bytes), None, "{bytes:?}");
        }
    }

    #[test]
    fn dialects_have_words() {
        for dialect in [Dialect::Meta, Dialect::Text] {
            assert_eq!(Dialect::named(dialect.word()), Some(dialect));
        }
        assert_eq!(Dialect::named("binary"), None);
    }
}

//! The tables of HPACK: the static one, and a dynamic one for each direction.

use catamaran_message::name::Protocol;
use catamaran_message::{Id, NameRef};

use super::{FieldLine, LineName, Pseudo, entry_size};

/// A dynamic table. Entries are numbered by their age: 0 is the newest.
///
/// The text of all entries is in one vector. Text of evicted entries stays at its beginning until it is more than half
/// of the vector, so each byte is moved at most once, and the memory is at most twice the table's size. Names with a
/// number take no text.
#[derive(Debug)]
pub(super) struct Table {
    /// The entries, the oldest first, in the same order as their text.
    entries: Vec<Entry>,
    text: Vec<u8>,
    /// The number of evicted entries at the beginning, and of the bytes of their text.
    evicted: usize,
    evicted_text: usize,
    /// The number of bytes that were removed before the beginning of `text`, modulo 2^32.
    passed: u32,
    size: usize,
    size_max: usize,
}

/// An entry of a table.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    /// The position of its name and value, counted from the first byte that the table ever had, modulo 2^32.
    at: u32,
    name_len: u32,
    value_len: u32,
    key: Key,
    /// The number of `key`.
    pub(super) number: u8,
    /// A value for the encoder: `made` when the entry before this one with the same number was made.
    pub(super) tag: u8,
}

/// A part of a name that is compared before the name's bytes are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Key {
    Pseudo(Pseudo),
    Known(Id),
    /// Any other name, by a hash of it: names with other hashes are different.
    Other(u8),
}

impl Key {
    #[inline]
    pub(super) fn of(name: LineName<'_>) -> Self {
        match name {
            LineName::Pseudo(pseudo) => Self::Pseudo(pseudo),
            LineName::Field(NameRef::Known(id)) => Self::Known(id),
            LineName::Field(NameRef::Other(text)) => {
                // The last letter in lower case.
                let last = text.last().map_or(0, |last| last | 0x20);
                Self::Other((text.len() as u8).wrapping_mul(5).wrapping_add(last) % OTHER_KEYS)
            }
        }
    }

    /// The key's number, below [`KEYS`].
    #[inline]
    pub(super) fn number(self) -> u8 {
        match self {
            Self::Known(id) => id.number(),
            Self::Pseudo(pseudo) => Id::COUNT + pseudo as u8,
            Self::Other(number) => FIRST_OTHER + number,
        }
    }

    /// The static table's entries with this name: the first index, and their number.
    pub(super) fn static_indices(self) -> (usize, usize) {
        match self {
            Self::Known(id) => match id.code(Protocol::Hpack) {
                Some(index) => (index.into(), 1),
                None => (0, 0),
            },
            Self::Pseudo(Pseudo::Authority) => (1, 1),
            Self::Pseudo(Pseudo::Method) => (2, 2),
            Self::Pseudo(Pseudo::Path) => (4, 2),
            Self::Pseudo(Pseudo::Scheme) => (6, 2),
            Self::Pseudo(Pseudo::Status) => (8, 7),
            Self::Pseudo(Pseudo::Protocol) | Self::Other(_) => (0, 0),
        }
    }
}

impl Table {
    pub(super) const fn new(size_max: usize) -> Self {
        Self {
            entries: Vec::new(),
            text: Vec::new(),
            evicted: 0,
            evicted_text: 0,
            passed: 0,
            size: 0,
            size_max,
        }
    }

    pub(super) fn size_max(&self) -> usize {
        self.size_max
    }

    pub(super) fn set_size_max(&mut self, size_max: usize) {
        self.size_max = size_max;
        self.evict_down_to(size_max);
    }

    /// The entry of this age; `None` if it was evicted or never made.
    #[inline]
    pub(super) fn entry(&self, age: usize) -> Option<&Entry> {
        let index = self.entries.len().checked_sub(age + 1)?;
        self.entries.get(index).filter(|_| index >= self.evicted)
    }

    /// The name and the value of an entry.
    #[inline]
    pub(super) fn line(&self, entry: &Entry) -> FieldLine<'_> {
        let name = match entry.key {
            Key::Pseudo(pseudo) => LineName::Pseudo(pseudo),
            Key::Known(id) => LineName::Field(NameRef::Known(id)),
            Key::Other(_) => LineName::Field(NameRef::Other(self.other_name(entry))),
        };
        FieldLine::new(name, self.value(entry))
    }

    /// The value of an entry.
    #[inline]
    pub(super) fn value(&self, entry: &Entry) -> &[u8] {
        let start = entry.at.wrapping_sub(self.passed) + entry.name_len;
        let end = start + entry.value_len;
        let value = self.text.get(start as usize..end as usize);
        value.unwrap_or_default()
    }

    /// The text of an entry's name; empty if the name has a number.
    pub(super) fn other_name(&self, entry: &Entry) -> &[u8] {
        let start = entry.at.wrapping_sub(self.passed);
        let end = start + entry.name_len;
        let name = self.text.get(start as usize..end as usize);
        name.unwrap_or_default()
    }

    /// Adds an entry. One that is larger than the table leaves it empty (RFC 7541, section 4.4).
    pub(super) fn insert(&mut self, name: LineName<'_>, value: &[u8], tag: u8) {
        let size = entry_size(name.as_bytes().len(), value.len());
        self.evict_down_to(self.size_max.saturating_sub(size));
        if size > self.size_max {
            return;
        }
        let key = Key::of(name);
        let name_text = match name {
            LineName::Field(NameRef::Other(text)) => text,
            _ => b"",
        };
        self.entries.push(Entry {
            at: self.passed.wrapping_add(self.text.len() as u32),
            name_len: name_text.len() as u32,
            value_len: value.len() as u32,
            key,
            number: key.number(),
            tag,
        });
        self.text.extend_from_slice(name_text);
        self.text.extend_from_slice(value);
        self.size += size;
    }

    /// Evicts the oldest entries until the others together have at most `size` bytes, and frees memory that they took.
    fn evict_down_to(&mut self, size: usize) {
        while self.size > size
            && let Some(entry) = self.entries.get(self.evicted)
        {
            let text_len = (entry.name_len + entry.value_len) as usize;
            self.size -= match entry.key {
                Key::Pseudo(pseudo) => entry_size(pseudo.as_bytes().len(), text_len),
                Key::Known(id) => entry_size(id.spelling().len(), text_len),
                // The text includes the name.
                Key::Other(_) => entry_size(0, text_len),
            };
            self.evicted += 1;
            self.evicted_text += text_len;
        }
        if self.evicted > self.entries.len() / 2 {
            self.entries.drain(..self.evicted);
            self.evicted = 0;
        }
        if self.evicted_text > self.text.len() / 2 {
            self.text.drain(..self.evicted_text);
            self.passed = self.passed.wrapping_add(self.evicted_text as u32);
            self.evicted_text = 0;
        }
    }
}

/// The static table (RFC 7541, appendix A), whose first index is 1.
pub(super) static STATIC: [FieldLine<'static>; 62] = {
    let mut table = [FieldLine::new(LineName::Pseudo(Pseudo::Authority), b""); 62];
    let mut index = 1;
    while index < table.len() {
        table[index] = FieldLine::new(static_name(index), static_value(index));
        index += 1;
    }
    table
};

const fn static_name(index: usize) -> LineName<'static> {
    LineName::Pseudo(match index {
        ..=1 => Pseudo::Authority,
        2 | 3 => Pseudo::Method,
        4 | 5 => Pseudo::Path,
        6 | 7 => Pseudo::Scheme,
        8..=14 => Pseudo::Status,
        _ => match Protocol::Hpack.names()[index] {
            Some(id) => return LineName::Field(NameRef::Known(id)),
            None => panic!("a name of the static table has no row"),
        },
    })
}

const fn static_value(index: usize) -> &'static [u8] {
    match index {
        2 => b"GET",
        3 => b"POST",
        4 => b"/",
        5 => b"/index.html",
        6 => b"http",
        7 => b"https",
        8 => b"200",
        9 => b"204",
        10 => b"206",
        11 => b"304",
        12 => b"400",
        13 => b"404",
        14 => b"500",
        16 => b"gzip, deflate",
        _ => b"",
    }
}

/// The number of keys.
pub(super) const KEYS: usize = (FIRST_OTHER + OTHER_KEYS) as usize;

/// The first number of keys that several names may share.
pub(super) const FIRST_OTHER: u8 = Id::COUNT + Pseudo::ALL.len() as u8;

const OTHER_KEYS: u8 = 16;

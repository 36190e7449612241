//! The encoder of HPACK.

use bytes::BytesMut;
use catamaran_message::Traits;

use super::table::{FIRST_OTHER, KEYS, Key, STATIC, Table};
use super::{
    FieldLine, HUFFMAN, INDEXED, LineName, NEVER_INDEXED, Pseudo, SIZE_UPDATE, TABLE_SIZE,
    WITH_INDEXING,
};
use crate::huffman;

/// Encodes the blocks of one connection. Its table has at most 4,096 bytes, even if the peer allows more.
#[derive(Debug)]
pub struct Encoder {
    table: Table,
    names: [NameState; KEYS],
    /// The number of entries made so far, modulo 256. The table never has so many at a time.
    made: u8,
    /// The largest size of the table in bytes: what the peer allows, but never more than 4,096.
    size_max: usize,
    /// The smallest `size_max` since the last block; `None` if it was not set.
    least_size: Option<usize>,
}

/// The state of a field name, by the number of its key.
#[derive(Clone, Copy, Debug)]
struct NameState {
    /// The value of `made` when the newest entry with this name was made.
    newest: u8,
    /// The number of entries with this name that were made since one of them was last used.
    unused: u8,
}

/// The ages of entries of the dynamic table; `None` if there is none.
struct EntryAges {
    /// The age of the newest entry that is the field.
    of_field: Option<usize>,
    /// The age of the newest entry that has the field's name, but another value.
    of_name: Option<usize>,
}

/// How a field that no table has is written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Indexing {
    With,
    Without,
    Never,
}

impl Default for Encoder {
    fn default() -> Self {
        Self::new()
    }
}

impl Encoder {
    /// An encoder for a peer that has not announced a table size.
    #[must_use]
    pub const fn new() -> Self {
        let none = NameState {
            newest: 0,
            unused: 0,
        };
        Self {
            table: Table::new(TABLE_SIZE),
            names: [none; KEYS],
            made: 0,
            size_max: TABLE_SIZE,
            least_size: None,
        }
    }

    /// Sets the peer's SETTINGS_HEADER_TABLE_SIZE. The next block announces the size that is used.
    pub fn set_table_size(&mut self, size: u32) {
        self.size_max = TABLE_SIZE.min(size as usize);
        let least = self.least_size.unwrap_or(self.size_max);
        self.least_size = Some(least.min(self.size_max));
    }

    /// Begins a block after what is in `out`. The whole block has to be sent before the next one.
    pub fn block<'e>(&'e mut self, out: &'e mut BytesMut) -> Block<'e> {
        if let Some(least) = self.least_size.take() {
            // If the size was lower in between, both sizes are announced (RFC 7541, section 4.2).
            for size in [least.min(self.table.size_max()), self.size_max] {
                if size != self.table.size_max() {
                    integer(SIZE_UPDATE, 5, size, out);
                    self.table.set_size_max(size);
                }
            }
        }
        Block { encoder: self, out }
    }

    /// Decides whether a field becomes an entry of the table: only if it is likely to repeat. Secret and unique values
    /// do not, nor fields larger than a quarter of the table. A name whose last [`UNUSED_MAX`] entries were never used
    /// gets no further ones until one of its entries is used.
    fn indexing(&self, line: &FieldLine<'_>, key: Key) -> Indexing {
        let traits = match line.name {
            LineName::Pseudo(Pseudo::Path) => Traits::UNIQUE,
            LineName::Pseudo(_) => Traits::NONE,
            LineName::Field(name) => name.traits(),
        };
        if line.is_never_indexed || traits.has_any(Traits::SECRET) {
            return Indexing::Never;
        }
        let is_kept = !traits.has_any(Traits::UNIQUE)
            && line.size() <= self.table.size_max() / 4
            && self.names[usize::from(key.number())].unused < UNUSED_MAX;
        if is_kept {
            Indexing::With
        } else {
            Indexing::Without
        }
    }

    /// Looks for entries like a field, whose key has this `number`. Entries with one number are linked, the newest
    /// first.
    #[inline]
    fn find(&self, line: &FieldLine<'_>, number: u8) -> EntryAges {
        let (mut of_name, mut least_age) = (None, 0);
        let mut made = self.names[usize::from(number)].newest;
        loop {
            let age = usize::from(self.made.wrapping_sub(made));
            // An entry that was evicted may have the age of a newer one: that has another number, or was visited
            // before.
            let entry = match self.table.entry(age) {
                Some(entry) if entry.number == number && age >= least_age => entry,
                _ => {
                    let of_field = None;
                    return EntryAges { of_field, of_name };
                }
            };
            let is_same_name = number < FIRST_OTHER
                || (self.table.other_name(entry)).eq_ignore_ascii_case(line.name.as_bytes());
            if is_same_name {
                if self.table.value(entry) == line.value {
                    let of_field = Some(age);
                    return EntryAges { of_field, of_name };
                }
                of_name = of_name.or(Some(age));
            }
            least_age = age + 1;
            made = entry.tag;
        }
    }

    /// Writes a field that the dynamic table does not have; `of_name` is the age of an entry with its name. Not
    /// inlined, so that the more frequent case of a repeated field needs few registers.
    #[inline(never)]
    fn write_other(&mut self, line: &FieldLine<'_>, of_name: Option<usize>, out: &mut BytesMut) {
        let key = Key::of(line.name);
        let indexing = self.indexing(line, key);
        let (first, count) = key.static_indices();
        let mut of_static = STATIC[first..first + count].iter();
        if indexing != Indexing::Never
            && let Some(offset) = of_static.position(|entry| entry.value == line.value)
        {
            return integer(INDEXED, 7, first + offset, out);
        }
        let (pattern, prefix) = match indexing {
            Indexing::With => (WITH_INDEXING, 6),
            Indexing::Without => (0, 4),
            Indexing::Never => (NEVER_INDEXED, 4),
        };
        // The index of an entry with the name, or 0. Indices of the static table are shorter.
        let index = match of_name {
            Some(age) if first == 0 => STATIC.len() + age,
            _ => first,
        };
        integer(pattern, prefix, index, out);
        if index == 0 {
            string(line.name.as_bytes().iter().map(u8::to_ascii_lowercase), out);
        }
        string(line.value.iter().copied(), out);
        if indexing == Indexing::With {
            self.insert(line, key);
        }
    }

    fn insert(&mut self, line: &FieldLine<'_>, key: Key) {
        let state = &mut self.names[usize::from(key.number())];
        self.table.insert(line.name, line.value, state.newest);
        self.made = self.made.wrapping_add(1);
        state.newest = self.made;
        state.unused += 1;
    }
}

/// A block that is being written.
#[derive(Debug)]
pub struct Block<'e> {
    encoder: &'e mut Encoder,
    out: &'e mut BytesMut,
}

impl Block<'_> {
    /// Writes a field with its name in lower case, or a pseudo-field.
    #[inline]
    pub fn field<'l>(&mut self, name: impl Into<LineName<'l>>, value: &'l [u8]) {
        self.line(&FieldLine::new(name.into(), value));
    }

    /// Writes a field that may be marked as never indexed.
    pub fn line(&mut self, line: &FieldLine<'_>) {
        let number = Key::of(line.name).number();
        let mut of_name = None;
        if !line.is_never_indexed {
            let ages = self.encoder.find(line, number);
            of_name = ages.of_name;
            if let Some(age) = ages.of_field {
                self.encoder.names[usize::from(number)].unused = 0;
                return integer(INDEXED, 7, STATIC.len() + age, self.out);
            }
        }
        self.encoder.write_other(line, of_name, self.out);
    }
}

/// Writes an integer whose first byte has `prefix` bits of it after `pattern` (RFC 7541, section 5.1).
#[inline]
fn integer(pattern: u8, prefix: u32, value: usize, out: &mut BytesMut) {
    let max = (1 << prefix) - 1;
    if value < max {
        out.extend_from_slice(&[pattern | value as u8]);
    } else {
        large_integer(pattern | max as u8, value - max, out);
    }
}

#[cold]
fn large_integer(first: u8, mut rest: usize, out: &mut BytesMut) {
    out.extend_from_slice(&[first]);
    while rest >= 0x80 {
        out.extend_from_slice(&[rest as u8 | 0x80]);
        rest >>= 7;
    }
    out.extend_from_slice(&[rest as u8]);
}

/// Writes a string, Huffman-coded if that is shorter.
fn string(text: impl ExactSizeIterator<Item = u8> + Clone, out: &mut BytesMut) {
    let coded_len = huffman::encoded_len(text.clone());
    if coded_len < text.len() {
        integer(HUFFMAN, 7, coded_len, out);
        huffman::encode(text, out);
    } else {
        integer(0, 7, text.len(), out);
        out.extend(text);
    }
}

/// After this many entries of a name in a row that were never used, no further ones are made.
const UNUSED_MAX: u8 = 4;

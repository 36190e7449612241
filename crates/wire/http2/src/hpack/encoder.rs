//! Fields become blocks.

use bytes::BytesMut;
use catamaran_message::Traits;

use super::table::{FIRST_OTHER, KEYS, Key, STATIC, Table};
use super::{
    FieldLine, HUFFMAN, INDEXED, LineName, NEVER_INDEXED, Pseudo, SIZE_UPDATE, TABLE_SIZE,
    WITH_INDEXING,
};
use crate::huffman;

/// The encoder of one connection's blocks. Its table has at most 4,096 bytes, whatever the peer allows.
#[derive(Debug)]
pub struct Encoder {
    table: Table,
    names: [NameState; KEYS],
    /// How many entries were made, modulo 256. There are never so many at a time.
    made: u8,
    /// The largest size of the table in bytes: what the peer allows, but never more than 4,096.
    size_max: usize,
    /// The smallest `size_max` since the last block; `None` if it was not set.
    least_size: Option<usize>,
}

/// What is known of a name, by the number of its key.
#[derive(Clone, Copy, Debug)]
struct NameState {
    /// `made` when its newest entry was made.
    newest: u8,
    /// Entries that were made since one of its entries was used.
    unused: u8,
}

/// What becomes of a field that is in no table.
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
    /// One for a peer that has said nothing of its table's size.
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

    /// The peer's SETTINGS_HEADER_TABLE_SIZE. The next block says what becomes of it.
    pub fn set_table_size(&mut self, size: u32) {
        self.size_max = TABLE_SIZE.min(size as usize);
        let least = self.least_size.unwrap_or(self.size_max);
        self.least_size = Some(least.min(self.size_max));
    }

    /// Begins a block behind what is in `out`. All that is written has to be sent, before another block.
    pub fn block<'e>(&'e mut self, out: &'e mut BytesMut) -> Block<'e> {
        if let Some(least) = self.least_size.take() {
            // If it was lower in between, both are said (RFC 7541, section 4.2).
            for size in [least.min(self.table.size_max()), self.size_max] {
                if size != self.table.size_max() {
                    integer(SIZE_UPDATE, 5, size, out);
                    self.table.set_size_max(size);
                }
            }
        }
        Block { encoder: self, out }
    }

    /// The one place that decides which fields are kept in the table: those that are likely to come again. Values that
    /// are secret or unique are not, nor those of more than a quarter of the table. A name whose last values all came
    /// once is given up until one of them comes again.
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

    /// The ages of the newest entry that is this field, and of the newest one that has its name.
    #[inline]
    fn find(&self, line: &FieldLine<'_>, number: u8) -> (Option<usize>, Option<usize>) {
        let (mut of_name, mut least_age) = (None, 0);
        let mut made = self.names[usize::from(number)].newest;
        loop {
            let age = usize::from(self.made.wrapping_sub(made));
            // An entry that is gone may seem to be one that was made later: that has another number, or was seen.
            let entry = match self.table.entry(age) {
                Some(entry) if entry.number == number && age >= least_age => entry,
                _ => return (None, of_name),
            };
            let is_same_name = number < FIRST_OTHER
                || (self.table.other_name(entry)).eq_ignore_ascii_case(line.name.as_bytes());
            if is_same_name {
                if self.table.value(entry) == line.value {
                    return (Some(age), of_name);
                }
                of_name = of_name.or(Some(age));
            }
            least_age = age + 1;
            made = entry.tag;
        }
    }

    /// Writes a field that the dynamic table does not have; `of_name` is the age of an entry that has its name. Not
    /// inlined, since a field that repeats needs few registers.
    #[inline(never)]
    fn write_other(&mut self, line: &FieldLine<'_>, of_name: Option<usize>, out: &mut BytesMut) {
        let key = Key::of(line.name);
        let indexing = self.indexing(line, key);
        let (first, count) = key.static_indices();
        let mut of_static = STATIC[first..first + count].iter();
        if indexing != Indexing::Never
            && let Some(at) = of_static.position(|entry| entry.value == line.value)
        {
            return integer(INDEXED, 7, first + at, out);
        }
        let (pattern, prefix) = match indexing {
            Indexing::With => (WITH_INDEXING, 6),
            Indexing::Without => (0, 4),
            Indexing::Never => (NEVER_INDEXED, 4),
        };
        let index = match (first, of_name) {
            (0, Some(age)) => STATIC.len() + age,
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
    /// Writes a field, its name in lower case, or a pseudo-field.
    #[inline]
    pub fn field<'l>(&mut self, name: impl Into<LineName<'l>>, value: &'l [u8]) {
        self.line(&FieldLine::new(name.into(), value));
    }

    /// The same, and whether it is never indexed.
    pub fn line(&mut self, line: &FieldLine<'_>) {
        let number = Key::of(line.name).number();
        let mut of_name = None;
        if !line.is_never_indexed {
            let of_line;
            (of_line, of_name) = self.encoder.find(line, number);
            if let Some(age) = of_line {
                self.encoder.names[usize::from(number)].unused = 0;
                return integer(INDEXED, 7, STATIC.len() + age, self.out);
            }
        }
        self.encoder.write_other(line, of_name, self.out);
    }
}

/// Writes an integer whose first byte has this many bits of it, behind a pattern (RFC 7541, section 5.1).
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

/// Writes a string in Huffman's code if that is shorter.
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

/// So many values of a name are kept in vain in a row.
const UNUSED_MAX: u8 = 4;

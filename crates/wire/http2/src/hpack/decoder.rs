//! The decoder of HPACK.

use std::ops::ControlFlow;

use super::table::{STATIC, Table};
use super::{
    Fault, FieldLine, HUFFMAN, INDEXED, LineName, NEVER_INDEXED, SIZE_UPDATE, TABLE_SIZE,
    WITH_INDEXING,
};
use crate::huffman;

/// Decodes the blocks of one connection, in the order in which they were received.
#[derive(Debug)]
pub struct Decoder {
    table: Table,
    /// Our SETTINGS_HEADER_TABLE_SIZE that the peer has acknowledged, in bytes.
    size_limit: usize,
    /// The table size with which the next block must begin at most; `None` if it need not begin with one.
    update_due: Option<usize>,
}

/// Memory for Huffman-coded strings, which connections may share.
#[derive(Debug, Default)]
pub struct Scratch {
    name: Vec<u8>,
    value: Vec<u8>,
}

impl Scratch {
    /// Frees memory that a large block took.
    pub(crate) fn shrink(&mut self) {
        for text in [&mut self.name, &mut self.value] {
            text.clear();
            text.shrink_to(SCRATCH_KEPT);
        }
    }
}

impl Default for Decoder {
    fn default() -> Self {
        Self::new()
    }
}

impl Decoder {
    /// A decoder with a table of 4,096 bytes, the size without a setting. It has allocated nothing yet.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            table: Table::new(TABLE_SIZE),
            size_limit: TABLE_SIZE,
            update_due: None,
        }
    }

    /// Sets the SETTINGS_HEADER_TABLE_SIZE that the peer has acknowledged. If the peer's table may be larger, its next
    /// block must begin by reducing it (RFC 9113, section 4.3.1).
    pub fn set_table_size(&mut self, size: u32) {
        self.size_limit = size as usize;
        let allowed = self.update_due.unwrap_or_else(|| self.table.size_max());
        if self.size_limit < allowed {
            self.update_due = Some(self.size_limit);
        }
    }

    /// Decodes a whole block and passes its fields to `visit` in order. Returns the size of the list (RFC 9113, section
    /// 6.5.2). The field that takes the list beyond `list_max`, and those after it, are not passed; nor are those after
    /// a field at which `visit` breaks. The table is updated in all these cases.
    ///
    /// # Errors
    /// A [`Fault`], with which the connection ends.
    pub fn decode(
        &mut self,
        block: &[u8],
        list_max: usize,
        scratch: &mut Scratch,
        mut visit: impl FnMut(FieldLine<'_>) -> ControlFlow<()>,
    ) -> Result<usize, Fault> {
        let mut rest = block;
        self.take_size_updates(&mut rest)?;
        let mut size = 0_usize;
        let mut is_visiting = true;
        let mut pass = |line: FieldLine<'_>| {
            size = size.saturating_add(line.size());
            is_visiting = is_visiting && size <= list_max && visit(line).is_continue();
        };
        while let Some(&first) = rest.first() {
            let prefix = match first {
                INDEXED.. => {
                    pass(self.line(integer(&mut rest, 7)?)?);
                    continue;
                }
                WITH_INDEXING.. => 6,
                SIZE_UPDATE.. => return Err(Fault::TableSize),
                _ => 4,
            };
            let name = match integer(&mut rest, prefix)? {
                0 => LineName::read(string(&mut rest, &mut scratch.name)?),
                // The new entry may evict the one whose name it takes.
                index => self.line(index)?.name.copied(&mut scratch.name),
            };
            let value = string(&mut rest, &mut scratch.value)?;
            pass(FieldLine {
                name,
                value,
                is_never_indexed: (NEVER_INDEXED..SIZE_UPDATE).contains(&first),
            });
            if first >= WITH_INDEXING {
                self.table.insert(name, value, 0);
            }
        }
        Ok(size)
    }

    /// Takes the updates of the table's size with which a block may begin, or must if the setting was lowered.
    fn take_size_updates(&mut self, rest: &mut &[u8]) -> Result<(), Fault> {
        while let Some(SIZE_UPDATE..WITH_INDEXING) = rest.first() {
            let size = integer(rest, 5)?;
            if size > self.update_due.take().unwrap_or(self.size_limit) {
                return Err(Fault::TableSize);
            }
            self.table.set_size_max(size);
        }
        match self.update_due {
            Some(_) => Err(Fault::TableSize),
            None => Ok(()),
        }
    }

    /// The entry of either table that has this index.
    #[inline]
    fn line(&self, index: usize) -> Result<FieldLine<'_>, Fault> {
        let line = match index.checked_sub(STATIC.len()) {
            Some(age) => self.table.entry(age).map(|entry| self.table.line(entry)),
            // The indices begin with 1.
            None if index == 0 => None,
            None => Some(STATIC[index]),
        };
        line.ok_or(Fault::Index)
    }
}

/// Takes an integer, of which `prefix` bits are in the first byte (RFC 7541, section 5.1).
#[inline]
fn integer(rest: &mut &[u8], prefix: u32) -> Result<usize, Fault> {
    let max = (1 << prefix) - 1;
    let mut value = usize::from(take(rest)?) & max;
    if value < max {
        return Ok(value);
    }
    for shift in [0, 7, 14, 21] {
        let byte = take(rest)?;
        value += usize::from(byte & 0x7F) << shift;
        if byte & 0x80 == 0 {
            return Ok(value);
        }
    }
    Err(Fault::Integer)
}

/// Takes a string, decoded into `buffer` if it is Huffman-coded (RFC 7541, section 5.2).
#[inline]
fn string<'s, 'b: 's>(rest: &mut &'b [u8], buffer: &'s mut Vec<u8>) -> Result<&'s [u8], Fault> {
    let is_coded = rest.first().is_some_and(|first| first & HUFFMAN != 0);
    let len = integer(rest, 7)?;
    let (text, after) = rest.split_at_checked(len).ok_or(Fault::Truncated)?;
    *rest = after;
    if !is_coded {
        return Ok(text);
    }
    buffer.clear();
    huffman::decode(text, buffer)?;
    Ok(buffer)
}

#[inline]
fn take(rest: &mut &[u8]) -> Result<u8, Fault> {
    rest.split_off_first().copied().ok_or(Fault::Truncated)
}

/// The most bytes of memory for one string that are kept after a block.
const SCRATCH_KEPT: usize = 1024;

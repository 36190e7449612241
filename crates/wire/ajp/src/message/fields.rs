//! Header fields as both kinds of head carry them: a code or a string, then a value.
//!
//! A name that starts with the byte `A0` is a code of two bytes; anything else is the length of a
//! literal name, which must therefore be shorter than `A000`. The count in front is not trusted
//! beyond what the payload can hold. [`ReceivedFields`] yields views in order and stops at the first fault.

use catamaran_message::name::Protocol;
use catamaran_message::{Field, Id};

use crate::code;
use crate::error::DecodeError;
use crate::wire::{Reader, Writer};

/// The fields of one head, read one by one.
#[derive(Clone, Debug)]
pub struct ReceivedFields<'a> {
    reader: Reader<'a>,
    left: u16,
    names: &'static [Option<Id>],
}

/// A header field, as views into the payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceivedField<'a> {
    /// The name: a code or a text.
    pub name: FieldName<'a>,
    /// The value; `None` is the null string.
    pub value: Option<&'a [u8]>,
}

/// The name of a field in a payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldName<'a> {
    /// A code, as the name in the table that it stands for.
    Coded(Id),
    /// A literal name, as received: neither checked nor in lower case.
    Literal(&'a [u8]),
}

impl<'a> ReceivedFields<'a> {
    /// Reads the number of fields, and leaves the fields for iteration.
    pub(crate) fn read(mut reader: Reader<'a>, protocol: Protocol) -> Result<Self, DecodeError> {
        let left = reader.u16()?;
        if usize::from(left) * FIELD_BYTES_MIN > reader.rest().len() {
            return Err(DecodeError::FieldCount(left));
        }
        Ok(Self {
            reader,
            left,
            names: protocol.names(),
        })
    }

    /// The number of fields still to be read, according to the announced number.
    pub fn left(&self) -> usize {
        usize::from(self.left)
    }

    /// Skips the fields that were not read, and returns the reader for the bytes after them.
    pub(crate) fn into_reader(mut self) -> Result<Reader<'a>, DecodeError> {
        for field in &mut self {
            field?;
        }
        Ok(self.reader)
    }

    fn field(&mut self) -> Result<ReceivedField<'a>, DecodeError> {
        let code_or_len = self.reader.u16()?;
        let name = match code_or_len.to_be_bytes() {
            [code::FIELD_CODE, number] => {
                let name = self.names.get(usize::from(number)).copied().flatten();
                FieldName::Coded(name.ok_or(DecodeError::FieldCode(number))?)
            }
            _ if code_or_len >= NAME_BYTES_END => return Err(DecodeError::FieldNameLength),
            _ => FieldName::Literal(self.reader.terminated(code_or_len)?),
        };
        let value = self.reader.string()?;
        Ok(ReceivedField { name, value })
    }
}

impl<'a> Iterator for ReceivedFields<'a> {
    type Item = Result<ReceivedField<'a>, DecodeError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        let field = self.field();
        if field.is_err() {
            self.left = 0;
        }
        Some(field)
    }
}

/// Appends a field under its code in `protocol`, or under its name as received. Inlined, because a call would take a
/// tenth of the time of a field.
#[inline(always)]
pub(crate) fn encode(field: Field<'_>, protocol: Protocol, writer: &mut Writer<'_>) {
    match field.id().and_then(|id| id.code(protocol)) {
        Some(number) => writer.strings([code::FIELD_CODE, number], [field.value()]),
        None => writer.strings([], [field.name(), field.value()]),
    }
}

/// The size of the shortest field: a coded name and a null value.
const FIELD_BYTES_MIN: usize = 4;

/// The first length that a literal name cannot have.
const NAME_BYTES_END: u16 = 0xA000;

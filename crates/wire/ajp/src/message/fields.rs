//! Header fields as both kinds of head carry them: a code or a string, then a value.
//!
//! A name that starts with the byte `A0` is a code of two bytes; anything else is the length of a
//! literal name, which must therefore be shorter than `A000`. The count in front is not trusted
//! beyond what the payload can hold. [`Fields`] yields views in order and stops at the first fault.

use http::HeaderName;

use crate::code::{self, FieldTable};
use crate::error::DecodeError;
use crate::wire::{Reader, Writer};

/// The fields of one head, read one by one.
#[derive(Clone, Debug)]
pub struct Fields<'a> {
    reader: Reader<'a>,
    left: u16,
    table: &'static FieldTable,
}

/// One field as it stands in the payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field<'a> {
    /// Its name.
    pub name: FieldName<'a>,
    /// Its value; `None` is the null string.
    pub value: Option<&'a [u8]>,
}

/// A field name as it stands in the payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldName<'a> {
    /// A code, looked up.
    Coded(&'static HeaderName),
    /// Spelt out; neither checked nor lowered.
    Literal(&'a [u8]),
}

impl<'a> Fields<'a> {
    /// Reads the count, and leaves the fields for iteration.
    pub(crate) fn read(
        mut reader: Reader<'a>,
        table: &'static FieldTable,
    ) -> Result<Self, DecodeError> {
        let left = reader.u16()?;
        if usize::from(left) * FIELD_BYTES_MIN > reader.rest().len() {
            return Err(DecodeError::FieldCount(left));
        }
        Ok(Self {
            reader,
            left,
            table,
        })
    }

    /// How many fields are still to come, according to the count.
    pub fn left(&self) -> usize {
        usize::from(self.left)
    }

    /// The reader behind the last field, once all were read.
    pub(crate) fn into_reader(mut self) -> Result<Reader<'a>, DecodeError> {
        for field in &mut self {
            field?;
        }
        Ok(self.reader)
    }

    fn field(&mut self) -> Result<Field<'a>, DecodeError> {
        let name = match self.reader.u16()?.to_be_bytes() {
            [code::FIELD_CODE, number] => FieldName::Coded(
                code::field_name(self.table, number).ok_or(DecodeError::FieldCode(number))?,
            ),
            len => match u16::from_be_bytes(len) {
                NAME_BYTES_END.. => return Err(DecodeError::FieldNameLength),
                len => FieldName::Literal(self.reader.terminated(len)?),
            },
        };
        let value = self.reader.string()?;
        Ok(Field { name, value })
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<Field<'a>, DecodeError>;

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

/// Appends the name of a field, which is in lower case, as a code where `table` has one.
#[inline]
pub(crate) fn encode_name(name: &str, table: &FieldTable, writer: &mut Writer<'_>) {
    match code::field_code(table, name) {
        Some(number) => writer.array([code::FIELD_CODE, number]),
        None => writer.string(name.as_bytes()),
    }
}

/// The shortest field: a coded name and a null value.
const FIELD_BYTES_MIN: usize = 4;

/// The shortest length that cannot be that of a literal name.
const NAME_BYTES_END: u16 = 0xA000;

//! Decodes one block of fields: separates pseudo-fields from the list of fields, and checks both.

use std::ops::ControlFlow;

use bytes::{Bytes, BytesMut};
use catamaran_message::field::{is_token_text, is_value_text};
use catamaran_message::name::{CONTENT_LENGTH, HOST, TE, TRAILER};
use catamaran_message::{Fields, NameRef, Traits, field};

use crate::conn::FLOOD_FACTOR;
use crate::error::{Fault, StreamFault};
use crate::hpack::{Decoder, FieldLine, LineName, Pseudo, Scratch};
use crate::limits::Limits;

/// The fields of one head, or of trailers.
#[derive(Debug, Default)]
pub(crate) struct ReceivedBlock {
    /// The lines of the fields and the values of pseudo-fields, while they are read. The memory is reused when no head
    /// shares it any more.
    text: BytesMut,
    /// The content of `text`, once the block is complete.
    pub(crate) bytes: Bytes,
    pub(crate) fields: Fields,
    /// For each pseudo-field, the beginning and the end of its value in `text`; `None` if it is missing.
    pseudo: [Option<(usize, usize)>; Pseudo::ALL.len()],
    /// The first fault that makes the message malformed.
    malformed: Option<StreamFault>,
    /// Whether the head is larger than [`Limits::head_bytes`], so that its last fields were not kept.
    is_too_large: bool,
    scratch: Scratch,
}

impl ReceivedBlock {
    /// Reads a block. Faults of the message are kept for [`Self::check`].
    ///
    /// # Errors
    /// A [`Fault`] of the connection: the block cannot be decoded, or is much too large.
    pub(crate) fn read(
        &mut self,
        decoder: &mut Decoder,
        block: &[u8],
        limits: &Limits,
    ) -> Result<(), Fault> {
        // Heads of one client are mostly of similar length.
        let expected_len = self.bytes.len().max(TEXT_MIN);
        self.clear();
        self.text.reserve(expected_len);
        let mut scratch = std::mem::take(&mut self.scratch);
        let size = decoder
            .decode(block, limits.head_bytes, &mut scratch, |line| {
                self.take(line)
            })
            .map_err(|_| Fault::Compression)?;
        self.scratch = scratch;
        self.is_too_large = size > limits.head_bytes;
        if size > limits.head_bytes.saturating_mul(FLOOD_FACTOR) {
            return Err(Fault::HeadFlood);
        }
        self.bytes = self.text.split().freeze();
        self.fields.keep(self.bytes.clone());
        // Clients split `Cookie` for better compression (section 8.2.3); it counts as one field against the limits.
        self.fields.join_cookies();
        Ok(())
    }

    /// Discards the block, but keeps its memory.
    pub(crate) fn clear(&mut self) {
        self.text.clear();
        self.bytes = Bytes::new();
        self.fields.clear();
        self.pseudo = Default::default();
        self.malformed = None;
        self.is_too_large = false;
    }

    /// Discards the block and frees its memory, except for buffers of a common size.
    pub(crate) fn shrink(&mut self) {
        self.clear();
        self.text = BytesMut::new();
        self.scratch.shrink();
    }

    /// Adds a field. Stops at the first field that makes the message malformed.
    fn take(&mut self, line: FieldLine<'_>) -> ControlFlow<()> {
        let result = match line.name {
            LineName::Pseudo(pseudo) => self.take_pseudo(pseudo, line.value),
            LineName::Field(name) => self.take_field(name, line.value),
        };
        match result {
            Ok(()) => ControlFlow::Continue(()),
            Err(fault) => {
                self.malformed = Some(fault);
                ControlFlow::Break(())
            }
        }
    }

    fn take_pseudo(&mut self, pseudo: Pseudo, value: &[u8]) -> Result<(), StreamFault> {
        let range = &mut self.pseudo[pseudo as usize];
        // Pseudo-fields come before all other fields, and each only once (section 8.3).
        if range.is_some() || !self.fields.is_empty() {
            return Err(StreamFault::Pseudo);
        }
        let from = self.text.len();
        *range = Some((from, from + value.len()));
        check_value(value)?;
        self.text.extend_from_slice(value);
        Ok(())
    }

    fn take_field(&mut self, name: NameRef<'_>, value: &[u8]) -> Result<(), StreamFault> {
        let (id, spelling) = match name {
            NameRef::Known(TE) if value != b"trailers" => return Err(StreamFault::Field),
            // Fields that concern a connection of HTTP/1.1 (section 8.2.2).
            NameRef::Known(id)
                if id != TE && id != TRAILER && id.traits().has_any(Traits::HOP_BY_HOP) =>
            {
                return Err(StreamFault::Field);
            }
            NameRef::Known(id) => (Some(id), id.spelling().as_bytes()),
            NameRef::Other(name) if is_lower_token(name) => (None, name),
            NameRef::Other([b':', ..]) => return Err(StreamFault::Pseudo),
            NameRef::Other(_) => return Err(StreamFault::Field),
        };
        check_value(value)?;
        let name_start = self.text.len();
        let name_end = name_start + spelling.len();
        let value_start = name_end + ": ".len();
        self.text.extend_from_slice(spelling);
        self.text.extend_from_slice(b": ");
        self.text.extend_from_slice(value);
        self.text.extend_from_slice(b"\r\n");
        let value_range = value_start..value_start + value.len();
        self.fields
            .push(id, name_start..name_end, value_range, true);
        Ok(())
    }

    /// Checks the rules and limits that hold for every head and for trailers.
    pub(crate) fn check(&self, limits: &Limits) -> Result<(), StreamFault> {
        if let Some(fault) = self.malformed {
            return Err(fault);
        }
        if self.is_too_large {
            return Err(StreamFault::HeadTooLarge);
        }
        if self.fields.len() > limits.fields {
            return Err(StreamFault::TooManyFields);
        }
        // A field cannot exceed the limit if all of them together do not.
        if self.bytes.len() <= limits.line_bytes {
            return Ok(());
        }
        let mut line_lengths = self
            .fields
            .iter()
            .map(|field| field.name().len() + 2 + field.value().len());
        if line_lengths.any(|length| length > limits.line_bytes) {
            return Err(StreamFault::FieldTooLong);
        }
        Ok(())
    }

    /// Takes the fields out, as trailers.
    pub(crate) fn take_trailers(&mut self, limits: &Limits) -> Result<Fields, StreamFault> {
        self.check(limits)?;
        if self.has_pseudo_but(&[]) {
            return Err(StreamFault::Pseudo);
        }
        Ok(std::mem::take(&mut self.fields))
    }

    /// The value of a pseudo-field; `None` if it is missing.
    #[inline]
    pub(crate) fn pseudo(&self, pseudo: Pseudo) -> Option<&[u8]> {
        let (from, to) = self.pseudo[pseudo as usize]?;
        self.bytes.get(from..to)
    }

    /// Whether there are pseudo-fields other than those in `allowed`.
    pub(crate) fn has_pseudo_but(&self, allowed: &[Pseudo]) -> bool {
        let mut all = Pseudo::ALL.into_iter();
        all.any(|pseudo| self.pseudo[pseudo as usize].is_some() && !allowed.contains(&pseudo))
    }

    /// Removes Content-Length from the fields and returns its value; `None` if there is none.
    pub(crate) fn take_content_length(&mut self) -> Result<Option<u64>, StreamFault> {
        if !self.fields.contains(CONTENT_LENGTH) {
            return Ok(None);
        }
        let length = self.fields.only(CONTENT_LENGTH).and_then(field::decimal);
        self.fields.remove(CONTENT_LENGTH);
        length.map(Some).ok_or(StreamFault::ContentLength)
    }

    /// The value of the Host field; `None` if there is none.
    ///
    /// # Errors
    /// There is more than one.
    pub(crate) fn host(&self) -> Result<Option<&[u8]>, StreamFault> {
        match self.fields.only(HOST) {
            None if self.fields.contains(HOST) => Err(StreamFault::HostDuplicate),
            host => Ok(host),
        }
    }
}

/// Checks that a value is one line without control characters, and without white space around it (section 8.2.1).
fn check_value(value: &[u8]) -> Result<(), StreamFault> {
    match value {
        [b' ' | b'\t', ..] | [.., b' ' | b'\t'] => Err(StreamFault::FieldValue),
        _ if !is_value_text(value) => Err(StreamFault::FieldValue),
        _ => Ok(()),
    }
}

/// Whether a name is a token without upper-case letters (section 8.2).
fn is_lower_token(name: &[u8]) -> bool {
    is_token_text(name) && !name.iter().any(u8::is_ascii_uppercase)
}

/// The least room for the text of a head, in bytes.
const TEXT_MIN: usize = 512;

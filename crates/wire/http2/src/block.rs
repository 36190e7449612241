//! One block of fields as it is decoded: pseudo-fields apart, the others as a list, and what is wrong with them.

use std::ops::ControlFlow;

use bytes::{Bytes, BytesMut};
use catamaran_message::field::{is_token_text, is_value_text};
use catamaran_message::name::{CONTENT_LENGTH, HOST, TE, TRAILER};
use catamaran_message::{Fields, Id, NameRef, Traits, field};

use crate::conn::FLOOD_FACTOR;
use crate::error::{Fault, StreamFault};
use crate::hpack::{Decoder, FieldLine, LineName, Pseudo, Scratch};
use crate::limits::Limits;

/// The fields of one head, or of trailers.
#[derive(Debug, Default)]
pub(crate) struct ReceivedBlock {
    /// Lines of the fields, and values of pseudo-fields. Its memory is used again once nobody has the last head.
    text: BytesMut,
    /// The same, once it is complete.
    pub(crate) bytes: Bytes,
    pub(crate) fields: Fields,
    pseudo: [Option<(usize, usize)>; Pseudo::ALL.len()],
    /// The first that makes the message malformed.
    malformed: Option<StreamFault>,
    /// It is larger than heads may be, and was not kept whole.
    is_too_large: bool,
    scratch: Scratch,
}

impl ReceivedBlock {
    /// Reads a block.
    pub(crate) fn read(
        &mut self,
        decoder: &mut Decoder,
        block: &[u8],
        limits: &Limits,
    ) -> Result<(), Fault> {
        self.clear();
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
        // Clients split the field for the sake of compression (section 8.2.3): the one that it was counts.
        self.fields.join_cookies();
        Ok(())
    }

    /// Lets go of what was read.
    pub(crate) fn clear(&mut self) {
        self.text.clear();
        self.bytes = Bytes::new();
        self.fields.clear();
        self.pseudo = Default::default();
        self.malformed = None;
        self.is_too_large = false;
    }

    /// Lets go of what was read, and of memory that a large block took.
    pub(crate) fn shrink(&mut self) {
        self.clear();
        self.scratch.shrink();
    }

    /// Keeps a field; of a message that is malformed nothing more is kept.
    fn take(&mut self, line: FieldLine<'_>) -> ControlFlow<()> {
        let taken = match line.name {
            LineName::Pseudo(pseudo) => self.take_pseudo(pseudo, line.value),
            LineName::Field(name) => self.take_field(name, line.value),
        };
        self.malformed = taken.err();
        match self.malformed {
            Some(_) => ControlFlow::Break(()),
            None => ControlFlow::Continue(()),
        }
    }

    fn take_pseudo(&mut self, pseudo: Pseudo, value: &[u8]) -> Result<(), StreamFault> {
        let place = &mut self.pseudo[pseudo as usize];
        // They come first, and once each (section 8.3).
        if place.is_some() || !self.fields.is_empty() {
            return Err(StreamFault::Pseudo);
        }
        let from = self.text.len();
        *place = Some((from, from + value.len()));
        check_value(value)?;
        self.text.extend_from_slice(value);
        Ok(())
    }

    fn take_field(&mut self, name: NameRef<'_>, value: &[u8]) -> Result<(), StreamFault> {
        let (id, name) = match name {
            NameRef::Known(TE) if value != b"trailers" => return Err(StreamFault::Field),
            // They concern a connection of HTTP/1.1 (section 8.2.2).
            NameRef::Known(id) if id != TE && id != TRAILER && is_hop_by_hop(id) => {
                return Err(StreamFault::Field);
            }
            NameRef::Known(id) => (Some(id), id.spelling().as_bytes()),
            NameRef::Other(name) if is_lower_token(name) => (None, name),
            NameRef::Other([b':', ..]) => return Err(StreamFault::Pseudo),
            NameRef::Other(_) => return Err(StreamFault::Field),
        };
        check_value(value)?;
        let at = self.text.len();
        self.text.reserve(name.len() + value.len() + 4);
        self.text.extend_from_slice(name);
        self.text.extend_from_slice(b": ");
        self.text.extend_from_slice(value);
        self.text.extend_from_slice(b"\r\n");
        let value_at = at + name.len() + 2;
        let value = value_at..value_at + value.len();
        self.fields.push(id, at..at + name.len(), value, true);
        Ok(())
    }

    /// What is wrong with the fields of any head.
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
        let mut fields = self.fields.iter();
        let line = |name: &[u8], value: &[u8]| name.len() + 2 + value.len();
        if fields.any(|it| line(it.name(), it.value()) > limits.line_bytes) {
            Err(StreamFault::FieldTooLong)
        } else {
            Ok(())
        }
    }

    /// The value of a pseudo-field.
    #[inline]
    pub(crate) fn pseudo(&self, pseudo: Pseudo) -> Option<&[u8]> {
        let (from, to) = self.pseudo[pseudo as usize]?;
        self.bytes.get(from..to)
    }

    /// Whether there are pseudo-fields besides those of `allowed`.
    pub(crate) fn has_pseudo_but(&self, allowed: &[Pseudo]) -> bool {
        let allowed = |at| allowed.iter().any(|it| *it as usize == at);
        let mut pseudo = self.pseudo.iter().enumerate();
        pseudo.any(|(at, value)| value.is_some() && !allowed(at))
    }

    /// Takes the announced length out of the fields.
    pub(crate) fn take_content_length(&mut self) -> Result<Option<u64>, StreamFault> {
        let is_only = self.fields.get_all(CONTENT_LENGTH).nth(1).is_none();
        let Some(length) = self.fields.get(CONTENT_LENGTH).map(field::decimal) else {
            return Ok(None);
        };
        self.fields.remove(CONTENT_LENGTH);
        let length = length.filter(|_| is_only);
        length.map(Some).ok_or(StreamFault::ContentLength)
    }

    /// The only Host field.
    pub(crate) fn host(&self) -> Result<Option<&[u8]>, StreamFault> {
        let mut hosts = self.fields.get_all(HOST);
        let host = hosts.next();
        match hosts.next() {
            Some(_) => Err(StreamFault::HostDuplicate),
            None => Ok(host),
        }
    }
}

fn is_hop_by_hop(id: Id) -> bool {
    id.traits().has_any(Traits::HOP_BY_HOP)
}

/// One line without control characters or white space around it (section 8.2.1).
fn check_value(value: &[u8]) -> Result<(), StreamFault> {
    match value {
        [b' ' | b'\t', ..] | [.., b' ' | b'\t'] => Err(StreamFault::FieldValue),
        _ if !is_value_text(value) => Err(StreamFault::FieldValue),
        _ => Ok(()),
    }
}

/// A token without letters in upper case (section 8.2).
fn is_lower_token(name: &[u8]) -> bool {
    is_token_text(name) && !name.iter().any(u8::is_ascii_uppercase)
}

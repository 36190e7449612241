//! HPACK, the compression of header fields (RFC 7541): blocks become fields, and fields become blocks.
//!
//! A name that `catamaran_message` has a number for is looked up once, when its bytes are received: entries of both
//! tables keep the number. Whether a name or a value may be in a message at all is not judged here.
//!
//! # Example
//!
//! A field that repeats takes one byte:
//!
//! ```
//! use std::ops::ControlFlow;
//!
//! use bytes::BytesMut;
//! use catamaran_http2::hpack::{Decoder, Encoder, LineName, Pseudo, Scratch};
//! use catamaran_message::NameRef;
//! use catamaran_message::name::SERVER;
//!
//! # fn main() -> Result<(), catamaran_http2::hpack::Fault> {
//! let (mut encoder, mut decoder) = (Encoder::new(), Decoder::new());
//! for expected_len in [9, 2] {
//!     let mut out = BytesMut::new();
//!     let mut block = encoder.block(&mut out);
//!     block.field(Pseudo::Status, b"200");
//!     block.field(NameRef::from(SERVER), b"catamaran");
//!     assert_eq!(out.len(), expected_len);
//!
//!     let mut servers = 0;
//!     let list_size = decoder.decode(&out, 65_536, &mut Scratch::default(), |line| {
//!         if let LineName::Field(NameRef::Known(SERVER)) = line.name {
//!             assert_eq!(line.value, b"catamaran");
//!             servers += 1;
//!         }
//!         ControlFlow::Continue(())
//!     })?;
//!     assert_eq!((servers, list_size), (1, 7 + 3 + 32 + 6 + 9 + 32));
//! }
//! # Ok(())
//! # }
//! ```

mod decoder;
mod encoder;
mod table;

use catamaran_message::{NameRef, name};
use thiserror::Error;

pub use self::decoder::{Decoder, Scratch};
pub use self::encoder::{Block, Encoder};
use crate::huffman::InvalidCode;

/// One field of a block.
#[derive(Clone, Copy, Debug)]
pub struct FieldLine<'b> {
    /// The field's name.
    pub name: LineName<'b>,
    /// The field's value.
    pub value: &'b [u8],
    /// Whether no table may have the field, also not where it is forwarded to (RFC 7541, section 6.2.3).
    pub is_never_indexed: bool,
}

impl<'b> FieldLine<'b> {
    /// A field that may be indexed.
    #[must_use]
    pub const fn new(name: LineName<'b>, value: &'b [u8]) -> Self {
        Self {
            name,
            value,
            is_never_indexed: false,
        }
    }

    /// The field's size for the limits on lists and tables, in bytes (RFC 9113, section 6.5.2).
    #[must_use]
    pub fn size(&self) -> usize {
        entry_size(self.name.as_bytes().len(), self.value.len())
    }
}

/// The name of a field in HTTP/2 and HTTP/3.
#[derive(Clone, Copy, Debug)]
pub enum LineName<'n> {
    /// A pseudo-field that is defined.
    Pseudo(Pseudo),
    /// Any other name. When read, it is `NameRef::Known` only if the bytes were a known name in lower case. Otherwise
    /// it is `NameRef::Other` with the bytes as received, for instance `Content-Type` or an undefined pseudo-field.
    Field(NameRef<'n>),
}

impl<'n> LineName<'n> {
    /// Looks up the name that was received as `text`.
    #[inline]
    #[must_use]
    pub fn read(text: &'n [u8]) -> Self {
        if let [b':', ..] = text
            && let Some(pseudo) = Pseudo::ALL
                .into_iter()
                .find(|known| known.as_bytes() == text)
        {
            return Self::Pseudo(pseudo);
        }
        match name::find(text) {
            Some(id) if !text.iter().any(u8::is_ascii_uppercase) => Self::Field(id.into()),
            _ => Self::Field(NameRef::Other(text)),
        }
    }

    /// The text of the name: as in the RFCs for a name in the table, else as it was given.
    #[inline]
    #[must_use]
    pub fn as_bytes(self) -> &'n [u8] {
        match self {
            Self::Pseudo(pseudo) => pseudo.as_bytes(),
            Self::Field(name) => name.as_bytes(),
        }
    }

    /// The same name, but with its text, if it has one of its own, copied to `buffer`.
    fn copied(self, buffer: &mut Vec<u8>) -> LineName<'_> {
        match self {
            Self::Pseudo(pseudo) => LineName::Pseudo(pseudo),
            Self::Field(NameRef::Known(id)) => LineName::Field(id.into()),
            Self::Field(NameRef::Other(text)) => {
                buffer.clear();
                buffer.extend_from_slice(text);
                LineName::Field(NameRef::Other(buffer))
            }
        }
    }
}

impl<'n> From<NameRef<'n>> for LineName<'n> {
    fn from(name: NameRef<'n>) -> Self {
        Self::Field(name)
    }
}

impl From<Pseudo> for LineName<'_> {
    fn from(pseudo: Pseudo) -> Self {
        Self::Pseudo(pseudo)
    }
}

/// The defined pseudo-fields (RFC 9113, section 8.3; RFC 8441).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pseudo {
    /// `:authority`
    Authority,
    /// `:method`
    Method,
    /// `:path`
    Path,
    /// `:scheme`
    Scheme,
    /// `:status`
    Status,
    /// `:protocol`
    Protocol,
}

impl Pseudo {
    pub(crate) const ALL: [Self; 6] = [
        Self::Authority,
        Self::Method,
        Self::Path,
        Self::Scheme,
        Self::Status,
        Self::Protocol,
    ];

    /// The pseudo-field's name.
    #[must_use]
    pub const fn as_bytes(self) -> &'static [u8] {
        match self {
            Self::Authority => b":authority",
            Self::Method => b":method",
            Self::Path => b":path",
            Self::Scheme => b":scheme",
            Self::Status => b":status",
            Self::Protocol => b":protocol",
        }
    }
}

/// Why a block cannot be decoded. This is a connection error of type COMPRESSION_ERROR, since the decoder's table is
/// lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
pub enum Fault {
    /// The block ends inside a field.
    #[error("a field block ends inside a field")]
    Truncated,
    /// An integer that does not fit 28 bits besides its prefix.
    #[error("an integer of HPACK is too large")]
    Integer,
    /// An index that neither table has.
    #[error("an index of HPACK is in no table")]
    Index,
    /// A string whose Huffman code is malformed.
    #[error("malformed Huffman code")]
    Huffman,
    /// A table size that exceeds the setting, stands after a field, or is missing although the setting was lowered.
    #[error("a forbidden size of HPACK's table, or a missing one")]
    TableSize,
}

impl Fault {
    /// A stable name in kebab case, for logs and counters.
    #[must_use]
    pub const fn token(self) -> &'static str {
        match self {
            Self::Truncated => "hpack-truncated",
            Self::Integer => "hpack-integer",
            Self::Index => "hpack-index",
            Self::Huffman => "hpack-huffman",
            Self::TableSize => "hpack-table-size",
        }
    }
}

impl From<InvalidCode> for Fault {
    fn from(_: InvalidCode) -> Self {
        Self::Huffman
    }
}

/// The size of an entry in a table, in bytes (RFC 7541, section 4.1).
const fn entry_size(name_len: usize, value_len: usize) -> usize {
    name_len + value_len + 32
}

/// The initial value of SETTINGS_HEADER_TABLE_SIZE.
const TABLE_SIZE: usize = 4096;

// The first bits of the representations (RFC 7541, section 6).
const INDEXED: u8 = 0x80;
const WITH_INDEXING: u8 = 0x40;
const SIZE_UPDATE: u8 = 0x20;
const NEVER_INDEXED: u8 = 0x10;
/// The first bit of a Huffman-coded string.
const HUFFMAN: u8 = 0x80;

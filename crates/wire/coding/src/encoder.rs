//! Codes a body piece by piece, or as a whole.
//!
//! An encoder returns coded bytes some time after it got the plain ones, at the latest when it is flushed.
//! Its largest memory is known ([`StreamCoding::memory`]), so that the number of encoders can be limited.

mod whole;

use std::fmt;
use std::io::Write;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use thiserror::Error;
pub use whole::code;
use zstd_safe::zstd_sys::ZSTD_EndDirective;
use zstd_safe::{CCtx, CParameter, InBuffer, OutBuffer, get_error_name};

use crate::accept::Coding;

/// A coding for bodies that stream. Brotli is not one: at the levels at which its output is shorter it takes
/// several times as long as Zstandard. [`code`] has it for bodies that are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StreamCoding {
    /// gzip (RFC 1952), at level 5 of nine.
    Gzip,
    /// Zstandard (RFC 8878), at level 3.
    Zstd,
}

impl StreamCoding {
    /// All codings for bodies that stream.
    pub const ALL: [Self; 2] = [Self::Gzip, Self::Zstd];

    /// The coding's name in `Content-Encoding`.
    #[must_use]
    pub fn token(self) -> &'static str {
        Coding::from(self).token()
    }

    /// The most bytes of memory that an encoder of this coding holds.
    #[must_use]
    pub fn memory(self) -> u64 {
        match self {
            Self::Gzip => GZIP_MEMORY,
            Self::Zstd => ZSTD_MEMORY,
        }
    }
}

impl From<StreamCoding> for Coding {
    fn from(coding: StreamCoding) -> Self {
        match coding {
            StreamCoding::Gzip => Self::Gzip,
            StreamCoding::Zstd => Self::Zstd,
        }
    }
}

/// Codes one body that streams.
pub struct Encoder(Codec);

enum Codec {
    Gzip(Box<GzEncoder<Vec<u8>>>),
    Zstd(CCtx<'static>),
}

/// The error of a coding library that has no memory left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the body cannot be compressed: {0}")]
pub struct EncoderFault(&'static str);

impl Encoder {
    /// An encoder for one body.
    ///
    /// # Errors
    /// There is no memory for the encoder.
    pub fn new(coding: StreamCoding) -> Result<Self, EncoderFault> {
        Ok(Self(match coding {
            StreamCoding::Gzip => {
                let level = Compression::new(GZIP_LEVEL);
                Codec::Gzip(Box::new(GzEncoder::new(Vec::new(), level)))
            }
            StreamCoding::Zstd => Codec::Zstd(zstd_context()?),
        }))
    }

    /// Takes a piece of the body. Returns the coded bytes that are ready, which may be none.
    ///
    /// # Errors
    /// The rest of the body cannot be coded.
    pub fn write(&mut self, piece: &[u8]) -> Result<Bytes, EncoderFault> {
        match &mut self.0 {
            Codec::Gzip(encoder) => {
                encoder.write_all(piece).map_err(|_| GZIP_FAULT)?;
                // The buffer has grown by doubling, and the bytes may wait long for their client.
                let mut coded = std::mem::take(encoder.get_mut());
                coded.shrink_to_fit();
                Ok(coded.into())
            }
            Codec::Zstd(context) => zstd_run(context, piece, ZSTD_EndDirective::ZSTD_e_continue),
        }
    }

    /// Returns the coded bytes of all pieces so far: a client can then decode that part of the body.
    ///
    /// # Errors
    /// The rest of the body cannot be coded.
    pub fn flush(&mut self) -> Result<Bytes, EncoderFault> {
        match &mut self.0 {
            Codec::Gzip(encoder) => {
                encoder.flush().map_err(|_| GZIP_FAULT)?;
                Ok(std::mem::take(encoder.get_mut()).into())
            }
            Codec::Zstd(context) => zstd_run(context, &[], ZSTD_EndDirective::ZSTD_e_flush),
        }
    }

    /// Ends the body. Returns the rest of the coded bytes.
    ///
    /// # Errors
    /// The rest of the body cannot be coded.
    pub fn finish(self) -> Result<Bytes, EncoderFault> {
        match self.0 {
            Codec::Gzip(encoder) => Ok(encoder.finish().map_err(|_| GZIP_FAULT)?.into()),
            Codec::Zstd(mut context) => zstd_run(&mut context, &[], ZSTD_EndDirective::ZSTD_e_end),
        }
    }
}

impl fmt::Debug for Encoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            Codec::Gzip(_) => "Encoder(gzip)",
            Codec::Zstd(_) => "Encoder(zstd)",
        })
    }
}

fn zstd_context() -> Result<CCtx<'static>, EncoderFault> {
    let mut context = CCtx::try_create().ok_or(EncoderFault("no memory"))?;
    for parameter in [
        CParameter::CompressionLevel(ZSTD_LEVEL),
        CParameter::WindowLog(ZSTD_WINDOW_LOG),
        CParameter::HashLog(ZSTD_WINDOW_LOG),
        CParameter::ChainLog(ZSTD_WINDOW_LOG - 1),
    ] {
        context.set_parameter(parameter).map_err(zstd_fault)?;
    }
    Ok(context)
}

/// Gives the context a piece, and returns the coded bytes that are ready: with a flush or the end all of
/// them.
fn zstd_run(
    context: &mut CCtx<'static>,
    piece: &[u8],
    directive: ZSTD_EndDirective,
) -> Result<Bytes, EncoderFault> {
    let mut coded = Vec::new();
    let mut input = InBuffer::around(piece);
    let continues = matches!(directive, ZSTD_EndDirective::ZSTD_e_continue);
    loop {
        let coded_len = coded.len();
        coded.reserve(OUTPUT_STEP);
        let mut output = OutBuffer::around_pos(&mut coded, coded_len);
        // The bytes that the context still holds after a flush or the end.
        let left = context
            .compress_stream2(&mut output, &mut input, directive)
            .map_err(zstd_fault)?;
        let is_done = if continues {
            input.pos() == piece.len()
        } else {
            left == 0
        };
        if is_done {
            return Ok(coded.into());
        }
    }
}

fn zstd_fault(code: usize) -> EncoderFault {
    EncoderFault(get_error_name(code))
}

const GZIP_FAULT: EncoderFault = EncoderFault("gzip");

const GZIP_LEVEL: u32 = 5;

/// The most bytes of a gzip encoder: zlib's window, hash chains and pending output, and the writer's buffer.
const GZIP_MEMORY: u64 = 384 * 1024;

const ZSTD_LEVEL: i32 = 3;

/// The window of Zstandard as a power of two: 64 KiB, twice that of gzip. The level's own, 2 MiB, costs
/// memory, and pages are too short to gain from it.
const ZSTD_WINDOW_LOG: u32 = 16;

const ZSTD_MEMORY: u64 = 896 * 1024;

/// The bytes of memory added for coded bytes at a time.
const OUTPUT_STEP: usize = 8 * 1024;

#[cfg(test)]
mod tests;

//! Codes a body piece by piece, or as a whole.
//!
//! What an encoder was given comes out some time later, at the latest when it is flushed. Its memory is
//! known beforehand ([`StreamCoding::memory`]), so that the number of encoders can be limited.

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

/// A coding that bodies can be put into while they stream. Brotli is none: at the levels at which it becomes
/// shorter it takes several times as long as Zstandard. [`code`] has it for bodies that are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StreamCoding {
    /// RFC 1952, by level 5 of nine.
    Gzip,
    /// RFC 8878, by level 3.
    Zstd,
}

impl StreamCoding {
    /// All that there are.
    pub const ALL: [Self; 2] = [Self::Gzip, Self::Zstd];

    /// Its name in `Content-Encoding`.
    #[must_use]
    pub fn token(self) -> &'static str {
        Coding::from(self).token()
    }

    /// Bytes of memory that an encoder of it holds at most.
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

/// Codes one body.
pub struct Encoder(Codec);

enum Codec {
    Gzip(Box<GzEncoder<Vec<u8>>>),
    Zstd(CCtx<'static>),
}

/// The library could not go on: it has no memory left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the body cannot be compressed: {0}")]
pub struct EncoderFault(&'static str);

impl Encoder {
    /// An encoder for one body.
    ///
    /// # Errors
    /// There is no memory for it.
    pub fn new(coding: StreamCoding) -> Result<Self, EncoderFault> {
        Ok(Self(match coding {
            StreamCoding::Gzip => {
                let level = Compression::new(GZIP_LEVEL);
                Codec::Gzip(Box::new(GzEncoder::new(Vec::new(), level)))
            }
            StreamCoding::Zstd => Codec::Zstd(zstd_context()?),
        }))
    }

    /// Takes a piece of the body. Returns what comes out of it, which may be nothing.
    ///
    /// # Errors
    /// The rest of the body cannot be coded.
    pub fn write(&mut self, piece: &[u8]) -> Result<Bytes, EncoderFault> {
        match &mut self.0 {
            Codec::Gzip(encoder) => {
                encoder.write_all(piece).map_err(|_| GZIP_FAULT)?;
                // It had grown by doubling, and may wait long for its client.
                let mut coded = std::mem::take(encoder.get_mut());
                coded.shrink_to_fit();
                Ok(coded.into())
            }
            Codec::Zstd(context) => zstd_run(context, piece, ZSTD_EndDirective::ZSTD_e_continue),
        }
    }

    /// Returns all of what was taken that has not come out: a client can decode the body so far.
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

    /// Ends the body. Returns the rest of it.
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

/// Gives the context a piece, and takes what comes out: with a flush or the end all of it.
fn zstd_run(
    context: &mut CCtx<'static>,
    piece: &[u8],
    directive: ZSTD_EndDirective,
) -> Result<Bytes, EncoderFault> {
    let mut coded = Vec::new();
    let mut input = InBuffer::around(piece);
    let continues = matches!(directive, ZSTD_EndDirective::ZSTD_e_continue);
    loop {
        let from = coded.len();
        coded.reserve(OUTPUT_STEP);
        let mut output = OutBuffer::around_pos(&mut coded, from);
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

/// The window, the hash chains and the pending output of zlib, and the buffer of its writer.
const GZIP_MEMORY: u64 = 384 * 1024;

const ZSTD_LEVEL: i32 = 3;

/// 64 KiB: twice that of gzip. The level's own, 2 MiB, costs memory that pages are too short to gain from.
const ZSTD_WINDOW_LOG: u32 = 16;

const ZSTD_MEMORY: u64 = 896 * 1024;

/// Memory that coded bytes get at a time.
const OUTPUT_STEP: usize = 8 * 1024;

#[cfg(test)]
mod tests;

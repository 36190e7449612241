//! Codes bodies of which all bytes are available.
//!
//! Such a body may be coded in any coding, Brotli too, because the result is kept and sent to many clients. Brotli also
//! takes the body in pieces, so it need not be contiguous in memory.

use std::io::{self, Read};

use brotli::BrotliCompressCustomAlloc;
use brotli::enc::{BrotliAlloc, BrotliEncoderParams, StandardAlloc};
use bytes::Bytes;

use super::{Encoder, EncoderFault, StreamCoding};
use crate::accept::Coding;

impl Coding {
    /// The coding of this name for a body that streams; `None` for Brotli, which codes only whole bodies.
    #[must_use]
    pub fn streamed(self) -> Option<StreamCoding> {
        match self {
            Self::Brotli => None,
            Self::Gzip => Some(StreamCoding::Gzip),
            Self::Zstd => Some(StreamCoding::Zstd),
        }
    }

    /// The most bytes of memory that [`code`] holds, besides the body and the result.
    #[must_use]
    pub fn memory(self) -> u64 {
        match self.streamed() {
            Some(coding) => coding.memory(),
            None => BROTLI_MEMORY,
        }
    }
}

/// Codes a body, given as all of its pieces.
///
/// # Errors
/// There is no memory for it.
pub fn code<T: AsRef<[u8]>>(
    coding: Coding,
    pieces: impl IntoIterator<Item = T>,
) -> Result<Bytes, EncoderFault> {
    let mut coded = match coding.streamed() {
        Some(coding) => code_streamed(coding, pieces)?,
        None => code_brotli(pieces, StandardAlloc::default())?,
    };
    coded.shrink_to_fit();
    Ok(coded.into())
}

fn code_streamed<T: AsRef<[u8]>>(
    coding: StreamCoding,
    pieces: impl IntoIterator<Item = T>,
) -> Result<Vec<u8>, EncoderFault> {
    let mut encoder = Encoder::new(coding)?;
    let mut coded = Vec::new();
    for piece in pieces {
        coded.extend_from_slice(&encoder.write(piece.as_ref())?);
    }
    coded.extend_from_slice(&encoder.finish()?);
    Ok(coded)
}

/// Codes a body with Brotli, which takes its memory from `alloc`.
pub(super) fn code_brotli<T: AsRef<[u8]>>(
    pieces: impl IntoIterator<Item = T>,
    alloc: impl BrotliAlloc,
) -> Result<Vec<u8>, EncoderFault> {
    let params = BrotliEncoderParams {
        quality: BROTLI_QUALITY,
        lgwin: BROTLI_WINDOW_LOG,
        ..BrotliEncoderParams::default()
    };
    let mut reader = PieceReader {
        pieces: pieces.into_iter(),
        piece: None,
    };
    let mut coded = Vec::new();
    BrotliCompressCustomAlloc(
        &mut reader,
        &mut coded,
        &mut [0; BROTLI_STEP],
        &mut [0; BROTLI_STEP],
        &params,
        alloc,
    )
    .map_err(|_| BROTLI_FAULT)?;
    Ok(coded)
}

/// Reads pieces one after the other, as one stream.
struct PieceReader<I: Iterator> {
    pieces: I,
    /// The piece that is being read, and the number of its bytes that are read already.
    piece: Option<(I::Item, usize)>,
}

impl<T: AsRef<[u8]>, I: Iterator<Item = T>> Read for PieceReader<I> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if let Some((piece, position)) = &mut self.piece {
                let mut left = piece.as_ref().get(*position..).unwrap_or_default();
                let len = left.read(buffer)?;
                *position += len;
                if len > 0 {
                    return Ok(len);
                }
            }
            // An empty piece is not the end.
            match self.pieces.next() {
                Some(piece) => self.piece = Some((piece, 0)),
                None => return Ok(0),
            }
        }
    }
}

const BROTLI_FAULT: EncoderFault = EncoderFault("brotli");

/// The quality of Brotli, of eleven. Its output is about a tenth shorter than Zstandard's, and takes five to eight
/// times as long.
const BROTLI_QUALITY: i32 = 5;

/// The window of Brotli as a power of two: 256 KiB. The library's own, 4 MiB, costs memory, and pages are too short to
/// gain from it.
const BROTLI_WINDOW_LOG: i32 = 18;

/// The bytes that the library takes, or returns, at a time.
const BROTLI_STEP: usize = 4 * 1024;

/// The most bytes of a Brotli encoder: the hash table, 1 MiB; twice the window, and a block of 64 KiB; at most 115
/// thousand commands of 16 bytes, in two copies while their list grows; the output of half a mebibyte of the body, 1
/// MiB. Bodies of 1 MiB come near it, one of 32 KiB needs a third of it.
pub(super) const BROTLI_MEMORY: u64 = 6 * 1024 * 1024;

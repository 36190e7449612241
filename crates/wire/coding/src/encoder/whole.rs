//! Codes bodies of which all bytes are there.
//!
//! Such a body may be put into any coding, Brotli too, because what is made of it is kept and sent to many. Brotli
//! takes the body in pieces as well: they need not lie behind each other in memory.

use std::io::{self, Read};

use brotli::BrotliCompressCustomAlloc;
use brotli::enc::{BrotliAlloc, BrotliEncoderParams, StandardAlloc};
use bytes::Bytes;

use super::{Encoder, EncoderFault, StreamCoding};
use crate::accept::Coding;

impl Coding {
    /// The same for a body that streams. `None`: bodies that stream are not put into it.
    #[must_use]
    pub fn streamed(self) -> Option<StreamCoding> {
        match self {
            Self::Brotli => None,
            Self::Gzip => Some(StreamCoding::Gzip),
            Self::Zstd => Some(StreamCoding::Zstd),
        }
    }

    /// Bytes of memory that [`code`] holds at most, beside the body and what is made of it.
    #[must_use]
    pub fn memory(self) -> u64 {
        match self.streamed() {
            Some(coding) => coding.memory(),
            None => BROTLI_MEMORY,
        }
    }
}

/// Codes a body of which all pieces are there.
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

/// Reads pieces, one behind the other.
struct PieceReader<I: Iterator> {
    pieces: I,
    /// The one that is being read, and how many of its bytes were.
    piece: Option<(I::Item, usize)>,
}

impl<T: AsRef<[u8]>, I: Iterator<Item = T>> Read for PieceReader<I> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if let Some((piece, at)) = &mut self.piece {
                let mut left = piece.as_ref().get(*at..).unwrap_or_default();
                let read = left.read(buffer)?;
                *at += read;
                if read > 0 {
                    return Ok(read);
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

/// Brotli's quality, of eleven. It leaves about a tenth less of a text than Zstandard does by its level, in five to
/// eight times the time.
const BROTLI_QUALITY: i32 = 5;

/// 256 KiB. The library's own, 4 MiB, costs memory that pages are too short to gain from.
const BROTLI_WINDOW_LOG: i32 = 18;

/// Bytes that the library takes, or gives, at a time.
const BROTLI_STEP: usize = 4 * 1024;

/// The hash table, 1 MiB; twice the window, and a block of 64 KiB; at most 115 thousand commands of 16 bytes, in two
/// copies while their list grows; the output of half a mebibyte of the body, 1 MiB. Bodies of 1 MiB come near it, one of
/// 32 KiB needs a third of it.
pub(super) const BROTLI_MEMORY: u64 = 6 * 1024 * 1024;

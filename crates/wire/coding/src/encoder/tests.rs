use std::cell::Cell;
use std::io::Read;
use std::rc::Rc;

use brotli::enc::{Allocator, BrotliAlloc, SliceWrapper, SliceWrapperMut};
use flate2::read::MultiGzDecoder;
use proptest::collection::vec;
use proptest::prelude::*;
use zstd_safe::DCtx;

use super::whole::{BROTLI_MEMORY, code_brotli};
use super::*;

/// Decodes as much as possible; the end of the body may be missing.
fn decode(coding: StreamCoding, coded: &[u8]) -> Vec<u8> {
    let mut plain = Vec::new();
    match coding {
        StreamCoding::Gzip => {
            // Fails at an end that is missing, and has given all before it then.
            MultiGzDecoder::new(coded).read_to_end(&mut plain).ok();
        }
        StreamCoding::Zstd => {
            let mut context = DCtx::create();
            let mut input = InBuffer::around(coded);
            loop {
                let from = plain.len();
                plain.reserve(64 * 1024);
                let mut output = OutBuffer::around_pos(&mut plain, from);
                context.decompress_stream(&mut output, &mut input).unwrap();
                if plain.len() == from && input.pos() == coded.len() {
                    break;
                }
            }
        }
    }
    plain
}

/// Decodes a whole body.
fn decode_whole(coding: Coding, coded: &[u8]) -> Vec<u8> {
    let Some(coding) = coding.streamed() else {
        let mut plain = Vec::new();
        brotli::BrotliDecompress(&mut &*coded, &mut plain).unwrap();
        return plain;
    };
    decode(coding, coded)
}

/// A page like those of applications, of this many bytes.
fn page(bytes: usize) -> Vec<u8> {
    let row = |at: usize| {
        format!(
            "<tr class=\"row\"><td>{at}</td><td>{}</td></tr>\n",
            at * 7919
        )
    };
    let rows = (0..).flat_map(|at| row(at).into_bytes());
    rows.take(bytes).collect()
}

/// Bytes without any pattern, which cannot be compressed.
fn noise(bytes: usize) -> Vec<u8> {
    let mut state = 1_u64;
    let next = |state: &mut u64| {
        *state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (*state >> 56) as u8
    };
    (0..bytes).map(|_| next(&mut state)).collect()
}

#[test]
fn bodies_come_back_whatever_their_pieces() {
    for coding in StreamCoding::ALL {
        for plain in [Vec::new(), page(10), page(1 << 20), noise(300_000)] {
            for step in [1000, 16 * 1024, 1 << 20] {
                let mut encoder = Encoder::new(coding).unwrap();
                let mut coded = Vec::new();
                for piece in plain.chunks(step) {
                    coded.extend_from_slice(&encoder.write(piece).unwrap());
                }
                coded.extend_from_slice(&encoder.finish().unwrap());
                assert!(decode(coding, &coded) == plain, "{coding:?} by {step}");
            }
        }
    }
}

#[test]
fn what_was_flushed_can_be_decoded() {
    for coding in StreamCoding::ALL {
        let mut encoder = Encoder::new(coding).unwrap();
        let (mut coded, mut plain) = (Vec::new(), Vec::new());
        for event in ["data: 1\n\n", "data: 2\n\n", "data: 3\n\n"] {
            plain.extend_from_slice(event.as_bytes());
            coded.extend_from_slice(&encoder.write(event.as_bytes()).unwrap());
            coded.extend_from_slice(&encoder.flush().unwrap());
            assert_eq!(decode(coding, &coded), plain, "{coding:?}");
        }
        coded.extend_from_slice(&encoder.finish().unwrap());
        assert_eq!(decode(coding, &coded), plain, "{coding:?}");
    }
}

/// Flushing every 8 KiB, as the writes of a container cause it, costs little.
#[test]
fn pages_become_a_fraction_though_flushed() {
    let plain = page(100_000);
    for coding in StreamCoding::ALL {
        let mut encoder = Encoder::new(coding).unwrap();
        let mut coded = 0;
        for piece in plain.chunks(8192) {
            coded += encoder.write(piece).unwrap().len() + encoder.flush().unwrap().len();
        }
        coded += encoder.finish().unwrap().len();
        assert!(coded * 3 < plain.len(), "{coding:?}: {coded} bytes");
    }
}

/// The memory that zstd really holds is at most what is declared, and more than half of it, so the
/// declared number is meaningful.
#[test]
fn zstd_holds_no_more_than_it_says() {
    let mut context = zstd_context().unwrap();
    for piece in [page(1 << 20), noise(1 << 20)].concat().chunks(16 * 1024) {
        zstd_run(&mut context, piece, ZSTD_EndDirective::ZSTD_e_continue).unwrap();
        zstd_run(&mut context, &[], ZSTD_EndDirective::ZSTD_e_flush).unwrap();
    }
    let held = context.sizeof() as u64;
    assert!(held <= ZSTD_MEMORY, "{held} bytes");
    assert!(
        held * 2 > ZSTD_MEMORY,
        "{held} bytes are far less than said"
    );
}

#[test]
fn whole_bodies_come_back_in_each_coding() {
    for coding in Coding::ALL {
        for plain in [Vec::new(), page(10), page(1 << 20), noise(300_000)] {
            for step in [1000, 16 * 1024, 1 << 20] {
                // Some pieces are empty.
                let pieces = plain.chunks(step).flat_map(|piece| [piece, &[]]);
                let coded = code(coding, pieces).unwrap();
                assert!(
                    decode_whole(coding, &coded) == plain,
                    "{coding:?} by {step}"
                );
            }
        }
    }
}

/// Brotli makes a page shorter than the codings for streams do; that is what it is for.
#[test]
fn brotli_makes_the_shortest_of_a_page() {
    let plain = page(100_000);
    let [brotli, gzip, zstd] = Coding::ALL.map(|coding| code(coding, [&plain]).unwrap().len());
    assert!(brotli < gzip && brotli < zstd, "{brotli}, {gzip}, {zstd}");
}

/// Counts the memory that Brotli's encoder allocates.
#[derive(Clone, Default)]
struct CountedAlloc {
    held: Rc<Cell<usize>>,
    most: Rc<Cell<usize>>,
}

#[derive(Default)]
struct Cells<T>(Vec<T>);

impl<T> SliceWrapper<T> for Cells<T> {
    fn slice(&self) -> &[T] {
        &self.0
    }
}

impl<T> SliceWrapperMut<T> for Cells<T> {
    fn slice_mut(&mut self) -> &mut [T] {
        &mut self.0
    }
}

impl<T: Clone + Default> Allocator<T> for CountedAlloc {
    type AllocatedMemory = Cells<T>;

    fn alloc_cell(&mut self, len: usize) -> Cells<T> {
        self.held.set(self.held.get() + len * size_of::<T>());
        self.most.set(self.most.get().max(self.held.get()));
        Cells(vec![T::default(); len])
    }

    fn free_cell(&mut self, cells: Cells<T>) {
        let freed = cells.0.len() * size_of::<T>();
        self.held.set(self.held.get() - freed);
    }
}

impl BrotliAlloc for CountedAlloc {}

/// The most bytes that Brotli holds at any time while it codes a body.
fn held_by_brotli(plain: &[u8]) -> u64 {
    let alloc = CountedAlloc::default();
    let coded = code_brotli(plain.chunks(16 * 1024), alloc.clone()).unwrap();
    assert!(decode_whole(Coding::Brotli, &coded) == plain);
    alloc.most.get() as u64
}

/// Letters in an order that never repeats: there are many short matches, each of which is a command.
fn letters(bytes: usize) -> Vec<u8> {
    let noise = noise(bytes);
    noise.iter().map(|byte| b'a' + byte % 2).collect()
}

#[test]
fn brotli_holds_no_more_than_it_says() {
    for plain in [page(1 << 20), noise(1 << 20)] {
        let held = held_by_brotli(&plain);
        assert!(held <= BROTLI_MEMORY, "{held} bytes");
    }
    let held = held_by_brotli(&letters(1 << 20));
    assert!(held <= BROTLI_MEMORY, "{held} bytes");
    assert!(
        held * 10 > BROTLI_MEMORY * 9,
        "{held} bytes are far less than said"
    );
}

proptest! {
    #[test]
    fn any_whole_body_comes_back(pieces in vec(vec(any::<u8>(), 0..2000), 0..20)) {
        for coding in Coding::ALL {
            let coded = code(coding, &pieces).unwrap();
            prop_assert!(decode_whole(coding, &coded) == pieces.concat());
        }
    }

    #[test]
    fn any_pieces_and_flushes_come_back(pieces in vec((vec(any::<u8>(), 0..2000), any::<bool>()), 0..20)) {
        for coding in StreamCoding::ALL {
            let mut encoder = Encoder::new(coding).unwrap();
            let (mut coded, mut plain) = (Vec::new(), Vec::new());
            for (piece, flushes) in &pieces {
                plain.extend_from_slice(piece);
                coded.extend_from_slice(&encoder.write(piece).unwrap());
                if *flushes {
                    coded.extend_from_slice(&encoder.flush().unwrap());
                    prop_assert!(decode(coding, &coded) == plain);
                }
            }
            coded.extend_from_slice(&encoder.finish().unwrap());
            prop_assert!(decode(coding, &coded) == plain);
        }
    }
}

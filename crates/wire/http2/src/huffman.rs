//! The Huffman code of strings (RFC 7541, section 5.2 and appendix B), which HPACK and QPACK share.
//!
//! The code is canonical: codes of one length follow one another in the order of their symbols, and longer ones begin
//! where the shorter ones end. All tables are therefore made from the lengths alone.

use bytes::BytesMut;
use thiserror::Error;

/// The error for bytes that are not Huffman-coded text: they contain the end symbol, or their padding is not fewer than
/// eight ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("malformed Huffman code")]
pub struct InvalidCode;

/// Decodes `code` and appends the result to `text`.
///
/// # Errors
/// [`InvalidCode`]; the bytes that were appended then have no meaning.
pub fn decode(code: &[u8], text: &mut Vec<u8>) -> Result<(), InvalidCode> {
    let mut at = text.len();
    // One byte more than the longest text, because two are written at a time.
    text.resize(at + code.len() * 8 / SHORTEST + 1, 0);
    let mut put = |step: Step| {
        // There is room for two symbols: the text is as long as with the shortest codes alone.
        if let Some(slots) = text[at..].first_chunk_mut::<2>() {
            *slots = step.symbols;
        }
        at += usize::from(step.count);
    };
    // The next bits to decode, aligned to the highest bit, and their number.
    let (mut window, mut bits) = (0_u64, 0);
    let (words, last_bytes) = code.as_chunks::<4>();
    for word in words {
        window |= u64::from(u32::from_be_bytes(*word)) << (32 - bits);
        bits += 32;
        // No code is longer than 30 bits.
        while bits >= 32 {
            let step = first_step(window).ok_or(InvalidCode)?;
            put(step);
            window <<= step.len;
            bits -= u32::from(step.len);
        }
    }
    for byte in last_bytes {
        window |= u64::from(*byte) << (56 - bits);
        bits += 8;
    }
    let result = decode_last(window, bits, put);
    text.truncate(at);
    result
}

/// Decodes the last bits of a code, and checks the padding behind its last symbol: fewer than eight bits, all ones.
#[inline]
fn decode_last(
    mut window: u64,
    mut bits: u32,
    mut put: impl FnMut(Step),
) -> Result<(), InvalidCode> {
    // The bits are followed by ones here, so that the padding looks like the beginning of the end symbol, which ends
    // the loop.
    while let Some(mut step) = first_step(window | u64::MAX >> bits) {
        if u32::from(step.len) > bits {
            // The second of two symbols ends behind the last bit.
            step = Step::one(step.symbols[0]);
        }
        if u32::from(step.len) > bits {
            // So does the first one: it is padding.
            break;
        }
        put(step);
        window <<= step.len;
        bits -= u32::from(step.len);
    }
    let is_padding = bits < 8 && window | u64::MAX >> bits == u64::MAX;
    if is_padding { Ok(()) } else { Err(InvalidCode) }
}

/// The number of bytes that [`encode`] writes.
#[inline]
pub fn encoded_len(text: impl Iterator<Item = u8>) -> usize {
    let bits: usize = text
        .map(|byte| usize::from(LENGTHS[usize::from(byte)]))
        .sum();
    bits.div_ceil(8)
}

/// Encodes a text and appends it to `out`.
#[inline]
pub fn encode(text: impl Iterator<Item = u8>, out: &mut BytesMut) {
    // The bits that are not written yet, aligned to the lowest bit, and their number.
    let (mut window, mut bits) = (0_u64, 0);
    for byte in text {
        let Code { code, len } = CODES[usize::from(byte)];
        window = window << len | u64::from(code);
        bits += len;
        if bits >= 32 {
            bits -= 32;
            out.extend_from_slice(&((window >> bits) as u32).to_be_bytes());
        }
    }
    // Pads the last bits, fewer than 32, with ones.
    let rest = (window << 32 | u64::from(u32::MAX)) >> bits;
    out.extend_from_slice(&(rest as u32).to_be_bytes()[..bits.div_ceil(8) as usize]);
}

/// The one or two symbols with which the window begins; `None` for the end symbol.
#[inline]
fn first_step(window: u64) -> Option<Step> {
    match STEPS[(window >> (64 - STEP_BITS)) as usize] {
        Step { len: 0, .. } => first_long_step((window >> 32) as u32),
        step => Some(step),
    }
}

/// [`first_step`] for a code of more than [`STEP_BITS`] bits.
fn first_long_step(window: u32) -> Option<Step> {
    let run = LONG.iter().find(|run| window < run.end)?;
    let offset = (window - run.start) >> (32 - run.len);
    let symbol = BY_CODE.get(usize::from(run.first) + offset as usize)?;
    Some(Step::one(*symbol))
}

/// One or two decoded symbols, and the length of their codes together.
#[derive(Clone, Copy)]
struct Step {
    symbols: [u8; 2],
    count: u8,
    len: u8,
}

impl Step {
    const fn one(symbol: u8) -> Self {
        Self {
            symbols: [symbol, 0],
            count: 1,
            len: LENGTHS[symbol as usize],
        }
    }
}

/// The code of a symbol: the lowest `len` bits.
#[derive(Clone, Copy)]
struct Code {
    code: u32,
    len: u32,
}

/// All codes of one length.
#[derive(Clone, Copy)]
struct Run {
    len: u32,
    /// The first code, and the one after the last, aligned to the highest bit.
    start: u32,
    end: u32,
    /// The index in `BY_CODE` of the first code's symbol.
    first: u8,
}

/// All symbols, in the order of their codes. A static, unlike the constant, is not copied where it is used.
static BY_CODE: [u8; 256] = SYMBOLS;

const SYMBOLS: [u8; 256] = {
    let mut symbols = [0; 256];
    let (mut count, mut len) = (0, 0);
    while len <= LONGEST {
        let mut symbol = 0;
        while symbol < 256 {
            if LENGTHS[symbol] as usize == len {
                symbols[count] = symbol as u8;
                count += 1;
            }
            symbol += 1;
        }
        len += 1;
    }
    symbols
};

static CODES: [Code; 256] = CODE_TABLE;

const CODE_TABLE: [Code; 256] = {
    let mut codes = [Code { code: 0, len: 0 }; 256];
    let (mut next, mut index) = (0, 0);
    let mut len = LENGTHS[SYMBOLS[0] as usize] as u32;
    while index < 256 {
        let symbol = SYMBOLS[index] as usize;
        // The first code of a length follows the last shorter one, with zeros appended.
        next <<= LENGTHS[symbol] as u32 - len;
        len = LENGTHS[symbol] as u32;
        codes[symbol] = Code { code: next, len };
        next += 1;
        index += 1;
    }
    codes
};

/// For each value of the next [`STEP_BITS`] bits, the symbols with which it begins: two if both fit. A length of 0
/// stands for a longer code.
static STEPS: [Step; 1 << STEP_BITS] = {
    let mut steps = ONE_STEPS;
    let mut bits = 0;
    while bits < steps.len() {
        let first = ONE_STEPS[bits];
        // The bits behind the first code, with zeros appended.
        let second = ONE_STEPS[(bits << first.len) % steps.len()];
        if first.len > 0 && second.len > 0 && first.len + second.len <= STEP_BITS {
            steps[bits] = Step {
                symbols: [first.symbols[0], second.symbols[0]],
                count: 2,
                len: first.len + second.len,
            };
        }
        bits += 1;
    }
    steps
};

/// As [`STEPS`], with one symbol for each value.
const ONE_STEPS: [Step; 1 << STEP_BITS] = {
    let mut steps = [Step {
        len: 0,
        ..Step::one(0)
    }; 1 << STEP_BITS];
    let mut index = 0;
    let mut bits = 0;
    // Codes of at most `STEP_BITS` bits come first in the order of codes.
    while LENGTHS[SYMBOLS[index] as usize] <= STEP_BITS {
        let step = Step::one(SYMBOLS[index]);
        // All values that begin with the code.
        let end = bits + (1 << (STEP_BITS - step.len));
        while bits < end {
            steps[bits] = step;
            bits += 1;
        }
        index += 1;
    }
    steps
};

/// The codes of more than [`STEP_BITS`] bits, by their length.
static LONG: [Run; LONGEST - STEP_BITS as usize] = {
    let none = Run {
        len: 0,
        start: 0,
        end: 0,
        first: 0,
    };
    let mut runs = [none; LONGEST - STEP_BITS as usize];
    let mut index = 0;
    while index < 256 {
        let Code { code, len } = CODE_TABLE[SYMBOLS[index] as usize];
        if len > STEP_BITS as u32 {
            let run = &mut runs[len as usize - STEP_BITS as usize - 1];
            let shift = 32 - len;
            if run.len == 0 {
                *run = Run {
                    len,
                    start: code << shift,
                    end: 0,
                    first: index as u8,
                };
            }
            run.end = (code + 1) << shift;
        }
        index += 1;
    }
    runs
};

const SHORTEST: usize = 5;
const LONGEST: usize = 30;

/// The number of bits that are looked up at once: the codes of most pairs of letters fit, and the table takes 16 KB.
const STEP_BITS: u8 = 12;

/// The length in bits of the code of each byte. The end symbol's code is thirty ones.
#[rustfmt::skip]
const LENGTHS: [u8; 256] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28,
    28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 28,
    6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6,
    5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10,
    13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7,
    7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6,
    15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5,
    6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28,
    20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23,
    24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24,
    22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23,
    21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23,
    26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25,
    19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27,
    20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23,
    26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26,
];

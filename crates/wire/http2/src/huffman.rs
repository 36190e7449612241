//! The Huffman code of strings (RFC 7541, section 5.2 and appendix B), which HPACK and QPACK share.
//!
//! The code is canonical: codes of one length follow one another in the order of their symbols, and longer ones begin
//! where the shorter ones end. All tables are therefore made from the lengths alone.

use bytes::BytesMut;
use thiserror::Error;

/// Bytes that are no string in this code: they contain its end symbol, or are not filled up with fewer than eight ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("malformed Huffman code")]
pub struct InvalidCode;

/// Appends to `text` what `code` means.
///
/// # Errors
/// [`InvalidCode`]; what is in `text` then has no meaning.
pub fn decode(code: &[u8], text: &mut Vec<u8>) -> Result<(), InvalidCode> {
    let start = text.len();
    text.resize(start + code.len() * 8 / SHORTEST, 0);
    let mut slots = text[start..].iter_mut();
    // The next bits from the highest one on, and how many they are.
    let (mut window, mut bits) = (0_u64, 0);
    let mut words = code.chunks_exact(4);
    for word in &mut words {
        let word = word
            .iter()
            .fold(0, |word, byte| word << 8 | u64::from(*byte));
        window |= word << (32 - bits);
        bits += 32;
        while bits >= 32 {
            let (symbol, len) = first_symbol(window).ok_or(InvalidCode)?;
            if let Some(slot) = slots.next() {
                *slot = symbol;
            }
            window <<= len;
            bits -= len;
        }
    }
    for byte in words.remainder() {
        window |= u64::from(*byte) << (56 - bits);
        bits += 8;
    }
    // Ones follow: together with the padding they are the beginning of the end symbol.
    while let Some((symbol, len)) = first_symbol(window | u64::MAX >> bits)
        && len <= bits
    {
        if let Some(slot) = slots.next() {
            *slot = symbol;
        }
        window <<= len;
        bits -= len;
    }
    let unused = slots.len();
    text.truncate(text.len() - unused);
    let is_padding = bits < 8 && window | u64::MAX >> bits == u64::MAX;
    is_padding.then_some(()).ok_or(InvalidCode)
}

/// How many bytes [`encode`] writes.
#[inline]
pub fn encoded_len(text: impl Iterator<Item = u8>) -> usize {
    let bits: usize = text
        .map(|byte| usize::from(LENGTHS[usize::from(byte)]))
        .sum();
    bits.div_ceil(8)
}

/// Writes a text in this code.
#[inline]
pub fn encode(text: impl Iterator<Item = u8>, out: &mut BytesMut) {
    // The lowest bits are those that are not written.
    let (mut window, mut bits) = (0_u64, 0);
    for byte in text {
        let Code { code, len } = CODES[usize::from(byte)];
        window = window << len | u64::from(code);
        bits += u32::from(len);
        if bits >= 32 {
            bits -= 32;
            out.extend_from_slice(&((window >> bits) as u32).to_be_bytes());
        }
    }
    // Fewer than 32 bits, and ones behind them.
    let rest = (window << 32 | u64::from(u32::MAX)) >> bits;
    out.extend_from_slice(&(rest as u32).to_be_bytes()[..bits.div_ceil(8) as usize]);
}

/// The symbol at the beginning of the window and the length of its code. `None` for the end symbol.
#[inline]
fn first_symbol(window: u64) -> Option<(u8, u32)> {
    match SHORT[(window >> 56) as usize] {
        (symbol, len @ 1..) => Some((symbol, len.into())),
        _ => first_long_symbol((window >> 32) as u32),
    }
}

/// The same for codes longer than eight bits.
fn first_long_symbol(window: u32) -> Option<(u8, u32)> {
    let run = LONG.iter().find(|run| window < run.end)?;
    let at = usize::from(run.first) + ((window - run.start) >> (32 - run.len)) as usize;
    Some((*BY_CODE.get(at)?, run.len))
}

/// The code of a symbol: the lowest `len` bits.
#[derive(Clone, Copy)]
struct Code {
    code: u32,
    len: u8,
}

/// Codes of one length.
#[derive(Clone, Copy)]
struct Run {
    len: u32,
    /// The first of them, and what follows the last, from the highest bit on.
    start: u32,
    end: u32,
    /// Where its symbols are in `BY_CODE`.
    first: u8,
}

/// The symbols in the order of their codes.
static BY_CODE: [u8; 256] = TABLE;

const TABLE: [u8; 256] = {
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
    let (mut next, mut at) = (0, 0);
    let mut len = LENGTHS[TABLE[0] as usize];
    while at < 256 {
        let symbol = TABLE[at] as usize;
        next <<= LENGTHS[symbol] - len;
        len = LENGTHS[symbol];
        codes[symbol] = Code { code: next, len };
        next += 1;
        at += 1;
    }
    codes
};

/// By the next eight bits, symbols whose codes are not longer. A length of 0: it is longer.
static SHORT: [(u8, u8); 256] = {
    let mut table = [(0, 0); 256];
    let mut symbol = 0;
    while symbol < 256 {
        let Code { code, len } = CODE_TABLE[symbol];
        if len <= 8 {
            let mut rest = 0;
            while rest < 1 << (8 - len) {
                table[(code << (8 - len)) as usize + rest] = (symbol as u8, len);
                rest += 1;
            }
        }
        symbol += 1;
    }
    table
};

/// The longer codes by their lengths. No code has nine bits.
static LONG: [Run; LONGEST - 8] = {
    let none = Run {
        len: 0,
        start: 0,
        end: 0,
        first: 0,
    };
    let mut runs = [none; LONGEST - 8];
    let mut at = 0;
    while at < 256 {
        let Code { code, len } = CODE_TABLE[TABLE[at] as usize];
        if len > 8 {
            let run = &mut runs[len as usize - 9];
            let shift = 32 - len as u32;
            if run.len == 0 {
                *run = Run {
                    len: len as u32,
                    start: code << shift,
                    end: 0,
                    first: at as u8,
                };
            }
            run.end = (code + 1) << shift;
        }
        at += 1;
    }
    runs
};

const SHORTEST: usize = 5;
const LONGEST: usize = 30;

/// How many bits the code of each byte has. The end symbol has thirty, all ones.
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

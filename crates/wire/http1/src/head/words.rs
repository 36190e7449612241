//! Searches that look at several bytes at a time.
//!
//! A vectorised search that is called for each line costs more than it saves: most lines are short.

/// The position of the first control character other than a tab.
#[inline(always)]
pub(crate) fn first_control(bytes: &[u8]) -> Option<usize> {
    // The empty line at the end of a head.
    if bytes.first() == Some(&b'\r') {
        return Some(0);
    }
    let mut from = 0;
    loop {
        from += plain_blocks(&bytes[from..]);
        let control = from + first(&bytes[from..], controls)?;
        if bytes[control] != b'\t' {
            return Some(control);
        }
        from = control + 1;
    }
}

/// The number of bytes before the first block of sixteen that may contain a control character. There is no branch
/// within a block, so compilers make vector instructions of it.
#[inline(always)]
fn plain_blocks(bytes: &[u8]) -> usize {
    let is_control = |byte: &u8| (*byte < b' ') | (*byte == 0x7f);
    let has_control =
        |block: &[u8; 16]| block.iter().fold(false, |has, byte| has | is_control(byte));
    let (blocks, _) = bytes.as_chunks();
    let plain = blocks.iter().position(has_control);
    16 * plain.unwrap_or(blocks.len())
}

/// The position of the first byte equal to `sought`.
#[inline(always)]
pub(crate) fn first_byte(bytes: &[u8], sought: u8) -> Option<usize> {
    let sought = ONES * u64::from(sought);
    first(bytes, |word| zeros(word ^ sought))
}

/// The position of the first byte that `mark` marks. `mark` gets eight bytes as a word; the lowest bit that it sets
/// must be the highest bit of the first marked byte.
#[inline(always)]
fn first(bytes: &[u8], mark: impl Fn(u64) -> u64) -> Option<usize> {
    let first_marked = |marks: u64| marks.trailing_zeros() as usize / 8;
    let (words, _) = bytes.as_chunks();
    for (index, word) in words.iter().enumerate() {
        let marks = mark(u64::from_le_bytes(*word));
        if marks != 0 {
            return Some(index * 8 + first_marked(marks));
        }
    }
    // Its first bytes may have been in the word before too.
    if let Some(last) = bytes.last_chunk() {
        let marks = mark(u64::from_le_bytes(*last));
        return (marks != 0).then(|| bytes.len() - 8 + first_marked(marks));
    }
    let mut padded = [0; 8];
    padded[..bytes.len()].copy_from_slice(bytes);
    // 8 without a mark; the padding may be marked.
    let index = first_marked(mark(u64::from_le_bytes(padded)));
    (index < bytes.len()).then_some(index)
}

/// Sets the highest bit of bytes below a space, and of DEL.
#[inline]
fn controls(word: u64) -> u64 {
    let below_space = word.wrapping_sub(ONES * 0x20) & !word & HIGHS;
    below_space | zeros(word ^ (ONES * 0x7f))
}

/// Sets the highest bit of bytes that are zero.
#[inline]
fn zeros(word: u64) -> u64 {
    word.wrapping_sub(ONES) & !word & HIGHS
}

const ONES: u64 = 0x0101_0101_0101_0101;
const HIGHS: u64 = ONES * 0x80;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_byte_is_found_wherever_it_is() {
        for byte in 0..=255_u8 {
            let is_control = byte.is_ascii_control() && byte != b'\t';
            let filler = if byte == b'a' { b'b' } else { b'a' };
            for len in 0..20 {
                let mut text = vec![filler; len];
                assert_eq!(first_control(&text), None, "{len}");
                assert_eq!(first_byte(&text, byte), None, "{byte} in {len}");
                for at in (0..len).rev() {
                    text[at] = byte;
                    let expected = is_control.then_some(at);
                    assert_eq!(first_control(&text), expected, "{byte} at {at} of {len}");
                    assert_eq!(first_byte(&text, byte), Some(at), "{byte} at {at} of {len}");
                }
            }
        }
    }

    #[test]
    fn tabs_are_no_controls() {
        assert_eq!(first_control(b"a\t\tb\tcdefgh\t\0"), Some(12));
        assert_eq!(first_control(b"\t\t\t\t\t\t\t\t\t\t"), None);
    }
}

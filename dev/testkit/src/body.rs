//! Bodies of any length without holding them: a reproducible pattern and a running digest.
//!
//! The pattern repeats every [`Pattern::PERIOD`] bytes, a prime: no buffer or packet size divides
//! it, so a lost, doubled or reordered piece changes the digest. The webapp of the end-to-end
//! tests makes the same bytes.

use std::fmt::Write as _;
use std::io::{self, Read, Write};

use sha2::Digest as _;

/// The first `length` bytes of the test pattern, as a reader.
#[derive(Debug)]
pub struct Pattern {
    block: Vec<u8>,
    position: u64,
    length: u64,
}

impl Pattern {
    /// The length in bytes after which the pattern repeats.
    pub const PERIOD: u64 = 65_521;

    /// A reader of the pattern's first `length` bytes.
    #[must_use]
    pub fn new(length: u64) -> Self {
        let block = (0..Self::PERIOD).map(Self::byte).collect();
        Self {
            block,
            position: 0,
            length,
        }
    }

    /// The pattern's first `length` bytes, in memory.
    ///
    /// # Panics
    /// There is not enough memory.
    #[must_use]
    pub fn bytes(length: u64) -> Vec<u8> {
        let mut bytes = Vec::new();
        Self::new(length)
            .read_to_end(&mut bytes)
            .expect("reading the pattern cannot fail");
        bytes
    }

    /// The SHA-256 digest of the pattern's first `length` bytes, in hexadecimal.
    ///
    /// # Panics
    /// Never: reading the pattern and hashing cannot fail.
    #[must_use]
    pub fn sha256_hex(length: u64) -> String {
        let mut digest = Sha256::default();
        io::copy(&mut Self::new(length), &mut digest).expect("neither side can fail");
        digest.hex()
    }

    fn byte(position: u64) -> u8 {
        let [low, high, ..] = position
            .wrapping_mul(0x9e37_79b1)
            .rotate_right(13)
            .to_le_bytes();
        low ^ high
    }
}

impl Read for Pattern {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let start = usize::try_from(self.position % Self::PERIOD).expect("below the period");
        let remaining = usize::try_from(self.length - self.position).unwrap_or(usize::MAX);
        let count = buffer.len().min(remaining).min(self.block.len() - start);
        buffer[..count].copy_from_slice(&self.block[start..start + count]);
        self.position += count as u64;
        Ok(count)
    }
}

/// A writer that keeps only the SHA-256 digest and the count of what was written to it.
#[derive(Clone, Default)]
pub struct Sha256 {
    digest: sha2::Sha256,
    count: u64,
}

impl Sha256 {
    /// The number of bytes written so far.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The digest of all bytes written so far, in hexadecimal.
    #[must_use]
    pub fn hex(&self) -> String {
        hex(&self.digest.clone().finalize())
    }
}

impl Write for Sha256 {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.digest.update(bytes);
        self.count += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The SHA-256 digest of `bytes` in hexadecimal.
#[must_use]
pub fn sha256_hex(bytes: &[u8]) -> String {
    hex(&sha2::Sha256::digest(bytes))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pattern_has_its_length_and_its_period() {
        assert_eq!(Pattern::bytes(0), b"");
        let bytes = Pattern::bytes(2 * Pattern::PERIOD + 1);
        assert_eq!(bytes.len() as u64, 2 * Pattern::PERIOD + 1);
        let (first, second) = bytes.split_at(usize::try_from(Pattern::PERIOD).unwrap());
        assert_eq!(first, &second[..first.len()]);
    }

    #[test]
    fn a_shift_by_a_packet_shows() {
        let bytes = Pattern::bytes(Pattern::PERIOD);
        for size in [1, 6, 8184, 8186, 8192, 16384, 32768] {
            assert_ne!(bytes[..1000], bytes[size..size + 1000], "{size}");
        }
    }

    #[test]
    fn digests_agree_with_the_standard() {
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(Pattern::sha256_hex(0), empty);
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(sha256_hex(b"abc"), abc);
        let mut digest = Sha256::default();
        digest.write_all(b"ab").unwrap();
        digest.write_all(b"c").unwrap();
        assert_eq!((digest.hex().as_str(), digest.count()), (abc, 3));
    }
}

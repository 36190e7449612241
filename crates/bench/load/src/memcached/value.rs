//! The form of a value: its key, a space, its checksum, a space, and letters up to its length.
//!
//! The checksum is CRC-32C over the key and the letters, in eight hexadecimal digits. It shows a
//! value of another key, a cut value, and one made of parts of two. The letters depend on the
//! operation, so that a value differs from the one that it replaces.

/// Random letters from which all values take theirs.
#[derive(Debug)]
pub(super) struct Filler(Vec<u8>);

/// Checks that a value belongs to its key and is not damaged, as its bytes arrive.
#[derive(Debug, Default)]
pub(super) struct Check {
    /// The key with which the value must begin; `head` collects its actual beginning.
    key: Vec<u8>,
    head: Vec<u8>,
    checksum: u32,
}

impl Filler {
    /// Letters for values of `value_bytes` bytes.
    pub(super) fn new(value_bytes: usize) -> Self {
        let mut random = fastrand::Rng::with_seed(SEED);
        let letters = std::iter::repeat_with(|| random.lowercase() as u8);
        Self(letters.take(value_bytes + PLACES as usize).collect())
    }

    /// The letters of the value that operation `number` stores.
    pub(super) fn piece(&self, number: u64, length: usize) -> &[u8] {
        let from = (number % PLACES) as usize;
        &self.0[from..from + length]
    }
}

/// Appends a value of `length` bytes for `key`; `length` must suffice for the key and [`OVERHEAD`].
pub(super) fn write(key: &[u8], filler: &[u8], length: usize, out: &mut Vec<u8>) {
    let filler = &filler[..length.saturating_sub(key.len() + OVERHEAD)];
    let checksum = crc32c::crc32c_append(crc32c::crc32c(key), filler);
    out.extend_from_slice(key);
    out.push(b' ');
    out.extend_from_slice(&hex_digits(checksum));
    out.push(b' ');
    out.extend_from_slice(filler);
}

impl Check {
    /// Begins to check a value of `key`.
    pub(super) fn begin(&mut self, key: &[u8]) {
        self.key.clear();
        self.key.extend_from_slice(key);
        self.head.clear();
        self.checksum = crc32c::crc32c(key);
    }

    /// Adds the next bytes of the value.
    pub(super) fn add(&mut self, bytes: &[u8]) {
        let missing = (self.key.len() + OVERHEAD).saturating_sub(self.head.len());
        let (head, filler) = bytes.split_at(missing.min(bytes.len()));
        self.head.extend_from_slice(head);
        if !filler.is_empty() {
            self.checksum = crc32c::crc32c_append(self.checksum, filler);
        }
    }

    /// Whether the value that was added is one of the key, and undamaged.
    pub(super) fn is_right(&self) -> bool {
        let Some(rest) = self.head.strip_prefix(&self.key[..]) else {
            return false;
        };
        let [b' ', digits @ .., b' '] = rest else {
            return false;
        };
        digits == hex_digits(self.checksum)
    }
}

fn hex_digits(checksum: u32) -> [u8; 8] {
    std::array::from_fn(|index| {
        let digit = checksum >> (28 - 4 * index) & 0xF;
        DIGITS[digit as usize]
    })
}

/// The bytes of a value besides its key and its letters: two spaces and the checksum.
pub(crate) const OVERHEAD: usize = 10;

const DIGITS: &[u8; 16] = b"0123456789abcdef";

/// The number of offsets at which a value's letters may begin.
const PLACES: u64 = 61;

const SEED: u64 = 0x6C65_7474_6572_7300;

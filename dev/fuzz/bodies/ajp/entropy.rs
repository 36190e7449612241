//! Makes decisions from the fuzzer's bytes; once they are used up, each is zero.

/// Bytes to decide by.
pub(super) struct Entropy<'a> {
    bytes: &'a [u8],
}

impl<'a> Entropy<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    /// The bytes not used yet.
    pub(super) fn rest(self) -> &'a [u8] {
        self.bytes
    }

    pub(super) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    pub(super) fn byte(&mut self) -> u8 {
        match self.bytes.split_first() {
            Some((byte, rest)) => {
                self.bytes = rest;
                *byte
            }
            None => 0,
        }
    }

    pub(super) fn flag(&mut self) -> bool {
        self.byte() & 1 == 1
    }

    /// A number below `end`, which is not 0.
    pub(super) fn below(&mut self, end: usize) -> usize {
        let number = usize::from(u16::from_be_bytes([self.byte(), self.byte()]));
        number % end
    }
}

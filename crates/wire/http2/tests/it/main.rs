//! What the codec accepts, refuses and writes, seen through its public interface only.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod huffman;

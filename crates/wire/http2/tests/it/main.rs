//! What the codec accepts, refuses and writes, seen through its public interface only.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

/// The bodies of the fuzz targets.
#[path = "../../../../../dev/fuzz/bodies/hpack.rs"]
mod bodies;
mod client;
#[path = "../../../../../dev/fuzz/bodies/http2_codec.rs"]
mod connection_bodies;
mod dialogue;
mod differential;
mod flow;
mod hostile;
mod hpack_decoding;
mod hpack_encoding;
mod hpack_stories;
mod huffman;
mod server;
mod transcript;

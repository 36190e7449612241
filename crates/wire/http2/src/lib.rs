//! HTTP/2 on the wire (RFC 9113), without I/O: bytes go in and come out, sockets and deadlines are the caller's.
//!
//! [`hpack`] compresses header fields; [`huffman`] is the code of strings that HTTP/2 and HTTP/3 share.
#![forbid(unsafe_code)]

pub mod hpack;
pub mod huffman;

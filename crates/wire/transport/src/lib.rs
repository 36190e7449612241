//! Sockets and bytes, for clients and backends alike.
//!
//! [`listen_tcp`] and [`listen_unix`] give each worker a listening socket. A [`Stream`] is a connected socket on
//! tokio's event loop, with or without TLS. [`parse_proxy_header`] reads the header by which a TCP proxy describes a
//! connection. A [`ByteQueue`] holds bytes until they can be moved on. [`Output`] is a queue that is written to a
//! stream. [`buffers`] and [`FreeList`] lend memory to busy connections, so an idle connection holds none.
//! [`PerWorker`] holds a value for each worker. This crate does not know the protocol of the bytes, or who is at the
//! other end.

mod acknowledged;
pub mod buffers;
mod file_output;
mod free_list;
mod listen;
mod output;
mod proxy_header;
mod queue;
mod stream;
mod tls_stream;
mod worker_local;

pub use file_output::{FileOutput, FileOutputFault};
pub use free_list::FreeList;
pub use listen::{SocketFile, TcpOptions, UnixOptions, join_tcp, listen_tcp, listen_unix};
pub use output::{HIGH_WATER, Output};
pub use proxy_header::{
    PROXY_HEADER_MAX, ProxyAddresses, ProxyFault, ProxyHeader, ProxyTls, parse_proxy_header,
};
pub use queue::ByteQueue;
pub use stream::{PeerEnd, ProxyError, Stream};
pub use tls_stream::{HandshakeError, SEAL_MAX, TlsStream, Truncated};
pub use worker_local::{Count, PerWorker};

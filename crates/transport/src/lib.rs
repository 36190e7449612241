//! Sockets and bytes, for clients and backends alike.
//!
//! [`listen_tcp`] and [`listen_unix`] give each worker a listening socket. A [`Stream`] is a connected
//! socket on tokio's event loop. A [`ByteQueue`] holds bytes that wait to
//! be moved on; [`Output`] is one that is written to a stream. [`buffers`] and [`FreeList`] lend
//! memory to connections that are busy, so that an idle one holds none. Which protocol the bytes
//! belong to is not known here, nor who is at the other end.

mod acknowledged;
pub mod buffers;
mod free_list;
mod listen;
mod output;
mod queue;
mod stream;

pub use free_list::FreeList;
pub use listen::{SocketFile, TcpOptions, UnixOptions, join_tcp, listen_tcp, listen_unix};
pub use output::{HIGH_WATER, Output};
pub use queue::ByteQueue;
pub use stream::{PeerEnd, Stream};

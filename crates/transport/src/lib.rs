//! Sockets and bytes, for clients and backends alike.
//!
//! A [`Stream`] is a connected socket on tokio's event loop. [`Output`] is what waits to be written
//! to it, [`Pieces`] what was read from one side and waits for the other. [`buffers`] and [`Stock`]
//! lend memory to connections that are busy, so that an idle one holds none. Which protocol the bytes
//! belong to is not known here, nor who is at the other end.

mod acknowledged;
pub mod buffers;
mod output;
mod pieces;
mod stock;
mod stream;

pub use output::{HIGH_WATER, Output};
pub use pieces::Pieces;
pub use stock::Stock;
pub use stream::Stream;

//! HTTP/2 of one client's connection, below what drives it.
//!
//! The codec is `catamaran_http2`. Here is what a connection's tasks share ([`session`]): its socket, its bytes and
//! what its streams have to send ([`mod@line`]), what limits its client ([`flood`], [`share`]), and one stream as the
//! relay sees it ([`stream`]). [`crate::serve`] has the tasks.

mod channel;
pub(crate) mod flood;
pub(crate) mod line;
pub(crate) mod session;
mod share;
pub(crate) mod stream;
pub(crate) mod websocket;

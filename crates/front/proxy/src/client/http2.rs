//! HTTP/2 of one client's connection, below what drives it.
//!
//! The `h2` crate knows the protocol. Here is what a connection's tasks share ([`session`]), its socket
//! ([`wire`]), what limits its client ([`flood`], [`share`]), and one stream as the relay sees it
//! ([`stream`]). [`crate::serve`] has the tasks.

pub(crate) mod flood;
mod frames;
pub(crate) mod piece;
pub(crate) mod session;
mod share;
pub(crate) mod stream;
pub(crate) mod websocket;
pub(crate) mod wire;

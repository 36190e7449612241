//! Reads how many bytes of a TCP connection the peer's kernel has acknowledged.
//!
//! Linux keeps the figure in TCP_INFO, even after the connection has broken. No safe wrapper has
//! the option yet, so it is declared here with nix's macro, as plain bytes. `transport` has the
//! same for the front; an instrument shares no code with what it measures.

use std::io;
use std::os::fd::AsFd;

use nix::sys::socket::getsockopt;
use nix::{getsockopt_impl, libc, sockopt_impl};

sockopt_impl!(
    /// The beginning of Linux' `struct tcp_info`, which only grows at its end.
    TcpInfo,
    GetOnly,
    libc::IPPROTO_TCP,
    libc::TCP_INFO,
    [u8; LENGTH]
);

/// The bytes that the peer has acknowledged on a connection that this side has made, without its SYN.
pub(crate) fn acknowledged(stream: &impl AsFd) -> io::Result<u64> {
    let info = getsockopt(stream, TcpInfo)?;
    let (_, bytes) = info.split_last_chunk().expect("longer than the figure");
    Ok(u64::from_ne_bytes(*bytes).saturating_sub(1))
}

/// The bytes of the structure up to and including `tcpi_bytes_acked`, the last field read. Linux has it since 4.1.
const LENGTH: usize = 128;

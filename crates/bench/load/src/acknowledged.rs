//! How much of what was written to a TCP connection the peer's kernel has acknowledged.
//!
//! Linux keeps the figure in TCP_INFO, also of a connection that has broken. No safe wrapper knows
//! the option yet, so it is declared here with nix's macro, as plain bytes. `transport` has the same
//! for the front; an instrument shares no code with what it measures.

use std::io;
use std::os::fd::AsFd;

use nix::sys::socket::getsockopt;
use nix::{getsockopt_impl, libc, sockopt_impl};

sockopt_impl!(
    /// The beginning of Linux' `struct tcp_info`, which grows at its end only.
    TcpInfo,
    GetOnly,
    libc::IPPROTO_TCP,
    libc::TCP_INFO,
    [u8; LENGTH]
);

/// Bytes acknowledged since the connection was made by this side, without its SYN.
pub(crate) fn acknowledged(stream: &impl AsFd) -> io::Result<u64> {
    let info = getsockopt(stream, TcpInfo)?;
    let (_, bytes) = info.split_last_chunk().expect("longer than the figure");
    Ok(u64::from_ne_bytes(*bytes).saturating_sub(1))
}

/// Up to and with `tcpi_bytes_acked`, which is the last of these bytes. Linux has it since 4.1.
const LENGTH: usize = 128;

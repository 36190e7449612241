//! How much of what was written to a TCP connection the peer's kernel has acknowledged.
//!
//! Linux has the number in TCP_INFO, also for a connection that has broken. No safe wrapper has the
//! option yet, so it is declared here with nix's macro, as plain bytes: every value that the kernel
//! writes is valid, and nix checks that it wrote them all.

use std::io;

use nix::sys::socket::getsockopt;
use nix::{getsockopt_impl, libc, sockopt_impl};
use tokio::net::TcpStream;

sockopt_impl!(
    /// The socket option TCP_INFO: the beginning of Linux' `struct tcp_info`, which only grows at
    /// its end.
    TcpInfo,
    GetOnly,
    libc::IPPROTO_TCP,
    libc::TCP_INFO,
    [u8; LENGTH]
);

/// The number of bytes acknowledged since the connection was made; on the side that opened it, its
/// SYN counts as one of them.
pub(crate) fn acknowledged(stream: &TcpStream) -> io::Result<u64> {
    let info = getsockopt(stream, TcpInfo)?;
    let (_, bytes) = info.split_last_chunk().expect("longer than the figure");
    Ok(u64::from_ne_bytes(*bytes))
}

/// The bytes read of the structure: up to and including `tcpi_bytes_acked`, which Linux has since
/// 4.1.
const LENGTH: usize = 128;

//! Tells nodes by multicast where the front is, in the way that mod_cluster nodes expect.
//!
//! The digest proves to nodes that the front has their key. It does not prove anything about nodes
//! to the front.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::{Duration, SystemTime};

use md5::{Digest as _, Md5};
use socket2::SockRef;
use tokio::net::UdpSocket;
use tokio::time::sleep;

/// The address, interface and key with which the front advertises itself to nodes.
#[derive(Clone, PartialEq, Eq)]
pub struct AdvertConfig {
    /// The multicast group and its port; the default of nodes is 224.0.1.105:23364.
    pub group: (Ipv4Addr, u16),
    /// The address of the interface through which advertisements are sent.
    pub interface: Ipv4Addr,
    /// The key by which nodes recognise the front (`advertise-security-key`); `None`: they require
    /// none.
    pub key: Option<String>,
}

impl std::fmt::Debug for AdvertConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (group, port) = self.group;
        let key = if self.key.is_some() {
            " with a key"
        } else {
            ""
        };
        write!(f, "AdvertConfig({group}:{port} by {}{key})", self.interface)
    }
}

/// Advertises a listener every 5 s. Without a configuration it never sends anything.
pub(super) async fn advertise(config: Option<AdvertConfig>, listen: SocketAddr) {
    let Some(config) = config else {
        return std::future::pending().await;
    };
    let server = identity();
    let mut sequence = 0_u64;
    loop {
        // An interface may come up later.
        if let Ok(socket) = socket(&config).await {
            sequence += 1;
            let date = httpdate::fmt_http_date(SystemTime::now());
            let advert = advert(&config, listen, &server, sequence, &date);
            socket.send_to(advert.as_bytes(), config.group).await.ok();
        }
        sleep(PERIOD).await;
    }
}

/// A socket that sends to the group by the configured interface. Nodes on this machine hear it, too (loop).
async fn socket(config: &AdvertConfig) -> std::io::Result<UdpSocket> {
    let socket = UdpSocket::bind((config.interface, 0)).await?;
    let options = SockRef::from(&socket);
    options.set_multicast_if_v4(&config.interface)?;
    options.set_multicast_ttl_v4(TTL)?;
    options.set_multicast_loop_v4(true)?;
    Ok(socket)
}

/// Formats one advertisement, with the digest as mod_cluster defines it. Without a key, zeros replace the key's MD5.
fn advert(
    config: &AdvertConfig,
    listen: SocketAddr,
    server: &str,
    sequence: u64,
    date: &str,
) -> String {
    // A node cannot connect to a wildcard address.
    let address = if listen.ip().is_unspecified() {
        SocketAddr::new(config.interface.into(), listen.port())
    } else {
        listen
    };
    let salt: [u8; 16] = match &config.key {
        Some(key) => Md5::digest(key.as_bytes()).into(),
        None => [0; 16],
    };
    let digest = Md5::new()
        .chain_update(salt)
        .chain_update(date)
        .chain_update(sequence.to_string())
        .chain_update(server)
        .finalize();
    let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    format!(
        "HTTP/1.0 200 OK\r\nDate: {date}\r\nSequence: {sequence}\r\nDigest: {hex}\r\nServer: {server}\r\n\
         X-Manager-Address: {address}\r\nX-Manager-Url: /\r\nX-Manager-Protocol: http\r\n\
         X-Manager-Host: {}\r\n\r\n",
        address.ip()
    )
}

/// Makes a random identity that distinguishes this front from others; nodes do not interpret it.
fn identity() -> String {
    let number = (u128::from(fastrand::u64(..)) << 64) | u128::from(fastrand::u64(..));
    let digits = format!("{number:032x}");
    let part = |from, to| &digits[from..to];
    format!(
        "{}-{}-{}-{}-{}",
        part(0, 8),
        part(8, 12),
        part(12, 16),
        part(16, 20),
        part(20, 32)
    )
}

/// The time between two advertisements, within which nodes notice a front.
const PERIOD: Duration = Duration::from_secs(5);

/// The time to live of the packets: advertisements do not leave the local network.
const TTL: u32 = 1;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digest_is_the_one_of_the_recording() {
        let config = |key: Option<&str>| AdvertConfig {
            group: ([224, 0, 1, 105].into(), 23364),
            interface: [10, 77, 0, 1].into(),
            key: key.map(str::to_owned),
        };
        let listen = "10.77.0.1:21320".parse().unwrap();
        let server = "d8666ed6-0000-4000-8000-0123456789ab";
        let made = |key, sequence, date| advert(&config(key), listen, server, sequence, date);
        let first = made(None, 1, "Mon, 23 Nov 2026 07:33:49 GMT");
        assert_eq!(
            first,
            "HTTP/1.0 200 OK\r\nDate: Mon, 23 Nov 2026 07:33:49 GMT\r\nSequence: 1\r\n\
             Digest: 0d8b9e81eddc7e79afa1a208c6d8583d\r\nServer: d8666ed6-0000-4000-8000-0123456789ab\r\n\
             X-Manager-Address: 10.77.0.1:21320\r\nX-Manager-Url: /\r\nX-Manager-Protocol: http\r\n\
             X-Manager-Host: 10.77.0.1\r\n\r\n"
        );
        let keyed = made(Some("secret"), 1, "Mon, 23 Nov 2026 07:33:49 GMT");
        assert!(!keyed.contains("0d8b9e81eddc7e79afa1a208c6d8583d"));
    }
}

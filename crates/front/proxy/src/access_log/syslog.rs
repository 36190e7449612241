//! A syslog server, to which each line of an access log is sent as a message of its own (RFC 5424).
//!
//! Only the log's own thread connects and sends. It connects again after a server was restarted; while there is none,
//! lines are lost and counted. A server on another machine does not confirm messages. If a name has several addresses,
//! the first one that has a route is used; after a refused message, the next one.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixDatagram;
use std::process;
use std::time::Duration;

use jiff::Timestamp;
use rustix::system::uname;
use tokio::time::Instant;

use crate::config::SyslogAddress;
use crate::log_target::{Progress, WriteFailure, when_there_is_room};

/// A syslog server, and the connection to it.
#[derive(Debug)]
pub(super) struct Syslog {
    address: SyslogAddress,
    /// The connection; `None`: the next line makes one.
    socket: Option<SyslogSocket>,
    /// When the next connect may be tried, and why the last one failed; `None`: it did not fail.
    failed: Option<(Instant, String)>,
    /// How often a server's machine has refused a message; over UDP that is reported by a later send.
    refusals: usize,
    /// What stands in each message between its time and its text.
    sender: String,
    /// The message that is being sent.
    message: Vec<u8>,
}

#[derive(Debug)]
enum SyslogSocket {
    Unix(UnixDatagram),
    Udp(UdpSocket),
}

impl Syslog {
    /// A server at this address. The first line connects to it.
    pub(super) fn new(address: SyslogAddress) -> Self {
        let names = uname();
        let host_name = names.nodename().to_str().unwrap_or_default();
        // A message may name no host (`-`), but not one with blanks or control characters.
        let is_valid = !host_name.is_empty() && host_name.bytes().all(|it| it.is_ascii_graphic());
        let host = if is_valid { host_name } else { "-" };
        let id = process::id();
        Self {
            address,
            socket: None,
            failed: None,
            refusals: 0,
            sender: format!(" {host} catamaran {id} access - "),
            message: Vec::new(),
        }
    }

    /// Sends whole lines, each as a message with the present time. After a failure the lines not yet sent are lost.
    pub(super) fn write(&mut self, lines: &[u8], progress: &Progress) -> Result<(), WriteFailure> {
        let head = self.head();
        let room = self.address.message_max().saturating_sub(head.len());
        let mut lost = 0;
        let mut last_refusal = None;
        let mut lines_left = lines.split_inclusive(|&byte| byte == b'\n');
        while let Some(line) = lines_left.next() {
            let text = line.strip_suffix(b"\n").unwrap_or(line);
            self.message.clear();
            self.message.extend_from_slice(head.as_bytes());
            self.message.extend_from_slice(cut(text, room));
            match progress.during(|| self.send()) {
                Ok(None) => {}
                Ok(Some(error)) => {
                    lost += 1;
                    last_refusal = Some(error);
                }
                Err(error) => {
                    lost += 1 + lines_left.count() as u64;
                    return Err(WriteFailure { error, lost });
                }
            }
        }
        match last_refusal {
            Some(error) => Err(WriteFailure { error, lost }),
            None => Ok(()),
        }
    }

    /// The beginning of each message that is sent now.
    fn head(&self) -> String {
        // Milliseconds, because a message must not have more than six digits of a second.
        let millis = Timestamp::now().as_millisecond();
        let now = Timestamp::from_millisecond(millis).unwrap_or_default();
        format!("{PRIORITY_AND_VERSION}{now}{}", self.sender)
    }

    /// Sends the message, over a new connection if the present one is broken. `Ok(Some(_))`: the message was sent, but
    /// an earlier one was refused.
    fn send(&mut self) -> io::Result<Option<io::Error>> {
        let mut refusal = None;
        if let Some(socket) = &self.socket {
            match socket.send(&self.message) {
                Ok(()) => return Ok(None),
                // The server is there, but takes no message for now. A new connection would change nothing.
                Err(error) if error.kind() == io::ErrorKind::TimedOut => return Err(error),
                Err(error) => {
                    // Over UDP the refusal belongs to an earlier message; over a local socket, to this one.
                    let is_udp = matches!(socket, SyslogSocket::Udp(_));
                    if is_udp && error.kind() == io::ErrorKind::ConnectionRefused {
                        self.refusals = self.refusals.wrapping_add(1);
                        refusal = Some(error);
                    }
                    self.socket = None;
                }
            }
        }
        let connected = self.connect()?;
        let socket = self.socket.insert(connected);
        socket.send(&self.message).map(|()| refusal)
    }

    /// Connects to the server. Within [`RETRY_AFTER`] after a failed connect, returns the same failure again.
    fn connect(&mut self) -> io::Result<SyslogSocket> {
        let now = Instant::now();
        let reason = match &self.failed {
            Some((next_try, reason)) if now < *next_try => reason.clone(),
            _ => match SyslogSocket::connect(&self.address, self.refusals) {
                Ok(socket) => {
                    self.failed = None;
                    return Ok(socket);
                }
                Err(error) => {
                    let reason = format!("no connection to {}: {error}", self.address);
                    self.failed = Some((now + RETRY_AFTER, reason.clone()));
                    reason
                }
            },
        };
        Err(io::Error::new(io::ErrorKind::NotConnected, reason))
    }
}

impl SyslogSocket {
    /// Connects to the server. Of several addresses those come last that have refused a message.
    fn connect(address: &SyslogAddress, refusals: usize) -> io::Result<Self> {
        match address {
            SyslogAddress::Unix(path) => {
                let socket = UnixDatagram::unbound()?;
                socket.connect(path)?;
                socket.set_nonblocking(true)?;
                Ok(Self::Unix(socket))
            }
            SyslogAddress::Udp { host, port } => {
                let resolved = (host.as_str(), *port).to_socket_addrs()?;
                let mut addresses: Vec<SocketAddr> = resolved.collect();
                // Each refusal moves on by one address. There may be no address: then `checked_rem` gives `None`.
                let first = refusals.checked_rem(addresses.len());
                addresses.rotate_left(first.unwrap_or(0));
                udp_to_any(&addresses).map(Self::Udp)
            }
        }
    }

    /// Sends a message. If the server's queue is full, waits for a short time.
    fn send(&self, message: &[u8]) -> io::Result<()> {
        let sent = when_there_is_room(self, || match self {
            Self::Unix(socket) => socket.send(message),
            Self::Udp(socket) => socket.send(message),
        });
        sent.map(|_| ())
    }
}

impl AsFd for SyslogSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Unix(socket) => socket.as_fd(),
            Self::Udp(socket) => socket.as_fd(),
        }
    }
}

/// A UDP socket that is connected to the first of these addresses to which the machine has a route.
fn udp_to_any(addresses: &[SocketAddr]) -> io::Result<UdpSocket> {
    let mut last_error = io::ErrorKind::NotFound.into();
    for address in addresses {
        match udp_to(*address) {
            Ok(socket) => return Ok(socket),
            Err(error) => last_error = error,
        }
    }
    Err(last_error)
}

fn udp_to(to: SocketAddr) -> io::Result<UdpSocket> {
    let from: SocketAddr = match to {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    };
    let socket = UdpSocket::bind(from)?;
    socket.connect(to)?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

/// The beginning of a text, at most `max` bytes, without a part of a UTF-8 character at its end.
fn cut(text: &[u8], max: usize) -> &[u8] {
    let Some((mut kept, dropped)) = text.split_at_checked(max) else {
        return text;
    };
    // Whether a byte is not the first of its character.
    let is_inner = |byte: Option<&u8>| byte.is_some_and(|byte| byte & 0xC0 == 0x80);
    if is_inner(dropped.first()) {
        while is_inner(kept.last()) {
            kept = &kept[..kept.len() - 1];
        }
        // The first byte of the character whose other bytes were dropped.
        kept = &kept[..kept.len().saturating_sub(1)];
    }
    kept
}

/// Facility `local7` and severity `info`, as those of nginx are, and the version of the protocol.
const PRIORITY_AND_VERSION: &str = "<190>1 ";

/// The pause after a failed connect, so that a host name is not resolved for every batch of lines.
const RETRY_AFTER: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use std::path::Path;

    use catamaran_testkit::Deadline;

    use super::*;

    fn to(path: &Path) -> Syslog {
        Syslog::new(SyslogAddress::Unix(path.to_owned()))
    }

    /// Returns the lost lines; 0: all were sent.
    fn send(syslog: &mut Syslog, lines: &str) -> u64 {
        let written = syslog.write(lines.as_bytes(), &Progress::new());
        written.err().map_or(0, |failure| failure.lost)
    }

    fn text(server: &UnixDatagram) -> String {
        let mut message = vec![0; 10_000];
        server.set_nonblocking(true).unwrap();
        let length = server.recv(&mut message).unwrap();
        String::from_utf8(message[..length].to_vec()).unwrap()
    }

    #[test]
    fn each_line_is_a_message() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log");
        let server = UnixDatagram::bind(&path).unwrap();
        let mut syslog = to(&path);
        assert_eq!(send(&mut syslog, "one\na \"b\" \u{e9}\n"), 0);
        let first = text(&server);
        let [time, host, app, id, kind, data, line] = first
            .strip_prefix("<190>1 ")
            .and_then(|rest| rest.splitn(7, ' ').collect::<Vec<_>>().try_into().ok())
            .unwrap_or_else(|| panic!("{first}"));
        let fraction = time.split_once('.').map_or("", |(_, fraction)| fraction);
        assert!(
            time.parse::<Timestamp>().is_ok() && fraction.len() <= 4,
            "{first}"
        );
        assert!(!host.is_empty(), "{first}");
        assert_eq!(id, process::id().to_string());
        assert_eq!([app, kind, data, line], ["catamaran", "access", "-", "one"]);
        assert!(text(&server).ends_with(" - a \"b\" \u{e9}"));
        // Of too long a line the beginning is sent.
        let long = "\u{e9}".repeat(5000) + "\n";
        assert_eq!(send(&mut syslog, &long), 0);
        let message = text(&server);
        assert!(message.ends_with('\u{e9}') && (8191..=8192).contains(&message.len()));
    }

    #[test]
    fn a_server_that_comes_back_is_used_again() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log");
        let mut syslog = to(&path);
        assert_eq!(send(&mut syslog, "a\nb\nc\n"), 3, "there is none yet");
        let server = UnixDatagram::bind(&path).unwrap();
        let sent = || (send(&mut syslog, "d\n") == 0).then_some(());
        Deadline::default().poll("a server", sent).unwrap();
        assert!(text(&server).ends_with(" d"));
        drop(server);
        std::fs::remove_file(&path).unwrap();
        let anew = UnixDatagram::bind(&path).unwrap();
        assert_eq!(send(&mut syslog, "e\n"), 0, "connected to at once");
        assert!(text(&anew).ends_with(" e"));
    }

    #[test]
    fn what_a_machine_refuses_over_udp_is_lost() {
        let server = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = server.local_addr().unwrap().port();
        let host = "127.0.0.1".to_owned();
        let mut syslog = Syslog::new(SyslogAddress::Udp { host, port });
        assert_eq!(send(&mut syslog, "a\n"), 0);
        let mut message = [0; 2100];
        let length = server.recv(&mut message).unwrap();
        assert!(message[..length].ends_with(b" - a"));
        assert_eq!(send(&mut syslog, &("x".repeat(5000) + "\n")), 0);
        assert_eq!(server.recv(&mut message).unwrap(), 2048);
        drop(server);
        assert!(send(&mut syslog, "b\nc\nd\n") > 0);
        assert!(syslog.refusals > 0, "another address would be the first");
    }

    #[test]
    fn of_several_addresses_the_first_with_a_way_is_used() {
        let server = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let good = server.local_addr().unwrap();
        // A socket may not send to all unless it has asked for that.
        let bad: SocketAddr = (Ipv4Addr::BROADCAST, 514).into();
        let socket = udp_to_any(&[bad, good, bad]).unwrap();
        assert_eq!(socket.peer_addr().unwrap(), good);
        let error = udp_to_any(&[bad]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
        let error = udp_to_any(&[]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn a_cut_leaves_whole_characters() {
        for (whole, max, expected) in [
            ("abc", 4, "abc"),
            ("abc", 3, "abc"),
            ("abc", 2, "ab"),
            ("a\u{e9}", 2, "a"),
            ("\u{1f600}", 3, ""),
            ("", 0, ""),
        ] {
            assert_eq!(
                cut(whole.as_bytes(), max),
                expected.as_bytes(),
                "{whole} {max}"
            );
        }
    }
}

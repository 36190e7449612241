//! A DNS server for tests, over UDP and TCP at one port of loopback. A test may change its records while it runs.

use std::collections::HashMap;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

/// A DNS server on UDP and TCP that answers from a table.
#[derive(Debug)]
pub struct DnsServer {
    address: SocketAddr,
    state: Arc<State>,
}

/// The server's answer to a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DnsAnswer {
    /// These records, with a time to live in seconds.
    Records(u32, Vec<DnsRecord>),
    /// The name does not exist.
    NxDomain,
    /// The server reports that it failed.
    Failure,
    /// The server does not answer.
    Silence,
}

/// A DNS record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DnsRecord {
    /// An IPv4 address.
    A(Ipv4Addr),
    /// An IPv6 address.
    Aaaa(Ipv6Addr),
    /// The priority, weight, port and target of a service.
    Srv(u16, u16, u16, String),
}

#[derive(Debug, Default)]
struct State {
    table: Mutex<HashMap<(String, u16), DnsAnswer>>,
    asked: Mutex<Vec<(String, u16, bool)>>,
    /// Whether answers over UDP are truncated.
    truncates: AtomicBool,
    ended: AtomicBool,
}

impl DnsServer {
    /// Starts a server whose table is empty.
    ///
    /// # Panics
    /// No port is free.
    #[must_use]
    pub fn start() -> Self {
        Self::on(both())
    }

    /// Like [`DnsServer::start`], but at this address.
    ///
    /// # Errors
    /// The address is in use.
    pub fn start_at(address: SocketAddr) -> std::io::Result<Self> {
        Ok(Self::on((
            UdpSocket::bind(address)?,
            TcpListener::bind(address)?,
        )))
    }

    /// Serves on these sockets, with one thread for each.
    fn on((udp, tcp): (UdpSocket, TcpListener)) -> Self {
        let address = udp.local_addr().expect("a bound socket");
        let state = Arc::new(State::default());
        let (udp_state, tcp_state) = (Arc::clone(&state), Arc::clone(&state));
        thread::spawn(move || udp_state.serve_udp(&udp));
        thread::spawn(move || {
            for stream in tcp.incoming().flatten() {
                if tcp_state.ended.load(Ordering::SeqCst) {
                    return;
                }
                // A client that closes its connection early does not concern other clients.
                tcp_state.serve_tcp(stream).ok();
            }
        });
        Self { address, state }
    }

    /// The server's address.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Sets the answer to questions about `name` of the type `kind`. Questions of other types about `name` get an answer
    /// without records. A name for which nothing was set does not exist.
    pub fn set(&self, name: &str, kind: u16, answer: DnsAnswer) {
        let mut table = self
            .state
            .table
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        table.insert((name.to_ascii_lowercase(), kind), answer);
    }

    /// Whether further answers over UDP are sent without records and with the flag TC, as if they were too long.
    pub fn truncate(&self, truncates: bool) {
        self.state.truncates.store(truncates, Ordering::SeqCst);
    }

    /// The questions so far: name, type, and whether each came over TCP.
    #[must_use]
    pub fn asked(&self) -> Vec<(String, u16, bool)> {
        let asked = self
            .state
            .asked
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        asked.clone()
    }
}

impl Drop for DnsServer {
    fn drop(&mut self) {
        self.state.ended.store(true, Ordering::SeqCst);
        // One connection and one datagram wake the threads, which then end.
        TcpStream::connect(self.address).ok();
        if let Ok(socket) = UdpSocket::bind(("127.0.0.1", 0)) {
            socket.send_to(&[], self.address).ok();
        }
    }
}

/// Binds a UDP and a TCP socket to one port.
fn both() -> (UdpSocket, TcpListener) {
    for _ in 0..100 {
        let tcp = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
        let port = tcp.local_addr().expect("a bound socket").port();
        if let Ok(udp) = UdpSocket::bind(("127.0.0.1", port)) {
            return (udp, tcp);
        }
    }
    panic!("no port is free for both");
}

impl State {
    fn serve_udp(&self, socket: &UdpSocket) {
        let mut message = [0; 4096];
        while let Ok((length, from)) = socket.recv_from(&mut message) {
            if self.ended.load(Ordering::SeqCst) {
                return;
            }
            if let Some(answer) = self.answer(&message[..length], false) {
                socket.send_to(&answer, from).ok();
            }
        }
    }

    fn serve_tcp(&self, mut stream: TcpStream) -> std::io::Result<()> {
        loop {
            let mut length = [0; 2];
            stream.read_exact(&mut length)?;
            let mut message = vec![0; usize::from(u16::from_be_bytes(length))];
            stream.read_exact(&mut message)?;
            let Some(answer) = self.answer(&message, true) else {
                return Ok(());
            };
            let length = u16::try_from(answer.len()).unwrap_or(u16::MAX);
            stream.write_all(&[&length.to_be_bytes()[..], &answer].concat())?;
        }
    }

    /// The answer to a question; `None` to send none.
    fn answer(&self, message: &[u8], over_tcp: bool) -> Option<Vec<u8>> {
        let (name, end) = read_name(message, 12)?;
        let kind = u16::from_be_bytes([*message.get(end)?, *message.get(end + 1)?]);
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        asked.push((name.clone(), kind, over_tcp));
        drop(asked);
        let table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        let has_name = table.keys().any(|(own, _)| *own == name);
        let truncates = !over_tcp && self.truncates.load(Ordering::SeqCst);
        let (code, ttl, records) = match table.get(&(name, kind)) {
            Some(DnsAnswer::Silence) => return None,
            Some(DnsAnswer::Failure) => (SERVFAIL, 0, &[][..]),
            Some(DnsAnswer::Records(ttl, _)) if truncates => (NOERROR, *ttl, &[][..]),
            Some(DnsAnswer::Records(ttl, records)) => (NOERROR, *ttl, &records[..]),
            // The name has records of other types.
            None if has_name => (NOERROR, 0, &[][..]),
            Some(DnsAnswer::NxDomain) | None => (NXDOMAIN, 0, &[][..]),
        };
        let mut reply = message.get(..2)?.to_vec();
        // The flags of a response: RD and RA are set, as by a recursive server; TC if it is truncated.
        reply.push(0x81 | if truncates { 0x02 } else { 0 });
        reply.push(0x80 | code);
        reply.extend(1_u16.to_be_bytes());
        reply.extend(u16::try_from(records.len()).ok()?.to_be_bytes());
        reply.extend([0; 4]);
        reply.extend(message.get(12..end + 4)?);
        for record in records {
            write_record(&mut reply, record, ttl);
        }
        Some(reply)
    }
}

/// Reads the name at the offset `at`. Returns it in lower case, and the offset behind it; `None` if the message is
/// too short.
fn read_name(message: &[u8], mut at: usize) -> Option<(String, usize)> {
    let mut labels = Vec::new();
    loop {
        let length = usize::from(*message.get(at)?);
        at += 1;
        if length == 0 {
            return Some((labels.join("."), at));
        }
        let label = message.get(at..at + length)?;
        labels.push(String::from_utf8_lossy(label).to_ascii_lowercase());
        at += length;
    }
}

fn write_record(reply: &mut Vec<u8>, record: &DnsRecord, ttl: u32) {
    // A pointer to the name in the question, which is at offset 12.
    reply.extend([0xc0, 12]);
    let (kind, data) = match record {
        DnsRecord::A(ip) => (A, ip.octets().to_vec()),
        DnsRecord::Aaaa(ip) => (AAAA, ip.octets().to_vec()),
        DnsRecord::Srv(priority, weight, port, target) => {
            let mut data: Vec<u8> = [priority, weight, port]
                .iter()
                .flat_map(|number| number.to_be_bytes())
                .collect();
            for label in target.split('.').filter(|label| !label.is_empty()) {
                data.push(u8::try_from(label.len()).unwrap_or(63));
                data.extend(label.as_bytes());
            }
            data.push(0);
            (SRV, data)
        }
    };
    reply.extend(kind.to_be_bytes());
    reply.extend(1_u16.to_be_bytes());
    reply.extend(ttl.to_be_bytes());
    reply.extend(u16::try_from(data.len()).unwrap_or(u16::MAX).to_be_bytes());
    reply.extend(data);
}

/// The codes of answers (RFC 1035, section 4.1.1).
const NOERROR: u8 = 0;
const SERVFAIL: u8 = 2;
const NXDOMAIN: u8 = 3;
/// The type of records with an IPv4 address.
pub const A: u16 = 1;
/// The type of records with an IPv6 address.
pub const AAAA: u16 = 28;
/// The type of records with a service.
pub const SRV: u16 = 33;

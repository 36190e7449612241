//! Checks a listener that speaks HTTP/2 with any bytes.
//!
//! A plain function that panics on a finding: the fuzz target calls it, and so does the replay of the
//! committed corpus in the crate's own tests. It talks to a front in this process over a socket.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpStream};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use catamaran_proxy::config::{
    AccessLogTarget, Address, BackendConfig, Config, ListenAddress, ListenerConfig, LogConfig,
    Protocol, Protocols, RouteConfig, RouteTarget, ServerConfig, UpstreamConfig,
};
use catamaran_proxy::{BoundAddress, Running};
use http::StatusCode;

/// A client sends `input` after the preface, whole or in pieces as its first byte says, and closes. The front must
/// close the connection in time, and serve the next client.
pub(crate) fn listener(input: &[u8]) {
    let (&cut, frames) = input.split_first().unwrap_or((&0, &[]));
    let pieces = match cut {
        0 => usize::MAX,
        cut => usize::from(cut),
    };
    // One front for all inputs; the lock lets it handle one input at a time.
    static FRONT: OnceLock<Mutex<Running>> = OnceLock::new();
    let front = FRONT
        .get_or_init(|| Mutex::new(start()))
        .lock()
        .unwrap_or_else(PoisonError::into_inner);
    let [BoundAddress::Tcp(hurried), BoundAddress::Tcp(patient)] = &front.addresses()[..] else {
        unreachable!("it listens on TCP");
    };
    // The front may close the connection while the client still sends.
    let _ = talk(*hurried, frames, pieces);
    assert!(
        serves(*patient).expect("a further client"),
        "a good request"
    );
    let reasons = front.counters().reasons;
    let has_panicked = reasons
        .keys()
        .any(|reason| reason.to_string() == "front:panic");
    assert!(!has_panicked, "a task panicked");
}

/// A front with a route that it answers itself, and one to a backend that does not exist.
fn start() -> Running {
    let address = ListenAddress::Tcp((Ipv4Addr::LOCALHOST, 0).into());
    let mut patient = ListenerConfig::new(address);
    patient.protocols = Protocols::Both;
    // The deadlines of this listener are short, for the input. A good client uses the other one, because it may be
    // slow on a busy machine.
    let mut listener = patient.clone();
    listener.keep_alive_timeout = SOON;
    listener.head_timeout = SOON;
    listener.body_timeout = SOON;
    listener.write_timeout = SOON;
    let nobody = Address::Unix("/nobody/listens/here".into());
    let backend = BackendConfig::new(Protocol::Ajp, nobody);
    let own = StatusCode::NO_CONTENT;
    let config = Config {
        tls: Vec::new(),
        server: ServerConfig::default(),
        listeners: vec![listener, patient],
        caches: Vec::new(),
        limits: Vec::new(),
        auths: Vec::new(),
        upstreams: vec![UpstreamConfig::new("app", vec![backend])],
        routes: vec![
            RouteConfig::new("/", RouteTarget::Upstream("app".to_owned())),
            RouteConfig::new("/ok", RouteTarget::Status(own)),
        ],
        error_pages: None,
        log: LogConfig {
            access: AccessLogTarget::Off,
            ..LogConfig::default()
        },
        trace: None,
        admin: None,
    };
    catamaran_proxy::start(config).expect("a front")
}

/// Sends the preface and `frames`, closes the sending side, and waits until the front has closed.
fn talk(address: SocketAddr, frames: &[u8], pieces: usize) -> io::Result<()> {
    use io::ErrorKind::{TimedOut, WouldBlock};
    let mut socket = TcpStream::connect(address)?;
    socket.set_nodelay(true)?;
    socket.set_read_timeout(Some(LONG))?;
    let mut sent = socket.write_all(PREFACE);
    for piece in frames.chunks(pieces) {
        sent = sent.and_then(|()| socket.write_all(piece));
    }
    socket.shutdown(Shutdown::Write).ok();
    match socket.read_to_end(&mut Vec::new()) {
        Err(error) if [WouldBlock, TimedOut].contains(&error.kind()) => {
            panic!("the front keeps a connection whose client has closed")
        }
        Err(error) => Err(error),
        Ok(_) => sent,
    }
}

/// Whether the front answers a good request with 204.
fn serves(address: SocketAddr) -> io::Result<bool> {
    let mut socket = TcpStream::connect(address)?;
    socket.set_read_timeout(Some(LONG))?;
    socket.write_all(PREFACE)?;
    socket.write_all(GOOD)?;
    loop {
        let mut head = [0; 9];
        socket.read_exact(&mut head)?;
        let [a, b, c, kind, ..] = head;
        let mut payload = vec![0; u32::from_be_bytes([0, a, b, c]) as usize];
        socket.read_exact(&mut payload)?;
        if kind == HEADERS {
            // The static table's `:status: 204`.
            return Ok(payload.first() == Some(&0x89));
        }
    }
}

const HEADERS: u8 = 1;

/// SETTINGS, and a GET of `/ok` with the authority `a`.
const GOOD: &[u8] = b"\0\0\0\x04\0\0\0\0\0\0\0\x0a\x01\x05\0\0\0\x01\x82\x86\x04\x03/ok\x01\x01a";

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

const SOON: Duration = Duration::from_millis(500);

const LONG: Duration = Duration::from_secs(30);

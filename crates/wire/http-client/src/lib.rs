//! A blocking HTTP/1.1 client for commands, tools and threads: one connection, one request at a time, over
//! TCP, with TLS or without, or a Unix socket.
//!
//! Every wait has a deadline, and the caller says how much of a response is read at most. Code that serves
//! requests, or measures times, uses `http1` itself.
#![forbid(unsafe_code)]

mod tls;

use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use bytes::BytesMut;
use catamaran_http1::{Client, ClientEvent, Limits};
use catamaran_message::{BodyLength, Request, ResponseHead};
pub use catamaran_message::{Fields, name};
use catamaran_tls::Trust;
use http::Method;
use socket2::{Domain, SockAddr, Socket, TcpKeepalive, Type};
use tls::TlsSession;

/// The address of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerAddress {
    /// A TCP address.
    Tcp(SocketAddr),
    /// The path of a Unix socket.
    Unix(PathBuf),
}

/// A request to be sent.
#[derive(Clone, Copy, Debug)]
pub struct ClientRequest<'a> {
    /// The method, such as GET.
    pub method: &'a Method,
    /// The path, with the query if there is one.
    pub target: &'a str,
    /// The value of Host.
    pub host: &'a str,
    /// The header fields besides Host.
    pub fields: &'a Fields,
    /// The body; its length is announced.
    pub body: &'a [u8],
}

impl<'a> ClientRequest<'a> {
    /// A GET without further fields.
    #[must_use]
    pub fn get(target: &'a str, host: &'a str) -> Self {
        static NO_FIELDS: Fields = Fields::new();
        Self {
            method: &Method::GET,
            target,
            host,
            fields: &NO_FIELDS,
            body: b"",
        }
    }
}

/// The response to a request.
#[derive(Debug, Default)]
pub struct ClientAnswer {
    /// The head of the final response.
    pub head: Box<ResponseHead>,
    /// The number of body bytes read.
    pub body_bytes: u64,
    /// Whether the body was read to its end; `false` if it was cut at the caller's limit.
    pub is_whole: bool,
}

/// Closes a connection from another thread, whose reads and writes then end at once.
#[derive(Debug)]
pub struct ConnectionCloser(Socket);

impl ConnectionCloser {
    /// Closes the connection, if it is still open.
    pub fn close(&self) {
        // Fails only if the connection is closed already.
        self.0.shutdown(Shutdown::Both).ok();
    }
}

/// A connection to a server, with blocking reads and writes.
#[derive(Debug)]
pub struct BlockingClient {
    socket: Socket,
    /// The TLS of the connection; `None`: it is in clear text.
    session: Option<Box<TlsSession>>,
    codec: Client,
    input: BytesMut,
    timeout: Duration,
    /// The longest time of a request with its response.
    ask_max: Option<Duration>,
}

impl BlockingClient {
    /// Connects to a server. `timeout` limits the wait for the connection, and for each read and write; it is one
    /// millisecond at least.
    ///
    /// # Errors
    /// Those of the system; `TimedOut` if the server does not accept.
    pub fn connect(address: &ServerAddress, timeout: Duration) -> io::Result<Self> {
        let (domain, to) = match address {
            ServerAddress::Tcp(address) => (Domain::for_address(*address), (*address).into()),
            ServerAddress::Unix(path) => (Domain::UNIX, SockAddr::unix(path)?),
        };
        let timeout = timeout.max(WAIT_MIN);
        let socket = Socket::new(domain, Type::STREAM, None)?;
        socket.set_read_timeout(Some(timeout))?;
        socket.set_write_timeout(Some(timeout))?;
        match address {
            ServerAddress::Tcp(_) => {
                socket.connect_timeout(&to, timeout)?;
                socket.set_tcp_nodelay(true)?;
            }
            // The wait for a connection to a Unix socket is limited by the write timeout (socket(7), SO_SNDTIMEO).
            ServerAddress::Unix(_) => socket
                .connect(&to)
                .map_err(|error| in_time(error, timeout))?,
        }
        Ok(Self {
            socket,
            session: None,
            codec: Client::new(Limits::response()),
            input: BytesMut::new(),
            timeout,
            ask_max: None,
        })
    }

    /// Connects to a server as [`Self::connect`] does, and makes a TLS handshake, which takes no longer than
    /// `timeout` either.
    ///
    /// # Errors
    /// As those of [`Self::connect`]; `InvalidData` if the server's certificate is not trusted, or the handshake
    /// fails.
    pub fn connect_tls(
        address: &ServerAddress,
        trust: &Trust,
        timeout: Duration,
    ) -> io::Result<Self> {
        let mut client = Self::connect(address, timeout)?;
        let deadline = Some(now() + client.timeout);
        let shaken = client.shake_hands(TlsSession::new(trust)?, deadline);
        client.session = Some(shaken.map_err(|error| in_time(error, timeout))?);
        Ok(client)
    }

    fn shake_hands(
        &mut self,
        mut session: TlsSession,
        deadline: Option<Instant>,
    ) -> io::Result<Box<TlsSession>> {
        let mut buffer = vec![0; BUFFER];
        let mut len = 0;
        loop {
            let out = session.receive(&buffer[..len])?;
            self.write(&out, deadline)?;
            if session.is_open() {
                return Ok(Box::new(session));
            }
            len = self.read_socket(&mut buffer, deadline)?;
            if len == 0 {
                let text = "the server closed the connection within the handshake";
                return Err(io::Error::new(ErrorKind::UnexpectedEof, text));
            }
        }
    }

    /// Returns what closes this connection from another thread.
    ///
    /// # Errors
    /// Those of the system: the process may have no more descriptors.
    pub fn closer(&self) -> io::Result<ConnectionCloser> {
        self.socket.try_clone().map(ConnectionCloser)
    }

    /// Limits each read and write from now on in place of the timeout of [`Self::connect`], for a response that
    /// comes piece by piece.
    pub fn limit_waits(&mut self, timeout: Duration) {
        self.timeout = timeout.max(WAIT_MIN);
    }

    /// Limits the time of each request with its response from now on, however fast bytes come.
    pub fn limit_asks(&mut self, max: Duration) {
        self.ask_max = Some(max);
    }

    /// Has the system ask the server's for a sign of life while nothing comes. If there is none for about `max`, the
    /// connection breaks off. For TCP alone; `max` is 4 seconds at least.
    ///
    /// # Errors
    /// Those of the system.
    pub fn limit_silence(&self, max: Duration) -> io::Result<()> {
        let max = max.max(SILENCE_MIN);
        let probes = TcpKeepalive::new()
            .with_time(max / 2)
            .with_interval(max / 4);
        self.socket.set_tcp_keepalive(&probes)?;
        // Also counts bytes that were sent and not acknowledged, for which no probe is sent.
        self.socket.set_tcp_user_timeout(Some(max))
    }

    /// Sends a request and reads its response; passes each piece of the body to `keep`. Stops after
    /// `read_max` bytes, the head included.
    ///
    /// # Errors
    /// `InvalidInput` if the request cannot be sent, `InvalidData` if the response is malformed or
    /// incomplete, `TimedOut` if the server is silent or needs too long, and those of the system.
    pub fn ask(
        &mut self,
        request: &ClientRequest<'_>,
        read_max: u64,
        mut keep: impl FnMut(&[u8]),
    ) -> io::Result<ClientAnswer> {
        self.ask_while(request, read_max, |_, piece| {
            keep(piece);
            true
        })
    }

    /// Sends a request and reads its response as [`Self::ask`] does, until `keep` returns `false`; the answer is then
    /// not whole. `keep` gets the head with each piece of the body, and is first called without a piece, as soon as
    /// the head is known.
    ///
    /// # Errors
    /// As those of [`Self::ask`].
    pub fn ask_while(
        &mut self,
        request: &ClientRequest<'_>,
        read_max: u64,
        keep: impl FnMut(&ResponseHead, &[u8]) -> bool,
    ) -> io::Result<ClientAnswer> {
        let deadline = self.ask_max.map(|max| now() + max);
        let answer = self
            .send(request, deadline)
            .and_then(|()| self.receive(read_max, deadline, keep));
        answer.map_err(|error| in_time(error, self.ask_max.unwrap_or(self.timeout)))
    }

    /// Whether the server accepts another request on this connection.
    #[must_use]
    pub fn can_reuse(&self) -> bool {
        self.codec.can_reuse() && self.input.is_empty()
    }

    fn send(&mut self, request: &ClientRequest<'_>, deadline: Option<Instant>) -> io::Result<()> {
        let (path, query) = match request.target.split_once('?') {
            Some((path, query)) => (path, Some(query.as_bytes())),
            None => (request.target, None),
        };
        let head = Request {
            method: request.method,
            path: path.as_bytes(),
            query,
            host: request.host.as_bytes(),
            headers: request.fields,
            body: BodyLength::Known(request.body.len() as u64),
        };
        let mut out = BytesMut::new();
        self.codec
            .send_request(&head, &mut out)
            .map_err(|error| io::Error::new(ErrorKind::InvalidInput, error))?;
        self.codec.send_data(request.body, &mut out);
        self.codec.finish_body(&mut out).map_err(io::Error::other)?;
        match &mut self.session {
            None => self.write(&out, deadline),
            Some(session) => {
                let sealed = session.seal(&out)?;
                self.write(&sealed, deadline)
            }
        }
    }

    /// Writes all bytes to the socket.
    fn write(&mut self, out: &[u8], deadline: Option<Instant>) -> io::Result<()> {
        let mut unwritten = out;
        while !unwritten.is_empty() {
            let wait = self.next_wait(deadline)?;
            self.socket.set_write_timeout(Some(wait))?;
            match self.socket.write(unwritten) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                written => unwritten = &unwritten[written?..],
            }
        }
        Ok(())
    }

    /// How long the next wait may take. After the deadline it is the error of a socket's timeout.
    fn next_wait(&self, deadline: Option<Instant>) -> io::Result<Duration> {
        let Some(deadline) = deadline else {
            return Ok(self.timeout);
        };
        let left = deadline.saturating_duration_since(now());
        if left.is_zero() {
            return Err(ErrorKind::WouldBlock.into());
        }
        Ok(left.clamp(WAIT_MIN, self.timeout))
    }

    /// Reads what the server sent, after waits of limited time; returns the number of bytes, 0 at the end of the
    /// stream.
    fn read(&mut self, buffer: &mut [u8], deadline: Option<Instant>) -> io::Result<usize> {
        loop {
            if let Some(session) = &mut self.session
                && let Some(len) = session.take(buffer)
            {
                return Ok(len);
            }
            let len = self.read_socket(buffer, deadline)?;
            let Some(session) = &mut self.session else {
                return Ok(len);
            };
            if len == 0 {
                let text = "the server closed the connection without a word of TLS";
                return Err(io::Error::new(ErrorKind::UnexpectedEof, text));
            }
            let out = session.receive(&buffer[..len])?;
            self.write(&out, deadline)?;
        }
    }

    /// Reads from the socket once, after a wait of limited time; returns the number of bytes, 0 at the end of the
    /// stream.
    fn read_socket(&mut self, buffer: &mut [u8], deadline: Option<Instant>) -> io::Result<usize> {
        loop {
            let wait = self.next_wait(deadline)?;
            self.socket.set_read_timeout(Some(wait))?;
            match self.socket.read(buffer) {
                // The process was stopped and continued: a read with a timeout then fails (signal(7)).
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                result => return result,
            }
        }
    }

    /// Receives a response and passes its head and body to `keep`. Stops after `read_max` bytes, or when `keep` returns
    /// `false`: the answer is then not whole, and its head is the default one if the response's head was not complete.
    fn receive(
        &mut self,
        read_max: u64,
        deadline: Option<Instant>,
        mut keep: impl FnMut(&ResponseHead, &[u8]) -> bool,
    ) -> io::Result<ClientAnswer> {
        let mut answer = ClientAnswer::default();
        let mut buffer = vec![0; BUFFER];
        let mut left = read_max;
        loop {
            match self.codec.receive(&mut self.input).map_err(broken)? {
                Some(ClientEvent::Head(head)) => {
                    answer.head = head;
                    if !keep(&answer.head, b"") {
                        return Ok(answer);
                    }
                }
                Some(ClientEvent::Body(bytes)) => {
                    answer.body_bytes += bytes.len() as u64;
                    if !keep(&answer.head, &bytes) {
                        return Ok(answer);
                    }
                }
                Some(ClientEvent::End) => {
                    answer.is_whole = true;
                    return Ok(answer);
                }
                Some(ClientEvent::Interim(_) | ClientEvent::Upgraded(_)) => {}
                None if left == 0 => return Ok(answer),
                None => {
                    let room = usize::try_from(left).unwrap_or(BUFFER).min(BUFFER);
                    let len = self.read(&mut buffer[..room], deadline)?;
                    left -= len as u64;
                    self.input.extend_from_slice(&buffer[..len]);
                    if len == 0 {
                        let event = self.codec.receive_eof().map_err(broken)?;
                        answer.is_whole = event == Some(ClientEvent::End);
                        return Ok(answer);
                    }
                }
            }
        }
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "a blocking client has no event loop whose clock it could ask"
)]
fn now() -> Instant {
    Instant::now()
}

fn broken(fault: catamaran_http1::Fault) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, fault)
}

/// Turns the system's error for a socket timeout, `WouldBlock`, into one that says so.
fn in_time(error: io::Error, timeout: Duration) -> io::Error {
    match error.kind() {
        ErrorKind::WouldBlock => io::Error::new(
            ErrorKind::TimedOut,
            format!("the server was silent for {timeout:?}"),
        ),
        _ => error,
    }
}

const BUFFER: usize = 64 << 10;

/// The shortest wait. The system counts microseconds, and takes none of them for a wait without end (socket(7)).
const WAIT_MIN: Duration = Duration::from_millis(1);

/// The shortest silence that ends a connection. The system counts the seconds between its probes.
const SILENCE_MIN: Duration = Duration::from_secs(4);

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn a_silent_server_is_asked_for_a_sign_of_life() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = ServerAddress::Tcp(listener.local_addr().unwrap());
        let client = BlockingClient::connect(&address, Duration::from_secs(60)).unwrap();
        for (max, time, interval) in [(30, 15, 7), (0, 2, 1)] {
            client.limit_silence(Duration::from_secs(max)).unwrap();
            assert!(client.socket.keepalive().unwrap());
            let seconds = Duration::from_secs;
            assert_eq!(client.socket.tcp_keepalive_time().unwrap(), seconds(time));
            let between = client.socket.tcp_keepalive_interval().unwrap();
            assert_eq!(between, seconds(interval));
            let limit = client.socket.tcp_user_timeout().unwrap();
            assert_eq!(limit, Some(seconds(max.max(4))));
        }
    }
}

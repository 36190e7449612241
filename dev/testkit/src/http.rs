//! An HTTP/1.1 client that hides nothing: bytes out as given, exactly one response in.
//!
//! The response is read by its own framing and not one byte further, so what a server sends after a response is left
//! for the next [`HttpClient::receive`]. Interim (1xx) responses are kept in [`Response::interim`]. [`Failure`] says
//! how a connection ended: by a clean close, by a reset, or in the middle of a response.

use std::io::{self, Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr};

use socket2::{Domain, Socket, Type};

use crate::{Address, Deadline};

/// A connection to an HTTP/1.1 server.
#[derive(Debug)]
pub struct HttpClient {
    socket: Socket,
    /// Bytes that were received and not consumed yet.
    input: Vec<u8>,
    deadline: Deadline,
    /// Whether each operation that sends begins another deadline.
    is_patient: bool,
}

/// A response, read completely.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Response {
    /// The status code of the final response.
    pub status: u16,
    /// The text after the status code; may be empty.
    pub reason: String,
    /// Every field line in order, name as sent, value trimmed.
    pub headers: Vec<(String, String)>,
    /// The decoded body; empty if it went to a writer instead.
    pub body: Vec<u8>,
    /// Trailer fields of a chunked body, if any.
    pub trailers: Vec<(String, String)>,
    /// The status codes of the interim responses before this one.
    pub interim: Vec<u16>,
}

/// The reason why a response is missing or not complete.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The server closed before the first byte of a response.
    #[error("the server closed the connection without a response")]
    Closed,
    /// The server reset the connection.
    #[error("the server reset the connection after {received:?}")]
    Reset {
        /// The bytes that had arrived and were not consumed yet.
        received: String,
    },
    /// The server closed the connection in the middle of a response.
    #[error("the response (status {status:?}) was cut short after {body} bytes of body")]
    Truncated {
        /// The status, if the head was complete.
        status: Option<u16>,
        /// The number of body bytes that had arrived.
        body: u64,
    },
    /// The bytes are not an HTTP/1.1 response.
    #[error("not a response: {0}")]
    Malformed(String),
    /// The deadline passed while the client waited for more bytes.
    #[error("gave up waiting for a response after {received:?}")]
    TimedOut {
        /// The bytes that had arrived and were not consumed yet.
        received: String,
    },
    /// Any other error of the socket or the writer.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl HttpClient {
    /// A new connection, which gives up at the default deadline.
    ///
    /// # Errors
    /// Nobody accepts connections at `address`.
    pub fn connect(address: impl Into<Address>) -> io::Result<Self> {
        address.into().connect(Deadline::DEFAULT).map(Self::on)
    }

    /// Like [`HttpClient::connect`], but over TCP from the address `source`. Any address of 127.0.0.0/8 other
    /// than 127.0.0.1 makes another client.
    ///
    /// # Errors
    /// Nothing accepts connections at `address`, or `source` is not an address of this machine.
    pub fn connect_from(source: IpAddr, address: SocketAddr) -> io::Result<Self> {
        let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
        socket.bind(&SocketAddr::new(source, 0).into())?;
        socket.connect_timeout(&address.into(), Deadline::DEFAULT)?;
        socket.set_tcp_nodelay(true)?;
        Ok(Self::on(socket))
    }

    /// The client's own end of a TCP connection.
    ///
    /// # Errors
    /// The socket is not a TCP socket, or is gone.
    pub fn local_address(&self) -> io::Result<SocketAddr> {
        let address = self.socket.local_addr()?.as_socket();
        address.ok_or_else(|| io::ErrorKind::Unsupported.into())
    }

    /// A client on a connected socket: a clone of another client's, for instance, to send on one
    /// thread and receive on another.
    #[must_use]
    pub fn on(socket: Socket) -> Self {
        Self {
            socket,
            input: Vec::new(),
            deadline: Deadline::default(),
            is_patient: true,
        }
    }

    /// Replaces the deadline of all further operations. Without this, each that sends begins another one: a client may
    /// ask for as long as its test lasts.
    pub fn set_deadline(&mut self, deadline: Deadline) {
        self.is_patient = false;
        self.deadline = deadline;
    }

    /// The underlying socket, to look at its addresses or set its options.
    #[must_use]
    pub fn socket(&self) -> &Socket {
        &self.socket
    }

    /// Sends `bytes` as they are.
    ///
    /// # Errors
    /// The server closed or reset the connection, or took nothing until the deadline.
    pub fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.begin_to_send()?;
        self.socket.write_all(bytes)
    }

    /// Sends `bytes` as they are, and reads one response.
    ///
    /// # Errors
    /// As [`HttpClient::send`] and [`HttpClient::receive`].
    pub fn ask(&mut self, bytes: impl AsRef<[u8]>) -> Result<Response, Failure> {
        self.send(bytes.as_ref())?;
        self.receive()
    }

    /// Sends all bytes that `body` yields, without framing.
    ///
    /// # Errors
    /// As [`HttpClient::send`].
    pub fn send_from(&mut self, body: &mut impl Read) -> io::Result<u64> {
        self.begin_to_send()?;
        copy(body, &mut self.socket)
    }

    /// Sends all that `body` gives as chunks of at most `chunk_max` bytes, and the last chunk.
    ///
    /// # Errors
    /// As [`HttpClient::send`].
    pub fn send_chunked(&mut self, body: &mut impl Read, chunk_max: usize) -> io::Result<()> {
        self.begin_to_send()?;
        let mut chunk = vec![0; chunk_max];
        loop {
            let count = body.read(&mut chunk)?;
            let mut packet = format!("{count:x}\r\n").into_bytes();
            packet.extend_from_slice(&chunk[..count]);
            packet.extend_from_slice(b"\r\n");
            self.socket.write_all(&packet)?;
            if count == 0 {
                return Ok(());
            }
        }
    }

    /// Limits the time of what is sent next.
    fn begin_to_send(&mut self) -> io::Result<()> {
        if self.is_patient {
            self.deadline = Deadline::default();
        }
        let left = self.deadline.remaining().ok_or(io::ErrorKind::TimedOut)?;
        self.socket.set_write_timeout(Some(left))
    }

    /// Closes the sending side of the connection; receiving goes on.
    ///
    /// # Errors
    /// The connection is closed already.
    pub fn finish_sending(&self) -> io::Result<()> {
        self.socket.shutdown(Shutdown::Write)
    }

    /// Reads one response with its body.
    ///
    /// # Errors
    /// See [`Failure`].
    pub fn receive(&mut self) -> Result<Response, Failure> {
        let mut body = Vec::new();
        let mut response = self.receive_into(&mut body)?;
        response.body = body;
        Ok(response)
    }

    /// Reads one response and writes its body to `sink`; [`Response::body`] stays empty.
    ///
    /// # Errors
    /// See [`Failure`].
    pub fn receive_into(&mut self, sink: &mut impl Write) -> Result<Response, Failure> {
        let mut response = self.receive_head()?;
        if !matches!(response.status, 204 | 304) {
            self.receive_body(&mut response, sink)?;
        }
        Ok(response)
    }

    /// Reads one response to a HEAD request: whatever its fields say, it has no body.
    ///
    /// This also reads just the head of a response whose body the test wants to leave unread.
    ///
    /// # Errors
    /// See [`Failure`].
    pub fn receive_head(&mut self) -> Result<Response, Failure> {
        let mut interim = Vec::new();
        loop {
            let mut response = self.one_head()?;
            if !(100..200).contains(&response.status) || response.status == 101 {
                response.interim = interim;
                return Ok(response);
            }
            interim.push(response.status);
        }
    }

    /// Reads one interim (1xx) response and returns its status.
    ///
    /// # Errors
    /// See [`Failure`]. A final response is [`Failure::Malformed`].
    pub fn receive_interim(&mut self) -> Result<u16, Failure> {
        let status = self.one_head()?.status;
        if (100..200).contains(&status) {
            Ok(status)
        } else {
            Err(Failure::Malformed(format!(
                "a final {status}, not an interim response"
            )))
        }
    }

    /// Reads until the server closes the connection, and returns all bytes; none if the server closes at once.
    ///
    /// # Errors
    /// See [`Failure`]; a reset is a failure, too.
    pub fn receive_to_end(&mut self) -> Result<Vec<u8>, Failure> {
        while self.fill()? > 0 {}
        Ok(std::mem::take(&mut self.input))
    }

    /// Reads the head of one response, interim or final.
    fn one_head(&mut self) -> Result<Response, Failure> {
        let lines = self.take_block()?;
        let malformed = |line: &str| Failure::Malformed(line.to_owned());
        let Some((status_line, fields)) = lines.split_first() else {
            return Err(malformed("no status line"));
        };
        let behind_version = status_line
            .strip_prefix("HTTP/1.1 ")
            .or_else(|| status_line.strip_prefix("HTTP/1.0 "))
            .ok_or_else(|| malformed(status_line))?;
        let (status, reason) = behind_version
            .split_once(' ')
            .unwrap_or((behind_version, ""));
        Ok(Response {
            status: status.parse().map_err(|_| malformed(status_line))?,
            reason: reason.to_owned(),
            headers: fields
                .iter()
                .map(|line| field(line))
                .collect::<Result<_, _>>()?,
            ..Response::default()
        })
    }

    /// Reads the body, framed as the head says. Without a length, it ends where the server closes.
    fn receive_body(&mut self, head: &mut Response, sink: &mut impl Write) -> Result<(), Failure> {
        if head.header("transfer-encoding") == Some("chunked") {
            return self.receive_chunks(head, sink);
        }
        let Some(text) = head.header("content-length") else {
            self.receive_exactly(u64::MAX, sink)?;
            return Ok(());
        };
        let length = text
            .parse()
            .map_err(|_| Failure::Malformed(format!("content-length {text:?}")))?;
        let body = self.receive_exactly(length, sink)?;
        if body < length {
            let status = Some(head.status);
            return Err(Failure::Truncated { status, body });
        }
        Ok(())
    }

    fn receive_chunks(
        &mut self,
        head: &mut Response,
        sink: &mut impl Write,
    ) -> Result<(), Failure> {
        let mut body = 0;
        let status = Some(head.status);
        loop {
            let Some(line) = self.take_line()? else {
                return Err(Failure::Truncated { status, body });
            };
            let size = u64::from_str_radix(&line, 16)
                .map_err(|_| Failure::Malformed(format!("chunk size {line:?}")))?;
            if size == 0 {
                break;
            }
            let received = self.receive_exactly(size, sink)?;
            body += received;
            match self.take_line()? {
                Some(end) if end.is_empty() => {}
                Some(end) => return Err(Failure::Malformed(format!("chunk followed by {end:?}"))),
                None => return Err(Failure::Truncated { status, body }),
            }
        }
        // Trailer fields, up to an empty line.
        while let Some(line) = self.take_line()? {
            if line.is_empty() {
                return Ok(());
            }
            head.trailers.push(field(&line)?);
        }
        Err(Failure::Truncated { status, body })
    }

    /// Moves up to `length` bytes to `sink`; fewer only if the server closed.
    fn receive_exactly(&mut self, length: u64, sink: &mut impl Write) -> Result<u64, Failure> {
        let mut received = 0;
        while received < length {
            if self.input.is_empty() && self.fill()? == 0 {
                break;
            }
            let left = usize::try_from(length - received).unwrap_or(usize::MAX);
            let count = left.min(self.input.len());
            sink.write_all(&self.input[..count])?;
            self.input.drain(..count);
            received += count as u64;
        }
        Ok(received)
    }

    /// Takes the lines before the next empty line, which is consumed too.
    fn take_block(&mut self) -> Result<Vec<String>, Failure> {
        let mut lines = Vec::new();
        loop {
            match self.take_line()? {
                Some(line) if line.is_empty() => return Ok(lines),
                Some(line) => lines.push(line),
                None if lines.is_empty() && self.input.is_empty() => return Err(Failure::Closed),
                None => {
                    return Err(Failure::Truncated {
                        status: None,
                        body: 0,
                    });
                }
            }
        }
    }

    /// Takes one line without its CRLF; `None` if the server closed before the line's end.
    fn take_line(&mut self) -> Result<Option<String>, Failure> {
        loop {
            if let Some(end) = self.input.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.input.drain(..=end).collect();
                let line = line
                    .strip_suffix(b"\r\n")
                    .ok_or_else(|| Failure::Malformed("a line ends in a bare LF".to_owned()))?;
                return Ok(Some(line.iter().map(|byte| char::from(*byte)).collect()));
            }
            if self.fill()? == 0 {
                return Ok(None);
            }
        }
    }

    /// Reads once from the socket, and returns the number of bytes; 0 if the server has closed.
    fn fill(&mut self) -> Result<usize, Failure> {
        loop {
            let Some(left) = self.deadline.remaining() else {
                return Err(self.failure(io::ErrorKind::TimedOut.into()));
            };
            self.socket.set_read_timeout(Some(left))?;
            let start = self.input.len();
            self.input.resize(start + 64 * 1024, 0);
            let result = self.socket.read(&mut self.input[start..]);
            self.input.truncate(start + *result.as_ref().unwrap_or(&0));
            match result {
                Ok(count) => return Ok(count),
                // A signal to the process interrupted the read; it is repeated until the deadline.
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(self.failure(error)),
            }
        }
    }

    /// A failure to read, with what was received until then.
    fn failure(&self, error: io::Error) -> Failure {
        let received = String::from_utf8_lossy(&self.input).into_owned();
        match error.kind() {
            io::ErrorKind::ConnectionReset => Failure::Reset { received },
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => Failure::TimedOut { received },
            _ => Failure::Io(error),
        }
    }
}

impl Response {
    /// The value of the first field called `name`, in any case.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut fields = self.headers.iter();
        let (_, value) = fields.find(|(field, _)| field.eq_ignore_ascii_case(name))?;
        Some(value)
    }

    /// The values of all fields called `name`, in any case.
    pub fn headers_named<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.headers
            .iter()
            .filter(move |(field, _)| field.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
    }

    /// The body as text; bytes that are not UTF-8 become replacement characters.
    #[must_use]
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

fn field(line: &str) -> Result<(String, String), Failure> {
    let (name, value) = line
        .split_once(':')
        .ok_or_else(|| Failure::Malformed(format!("field line {line:?}")))?;
    Ok((name.to_owned(), value.trim().to_owned()))
}

/// Like `io::copy`, but with a larger buffer, for bodies of gigabytes.
fn copy(from: &mut impl Read, to: &mut impl Write) -> io::Result<u64> {
    let mut buffer = vec![0; 64 * 1024];
    let mut total = 0;
    loop {
        let count = from.read(&mut buffer)?;
        if count == 0 {
            return Ok(total);
        }
        to.write_all(&buffer[..count])?;
        total += count as u64;
    }
}

#[cfg(test)]
mod tests;

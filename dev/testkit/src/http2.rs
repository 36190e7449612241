//! An HTTP/2 client that hides nothing: it sends frames as given, and reports what the peer sent.
//!
//! Heads are encoded as literals without an index, so that any bytes can be sent. The client allows the peer no
//! dynamic table, so that the status can be read from the peer's heads without one.

use std::fmt;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use crate::Deadline;

/// The bytes with which every client begins (RFC 9113, section 3.4).
pub const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// The types of frames.
pub mod kind {
    #![expect(missing_docs, reason = "the names of RFC 9113, section 6")]
    pub const DATA: u8 = 0;
    pub const HEADERS: u8 = 1;
    pub const PRIORITY: u8 = 2;
    pub const RST_STREAM: u8 = 3;
    pub const SETTINGS: u8 = 4;
    pub const PING: u8 = 6;
    pub const GOAWAY: u8 = 7;
    pub const WINDOW_UPDATE: u8 = 8;
    pub const CONTINUATION: u8 = 9;
}

/// The flag END_STREAM of HEADERS and DATA. In SETTINGS and PING the same bit is ACK.
pub const END_STREAM: u8 = 1;

/// The flag END_HEADERS.
pub const END_HEADERS: u8 = 4;

/// The bytes of a frame.
#[must_use]
pub fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let len = u32::try_from(payload.len()).unwrap_or(u32::MAX);
    let mut frame = len.to_be_bytes()[1..].to_vec();
    frame.extend([kind, flags]);
    frame.extend(stream.to_be_bytes());
    frame.extend(payload);
    frame
}

/// The client's first bytes: the preface, and SETTINGS that allow no dynamic table and set the initial window of
/// streams.
#[must_use]
pub fn opening(window: u32) -> Vec<u8> {
    let mut settings = vec![0, 1, 0, 0, 0, 0, 0, 4];
    settings.extend(window.to_be_bytes());
    [PREFACE, &frame(kind::SETTINGS, 0, 0, &settings)].concat()
}

/// A header block with these fields, each as a literal without an index.
#[must_use]
pub fn block(fields: &[(&[u8], &[u8])]) -> Vec<u8> {
    let mut block = Vec::new();
    for (name, value) in fields {
        block.push(0);
        for text in [name, value] {
            integer(text.len(), &mut block);
            block.extend_from_slice(text);
        }
    }
    block
}

/// Writes a length with a prefix of seven bits (RFC 7541, section 5.1).
fn integer(number: usize, out: &mut Vec<u8>) {
    let Some(mut remaining) = number.checked_sub(127) else {
        return out.push(u8::try_from(number).unwrap_or(0x7f));
    };
    out.push(0x7f);
    while remaining >= 128 {
        out.push(u8::try_from(remaining % 128).unwrap_or(0) | 0x80);
        remaining /= 128;
    }
    out.push(u8::try_from(remaining).unwrap_or(0));
}

/// An event that the peer caused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Said {
    /// The stream and the status of a response's head; 0 if the status cannot be read.
    Status(u32, u16),
    /// This stream ended in order.
    End(u32),
    /// This stream was reset, with this error code.
    Reset(u32, u32),
    /// GOAWAY arrived, with this error code.
    GoAway(u32),
    /// The acknowledgement of a PING arrived.
    Pong,
    /// The connection was closed or reset.
    Closed,
}

/// What carries the bytes of a connection: a socket, or TLS on one.
pub trait Wire: Read + Write + fmt::Debug + Send {}

impl<T: Read + Write + fmt::Debug + Send> Wire for T {}

/// One connection.
#[derive(Debug)]
pub struct Http2Client {
    wire: Box<dyn Wire>,
    /// A second handle of the socket below `wire`, to set the timeout of reads.
    socket: TcpStream,
    received: Vec<u8>,
    body: usize,
    unread: Vec<u8>,
    settings: Vec<(u16, u32)>,
    said: std::collections::VecDeque<Said>,
    deadline: Deadline,
}

impl Http2Client {
    /// Connects, and sends nothing.
    ///
    /// # Errors
    /// Nothing accepts connections at the address.
    pub fn connect(address: SocketAddr) -> io::Result<Self> {
        Self::on(TcpStream::connect(address)?, |socket| Ok(Box::new(socket)))
    }

    /// A client on a connected socket. `put` wraps the socket, for instance in TLS.
    ///
    /// # Errors
    /// `put` failed, or the system has no further descriptor.
    pub fn on(
        socket: TcpStream,
        put: impl FnOnce(TcpStream) -> io::Result<Box<dyn Wire>>,
    ) -> io::Result<Self> {
        socket.set_nodelay(true)?;
        socket.set_write_timeout(Some(Deadline::DEFAULT))?;
        Ok(Self {
            wire: put(socket.try_clone()?)?,
            socket,
            received: Vec::new(),
            body: 0,
            unread: Vec::new(),
            settings: Vec::new(),
            said: std::collections::VecDeque::new(),
            deadline: Deadline::default(),
        })
    }

    /// Sends bytes in pieces of `cut` bytes. Stops silently if the peer takes no more.
    pub fn send(&mut self, bytes: &[u8], cut: usize) {
        for piece in bytes.chunks(cut.max(1)) {
            // A server that refuses the request may close the connection while the client still sends.
            if self.wire.write_all(piece).is_err() {
                return;
            }
        }
    }

    /// The number of body bytes received so far, on all streams together.
    #[must_use]
    pub fn body(&self) -> usize {
        self.body
    }

    /// The next `bytes` body bytes; bytes of all streams are mixed in the order of their arrival.
    ///
    /// # Errors
    /// The bytes did not come before the deadline, or the peer closed first.
    pub fn read_body(&mut self, bytes: usize) -> io::Result<Vec<u8>> {
        while self.unread.len() < bytes {
            if !self.take_frame() && !self.read()? {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        Ok(self.unread.drain(..bytes).collect())
    }

    /// The peer's settings so far: identifiers and values (RFC 9113, section 6.5.2).
    #[must_use]
    pub fn settings(&self) -> &[(u16, u32)] {
        &self.settings
    }

    /// The next event.
    ///
    /// # Errors
    /// There was none before the deadline.
    pub fn next_said(&mut self) -> io::Result<Said> {
        loop {
            if let Some(said) = self.said.pop_front() {
                return Ok(said);
            }
            if !self.take_frame() && !self.read()? {
                return Ok(Said::Closed);
            }
        }
    }

    /// The first event that is `wanted`; `None` if the peer closes first.
    ///
    /// # Errors
    /// As [`Self::next_said`].
    pub fn wait(&mut self, wanted: impl Fn(&Said) -> bool) -> io::Result<Option<Said>> {
        loop {
            match self.next_said()? {
                said if wanted(&said) => return Ok(Some(said)),
                Said::Closed => return Ok(None),
                _ => {}
            }
        }
    }

    /// All events from one read.
    ///
    /// # Errors
    /// As [`Self::next_said`].
    pub fn read_once(&mut self) -> io::Result<Vec<Said>> {
        let is_open = self.read()?;
        while self.take_frame() {}
        let closed = (!is_open).then_some(Said::Closed);
        Ok(self.said.drain(..).chain(closed).collect())
    }

    /// Reads once from the wire, and takes all complete frames; `false` if the peer has closed.
    fn read(&mut self) -> io::Result<bool> {
        let left = self.deadline.remaining().unwrap_or(Duration::from_nanos(1));
        self.socket.set_read_timeout(Some(left))?;
        let mut bytes = [0; 16 * 1024];
        match self.wire.read(&mut bytes) {
            Ok(0) => Ok(false),
            Ok(read) => {
                self.received.extend_from_slice(&bytes[..read]);
                Ok(true)
            }
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Takes one frame from what was received; `false` if there is no complete one.
    fn take_frame(&mut self) -> bool {
        let Some((head, behind)) = self.received.split_first_chunk::<9>() else {
            return false;
        };
        let [l0, l1, l2, kind, flags, stream @ ..] = *head;
        let len = u32::from_be_bytes([0, l0, l1, l2]) as usize;
        let stream = u32::from_be_bytes(stream);
        let Some(payload) = behind.get(..len) else {
            return false;
        };
        let word_at = |offset: usize| match payload.get(offset..) {
            Some(bytes) => bytes
                .first_chunk()
                .map_or(0, |word| u32::from_be_bytes(*word)),
            None => 0,
        };
        match kind {
            kind::HEADERS => {
                let status = status(payload).unwrap_or(0);
                self.said.push_back(Said::Status(stream, status));
            }
            kind::DATA => {
                self.body += len;
                self.unread.extend_from_slice(payload);
            }
            kind::SETTINGS => self.settings.extend(settings(payload)),
            kind::RST_STREAM => self.said.push_back(Said::Reset(stream, word_at(0))),
            // The error follows the number of the last stream.
            kind::GOAWAY => self.said.push_back(Said::GoAway(word_at(4))),
            // In a PING, the bit of END_STREAM is that of ACK.
            kind::PING if flags & END_STREAM != 0 => self.said.push_back(Said::Pong),
            _ => {}
        }
        if matches!(kind, kind::HEADERS | kind::DATA) && flags & END_STREAM != 0 {
            self.said.push_back(Said::End(stream));
        }
        self.received.drain(..9 + len);
        true
    }
}

/// The settings in a SETTINGS frame: identifiers and values.
fn settings(payload: &[u8]) -> impl Iterator<Item = (u16, u32)> {
    payload.chunks_exact(6).filter_map(|setting| {
        let (id, value) = setting.split_first_chunk()?;
        let value = value.try_into().ok()?;
        Some((u16::from_be_bytes(*id), u32::from_be_bytes(value)))
    })
}

/// The status at the beginning of a header block (RFC 7541, section 6). The peer must have been told to use no
/// dynamic table.
#[must_use]
pub fn status(mut block: &[u8]) -> Option<u16> {
    // Updates of the table's size come before the fields.
    while let [0x20..=0x3f, rest @ ..] = block {
        block = rest;
    }
    match block {
        [0x88, ..] => Some(200),
        [0x89, ..] => Some(204),
        [0x8a, ..] => Some(206),
        [0x8b, ..] => Some(304),
        [0x8c, ..] => Some(400),
        [0x8d, ..] => Some(404),
        [0x8e, ..] => Some(500),
        [0x08 | 0x18 | 0x48, 3, a, b, c, ..] => {
            std::str::from_utf8(&[*a, *b, *c]).ok()?.parse().ok()
        }
        [0x08 | 0x18 | 0x48, len @ (0x82 | 0x83), code @ ..] => {
            huffman_digits(code.get(..usize::from(len & 0x7f))?)
        }
        _ => None,
    }
}

/// Decodes three digits in Huffman code (RFC 7541, appendix B). The digits 0 to 2 have five bits, the others
/// six.
fn huffman_digits(code: &[u8]) -> Option<u16> {
    let mut bits = code
        .iter()
        .flat_map(|byte| (0..8).rev().map(move |place| byte >> place & 1));
    let mut number = 0;
    for _ in 0..3 {
        let mut digit = 0_u16;
        for _ in 0..5 {
            digit = digit * 2 + u16::from(bits.next()?);
        }
        if digit > 2 {
            digit = digit * 2 + u16::from(bits.next()?);
            // The codes of 3 to 9 follow each other; that of 3 is 0x19.
            digit = digit.checked_sub(0x19)? + 3;
        }
        number = number * 10 + digit;
    }
    Some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_are_read_in_each_form() {
        assert_eq!(status(&[0x88]), Some(200));
        assert_eq!(status(&[0x20, 0x08, 3, b'4', b'2', b'1']), Some(421));
        // 302 and 404, of RFC 7541, appendix C.6.1.
        assert_eq!(status(&[0x48, 0x82, 0x64, 0x02]), Some(302));
        assert_eq!(huffman_digits(&[0x68, 0x0d, 0x7f]), Some(404));
        assert_eq!(status(&[0xbe]), None);
    }

    #[test]
    fn long_texts_have_long_lengths() {
        let long = [b'x'; 1337];
        let block = block(&[(b"n", &long)]);
        assert_eq!(block[..6], [0, 1, b'n', 0x7f, 0xba, 0x09]);
        assert_eq!(block.len(), 6 + 1337);
    }
}

//! AJP13 packets written byte by byte, right or wrong as the test wants them.
//!
//! Nothing here uses the codec under test, because an encoder and a decoder may have the same fault.
//! [`server_rows()`] is the table of what a container must do with bad input; the codec and every driver of the
//! connector are tested by it.

mod server_rows;

pub use self::server_rows::{App, Expect, Row, server_rows};

/// A packet from the web server to the container.
#[must_use]
pub fn to_container(payload: &[u8]) -> Vec<u8> {
    packet(*b"\x12\x34", payload)
}

/// A packet from the container to the web server.
#[must_use]
pub fn to_web_server(payload: &[u8]) -> Vec<u8> {
    packet(*b"AB", payload)
}

/// A packet with the right length before `payload`.
#[must_use]
pub fn packet(magic: [u8; 2], payload: &[u8]) -> Vec<u8> {
    let len = u16::try_from(payload.len()).expect("a test sends no more than a packet holds");
    [&magic[..], &len.to_be_bytes(), payload].concat()
}

/// A DATA packet with `bytes`.
#[must_use]
pub fn data(bytes: &[u8]) -> Vec<u8> {
    data_of(bytes.len(), bytes)
}

/// A DATA packet that contains `bytes` and announces `len` bytes, which may be a wrong number.
#[must_use]
pub fn data_of(len: usize, bytes: &[u8]) -> Vec<u8> {
    let len = u16::try_from(len).expect("a test sends no more than a packet holds");
    to_container(&[&len.to_be_bytes(), bytes].concat())
}

/// An AJP13 string: its length, its bytes and a zero.
#[must_use]
pub fn text(bytes: impl AsRef<[u8]>) -> Vec<u8> {
    let bytes = bytes.as_ref();
    let len = u16::try_from(bytes.len()).expect("a test sends no more than a packet holds");
    [&len.to_be_bytes()[..], bytes, b"\0"].concat()
}

/// AJP13's null string.
#[must_use]
pub fn null() -> Vec<u8> {
    vec![0xFF, 0xFF]
}

/// A field whose name is written as a string.
#[must_use]
pub fn field(name: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Vec<u8> {
    [text(name), text(value)].concat()
}

/// A field whose name is written as a code.
#[must_use]
pub fn coded(code: u8, value: impl AsRef<[u8]>) -> Vec<u8> {
    [vec![0xA0, code], text(value)].concat()
}

/// An attribute whose name is a code and whose value is a string.
#[must_use]
pub fn attribute(code: u8, value: impl AsRef<[u8]>) -> Vec<u8> {
    [vec![code], text(value)].concat()
}

/// An attribute whose name is written as a string.
#[must_use]
pub fn named(name: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Vec<u8> {
    [vec![0x0A], text(name), text(value)].concat()
}

/// The code of the request field Content-Length.
pub const LENGTH: u8 = 0x08;

/// The parts of a FORWARD_REQUEST. A test may make any of them wrong.
#[derive(Clone, Debug)]
pub struct Forward {
    /// The method's code.
    pub method: u8,
    /// The protocol, a [`text`].
    pub protocol: Vec<u8>,
    /// The path, a [`text`].
    pub uri: Vec<u8>,
    /// The client's address, a [`text`].
    pub remote_addr: Vec<u8>,
    /// The client's name, a [`text`] or [`null`].
    pub remote_host: Vec<u8>,
    /// The host that the client asked for, a [`text`].
    pub server_name: Vec<u8>,
    /// The port that the client asked for.
    pub server_port: u16,
    /// Whether the client's connection is encrypted.
    pub is_ssl: u8,
    /// The number of fields that the message announces; `None` for the real number.
    pub count: Option<u16>,
    /// The fields, each a [`field`] or [`coded`].
    pub fields: Vec<Vec<u8>>,
    /// The attributes, each an [`attribute`] or [`named`].
    pub attributes: Vec<u8>,
    /// The bytes that end the attributes.
    pub end: Vec<u8>,
}

/// A request `GET /` with a Host field.
#[must_use]
pub fn get() -> Forward {
    Forward {
        method: 2,
        protocol: text("HTTP/1.1"),
        uri: text("/"),
        remote_addr: text("127.0.0.1"),
        remote_host: null(),
        server_name: text("localhost"),
        server_port: 80,
        is_ssl: 0,
        count: None,
        fields: vec![coded(0x0B, "localhost")],
        attributes: Vec::new(),
        end: vec![0xFF],
    }
}

/// A request `POST /` that announces a body of `length` bytes.
#[must_use]
pub fn post(length: impl ToString) -> Forward {
    get().method(4).field(coded(LENGTH, length.to_string()))
}

impl Forward {
    /// Replaces the code of the method.
    #[must_use]
    pub fn method(mut self, code: u8) -> Self {
        self.method = code;
        self
    }

    /// Replaces the path by `uri`, a [`text`].
    #[must_use]
    pub fn uri(mut self, uri: Vec<u8>) -> Self {
        self.uri = uri;
        self
    }

    /// Adds a field after the others.
    #[must_use]
    pub fn field(mut self, field: Vec<u8>) -> Self {
        self.fields.push(field);
        self
    }

    /// Adds an attribute after the others.
    #[must_use]
    pub fn attribute(mut self, attribute: Vec<u8>) -> Self {
        self.attributes.extend(attribute);
        self
    }

    /// The bytes of the message without the packet's header.
    #[must_use]
    pub fn payload(&self) -> Vec<u8> {
        let count =
            u16::try_from(self.fields.len()).expect("a test sends no more than a packet holds");
        [
            &[2, self.method][..],
            &self.protocol,
            &self.uri,
            &self.remote_addr,
            &self.remote_host,
            &self.server_name,
            &self.server_port.to_be_bytes(),
            &[self.is_ssl],
            &self.count.unwrap_or(count).to_be_bytes(),
            &self.fields.concat(),
            &self.attributes,
            &self.end,
        ]
        .concat()
    }

    /// The bytes of the whole packet.
    #[must_use]
    pub fn packet(&self) -> Vec<u8> {
        to_container(&self.payload())
    }
}

/// A SEND_HEADERS that announces the real number of fields.
#[must_use]
pub fn send_headers(status: u16, fields: &[Vec<u8>]) -> Vec<u8> {
    let count = u16::try_from(fields.len()).expect("a test sends no more than a packet holds");
    send_headers_of(status, &text("OK"), count, &fields.concat())
}

/// A SEND_HEADERS of these parts, with the number of fields that it announces; the parts may contradict each other.
#[must_use]
pub fn send_headers_of(status: u16, reason: &[u8], count: u16, fields: &[u8]) -> Vec<u8> {
    to_web_server(
        &[
            &[4][..],
            &status.to_be_bytes(),
            reason,
            &count.to_be_bytes(),
            fields,
        ]
        .concat(),
    )
}

/// A SEND_BODY_CHUNK.
#[must_use]
pub fn chunk(bytes: &[u8]) -> Vec<u8> {
    let len = u16::try_from(bytes.len()).expect("a test sends no more than a packet holds");
    to_web_server(&[&[3][..], &len.to_be_bytes(), bytes, b"\0"].concat())
}

/// A GET_BODY_CHUNK.
#[must_use]
pub fn get_body_chunk(max: u16) -> Vec<u8> {
    to_web_server(&[&[6][..], &max.to_be_bytes()].concat())
}

/// An END_RESPONSE.
#[must_use]
pub fn end_response(reuse: u8) -> Vec<u8> {
    to_web_server(&[5, reuse])
}

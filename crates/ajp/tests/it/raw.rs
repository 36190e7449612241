//! Packets written byte by byte, right or wrong as the test wants them.

/// A packet from the web server.
pub(crate) fn to_container(payload: &[u8]) -> Vec<u8> {
    packet(*b"\x12\x34", payload)
}

/// A packet from the container.
pub(crate) fn to_web_server(payload: &[u8]) -> Vec<u8> {
    packet(*b"AB", payload)
}

/// A packet whose length field is honest.
pub(crate) fn packet(magic: [u8; 2], payload: &[u8]) -> Vec<u8> {
    let len = u16::try_from(payload.len()).unwrap();
    [&magic[..], &len.to_be_bytes(), payload].concat()
}

/// A DATA packet with `bytes`.
pub(crate) fn data(bytes: &[u8]) -> Vec<u8> {
    data_of(bytes.len(), bytes)
}

/// A DATA packet that claims to have `len` bytes.
pub(crate) fn data_of(len: usize, bytes: &[u8]) -> Vec<u8> {
    let len = u16::try_from(len).unwrap();
    to_container(&[&len.to_be_bytes(), bytes].concat())
}

/// A string.
pub(crate) fn text(bytes: impl AsRef<[u8]>) -> Vec<u8> {
    let bytes = bytes.as_ref();
    let len = u16::try_from(bytes.len()).unwrap();
    [&len.to_be_bytes()[..], bytes, b"\0"].concat()
}

/// The null string.
pub(crate) fn null() -> Vec<u8> {
    vec![0xFF, 0xFF]
}

/// A field whose name is spelt out.
pub(crate) fn field(name: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Vec<u8> {
    [text(name), text(value)].concat()
}

/// A field whose name is a code.
pub(crate) fn coded(code: u8, value: impl AsRef<[u8]>) -> Vec<u8> {
    [vec![0xA0, code], text(value)].concat()
}

/// A coded attribute with a string.
pub(crate) fn attribute(code: u8, value: impl AsRef<[u8]>) -> Vec<u8> {
    [vec![code], text(value)].concat()
}

/// A named attribute.
pub(crate) fn named(name: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Vec<u8> {
    [vec![0x0A], text(name), text(value)].concat()
}

/// Request field code of Content-Length.
pub(crate) const LENGTH: u8 = 0x08;

/// A FORWARD_REQUEST in parts, each of which a test may spoil.
#[derive(Clone)]
pub(crate) struct Forward {
    pub(crate) method: u8,
    pub(crate) protocol: Vec<u8>,
    pub(crate) uri: Vec<u8>,
    pub(crate) remote_addr: Vec<u8>,
    pub(crate) remote_host: Vec<u8>,
    pub(crate) server_name: Vec<u8>,
    pub(crate) count: Option<u16>,
    pub(crate) fields: Vec<Vec<u8>>,
    pub(crate) attributes: Vec<u8>,
    /// What ends the attributes.
    pub(crate) end: Vec<u8>,
}

/// `GET /` with a Host field.
pub(crate) fn get() -> Forward {
    Forward {
        method: 2,
        protocol: text("HTTP/1.1"),
        uri: text("/"),
        remote_addr: text("127.0.0.1"),
        remote_host: null(),
        server_name: text("localhost"),
        count: None,
        fields: vec![coded(0x0B, "localhost")],
        attributes: Vec::new(),
        end: vec![0xFF],
    }
}

/// `POST /` of `length` bytes.
pub(crate) fn post(length: impl ToString) -> Forward {
    get().method(4).field(coded(LENGTH, length.to_string()))
}

impl Forward {
    pub(crate) fn method(mut self, code: u8) -> Self {
        self.method = code;
        self
    }

    pub(crate) fn uri(mut self, uri: Vec<u8>) -> Self {
        self.uri = uri;
        self
    }

    pub(crate) fn field(mut self, field: Vec<u8>) -> Self {
        self.fields.push(field);
        self
    }

    pub(crate) fn attribute(mut self, attribute: Vec<u8>) -> Self {
        self.attributes.extend(attribute);
        self
    }

    pub(crate) fn payload(&self) -> Vec<u8> {
        let count = u16::try_from(self.fields.len()).unwrap();
        [
            &[2, self.method][..],
            &self.protocol,
            &self.uri,
            &self.remote_addr,
            &self.remote_host,
            &self.server_name,
            &[0, 80, 0],
            &self.count.unwrap_or(count).to_be_bytes(),
            &self.fields.concat(),
            &self.attributes,
            &self.end,
        ]
        .concat()
    }

    pub(crate) fn packet(&self) -> Vec<u8> {
        to_container(&self.payload())
    }
}

/// A SEND_HEADERS with an honest count.
pub(crate) fn send_headers(status: u16, fields: &[Vec<u8>]) -> Vec<u8> {
    let count = u16::try_from(fields.len()).unwrap();
    send_headers_of(status, &text("OK"), count, &fields.concat())
}

/// A SEND_HEADERS in parts.
pub(crate) fn send_headers_of(status: u16, reason: &[u8], count: u16, fields: &[u8]) -> Vec<u8> {
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
pub(crate) fn chunk(bytes: &[u8]) -> Vec<u8> {
    let len = u16::try_from(bytes.len()).unwrap();
    to_web_server(&[&[3][..], &len.to_be_bytes(), bytes, b"\0"].concat())
}

/// A GET_BODY_CHUNK.
pub(crate) fn get_body_chunk(max: u16) -> Vec<u8> {
    to_web_server(&[&[6][..], &max.to_be_bytes()].concat())
}

/// An END_RESPONSE.
pub(crate) fn end_response(reuse: u8) -> Vec<u8> {
    to_web_server(&[5, reuse])
}

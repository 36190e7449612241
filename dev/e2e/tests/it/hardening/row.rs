//! What a row of the hardening catalogue is: bytes in, required reaction.
//!
//! Rows are data: the tests run them, and the example `hardening` sends them to other servers and
//! writes down what those do. In bytes and texts `$` stands for the name of the request, by which
//! the backend tells the requests of parallel tests apart.

/// One row of section 1; its name begins with its number.
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) cases: fn() -> Vec<Case>,
}

/// Some bytes of a client, and what must follow.
pub(crate) struct Case {
    pub(crate) bytes: Vec<u8>,
    pub(crate) required: Required,
}

/// What must follow.
#[derive(Clone, Debug)]
pub(crate) enum Required {
    /// One response with this status and `Connection: close`, then the close. No byte of the
    /// request reaches a backend. The log says why.
    Refused { status: u16, reason: &'static str },
    /// The same, but the fault is in the body, which is found only after the head went out: no
    /// backend gets a complete request, and a connection on which it began is closed.
    CutOff { status: u16, reason: &'static str },
    /// A 200 for each of these requests, which are what the backend sees. Then the connection is
    /// good for another request, or closed.
    Served {
        requests: Vec<&'static str>,
        closes: bool,
    },
}

pub(crate) fn refused(status: u16, reason: &'static str, bytes: impl AsRef<[u8]>) -> Case {
    let required = Required::Refused { status, reason };
    Case::new(bytes, required)
}

pub(crate) fn cut_off(status: u16, reason: &'static str, bytes: impl AsRef<[u8]>) -> Case {
    let required = Required::CutOff { status, reason };
    Case::new(bytes, required)
}

pub(crate) fn served(bytes: impl AsRef<[u8]>, requests: &[&'static str]) -> Case {
    let required = Required::Served {
        requests: requests.to_vec(),
        closes: false,
    };
    Case::new(bytes, required)
}

pub(crate) fn served_and_closed(bytes: impl AsRef<[u8]>, requests: &[&'static str]) -> Case {
    let required = Required::Served {
        requests: requests.to_vec(),
        closes: true,
    };
    Case::new(bytes, required)
}

/// The catalogue's `G{fields}`.
pub(crate) fn get(fields: impl AsRef<[u8]>) -> Vec<u8> {
    message("GET", fields.as_ref(), b"")
}

/// A GET of `target`.
pub(crate) fn get_of(target: impl AsRef<[u8]>) -> Vec<u8> {
    let (start, end) = (b"GET ", b" HTTP/1.1\r\nHost: a\r\nX: $\r\n\r\n");
    [&start[..], target.as_ref(), end].concat()
}

/// The catalogue's `P{fields|body}`.
pub(crate) fn post(fields: impl AsRef<[u8]>, body: impl AsRef<[u8]>) -> Vec<u8> {
    message("POST", fields.as_ref(), body.as_ref())
}

fn message(method: &str, fields: &[u8], body: &[u8]) -> Vec<u8> {
    let start = format!("{method} /$ HTTP/1.1\r\nHost: a\r\n");
    let end = if fields.is_empty() {
        "\r\n"
    } else {
        "\r\n\r\n"
    };
    [start.as_bytes(), fields, end.as_bytes(), body].concat()
}

/// The catalogue's `T{body}`.
pub(crate) fn chunked(body: impl AsRef<[u8]>) -> Vec<u8> {
    post("Transfer-Encoding: chunked", body)
}

impl Case {
    fn new(bytes: impl AsRef<[u8]>, required: Required) -> Self {
        Self {
            bytes: bytes.as_ref().to_vec(),
            required,
        }
    }
}

/// `text` with the name of the request in it.
pub(crate) fn named(text: &[u8], name: &str) -> Vec<u8> {
    let mut pieces = text.split(|byte| *byte == b'$');
    let mut filled = pieces.next().unwrap_or_default().to_vec();
    for piece in pieces {
        filled.extend_from_slice(name.as_bytes());
        filled.extend_from_slice(piece);
    }
    filled
}

/// A row's name as the page shows it: `058 content length and transfer encoding`.
pub(crate) fn title(name: &str) -> String {
    name.strip_prefix("row_").unwrap_or(name).replace('_', " ")
}

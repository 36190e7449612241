//! What a row of sections 2a and 2b is: a backend's bytes, and what the client must see of them.

use catamaran_testkit::Response;

use super::backend::{Answer, Id, Then};

/// One row; its name begins with its number.
pub(crate) struct ResponseRow {
    pub(crate) name: &'static str,
    pub(crate) cases: fn() -> Vec<ResponseCase>,
}

/// Some bytes of a backend, and what must follow.
pub(crate) struct ResponseCase {
    pub(crate) request: Request,
    pub(crate) bytes: Vec<u8>,
    pub(crate) then: Then,
    pub(crate) required: Outcome,
    /// What the front must say to the backend beyond the request.
    pub(crate) said: Option<Vec<u8>>,
}

/// The request that is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Request {
    Get,
    /// A GET by a client that knows only HTTP/1.0.
    GetHttp10,
    Head,
    /// A POST with a body of five bytes.
    Post,
}

/// What must follow. In the first two the connection to the backend is closed, and the log gives
/// the reason.
#[derive(Clone, Debug)]
pub(crate) enum Outcome {
    /// The client gets a 502.
    BadGateway(&'static str),
    /// The client gets a response of this status that is visibly not complete.
    Truncated(u16, &'static str),
    /// The client gets this: interim statuses, status, fields sorted by name, body.
    Relayed {
        text: &'static str,
        /// Whether the next request comes on the same connection.
        reused: bool,
    },
}

pub(crate) fn bad_gateway(reason: &'static str, bytes: impl AsRef<[u8]>) -> ResponseCase {
    ResponseCase::new(bytes, Outcome::BadGateway(reason))
}

pub(crate) fn truncated(
    status: u16,
    reason: &'static str,
    bytes: impl AsRef<[u8]>,
) -> ResponseCase {
    ResponseCase::new(bytes, Outcome::Truncated(status, reason))
}

pub(crate) fn relayed(text: &'static str, bytes: impl AsRef<[u8]>) -> ResponseCase {
    let reused = true;
    ResponseCase::new(bytes, Outcome::Relayed { text, reused })
}

/// Relayed, and the connection to the backend is closed.
pub(crate) fn relayed_once(text: &'static str, bytes: impl AsRef<[u8]>) -> ResponseCase {
    let reused = false;
    ResponseCase::new(bytes, Outcome::Relayed { text, reused })
}

impl ResponseCase {
    fn new(bytes: impl AsRef<[u8]>, required: Outcome) -> Self {
        Self {
            request: Request::Get,
            bytes: bytes.as_ref().to_vec(),
            then: Then::Serve,
            required,
            said: None,
        }
    }

    /// The same bytes as an answer to `request`.
    pub(crate) fn to(self, request: Request) -> Self {
        Self { request, ..self }
    }

    /// The backend closes after its bytes.
    pub(crate) fn then_closes(self) -> Self {
        let then = Then::Close;
        Self { then, ..self }
    }

    /// After the request the backend gets exactly `bytes`.
    pub(crate) fn says(self, bytes: impl AsRef<[u8]>) -> Self {
        let said = Some(bytes.as_ref().to_vec());
        Self { said, ..self }
    }

    /// The answer, in writes of the lengths `pieces`.
    pub(crate) fn answer(&self, pieces: Vec<usize>) -> Answer {
        Answer {
            bytes: self.bytes.clone(),
            pieces,
            is_early: false,
            then: self.then,
        }
    }
}

impl Request {
    pub(crate) fn bytes(self, id: &Id) -> Vec<u8> {
        let id = id.as_str();
        let text = match self {
            Self::Get => format!("GET /{id} HTTP/1.1\r\nHost: a\r\n\r\n"),
            Self::GetHttp10 => format!("GET /{id} HTTP/1.0\r\nHost: a\r\n\r\n"),
            Self::Head => format!("HEAD /{id} HTTP/1.1\r\nHost: a\r\n\r\n"),
            Self::Post => {
                format!("POST /{id} HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello")
            }
        };
        text.into_bytes()
    }
}

/// What a client sees of a response, on one line, without what the front frames and dates itself.
/// The reason phrase is part of it if `required` has one.
pub(crate) fn seen(answer: &Response, required: &str) -> String {
    let own = ["date", "content-length", "transfer-encoding", "connection"];
    let mut fields: Vec<String> = answer
        .headers
        .iter()
        .map(|(name, value)| (name.to_ascii_lowercase(), value))
        .filter(|(name, _)| !own.contains(&name.as_str()))
        .map(|(name, value)| format!(" | {name}: {value}"))
        .collect();
    fields.sort();
    let statuses = answer.interim.iter().chain([&answer.status]);
    let mut text = statuses.map(u16::to_string).collect::<Vec<_>>().join(" ");
    if required.starts_with("200 OK") {
        text = format!("{text} {}", answer.reason);
    }
    let all = format!("{text}{} | {}", fields.concat(), answer.text());
    all.trim_end().to_owned()
}

/// Each row becomes an entry of `ROWS` and a test of its name.
macro_rules! response_rows {
    ($protocol:ident; $($name:ident: [$($case:expr),+ $(,)?];)+) => {
        /// Every row, in order.
        pub(crate) const ROWS: &[ResponseRow] = &[
            $(ResponseRow { name: stringify!($name), cases: || vec![$($case),+] }),+
        ];
        $(
            #[test]
            fn $name() {
                super::responses::check(super::backend::Protocol::$protocol, ROWS, stringify!($name));
            }
        )+
    };
}

pub(crate) use response_rows;

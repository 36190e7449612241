//! A request that is sent to both servers, and the facts about a response.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use anyhow::Context as _;
use catamaran_testkit::{Deadline, Failure, HttpClient, Response};

/// The body of a request: as many bytes, all the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Body {
    pub(crate) length: usize,
    /// Whether its length is not announced.
    pub(crate) is_chunked: bool,
}

/// A request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ask {
    /// The last byte of the client's address in 127.0.0.0/24.
    pub(crate) client: u8,
    /// The index of the address to which it is sent, among those of the configuration.
    pub(crate) listener: usize,
    pub(crate) method: String,
    pub(crate) target: String,
    /// `HTTP/1.1` or `HTTP/1.0`.
    pub(crate) version: &'static str,
    /// The fields but those of the body.
    pub(crate) fields: Vec<(String, String)>,
    pub(crate) body: Option<Body>,
}

/// A server's response.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Answer {
    /// The status; 0 if the connection was closed without a response.
    pub(crate) status: u16,
    pub(crate) origin: Option<Origin>,
    /// Fields of the response, names in lower case.
    pub(crate) fields: Vec<(String, String)>,
}

/// The source of a response's content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// A file, by the path that its text names.
    File(String),
    /// A backend, and the request that reached it.
    Backend {
        name: String,
        method: String,
        target: String,
        /// Names in lower case.
        fields: Vec<(String, String)>,
    },
    /// Another text.
    Text(String),
}

impl Ask {
    /// A GET without further fields.
    pub(crate) fn get(target: &str, host: &str) -> Self {
        Self {
            client: 1,
            listener: 0,
            method: "GET".to_owned(),
            target: target.to_owned(),
            version: HTTP_1_1,
            fields: vec![("Host".to_owned(), host.to_owned())],
            body: None,
        }
    }

    /// Sends the request to the server at `address`; `None` if nothing listens there.
    ///
    /// # Errors
    /// The server does not answer in time.
    pub(crate) fn send(&self, address: SocketAddr) -> anyhow::Result<Option<Answer>> {
        let client = IpAddr::from(Ipv4Addr::new(127, 0, 0, self.client));
        let Ok(mut connection) = HttpClient::connect_from(client, address) else {
            return Ok(None);
        };
        connection.set_deadline(Deadline::after(PATIENCE));
        let mut head = format!("{} {} {}\r\n", self.method, self.target, self.version);
        for (name, value) in &self.fields {
            head += &format!("{name}: {value}\r\n");
        }
        if self.fields.iter().all(|(name, _)| name != "Connection") {
            head += "Connection: close\r\n";
        }
        let (framing, body) = self.body.map_or_else(Default::default, Body::written);
        let request = format!("{head}{framing}\r\n{body}");
        // A server that has refused the client may close the connection before the request is sent.
        let _ = connection.send(request.as_bytes());
        let received = if self.method == "HEAD" {
            connection.receive_head()
        } else {
            connection.receive()
        };
        match received {
            Ok(response) => Ok(Some(Answer::of(&response, self.method == "HEAD"))),
            Err(Failure::TimedOut { received }) => {
                anyhow::bail!("no answer to {self:?}: {received:?}")
            }
            // A connection that is closed without a response counts as one without content.
            Err(_) => Ok(Some(Answer::default())),
        }
    }

    /// The lines that represent the request in a file of the corpus.
    pub(crate) fn lines(&self) -> String {
        let fields = self
            .fields
            .iter()
            .map(|(name, value)| format!("\n{name}: {value}"));
        let fields: String = fields.collect();
        let (client, listener) = (self.client, ["a", "b"][self.listener]);
        let version = match self.version {
            HTTP_1_0 => " HTTP/1.0",
            _ => "",
        };
        let body = self.body.map_or_else(String::new, |it| it.shown());
        format!(
            "from 127.0.0.{client} to {listener}{body}\n{} {}{version}{fields}",
            self.method, self.target
        )
    }

    /// Reads what [`Ask::lines`] wrote.
    pub(crate) fn parse(lines: &[&str]) -> anyhow::Result<Self> {
        let [from, request, fields @ ..] = lines else {
            anyhow::bail!("a request has two lines at least: {lines:?}");
        };
        let from = from.strip_prefix("from 127.0.0.").context("no `from`")?;
        let (client, to) = from.split_once(" to ").context("no `to`")?;
        let (listener, body) = match to.split_once(WITH) {
            Some((listener, body)) => (listener, Some(Body::parse(body)?)),
            None => (to, None),
        };
        let (method, target) = request.split_once(' ').context("no target")?;
        let (target, version) = match target.strip_suffix(" HTTP/1.0") {
            Some(target) => (target, HTTP_1_0),
            None => (target, HTTP_1_1),
        };
        let field = |line: &&str| {
            let (name, value) = line.split_once(": ").context("no field")?;
            Ok((name.to_owned(), value.to_owned()))
        };
        Ok(Self {
            client: client.parse()?,
            listener: usize::from(listener == "b"),
            method: method.to_owned(),
            target: target.to_owned(),
            version,
            fields: fields.iter().map(field).collect::<anyhow::Result<_>>()?,
            body,
        })
    }
}

impl Body {
    /// The field that frames the body, and the body, as they are sent.
    fn written(self) -> (String, String) {
        let content = "x".repeat(self.length);
        if !self.is_chunked {
            return (format!("Content-Length: {}\r\n", self.length), content);
        }
        let framed = format!("{:x}\r\n{content}\r\n0\r\n\r\n", self.length);
        ("Transfer-Encoding: chunked\r\n".to_owned(), framed)
    }

    /// The body in words, behind those of the request.
    fn shown(self) -> String {
        let chunks = if self.is_chunked { IN_CHUNKS } else { "" };
        format!("{WITH}{}{chunks}", self.length)
    }

    /// Reads what [`Self::shown`] wrote behind [`WITH`].
    fn parse(text: &str) -> anyhow::Result<Self> {
        let length = text.strip_suffix(IN_CHUNKS);
        Ok(Self {
            length: length.unwrap_or(text).parse()?,
            is_chunked: length.is_some(),
        })
    }
}

impl Answer {
    /// An empty response has no origin, except one to HEAD, whose fields name it.
    fn of(response: &Response, is_head: bool) -> Self {
        let is_success = (200..300).contains(&response.status);
        let has_content = is_success && (is_head || !response.body.is_empty());
        let lower = |(name, value): &(String, String)| (name.to_ascii_lowercase(), value.clone());
        Self {
            status: response.status,
            origin: has_content.then(|| Origin::of(&response.text())),
            fields: response.headers.iter().map(lower).collect(),
        }
    }

    /// The value of a field; several lines of one name are joined.
    pub(crate) fn field(&self, name: &str) -> Option<String> {
        values(&self.fields, name)
    }

    /// The response as one line of text.
    pub(crate) fn line(&self) -> String {
        let from = match &self.origin {
            None => String::new(),
            Some(Origin::File(path)) => format!(" file {path}"),
            Some(Origin::Backend {
                name,
                method,
                target,
                ..
            }) => format!(" backend {name}: {method} {target}"),
            Some(Origin::Text(text)) => {
                format!(" text {:?}", text.chars().take(60).collect::<String>())
            }
        };
        format!("{}{from}", self.status)
    }
}

impl Origin {
    /// Files begin with `FILE` and their path, answers of backends with `BACKEND` and the request that they got;
    /// another body is a text of the server itself.
    fn of(body: &str) -> Self {
        // A filter of the source may have replaced the capital letters.
        let file = ["FILE ", "file "]
            .iter()
            .find_map(|prefix| body.strip_prefix(prefix));
        if let Some(path) = file {
            return Self::File(path.trim().to_owned());
        }
        let Some(echo) = body.strip_prefix("BACKEND ") else {
            return Self::Text(body.to_owned());
        };
        let mut lines = echo.lines();
        let name = lines.next().unwrap_or_default().to_owned();
        let mut request = lines.next().unwrap_or_default().split(' ');
        let mut part = || request.next().unwrap_or_default().to_owned();
        let fields = lines.filter_map(|line| line.split_once(": "));
        Self::Backend {
            name,
            method: part(),
            target: part(),
            fields: fields
                .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
                .collect(),
        }
    }
}

/// The values of all fields called `name` (in lower case), joined; `None` if there is none.
pub(crate) fn values(fields: &[(String, String)], name: &str) -> Option<String> {
    let all: Vec<&str> = fields
        .iter()
        .filter(|(known, _)| known == name)
        .map(|(_, value)| value.as_str())
        .collect();
    (!all.is_empty()).then(|| all.join(", "))
}

pub(crate) const HTTP_1_0: &str = "HTTP/1.0";

const HTTP_1_1: &str = "HTTP/1.1";

/// Stands before the length of a body, in a request of the corpus.
const WITH: &str = " with a body of ";

/// Stands behind the length of a body that is sent in chunks.
const IN_CHUNKS: &str = " in chunks";

/// How long a response may take; all servers are on this machine.
const PATIENCE: Duration = Duration::from_secs(20);

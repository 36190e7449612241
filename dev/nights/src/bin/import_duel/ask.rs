//! A request as it is sent to both servers, and what is known of an answer.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use anyhow::Context as _;
use catamaran_testkit::{Deadline, Failure, HttpClient, Response};

/// A request without a body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ask {
    /// The last byte of the client's address in 127.0.0.0/24.
    pub(crate) client: u8,
    /// Which of the configuration's addresses it is sent to.
    pub(crate) listener: usize,
    pub(crate) method: String,
    pub(crate) target: String,
    pub(crate) fields: Vec<(String, String)>,
}

/// What a server answered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Answer {
    /// 0 if the connection was closed without one.
    pub(crate) status: u16,
    pub(crate) origin: Option<Origin>,
    /// Fields of the response, names in lower case.
    pub(crate) fields: Vec<(String, String)>,
}

/// Where content came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// A file, by the path that its text names.
    File(String),
    /// A backend, with the request that it got.
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
            fields: vec![("Host".to_owned(), host.to_owned())],
        }
    }

    /// The answer of the server at `address`; none if nobody listens there.
    ///
    /// # Errors
    /// It does not answer in time.
    pub(crate) fn send(&self, address: SocketAddr) -> anyhow::Result<Option<Answer>> {
        let client = IpAddr::from(Ipv4Addr::new(127, 0, 0, self.client));
        let Ok(mut connection) = HttpClient::connect_from(client, address) else {
            return Ok(None);
        };
        connection.set_deadline(Deadline::after(PATIENCE));
        let mut head = format!("{} {} HTTP/1.1\r\n", self.method, self.target);
        for (name, value) in &self.fields {
            head += &format!("{name}: {value}\r\n");
        }
        head += "Connection: close\r\n\r\n";
        // A server that has refused already says so.
        let _ = connection.send(head.as_bytes());
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
            Err(_) => Ok(Some(Answer::default())),
        }
    }

    /// The lines that stand for it in a file of the corpus.
    pub(crate) fn lines(&self) -> String {
        let fields = self
            .fields
            .iter()
            .map(|(name, value)| format!("\n{name}: {value}"));
        let fields: String = fields.collect();
        let (client, listener) = (self.client, ["a", "b"][self.listener]);
        format!(
            "from 127.0.0.{client} to {listener}\n{} {}{fields}",
            self.method, self.target
        )
    }

    /// Reads what [`Ask::lines`] wrote.
    pub(crate) fn parse(lines: &[&str]) -> anyhow::Result<Self> {
        let [from, request, fields @ ..] = lines else {
            anyhow::bail!("a request has two lines at least: {lines:?}");
        };
        let from = from.strip_prefix("from 127.0.0.").context("no `from`")?;
        let (client, listener) = from.split_once(" to ").context("no `to`")?;
        let (method, target) = request.split_once(' ').context("no target")?;
        let field = |line: &&str| {
            let (name, value) = line.split_once(": ").context("no field")?;
            Ok((name.to_owned(), value.to_owned()))
        };
        Ok(Self {
            client: client.parse()?,
            listener: usize::from(listener == "b"),
            method: method.to_owned(),
            target: target.to_owned(),
            fields: fields.iter().map(field).collect::<anyhow::Result<_>>()?,
        })
    }
}

impl Answer {
    /// An empty response is no content, unless it is one to HEAD, which tells of content.
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

    /// One line on it.
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
    fn of(body: &str) -> Self {
        // In small letters as well: filters of the source replace that word.
        let file = ["FILE ", "file "]
            .iter()
            .find_map(|it| body.strip_prefix(it));
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

/// The value of the fields of a name in lower case; none if there is none.
pub(crate) fn values(fields: &[(String, String)], name: &str) -> Option<String> {
    let all: Vec<&str> = fields
        .iter()
        .filter(|it| it.0 == name)
        .map(|it| it.1.as_str())
        .collect();
    (!all.is_empty()).then(|| all.join(", "))
}

/// How long an answer may take: both servers and the backend are on this machine.
const PATIENCE: Duration = Duration::from_secs(20);

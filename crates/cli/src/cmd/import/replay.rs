//! `import --replay`: sends the requests of an access log to the old server and to the front, and compares
//! the answers.
//!
//! Only GET and HEAD are sent, each target once, without cookies and bodies. If the answers differ, the old server
//! gets the request a second time. A part of its answer that differs between its two answers is not counted as a
//! difference.

use std::collections::HashSet;
use std::fs;
use std::io::{self, Write as _};
use std::net::ToSocketAddrs as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use catamaran_bench::replay;
use catamaran_http_client::name::{ACCEPT, CONTENT_TYPE, LOCATION, USER_AGENT};
use catamaran_http_client::{BlockingClient, ClientAnswer, ClientRequest, Fields, ServerAddress};
use http::Method;

use crate::failure::Failure;

/// What `--replay` needs besides.
#[derive(clap::Args)]
pub(crate) struct ReplayArgs {
    /// Send the GET and HEAD requests of this access log to --old and --new, and compare the answers
    #[arg(long, value_name = "LOG", requires = "old", requires = "new")]
    replay: Option<PathBuf>,

    /// The server that the configuration was written for, such as http://127.0.0.1:8081
    #[arg(long, value_name = "URL", requires = "replay")]
    old: Option<String>,

    /// The front
    #[arg(long, value_name = "URL", requires = "replay")]
    new: Option<String>,

    /// The host that both are asked for [default: that of each URL]
    #[arg(long, value_name = "HOST", requires = "replay")]
    host: Option<String>,

    /// How many requests are sent to each in a second
    #[arg(long, value_name = "RATE", default_value = "10/s", value_parser = rate, requires = "replay")]
    rate: f64,

    /// How many requests are sent at most
    #[arg(
        long,
        value_name = "COUNT",
        default_value_t = 10_000,
        requires = "replay"
    )]
    max: usize,
}

fn rate(text: &str) -> Result<f64, String> {
    let digits = text.strip_suffix("/s").unwrap_or(text);
    let rate: Option<f64> = digits.parse().ok();
    rate.filter(|it| (0.01..=10_000.0).contains(it))
        .ok_or_else(|| "it is no rate such as 10/s".to_owned())
}

impl ReplayArgs {
    /// Whether `--replay` was given.
    pub(super) fn is_asked(&self) -> bool {
        self.replay.is_some()
    }

    /// Sends the requests and prints the differences. The exit code is 1 if any answer differs.
    pub(super) fn run(&self) -> Result<ExitCode, Failure> {
        let (Some(log), Some(old), Some(new)) = (&self.replay, &self.old, &self.new) else {
            return Err(Failure::Usage("--replay needs --old and --new".to_owned()));
        };
        let name = log.display();
        let text = fs::read(log)
            .map_err(|error| Failure::Usage(format!("cannot read {name}: {error}")))?;
        let methods = ["GET", "HEAD"].map(str::to_owned);
        let lines = replay::read(&text, &methods);
        let host = self.host.as_deref();
        let (mut old, mut new) = (Server::new(old, host)?, Server::new(new, host)?);
        // Each request is sent once, however often the log has it.
        let mut distinct = HashSet::new();
        let requests = lines.requests().filter(|request| {
            let (_, target) = *request;
            target.starts_with('/') && distinct.insert(*request)
        });
        let mut tally = Tally::default();
        let mut out = io::stdout();
        let mut pace = Pace::new(self.rate);
        for (method, target) in requests.take(self.max) {
            pace.wait();
            let differences = compare(&mut old, &mut new, method, target, &mut tally)?;
            if let Some(text) = differences {
                writeln!(out, "{method} {target}: {text}")?;
            }
        }
        let facts = lines.facts();
        if tally.same + tally.differ + tally.vary == 0 {
            return Err(Failure::Fault(format!(
                "nothing was compared: {name} has no GET or HEAD request in the combined format or in JSON; \
                 {} lines have other methods, {} are no requests",
                facts.other_methods, facts.not_requests
            )));
        }
        writeln!(
            out,
            "{}; of {} GET and HEAD lines each request is sent once; skipped {} lines with other methods and {} \
             that are no requests",
            tally.text(),
            facts.requests,
            facts.other_methods,
            facts.not_requests
        )?;
        Ok(ExitCode::from(u8::from(tally.differ > 0)))
    }
}

/// The counts of answers that were the same, that differed, and that the old server itself gives differently each
/// time.
#[derive(Debug, Default)]
struct Tally {
    same: usize,
    differ: usize,
    vary: usize,
}

impl Tally {
    fn text(&self) -> String {
        format!(
            "{} requests to both: {} answered alike, {} not, {} that the old server answers otherwise each time",
            self.same + self.differ + self.vary,
            self.same,
            self.differ,
            self.vary
        )
    }
}

/// Asks both servers, counts the result, and returns what differs; `None` if nothing does.
fn compare(
    old: &mut Server,
    new: &mut Server,
    method: &str,
    target: &str,
    tally: &mut Tally,
) -> Result<Option<String>, Failure> {
    let (old_answer, new_answer) = (old.ask(method, target)?, new.ask(method, target)?);
    if old_answer == new_answer {
        tally.same += 1;
        return Ok(None);
    }
    // What the old server answers differently each time is no difference of the new one.
    let repeated_facts = old.ask(method, target)?.facts();
    let (old_facts, new_facts) = (old_answer.facts(), new_answer.facts());
    let mut differing = Vec::new();
    for (index, (name, old)) in old_facts.iter().enumerate() {
        let (_, new) = &new_facts[index];
        let (_, repeated) = &repeated_facts[index];
        if old != new && old == repeated {
            differing.push(format!("{name} {old}, here {new}"));
        }
    }
    if differing.is_empty() {
        tally.vary += 1;
        return Ok(None);
    }
    tally.differ += 1;
    Ok(Some(differing.join("; ")))
}

/// The parts of an answer that are compared.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Answer {
    status: u16,
    location: Option<String>,
    content_type: Option<String>,
    length: Option<u64>,
}

impl Answer {
    fn facts(&self) -> [(&'static str, String); 4] {
        let or_none = |field: &Option<String>| field.clone().unwrap_or_else(|| "none".to_owned());
        let length = match self.length {
            Some(length) => length.to_string(),
            None => "unknown".to_owned(),
        };
        [
            ("status", self.status.to_string()),
            ("Location", or_none(&self.location)),
            ("Content-Type", or_none(&self.content_type)),
            ("length", length),
        ]
    }
}

/// One of the two servers, with a connection that was left open for the next request.
struct Server {
    url: String,
    authority: String,
    host: String,
    open: Option<BlockingClient>,
}

impl Server {
    fn new(url: &str, host: Option<&str>) -> Result<Self, Failure> {
        let behind_scheme = url.strip_prefix("http://").unwrap_or_default();
        let authority = behind_scheme.trim_end_matches('/');
        if authority.is_empty() || authority.contains(['/', '@', '?']) {
            let message =
                format!("{url:?} is no URL such as http://127.0.0.1:8081; --replay asks in clear");
            return Err(Failure::Usage(message));
        }
        Ok(Self {
            url: format!("http://{authority}"),
            authority: authority.to_owned(),
            host: host.unwrap_or(authority).to_owned(),
            open: None,
        })
    }

    /// Sends a request on the open connection, or on a new one if there is none or it was closed meanwhile.
    fn ask(&mut self, method: &str, target: &str) -> Result<Answer, Failure> {
        if let Some(connection) = self.open.take()
            && let Ok(answer) = self.exchange(connection, method, target)
        {
            return Ok(answer);
        }
        self.connect()
            .and_then(|connection| self.exchange(connection, method, target))
            .map_err(|error| Failure::Usage(format!("{method} {target} of {}: {error}", self.url)))
    }

    fn connect(&self) -> io::Result<BlockingClient> {
        let port = self.authority.rsplit_once(':').map(|(_, port)| port);
        // An IPv6 address has colons without a port.
        let host_and_port = match port.map(str::parse::<u16>) {
            Some(Ok(_)) => self.authority.clone(),
            Some(Err(_)) | None => format!("{}:80", self.authority),
        };
        let mut addresses = host_and_port.to_socket_addrs()?;
        let Some(address) = addresses.next() else {
            return Err(io::Error::other("its host has no address"));
        };
        BlockingClient::connect(&ServerAddress::Tcp(address), TIMEOUT)
    }

    fn exchange(
        &mut self,
        mut client: BlockingClient,
        method: &str,
        target: &str,
    ) -> io::Result<Answer> {
        let method = if method == "HEAD" {
            Method::HEAD
        } else {
            Method::GET
        };
        let fields = [(ACCEPT, "*/*"), (USER_AGENT, "catamaran-import")];
        let request = ClientRequest {
            method: &method,
            fields: &Fields::from_iter(fields),
            ..ClientRequest::get(target, &self.host)
        };
        let answer = client.ask(&request, READ_MAX, |_| ())?;
        if client.can_reuse() {
            self.open = Some(client);
        }
        Ok(self.compared(&answer))
    }

    /// Takes the parts out of an answer that are compared.
    fn compared(&self, answer: &ClientAnswer) -> Answer {
        let head = &answer.head;
        let text = |name| {
            let value = head.headers.get(name);
            value.map(|bytes| String::from_utf8_lossy(bytes).into_owned())
        };
        let mut content_type = text(CONTENT_TYPE);
        // The response to HEAD has a length without a body.
        let mut length = match answer.body_bytes {
            0 => head.content_length,
            bytes => Some(bytes),
        };
        // The bodies of error pages and redirects differ from server to server.
        if head.status.as_u16() >= 300 {
            (content_type, length) = (None, None);
        }
        Answer {
            status: head.status.as_u16(),
            location: text(LOCATION).map(|location| self.relative(&location)),
            // Types and charsets are names without case (RFC 9110, section 8.3).
            content_type: content_type.map(|value| value.to_ascii_lowercase()),
            length,
        }
    }

    /// Turns a URL of this server itself into a path, so that it can be compared with the other server's.
    fn relative(&self, location: &str) -> String {
        if let Some(behind_scheme) = location.strip_prefix("http://") {
            for own in [&self.authority, &self.host] {
                if let Some(path) = behind_scheme.strip_prefix(own.as_str())
                    && (path.is_empty() || path.starts_with('/'))
                {
                    return path.to_owned();
                }
            }
        }
        location.to_owned()
    }
}

/// Limits the rate of requests.
struct Pace {
    next: Instant,
    step: Duration,
}

impl Pace {
    #[expect(clippy::disallowed_methods, reason = "a pace is of the clock")]
    fn new(rate: f64) -> Self {
        Self {
            next: Instant::now(),
            step: Duration::from_secs_f64(1.0 / rate),
        }
    }

    #[expect(clippy::disallowed_methods, reason = "a pace is of the clock")]
    fn wait(&mut self) {
        thread::sleep(self.next.saturating_duration_since(Instant::now()));
        self.next = Instant::now().max(self.next) + self.step;
    }
}

/// How long to wait for a server that sends nothing.
const TIMEOUT: Duration = Duration::from_secs(60);

/// How many bytes of a response are compared; the rest of a longer one is ignored.
const READ_MAX: u64 = 1 << 30;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_have_a_unit_or_none() {
        for (text, expected) in [
            ("10/s", Some(10.0)),
            ("0.5/s", Some(0.5)),
            ("200", Some(200.0)),
            ("0/s", None),
            ("fast", None),
        ] {
            assert_eq!(rate(text).ok(), expected, "{text}");
        }
    }

    #[test]
    fn urls_of_the_server_itself_are_paths() {
        let server = Server::new("http://127.0.0.1:8081/", Some("example.org")).unwrap();
        for (location, expected) in [
            ("http://127.0.0.1:8081/x?a", "/x?a"),
            ("http://example.org/", "/"),
            ("http://example.org.evil/", "http://example.org.evil/"),
            ("https://example.org/", "https://example.org/"),
            ("/y", "/y"),
        ] {
            assert_eq!(server.relative(location), expected);
        }
        assert!(Server::new("https://x/", None).is_err());
    }
}

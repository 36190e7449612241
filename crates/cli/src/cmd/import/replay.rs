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
        let text = fs::read(log)
            .map_err(|error| Failure::Usage(format!("cannot read {}: {error}", log.display())))?;
        let methods = ["GET", "HEAD"].map(str::to_owned);
        let name = log.display();
        let log = replay::read(&text, &methods);
        let host = self.host.as_deref();
        let (mut old, mut new) = (Server::new(old, host)?, Server::new(new, host)?);
        let mut seen = HashSet::new();
        let of_paths = log.requests().filter(|it| it.1.starts_with('/'));
        let requests = of_paths.filter(|it| seen.insert(*it)).take(self.max);
        let mut tally = Tally::default();
        let mut out = io::stdout();
        let mut pace = Pace::new(self.rate);
        for (method, target) in requests {
            pace.wait();
            let differences = compare(&mut old, &mut new, method, target, &mut tally)?;
            if let Some(text) = differences {
                writeln!(out, "{method} {target}: {text}")?;
            }
        }
        let facts = log.facts();
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
    let (there, here) = (old.ask(method, target)?, new.ask(method, target)?);
    if there == here {
        tally.same += 1;
        return Ok(None);
    }
    let again = old.ask(method, target)?;
    let mut differing = Vec::new();
    for ((name, old), ((_, new), (_, again))) in there
        .facts()
        .into_iter()
        .zip(here.facts().into_iter().zip(again.facts()))
    {
        if old != new && old == again {
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
        let or_none = |it: &Option<String>| it.clone().unwrap_or_else(|| "none".to_owned());
        [
            ("status", self.status.to_string()),
            ("Location", or_none(&self.location)),
            ("Content-Type", or_none(&self.content_type)),
            (
                "length",
                self.length
                    .map_or_else(|| "unknown".to_owned(), |it| it.to_string()),
            ),
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
        let rest = url
            .strip_prefix("http://")
            .map(|it| it.trim_end_matches('/'));
        let authority = rest.filter(|it| !it.is_empty() && !it.contains(['/', '@', '?']));
        let Some(authority) = authority else {
            let message =
                format!("{url:?} is no URL such as http://127.0.0.1:8081; --replay asks in clear");
            return Err(Failure::Usage(message));
        };
        Ok(Self {
            url: format!("http://{authority}"),
            authority: authority.to_owned(),
            host: host.unwrap_or(authority).to_owned(),
            open: None,
        })
    }

    /// Sends a request on the open connection, or on a new one if there is none or it was closed meanwhile.
    fn ask(&mut self, method: &str, target: &str) -> Result<Answer, Failure> {
        let kept = self.open.take();
        if let Some(connection) = kept
            && let Ok(answer) = self.exchange(connection, method, target)
        {
            return Ok(answer);
        }
        let connected = self.connect();
        connected
            .and_then(|it| self.exchange(it, method, target))
            .map_err(|error| Failure::Usage(format!("{method} {target} of {}: {error}", self.url)))
    }

    fn connect(&self) -> io::Result<BlockingClient> {
        let has_port = self
            .authority
            .rsplit_once(':')
            .is_some_and(|it| it.1.parse::<u16>().is_ok());
        let host_and_port = if has_port {
            self.authority.clone()
        } else {
            format!("{}:80", self.authority)
        };
        let address = host_and_port.to_socket_addrs()?.next();
        let address = address.ok_or_else(|| io::Error::other("its host has no address"))?;
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
            value.map(|it| String::from_utf8_lossy(it).into_owned())
        };
        // The bodies of error pages and redirects differ from server to server.
        let is_own = head.status.as_u16() >= 300;
        let length = match answer.body_bytes {
            0 => head.content_length,
            length => Some(length),
        };
        Answer {
            status: head.status.as_u16(),
            location: text(LOCATION).map(|it| self.relative(&it)),
            // Types and charsets are names without case (RFC 9110, section 8.3).
            content_type: text(CONTENT_TYPE)
                .filter(|_| !is_own)
                .map(|it| it.to_ascii_lowercase()),
            length: length.filter(|_| !is_own),
        }
    }

    /// Turns a URL of this server itself into a path, so that it can be compared with the other server's.
    fn relative(&self, location: &str) -> String {
        let own = [&self.authority, &self.host];
        let below = own.iter().find_map(|it| {
            let rest = location
                .strip_prefix("http://")?
                .strip_prefix(it.as_str())?;
            (rest.is_empty() || rest.starts_with('/')).then(|| rest.to_owned())
        });
        below.unwrap_or_else(|| location.to_owned())
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

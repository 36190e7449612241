//! The typed options: one field for each, parsed but not yet combined.
//!
//! Flags take effect in the order of the line, as in ab, where that matters: `-t` sets `-n`, and a
//! second method is refused when it comes. Files named for bodies and certificates are read here;
//! files to be written are opened elsewhere.

use std::fs;
use std::io::{self, Read as _};
use std::net::{IpAddr, ToSocketAddrs as _};
use std::num::{NonZeroU32, NonZeroU64};
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use catamaran_load::Dialect;
use catamaran_load::gate::{Condition, Gate, Waiver};
use catamaran_load::plan::{Arrivals, Operation, Stage, Table, TlsVersion, WarmUp};
use catamaran_load::render::ab::HtmlAttributes;

use crate::flag::{Flag, Id};
use crate::getopt::{Line, Mode, Part};
use crate::operand::Operand;
use crate::refusal::{Body, CONCURRENCY_MAX, Refusal};
use crate::{data, number, replay};

/// A command line, read.
#[derive(Debug)]
pub(crate) struct Typed {
    pub(crate) mode: Mode,
    pub(crate) urls: Vec<String>,
    /// The words of the line that are neither flags nor their values, which are in `urls`, too.
    pub(crate) operands: Vec<Operand>,
    /// What ab complains of, but goes on.
    pub(crate) complaints: Vec<String>,
    pub(crate) load: Load,
    pub(crate) request: RequestParts,
    pub(crate) connection: Connection,
    pub(crate) memcached: MemcachedParts,
    pub(crate) tls: TlsParts,
    pub(crate) variable_length: bool,
    pub(crate) check_bodies: bool,
    pub(crate) receive_errors: bool,
    pub(crate) gate: Gate,
    /// The URL to compare with.
    pub(crate) versus: Option<String>,
    pub(crate) output: Output,
}

/// How much, how fast, how long.
#[derive(Debug)]
pub(crate) struct Load {
    pub(crate) requests: Option<u64>,
    pub(crate) concurrency: Option<u64>,
    pub(crate) duration: Option<Duration>,
    /// Which flag gave it: `-t` or `--duration`.
    duration_by: Option<Id>,
    pub(crate) rate: Option<f64>,
    pub(crate) rate_max: Option<f64>,
    pub(crate) requests_file: Option<String>,
    pub(crate) table: Option<Arc<Table>>,
    pub(crate) replay: Option<String>,
    pub(crate) speed: Option<f64>,
    pub(crate) replay_methods: Option<Vec<String>>,
    pub(crate) arrivals: Option<Arrivals>,
    pub(crate) ramp: Option<Duration>,
    pub(crate) stages: Vec<Stage>,
    pub(crate) warm_up: WarmUp,
    pub(crate) warm_up_max: Option<Duration>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) threads: Option<u64>,
    pub(crate) spacing: Duration,
    pub(crate) seed: u64,
}

/// What is asked.
#[derive(Debug, Default)]
pub(crate) struct RequestParts {
    pub(crate) method: Option<String>,
    pub(crate) body: Option<Body>,
    pub(crate) content: Vec<u8>,
    pub(crate) content_type: Option<String>,
    pub(crate) cookies: Vec<String>,
    pub(crate) cookie_jar: bool,
    /// Header lines of `-A` and `-P`.
    pub(crate) credentials: Vec<(&'static str, String)>,
    pub(crate) headers: Vec<String>,
    pub(crate) proxy: Option<(String, u16)>,
    pub(crate) http10: bool,
    pub(crate) http2: bool,
    pub(crate) secret: Option<String>,
}

/// How connections are made and used.
#[derive(Debug, Default)]
pub(crate) struct Connection {
    pub(crate) keep_alive: bool,
    pub(crate) pipeline: Option<u64>,
    pub(crate) streams: Option<u64>,
    pub(crate) requests_max: Option<u64>,
    pub(crate) sources: Vec<IpAddr>,
    /// A local address that nobody knows, which ab finds out when the run begins.
    pub(crate) unknown_source: Option<String>,
    pub(crate) buffer: Option<usize>,
}

/// What is asked of memcached.
#[derive(Debug, Default)]
pub(crate) struct MemcachedParts {
    /// Operations and their weights.
    pub(crate) mix: Option<Vec<(Operation, NonZeroU32)>>,
    pub(crate) keys: Option<NonZeroU64>,
    pub(crate) zipf: Option<f64>,
    pub(crate) value_bytes: Option<usize>,
    pub(crate) prefill: bool,
    pub(crate) dialect: Option<Dialect>,
}

/// TLS as asked for.
#[derive(Debug, Default)]
pub(crate) struct TlsParts {
    pub(crate) ciphers: Vec<String>,
    pub(crate) versions: Vec<TlsVersion>,
    pub(crate) certificate: Option<Vec<u8>>,
    pub(crate) no_sni: bool,
    pub(crate) verify: bool,
    pub(crate) roots: Option<Vec<u8>>,
}

/// What is said, and where.
#[derive(Debug, Default)]
pub(crate) struct Output {
    pub(crate) verbosity: i64,
    pub(crate) quiet: bool,
    pub(crate) no_percentiles: bool,
    pub(crate) no_confidence: bool,
    pub(crate) html: bool,
    pub(crate) attributes: HtmlAttributes,
    pub(crate) gnuplot: Option<String>,
    pub(crate) percentiles: Option<String>,
    pub(crate) no_banner: bool,
    pub(crate) watchdog: bool,
    pub(crate) ticks: Option<Duration>,
    pub(crate) json: Option<Sink>,
    pub(crate) csv: Option<Sink>,
    pub(crate) hdr: Option<String>,
}

/// Where something goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Sink {
    Stdout,
    File(String),
}

/// What a command line asks for.
#[derive(Debug)]
pub(crate) enum Asked {
    Run(Box<Typed>),
    Help,
    /// The version; as HTML in ab when `-w` came before.
    Version {
        html: bool,
    },
}

/// Reads a command line.
pub(crate) fn read(arguments: &[String], mode: Mode) -> Result<Asked, Refusal> {
    let mut typed = Typed::new(mode);
    let (mut is_first, mut before) = (true, None);
    for part in Line::new(arguments, mode) {
        let part = part?;
        let flag_without_value = match &part {
            Part::Flag(flag, None) => Some(flag.id),
            _ => None,
        };
        match part {
            Part::Flag(flag, _) if flag.id == Id::Help => return Ok(Asked::Help),
            Part::Flag(flag, _) if flag.id == Id::Version => {
                let html = typed.output.html;
                return Ok(Asked::Version { html });
            }
            Part::Flag(flag, value) => typed.apply(flag, value)?,
            Part::Operand(operand) => {
                typed.urls.push(operand.to_owned());
                typed.operands.push(Operand {
                    text: operand.to_owned(),
                    is_first,
                    behind: before,
                });
            }
            Part::Complaint(text) => typed.complaints.push(text),
        }
        before = flag_without_value;
        is_first = false;
    }
    Ok(Asked::Run(Box::new(typed)))
}

impl Typed {
    fn new(mode: Mode) -> Self {
        Self {
            mode,
            urls: Vec::new(),
            operands: Vec::new(),
            complaints: Vec::new(),
            load: Load {
                requests: None,
                concurrency: None,
                duration: None,
                duration_by: None,
                rate: None,
                rate_max: None,
                requests_file: None,
                table: None,
                replay: None,
                speed: None,
                replay_methods: None,
                arrivals: None,
                ramp: None,
                stages: Vec::new(),
                warm_up: WarmUp::None,
                warm_up_max: None,
                timeout: None,
                threads: None,
                spacing: Duration::ZERO,
                seed: 1,
            },
            request: RequestParts::default(),
            connection: Connection::default(),
            memcached: MemcachedParts::default(),
            tls: TlsParts::default(),
            variable_length: false,
            check_bodies: false,
            receive_errors: false,
            gate: Gate::default(),
            versus: None,
            output: Output::default(),
        }
    }

    #[expect(
        clippy::too_many_lines,
        reason = "one arm per flag, of one or two lines each"
    )]
    fn apply(&mut self, flag: &Flag, value: Option<&str>) -> Result<(), Refusal> {
        let mode = self.mode;
        let text = value.unwrap_or_default();
        let bad = |expected| Refusal::BadValue {
            flag: flag.name(mode),
            value: text.to_owned(),
            expected,
        };
        let number = |expected| number_of(mode, text).ok_or_else(|| bad(expected));
        let time = || number::duration(text).ok_or_else(|| bad("a time such as 10s or 500ms"));
        let owned = || Some(text.to_owned());
        let (load, request, output) = (&mut self.load, &mut self.request, &mut self.output);
        match flag.id {
            Id::Requests if mode == Mode::Ours && is_requests_file(text) => {
                load.requests_file = owned();
            }
            Id::Requests => {
                let requests = number_of(mode, text).filter(|&requests| requests > 0);
                load.requests = Some(requests.ok_or_else(|| Refusal::Requests(text.to_owned()))?);
            }
            Id::Concurrency => {
                let clients = number_of(mode, text).filter(|&clients| clients <= CONCURRENCY_MAX);
                load.concurrency = Some(clients.ok_or(Refusal::Concurrency)?);
            }
            Id::TimeLimit if mode == Mode::Ab => {
                load.duration = match number_of(mode, text) {
                    Some(0) => None,
                    Some(seconds) => Some(Duration::from_secs(seconds)),
                    // It is over when it begins.
                    None => Some(Duration::from_nanos(1)),
                };
                load.requests = Some(REQUESTS_OF_TIMED_RUN);
            }
            Id::TimeLimit | Id::Duration => {
                let asked = time()?;
                if load.duration_by.is_some_and(|it| it != flag.id) {
                    return Err(Refusal::TwoDurations);
                }
                load.duration_by = Some(flag.id);
                load.duration = Some(asked).filter(|time| !time.is_zero());
            }
            Id::Rate => {
                load.rate = Some(number::amount(text).ok_or_else(|| bad("requests per second"))?);
            }
            Id::RateMax => {
                let max = number::amount(text).ok_or_else(|| bad("requests per second"))?;
                load.rate_max = Some(max);
            }
            Id::Arrivals => {
                load.arrivals = Some(match text {
                    "constant" => Arrivals::Constant,
                    "poisson" => Arrivals::Poisson,
                    _ => return Err(bad("constant or poisson")),
                });
            }
            Id::Ramp => load.ramp = Some(time()?).filter(|time| !time.is_zero()),
            Id::Stage => {
                for each in text.split(',') {
                    let stage = number::stage(each);
                    load.stages
                        .push(stage.ok_or_else(|| bad("stages such as 30s=100 or 30s..100"))?);
                }
            }
            Id::WarmUp if text == "auto" => load.warm_up = WarmUp::Detect { max: WARM_UP_MAX },
            Id::WarmUp => {
                let time = number::duration(text).ok_or_else(|| bad("a time such as 10s, or auto"));
                load.warm_up = WarmUp::For(time?);
            }
            Id::WarmUpMax => load.warm_up_max = Some(time()?),
            Id::Timeout if mode == Mode::Ab => {
                let forever = number::DURATION_MAX;
                load.timeout = Some(number_of(mode, text).map_or(forever, Duration::from_secs));
            }
            Id::Timeout => load.timeout = Some(time()?),
            Id::Threads => load.threads = Some(number("a number of threads")?),
            Id::Spacing => load.spacing = Duration::from_millis(number("milliseconds")?),
            Id::Urls => self.urls.extend(urls_in(text)?),
            Id::RequestsFile => load.requests_file = owned(),
            Id::DataFile => load.table = Some(Arc::new(data::read(text)?)),
            Id::Replay => load.replay = owned(),
            Id::Speed => {
                let speed = replay::speed(text);
                load.speed = Some(speed.ok_or_else(|| bad("a factor such as 2x or 0.5x"))?);
            }
            Id::ReplayMethods => {
                load.replay_methods = Some(text.split(',').map(str::to_owned).collect());
            }
            Id::Seed => load.seed = number("a number")?,
            Id::Method => request.method = owned(),
            Id::Head => request.choose(Body::Head, mode)?,
            Id::Post => request.take_file(Body::Post, text, mode)?,
            Id::Put => request.take_file(Body::Put, text, mode)?,
            Id::Data => match text.strip_prefix('@') {
                Some(path) => request.take_file(Body::Post, path, mode)?,
                None => {
                    request.choose(Body::Post, mode)?;
                    request.content = text.as_bytes().to_vec();
                }
            },
            Id::ContentType => request.content_type = owned(),
            Id::Cookie => {
                if mode == Mode::Ab {
                    request.cookies.clear();
                }
                request.cookies.push(text.to_owned());
            }
            Id::CookieJar => request.cookie_jar = true,
            Id::Header => request.headers.push(text.to_owned()),
            Id::Auth => request.add_credentials("Authorization", text)?,
            Id::ProxyAuth => request.add_credentials("Proxy-Authorization", text)?,
            Id::Proxy => {
                let proxy = proxy(text, mode);
                request.proxy = Some(proxy.ok_or_else(|| bad("HOST[:PORT]"))?);
            }
            Id::Http10 => request.http10 = true,
            Id::Http2 => request.http2 = true,
            Id::Secret => request.secret = owned(),
            Id::KeepAlive => self.connection.keep_alive = true,
            Id::Pipeline => self.connection.pipeline = Some(number("a number of requests")?),
            Id::Streams => self.connection.streams = Some(number("a number of streams")?),
            Id::RequestsPerConnection => {
                self.connection.requests_max = Some(number("a number of requests")?);
            }
            Id::Source | Id::SecondSource => {
                for each in text.split(',').filter(|each| !each.is_empty()) {
                    self.connection.add_source(each);
                }
            }
            Id::Window => {
                let bytes = match mode {
                    Mode::Ab => number_of(mode, text).unwrap_or(0),
                    Mode::Ours => number("a number of bytes")?,
                };
                let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
                self.connection.buffer = Some(bytes).filter(|&bytes| bytes > 0);
            }
            Id::Mix => {
                let mix = number::mix(text);
                let expected = "operations and their weights such as get=9,set=1";
                self.memcached.mix = Some(mix.ok_or_else(|| bad(expected))?);
            }
            Id::Keys => {
                let keys = NonZeroU64::new(number("a number of keys")?);
                self.memcached.keys = Some(keys.ok_or_else(|| bad("one key or more"))?);
            }
            Id::Zipf => {
                let exponent = number::amount(text);
                self.memcached.zipf = Some(exponent.ok_or_else(|| bad("an exponent above 0"))?);
            }
            Id::ValueSize => {
                let bytes = number::size(text).ok_or_else(|| bad("a size such as 100 or 64KiB"))?;
                self.memcached.value_bytes = Some(bytes);
            }
            Id::Prefill => self.memcached.prefill = true,
            Id::Dialect => {
                let dialect = Dialect::named(text).ok_or_else(|| bad("meta or text"))?;
                self.memcached.dialect = Some(dialect);
            }
            Id::Ciphers => self.tls.ciphers = text.split([':', ',']).map(str::to_owned).collect(),
            Id::TlsVersion => {
                if let Some(versions) = tls_versions(text)? {
                    self.tls.versions = versions;
                } else if mode == Mode::Ours {
                    return Err(bad("TLS1.2, TLS1.3 or ALL"));
                }
            }
            Id::Certificate => self.tls.certificate = Some(file(text)?),
            Id::NoSni => self.tls.no_sni = true,
            Id::Verify => self.tls.verify = true,
            Id::CaCert => self.tls.roots = Some(file(text)?),
            Id::VariableLength => self.variable_length = true,
            Id::CheckBodies => self.check_bodies = true,
            Id::ReceiveErrors => self.receive_errors = true,
            Id::Versus => self.versus = owned(),
            Id::FailIf => self.gate.conditions.push(condition(text)?),
            Id::Waive => {
                for each in text.split(',') {
                    let waiver = Waiver::ALL.into_iter().find(|waiver| waiver.word() == each);
                    let expected = "non-2xx, unsent, failed or invalid, with commas between them";
                    self.gate.waived.push(waiver.ok_or_else(|| bad(expected))?);
                }
            }
            Id::Verbosity => output.verbosity = number::atoi(text),
            Id::Quiet => output.quiet = true,
            Id::NoPercentiles => output.no_percentiles = true,
            Id::NoConfidence => output.no_confidence = true,
            Id::Html => output.html = true,
            Id::TableAttributes => {
                output.html = true;
                text.clone_into(&mut output.attributes.table);
            }
            Id::RowAttributes => {
                output.html = true;
                text.clone_into(&mut output.attributes.row);
            }
            Id::CellAttributes if mode == Mode::Ours && number::duration(text).is_some() => {
                return Err(Refusal::CellTime(text.to_owned()));
            }
            Id::CellAttributes => {
                output.html = true;
                text.clone_into(&mut output.attributes.cell);
            }
            Id::Gnuplot => output.gnuplot = owned(),
            Id::PercentilesFile => output.percentiles = owned(),
            Id::NoBanner => output.no_banner = true,
            Id::Watchdog => output.watchdog = true,
            Id::Ticks => output.ticks = Some(time()?),
            Id::Json => output.json = Some(sink(value)),
            Id::Csv => output.csv = Some(sink(value)),
            Id::Hdr => output.hdr = owned(),
            // `--compat ab` was taken out of the line before it was read.
            Id::Compat => return Err(bad("ab")),
            // Whoever asks for these gets nothing else.
            Id::Version | Id::Help => {}
        }
        Ok(())
    }
}

impl Connection {
    fn add_source(&mut self, text: &str) {
        match source(text) {
            Some(address) => self.sources.push(address),
            None => self.unknown_source = Some(text.to_owned()),
        }
    }
}

impl RequestParts {
    /// Takes note of `-i`, `-p` or `-u`, of which there can be one; ab also refuses them after `-m`.
    fn choose(&mut self, body: Body, mode: Mode) -> Result<(), Refusal> {
        if self.body.is_some() || mode == Mode::Ab && self.method.is_some() {
            return Err(Refusal::MixedMethods(body));
        }
        self.body = Some(body);
        Ok(())
    }

    fn take_file(&mut self, body: Body, path: &str, mode: Mode) -> Result<(), Refusal> {
        self.choose(body, mode)?;
        self.content = file(path)?;
        Ok(())
    }

    fn add_credentials(&mut self, name: &'static str, text: &str) -> Result<(), Refusal> {
        let value = basic(text.trim_start());
        if value.len() > CREDENTIALS_BYTES_MAX {
            let proxy = name.starts_with("Proxy");
            return Err(Refusal::Credentials { proxy });
        }
        self.credentials.push((name, value));
        Ok(())
    }
}

/// `user:password` as Basic authorization writes it (RFC 7617, section 2).
pub(crate) fn basic(user: &str) -> String {
    format!("Basic {}", BASE64_STANDARD.encode(user))
}

fn condition(text: &str) -> Result<Condition, Refusal> {
    Condition::parse(text).map_err(|fault| Refusal::Condition {
        text: text.to_owned(),
        fault,
    })
}

fn number_of(mode: Mode, text: &str) -> Option<u64> {
    match mode {
        Mode::Ab => u64::try_from(number::atoi(text)).ok(),
        Mode::Ours => number::count(text),
    }
}

pub(crate) fn file(path: &str) -> Result<Vec<u8>, Refusal> {
    fs::read(path).map_err(|error| Refusal::File {
        path: path.to_owned(),
        reason: reason(&error),
    })
}

/// The system's words without Rust's addition of the number.
pub(crate) fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    match text.split_once(" (os error") {
        Some((words, _)) => words.to_owned(),
        None => text,
    }
}

/// The lines of a file that are neither empty nor comments.
fn urls_in(path: &str) -> Result<Vec<String>, Refusal> {
    let text = if path == "-" {
        let mut text = String::new();
        let read = io::stdin().lock().read_to_string(&mut text);
        read.map(|_| text)
    } else {
        fs::read_to_string(path)
    };
    let text = text.map_err(|error| Refusal::File {
        path: path.to_owned(),
        reason: reason(&error),
    })?;
    let lines = text.lines().map(str::trim);
    let urls = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
    Ok(urls.map(str::to_owned).collect())
}

/// Whether the value of `--requests` is a file of requests, not their number.
fn is_requests_file(text: &str) -> bool {
    [".jsonl", ".ndjson"].iter().any(|end| text.ends_with(end))
}

/// A host, and a port behind a colon. ab reads the port as it reads all numbers, and without one
/// connects to port 0.
fn proxy(text: &str, mode: Mode) -> Option<(String, u16)> {
    let port = |text: &str| match mode {
        Mode::Ab => u16::try_from(number::atoi(text)).ok(),
        Mode::Ours => text.parse().ok(),
    };
    let (host, port) = match text.rsplit_once(':') {
        Some((host, text)) if !host.ends_with(':') => (host, port(text)?),
        _ if mode == Mode::Ab => (text, 0),
        _ => (text, 80),
    };
    let host = host.trim_start_matches('[').trim_end_matches(']');
    (!host.is_empty()).then(|| (host.to_owned(), port))
}

/// An address, or the first of a name's.
fn source(text: &str) -> Option<IpAddr> {
    if let Ok(address) = text.parse() {
        return Some(address);
    }
    let mut addresses = (text, 0).to_socket_addrs().ok()?;
    addresses.next().map(|address| address.ip())
}

/// `None` for a word that ab would pass over.
fn tls_versions(text: &str) -> Result<Option<Vec<TlsVersion>>, Refusal> {
    let upper = text.to_ascii_uppercase();
    // ab compares beginnings, longer names first.
    let versions = if upper.starts_with("ALL") {
        vec![TlsVersion::Tls12, TlsVersion::Tls13]
    } else if upper.starts_with("TLS1.2") {
        vec![TlsVersion::Tls12]
    } else if upper.starts_with("TLS1.3") {
        vec![TlsVersion::Tls13]
    } else if ["SSL2", "SSL3", "TLS1"]
        .iter()
        .any(|old| upper.starts_with(old))
    {
        return Err(Refusal::OldTls(text.to_owned()));
    } else {
        return Ok(None);
    };
    Ok(Some(versions))
}

fn sink(value: Option<&str>) -> Sink {
    match value {
        None | Some("-") => Sink::Stdout,
        Some(path) => Sink::File(path.to_owned()),
    }
}

/// What ab sets `-n` to upon `-t`, to know how large its array of results is to be.
const REQUESTS_OF_TIMED_RUN: u64 = 50_000;

/// ab's buffer for encoded credentials, less the byte that ends it, and the scheme before them.
const CREDENTIALS_BYTES_MAX: usize = 1023 + "Basic ".len();

const WARM_UP_MAX: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests;

//! The options of a run that its report repeats.

use catamaran_memcache::Dialect;

/// The options of a run that its report repeats, in the words of the command line.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Subject {
    /// The first URL that the user gave.
    pub url: String,
    /// The number of URLs that the user gave.
    pub urls: usize,
    /// The host of the URL, without brackets (ab: Server Hostname).
    pub hostname: String,
    /// The port of the URL (ab: Server Port).
    pub port: u16,
    /// The path and query of the URL (ab: Document Path).
    pub path: String,
    /// The protocol of the first target.
    pub protocol: SpokenProtocol,
    /// The most requests on a connection at once.
    pub streams: u32,
    /// The load on memcached; `None`: the run uses another protocol.
    pub memcached: Option<MemcachedSubject>,
    /// Whether connections are kept alive (`-k`).
    pub keep_alive: bool,
    /// Whether requests have bodies (`-p`, `-u`).
    pub sends_body: bool,
    /// Whether responses may differ in length (`-l`).
    pub variable_length: bool,
    /// Whether the table of percentiles is printed (not with `-d`).
    pub percentiles: bool,
    /// Whether deviations and warnings about them are printed (not with `-S`).
    pub confidence: bool,
    /// The rate in requests per second (`--rate`); `None`: a closed loop.
    pub rate: Option<f64>,
    /// Whether the rate or the number of clients changes in the run (`--stage`, `--ramp`).
    pub has_stages: bool,
}

/// The options of the load on memcached.
#[derive(Clone, Debug, PartialEq)]
pub struct MemcachedSubject {
    /// The operations with their weights, such as `get=9, set=1`.
    pub mix: String,
    /// The number of keys of the load.
    pub keys: u64,
    /// The exponent of Zipf's law; `None`: all keys are equally frequent.
    pub zipf: Option<f64>,
    /// The length of a value in bytes.
    pub value_bytes: u64,
    /// The number of values stored before the run; they are in no count of the report.
    pub prefilled: u64,
}

/// The protocol on a connection, with its version.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SpokenProtocol {
    /// HTTP version 1.0.
    Http10,
    /// HTTP version 1.1.
    #[default]
    Http11,
    /// HTTP version 2, with or without TLS.
    Http2,
    /// AJP13, the protocol of servlet containers.
    Ajp13,
    /// One of memcached's protocols, by its dialect.
    Memcached(Dialect),
}

impl SpokenProtocol {
    /// The protocol's name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Http10 => "HTTP/1.0",
            Self::Http11 => "HTTP/1.1",
            Self::Http2 => "HTTP/2",
            Self::Ajp13 => "AJP13",
            Self::Memcached(Dialect::Meta) => "memcached (meta)",
            Self::Memcached(Dialect::Text) => "memcached (text)",
        }
    }
}

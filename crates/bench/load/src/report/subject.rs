//! What a run was about, as far as its requests do not say it.

use catamaran_memcache::Dialect;

/// The subject of a report: the options of the run, in the words of the command line.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Subject {
    /// The first URL as the user gave it.
    pub url: String,
    /// The number of URLs.
    pub urls: usize,
    /// The host in it, without brackets (ab: Server Hostname).
    pub hostname: String,
    /// Its port (ab: Server Port).
    pub port: u16,
    /// Path and query (ab: Document Path).
    pub path: String,
    /// The protocol of the first target.
    pub protocol: SpokenProtocol,
    /// Requests that a connection carries at once.
    pub streams: u32,
    /// The load on memcached; `None`: another protocol is spoken.
    pub memcached: Option<MemcachedSubject>,
    /// Whether connections were to be kept alive (`-k`).
    pub keep_alive: bool,
    /// Whether requests have bodies (`-p`, `-u`).
    pub sends_body: bool,
    /// Whether answers may differ in length (`-l`).
    pub variable_length: bool,
    /// Whether the table of percentiles is wanted (not `-d`).
    pub percentiles: bool,
    /// Whether deviations and doubts are wanted (not `-S`).
    pub confidence: bool,
    /// Requests per second that were asked for (`--rate`); `None`: a closed loop.
    pub rate: Option<f64>,
    /// Whether the rate or the number of clients changes in the run (`--stage`, `--ramp`).
    pub has_stages: bool,
}

/// The load on memcached.
#[derive(Clone, Debug, PartialEq)]
pub struct MemcachedSubject {
    /// Operations and their weights, such as `get=9, set=1`.
    pub mix: String,
    /// The number of keys.
    pub keys: u64,
    /// The exponent of Zipf's law; `None`: each key is as frequent as any other.
    pub zipf: Option<f64>,
    /// Bytes of a value.
    pub value_bytes: u64,
    /// Values that were stored before the run, and are in no count of the report.
    pub prefilled: u64,
}

/// The protocol on a connection, with its version.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SpokenProtocol {
    /// HTTP/1.0.
    Http10,
    /// HTTP/1.1.
    #[default]
    Http11,
    /// HTTP/2.
    Http2,
    /// AJP13.
    Ajp13,
    /// One of memcached's protocols.
    Memcached(Dialect),
}

impl SpokenProtocol {
    /// Its name.
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

//! Why a command line of `bench` is refused, with our message and with ab's.
//!
//! Our messages are one line, with exit code 2. ab has two kinds: those that print its usage and
//! exit with 22 (EINVAL), and those that are a sentence and an empty line and exit with 1.

use catamaran_load::gate::ConditionFault;
use catamaran_load::plan::PlanFault;
use catamaran_load::versus::RatioFault;
use thiserror::Error;

/// A reason to refuse a command line; its text is the message.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(crate) enum Refusal {
    #[error("{0} is no flag of bench")]
    UnknownFlag(String),
    #[error("{word} is no flag of bench: {hint}")]
    Habit { word: String, hint: &'static str },
    #[error(
        "-t is ab's time limit and so the same as --duration: choose one; for threads give -W N"
    )]
    TwoDurations,
    #[error("{0} needs a value")]
    MissingValue(String),
    #[error("{0} takes no value")]
    UnwantedValue(String),
    #[error("{flag} takes {expected}, not {value:?}")]
    BadValue {
        flag: String,
        value: String,
        expected: &'static str,
    },
    #[error("{flag} takes {expected}, not the value that was given")]
    BadSecret {
        flag: String,
        expected: &'static str,
    },
    #[error("{kind} does not go with {with}")]
    Conflict { kind: RunKind, with: &'static str },
    #[error("{0} and {1} are two ways to say the same: choose one")]
    Twins(String, String),
    #[error("-n takes a number of requests above zero, not {0:?}")]
    Requests(String),
    #[error("{0} conflicts with another method or body: choose one of -i, -p, -u and --data")]
    MixedMethods(Body),
    #[error("cannot read {path}: {reason}")]
    File { path: String, reason: String },
    #[error("{path}, line {line}: {what}")]
    Line {
        path: String,
        line: u64,
        what: String,
    },
    #[error("there is no URL: give one, or a file of them with --urls")]
    NoUrl,
    #[error("there are {0} URLs: give one, and more with --urls FILE")]
    ManyUrls(usize),
    #[error("{url:?} is no URL for bench: {reason}")]
    Url { url: String, reason: &'static str },
    #[error("{word:?} is no target: {hint}")]
    Stray { word: String, hint: String },
    #[error("{0:?} is a reserved word: for a host of that name write http://{0}/")]
    Reserved(String),
    #[error(
        "-z takes ab's attributes of HTML cells, not the time {0:?}: for a duration give \
         --duration {0}"
    )]
    CellTime(String),
    #[error("-c takes a number of clients from 0 to {CONCURRENCY_MAX}")]
    Concurrency,
    #[error("-c 0 is no client: ask for one or more")]
    NoClients,
    #[error("-c {concurrency} are more clients than the {requests} requests of -n")]
    MoreClientsThanRequests { concurrency: u64, requests: u64 },
    #[error("{0} goes with --rate only")]
    NeedsRate(&'static str),
    #[error("--fail-if {text:?} is no condition: {fault}")]
    Condition { text: String, fault: ConditionFault },
    #[error("--fail-if {text:?} is no limit of a ratio: {fault}")]
    RatioLimit { text: String, fault: RatioFault },
    #[error("--fail-if {0:?} is a limit of a ratio, which goes with --versus only")]
    NeedsVersus(String),
    #[error("--versus takes limits of ratios such as --fail-if 'rate<0.95x', not {0:?}")]
    NeedsRatio(String),
    #[error("{0} goes with --replay only")]
    NeedsReplay(&'static str),
    #[error("{0} has no request to send: it has no line with one of the methods asked for")]
    EmptyReplay(String),
    #[error("--rate-max goes with bench knee only")]
    NeedsKnee,
    #[error("--waive goes with --fail-if only")]
    NeedsCondition,
    #[error("--warmup-max goes with --warmup auto only")]
    NeedsAutoWarmUp,
    #[error("a proxy (-X) is asked for http URLs only")]
    ProxyScheme,
    #[error("--streams goes with --http2 only; over HTTP/1.1 it is --pipeline")]
    NeedsHttp2,
    #[error("--{0} goes with a memcached:// URL only")]
    NeedsMemcached(&'static str),
    #[error("--prefill: {0}")]
    Prefill(String),
    #[error("no root certificates were found on this system: name a file with --cacert")]
    NoRoots,
    #[error("{0} is not available: the TLS library has TLS1.2 and TLS1.3 only")]
    OldTls(String),
    #[error("the header line {0:?} has no name before a colon")]
    HeaderLine(String),
    #[error("the local address {0:?} is neither an address nor a name that is known")]
    Source(String),
    #[error("the credentials are too long")]
    Credentials { proxy: bool },
    #[error(transparent)]
    Plan(#[from] PlanFault),
}

/// A kind of run in which some flags are refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RunKind {
    /// A run over HTTP/2 (`--http2`).
    Http2,
    /// A run on a `memcached://` URL.
    Memcached,
    /// A run with a file of requests (`--requests-file`).
    RequestsFile,
    /// A replay of an access log (`--replay`).
    Replay,
    /// The search for a knee (`bench knee`).
    Knee,
    /// A comparison of two servers (`--versus`).
    Versus,
}

/// Writes the beginning of [`Refusal::Conflict`]'s message: the kind of run and the reason.
impl std::fmt::Display for RunKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Http2 => "--http2",
            Self::Memcached => "a memcached:// URL",
            Self::RequestsFile => "--requests-file has the requests: it",
            Self::Replay => "--replay takes its requests and times from the log: it",
            Self::Knee => "bench knee chooses the rates by itself: it",
            Self::Versus => "--versus compares for a --duration with -c or --rate: it",
        })
    }
}

/// The method that `-i`, `-p` or `-u` gives the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Body {
    Head,
    Post,
    Put,
}

impl std::fmt::Display for Body {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Head => "HEAD",
            Self::Post => "POST",
            Self::Put => "PUT",
        })
    }
}

/// What ab prints when it refuses a command line, and its exit code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum AbEnd {
    /// ab prints `ab: `, this text and its usage; exit code 22.
    Usage(String),
    /// ab prints this text; exit code 1.
    Fatal(String),
    /// ab prints this text; the exit code follows from APR's error number.
    Apr(String, u8),
}

impl Refusal {
    /// The refusal as ab words it, with its exit code.
    pub(crate) fn as_ab(&self) -> AbEnd {
        match self {
            Self::Requests(_) => AbEnd::Fatal("Invalid number of requests\n".to_owned()),
            Self::MixedMethods(body) => {
                AbEnd::Fatal(format!("Cannot mix {body} with other methods\n"))
            }
            // ab opens a directory, and cannot read it.
            Self::File { reason, .. } if reason == "Is a directory" => {
                AbEnd::Fatal(format!("ab: Could not read POST data file: {reason}"))
            }
            Self::File { path, reason } => AbEnd::Fatal(format!(
                "ab: Could not open POST data file ({path}): {reason}"
            )),
            Self::NoUrl | Self::ManyUrls(_) => AbEnd::Usage("wrong number of arguments".to_owned()),
            Self::Url { .. } => AbEnd::Usage("invalid URL".to_owned()),
            Self::Concurrency => {
                AbEnd::Usage(format!("Invalid Concurrency [Range 0..{CONCURRENCY_MAX}]"))
            }
            Self::MoreClientsThanRequests { .. } => AbEnd::Usage(
                "Cannot use concurrency level greater than total number of requests".to_owned(),
            ),
            Self::Credentials { proxy: false } => {
                AbEnd::Fatal("Authentication credentials too long\n".to_owned())
            }
            Self::Credentials { proxy: true } => {
                AbEnd::Fatal("Proxy credentials too long\n".to_owned())
            }
            Self::NoClients => AbEnd::Apr(
                "apr_pollset_poll: Invalid argument (22)".to_owned(),
                AB_INVALID,
            ),
            Self::Source(name) => AbEnd::Apr(
                format!("apr_sockaddr_info_get() for {name}: Name or service not known (670002)"),
                50,
            ),
            // ab has no words for these, since it has no such flags.
            other => AbEnd::Fatal(format!("ab: {other}")),
        }
    }
}

/// ab's exit code for invalid arguments: the system's EINVAL.
pub(crate) const AB_INVALID: u8 = 22;

/// The most clients, as in Debian's ab. The limit of httpd's own ab 2.4 is a tenth of it.
pub(crate) const CONCURRENCY_MAX: u64 = 200_000;

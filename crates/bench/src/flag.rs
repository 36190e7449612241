//! Every flag of `bench`: ab's of 2.4 and of trunk, and ours, in one table.
//!
//! The command line is split by this table, `--help` prints it, and a test compares docs/bench.md
//! with it. `typed` implements the flags.

use crate::getopt::Mode;

/// One flag.
#[derive(Debug)]
pub(crate) struct Flag {
    pub(crate) id: Id,
    /// ab's letter, if it is one of ab's.
    pub(crate) short: Option<char>,
    /// Its name after two dashes.
    pub(crate) long: &'static str,
    pub(crate) value: Value,
    pub(crate) group: Group,
    pub(crate) help: &'static str,
}

/// Whether a flag has a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    No,
    /// Always, and this is what the help calls it.
    Needed(&'static str),
    /// Only as `--flag=VALUE`, because what follows may be the URL.
    Attached(&'static str),
}

/// Where the help lists it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Group {
    Load,
    Request,
    Connection,
    Memcached,
    Tls,
    Checks,
    Output,
}

impl Group {
    /// In the order of the help.
    pub(crate) const ALL: [(Self, &'static str); 7] = [
        (Self::Load, "Load"),
        (Self::Request, "Requests"),
        (Self::Connection, "Connections"),
        (Self::Memcached, "memcached"),
        (Self::Tls, "TLS"),
        (Self::Checks, "Failures and gates"),
        (Self::Output, "Output"),
    ];
}

/// The identity of a flag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Id {
    Requests,
    Concurrency,
    TimeLimit,
    Duration,
    Rate,
    RateMax,
    Arrivals,
    Ramp,
    Stage,
    WarmUp,
    WarmUpMax,
    Timeout,
    Threads,
    Spacing,
    Urls,
    RequestsFile,
    DataFile,
    Replay,
    Speed,
    ReplayMethods,
    Seed,
    Versus,
    Method,
    Head,
    Post,
    Put,
    Data,
    ContentType,
    Cookie,
    CookieJar,
    Header,
    Auth,
    ProxyAuth,
    Proxy,
    Http10,
    Http2,
    Secret,
    KeepAlive,
    Pipeline,
    Streams,
    RequestsPerConnection,
    Source,
    SecondSource,
    Window,
    Mix,
    Keys,
    Zipf,
    ValueSize,
    Prefill,
    Dialect,
    Ciphers,
    TlsVersion,
    Certificate,
    NoSni,
    Verify,
    CaCert,
    VariableLength,
    CheckBodies,
    ReceiveErrors,
    FailIf,
    Waive,
    Verbosity,
    Quiet,
    NoPercentiles,
    NoConfidence,
    Html,
    TableAttributes,
    RowAttributes,
    CellAttributes,
    Gnuplot,
    PercentilesFile,
    NoBanner,
    Watchdog,
    Ticks,
    Json,
    Csv,
    Hdr,
    Compat,
    Version,
    Help,
}

/// The flag with this letter.
pub(crate) fn short(letter: char) -> Option<&'static Flag> {
    FLAGS.iter().find(|flag| flag.short == Some(letter))
}

/// The flag of this name.
pub(crate) fn long(name: &str) -> Option<&'static Flag> {
    let (_, name) = ALIASES
        .into_iter()
        .find(|(alias, _)| *alias == name)
        .unwrap_or((name, name));
    FLAGS.iter().find(|flag| flag.long == name)
}

impl Flag {
    /// As a message names it.
    pub(crate) fn name(&self, mode: Mode) -> String {
        match (self.short, mode) {
            (Some(letter), Mode::Ab) => format!("-{letter}"),
            (Some(letter), Mode::Ours) => format!("-{letter} (--{})", self.long),
            (None, _) => format!("--{}", self.long),
        }
    }
}

const fn flag(
    id: Id,
    short: Option<char>,
    long: &'static str,
    value: Value,
    (group, help): (Group, &'static str),
) -> Flag {
    Flag {
        id,
        short,
        long,
        value,
        group,
        help,
    }
}

use Group::{Checks, Connection, Load, Memcached, Output, Request, Tls};
use Value::{Attached, Needed, No};

#[rustfmt::skip]
pub(crate) static FLAGS: [Flag; 80] = [
    flag(Id::Requests, Some('n'), "requests", Needed("N"),
        (Load, "Requests in all, such as 1000 or 100k; of memcached:// without --rate operations of each \
                client [default: as many as 10 s take]")),
    flag(Id::Concurrency, Some('c'), "concurrency", Needed("N"),
        (Load, "Clients that each send their next request when the last is answered; with --rate, \
                connections [default: 10; with -n 1; with --rate 100]")),
    flag(Id::TimeLimit, Some('t'), "time-limit", Needed("SECONDS"),
        (Load, "As --duration; as ab it also sets -n to 50000, at this point of the line")),
    flag(Id::Duration, None, "duration", Needed("TIME"),
        (Load, "How long, such as 10s, 1.5m or 500ms [default: 10s, unless -n or --stage is given]")),
    flag(Id::Rate, None, "rate", Needed("N"),
        (Load, "Requests per second, sent by a schedule whatever the answers do: the open loop")),
    flag(Id::RateMax, None, "rate-max", Needed("N"),
        (Load, "As knee: the highest rate to try [default: none]")),
    flag(Id::Arrivals, None, "arrivals", Needed("KIND"),
        (Load, "poisson, as of many users, or constant [default: poisson]")),
    flag(Id::Ramp, None, "ramp", Needed("TIME"),
        (Load, "Begin with nothing and rise evenly to the full load within this time")),
    flag(Id::Stage, None, "stage", Needed("STAGES"),
        (Load, "Levels in turn, of the rate or of clients: 30s=100 is 100 for 30 s, 30s..100 moves \
                evenly there; a comma between stages; repeatable")),
    flag(Id::WarmUp, None, "warmup", Needed("TIME|auto"),
        (Load, "Send load for so long, or until throughput and latency are steady, and leave it \
                out of the report")),
    flag(Id::WarmUpMax, None, "warmup-max", Needed("TIME"),
        (Load, "When --warmup auto gives up waiting [default: 60s]")),
    flag(Id::Timeout, Some('s'), "timeout", Needed("TIME"),
        (Load, "How long one request may take; as ab, how long nothing at all may happen \
                [default: 30s]")),
    flag(Id::Threads, Some('W'), "threads", Needed("N"),
        (Load, "Threads, each with one event loop; 0 is one per core [default: 0; as ab 1]")),
    flag(Id::Spacing, Some('R'), "connect-delay", Needed("MS"),
        (Load, "Time between the first connects of two clients")),
    flag(Id::Urls, None, "urls", Needed("FILE"),
        (Load, "More URLs, one a line, asked for in turn; - is standard input")),
    flag(Id::RequestsFile, None, "requests-file", Needed("FILE"),
        (Load, "Requests with their own method, path, headers, body, weight and name, one JSON object \
                a line; --requests FILE.jsonl does the same")),
    flag(Id::DataFile, None, "data-file", Needed("FILE"),
        (Load, "The CSV file from which {{csv COLUMN}} takes its values, row by row")),
    flag(Id::Replay, None, "replay", Needed("LOG"),
        (Load, "Send the GET and HEAD requests of an access log (combined or our JSON) to the URL's \
                server, at the log's own times")),
    flag(Id::Speed, None, "speed", Needed("FACTOR"),
        (Load, "With --replay: such as 2x for twice as fast [default: 1x]")),
    flag(Id::ReplayMethods, None, "replay-methods", Needed("LIST"),
        (Load, "With --replay: the methods that are sent, without bodies [default: GET,HEAD]")),
    flag(Id::Seed, None, "seed", Needed("N"),
        (Load, "What random numbers start from, those of the schedule and of {{rand}} and {{uuid}} \
                [default: 1]")),
    flag(Id::Versus, None, "versus", Needed("URL"),
        (Load, "Compare with this URL: both take turns in short blocks, and the ratios within pairs \
                of blocks are judged [duration: 12s]")),

    flag(Id::Method, Some('m'), "method", Needed("METHOD"),
        (Request, "The method, any word")),
    flag(Id::Head, Some('i'), "head", No,
        (Request, "HEAD instead of GET")),
    flag(Id::Post, Some('p'), "post", Needed("FILE"),
        (Request, "POST this file; see -T")),
    flag(Id::Put, Some('u'), "put", Needed("FILE"),
        (Request, "PUT this file; see -T")),
    flag(Id::Data, None, "data", Needed("TEXT"),
        (Request, "POST this text, or with @FILE that file; see -T")),
    flag(Id::ContentType, Some('T'), "content-type", Needed("TYPE"),
        (Request, "Content-type of the body [default: text/plain]")),
    flag(Id::Cookie, Some('C'), "cookie", Needed("NAME=VALUE"),
        (Request, "A cookie; repeatable (as ab, the last one counts)")),
    flag(Id::CookieJar, None, "cookie-jar", No,
        (Request, "Each client keeps the cookies that it is given and sends them back")),
    flag(Id::Header, Some('H'), "header", Needed("LINE"),
        (Request, "A header line, such as 'Accept-Encoding: gzip'; repeatable; replaces our own \
                   Host, User-Agent and Accept")),
    flag(Id::Auth, Some('A'), "auth", Needed("USER:PASSWORD"),
        (Request, "Basic authorization")),
    flag(Id::ProxyAuth, Some('P'), "proxy-auth", Needed("USER:PASSWORD"),
        (Request, "Basic authorization for the proxy")),
    flag(Id::Proxy, Some('X'), "proxy", Needed("HOST[:PORT]"),
        (Request, "Send requests to this HTTP proxy [default port: 80]")),
    flag(Id::Http10, None, "http1-0", No,
        (Request, "Speak HTTP/1.0, as ab does (also --http1.0)")),
    flag(Id::Http2, None, "http2", No,
        (Request, "Speak HTTP/2: over https if the server agrees to it (ALPN), over http without \
                   asking; implies -k")),
    flag(Id::Secret, None, "secret", Needed("TEXT"),
        (Request, "The secret of an AJP13 connector")),

    flag(Id::KeepAlive, Some('k'), "keep-alive", No,
        (Connection, "Use connections for more than one request")),
    flag(Id::Pipeline, None, "pipeline", Needed("N"),
        (Connection, "Requests sent on a connection before the first answer is there; implies -k \
                      [default: 1]")),
    flag(Id::Streams, None, "streams", Needed("N"),
        (Connection, "With --http2: requests under way on a connection at once, as h2load's -m \
                      [default: 1]")),
    flag(Id::RequestsPerConnection, None, "requests-per-connection", Needed("N"),
        (Connection, "Close a connection after so many; implies -k [default: never]")),
    flag(Id::Source, Some('B'), "source", Needed("ADDRESS"),
        (Connection, "Local addresses, given to the connections in turn; a comma between them; \
                      repeatable")),
    flag(Id::SecondSource, Some('o'), "source-address", Needed("ADDRESS"),
        (Connection, "As -B")),
    flag(Id::Window, Some('b'), "buffer", Needed("BYTES"),
        (Connection, "Size of the socket's send and receive buffers")),

    flag(Id::Mix, None, "mix", Needed("LIST"),
        (Memcached, "Operations and their weights, of get and set [default: get=9,set=1]")),
    flag(Id::Keys, None, "keys", Needed("N"),
        (Memcached, "Keys that operations are about, by chance [default: 10000]")),
    flag(Id::Zipf, None, "zipf", Needed("EXPONENT"),
        (Memcached, "The key of rank k so often as 1/k^EXPONENT, such as 0.99 [default: each alike]")),
    flag(Id::ValueSize, None, "value", Needed("SIZE"),
        (Memcached, "Size of a value, such as 100, 10k or 64KiB; it carries its key and a checksum, \
                     and a wrong one is a failure [default: 100]")),
    flag(Id::Prefill, None, "prefill", No,
        (Memcached, "Store a value under every key before the run; no figure includes these sets")),
    flag(Id::Dialect, None, "protocol", Needed("meta|text"),
        (Memcached, "The commands that are spoken: those of memcached 1.6, or those of all versions \
                     [default: meta]")),

    flag(Id::Ciphers, Some('Z'), "ciphers", Needed("SUITES"),
        (Tls, "Cipher suites, with : or , between them")),
    flag(Id::TlsVersion, Some('f'), "tls", Needed("VERSION"),
        (Tls, "TLS1.2, TLS1.3 or ALL [default: ALL]")),
    flag(Id::Certificate, Some('E'), "certificate", Needed("FILE"),
        (Tls, "Certificate chain and private key to show, PEM")),
    flag(Id::NoSni, Some('I'), "no-sni", No,
        (Tls, "Do not name the host (SNI)")),
    flag(Id::Verify, None, "verify", No,
        (Tls, "Verify the server's certificate against the system's roots [default: no, as ab]")),
    flag(Id::CaCert, None, "cacert", Needed("FILE"),
        (Tls, "Verify it against these roots, PEM")),

    flag(Id::VariableLength, Some('l'), "variable-length", No,
        (Checks, "Answers may differ in length")),
    flag(Id::CheckBodies, None, "check-bodies", No,
        (Checks, "Compare the checksum of each body with the first one, in --json")),
    flag(Id::ReceiveErrors, Some('r'), "receive-errors", No,
        (Checks, "As ab: do not stop at an error of a receive (we never do)")),
    flag(Id::FailIf, None, "fail-if", Needed("CONDITION"),
        (Checks, "Exit with 1 if it holds, with 3 if the run does not tell: p99>20ms, errors>0.1%, \
                  rate<5000; repeatable")),
    flag(Id::Waive, None, "waive", Needed("LIST"),
        (Checks, "With --fail-if: what does not fail the run by itself, of non-2xx, unsent, failed \
                  and invalid")),

    flag(Id::Verbosity, Some('v'), "verbosity", Needed("N"),
        (Output, "From 2 on, show the request and the head of the first answer")),
    flag(Id::Quiet, Some('q'), "quiet", No,
        (Output, "Show no progress")),
    flag(Id::NoPercentiles, Some('d'), "no-percentiles", No,
        (Output, "Leave the table of percentiles out")),
    flag(Id::NoConfidence, Some('S'), "no-confidence", No,
        (Output, "Leave medians and deviations out")),
    flag(Id::Html, Some('w'), "html", No,
        (Output, "ab's report as a table of HTML")),
    flag(Id::TableAttributes, Some('x'), "table-attributes", Needed("TEXT"),
        (Output, "Attributes of its <table>; implies -w")),
    flag(Id::RowAttributes, Some('y'), "row-attributes", Needed("TEXT"),
        (Output, "Attributes of its <tr>; implies -w")),
    flag(Id::CellAttributes, Some('z'), "cell-attributes", Needed("TEXT"),
        (Output, "Attributes of its <td> and <th>; implies -w")),
    flag(Id::Gnuplot, Some('g'), "gnuplot", Needed("FILE"),
        (Output, "Write ab's file of every request, which takes 40 bytes of memory each")),
    flag(Id::PercentilesFile, Some('e'), "percentiles", Needed("FILE"),
        (Output, "Write ab's file of percentiles")),
    flag(Id::NoBanner, Some('Q'), "no-banner", No,
        (Output, "As ab: leave the first lines out (we have none)")),
    flag(Id::Watchdog, Some('D'), "watchdog", No,
        (Output, "A line of counters on standard error every 5 s")),
    flag(Id::Ticks, None, "ticks", Needed("TIME"),
        (Output, "How far it is as a line of JSON on standard error, so often")),
    flag(Id::Json, None, "json", Attached("FILE"),
        (Output, "The report as JSON: to the file, or instead of the text")),
    flag(Id::Csv, None, "csv", Attached("FILE"),
        (Output, "The report as one row: added to the file, or instead of the text")),
    flag(Id::Hdr, None, "hdr", Needed("FILE"),
        (Output, "Write the histograms as a log for HdrHistogram's tools")),
    flag(Id::Compat, None, "compat", Needed("ab"),
        (Output, "Be ab 2.4: its request, its report, its exit codes")),
    flag(Id::Version, Some('V'), "version", No,
        (Output, "Print the version")),
    flag(Id::Help, Some('h'), "help", No,
        (Output, "Print this")),
];

/// What users of other tools type.
const ALIASES: [(&str, &str); 7] = [
    ("connections", "concurrency"),
    ("stages", "stage"),
    ("warm-up", "warmup"),
    ("http1.0", "http1-0"),
    ("h2", "http2"),
    ("body", "post"),
    ("keepalive", "keep-alive"),
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn letters_and_names_are_unique() {
        let names: BTreeSet<&str> = FLAGS.iter().map(|flag| flag.long).collect();
        assert_eq!(names.len(), FLAGS.len());
        let letters: Vec<char> = FLAGS.iter().filter_map(|flag| flag.short).collect();
        let unique: BTreeSet<char> = letters.iter().copied().collect();
        assert_eq!(unique.len(), letters.len());
    }

    /// The options of ab's own parser: 2.4's, TLS's and trunk's.
    #[test]
    fn all_of_abs_letters_are_there() {
        let ab = "n:c:t:s:b:T:p:u:v:lrkVhwiIx:y:z:C:H:P:A:g:X:de:SqB:m:Z:f:E:QDR:o:W:";
        let mut letters = ab.chars().peekable();
        while let Some(letter) = letters.next() {
            let flag = short(letter).unwrap_or_else(|| panic!("no flag -{letter}"));
            let valued = letters.next_if_eq(&':').is_some();
            assert_eq!(matches!(flag.value, Needed(_)), valued, "-{letter}");
        }
    }

    #[test]
    fn aliases_lead_to_flags() {
        for (alias, name) in ALIASES {
            assert_eq!(long(alias).map(|flag| flag.long), Some(name));
        }
    }

    #[test]
    fn every_flag_is_in_the_reference() {
        let reference = include_str!("../../../docs/bench.md");
        for flag in &FLAGS {
            let name = format!("`--{}", flag.long);
            assert!(reference.contains(&name), "docs/bench.md lacks {name}");
            if let Some(letter) = flag.short {
                let name = format!("`-{letter}");
                assert!(reference.contains(&name), "docs/bench.md lacks {name}");
            }
        }
    }
}

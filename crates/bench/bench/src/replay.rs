//! `--replay`: makes a schedule of requests from an access log.
//!
//! Lines are in the combined format (nginx, httpd, `catamaran serve`) or `catamaran serve`'s JSON,
//! or a mixture. Logs have times in seconds: requests of one second are spread evenly over it, in
//! the order of the file. Lines that are not sent are counted, and are no error.

use std::collections::HashMap;
use std::time::Duration;

use catamaran_load::plan::{Arrival, Replay, Request};
use catamaran_load::report::ReplayFacts;
use jiff::Timestamp;

/// The requests of an access log, and counts of the lines that are left out.
#[derive(Debug)]
pub struct Log {
    /// The requests in the order of their times. Requests of the same second are in the order of the file.
    entries: Vec<Entry>,
    /// The number of lines with methods that are not sent.
    other_methods: u64,
    /// The number of lines that are no requests, or cannot be read.
    unread: u64,
}

#[derive(Debug, PartialEq, Eq)]
struct Entry {
    second: i64,
    method: String,
    target: String,
}

/// Reads an access log; only requests with one of `methods` are kept.
#[must_use]
pub fn read(text: &[u8], methods: &[String]) -> Log {
    let mut log = Log {
        entries: Vec::new(),
        other_methods: 0,
        unread: 0,
    };
    for line in text.split(|byte| *byte == b'\n') {
        let line = line.trim_ascii();
        if line.is_empty() {
            continue;
        }
        match entry(line) {
            Some(entry) if methods.contains(&entry.method) => log.entries.push(entry),
            Some(_) => log.other_methods += 1,
            None => log.unread += 1,
        }
    }
    // Servers write a line when a request ends, so times may be out of order. The sort keeps the order in a second.
    log.entries.sort_by_key(|entry| entry.second);
    log
}

impl Log {
    /// The method and target of each request, in the order of time.
    pub fn requests(&self) -> impl Iterator<Item = (&str, &str)> {
        let entries = self.entries.iter();
        entries.map(|entry| (entry.method.as_str(), entry.target.as_str()))
    }

    /// Counts of the log's requests and of the lines that are left out, for the report.
    #[must_use]
    pub fn facts(&self) -> ReplayFacts {
        ReplayFacts {
            requests: self.entries.len() as u64,
            other_methods: self.other_methods,
            not_requests: self.unread,
        }
    }

    /// The schedule, `speed` times as fast as the log, and the different requests in it: `base`
    /// with each method and target. `None`: the log has no requests.
    pub(crate) fn replay(&self, speed: f64, base: &Request) -> Option<(Replay, Vec<Request>)> {
        let (first, last) = (self.entries.first()?.second, self.entries.last()?.second);
        let mut requests: Vec<Request> = Vec::new();
        let mut known: HashMap<(&str, &str), u32> = HashMap::new();
        let mut arrivals = Vec::with_capacity(self.entries.len());
        for of_second in self.entries.chunk_by(|a, b| a.second == b.second) {
            let count = of_second.len() as f64;
            for (index, entry) in of_second.iter().enumerate() {
                let key = (entry.method.as_str(), entry.target.as_str());
                let request = *known.entry(key).or_insert_with(|| {
                    requests.push(request(entry, base));
                    u32::try_from(requests.len() - 1).unwrap_or(u32::MAX)
                });
                let since_first = (entry.second - first) as f64 + index as f64 / count;
                let at_ns = (since_first / speed * 1e9) as u64;
                arrivals.push(Arrival { at_ns, request });
            }
        }
        // The last second counts in full.
        let seconds = (last - first + 1) as f64 / speed;
        let replay = Replay {
            arrivals: arrivals.into(),
            span: Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX),
            facts: self.facts(),
        };
        Some((replay, requests))
    }
}

/// A sentence on the requests and the skipped lines of the log, for the output.
pub(crate) fn summary(facts: &ReplayFacts) -> String {
    format!(
        "replay: {} requests; skipped {} lines with other methods and {} that are no requests",
        facts.requests, facts.other_methods, facts.not_requests
    )
}

/// Makes a request of a log's entry. Logs have no bodies, so methods that need a body send an empty one.
fn request(entry: &Entry, base: &Request) -> Request {
    let request = Request {
        method: entry.method.clone(),
        target: entry.target.clone(),
        // Braces in a log are not placeholders: the clients sent them.
        has_placeholders: false,
        ..base.clone()
    };
    if ["POST", "PUT", "PATCH"].contains(&entry.method.as_str()) {
        request.header("Content-Length", "0")
    } else {
        request
    }
}

/// Reads a line of a log in one of the known formats; `None` if it is not a request.
fn entry(line: &[u8]) -> Option<Entry> {
    if line.starts_with(b"{") {
        return json_entry(line);
    }
    // HOST IDENT USER [TIME] "METHOD TARGET VERSION" and more.
    let text = str::from_utf8(line).ok()?;
    let (_, from_time) = text.split_once(" [")?;
    let (time_text, from_request) = from_time.split_once("] \"")?;
    let time = jiff::fmt::strtime::parse("%d/%b/%Y:%H:%M:%S %z", time_text).ok()?;
    let request = unescape(from_request)?;
    let mut words = request.split(' ');
    let (method, target, version) = (words.next()?, words.next()?, words.next()?);
    if !version.starts_with("HTTP/") {
        return None;
    }
    sendable_entry(time.to_timestamp().ok()?, method, target)
}

/// Reads `text` up to the quote that ends it, and decodes the escapes of httpd and nginx: `\xHH`, and `\` before a byte
/// that stands for itself. `None` without that quote, or if an escape is malformed.
fn unescape(text: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let mut rest = text.bytes();
    loop {
        match rest.next()? {
            b'"' => return String::from_utf8(bytes).ok(),
            b'\\' => match rest.next()? {
                b'x' => {
                    let mut digit = || char::from(rest.next()?).to_digit(16);
                    bytes.push(u8::try_from(digit()? * 16 + digit()?).ok()?);
                }
                byte => bytes.push(byte),
            },
            byte => bytes.push(byte),
        }
    }
}

/// Reads a line of `catamaran serve`'s JSON.
fn json_entry(line: &[u8]) -> Option<Entry> {
    let object: serde_json::Value = serde_json::from_slice(line).ok()?;
    let text = |name: &str| object.get(name).and_then(serde_json::Value::as_str);
    let time: Timestamp = text("time")?.parse().ok()?;
    let path = text("path")?;
    let target = match text("query") {
        Some(query) => format!("{path}?{query}"),
        None => path.to_owned(),
    };
    sendable_entry(time, text("method")?, &target)
}

/// Makes an entry; `None` if method or target cannot be sent unchanged.
fn sendable_entry(time: Timestamp, method: &str, target: &str) -> Option<Entry> {
    let is_token = !method.is_empty() && method.bytes().all(|byte| byte.is_ascii_uppercase());
    let is_target = target.starts_with('/') || target.starts_with("http");
    let is_plain = target.bytes().all(|byte| byte.is_ascii_graphic());
    (is_token && is_target && is_plain).then(|| Entry {
        second: time.as_second(),
        method: method.to_owned(),
        target: target.to_owned(),
    })
}

/// Reads a speed such as `2x`, `0.5x` or `2`: a multiple of the log's speed.
pub(crate) fn speed(text: &str) -> Option<f64> {
    let digits = text.strip_suffix('x').unwrap_or(text);
    // Signs and exponents are not allowed.
    let is_plain = |byte: u8| byte.is_ascii_digit() || byte == b'.';
    if !digits.bytes().all(is_plain) {
        return None;
    }
    let speed: f64 = digits.parse().ok()?;
    (0.001..=1e6).contains(&speed).then_some(speed)
}

#[cfg(test)]
mod tests {
    use catamaran_load::plan::HttpVersion;

    use super::*;

    const LOG: &str = concat!(
        "10.0.0.1 - - [22/Nov/2026:01:02:04 +0100] \"GET /b?x=1 HTTP/1.1\" 200 5 \"-\" \"a \\\"b\\\"\"\n",
        "10.0.0.1 - bob [22/Nov/2026:01:02:03 +0100] \"GET /a HTTP/1.1\" 200 5\n",
        "::1 - - [22/Nov/2026:01:02:03 +0100] \"HEAD /\\x22q HTTP/1.0\" 200 0 \"-\" \"-\" more=1\n",
        "10.0.0.1 - - [22/Nov/2026:01:02:03 +0100] \"POST /form HTTP/1.1\" 200 5 \"-\" \"-\"\n",
        "10.0.0.1 - - [22/Nov/2026:01:02:03 +0100] \"-\" 400 0 \"-\" \"-\"\n",
        "10.0.0.1 - - [22/Nov/2026:01:02:03 +0100] \"GET /a b HTTP/1.1\" 400 0 \"-\" \"-\"\n",
        "10.0.0.1 - - [22/Nov/2026:01:02:03 +0100] \"GET /\\x0d\\x0aX:1 HTTP/1.1\" 400 0\n",
        "10.0.0.1 - - [no time] \"GET / HTTP/1.1\" 200 0\n",
        "\n",
        "{\"time\":\"2026-11-22T01:02:05+01:00\",\"id\":\"1\",\"method\":\"GET\",\"path\":\"/b\",",
        "\"query\":\"x=1\",\"version\":\"HTTP/1.1\",\"status\":200}\n",
        "{\"time\":\"2026-11-22T01:02:05+01:00\",\"id\":\"1\",\"status\":400}\n",
        "{\"time\":\n",
        "\u{1}\n",
    );

    fn methods(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    fn base() -> Request {
        Request::get("/", HttpVersion::Http11).header("Host", "h")
    }

    #[test]
    fn both_formats_give_a_schedule() {
        let log = read(LOG.as_bytes(), &methods(&["GET", "HEAD"]));
        assert_eq!(
            (log.entries.len(), log.other_methods, log.unread),
            (4, 1, 7)
        );
        let summary =
            "replay: 4 requests; skipped 1 lines with other methods and 7 that are no requests";
        assert_eq!(self::summary(&log.facts()), summary);
        let (replay, requests) = log.replay(2.0, &base()).unwrap();
        let asked: Vec<String> = requests
            .iter()
            .map(|request| format!("{} {}", request.method, request.target))
            .collect();
        assert_eq!(asked, ["GET /a", "HEAD /\"q", "GET /b?x=1"]);
        let arrivals: Vec<(u64, u32)> = replay
            .arrivals
            .iter()
            .map(|arrival| (arrival.at_ns / 1_000_000, arrival.request))
            .collect();
        // Two in the first second, at twice the speed.
        assert_eq!(arrivals, [(0, 0), (250, 1), (500, 2), (1000, 2)]);
        assert_eq!(replay.span, Duration::from_millis(1500));
    }

    #[test]
    fn other_methods_are_sent_if_named_without_a_body() {
        let log = read(LOG.as_bytes(), &methods(&["POST"]));
        assert_eq!((log.entries.len(), log.other_methods), (1, 4));
        let (_, requests) = log.replay(1.0, &base()).unwrap();
        let length = &requests[0].headers[1];
        assert_eq!(
            (length.name.as_str(), &length.value[..]),
            ("Content-Length", &b"0"[..])
        );
    }

    #[test]
    fn a_log_without_requests_has_no_schedule() {
        let log = read(b"nonsense\n\n", &methods(&["GET"]));
        assert_eq!((log.entries.len(), log.unread), (0, 1));
        assert!(log.replay(1.0, &base()).is_none());
    }

    #[test]
    fn speeds() {
        for (text, expected) in [
            ("2x", Some(2.0)),
            ("0.5x", Some(0.5)),
            ("10", Some(10.0)),
            ("0x", None),
            ("x", None),
            ("-1x", None),
            ("inf", None),
            ("1e3x", None),
        ] {
            assert_eq!(speed(text), expected, "{text}");
        }
    }
}

//! The format of a line of the access log. All text from a client is escaped, so that a client cannot forge a line.
//!
//! A line of a usual request is put together without `core::fmt` and `serde_json`, which take several times as long.

use std::net::IpAddr;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use catamaran_balance::affinity::Outcome;
use catamaran_message::FieldName;
use catamaran_tls::Facts;
use catamaran_upstream::IpText;
use http::{Method, Version};
use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::config::log_condition::LoggedFigures;
use crate::config::{AccessLogFormat, LogCondition};
use crate::counters::Reason;
use crate::request_id::RequestId;
use crate::trace_context::{SpanId, TraceId};

/// The facts of an exchange that has ended, from which its log line is written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Record<'a> {
    pub(crate) ended: SystemTime,
    pub(crate) id: RequestId,
    /// The id that a trusted proxy gave the request; `None`: none did.
    pub(crate) given_id: Option<&'a [u8]>,
    /// The trace that the exchange was part of; `None`: requests are not traced.
    pub(crate) trace: Option<TraceLine>,
    /// The client's address; behind trusted proxies, the one that they report.
    pub(crate) client: IpAddr,
    /// The request as received; `None` if it was not understood.
    pub(crate) request: Option<RequestLine<'a>>,
    /// The response's status; `None` if no response was begun.
    pub(crate) status: Option<u16>,
    /// The number of bytes received of the request's body.
    pub(crate) received: u64,
    /// The number of bytes sent of the response's body.
    pub(crate) sent: u64,
    pub(crate) upstream: Option<&'a str>,
    pub(crate) backend: Option<&'a str>,
    /// The request's session; `None` where sessions are not kept.
    pub(crate) session: Option<SessionLine<'a>>,
    pub(crate) attempts: u32,
    /// How the front got the file that was served, such as `hit` or `open`; `None` if none was served.
    pub(crate) file: Option<&'static str>,
    /// The coding in which the front compressed the response, and the bytes before; `None`: it was not compressed.
    pub(crate) compressed: Option<(&'static str, u64)>,
    /// What the cache did with the request; `None` if the route has no cache.
    pub(crate) cache: Option<CacheLine>,
    /// The name of the limit that refused the request; `None`: none did.
    pub(crate) limit: Option<&'a str>,
    /// The name of the limit that would have refused the request if it were enforced.
    pub(crate) limit_dry: Option<&'a str>,
    /// The user that has signed on, or whom the backend is told; `None`: there is none.
    pub(crate) user: Option<&'a [u8]>,
    /// The route's sign-on; `None`: it was not asked.
    pub(crate) auth: Option<AuthLine<'a>>,
    /// The time from the request's head until the last attempt got its connection; `None`: none got one.
    pub(crate) lease: Option<Duration>,
    /// The time from the request's head to the end of its body; `None` without a body.
    pub(crate) upload: Option<Duration>,
    /// The time from the request's head to the response's head.
    pub(crate) first_byte: Option<Duration>,
    /// The time from the request's head to the response's last byte.
    pub(crate) total: Duration,
    pub(crate) reason: Option<Reason>,
    /// The connection's protocol, as ALPN names it.
    pub(crate) protocol: &'static str,
    /// The request's stream on a connection of HTTP/2.
    pub(crate) stream: Option<u32>,
    /// The facts of the client's TLS session; `None` without TLS.
    pub(crate) tls: Option<&'a Facts>,
}

/// The ids of an exchange in its trace.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TraceLine {
    pub(crate) trace: TraceId,
    pub(crate) span: SpanId,
}

/// The facts about a request's session that a log line shows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SessionLine<'a> {
    pub(crate) outcome: Outcome,
    /// The route at the end of the session id, as received; `None`: there was none.
    pub(crate) route: Option<&'a [u8]>,
    /// The name of the backend of the first attempt; `None`: there was no attempt.
    pub(crate) first_backend: Option<&'a str>,
}

/// The facts about a route's sign-on that a log line shows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AuthLine<'a> {
    /// The name of the sign-on.
    pub(crate) name: &'a str,
    /// The time that the answer took.
    pub(crate) waited: Duration,
}

/// The facts about a route's cache that a log line shows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CacheLine {
    pub(crate) result: &'static str,
    /// The reason why the cache was not used, or the response not stored; `None`: there is none.
    pub(crate) reason: Option<&'static str>,
    /// The age of a response from the cache, in seconds; `None` for a response of a backend.
    pub(crate) age: Option<u32>,
}

/// The parts of a request that a log line shows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RequestLine<'a> {
    pub(crate) method: &'a Method,
    pub(crate) path: &'a [u8],
    pub(crate) query: Option<&'a [u8]>,
    pub(crate) version: Version,
    pub(crate) host: Option<&'a [u8]>,
    pub(crate) referer: Option<&'a [u8]>,
    pub(crate) user_agent: Option<&'a [u8]>,
    /// The fields that a format of the operator's own shows.
    pub(crate) fields: &'a LoggedFields,
}

/// The fields of a request that a format of the operator's own shows, kept until its line is written.
#[derive(Debug, Default)]
pub(crate) struct LoggedFields(pub(crate) Vec<(FieldName, Bytes)>);

impl LoggedFields {
    /// The first line of a field; `None`: there was none, or the format in force when the request came did not show it.
    pub(super) fn get(&self, name: &FieldName) -> Option<&[u8]> {
        let found = self.0.iter().find(|(its, _)| its == name);
        found.map(|(_, value)| &value[..])
    }
}

/// The time of a line as text, with the text around it in each format of the log. Formatted anew once a second.
#[derive(Debug, Default)]
pub(super) struct Stamp {
    second: u64,
    combined: String,
    /// The beginning of a JSON line, up to the seconds; a fraction of the second follows.
    json: String,
    /// The text of a JSON line after that fraction: the offset from UTC, and the key of the id.
    json_end: String,
    /// The milliseconds of the record's time.
    millis: u32,
}

impl Stamp {
    /// Sets the time of the line that is written next.
    fn update(&mut self, time: SystemTime) {
        let since_epoch = time
            .duration_since(SystemTime::UNIX_EPOCH)
            .unwrap_or_default();
        let second = since_epoch.as_secs();
        self.millis = since_epoch.subsec_millis();
        // The texts are empty until the first update, whose second may be 0.
        if self.second == second && !self.combined.is_empty() {
            return;
        }
        self.second = second;
        let timestamp = i64::try_from(second)
            .ok()
            .and_then(|second| Timestamp::from_second(second).ok());
        let local = timestamp.unwrap_or_default().to_zoned(TimeZone::system());
        self.combined = local
            .strftime(&format!("{NO_USER} [%d/%b/%Y:%H:%M:%S %z] \""))
            .to_string();
        self.json = format!("{JSON_TIME}{}", local.strftime("%Y-%m-%dT%H:%M:%S"));
        self.json_end = local.strftime("%:z\",\"id\":\"").to_string();
    }

    /// Appends the time by ISO 8601, with milliseconds and the offset from UTC. It is cut out of the texts for JSON.
    pub(super) fn append_iso(&self, out: &mut Vec<u8>) {
        let seconds = self.json.strip_prefix(JSON_TIME).unwrap_or_default();
        put(out, seconds.as_bytes());
        put(out, &fraction(self.millis));
        let (offset, _) = self.json_end.split_once('"').unwrap_or_default();
        put(out, offset.as_bytes());
    }

    /// Appends the time as Apache's formats have it. It is cut out of the text for the format `combined`.
    pub(super) fn append_local(&self, out: &mut Vec<u8>) {
        let (_, after_bracket) = self.combined.split_once('[').unwrap_or_default();
        let (time, _) = after_bracket.split_once(']').unwrap_or_default();
        put(out, time.as_bytes());
    }
}

/// Milliseconds as text: a decimal point and three digits.
pub(super) fn fraction(millis: u32) -> [u8; 4] {
    let digit = |unit: u32| b"0123456789"[(millis / unit % 10) as usize];
    [b'.', digit(100), digit(10), digit(1)]
}

impl Record<'_> {
    /// Whether the exchange meets one of these conditions.
    pub(super) fn meets_one(&self, conditions: &[LogCondition]) -> bool {
        let figures = LoggedFigures {
            status: self.status.unwrap_or(0),
            duration: self.total,
            bytes: self.sent,
        };
        conditions.iter().any(|condition| condition.is_met(figures))
    }

    pub(super) fn append(&self, format: &AccessLogFormat, stamp: &mut Stamp, out: &mut Vec<u8>) {
        stamp.update(self.ended);
        match format {
            AccessLogFormat::Combined => self.append_combined(stamp, out),
            AccessLogFormat::Json => self.append_json(stamp, out),
            AccessLogFormat::Template(template) => self.append_template(template, stamp, out),
        }
    }

    /// Appends the line in the format `combined`.
    fn append_combined(&self, stamp: &Stamp, out: &mut Vec<u8>) {
        put(out, IpText::new(self.client).as_bytes());
        self.append_user_and_time(stamp, out);
        match &self.request {
            Some(request) => request.append(out),
            None => out.push(b'-'),
        }
        put(out, b"\" ");
        put_number(out, self.status.unwrap_or(0));
        out.push(b' ');
        put_number(out, self.sent);
        put(out, b" \"");
        escape_value(self.request.and_then(|request| request.referer), out);
        put(out, b"\" \"");
        escape_value(self.request.and_then(|request| request.user_agent), out);
        put(out, b"\" upstream=");
        put(out, self.upstream.unwrap_or("-").as_bytes());
        put(out, b" backend=");
        put(out, self.backend.unwrap_or("-").as_bytes());
        put(out, b" attempts=");
        put_number(out, self.attempts);
        put(out, b" lease_us=");
        put_micros(out, self.lease);
        put(out, b" upload_us=");
        put_micros(out, self.upload);
        put(out, b" first_byte_us=");
        put_micros(out, self.first_byte);
        put(out, b" total_us=");
        put_micros(out, Some(self.total));
        if let Some(session) = &self.session {
            session.append(out);
        }
        self.append_origin(out);
        self.append_asked(out);
        match self.reason {
            Some(reason) => put(out, format!(" reason={reason}").as_bytes()),
            None => put(out, b" reason=-"),
        }
        put(out, b" host=\"");
        match self.request.and_then(|request| request.host) {
            Some(host) => escape(host, out),
            None => out.push(b'-'),
        }
        put(out, b"\" ms=");
        put_number(out, stamp.millis);
        if let Some(given) = self.given_id {
            put(out, b" given_id=\"");
            escape(given, out);
            out.push(b'"');
        }
        put(out, b" protocol=");
        put(out, self.protocol.as_bytes());
        match self.tls {
            Some(tls) => append_tls(tls, out),
            None => put(out, b" tls_version=- tls_cipher=-"),
        }
        put(out, b" id=");
        put(out, &self.id.digits());
        out.push(b'\n');
    }

    /// Appends the second and the third word of a combined line, and the time up to the request.
    fn append_user_and_time(&self, stamp: &Stamp, out: &mut Vec<u8>) {
        let Some(user) = self.user else {
            return put(out, stamp.combined.as_bytes());
        };
        put(out, b" - ");
        escape_word(user, out);
        let after_user = stamp.combined.strip_prefix(NO_USER);
        put(out, after_user.unwrap_or_default().as_bytes());
    }

    /// Appends what was asked before the request was served: limits that refused it or would have, and a sign-on.
    fn append_asked(&self, out: &mut Vec<u8>) {
        for (key, limit) in [
            (&b" limit="[..], self.limit),
            (b" limit_dry=", self.limit_dry),
        ] {
            if let Some(limit) = limit {
                put(out, key);
                put(out, limit.as_bytes());
            }
        }
        if let Some(auth) = &self.auth {
            put(out, b" auth=");
            put(out, auth.name.as_bytes());
            put(out, b" auth_us=");
            put_micros(out, Some(auth.waited));
        }
    }

    /// Appends where the body came from: a file, compression or a cache. Nothing for an ordinary response.
    fn append_origin(&self, out: &mut Vec<u8>) {
        if let Some(file) = self.file {
            put(out, b" file=");
            put(out, file.as_bytes());
        }
        if let Some((coding, plain)) = self.compressed {
            put(out, b" compressed=");
            put(out, coding.as_bytes());
            put(out, b" plain=");
            put_number(out, plain);
        }
        if let Some(cache) = &self.cache {
            cache.append(out);
        }
    }

    /// Appends the line as a JSON object.
    fn append_json(&self, stamp: &Stamp, out: &mut Vec<u8>) {
        put(out, stamp.json.as_bytes());
        put(out, &fraction(stamp.millis));
        put(out, stamp.json_end.as_bytes());
        put(out, &self.id.digits());
        put(out, b"\",\"client\":\"");
        put(out, IpText::new(self.client).as_bytes());
        out.push(b'"');
        json_bytes(key!("given_id"), self.given_id, out);
        if let Some(trace) = &self.trace {
            json_word(key!("trace_id"), &trace.trace.digits(), out);
            json_word(key!("span_id"), &trace.span.digits(), out);
        }
        if let Some(request) = &self.request {
            request.append_json(out);
        }
        json_number(key!("status"), self.status, out);
        json_number(key!("received"), Some(self.received), out);
        json_number(key!("sent"), Some(self.sent), out);
        json_text(key!("upstream"), self.upstream, out);
        json_text(key!("backend"), self.backend, out);
        if let Some(session) = &self.session {
            json_word(key!("sticky"), session.outcome.token(), out);
            json_bytes(key!("session_route"), session.route, out);
            json_text(key!("first_backend"), session.first_backend, out);
        }
        json_number(key!("attempts"), Some(self.attempts), out);
        self.append_json_origin(out);
        json_text(key!("limit"), self.limit, out);
        json_text(key!("limit_dry"), self.limit_dry, out);
        json_bytes(key!("user"), self.user, out);
        if let Some(auth) = &self.auth {
            json_word(key!("auth"), auth.name, out);
            json_number(key!("auth_us"), Some(micros(auth.waited)), out);
        }
        json_number(key!("lease_us"), self.lease.map(micros), out);
        json_number(key!("upload_us"), self.upload.map(micros), out);
        json_number(key!("first_byte_us"), self.first_byte.map(micros), out);
        json_number(key!("total_us"), Some(micros(self.total)), out);
        if let Some(reason) = self.reason {
            json_text(key!("reason"), Some(&reason.to_string()), out);
        }
        json_word(key!("protocol"), self.protocol, out);
        json_number(key!("stream"), self.stream, out);
        if let Some(tls) = self.tls {
            append_json_tls(tls, out);
        }
        put(out, b"}\n");
    }

    /// Appends where the body came from, as [`Self::append_origin`] does, but as members of a JSON object.
    fn append_json_origin(&self, out: &mut Vec<u8>) {
        json_text(key!("file"), self.file, out);
        if let Some((coding, plain)) = self.compressed {
            json_word(key!("compressed"), coding, out);
            json_number(key!("plain"), Some(plain), out);
        }
        if let Some(cache) = &self.cache {
            json_word(key!("cache"), cache.result, out);
            json_text(key!("cache_reason"), cache.reason, out);
            json_number(key!("cache_age"), cache.age, out);
        }
    }
}

fn append_tls(tls: &Facts, out: &mut Vec<u8>) {
    put(out, b" tls_version=");
    put(out, tls.version.name().as_bytes());
    put(out, b" tls_cipher=");
    match &*tls.cipher {
        "" => out.push(b'-'),
        cipher => put(out, cipher.as_bytes()),
    }
}

/// Appends what a TLS handshake agreed on, as members of a JSON object.
fn append_json_tls(tls: &Facts, out: &mut Vec<u8>) {
    json_word(key!("tls_version"), tls.version.name(), out);
    json_text(key!("tls_cipher"), Some(&tls.cipher), out);
    put(out, key!("resumed"));
    put(out, if tls.resumed { b"true" } else { b"false" });
    let group = Some(&*tls.group).filter(|group| !group.is_empty());
    json_text(key!("tls_group"), group, out);
    json_text(key!("sni"), tls.sni.as_deref(), out);
    json_text(key!("alpn"), tls.alpn.as_deref(), out);
    json_text(
        key!("client_cert_sha256"),
        tls.client_sha256.as_deref(),
        out,
    );
}

impl RequestLine<'_> {
    pub(super) fn append(&self, out: &mut Vec<u8>) {
        put(out, self.method.as_str().as_bytes());
        out.push(b' ');
        escape(self.path, out);
        if let Some(query) = self.query {
            out.push(b'?');
            escape(query, out);
        }
        out.push(b' ');
        put(out, version_name(self.version).as_bytes());
    }

    fn append_json(&self, out: &mut Vec<u8>) {
        json_word(key!("method"), self.method.as_str(), out);
        json_bytes(key!("path"), Some(self.path), out);
        json_bytes(key!("query"), self.query, out);
        json_word(key!("version"), version_name(self.version), out);
        json_bytes(key!("host"), self.host, out);
        json_bytes(key!("referer"), self.referer, out);
        json_bytes(key!("user_agent"), self.user_agent, out);
    }
}

impl CacheLine {
    fn append(&self, out: &mut Vec<u8>) {
        put(out, b" cache=");
        put(out, self.result.as_bytes());
        if let Some(reason) = self.reason {
            put(out, b" cache_reason=");
            put(out, reason.as_bytes());
        }
        if let Some(age) = self.age {
            put(out, b" cache_age=");
            put_number(out, age);
        }
    }
}

impl SessionLine<'_> {
    fn append(&self, out: &mut Vec<u8>) {
        put(out, b" sticky=");
        put(out, self.outcome.token().as_bytes());
        put(out, b" session_route=\"");
        match self.route {
            Some(route) => escape(route, out),
            None => out.push(b'-'),
        }
        put(out, b"\" first_backend=");
        put(out, self.first_backend.unwrap_or("-").as_bytes());
    }
}

pub(super) fn put(out: &mut Vec<u8>, text: &[u8]) {
    out.extend_from_slice(text);
}

pub(super) fn put_number(out: &mut Vec<u8>, number: impl itoa::Integer) {
    put(out, itoa::Buffer::new().format(number).as_bytes());
}

/// Appends a duration in microseconds, or `-` for `None`.
pub(super) fn put_micros(out: &mut Vec<u8>, duration: Option<Duration>) {
    match duration {
        Some(duration) => put_number(out, micros(duration)),
        None => out.push(b'-'),
    }
}

/// A duration in whole microseconds. Not by `as_micros`, which divides 128 bits.
fn micros(duration: Duration) -> u64 {
    let whole = duration.as_secs().saturating_mul(1_000_000);
    whole.saturating_add(duration.subsec_micros().into())
}

pub(super) fn version_name(version: Version) -> &'static str {
    match version {
        Version::HTTP_09 => "HTTP/0.9",
        Version::HTTP_10 => "HTTP/1.0",
        Version::HTTP_2 => "HTTP/2.0",
        Version::HTTP_3 => "HTTP/3.0",
        _ => "HTTP/1.1",
    }
}

/// Escapes a text as [`escape`] does, and blanks too, so that it stays one word.
pub(super) fn escape_word(text: &[u8], out: &mut Vec<u8>) {
    for word in text.split_inclusive(|&byte| byte == b' ') {
        match word.strip_suffix(b" ") {
            Some(before) => {
                escape(before, out);
                put(out, b"\\x20");
            }
            None => escape(word, out),
        }
    }
}

pub(super) fn escape_value(value: Option<&[u8]>, out: &mut Vec<u8>) {
    match value {
        Some(value) => escape(value, out),
        None => out.push(b'-'),
    }
}

/// Escapes a text: `"` and `\` get a backslash, and every byte outside printable ASCII becomes `\xhh`, in lower-case
/// hex. httpd differs in five control characters, such as `\n` and `\t`.
pub(super) fn escape(text: &[u8], out: &mut Vec<u8>) {
    if is_plain(text) {
        return put(out, text);
    }
    for &byte in text {
        match byte {
            b'"' | b'\\' => out.extend([b'\\', byte]),
            b' '..=b'~' => out.push(byte),
            _ => {
                let digit = |value: u8| b"0123456789abcdef"[usize::from(value)];
                out.extend([b'\\', b'x', digit(byte >> 4), digit(byte & 15)]);
            }
        }
    }
}

/// Appends a member of a JSON object; nothing for `None`.
#[inline]
fn json_bytes(key: &[u8], value: Option<&[u8]>, out: &mut Vec<u8>) {
    if let Some(value) = value {
        put(out, key);
        json_string(value, out);
    }
}

#[inline]
fn json_text(key: &[u8], value: Option<&str>, out: &mut Vec<u8>) {
    json_bytes(key, value.map(str::as_bytes), out);
}

/// Appends a member whose value needs no escape, such as a token or a method.
#[inline]
fn json_word(key: &[u8], value: &str, out: &mut Vec<u8>) {
    put(out, key);
    out.push(b'"');
    put(out, value.as_bytes());
    out.push(b'"');
}

#[inline]
fn json_number(key: &[u8], value: Option<impl itoa::Integer>, out: &mut Vec<u8>) {
    if let Some(value) = value {
        put(out, key);
        put_number(out, value);
    }
}

/// Appends a text as a JSON string, in quotes; bytes that are not UTF-8 are replaced.
pub(super) fn json_string(text: &[u8], out: &mut Vec<u8>) {
    if is_plain(text) {
        out.push(b'"');
        put(out, text);
        out.push(b'"');
    } else {
        let text = String::from_utf8_lossy(text);
        // A string always serialises, and a vector takes every byte.
        serde_json::to_writer(out, &text).ok();
    }
}

/// Whether a text needs no escape in either format: it is printable ASCII without quotes and backslashes, as nearly
/// all texts are.
fn is_plain(text: &[u8]) -> bool {
    let (words, short_end) = text.as_chunks();
    let last = match text.last_chunk() {
        // The last 8 bytes may overlap the word before them.
        Some(last) => odd_bytes(last),
        None => {
            let mut padded = [b' '; 8];
            padded[..short_end.len()].copy_from_slice(short_end);
            odd_bytes(&padded)
        }
    };
    // Without a branch, so that the processor can check several words at once.
    let odd = (words.iter()).fold(last, |odd, word| odd | odd_bytes(word));
    odd & each(0x80) == 0
}

/// Finds the bytes of a word that are not plain: the highest bit is set in the lowest such byte, and in no byte if
/// all are plain. A carry from that byte changes only the bytes above it.
fn odd_bytes(word: &[u8; 8]) -> u64 {
    let word = u64::from_ne_bytes(*word);
    // A byte that equals `byte` is 0 after the `^`, and 0 - 1 sets its highest bit.
    let equals = |byte: u8| (word ^ each(byte)).wrapping_sub(each(1));
    // Less than a blank: the difference is negative. 0x7F: the sum is 0x80.
    let control = word.wrapping_sub(each(b' ')) | word.wrapping_add(each(1));
    // `word` itself has the highest bit of each byte beyond ASCII.
    word | control | equals(b'"') | equals(b'\\')
}

/// A word whose 8 bytes are all this byte.
const fn each(byte: u8) -> u64 {
    u64::from_ne_bytes([byte; 8])
}

/// The second and the third word of a combined line without a user.
const NO_USER: &str = " - -";

/// The beginning of a JSON line, up to its time.
const JSON_TIME: &str = "{\"time\":\"";

/// The beginning of a further member of a JSON object: a comma, the name in quotes and a colon.
macro_rules! key {
    ($name:literal) => {
        concat!(",\"", $name, "\":").as_bytes()
    };
}
use key;

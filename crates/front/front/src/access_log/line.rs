//! The format of a line. All text from a client is escaped, so that a client cannot forge a line.

use std::io::Write;
use std::net::IpAddr;
use std::time::{Duration, SystemTime};

use catamaran_balance::affinity::Outcome;
use catamaran_tls::Facts;
use catamaran_upstream::IpText;
use http::{HeaderValue, Method, Version};
use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::config::AccessLogFormat;
use crate::counters::Reason;
use crate::request_id::RequestId;

/// What is known of an exchange once it is over.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Record<'a> {
    pub(crate) ended: SystemTime,
    pub(crate) id: RequestId,
    /// The id that a trusted proxy gave the request.
    pub(crate) given_id: Option<&'a HeaderValue>,
    /// The client's address, trusted proxies looked through.
    pub(crate) client: IpAddr,
    /// `None` if the request was not understood.
    pub(crate) request: Option<RequestLine<'a>>,
    /// `None` if no response was begun.
    pub(crate) status: Option<u16>,
    /// Bytes of the request's body received.
    pub(crate) received: u64,
    /// Bytes of the response's body sent.
    pub(crate) sent: u64,
    pub(crate) upstream: Option<&'a str>,
    pub(crate) backend: Option<&'a str>,
    /// `None` where sessions are not kept.
    pub(crate) session: Option<SessionLine<'a>>,
    pub(crate) attempts: u32,
    /// How the file was had, if one was served.
    pub(crate) file: Option<&'static str>,
    /// In which coding the front compressed the response, and of how many bytes, if it did.
    pub(crate) compressed: Option<(&'static str, u64)>,
    /// What the cache did, if the route has one.
    pub(crate) cache: Option<CacheLine>,
    /// From the request's head to the lease.
    pub(crate) lease: Option<Duration>,
    /// From the request's head to the end of its body; `None` without one.
    pub(crate) upload: Option<Duration>,
    /// From the request's head to the response's head.
    pub(crate) first_byte: Option<Duration>,
    /// From the request's head to the response's last byte.
    pub(crate) total: Duration,
    pub(crate) reason: Option<Reason>,
    /// What the connection speaks, as ALPN names it.
    pub(crate) protocol: &'static str,
    /// The request's stream on a connection of HTTP/2.
    pub(crate) stream: Option<u32>,
    /// `None` without TLS.
    pub(crate) tls: Option<&'a Facts>,
}

/// What a log line shows of the request's session.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SessionLine<'a> {
    pub(crate) outcome: Outcome,
    /// What the session id ended in, as received.
    pub(crate) route: Option<&'a [u8]>,
    /// The backend of the first attempt.
    pub(crate) first_backend: Option<&'a str>,
}

/// What a log line shows of a route's cache.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CacheLine {
    pub(crate) result: &'static str,
    /// Why it was not used, or why the response was not stored.
    pub(crate) reason: Option<&'static str>,
    /// The age of what it gave, in seconds.
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
    pub(crate) referer: Option<&'a HeaderValue>,
    pub(crate) user_agent: Option<&'a HeaderValue>,
}

/// The time as text, formatted once a second.
#[derive(Debug, Default)]
pub(super) struct Stamp {
    second: u64,
    combined: String,
    /// Without the offset from UTC, and without fractions.
    rfc3339: String,
    offset: String,
    /// Of the record's second.
    millis: u32,
}

impl Stamp {
    fn update(&mut self, at: SystemTime) {
        let since_epoch = at
            .duration_since(SystemTime::UNIX_EPOCH)
            .unwrap_or_default();
        let second = since_epoch.as_secs();
        self.millis = since_epoch.subsec_millis();
        if self.second == second && !self.combined.is_empty() {
            return;
        }
        self.second = second;
        let timestamp = i64::try_from(second)
            .ok()
            .and_then(|it| Timestamp::from_second(it).ok());
        let local = timestamp.unwrap_or_default().to_zoned(TimeZone::system());
        self.combined = local.strftime("%d/%b/%Y:%H:%M:%S %z").to_string();
        self.rfc3339 = local.strftime("%Y-%m-%dT%H:%M:%S").to_string();
        self.offset = local.strftime("%:z").to_string();
    }
}

impl Record<'_> {
    pub(super) fn append(&self, format: AccessLogFormat, stamp: &mut Stamp, out: &mut Vec<u8>) {
        stamp.update(self.ended);
        // Writing to a vector cannot fail.
        let written = match format {
            AccessLogFormat::Combined => self.append_combined(stamp, out),
            AccessLogFormat::Json => self.append_json(stamp, out),
        };
        debug_assert!(written.is_ok(), "a vector takes every byte");
    }

    /// Without `core::fmt`, which takes several times as long.
    fn append_combined(&self, stamp: &Stamp, out: &mut Vec<u8>) -> std::io::Result<()> {
        put(out, IpText::new(self.client).as_bytes());
        put(out, b" - - [");
        put(out, stamp.combined.as_bytes());
        put(out, b"] \"");
        match &self.request {
            Some(request) => request.append(out)?,
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
        match self.reason {
            Some(reason) => write!(out, " reason={reason}")?,
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
            escape(given.as_bytes(), out);
            out.push(b'"');
        }
        put(out, b" protocol=");
        put(out, self.protocol.as_bytes());
        let (version, cipher) = match self.tls {
            Some(tls) if tls.cipher.is_empty() => (tls.version.name(), "-"),
            Some(tls) => (tls.version.name(), &*tls.cipher),
            None => ("-", "-"),
        };
        put(out, b" tls_version=");
        put(out, version.as_bytes());
        put(out, b" tls_cipher=");
        put(out, cipher.as_bytes());
        put(out, b" id=");
        put(out, &self.id.digits());
        out.push(b'\n');
        Ok(())
    }

    /// How the body was had, if that is worth a word.
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

    /// As [`Self::append_origin`], as members of a JSON object.
    fn append_json_origin(&self, out: &mut Vec<u8>) -> std::io::Result<()> {
        json_text("file", self.file.map(str::as_bytes), out);
        if let Some((coding, plain)) = self.compressed {
            write!(out, ",\"compressed\":\"{coding}\",\"plain\":{plain}")?;
        }
        if let Some(cache) = &self.cache {
            json_text("cache", Some(cache.result.as_bytes()), out);
            json_text("cache_reason", cache.reason.map(str::as_bytes), out);
            if let Some(age) = cache.age {
                write!(out, ",\"cache_age\":{age}")?;
            }
        }
        Ok(())
    }

    fn append_json(&self, stamp: &Stamp, out: &mut Vec<u8>) -> std::io::Result<()> {
        write!(
            out,
            "{{\"time\":\"{}.{:03}{}\",\"id\":\"{}\",\"client\":\"{}\"",
            stamp.rfc3339, stamp.millis, stamp.offset, self.id, self.client
        )?;
        json_text("given_id", self.given_id.map(HeaderValue::as_bytes), out);
        if let Some(request) = &self.request {
            write!(out, ",\"method\":\"{}\"", request.method)?;
            json_text("path", Some(request.path), out);
            json_text("query", request.query, out);
            write!(out, ",\"version\":\"{:?}\"", request.version)?;
            json_text("host", request.host, out);
            json_text("referer", request.referer.map(HeaderValue::as_bytes), out);
            json_text(
                "user_agent",
                request.user_agent.map(HeaderValue::as_bytes),
                out,
            );
        }
        if let Some(status) = self.status {
            write!(out, ",\"status\":{status}")?;
        }
        write!(
            out,
            ",\"received\":{},\"sent\":{}",
            self.received, self.sent
        )?;
        json_text("upstream", self.upstream.map(str::as_bytes), out);
        json_text("backend", self.backend.map(str::as_bytes), out);
        if let Some(session) = &self.session {
            write!(out, ",\"sticky\":\"{}\"", session.outcome.token())?;
            json_text("session_route", session.route, out);
            json_text(
                "first_backend",
                session.first_backend.map(str::as_bytes),
                out,
            );
        }
        write!(out, ",\"attempts\":{}", self.attempts)?;
        self.append_json_origin(out)?;
        for (name, value) in [
            ("lease_us", self.lease),
            ("upload_us", self.upload),
            ("first_byte_us", self.first_byte),
        ] {
            if let Some(value) = value {
                write!(out, ",\"{name}\":{}", value.as_micros())?;
            }
        }
        write!(out, ",\"total_us\":{}", self.total.as_micros())?;
        if let Some(reason) = self.reason {
            write!(out, ",\"reason\":\"{reason}\"")?;
        }
        write!(out, ",\"protocol\":\"{}\"", self.protocol)?;
        if let Some(stream) = self.stream {
            write!(out, ",\"stream\":{stream}")?;
        }
        if let Some(tls) = self.tls {
            append_tls(tls, out)?;
        }
        out.extend_from_slice(b"}\n");
        Ok(())
    }
}

/// What a handshake agreed on, as members of a JSON object.
fn append_tls(tls: &Facts, out: &mut Vec<u8>) -> std::io::Result<()> {
    write!(
        out,
        ",\"tls_version\":\"{}\",\"tls_cipher\":\"{}\",\"resumed\":{}",
        tls.version.name(),
        tls.cipher,
        tls.resumed
    )?;
    let group = Some(&*tls.group).filter(|group| !group.is_empty());
    for (name, text) in [
        ("tls_group", group),
        ("sni", tls.sni.as_deref()),
        ("alpn", tls.alpn.as_deref()),
        ("client_cert_sha256", tls.client_sha256.as_deref()),
    ] {
        json_text(name, text.map(str::as_bytes), out);
    }
    Ok(())
}

impl RequestLine<'_> {
    fn append(&self, out: &mut Vec<u8>) -> std::io::Result<()> {
        put(out, self.method.as_str().as_bytes());
        out.push(b' ');
        escape(self.path, out);
        if let Some(query) = self.query {
            out.push(b'?');
            escape(query, out);
        }
        match self.version {
            Version::HTTP_11 => put(out, b" HTTP/1.1"),
            version => write!(out, " {version:?}")?,
        }
        Ok(())
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

fn put(out: &mut Vec<u8>, text: &[u8]) {
    out.extend_from_slice(text);
}

fn put_number(out: &mut Vec<u8>, number: impl itoa::Integer) {
    put(out, itoa::Buffer::new().format(number).as_bytes());
}

/// A duration in microseconds, or `-`.
fn put_micros(out: &mut Vec<u8>, duration: Option<Duration>) {
    match duration {
        Some(duration) => {
            // Not `as_micros`, which divides 128 bits.
            let whole = duration.as_secs().saturating_mul(1_000_000);
            put_number(out, whole.saturating_add(duration.subsec_micros().into()));
        }
        None => out.push(b'-'),
    }
}

fn escape_value(value: Option<&HeaderValue>, out: &mut Vec<u8>) {
    match value {
        Some(value) => escape(value.as_bytes(), out),
        None => out.push(b'-'),
    }
}

/// As httpd does: quotes and backslashes get a backslash, other unprintable bytes become `\xhh`.
fn escape(bytes: &[u8], out: &mut Vec<u8>) {
    let is_plain = |byte: u8| matches!(byte, b' '..=b'~' if byte != b'"' && byte != b'\\');
    // Nearly always. All bytes are looked at without a branch, many at a time.
    if bytes
        .iter()
        .fold(true, |plain, &byte| plain & is_plain(byte))
    {
        return put(out, bytes);
    }
    for &byte in bytes {
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

/// A member of a JSON object; bytes that are not UTF-8 are replaced.
fn json_text(name: &str, value: Option<&[u8]>, out: &mut Vec<u8>) {
    let Some(value) = value else { return };
    out.extend_from_slice(b",\"");
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b"\":");
    let text = String::from_utf8_lossy(value);
    // A string always serialises, and a vector takes every byte.
    serde_json::to_writer(out, &text).ok();
}

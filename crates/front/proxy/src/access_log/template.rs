//! A line in a format of the operator's own. All text from a client is escaped as in the combined format.

use std::time::Duration;

use catamaran_upstream::IpText;

use super::line::{
    Record, Stamp, escape, escape_value, escape_word, fraction, put, put_micros, put_number,
    version_name,
};
use crate::config::log_template::{LogFact, LogPart, LogTemplate};

impl Record<'_> {
    pub(super) fn append_template(&self, template: &LogTemplate, stamp: &Stamp, out: &mut Vec<u8>) {
        for part in &template.parts {
            match part {
                LogPart::Text(text) => put(out, text.as_bytes()),
                LogPart::Fact(fact) => self.append_fact(*fact, stamp, out),
                LogPart::Field(index) => {
                    let name = &template.fields[*index];
                    let request = self.request.as_ref();
                    escape_value(request.and_then(|it| it.fields.get(name)), out);
                }
            }
        }
        out.push(b'\n');
    }

    /// Appends one fact, or `-` if the exchange does not have it.
    fn append_fact(&self, fact: LogFact, stamp: &Stamp, out: &mut Vec<u8>) {
        let request = self.request.as_ref();
        let put_text = |text: Option<&str>, out: &mut Vec<u8>| {
            put(out, text.unwrap_or("-").as_bytes());
        };
        match fact {
            LogFact::Client => put(out, IpText::new(self.client).as_bytes()),
            LogFact::User => match self.user {
                Some(user) => escape_word(user, out),
                None => out.push(b'-'),
            },
            LogFact::Auth => put_text(self.auth.map(|auth| auth.name), out),
            LogFact::AuthMicros => put_micros(out, self.auth.map(|auth| auth.waited)),
            LogFact::Time => stamp.append_iso(out),
            LogFact::TimeLocal => stamp.append_local(out),
            LogFact::Request => match request {
                Some(request) => request.append(out),
                None => out.push(b'-'),
            },
            LogFact::Method => put_text(request.map(|it| it.method.as_str()), out),
            LogFact::Path => escape_value(request.map(|it| it.path), out),
            LogFact::Query => escape_value(request.and_then(|it| it.query), out),
            LogFact::Version => put_text(request.map(|it| version_name(it.version)), out),
            LogFact::Host => escape_value(request.and_then(|it| it.host), out),
            LogFact::Status => put_number(out, self.status.unwrap_or(0)),
            LogFact::Bytes => put_number(out, self.sent),
            LogFact::Received => put_number(out, self.received),
            LogFact::Referer => escape_value(request.and_then(|it| it.referer), out),
            LogFact::UserAgent => escape_value(request.and_then(|it| it.user_agent), out),
            LogFact::Upstream => put_text(self.upstream, out),
            LogFact::Backend => put_text(self.backend, out),
            LogFact::Attempts => put_number(out, self.attempts),
            LogFact::Sticky => {
                let session = self.session.as_ref();
                put_text(session.map(|session| session.outcome.token()), out);
            }
            LogFact::Cache => put_text(self.cache.map(|cache| cache.result), out),
            LogFact::Reason => match self.reason {
                Some(reason) => put(out, reason.to_string().as_bytes()),
                None => out.push(b'-'),
            },
            LogFact::Protocol => put(out, self.protocol.as_bytes()),
            LogFact::TlsVersion => put_text(self.tls.map(|tls| tls.version.name()), out),
            LogFact::TlsCipher => {
                let cipher = self.tls.map(|tls| &*tls.cipher);
                put_text(cipher.filter(|cipher| !cipher.is_empty()), out);
            }
            LogFact::RequestId => match self.given_id {
                Some(given) => escape(given, out),
                None => put(out, &self.id.digits()),
            },
            LogFact::TraceId => match self.trace {
                Some(trace) => put(out, trace.trace.digits().as_bytes()),
                None => out.push(b'-'),
            },
            LogFact::SpanId => match self.trace {
                Some(trace) => put(out, trace.span.digits().as_bytes()),
                None => out.push(b'-'),
            },
            LogFact::Duration => put_seconds(out, self.total),
            LogFact::LeaseMicros => put_micros(out, self.lease),
            LogFact::UploadMicros => put_micros(out, self.upload),
            LogFact::FirstByteMicros => put_micros(out, self.first_byte),
            LogFact::TotalMicros => put_micros(out, Some(self.total)),
        }
    }
}

/// Appends a duration in seconds with three decimals.
fn put_seconds(out: &mut Vec<u8>, duration: Duration) {
    put_number(out, duration.as_secs());
    put(out, &fraction(duration.subsec_millis()));
}

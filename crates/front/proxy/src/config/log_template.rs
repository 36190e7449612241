//! Lines of the access log in a format of the operator's own.

use std::sync::Arc;

use catamaran_message::FieldName;
use thiserror::Error;

use super::template::{Piece, TemplateError, pieces};

/// The format of a line, such as `{client} {status} {header:X-Tenant}`, parsed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogTemplate {
    pub(crate) parts: Box<[LogPart]>,
    /// The names of the request's fields that the line shows.
    pub(crate) fields: Box<[FieldName]>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum LogPart {
    Text(Box<str>),
    Fact(LogFact),
    /// The first line of the field with this index in [`LogTemplate::fields`].
    Field(usize),
}

/// The reason why a text is not the format of a line.
#[derive(Debug, PartialEq, Eq, Error)]
pub enum LogTemplateError {
    /// A brace has no partner.
    #[error(transparent)]
    Brace(#[from] TemplateError),
    /// A name that is neither that of a fact nor `header:NAME`.
    #[error("has {{{0}}}, which is not known; write one of {{{list}}} or {{header:NAME}}", list = names().join("}, {"))]
    Unknown(String),
    /// The text after `header:` is not the name of a field.
    #[error("has {{header:{0}}}, which is not the name of a field (RFC 9110, section 5.1)")]
    Field(String),
    /// The format has a control character, such as a line end.
    #[error("has a control character; a line of the log is one line")]
    Control,
}

impl LogTemplate {
    /// Parses the format of a line. `{{` and `}}` stand for braces.
    ///
    /// # Errors
    /// A brace without its partner, an unknown name, or a control character other than a tab.
    pub fn parse(text: &str) -> Result<Arc<Self>, LogTemplateError> {
        if text.chars().any(|it| it.is_control() && it != '\t') {
            return Err(LogTemplateError::Control);
        }
        let mut fields = Vec::new();
        let mut parts = Vec::new();
        for piece in pieces(text)? {
            parts.push(match piece {
                Piece::Text(text) => LogPart::Text(text.into()),
                Piece::Name(name) => match name.strip_prefix("header:") {
                    Some(field) => {
                        let wrong = || LogTemplateError::Field(field.to_owned());
                        fields.push(FieldName::parse(field.as_bytes()).ok_or_else(wrong)?);
                        LogPart::Field(fields.len() - 1)
                    }
                    None => {
                        let found = FACTS.iter().find(|(known, _)| *known == name);
                        let unknown = || LogTemplateError::Unknown(name.to_owned());
                        LogPart::Fact(found.ok_or_else(unknown)?.1)
                    }
                },
            });
        }
        Ok(Arc::new(Self {
            parts: parts.into(),
            fields: fields.into(),
        }))
    }
}

/// The names that a format may have besides `header:NAME`.
#[must_use]
pub fn names() -> Vec<&'static str> {
    FACTS.iter().map(|(name, _)| *name).collect()
}

macro_rules! facts {
    ($($name:literal $fact:ident: $doc:literal;)*) => {
        /// A fact about an exchange that a line may show. A fact that an exchange does not have is shown as `-`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum LogFact {
            $(#[doc = $doc] $fact,)*
        }

        static FACTS: &[(&str, LogFact)] = &[$(($name, LogFact::$fact),)*];
    };
}

facts! {
    "client" Client: "The client's address; trusted proxies are looked through.";
    "user" User: "The user that has signed on, or whom the backend is told.";
    "time" Time: "The time at which the exchange ended, by ISO 8601.";
    "time_local" TimeLocal: "That time as Apache's formats have it, without brackets.";
    "request" Request: "Method, path with query, and version.";
    "method" Method: "The method.";
    "path" Path: "The path as received.";
    "query" Query: "The query without its question mark.";
    "version" Version: "The version, such as HTTP/1.1.";
    "host" Host: "The host that was asked for.";
    "status" Status: "The status; 0 if no response was begun.";
    "bytes" Bytes: "The bytes sent of the response's body.";
    "received" Received: "The bytes received of the request's body.";
    "referer" Referer: "The field Referer.";
    "user_agent" UserAgent: "The field User-Agent.";
    "upstream" Upstream: "The upstream.";
    "backend" Backend: "The backend that served it last.";
    "attempts" Attempts: "The number of attempts.";
    "sticky" Sticky: "What became of the session.";
    "cache" Cache: "What the cache did.";
    "auth" Auth: "The sign-on that was asked.";
    "reason" Reason: "The culprit and the token.";
    "protocol" Protocol: "The connection's protocol, as ALPN names it.";
    "tls_version" TlsVersion: "The version of TLS.";
    "tls_cipher" TlsCipher: "The cipher of TLS.";
    "request_id" RequestId: "The front's id of the request.";
    "trace_id" TraceId: "The id of the trace that the request is part of.";
    "span_id" SpanId: "The id of the front's span in that trace.";
    "duration" Duration: "Seconds until the last byte was taken, with three decimals.";
    "auth_us" AuthMicros: "Microseconds that the sign-on took.";
    "lease_us" LeaseMicros: "Microseconds until a connection to the backend was there.";
    "upload_us" UploadMicros: "Microseconds until the request's body had arrived.";
    "first_byte_us" FirstByteMicros: "Microseconds until the response's head had arrived.";
    "total_us" TotalMicros: "Microseconds until the last byte was taken.";
}

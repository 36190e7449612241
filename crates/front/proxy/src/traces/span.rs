//! Spans as JSON of OTLP (opentelemetry-proto, `trace/v1/trace.proto`): ids are hexadecimal digits, 64-bit numbers are texts.

use std::time::SystemTime;

use serde::Serialize;
use tokio::time::Instant;

use crate::trace_context::SpanId;
use crate::traces::{Began, Trace};

/// A span: what one exchange or one attempt was, and when.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Span {
    trace_id: String,
    span_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent_span_id: Option<String>,
    name: String,
    kind: u8,
    start_time_unix_nano: String,
    end_time_unix_nano: String,
    attributes: Vec<Attribute>,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<Status>,
}

/// When an exchange or an attempt began and ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Period {
    /// The beginning of the exchange, by which the times of the span are times of day.
    pub(crate) exchange: Began,
    pub(crate) began: Instant,
    pub(crate) ended: Instant,
}

/// A fact about a span, under a name of the semantic conventions.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Attribute {
    key: &'static str,
    value: AttributeValue,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
enum AttributeValue {
    #[serde(rename = "stringValue")]
    Text(String),
    #[serde(rename = "intValue")]
    Number(String),
}

#[derive(Clone, Debug, PartialEq, Serialize)]
struct Status {
    code: u8,
}

impl Attribute {
    pub(super) fn text(key: &'static str, text: &[u8]) -> Self {
        let text = &text[..text.len().min(TEXT_MAX)];
        let value = AttributeValue::Text(String::from_utf8_lossy(text).into_owned());
        Self { key, value }
    }
}

impl Span {
    /// The span of an exchange, or of its attempt with this number.
    pub(crate) fn new(trace: &Trace, attempt: Option<u32>, name: String, period: Period) -> Self {
        let (id, parent, kind) = match attempt {
            None => (trace.span, trace.parent, SERVER),
            Some(number) => (trace.attempt(number), Some(trace.span), CLIENT),
        };
        // Both times are measured from the beginning of the exchange, so the clock of the day may be set meanwhile.
        let nanos = |instant: Instant| {
            let began_at = period.exchange.time.duration_since(SystemTime::UNIX_EPOCH);
            let after = instant.saturating_duration_since(period.exchange.instant);
            (began_at.unwrap_or_default() + after).as_nanos()
        };
        Self {
            trace_id: trace.id.digits(),
            span_id: id.digits(),
            parent_span_id: parent.map(SpanId::digits),
            name,
            kind,
            start_time_unix_nano: nanos(period.began).to_string(),
            end_time_unix_nano: nanos(period.ended).to_string(),
            attributes: Vec::new(),
            status: None,
        }
    }

    /// Adds a fact; a long text is cut.
    pub(crate) fn text(&mut self, key: &'static str, text: impl AsRef<[u8]>) {
        self.attributes.push(Attribute::text(key, text.as_ref()));
    }

    pub(crate) fn number(&mut self, key: &'static str, number: impl itoa::Integer) {
        let text = itoa::Buffer::new().format(number).to_owned();
        let value = AttributeValue::Number(text);
        self.attributes.push(Attribute { key, value });
    }

    /// Marks the span as failed, with a word for the reason.
    pub(crate) fn fail(&mut self, error: &str) {
        self.text("error.type", error);
        self.status = Some(Status { code: ERROR });
    }

    pub(super) fn to_json(&self) -> Vec<u8> {
        // A span always serialises.
        serde_json::to_vec(self).unwrap_or_default()
    }
}

/// `SPAN_KIND_SERVER`: a request was answered.
const SERVER: u8 = 2;

/// `SPAN_KIND_CLIENT`: a request was made.
const CLIENT: u8 = 3;

/// `STATUS_CODE_ERROR`.
const ERROR: u8 = 2;

/// The most bytes of a text.
const TEXT_MAX: usize = 1024;

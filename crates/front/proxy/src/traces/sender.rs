//! The thread that sends spans to a collector: OTLP over HTTP, in JSON.
//!
//! A batch is sent again after an answer that asks for it, or if there was none, and is given up after [`ATTEMPTS_MAX`]
//! attempts. Meanwhile others wait in the queue, which is bounded. Each wait has a deadline.

use std::net::ToSocketAddrs;
use std::sync::Arc;
use std::time::Duration;
use std::{fmt, io, thread};

use arc_swap::ArcSwap;
use catamaran_http_client::{BlockingClient, ClientAnswer, ClientRequest, Fields, ServerAddress};
use catamaran_message::name::{CONTENT_TYPE, RETRY_AFTER};
use catamaran_upstream::config::Address;
use http::{Method, StatusCode};
use serde::Deserialize;

use crate::config::TraceConfig;
use crate::traces::queue::{Queue, SpanResult};
use crate::traces::span::Attribute;

/// Starts the thread. It ends after the queue is closed.
///
/// # Errors
/// The thread cannot be started.
pub(super) fn start(queue: Arc<Queue>, config: Arc<ArcSwap<TraceConfig>>) -> io::Result<()> {
    let builder = thread::Builder::new().name("traces".to_owned());
    builder.spawn(move || {
        let mut sender = SpanSender {
            queue: &queue,
            config: &config,
            connection: None,
        };
        sender.run();
        queue.end();
    })?;
    Ok(())
}

/// Sends what waits in a queue.
struct SpanSender<'q> {
    queue: &'q Queue,
    config: &'q ArcSwap<TraceConfig>,
    /// The connection for the next batch, and where it leads.
    connection: Option<(Address, BlockingClient)>,
}

/// Why a batch was not taken.
#[derive(Debug)]
enum SendError {
    /// There was no answer.
    Unanswered(io::Error),
    /// The collector asks to send it again, perhaps not before this time.
    Later(StatusCode, Option<Duration>),
    /// The collector does not want it.
    Refused(StatusCode),
}

impl fmt::Display for SendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unanswered(error) => error.fmt(f),
            Self::Later(status, _) | Self::Refused(status) => write!(f, "it answers {status}"),
        }
    }
}

impl SpanSender<'_> {
    /// Sends batches until the queue is closed and empty, and counts what became of the spans.
    fn run(&mut self) {
        while let Some(spans) = self.queue.next_batch() {
            let (refused, result) = match self.deliver(&spans) {
                Ok(refused) => (refused.min(spans.len()), SpanResult::Sent),
                Err(result) => (0, result),
            };
            self.queue.count(SpanResult::Refused, refused);
            self.queue.count(result, spans.len() - refused);
        }
    }

    /// Sends a batch, several times if need be, each time by the configuration then in force. Returns how many spans
    /// the collector refused; `Err`: the whole batch was refused or lost.
    fn deliver(&mut self, spans: &[Vec<u8>]) -> Result<usize, SpanResult> {
        let mut pause = PAUSE_FIRST;
        for attempt in 1..=ATTEMPTS_MAX {
            let time = self.queue.left().map_or(ASK_MAX, |left| left.min(ASK_MAX));
            if time.is_zero() {
                break;
            }
            let config = self.config.load_full();
            let body = body(&config.name, spans);
            let error = match self.send(&config.address, &body, time) {
                Ok(refused) => {
                    self.note(&config.address, None);
                    return Ok(refused);
                }
                Err(error) => error,
            };
            self.note(&config.address, Some(&error));
            let wait = match error {
                SendError::Refused(_) => return Err(SpanResult::Refused),
                SendError::Later(_, Some(after)) => after.clamp(pause, PAUSE_MAX),
                SendError::Later(_, None) | SendError::Unanswered(_) => pause,
            };
            if attempt < ATTEMPTS_MAX {
                self.queue.pause(wait);
            }
            pause = PAUSE_MAX.min(pause * 2);
        }
        Err(SpanResult::Lost)
    }

    /// Sends a batch once. A connection that stood idle may have been closed: then a new one is tried at once.
    fn send(&mut self, to: &Address, body: &[u8], time: Duration) -> Result<usize, SendError> {
        let known = self.connection.take().filter(|(address, _)| address == to);
        let by_known = known.map(|(_, client)| self.ask(to, client, body, time));
        let answer = match by_known {
            Some(Ok(answer)) => Ok(answer),
            // The collector was there, and is asked again after a pause.
            Some(Err(error)) if error.kind() == io::ErrorKind::TimedOut => Err(error),
            Some(Err(_)) | None => {
                let client = connect(to, time).map_err(SendError::Unanswered)?;
                self.ask(to, client, body, time)
            }
        };
        let (head, text) = answer.map_err(SendError::Unanswered)?;
        judge(&head, &text)
    }

    /// Asks on a connection, and keeps it for the next batch if it can be used again.
    fn ask(
        &mut self,
        to: &Address,
        mut client: BlockingClient,
        body: &[u8],
        time: Duration,
    ) -> io::Result<(ClientAnswer, Vec<u8>)> {
        let mut fields = Fields::new();
        fields.append(CONTENT_TYPE, "application/json");
        let host = match to {
            Address::Tcp { .. } => to.to_string(),
            Address::Unix(_) => "localhost".to_owned(),
        };
        let request = ClientRequest {
            method: &Method::POST,
            fields: &fields,
            body,
            ..ClientRequest::get(PATH, &host)
        };
        client.limit_asks(time);
        let mut text = Vec::new();
        let answer = client.ask(&request, ANSWER_MAX, |bytes| text.extend_from_slice(bytes))?;
        if answer.is_whole && client.can_reuse() {
            self.connection = Some((to.clone(), client));
        }
        Ok((answer, text))
    }

    /// Logs that the collector begins to take no spans, or takes them again.
    fn note(&self, to: &Address, error: Option<&SendError>) {
        let trouble = error.map(|error| format!("the collector of spans at {to}: {error}"));
        if !self.queue.set_trouble(to, trouble) {
            return;
        }
        match error {
            Some(error) => tracing::warn!(
                collector = %to,
                "spans are not taken: {error}; they wait, then they are dropped: check `address` of [trace]"
            ),
            None => tracing::info!(collector = %to, "spans are taken again"),
        }
    }
}

/// Connects to the first address of the collector that accepts.
fn connect(to: &Address, time: Duration) -> io::Result<BlockingClient> {
    let (host, port) = match to {
        Address::Tcp { host, port } => (host.as_str(), *port),
        Address::Unix(path) => {
            return BlockingClient::connect(&ServerAddress::Unix(path.clone()), time);
        }
    };
    let mut last_error = io::Error::new(io::ErrorKind::NotFound, "its name has no address");
    for address in (host, port).to_socket_addrs()?.take(ADDRESSES_MAX) {
        match BlockingClient::connect(&ServerAddress::Tcp(address), time) {
            Ok(client) => return Ok(client),
            Err(error) => last_error = error,
        }
    }
    Err(last_error)
}

/// What the collector's answer says: how many spans it refused, or why it took none (OTLP, "OTLP/HTTP Response").
fn judge(answer: &ClientAnswer, text: &[u8]) -> Result<usize, SendError> {
    let status = answer.head.status;
    match status.as_u16() {
        200..=299 => {
            let taken: TakenSpans = serde_json::from_slice(text).unwrap_or_default();
            Ok(taken.partial_success.rejected_spans.count())
        }
        429 | 502..=504 => {
            let after = answer.head.headers.text_of(RETRY_AFTER);
            let seconds = after.and_then(|after| after.parse().ok());
            Err(SendError::Later(status, seconds.map(Duration::from_secs)))
        }
        _ => Err(SendError::Refused(status)),
    }
}

/// `ExportTraceServiceResponse`.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct TakenSpans {
    partial_success: PartialSuccess,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct PartialSuccess {
    rejected_spans: Count64,
}

/// A 64-bit number, as a text or as a number.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Count64 {
    Text(String),
    Number(u64),
}

impl Default for Count64 {
    fn default() -> Self {
        Self::Number(0)
    }
}

impl Count64 {
    fn count(&self) -> usize {
        let count = match self {
            Self::Text(digits) => digits.parse().unwrap_or(0),
            Self::Number(number) => *number,
        };
        usize::try_from(count).unwrap_or(usize::MAX)
    }
}

/// `ExportTraceServiceRequest` with these spans.
fn body(name: &str, spans: &[Vec<u8>]) -> Vec<u8> {
    let version = env!("CARGO_PKG_VERSION");
    let resource = [
        Attribute::text("service.name", name.as_bytes()),
        Attribute::text("service.version", version.as_bytes()),
    ];
    let attributes = serde_json::to_string(&resource).unwrap_or_default();
    let scope = format!("{{\"name\":\"catamaran\",\"version\":\"{version}\"}}");
    let begin = format!(
        "{{\"resourceSpans\":[{{\"resource\":{{\"attributes\":{attributes}}},\"scopeSpans\":[{{\"scope\":{scope},\"spans\":["
    );
    let list = spans.join(&b","[..]);
    [begin.as_bytes(), &list, b"]}]}]}"].concat()
}

/// The path of OTLP for spans.
const PATH: &str = "/v1/traces";

/// The longest time of a request to the collector, and of the connection for it.
const ASK_MAX: Duration = Duration::from_secs(5);

/// The most bytes of an answer that are read.
const ANSWER_MAX: u64 = 16 << 10;

/// How many times a batch is sent.
const ATTEMPTS_MAX: u32 = 5;

/// The pause after the first attempt; each further one is twice as long.
const PAUSE_FIRST: Duration = Duration::from_secs(1);

/// The longest pause, also if the collector asks for more.
const PAUSE_MAX: Duration = Duration::from_secs(30);

/// The most addresses of a name that are tried.
const ADDRESSES_MAX: usize = 4;

#[cfg(test)]
mod tests;

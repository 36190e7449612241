//! HTTPS to the authority for `instant-acme`: each request on a connection of its own, which blocks a thread for that
//! alone, so that the attempt can be left at any time. Every wait has a deadline, all requests of an attempt have one
//! together, and what is read of an answer has a limit.

use std::future::Future;
use std::io;
use std::net::ToSocketAddrs as _;
use std::panic::resume_unwind;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use catamaran_http_client::{BlockingClient, ClientRequest, Fields, ServerAddress};
use catamaran_tls::{Roots, Trust, TrustSettings};
use http::header::{RETRY_AFTER, USER_AGENT};
use http::request::Parts;
use http::{Response, StatusCode, response};
use http_body_util::BodyExt as _;
use instant_acme::{BodyWrapper, BytesResponse, Error, HttpClient};
use tokio::task;
use tokio::time::Instant;

use crate::lock::lock;

/// A client of one authority.
#[derive(Clone, Debug)]
pub(super) struct AuthorityClient(Arc<ClientState>);

#[derive(Debug)]
struct ClientState {
    /// The authorities that may issue the certificate of the directory's server.
    roots: Roots,
    /// When the attempt ends, whatever it waits for.
    deadline: Instant,
    answers: Mutex<AnswerRecord>,
}

/// What is kept of the authority's answers.
#[derive(Clone, Copy, Debug, Default)]
struct AnswerRecord {
    /// The status of the last answer; `None`: there was none to the last request.
    status: Option<StatusCode>,
    /// The seconds that the last answer with 429 or 503 asked to wait.
    asked_to_wait: Option<u64>,
}

impl AuthorityClient {
    /// A client for an attempt that begins now.
    pub(super) fn new(roots: Roots) -> Self {
        Self::until(roots, Instant::now() + ATTEMPT_MAX)
    }

    fn until(roots: Roots, deadline: Instant) -> Self {
        Self(Arc::new(ClientState {
            roots,
            deadline,
            answers: Mutex::default(),
        }))
    }

    /// The body of what a URL has for everybody.
    ///
    /// # Errors
    /// It cannot be had.
    pub(super) fn get(&self, url: &str) -> io::Result<Bytes> {
        // Authorities want one (RFC 8555, section 6.1).
        let builder = http::Request::get(url).header(USER_AGENT, "catamaran");
        let request = builder.body(()).map_err(io::Error::other)?;
        let (answer, body) = self.0.ask(&request.into_parts().0, &[])?;
        if answer.status != StatusCode::OK {
            return Err(io::Error::other(format!("it answered {}", answer.status)));
        }
        Ok(body)
    }

    /// The status of the answer to the last request; `None`: there was none.
    pub(super) fn last_status(&self) -> Option<u16> {
        let status = lock(&self.0.answers).status;
        status.map(|status| status.as_u16())
    }

    /// The seconds that an answer with 429 or 503 asked to wait; `None`: there was no such answer.
    pub(super) fn asked_to_wait(&self) -> Option<u64> {
        lock(&self.0.answers).asked_to_wait
    }
}

impl HttpClient for AuthorityClient {
    fn request(
        &self,
        request: http::Request<BodyWrapper<Bytes>>,
    ) -> Pin<Box<dyn Future<Output = Result<BytesResponse, Error>> + Send>> {
        let client = Arc::clone(&self.0);
        Box::pin(async move {
            let (parts, body) = request.into_parts();
            let Ok(collected) = body.collect().await;
            let body = collected.to_bytes();
            let asked = task::spawn_blocking(move || client.ask(&parts, &body));
            let response = match asked.await {
                Ok(response) => response,
                Err(error) if error.is_panic() => resume_unwind(error.into_panic()),
                Err(error) => Err(io::Error::other(error)),
            };
            let (parts, body) = response.map_err(|error| Error::Other(Box::new(error)))?;
            Ok(BytesResponse {
                parts,
                body: Box::new(body),
            })
        })
    }
}

impl ClientState {
    fn ask(&self, parts: &Parts, request_body: &[u8]) -> io::Result<(response::Parts, Bytes)> {
        lock(&self.answers).status = None;
        let mut client = self.connect(parts)?;
        client.limit_asks(self.at_most(ANSWER_TIMEOUT)?);
        let mut fields = Fields::new();
        for (name, value) in &parts.headers {
            fields.append(name.as_str(), value.as_bytes());
        }
        let target = parts
            .uri
            .path_and_query()
            .map_or("/", |target| target.as_str());
        let request = ClientRequest {
            method: &parts.method,
            target,
            host: parts
                .uri
                .authority()
                .map_or("", |authority| authority.as_str()),
            fields: &fields,
            body: request_body,
        };
        let mut body = Vec::new();
        let answer = client.ask(&request, ANSWER_MAX, |bytes| body.extend_from_slice(bytes))?;
        if !answer.is_whole {
            let text = format!(
                "{} sent more than {ANSWER_MAX} bytes, or broke off",
                parts.uri
            );
            return Err(io::Error::new(io::ErrorKind::InvalidData, text));
        }
        let mut response = Response::builder().status(answer.head.status);
        for field in answer.head.headers.iter() {
            let is_pause = field
                .name()
                .eq_ignore_ascii_case(RETRY_AFTER.as_str().as_bytes());
            let value = is_pause.then(|| shortened(field.value())).flatten();
            response = response.header(field.name(), value.unwrap_or_else(|| field.value()));
        }
        let (parts, ()) = response.body(()).map_err(io::Error::other)?.into_parts();
        self.note(&parts);
        Ok((parts, Bytes::from(body)))
    }

    /// Connects to the server of a URL by the first of its addresses that answers.
    fn connect(&self, parts: &Parts) -> io::Result<BlockingClient> {
        let invalid = |text: String| io::Error::new(io::ErrorKind::InvalidInput, text);
        let (Some("https"), Some(host)) = (parts.uri.scheme_str(), parts.uri.host()) else {
            return Err(invalid(format!(
                "the authority names {}, which is not https",
                parts.uri
            )));
        };
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let trust = Trust::new(TrustSettings {
            server_name: host.to_owned(),
            verify: true,
            roots: self.roots.clone(),
            identity: None,
        });
        let trust = trust.map_err(|fault| invalid(fault.to_string()))?;
        let port = parts.uri.port_u16().unwrap_or(443);
        let mut failure = None;
        // The system's resolver has a deadline of its own (resolv.conf, `timeout` and `attempts`).
        for address in (host, port).to_socket_addrs()? {
            let timeout = self.at_most(CONNECT_TIMEOUT)?;
            match BlockingClient::connect_tls(&ServerAddress::Tcp(address), &trust, timeout) {
                Ok(client) => return Ok(client),
                Err(error) => {
                    let text = format!("{address}: {error}");
                    failure = Some(io::Error::new(error.kind(), text));
                }
            }
        }
        Err(failure.unwrap_or_else(|| invalid(format!("{host} has no address"))))
    }

    /// A wait, or what is left of the attempt if that is less.
    ///
    /// # Errors
    /// `TimedOut` if nothing is left of it.
    fn at_most(&self, wait: Duration) -> io::Result<Duration> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            let minutes = ATTEMPT_MAX.as_secs() / 60;
            let text = format!("the attempt has not ended within {minutes} minutes");
            return Err(io::Error::new(io::ErrorKind::TimedOut, text));
        }
        Ok(wait.min(left))
    }

    /// Notes the status of an answer, and how long it asks to wait.
    fn note(&self, answer: &response::Parts) {
        lock(&self.answers).status = Some(answer.status);
        if !matches!(
            answer.status,
            StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE
        ) {
            return;
        }
        let value = answer.headers.get(RETRY_AFTER);
        let text = value
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default();
        let seconds = text.parse().ok().or_else(|| seconds_until(text));
        // The schedule waits an hour at least.
        lock(&self.answers).asked_to_wait = Some(seconds.unwrap_or(0));
    }
}

/// A shorter value of Retry-After in place of a number of seconds above a day; `None`: it can stay. `instant-acme`
/// adds the number to the time, which panics at the end of what a time can be.
fn shortened(value: &[u8]) -> Option<&'static [u8]> {
    let seconds: u64 = str::from_utf8(value).ok()?.trim().parse().ok()?;
    (seconds > 86_400).then_some(b"86400")
}

/// The seconds until a date in the format of HTTP; `None` if it is none.
fn seconds_until(date: &str) -> Option<u64> {
    let moment = httpdate::parse_http_date(date).ok()?;
    let left = moment.duration_since(SystemTime::now()).unwrap_or_default();
    Some(left.as_secs())
}

/// How long an attempt may take, with all its requests and pauses.
pub(super) const ATTEMPT_MAX: Duration = Duration::from_secs(5 * 60);

/// How long a connection may take, and then its handshake.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a request with its answer may take.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

/// The most bytes of an answer, with its head. A chain of certificates has some kilobytes.
const ANSWER_MAX: u64 = 256 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_of_retry_after_is_a_day_at_most() {
        for (value, expected) in [
            ("18446744073709551615", Some("86400")),
            (" 86401 ", Some("86400")),
            ("+99999999999", Some("86400")),
            ("86400", None),
            ("0", None),
            // No number to `instant-acme` either.
            ("18446744073709551616", None),
            ("Fri, 31 Dec 9999 23:59:59 GMT", None),
            ("", None),
        ] {
            let shortened = shortened(value.as_bytes());
            assert_eq!(shortened, expected.map(str::as_bytes), "{value:?}");
        }
    }

    #[tokio::test]
    async fn after_the_deadline_of_the_attempt_nothing_is_asked() {
        let client = AuthorityClient::until(Roots::none(), Instant::now());
        let request = http::Request::get("https://127.0.0.1:1/directory");
        let answer = client
            .request(request.body(BodyWrapper::default()).unwrap())
            .await;
        let error = answer.err().expect("no answer").to_string();
        assert_eq!(error, "the attempt has not ended within 5 minutes");
        assert_eq!(client.last_status(), None);
    }
}

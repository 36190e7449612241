//! HTTPS to the authority for `instant-acme`: each request on a connection of its own, which blocks the thread of
//! orders. Every wait has a deadline, and what is read of an answer a limit.

use std::future::Future;
use std::io;
use std::net::ToSocketAddrs as _;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use catamaran_http_client::{BlockingClient, ClientRequest, Fields, ServerAddress};
use catamaran_tls::{Roots, Trust, TrustSettings};
use http::header::RETRY_AFTER;
use http::request::Parts;
use http::{Response, StatusCode};
use http_body_util::BodyExt as _;
use instant_acme::{BodyWrapper, BytesResponse, Error, HttpClient};

use crate::lock::lock;

/// A client of one authority.
#[derive(Clone, Debug)]
pub(super) struct AuthorityClient(Arc<ClientState>);

#[derive(Debug)]
struct ClientState {
    /// The authorities that may issue the certificate of the directory's server.
    roots: Roots,
    /// The seconds that the last answer with 429 or 503 asked to wait.
    asked_to_wait: Mutex<Option<u64>>,
}

impl AuthorityClient {
    pub(super) fn new(roots: Roots) -> Self {
        Self(Arc::new(ClientState {
            roots,
            asked_to_wait: Mutex::new(None),
        }))
    }

    /// The seconds that an answer with 429 or 503 asked to wait; `None`: there was no such answer.
    pub(super) fn asked_to_wait(&self) -> Option<u64> {
        *lock(&self.0.asked_to_wait)
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
            let response = client.ask(&parts, &collected.to_bytes());
            response.map_err(|error| Error::Other(Box::new(error)))
        })
    }
}

impl ClientState {
    fn ask(&self, parts: &Parts, request_body: &[u8]) -> io::Result<BytesResponse> {
        let mut client = self.connect(parts)?;
        client.limit_asks(ANSWER_TIMEOUT);
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
            response = response.header(field.name(), field.value());
        }
        let (parts, ()) = response.body(()).map_err(io::Error::other)?.into_parts();
        self.note(&parts);
        Ok(BytesResponse {
            parts,
            body: Box::new(Bytes::from(body)),
        })
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
            match BlockingClient::connect_tls(&ServerAddress::Tcp(address), &trust, CONNECT_TIMEOUT)
            {
                Ok(client) => return Ok(client),
                Err(error) => {
                    let text = format!("{address}: {error}");
                    failure = Some(io::Error::new(error.kind(), text));
                }
            }
        }
        Err(failure.unwrap_or_else(|| invalid(format!("{host} has no address"))))
    }

    /// Notes how long an answer asks to wait.
    fn note(&self, answer: &http::response::Parts) {
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
        *lock(&self.asked_to_wait) = Some(seconds.unwrap_or(0));
    }
}

/// The seconds until a date in the format of HTTP; `None` if it is none.
fn seconds_until(date: &str) -> Option<u64> {
    let moment = httpdate::parse_http_date(date).ok()?;
    let left = moment.duration_since(SystemTime::now()).unwrap_or_default();
    Some(left.as_secs())
}

/// How long a connection with its handshake may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a request with its answer may take.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

/// The most bytes of an answer, with its head. A chain of certificates has some kilobytes.
const ANSWER_MAX: u64 = 256 << 10;

//! One probe of a backend: a connection of its own, and what is asked on it.
//!
//! A client's request is never used as a probe, and a probe has no part in `connections_max`: a
//! backend may be silent because all of its connections are in use. When to probe, and what follows
//! from the outcome, is the keeper's affair.

use std::fmt;
use std::future::poll_fn;
use std::task::{Poll, ready};

use catamaran_message::{BodyLength, Request, ResponseHead};
use http::header::{HOST, HeaderName, HeaderValue, SET_COOKIE, USER_AGENT};
use http::{HeaderMap, Method, StatusCode};
use tokio::time::timeout;

use crate::backend::ping;
use crate::client_facts::ClientFacts;
use crate::config::{Address, BackendConfig, ProbeConfig, ProbeKind, ProbeRequest, Protocol};
use crate::connection::Connection;
use crate::dial::dial;
use crate::error::{Culprit, Error, LeaseError};
use crate::wire::Event;

/// What a probe found.
#[derive(Debug)]
pub(crate) enum Found {
    /// It answered as it should. Whether it set a cookie.
    Answered { cookie: Option<HeaderValue> },
    /// It was connected to, and not asked anything.
    Connected,
    /// CPING was not answered.
    Silent,
    /// The answer to a request did not come in time.
    Late,
    /// The answer to a request was wrong.
    Wrong(Wrong),
    /// It could not be connected to.
    Failed(LeaseError),
    /// The probe could not be made, for reasons of our own.
    NotMade(LeaseError),
}

/// Why an answer is not the one that a probe wants.
#[derive(Debug)]
pub(crate) enum Wrong {
    Status {
        status: StatusCode,
        is_ajp: bool,
    },
    Body,
    Exchange(Error),
    /// The request cannot be put into the backend's protocol.
    Request,
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Answered { .. } => f.write_str("answered"),
            Self::Connected => f.write_str("connected"),
            Self::Silent => f.write_str("no answer to CPING"),
            Self::Late => f.write_str("no answer in time"),
            Self::Wrong(wrong) => wrong.fmt(f),
            Self::Failed(error) | Self::NotMade(error) => match error {
                LeaseError::Dial { source } => write!(f, "{error}: {source}"),
                LeaseError::Handshake { source } => write!(f, "{error}: {source}"),
                _ => error.fmt(f),
            },
        }
    }
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Status { status, is_ajp } => {
                write!(f, "status {}", status.as_u16())?;
                if *is_ajp && *status == StatusCode::FORBIDDEN {
                    f.write_str(" (is `secret` right?)")?;
                }
                Ok(())
            }
            Self::Body => write!(
                f,
                "the text is not in the first {} KiB of the body",
                BODY_MAX / 1024
            ),
            Self::Exchange(error) => error.fmt(f),
            Self::Request => f.write_str("the request does not fit the protocol"),
        }
    }
}

/// Probes the backend. `scheduled` says that nothing is amiss: then it is asked what the probe's kind
/// says, otherwise CPING where that says more.
pub(crate) async fn probe(config: &BackendConfig, scheduled: bool) -> Found {
    let probe = config.probe.as_ref();
    let request = probe.and_then(|probe| match &probe.kind {
        ProbeKind::Request(request) => Some((probe, &**request)),
        ProbeKind::Connect | ProbeKind::Cping => None,
    });
    if let Some((probe, request)) = request {
        return requested(config, probe, request).await;
    }
    let limit = probe.map_or(config.connect_timeout, |it| {
        it.timeout.min(config.connect_timeout)
    });
    let stream = match dial(config.end(), limit).await {
        Ok(stream) => stream,
        Err(error) => return undialled(error),
    };
    // Without any of these keys CPING is never sent: not every container has it.
    let kind = probe.map(|probe| &probe.kind);
    let may_ask = config.ajp.ping_after_idle.is_some()
        || config.ajp.ping_fresh
        || kind == Some(&ProbeKind::Cping);
    let only_connects = scheduled && kind == Some(&ProbeKind::Connect);
    if config.protocol == Protocol::Http || !may_ask || only_connects {
        return Found::Connected;
    }
    let mut conn = Connection::new(stream, config, None);
    match ping(&mut conn, config).await {
        true => Found::Answered { cookie: None },
        false => Found::Silent,
    }
}

async fn requested(config: &BackendConfig, probe: &ProbeConfig, request: &ProbeRequest) -> Found {
    let exchange = async {
        let limit = probe.timeout.min(config.connect_timeout);
        let stream = dial(config.end(), limit).await.map_err(undialled)?;
        let mut conn = Connection::new(stream, config, None);
        ask(&mut conn, request, config).await.map_err(Found::Wrong)
    };
    match timeout(probe.timeout, exchange).await {
        Ok(Ok(cookie)) => Found::Answered { cookie },
        Ok(Err(found)) => found,
        Err(_) => Found::Late,
    }
}

fn undialled(error: LeaseError) -> Found {
    match error.culprit() {
        Culprit::Backend => Found::Failed(error),
        Culprit::Client | Culprit::Front => Found::NotMade(error),
    }
}

/// Sends the request and judges its answer; says what cookie was set.
async fn ask(
    conn: &mut Connection,
    request: &ProbeRequest,
    config: &BackendConfig,
) -> Result<Option<HeaderValue>, Wrong> {
    let at = config.address.to_string();
    let host = match (&request.host, &config.address) {
        (Some(host), _) => host,
        (None, Address::Tcp { .. }) => &at[..],
        (None, Address::Unix(_)) => UNIX_HOST,
    };
    let (path, query) = match request.target.split_once('?') {
        Some((path, query)) => (path, Some(query.as_bytes())),
        None => (&request.target[..], None),
    };
    let headers: HeaderMap = fields(host)?.into_iter().collect();
    let sent = Request {
        method: &request.method,
        path: path.as_bytes(),
        query,
        host: host.as_bytes(),
        headers: &headers,
        extra: &[],
        body: BodyLength::Known(0),
    };
    conn.send_request(&sent, &ClientFacts::local(), config)
        .map_err(|_| Wrong::Request)?;
    receive(conn, request, config.protocol == Protocol::Ajp).await
}

fn fields(host: &str) -> Result<[(HeaderName, HeaderValue); 2], Wrong> {
    let host = HeaderValue::from_str(host).map_err(|_| Wrong::Request)?;
    let agent = HeaderValue::from_static(AGENT);
    Ok([(HOST, host), (USER_AGENT, agent)])
}

/// Receives the answer up to its end, or to what is looked at.
async fn receive(
    conn: &mut Connection,
    request: &ProbeRequest,
    is_ajp: bool,
) -> Result<Option<HeaderValue>, Wrong> {
    let mut cookie = None;
    let mut body = Vec::new();
    loop {
        match next(conn).await.map_err(Wrong::Exchange)? {
            Event::Head(head) => {
                cookie = judge(&head, request, is_ajp)?;
                conn.recycle(head);
            }
            Event::Body(bytes) => {
                body.extend_from_slice(&bytes);
                if body.len() >= BODY_MAX {
                    body.truncate(BODY_MAX);
                    break;
                }
            }
            Event::End => break,
            Event::Interim(_) | Event::Upgraded(_) | Event::Flush | Event::BodyWanted => {}
        }
    }
    let wanted = request
        .body
        .as_ref()
        .filter(|_| request.method != Method::HEAD);
    match wanted {
        Some(text) if !contains(&body, text.as_bytes()) => Err(Wrong::Body),
        _ => Ok(cookie),
    }
}

fn judge(
    head: &ResponseHead,
    request: &ProbeRequest,
    is_ajp: bool,
) -> Result<Option<HeaderValue>, Wrong> {
    let status = head.status;
    let good = request
        .statuses
        .iter()
        .any(|it| it.contains(&status.as_u16()));
    match good {
        true => Ok(head.headers.get(SET_COOKIE).cloned()),
        false => Err(Wrong::Status { status, is_ajp }),
    }
}

async fn next(conn: &mut Connection) -> Result<Event, Error> {
    poll_fn(|cx| {
        if conn.unwritten() > 0 {
            // What the backend sent before it closed is read all the same.
            let _ = conn.poll_write(cx);
        }
        Poll::Ready(ready!(conn.poll_event(cx)))
    })
    .await
}

fn contains(body: &[u8], text: &[u8]) -> bool {
    text.is_empty() || body.windows(text.len()).any(|window| window == text)
}

/// The most bytes of a body that are searched.
const BODY_MAX: usize = 64 * 1024;

/// The host of a backend on a Unix socket.
const UNIX_HOST: &str = "localhost";

/// What backends' logs have for probes.
const AGENT: &str = "catamaran-probe";

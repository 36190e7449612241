//! One probe of a backend, on a connection of its own.
//!
//! A client's request is never used as a probe, and a probe does not count for `connections_max`: a backend may be
//! silent because all of its connections are in use. The keeper decides when to probe and what follows from the
//! outcome.

use std::fmt;
use std::future::poll_fn;
use std::task::{Poll, ready};
use std::time::{Duration, SystemTime};

use catamaran_message::name::{HOST, SET_COOKIE, USER_AGENT};
use catamaran_message::{BodyLength, Fields, Request, ResponseHead};
use catamaran_transport::Stream;
use http::{Method, StatusCode};
use tokio::time::timeout;

use crate::client_facts::ClientFacts;
use crate::config::{Address, BackendConfig, ProbeConfig, ProbeKind, ProbeRequest};
use crate::connection::Connection;
use crate::dial::dial;
use crate::error::{Culprit, Error, LeaseError, PingFailure};
use crate::settings::Settings;
use crate::wire::Event;

/// The result of a probe, before it is judged.
#[derive(Debug)]
pub(crate) enum ProbeResult {
    /// The backend's response was good. `cookie`: the cookie that it set; `None`: it set none.
    Answered { cookie: Option<Vec<u8>> },
    /// The backend answered CPING.
    Ponged,
    /// The backend accepted the connection; nothing was asked.
    Connected,
    /// The backend accepted the connection, but does not speak CPING.
    Unspoken(PingFailure),
    /// The backend did not answer CPING.
    Silent(PingFailure),
    /// The response did not come in time.
    Late,
    /// The response was not a good one.
    Wrong(Wrong),
    /// The backend did not accept the connection.
    Failed(LeaseError),
    /// The front could not make the probe, for example for lack of descriptors.
    NotMade(LeaseError),
}

impl ProbeResult {
    /// Whether the backend passed the probe.
    pub(crate) fn is_answer(&self) -> bool {
        match self {
            Self::Answered { .. } | Self::Ponged | Self::Connected | Self::Unspoken(_) => true,
            Self::Silent(_) | Self::Late | Self::Wrong(_) | Self::Failed(_) | Self::NotMade(_) => {
                false
            }
        }
    }

    /// What is wrong with the backend by this result: a clause in which "it" is the backend.
    pub(crate) fn trouble(&self) -> String {
        match self {
            Self::Failed(error) => error.trouble(),
            Self::Silent(how) => format!("it does not answer CPING ({how})"),
            _ => format!("its probe fails: {self}"),
        }
    }
}

/// The question that a probe asks a backend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProbeQuestion {
    /// A request in the backend's protocol.
    Request {
        /// The request's method.
        method: Method,
        /// The request's path and query.
        target: String,
    },
    /// The message CPING of AJP13.
    Cping,
    /// No question: the probe only connects.
    Connection,
}

impl ProbeQuestion {
    /// The question in one word, as in the key `kind` of `[upstream.NAME.probe]`.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Request { .. } => "request",
            Self::Cping => "cping",
            Self::Connection => "connect",
        }
    }
}

/// The result of a backend's last probe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LastProbe {
    /// The number of the probe among those of the backend, from 1 on, in the order in which they began.
    pub number: u64,
    /// When the probe ended.
    pub at: SystemTime,
    /// How long the probe took.
    pub took: Duration,
    /// The question that the backend was asked.
    pub question: ProbeQuestion,
    /// Whether the backend passed the probe.
    pub answered: bool,
    /// The result of the probe in words.
    pub found: String,
}

/// Why a response to a probe is not good.
#[derive(Debug)]
pub(crate) enum Wrong {
    Status {
        status: StatusCode,
        is_ajp: bool,
    },
    Body,
    Exchange(Error),
    /// The request cannot be encoded in the backend's protocol.
    Request,
}

impl fmt::Display for ProbeResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Answered { .. } | Self::Ponged => f.write_str("answered"),
            Self::Connected => f.write_str("connected"),
            Self::Unspoken(how) => write!(f, "connected; {how}"),
            Self::Silent(how) => how.fmt(f),
            Self::Late => f.write_str("no answer in time"),
            Self::Wrong(wrong) => wrong.fmt(f),
            Self::Failed(error) | Self::NotMade(error) => f.write_str(&error.with_cause()),
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

/// The question that the configuration says to ask a backend.
enum ProbeAction<'c> {
    /// A request in the backend's protocol.
    Request(&'c ProbeConfig, &'c ProbeRequest),
    Cping,
    /// No question: the probe only connects.
    Connection,
}

/// Chooses what to ask by the probe's `kind`. If no probe is configured, asks CPING of a backend that may be asked
/// it.
fn configured_action(config: &BackendConfig) -> ProbeAction<'_> {
    if let Some(probe) = &config.probe {
        match &probe.kind {
            ProbeKind::Request(request) => return ProbeAction::Request(probe, request),
            ProbeKind::Connect => return ProbeAction::Connection,
            ProbeKind::Cping => {}
        }
    }
    if may_ask_cping(config) {
        ProbeAction::Cping
    } else {
        ProbeAction::Connection
    }
}

/// Whether the configuration requires the backend to answer CPING.
pub(crate) fn wants_pong(config: &BackendConfig) -> bool {
    let by_probe = matches!(&config.probe, Some(probe) if probe.kind == ProbeKind::Cping);
    config.ajp.ping_fresh || by_probe
}

/// Whether the backend may be sent CPING. Not every container has it, so without any of the keys that enable it it
/// is never sent.
fn may_ask_cping(config: &BackendConfig) -> bool {
    let is_wanted = config.ajp.ping_after_idle.is_some() || wants_pong(config);
    !config.speaks_http() && is_wanted
}

/// Whether a probe of this backend is a request, which takes longer than CPING, and CPING may be sent at the same
/// time.
pub(crate) fn is_slower_than_cping(config: &BackendConfig) -> bool {
    matches!(configured_action(config), ProbeAction::Request(..)) && may_ask_cping(config)
}

/// The question that a probe asks this backend, for reports.
pub(crate) fn question(config: &BackendConfig) -> ProbeQuestion {
    match configured_action(config) {
        ProbeAction::Request(_, request) => ProbeQuestion::Request {
            method: request.method.clone(),
            target: request.target.clone(),
        },
        ProbeAction::Cping => ProbeQuestion::Cping,
        ProbeAction::Connection => ProbeQuestion::Connection,
    }
}

/// Makes the probe that the configuration asks for.
pub(crate) async fn probe(config: &Settings) -> ProbeResult {
    match configured_action(config) {
        ProbeAction::Request(probe, request) => probe_with_request(config, probe, request).await,
        ProbeAction::Cping => ask_cping(config).await,
        ProbeAction::Connection => match connect(config).await {
            Ok(_) => ProbeResult::Connected,
            Err(error) => from_dial_error(error),
        },
    }
}

/// Tests a backend that no front uses: with the configured probe, else with CPING, else with a connection. An AJP
/// backend whose probe is not a request is also sent `HEAD /`, because only a request proves that its secret is
/// right; any status but 403 is good. A backend that answers this, but not CPING, fails, too. Must be polled within
/// an event loop.
///
/// # Errors
/// What the backend did instead of answering well, in words.
pub async fn examine(config: &BackendConfig) -> Result<ProbeQuestion, String> {
    let mut settings = Settings::new(config.clone());
    let mut result = probe(&settings).await;
    let ping_failure = match result {
        ProbeResult::Silent(failure) => Some(failure),
        _ => None,
    };
    let is_request = matches!(configured_action(config), ProbeAction::Request(..));
    let is_connected = result.is_answer() || ping_failure.is_some();
    // Only AJP has secrets.
    if is_connected && !is_request && !config.speaks_http() {
        let head = ProbeRequest {
            method: Method::HEAD,
            // All but 403, by which Tomcat refuses a wrong secret.
            statuses: vec![100..=402, 404..=599],
            ..ProbeRequest::default()
        };
        settings = settings.followed_by(BackendConfig {
            probe: Some(ProbeConfig::new(ProbeKind::Request(Box::new(head)))),
            ..config.clone()
        });
        result = probe(&settings).await;
    }
    if !result.is_answer() {
        return Err(result.to_string());
    }
    match ping_failure {
        None => Ok(question(&settings)),
        Some(failure) => Err(format!(
            "{failure}, though it answers requests: set `ping_after_idle = \"off\"`"
        )),
    }
}

/// Sends CPING on a new connection and waits for the answer.
pub(crate) async fn ask_cping(config: &Settings) -> ProbeResult {
    let stream = match connect(config).await {
        Ok(stream) => stream,
        Err(error) => return from_dial_error(error),
    };
    // Without a permit: a probe does not count for `connections_max`.
    let mut conn = Connection::new(stream, config, None);
    match conn.ping(config).await {
        Ok(()) => ProbeResult::Ponged,
        Err(how) => ProbeResult::Silent(how),
    }
}

/// Connects within `connect_timeout`, or within the probe's timeout if that is shorter.
async fn connect(config: &Settings) -> Result<Stream, LeaseError> {
    let limit = match &config.probe {
        Some(probe) => probe.timeout.min(config.connect_timeout),
        None => config.connect_timeout,
    };
    let (address, trust) = config.end();
    dial(address, trust, config.name(), limit).await
}

/// Makes a probe with a request, within the probe's timeout.
async fn probe_with_request(
    config: &Settings,
    probe: &ProbeConfig,
    request: &ProbeRequest,
) -> ProbeResult {
    let exchange = async {
        let stream = connect(config).await.map_err(from_dial_error)?;
        let mut conn = Connection::new(stream, config, None);
        ask(&mut conn, request, config)
            .await
            .map_err(ProbeResult::Wrong)
    };
    match timeout(probe.timeout, exchange).await {
        Ok(Ok(cookie)) => ProbeResult::Answered { cookie },
        Ok(Err(failure)) => failure,
        Err(_) => ProbeResult::Late,
    }
}

/// The result of a probe that could not connect. What the front lacks is not the backend's failure.
fn from_dial_error(error: LeaseError) -> ProbeResult {
    match error.culprit() {
        Culprit::Backend => ProbeResult::Failed(error),
        Culprit::Client | Culprit::Front => ProbeResult::NotMade(error),
    }
}

/// Sends the request and checks the response; returns the cookie that it sets, if any.
async fn ask(
    conn: &mut Connection,
    request: &ProbeRequest,
    config: &BackendConfig,
) -> Result<Option<Vec<u8>>, Wrong> {
    let address = config.address.to_string();
    let host = match (&request.host, &config.address) {
        (Some(host), _) => host,
        (None, Address::Tcp { .. }) => &address[..],
        (None, Address::Unix(_)) => UNIX_HOST,
    };
    let (path, query) = match request.target.split_once('?') {
        Some((path, query)) => (path, Some(query.as_bytes())),
        None => (&request.target[..], None),
    };
    let headers = Fields::from_iter([(HOST, host), (USER_AGENT, AGENT)]);
    let sent = Request {
        method: &request.method,
        path: path.as_bytes(),
        query,
        host: host.as_bytes(),
        headers: &headers,
        body: BodyLength::Known(0),
    };
    conn.send_request(&sent, &ClientFacts::local(), config)
        .map_err(|_| Wrong::Request)?;
    receive(conn, request, !config.speaks_http()).await
}

/// Receives the response up to its end, or up to [`BODY_MAX`] bytes of its body, and checks it.
async fn receive(
    conn: &mut Connection,
    request: &ProbeRequest,
    is_ajp: bool,
) -> Result<Option<Vec<u8>>, Wrong> {
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
            // None of these says anything about a request without a body.
            Event::Interim(_) | Event::Upgraded(_) | Event::Flush | Event::BodyWanted => {}
        }
    }
    if let Some(text) = &request.body
        && request.method != Method::HEAD
        && !contains(&body, text.as_bytes())
    {
        return Err(Wrong::Body);
    }
    Ok(cookie)
}

/// Judges the head of a response; returns the cookie that it sets, if any.
fn judge(
    head: &ResponseHead,
    request: &ProbeRequest,
    is_ajp: bool,
) -> Result<Option<Vec<u8>>, Wrong> {
    let status = head.status;
    let mut good_ranges = request.statuses.iter();
    if good_ranges.any(|range| range.contains(&status.as_u16())) {
        Ok(head.headers.get(SET_COOKIE).map(<[u8]>::to_vec))
    } else {
        Err(Wrong::Status { status, is_ajp })
    }
}

/// The next event of a response; writes what is still to be written meanwhile.
async fn next(conn: &mut Connection) -> Result<Event, Error> {
    poll_fn(|cx| {
        if conn.unwritten() > 0 {
            // A failed write does not matter: what the backend sent before it closed is still read.
            let _ = conn.poll_write(cx);
        }
        Poll::Ready(ready!(conn.poll_event(cx)))
    })
    .await
}

fn contains(body: &[u8], text: &[u8]) -> bool {
    text.is_empty() || body.windows(text.len()).any(|window| window == text)
}

/// The most bytes of a body that are searched for the configured text.
const BODY_MAX: usize = 64 * 1024;

/// The value of `Host` for a backend on a Unix socket.
const UNIX_HOST: &str = "localhost";

/// The `User-Agent` of probes, which appears in backends' logs.
const AGENT: &str = "catamaran-probe";

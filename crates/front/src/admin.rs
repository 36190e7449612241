//! The admin listener: health (`/healthz`), readiness (`/readyz`) and counters (`/metrics`).
//!
//! It has a thread and an event loop of its own, so it answers when the workers are busy. It answers
//! until they have stopped, so a drain can be watched. [`Admin::join`] stops the thread. After a
//! handover to another process it accepts nothing more. Each connection gets one answer in a limited
//! time, and the number of connections is limited.

pub(crate) mod exposition;
pub(crate) mod metrics;

use std::future::poll_fn;
use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use bytes::BytesMut;
use catamaran_http1::{BodyLength, Limits, Response, Server, ServerEvent};
use catamaran_transport::Stream;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use http::{HeaderMap, Method, StatusCode};
use tokio::io::AsyncWriteExt;
use tokio::runtime;
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::admin::metrics::Observed;
use crate::config::{ListenAddress, ListenerConfig};
use crate::listener::{Acceptor, Bound, BoundAddress, Listener};
use crate::worker::Shared;
use crate::worker::counters::{Culprit, Reason};

/// The admin listener of a running front.
#[derive(Debug)]
pub(crate) struct Admin {
    /// As a listener, so that it can be handed over like any other.
    listener: Arc<Listener>,
    stop: oneshot::Sender<()>,
    thread: JoinHandle<()>,
}

impl Admin {
    /// Starts the thread. `bound` has one socket.
    pub(crate) fn start(
        address: ListenAddress,
        bound: Bound,
        shared: Arc<Shared>,
    ) -> io::Result<Self> {
        let runtime = runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let config = ListenerConfig::new(address);
        let listener = Arc::new(Listener::new(config, bound.address.clone(), bound.file));
        let acceptors = {
            let _entered = runtime.enter();
            let adopt = |socket| Ok(listener.add(Acceptor::adopt(socket, &bound.address)?));
            bound
                .sockets
                .into_iter()
                .map(adopt)
                .collect::<io::Result<Vec<_>>>()?
        };
        let (stop, stopped) = oneshot::channel();
        let task = run(shared, Arc::clone(&listener), acceptors, stopped);
        let thread = std::thread::Builder::new()
            .name("admin".to_owned())
            .spawn(move || runtime.block_on(task))?;
        Ok(Self {
            listener,
            stop,
            thread,
        })
    }

    pub(crate) fn listener(&self) -> &Arc<Listener> {
        &self.listener
    }

    /// Its address as bound.
    pub(crate) fn address(&self) -> &BoundAddress {
        self.listener.address()
    }

    /// Stops the thread.
    pub(crate) fn join(self) {
        // It may have ended, if it handed its socket over.
        self.stop.send(()).ok();
        if self.thread.join().is_err() {
            tracing::error!("the admin listener's thread panicked");
        }
    }
}

async fn run(
    shared: Arc<Shared>,
    listener: Arc<Listener>,
    acceptors: Vec<Arc<Acceptor>>,
    stopped: oneshot::Receiver<()>,
) {
    let mut accepting = JoinSet::new();
    for acceptor in acceptors {
        accepting.spawn(accept(Arc::clone(&shared), acceptor));
    }
    tokio::select! {
        _ = listener.drain().begun() => {}
        // Whoever dropped the other end wants the front to go on.
        Ok(()) = stopped => {}
    }
}

/// Accepts for ever; dropped, it drops the connections.
async fn accept(shared: Arc<Shared>, acceptor: Arc<Acceptor>) {
    let mut connections = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            accepted = acceptor.accept() => accepted,
            Some(_) = connections.join_next() => continue,
        };
        match accepted {
            Ok(_) if connections.len() >= CONNECTIONS_MAX => {
                let reason = Reason::new(Culprit::Front, "admin-connections-max");
                shared.counters.reason(reason);
            }
            Ok(incoming) => {
                let serving = serve(Arc::clone(&shared), incoming.stream);
                connections.spawn(timeout(TIMEOUT, serving));
            }
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection of an administrator");
                sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

/// Serves one request and closes.
async fn serve(shared: Arc<Shared>, mut stream: Stream) -> io::Result<()> {
    let mut server = Server::new(Limits::request());
    let mut input = BytesMut::new();
    let page = loop {
        match server.receive(&mut input) {
            Ok(Some(ServerEvent::Head(head))) => {
                break page(&shared, &head.method, &head.target.path);
            }
            Ok(Some(_)) => return Ok(()),
            Ok(None) => {}
            Err(fault) => break Page::text(fault.status(), "This is no request.\n"),
        }
        input.reserve(READ_MIN);
        if poll_fn(|cx| stream.poll_read(cx, &mut input)).await? == 0 {
            return Ok(());
        }
    };
    server.close_after();
    let mut output = BytesMut::new();
    if page.encode(&mut server, &mut output) {
        stream.write_all(&output).await?;
        stream.shutdown().await?;
    }
    Ok(())
}

/// What is answered.
#[derive(Debug, PartialEq, Eq)]
struct Page {
    status: StatusCode,
    kind: &'static str,
    body: String,
}

fn page(shared: &Shared, method: &Method, path: &[u8]) -> Page {
    if !matches!(*method, Method::GET | Method::HEAD) {
        return Page::text(StatusCode::METHOD_NOT_ALLOWED, "Only GET and HEAD.\n");
    }
    match path {
        b"/healthz" => Page::text(StatusCode::OK, "alive\n"),
        b"/readyz" => readiness(&observe(shared)),
        b"/metrics" => Page {
            status: StatusCode::OK,
            kind: "text/plain; version=0.0.4; charset=utf-8",
            body: metrics::render(&observe(shared)),
        },
        _ => Page::text(StatusCode::NOT_FOUND, "/healthz, /readyz, /metrics\n"),
    }
}

fn readiness(observed: &Observed) -> Page {
    let unready = StatusCode::SERVICE_UNAVAILABLE;
    match observed {
        Observed { ready: true, .. } => Page::text(StatusCode::OK, "ready\n"),
        Observed { draining: true, .. } => Page::text(unready, "draining\n"),
        _ => Page::text(unready, "every backend is out\n"),
    }
}

fn observe(shared: &Shared) -> Observed {
    let backends = shared.site.load().status();
    let draining = shared.drain.has_begun();
    let usable = backends.is_empty() || backends.iter().any(|it| it.counts.share > 0);
    Observed {
        counters: shared.counters.snapshot(shared.admission.open()),
        backends,
        log_lines_dropped: shared.access_log.dropped(),
        draining,
        ready: usable && !draining,
    }
}

impl Page {
    fn text(status: StatusCode, body: &str) -> Self {
        Self {
            status,
            kind: "text/plain; charset=utf-8",
            body: body.to_owned(),
        }
    }

    /// `false` if it cannot be sent.
    fn encode(&self, server: &mut Server, output: &mut BytesMut) -> bool {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(self.kind));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        let head = Response {
            status: self.status,
            reason: None,
            headers: &headers,
            extra: &[],
            body: BodyLength::Known(self.body.len() as u64),
        };
        if server.send_head(&head, output).is_err() {
            return false;
        }
        server.send_data(self.body.as_bytes(), output);
        server.send_end(output).is_ok()
    }
}

/// Connections at the same time. A scrape is short, and there are few.
const CONNECTIONS_MAX: usize = 32;

/// Room for a request at least.
const READ_MIN: usize = 1024;

/// How long a connection may take, from the accept to the last byte.
const TIMEOUT: Duration = Duration::from_secs(10);

/// How long accepting rests after a failure.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

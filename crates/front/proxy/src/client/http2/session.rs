//! What the tasks of one connection share: who the client is, its limits, and the state of its connection.
//!
//! All of them run on the worker's thread, so its lock is always free: it is there because tasks must be `Send`.

use std::sync::{Arc, Mutex, MutexGuard};

use bytes::BytesMut;
use catamaran_http2::{Config, Limits, Server};

use crate::client::ClientConnection;
use crate::client::http2::flood::ResetLimit;
use crate::client::http2::line::Line;
use crate::config::ListenerConfig;
use crate::counters::{Culprit, Reason};
use crate::listener::Listener;
use crate::lock::lock;
use crate::peer::PeerFacts;
use crate::trust::is_trusted;
use crate::worker::Worker;

/// One client's connection, for its driver and the tasks of its streams.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) worker: Arc<Worker>,
    /// The listener's settings when it accepted the connection.
    pub(crate) listener: Arc<ListenerConfig>,
    /// The listener itself.
    pub(crate) acceptor: Arc<Listener>,
    pub(crate) peer: PeerFacts,
    /// Whether the peer was one of `trusted_proxies` when it connected: its requests are those of many
    /// users.
    pub(crate) is_trusted: bool,
    /// How many streams may be reset.
    pub(crate) resets: ResetLimit,
    line: Mutex<Line>,
}

impl Session {
    /// A connection on which a client begins to speak HTTP/2. The front's settings are its first output.
    pub(crate) fn new(worker: Arc<Worker>, client: ClientConnection) -> Self {
        worker.counters().h2_connections().increment();
        let listener = Arc::clone(client.config());
        let peer = client.peer();
        let is_trusted = is_trusted(&worker.site().server.trusted_proxies, peer.remote.ip());
        let resets = ResetLimit::per_second(if is_trusted {
            listener.http2.resets_per_second_trusted
        } else {
            listener.http2.resets_per_second
        });
        let begin = |out: &mut BytesMut| {
            let has_tunnels = worker.site().routes.has_tunnels();
            let config = config(&listener, is_trusted, has_tunnels);
            Server::new(limits(&listener.limits), config, out)
        };
        let acceptor = Arc::clone(&client.listener);
        let line = Mutex::new(Line::new(client, worker.deadlines().now(), begin));
        Self {
            worker,
            listener,
            acceptor,
            peer,
            is_trusted,
            resets,
            line,
        }
    }

    /// Counts an event that the client caused, under this token.
    pub(crate) fn count(&self, token: &'static str) {
        self.worker.count(Reason::new(Culprit::Client, token));
    }

    /// The state of the connection. No two calls may be alive in one task.
    pub(crate) fn line(&self) -> MutexGuard<'_, Line> {
        lock(&self.line)
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.worker.counters().h2_connections().decrement();
    }
}

/// The limits on heads of requests, which are those of HTTP/1.1.
pub(crate) fn limits(limits: &catamaran_http1::Limits) -> Limits {
    Limits {
        head_bytes: limits.head_bytes,
        target_bytes: limits.target_bytes,
        line_bytes: limits.line_bytes,
        fields: limits.fields,
    }
}

/// The settings that are announced to the client, and the limits of its connection.
fn config(listener: &ListenerConfig, is_trusted: bool, has_tunnels: bool) -> Config {
    let settings = &listener.http2;
    Config {
        streams_max: settings.streams_max,
        window: settings.window,
        connection_window: settings.connection_window,
        takes_tunnels: has_tunnels,
        resets_remembered: if is_trusted {
            RESETS_TRUSTED_MAX
        } else {
            RESETS_MAX
        },
    }
}

/// Streams that were reset and are remembered, so that frames on their way to them are no error.
const RESETS_MAX: usize = 128;

/// [`RESETS_MAX`] for a trusted proxy, whose connection many users share.
const RESETS_TRUSTED_MAX: usize = 1024;

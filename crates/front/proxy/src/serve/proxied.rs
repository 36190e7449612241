//! Serves connections that begin with a PROXY protocol header, in which a TCP proxy says who the client is.
//!
//! The header comes before everything else, even TLS. The address in it then counts as the client's: in limits,
//! in logs and for backends. If the proxy terminated the client's TLS, the header's facts about it count as the
//! client's TLS. Only the proxies in `proxy_protocol_from` are believed; a connection from anybody else is
//! closed. Header and TLS handshake together may take `handshake_timeout`; without TLS the header may take
//! `head_timeout`.

use std::future::poll_fn;
use std::net::SocketAddr;
use std::sync::Arc;

use catamaran_transport::ProxyError;
use catamaran_upstream::Culprit;
use tokio::time::timeout;

use crate::client::ClientConnection;
use crate::counters::Reason;
use crate::deadlines::Tick;
use crate::listener::admission::Admitted;
use crate::listener::{Incoming, Listener};
use crate::peer::ToldTls;
use crate::serve;
use crate::trust::is_trusted;
use crate::worker::Worker;

/// Whether the peer may send a PROXY protocol header. On a Unix socket every peer may: the socket's mode decides
/// who connects.
pub(super) fn is_believed(listener: &Listener, incoming: &Incoming) -> bool {
    !incoming.is_tcp() || is_trusted(&listener.config().proxy_protocol_from, incoming.remote.ip())
}

/// Reads the PROXY protocol header, completes the TLS handshake if the listener has TLS, and serves the client.
pub(super) async fn serve(
    worker: Arc<Worker>,
    listener: Arc<Listener>,
    mut incoming: Incoming,
    mut admitted: Admitted,
) {
    let deadline = worker.deadlines().join();
    deadline.attach().await;
    let accepted = deadline.now();
    let profile = listener.tls();
    let limit = match &profile {
        Some(profile) => profile.config.handshake_timeout,
        None => listener.config().head_timeout,
    };
    let receiving = poll_fn(|cx| incoming.stream.poll_proxy_header(cx));
    let header = match timeout(limit, receiving).await {
        Ok(Ok(header)) => header,
        Ok(Err(error)) => return count_fault(&worker, incoming.remote, deadline.now(), &error),
        Err(_) => return worker.count(Reason::new(Culprit::Client, "proxy-timeout")),
    };
    // A connection of the proxy itself, such as a health check, has no client whose TLS could have ended there.
    let ends_tls = listener.config().proxy_protocol_tls && !header.is_local;
    incoming.told_tls = ToldTls::new(header.tls, ends_tls);
    // Clients by a Unix socket have no address that could be limited.
    let is_limited = header.addresses.is_some() || incoming.is_tcp();
    if let Some(addresses) = header.addresses {
        incoming.remote = addresses.source;
        incoming.local = addresses.destination;
    }
    let readmitted = worker.admission().admit_address(
        &worker.site(),
        &listener.config(),
        &mut admitted,
        incoming.remote,
        is_limited,
    );
    if let Err(limit) = readmitted {
        return worker.turn_away(limit);
    }
    let mut client = ClientConnection::new(incoming, listener, admitted);
    if let Some(profile) = profile {
        client = match client.expect_tls(profile.current()) {
            Ok(client) => client,
            Err(error) => {
                tracing::error!(%error, "cannot begin TLS");
                return worker.count(Reason::new(Culprit::Front, "tls-handshake"));
            }
        };
        if !serve::shake_hands(&worker, &mut client, &deadline, accepted).await {
            return;
        }
    }
    drop(deadline);
    serve::serve(worker, client).await;
}

/// Counts a connection whose header did not arrive whole or is malformed.
fn count_fault(worker: &Worker, remote: SocketAddr, now: Tick, error: &ProxyError) {
    let reason = Reason::new(Culprit::Client, "proxy-header");
    match error {
        ProxyError::Fault(fault) => {
            if worker.failure_log().is_news(reason.token(), now) {
                tracing::info!(%remote, %fault, %reason, "connection closed; further ones are only counted");
            }
        }
        ProxyError::Closed { begun: true } => {}
        // A probe of the port, such as HAProxy's own.
        ProxyError::Closed { begun: false } | ProxyError::Io(_) => return,
    }
    worker.count(reason);
}

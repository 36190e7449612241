//! The front in this process, between scripted backends and exact clients.

#![expect(
    clippy::unwrap_used,
    reason = "the whole crate is a test; clippy exempts only the functions marked as one"
)]

mod access_log;
mod admin;
mod cache;
mod compress;
mod cookies;
mod corpus;
mod cors;
mod courses;
mod cping;
mod drain;
mod early;
mod error_pages;
mod figures;
mod files;
mod handover;
mod health;
mod hold;
mod http2;
mod leaving;
mod limits;
mod log_page;
mod members;
mod operate;
mod own_answers;
mod policies;
mod probes;
mod proxy_protocol;
mod reload;
mod request_limits;
mod retired;
mod retry;
mod route_timeouts;
mod settings;
mod silence;
mod sticky;
mod totals;
mod traces;
mod tunnels;

use std::net::SocketAddr;
use std::ops::Deref;
use std::path::Path;
use std::thread;
use std::time::Duration;

use catamaran_proxy::config::{
    Address, BackendConfig, Config, ListenAddress, ListenerConfig, Protocol, UpstreamConfig,
};
use catamaran_proxy::{BoundAddress, Running, StartError};
use catamaran_testkit::{Deadline, HttpClient, Peer, Response, Script};

/// A front with two workers that listens on `listen` and hands everything to `backends`.
fn config(listen: &[ListenAddress], backends: Vec<BackendConfig>) -> Config {
    let listeners = listen.iter().cloned().map(ListenerConfig::new).collect();
    let backends = backends.into_iter().map(patient).collect();
    let mut config = Config::of_one(listeners, UpstreamConfig::new("app", backends));
    config.server.workers = 2.try_into().unwrap();
    config.server.drain_timeout = Duration::from_secs(10);
    config
}

/// The backend with long time limits in the place of the usual ones of a few seconds; what the test has set stays. A
/// thread of a slow machine may stand still for so long: its backend would be suspected and probed, which is counted.
fn patient(mut backend: BackendConfig) -> BackendConfig {
    let usual = BackendConfig::new(backend.protocol, backend.address.clone());
    if backend.suspect_after == usual.suspect_after {
        backend.suspect_after = None;
    }
    for (limit, usual) in [
        (&mut backend.queue_timeout, usual.queue_timeout),
        (&mut backend.connect_timeout, usual.connect_timeout),
        (&mut backend.ajp.ping_timeout, usual.ajp.ping_timeout),
    ] {
        if *limit == usual {
            *limit = NEVER;
        }
    }
    backend
}

/// Any free port.
fn loopback() -> ListenAddress {
    ListenAddress::Tcp(([127, 0, 0, 1], 0).into())
}

fn unix(directory: &Path) -> ListenAddress {
    ListenAddress::Unix(directory.join("front.sock"))
}

/// A backend that answers every request of every connection with `body`.
fn backend(body: &str) -> Peer {
    let length = body.len();
    let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{body}");
    let turn = Script::new()
        .expect_until(b"\r\n\r\n")
        .send(answer.as_bytes());
    let all = (0..TURNS).fold(Script::new(), |script, _| script.then(turn.clone()));
    Peer::start(all.stall())
}

fn to(peer: &Peer) -> BackendConfig {
    let at = peer.tcp_address();
    let address = Address::Tcp {
        host: at.ip().to_string(),
        port: at.port(),
    };
    BackendConfig::new(Protocol::Http, address)
}

fn tcp(running: &Running, index: usize) -> SocketAddr {
    match &running.addresses()[index] {
        BoundAddress::Tcp(address) => *address,
        BoundAddress::Unix(path) => panic!("a Unix socket: {}", path.display()),
    }
}

/// One request on a kept-alive connection.
fn ask(client: &mut HttpClient) -> Response {
    client.ask(REQUEST).unwrap()
}

/// One request on a connection of its own.
fn get(address: SocketAddr) -> Response {
    ask(&mut HttpClient::connect(address).unwrap())
}

/// Waits until a reason was counted.
fn wait_for_reason(running: &Running, reason: &str) {
    Deadline::default()
        .poll(reason.to_owned(), || {
            let reasons = running.counters().reasons;
            let found = reasons.keys().any(|it| it.to_string() == reason);
            found.then_some(())
        })
        .unwrap();
}

/// A front that runs until the end of its test.
#[derive(Debug)]
struct Front(Option<Running>);

/// Starts a front.
fn start(config: Config) -> Result<Front, StartError> {
    catamaran_proxy::start(config).map(|running| Front(Some(running)))
}

impl Front {
    /// Waits for the end of a front that drains.
    fn join(mut self) {
        self.0.take().unwrap().join();
    }
}

impl Deref for Front {
    type Target = Running;

    fn deref(&self) -> &Running {
        self.0.as_ref().unwrap()
    }
}

impl Drop for Front {
    fn drop(&mut self) {
        // Nobody waits for a test that has failed.
        if let Some(running) = self.0.take()
            && !thread::panicking()
        {
            running.drain();
            running.join();
        }
    }
}

const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";

/// Requests that a backend's connection answers.
const TURNS: usize = 2000;

/// Longer than any test waits.
const NEVER: Duration = Duration::from_secs(3600);

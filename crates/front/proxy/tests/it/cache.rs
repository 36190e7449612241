//! A cache in front of an origin that says what each response is, and counts what it was asked.

mod coded;
mod fetches;
mod hostile;
pub(crate) mod operate;
mod sharing;
mod split;
mod stale;
mod storing;
mod withheld;

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use catamaran_proxy::config::{Address, BackendConfig, CacheConfig, Config, Protocol, RouteRules};
use catamaran_testkit::{HttpClient, Response};

use crate::{Front, NEVER, config, loopback, start, tcp};

/// A request as the origin got it, and how many it got for its target with it.
pub(crate) struct Asked {
    pub(crate) target: String,
    pub(crate) text: String,
    pub(crate) count: usize,
}

impl Asked {
    /// The value of a field, if there is one.
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        self.text.lines().find_map(|line| {
            let (its, value) = line.split_once(": ")?;
            its.eq_ignore_ascii_case(name).then_some(value)
        })
    }
}

/// What the origin does: bytes to send, and whether it closes then.
pub(crate) type Answering = dyn Fn(&Asked) -> (Vec<u8>, bool) + Send + Sync;

/// A server of HTTP/1.1 that answers by a function.
pub(crate) struct Origin {
    address: SocketAddr,
    shared: Arc<Shared>,
    acceptor: Option<JoinHandle<()>>,
}

struct Shared {
    answer: Box<Answering>,
    counts: Mutex<BTreeMap<String, usize>>,
    is_stopping: AtomicBool,
}

impl Origin {
    pub(crate) fn start(
        answer: impl Fn(&Asked) -> (Vec<u8>, bool) + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared {
            answer: Box::new(answer),
            counts: Mutex::default(),
            is_stopping: AtomicBool::new(false),
        });
        let serving = Arc::clone(&shared);
        let acceptor = thread::spawn(move || {
            while let Ok((socket, _)) = listener.accept() {
                if serving.is_stopping.load(Ordering::SeqCst) {
                    return;
                }
                let serving = Arc::clone(&serving);
                thread::spawn(move || serving.serve(socket));
            }
        });
        Self {
            address,
            shared,
            acceptor: Some(acceptor),
        }
    }

    /// One that gives every response the same fields, and its target and number as body.
    pub(crate) fn saying(fields: &'static str) -> Self {
        Self::start(move |asked| {
            (
                ok(fields, &format!("{} {}", asked.target, asked.count)),
                false,
            )
        })
    }

    /// How often it was asked for a target.
    pub(crate) fn count(&self, target: &str) -> usize {
        let counts = self
            .shared
            .counts
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        counts.get(target).copied().unwrap_or(0)
    }

    pub(crate) fn backend(&self) -> BackendConfig {
        BackendConfig::new(
            Protocol::Http,
            Address::Tcp {
                host: self.address.ip().to_string(),
                port: self.address.port(),
            },
        )
    }
}

impl Drop for Origin {
    fn drop(&mut self) {
        self.shared.is_stopping.store(true, Ordering::SeqCst);
        drop(TcpStream::connect(self.address));
        if let Some(acceptor) = self.acceptor.take() {
            acceptor.join().unwrap();
        }
    }
}

impl Shared {
    fn serve(&self, mut socket: TcpStream) {
        let mut input = Vec::new();
        loop {
            let end = loop {
                if let Some(at) = input.windows(4).position(|it| it == b"\r\n\r\n") {
                    break at + 4;
                }
                let mut buffer = [0; 4096];
                match socket.read(&mut buffer) {
                    Ok(read @ 1..) => input.extend_from_slice(&buffer[..read]),
                    _ => return,
                }
            };
            let text = String::from_utf8_lossy(&input[..end]).into_owned();
            input.drain(..end);
            let target = text.split(' ').nth(1).unwrap_or_default().to_owned();
            let count = {
                let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
                let count = counts.entry(target.clone()).or_default();
                *count += 1;
                *count
            };
            let asked = Asked {
                target,
                text,
                count,
            };
            let (bytes, closes) = (self.answer)(&asked);
            if socket.write_all(&bytes).is_err() || closes {
                return;
            }
        }
    }
}

/// A response with these fields, each line ended, and this body.
pub(crate) fn ok(fields: &str, body: &str) -> Vec<u8> {
    response("200 OK", fields, body)
}

pub(crate) fn response(status: &str, fields: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!("HTTP/1.1 {status}\r\n{fields}Content-Length: {length}\r\n\r\n{body}").into_bytes()
}

/// A front whose only route has a cache.
pub(crate) fn cached(backend: BackendConfig, cache: CacheConfig) -> Config {
    let mut config = config(&[loopback()], vec![backend]);
    let rules = RouteRules {
        cache: Some(cache.name.clone()),
        ..RouteRules::default()
    };
    config.routes[0].rules = Some(Arc::new(rules));
    config.caches = vec![cache];
    config
}

/// A cache in which requests wait for each other however slow the machine is.
pub(crate) fn cache() -> CacheConfig {
    CacheConfig {
        collapse_wait: NEVER,
        ..CacheConfig::new("pages")
    }
}

/// A front with a cache before an origin.
pub(crate) fn front(origin: &Origin, cache: CacheConfig) -> Front {
    start(cached(origin.backend(), cache)).unwrap()
}

/// The response to a request for a target with further fields, each line ended, on a connection of its own.
pub(crate) fn ask_as(front: &Front, method: &str, target: &str, fields: &str) -> Response {
    let mut client = HttpClient::connect(tcp(front, 0)).unwrap();
    let request = format!("{method} {target} HTTP/1.1\r\nHost: a\r\n{fields}\r\n");
    client.send(request.as_bytes()).unwrap();
    match method {
        "HEAD" => client.receive_head().unwrap(),
        _ => client.receive().unwrap(),
    }
}

pub(crate) fn get_as(front: &Front, target: &str, fields: &str) -> Response {
    ask_as(front, "GET", target, fields)
}

pub(crate) fn get(front: &Front, target: &str) -> Response {
    get_as(front, target, "")
}

pub(crate) fn field<'r>(response: &'r Response, name: &str) -> Option<&'r str> {
    let mut headers = response.headers.iter();
    let found = headers.find(|(its, _)| its.eq_ignore_ascii_case(name));
    found.map(|(_, value)| value.as_str())
}

pub(crate) fn body(response: &Response) -> &str {
    std::str::from_utf8(&response.body).unwrap()
}

/// What the cache says that it did.
pub(crate) fn status(response: &Response) -> &str {
    field(response, "cache-status").unwrap_or_default()
}

pub(crate) const FRESH: &str = "Cache-Control: max-age=60\r\n";

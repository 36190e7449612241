//! The page by HTTP/1.1, on a loopback address and to browsers of this machine only.
//!
//! The connector could serve it, and does not: it is one of the servers that the lab measures. An instrument that is
//! built with its subject shares the subject's bugs and restarts with its changes, so no arrow leads from the lab to it
//! (ARCHITECTURE.md, `cargo xtask tidy`). What stands here is a thread that accepts and an answer of one text; how HTTP/1.1
//! is read and written is `http1`'s.
//!
//! A page of somebody else's could have a browser ask here by a name that leads to this machine (DNS
//! rebinding); so whoever asks must name a loopback address, or `localhost`.

use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use bytes::BytesMut;
use catamaran_http1::{BodyLength, Limits, Response, Server, ServerEvent};
use http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderMap, HeaderValue, Method, StatusCode};

/// Serves a page until it is dropped.
#[derive(Debug)]
pub(crate) struct PageServer {
    address: SocketAddr,
    shared: Arc<PageState>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct PageState {
    // A std mutex: held to replace or to copy a text.
    page: Mutex<Arc<str>>,
    is_over: AtomicBool,
    connections: AtomicUsize,
}

impl PageServer {
    pub(crate) fn start(listener: TcpListener, page: String) -> io::Result<Self> {
        let address = listener.local_addr()?;
        let shared = Arc::new(PageState::default());
        let accepting = Arc::clone(&shared);
        let mut site = Self {
            address,
            shared,
            thread: None,
        };
        site.show(page);
        let thread = thread::Builder::new().name("page".to_owned());
        site.thread = Some(thread.spawn(move || accept(&listener, &accepting))?);
        Ok(site)
    }

    /// What is served from now on.
    pub(crate) fn show(&self, page: String) {
        let mut shown = self
            .shared
            .page
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        *shown = page.into();
    }
}

impl Drop for PageServer {
    fn drop(&mut self) {
        let Some(thread) = self.thread.take() else {
            return;
        };
        self.shared.is_over.store(true, Ordering::SeqCst);
        // It looks when somebody comes. If nobody can, it ends with the process.
        if TcpStream::connect_timeout(&self.address, PATIENCE).is_ok() {
            let _ = thread.join();
        }
    }
}

fn accept(listener: &TcpListener, shared: &Arc<PageState>) {
    for client in listener.incoming() {
        if shared.is_over.load(Ordering::SeqCst) {
            return;
        }
        let Ok(client) = client else {
            // Such as too many open files: it may pass.
            thread::park_timeout(PAUSE);
            continue;
        };
        // Beyond that a client is turned away: a browser has six connections.
        if shared.connections.fetch_add(1, Ordering::SeqCst) >= CONNECTIONS_MAX {
            shared.connections.fetch_sub(1, Ordering::SeqCst);
            continue;
        }
        let of_client = Arc::clone(shared);
        let spawned = thread::Builder::new().spawn(move || {
            // A client that breaks off has nobody to be told.
            let _ = serve(client, &of_client);
            of_client.connections.fetch_sub(1, Ordering::SeqCst);
        });
        if spawned.is_err() {
            shared.connections.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

/// One request, and the connection is closed: the next one is a second away.
fn serve(mut client: TcpStream, shared: &PageState) -> io::Result<()> {
    client.set_read_timeout(Some(PATIENCE))?;
    client.set_write_timeout(Some(PATIENCE))?;
    let mut server = Server::new(Limits::request());
    let (mut input, mut output) = (BytesMut::new(), BytesMut::new());
    let mut buffer = [0; 4096];
    let reply = loop {
        match server.receive(&mut input) {
            Ok(Some(ServerEvent::Head(head))) => {
                let authority = head.authority.as_ref();
                let is_own = authority.is_some_and(|it| {
                    it.ip()
                        .map_or(&it.host[..] == b"localhost", |ip| ip.is_loopback())
                });
                break reply(&head.method, is_own, &head.target.path);
            }
            Ok(_) => {}
            Err(fault) => break Err(fault.status()),
        }
        match client.read(&mut buffer)? {
            0 => return Ok(()),
            read => input.extend_from_slice(&buffer[..read]),
        }
    };
    let page = Arc::clone(&shared.page.lock().unwrap_or_else(PoisonError::into_inner));
    let (status, kind, text) = match reply {
        Ok(()) => (StatusCode::OK, "text/html; charset=utf-8", &*page),
        Err(status) => {
            let reason = status.canonical_reason().unwrap_or_default();
            (status, "text/plain; charset=utf-8", reason)
        }
    };
    server.close_after();
    let mut headers = HeaderMap::new();
    for (name, value) in [
        (CONTENT_TYPE, kind),
        (CACHE_CONTROL, "no-store"),
        (CONTENT_SECURITY_POLICY, POLICY),
        (REFERRER_POLICY, "no-referrer"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    let head = Response {
        status,
        reason: None,
        headers: &headers,
        extra: &[],
        body: BodyLength::Known(text.len() as u64),
    };
    let sent = server.send_head(&head, &mut output);
    sent.map_err(io::Error::other)?;
    server.send_data(text.as_bytes(), &mut output);
    server.send_end(&mut output).map_err(io::Error::other)?;
    client.write_all(&output)
}

/// Whether a request gets the page, or the status that it gets instead.
fn reply(method: &Method, is_own: bool, path: &[u8]) -> Result<(), StatusCode> {
    match (is_own, method, path) {
        (false, ..) => Err(StatusCode::MISDIRECTED_REQUEST),
        (true, &Method::GET | &Method::HEAD, b"/") => Ok(()),
        (true, &Method::GET | &Method::HEAD, _) => Err(StatusCode::NOT_FOUND),
        (true, ..) => Err(StatusCode::METHOD_NOT_ALLOWED),
    }
}

/// The page has a style of its own and loads nothing.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; \
                      form-action 'none'; frame-ancestors 'none'";
/// How long a client may take for its request, or to take the page.
const PATIENCE: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(100);
const CONNECTIONS_MAX: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(address: SocketAddr, request: &str) -> String {
        let mut client = TcpStream::connect(address).unwrap();
        client.write_all(request.as_bytes()).unwrap();
        let mut text = String::new();
        client.read_to_string(&mut text).unwrap();
        text
    }

    #[test]
    fn only_those_who_name_this_machine_get_the_page() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let _site = PageServer::start(listener, "<p>page".to_owned()).unwrap();
        for (method, host, path, status) in [
            ("GET", "127.0.0.1:8081", "/", "200"),
            ("GET", "127.8.0.1", "/", "200"),
            ("GET", "[::1]:80", "/", "200"),
            ("GET", "LocalHost:8081", "/", "200"),
            ("GET", "example.org", "/", "421"),
            ("GET", "192.0.2.1", "/", "421"),
            ("GET", "", "/", "400"),
            ("GET", "localhost.example.org", "/", "421"),
            ("GET", "localhost", "/favicon.ico", "404"),
            ("POST", "localhost", "/", "405"),
        ] {
            let request = format!("{method} {path} HTTP/1.1\r\nHost: {host}\r\n\r\n");
            let text = ask(address, &request);
            let expected = format!("HTTP/1.1 {status} ");
            assert!(text.starts_with(&expected), "{request} {text}");
            assert_eq!(
                text.ends_with("<p>page"),
                status == "200",
                "{request} {text}"
            );
        }
    }

    #[test]
    fn the_latest_page_is_served_and_hostile_bytes_are_not() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let site = PageServer::start(listener, "<p>one".to_owned()).unwrap();
        let get = format!("GET / HTTP/1.1\r\nHost: {address}\r\n\r\n");
        let text = ask(address, &get);
        assert!(text.starts_with("HTTP/1.1 200 "), "{text}");
        assert!(
            text.contains("default-src 'none'") && text.ends_with("<p>one"),
            "{text}"
        );
        site.show("<p>two".to_owned());
        assert!(ask(address, &get).ends_with("<p>two"));
        let head = ask(address, &get.replace("GET", "HEAD"));
        assert!(head.contains("200") && head.ends_with("\r\n\r\n"), "{head}");
        let other = ask(address, "GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n");
        assert!(other.starts_with("HTTP/1.1 421 "), "{other}");
        let bad = ask(
            address,
            "GET / HTTP/1.1\r\nHost: localhost\r\nA : b\r\n\r\n",
        );
        assert!(bad.starts_with("HTTP/1.1 400 "), "{bad}");
        drop(site);
        assert!(
            TcpListener::bind(address).is_ok(),
            "nobody listens there any more"
        );
    }
}

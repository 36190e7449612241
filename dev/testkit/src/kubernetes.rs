//! A stand-in for the API server of Kubernetes, which a test changes while it runs: the EndpointSlices of one Service,
//! with lists in pages, watches, bookmarks, versions that are too old, tokens, and failures.

use std::collections::BTreeMap;
use std::io::{self, Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use socket2::SockRef;

use crate::tls::{Authority, End};

/// A stand-in for the API server. It serves until the test ends.
#[derive(Debug)]
pub struct KubernetesApi {
    address: SocketAddr,
    shared: Arc<Shared>,
}

/// A pod as an endpoint of a Service: its name, its address, and its conditions.
#[derive(Clone, Debug)]
pub struct PodEndpoint {
    name: String,
    ip: IpAddr,
    ready: bool,
    serving: bool,
    terminating: bool,
}

impl PodEndpoint {
    /// A pod that is ready.
    #[must_use]
    pub fn ready(name: &str, ip: IpAddr) -> Self {
        let name = name.to_owned();
        let (ready, serving, terminating) = (true, true, false);
        Self {
            name,
            ip,
            ready,
            serving,
            terminating,
        }
    }

    /// The pod while it terminates and still serves.
    #[must_use]
    pub fn terminating(self) -> Self {
        Self {
            ready: false,
            terminating: true,
            ..self
        }
    }

    /// The pod while it is not ready.
    #[must_use]
    pub fn unready(self) -> Self {
        Self {
            ready: false,
            serving: false,
            ..self
        }
    }

    fn json(&self) -> String {
        let Self {
            name,
            ip,
            ready,
            serving,
            terminating,
        } = self;
        format!(
            r#"{{"addresses":["{ip}"],"conditions":{{"ready":{ready},"serving":{serving},"terminating":{terminating}}},"nodeName":"n1","targetRef":{{"kind":"Pod","namespace":"shop","name":"{name}","uid":"0"}}}}"#
        )
    }
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    version: u64,
    /// The oldest version from which a watch may begin.
    oldest: u64,
    slices: BTreeMap<String, String>,
    service: Option<String>,
    /// What watches are sent, with the version after it.
    log: Vec<(u64, Sent)>,
    /// The token that requests must have; `None`: any or none.
    token: Option<String>,
    /// The status of every answer; `None`: as it should be.
    refusal: Option<u16>,
    page: Option<usize>,
    is_away: bool,
    hangs: bool,
    /// Whether each watch gets a bookmark and ends as too old.
    expires: bool,
    asked: Vec<String>,
}

/// What becomes of a request.
enum Reply {
    Text(u16, String),
    Watch(Watch),
    /// The connection is reset.
    Reset,
}

/// A watch that has begun.
struct Watch {
    /// What a watch is told that cannot begin at its version, and then ends; `None`: it can.
    expired: Option<String>,
    /// The place in the log of what it is told next.
    next: usize,
    /// The length of the log when it began.
    begin: usize,
}

/// What all open watches are sent.
#[derive(Clone, Debug)]
enum Sent {
    /// A line that tells of an object; also for watches that begin later with an older version.
    Line(String),
    /// Any bytes.
    Raw(Vec<u8>),
    /// The end of the watch, in order.
    End,
    /// A reset of the connection.
    Reset,
}

impl KubernetesApi {
    /// Starts a stand-in at a port of loopback, in clear text.
    ///
    /// # Panics
    /// No port is free.
    #[must_use]
    pub fn start() -> Self {
        Self::serve(Arc::new(|stream| Ok(Wire { stream, tls: None })))
    }

    /// Like [`KubernetesApi::start`], over TLS with a certificate of this authority for 127.0.0.1.
    ///
    /// # Panics
    /// No port is free, or the authority cannot sign.
    #[must_use]
    pub fn start_tls(authority: &Authority) -> Self {
        use catamaran_tls::{Connection, Protocols};

        let pair = authority
            .sign(&["127.0.0.1"], |_| {})
            .expect("a certificate");
        let profile = crate::tls::profile(&crate::tls::settings(), &crate::tls::files(&[pair]));
        Self::serve(Arc::new(move |stream| {
            let made = Connection::server(&profile, Protocols::Http1);
            let end = End::new(made.map_err(io::Error::other)?);
            Ok(Wire {
                stream,
                tls: Some(Box::new(end)),
            })
        }))
    }

    fn serve(open: Arc<dyn Fn(TcpStream) -> io::Result<Wire> + Send + Sync>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("a bound socket");
        let shared = Arc::new(Shared::default());
        shared.lock().version = 1;
        let serving = Arc::clone(&shared);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (shared, open) = (Arc::clone(&serving), Arc::clone(&open));
                thread::spawn(move || {
                    let served = open(stream).and_then(|mut wire| shared.serve(&mut wire));
                    // A client that leaves does not concern others.
                    served.ok();
                });
            }
        });
        Self { address, shared }
    }

    /// The server's address.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Sets a slice of the Service with these pods, which all have the port `ajp` and its `appProtocol`.
    pub fn set(&self, name: &str, port: u16, protocol: &str, pods: &[PodEndpoint]) {
        let family = match pods.first() {
            Some(pod) if pod.ip.is_ipv6() => "IPv6",
            _ => "IPv4",
        };
        let endpoints: Vec<String> = pods.iter().map(PodEndpoint::json).collect();
        let endpoints = endpoints.join(",");
        self.set_text(
            name,
            &format!(
                r#""addressType":"{family}","ports":[{{"name":"app","port":{port},"protocol":"TCP","appProtocol":"{protocol}"}}],"endpoints":[{endpoints}]"#
            ),
        );
    }

    /// Sets a slice whose fields besides its metadata are these, in JSON.
    pub fn set_text(&self, name: &str, fields: &str) {
        let mut state = self.shared.lock();
        state.version += 1;
        let version = state.version;
        let object = format!(
            r#"{{"kind":"EndpointSlice","apiVersion":"discovery.k8s.io/v1","metadata":{{"name":"{name}","resourceVersion":"{version}","labels":{{}}}},{fields}}}"#
        );
        let known = state.slices.insert(name.to_owned(), object.clone());
        let kind = if known.is_some() { "MODIFIED" } else { "ADDED" };
        let line = format!("{{\"type\":\"{kind}\",\"object\":{object}}}\n");
        state.log.push((version, Sent::Line(line)));
        self.shared.changed.notify_all();
    }

    /// Removes a slice.
    pub fn delete(&self, name: &str) {
        let mut state = self.shared.lock();
        state.version += 1;
        let version = state.version;
        if let Some(object) = state.slices.remove(name) {
            let line = format!("{{\"type\":\"DELETED\",\"object\":{object}}}\n");
            state.log.push((version, Sent::Line(line)));
        }
        self.shared.changed.notify_all();
    }

    /// Sets the families of addresses of the Service, such as `"IPv6","IPv4"`.
    pub fn set_families(&self, families: &str) {
        let text = format!(
            r#"{{"kind":"Service","metadata":{{"name":"app"}},"spec":{{"ipFamilies":[{families}]}}}}"#
        );
        self.shared.lock().service = Some(text);
    }

    /// Sends a bookmark to all watches.
    pub fn bookmark(&self) {
        let version = self.shared.lock().version;
        self.send(Sent::Raw(bookmark(version).into_bytes()));
    }

    /// Sends bytes to all watches.
    pub fn send_raw(&self, bytes: &[u8]) {
        self.send(Sent::Raw(bytes.to_vec()));
    }

    /// Ends all watches in order.
    pub fn end_watches(&self) {
        self.send(Sent::End);
    }

    /// Resets the connections of all watches.
    pub fn reset_watches(&self) {
        self.send(Sent::Reset);
    }

    fn send(&self, sent: Sent) {
        let mut state = self.shared.lock();
        let version = state.version;
        state.log.push((version, sent));
        self.shared.changed.notify_all();
    }

    /// Forgets old versions: all watches get an error 410, and none may begin before the present version.
    pub fn compact(&self) {
        let mut state = self.shared.lock();
        state.version += 1;
        let version = state.version;
        state.oldest = version;
        let line = Sent::Raw(EXPIRED.as_bytes().to_vec());
        state.log.extend([(version, line), (version, Sent::End)]);
        self.shared.changed.notify_all();
    }

    /// Answers all further requests with this status; `None`: as it should be.
    pub fn refuse(&self, status: Option<u16>) {
        self.shared.lock().refusal = status;
    }

    /// Requires this token of further requests.
    pub fn require_token(&self, token: &str) {
        self.shared.lock().token = Some(token.to_owned());
    }

    /// Limits pages of lists to this many objects.
    pub fn limit_pages(&self, objects: usize) {
        self.shared.lock().page = Some(objects);
    }

    /// Whether the server is away: its connections are reset, and so are new ones.
    pub fn set_away(&self, is_away: bool) {
        let mut state = self.shared.lock();
        state.is_away = is_away;
        if is_away {
            let version = state.version;
            state.log.push((version, Sent::Reset));
        }
        self.shared.changed.notify_all();
    }

    /// Whether the server accepts requests and does not answer them.
    pub fn set_hanging(&self, hangs: bool) {
        self.shared.lock().hangs = hangs;
        self.shared.changed.notify_all();
    }

    /// Whether each watch gets a bookmark and, in the same piece, an error 410.
    pub fn expire_watches(&self, expires: bool) {
        self.shared.lock().expires = expires;
    }

    /// The targets of all requests so far.
    #[must_use]
    pub fn asked(&self) -> Vec<String> {
        self.shared.lock().asked.clone()
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Serves one connection until it ends.
    fn serve(&self, wire: &mut Wire) -> io::Result<()> {
        if self.lock().is_away {
            return wire.reset();
        }
        while let Some(head) = wire.read_head()? {
            match self.reply(&head) {
                Reply::Reset => return wire.reset(),
                Reply::Text(status, text) => wire.answer(status, &text)?,
                Reply::Watch(watch) => self.watch(wire, watch)?,
            }
        }
        Ok(())
    }

    /// Records a request, and decides what becomes of it while the state cannot change. Otherwise a watch that a test
    /// refuses or resets at that moment could be open afterwards.
    fn reply(&self, head: &str) -> Reply {
        let target = head.split(' ').nth(1).unwrap_or_default();
        let token = head
            .lines()
            .find_map(|line| line.strip_prefix("Authorization: Bearer "));
        let mut state = self.lock();
        if state.is_away {
            return Reply::Reset;
        }
        state.asked.push(target.to_owned());
        let hangs = |state: &mut State| state.hangs && !state.is_away;
        let waited = self.changed.wait_while(state, hangs);
        let state = waited.unwrap_or_else(PoisonError::into_inner);
        if state.is_away {
            return Reply::Reset;
        }
        if let Some(status) = state.refusal(token) {
            return Reply::Text(status, REFUSED.to_owned());
        }
        if target.contains("watch=1") {
            let from = parameter(target, "resourceVersion").parse().unwrap_or(0);
            return Reply::Watch(state.watch(from));
        }
        let (status, text) = state.object(target);
        Reply::Text(status, text)
    }

    /// Sends what happens from the beginning of a watch on.
    fn watch(&self, wire: &mut Wire, watch: Watch) -> io::Result<()> {
        wire.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n")?;
        let Watch {
            expired,
            mut next,
            begin,
        } = watch;
        if let Some(lines) = expired {
            wire.write_chunk(lines.as_bytes())?;
            return wire.write(b"0\r\n\r\n");
        }
        loop {
            let mut state = self.lock();
            while next >= state.log.len() {
                state = self
                    .changed
                    .wait(state)
                    .unwrap_or_else(PoisonError::into_inner);
            }
            let (_, sent) = state.log[next].clone();
            // Only objects are told to those that come later.
            let is_past = next < begin;
            drop(state);
            next += 1;
            match sent {
                Sent::Line(line) => wire.write_chunk(line.as_bytes())?,
                _ if is_past => {}
                Sent::Raw(bytes) => wire.write_chunk(&bytes)?,
                Sent::End => return wire.write(b"0\r\n\r\n"),
                Sent::Reset => return wire.reset(),
            }
        }
    }
}

impl State {
    /// The status with which a request with this token is refused; `None`: it is not.
    fn refusal(&self, token: Option<&str>) -> Option<u16> {
        let has_token = self
            .token
            .as_deref()
            .is_none_or(|expected| token == Some(expected));
        self.refusal.or_else(|| (!has_token).then_some(401))
    }

    /// A page of the list, or the Service.
    fn object(&self, target: &str) -> (u16, String) {
        if target.contains("/services/") {
            return match &self.service {
                Some(service) => (200, service.clone()),
                None => (404, "{}".to_owned()),
            };
        }
        let wanted = parameter(target, "limit").parse().unwrap_or(usize::MAX);
        let size = self.page.map_or(wanted, |page| page.min(wanted));
        let begin: usize = parameter(target, "continue").parse().unwrap_or(0);
        let items: Vec<&str> = self
            .slices
            .values()
            .skip(begin)
            .take(size)
            .map(|it| &it[..])
            .collect();
        let end = begin + items.len();
        let next = if end < self.slices.len() {
            end.to_string()
        } else {
            String::new()
        };
        let (version, items) = (self.version, items.join(","));
        let text = format!(
            r#"{{"kind":"EndpointSliceList","metadata":{{"resourceVersion":"{version}","continue":"{next}"}},"items":[{items}]}}"#
        );
        (200, text)
    }

    /// A watch that begins now, for what happened after this version.
    fn watch(&self, from: u64) -> Watch {
        let bookmark = self.expires.then(|| bookmark(self.version));
        let is_expired = from < self.oldest || self.expires;
        let known = self
            .log
            .iter()
            .take_while(|(version, _)| *version <= from)
            .count();
        Watch {
            expired: is_expired.then(|| bookmark.unwrap_or_default() + EXPIRED),
            next: known,
            begin: self.log.len(),
        }
    }
}

/// The line of a bookmark.
fn bookmark(version: u64) -> String {
    format!(
        "{{\"type\":\"BOOKMARK\",\"object\":{{\"kind\":\"EndpointSlice\",\"metadata\":{{\"resourceVersion\":\"{version}\"}},\"addressType\":\"\",\"endpoints\":null,\"ports\":null}}}}\n"
    )
}

/// The value of a parameter in a target, as it is written there.
fn parameter<'t>(target: &'t str, name: &str) -> &'t str {
    let query = target.split_once('?').map_or("", |(_, query)| query);
    let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    pairs
        .find(|(key, _)| *key == name)
        .map_or("", |(_, value)| value)
}

/// A connection of a client.
struct Wire {
    stream: TcpStream,
    /// The TLS of the connection; `None`: it is in clear text.
    tls: Option<Box<End>>,
}

impl Wire {
    /// Reads the head of a request; `None`: the client has closed.
    fn read_head(&mut self) -> io::Result<Option<String>> {
        let mut head = Vec::new();
        let mut buffer = [0; 4096];
        while !head.ends_with(b"\r\n\r\n") {
            let count = self.stream.read(&mut buffer)?;
            if count == 0 {
                return Ok(None);
            }
            self.open(&buffer[..count], &mut head)?;
        }
        Ok(Some(String::from_utf8_lossy(&head).into_owned()))
    }

    fn answer(&mut self, status: u16, text: &str) -> io::Result<()> {
        let length = text.len();
        let head = format!("HTTP/1.1 {status} X\r\nContent-Length: {length}\r\n\r\n");
        self.write((head + text).as_bytes())
    }

    fn write_chunk(&mut self, bytes: &[u8]) -> io::Result<()> {
        let size = format!("{:x}\r\n", bytes.len());
        self.write(&[size.as_bytes(), bytes, b"\r\n"].concat())
    }

    /// Closes the connection by a reset.
    fn reset(&self) -> io::Result<()> {
        SockRef::from(&self.stream).set_linger(Some(Duration::ZERO))?;
        Err(io::ErrorKind::ConnectionReset.into())
    }

    fn open(&mut self, bytes: &[u8], head: &mut Vec<u8>) -> io::Result<()> {
        let Some(end) = &mut self.tls else {
            head.extend_from_slice(bytes);
            return Ok(());
        };
        end.receive(bytes).map_err(io::Error::other)?;
        head.extend_from_slice(&end.plain.split());
        let out = std::mem::take(&mut end.out);
        self.stream.write_all(&out)
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let Some(end) = &mut self.tls else {
            return self.stream.write_all(bytes);
        };
        end.seal(bytes);
        let out = std::mem::take(&mut end.out);
        self.stream.write_all(&out)
    }
}

const REFUSED: &str = r#"{"kind":"Status","status":"Failure","message":"refused","code":0}"#;

const EXPIRED: &str = "{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"metadata\":{},\"status\":\"Failure\",\"message\":\"too old resource version\",\"reason\":\"Expired\",\"code\":410}}\n";

//! A backend that writes down every request it gets and answers as it is told.
//!
//! It speaks HTTP/1.1 or AJP13. What it writes down is one line of text, the same for both
//! protocols, so that a row of the table says once what a backend must see. Requests of parallel
//! tests meet here: each carries an [`Id`] somewhere in its head, and by that a test finds its own.

use std::collections::HashMap;
use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use bytes::BytesMut;
use catamaran_testkit::Deadline;

use super::wire;

/// What the backend speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    /// HTTP/1.1
    Http,
    /// AJP13
    Ajp,
}

/// Whose front sends the requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Front {
    /// Ours: what it adds on its own account is known exactly.
    Ours,
    /// Another: what fronts usually add is left out of the texts.
    Another,
}

/// A name for one request, unique in the process and of fixed length.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Id(String);

/// What to send instead of the usual answer.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) bytes: Vec<u8>,
    /// The lengths of the writes, in turn; the last holds for all that is left.
    pub(crate) pieces: Vec<usize>,
    /// Answer when the head has arrived, whatever is missing of the body.
    pub(crate) is_early: bool,
    pub(crate) then: Then,
}

/// What follows an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Then {
    /// The connection stays open, further requests are served.
    Serve,
    /// The connection is closed.
    Close,
    /// The connection is reset.
    Reset,
}

/// A running backend. Dropping it stops accepting; its connections end with the front's.
#[derive(Debug)]
pub(crate) struct Backend {
    protocol: Protocol,
    pub(crate) address: SocketAddr,
    shared: Arc<Shared>,
    acceptor: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    // A std mutex: held for a push or a look, never while waiting for a socket.
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    connections: Vec<Connection>,
    answers: HashMap<Id, Answer>,
    /// What CPING is answered instead of CPONG.
    pong: Option<Vec<u8>>,
    /// Complete requests, in the order of their arrival.
    seen: HashMap<Id, Vec<String>>,
    /// Requests without a name.
    strays: Vec<String>,
    /// The connections on which a name arrived, as part of whatever.
    places: HashMap<Id, Vec<usize>>,
    stopping: bool,
}

/// What is known of one connection.
#[derive(Clone, Debug, Default)]
pub(crate) struct Connection {
    /// The requests whose heads arrived, in order.
    pub(crate) requests: Vec<Option<Id>>,
    /// Everything received, behind each other.
    pub(crate) received: Vec<u8>,
    /// Requests answered as told, to the last byte.
    pub(crate) played: Vec<Id>,
    /// It is closed, by whichever side.
    pub(crate) ended: bool,
}

impl Protocol {
    pub(crate) const ALL: [Self; 2] = [Self::Http, Self::Ajp];
}

impl Id {
    const DIGITS: usize = 7;

    /// A name nobody has.
    pub(crate) fn new() -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        Self(format!("i{number:0width$}", width = Self::DIGITS))
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// The names in `bytes`.
    fn find(bytes: &[u8]) -> impl Iterator<Item = Self> + '_ {
        let is_name = |word: &&[u8]| word[0] == b'i' && word[1..].iter().all(u8::is_ascii_digit);
        let names = bytes.windows(1 + Self::DIGITS).filter(is_name);
        names.map(|name| Self(String::from_utf8_lossy(name).into_owned()))
    }
}

impl Answer {
    /// `bytes` in one write, then what `then` says.
    pub(crate) fn whole(bytes: &[u8], then: Then) -> Self {
        Self {
            bytes: bytes.to_vec(),
            pieces: vec![usize::MAX],
            is_early: false,
            then,
        }
    }
}

impl Backend {
    /// A backend for a front of ours: it notices what such a front would not do.
    pub(crate) fn start(protocol: Protocol) -> io::Result<Self> {
        Self::start_for(protocol, Front::Ours)
    }

    pub(crate) fn start_for(protocol: Protocol, front: Front) -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0))?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared::default());
        let acceptor = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || accept(&listener, (protocol, front), &shared))
        };
        Ok(Self {
            protocol,
            address,
            shared,
            acceptor: Some(acceptor),
        })
    }

    /// As an upstream's URL.
    pub(crate) fn url(&self) -> String {
        let scheme = match self.protocol {
            Protocol::Http => "http",
            Protocol::Ajp => "ajp",
        };
        format!("{scheme}://{}", self.address)
    }

    /// The request named `id` is to be answered so, the first time it comes.
    pub(crate) fn answer(&self, id: &Id, answer: Answer) {
        self.shared.lock().answers.insert(id.clone(), answer);
    }

    /// Every CPING is to be answered so.
    pub(crate) fn answer_pings(&self, bytes: &[u8]) {
        self.shared.lock().pong = Some(bytes.to_vec());
    }

    /// The complete requests named `id`, in the order of their arrival.
    pub(crate) fn seen(&self, id: &Id) -> Vec<String> {
        self.shared.lock().seen.get(id).cloned().unwrap_or_default()
    }

    /// Requests that have no name, and so came from nowhere.
    pub(crate) fn strays(&self) -> Vec<String> {
        self.shared.lock().strays.clone()
    }

    /// The numbers of the connections on which the name `id` arrived, in whatever.
    pub(crate) fn connections_of(&self, id: &Id) -> Vec<usize> {
        let state = self.shared.lock();
        state.places.get(id).cloned().unwrap_or_default()
    }

    pub(crate) fn connection(&self, index: usize) -> Connection {
        self.shared.lock().connections[index].clone()
    }

    /// Waits until `wanted` holds for connection `index`; `false` if it does not in time.
    pub(crate) fn wait(&self, index: usize, mut wanted: impl FnMut(&Connection) -> bool) -> bool {
        let deadline = Deadline::default();
        let mut state = self.shared.lock();
        loop {
            if wanted(&state.connections[index]) {
                return true;
            }
            let Some(left) = deadline.remaining() else {
                return false;
            };
            let waited = self.shared.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl Drop for Backend {
    fn drop(&mut self) {
        self.shared.lock().stopping = true;
        // The acceptor waits in `accept`: one last connection wakes it.
        let _ = TcpStream::connect(self.address);
        if let Some(acceptor) = self.acceptor.take() {
            let _ = acceptor.join();
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let value = change(&mut self.lock());
        self.changed.notify_all();
        value
    }
}

fn accept(listener: &TcpListener, (protocol, front): (Protocol, Front), shared: &Arc<Shared>) {
    while let Ok((socket, _)) = listener.accept() {
        let index = shared.change(|state| {
            state.connections.push(Connection::default());
            (!state.stopping).then_some(state.connections.len() - 1)
        });
        let Some(index) = index else { return };
        let _ = socket.set_nodelay(true);
        let mut conn = Conn {
            socket,
            input: BytesMut::new(),
            index,
            played: false,
            front,
            shared: Arc::clone(shared),
        };
        thread::spawn(move || {
            conn.serve(protocol);
            let Conn {
                socket,
                index,
                shared,
                ..
            } = conn;
            drop(socket);
            shared.change(|state| state.connections[index].ended = true);
        });
    }
}

/// The backend's end of one connection.
pub(crate) struct Conn {
    socket: TcpStream,
    /// Received and not yet consumed.
    pub(crate) input: BytesMut,
    index: usize,
    pub(crate) front: Front,
    /// The last answer was given as told; it may have provoked anything.
    played: bool,
    shared: Arc<Shared>,
}

impl Conn {
    /// Reads and records once; `false` at the end.
    pub(crate) fn fill(&mut self) -> bool {
        let mut buffer = [0; 16 * 1024];
        let Ok(count @ 1..) = self.socket.read(&mut buffer) else {
            return false;
        };
        let bytes = &buffer[..count];
        self.input.extend_from_slice(bytes);
        let index = self.index;
        self.shared.change(|state| {
            let received = &mut state.connections[index].received;
            // A name may have arrived in two pieces.
            let from = received.len().saturating_sub(Id::DIGITS);
            received.extend_from_slice(bytes);
            for id in Id::find(&received[from..]) {
                let places = state.places.entry(id).or_default();
                if places.last() != Some(&index) {
                    places.push(index);
                }
            }
        });
        true
    }

    /// Answers CPING.
    pub(crate) fn pong(&mut self) {
        let told = self.shared.lock().pong.clone();
        let _ = self.send(told.as_deref().unwrap_or(b"AB\0\x01\x09"));
    }

    /// Something arrived that is no request.
    pub(crate) fn unexpected(&self, bytes: &[u8]) {
        if !self.played {
            let text = format!("unexpected: {}", bytes.escape_ascii());
            self.shared.change(|state| state.strays.push(text));
        }
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) -> bool {
        self.socket.write_all(bytes).is_ok()
    }

    fn serve(&mut self, protocol: Protocol) {
        loop {
            let received = match protocol {
                Protocol::Http => wire::http_head(self),
                Protocol::Ajp => wire::ajp_head(self),
            };
            let Some((head, mut request)) = received else {
                return;
            };
            let id = Id::find(&head).next();
            let answer = self.begin(id.as_ref());
            let is_early = answer.as_ref().is_some_and(|answer| answer.is_early);
            if !is_early {
                if !request.read_body(self) {
                    return;
                }
                self.complete(id.as_ref(), request.text());
            }
            self.played = answer.is_some();
            let goes_on = match answer {
                Some(answer) => {
                    let goes_on = self.play(&answer);
                    self.shared.change(|state| {
                        let played = &mut state.connections[self.index].played;
                        played.extend(id);
                    });
                    goes_on
                }
                // 200 with the request's name as the body.
                None => {
                    let body = id.as_ref().map_or("", Id::as_str);
                    let bytes = request.usual_answer(body.as_bytes(), &self.input);
                    self.send(&bytes)
                }
            };
            if !goes_on {
                return;
            }
        }
    }

    /// Records that a request has begun and looks up its answer.
    fn begin(&self, id: Option<&Id>) -> Option<Answer> {
        self.shared.change(|state| {
            state.connections[self.index].requests.push(id.cloned());
            id.and_then(|id| state.answers.remove(id))
        })
    }

    fn complete(&self, id: Option<&Id>, text: String) {
        self.shared.change(|state| match id {
            Some(id) => state.seen.entry(id.clone()).or_default().push(text),
            None => state.strays.push(text),
        });
    }

    fn play(&mut self, answer: &Answer) -> bool {
        let mut rest = &answer.bytes[..];
        let mut pieces = answer.pieces.iter();
        let mut length = usize::MAX;
        while !rest.is_empty() {
            length = pieces.next().copied().unwrap_or(length);
            let (piece, after) = rest.split_at(length.min(rest.len()));
            rest = after;
            if !self.send(piece) {
                return false;
            }
            thread::yield_now();
        }
        if answer.then == Then::Reset {
            let socket = socket2::SockRef::from(&self.socket);
            let _ = socket.set_linger(Some(std::time::Duration::ZERO));
        }
        answer.then == Then::Serve
    }
}

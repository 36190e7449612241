//! A relay and a server that do not read the bytes they move. Their CPU time is the part of the
//! others' that is the kernel's alone.
//!
//! A front that understands HTTP cannot be cheaper than the relay: it, too, makes one read and one
//! write on either side for each request. Nor can a server be cheaper than one that writes the same
//! bytes after each read. They stand in the tables beside those that do something useful, and run as
//! processes of their own: this program, called with [`RELAY`] or [`ANSWER`].

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::path::Path;

use anyhow::Context;
use rustix::buffer::spare_capacity;
use rustix::event::epoll;
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};

use super::contender::PAGE_BYTES;

/// What this program is called with to be the relay: where it listens, and the backend's address.
pub(crate) const RELAY: &str = "bare-relay";

/// What this program is called with to be the server: where it listens.
pub(crate) const ANSWER: &str = "bare-answer";

/// What a connection gets for what arrives on it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Job<'a> {
    /// It is passed on to a connection to this backend, which each client has for itself.
    Relay { backend: &'a str },
    /// One page.
    Answer,
}

/// What starts the relay; `program` is this one, in release mode.
pub(super) fn relay(program: &Path, listen: SocketAddr, backend: SocketAddr) -> Vec<String> {
    let program = program.display().to_string();
    let [listen, backend] = [listen, backend].map(|address| address.to_string());
    vec![program, RELAY.to_owned(), listen, backend]
}

/// What starts the server.
pub(super) fn answer(program: &Path, listen: SocketAddr) -> Vec<String> {
    let program = program.display().to_string();
    vec![program, ANSWER.to_owned(), listen.to_string()]
}

/// Serves until the process is killed.
pub(crate) fn run(listen: &str, job: Job<'_>) -> anyhow::Result<()> {
    let listener = TcpListener::bind(listen).with_context(|| format!("listening on {listen}"))?;
    listener.set_nonblocking(true)?;
    let queue = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    let listening = place(&listener);
    epoll::add(&queue, &listener, key(listening), epoll::EventFlags::IN)?;
    let mut bare = Bare {
        queue,
        pairs: Vec::new(),
        answer: match job {
            Job::Relay { .. } => None,
            Job::Answer => Some(page()),
        },
    };
    let mut events = Vec::with_capacity(EVENTS);
    let mut buffer = vec![0; BUFFER];
    loop {
        events.clear();
        epoll::wait(&bare.queue, spare_capacity(&mut events), None)?;
        for event in &events {
            let place = usize::try_from(event.data.u64()).context("a key of ours")?;
            if place == listening {
                bare.accept(&listener, job)?;
            } else if !bare.serve(place, &mut buffer) {
                bare.close(place);
            }
        }
    }
}

struct Bare {
    queue: OwnedFd,
    /// Each socket at its [`place`], with that of the one that is written to.
    pairs: Vec<Option<(TcpStream, usize)>>,
    /// What is written, if not what was read.
    answer: Option<Vec<u8>>,
}

impl Bare {
    fn accept(&mut self, listener: &TcpListener, job: Job<'_>) -> anyhow::Result<()> {
        while let Ok((client, _)) = listener.accept() {
            let Job::Relay { backend } = job else {
                let own = place(&client);
                self.watch(client, own)?;
                continue;
            };
            let server = TcpStream::connect(backend).with_context(|| backend.to_owned())?;
            let (near, far) = (place(&client), place(&server));
            self.watch(client, far)?;
            self.watch(server, near)?;
        }
        Ok(())
    }

    fn watch(&mut self, socket: TcpStream, other: usize) -> anyhow::Result<()> {
        socket.set_nonblocking(true)?;
        socket.set_nodelay(true)?;
        let place = place(&socket);
        let flags = epoll::EventFlags::IN | epoll::EventFlags::ET;
        epoll::add(&self.queue, &socket, key(place), flags)?;
        if self.pairs.len() <= place {
            self.pairs.resize_with(place + 1, || None);
        }
        self.pairs[place] = Some((socket, other));
        Ok(())
    }

    fn at(&self, place: usize) -> Option<&(TcpStream, usize)> {
        self.pairs.get(place)?.as_ref()
    }

    /// Reads what has arrived, and writes; `false` if the pair is to be closed. The page and its
    /// request fit into one read and into the room that a socket has: anything else ends the
    /// connection, which the load counts as an error.
    fn serve(&self, place: usize, buffer: &mut [u8]) -> bool {
        let Some((from, other)) = self.at(place) else {
            // Closed with its other end, in the same turn.
            return true;
        };
        let Some((to, _)) = self.at(*other) else {
            return false;
        };
        match recv(from, &mut *buffer, RecvFlags::empty()) {
            Ok((_, read @ 1..)) if read < BUFFER => {
                let bytes = self.answer.as_deref().unwrap_or(&buffer[..read]);
                send(to, bytes, SendFlags::NOSIGNAL) == Ok(bytes.len())
            }
            Err(Errno::AGAIN) => true,
            _ => false,
        }
    }

    fn close(&mut self, place: usize) {
        if let Some((_, other)) = self.pairs[place].take() {
            self.pairs[other] = None;
        }
    }
}

/// A response as nginx gives it, but for the date.
fn page() -> Vec<u8> {
    let body = "x".repeat(PAGE_BYTES);
    format!(
        "HTTP/1.1 200 OK\r\nServer: bare\r\nDate: Thu, 01 Jan 1970 00:00:00 GMT\r\n\
         Content-Type: text/html\r\nContent-Length: {PAGE_BYTES}\r\nConnection: keep-alive\r\n\r\n\
         {body}"
    )
    .into_bytes()
}

/// Its descriptor, as an index.
fn place(socket: &impl AsRawFd) -> usize {
    socket.as_raw_fd().unsigned_abs() as usize
}

fn key(place: usize) -> epoll::EventData {
    epoll::EventData::new_u64(place as u64)
}

/// Events taken at once.
const EVENTS: usize = 1024;
/// More than a page and its head.
const BUFFER: usize = 16 * 1024;

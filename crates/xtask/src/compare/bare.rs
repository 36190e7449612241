//! A relay that reads nothing of what it moves: what of a front's time is the kernel's alone.
//!
//! A front that understands HTTP cannot be cheaper: it, too, makes one read and one write on either
//! side for each request. It is a contender of the page, beside those that do something useful, and
//! runs as a process of its own: this program, called with [`COMMAND`].

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::path::Path;

use anyhow::Context;
use rustix::buffer::spare_capacity;
use rustix::event::epoll;
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};

/// What this program is called with to be the relay: where it listens, and the backend's address.
pub(crate) const COMMAND: &str = "bare-relay";

/// What starts it; `program` is this one, in release mode.
pub(super) fn command(program: &Path, listen: SocketAddr, backend: SocketAddr) -> Vec<String> {
    let program = program.display().to_string();
    let [listen, backend] = [listen, backend].map(|address| address.to_string());
    vec![program, COMMAND.to_owned(), listen, backend]
}

/// Relays until the process is killed: each client has a connection to the backend of its own.
pub(crate) fn run(listen: &str, backend: &str) -> anyhow::Result<()> {
    let listener = TcpListener::bind(listen).with_context(|| format!("listening on {listen}"))?;
    listener.set_nonblocking(true)?;
    let queue = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    let listening = place(&listener);
    epoll::add(&queue, &listener, key(listening), epoll::EventFlags::IN)?;
    let mut relay = Relay {
        queue,
        pairs: Vec::new(),
    };
    let mut events = Vec::with_capacity(EVENTS);
    let mut buffer = vec![0; BUFFER];
    loop {
        events.clear();
        epoll::wait(&relay.queue, spare_capacity(&mut events), None)?;
        for event in &events {
            let place = usize::try_from(event.data.u64()).context("a key of ours")?;
            if place == listening {
                relay.accept(&listener, backend)?;
            } else if !relay.pass_on(place, &mut buffer) {
                relay.close(place);
            }
        }
    }
}

struct Relay {
    queue: OwnedFd,
    /// Each socket at its [`place`], with that of the other end.
    pairs: Vec<Option<(TcpStream, usize)>>,
}

impl Relay {
    fn accept(&mut self, listener: &TcpListener, backend: &str) -> anyhow::Result<()> {
        while let Ok((client, _)) = listener.accept() {
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

    /// Passes on what has arrived; `false` if the pair is to be closed. The page and its request fit
    /// into one read and into the room that a socket has: anything else ends the connection, which
    /// the load counts as an error.
    fn pass_on(&self, place: usize, buffer: &mut [u8]) -> bool {
        let Some((from, other)) = self.at(place) else {
            // Closed with its other end, in the same turn.
            return true;
        };
        let Some((to, _)) = self.at(*other) else {
            return false;
        };
        match recv(from, &mut *buffer, RecvFlags::empty()) {
            Ok((_, read @ 1..)) if read < BUFFER => {
                send(to, &buffer[..read], SendFlags::NOSIGNAL) == Ok(read)
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

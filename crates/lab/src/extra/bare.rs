//! A relay and a server that do not read the bytes they move. Their CPU time is the part of the
//! others' that is the kernel's alone.
//!
//! A front that understands HTTP cannot be cheaper than the relay: it, too, makes one read and one
//! write on either side for each request. Nor can a server be cheaper than one that writes the same
//! bytes after each read. They stand in the tables beside those that do something useful.

use std::io::{self, Read as _, Write as _};
use std::net::{self, SocketAddr};
use std::os::fd::AsRawFd as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll, Token};

use super::now;

/// What a connection gets for what arrives on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Job {
    /// It is passed on to a connection to this backend, which each client has for itself.
    Relay(SocketAddr),
    /// A page of so many bytes.
    Answer(usize),
}

/// Serves at `listener` until `stop`; before each write it computes for `spin`.
///
/// # Errors
/// A backend cannot be reached, or the kernel's queue of events fails.
pub fn run(
    listener: net::TcpListener,
    job: Job,
    spin: Duration,
    stop: &AtomicBool,
) -> io::Result<()> {
    listener.set_nonblocking(true)?;
    let mut listener = TcpListener::from_std(listener);
    let poll = Poll::new()?;
    poll.registry()
        .register(&mut listener, LISTENER, Interest::READABLE)?;
    let mut bare = Bare {
        poll,
        pairs: Vec::new(),
        answer: match job {
            Job::Relay(_) => None,
            Job::Answer(bytes) => Some(page(bytes)),
        },
        spin,
    };
    let mut events = Events::with_capacity(1024);
    let mut buffer = vec![0; BUFFER];
    while !stop.load(Ordering::Relaxed) {
        match bare.poll.poll(&mut events, Some(LOOK)) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            other => other?,
        }
        for event in &events {
            if event.token() == LISTENER {
                bare.accept(&listener, job)?;
            } else if !bare.serve(event.token().0, &mut buffer) {
                bare.close(event.token().0);
            }
        }
    }
    Ok(())
}

struct Bare {
    poll: Poll,
    /// Each socket at the number of its descriptor, with that of the one that is written to.
    pairs: Vec<Option<(TcpStream, usize)>>,
    /// What is written, if not what was read.
    answer: Option<Vec<u8>>,
    spin: Duration,
}

impl Bare {
    fn accept(&mut self, listener: &TcpListener, job: Job) -> io::Result<()> {
        while let Ok((client, _)) = listener.accept() {
            let near = place(&client);
            let Job::Relay(backend) = job else {
                self.watch(client, near)?;
                continue;
            };
            let server = net::TcpStream::connect(backend)?;
            server.set_nonblocking(true)?;
            let server = TcpStream::from_std(server);
            let far = place(&server);
            self.watch(client, far)?;
            self.watch(server, near)?;
        }
        Ok(())
    }

    fn watch(&mut self, mut socket: TcpStream, other: usize) -> io::Result<()> {
        socket.set_nodelay(true)?;
        let place = place(&socket);
        let registry = self.poll.registry();
        registry.register(&mut socket, Token(place), Interest::READABLE)?;
        if self.pairs.len() <= place {
            self.pairs.resize_with(place + 1, || None);
        }
        self.pairs[place] = Some((socket, other));
        Ok(())
    }

    fn at(&mut self, place: usize) -> Option<&mut (TcpStream, usize)> {
        self.pairs.get_mut(place)?.as_mut()
    }

    /// Reads what has arrived, and writes; `false` if the pair is to be closed. The page and its
    /// request fit into one read and into the room that a socket has: anything else ends the
    /// connection, which the load counts as an error.
    fn serve(&mut self, place: usize, buffer: &mut [u8]) -> bool {
        let Some((from, other)) = self.at(place) else {
            // Closed with its other end, in the same turn.
            return true;
        };
        let other = *other;
        let read = match from.read(buffer) {
            Ok(read) if (1..BUFFER).contains(&read) => read,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return true,
            _ => return false,
        };
        let spin = now();
        while !self.spin.is_zero() && now().duration_since(spin) < self.spin {
            std::hint::spin_loop();
        }
        let answer = self.answer.take();
        let bytes = answer.as_deref().unwrap_or(&buffer[..read]);
        let written = self.at(other).map(|(to, _)| to.write(bytes).ok());
        let is_whole = written == Some(Some(bytes.len()));
        self.answer = answer;
        is_whole
    }

    fn close(&mut self, place: usize) {
        if let Some((_, other)) = self.pairs[place].take() {
            self.pairs[other] = None;
        }
    }
}

/// A response as nginx gives it, but for the date.
fn page(bytes: usize) -> Vec<u8> {
    let body = "x".repeat(bytes);
    format!(
        "HTTP/1.1 200 OK\r\nServer: bare\r\nDate: Thu, 01 Jan 1970 00:00:00 GMT\r\n\
         Content-Type: text/html\r\nContent-Length: {bytes}\r\nConnection: keep-alive\r\n\r\n{body}"
    )
    .into_bytes()
}

/// Its descriptor, as an index.
fn place(socket: &TcpStream) -> usize {
    socket.as_raw_fd().unsigned_abs() as usize
}

const LISTENER: Token = Token(usize::MAX - 1);

/// More than a page and its head.
const BUFFER: usize = 16 * 1024;

/// How often the end is looked for.
const LOOK: Duration = Duration::from_millis(200);

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    fn listener() -> (net::TcpListener, SocketAddr) {
        let listener = net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        (listener, address)
    }

    #[test]
    fn the_relay_passes_a_request_on_and_the_page_back() {
        let ((front, at), (back, behind)) = (listener(), listener());
        let stop = AtomicBool::new(false);
        let stop = &stop;
        thread::scope(|scope| {
            let server = scope.spawn(move || run(back, Job::Answer(100), Duration::ZERO, stop));
            let relay = scope.spawn(move || run(front, Job::Relay(behind), Duration::ZERO, stop));
            let mut stream = net::TcpStream::connect(at).unwrap();
            for _ in 0..2 {
                stream.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
                let mut answer = vec![0; page(100).len()];
                stream.read_exact(&mut answer).unwrap();
                assert_eq!(answer, page(100));
            }
            stop.store(true, Ordering::Relaxed);
            server.join().unwrap().unwrap();
            relay.join().unwrap().unwrap();
        });
    }
}

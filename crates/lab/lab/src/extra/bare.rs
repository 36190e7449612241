//! A relay and a server that do not parse the bytes they move. Their CPU time is the part of other
//! servers' time that is the kernel's alone.
//!
//! A front that understands HTTP cannot be cheaper than the relay, which also makes one read and
//! one write on either side for each request. Nor can a server be cheaper than one that writes the
//! same bytes after each read. They are in the tables for comparison with servers that do useful
//! work.
//!
//! With [`Effort::work`] they are servers of known capacity: each read takes a declared CPU time,
//! by the clock of their only thread. The time for moving the bytes is part of it, so that two
//! servers differ exactly by the ratio of the declared times. Counting instructions would not do
//! that: system calls come on top, and the time of an instruction differs from minute to minute.

use std::io::{self, Read as _, Write as _};
use std::net::{self, SocketAddr};
use std::ops::ControlFlow;
use std::os::fd::AsRawFd as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use catamaran_gauge::cpu;
use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll, Token};

use super::now;

/// What the server does with the bytes that arrive on a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Job {
    /// The server passes the bytes on to this backend, on a separate connection for each client.
    Relay(SocketAddr),
    /// The server answers with a page whose body has this many bytes.
    Answer(usize),
}

/// The CPU time that each request is made to take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Effort {
    /// The time for which the server spins before each write.
    pub spin: Duration,
    /// The mean CPU time that each read and its consequences take; zero: no more than needed. This
    /// time does not run while the thread waits for a core.
    pub work: Duration,
}

/// Serves connections at `listener` in this thread until `stop` is true.
///
/// # Errors
/// A backend cannot be reached, the kernel's queue of events fails, or the declared work is less than moving the bytes
/// takes.
pub fn run(
    listener: net::TcpListener,
    job: Job,
    effort: Effort,
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
        effort,
        due: None,
    };
    let mut events = Events::with_capacity(1024);
    let mut buffer = vec![0; BUFFER];
    while !stop.load(Ordering::Relaxed) {
        match bare.poll.poll(&mut events, Some(LOOK)) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => result?,
        }
        for event in &events {
            if event.token() == LISTENER {
                bare.accept(&listener, job)?;
                continue;
            }
            let Token(place) = event.token();
            if bare.serve(place, &mut buffer)?.is_break() {
                bare.close(place);
            }
        }
    }
    Ok(())
}

struct Bare {
    poll: Poll,
    /// The sockets by the number of their descriptor, each with the number of the socket to which
    /// its bytes are written.
    pairs: Vec<Option<(TcpStream, usize)>>,
    /// The answer to write; `None`: the bytes that were read.
    answer: Option<Vec<u8>>,
    effort: Effort,
    /// The CPU time that the thread should have used after all reads so far.
    due: Option<Duration>,
}

impl Bare {
    /// Accepts all clients that wait; a relay also connects to the backend for each of them.
    fn accept(&mut self, listener: &TcpListener, job: Job) -> io::Result<()> {
        loop {
            let client = match listener.accept() {
                Ok((client, _)) => client,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            };
            let client_place = place(&client);
            match job {
                // An answer is written to the client itself.
                Job::Answer(_) => self.watch(client, client_place)?,
                Job::Relay(backend) => {
                    let server = net::TcpStream::connect(backend)?;
                    server.set_nonblocking(true)?;
                    let server = TcpStream::from_std(server);
                    let server_place = place(&server);
                    self.watch(client, server_place)?;
                    self.watch(server, client_place)?;
                }
            }
        }
    }

    /// Registers a socket whose bytes are written to the socket at the place `to`.
    fn watch(&mut self, mut socket: TcpStream, to: usize) -> io::Result<()> {
        socket.set_nodelay(true)?;
        let place = place(&socket);
        let registry = self.poll.registry();
        registry.register(&mut socket, Token(place), Interest::READABLE)?;
        if self.pairs.len() <= place {
            self.pairs.resize_with(place + 1, || None);
        }
        self.pairs[place] = Some((socket, to));
        Ok(())
    }

    fn pair_at(&mut self, place: usize) -> Option<&mut (TcpStream, usize)> {
        self.pairs.get_mut(place)?.as_mut()
    }

    /// Reads what has arrived, and writes; breaks if the pair must be closed. The page and its
    /// request fit into one read and into a socket's buffer; anything else ends the connection,
    /// which the load counts as an error.
    fn serve(&mut self, place: usize, buffer: &mut [u8]) -> io::Result<ControlFlow<()>> {
        // Faults of one connection end it alone; an error ends the server.
        let (goes_on, ends) = (Ok(ControlFlow::Continue(())), Ok(ControlFlow::Break(())));
        let Some((socket, to)) = self.pair_at(place) else {
            // It was closed with its other side, in the same turn.
            return goes_on;
        };
        let to = *to;
        let count = match socket.read(buffer) {
            Ok(count) if (1..BUFFER).contains(&count) => count,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return goes_on,
            _ => return ends,
        };
        let spin_start = now();
        while !self.effort.spin.is_zero() && now().duration_since(spin_start) < self.effort.spin {
            std::hint::spin_loop();
        }
        self.work()?;
        // `pair_at` borrows all of `self`, so the answer is taken out for the write and put back.
        let answer = self.answer.take();
        let bytes = answer.as_deref().unwrap_or(&buffer[..count]);
        let written = self
            .pair_at(to)
            .and_then(|(socket, _)| socket.write(bytes).ok());
        let is_written = written == Some(bytes.len());
        self.answer = answer;
        if is_written { goes_on } else { ends }
    }

    /// Computes until the thread has used the declared CPU time for all reads so far.
    fn work(&mut self) -> io::Result<()> {
        if self.effort.work.is_zero() {
            return Ok(());
        }
        let used = cpu::of_this_thread();
        let due = self.due.unwrap_or(used) + self.effort.work;
        if used > due + BEHIND {
            let what = format!(
                "a read takes longer than the declared {:?}",
                self.effort.work
            );
            return Err(io::Error::other(what));
        }
        while cpu::of_this_thread() < due {
            std::hint::spin_loop();
        }
        self.due = Some(due);
        Ok(())
    }

    fn close(&mut self, place: usize) {
        if let Some((_, other)) = self.pairs[place].take() {
            self.pairs[other] = None;
        }
    }
}

/// A response as nginx sends it, except for the date.
fn page(bytes: usize) -> Vec<u8> {
    let body = "x".repeat(bytes);
    format!(
        "HTTP/1.1 200 OK\r\nServer: bare\r\nDate: Thu, 01 Jan 1970 00:00:00 GMT\r\n\
         Content-Type: text/html\r\nContent-Length: {bytes}\r\nConnection: keep-alive\r\n\r\n{body}"
    )
    .into_bytes()
}

/// The number of the socket's descriptor, as an index.
fn place(socket: &TcpStream) -> usize {
    socket.as_raw_fd().unsigned_abs() as usize
}

const LISTENER: Token = Token(usize::MAX - 1);

/// The size of the read buffer: more than a page and its head.
const BUFFER: usize = 16 * 1024;

/// The CPU time that may be owed, for instance when many connections come at once.
const BEHIND: Duration = Duration::from_millis(200);

/// The interval at which `stop` is checked.
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
            let server = scope.spawn(move || run(back, Job::Answer(100), Effort::default(), stop));
            let relay =
                scope.spawn(move || run(front, Job::Relay(behind), Effort::default(), stop));
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

    /// The thread's CPU time, with `work` for each of `times` requests.
    fn used(work: Duration, times: u32) -> io::Result<Duration> {
        let (back, at) = listener();
        let stop = AtomicBool::new(false);
        let stop = &stop;
        thread::scope(|scope| {
            let serve = move || {
                let effort = Effort {
                    work,
                    ..Effort::default()
                };
                run(back, Job::Answer(100), effort, stop).map(|()| cpu::of_this_thread())
            };
            let server = scope.spawn(serve);
            let mut stream = net::TcpStream::connect(at).unwrap();
            let mut answer = vec![0; page(100).len()];
            for _ in 0..times {
                let asked = stream.write_all(b"GET / HTTP/1.1\r\n\r\n");
                if asked.and_then(|()| stream.read_exact(&mut answer)).is_err() {
                    break;
                }
            }
            stop.store(true, Ordering::Relaxed);
            server.join().unwrap()
        })
    }

    #[test]
    fn declared_work_is_what_a_request_takes_in_all() {
        let [one, other] = [1000, 1200].map(|micros| {
            let work = Duration::from_micros(micros);
            let used = used(work, 300).unwrap();
            // Beside what its start and its end take.
            let off = used.checked_sub(work * 300).unwrap();
            assert!(
                off < Duration::from_millis(3),
                "{off:?} beside 300 times {work:?}"
            );
            used.as_secs_f64()
        });
        assert!((other / one - 1.2).abs() < 0.012, "{one} {other}");
    }

    #[test]
    fn declared_work_below_that_of_moving_bytes_is_a_fault() {
        let mut bare = Bare {
            poll: Poll::new().unwrap(),
            pairs: Vec::new(),
            answer: None,
            effort: Effort {
                work: Duration::from_micros(1),
                ..Effort::default()
            },
            due: Some(Duration::ZERO),
        };
        // What moving bytes would take.
        while cpu::of_this_thread() <= BEHIND + Duration::from_millis(1) {}
        let said = bare.work().unwrap_err().to_string();
        assert_eq!(said, "a read takes longer than the declared 1µs");
    }
}

//! A link with a delay: in each direction, bytes arrive half a round trip after they were sent.
//!
//! A relay for TCP takes the place of a network. It accepts at once, but the first bytes of a
//! connection wait for the round trip of a handshake, as if the connect had taken it. No bytes are
//! lost, and the rate is not limited.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::io::{self, Read as _, Write as _};
use std::net::{self, Shutdown, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll, Token};

use super::now;

/// An end of the link: a listener, and the server to which its connections lead.
#[derive(Debug)]
pub struct End {
    /// The socket on which the link accepts connections.
    pub listener: net::TcpListener,
    /// The address of the server to which this end leads.
    pub to: SocketAddr,
}

/// Relays connections until `stop` is true.
///
/// # Errors
/// The kernel's queue of events fails.
pub fn run(ends: Vec<End>, round_trip: Duration, stop: &AtomicBool) -> io::Result<()> {
    let mut link = Link::new(ends, round_trip)?;
    let mut events = Events::with_capacity(1024);
    while !stop.load(Ordering::Relaxed) {
        let wait = link.until_due().map_or(LOOK, |wait| wait.min(LOOK));
        match link.poll.poll(&mut events, Some(wait)) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => result?,
        }
        for event in &events {
            let token = event.token().0;
            if let Some(end) = token.checked_sub(LISTENERS) {
                link.accept(end)?;
            } else {
                // See `Link::accept`: two tokens for each pair.
                let (place, side) = (token / 2, token % 2);
                link.read(place, side);
                // The socket may have room again for bytes from the other side.
                link.write(place, 1 - side);
            }
        }
        link.deliver();
    }
    Ok(())
}

struct Link {
    poll: Poll,
    listeners: Vec<(TcpListener, SocketAddr)>,
    /// The pairs by their places; `None` where a pair was closed.
    pairs: Vec<Option<LinkPair>>,
    /// The places of closed pairs, for new ones.
    free: Vec<usize>,
    /// The deliveries to come, the next one first.
    deliveries: BinaryHeap<Reverse<Delivery>>,
    round_trip: Duration,
    /// The number of pairs so far.
    number: u64,
    buffer: Vec<u8>,
}

/// A piece that arrives; deliveries are ordered by time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Delivery {
    due: Instant,
    place: usize,
    /// The side that has sent the piece.
    side: usize,
    /// The pair's number, which tells it from later pairs at the same place.
    number: u64,
}

/// The two connections of a client's: sides 0 (the client) and 1 (the server).
struct LinkPair {
    sides: [TcpStream; 2],
    /// The bytes in flight from each side to the other.
    pipes: [Pipe; 2],
    opened: Instant,
    number: u64,
}

#[derive(Default)]
struct Pipe {
    /// The pieces in flight, each with its time of arrival; an empty piece is the end.
    pieces: VecDeque<(Instant, Vec<u8>)>,
    /// The number of bytes in flight.
    bytes: usize,
    /// Whether the sending side has ended, so that nothing more is read.
    is_ended: bool,
    /// Whether the end was passed on to the other side.
    is_done: bool,
}

impl Link {
    fn new(ends: Vec<End>, round_trip: Duration) -> io::Result<Self> {
        let poll = Poll::new()?;
        let mut listeners = Vec::new();
        for (number, end) in ends.into_iter().enumerate() {
            end.listener.set_nonblocking(true)?;
            let mut listener = TcpListener::from_std(end.listener);
            let token = Token(LISTENERS + number);
            poll.registry()
                .register(&mut listener, token, Interest::READABLE)?;
            listeners.push((listener, end.to));
        }
        Ok(Self {
            poll,
            listeners,
            pairs: Vec::new(),
            free: Vec::new(),
            deliveries: BinaryHeap::new(),
            round_trip,
            number: 0,
            buffer: vec![0; READ],
        })
    }

    /// The time until the next delivery; `None` if nothing is in flight.
    fn until_due(&self) -> Option<Duration> {
        let Reverse(next) = self.deliveries.peek()?;
        Some(next.due.saturating_duration_since(now()))
    }

    /// Accepts a client at an end of the link, and connects to the server behind it.
    fn accept(&mut self, end: usize) -> io::Result<()> {
        let (listener, to) = &self.listeners[end];
        loop {
            // The client has left already, or there is no connection to accept.
            let Ok((client, _)) = listener.accept() else {
                return Ok(());
            };
            // Without a server, the client's connection is closed.
            let Ok(server) = TcpStream::connect(*to) else {
                continue;
            };
            let place = self.free.pop().unwrap_or(self.pairs.len());
            let mut sides = [client, server];
            for (side, stream) in sides.iter_mut().enumerate() {
                // Without it small pieces would wait for acknowledgements.
                let _ = stream.set_nodelay(true);
                let interest = Interest::READABLE | Interest::WRITABLE;
                let token = Token(place * 2 + side);
                self.poll.registry().register(stream, token, interest)?;
            }
            self.number += 1;
            let pair = LinkPair {
                sides,
                pipes: [Pipe::default(), Pipe::default()],
                opened: now(),
                number: self.number,
            };
            if place == self.pairs.len() {
                self.pairs.push(Some(pair));
            } else {
                self.pairs[place] = Some(pair);
            }
        }
    }

    /// Reads what `side` has sent, and schedules its delivery.
    fn read(&mut self, place: usize, side: usize) {
        let Some(Some(pair)) = self.pairs.get_mut(place) else {
            return;
        };
        let pipe = &mut pair.pipes[side];
        while !pipe.is_ended && pipe.bytes < UNDER_WAY_MAX {
            let count = match pair.sides[side].read(&mut self.buffer) {
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                // The server's connection is not open yet.
                Err(error) if error.kind() == io::ErrorKind::NotConnected => return,
                // A broken connection is passed on as its end.
                Err(_) => 0,
            };
            // Nothing is sent before the end of the client's handshake, a round trip after the connection was opened.
            let sent = now().max(pair.opened + self.round_trip);
            let due = sent + self.round_trip / 2;
            pipe.pieces.push_back((due, self.buffer[..count].to_vec()));
            pipe.bytes += count;
            pipe.is_ended = count == 0;
            self.deliveries.push(Reverse(Delivery {
                due,
                place,
                side,
                number: pair.number,
            }));
        }
    }

    /// Delivers all pieces that are due.
    fn deliver(&mut self) {
        let now = now();
        while let Some(Reverse(next)) = self.deliveries.peek().copied() {
            if next.due > now {
                return;
            }
            self.deliveries.pop();
            let pair = self.pairs[next.place].as_ref();
            if pair.is_some_and(|pair| pair.number == next.number) {
                self.write(next.place, next.side);
            }
        }
    }

    /// Writes the pieces that are due from `side` to the other side, as far as that takes them. Closes the pair if a
    /// side is broken, or both ends were passed on.
    fn write(&mut self, place: usize, side: usize) {
        let Some(Some(pair)) = self.pairs.get_mut(place) else {
            return;
        };
        let pipe = &mut pair.pipes[side];
        let was_full = pipe.bytes >= UNDER_WAY_MAX;
        let written = pipe.write_due(&mut pair.sides[1 - side]);
        if written.is_err() || pair.pipes.iter().all(|pipe| pipe.is_done) {
            // Deliveries that are left have the number of this pair, and are ignored.
            self.pairs[place] = None;
            self.free.push(place);
        } else if was_full {
            // What arrived while the pipe was full causes no further event.
            self.read(place, side);
        }
    }
}

impl Pipe {
    /// Writes the pieces that are due to `stream`, as far as it takes them; the error is that it is broken.
    fn write_due(&mut self, stream: &mut TcpStream) -> io::Result<()> {
        let now = now();
        while let Some((due, piece)) = self.pieces.front_mut() {
            if *due > now {
                break;
            }
            if piece.is_empty() {
                // The other side may be gone already.
                let _ = stream.shutdown(Shutdown::Write);
                self.is_done = true;
                self.pieces.pop_front();
                continue;
            }
            match stream.write(piece) {
                Ok(count) => {
                    self.bytes -= count;
                    piece.drain(..count);
                    if piece.is_empty() {
                        self.pieces.pop_front();
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                // The server's connection is not open yet.
                Err(error) if error.kind() == io::ErrorKind::NotConnected => break,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// Tokens from this number on belong to listeners.
const LISTENERS: usize = 1 << 32;

const READ: usize = 64 << 10;

/// The most bytes in flight from one side; beyond that it is not read until some have arrived.
const UNDER_WAY_MAX: usize = 4 << 20;

/// The interval at which `stop` is checked.
const LOOK: Duration = Duration::from_millis(100);

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    /// Runs `client` over a link to a server that echoes one connection; returns what `client` returns.
    fn through<T>(round_trip: Duration, client: impl FnOnce(net::TcpStream) -> T) -> T {
        let server = net::TcpListener::bind("127.0.0.1:0").unwrap();
        let to = server.local_addr().unwrap();
        let listener = net::TcpListener::bind("127.0.0.1:0").unwrap();
        let listen = listener.local_addr().unwrap();
        let stop = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                let (mut stream, _) = server.accept().unwrap();
                let mut copy = stream.try_clone().unwrap();
                io::copy(&mut stream, &mut copy).unwrap();
            });
            let link = scope.spawn(|| run(vec![End { listener, to }], round_trip, &stop));
            let made = client(net::TcpStream::connect(listen).unwrap());
            stop.store(true, Ordering::Relaxed);
            link.join().unwrap().unwrap();
            made
        })
    }

    #[test]
    fn bytes_arrive_as_they_were_sent_and_not_before_their_time() {
        let round_trip = Duration::from_millis(20);
        let begin = now();
        through(round_trip, |mut stream| {
            let mut answer = [0; 5];
            stream.write_all(b"first").unwrap();
            stream.read_exact(&mut answer).unwrap();
            assert_eq!(&answer, b"first");
            // The handshake's round trip, and its own.
            assert!(
                now().duration_since(begin) >= round_trip * 2,
                "{:?}",
                now().duration_since(begin)
            );
            let begin = now();
            stream.write_all(b"again").unwrap();
            stream.read_exact(&mut answer).unwrap();
            assert_eq!(&answer, b"again");
            assert!(
                now().duration_since(begin) >= round_trip,
                "{:?}",
                now().duration_since(begin)
            );
        });
    }

    #[test]
    fn much_passes_whole_and_so_does_its_end() {
        let sent: Vec<u8> = (0..20_000_000_u32).map(|number| number as u8).collect();
        let received = through(Duration::from_millis(1), |mut stream| {
            let mut copy = stream.try_clone().unwrap();
            let sent = &sent;
            thread::scope(|scope| {
                scope.spawn(move || {
                    copy.write_all(sent).unwrap();
                    copy.shutdown(Shutdown::Write).unwrap();
                });
                let mut received = Vec::new();
                stream.read_to_end(&mut received).unwrap();
                received
            })
        });
        assert!(received == sent, "{} bytes", received.len());
    }
}

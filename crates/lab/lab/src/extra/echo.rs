//! The load on a server that sends back what it receives: each client has one message in flight,
//! over TCP or UDP. The result is a report in the form of `catamaran bench --json`.
//!
//! A message over UDP without an echo in time is lost, which counts as failed; the client continues
//! with the next one. A client whose echo differs from its message ends, which also counts as
//! failed; when all clients have ended, so does the load.

use std::io::{self, Read as _, Write as _};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use catamaran_load::report::{Ending, Report, SCHEMA, SecondFacts, Thread, Times};
use mio::net::{TcpStream, UdpSocket};
use mio::{Events, Interest, Poll, Token};

use super::now;

/// The transport of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// TCP: messages are parts of a stream.
    Tcp,
    /// UDP: each message is a datagram.
    Udp,
}

/// The settings of a load on an echo.
#[derive(Clone, Debug)]
pub struct EchoRequest {
    /// The transport of messages: TCP or UDP.
    pub transport: Transport,
    /// The address of the server.
    pub address: SocketAddr,
    /// The number of clients; each has one message in flight.
    pub clients: usize,
    /// The length of a message in bytes; at least 8, for its number.
    pub bytes: usize,
    /// The duration of the load.
    pub time: Duration,
}

impl EchoRequest {
    /// Reads transport and address from `echo+tcp://IP:PORT` or `echo+udp://IP:PORT`; `None` if it is not such a URL.
    #[must_use]
    pub fn site(url: &str) -> Option<(Transport, SocketAddr)> {
        let known = [
            ("echo+tcp://", Transport::Tcp),
            ("echo+udp://", Transport::Udp),
        ];
        known.into_iter().find_map(|(scheme, transport)| {
            let address = url.strip_prefix(scheme)?.parse().ok()?;
            Some((transport, address))
        })
    }
}

/// Drives the load until its time is over or `stop` is true; returns the report.
///
/// # Errors
/// A client cannot connect, or the kernel's queue of events fails.
pub fn run(request: &EchoRequest, stop: &AtomicBool) -> io::Result<Report> {
    let started_at = SystemTime::now().duration_since(UNIX_EPOCH);
    let mut load = Echo::connect(request)?;
    load.drive(stop)?;
    let mut document = load.document();
    document.started_at = started_at.unwrap_or_default();
    Ok(document)
}

struct Echo<'a> {
    request: &'a EchoRequest,
    poll: Poll,
    clients: Vec<EchoClient>,
    start: Instant,
    cpu_before: Duration,
    elapsed: Duration,
    /// The latency of each echo, in the order of arrival.
    latencies_us: Vec<u64>,
    seconds: Vec<EchoSecond>,
    failed: u64,
    /// The number of clients that have ended.
    over: usize,
    buffer: Vec<u8>,
}

#[derive(Clone, Copy, Debug, Default)]
struct EchoSecond {
    completed: u64,
    failed: u64,
    /// The index in `latencies_us` of the first echo in this second.
    first: usize,
}

enum Socket {
    Tcp(TcpStream),
    Udp(UdpSocket),
}

struct EchoClient {
    socket: Socket,
    number: u64,
    /// The message that was sent last.
    message: Vec<u8>,
    sent: Instant,
    /// The bytes of the message's echo that have arrived so far.
    answer: Vec<u8>,
    is_over: bool,
}

impl<'a> Echo<'a> {
    /// Connects all clients.
    fn connect(request: &'a EchoRequest) -> io::Result<Self> {
        let poll = Poll::new()?;
        let mut clients = Vec::with_capacity(request.clients);
        for number in 0..request.clients {
            let mut client = EchoClient::connect(request)?;
            let (registry, token) = (poll.registry(), Token(number));
            match &mut client.socket {
                Socket::Tcp(stream) => registry.register(stream, token, Interest::READABLE)?,
                Socket::Udp(socket) => registry.register(socket, token, Interest::READABLE)?,
            }
            clients.push(client);
        }
        Ok(Self {
            request,
            poll,
            clients,
            start: now(),
            cpu_before: catamaran_gauge::cpu::of_this_process(),
            elapsed: Duration::ZERO,
            latencies_us: Vec::new(),
            seconds: Vec::new(),
            failed: 0,
            over: 0,
            buffer: vec![0; BUFFER],
        })
    }

    /// Reads echoes and sends messages until the load's time is over, `stop` is true or all clients have ended.
    fn drive(&mut self, stop: &AtomicBool) -> io::Result<()> {
        for client in &mut self.clients {
            client.send_next(self.request.bytes)?;
        }
        let mut events = Events::with_capacity(1024);
        let mut losses_checked_at = self.start;
        while !stop.load(Ordering::Relaxed) && self.over < self.clients.len() {
            match self.poll.poll(&mut events, Some(LOOK)) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                result => result?,
            }
            let now = now();
            self.elapsed = now.duration_since(self.start);
            // Echoes that arrive with the end or after it do not count.
            if self.elapsed >= self.request.time {
                break;
            }
            for event in &events {
                self.serve(event.token().0, now);
            }
            if now.duration_since(losses_checked_at) >= LOOK {
                losses_checked_at = now;
                self.look_for_losses(now);
            }
        }
        Ok(())
    }

    /// Reads what a client has received; counts it and sends the next message.
    fn serve(&mut self, number: usize, now: Instant) {
        let client = &mut self.clients[number];
        if client.is_over {
            return;
        }
        let read = client.read(&mut self.buffer);
        // Sending the next message replaces the time of the last one.
        let latency = now.saturating_duration_since(client.sent);
        let result = match read {
            Ok(false) => return,
            Ok(true) => client.send_next(self.request.bytes),
            Err(error) => Err(error),
        };
        if result.is_ok() {
            self.count(Some(latency.as_micros() as u64));
        } else {
            client.is_over = true;
            self.over += 1;
            self.count(None);
        }
    }

    /// Counts an echo with its latency; `None`: a failure.
    fn count(&mut self, micros: Option<u64>) {
        let index = self.elapsed.as_secs() as usize;
        while self.seconds.len() <= index {
            self.seconds.push(EchoSecond {
                first: self.latencies_us.len(),
                ..EchoSecond::default()
            });
        }
        let second = &mut self.seconds[index];
        match micros {
            Some(micros) => {
                second.completed += 1;
                self.latencies_us.push(micros);
            }
            None => {
                second.failed += 1;
                self.failed += 1;
            }
        }
    }

    /// Counts messages over UDP without an echo in time as lost, and sends the next ones. A client that cannot send
    /// ends.
    fn look_for_losses(&mut self, now: Instant) {
        for number in 0..self.clients.len() {
            let client = &mut self.clients[number];
            let waited = now.saturating_duration_since(client.sent);
            let is_lost = matches!(client.socket, Socket::Udp(_)) && waited > LOST;
            if is_lost && !client.is_over {
                client.is_over = client.send_next(self.request.bytes).is_err();
                self.over += usize::from(client.is_over);
                self.count(None);
            }
        }
    }

    /// The report of the load, as of `catamaran bench`.
    fn document(&self) -> Report {
        let completed = self.latencies_us.len() as u64;
        let elapsed_s = self.elapsed.as_secs_f64();
        let cpu = catamaran_gauge::cpu::of_this_process().saturating_sub(self.cpu_before);
        let bytes = completed * self.request.bytes as u64;
        let mut document = Report {
            schema: SCHEMA.to_owned(),
            url: self.request.address.to_string(),
            urls: 1,
            protocol: "echo".to_owned(),
            elapsed: self.elapsed,
            ending: Ending::Duration,
            threads: 1,
            concurrency: self.clients.len(),
            concurrency_reached: self.clients.len(),
            seconds: self.seconds(),
            ..Report::default()
        };
        document.requests.started = completed + self.failed;
        document.requests.ok = completed;
        document.requests.completed = completed;
        document.requests.failed = self.failed;
        document.bytes.sent = bytes;
        document.bytes.received = bytes;
        document.bytes.received_bodies = bytes;
        // UDP has no connections.
        document.connections.opened = match self.request.transport {
            Transport::Tcp => self.clients.len() as u64,
            Transport::Udp => 0,
        };
        document.throughput.requests_per_s = completed as f64 / elapsed_s.max(1e-9);
        document.latency.total = times(&self.latencies_us);
        document.generator.cpu_s = cpu.as_secs_f64();
        document.generator.threads = vec![Thread {
            wall_s: elapsed_s,
            cpu_s: cpu.as_secs_f64(),
            busy: cpu.as_secs_f64() / elapsed_s.max(1e-9),
            starved_s: None,
            spun_s: 0.0,
        }];
        document
    }

    /// The counts and latencies of each second.
    fn seconds(&self) -> Vec<SecondFacts> {
        let facts = |second: &EchoSecond| {
            // The latencies of a second are next to each other, in the order of arrival.
            let answers = &self.latencies_us[second.first..][..second.completed as usize];
            let times = times(answers);
            SecondFacts {
                completed: second.completed,
                failed: second.failed,
                received_bytes: second.completed * self.request.bytes as u64,
                latency_mean_us: times.mean_us as f64,
                latency_max_us: times.max_us as f64,
                p50_us: (times.count > 0).then_some(times.p50_us),
                p99_us: (times.count > 0).then_some(times.p99_us),
                max_us: (times.count > 0).then_some(times.max_us),
                ..SecondFacts::default()
            }
        };
        self.seconds.iter().map(facts).collect()
    }
}

impl EchoClient {
    /// Connects a client.
    fn connect(request: &EchoRequest) -> io::Result<Self> {
        let socket = match request.transport {
            Transport::Tcp => {
                let stream = std::net::TcpStream::connect_timeout(&request.address, CONNECT)?;
                stream.set_nonblocking(true)?;
                stream.set_nodelay(true)?;
                Socket::Tcp(TcpStream::from_std(stream))
            }
            Transport::Udp => {
                let local = SocketAddr::new(request.address.ip(), 0);
                let socket = std::net::UdpSocket::bind(local)?;
                socket.connect(request.address)?;
                socket.set_nonblocking(true)?;
                Socket::Udp(UdpSocket::from_std(socket))
            }
        };
        Ok(Self {
            socket,
            number: 0,
            message: Vec::new(),
            sent: now(),
            answer: Vec::new(),
            is_over: false,
        })
    }

    /// Sends the next message. The socket has room for it, since no other one is in flight.
    fn send_next(&mut self, bytes: usize) -> io::Result<()> {
        self.number += 1;
        self.message = self.number.to_be_bytes().to_vec();
        self.message.resize(bytes.max(8), b'x');
        self.answer.clear();
        self.sent = now();
        match &mut self.socket {
            Socket::Tcp(stream) => stream.write_all(&self.message),
            Socket::Udp(socket) => socket.send(&self.message).map(drop),
        }
    }

    /// Reads the echo; returns whether it is complete. An echo of a datagram that was given up is ignored.
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<bool> {
        loop {
            let read = match &mut self.socket {
                Socket::Tcp(stream) => stream.read(buffer),
                Socket::Udp(socket) => socket.recv(buffer),
            };
            let count = match read {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(error),
            };
            let bytes = &buffer[..count];
            match self.socket {
                Socket::Tcp(_) => {
                    self.answer.extend_from_slice(bytes);
                    if self.answer.len() < self.message.len() {
                        continue;
                    }
                }
                // Another number is that of a message that was given up.
                Socket::Udp(_) if bytes.get(..8) != self.message.get(..8) => continue,
                Socket::Udp(_) => self.answer = bytes.to_vec(),
            }
            if self.answer != self.message {
                return Err(io::ErrorKind::InvalidData.into());
            }
            return Ok(true);
        }
    }
}

/// The figures of `latencies`, which are in microseconds.
fn times(latencies: &[u64]) -> Times {
    let mut sorted = latencies.to_vec();
    sorted.sort_unstable();
    let Some(last) = sorted.len().checked_sub(1) else {
        return Times::default();
    };
    let percentile = |percent: f64| sorted[(last as f64 * percent / 100.0).round() as usize];
    let quotable = [99.0, 90.0, 50.0];
    Times {
        count: sorted.len() as u64,
        min_us: sorted[0],
        mean_us: sorted.iter().sum::<u64>() / sorted.len() as u64,
        max_us: sorted[last],
        p50_us: percentile(50.0),
        p75_us: percentile(75.0),
        p90_us: percentile(90.0),
        p95_us: percentile(95.0),
        p99_us: percentile(99.0),
        percentile_max: quotable
            .into_iter()
            .find(|percent| catamaran_stats::is_quotable(*percent, sorted.len() as u64)),
        ..Times::default()
    }
}

/// The interval at which `stop` and lost datagrams are checked.
const LOOK: Duration = Duration::from_millis(50);

/// The time after which a datagram without an echo counts as lost.
const LOST: Duration = Duration::from_millis(500);

/// The time limit of a connect.
const CONNECT: Duration = Duration::from_secs(10);

/// The size of the read buffer: more than any message.
const BUFFER: usize = 64 << 10;

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, UdpSocket as Datagrams};
    use std::thread;

    use super::*;

    fn asked(transport: Transport, address: SocketAddr) -> EchoRequest {
        EchoRequest {
            transport,
            address,
            clients: 1,
            bytes: 64,
            time: Duration::from_secs(60),
        }
    }

    #[test]
    fn urls_name_transport_and_address() {
        let address = "127.0.0.1:7".parse().unwrap();
        assert_eq!(
            EchoRequest::site("echo+udp://127.0.0.1:7"),
            Some((Transport::Udp, address))
        );
        for url in [
            "http://127.0.0.1:7",
            "echo+tcp://localhost:7",
            "echo+tcp://127.0.0.1",
        ] {
            assert_eq!(EchoRequest::site(url), None, "{url}");
        }
    }

    #[test]
    fn answers_over_tcp_are_counted_also_in_pieces() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let asked = asked(Transport::Tcp, listener.local_addr().unwrap());
        let stop = AtomicBool::new(false);
        let document = thread::scope(|scope| {
            let server = scope.spawn(|| {
                let (mut stream, _) = listener.accept().unwrap();
                let mut message = [0; 64];
                for number in 1..=10_u64 {
                    stream.read_exact(&mut message).unwrap();
                    assert_eq!(message[..8], number.to_be_bytes());
                    stream.write_all(&message[..20]).unwrap();
                    stream.write_all(&message[20..]).unwrap();
                }
                // The eleventh shows that the tenth answer was taken.
                stream.read_exact(&mut message).unwrap();
                stop.store(true, Ordering::Relaxed);
                stream
            });
            let document = run(&asked, &stop).unwrap();
            // The connection ends after the load.
            drop(server.join().unwrap());
            document
        });
        assert_eq!(document.requests.completed, 10);
        assert_eq!(
            (document.requests.failed, document.bytes.received),
            (0, 640)
        );
        assert_eq!(document.latency.total.count, 10);
        let text = serde_json::to_string(&document).unwrap();
        Report::parse(&text).unwrap();
    }

    #[test]
    fn datagrams_that_do_not_come_back_are_lost_and_late_ones_are_passed_over() {
        let server = Datagrams::bind("127.0.0.1:0").unwrap();
        let asked = asked(Transport::Udp, server.local_addr().unwrap());
        let stop = AtomicBool::new(false);
        let document = thread::scope(|scope| {
            scope.spawn(|| {
                let mut message = [0; 64];
                let (_, client) = server.recv_from(&mut message).unwrap();
                // Given up: its answer comes after the next one was sent.
                let mut next = [0; 64];
                server.recv_from(&mut next).unwrap();
                assert_eq!(next[..8], 2_u64.to_be_bytes());
                server.send_to(&message, client).unwrap();
                server.send_to(&next, client).unwrap();
                server.recv_from(&mut message).unwrap();
                stop.store(true, Ordering::Relaxed);
            });
            run(&asked, &stop).unwrap()
        });
        assert!(document.requests.failed >= 1, "{:?}", document.requests);
    }

    #[test]
    fn another_answer_than_what_was_sent_is_a_failure() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let asked = asked(Transport::Tcp, listener.local_addr().unwrap());
        let stop = AtomicBool::new(false);
        let document = thread::scope(|scope| {
            scope.spawn(|| {
                let (mut stream, _) = listener.accept().unwrap();
                stream.read_exact(&mut [0; 64]).unwrap();
                stream.write_all(&[b'y'; 64]).unwrap();
            });
            run(&asked, &stop).unwrap()
        });
        assert_eq!(document.requests.completed, 0);
        assert_eq!(document.requests.failed, 1);
    }
}

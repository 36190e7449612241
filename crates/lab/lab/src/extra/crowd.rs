//! A crowd: clients that request seldom or read slowly, thousands of them in one thread.
//!
//! All clients have the same pause between two steps, so their turns are in the order of a queue. A
//! client whose connection the server has closed opens a new one at its turn.

use std::collections::VecDeque;
use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use mio::net::TcpStream as Stream;
use mio::{Events, Interest, Poll, Token};
use serde::{Deserialize, Serialize};

use super::now;
use crate::experiment::CrowdKind;

/// The settings of a crowd.
#[derive(Clone, Debug)]
pub struct CrowdRequest {
    /// The behaviour of the clients.
    pub kind: CrowdKind,
    /// The number of clients.
    pub clients: usize,
    /// The time between two steps of each client; `None`: each makes one request only.
    pub every: Option<Duration>,
    /// The URL that clients request: `http://IP:PORT/PATH`.
    pub url: String,
}

/// The counts of a crowd that has ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally {
    /// The number of responses that were read in full.
    pub answered: u64,
    /// The number of connections that the server closed and that were opened anew.
    pub closed: u64,
    /// The number of idle clients' requests without a whole response, plus connections that could not be opened.
    pub lost: u64,
}

/// Connects all clients, calls `ready`, and lets the clients act until `stop` is true.
///
/// # Errors
/// The URL is not of this form, a client cannot be connected at the beginning, or idle clients have no response then.
pub fn run(request: &CrowdRequest, stop: &AtomicBool, ready: impl FnOnce()) -> io::Result<Tally> {
    let site = CrowdSite::of(&request.url)?;
    let poll = Poll::new()?;
    let mut crowd = RunningCrowd {
        request,
        site,
        clients: Vec::with_capacity(request.clients),
        poll,
        tally: Tally::default(),
        buffer: vec![0; READ],
    };
    for number in 0..request.clients {
        let client = crowd.open(number)?;
        crowd.clients.push(client);
    }
    crowd.wait_for_first_responses(stop)?;
    ready();
    crowd.act(stop)?;
    Ok(crowd.tally)
}

struct RunningCrowd<'a> {
    request: &'a CrowdRequest,
    site: CrowdSite,
    clients: Vec<CrowdClient>,
    poll: Poll,
    tally: Tally,
    buffer: Vec<u8>,
}

struct CrowdClient {
    stream: Stream,
    /// The number of bytes of the head that were sent.
    sent: usize,
    /// The head of the response, while it is incomplete.
    head: Vec<u8>,
    /// The number of bytes of the response that are still to come; `None`: its head is not complete.
    left: Option<usize>,
    is_waiting: bool,
    is_closed: bool,
}

impl RunningCrowd<'_> {
    /// Opens a connection; clients of all kinds but `Drip` send a request at once.
    fn open(&self, number: usize) -> io::Result<CrowdClient> {
        let stream = TcpStream::connect_timeout(&self.site.address, CONNECT)?;
        stream.set_nonblocking(true)?;
        stream.set_nodelay(true)?;
        let mut stream = Stream::from_std(stream);
        let interest = match self.request.kind {
            // Their turn alone decides what they read.
            CrowdKind::Sip => Interest::WRITABLE,
            CrowdKind::Idle | CrowdKind::Drip => Interest::READABLE,
        };
        let registry = self.poll.registry();
        registry.register(&mut stream, Token(number), interest)?;
        let mut client = CrowdClient {
            stream,
            sent: 0,
            head: Vec::new(),
            left: None,
            is_waiting: false,
            is_closed: false,
        };
        if self.request.kind != CrowdKind::Drip {
            client.send_request(&self.site)?;
        }
        Ok(client)
    }

    /// Waits until each idle client has its first response.
    fn wait_for_first_responses(&mut self, stop: &AtomicBool) -> io::Result<()> {
        if self.request.kind != CrowdKind::Idle {
            return Ok(());
        }
        let end = now() + FIRST_RESPONSES;
        while !stop.load(Ordering::Relaxed) {
            let waiting = || self.clients.iter().filter(|client| client.is_waiting);
            if waiting().count() == 0 {
                break;
            }
            // A closed connection will bring no response.
            if now() > end || waiting().any(|client| client.is_closed) {
                let (count, all) = (waiting().count(), self.clients.len());
                let what = format!("{count} of {all} clients have no answer");
                return Err(io::Error::new(io::ErrorKind::TimedOut, what));
            }
            self.listen(LOOK)?;
        }
        Ok(())
    }

    /// Lets clients act, each at its turn, until `stop` is true.
    fn act(&mut self, stop: &AtomicBool) -> io::Result<()> {
        let start = now();
        // The times of the next steps, in order, with the clients' numbers. The first steps are spread over one pause.
        let mut turns: VecDeque<(Instant, usize)> = VecDeque::new();
        let pause = self.request.every.unwrap_or_default();
        if self.request.every.is_some() {
            let count = self.clients.len();
            let due = |number: usize| start + pause.mul_f64(number as f64 / count as f64);
            turns.extend((0..count).map(|number| (due(number), number)));
        }
        while !stop.load(Ordering::Relaxed) {
            let now = now();
            let mut wait = LOOK;
            while let Some(&(due, number)) = turns.front() {
                if due > now {
                    wait = wait.min(due.duration_since(now));
                    break;
                }
                turns.pop_front();
                self.step(number);
                turns.push_back((due + pause, number));
            }
            self.listen(wait)?;
        }
        Ok(())
    }

    /// Does the next step of a client.
    fn step(&mut self, number: usize) {
        let client = &mut self.clients[number];
        // An idle client whose last request has no response gives it up.
        if client.is_waiting && self.request.kind == CrowdKind::Idle {
            self.tally.lost += 1;
            client.is_closed = true;
        }
        if client.is_closed {
            self.tally.closed += 1;
            match self.open(number) {
                Ok(client) => self.clients[number] = client,
                Err(_) => self.tally.lost += 1,
            }
            return;
        }
        let result = match self.request.kind {
            CrowdKind::Idle => client.send_request(&self.site),
            CrowdKind::Drip => client.send_byte(&self.site),
            CrowdKind::Sip => client.read_bytes(&mut self.buffer[..SIP]),
        };
        client.is_closed = result.is_err();
    }

    /// Reads what arrives within `time`.
    fn listen(&mut self, time: Duration) -> io::Result<()> {
        let mut events = Events::with_capacity(1024);
        match self.poll.poll(&mut events, Some(time)) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(()),
            result => result?,
        }
        if self.request.kind == CrowdKind::Sip {
            // These clients read at their turns only.
            return Ok(());
        }
        for event in &events {
            let client = &mut self.clients[event.token().0];
            match client.read_responses(&mut self.buffer) {
                Ok(count) => self.tally.answered += count,
                Err(_) => client.is_closed = true,
            }
        }
        Ok(())
    }
}

impl CrowdClient {
    /// Sends a whole request, which fits into a socket's buffer.
    fn send_request(&mut self, site: &CrowdSite) -> io::Result<()> {
        self.head.clear();
        self.left = None;
        self.is_waiting = true;
        self.stream.write_all(site.request.as_bytes())
    }

    /// Sends the next byte of a head that never ends.
    fn send_byte(&mut self, site: &CrowdSite) -> io::Result<()> {
        let head = site.endless.as_bytes();
        let byte = head.get(self.sent).copied().unwrap_or(b'x');
        self.sent += 1;
        self.stream.write_all(&[byte])
    }

    /// Reads the next few bytes, if there are any.
    fn read_bytes(&mut self, buffer: &mut [u8]) -> io::Result<()> {
        match self.stream.read(buffer) {
            Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
            result => result.map(drop),
        }
    }

    /// Reads all that has arrived; returns the number of responses that became complete.
    fn read_responses(&mut self, buffer: &mut [u8]) -> io::Result<u64> {
        let mut complete = 0;
        loop {
            let count = match self.stream.read(buffer) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(complete),
                Err(error) => return Err(error),
            };
            complete += u64::from(self.add(&buffer[..count])?);
        }
    }

    /// Adds bytes of a response; returns whether it became complete by them.
    fn add(&mut self, bytes: &[u8]) -> io::Result<bool> {
        let left = match self.left {
            Some(left) => left.saturating_sub(bytes.len()),
            None => {
                self.head.extend_from_slice(bytes);
                match length(&self.head) {
                    Some(length) => length.saturating_sub(self.head.len()),
                    // No head is so long.
                    None if self.head.len() > READ => return Err(io::ErrorKind::InvalidData.into()),
                    None => return Ok(false),
                }
            }
        };
        self.left = Some(left);
        // Bytes after the end of a response are not counted as another one.
        let is_complete = left == 0 && self.is_waiting;
        if is_complete {
            self.is_waiting = false;
        }
        Ok(is_complete)
    }
}

/// The address of the clients' server, and their requests.
#[derive(Debug)]
struct CrowdSite {
    address: SocketAddr,
    request: String,
    /// The beginning of a head that continues with letters without end.
    endless: String,
}

impl CrowdSite {
    /// Parses the URL `http://IP:PORT/PATH`.
    fn of(url: &str) -> io::Result<Self> {
        let wrong = || {
            let what = format!("{url} is not http://IP:PORT/");
            io::Error::new(io::ErrorKind::InvalidInput, what)
        };
        let rest = url.strip_prefix("http://").ok_or_else(wrong)?;
        let (host, path) = rest.split_once('/').ok_or_else(wrong)?;
        let head = format!("GET /{path} HTTP/1.1\r\nHost: {host}\r\n");
        Ok(Self {
            address: host.parse().map_err(|_| wrong())?,
            request: format!("{head}\r\n"),
            endless: format!("{head}X-Slow: "),
        })
    }
}

/// The length in bytes of the whole response with its head; `None` until its head is complete.
fn length(answer: &[u8]) -> Option<usize> {
    let end = answer.windows(4).position(|window| window == b"\r\n\r\n")? + 4;
    let head = String::from_utf8_lossy(&answer[..end]).to_ascii_lowercase();
    let field = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length:"));
    let body = field.and_then(|value| value.trim().parse::<usize>().ok());
    // A response without a length counts as complete.
    Some(end.saturating_add(body.unwrap_or(0)))
}

/// The time limit of a connect.
const CONNECT: Duration = Duration::from_secs(10);

/// The time limit for the first responses.
const FIRST_RESPONSES: Duration = Duration::from_secs(30);

/// The interval at which `stop` is checked.
const LOOK: Duration = Duration::from_millis(100);

const READ: usize = 64 << 10;

/// The number of bytes that a client reads in one step of [`CrowdKind::Sip`].
const SIP: usize = 1024;

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::thread;

    use super::*;
    use crate::extra::EndOnDrop;

    #[test]
    fn the_length_of_an_answer() {
        assert_eq!(length(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n"), None);
        let whole = b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nab";
        assert_eq!(length(whole), Some(43));
        assert_eq!(length(b"HTTP/1.1 204 No\r\n\r\n"), Some(19));
    }

    #[test]
    fn other_urls_are_refused() {
        assert!(CrowdSite::of("http://127.0.0.1:8001/").is_ok());
        for url in [
            "https://127.0.0.1:1/",
            "http://localhost:1/",
            "http://127.0.0.1:1",
        ] {
            assert!(CrowdSite::of(url).is_err(), "{url}");
        }
    }

    /// Runs one client against `serve`, which accepts its connections; stops when `serve` ends.
    fn beside<T: Send>(
        (kind, every): (CrowdKind, Duration),
        serve: impl FnOnce(&TcpListener) -> T + Send,
    ) -> (T, Tally) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let asked = CrowdRequest {
            kind,
            clients: 1,
            every: Some(every),
            url: format!("http://{}/page", listener.local_addr().unwrap()),
        };
        let stop = AtomicBool::new(false);
        thread::scope(|scope| {
            let server = scope.spawn(|| {
                let _ending = EndOnDrop(&stop);
                serve(&listener)
            });
            let tally = run(&asked, &stop, || {}).unwrap();
            (server.join().unwrap(), tally)
        })
    }

    const MILLISECOND: Duration = Duration::from_millis(1);

    fn read(stream: &mut TcpStream, count: usize) -> String {
        let mut bytes = vec![0; count];
        stream.read_exact(&mut bytes).unwrap();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn a_head_comes_byte_by_byte_and_never_ends() {
        let (head, _) = beside((CrowdKind::Drip, MILLISECOND), |listener| {
            read(&mut listener.accept().unwrap().0, 80)
        });
        assert!(
            head.starts_with("GET /page HTTP/1.1\r\nHost: 127.0.0.1:"),
            "{head}"
        );
        assert!(head.ends_with("xx") && !head.contains("\r\n\r\n"), "{head}");
    }

    /// Whether a whole request arrives before the end of the connection.
    fn is_asked(stream: &mut TcpStream) -> bool {
        let mut request = Vec::new();
        let mut byte = [0];
        while !request.ends_with(b"\r\n\r\n") {
            match stream.read(&mut byte) {
                Ok(1) => request.push(byte[0]),
                _ => return false,
            }
        }
        assert!(
            request.starts_with(b"GET /page HTTP/1.1\r\n"),
            "{}",
            request.escape_ascii()
        );
        true
    }

    #[test]
    fn an_idle_client_asks_again_when_it_has_its_answer() {
        const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
        // Of a client whose turn comes before it has read its answer, another connection is asked.
        let every = Duration::from_millis(50);
        let ((), tally) = beside((CrowdKind::Idle, every), |listener| {
            let mut asked = 0;
            // The third request of a connection shows that its second answer was taken.
            while asked < 3 {
                let (mut stream, _) = listener.accept().unwrap();
                asked = 0;
                while asked < 3 && is_asked(&mut stream) {
                    asked += 1;
                    // It may have been given up meanwhile.
                    let _ = stream.write_all(ANSWER);
                }
            }
        });
        assert!(tally.answered >= 2, "{tally:?}");
    }

    #[test]
    fn a_client_that_sips_asks_once() {
        let (request, tally) = beside((CrowdKind::Sip, MILLISECOND), |listener| {
            let (mut stream, _) = listener.accept().unwrap();
            let request = read(&mut stream, 18);
            stream.write_all(&[b'x'; 100_000]).unwrap();
            request
        });
        assert_eq!(
            (request.as_str(), tally.answered),
            ("GET /page HTTP/1.1", 0)
        );
    }
}

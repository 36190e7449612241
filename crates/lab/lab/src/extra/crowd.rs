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
pub fn run(asked: &CrowdRequest, stop: &AtomicBool, ready: impl FnOnce()) -> io::Result<Tally> {
    let site = CrowdSite::of(&asked.url)?;
    let poll = Poll::new()?;
    let mut crowd = RunningCrowd {
        asked,
        site,
        clients: Vec::with_capacity(asked.clients),
        poll,
        tally: Tally::default(),
        buffer: vec![0; READ],
    };
    for place in 0..asked.clients {
        let client = crowd.open(place)?;
        crowd.clients.push(client);
    }
    crowd.settle(stop)?;
    ready();
    crowd.go_on(stop)?;
    Ok(crowd.tally)
}

struct RunningCrowd<'a> {
    asked: &'a CrowdRequest,
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
    waits: bool,
    is_closed: bool,
}

impl RunningCrowd<'_> {
    /// Opens a connection; clients of all kinds but `Drip` send a request at once.
    fn open(&self, place: usize) -> io::Result<CrowdClient> {
        let stream = TcpStream::connect_timeout(&self.site.address, CONNECT)?;
        stream.set_nonblocking(true)?;
        stream.set_nodelay(true)?;
        let mut stream = Stream::from_std(stream);
        let interest = match self.asked.kind {
            // Their turn alone decides what they read.
            CrowdKind::Sip => Interest::WRITABLE,
            CrowdKind::Idle | CrowdKind::Drip => Interest::READABLE,
        };
        let registry = self.poll.registry();
        registry.register(&mut stream, Token(place), interest)?;
        let mut client = CrowdClient {
            stream,
            sent: 0,
            head: Vec::new(),
            left: None,
            waits: false,
            is_closed: false,
        };
        if self.asked.kind != CrowdKind::Drip {
            client.ask(&self.site)?;
        }
        Ok(client)
    }

    /// Waits until each idle client has its first response.
    fn settle(&mut self, stop: &AtomicBool) -> io::Result<()> {
        let end = now() + SETTLE;
        while self.asked.kind == CrowdKind::Idle && self.clients.iter().any(|it| it.waits) {
            if stop.load(Ordering::Relaxed) {
                return Ok(());
            }
            let waiting = self.clients.iter().filter(|it| it.waits).count();
            if now() > end || self.clients.iter().any(|it| it.is_closed && it.waits) {
                let what = format!("{waiting} of {} clients have no answer", self.clients.len());
                return Err(io::Error::new(io::ErrorKind::TimedOut, what));
            }
            self.listen(LOOK)?;
        }
        Ok(())
    }

    /// Lets clients act, each at its turn, until `stop` is true.
    fn go_on(&mut self, stop: &AtomicBool) -> io::Result<()> {
        let start = now();
        let mut turns: VecDeque<(Instant, usize)> = VecDeque::new();
        if let Some(every) = self.asked.every {
            let count = self.clients.len().max(1);
            let due = |place: usize| start + every.mul_f64(place as f64 / count as f64);
            turns.extend((0..self.clients.len()).map(|place| (due(place), place)));
        }
        while !stop.load(Ordering::Relaxed) {
            let now = now();
            while let Some((due, place)) = turns.front().copied().filter(|(due, _)| *due <= now) {
                turns.pop_front();
                self.turn(place);
                turns.push_back((due + self.asked.every.unwrap_or_default(), place));
            }
            let next = turns
                .front()
                .map_or(LOOK, |(due, _)| due.saturating_duration_since(now));
            self.listen(next.min(LOOK))?;
        }
        Ok(())
    }

    /// Does the next step of a client.
    fn turn(&mut self, place: usize) {
        let client = &mut self.clients[place];
        if client.waits && self.asked.kind == CrowdKind::Idle {
            self.tally.lost += 1;
            client.is_closed = true;
        }
        if client.is_closed {
            self.tally.closed += 1;
            match self.open(place) {
                Ok(fresh) => self.clients[place] = fresh,
                Err(_) => self.tally.lost += 1,
            }
            return;
        }
        let done = match self.asked.kind {
            CrowdKind::Idle => client.ask(&self.site),
            CrowdKind::Drip => client.drip(&self.site),
            CrowdKind::Sip => client.sip(&mut self.buffer[..SIP]),
        };
        client.is_closed = done.is_err();
    }

    /// Reads what arrives within `time`.
    fn listen(&mut self, time: Duration) -> io::Result<()> {
        let mut events = Events::with_capacity(1024);
        match self.poll.poll(&mut events, Some(time)) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(()),
            other => other?,
        }
        for event in &events {
            let client = &mut self.clients[event.token().0];
            if self.asked.kind == CrowdKind::Sip {
                continue;
            }
            match client.read(&mut self.buffer) {
                Ok(answers) => self.tally.answered += answers,
                Err(_) => client.is_closed = true,
            }
        }
        Ok(())
    }
}

impl CrowdClient {
    /// Sends a whole request, which fits into a socket's buffer.
    fn ask(&mut self, site: &CrowdSite) -> io::Result<()> {
        self.head.clear();
        self.left = None;
        self.waits = true;
        self.stream.write_all(site.request.as_bytes())
    }

    /// Sends the next byte of a head that never ends.
    fn drip(&mut self, site: &CrowdSite) -> io::Result<()> {
        let head = site.endless.as_bytes();
        let byte = head.get(self.sent).copied().unwrap_or(b'x');
        self.sent += 1;
        self.stream.write_all(&[byte])
    }

    /// Reads the next few bytes, if there are any.
    fn sip(&mut self, buffer: &mut [u8]) -> io::Result<()> {
        match self.stream.read(buffer) {
            Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
            other => other.map(drop),
        }
    }

    /// Reads all that has arrived; returns the number of responses that became complete.
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<u64> {
        let mut answers = 0;
        loop {
            let count = match self.stream.read(buffer) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(answers),
                Err(error) => return Err(error),
            };
            answers += u64::from(self.take(&buffer[..count])?);
        }
    }

    /// Adds bytes of a response; returns whether it is complete.
    fn take(&mut self, bytes: &[u8]) -> io::Result<bool> {
        let left = match self.left {
            Some(left) => left.saturating_sub(bytes.len()),
            None => {
                self.head.extend_from_slice(bytes);
                match length(&self.head) {
                    Some(length) => length.saturating_sub(self.head.len()),
                    None if self.head.len() > READ => return Err(io::ErrorKind::InvalidData.into()),
                    None => return Ok(false),
                }
            }
        };
        self.left = Some(left);
        let is_whole = left == 0 && self.waits;
        if is_whole {
            self.waits = false;
        }
        Ok(is_whole)
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
const SETTLE: Duration = Duration::from_secs(30);

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

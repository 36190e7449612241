//! Idle clients: they keep a connection each and ask seldom.
//!
//! One thread of the lab serves them all, so that they take no place from the load generator. Each
//! request's answer is waited for; a connection that the server has closed in order is opened anew.

use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use catamaran_tier::Space;

use super::DriveFault;
use crate::experiment::Idle;

/// Clients that are connected.
pub(super) struct Crowd {
    stop: SyncSender<()>,
    thread: JoinHandle<usize>,
}

impl Crowd {
    /// Connects all clients to the server of `url`, has each ask once, and lets them go on.
    pub(super) fn start(space: &Space, url: &str, idle: Idle) -> Result<Self, DriveFault> {
        let site = Site::of(url).map_err(DriveFault::Crowd)?;
        let connect = || {
            let each = (0..idle.clients).map(|_| {
                let mut client = site.connect()?;
                site.ask(&mut client)?;
                Ok(client)
            });
            each.collect::<io::Result<Vec<TcpStream>>>()
        };
        let clients = space.inside(connect)?.map_err(DriveFault::Crowd)?;
        let (stop, stopped) = sync_channel(0);
        let space = space.clone();
        let pause = idle.every.div_f64(idle.clients as f64);
        let thread = thread::spawn(move || {
            let mut clients = clients;
            let mut lost = 0;
            let mut turn = 0;
            // A send never comes: the end of the crowd drops the sender.
            while stopped.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
                let place = turn % clients.len();
                let client = &mut clients[place];
                if site.ask(client).is_err() && site.again(&space, client).is_err() {
                    lost += 1;
                }
                turn += 1;
            }
            lost
        });
        Ok(Self { stop, thread })
    }

    /// Ends all connections; how many requests had no answer.
    pub(super) fn end(self) -> usize {
        drop(self.stop);
        self.thread.join().unwrap_or(usize::MAX)
    }
}

/// Whom the clients ask for what.
struct Site {
    address: SocketAddr,
    request: String,
}

impl Site {
    fn of(url: &str) -> io::Result<Self> {
        let wrong = || {
            io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("{url} is not http://IP:PORT/"),
            )
        };
        let rest = url.strip_prefix("http://").ok_or_else(wrong)?;
        let (host, path) = rest.split_once('/').ok_or_else(wrong)?;
        Ok(Self {
            address: host.parse().map_err(|_| wrong())?,
            request: format!("GET /{path} HTTP/1.1\r\nHost: {host}\r\n\r\n"),
        })
    }

    fn connect(&self) -> io::Result<TcpStream> {
        let client = TcpStream::connect_timeout(&self.address, PATIENCE)?;
        client.set_read_timeout(Some(PATIENCE))?;
        client.set_nodelay(true)?;
        Ok(client)
    }

    /// Asks on a new connection in the place of one that the server has closed.
    fn again(&self, space: &Space, client: &mut TcpStream) -> io::Result<()> {
        let fresh = space.inside(|| self.connect()).map_err(io::Error::other)?;
        *client = fresh?;
        self.ask(client)
    }

    /// Sends a request and reads its answer, which has a Content-Length.
    fn ask(&self, client: &mut TcpStream) -> io::Result<()> {
        client.write_all(self.request.as_bytes())?;
        let mut answer = Vec::new();
        let mut piece = [0; 4096];
        loop {
            if length(&answer).is_some_and(|length| answer.len() >= length) {
                return Ok(());
            }
            match client.read(&mut piece)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                _ if answer.len() > ANSWER_MAX => return Err(io::ErrorKind::InvalidData.into()),
                count => answer.extend_from_slice(&piece[..count]),
            }
        }
    }
}

/// How long the whole answer is; `None` as long as its head is not there.
fn length(answer: &[u8]) -> Option<usize> {
    let end = answer.windows(4).position(|window| window == b"\r\n\r\n")? + 4;
    let head = String::from_utf8_lossy(&answer[..end]).to_ascii_lowercase();
    let field = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length:"));
    let body = field.and_then(|value| value.trim().parse::<usize>().ok());
    // Without a length nothing is waited for.
    Some(end.saturating_add(body.unwrap_or(0)))
}

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// Longer answers are none that an idle client asks for.
const ANSWER_MAX: usize = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_length_of_an_answer() {
        assert_eq!(length(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n"), None);
        assert_eq!(
            length(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nab"),
            Some(43)
        );
        assert_eq!(length(b"HTTP/1.1 204 No\r\n\r\n"), Some(19));
    }

    #[test]
    fn other_urls_are_refused() {
        assert!(Site::of("http://127.0.0.1:8001/").is_ok());
        for url in [
            "https://127.0.0.1:1/",
            "http://localhost:1/",
            "http://127.0.0.1:1",
        ] {
            assert!(Site::of(url).is_err(), "{url}");
        }
    }
}

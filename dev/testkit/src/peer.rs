//! A server that plays a script on every connection and records all it received.
//!
//! It stands for a backend or a container that misbehaves in an exact way: answers half a packet,
//! stalls, resets. Each connection runs on its own thread, so it serves asynchronous tests too.
//! Dropping the peer closes every connection and joins the threads.

mod script;

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr};
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use socket2::{Domain, SockAddr, Socket, Type};

pub use self::script::Script;
use self::script::Step;
use crate::{Address, Deadline};

/// A running scripted server.
#[derive(Debug)]
pub struct Peer {
    address: Address,
    shared: Arc<Shared>,
    acceptor: Option<JoinHandle<()>>,
}

/// How the script of one connection ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Every step was played.
    Completed,
    /// The other side closed while the script still expected bytes.
    ClosedEarly,
    /// The other side reset the connection, or stopped reading.
    Failed(io::ErrorKind),
    /// The expected bytes did not come within thirty seconds.
    TimedOut,
}

#[derive(Debug, Default)]
struct Shared {
    // A std mutex: test threads hold it for a push or a clone, and wait on the condition.
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    connections: Vec<Record>,
    stopping: bool,
}

#[derive(Debug)]
struct Record {
    received: Vec<u8>,
    outcome: Option<Outcome>,
    socket: Socket,
}

impl Peer {
    /// A peer on a free TCP port of 127.0.0.1 that plays `script` on every connection.
    ///
    /// # Panics
    /// When no socket can be bound.
    #[must_use]
    pub fn start(script: Script) -> Self {
        Self::start_with(move |_| script.clone())
    }

    /// Like [`Peer::start`], but `script` chooses the script by the number of the connection, from 0.
    ///
    /// # Panics
    /// No socket can be bound.
    #[must_use]
    pub fn start_with(script: impl Fn(usize) -> Script + Send + 'static) -> Self {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        Self::bind(&address.into(), script).expect("a port of 127.0.0.1 can be bound")
    }

    /// Like [`Peer::start`], but at `address`. Nothing else may take the address when the peer is gone; those
    /// of [`unused`](crate::address::unused) are safe.
    ///
    /// # Panics
    /// The address cannot be bound.
    #[must_use]
    pub fn start_at(address: SocketAddr, script: Script) -> Self {
        Self::bind(&address.into(), move |_| script.clone()).expect("the address can be bound")
    }

    /// A peer on the Unix socket `path`, which must not exist yet.
    ///
    /// # Panics
    /// When the socket cannot be bound.
    #[must_use]
    pub fn start_unix(path: &Path, script: impl Fn(usize) -> Script + Send + 'static) -> Self {
        Self::bind(&Address::Unix(path.to_owned()), script).expect("the path can be bound")
    }

    /// The address at which the peer listens.
    #[must_use]
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// The TCP address where the peer listens.
    ///
    /// # Panics
    /// When the peer listens on a Unix socket.
    #[must_use]
    pub fn tcp_address(&self) -> SocketAddr {
        match &self.address {
            Address::Tcp(address) => *address,
            Address::Unix(path) => panic!("this peer listens on {}", path.display()),
        }
    }

    /// The number of connections accepted so far.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.shared.lock().connections.len()
    }

    /// All bytes received so far on connection number `index`, from 0; empty if there is no such connection.
    #[must_use]
    pub fn received(&self, index: usize) -> Vec<u8> {
        let state = self.shared.lock();
        let record = state.connections.get(index);
        record
            .map(|record| record.received.clone())
            .unwrap_or_default()
    }

    /// Waits until `count` connections have been accepted.
    ///
    /// # Panics
    /// After thirty seconds.
    pub fn wait_connections(&self, count: usize) {
        self.shared.wait(&format!("{count} connections"), |state| {
            (state.connections.len() >= count).then_some(())
        });
    }

    /// Waits until connection `index` has received `length` bytes, and returns all it received.
    ///
    /// # Panics
    /// After thirty seconds.
    #[must_use]
    pub fn wait_received(&self, index: usize, length: usize) -> Vec<u8> {
        let what = format!("{length} bytes on connection {index}");
        self.shared.wait(&what, |state| {
            let received = &state.connections.get(index)?.received;
            (received.len() >= length).then(|| received.clone())
        })
    }

    /// Waits until the script of connection `index` has ended.
    ///
    /// # Panics
    /// After thirty seconds beyond the script's own deadlines.
    #[must_use]
    pub fn wait_outcome(&self, index: usize) -> Outcome {
        let what = format!("the end of connection {index}");
        self.shared
            .wait(&what, |state| state.connections.get(index)?.outcome.clone())
    }

    fn bind(
        address: &Address,
        script: impl Fn(usize) -> Script + Send + 'static,
    ) -> io::Result<Self> {
        let (listener, address) = listen(address)?;
        let shared = Arc::new(Shared::default());
        let acceptor = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || accept(&listener, &shared, script))
        };
        Ok(Self {
            address,
            shared,
            acceptor: Some(acceptor),
        })
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        {
            let mut state = self.shared.lock();
            state.stopping = true;
            for record in &state.connections {
                // This fails only if the connection is closed already.
                let _ = record.socket.shutdown(Shutdown::Both);
            }
        }
        // The acceptor waits in `accept`: one last connection wakes it.
        let _ = self.address.connect(Duration::from_secs(1));
        if let Some(acceptor) = self.acceptor.take() {
            let _ = acceptor.join();
        }
        if let Address::Unix(path) = &self.address {
            let _ = std::fs::remove_file(path);
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

    fn wait<T>(&self, what: &str, mut ready: impl FnMut(&State) -> Option<T>) -> T {
        let deadline = Deadline::default();
        let mut state = self.lock();
        loop {
            if let Some(value) = ready(&state) {
                return value;
            }
            let Some(left) = deadline.remaining() else {
                panic!("gave up waiting for {what}; state: {state:?}");
            };
            let result = self.changed.wait_timeout(state, left);
            state = result.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

fn listen(address: &Address) -> io::Result<(Socket, Address)> {
    let (domain, name) = match address {
        Address::Tcp(address) => (Domain::for_address(*address), SockAddr::from(*address)),
        Address::Unix(path) => (Domain::UNIX, SockAddr::unix(path)?),
    };
    let socket = Socket::new(domain, Type::STREAM, None)?;
    // A peer may start where another one has just ended, whose last connection the kernel still remembers.
    socket.set_reuse_address(matches!(address, Address::Tcp(_)))?;
    socket.bind(&name)?;
    socket.listen(1024)?;
    let bound = socket.local_addr()?.as_socket();
    Ok((socket, bound.map_or_else(|| address.clone(), Address::Tcp)))
}

/// Accepts connections until the peer stops, and plays each one's script on a thread of its own.
fn accept(listener: &Socket, shared: &Arc<Shared>, script: impl Fn(usize) -> Script) {
    let mut players = Vec::new();
    while let Ok((socket, _)) = listener.accept() {
        // Each write is to be sent at once; a Unix socket has no such option and needs none.
        let _ = socket.set_tcp_nodelay(true);
        let Ok(recorded) = socket.try_clone() else {
            break;
        };
        let index = shared.change(|state| {
            if state.stopping {
                return None;
            }
            state.connections.push(Record {
                received: Vec::new(),
                outcome: None,
                socket: recorded,
            });
            Some(state.connections.len() - 1)
        });
        let Some(index) = index else {
            break;
        };
        let player = Player {
            socket,
            index,
            consumed: 0,
            shared: Arc::clone(shared),
        };
        let script = script(index);
        players.push(thread::spawn(move || player.play(&script)));
    }
    for player in players {
        let _ = player.join();
    }
}

/// Plays one script on one connection.
struct Player {
    socket: Socket,
    index: usize,
    /// The number of received bytes that earlier steps have taken.
    consumed: usize,
    shared: Arc<Shared>,
}

impl Player {
    fn play(mut self, script: &Script) {
        let mut steps = script.steps().iter();
        let outcome = match steps.try_for_each(|step| self.step(step)) {
            Ok(()) => Outcome::Completed,
            Err(outcome) => outcome,
        };
        let Self {
            socket,
            index,
            shared,
            ..
        } = self;
        if script.resets() {
            // With a linger of zero, closing discards what is queued and sends RST.
            let _ = socket.set_linger(Some(Duration::ZERO));
        } else {
            let _ = socket.shutdown(Shutdown::Both);
        }
        drop(socket);
        shared.change(|state| {
            if let Some(record) = state.connections.get_mut(index) {
                record.outcome = Some(outcome);
                // The record has a second handle of the socket. It is replaced, because the socket sends FIN or RST
                // only when its last handle is closed.
                if let Ok(placeholder) = Socket::new(Domain::UNIX, Type::STREAM, None) {
                    record.socket = placeholder;
                }
            }
        });
    }

    /// Plays one step; an error is the outcome with which the script ends before its last step.
    fn step(&mut self, step: &Step) -> Result<(), Outcome> {
        match step {
            Step::Expect(count) => self.expect(|bytes| (bytes.len() >= *count).then_some(*count)),
            Step::ExpectUntil(pattern) => self.expect(|bytes| {
                let mut windows = bytes.windows(pattern.len());
                let position = windows.position(|window| window == pattern)?;
                Some(position + pattern.len())
            }),
            Step::ExpectPacket => self.expect(|bytes| {
                let length = 4 + usize::from(u16::from_be_bytes([*bytes.get(2)?, *bytes.get(3)?]));
                (bytes.len() >= length).then_some(length)
            }),
            // No number of bytes is enough: only the end of the connection ends this step.
            Step::ExpectEnd => match self.expect(|_| None) {
                Err(Outcome::ClosedEarly) => Ok(()),
                other => other,
            },
            Step::Send(pieces) => {
                for piece in pieces {
                    let result = self.socket.write_all(piece);
                    result.map_err(|error| Outcome::Failed(error.kind()))?;
                }
                Ok(())
            }
            Step::FinishSending => self
                .socket
                .shutdown(Shutdown::Write)
                .map_err(|error| Outcome::Failed(error.kind())),
            Step::Pause(duration) => self.pause(Deadline::after(*duration)),
            Step::Stall => loop {
                match self.receive(None) {
                    Ok(()) => {}
                    Err(Outcome::ClosedEarly) => return Ok(()),
                    Err(other) => return Err(other),
                }
            },
        }
    }

    /// Receives and records bytes until `deadline`.
    fn pause(&mut self, deadline: Deadline) -> Result<(), Outcome> {
        loop {
            match self.receive(Some(deadline)) {
                Ok(()) => {}
                Err(Outcome::TimedOut) if deadline.remaining().is_none() => return Ok(()),
                Err(Outcome::TimedOut) => {}
                Err(other) => return Err(other),
            }
        }
    }

    /// Receives until `complete` returns `Some`: how many of the bytes that no step has taken yet this step takes.
    fn expect(&mut self, complete: impl Fn(&[u8]) -> Option<usize>) -> Result<(), Outcome> {
        let deadline = Deadline::default();
        loop {
            let taken = {
                let state = self.shared.lock();
                complete(&state.connections[self.index].received[self.consumed..])
            };
            if let Some(taken) = taken {
                self.consumed += taken;
                return Ok(());
            }
            self.receive(Some(deadline))?;
        }
    }

    /// Reads once, and records what was received.
    fn receive(&mut self, deadline: Option<Deadline>) -> Result<(), Outcome> {
        let timeout = match deadline {
            Some(deadline) => Some(deadline.remaining().ok_or(Outcome::TimedOut)?),
            None => None,
        };
        let failed = |error: io::Error| match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => Outcome::TimedOut,
            kind => Outcome::Failed(kind),
        };
        self.socket.set_read_timeout(timeout).map_err(failed)?;
        let mut bytes = vec![0; 64 * 1024];
        let count = self.socket.read(&mut bytes).map_err(failed)?;
        if count == 0 {
            return Err(Outcome::ClosedEarly);
        }
        self.shared.change(|state| {
            let received = &mut state.connections[self.index].received;
            received.extend_from_slice(&bytes[..count]);
            if received.len() > RECORDED_BYTES_MAX {
                return Err(Outcome::Failed(io::ErrorKind::OutOfMemory));
            }
            Ok(())
        })
    }
}

/// The most bytes recorded for one connection. A script that needs more fails.
const RECORDED_BYTES_MAX: usize = 64 << 20;

#[cfg(test)]
mod tests;

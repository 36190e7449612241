//! Hands the listening sockets to the next process, so that no client in their queues is lost.
//!
//! The two processes share a pair of Unix sockets that preserve message boundaries (SOCK_SEQPACKET).
//! The new process asks. The old process sends each listener's address with its sockets as ancillary
//! data (SCM_RIGHTS), in as many messages as needed, and then an end message. The new process starts,
//! and answers which listeners it took. Until then the old process serves, and if there is no answer it
//! goes on serving. The caller starts the new process and passes it one socket of the pair.
//!
//! This module is the old process's side. [`crate::inheritance`] has the messages and the new process's side.

use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;
use std::time::Duration;

use catamaran_tls::TicketKeys;

use rustix::io::Errno;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{
    AddressFamily, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags,
    SocketType, recv, sendmsg, socketpair,
};
use thiserror::Error;

use crate::admin::Admin;
use crate::config::ListenAddress;
use crate::inheritance::{
    ASK, END, MEMBERS, MESSAGE_MAX, NAMES, NameRecord, OVERRIDES, READY, SOCKETS_MAX, TCP, TICKETS,
    UNIX, VERSION, unintelligible,
};
use crate::listener::Listener;
use crate::listener::drain::Ending;
use crate::running::Running;
use crate::tls;
use crate::worker::FrontState;

/// The old process's side of a handover that is not finished.
#[derive(Debug)]
pub struct Offer {
    channel: OwnedFd,
    listeners: Vec<Arc<Listener>>,
    /// The operators' overrides, as JSON; empty if there are none.
    overrides: Vec<u8>,
    /// The members that were found, as JSON; empty if no upstream has a source of members.
    members: Vec<u8>,
    /// The last resolved addresses of backends' names, as JSON.
    names: Vec<u8>,
    /// The ticket keys of each TLS profile, with its name.
    tickets: Vec<(String, Arc<TicketKeys>)>,
    shared: Arc<FrontState>,
    taken: bool,
}

/// If no process took over, the drop permits changes by operators again.
impl Drop for Offer {
    fn drop(&mut self) {
        if !self.taken {
            self.shared.control.freeze(false);
        }
    }
}

/// The listeners from which the new process accepts now.
#[derive(Debug)]
pub struct TakenListeners(Vec<Arc<Listener>>);

/// Why a handover failed.
#[derive(Debug, Error)]
pub enum HandoverError {
    /// The new process ended, or closed its end of the pair.
    #[error("the new process ended before it was ready")]
    Ended,
    /// The new process took longer than `limit` to answer.
    #[error("the new process was not ready within {} s", limit.as_secs())]
    Late {
        /// How long the old process waited.
        limit: Duration,
    },
    /// The new process's answer cannot be read, or the pair of sockets failed.
    #[error("the answer of the new process cannot be read: {0}")]
    Channel(#[source] io::Error),
}

impl Running {
    /// Prepares the handover of the listening sockets. The second part is the socket to give to the new process.
    ///
    /// # Errors
    /// The pair of sockets cannot be made.
    pub fn offer(&self) -> io::Result<(Offer, OwnedFd)> {
        let mut listeners = self.listeners().clone();
        let admin = self.admin.iter().flat_map(Admin::listeners);
        listeners.extend(admin.cloned());
        Offer::new(listeners, &self.shared)
    }

    /// Drains as [`Running::drain`] does, after another process has taken listeners over: this process accepts nothing
    /// more from those.
    pub fn drain_for_successor(&self, taken: &TakenListeners) {
        for listener in &taken.0 {
            listener.drain().begin(Ending::HandedOver);
        }
        self.drain();
    }
}

impl Offer {
    /// Prepares the handover of the sockets of `listeners`. The second part is the socket to give to the new process.
    ///
    /// # Errors
    /// The pair of sockets cannot be made.
    fn new(listeners: Vec<Arc<Listener>>, shared: &Arc<FrontState>) -> io::Result<(Self, OwnedFd)> {
        let (channel, theirs) = socketpair(
            AddressFamily::UNIX,
            SocketType::SEQPACKET,
            SocketFlags::CLOEXEC,
            None,
        )?;
        let overrides = {
            let in_force = shared.control.lock();
            // Frozen under the lock: no change comes between this copy and the freeze.
            shared.control.freeze(true);
            if in_force.is_empty() {
                Vec::new()
            } else {
                serde_json::to_vec(&*in_force)?
            }
        };
        let offer = Self {
            channel,
            listeners,
            overrides,
            members: members(shared),
            names: names(shared)?,
            tickets: tls::ticket_keys(&shared.profiles.load()),
            shared: Arc::clone(shared),
            taken: false,
        };
        Ok((offer, theirs))
    }

    /// Waits until the new process asks, sends it the sockets, then waits at most `limit` until it serves clients. The
    /// caller must first close its copy of the new process's socket, or this process does not notice if the new one
    /// ends.
    ///
    /// # Errors
    /// [`HandoverError`]; this process goes on serving as before.
    pub fn send_and_wait(mut self, limit: Duration) -> Result<TakenListeners, HandoverError> {
        match &receive(&self.channel, limit.min(ASKED_IN))?[..] {
            // An empty message stands for the end of the channel.
            [] => return Err(HandoverError::Ended),
            [VERSION, ASK] => {}
            _ => return Err(HandoverError::Channel(unintelligible())),
        }
        let texts = [
            (OVERRIDES, &self.overrides[..]),
            (MEMBERS, &self.members[..]),
            (NAMES, &self.names[..]),
        ];
        set_socket_timeout(&self.channel, Timeout::Send, Some(limit))
            .and_then(|()| send_all(&self.channel, &self.listeners, texts, &self.tickets))
            .map_err(|errno| failed(errno, limit))?;
        match &receive(&self.channel, limit)?[..] {
            [] => Err(HandoverError::Ended),
            // A byte for each listener: 1 if the new process accepts there.
            [VERSION, READY, flags @ ..] if flags.len() == self.listeners.len() => {
                self.taken = true;
                let mut flags = flags.iter();
                let mut listeners = std::mem::take(&mut self.listeners);
                listeners.retain(|_| flags.next() == Some(&1));
                Ok(TakenListeners(listeners))
            }
            _ => Err(HandoverError::Channel(unintelligible())),
        }
    }
}

/// Receives one message of the new process, within `limit`.
fn receive(channel: &OwnedFd, limit: Duration) -> Result<Vec<u8>, HandoverError> {
    let mut message = [0; ANSWER_MAX];
    let (length, _) = set_socket_timeout(channel, Timeout::Recv, Some(limit))
        .and_then(|()| recv(channel, &mut message[..], RecvFlags::empty()))
        .map_err(|errno| failed(errno, limit))?;
    Ok(message[..length].to_vec())
}

fn failed(errno: Errno, limit: Duration) -> HandoverError {
    match errno {
        Errno::PIPE | Errno::CONNRESET => HandoverError::Ended,
        Errno::AGAIN => HandoverError::Late { limit },
        errno => HandoverError::Channel(errno.into()),
    }
}

/// The discovered members as JSON; empty if there are none, or if they cannot be written.
fn members(shared: &FrontState) -> Vec<u8> {
    let records = shared.control.discovered.records();
    if records.is_empty() {
        return Vec::new();
    }
    serde_json::to_vec(&records).unwrap_or_else(|error| {
        tracing::error!(%error, "members that were found cannot be handed over: their sources are asked");
        Vec::new()
    })
}

/// The last resolved addresses of backends' names, as JSON.
fn names(shared: &FrontState) -> serde_json::Result<Vec<u8>> {
    let mut records = Vec::new();
    for backend in shared.site.load().backends() {
        if let Some(resolution) = backend.resolution()
            && let Some(age) = resolution.age
        {
            records.push(NameRecord {
                host: resolution.host,
                addresses: resolution.addresses,
                age_s: age.as_secs(),
            });
        }
    }
    serde_json::to_vec(&records)
}

/// Sends the listeners, texts and ticket keys, then the end message. A long text is split over several messages.
fn send_all(
    channel: &OwnedFd,
    listeners: &[Arc<Listener>],
    texts: [(u8, &[u8]); 3],
    tickets: &[(String, Arc<TicketKeys>)],
) -> Result<(), Errno> {
    for (index, listener) in (0_u16..).zip(listeners) {
        let mut message = vec![VERSION];
        let address = &listener.config().address;
        message.push(match address {
            ListenAddress::Tcp(_) => TCP,
            ListenAddress::Unix(_) => UNIX,
        });
        message.extend(index.to_be_bytes());
        match address {
            ListenAddress::Tcp(address) => message.extend(address.to_string().as_bytes()),
            ListenAddress::Unix(path) => message.extend(path.as_os_str().as_bytes()),
        }
        let acceptors = listener.acceptors();
        let sockets: Vec<BorrowedFd<'_>> = acceptors.iter().map(|it| it.as_fd()).collect();
        for chunk in sockets.chunks(SOCKETS_MAX) {
            send_with(channel, &message, chunk)?;
        }
    }
    for (kind, text) in texts {
        for part in text.chunks(PART_MAX) {
            let mut message = vec![VERSION, kind, 0, 0];
            message.extend(part);
            send_with(channel, &message, &[])?;
        }
    }
    for (name, keys) in tickets {
        let mut message = vec![VERSION, TICKETS, 0, 0];
        message.extend(keys.export());
        message.extend(name.as_bytes());
        // Names from the file are short enough. A profile whose keys are not sent would begin with new ones.
        if message.len() <= MESSAGE_MAX {
            send_with(channel, &message, &[])?;
        }
    }
    send_with(channel, &[VERSION, END], &[])
}

fn send_with(channel: &OwnedFd, message: &[u8], sockets: &[BorrowedFd<'_>]) -> Result<(), Errno> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(SOCKETS_MAX))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !sockets.is_empty() {
        let fits = control.push(SendAncillaryMessage::ScmRights(sockets));
        debug_assert!(fits, "the space is for as many as a chunk has");
    }
    let message = [IoSlice::new(message)];
    sendmsg(channel, &message, &mut control, SendFlags::NOSIGNAL).map(drop)
}

/// How long the new process may take to ask for the sockets, which it does first.
const ASKED_IN: Duration = Duration::from_secs(10);

/// The most bytes of a text in one message, so that the message fits [`MESSAGE_MAX`].
const PART_MAX: usize = MESSAGE_MAX - 4;

/// The longest answer of the new process: version, kind and a byte for each listener.
const ANSWER_MAX: usize = 2 + u16::MAX as usize;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::ListenerConfig;
    use crate::inheritance::Inheritance;
    use crate::listener::{Acceptor, Ipv4Ports, bind};

    fn listener(address: &ListenAddress, workers: usize) -> Arc<Listener> {
        let bound = bind(address, &Ipv4Ports::default(), workers).expect("a free address");
        let config = ListenerConfig::new(address.clone());
        let listener = Listener::new(config, None, bound.address.clone(), bound.file);
        for socket in bound.sockets {
            listener.add(Acceptor::adopt(socket, &bound.address).expect("adopted"));
        }
        Arc::new(listener)
    }

    #[tokio::test]
    async fn every_socket_of_every_listener_arrives() {
        let directory = tempfile::tempdir().expect("a directory");
        let unix = ListenAddress::Unix(directory.path().join("front.sock"));
        let tcp = ListenAddress::Tcp(([127, 0, 0, 1], 0).into());
        // More than fit one message.
        let many = SOCKETS_MAX + 6;
        let listeners = vec![listener(&tcp, many), listener(&unix, 2), listener(&tcp, 1)];
        let (channel, theirs) = socketpair(
            AddressFamily::UNIX,
            SocketType::SEQPACKET,
            SocketFlags::CLOEXEC,
            None,
        )
        .expect("a pair");
        // More than fits one message.
        let overrides: Vec<u8> = (0..=255).cycle().take(1000).collect();
        let keys = TicketKeys::generate().expect("random bytes");
        let tickets = [("www".to_owned(), Arc::clone(&keys))];
        let texts = [
            (OVERRIDES, &overrides[..]),
            (MEMBERS, &b""[..]),
            (NAMES, &b""[..]),
        ];
        send_all(&channel, &listeners, texts, &tickets).expect("sent");
        let mut inheritance = Inheritance::receive(theirs).expect("received");
        assert_eq!(inheritance.overrides_as_json(), overrides);
        let received = inheritance.ticket_keys("www").expect("keys");
        assert_eq!(received.export(), keys.export());
        assert!(inheritance.ticket_keys("other").is_none());
        let mut take = |address: &ListenAddress| inheritance.take(address).map(|all| all.len());
        assert_eq!(take(&tcp), Some(many));
        assert_eq!(take(&unix), Some(2));
        assert_eq!((take(&tcp), take(&tcp), take(&unix)), (Some(1), None, None));
    }
}

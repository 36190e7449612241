//! Handing the listening sockets to the next process, so that no client in their queues is lost.
//!
//! The two processes share a pair of Unix sockets that preserve message boundaries (SOCK_SEQPACKET).
//! The old process sends each listener's address with its sockets as ancillary data (SCM_RIGHTS), in
//! as many messages as needed, and then an end message. The new process starts, and answers which
//! listeners it took. Until then the old process serves, and if there is no answer it goes on
//! serving. The caller starts the new process and tells it its end of the pair.
//!
//! A message is one byte of version, one of kind, two of the listener's index, and its address. What
//! operators said of members goes along as JSON in messages of a kind of its own, if that is anything.
//! So do the keys of TLS tickets, a message for each profile: the keys, and the profile's name. A
//! process that knows no such messages takes them for more of a listener, without sockets.

use std::collections::HashMap;
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use catamaran_tls::{TICKET_KEYS_LEN, TicketKeys};
use rustix::io::Errno;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recv, recvmsg, send, sendmsg,
    socketpair,
};
use socket2::SockRef;
use thiserror::Error;

use crate::config::ListenAddress;
use crate::listener::Listener;
use crate::site::overrides::Overrides;
use crate::tls;
use crate::worker::Shared;

/// The old process's side of a handover that has not succeeded yet.
#[derive(Debug)]
pub struct Offer {
    channel: OwnedFd,
    listeners: Vec<Arc<Listener>>,
    /// What operators said, as JSON; empty if that is nothing.
    overrides: Vec<u8>,
    /// The keys of each TLS profile's tickets.
    tickets: Vec<(String, Arc<TicketKeys>)>,
    shared: Arc<Shared>,
    taken: bool,
}

/// Whoever may change something again, if nobody took over.
impl Drop for Offer {
    fn drop(&mut self) {
        if !self.taken {
            self.shared.control.freeze(false);
        }
    }
}

/// The listeners from which another process accepts now.
#[derive(Debug)]
pub struct Taken(Vec<Arc<Listener>>);

/// Why a handover failed.
#[derive(Debug, Error)]
pub enum NotTaken {
    /// The new process ended, or closed its end of the pair.
    #[error("the new process ended before it was ready")]
    Ended,
    /// It needed too long.
    #[error("the new process was not ready within {} s", limit.as_secs())]
    Late {
        /// How long the old process waited.
        limit: Duration,
    },
    /// Its answer cannot be read, or the pair failed.
    #[error("the answer of the new process cannot be read: {0}")]
    Channel(#[source] io::Error),
}

/// The listening sockets of the process before this one. The default is none.
#[derive(Debug, Default)]
pub struct Inheritance {
    channel: Option<OwnedFd>,
    listeners: Vec<Inherited>,
    /// As JSON.
    overrides: Vec<u8>,
    /// By the name of the profile.
    tickets: HashMap<String, Arc<TicketKeys>>,
    since: Option<u64>,
}

impl Inheritance {
    /// Says when the first process of this front began, in seconds of the Unix epoch.
    pub fn serves_since(&mut self, seconds: u64) {
        self.since = Some(seconds);
    }

    pub(crate) fn since(&self) -> Option<u64> {
        self.since
    }
}

#[derive(Debug)]
struct Inherited {
    address: ListenAddress,
    /// Empty once taken.
    sockets: Vec<OwnedFd>,
    taken: bool,
}

impl Offer {
    /// Prepares to hand the sockets of `listeners` over; the second part is the other process's end.
    ///
    /// # Errors
    /// The pair of sockets cannot be had.
    pub(crate) fn new(
        listeners: Vec<Arc<Listener>>,
        shared: &Arc<Shared>,
    ) -> io::Result<(Self, OwnedFd)> {
        let (channel, theirs) = socketpair(
            AddressFamily::UNIX,
            SocketType::SEQPACKET,
            SocketFlags::CLOEXEC,
            None,
        )?;
        let overrides = {
            let overrides = shared.control.lock();
            shared.control.freeze(true);
            match overrides.is_empty() {
                true => Vec::new(),
                false => serde_json::to_vec(&*overrides)?,
            }
        };
        let offer = Self {
            channel,
            listeners,
            overrides,
            tickets: tls::ticket_keys(&shared.profiles.load()),
            shared: Arc::clone(shared),
            taken: false,
        };
        Ok((offer, theirs))
    }

    /// Sends the sockets, then waits until the other process serves clients. The other end must
    /// have been closed in this process, or the other's end goes unnoticed.
    ///
    /// # Errors
    /// [`NotTaken`]; everything is as it was.
    pub fn send_and_wait(mut self, limit: Duration) -> Result<Taken, NotTaken> {
        let failed = |errno| match errno {
            Errno::PIPE | Errno::CONNRESET => NotTaken::Ended,
            Errno::AGAIN => NotTaken::Late { limit },
            errno => NotTaken::Channel(errno.into()),
        };
        for direction in [Timeout::Send, Timeout::Recv] {
            set_socket_timeout(&self.channel, direction, Some(limit)).map_err(failed)?;
        }
        offer(
            &self.channel,
            &self.listeners,
            &self.overrides,
            &self.tickets,
        )
        .map_err(failed)?;
        let mut answer = [0; ANSWER_MAX];
        let (length, _) =
            recv(&self.channel, &mut answer[..], RecvFlags::empty()).map_err(failed)?;
        match &answer[..length] {
            [] => Err(NotTaken::Ended),
            [VERSION, READY, taken @ ..] if taken.len() == self.listeners.len() => {
                self.taken = true;
                let both = std::mem::take(&mut self.listeners).into_iter().zip(taken);
                let taken = both.filter_map(|(listener, &taken)| (taken == 1).then_some(listener));
                Ok(Taken(taken.collect()))
            }
            _ => Err(NotTaken::Channel(unintelligible())),
        }
    }
}

/// Sends all there is to hand over.
fn offer(
    channel: &OwnedFd,
    listeners: &[Arc<Listener>],
    overrides: &[u8],
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
        for sockets in sockets.chunks(SOCKETS_MAX) {
            send_with(channel, &message, sockets)?;
        }
    }
    for part in overrides.chunks(PART_MAX) {
        let mut message = vec![VERSION, OVERRIDES, 0, 0];
        message.extend(part);
        send_with(channel, &message, &[])?;
    }
    for (name, keys) in tickets {
        let mut message = vec![VERSION, TICKETS, 0, 0];
        message.extend(keys.export());
        message.extend(name.as_bytes());
        // Names of the file are shorter; without its keys a profile begins with fresh ones.
        if message.len() <= MESSAGE_MAX {
            send_with(channel, &message, &[])?;
        }
    }
    send_with(channel, &[VERSION, END], &[])
}

impl Taken {
    pub(crate) fn listeners(&self) -> &[Arc<Listener>] {
        &self.0
    }
}

impl Inheritance {
    /// Receives what the process before this one hands over through its end of the pair.
    ///
    /// # Errors
    /// `channel` is no such end, the other process ended, or it is of a version that speaks
    /// otherwise.
    pub fn receive(channel: OwnedFd) -> io::Result<Self> {
        let mut listeners: Vec<Inherited> = Vec::new();
        let mut overrides = Vec::new();
        let mut tickets = HashMap::new();
        let mut message = [0; MESSAGE_MAX];
        loop {
            let (length, sockets) = receive_with(&channel, &mut message)?;
            match &message[..length] {
                [] => return Err(io::ErrorKind::UnexpectedEof.into()),
                [VERSION, END] => break,
                [VERSION, OVERRIDES, _, _, part @ ..] => overrides.extend_from_slice(part),
                [VERSION, TICKETS, _, _, profile @ ..] => tickets.extend(decode_tickets(profile)),
                [VERSION, kind, high, low, address @ ..] => {
                    let index = usize::from(u16::from_be_bytes([*high, *low]));
                    if index == listeners.len() {
                        listeners.push(Inherited {
                            address: decode_address(*kind, address).ok_or_else(unintelligible)?,
                            sockets: Vec::new(),
                            taken: false,
                        });
                    }
                    let listener = listeners.get_mut(index).ok_or_else(unintelligible)?;
                    listener.sockets.extend(sockets);
                }
                _ => return Err(unintelligible()),
            }
        }
        Ok(Self {
            channel: Some(channel),
            listeners,
            overrides,
            tickets,
            since: None,
        })
    }

    /// What operators said to the process before this one, if that is anything.
    pub(crate) fn overrides(&self) -> Option<Overrides> {
        if self.overrides.is_empty() {
            return None;
        }
        let read = serde_json::from_slice(&self.overrides);
        read.inspect_err(|error| {
            tracing::error!(%error, "what operators said to the process before this one is lost");
        })
        .ok()
    }

    /// The keys of tickets that the process before this one made for a profile.
    pub(crate) fn ticket_keys(&self, profile: &str) -> Option<Arc<TicketKeys>> {
        self.tickets.get(profile).map(Arc::clone)
    }

    /// The sockets of a listener that is to be at `address`, if there are any.
    pub(crate) fn take(&mut self, address: &ListenAddress) -> Option<Vec<OwnedFd>> {
        let inherited = self
            .listeners
            .iter_mut()
            .find(|it| !it.taken && it.is_at(address))?;
        inherited.taken = true;
        Some(std::mem::take(&mut inherited.sockets))
    }

    /// Tells the process before this one that clients are served, and which listeners were taken.
    pub(crate) fn say_ready(self) {
        let Some(channel) = self.channel else {
            return;
        };
        let mut answer = vec![VERSION, READY];
        answer.extend(self.listeners.iter().map(|it| u8::from(it.taken)));
        if let Err(error) = send(channel, &answer, SendFlags::NOSIGNAL) {
            // It is gone; all the more reason to go on here.
            tracing::warn!(%error, "cannot tell the process before this one that it may end");
        }
    }
}

impl Inherited {
    fn is_at(&self, address: &ListenAddress) -> bool {
        let bound = || {
            SockRef::from(self.sockets.first()?)
                .local_addr()
                .ok()?
                .as_socket()
        };
        match address {
            _ if self.address == *address => !self.sockets.is_empty(),
            ListenAddress::Tcp(asked) => bound() == Some(*asked),
            ListenAddress::Unix(_) => false,
        }
    }
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

fn receive_with(channel: &OwnedFd, message: &mut [u8]) -> io::Result<(usize, Vec<OwnedFd>)> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(SOCKETS_MAX))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut message = [IoSliceMut::new(message)];
    let received = recvmsg(channel, &mut message, &mut control, RecvFlags::CMSG_CLOEXEC)?;
    let sockets = control.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(sockets) => Some(sockets),
        _ => None,
    });
    Ok((received.bytes, sockets.flatten().collect()))
}

fn decode_address(kind: u8, address: &[u8]) -> Option<ListenAddress> {
    match kind {
        TCP => {
            let text = std::str::from_utf8(address).ok()?;
            text.parse().ok().map(ListenAddress::Tcp)
        }
        UNIX => {
            let path = std::ffi::OsString::from_vec(address.to_vec());
            Some(ListenAddress::Unix(PathBuf::from(path)))
        }
        _ => None,
    }
}

/// A profile's name and its keys; `None` if they are not such.
fn decode_tickets(message: &[u8]) -> Option<(String, Arc<TicketKeys>)> {
    let (keys, name) = message.split_at_checked(TICKET_KEYS_LEN)?;
    let name = std::str::from_utf8(name).ok()?;
    Some((name.to_owned(), TicketKeys::import(keys)?))
}

fn unintelligible() -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        "the two versions differ in how they hand over; restart instead",
    )
}

/// Changes with the meaning of messages.
const VERSION: u8 = 1;
const TCP: u8 = b'T';
const UNIX: u8 = b'U';
const END: u8 = b'E';
const OVERRIDES: u8 = b'O';
const TICKETS: u8 = b'K';
const READY: u8 = b'R';

/// Sockets in one message; Linux takes up to 253.
const SOCKETS_MAX: usize = 64;

/// Version, kind, index and an address: the path of a Unix socket has at most 108 bytes.
const MESSAGE_MAX: usize = 256;

/// Bytes of the overrides in one message: all of it fits [`MESSAGE_MAX`].
const PART_MAX: usize = MESSAGE_MAX - 4;

/// Version, kind and a byte for each listener.
const ANSWER_MAX: usize = 2 + u16::MAX as usize;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::ListenerConfig;
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
        offer(&channel, &listeners, &overrides, &tickets).expect("sent");
        let mut inheritance = Inheritance::receive(theirs).expect("received");
        assert_eq!(inheritance.overrides, overrides);
        let received = inheritance.ticket_keys("www").expect("keys");
        assert_eq!(received.export(), keys.export());
        assert!(inheritance.ticket_keys("other").is_none());
        let mut take = |address: &ListenAddress| inheritance.take(address).map(|all| all.len());
        assert_eq!(take(&tcp), Some(many));
        assert_eq!(take(&unix), Some(2));
        assert_eq!((take(&tcp), take(&tcp), take(&unix)), (Some(1), None, None));
    }
}

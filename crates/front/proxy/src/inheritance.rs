//! The receiving side of a handover: what this process takes from the previous one, and the format of the messages.
//!
//! This process first asks, and only then is anything sent: sockets that were sent but never received would keep their
//! ports. A message has one byte of version, one of kind, two of the listener's index, then the listener's address.
//! Other kinds of messages carry JSON: the operators' overrides, the discovered members and the resolved addresses of
//! backends. Another kind carries the TLS ticket keys of one profile and its name. A process that does not know these
//! kinds reads them as more messages about a listener, without sockets.

use std::collections::HashMap;
use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::net::IpAddr;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use catamaran_tls::{TICKET_KEYS_LEN, TicketKeys};
use catamaran_upstream::{HeldName, remember};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendFlags, recvmsg, send};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use socket2::SockRef;

use crate::config::ListenAddress;
use crate::control::discovered::record::MembersRecord;
use crate::site::overrides::Overrides;

/// What the previous process handed over: listening sockets, overrides, members, names and ticket keys. The default is
/// empty.
#[derive(Debug, Default)]
pub struct Inheritance {
    channel: Option<OwnedFd>,
    listeners: Vec<InheritedListener>,
    /// The operators' overrides as JSON; empty if there are none.
    overrides: Vec<u8>,
    /// The discovered members as JSON; empty if there are none.
    members: Vec<u8>,
    /// The resolved addresses of backends' names as JSON.
    names: Vec<u8>,
    /// The keys of TLS tickets, by the name of the TLS profile.
    tickets: HashMap<String, Arc<TicketKeys>>,
    since: Option<u64>,
}

/// The resolved addresses of a backend's name, and how many seconds ago they were resolved.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct NameRecord {
    pub(crate) host: String,
    pub(crate) addresses: Vec<IpAddr>,
    pub(crate) age_s: u64,
}

#[derive(Debug)]
struct InheritedListener {
    address: ListenAddress,
    /// The workers' sockets; empty once taken.
    sockets: Vec<OwnedFd>,
    taken: bool,
}

impl Inheritance {
    /// Asks the previous process, at the other end of `channel`, and receives what it hands over.
    ///
    /// # Errors
    /// `channel` is not a socket of a handover, the other process ended, or it uses another format of messages.
    pub fn receive(channel: OwnedFd) -> io::Result<Self> {
        let mut listeners: Vec<InheritedListener> = Vec::new();
        let (mut overrides, mut members, mut names) = (Vec::new(), Vec::new(), Vec::new());
        let mut tickets = HashMap::new();
        let mut message = [0; MESSAGE_MAX];
        send(&channel, &[VERSION, ASK], SendFlags::NOSIGNAL)?;
        loop {
            let (length, sockets) = receive_with(&channel, &mut message)?;
            match &message[..length] {
                [] => return Err(io::ErrorKind::UnexpectedEof.into()),
                [VERSION, END] => break,
                [VERSION, OVERRIDES, _, _, part @ ..] => overrides.extend_from_slice(part),
                [VERSION, MEMBERS, _, _, part @ ..] => members.extend_from_slice(part),
                [VERSION, NAMES, _, _, part @ ..] => names.extend_from_slice(part),
                [VERSION, TICKETS, _, _, profile @ ..] => tickets.extend(decode_tickets(profile)),
                [VERSION, kind, high, low, address @ ..] => {
                    let index = usize::from(u16::from_be_bytes([*high, *low]));
                    if index == listeners.len() {
                        listeners.push(InheritedListener {
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
            members,
            names,
            tickets,
            since: None,
        })
    }

    /// Sets when the first process of this front began, in seconds of the Unix epoch.
    pub fn serves_since(&mut self, seconds: u64) {
        self.since = Some(seconds);
    }

    pub(crate) fn since(&self) -> Option<u64> {
        self.since
    }

    /// The overrides of the previous process; `None`: there are none, or they cannot be read.
    pub(crate) fn overrides(&self) -> Option<Overrides> {
        let lost =
            "changes that operators made before the upgrade are lost: the file's settings apply";
        read(&self.overrides, lost)
    }

    /// The members that the previous process discovered.
    pub(crate) fn members(&self) -> Vec<MembersRecord> {
        let lost = "members that were found before the upgrade are lost: their sources are asked";
        read(&self.members, lost).unwrap_or_default()
    }

    /// The resolved addresses of backends' names, to be held until the backends of this process take them.
    pub(crate) fn names(&self) -> Vec<HeldName> {
        let lost = "where names led before the upgrade is lost: they are resolved anew";
        let records: Vec<NameRecord> = read(&self.names, lost).unwrap_or_default();
        let records = records.iter();
        records
            .map(|it| remember(&it.host, &it.addresses, Duration::from_secs(it.age_s)))
            .collect()
    }

    /// The JSON of the previous process's overrides, for tests.
    #[cfg(test)]
    pub(crate) fn overrides_as_json(&self) -> &[u8] {
        &self.overrides
    }

    /// The ticket keys that the previous process used for a TLS profile.
    pub(crate) fn ticket_keys(&self, profile: &str) -> Option<Arc<TicketKeys>> {
        self.tickets.get(profile).map(Arc::clone)
    }

    /// Takes the sockets of a listener at `address`; `None`: the previous process had none, or they are taken already.
    pub(crate) fn take(&mut self, address: &ListenAddress) -> Option<Vec<OwnedFd>> {
        let inherited = self
            .listeners
            .iter_mut()
            .find(|it| !it.taken && it.is_at(address))?;
        inherited.taken = true;
        Some(std::mem::take(&mut inherited.sockets))
    }

    /// Tells the previous process that this one serves clients, and which listeners it took.
    pub(crate) fn say_ready(self) {
        let Some(channel) = self.channel else {
            return;
        };
        let mut answer = vec![VERSION, READY];
        answer.extend(self.listeners.iter().map(|it| u8::from(it.taken)));
        if let Err(error) = send(channel, &answer, SendFlags::NOSIGNAL) {
            // The previous process is gone, and this one goes on.
            tracing::warn!(%error, "cannot tell the previous process that it may end");
        }
    }
}

impl InheritedListener {
    /// Whether `address` in a configuration means this listener: its configured address, or the one that the system
    /// chose for it.
    fn is_at(&self, address: &ListenAddress) -> bool {
        let Some(socket) = self.sockets.first() else {
            return false;
        };
        if self.address == *address {
            return true;
        }
        let ListenAddress::Tcp(wanted) = address else {
            return false;
        };
        let bound = SockRef::from(socket).local_addr().ok();
        bound.and_then(|bound| bound.as_socket()) == Some(*wanted)
    }
}

/// Parses a text that was handed over. `None`: there is none, or it cannot be parsed; then `lost` is logged, which says
/// what is missing.
fn read<T: DeserializeOwned>(json: &[u8], lost: &str) -> Option<T> {
    if json.is_empty() {
        return None;
    }
    serde_json::from_slice(json)
        .inspect_err(|error| tracing::error!(%error, "{lost}"))
        .ok()
}

/// Receives a message with its sockets. Returns its length; 0 if the other process has ended.
fn receive_with(channel: &OwnedFd, message: &mut [u8]) -> io::Result<(usize, Vec<OwnedFd>)> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(SOCKETS_MAX))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut buffers = [IoSliceMut::new(message)];
    let received = recvmsg(channel, &mut buffers, &mut control, RecvFlags::CMSG_CLOEXEC)?;
    let mut sockets = Vec::new();
    for ancillary in control.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = ancillary {
            sockets.extend(rights);
        }
    }
    Ok((received.bytes, sockets))
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

/// Reads a profile's name and its ticket keys; `None` if the message has another form.
fn decode_tickets(message: &[u8]) -> Option<(String, Arc<TicketKeys>)> {
    let (keys, name) = message.split_at_checked(TICKET_KEYS_LEN)?;
    let name = std::str::from_utf8(name).ok()?;
    Some((name.to_owned(), TicketKeys::import(keys)?))
}

pub(crate) fn unintelligible() -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        "the two versions differ in how they hand over; restart instead",
    )
}

/// The version of the message format. It must be changed whenever the meaning of messages changes.
pub(crate) const VERSION: u8 = 2;
pub(crate) const ASK: u8 = b'A';
pub(crate) const TCP: u8 = b'T';
pub(crate) const UNIX: u8 = b'U';
pub(crate) const END: u8 = b'E';
pub(crate) const OVERRIDES: u8 = b'O';
pub(crate) const MEMBERS: u8 = b'M';
pub(crate) const NAMES: u8 = b'N';
pub(crate) const TICKETS: u8 = b'K';
pub(crate) const READY: u8 = b'R';

/// The most sockets in one message; Linux allows 253.
pub(crate) const SOCKETS_MAX: usize = 64;

/// The most bytes of a message: version, kind, index and an address (the path of a Unix socket has at most 108 bytes).
pub(crate) const MESSAGE_MAX: usize = 256;

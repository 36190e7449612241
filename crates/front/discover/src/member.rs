//! The description of a member that a source gives.

use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// The description of a member that a source gives: its name, address, protocol and settings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FoundMember {
    /// The member's name, by which sessions, hashes, the API and metrics know it. Unique in an
    /// upstream.
    pub name: String,
    /// The address at which the member listens.
    pub place: Place,
    /// The protocol that the member speaks there.
    pub speech: Speech,
    /// The member's share of the load in proportion to others', from 1 to 1000.
    pub weight: u32,
    /// How far away the member is: members with a lower distance are preferred.
    pub distance: u32,
    /// The suffix of the member's session ids; `None`: its name.
    pub jvm_route: Option<String>,
    /// The member's replication group; `None`: it is in none.
    pub domain: Option<String>,
    /// The name in the member's certificate; `None`: its address.
    pub server_name: Option<String>,
    /// Which requests the member takes.
    pub state: FoundState,
    /// The member's applications; empty if its source does not list them.
    pub contexts: Vec<FoundContext>,
}

/// An application of a member, and which requests it takes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FoundContext {
    /// The path of the application; `/` for the root.
    pub path: String,
    /// Which requests the context takes.
    pub state: FoundState,
}

impl FoundMember {
    /// Makes a member with defaults for all else.
    #[must_use]
    pub fn new(name: impl Into<String>, place: Place, speech: Speech) -> Self {
        Self {
            name: name.into(),
            place,
            speech,
            weight: 1,
            distance: 0,
            jvm_route: None,
            domain: None,
            server_name: None,
            state: FoundState::Active,
            contexts: Vec::new(),
        }
    }
}

/// The address at which a member listens.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Place {
    /// A host (a name, IPv4, or IPv6 without brackets) and its port.
    Tcp {
        /// A name, an IPv4 address, or an IPv6 address without brackets.
        host: String,
        /// The port, never 0.
        port: u16,
    },
    /// The path of a Unix stream socket.
    Unix(PathBuf),
}

impl Place {
    /// The place with this IP address and port.
    #[must_use]
    pub fn at(ip: IpAddr, port: u16) -> Self {
        Self::Tcp {
            host: ip.to_string(),
            port,
        }
    }

    /// The IP address and port; `None` for a Unix socket, or a host name.
    #[must_use]
    pub fn address(&self) -> Option<(IpAddr, u16)> {
        match self {
            Self::Tcp { host, port } => Some((host.parse().ok()?, *port)),
            Self::Unix(_) => None,
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp { host, port } if host.contains(':') => write!(f, "[{host}]:{port}"),
            Self::Tcp { host, port } => write!(f, "{host}:{port}"),
            Self::Unix(path) => write!(f, "{}", path.display()),
        }
    }
}

/// The protocol that a member speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Speech {
    /// AJP13, without TLS.
    Ajp,
    /// HTTP/1.1 without TLS.
    Http,
    /// HTTP/1.1 over TLS.
    Https,
}

/// Which requests a member or a context takes, by its source. Ordered: the first state takes the
/// most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum FoundState {
    /// The member or context takes all requests.
    Active,
    /// The member or context takes only requests of sessions that it has.
    Drain,
    /// The member or context takes no requests.
    Stopped,
}

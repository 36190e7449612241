//! A member as a source names it.

use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// A member as its source describes it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FoundMember {
    /// Its identity: for sessions, hashes, the API and metrics. Unique in an upstream.
    pub name: String,
    /// Where it listens.
    pub place: Place,
    /// What it speaks there.
    pub speech: Speech,
    /// Its share of the load, 1 to 1000.
    pub weight: u32,
    /// How far away the member is: members with a lower distance are preferred.
    pub distance: u32,
    /// The suffix of its session ids. Default: its name.
    pub jvm_route: Option<String>,
    /// Its replication group.
    pub domain: Option<String>,
    /// The name in its certificate, if its address is not that.
    pub server_name: Option<String>,
    /// Which requests the member takes.
    pub state: FoundState,
    /// Its applications, if its source tells of them.
    pub contexts: Vec<FoundContext>,
}

/// An application of a member.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FoundContext {
    /// Its path, `/` for that of the root.
    pub path: String,
    /// Which requests the context takes.
    pub state: FoundState,
}

impl FoundMember {
    /// A member with every default.
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

/// Where a member listens.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Place {
    /// A host (a name, IPv4, or IPv6 without brackets) and its port.
    Tcp {
        /// The host.
        host: String,
        /// The port, never 0.
        port: u16,
    },
    /// The path of a Unix stream socket.
    Unix(PathBuf),
}

impl Place {
    /// An address and port.
    #[must_use]
    pub fn at(ip: IpAddr, port: u16) -> Self {
        Self::Tcp {
            host: ip.to_string(),
            port,
        }
    }

    /// Its address and port, if it is one that needs no resolving.
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

/// What a member speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Speech {
    /// AJP13.
    Ajp,
    /// HTTP/1.1 in clear.
    Http,
    /// HTTP/1.1 over TLS.
    Https,
}

/// Which requests a member or a context takes, as its source says. The first takes most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum FoundState {
    /// It takes all requests.
    Active,
    /// It takes only requests of the sessions that it has.
    Drain,
    /// It takes no requests.
    Stopped,
}

//! A front with a recording backend, one for each protocol to the backend, shared by all tests of
//! requests; and the ways to reach it.

use std::path::PathBuf;
use std::sync::OnceLock;

use catamaran_e2e::Front;
use catamaran_testkit::{Address, HttpClient};

use super::backend::{Backend, Protocol};

/// A front and its backend.
#[derive(Debug)]
pub(crate) struct Site {
    pub(crate) protocol: Protocol,
    pub(crate) front: Front,
    pub(crate) backend: Backend,
    socket: PathBuf,
}

/// How a client reaches the front.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Transport {
    Tcp,
    Unix,
}

impl Transport {
    pub(crate) const ALL: [Self; 2] = [Self::Tcp, Self::Unix];
}

impl Site {
    /// The front of all tests of requests whose backends speak `protocol`.
    pub(crate) fn shared(protocol: Protocol) -> &'static Self {
        static HTTP: OnceLock<Site> = OnceLock::new();
        static AJP: OnceLock<Site> = OnceLock::new();
        let site = match protocol {
            Protocol::Http => &HTTP,
            Protocol::Ajp => &AJP,
        };
        site.get_or_init(|| Self::start(protocol))
    }

    fn start(protocol: Protocol) -> Self {
        let backend = Backend::start(protocol).unwrap();
        let config = format!(
            "[[listen]]\naddress = \"127.0.0.1:0\"\n[[listen]]\naddress = \"unix:{{directory}}/front.sock\"\n\
             [[route]]\npath = \"/forbidden\"\nstatus = 404\n[[route]]\nupstream = \"app\"\n\
             [[upstream.app.backend]]\nurl = \"{}\"\n",
            backend.url(),
        );
        let front = Front::with_config(&config).unwrap();
        front.wait_for_log("http+unix:").unwrap();
        let socket = front.directory().join("front.sock");
        Self {
            protocol,
            front,
            backend,
            socket,
        }
    }

    /// Where a client reaches the front over `transport`.
    pub(crate) fn address(&self, transport: Transport) -> Address {
        match transport {
            Transport::Tcp => self.front.address().into(),
            Transport::Unix => self.socket.clone().into(),
        }
    }

    pub(crate) fn connect(&self, transport: Transport) -> HttpClient {
        HttpClient::connect(self.address(transport)).unwrap()
    }
}

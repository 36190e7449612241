//! Gives each port of each server its address.

use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};

#[derive(Debug)]
pub(super) struct Ports {
    /// Whether the network is the space's own, so that all its ports are free.
    is_own_network: bool,
    /// The addresses of each server by its name, with the names of its ports.
    by_server: BTreeMap<String, Vec<(String, SocketAddr)>>,
    next: u16,
}

impl Ports {
    /// The ports for servers in a network of its own, in the syntax of `ip_local_reserved_ports`.
    pub(super) const RESERVED: &str = "8001-8256";

    pub(super) fn new(is_own_network: bool) -> Self {
        Self {
            is_own_network,
            by_server: BTreeMap::new(),
            next: FIRST,
        }
    }

    /// The addresses of the ports of `server`, one for each of the port names `wanted`. A server that asks again for
    /// the same names gets the same addresses. In the machine's own network, another process may take a port before
    /// the server listens on it.
    pub(super) fn addresses(
        &mut self,
        server: &str,
        wanted: &[String],
    ) -> io::Result<Vec<(String, SocketAddr)>> {
        if let Some(known) = self.by_server.get(server)
            && known.iter().map(|(name, _)| name).eq(wanted)
        {
            return Ok(known.clone());
        }
        let mut addresses = Vec::new();
        // Listeners are kept until all ports are chosen, so that no two are the same.
        let mut listeners = Vec::new();
        for port in wanted {
            let address = if self.is_own_network {
                self.next()?
            } else {
                let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
                let address = listener.local_addr()?;
                listeners.push(listener);
                address
            };
            addresses.push((port.clone(), address));
        }
        self.by_server.insert(server.to_owned(), addresses.clone());
        Ok(addresses)
    }

    /// The next address of the space's own network; an error once all ports of [`Self::RESERVED`] are given.
    fn next(&mut self) -> io::Result<SocketAddr> {
        if self.next > LAST {
            let what = format!(
                "the servers of a run have {} ports at most",
                LAST - FIRST + 1
            );
            return Err(io::Error::new(io::ErrorKind::AddrNotAvailable, what));
        }
        let port = self.next;
        self.next += 1;
        Ok((Ipv4Addr::LOCALHOST, port).into())
    }
}

/// The ends of [`Ports::RESERVED`].
const FIRST: u16 = 8001;
const LAST: u16 = 8256;

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn a_server_that_is_started_again_has_its_addresses_again() {
        for own in [true, false] {
            let mut ports = Ports::new(own);
            let first = ports
                .addresses("a", &wanted(&["http", "http", "ajp"]))
                .unwrap();
            let other = ports.addresses("b", &wanted(&["http"])).unwrap();
            assert!(!first.iter().any(|(_, address)| *address == other[0].1));
            assert_ne!(first[0].1, first[1].1);
            assert_eq!(
                ports
                    .addresses("a", &wanted(&["http", "http", "ajp"]))
                    .unwrap(),
                first
            );
            assert_eq!(ports.addresses("a", &wanted(&["http"])).unwrap().len(), 1);
        }
    }

    #[test]
    fn what_is_reserved_is_what_is_given() {
        assert_eq!(Ports::RESERVED, format!("{FIRST}-{LAST}"));
        let mut ports = Ports::new(true);
        let all = wanted(&vec!["http"; usize::from(LAST - FIRST) + 1]);
        assert_eq!(ports.addresses("a", &all).unwrap()[0].1.port(), FIRST);
        let fault = ports
            .addresses("b", &wanted(&["http"]))
            .unwrap_err()
            .to_string();
        assert!(fault.contains("256 ports"), "{fault}");
    }
}

//! The state of a network namespace: its interfaces, protocol counters and TCP sockets.
//!
//! A namespace is specified by a process in it: this process for the machine's own, a process inside a
//! space for the space's. Counters count from the start of the namespace, so a series is made from their
//! differences.

use std::collections::BTreeMap;
use std::{fs, io};

use serde::{Deserialize, Serialize};

use crate::process::{fault, open};

/// The state of a network namespace at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Network {
    /// The interfaces by name, such as `lo`.
    pub interfaces: BTreeMap<String, Interface>,
    /// The state of the TCP sockets.
    pub sockets: Sockets,
    /// The kernel's counters for each protocol.
    pub counters: Counters,
}

/// The total traffic of an interface so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Interface {
    /// The bytes received.
    pub received_bytes: u64,
    /// The packets received.
    pub received_packets: u64,
    /// The bytes sent.
    pub sent_bytes: u64,
    /// The packets sent.
    pub sent_packets: u64,
}

/// The current TCP sockets, of IPv4 and IPv6.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sockets {
    /// The sockets in TIME_WAIT, whose ports stay taken for a minute after their connection.
    pub time_wait: u64,
    /// The bytes that all TCP buffers hold: of the whole machine, not of the namespace.
    pub memory: u64,
}

/// The kernel's protocol counters, by group and name, such as `TcpExt.ListenOverflows`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters(BTreeMap<String, u64>);

impl Counters {
    /// The value of the counter `name`; 0 if the kernel has no counter of that name.
    #[must_use]
    pub fn of(&self, name: &str) -> u64 {
        self.0.get(name).copied().unwrap_or(0)
    }

    /// The number of connections that were refused or forgotten because a listener's queue was full
    /// (`ListenOverflows`), and of handshakes for which this happened because too many were under way
    /// (`TCPReqQFullDrop`, `TCPReqQFullDoCookies`).
    #[must_use]
    pub fn overflows(&self) -> u64 {
        self.of_tcp(["ListenOverflows", "TCPReqQFullDrop", "TCPReqQFullDoCookies"])
    }

    /// The number of connections that ended in TIME_WAIT, or would have but for `tcp_max_tw_buckets`
    /// (`TCPTimeWaitOverflow`).
    ///
    /// `TW` counts them as they enter that state, not as they leave it; `TWKilled` counts those that stay
    /// in it for a shorter time.
    #[must_use]
    pub fn time_waits(&self) -> u64 {
        self.of_tcp(["TW", "TWKilled", "TCPTimeWaitOverflow"])
    }

    fn of_tcp(&self, names: [&str; 3]) -> u64 {
        let all = names.iter();
        all.map(|name| self.of(&format!("TcpExt.{name}"))).sum()
    }
}

/// Reads the state of the namespace that the process `id` is in.
///
/// # Errors
/// The process has ended, or its `/proc/ID/net` cannot be read.
pub fn of(id: u32) -> io::Result<Network> {
    let read = |name: &str| fs::read_to_string(format!("/proc/{id}/net/{name}"));
    let mut counts = counters(&read("snmp")?);
    counts.extend(counters(&read("netstat")?));
    Ok(Network {
        interfaces: interfaces(id)?,
        sockets: sockets(&read("sockstat")?),
        counters: Counters(counts),
    })
}

fn interfaces(id: u32) -> io::Result<BTreeMap<String, Interface>> {
    let mut interfaces = BTreeMap::new();
    for device in open(id)?.dev_status().map_err(fault)?.into_values() {
        let counters = Interface {
            received_bytes: device.recv_bytes,
            received_packets: device.recv_packets,
            sent_bytes: device.sent_bytes,
            sent_packets: device.sent_packets,
        };
        interfaces.insert(device.name, counters);
    }
    Ok(interfaces)
}

/// Reads counters from pairs of lines, `GROUP: NAME…` and `GROUP: NUMBER…`. Negative values and values
/// that are no number are left out.
///
/// The crate procfs reads only one of the two files of this format, and not the one with the counters of
/// listeners.
fn counters(text: &str) -> BTreeMap<String, u64> {
    let lines: Vec<&str> = text.lines().collect();
    let mut counters = BTreeMap::new();
    for pair in lines.chunks_exact(2) {
        let (Some((group, names)), Some((_, numbers))) =
            (pair[0].split_once(':'), pair[1].split_once(':'))
        else {
            continue;
        };
        for (name, number) in names.split_whitespace().zip(numbers.split_whitespace()) {
            if let Ok(number) = number.parse() {
                counters.insert(format!("{group}.{name}"), number);
            }
        }
    }
    counters
}

/// Reads the line `TCP: NAME NUMBER NAME NUMBER…`.
fn sockets(text: &str) -> Sockets {
    let line = text.lines().find_map(|line| line.strip_prefix("TCP:"));
    let words: Vec<&str> = line.unwrap_or_default().split_whitespace().collect();
    let value = |name: &str| {
        let pair = words.chunks_exact(2).find(|pair| pair[0] == name);
        let number = pair.and_then(|pair| pair[1].parse::<u64>().ok());
        number.unwrap_or(0)
    };
    Sockets {
        time_wait: value("tw"),
        memory: value("mem") * procfs::page_size(),
    }
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn counters_are_named_by_group_and_name() {
        let text = "Tcp: RtoAlgorithm MaxConn ActiveOpens\nTcp: 1 -1 7\nTcpExt: ListenOverflows \
                    TCPReqQFullDrop\nTcpExt: 3 2\nodd\n";
        let found = Counters(counters(text));
        assert_eq!(found.of("Tcp.ActiveOpens"), 7);
        assert_eq!(found.of("Tcp.MaxConn"), 0, "-1 is no count");
        assert_eq!(found.overflows(), 5);
        for damaged in ["", "Tcp\nTcp", "Tcp: a b\nTcp: 1", "Tcp:\nTcp: 1 2"] {
            assert!(counters(damaged).len() <= 1, "{damaged}");
        }
    }

    #[test]
    fn sockets_of_tcp_are_read() {
        let text =
            "sockets: used 9\nTCP: inuse 3 orphan 1 tw 5 alloc 8 mem 2\nUDP: inuse 7 mem 9\n";
        let expected = Sockets {
            time_wait: 5,
            memory: 2 * procfs::page_size(),
        };
        assert_eq!(sockets(text), expected);
        assert_eq!(sockets(""), Sockets::default());
    }

    #[test]
    fn a_connection_is_counted() {
        let own = std::process::id();
        let before = of(own).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let _stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let after = of(own).unwrap();
        let opened = |network: &Network| network.counters.of("Tcp.ActiveOpens");
        assert!(opened(&after) > opened(&before));
        let bytes = |network: &Network| network.interfaces["lo"].received_bytes;
        let now = of(own).unwrap();
        assert!(bytes(&now) > bytes(&before));
    }

    #[test]
    fn a_process_that_is_gone_has_no_network() {
        assert!(of(5_000_000).is_err());
    }
}

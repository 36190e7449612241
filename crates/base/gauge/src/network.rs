//! What a network namespace has done and holds: interfaces, TCP's counters and sockets.
//!
//! A process is named whose namespace it is: its own for the machine's, one that lives in a space for
//! the space's. Counters go on from the namespace's start: a series is made of differences.

use std::collections::BTreeMap;
use std::ops::Sub;
use std::{fs, io};

use serde::{Deserialize, Serialize};

use crate::process::{fault, open};

/// A network namespace at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Network {
    /// By their names, such as `lo`.
    pub interfaces: BTreeMap<String, Interface>,
    /// What its TCP sockets are.
    pub sockets: Sockets,
    /// What the kernel counts of its protocols.
    pub counters: Counters,
}

/// What went over an interface so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Interface {
    /// Bytes that came.
    pub received_bytes: u64,
    /// Packets that came.
    pub received_packets: u64,
    /// Bytes that went.
    pub sent_bytes: u64,
    /// Packets that went.
    pub sent_packets: u64,
}

/// TCP sockets now, of IPv4 and IPv6 unless said otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sockets {
    /// Open ones.
    pub in_use: u64,
    /// Closed ones that have bytes left to send.
    pub orphans: u64,
    /// Ports that are kept for a minute after their connection.
    pub time_wait: u64,
    /// What all buffers of TCP hold, in bytes; of the whole machine, whatever the namespace.
    pub memory: u64,
}

/// Counters of protocols by group and name as the kernel has them, such as `TcpExt.ListenOverflows`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters(BTreeMap<String, u64>);

impl Counters {
    /// The counter `name`; 0 if the kernel has none of that name.
    #[must_use]
    pub fn of(&self, name: &str) -> u64 {
        self.0.get(name).copied().unwrap_or(0)
    }

    /// Connections that were refused or forgotten because a listener's queue was full
    /// (`ListenOverflows`), and handshakes because too many were under way (`TCPReqQFullDrop`,
    /// `TCPReqQFullDoCookies`).
    #[must_use]
    pub fn overflows(&self) -> u64 {
        self.of_tcp(["ListenOverflows", "TCPReqQFullDrop", "TCPReqQFullDoCookies"])
    }

    /// Connections that ended in TIME_WAIT (`TW`, counted as they come to it, not as they leave; `TWKilled`,
    /// those that stay for a shorter time), or would have but for `tcp_max_tw_buckets`
    /// (`TCPTimeWaitOverflow`).
    #[must_use]
    pub fn time_waits(&self) -> u64 {
        self.of_tcp(["TW", "TWKilled", "TCPTimeWaitOverflow"])
    }

    fn of_tcp(&self, names: [&str; 3]) -> u64 {
        let all = names.iter();
        all.map(|name| self.of(&format!("TcpExt.{name}"))).sum()
    }

    /// Names and counts, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, u64)> {
        self.0.iter().map(|(name, count)| (name.as_str(), *count))
    }
}

/// What was counted since `earlier`; what is no counter but a level, such as `Tcp.CurrEstab`, has no
/// meaning then.
impl Sub<&Self> for Counters {
    type Output = Self;

    fn sub(self, earlier: &Self) -> Self {
        let since = |(name, count): (String, u64)| {
            let count = count.saturating_sub(earlier.of(&name));
            (name, count)
        };
        Self(self.0.into_iter().map(since).collect())
    }
}

/// The namespace that the process `id` is in.
///
/// # Errors
/// The process is gone, or its `/proc/ID/net` cannot be read.
pub fn of(id: u32) -> io::Result<Network> {
    let read = |name: &str| fs::read_to_string(format!("/proc/{id}/net/{name}"));
    let mut counters = counters(&read("snmp")?);
    counters.extend(self::counters(&read("netstat")?));
    // A kernel without IPv6 has no such file.
    let six = read("sockstat6").unwrap_or_default();
    Ok(Network {
        interfaces: interfaces(id)?,
        sockets: sockets(&read("sockstat")?, &six),
        counters: Counters(counters),
    })
}

fn interfaces(id: u32) -> io::Result<BTreeMap<String, Interface>> {
    let found = open(id)?.dev_status().map_err(fault)?;
    let interfaces = found.into_values().map(|it| {
        let counters = Interface {
            received_bytes: it.recv_bytes,
            received_packets: it.recv_packets,
            sent_bytes: it.sent_bytes,
            sent_packets: it.sent_packets,
        };
        (it.name, counters)
    });
    Ok(interfaces.collect())
}

/// Pairs of lines, `GROUP: NAME…` and `GROUP: NUMBER…`. procfs reads one of the two files that are
/// written so, and not the one with the counters of listeners. What is no number from 0 is left out.
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

/// Lines `PROTOCOL: NAME NUMBER NAME NUMBER…`.
fn sockets(four: &str, six: &str) -> Sockets {
    let value = |text: &str, protocol: &str, name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(protocol));
        let words: Vec<&str> = line.unwrap_or_default().split_whitespace().collect();
        let found = words.chunks_exact(2).find(|pair| pair[0] == name);
        found
            .and_then(|pair| pair[1].parse::<u64>().ok())
            .unwrap_or(0)
    };
    Sockets {
        in_use: value(four, "TCP:", "inuse") + value(six, "TCP6:", "inuse"),
        orphans: value(four, "TCP:", "orphan"),
        time_wait: value(four, "TCP:", "tw"),
        memory: value(four, "TCP:", "mem") * procfs::page_size(),
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
        let earlier = Counters(counters("TcpExt: ListenOverflows\nTcpExt: 1\n"));
        assert_eq!((found - &earlier).of("TcpExt.ListenOverflows"), 2);
        for damaged in ["", "Tcp\nTcp", "Tcp: a b\nTcp: 1", "Tcp:\nTcp: 1 2"] {
            assert!(counters(damaged).len() <= 1, "{damaged}");
        }
    }

    #[test]
    fn sockets_of_both_families_are_counted() {
        let four =
            "sockets: used 9\nTCP: inuse 3 orphan 1 tw 5 alloc 8 mem 2\nUDP: inuse 7 mem 9\n";
        let found = sockets(four, "TCP6: inuse 4\n");
        let expected = Sockets {
            in_use: 7,
            orphans: 1,
            time_wait: 5,
            memory: 2 * procfs::page_size(),
        };
        assert_eq!(found, expected);
        assert_eq!(sockets("", ""), Sockets::default());
    }

    #[test]
    fn a_connection_is_counted() {
        let own = std::process::id();
        let before = of(own).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let _stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let after = of(own).unwrap();
        assert!((after.counters - &before.counters).of("Tcp.ActiveOpens") >= 1);
        let bytes = |network: &Network| network.interfaces["lo"].received_bytes;
        let now = of(own).unwrap();
        assert!(bytes(&now) > bytes(&before));
        assert!(now.sockets.in_use >= 1);
    }

    #[test]
    fn a_process_that_is_gone_has_no_network() {
        assert!(of(5_000_000).is_err());
    }
}

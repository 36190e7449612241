//! Packets and bytes on the wire, counted by the kernel for each port of a group.
//!
//! A BPF program of 24 instructions sees each packet that a socket of the group sends or receives.
//! This needs root and costs 2 % of CPU. Counted are whole IP packets with their headers, which for
//! TCP over IPv4 with timestamps are 52 bytes each, and 8 more in the first packet of either side.
//! On loopback a packet is what one write passed on, up to 64 KiB.
//!
//! Without root, only a load generator's own count is available, which covers only the connection
//! between the client and the server.

use std::fs::File;
use std::io;
use std::ops::Sub;
use std::os::fd::AsFd as _;

use crate::bpf::instruction::{
    R0, R1, R2, R6, R10, Size, atomic_add, copy, exit, load, look_up, set, skip_if_zero,
    skip_unless_zero, store, to_big_endian,
};
use crate::bpf::{
    AttachedProgram, BpfFault, Direction, Instruction, Map, MapKind, Program, ProgramKind,
};
use crate::group::Group;

/// A running count of the packets of a group's sockets. Counting ends when it is dropped.
#[derive(Debug)]
pub struct Bytes {
    received: Counter,
    sent: Counter,
}

/// The traffic on one port, in both directions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hop {
    /// What the group's sockets received.
    pub received: Traffic,
    /// What the group's sockets sent.
    pub sent: Traffic,
}

/// The traffic in one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// The number of IP packets.
    pub packets: u64,
    /// The bytes of these packets, including the headers of IP and TCP.
    pub bytes: u64,
}

/// The traffic between two readings: `later - earlier`.
impl Sub for Traffic {
    type Output = Self;

    fn sub(self, earlier: Self) -> Self {
        Self {
            packets: self.packets.saturating_sub(earlier.packets),
            bytes: self.bytes.saturating_sub(earlier.bytes),
        }
    }
}

/// The traffic between two readings: `later - earlier`.
impl Sub for Hop {
    type Output = Self;

    fn sub(self, earlier: Self) -> Self {
        Self {
            received: self.received - earlier.received,
            sent: self.sent - earlier.sent,
        }
    }
}

impl Bytes {
    /// Begins to count the packets of sockets that processes of `group` open from now on.
    ///
    /// Only packets are counted of which either end has one of `ports`: the group's own port, or
    /// that of a server that it calls. If both ends have one, the packet counts for the port of the
    /// group's own end.
    ///
    /// # Errors
    /// The process lacks the permission, or the kernel has no BPF.
    pub fn count(group: &Group, ports: &[u16]) -> Result<Self, BpfFault> {
        let directory = File::open(group.path()).map_err(BpfFault::of_group)?;
        Ok(Self {
            received: Counter::start(&directory, Direction::Received, ports)?,
            sent: Counter::start(&directory, Direction::Sent, ports)?,
        })
    }

    /// The traffic on `port` so far; zero for a port that is not counted.
    ///
    /// # Errors
    /// The kernel refuses to read the map.
    pub fn of(&self, port: u16) -> Result<Hop, BpfFault> {
        Ok(Hop {
            received: self.received.of(port)?,
            sent: self.sent.of(port)?,
        })
    }
}

#[derive(Debug)]
struct Counter {
    map: Map,
    _attached: AttachedProgram,
}

impl Counter {
    fn start(directory: &File, direction: Direction, ports: &[u16]) -> Result<Self, BpfFault> {
        let map = map_of_ports(ports, 16)?;
        let program = Program::load(ProgramKind::CgroupPackets, &program(&map))?;
        let _attached = program.attach_to_cgroup(directory.as_fd(), direction)?;
        Ok(Self { map, _attached })
    }

    fn of(&self, port: u16) -> Result<Traffic, BpfFault> {
        let words = self.map.read(&key(port))?;
        Ok(match words.as_deref() {
            Some([packets, bytes, ..]) => Traffic {
                packets: *packets,
                bytes: *bytes,
            },
            _ => Traffic::default(),
        })
    }
}

/// Makes a map with an entry of this size for each port.
pub(crate) fn map_of_ports(ports: &[u16], value_bytes: usize) -> Result<Map, BpfFault> {
    let map = Map::create(MapKind::Hash, 4, value_bytes, ports.len().max(1))?;
    for port in ports {
        map.insert_zero(&key(*port))?;
    }
    Ok(map)
}

/// A port in the form of a key of the maps.
pub(crate) fn key(port: u16) -> [u8; 4] {
    u32::from(port).to_ne_bytes()
}

/// Instructions that keep the packet in r6 and write its local port as a key at the end of the
/// stack.
pub(crate) fn local_port() -> [Instruction; 3] {
    [
        copy(R6, R1),
        load(Size::Four, R2, R6, LOCAL_PORT),
        store(Size::Four, R10, -4, R2),
    ]
}

/// The program: it looks up the local port and then the remote one, and counts the packet for the
/// first of them that is counted. It lets every packet pass (result 1).
fn program(map: &Map) -> Vec<Instruction> {
    let look_up = look_up(map.as_fd(), -4);
    let remote = [
        // The local port is counted: skips the rest of this part and the second look-up.
        skip_unless_zero(R0, 9),
        load(Size::Four, R2, R6, REMOTE_PORT),
        to_big_endian(R2),
        store(Size::Four, R10, -4, R2),
    ];
    let count = [
        // Neither port is counted.
        skip_if_zero(R0, 4),
        load(Size::Four, R1, R6, LENGTH),
        atomic_add(R0, 8, R1),
        set(R1, 1),
        atomic_add(R0, 0, R1),
        set(R0, 1),
        exit(),
    ];
    [&local_port()[..], &look_up, &remote, &look_up, &count].concat()
}

impl BpfFault {
    pub(crate) fn of_group(source: io::Error) -> Self {
        Self::new("a program on a cgroup that is gone", source)
    }
}

// Offsets in `struct __sk_buff` (linux/bpf.h).
pub(crate) const LENGTH: i16 = 0;
/// The offset of the remote port in `struct __sk_buff`; the port is in network byte order.
const REMOTE_PORT: i16 = 132;
/// The offset of the local port in `struct __sk_buff`; the port is in the machine's byte order.
const LOCAL_PORT: i16 = 136;

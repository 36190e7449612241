//! Bytes on the wire, counted by the kernel for each port of a group.
//!
//! A program of 24 instructions sees each packet that a socket of the group sends or receives (root
//! needed; it costs 2 % of CPU). Packets are whole IP packets with their headers: of TCP over IPv4
//! with timestamps, 52 bytes each, and 8 more in the first of either side. On loopback a packet is
//! what one write gave, up to 64 KiB.
//! Without root, a load generator's own count is all there is, which has the client's hop only.

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

/// Counts while it lives.
#[derive(Debug)]
pub struct Bytes {
    received: Counter,
    sent: Counter,
}

/// The traffic over one port, both ways.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hop {
    /// The traffic to the group's sockets.
    pub received: Traffic,
    /// By them.
    pub sent: Traffic,
}

/// The traffic one way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// IP packets.
    pub packets: u64,
    /// Their bytes, headers of IP and TCP included.
    pub bytes: u64,
}

/// What went since `earlier`.
impl Sub for Traffic {
    type Output = Self;

    fn sub(self, earlier: Self) -> Self {
        Self {
            packets: self.packets.saturating_sub(earlier.packets),
            bytes: self.bytes.saturating_sub(earlier.bytes),
        }
    }
}

/// What went since `earlier`.
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
    /// Begins to count packets of sockets that processes of `group` open from then on, if either end
    /// has one of these ports: their own, or that of a server they call. A packet between two of
    /// them counts for the group's own.
    ///
    /// # Errors
    /// No permission, or a kernel without BPF.
    pub fn count(group: &Group, ports: &[u16]) -> Result<Self, BpfFault> {
        let directory = File::open(group.path()).map_err(BpfFault::of_group)?;
        let counter = |direction| Counter::start(&directory, direction, ports);
        Ok(Self {
            received: counter(Direction::Received)?,
            sent: counter(Direction::Sent)?,
        })
    }

    /// The traffic over `port` so far; zero for a port that is not counted.
    ///
    /// # Errors
    /// The kernel does not let the map be read.
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
        let map = Map::create(MapKind::Hash, 4, 16, ports.len().max(1))?;
        for port in ports {
            map.insert_zero(&key(*port))?;
        }
        let program = Program::load(ProgramKind::CgroupPackets, &program(&map))?;
        let _attached = program.attach_to_cgroup(directory.as_fd(), direction)?;
        Ok(Self { map, _attached })
    }

    fn of(&self, port: u16) -> Result<Traffic, BpfFault> {
        let found = self.map.read(&key(port))?;
        Ok(match found.as_deref() {
            Some([packets, bytes, ..]) => Traffic {
                packets: *packets,
                bytes: *bytes,
            },
            _ => Traffic::default(),
        })
    }
}

/// A port as the maps have it.
pub(crate) fn key(port: u16) -> [u8; 4] {
    u32::from(port).to_ne_bytes()
}

/// Keeps the packet in register 6, and writes its local port as a key at the end of the stack.
pub(crate) fn local_port() -> [Instruction; 3] {
    [
        copy(R6, R1),
        load(Size::Four, R2, R6, LOCAL_PORT),
        store(Size::Four, R10, -4, R2),
    ]
}

/// Looks up the local port, then the remote one, and counts under the first that is counted. Every
/// packet may pass (result 1).
fn program(map: &Map) -> Vec<Instruction> {
    let look_up = look_up(map.as_fd(), -4);
    let remote = [
        skip_unless_zero(R0, 9),
        load(Size::Four, R2, R6, REMOTE_PORT),
        to_big_endian(R2),
        store(Size::Four, R10, -4, R2),
    ];
    let count = [
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

// Places in `struct __sk_buff` (linux/bpf.h).
pub(crate) const LENGTH: i16 = 0;
/// In the order of the network.
const REMOTE_PORT: i16 = 132;
/// In the order of the machine.
const LOCAL_PORT: i16 = 136;

//! Segments with data that reach the ports of a group: at least one for each request.
//!
//! A program of 16 instructions sees each packet that a socket of the group receives (root needed). It counts those to one
//! of the ports that are longer than an acknowledgement is: over TCP on IPv4 with timestamps that has 52 bytes, 60 in a
//! handshake, and 64 with a selective one. So a request of at least 13 bytes counts, and a connect or an acknowledgement
//! does not. A client that has written several requests at once may have them counted as one.

use std::fs::File;
use std::os::fd::AsFd as _;

use crate::bpf::instruction::{
    R0, R1, R6, Size, atomic_add, exit, load, look_up, set, skip_if_below, skip_if_zero,
};
use crate::bpf::{
    AttachedProgram, BpfFault, Direction, Instruction, Map, MapKind, Program, ProgramKind,
};
use crate::bytes::{LENGTH, key, local_port};
use crate::group::Group;

/// Counts while it lives.
#[derive(Debug)]
pub struct Segments {
    map: Map,
    ports: Vec<u16>,
    _attached: AttachedProgram,
}

impl Segments {
    /// Begins to count segments with data to these ports of processes of `group`.
    ///
    /// # Errors
    /// No permission, or a kernel without BPF.
    pub fn count(group: &Group, ports: &[u16]) -> Result<Self, BpfFault> {
        let directory = File::open(group.path()).map_err(BpfFault::of_group)?;
        let map = Map::create(MapKind::Hash, 4, 8, ports.len().max(1))?;
        for port in ports {
            map.insert_zero(&key(*port))?;
        }
        let program = Program::load(ProgramKind::CgroupPackets, &program(&map))?;
        let _attached = program.attach_to_cgroup(directory.as_fd(), Direction::Received)?;
        Ok(Self {
            map,
            ports: ports.to_vec(),
            _attached,
        })
    }

    /// How many have reached any of the ports so far.
    ///
    /// # Errors
    /// The kernel does not let the map be read.
    pub fn received(&self) -> Result<u64, BpfFault> {
        let mut sum = 0;
        for port in &self.ports {
            sum += self.map.read(&key(*port))?.map_or(0, |words| words[0]);
        }
        Ok(sum)
    }
}

/// Looks up the local port, and counts if the packet is long enough. Every packet may pass (result 1).
fn program(map: &Map) -> Vec<Instruction> {
    let count = [
        skip_if_zero(R0, 4),
        load(Size::Four, R1, R6, LENGTH),
        skip_if_below(R1, LENGTH_MIN, 2),
        set(R1, 1),
        atomic_add(R0, 0, R1),
        set(R0, 1),
        exit(),
    ];
    [&local_port()[..], &look_up(map.as_fd(), -4), &count].concat()
}

/// The length from which an IP packet counts as one with data: an acknowledgement has 64 bytes at most.
const LENGTH_MIN: i32 = 65;

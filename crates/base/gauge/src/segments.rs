//! Counts TCP segments with data that reach the ports of a group: at least one for each request.
//!
//! A BPF program of 15 instructions sees each packet that a socket of the group receives, which needs root. It counts
//! the packets to one of the ports that are longer than an acknowledgement. Over TCP on IPv4 with timestamps that is 52
//! bytes long, 60 in a handshake, and 64 with one selective acknowledgement. So a request of at least 13 bytes is
//! counted, and a connect or an acknowledgement is not. Several requests that a client writes at once may be counted as
//! one.

use std::fs::File;
use std::os::fd::AsFd as _;

use crate::bpf::instruction::{
    R0, R1, R6, Size, atomic_add, exit, load, look_up, set, skip_if_below, skip_if_zero,
};
use crate::bpf::{AttachedProgram, BpfFault, Direction, Instruction, Map, Program, ProgramKind};
use crate::bytes::{LENGTH, key, local_port, map_of_ports};
use crate::group::Group;

/// A running count of segments with data. Counting ends when it is dropped.
#[derive(Debug)]
pub struct Segments {
    map: Map,
    ports: Vec<u16>,
    _attached: AttachedProgram,
}

impl Segments {
    /// Counts segments with data that come to `ports` of processes of `group`, from then on.
    ///
    /// # Errors
    /// The process lacks the permission, or the kernel has no BPF.
    pub fn count(group: &Group, ports: &[u16]) -> Result<Self, BpfFault> {
        let directory = File::open(group.path()).map_err(BpfFault::of_group)?;
        let map = map_of_ports(ports, 8)?;
        let program = Program::load(ProgramKind::CgroupPackets, &program(&map))?;
        let _attached = program.attach_to_cgroup(directory.as_fd(), Direction::Received)?;
        Ok(Self {
            map,
            ports: ports.to_vec(),
            _attached,
        })
    }

    /// How many segments with data have reached any of the ports so far.
    ///
    /// # Errors
    /// The kernel refuses to read the map.
    pub fn received(&self) -> Result<u64, BpfFault> {
        let mut sum = 0;
        for port in &self.ports {
            sum += self.map.read(&key(*port))?.map_or(0, |words| words[0]);
        }
        Ok(sum)
    }
}

/// The program: it looks up the local port, and counts the packet if it is long enough. It lets every packet pass
/// (result 1).
fn program(map: &Map) -> Vec<Instruction> {
    let count = [
        // The port is not counted.
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

/// The length from which an IP packet counts as one with data: an acknowledgement has at most 64 bytes.
const LENGTH_MIN: i32 = 65;

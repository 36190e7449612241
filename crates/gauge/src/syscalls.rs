//! System calls, counted by the kernel for each group and number.
//!
//! A program of 15 instructions runs at the tracepoint `sys_enter` (root needed). It counts calls of
//! processes that are in a counted group itself, not in one below it. Calls by processes of another
//! architecture (i386 on x86-64) have other numbers and are counted under them.
//! Without root, [`crate::strace`] counts, which slows down what it counts.

use std::collections::BTreeMap;
use std::ops::Sub;
use std::os::fd::AsFd as _;

use crate::bpf::instruction::{
    Function, R0, R1, R7, R10, Size, add, call, exit, load, look_up, set, skip_if_zero, store,
};
use crate::bpf::{Attached, BpfFault, Instruction, Map, MapKind, Program, ProgramKind};
use crate::group::Group;

/// Counts while it lives.
#[derive(Debug)]
pub struct Syscalls {
    map: Map,
    _attached: Attached,
}

/// How often each call was made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts(BTreeMap<String, u64>);

impl Counts {
    /// Counts by name, as strace has them.
    pub fn new(counts: impl IntoIterator<Item = (String, u64)>) -> Self {
        Self(counts.into_iter().filter(|(_, count)| *count > 0).collect())
    }

    /// All calls.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.0.values().sum()
    }

    /// Of the call `name`.
    #[must_use]
    pub fn of(&self, name: &str) -> u64 {
        self.0.get(name).copied().unwrap_or(0)
    }

    /// Names and counts, by name; calls that were never made are left out.
    pub fn iter(&self) -> impl Iterator<Item = (&str, u64)> {
        self.0.iter().map(|(name, count)| (name.as_str(), *count))
    }
}

/// What was called since `earlier`.
impl Sub<&Self> for Counts {
    type Output = Self;

    fn sub(self, earlier: &Self) -> Self {
        let since = |(name, count): (String, u64)| {
            let count = count.saturating_sub(earlier.of(&name));
            (name, count)
        };
        Self::new(self.0.into_iter().map(since))
    }
}

impl Syscalls {
    /// Begins to count what processes of these groups call.
    ///
    /// # Errors
    /// No permission, or a kernel without BPF.
    pub fn count(groups: &[&Group]) -> Result<Self, BpfFault> {
        let entries = groups.len().max(1) * NUMBERS as usize;
        let map = Map::create(MapKind::HashPerCore, KEY_BYTES, 8, entries)?;
        for group in groups {
            for number in 0..NUMBERS {
                map.insert_zero(&key(group.id(), number))?;
            }
        }
        let program = Program::load(ProgramKind::RawTracepoint, &program(&map))?;
        let _attached = program.attach_to_tracepoint(c"sys_enter")?;
        Ok(Self { map, _attached })
    }

    /// What the processes of a group have called so far; nothing for a group that is not counted.
    ///
    /// # Errors
    /// The kernel does not let the map be read.
    pub fn of(&self, group: &Group) -> Result<Counts, BpfFault> {
        let mut counts = Vec::new();
        for number in 0..NUMBERS {
            let cores = self.map.read(&key(group.id(), number))?.unwrap_or_default();
            counts.push((name(number), cores.iter().sum()));
        }
        Ok(Counts::new(counts))
    }
}

/// The arguments of the tracepoint are the registers of the process and the number of the call.
/// Entries of all counted groups are there already, so no other group can fill the map.
fn program(map: &Map) -> Vec<Instruction> {
    let group_and_number = [
        load(Size::Eight, R7, R1, 8),
        call(Function::CurrentCgroup),
        store(Size::Eight, R10, -16, R0),
        store(Size::Eight, R10, -8, R7),
    ];
    let count = [
        skip_if_zero(R0, 3),
        load(Size::Eight, R1, R0, 0),
        add(R1, 1),
        store(Size::Eight, R0, 0, R1),
        set(R0, 0),
        exit(),
    ];
    let look_up = look_up(map.as_fd(), -16);
    [&group_and_number[..], &look_up, &count].concat()
}

fn key(group: u64, number: u32) -> [u8; KEY_BYTES] {
    let mut key = [0; KEY_BYTES];
    key[..8].copy_from_slice(&group.to_ne_bytes());
    key[8..].copy_from_slice(&u64::from(number).to_ne_bytes());
    key
}

fn name(number: u32) -> String {
    let known = syscalls::Sysno::new(number as usize);
    known.map_or_else(
        || format!("syscall_{number}"),
        |known| known.name().to_owned(),
    )
}

/// Linux has less than 480 calls.
const NUMBERS: u32 = 512;
const KEY_BYTES: usize = 16;

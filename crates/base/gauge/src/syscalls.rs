//! Counts system calls in the kernel, for each group and each number of a call.
//!
//! One BPF program, of 15 instructions, runs at the tracepoint `sys_enter`, and one at `sys_exit`,
//! which leaves after three instructions unless the call has failed. Both need root. They count the
//! calls of processes that are directly in a counted group, not in one below it. Calls by processes of
//! another architecture (i386 on x86-64) have other numbers and are counted under those. Counting in
//! detail also gives the time of calls and counts for each process, at the cost of three more map
//! look-ups for each call.
//!
//! Without root, use [`crate::strace`], which slows down the processes whose calls it counts.

mod program;

use std::collections::BTreeMap;
use std::ops::Sub;
use std::os::fd::AsFd as _;
use std::time::Duration;

use crate::bpf::{AttachedProgram, BpfFault, Instruction, Map, MapKind, Program, ProgramKind};
use crate::group::Group;

/// A running count of system calls. Counting ends when it is dropped.
#[derive(Debug)]
pub struct Syscalls {
    groups: Map,
    /// The counts for each process, if counting in detail.
    processes: Option<Map>,
    /// A map that only the programs use. It is kept here so that it stays open.
    _begun: Option<Map>,
    _attached: Vec<AttachedProgram>,
}

/// The system calls that were made, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts(BTreeMap<String, Call>);

/// The figures of one system call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Call {
    /// How often the call was made.
    pub calls: u64,
    /// How often the call failed. It is 0 where that is not counted: in plain counts on other
    /// processors than x86-64.
    pub errors: u64,
    /// The time between entry and exit, including waiting, as with `strace -c -w`. It is zero unless
    /// counted in detail.
    pub time: Duration,
}

impl Counts {
    /// Collects figures by the name of the call, as strace gives them. Calls that were never made are
    /// left out.
    pub fn new(counts: impl IntoIterator<Item = (String, Call)>) -> Self {
        let made = counts.into_iter().filter(|(_, call)| call.calls > 0);
        Self(made.collect())
    }

    /// The number of all calls together.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.0.values().map(|call| call.calls).sum()
    }

    /// The number of calls of `name`.
    #[must_use]
    pub fn of(&self, name: &str) -> u64 {
        self.call(name).calls
    }

    /// The figures of the call `name`; zero if it was never made.
    #[must_use]
    pub fn call(&self, name: &str) -> Call {
        self.0.get(name).copied().unwrap_or_default()
    }

    /// The names and figures in the order of the names; calls that were never made are left out.
    pub fn iter(&self) -> impl Iterator<Item = (&str, Call)> {
        self.0.iter().map(|(name, call)| (name.as_str(), *call))
    }
}

/// The calls made between two readings: `later - earlier`.
impl Sub<&Self> for Counts {
    type Output = Self;

    fn sub(self, earlier: &Self) -> Self {
        let difference = |(name, later): (String, Call)| {
            let before = earlier.call(&name);
            let call = Call {
                calls: later.calls.saturating_sub(before.calls),
                errors: later.errors.saturating_sub(before.errors),
                time: later.time.saturating_sub(before.time),
            };
            (name, call)
        };
        Self::new(self.0.into_iter().map(difference))
    }
}

impl Syscalls {
    /// Begins to count the calls of processes of these groups, and the failed ones among them.
    ///
    /// # Errors
    /// The process lacks the permission, or the kernel has no BPF.
    pub fn count(groups: &[&Group]) -> Result<Self, BpfFault> {
        let map = by_group(groups)?;
        let mut attached = vec![attach(&program::entry(map.as_fd()), c"sys_enter")?];
        if let Some(number) = NUMBER_IN_REGISTERS {
            let program = program::exit_with_error(map.as_fd(), number);
            attached.push(attach(&program, c"sys_exit")?);
        }
        Ok(Self {
            groups: map,
            processes: None,
            _begun: None,
            _attached: attached,
        })
    }

    /// Begins to count as [`Syscalls::count`] does, and also measures the time of calls and counts for
    /// each process.
    ///
    /// # Errors
    /// The process lacks the permission, or the kernel has no BPF.
    pub fn count_in_detail(groups: &[&Group]) -> Result<Self, BpfFault> {
        let map = by_group(groups)?;
        let processes = Map::create(MapKind::HashPerCore, KEY_BYTES, VALUE_BYTES, PROCESS_CALLS)?;
        let begun = Map::create(MapKind::HashOfRecent, 8, 16, THREADS)?;
        let maps = program::Maps {
            groups: map.as_fd(),
            processes: processes.as_fd(),
            begun: begun.as_fd(),
        };
        let attached = vec![
            attach(&program::exit_in_detail(maps), c"sys_exit")?,
            attach(&program::entry_in_detail(maps), c"sys_enter")?,
        ];
        Ok(Self {
            groups: map,
            processes: Some(processes),
            _begun: Some(begun),
            _attached: attached,
        })
    }

    /// The calls of the processes of a group so far; empty for a group that is not counted.
    ///
    /// # Errors
    /// The kernel refuses to read the map.
    pub fn of(&self, group: &Group) -> Result<Counts, BpfFault> {
        let mut counts = Vec::new();
        for number in 0..NUMBERS {
            let call = self.groups.read(&key(group.id(), number.into()))?;
            counts.push((name(number), sum(&call.unwrap_or_default())));
        }
        Ok(Counts::new(counts))
    }

    /// The calls of each process of a group so far, by process id, including processes that have ended;
    /// empty unless counted in detail.
    ///
    /// # Errors
    /// The kernel refuses to read the map.
    pub fn of_processes(&self, group: &Group) -> Result<BTreeMap<u32, Counts>, BpfFault> {
        let mut calls_of: BTreeMap<u32, Vec<(String, Call)>> = BTreeMap::new();
        let Some(map) = &self.processes else {
            return Ok(BTreeMap::new());
        };
        for key in map.keys()? {
            let (group_id, process_and_number) = key.split_at(8);
            if group_id != group.id().to_ne_bytes() {
                continue;
            }
            let word = u64::from_ne_bytes(process_and_number.try_into().unwrap_or_default());
            let (process, number) = ((word >> 32) as u32, word as u32);
            let call = sum(&map.read(&key)?.unwrap_or_default());
            let calls = calls_of.entry(process).or_default();
            calls.push((name(number), call));
        }
        let counts = calls_of.into_iter();
        Ok(counts.map(|(id, calls)| (id, Counts::new(calls))).collect())
    }
}

/// Makes a map with an entry for each call number of each group.
fn by_group(groups: &[&Group]) -> Result<Map, BpfFault> {
    let entries = groups.len().max(1) * NUMBERS as usize;
    let map = Map::create(MapKind::HashPerCore, KEY_BYTES, VALUE_BYTES, entries)?;
    for group in groups {
        for number in 0..NUMBERS {
            map.insert_zero(&key(group.id(), number.into()))?;
        }
    }
    Ok(map)
}

fn attach(
    program: &[Instruction],
    tracepoint: &std::ffi::CStr,
) -> Result<AttachedProgram, BpfFault> {
    let program = Program::load(ProgramKind::RawTracepoint, program)?;
    program.attach_to_tracepoint(tracepoint)
}

/// Adds up the values of all cores.
fn sum(words: &[u64]) -> Call {
    let mut call = Call::default();
    for value in words.chunks_exact(VALUE_BYTES / 8) {
        call.calls += value[0];
        call.errors += value[1];
        call.time += Duration::from_nanos(value[2]);
    }
    call
}

fn key(group: u64, number: u64) -> [u8; KEY_BYTES] {
    let mut key = [0; KEY_BYTES];
    key[..8].copy_from_slice(&group.to_ne_bytes());
    key[8..].copy_from_slice(&number.to_ne_bytes());
    key
}

fn name(number: u32) -> String {
    match syscalls::Sysno::new(number as usize) {
        Some(known) => known.name().to_owned(),
        None => format!("syscall_{number}"),
    }
}

/// The numbers of calls that are counted: Linux has fewer than 480.
const NUMBERS: u32 = 512;
const KEY_BYTES: usize = 16;
/// The size of a value: the numbers of calls and of errors, and nanoseconds.
const VALUE_BYTES: usize = 24;
/// How many pairs of a process and a call can be counted: 400 processes with 40 different calls each.
const PROCESS_CALLS: usize = 16_384;
/// How many threads can be inside a call at the same time.
const THREADS: usize = 32_768;
/// The offset of the call's number in `struct pt_regs` (`orig_ax`); `None` where it is not known.
const NUMBER_IN_REGISTERS: Option<i32> = if cfg!(target_arch = "x86_64") {
    Some(120)
} else {
    None
};

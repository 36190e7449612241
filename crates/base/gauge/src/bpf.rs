//! The kernel's BPF: maps, programs, and attaching programs to events.
//!
//! All of it goes through one system call, whose argument contains addresses of our memory. So this is the
//! only file of the crate with `unsafe`. An attached program runs as long as its [`AttachedProgram`]
//! exists, and at the latest until this process ends, in whatever way.

#![expect(
    unsafe_code,
    reason = "bpf(2) has no safe wrapper; ARCHITECTURE.md lists this place"
)]

pub(crate) mod instruction;

use std::ffi::{CStr, c_long};
use std::io;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd};

pub(crate) use self::instruction::Instruction;

/// The kernel refused a BPF operation, usually for want of permission.
#[derive(Debug, thiserror::Error)]
#[error(
    "the kernel refuses {what}: {source}{verifier_message}; counting needs root (CAP_BPF, CAP_PERFMON, CAP_NET_ADMIN) and a kernel with BPF"
)]
pub struct BpfFault {
    what: &'static str,
    source: io::Error,
    /// The verifier's message about a program, on lines of its own; empty if there is none.
    verifier_message: String,
}

impl BpfFault {
    pub(crate) fn new(what: &'static str, source: io::Error) -> Self {
        Self {
            what,
            source,
            verifier_message: String::new(),
        }
    }
}

/// A BPF map: a table that BPF programs and this process share.
#[derive(Debug)]
pub(crate) struct Map {
    file: OwnedFd,
    key_bytes: usize,
    /// The size of a buffer for one entry, as the kernel reads and writes it.
    value_bytes: usize,
}

/// The kind of a map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MapKind {
    Hash,
    /// When the map is full, the entry that was not used for the longest time is removed.
    HashOfRecent,
    /// Each core has its own value for a key, so programs need no atomic operations.
    HashPerCore,
}

/// A program that the kernel has verified and loaded. It does not run before it is attached.
#[derive(Debug)]
pub(crate) struct Program(OwnedFd);

/// The kind of event that a program handles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProgramKind {
    RawTracepoint,
    /// Packets of the sockets of a cgroup.
    CgroupPackets,
}

/// Which packets of a cgroup's sockets a program sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    Received,
    Sent,
}

/// A program that is attached to its event. Dropping this value detaches the program.
#[derive(Debug)]
pub(crate) struct AttachedProgram(#[expect(dead_code, reason = "closing it detaches")] OwnedFd);

impl Map {
    /// Creates a map with room for this many entries.
    pub(crate) fn create(
        kind: MapKind,
        key_bytes: usize,
        value_bytes: usize,
        entries: usize,
    ) -> Result<Self, BpfFault> {
        // The numbers of `enum bpf_map_type`.
        let (kind_number, buffer_bytes) = match kind {
            MapKind::Hash => (1, value_bytes),
            MapKind::HashOfRecent => (9, value_bytes),
            // The kernel copies the values of all cores, each rounded up to a multiple of eight bytes.
            MapKind::HashPerCore => (5, value_bytes.next_multiple_of(8) * cores_max()?),
        };
        let mut attributes = Create {
            kind: kind_number,
            key_bytes: narrow(key_bytes),
            value_bytes: narrow(value_bytes),
            entries: narrow(entries),
            flags: 0,
        };
        // SAFETY: these attributes have no addresses.
        let created = unsafe { open(MAP_CREATE, &mut attributes) };
        Ok(Self {
            file: created.map_err(|source| BpfFault::new("a map", source))?,
            key_bytes,
            value_bytes: buffer_bytes,
        })
    }

    /// Inserts an entry for `key` whose value is all zeros.
    pub(crate) fn insert_zero(&self, key: &[u8]) -> Result<(), BpfFault> {
        let mut value = vec![0; self.value_bytes];
        self.access(MAP_UPDATE, key, &mut value)
            .map_err(|source| BpfFault::new("an entry of a map", source))
    }

    /// The value for `key` as 64-bit words; `None` if there is no such entry. In a map with a value for
    /// each core, these follow each other.
    pub(crate) fn read(&self, key: &[u8]) -> Result<Option<Vec<u64>>, BpfFault> {
        let mut value = vec![0; self.value_bytes];
        match self.access(MAP_LOOKUP, key, &mut value) {
            Ok(()) => {
                let words = value
                    .chunks_exact(8)
                    .map(|word| word.try_into().unwrap_or_default());
                Ok(Some(words.map(u64::from_ne_bytes).collect()))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(BpfFault::new("reading a map", source)),
        }
    }

    /// All keys of the map. A key that a program inserts meanwhile may be missing.
    pub(crate) fn keys(&self) -> Result<Vec<Vec<u8>>, BpfFault> {
        let mut keys: Vec<Vec<u8>> = Vec::new();
        loop {
            let mut next = vec![0; self.key_bytes];
            // Without a key, the kernel gives the first one.
            let last = keys.last().map_or(std::ptr::null(), Vec::as_ptr);
            let mut attributes = Access {
                map: self.file.as_raw_fd().cast_unsigned(),
                _unused: 0,
                key: address(last),
                value: address(next.as_mut_ptr()),
                flags: 0,
            };
            // SAFETY: the kernel reads `key_bytes` at `key` unless that is null, and writes as many at
            // `value`: `next` and the key that it gave before have this length and outlive the call.
            match unsafe { bpf(MAP_NEXT_KEY, &mut attributes) } {
                Ok(_) => keys.push(next),
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(keys),
                Err(source) => return Err(BpfFault::new("reading a map's keys", source)),
            }
        }
    }

    /// Calls a command that reads or writes the value of a key.
    fn access(&self, command: c_long, key: &[u8], value: &mut [u8]) -> io::Result<()> {
        assert_eq!(key.len(), self.key_bytes, "a key of the map's size");
        assert_eq!(value.len(), self.value_bytes, "a value of the map's size");
        let mut attributes = Access {
            map: self.file.as_raw_fd().cast_unsigned(),
            _unused: 0,
            key: address(key.as_ptr()),
            value: address(value.as_mut_ptr()),
            flags: 0,
        };
        // SAFETY: the kernel reads `key_bytes` at `key`, and reads or writes `value_bytes` at `value`;
        // both slices have these lengths, as was just asserted, and outlive the call.
        unsafe { bpf(command, &mut attributes) }.map(drop)
    }
}

impl AsFd for Map {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

impl Program {
    /// Has the kernel verify and load a program. If it refuses, the fault contains the verifier's message.
    pub(crate) fn load(kind: ProgramKind, program: &[Instruction]) -> Result<Self, BpfFault> {
        // The numbers of `enum bpf_prog_type`.
        let (kind_number, what) = match kind {
            ProgramKind::RawTracepoint => (17, "a program for a raw tracepoint"),
            ProgramKind::CgroupPackets => (8, "a program for packets"),
        };
        let mut attributes = Load {
            kind: kind_number,
            count: narrow(program.len()),
            instructions: address(program.as_ptr()),
            license: address(c"Dual MIT/GPL".as_ptr()),
            log_level: 0,
            log_bytes: 0,
            log: 0,
        };
        // SAFETY: the kernel reads `count` instructions of a slice of that length, and a text that
        // ends in zero; there is no log.
        let source = match unsafe { open(PROG_LOAD, &mut attributes) } {
            Ok(file) => return Ok(Self(file)),
            Err(source) => source,
        };
        // A log makes loading slower, so there is one only for a second attempt, to learn the reason.
        let mut log = vec![0_u8; 1 << 16];
        attributes.log_level = 1;
        attributes.log_bytes = narrow(log.len());
        attributes.log = address(log.as_mut_ptr());
        // SAFETY: as above; the kernel writes at most `log_bytes` into the log, which has as many.
        let retried = unsafe { open(PROG_LOAD, &mut attributes) };
        let log_text = CStr::from_bytes_until_nul(&log)
            .unwrap_or_default()
            .to_string_lossy();
        let verifier_message = if log_text.is_empty() {
            String::new()
        } else {
            format!("\n{log_text}")
        };
        retried.map(Self).map_err(|_| BpfFault {
            what,
            source,
            verifier_message,
        })
    }

    /// Attaches the program to the tracepoint `name`: it runs whenever any process passes it.
    pub(crate) fn attach_to_tracepoint(&self, name: &CStr) -> Result<AttachedProgram, BpfFault> {
        let mut attributes = OpenTracepoint {
            name: address(name.as_ptr()),
            program: self.0.as_raw_fd().cast_unsigned(),
            _unused: 0,
        };
        // SAFETY: the kernel reads a text that ends in zero.
        let attached = unsafe { open(RAW_TRACEPOINT_OPEN, &mut attributes) };
        attached
            .map(AttachedProgram)
            .map_err(|source| BpfFault::new("a raw tracepoint", source))
    }

    /// Attaches the program to `cgroup`: it runs for the packets of sockets that were created in it or
    /// below it.
    pub(crate) fn attach_to_cgroup(
        &self,
        cgroup: BorrowedFd<'_>,
        direction: Direction,
    ) -> Result<AttachedProgram, BpfFault> {
        let mut attributes = CreateLink {
            program: self.0.as_raw_fd().cast_unsigned(),
            target: cgroup.as_raw_fd().cast_unsigned(),
            // The numbers of `enum bpf_attach_type`.
            event: match direction {
                Direction::Received => 0,
                Direction::Sent => 1,
            },
            flags: 0,
        };
        // SAFETY: these attributes have no addresses.
        let attached = unsafe { open(LINK_CREATE, &mut attributes) };
        attached
            .map(AttachedProgram)
            .map_err(|source| BpfFault::new("a program on a cgroup", source))
    }
}

/// An upper bound of the number of cores that the kernel keeps values for: it has one for each possible
/// core, present or not.
fn cores_max() -> Result<usize, BpfFault> {
    const FILE: &str = "/sys/devices/system/cpu/possible";
    let text = std::fs::read_to_string(FILE).map_err(|source| BpfFault::new(FILE, source))?;
    let last_text = text.trim().rsplit(['-', ',']).next().unwrap_or_default();
    let last: usize = last_text
        .parse()
        .map_err(|_| BpfFault::new(FILE, io::ErrorKind::InvalidData.into()))?;
    Ok(last + 1)
}

fn narrow(number: usize) -> u32 {
    u32::try_from(number).expect("sizes here are small constants")
}

fn address<T>(pointer: *const T) -> u64 {
    pointer.expose_provenance() as u64
}

/// Calls bpf(2) with a command that returns a file descriptor.
///
/// # Safety
/// As for [`bpf`]; in addition, `command` must return a descriptor that nothing else owns.
unsafe fn open<T>(command: c_long, attributes: &mut T) -> io::Result<OwnedFd> {
    // SAFETY: the caller answers for the attributes.
    let answer = unsafe { bpf(command, attributes) }?;
    let number = i32::try_from(answer).map_err(io::Error::other)?;
    // SAFETY: the kernel has just opened it for us, nobody else knows it.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

/// Calls bpf(2).
///
/// # Safety
/// `T` must be the part of `union bpf_attr` that `command` reads, with all its bytes initialised. Every
/// address in it must be valid for what `command` reads or writes there, until the call returns.
unsafe fn bpf<T>(command: c_long, attributes: &mut T) -> io::Result<c_long> {
    let bytes = size_of::<T>();
    // SAFETY: the kernel reads and writes at most `bytes` at the address of a live exclusive reference;
    // the caller answers for what it means.
    let result = unsafe {
        libc::syscall(
            libc::SYS_bpf,
            command,
            std::ptr::from_mut(attributes),
            bytes,
        )
    };
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(result)
    }
}

// Parts of `union bpf_attr` (linux/bpf.h). What the kernel knows beyond them it takes for zero.

#[repr(C)]
struct Create {
    kind: u32,
    key_bytes: u32,
    value_bytes: u32,
    entries: u32,
    flags: u32,
}

#[repr(C)]
struct Access {
    map: u32,
    _unused: u32,
    key: u64,
    value: u64,
    flags: u64,
}

#[repr(C)]
struct Load {
    kind: u32,
    count: u32,
    instructions: u64,
    license: u64,
    log_level: u32,
    log_bytes: u32,
    log: u64,
}

#[repr(C)]
struct OpenTracepoint {
    name: u64,
    program: u32,
    _unused: u32,
}

#[repr(C)]
struct CreateLink {
    program: u32,
    target: u32,
    event: u32,
    flags: u32,
}

const MAP_CREATE: c_long = 0;
const MAP_LOOKUP: c_long = 1;
const MAP_UPDATE: c_long = 2;
const MAP_NEXT_KEY: c_long = 4;
const PROG_LOAD: c_long = 5;
const RAW_TRACEPOINT_OPEN: c_long = 17;
const LINK_CREATE: c_long = 28;

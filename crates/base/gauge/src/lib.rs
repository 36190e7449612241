//! Figures of the kernel and of a JVM about a group of processes.
//!
//! This crate only measures; experiments draw conclusions. A server usually has several processes, so
//! figures are sums over all of them. A [`Group`] (cgroup) holds a server's processes, however they
//! were started; [`process::tree`] lists those below a root where there are no cgroups. A process
//! that ends between being listed and being read counts as nothing.
//!
//! - [`Group`]: CPU time to the microsecond, killing them all; a part of a core by [`CpuLimit`];
//! - [`cpu`], [`memory`], [`process`]: what `/proc` says of processes; [`system`], [`network`]: of the
//!   machine, for a series that is taken each second;
//! - [`machine`]: what a machine allows a server or a load, and settings that do harm;
//! - [`Syscalls`] and [`Bytes`]: counted by the kernel through BPF; [`Strace`] without it;
//! - [`jvm`]: heap, collections and compilation of a JVM;
//! - [`probe`]: which of these ways are open here.
//!
//! ```
//! use catamaran_gauge::{cpu, memory, process};
//!
//! let own = std::process::id();
//! let before = cpu::of_process(own)?;
//! let memory = memory::shares(&process::tree(own)?)?;
//! assert!(memory.proportional > 0);
//! let used = (cpu::of_process(own)? - before).total();
//! assert!(used.as_secs() < 60);
//! # Ok::<(), std::io::Error>(())
//! ```

mod bpf;
mod bytes;
pub mod cpu;
mod group;
pub mod jvm;
mod limited;
pub mod machine;
pub mod memory;
pub mod network;
pub mod probe;
pub mod process;
mod segments;
mod strace;
mod syscalls;
pub mod system;
mod withheld;

pub use bpf::BpfFault;
pub use bytes::{Bytes, Hop, Traffic};
pub use group::{Group, GroupFault};
pub use limited::{CpuLimit, Stops};
pub use segments::Segments;
pub use strace::Strace;
pub use syscalls::{Call, Counts, Syscalls};
pub use withheld::{Withheld, withheld};

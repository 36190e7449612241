//! Measurements of a group of processes, from the kernel and from a JVM.
//!
//! This crate only measures; drawing conclusions is left to the experiments. A server usually has
//! several processes, so figures are sums over all of them. A [`Group`] (a cgroup) holds all processes
//! of a server, however they were started; where cgroups are not available, [`process::tree`] lists
//! the processes below a root. A process that ends between being listed and being read counts as
//! nothing.
//!
//! - [`Group`]: CPU time to the microsecond, killing all processes, and limiting CPU time with a
//!   [`CpuLimit`];
//! - [`cpu`], [`memory`], [`process`]: what `/proc` says of processes; [`system`], [`network`]: what
//!   it says of the machine, for a series with a reading each second;
//! - [`machine`]: what a machine allows a server or a load, and settings that do harm;
//! - [`Syscalls`] and [`Bytes`]: counted by the kernel through BPF; [`Strace`] where BPF is not
//!   available;
//! - [`jvm`]: heap, collections and compilation of a JVM;
//! - [`probe`]: which of these ways work here.
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

//! What the kernel says of processes and of the machine: CPU time, memory, threads, open files.
//!
//! Nothing here starts a process or draws a conclusion: experiments do. A server is several
//! processes as a rule, so figures are sums over all of them; [`process::tree`] lists those below
//! a root. A process that ends between being listed and being asked counts as nothing.
//!
//! ```
//! use catamaran_gauge::{cpu, memory, process};
//!
//! let own = std::process::id();
//! let before = cpu::of_tree(own)?;
//! let memory = memory::shares(&process::tree(own)?)?;
//! assert!(memory.proportional > 0);
//! let used = (cpu::of_tree(own)? - before).total();
//! assert!(used.as_secs() < 60);
//! # Ok::<(), std::io::Error>(())
//! ```

pub mod cpu;
pub mod memory;
pub mod process;
pub mod system;

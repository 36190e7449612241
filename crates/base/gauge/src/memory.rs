//! The memory of processes, in bytes.
//!
//! [`of_process`] reads counters and is cheap (0.03 ms for a process). [`shares`] makes the kernel walk all pages
//! (5 ms for 100 processes), so use it only at the start, in the middle and at the end of a run.

use std::io;

use crate::process::{fault, open};

/// The memory of one process at one moment, from `/proc/PID/status`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    /// All resident memory (`VmRSS`).
    pub resident: u64,
    /// The most memory that was ever resident (`VmHWM`). Assert "constant memory" on this figure, because no moment
    /// escapes it.
    pub resident_peak: u64,
    /// The resident anonymous memory (`RssAnon`): what the process itself allocated, such as heaps and stacks,
    /// without the program text and libraries that every process maps.
    pub private: u64,
}

/// The memory of several processes together, from `smaps_rollup`: a page that several processes share is divided
/// among them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shares {
    /// `Pss`: a page that n processes share counts as 1/n for each, also if the others are foreign.
    ///
    /// So it depends on who else runs the same program: do not compare servers by it.
    pub proportional: u64,
    /// `Pss_Anon`, `Pss_Shmem` and `SwapPss`: what the processes allocated, in memory or swapped out.
    ///
    /// A page that n of the processes share, such as after a fork, counts as 1/n for each. Pages of files are left
    /// out until they are written: program text, libraries, and the class archive of a JVM. So the figure stays the
    /// same when another process begins to run the same program, and servers of any number of processes can be
    /// compared by it. It includes shared memory (such as the scoreboard of httpd or a zone of nginx) and huge
    /// pages that the kernel chose itself, but not hugetlbfs. If a program lies on tmpfs, its text is included,
    /// because the kernel counts such pages as shared memory.
    pub anonymous: u64,
}

/// The memory of the process `id` alone, without its children.
///
/// # Errors
/// The process is gone, or it has no memory any more (the kind is `InvalidData`).
pub fn of_process(id: u32) -> io::Result<Memory> {
    let status = open(id)?.status().map_err(fault)?;
    let bytes = |kib: Option<u64>| kib.map(|kib| kib * 1024).ok_or(io::ErrorKind::InvalidData);
    Ok(Memory {
        resident: bytes(status.vmrss)?,
        resident_peak: bytes(status.vmhwm)?,
        private: bytes(status.rssanon)?,
    })
}

/// The memory of the processes `ids` together. Processes that have ended count as nothing.
///
/// # Errors
/// A process belongs to another user, or all have ended.
pub fn shares(ids: &[u32]) -> io::Result<Shares> {
    let mut sum = Shares::default();
    let mut has_any = false;
    for id in ids {
        match shares_of(*id) {
            Ok(shares) => {
                has_any = true;
                sum.proportional += shares.proportional;
                sum.anonymous += shares.anonymous;
            }
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return Err(error),
            // The process has ended.
            Err(_) => {}
        }
    }
    if has_any {
        Ok(sum)
    } else {
        Err(io::ErrorKind::NotFound.into())
    }
}

fn shares_of(id: u32) -> io::Result<Shares> {
    let rollup = open(id)?.smaps_rollup().map_err(fault)?;
    let first = rollup.memory_map_rollup.into_iter().next();
    // Without an entry the process has ended: its memory is gone before its number is.
    let map = first.ok_or(io::ErrorKind::NotFound)?.extension.map;
    let bytes = |name: &str| map.get(name).copied().ok_or(io::ErrorKind::InvalidData);
    // A kernel without swap has no such line.
    let swapped = map.get("SwapPss").copied().unwrap_or(0);
    Ok(Shares {
        proportional: bytes("Pss")?,
        anonymous: bytes("Pss_Anon")? + bytes("Pss_Shmem")? + swapped,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_has_memory() {
        let own = std::process::id();
        let memory = of_process(own).unwrap();
        assert!(memory.private > 0 && memory.private <= memory.resident);
        assert!(memory.resident <= memory.resident_peak);
        let shares = shares(&[own, NONE]).unwrap();
        assert!(shares.anonymous > 0);
        assert!(shares.proportional >= shares.anonymous);
    }

    #[test]
    fn processes_that_are_gone_have_none() {
        assert_eq!(shares(&[NONE]).unwrap_err().kind(), io::ErrorKind::NotFound);
        assert_eq!(
            of_process(NONE).unwrap_err().kind(),
            io::ErrorKind::NotFound
        );
    }

    /// A process id above the largest that Linux gives (2^22).
    const NONE: u32 = 5_000_000;
}

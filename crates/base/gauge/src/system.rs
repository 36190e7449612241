//! The state of the machine as a whole: cores, disks and memory.
//!
//! Counters count from the start of the machine, so a series is made from their differences. Reading all of it
//! takes 0.1 ms.

use std::collections::BTreeMap;
use std::io;
use std::ops::Sub;
use std::path::Path;
use std::time::Duration;

use procfs::{CpuTime, Current as _, CurrentSI as _, DiskStat, KernelStats, Meminfo};
use serde::{Deserialize, Serialize};

use crate::cpu::ticks;
use crate::process::fault;

/// How a core has spent its time so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Core {
    /// The time in which the core executed code outside the kernel.
    pub user: Duration,
    /// The time in which the core executed code of the kernel, including interrupts.
    pub system: Duration,
    /// The time in which the core was idle while a thread waited for a disk.
    pub wait: Duration,
    /// The time in which the hypervisor ran something else on the core.
    pub steal: Duration,
    /// All time, idle time included.
    pub total: Duration,
}

/// The totals of a disk so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Disk {
    /// The number of completed reads.
    pub reads: u64,
    /// The number of completed writes.
    pub writes: u64,
    /// The bytes read.
    pub read_bytes: u64,
    /// The bytes written.
    pub written_bytes: u64,
}

/// The machine's current memory, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Memory {
    /// All memory of the machine.
    pub total: u64,
    /// The memory that is not used for anything.
    pub free: u64,
    /// The memory that programs could still get without swapping.
    pub available: u64,
    /// The memory that caches the contents of files.
    pub cached: u64,
    /// The memory that holds objects of the kernel, such as sockets.
    pub slab: u64,
}

impl Core {
    /// The time in which the core executed code, in or outside the kernel.
    #[must_use]
    pub fn busy(&self) -> Duration {
        self.user + self.system
    }
}

/// How the time between two readings was spent: `later - earlier`.
impl Sub for Core {
    type Output = Self;

    fn sub(self, earlier: Self) -> Self {
        Self {
            user: self.user.saturating_sub(earlier.user),
            system: self.system.saturating_sub(earlier.system),
            wait: self.wait.saturating_sub(earlier.wait),
            steal: self.steal.saturating_sub(earlier.steal),
            total: self.total.saturating_sub(earlier.total),
        }
    }
}

/// The cores that are online, in the order of their numbers.
///
/// # Errors
/// `/proc/stat` cannot be read.
pub fn cores() -> io::Result<Vec<Core>> {
    let stats = KernelStats::current().map_err(fault)?;
    Ok(stats.cpu_time.iter().map(core).collect())
}

/// The disks by name, such as `sda`. Partitions are not listed: they count as part of their disk.
///
/// # Errors
/// `/proc/diskstats` cannot be read.
pub fn disks() -> io::Result<BTreeMap<String, Disk>> {
    let mut disks = BTreeMap::new();
    for stat in procfs::diskstats().map_err(fault)? {
        let is_whole_disk = Path::new("/sys/block").join(&stat.name).exists();
        if is_whole_disk {
            disks.insert(stat.name.clone(), disk(&stat));
        }
    }
    Ok(disks)
}

/// The machine's current memory.
///
/// # Errors
/// `/proc/meminfo` cannot be read.
pub fn memory() -> io::Result<Memory> {
    let memory = Meminfo::current().map_err(fault)?;
    Ok(Memory {
        total: memory.mem_total,
        free: memory.mem_free,
        available: memory.mem_available.unwrap_or(memory.mem_free),
        cached: memory.cached,
        slab: memory.slab,
    })
}

/// Converts the times of a core (see proc(5)): waiting for a disk is idle time, and the time of guests is part
/// of user and nice already.
fn core(time: &CpuTime) -> Core {
    let user = time.user + time.nice;
    let system = time.system + time.irq.unwrap_or(0) + time.softirq.unwrap_or(0);
    let steal = time.steal.unwrap_or(0);
    let wait = time.iowait.unwrap_or(0);
    Core {
        user: ticks(user),
        system: ticks(system),
        wait: ticks(wait),
        steal: ticks(steal),
        total: ticks(user + system + steal + time.idle + wait),
    }
}

fn disk(disk: &DiskStat) -> Disk {
    Disk {
        reads: disk.reads,
        writes: disk.writes,
        read_bytes: disk.sectors_read * SECTOR,
        written_bytes: disk.sectors_written * SECTOR,
    }
}

/// The bytes of a sector in `/proc/diskstats`, whatever the disk's own sectors are.
const SECTOR: u64 = 512;

#[cfg(test)]
mod tests {
    use procfs::FromReadSI as _;

    use super::*;

    #[test]
    fn waiting_and_stolen_time_are_not_busy() {
        let text = "cpu  9 9 9 9 9 9 9 9 0 0\ncpu0 10 0 20 50 10 1 2 7 3 3\nctxt 5\nbtime 5\n\
                    processes 5\n";
        let stats = KernelStats::from_read(text.as_bytes(), procfs::current_system_info()).unwrap();
        let core = core(&stats.cpu_time[0]);
        assert_eq!((core.user, core.system), (ticks(10), ticks(23)));
        assert_eq!(core.busy(), ticks(33));
        assert_eq!(core.wait, ticks(10));
        assert_eq!(core.steal, ticks(7));
        assert_eq!(core.total, ticks(100));
    }

    #[test]
    fn this_machine_has_cores() {
        let before = cores().unwrap();
        let after = cores().unwrap();
        assert!(!before.is_empty());
        assert!(after[0].total >= before[0].total);
    }

    #[test]
    fn sectors_of_a_disk_are_bytes() {
        let line = "   8       0 sda 10 1 16 5 20 2 32 6 0 9 11";
        let found = disk(&DiskStat::from_line(line).unwrap());
        let expected = Disk {
            reads: 10,
            writes: 20,
            read_bytes: 8192,
            written_bytes: 16_384,
        };
        assert_eq!(found, expected);
        assert!(disks().is_ok());
    }

    #[test]
    fn this_machine_has_memory() {
        let memory = memory().unwrap();
        assert!(memory.free > 0 && memory.free <= memory.total);
        assert!(memory.available <= memory.total && memory.slab < memory.total);
    }
}

//! What the machine as a whole has done: its cores.

use std::io;
use std::ops::Sub;
use std::time::Duration;

use procfs::{CpuTime, CurrentSI as _, KernelStats};

use crate::cpu::ticks;
use crate::process::fault;

/// What a core has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Core {
    /// Time in which it computed.
    pub busy: Duration,
    /// Time in which a hypervisor let something else compute instead.
    pub steal: Duration,
    /// All time, idle or not.
    pub total: Duration,
}

/// What was done since `earlier`.
impl Sub for Core {
    type Output = Self;

    fn sub(self, earlier: Self) -> Self {
        Self {
            busy: self.busy.saturating_sub(earlier.busy),
            steal: self.steal.saturating_sub(earlier.steal),
            total: self.total.saturating_sub(earlier.total),
        }
    }
}

/// Every core that is online, by number.
///
/// # Errors
/// `/proc/stat` cannot be read.
pub fn cores() -> io::Result<Vec<Core>> {
    let stats = KernelStats::current().map_err(fault)?;
    Ok(stats.cpu_time.iter().map(core).collect())
}

/// proc(5): waiting for a disk is idle; the time of guests is in user and nice already.
fn core(time: &CpuTime) -> Core {
    let busy =
        time.user + time.nice + time.system + time.irq.unwrap_or(0) + time.softirq.unwrap_or(0);
    let steal = time.steal.unwrap_or(0);
    let idle = time.idle + time.iowait.unwrap_or(0);
    Core {
        busy: ticks(busy),
        steal: ticks(steal),
        total: ticks(busy + steal + idle),
    }
}

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
        assert_eq!(core.busy, ticks(33));
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
}

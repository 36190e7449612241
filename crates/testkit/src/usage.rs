//! What a process uses, as Linux tells under `/proc`: memory, CPU time and open files.
//!
//! Numbers are bytes. "Private" is anonymous resident memory, what the process itself allocated,
//! without the program text and libraries that every process maps.

use std::fs;
use std::io;
use std::time::Duration;

/// Memory of one process at one moment, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    /// All resident pages (`VmRSS`).
    pub resident: u64,
    /// The most that was ever resident (`VmHWM`): the figure to assert "constant memory" on,
    /// because no moment escapes it.
    pub resident_peak: u64,
    /// Resident anonymous pages (`RssAnon`): what the process allocated.
    pub private: u64,
}

/// The memory of process `id`.
///
/// # Errors
/// The process is gone, or the system's `/proc` lacks a line (then the kind is `InvalidData`).
pub fn memory(id: u32) -> io::Result<Memory> {
    let status = fs::read_to_string(format!("/proc/{id}/status"))?;
    parse_memory(&status).ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))
}

/// How many file descriptors process `id` has open.
///
/// # Errors
/// The process is gone or belongs to somebody else.
pub fn open_files(id: u32) -> io::Result<usize> {
    Ok(fs::read_dir(format!("/proc/{id}/fd"))?.count())
}

/// The CPU time that process `id` and its threads have used so far, as the system has counted it: in
/// hundredths of a second.
///
/// # Errors
/// The process is gone, or the system's `/proc` has another form (then the kind is `InvalidData`).
pub fn cpu_time(id: u32) -> io::Result<Duration> {
    let stat = fs::read_to_string(format!("/proc/{id}/stat"))?;
    parse_cpu_time(&stat).ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))
}

/// proc(5): the second field is the program's name in parentheses and may hold anything.
fn parse_cpu_time(stat: &str) -> Option<Duration> {
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_whitespace().skip(11);
    let mut ticks = || fields.next()?.parse::<u64>().ok();
    // A tick is 10 ms wherever `USER_HZ` is 100, which is every Linux of today.
    Some(Duration::from_millis(10 * (ticks()? + ticks()?)))
}

fn parse_memory(status: &str) -> Option<Memory> {
    let bytes = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        let kib: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
        Some(kib * 1024)
    };
    Some(Memory {
        resident: bytes("VmRSS:")?,
        resident_peak: bytes("VmHWM:")?,
        private: bytes("RssAnon:")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_the_fields_of_stat() {
        let stat = "42 (a ) S 1 (b) S 7 42 42 0 -1 4194560 9 9 0 0 100 20 3 4 20 0 1 0 5 6 7";
        assert_eq!(parse_cpu_time(stat), Some(Duration::from_millis(1200)));
        assert_eq!(parse_cpu_time("42 (a) S 1"), None);
    }

    #[test]
    fn parses_the_lines_of_status() {
        let status = "Name:\tx\nVmHWM:\t    3000 kB\nVmRSS:\t    2000 kB\nRssAnon:\t     500 kB\n";
        let memory = parse_memory(status).unwrap();
        assert_eq!(memory.resident, 2000 * 1024);
        assert_eq!(memory.resident_peak, 3000 * 1024);
        assert_eq!(memory.private, 500 * 1024);
        assert_eq!(parse_memory("VmRSS:\t 1 kB\n"), None);
    }

    #[test]
    fn knows_this_process() {
        let id = std::process::id();
        let memory = memory(id).unwrap();
        assert!(memory.private > 0 && memory.private <= memory.resident_peak);
        assert!(open_files(id).unwrap() >= 3);
    }
}

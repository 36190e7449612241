//! Which processes there are, and what each of them holds: threads and open files.

use std::collections::{HashMap, HashSet};
use std::io;
use std::time::Duration;

use procfs::ProcError;
use procfs::net::TcpState;
use procfs::process::{FDTarget, Process, Stat, all_processes};
use rustix::process::{Resource, getrlimit};

use crate::cpu::ticks;

/// The ids of the process `root` and of all processes below it; empty if `root` is gone.
///
/// # Errors
/// `/proc` cannot be read.
pub fn tree(root: u32) -> io::Result<Vec<u32>> {
    let tree = stats_of_tree(root)?;
    Ok(tree.iter().map(|stat| stat.pid.cast_unsigned()).collect())
}

/// How many threads the processes `ids` have together; processes that are gone count as nothing.
#[must_use]
pub fn threads(ids: &[u32]) -> usize {
    let stats = ids.iter().filter_map(|id| stat(*id).ok());
    let counts = stats.map(|stat| stat.num_threads.max(0).cast_unsigned());
    usize::try_from(counts.sum::<u64>()).unwrap_or(usize::MAX)
}

/// The processes of this network namespace that listen at TCP port `port`, or have inherited a socket that does, as
/// workers have of their master. Those of other users are found by root alone.
///
/// # Errors
/// `/proc` cannot be read.
pub fn listeners(port: u16) -> io::Result<Vec<u32>> {
    let sockets = [procfs::net::tcp(), procfs::net::tcp6()].map(Result::unwrap_or_default);
    let listening: HashSet<u64> = sockets
        .iter()
        .flatten()
        .filter(|socket| socket.state == TcpState::Listen && socket.local_address.port() == port)
        .map(|socket| socket.inode)
        .collect();
    let has_listener = |process: &Process| {
        let mut files = process.fd().into_iter().flatten().flatten();
        files.any(
            |file| matches!(file.target, FDTarget::Socket(inode) if listening.contains(&inode)),
        )
    };
    let processes = all_processes().map_err(fault)?.filter_map(Result::ok);
    Ok(processes
        .filter(has_listener)
        .map(|process| process.pid.cast_unsigned())
        .collect())
}

/// What the kernel calls the process `id`: its program's name, 15 letters at most; `None` if it is gone.
#[must_use]
pub fn name(id: u32) -> Option<String> {
    let name = std::fs::read_to_string(format!("/proc/{id}/comm")).ok()?;
    Some(name.trim_end().to_owned())
}

/// The number of file descriptors that the process `id` has open.
///
/// # Errors
/// The process has ended, or belongs to another user.
pub fn open_files(id: u32) -> io::Result<usize> {
    open(id)?.fd_count().map_err(fault)
}

/// The bytes that the processes `ids` caused to be read from disks and written to them so far (`/proc/ID/io`). Reads
/// from the kernel's cache do not count; writes count before they reach the disk. Of a process that has
/// ended they are part of its parent's, once that has waited for it.
#[must_use]
pub fn disk_bytes(ids: &[u32]) -> u64 {
    let transfers = ids.iter().filter_map(|id| open(*id).ok()?.io().ok());
    transfers.map(|io| io.read_bytes + io.write_bytes).sum()
}

/// The resources that a process uses, as exporters of metrics report them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Usage {
    /// The CPU time of all its threads since it was started, in ticks of 10 ms.
    pub cpu: Duration,
    /// The resident memory in bytes.
    pub resident: u64,
    /// The size of the address space in bytes.
    pub address_space: u64,
    /// The number of threads of the process.
    pub threads: u64,
    /// The number of open files.
    pub open_files: u64,
    /// How many files may be open (the soft limit); `None` if that is not limited.
    pub open_files_max: Option<u64>,
    /// The time at which the process was started, since the beginning of 1970.
    pub began: Duration,
}

/// The resources that this process uses now.
///
/// # Errors
/// `/proc` cannot be read.
pub fn own_usage() -> io::Result<Usage> {
    let own = Process::myself().map_err(fault)?;
    let stat = own.stat().map_err(fault)?;
    let boot = Duration::from_secs(procfs::boot_time_secs().map_err(fault)?);
    Ok(Usage {
        cpu: ticks(stat.utime) + ticks(stat.stime),
        resident: stat.rss * procfs::page_size(),
        address_space: stat.vsize,
        threads: stat.num_threads.max(0).cast_unsigned(),
        open_files: own.fd_count().map_err(fault)? as u64,
        open_files_max: getrlimit(Resource::Nofile).current,
        began: boot + ticks(stat.starttime),
    })
}

/// What `/proc/ID/stat` says of the process `root` and of all below it.
pub(crate) fn stats_of_tree(root: u32) -> io::Result<Vec<Stat>> {
    let mut stats = HashMap::new();
    for process in all_processes().map_err(fault)?.flatten() {
        // A process may end between being listed and being read.
        if let Ok(stat) = process.stat() {
            stats.insert(stat.pid.cast_unsigned(), stat);
        }
    }
    let parent = |id: &u32| stats.get(id).map(|stat: &Stat| stat.ppid.cast_unsigned());
    // No chain of parents is longer than the list, unless an id that was used again closes a circle.
    let is_below_root = |id: u32| {
        let chain = std::iter::successors(Some(id), parent);
        chain.take(stats.len() + 1).any(|id| id == root)
    };
    let ids: Vec<u32> = stats
        .keys()
        .copied()
        .filter(|id| is_below_root(*id))
        .collect();
    Ok(ids.iter().filter_map(|id| stats.remove(id)).collect())
}

pub(crate) fn stat(id: u32) -> io::Result<Stat> {
    open(id)?.stat().map_err(fault)
}

pub(crate) fn open(id: u32) -> io::Result<Process> {
    let none = |_| io::Error::from(io::ErrorKind::NotFound);
    Process::new(i32::try_from(id).map_err(none)?).map_err(fault)
}

/// Converts an error of procfs to the system's own error where there is one.
pub(crate) fn fault(error: ProcError) -> io::Error {
    let kind = match error {
        ProcError::PermissionDenied(_) => io::ErrorKind::PermissionDenied,
        ProcError::NotFound(_) => io::ErrorKind::NotFound,
        ProcError::Io(ref io, _) => io.kind(),
        _ => io::ErrorKind::InvalidData,
    };
    io::Error::new(kind, error)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::time::{SystemTime, UNIX_EPOCH};

    use super::*;

    #[test]
    fn this_process_knows_what_it_uses() {
        let usage = own_usage().unwrap();
        assert!(usage.resident > 0 && usage.address_space > usage.resident);
        assert!(usage.threads >= 1 && usage.open_files >= 3);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        assert!(
            usage.began <= now + Duration::from_secs(2),
            "{usage:?} {now:?}"
        );
        assert!(own_usage().unwrap().cpu >= usage.cpu);
    }

    /// Beside the source: a file system in memory, which the folder for temporary files may be, counts nothing.
    #[test]
    fn bytes_of_disks_are_those_of_the_processes() {
        let own = [std::process::id()];
        let before = disk_bytes(&own);
        let mut file = tempfile::NamedTempFile::new_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        file.write_all(&[1; 1 << 20]).unwrap();
        assert!(disk_bytes(&own) >= before + (1 << 20));
        assert_eq!(disk_bytes(&[u32::MAX >> 1]), 0, "it does not exist");
        let of_this = disk_bytes(&own);
        let written = format!("of={}", file.path().display());
        let child = std::process::Command::new("dd")
            .args(["if=/dev/zero", "bs=1M", "count=2", &written])
            .output();
        assert!(child.unwrap().status.success());
        assert!(
            disk_bytes(&own) >= of_this + (2 << 20),
            "of a child that has ended"
        );
    }

    #[test]
    fn this_process_has_itself_in_its_tree() {
        let own = std::process::id();
        let tree = tree(own).unwrap();
        assert!(tree.contains(&own));
        assert!(name(own).unwrap().starts_with("catamaran"));
        assert!(threads(&tree) >= 1);
        assert!(open_files(own).unwrap() >= 3);
    }

    #[test]
    fn this_process_listens_where_it_does() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        assert_eq!(listeners(port).unwrap(), [std::process::id()]);
        drop(listener);
        assert!(listeners(port).unwrap().is_empty());
        let used = crate::cpu::of_threads(std::process::id()).unwrap();
        assert!(used > Duration::ZERO);
        assert!(crate::cpu::of_threads(std::process::id()).unwrap() >= used);
    }

    #[test]
    fn a_process_that_never_was_is_not_found() {
        // Above the largest that Linux gives (2^22).
        let none = 5_000_000;
        assert_eq!(name(none), None);
        assert_eq!(
            open_files(none).unwrap_err().kind(),
            io::ErrorKind::NotFound
        );
        assert_eq!(tree(none).unwrap(), Vec::<u32>::new());
        assert_eq!(threads(&[none]), 0);
    }
}

//! Counts system calls with strace, where BPF is not available.
//!
//! Each call then stops the process twice, so durations from such a run are invalid: counting needs a run
//! of its own.

use std::io::{self, BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tempfile::NamedTempFile;

use crate::syscalls::{Call, Counts};

/// A running strace that counts the calls of processes. Dropping it ends strace; the processes go on.
#[derive(Debug)]
pub struct Strace {
    child: Child,
    table: NamedTempFile,
}

impl Strace {
    /// Attaches strace to the processes `ids`, and to what they start from then on.
    ///
    /// It returns when strace reports that it is attached to all of them; a process that has ended
    /// meanwhile is not waited for.
    ///
    /// # Errors
    /// strace is not installed (package `strace`), may not trace one of the processes, finds none of
    /// them, or does not report within ten seconds that it is attached.
    pub fn follow(ids: &[u32]) -> io::Result<Self> {
        let table = NamedTempFile::new()?;
        let mut command = Command::new("strace");
        command
            .args(["-f", "-c", "-U", "name,calls,errors", "-o"])
            .arg(table.path());
        for id in ids {
            command.args(["-p", &id.to_string()]);
        }
        let child = command
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()?;
        let mut strace = Self { child, table };
        strace.wait_until_attached(ids)?;
        Ok(strace)
    }

    /// Ends strace and returns its counts.
    ///
    /// # Errors
    /// strace had ended by itself, or its table cannot be read.
    pub fn finish(mut self) -> io::Result<Counts> {
        self.interrupt();
        self.child.wait()?;
        Ok(parse(&std::fs::read_to_string(self.table.path())?))
    }

    /// Starts a thread that reads the lines of strace's stderr, and returns them as they come.
    fn read_stderr(&mut self) -> io::Result<Receiver<String>> {
        let stderr = self.child.stderr.take().ok_or(io::ErrorKind::BrokenPipe)?;
        let (sender, receiver) = sync_channel(LINES);
        std::thread::spawn(move || {
            // The lines are read after the receiver is gone, too: strace stops when its pipe is full.
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                let _ = sender.send(line);
            }
        });
        Ok(receiver)
    }

    /// Waits until strace is attached to the processes. It reports each one on stderr, as attached or as
    /// one that it cannot attach to.
    fn wait_until_attached(&mut self, ids: &[u32]) -> io::Result<()> {
        let lines = self.read_stderr()?;
        let mut last_line = String::new();
        let (mut pending, mut attached) = (ids.len(), 0);
        while pending > 0 {
            let line = match lines.recv_timeout(PATIENCE) {
                Ok(line) => line,
                Err(RecvTimeoutError::Disconnected) => return Err(ended(&last_line)),
                Err(RecvTimeoutError::Timeout) => {
                    let total = ids.len();
                    let message = format!("strace has no hold of {pending} of {total} processes");
                    return Err(io::Error::new(io::ErrorKind::TimedOut, message));
                }
            };
            match Report::parse(&line) {
                Report::Attached => {
                    pending -= 1;
                    attached += 1;
                }
                Report::Refused(id) if is_gone(id) => pending -= 1,
                Report::Refused(_) => return Err(io::Error::other(line)),
                Report::Other => {}
            }
            last_line = line;
        }
        if attached == 0 {
            return Err(ended(&last_line));
        }
        Ok(())
    }

    fn interrupt(&self) {
        if let Some(pid) = Pid::from_raw(self.child.id().cast_signed()) {
            // It may have ended with the last of its processes.
            let _ = kill_process(pid, Signal::INT);
        }
    }
}

impl Drop for Strace {
    fn drop(&mut self) {
        self.interrupt();
        let _ = self.child.wait();
    }
}

/// The error that strace has no process left and has ended, with the last line that it wrote.
fn ended(last_line: &str) -> io::Error {
    io::Error::other(format!("strace ended: {}", last_line.trim()))
}

/// The meaning of a line on strace's stderr.
#[derive(Debug, PartialEq, Eq)]
enum Report {
    /// strace is attached: `Process 42 attached`, or `Process 42 attached with 3 threads`.
    Attached,
    /// strace cannot attach to this process: `attach: ptrace(PTRACE_SEIZE, 42): No such process`.
    Refused(u32),
    Other,
}

impl Report {
    fn parse(line: &str) -> Self {
        if line.ends_with(" attached") || line.contains(" attached with ") {
            return Self::Attached;
        }
        let Some((_, arguments)) = line.split_once("attach: ptrace(") else {
            return Self::Other;
        };
        // The process is the second argument.
        let id = arguments.split([',', ')']).nth(1);
        match id.and_then(|id| id.trim().parse().ok()) {
            Some(id) => Self::Refused(id),
            None => Self::Other,
        }
    }
}

/// Whether a process has ended, even if its parent has not waited for it yet.
fn is_gone(id: u32) -> bool {
    let stat = procfs::process::Process::new(id.cast_signed()).and_then(|process| process.stat());
    stat.is_ok_and(|stat| matches!(stat.state, 'Z' | 'X'))
        || !Path::new(&format!("/proc/{id}")).exists()
}

/// Reads the table of `strace -c -U name,calls,errors`: each line has a name, a count, and the number of
/// errors if there were any.
fn parse(table: &str) -> Counts {
    let rows = table.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        let (name, calls) = (words.next()?, words.next()?.parse().ok()?);
        let call = Call {
            calls,
            errors: words.next().and_then(|word| word.parse().ok()).unwrap_or(0),
            ..Call::default()
        };
        Some((name.to_owned(), call))
    });
    // The last line has the sums of all.
    Counts::new(rows.filter(|(name, _)| name != "total"))
}

/// How long strace may be silent while it is not attached to all processes.
const PATIENCE: Duration = Duration::from_secs(10);
/// How many lines of strace may wait to be read.
const LINES: usize = 16;

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn a_table_is_read_by_rows() {
        let table = "syscall              calls    errors\n---------------- --------- ---------\n\
                     read                    12         2\nwrite                    3          \n\
                     ---------------- --------- ---------\ntotal                   15         2\n";
        let counts = parse(table);
        assert_eq!(
            (counts.of("read"), counts.of("write"), counts.total()),
            (12, 3, 15)
        );
        assert_eq!(
            (counts.call("read").errors, counts.call("write").errors),
            (2, 0)
        );
        assert_eq!(parse("").total(), 0);
    }

    #[test]
    fn each_process_has_a_line() {
        let refused = "strace: attach: ptrace(PTRACE_SEIZE, 42): No such process";
        for (line, word) in [
            ("strace: Process 42 attached", Report::Attached),
            (
                "strace: Process 42 attached with 3 threads",
                Report::Attached,
            ),
            (refused, Report::Refused(42)),
            ("strace: Process 42 detached", Report::Other),
        ] {
            assert_eq!(Report::parse(line), word, "{line}");
        }
    }

    #[test]
    fn a_process_that_is_gone_cannot_be_followed() {
        let error = Strace::follow(&[GONE]).unwrap_err();
        assert!(error.to_string().contains("strace ended"), "{error}");
    }

    #[test]
    fn one_that_has_ended_keeps_nobody_waiting() {
        // What a worker of nginx does when its master reads its files again.
        let mut zombie = Command::new("true").spawn().unwrap();
        let mut child = Command::new("cat")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        while !is_gone(zombie.id()) {
            std::thread::yield_now();
        }
        let strace = Strace::follow(&[GONE, zombie.id(), child.id()]).unwrap();
        // The call in which it was attached may be none of those counted: a byte, and it reads once more.
        child.stdin.take().unwrap().write_all(b"x").unwrap();
        child.wait().unwrap();
        zombie.wait().unwrap();
        assert!(strace.finish().unwrap().of("read") > 0);
    }

    /// A process id above the largest that Linux gives (2^22).
    const GONE: u32 = 5_000_000;
}

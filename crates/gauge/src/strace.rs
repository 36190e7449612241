//! System calls counted by strace, where there is no BPF.
//!
//! Each call then stops the process twice, so durations from such a run are invalid: counting needs a
//! run of its own.

use std::io;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::NamedTempFile;

use crate::syscalls::{Call, Counts};

/// strace at work on processes; dropping it lets them go on alone.
#[derive(Debug)]
pub struct Strace {
    child: Child,
    table: NamedTempFile,
}

impl Strace {
    /// Follows the processes `ids`, and what they start from then on. Returns when strace says that
    /// it has hold of them all.
    ///
    /// # Errors
    /// strace is not installed (package `strace`), or may not trace them.
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
        strace.wait_until_attached(ids.len())?;
        Ok(strace)
    }

    /// Ends it, and gives what it has counted.
    ///
    /// # Errors
    /// It had ended by itself, or its table cannot be read.
    pub fn finish(mut self) -> io::Result<Counts> {
        self.interrupt();
        self.child.wait()?;
        read(self.table.path())
    }

    /// It reports on stderr: `strace: Process 42 attached`.
    fn wait_until_attached(&mut self, count: usize) -> io::Result<()> {
        let stderr = self.child.stderr.take().ok_or(io::ErrorKind::BrokenPipe)?;
        let mut lines = io::BufRead::lines(io::BufReader::new(stderr));
        let mut said = String::new();
        let mut attached = 0;
        while attached < count {
            let Some(line) = lines.next().transpose()? else {
                return Err(io::Error::other(format!("strace ended: {}", said.trim())));
            };
            attached +=
                usize::from(line.ends_with(" attached") || line.contains(" attached with "));
            said = line;
        }
        // What it says later of new threads is read, lest it wait for room in the pipe.
        std::thread::spawn(move || lines.for_each(drop));
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

fn read(path: &Path) -> io::Result<Counts> {
    Ok(parse(&std::fs::read_to_string(path)?))
}

/// The table of `strace -c -U name,calls,errors`: a name, a count, and errors if there were any, a line.
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
    Counts::new(rows.filter(|(name, _)| name != "total"))
}

#[cfg(test)]
mod tests {
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
    fn a_process_that_is_gone_cannot_be_followed() {
        // Above the largest that Linux gives (2^22).
        let error = Strace::follow(&[5_000_000]).unwrap_err();
        assert!(error.to_string().contains("strace ended"), "{error}");
    }
}

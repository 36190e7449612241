//! What the thread of an access log writes its lines to.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use super::syslog::Syslog;
use crate::config::AccessLogTarget;
use crate::log_target::{LogTarget, Progress, WriteFailure};

/// What lines are written to.
#[derive(Debug)]
pub(super) enum LineTarget {
    /// A file, a pipe or a FIFO.
    Stream(LogTarget),
    /// A syslog server.
    Syslog(Box<Syslog>),
}

impl LineTarget {
    /// Opens the target; `None`: the log is off. A syslog server need not be there yet.
    pub(super) fn open(target: &AccessLogTarget) -> io::Result<Option<Self>> {
        Ok(Some(match target {
            AccessLogTarget::Off => return Ok(None),
            // Not `io::stdout()`, whose lock a write that is stuck would keep.
            AccessLogTarget::Stdout => io::stdout().as_fd().try_clone_to_owned()?.into(),
            AccessLogTarget::File(path) => Self::Stream(LogTarget::append_to(path, FILE_MODE)?),
            AccessLogTarget::Syslog(address) => {
                Self::Syslog(Box::new(Syslog::new(address.clone())))
            }
        }))
    }

    /// Writes whole lines. After a failure, the rest of them is lost.
    pub(super) fn write(&mut self, lines: &[u8], progress: &Progress) -> Result<(), WriteFailure> {
        match self {
            Self::Stream(target) => target.write(lines, progress),
            Self::Syslog(syslog) => syslog.write(lines, progress),
        }
    }
}

impl From<OwnedFd> for LineTarget {
    fn from(descriptor: OwnedFd) -> Self {
        Self::Stream(descriptor.into())
    }
}

/// The mode of a log file that the front creates, before the umask.
const FILE_MODE: u32 = 0o666;

//! Tells the service manager what the front is doing, with the protocol of sd_notify(3): datagrams to the socket named
//! in `$NOTIFY_SOCKET`. Nothing is sent without the variable. If the manager does not listen, the front serves all the
//! same.
//!
//! The crate `sd-notify` is not used, because its socket waits as long as the manager's queue is full, so that a
//! manager that hangs would block a reload or a drain. Here sending ends after [`PATIENCE`]. The crate could only
//! replace the four messages of this small file.

use std::ffi::OsString;
use std::io;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// The service manager that started the process, if any. Telling it news does nothing if there is none.
pub(crate) struct Manager {
    to: Option<(UnixDatagram, SocketAddr)>,
}

/// What the front tells the manager.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum News {
    /// The front serves. This is sent after the start, and after each reload, whether it was applied or refused.
    Ready,
    /// The front begins to read its configuration again.
    Reloading,
    /// The front drains and will then end.
    Stopping,
    /// The process with this id serves in place of this one from now on, and signals must be sent to it.
    Successor(u32),
}

impl Manager {
    /// The manager named in the environment.
    pub(crate) fn from_environment() -> Self {
        let Some(name) = std::env::var_os(VARIABLE).filter(|name| !name.is_empty()) else {
            return Self { to: None };
        };
        let to = address(&name).and_then(|to| Ok((socket()?, to)));
        if let Err(error) = &to {
            tracing::warn!(%error, "cannot notify the service manager at {VARIABLE}");
        }
        Self { to: to.ok() }
    }

    pub(crate) fn tell(&self, news: News) {
        let Some((socket, to)) = &self.to else {
            return;
        };
        if let Err(error) = socket.send_to_addr(news.message().as_bytes(), to) {
            tracing::warn!(%error, ?news, "cannot notify the service manager");
        }
    }
}

impl News {
    fn message(self) -> String {
        match self {
            Self::Ready => "READY=1".to_owned(),
            // systemd tells by the time which READY=1 ends this reload (`Type=notify-reload`).
            Self::Reloading => format!("RELOADING=1\nMONOTONIC_USEC={}", monotonic_micros()),
            Self::Stopping => "STOPPING=1".to_owned(),
            Self::Successor(process) => format!("MAINPID={process}"),
        }
    }
}

/// A socket on which sending does not wait for ever if the manager takes nothing.
fn socket() -> io::Result<UnixDatagram> {
    let socket = UnixDatagram::unbound()?;
    socket.set_write_timeout(Some(PATIENCE))?;
    Ok(socket)
}

/// The address of a socket: a path, or after `@` the name of an abstract one.
fn address(name: &OsString) -> io::Result<SocketAddr> {
    match name.as_bytes() {
        [b'@', name @ ..] => SocketAddr::from_abstract_name(name),
        [b'/', ..] => SocketAddr::from_pathname(name),
        _ => Err(io::ErrorKind::InvalidInput.into()),
    }
}

fn monotonic_micros() -> i64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec * 1_000_000 + now.tv_nsec / 1000
}

const VARIABLE: &str = "NOTIFY_SOCKET";

/// How long sending waits for a manager whose queue is full.
const PATIENCE: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_has_a_path_or_a_name() {
        let address = |name: &str| address(&name.into());
        let path = address("/run/notify").unwrap();
        assert_eq!(path.as_pathname().unwrap().to_str(), Some("/run/notify"));
        let name = address("@notify").unwrap();
        assert_eq!(name.as_abstract_name(), Some(&b"notify"[..]));
        assert!(address("vsock:2:1234").is_err());
    }

    #[test]
    fn messages_are_those_of_sd_notify() {
        assert_eq!(News::Ready.message(), "READY=1");
        assert_eq!(News::Stopping.message(), "STOPPING=1");
        assert_eq!(News::Successor(7).message(), "MAINPID=7");
        let reloading = News::Reloading.message();
        let (word, micros) = reloading.split_once("\nMONOTONIC_USEC=").unwrap();
        assert_eq!(word, "RELOADING=1");
        assert!(micros.parse::<u64>().unwrap() > 0);
    }

    #[test]
    fn a_manager_that_takes_nothing_is_not_waited_for() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("notify");
        let _unread = UnixDatagram::bind(&path).unwrap();
        let to = SocketAddr::from_pathname(&path).unwrap();
        let mut told = 0;
        let socket = socket().unwrap();
        while socket.send_to_addr(b"READY=1", &to).is_ok() {
            told += 1;
            assert!(told < 1_000_000, "the queue has a limit");
        }
    }
}

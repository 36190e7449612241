//! What one server is made of, once its target was rendered: texts, and what to expect of it.

use std::path::PathBuf;
use std::time::Duration;

/// What one server is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    /// To be written before it is started.
    pub files: Vec<ServerFile>,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// What prints the program's version; empty if nothing does.
    pub version: Vec<String>,
    /// What must be installed.
    pub needs: Vec<Need>,
    /// When it serves.
    pub ready: Ready,
    /// How it is asked to end.
    pub stop: Stop,
    /// How it reads its configuration anew; `None` if it cannot.
    pub reload: Option<Action>,
    /// How another process takes its place; `None` if it cannot.
    pub upgrade: Option<Action>,
    /// What in a line of its output means that a run with it is worth nothing.
    pub alarms: Vec<String>,
    /// What in a line of its output means that a maximum of its own was reached.
    pub capped: Vec<String>,
}

/// A file of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerFile {
    /// In the server's directory.
    pub path: PathBuf,
    /// What is in it.
    pub text: String,
}

/// Something that a server needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Need {
    /// Debian's name of the package; `None` for a program that the caller names.
    pub package: Option<String>,
    /// A file that is there once it is installed.
    pub proof: PathBuf,
}

/// When a server serves: once a port takes a connection and, with `get`, answers as expected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ready {
    /// The name of the port.
    pub port: String,
    /// The path to ask for over HTTP; `None`: that the port takes a connection is enough.
    pub get: Option<String>,
    /// The status to expect.
    pub status: u16,
    /// The length of the body to expect, `None` for any.
    pub length: Option<u64>,
    /// How long this may take.
    pub within: Duration,
}

/// How a server is asked to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stop {
    /// To the process that was started.
    pub signal: Signal,
    /// How long it may take before it is killed.
    pub patience: Duration,
}

/// What is done to a running server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Action {
    /// How it is asked for.
    pub way: Way,
    /// What in a new line of its output says that it is done.
    pub done: String,
}

/// How an action is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Way {
    /// To the process that was started.
    Signal(Signal),
    /// A program with arguments.
    Command(Vec<String>),
}

/// The signals that servers are told things by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// SIGTERM
    Term,
    /// SIGINT
    Int,
    /// SIGQUIT
    Quit,
    /// SIGHUP
    Hup,
    /// SIGUSR1
    Usr1,
    /// SIGUSR2
    Usr2,
    /// SIGWINCH
    Winch,
}

impl Signal {
    /// By its name without `SIG`, such as `TERM`.
    pub(crate) fn named(name: &str) -> Option<Self> {
        let known = [
            ("TERM", Self::Term),
            ("INT", Self::Int),
            ("QUIT", Self::Quit),
            ("HUP", Self::Hup),
            ("USR1", Self::Usr1),
            ("USR2", Self::Usr2),
            ("WINCH", Self::Winch),
        ];
        let found = known.into_iter().find(|(known, _)| *known == name)?;
        Some(found.1)
    }
}

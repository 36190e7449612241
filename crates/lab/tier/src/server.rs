//! What one server is made of, once its target was rendered: texts, and what to expect of it.

use std::path::PathBuf;
use std::time::Duration;

/// One server: its files and commands, and what to expect of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    /// The files to write before it is started.
    pub files: Vec<ServerFile>,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// The command that prints the program's version; empty if there is none.
    pub version: Vec<String>,
    /// Packages and programs that must be installed.
    pub needs: Vec<Need>,
    /// When it serves.
    pub ready: Ready,
    /// The signal that ends it, and the time that it has then.
    pub stop: Stop,
    /// The action that makes it read its configuration anew; `None` if it has none.
    pub reload: Option<Action>,
    /// The action that replaces its process by another one; `None` if it has none.
    pub upgrade: Option<Action>,
    /// Words that, in a line of its output, make a run with it worthless.
    pub alarms: Vec<String>,
    /// Words that, in a line of its output, mean that it has reached a maximum of its own.
    pub capped: Vec<String>,
}

/// A file of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerFile {
    /// The path in the server's directory.
    pub path: PathBuf,
    /// The contents.
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
    /// The time that the server has until it serves.
    pub within: Duration,
}

/// How a server is asked to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stop {
    /// The signal to the process that was started.
    pub signal: Signal,
    /// The time that the server has before it is killed.
    pub patience: Duration,
}

/// An action on a running server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Action {
    /// The signal or command that starts it.
    pub way: Way,
    /// Words that, in a new line of the server's output, mean that it is done.
    pub done: String,
}

/// The way in which a server is asked for an action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Way {
    /// A signal to the process that was started.
    Signal(Signal),
    /// A program with arguments.
    Command(Vec<String>),
}

/// The signals that end servers or ask them for actions.
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
    /// The signal of this name without `SIG`, such as `TERM`.
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

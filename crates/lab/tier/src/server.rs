//! One server, as rendered from its target and settings: files, commands, and when it serves.

use std::path::PathBuf;
use std::time::Duration;

/// One server: its files and commands, and how to tell that it serves, fails or has done an action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    /// The files to write before the server is started.
    pub files: Vec<ServerFile>,
    /// The server's program and its arguments.
    pub command: Vec<String>,
    /// The command that prints the program's version; empty if there is none.
    pub version: Vec<String>,
    /// Packages and programs that must be installed.
    pub needs: Vec<Need>,
    /// The test of whether the server serves.
    pub ready: Ready,
    /// The signal that stops the server, and the time that it has to end then.
    pub stop: Stop,
    /// The action that makes the server read its configuration anew; `None` if there is none.
    pub reload: Option<Action>,
    /// The action that replaces the server's process by another one; `None` if there is none.
    pub upgrade: Option<Action>,
    /// Words that make a run worthless if they are in a line of the server's output.
    pub alarms: Vec<String>,
    /// Words that mean that the server has reached a maximum of its own, if they are in a line of its output.
    pub capped: Vec<String>,
}

/// A file of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerFile {
    /// The path in the server's directory.
    pub path: PathBuf,
    /// The contents of the file.
    pub text: String,
}

/// A package or program that a server requires.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Need {
    /// The name of the Debian package; `None` for a program that the caller names.
    pub package: Option<String>,
    /// A file that exists if the package or program is installed.
    pub proof: PathBuf,
}

/// The test of whether a server serves: a port takes a connection and, with `get`, answers as expected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ready {
    /// The name of the port to test.
    pub port: String,
    /// The path to request over HTTP; `None`: it suffices that the port takes a connection.
    pub get: Option<String>,
    /// The status that the response must have.
    pub status: u16,
    /// The length that the body must have in bytes; `None`: any.
    pub length: Option<u64>,
    /// The time that the server has until it serves.
    pub within: Duration,
}

/// How a server is stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stop {
    /// The signal that the process is sent.
    pub signal: Signal,
    /// The time that the server has to end before it is killed.
    pub patience: Duration,
}

/// An action on a running server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Action {
    /// The signal or command that starts the action.
    pub way: Way,
    /// Words that mean that the action is done, once they are in a new line of the server's output.
    pub done: String,
}

/// The means by which an action is started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Way {
    /// A signal to the process that was started, such as SIGHUP.
    Signal(Signal),
    /// A program with its arguments.
    Command(Vec<String>),
}

/// The signals that end servers or ask them for actions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// The signal SIGTERM (terminate).
    Term,
    /// The signal SIGINT (interrupt).
    Int,
    /// The signal SIGQUIT (quit).
    Quit,
    /// The signal SIGHUP (hangup).
    Hup,
    /// The signal SIGUSR1 (user-defined).
    Usr1,
    /// The signal SIGUSR2 (user-defined).
    Usr2,
    /// The signal SIGWINCH (window size changed).
    Winch,
}

impl Signal {
    /// The signal called `name` without `SIG`, such as `TERM`; `None` if it is not one of these.
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

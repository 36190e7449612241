//! The failures of commands: one line on standard error and an exit code.

use std::error::Error;
use std::fmt::Write as _;
use std::io;
use std::process::ExitCode;

use catamaran_config::Report;

use crate::own_log;

/// Why a command ends without success.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The arguments cannot be used. It is also used for any fault of a command for which exit
    /// code 1 is a verdict. The exit code is 2.
    Usage(String),
    /// The command could not be carried out. The exit code is 1.
    Fault(String),
    /// Like `Fault`, for a message of several lines that is printed as it is.
    Findings(String),
    /// Like `Fault`, but the message has already been printed.
    Said(String),
    /// The reader of our output closed the pipe. This counts as success.
    OutputClosed,
}

impl Failure {
    /// A fault with the message of an error, followed by those of its causes that it does not
    /// contain already.
    pub(crate) fn of(error: &dyn Error) -> Self {
        let mut message = error.to_string();
        let mut cause = error.source();
        while let Some(error) = cause {
            let text = error.to_string();
            if !message.contains(&text) {
                write!(message, ": {text}").expect("a string takes all");
            }
            cause = error.source();
        }
        Self::Fault(message)
    }

    /// Converts a fault of a command for which exit code 1 is a verdict, so that the fault does
    /// not look like one.
    pub(crate) fn without_verdict(self) -> Self {
        match self {
            Self::Fault(message) => Self::Usage(message),
            other => other,
        }
    }

    /// Prints the faults of a file as its report shows them, and returns them as a failure.
    pub(crate) fn of_report(report: &Report) -> Self {
        let said = report.to_string();
        // Nothing is left to be done when standard error is closed.
        let _ = own_log::say(said.trim_end());
        Self::Said(said)
    }

    /// Prints the message unless it was printed already, and returns the exit code.
    pub(crate) fn exit(self) -> ExitCode {
        self.say();
        match self {
            Self::Usage(_) => ExitCode::from(2),
            Self::Fault(_) | Self::Findings(_) | Self::Said(_) => ExitCode::from(1),
            Self::OutputClosed => ExitCode::SUCCESS,
        }
    }

    /// The message of the failure.
    pub(crate) fn words(&self) -> String {
        match self {
            Self::Usage(message)
            | Self::Fault(message)
            | Self::Findings(message)
            | Self::Said(message) => message.clone(),
            Self::OutputClosed => "standard error is closed".to_owned(),
        }
    }

    /// Prints the message unless it was printed already.
    pub(crate) fn say(&self) {
        // Nothing is left to be done when standard error is closed.
        let _ = match self {
            Self::Usage(message) | Self::Fault(message) => {
                own_log::say(format_args!("error: {message}"))
            }
            Self::Findings(message) => own_log::say(message),
            Self::Said(_) | Self::OutputClosed => Ok(()),
        };
    }
}

/// Converts errors of writing to standard output or standard error.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::OutputClosed,
            _ => Self::Fault(format!("cannot write the output: {error}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adds_causes_that_are_not_said() {
        #[derive(Debug)]
        struct Outer(&'static str, io::Error);
        impl std::fmt::Display for Outer {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.0)
            }
        }
        impl Error for Outer {
            fn source(&self) -> Option<&(dyn Error + 'static)> {
                Some(&self.1)
            }
        }
        for (outer, expected) in [
            ("cannot listen", "cannot listen: denied"),
            ("denied to listen", "denied to listen"),
        ] {
            let error = Outer(outer, io::Error::other("denied"));
            let Failure::Fault(message) = Failure::of(&error) else {
                panic!("a fault")
            };
            assert_eq!(message, expected);
        }
    }

    #[test]
    fn a_closed_pipe_is_no_failure() {
        let closed = Failure::from(io::Error::from(io::ErrorKind::BrokenPipe));
        assert!(matches!(closed, Failure::OutputClosed));
        assert!(matches!(
            Failure::from(io::Error::other("full")),
            Failure::Fault(_)
        ));
    }
}

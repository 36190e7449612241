//! The settings of a command line: what its flags say, parsed but not yet combined to a plan.
//!
//! The settings of each group of flags are beside its records (`flag`). Files named for bodies and
//! certificates are read with the flags; files to be written are opened elsewhere.

use std::{fs, io};

use crate::flag::checks::CheckSettings;
use crate::flag::connection::ConnectionSettings;
use crate::flag::load::LoadSettings;
use crate::flag::memcached::MemcachedSettings;
use crate::flag::output::OutputSettings;
use crate::flag::request::RequestSettings;
use crate::flag::tls::TlsSettings;
use crate::flag::{Flag, FlagUse};
use crate::getopt::{Line, Mode, Part};
use crate::operand::Operand;
use crate::refusal::Refusal;

/// All settings that a command line gives.
#[derive(Debug, Default)]
pub(crate) struct Settings {
    pub(crate) mode: Mode,
    pub(crate) urls: Vec<String>,
    /// The words that are neither flags nor their values; they are in `urls`, too.
    pub(crate) operands: Vec<Operand>,
    /// The flags of the command line, in its order.
    pub(crate) flags: Vec<&'static Flag>,
    /// Messages that ab prints without ending.
    pub(crate) complaints: Vec<String>,
    pub(crate) load: LoadSettings,
    pub(crate) request: RequestSettings,
    pub(crate) connection: ConnectionSettings,
    pub(crate) memcached: MemcachedSettings,
    pub(crate) tls: TlsSettings,
    pub(crate) checks: CheckSettings,
    pub(crate) output: OutputSettings,
    /// The help or version to print instead of a run; `None`: there is a run.
    pub(crate) information: Option<Information>,
}

/// A text that is printed instead of running, whatever the rest of the command line says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Information {
    Help,
    /// The version; in ab mode as HTML if `-w` came before.
    Version {
        html: bool,
    },
}

/// Reads a command line. If it asks for help or the version, the rest is not read.
pub(crate) fn read(arguments: &[String], mode: Mode) -> Result<Settings, Refusal> {
    let mut settings = Settings::new(mode);
    // `before` is the flag without a value just before a part: an operand behind it may be meant as its value.
    let (mut is_first, mut before) = (true, None);
    for part in Line::new(arguments, mode) {
        let mut flag_without_value = None;
        match part? {
            Part::Flag(flag, value) => {
                let given = FlagUse { mode, flag, value }.meant();
                (given.flag.apply)(&mut settings, &given)?;
                if settings.information.is_some() {
                    break;
                }
                settings.flags.push(given.flag);
                if value.is_none() {
                    flag_without_value = Some(flag);
                }
            }
            Part::Operand(operand) => {
                settings.urls.push(operand.to_owned());
                settings.operands.push(Operand {
                    text: operand.to_owned(),
                    is_first,
                    behind: before,
                });
            }
            Part::Complaint(text) => settings.complaints.push(text),
        }
        before = flag_without_value;
        is_first = false;
    }
    Ok(settings)
}

impl Settings {
    /// The settings of a command line without flags.
    fn new(mode: Mode) -> Self {
        let mut settings = Self {
            mode,
            ..Self::default()
        };
        settings.load.seed = SEED;
        settings
    }
}

/// The contents of a file that a flag names.
pub(crate) fn file(path: &str) -> Result<Vec<u8>, Refusal> {
    fs::read(path).map_err(|error| Refusal::File {
        path: path.to_owned(),
        reason: reason(&error),
    })
}

/// The system's message of an error, without the number that Rust adds.
pub(crate) fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    match text.split_once(" (os error") {
        Some((words, _)) => words.to_owned(),
        None => text,
    }
}

/// The default of `--seed`.
const SEED: u64 = 1;

#[cfg(test)]
mod tests;

//! A command line, read: the settings that its flags have filled, parsed but not yet combined.
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

/// The settings that a command line gives.
#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) mode: Mode,
    pub(crate) urls: Vec<String>,
    /// The words of the line that are neither flags nor their values, which are in `urls`, too.
    pub(crate) operands: Vec<Operand>,
    /// The flags of the line, in its order.
    pub(crate) flags: Vec<&'static Flag>,
    /// Complaints of ab that do not end it.
    pub(crate) complaints: Vec<String>,
    pub(crate) load: LoadSettings,
    pub(crate) request: RequestSettings,
    pub(crate) connection: ConnectionSettings,
    pub(crate) memcached: MemcachedSettings,
    pub(crate) tls: TlsSettings,
    pub(crate) checks: CheckSettings,
    pub(crate) output: OutputSettings,
    /// The text to print instead of a run.
    pub(crate) information: Option<Information>,
}

/// A text that is printed at once, whatever follows on the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Information {
    Help,
    /// The version; as HTML in ab when `-w` came before.
    Version {
        html: bool,
    },
}

/// Reads a command line. What has [`Settings::information`] is not read to its end.
pub(crate) fn read(arguments: &[String], mode: Mode) -> Result<Settings, Refusal> {
    let mut settings = Settings::new(mode);
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
                flag_without_value = Some(flag).filter(|_| value.is_none());
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
    fn new(mode: Mode) -> Self {
        Self {
            mode,
            urls: Vec::new(),
            operands: Vec::new(),
            flags: Vec::new(),
            complaints: Vec::new(),
            load: LoadSettings::default(),
            request: RequestSettings::default(),
            connection: ConnectionSettings::default(),
            memcached: MemcachedSettings::default(),
            tls: TlsSettings::default(),
            checks: CheckSettings::default(),
            output: OutputSettings::default(),
            information: None,
        }
    }
}

/// The bytes of a file that a flag names.
pub(crate) fn file(path: &str) -> Result<Vec<u8>, Refusal> {
    fs::read(path).map_err(|error| Refusal::File {
        path: path.to_owned(),
        reason: reason(&error),
    })
}

/// The system's words without Rust's addition of the number.
pub(crate) fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    match text.split_once(" (os error") {
        Some((words, _)) => words.to_owned(),
        None => text,
    }
}

#[cfg(test)]
mod tests;

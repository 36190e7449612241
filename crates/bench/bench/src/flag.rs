//! Every flag of `bench`: those of ab 2.4, of ab's trunk, and our own. A flag is one record.
//!
//! A record has the flag's names, its help, how its value is read, what it sets, and what it does
//! not go with. The files below `flag` have the records in the groups of the help, each beside the
//! settings that they fill. The records split the command line and are printed by `--help`, and a
//! test compares docs/bench.md with them. `target` (header fields, address, TLS), `plan` (all else
//! of a run), `memcached` and `output` use the settings.

pub(crate) mod checks;
pub(crate) mod connection;
pub(crate) mod load;
pub(crate) mod memcached;
pub(crate) mod output;
pub(crate) mod request;
pub(crate) mod tls;

use std::fmt;
use std::time::Duration;

use crate::getopt::Mode;
use crate::number;
use crate::refusal::{Refusal, RunKind};
use crate::settings::Settings;

/// One flag: its names, its help, and how its value is read.
pub(crate) struct Flag {
    /// The flag's one-letter name, if it is one of ab's; `None`: the flag has only a long name.
    pub(crate) short: Option<char>,
    /// The long name, without the two dashes.
    pub(crate) long: &'static str,
    /// Other long names that are accepted for the flag, as in other tools; without dashes.
    pub(crate) aliases: &'static [&'static str],
    pub(crate) value: ValueKind,
    /// Whether the value is a secret, which messages must not print.
    pub(crate) is_secret: bool,
    pub(crate) help: &'static str,
    /// The kinds of runs in which the flag is refused, each with the words for the flag in the refusal.
    pub(crate) conflicts: &'static [(RunKind, &'static str)],
    /// Long names of flags that have the same meaning. Of two such flags, only one needs to name the other.
    pub(crate) twins: &'static [&'static str],
    /// The long name of the flag that the value means instead, if any: `--requests FILE.jsonl` is `--requests-file`.
    pub(crate) substitute: fn(&FlagUse<'_>) -> Option<&'static str>,
    /// Reads the flag's value into the settings. Flags take effect in the order of the line, as in ab.
    pub(crate) apply: fn(&mut Settings, &FlagUse<'_>) -> Result<(), Refusal>,
    /// Guesses what was meant by a word that follows a flag without a value, or is joined to it.
    pub(crate) hint: Hint,
}

/// Guesses what was meant by a word; the `bool` says whether the word is the only operand.
pub(crate) type Hint = fn(&str, bool) -> Option<String>;

/// Whether a flag takes a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ValueKind {
    No,
    /// The value is required; the help prints this name for it.
    Needed(&'static str),
    /// The value is optional and must be written `--flag=VALUE`, because the next word may be the URL.
    Attached(&'static str),
}

/// Flags that the help lists under one title.
#[derive(Debug)]
pub(crate) struct Group {
    pub(crate) title: &'static str,
    pub(crate) flags: &'static [Flag],
}

/// All flags, in the order of the help.
pub(crate) static GROUPS: [Group; 7] = [
    Group {
        title: "Load",
        flags: load::FLAGS,
    },
    Group {
        title: "Requests",
        flags: request::FLAGS,
    },
    Group {
        title: "Connections",
        flags: connection::FLAGS,
    },
    Group {
        title: "memcached",
        flags: memcached::FLAGS,
    },
    Group {
        title: "TLS",
        flags: tls::FLAGS,
    },
    Group {
        title: "Failures and gates",
        flags: checks::FLAGS,
    },
    Group {
        title: "Output",
        flags: output::FLAGS,
    },
];

/// A flag in a command line, with its value.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FlagUse<'a> {
    pub(crate) mode: Mode,
    pub(crate) flag: &'static Flag,
    pub(crate) value: Option<&'a str>,
}

/// The flag with the one-letter name `letter`; `None` if there is none.
pub(crate) fn short(letter: char) -> Option<&'static Flag> {
    all().find(|flag| flag.short == Some(letter))
}

/// The flag with the long name or alias `name`; `None` if there is none.
pub(crate) fn long(name: &str) -> Option<&'static Flag> {
    all().find(|flag| flag.long == name || flag.aliases.contains(&name))
}

/// Refuses the line if it has a flag that does not go with a run of `kind`.
pub(crate) fn check(flags: &[&'static Flag], kind: RunKind) -> Result<(), Refusal> {
    let mut conflicts = flags.iter().flat_map(|flag| flag.conflicts);
    match conflicts.find(|(other, _)| *other == kind) {
        Some(&(_, with)) => Err(Refusal::Conflict { kind, with }),
        None => Ok(()),
    }
}

/// Refuses the command line if it has two flags with the same meaning, in any order.
pub(crate) fn check_twins(flags: &[&'static Flag], mode: Mode) -> Result<(), Refusal> {
    for flag in flags {
        let mut others = flags.iter();
        if let Some(twin) = others.find(|other| flag.twins.contains(&other.long)) {
            return Err(Refusal::Twins(flag.name(mode), twin.name(mode)));
        }
    }
    Ok(())
}

/// Sets a setting that a flag without a value switches on.
fn switch_on(setting: &mut bool) -> Result<(), Refusal> {
    *setting = true;
    Ok(())
}

/// Sets a setting to a flag's value, which replaces an earlier one.
fn store<T>(setting: &mut Option<T>, value: T) -> Result<(), Refusal> {
    *setting = Some(value);
    Ok(())
}

fn all() -> impl Iterator<Item = &'static Flag> {
    GROUPS.iter().flat_map(|group| group.flags)
}

impl Flag {
    /// The defaults of a record's fields: a flag that ab does not have, without a value and without a hint.
    const OURS: Self = Self {
        short: None,
        long: "",
        aliases: &[],
        value: ValueKind::No,
        is_secret: false,
        help: "",
        conflicts: &[],
        twins: &[],
        substitute: |_| None,
        apply: |_, _| Ok(()),
        hint: |_, _| None,
    };

    /// The flag's name in messages.
    pub(crate) fn name(&self, mode: Mode) -> String {
        match (self.short, mode) {
            (Some(letter), Mode::Ab) => format!("-{letter}"),
            (Some(letter), Mode::Ours) => format!("-{letter} (--{})", self.long),
            (None, _) => format!("--{}", self.long),
        }
    }
}

/// Two flags are equal if they have the same long name, which is unique.
impl PartialEq for Flag {
    fn eq(&self, other: &Self) -> bool {
        self.long == other.long
    }
}

impl Eq for Flag {}

impl fmt::Debug for Flag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "--{}", self.long)
    }
}

impl FlagUse<'_> {
    /// The flag that is meant: for some values it is not the one typed (see [`Flag::substitute`]).
    pub(crate) fn meant(self) -> Self {
        let substitute = (self.flag.substitute)(&self).and_then(long);
        Self {
            flag: substitute.unwrap_or(self.flag),
            ..self
        }
    }

    /// The value as typed; empty if there is none.
    fn text(&self) -> &str {
        self.value.unwrap_or_default()
    }

    fn owned(&self) -> String {
        self.text().to_owned()
    }

    /// The refusal of the flag's value. The message contains the value unless the value is a secret.
    fn bad(&self, expected: &'static str) -> Refusal {
        let flag = self.flag.name(self.mode);
        if self.flag.is_secret {
            return Refusal::BadSecret { flag, expected };
        }
        Refusal::BadValue {
            flag,
            value: self.owned(),
            expected,
        }
    }

    /// The value as a whole number; in ab mode it is read as ab does.
    fn count(&self) -> Option<u64> {
        match self.mode {
            Mode::Ab => u64::try_from(number::atoi(self.text())).ok(),
            Mode::Ours => number::count(self.text()),
        }
    }

    fn number(&self, expected: &'static str) -> Result<u64, Refusal> {
        self.count().ok_or_else(|| self.bad(expected))
    }

    /// The value as a number above zero, which may have a fraction; `expected` is the words for the refusal.
    fn amount(&self, expected: &'static str) -> Result<f64, Refusal> {
        number::amount(self.text()).ok_or_else(|| self.bad(expected))
    }

    fn time(&self) -> Result<Duration, Refusal> {
        number::duration(self.text()).ok_or_else(|| self.bad("a time such as 10s or 500ms"))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn letters_and_names_are_unique() {
        let names: Vec<&str> = all()
            .flat_map(|flag| flag.aliases.iter().copied().chain([flag.long]))
            .collect();
        assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len());
        let letters: Vec<char> = all().filter_map(|flag| flag.short).collect();
        assert_eq!(letters.iter().collect::<BTreeSet<_>>().len(), letters.len());
    }

    /// The letters are those of ab's own parser: of 2.4, of TLS and of trunk.
    #[test]
    fn all_of_abs_letters_are_there() {
        let ab = "n:c:t:s:b:T:p:u:v:lrkVhwiIx:y:z:C:H:P:A:g:X:de:SqB:m:Z:f:E:QDR:o:W:";
        let mut letters = ab.chars().peekable();
        while let Some(letter) = letters.next() {
            let flag = short(letter).unwrap_or_else(|| panic!("no flag -{letter}"));
            let valued = letters.next_if_eq(&':').is_some();
            let needed = matches!(flag.value, ValueKind::Needed(_));
            assert_eq!(needed, valued, "-{letter}");
        }
    }

    #[test]
    fn a_flag_has_a_name_and_a_help() {
        for flag in all() {
            assert!(!flag.long.is_empty() && !flag.help.is_empty(), "{flag:?}");
            for name in [flag.long].iter().chain(flag.aliases) {
                assert_eq!(long(name), Some(flag), "{name}");
            }
            for twin in flag.twins {
                assert_eq!(long(twin).map(|it| it.long), Some(*twin), "{flag:?}");
            }
        }
    }

    /// Flags for HTTP must not be ignored silently in a run on memcached. A flag of these groups
    /// with a meaning there would be an exception, to be named here with its reason; there is none.
    #[test]
    fn flags_of_http_conflict_with_memcached() {
        for title in ["Requests", "TLS"] {
            let group = GROUPS.iter().find(|group| group.title == title).unwrap();
            for flag in group.flags {
                let is_refused = check(&[flag], RunKind::Memcached).is_err();
                assert!(is_refused, "{flag:?} lacks its conflict with memcached");
            }
        }
    }

    #[test]
    fn a_secret_is_in_no_message() {
        let secrets: Vec<&Flag> = all().filter(|flag| flag.is_secret).collect();
        assert!(secrets.contains(&long("secret").unwrap()));
        for flag in secrets {
            let given = FlagUse {
                mode: Mode::Ours,
                flag,
                value: Some("hunter2"),
            };
            let expected = format!(
                "{} takes a word, not the value that was given",
                flag.name(Mode::Ours)
            );
            assert_eq!(given.bad("a word").to_string(), expected);
        }
    }

    #[test]
    fn every_flag_is_in_the_reference() {
        let reference = include_str!("../../../../docs/bench.md");
        for flag in all() {
            let name = format!("`--{}", flag.long);
            assert!(reference.contains(&name), "docs/bench.md lacks {name}");
            if let Some(letter) = flag.short {
                let name = format!("`-{letter}");
                assert!(reference.contains(&name), "docs/bench.md lacks {name}");
            }
        }
    }
}

//! Splits a command line into flags and operands, by ab's rules or by our own.
//!
//! ab uses APR's getopt: letters may be joined (`-kc 100`), a value may follow without a space
//! (`-n100`), flags end at the first operand, and an unknown letter is reported but only ends the
//! parsing. Our rules allow flags after the URL as well, and refuse unknown ones. Both accept our
//! long names; ab has none.

use crate::flag::{self, Flag, ValueKind};
use crate::habit;
use crate::refusal::Refusal;

/// The rules by which a command line is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// The rules of ab 2.4.
    Ab,
    /// The rules of `catamaran bench`.
    #[default]
    Ours,
}

/// A part of a command line: a flag with its value, an operand, or a message that ends the parsing.
#[derive(Debug)]
pub(crate) enum Part<'a> {
    Flag(&'static Flag, Option<&'a str>),
    Operand(&'a str),
    /// A message in ab's words. It ends the parsing: what follows are operands.
    Complaint(String),
}

/// An iterator over the parts of a command line.
#[derive(Debug)]
pub(crate) struct Line<'a> {
    mode: Mode,
    rest: &'a [String],
    /// The letters of a joined word like `-kv` that are still to be read.
    letters: &'a str,
    /// The flag before `letters` in the same word.
    joined_to: Option<&'static Flag>,
    /// Whether all further words are operands.
    ended: bool,
}

impl<'a> Line<'a> {
    pub(crate) fn new(arguments: &'a [String], mode: Mode) -> Self {
        Self {
            mode,
            rest: arguments,
            letters: "",
            joined_to: None,
            ended: false,
        }
    }

    /// Takes the next word.
    fn take(&mut self) -> Option<&'a str> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(first)
    }

    /// The part of a word that begins with two dashes.
    fn long(&mut self, text: &'a str) -> Result<Part<'a>, Refusal> {
        let (name, value) = match text.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (text, None),
        };
        let Some(flag) = flag::long(name) else {
            return match self.mode {
                // To APR's getopt whatever begins with two dashes ends the flags.
                Mode::Ab => {
                    self.ended = true;
                    Ok(Part::Complaint(String::new()))
                }
                Mode::Ours => Err(habit::unknown(format!("--{name}"))),
            };
        };
        match (flag.value, value) {
            (ValueKind::Needed(_), None) => {
                let Some(next_word) = self.take() else {
                    return Err(Refusal::MissingValue(flag.name(self.mode)));
                };
                Ok(Part::Flag(flag, Some(next_word)))
            }
            (ValueKind::No, Some(_)) => Err(Refusal::UnwantedValue(flag.name(self.mode))),
            _ => Ok(Part::Flag(flag, value)),
        }
    }

    /// The part that begins with the one-letter flag `letter`; the letters after it are its value or further flags.
    fn letter(&mut self, letter: char) -> Result<Part<'a>, Refusal> {
        let letters = self.letters;
        let joined_to = self.joined_to.take();
        self.letters = &self.letters[letter.len_utf8()..];
        let Some(flag) = flag::short(letter) else {
            return match self.mode {
                Mode::Ab => Ok(self.complaint(format!("illegal option -- {letter}"))),
                Mode::Ours => Err(unknown_letter(letter, letters, joined_to)),
            };
        };
        if !matches!(flag.value, ValueKind::Needed(_)) {
            self.joined_to = Some(flag);
            return Ok(Part::Flag(flag, None));
        }
        let joined_value = std::mem::take(&mut self.letters);
        if !joined_value.is_empty() {
            return Ok(Part::Flag(flag, Some(joined_value)));
        }
        if let Some(next_word) = self.take() {
            return Ok(Part::Flag(flag, Some(next_word)));
        }
        match self.mode {
            Mode::Ab => Ok(self.complaint(format!("option requires an argument -- {letter}"))),
            Mode::Ours => Err(Refusal::MissingValue(flag.name(self.mode))),
        }
    }

    fn complaint(&mut self, text: String) -> Part<'a> {
        self.ended = true;
        Part::Complaint(text)
    }
}

/// The refusal of `letters`, which begin with an unknown letter, such as the 1 of `-d10s`. `joined_to`: the flag before
/// them in the same word, which may know what they mean.
fn unknown_letter(letter: char, letters: &str, joined_to: Option<&Flag>) -> Refusal {
    // No operand stands beside the letters, so the hint is not for one of several targets.
    let is_only_operand = true;
    let hint = joined_to.and_then(|flag| (flag.hint)(letters, is_only_operand));
    match hint {
        Some(hint) => Refusal::Stray {
            word: letters.to_owned(),
            hint,
        },
        None => habit::unknown(format!("-{letter}")),
    }
}

impl<'a> Iterator for Line<'a> {
    type Item = Result<Part<'a>, Refusal>;

    /// The next part: first what is left of a word of joined letters, then the next word.
    fn next(&mut self) -> Option<Self::Item> {
        if let Some(letter) = self.letters.chars().next() {
            if !self.ended {
                return Some(self.letter(letter));
            }
            // ab does not skip letters that it has not read: they count as an operand.
            return Some(Ok(Part::Operand(std::mem::take(&mut self.letters))));
        }
        let argument = self.take()?;
        if self.ended || argument == "-" || !argument.starts_with('-') {
            // ab's flags end at the first operand.
            self.ended |= self.mode == Mode::Ab;
            return Some(Ok(Part::Operand(argument)));
        }
        match argument.strip_prefix("--") {
            Some("") => {
                self.ended = true;
                self.next()
            }
            Some(text) => Some(self.long(text)),
            None => {
                // A word such as `-conc`, a flag of another tool, must not be read as joined letters.
                let is_habit = argument.len() > 2 && habit::hint(argument).is_some();
                if is_habit && self.mode == Mode::Ours {
                    return Some(Err(habit::unknown(argument.to_owned())));
                }
                self.joined_to = None;
                self.letters = &argument[1..];
                self.next()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The parts as text, such as `-n 100` for a flag, `URL` for an operand, `!` for a complaint.
    fn split(mode: Mode, line: &str) -> Result<Vec<String>, Refusal> {
        let arguments: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        Line::new(&arguments, mode)
            .map(|part| {
                Ok(match part? {
                    Part::Flag(flag, None) => flag.long.to_owned(),
                    Part::Flag(flag, Some(value)) => format!("{}={value}", flag.long),
                    Part::Operand(operand) => operand.to_owned(),
                    Part::Complaint(text) => format!("!{text}"),
                })
            })
            .collect()
    }

    #[test]
    fn flags_in_all_their_forms() {
        for line in [
            "-n100 -kc 5 U",
            "-n 100 -k -c5 U",
            "-n100 -kc5 U",
            "-n100 -k -c 5 -- U",
        ] {
            for mode in [Mode::Ab, Mode::Ours] {
                let parts = split(mode, line).unwrap();
                assert_eq!(
                    parts,
                    ["requests=100", "keep-alive", "concurrency=5", "U"],
                    "{line}"
                );
            }
        }
        let ours = split(
            Mode::Ours,
            "--requests=100 U --concurrency 5 -k --json=x --csv",
        )
        .unwrap();
        let expected = [
            "requests=100",
            "U",
            "concurrency=5",
            "keep-alive",
            "json=x",
            "csv",
        ];
        assert_eq!(ours, expected);
    }

    #[test]
    fn a_value_may_begin_with_a_dash() {
        assert_eq!(split(Mode::Ab, "-n -5 U").unwrap(), ["requests=-5", "U"]);
    }

    #[test]
    fn ab_ends_its_flags_at_the_first_operand() {
        assert_eq!(split(Mode::Ab, "U -k").unwrap(), ["U", "-k"]);
        assert_eq!(split(Mode::Ours, "U -k").unwrap(), ["U", "keep-alive"]);
        assert_eq!(split(Mode::Ours, "-- U -k").unwrap(), ["U", "-k"]);
    }

    #[test]
    fn ab_complains_of_unknown_letters_and_takes_the_rest_for_operands() {
        let parts = split(Mode::Ab, "-J U").unwrap();
        assert_eq!(parts, ["!illegal option -- J", "U"]);
        let parts = split(Mode::Ab, "-Jk U").unwrap();
        assert_eq!(parts, ["!illegal option -- J", "k", "U"]);
        let parts = split(Mode::Ab, "-n").unwrap();
        assert_eq!(parts, ["!option requires an argument -- n"]);
        assert_eq!(split(Mode::Ab, "--what U").unwrap(), ["!", "U"]);
    }

    #[test]
    fn ours_refuses_what_it_does_not_know() {
        for (line, expected) in [
            ("-J U", Refusal::UnknownFlag("-J".to_owned())),
            ("--what U", Refusal::UnknownFlag("--what".to_owned())),
            ("-n", Refusal::MissingValue("-n (--requests)".to_owned())),
            ("--rate", Refusal::MissingValue("--rate".to_owned())),
            (
                "--head=1 U",
                Refusal::UnwantedValue("-i (--head)".to_owned()),
            ),
        ] {
            assert_eq!(split(Mode::Ours, line), Err(expected), "{line}");
        }
    }
}

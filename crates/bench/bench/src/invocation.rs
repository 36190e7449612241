//! How the program was called: as `bench` or as `ab`, and with which arguments.

use std::ffi::OsString;
use std::path::Path;

use crate::BenchFailure;
use crate::getopt::Mode;

/// A call of `bench`, or of the program as `ab`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invocation {
    /// The name of the program in ab's messages.
    pub(crate) name: String,
    pub(crate) mode: Mode,
    /// The arguments, without `--compat ab`.
    pub(crate) words: Vec<String>,
}

impl Invocation {
    /// Makes the call of `bench` with these arguments. `--compat ab` is removed from them first,
    /// because the meaning of the rest depends on it.
    ///
    /// # Errors
    /// [`BenchFailure::Usage`]: an argument is not UTF-8.
    pub fn new(arguments: Vec<OsString>) -> Result<Self, BenchFailure> {
        let mut words = Vec::with_capacity(arguments.len());
        for (number, argument) in (1..).zip(arguments) {
            // The message has its number alone, because it may be a secret.
            let Ok(word) = argument.into_string() else {
                let text = format!("argument {number} is not UTF-8");
                return Err(BenchFailure::Usage(text));
            };
            words.push(word);
        }
        let mut mode = Mode::Ours;
        let mut pairs = words.windows(2);
        if let Some(index) = pairs.position(|pair| pair == ["--compat", "ab"]) {
            words.drain(index..index + 2);
            mode = Mode::Ab;
        } else if let Some(index) = words.iter().position(|word| word == "--compat=ab") {
            words.remove(index);
            mode = Mode::Ab;
        }
        Ok(Self {
            name: "ab".to_owned(),
            mode,
            words,
        })
    }

    /// Makes the call of the program as `ab`; `name` is its zeroth argument.
    ///
    /// # Errors
    /// The same as of [`Self::new`].
    pub fn as_ab(name: &OsString, arguments: Vec<OsString>) -> Result<Self, BenchFailure> {
        Ok(Self {
            name: name.to_string_lossy().into_owned(),
            mode: Mode::Ab,
            ..Self::new(arguments)?
        })
    }

    /// The rules by which the arguments are read.
    #[must_use]
    pub fn mode(&self) -> Mode {
        self.mode
    }
}

/// Whether the program was called as `ab`; `name` is its zeroth argument.
#[must_use]
pub fn is_ab(name: &OsString) -> bool {
    Path::new(name).file_name().is_some_and(|name| name == "ab")
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStringExt as _;

    use super::*;

    fn arguments(words: &str) -> Vec<OsString> {
        words.split_whitespace().map(OsString::from).collect()
    }

    #[test]
    fn compat_is_found_wherever_it_stands() {
        for words in ["--compat ab -k U", "-k --compat=ab U", "-k U --compat ab"] {
            let invocation = Invocation::new(arguments(words)).unwrap();
            assert_eq!(
                (invocation.mode, invocation.words.join(" ").as_str()),
                (Mode::Ab, "-k U"),
                "{words}"
            );
        }
        let invocation = Invocation::new(arguments("--compat wrk U")).unwrap();
        assert_eq!(invocation.mode, Mode::Ours);
        assert_eq!(invocation.words.len(), 3);
    }

    #[test]
    fn an_argument_that_is_no_text_is_not_printed() {
        let token = OsString::from_vec(b"hunter2\xff".to_vec());
        let failure = Invocation::new(vec!["--secret".into(), token]).unwrap_err();
        assert_eq!(failure.to_string(), "argument 2 is not UTF-8");
    }

    #[test]
    fn a_link_of_the_name_makes_an_ab() {
        for (name, expected) in [("ab", true), ("/usr/bin/ab", true), ("catamaran", false)] {
            assert_eq!(is_ab(&OsString::from(name)), expected, "{name}");
        }
    }
}

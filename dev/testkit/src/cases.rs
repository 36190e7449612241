//! Cases of a test that are kept in one file: of each its name, its text and the expected result, if there is one.
//!
//! ```text
//! Lines before the first case are for readers and are ignored.
//! ### name
//! the text of the case
//! --- said
//! the expected result
//! ```
//!
//! A text ends at the line before the next mark. Characters that an editor would not show or keep are written as
//! `⟦d⟧`, by their number in hexadecimal; `⟦⟧` at the end of a line means that no line feed follows.

use std::fmt::Write as _;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::{env, fs};

/// A case of a file: its name, its text and the expected result.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Case {
    /// The case's name, which is unique in the file.
    pub name: String,
    /// The case's text, with all escapes undone.
    pub text: String,
    /// The expected result, as written in the file.
    pub said: String,
    /// The case's text, as written in the file.
    written: String,
}

/// The cases of one file, in the order of the file.
#[derive(Clone, Debug)]
pub struct Cases {
    path: PathBuf,
    /// The lines before the first case.
    preface: String,
    cases: Vec<Case>,
}

impl Cases {
    /// Reads a file of cases.
    ///
    /// # Panics
    /// The file cannot be read, an escape is invalid, or two cases have the same name or the same text that is
    /// not empty.
    pub fn read(path: impl AsRef<Path>) -> Self {
        let path = path.as_ref().to_owned();
        let file = fs::read_to_string(&path).expect("a readable file of cases");
        let (preface, cases) = parse(&file);
        for (index, case) in cases.iter().enumerate() {
            let is_same = |earlier: &&Case| {
                let has_same_text = earlier.text == case.text && !case.text.is_empty();
                earlier.name == case.name || has_same_text
            };
            let earlier = cases[..index].iter().find(is_same);
            assert_eq!(earlier, None, "again in {}: {case:?}", path.display());
        }
        Self {
            path,
            preface,
            cases,
        }
    }

    /// The case named `name`.
    ///
    /// # Panics
    /// No case has this name.
    pub fn case(&self, name: &str) -> &Case {
        let found = self.iter().find(|it| it.name == name);
        found.unwrap_or_else(|| panic!("{} has no case {name}", self.path.display()))
    }

    /// Compares what `say` returns for each case with the expected result. If the environment has `GOLDEN=write`, it
    /// writes these results into the file instead.
    ///
    /// # Panics
    /// Results differ from the expected ones; the message shows all of these.
    pub fn check(mut self, mut say: impl FnMut(&Case) -> String) {
        let mut different = String::new();
        for case in &mut self.cases {
            let result = say(case);
            if result != case.said {
                let _ = write!(different, "### {}\n{result}", case.name);
                case.said = result;
            }
        }
        let path = self.path.display();
        if env::var_os("GOLDEN").is_some_and(|value| value == "write") {
            fs::write(&self.path, self.written()).expect("a file of cases is written");
        } else {
            assert!(different.is_empty(), "{path} differs, at:\n{different}");
        }
    }

    /// The text of the whole file.
    fn written(&self) -> String {
        let mut file = self.preface.clone();
        for case in &self.cases {
            let _ = write!(file, "{CASE}{}\n{}", case.name, case.written);
            if !case.said.is_empty() {
                let _ = write!(file, "{SAID}\n{}", case.said);
            }
        }
        file
    }
}

impl Deref for Cases {
    type Target = [Case];

    fn deref(&self) -> &[Case] {
        &self.cases
    }
}

fn parse(file: &str) -> (String, Vec<Case>) {
    let mut preface = String::new();
    let mut cases: Vec<Case> = Vec::new();
    // Whether the expected result of the last case has begun.
    let mut is_said = false;
    for line in file.split_inclusive('\n') {
        if let Some(name) = line.strip_prefix(CASE) {
            is_said = false;
            cases.push(Case {
                name: name.trim_end().to_owned(),
                text: String::new(),
                said: String::new(),
                written: String::new(),
            });
        } else if line.trim_end() == SAID {
            is_said = true;
        } else {
            let part = match cases.last_mut() {
                None => &mut preface,
                Some(case) if is_said => &mut case.said,
                Some(case) => &mut case.written,
            };
            part.push_str(line);
        }
    }
    for case in &mut cases {
        case.text = unescape(&case.written);
    }
    (preface, cases)
}

/// Replaces `⟦2028⟧` by the character with that number; `⟦⟧` at the end of a line joins it with the next.
fn unescape(written: &str) -> String {
    let joined = written.replace("⟦⟧\n", "");
    let mut parts = joined.split('⟦');
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (digits, behind) = part.split_once('⟧').expect("an escape ends with ⟧");
        let number = u32::from_str_radix(digits, 16).expect("a number in hexadecimal");
        text.push(char::from_u32(number).expect("the number of a character"));
        text.push_str(behind);
    }
    text
}

const CASE: &str = "### ";
const SAID: &str = "--- said";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_a_preface_and_cases() {
        let all = "For people.\n### a.toml\nx\n\n--- said\nno\n### b\n⟦feff⟧y⟦d⟧\nz⟦⟧\n";
        let (preface, cases) = parse(all);
        assert_eq!(preface, "For people.\n");
        let got = cases.iter().map(|it| (&*it.name, &*it.text, &*it.said));
        assert_eq!(
            got.collect::<Vec<_>>(),
            [("a.toml", "x\n\n", "no\n"), ("b", "\u{feff}y\r\nz", "")]
        );
        let path = PathBuf::new();
        let cases = Cases {
            path,
            preface,
            cases,
        };
        assert_eq!(cases.written(), all);
    }

    #[test]
    #[should_panic(expected = "### bad\nfault\n")]
    fn a_case_that_differs_is_shown() {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(&file, "### good\n1\n### bad\n2\n--- said\nfine\n").unwrap();
        Cases::read(file.path()).check(|case| match case.name.as_str() {
            "bad" => "fault\n".to_owned(),
            _ => String::new(),
        });
    }
}

//! Regular expressions of paths.
//!
//! They are those of the `regex` crate, which takes time linear in the path whatever the expression is: there is no
//! look-around and no back-reference. They match bytes, as PCRE does without its UTF mode: `\w` and `(?i)` know ASCII
//! alone, and the crate's tables of Unicode are not built in.

use bytes::Bytes;
use regex::bytes::{Regex, RegexBuilder, RegexSet, RegexSetBuilder};
use thiserror::Error;

use super::template::Placeholder;
use crate::path::captured::Captures;

/// An expression that must match somewhere in a path, in the form in which routes are compared: decoded, without
/// parameters and query. Names, domains and paths of cookies are compared as they are.
#[derive(Clone, Debug)]
pub struct PathExpression(Regex);

/// The reason why a text is not an expression of paths.
#[derive(Debug, PartialEq, Eq, Error)]
pub enum ExpressionError {
    /// The text is not in the syntax of the crate `regex`.
    #[error("is no expression: {0}")]
    Syntax(String),
    /// The text is too long, or what is made of it is too large.
    #[error(
        "is too large; it may have {TEXT_MAX} characters, and lists and counted repetitions such as `{{1000}}` count as \
         often as they repeat"
    )]
    Large,
    /// A group has the name of a placeholder.
    #[error("captures `{0}`, which is the name of a placeholder; give the group another name")]
    Reserved(String),
}

impl PathExpression {
    /// Parses an expression.
    ///
    /// # Errors
    /// The text is not an expression, it is too large, or a group has the name of a placeholder.
    pub fn parse(text: &str) -> Result<Self, ExpressionError> {
        if text.len() > TEXT_MAX {
            return Err(ExpressionError::Large);
        }
        let built = RegexBuilder::new(text)
            .unicode(false)
            .size_limit(SIZE_MAX)
            .build();
        let regex = built.map_err(|error| match error {
            regex::Error::Syntax(text) => ExpressionError::Syntax(reason(&text)),
            _ => ExpressionError::Large,
        })?;
        let mut names = regex.capture_names().flatten();
        match names.find(|name| Placeholder::is_name(name)) {
            Some(name) => Err(ExpressionError::Reserved(name.to_owned())),
            None => Ok(Self(regex)),
        }
    }

    /// The expression as it was written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// The number of the group with this name, or with this number as its name; `None`: there is none.
    pub(crate) fn group(&self, name: &str) -> Option<usize> {
        if let Some(number) = self.0.capture_names().position(|it| it == Some(name)) {
            return Some(number);
        }
        // Group 0 is the whole match. `parse` also takes a sign and leading zeros, which a number here has not.
        if name.starts_with(['0', '+']) {
            return None;
        }
        let number = name.parse().ok()?;
        (number < self.0.captures_len()).then_some(number)
    }

    /// The names that groups have: their numbers, and those that were given.
    pub(crate) fn groups(&self) -> impl Iterator<Item = String> {
        let numbers = 1..self.0.captures_len();
        let given = self.0.capture_names().flatten().map(str::to_owned);
        numbers.map(|number| number.to_string()).chain(given)
    }

    /// Whether the expression matches in a path that is in the form in which routes are compared.
    #[must_use]
    pub fn matches(&self, path: &[u8]) -> bool {
        self.0.is_match(path)
    }

    /// The texts of the groups in a path; the text of a group that did not take part in the match is empty.
    pub(crate) fn captured(&self, path: &Bytes) -> Captures {
        let Some(found) = self.0.captures(path) else {
            return Captures::default();
        };
        // The first group is the whole match.
        let groups = found.iter().skip(1);
        Captures::new(groups.map(|group| match group {
            Some(text) => path.slice(text.range()),
            None => Bytes::new(),
        }))
    }

    /// The texts of the groups in any text, the first being the whole match; `None`: the expression does not match.
    pub(crate) fn groups_in<'t>(&self, text: &'t [u8]) -> Option<regex::bytes::Captures<'t>> {
        self.0.captures(text)
    }

    /// The expressions as one set, which tests a path for all of them at once; `None`: together they are too large.
    /// Testing each by itself is then quicker.
    pub(crate) fn set<'e>(all: impl Iterator<Item = &'e Self>) -> Option<RegexSet> {
        RegexSetBuilder::new(all.map(Self::as_str))
            .unicode(false)
            .size_limit(SET_SIZE_MAX)
            .dfa_size_limit(SET_MEMORY)
            .build()
            .ok()
    }

    /// The most bytes of a path that is compared with expressions. The time is in proportion to it.
    pub(crate) const PATH_MAX: usize = 4096;

    /// The most expressions of a file. Each takes memory of every worker, and the worst path is compared with all of its
    /// host.
    pub const COUNT_MAX: usize = PATHS_MAX;
}

/// Two expressions are equal if their texts are.
impl PartialEq for PathExpression {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for PathExpression {}

/// The reason at the end of the crate's message of several lines.
pub(super) fn reason(text: &str) -> String {
    let last = text.lines().last().unwrap_or_default();
    let why = last.strip_prefix("error: ").unwrap_or(last);
    why.trim().to_owned()
}

/// The most bytes of an expression.
const TEXT_MAX: usize = 4096;

/// The most bytes that the program of an expression may take. The time for a path is at most in proportion to it.
const SIZE_MAX: usize = 64 << 10;

/// The most bytes that the program of a set may take.
const SET_SIZE_MAX: usize = 1 << 20;

/// The most bytes that a set may take in each worker for what it has learned of paths.
const SET_MEMORY: usize = 16 << 20;

/// The most expressions of a file.
const PATHS_MAX: usize = 2000;

#[cfg(test)]
mod tests;

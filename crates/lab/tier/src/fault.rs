//! What is wrong with a target's file, its templates, or the settings it is given: all of it at once.

use std::fmt;

/// Everything that is wrong, in the order of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Faults(pub Vec<Fault>);

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The file and, where there is one, the line: `nginx.toml:12`.
    pub place: String,
    /// What is wrong, and what would be right.
    pub what: String,
}

impl Fault {
    pub(crate) fn new(place: impl Into<String>, what: impl fmt::Display) -> Self {
        let (place, what) = (place.into(), what.to_string());
        Self { place, what }
    }
}

impl Faults {
    /// `value` if there are none.
    pub(crate) fn or<T>(self, value: T) -> Result<T, Self> {
        if self.0.is_empty() {
            Ok(value)
        } else {
            Err(self)
        }
    }
}

impl From<Fault> for Faults {
    fn from(fault: Fault) -> Self {
        Self(vec![fault])
    }
}

/// A line each.
impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, Fault { place, what }) in self.0.iter().enumerate() {
            let end = if index + 1 == self.0.len() { "" } else { "\n" };
            write!(f, "{place}: {what}{end}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Faults {}

/// The number of the line that holds byte `at`.
pub(crate) fn line(text: &str, at: usize) -> usize {
    1 + text.bytes().take(at).filter(|byte| *byte == b'\n').count()
}

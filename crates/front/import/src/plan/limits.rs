//! The limits of requests that the source's places use.

use std::collections::HashSet;

use super::{Keys, table_name};

/// A zone of the source in which requests are counted, with the keys of its limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ZoneLimit {
    /// A text that is the same for all places whose requests are counted together.
    pub(crate) zone: String,
    pub(crate) keys: Keys,
}

/// All limits, each with its name in the file.
#[derive(Debug, Default)]
pub(crate) struct Limits(Vec<(String, ZoneLimit)>);

impl Limits {
    /// Adds a limit if it is new. Returns its name in the file, and whether its zone also has a limit with other keys,
    /// so that requests which the source counts together are counted apart.
    pub(crate) fn enter(&mut self, limit: ZoneLimit) -> (String, bool) {
        let has_others = |it: &(String, ZoneLimit)| it.1.zone == limit.zone && it.1 != limit;
        let is_apart = self.0.iter().any(has_others);
        if let Some((name, _)) = self.0.iter().find(|it| it.1 == limit) {
            return (name.clone(), is_apart);
        }
        let taken: HashSet<&String> = self.0.iter().map(|it| &it.0).collect();
        let base = table_name(&limit.zone);
        let numbered = (2..).map(|number| format!("{base}-{number}"));
        let mut names = std::iter::once(base.clone()).chain(numbered);
        let free = names.find(|it| !taken.contains(it)).unwrap_or(base);
        self.0.push((free.clone(), limit));
        (free, is_apart)
    }

    /// The names and keys of the limits, in the order in which places named them.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &Keys)> {
        self.0.iter().map(|(name, limit)| (&**name, &limit.keys))
    }
}

//! The sign-ons that the source's places ask for.

use std::collections::HashSet;

use super::{Keys, table_name};

/// A sign-on of the source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SignOn {
    /// The text of which its name in the file is made.
    pub(crate) name: String,
    /// The index of the upstream that is asked.
    pub(crate) upstream: usize,
    /// The other keys of its table.
    pub(crate) keys: Keys,
}

/// All sign-ons, each with its name in the file.
#[derive(Debug, Default)]
pub(crate) struct SignOns(Vec<(String, SignOn)>);

impl SignOns {
    /// Adds a sign-on if it is new. Returns its name in the file.
    pub(crate) fn enter(&mut self, sign_on: SignOn) -> String {
        if let Some((name, _)) = self.0.iter().find(|it| it.1 == sign_on) {
            return name.clone();
        }
        let given = self.0.iter().map(|it| it.0.as_str());
        // A route without a sign-on has `off`.
        let taken: HashSet<&str> = given.chain(["off"]).collect();
        let base = table_name(&sign_on.name);
        let numbered = (2..).map(|number| format!("{base}-{number}"));
        let mut names = std::iter::once(base.clone()).chain(numbered);
        let free = names
            .find(|it| !taken.contains(it.as_str()))
            .unwrap_or(base);
        self.0.push((free.clone(), sign_on));
        free
    }

    /// The names and the sign-ons, in the order in which places asked for them.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &SignOn)> {
        self.0.iter().map(|(name, sign_on)| (&**name, sign_on))
    }
}

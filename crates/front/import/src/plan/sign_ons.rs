//! The sign-ons that the source's places ask for.

use std::collections::HashSet;

use super::{Keys, table_name};
use crate::ledger::Id;

/// A sign-on of the source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SignOn {
    /// The text of which its name in the file is made.
    pub(crate) name: String,
    /// The index of the upstream that is asked; `None`: the users are in a file.
    pub(crate) upstream: Option<usize>,
    /// The other keys of its table.
    pub(crate) keys: Keys,
}

/// What sections of httpd say about asking for passwords, while sections are being applied. A later section replaces
/// single values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct AuthSettings {
    pub(crate) kind: Option<AuthValue>,
    pub(crate) realm: Option<AuthValue>,
    pub(crate) provider: Option<AuthValue>,
    pub(crate) users_file: Option<AuthValue>,
    pub(crate) groups_file: Option<AuthValue>,
    /// A directive of another module, which may change who passes.
    pub(crate) other: Option<Id>,
}

/// The value of an `Auth…` directive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AuthValue {
    pub(crate) id: Id,
    pub(crate) text: String,
}

/// Users who may pass, and groups whose members may; if both are empty, all users may.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Members {
    pub(crate) users: Vec<String>,
    pub(crate) groups: Vec<String>,
    /// The directives that say so.
    pub(crate) asked: Vec<Id>,
}

/// Whether one of two guards suffices (`Satisfy`), while sections are being applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Satisfy {
    All,
    /// The directive that says so.
    Any(Id),
}

impl AuthSettings {
    pub(crate) const NONE: Self = Self {
        kind: None,
        realm: None,
        provider: None,
        users_file: None,
        groups_file: None,
        other: None,
    };

    /// Adds what a section says that comes later, or lies deeper.
    pub(crate) fn merge(&mut self, later: &Self) {
        let pairs = [
            (&mut self.kind, &later.kind),
            (&mut self.realm, &later.realm),
            (&mut self.provider, &later.provider),
            (&mut self.users_file, &later.users_file),
            (&mut self.groups_file, &later.groups_file),
        ];
        for (own, later) in pairs {
            if later.is_some() {
                own.clone_from(later);
            }
        }
        self.other = later.other.or(self.other);
    }

    /// The directives that it consists of.
    pub(crate) fn ids(&self) -> impl Iterator<Item = Id> {
        let values = [
            &self.kind,
            &self.realm,
            &self.provider,
            &self.users_file,
            &self.groups_file,
        ];
        let values = values.into_iter().flatten();
        values.map(|it| it.id).chain(self.other)
    }
}

impl Members {
    /// Whether all users may pass.
    pub(crate) fn are_all(&self) -> bool {
        self.users.is_empty() && self.groups.is_empty()
    }

    /// Those of either.
    pub(crate) fn or(mut self, other: Self) -> Self {
        let are_all = self.are_all() || other.are_all();
        self.asked.extend(other.asked);
        self.users.extend(other.users);
        self.groups.extend(other.groups);
        if are_all {
            self.users.clear();
            self.groups.clear();
        }
        self
    }

    /// Those of both; `None` if they cannot be told.
    pub(crate) fn and(mut self, mut other: Self) -> Option<Self> {
        if self.are_all() {
            std::mem::swap(&mut self, &mut other);
        }
        let are_alike = self.users == other.users && self.groups == other.groups;
        if !other.are_all() && !are_alike {
            return None;
        }
        self.asked.extend(other.asked);
        Some(self)
    }
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

    /// Whether two sign-ons let in the same users with the same passwords, whatever they tell applications.
    pub(crate) fn ask_alike(&self, one: &str, other: &str) -> bool {
        let find = |name: &str| self.iter().find(|it| it.0 == name).map(|it| it.1);
        let asked = |it: &SignOn| {
            let mut keys = it.keys.clone();
            keys.retain(|key, _| !matches!(key.as_str(), "fields" | "pass_credentials"));
            keys
        };
        match (find(one), find(other)) {
            (Some(one), Some(other)) if one.upstream.is_none() && other.upstream.is_none() => {
                asked(one) == asked(other)
            }
            (one, other) => one == other,
        }
    }

    /// The names and the sign-ons, in the order in which places asked for them.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &SignOn)> {
        self.0.iter().map(|(name, sign_on)| (&**name, sign_on))
    }
}

//! Operators' changes of members while the front runs, kept apart from the file.
//!
//! An override remembers the file's value at the time when it was made. It outlives reloads as long as the file has
//! the same value; when the file's value has changed since, the file wins. Overrides are data: they are passed to the
//! next process and written to the state file as JSON.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::member::{Controls, Member};
use crate::config::Activation;
use crate::site::{Site, Upstream};

/// All overrides, by upstream and then by the backend's name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Overrides(BTreeMap<String, BTreeMap<String, Override>>);

/// What operators changed of one member.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Override {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) activation: Option<Set<Activation>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) weight: Option<Set<u32>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) distance: Option<Set<u32>>,
    /// A drain that ends by itself; `None`: none is under way.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) drain: Option<Drain>,
    /// When the whole override is dropped, in seconds of the Unix epoch; `None`: never.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) until: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<String>,
    /// The name of the operator who made the last change.
    pub(crate) by: String,
    /// When the last change was made, in seconds of the Unix epoch.
    pub(crate) at: u64,
}

/// A value that an operator set, and the file's value when it was set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Set<T> {
    pub(crate) value: T,
    pub(crate) file: T,
}

/// A drain that ends by itself, when the sessions are over or at its deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Drain {
    /// The activation that the member gets when the drain ends.
    pub(crate) then: Activation,
    /// When the drain ends even if sessions are left, in seconds of the Unix epoch; `None`: see [`Self::ends`].
    pub(crate) deadline: Option<u64>,
    /// When the drain began, in seconds of the Unix epoch.
    pub(crate) began: u64,
    /// How many sessions were seen within `session_timeout` before the drain began.
    pub(crate) sessions: u64,
}

impl Drain {
    /// When the drain ends at the latest, in seconds of the Unix epoch: at its deadline, else a day after it began.
    /// Without that, a client that never leaves would prolong it for ever.
    pub(crate) fn ends(&self) -> u64 {
        self.deadline
            .unwrap_or_else(|| self.began.saturating_add(LASTS_MAX))
    }
}

/// An override, or part of one, that was dropped, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DroppedOverride {
    pub(crate) upstream: String,
    pub(crate) backend: String,
    pub(crate) why: Why,
}

/// Why an override was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Why {
    /// The file has a new value for this key.
    FileChanged(&'static str),
    /// The file no longer has this backend.
    Gone,
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::FileChanged(key) => {
                write!(f, "the file's `{key}` was changed, and the file wins")
            }
            Self::Gone => f.write_str("the file has no such backend any more"),
        }
    }
}

impl<T: Copy + PartialEq> Set<T> {
    /// Replaces the value in `slot`. The remembered file value stays the one from when it was first set.
    fn replace(slot: &mut Option<Self>, value: T, file: T) {
        let file = slot.map_or(file, |set| set.file);
        *slot = Some(Self { value, file });
    }
}

impl Override {
    /// Applies this override to a member's controls in the file.
    pub(crate) fn apply(&self, file: Controls) -> Controls {
        Controls {
            activation: self.activation.map_or(file.activation, |set| set.value),
            weight: self.weight.map_or(file.weight, |set| set.value),
            distance: self.distance.map_or(file.distance, |set| set.value),
        }
    }

    /// Sets the activation of the member; `None`: goes back to the file's. Ends a drain that is under way.
    pub(crate) fn activate(&mut self, value: Option<Activation>, file: Controls) {
        self.drain = None;
        match value {
            Some(value) => Set::replace(&mut self.activation, value, file.activation),
            None => self.activation = None,
        }
    }

    /// Sets the weight of the member; `None`: goes back to the file's.
    pub(crate) fn weigh(&mut self, value: Option<u32>, file: Controls) {
        match value {
            Some(value) => Set::replace(&mut self.weight, value, file.weight),
            None => self.weight = None,
        }
    }

    /// Sets the distance of the member; `None`: goes back to the file's.
    pub(crate) fn place(&mut self, value: Option<u32>, file: Controls) {
        match value {
            Some(value) => Set::replace(&mut self.distance, value, file.distance),
            None => self.distance = None,
        }
    }

    /// Whether the override changes none of the member's controls.
    fn is_empty(&self) -> bool {
        self.activation.is_none() && self.weight.is_none() && self.distance.is_none()
    }

    /// Drops the values of keys that the file has changed since they were set. Returns one reason for each.
    fn reconcile(&mut self, file: Controls) -> Vec<Why> {
        let mut changed = Vec::new();
        if self
            .activation
            .is_some_and(|set| set.file != file.activation)
        {
            self.activation = None;
            self.drain = None;
            changed.push(Why::FileChanged("activation"));
        }
        if self.weight.is_some_and(|set| set.file != file.weight) {
            self.weight = None;
            changed.push(Why::FileChanged("weight"));
        }
        if self.distance.is_some_and(|set| set.file != file.distance) {
            self.distance = None;
            changed.push(Why::FileChanged("distance"));
        }
        changed
    }
}

impl Overrides {
    /// The override of a member; `None`: it has none.
    pub(crate) fn get(&self, upstream: &str, backend: &str) -> Option<&Override> {
        self.0.get(upstream)?.get(backend)
    }

    /// Replaces the override of a member. One that changes nothing is removed.
    pub(crate) fn put(&mut self, upstream: &str, backend: &str, changes: Override) {
        if changes.is_empty() {
            self.remove(upstream, backend);
            return;
        }
        let members = self.0.entry(upstream.to_owned()).or_default();
        members.insert(backend.to_owned(), changes);
    }

    /// Removes the override of a member, and returns it.
    pub(crate) fn remove(&mut self, upstream: &str, backend: &str) -> Option<Override> {
        let members = self.0.get_mut(upstream)?;
        let removed = members.remove(backend);
        if members.is_empty() {
            self.0.remove(upstream);
        }
        removed
    }

    /// All overrides, each with the names of its upstream and backend.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &str, &Override)> {
        self.0.iter().flat_map(|(upstream, members)| {
            let members = members.iter();
            members.map(|(backend, changes)| (upstream.as_str(), backend.as_str(), changes))
        })
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The controls of a member: the file's, changed by its override if it has one.
    pub(crate) fn controls(&self, upstream: &Upstream, member: &Member) -> Controls {
        match self.get(&upstream.name, member.name()) {
            Some(changes) => changes.apply(member.file()),
            None => member.file(),
        }
    }

    /// The controls of each member of an upstream. If no member is active, discovered members that only their source
    /// drains become active: the source meant to replace them, and has not done so.
    pub(crate) fn controls_of(&self, upstream: &Upstream) -> Vec<Controls> {
        let members = &upstream.members;
        let mut controls: Vec<Controls> =
            (members.iter().map(|it| self.controls(upstream, it))).collect();
        if controls
            .iter()
            .any(|it| it.activation == Activation::Active)
        {
            return controls;
        }
        // The members behind those of the file are the discovered ones.
        for (member, own) in members.iter().zip(&mut controls).skip(upstream.of_file()) {
            let changes = self.get(&upstream.name, member.name());
            let by_operator = changes.is_some_and(|changes| changes.activation.is_some());
            if own.activation == Activation::Drain && !by_operator {
                own.activation = Activation::Active;
            }
        }
        controls
    }

    /// Drops overrides that no longer apply to the members of `site`, and returns them. Overrides of discovered
    /// members always stay, because a member that has left may return.
    pub(crate) fn reconcile(&mut self, site: &Site) -> Vec<DroppedOverride> {
        let mut dropped = Vec::new();
        for (upstream_name, backend, changes) in std::mem::take(self).iter() {
            let note = |why| DroppedOverride {
                upstream: upstream_name.to_owned(),
                backend: backend.to_owned(),
                why,
            };
            let Some(upstream) = site.upstream(upstream_name) else {
                dropped.push(note(Why::Gone));
                continue;
            };
            let mut changes = changes.clone();
            let of_file = upstream.member(backend);
            match of_file.filter(|(index, _)| *index < upstream.of_file()) {
                Some((_, member)) => {
                    dropped.extend(changes.reconcile(member.file()).into_iter().map(note));
                }
                // A discovered member, which may return.
                None if upstream.config().members.is_some() => {}
                None => {
                    dropped.push(note(Why::Gone));
                    continue;
                }
            }
            self.put(upstream_name, backend, changes);
        }
        dropped
    }
}

/// How long a drain without a deadline may last, in seconds.
const LASTS_MAX: u64 = 24 * 3600;

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: Controls = Controls {
        activation: Activation::Active,
        weight: 3,
        distance: 0,
    };

    fn drained() -> Override {
        let mut said = Override::default();
        said.activate(Some(Activation::Drain), FILE);
        said.weigh(Some(7), FILE);
        said
    }

    #[test]
    fn an_override_holds_until_it_is_taken_back() {
        let mut said = drained();
        let held = said.apply(FILE);
        assert_eq!((held.activation, held.weight), (Activation::Drain, 7));
        said.activate(None, FILE);
        said.weigh(None, FILE);
        assert_eq!(said.apply(FILE), FILE);
        let mut all = Overrides::default();
        all.put("u", "b", drained());
        assert!(all.get("u", "b").is_some());
        all.put("u", "b", said);
        assert!(all.is_empty(), "what says nothing is not kept");
    }

    #[test]
    fn the_file_wins_where_it_says_something_new() {
        let mut said = drained();
        assert_eq!(said.reconcile(FILE), []);
        // Said anew after the file had changed its mind: the first word of the file counts.
        said.weigh(Some(8), Controls { weight: 9, ..FILE });
        assert_eq!(said.reconcile(FILE), []);
        let changed = Controls { weight: 4, ..FILE };
        assert_eq!(said.reconcile(changed), [Why::FileChanged("weight")]);
        let held = said.apply(changed);
        assert_eq!((held.activation, held.weight), (Activation::Drain, 4));
        let stopped = Controls {
            activation: Activation::Stopped,
            ..changed
        };
        assert_eq!(said.reconcile(stopped), [Why::FileChanged("activation")]);
        assert_eq!(said.apply(stopped), stopped);
    }

    #[test]
    fn a_drain_ends_at_its_deadline_or_after_a_day() {
        let drain = |deadline| Drain {
            then: Activation::Stopped,
            deadline,
            began: 1000,
            sessions: 5,
        };
        assert_eq!(drain(Some(1001)).ends(), 1001);
        assert_eq!(drain(None).ends(), 1000 + 24 * 3600);
    }

    #[test]
    fn json_brings_it_all_back() {
        let mut all = Overrides::default();
        let mut said = drained();
        said.drain = Some(Drain {
            then: Activation::Stopped,
            deadline: Some(9),
            began: 1,
            sessions: 5,
        });
        said.reason = Some("</script>\u{202e}".to_owned());
        all.put("u/1", "ajp://[::1]:8009", said);
        let text = serde_json::to_string(&all).expect("JSON");
        assert!(
            text.contains(r#""activation":{"value":"drain","file":"active"}"#),
            "{text}"
        );
        assert_eq!(serde_json::from_str::<Overrides>(&text).expect("read"), all);
        for bad in [
            r#"{"u":{"b":{"activation":{"value":"up","file":"active"}}}}"#,
            "[1]",
            "",
        ] {
            assert!(serde_json::from_str::<Overrides>(bad).is_err(), "{bad}");
        }
    }
}

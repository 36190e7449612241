//! A change of one member's settings: a JSON merge patch (RFC 7396) that was read and checked.
//!
//! A key that is missing changes nothing; `null` restores the file's value.

use std::fmt;

use catamaran_units::parse_duration;
use jiff::Timestamp;
use serde_json::{Map, Value};

use super::now;
use crate::config::Activation;
use crate::date::show_moment;
use crate::site::Member;
use crate::site::overrides::{Drain, Override};

/// A change of one member's override, as an operator asked for it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Patch {
    activation: Edit<Activation>,
    weight: Edit<u32>,
    distance: Edit<u32>,
    /// The activation that follows when the drain is over; `None`: the drain does not end by itself.
    then: Option<Activation>,
    /// The time, in seconds of the Unix epoch, at which a drain is over even if exchanges or
    /// sessions are left.
    deadline: Option<u64>,
    /// The time, in seconds of the Unix epoch, at which the whole override is dropped.
    until: Edit<u64>,
    reason: Edit<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum Edit<T> {
    #[default]
    Keep,
    Reset,
    To(T),
}

impl Patch {
    /// A patch that removes the whole override of a member.
    pub(crate) fn reset() -> Self {
        Self {
            activation: Edit::Reset,
            weight: Edit::Reset,
            distance: Edit::Reset,
            until: Edit::Reset,
            reason: Edit::Reset,
            ..Self::default()
        }
    }

    /// Reads a patch of one member. The key `force` belongs to the request and is ignored here.
    ///
    /// # Errors
    /// The fault, in words.
    pub(crate) fn read(object: &Map<String, Value>) -> Result<Self, String> {
        let mut patch = Self::default();
        for (key, value) in object {
            match &key[..] {
                "activation" => patch.activation = named(key, edit(value, activation))?,
                "weight" => patch.weight = named(key, edit(value, |it| number(it, 1)))?,
                "distance" => patch.distance = named(key, edit(value, |it| number(it, 0)))?,
                "then" => patch.then = Some(named(key, activation(value))?),
                "deadline" => patch.deadline = Some(named(key, moment(value))?),
                "until" => patch.until = named(key, edit(value, moment))?,
                "reason" => patch.reason = named(key, edit(value, reason))?,
                "force" => {}
                _ => return Err(format!("there is no setting {key:?}")),
            }
        }
        patch.check()?;
        Ok(patch)
    }

    /// Checks that the settings of a drain fit together.
    fn check(&self) -> Result<(), String> {
        let is_drain = self.activation == Edit::To(Activation::Drain);
        if !is_drain && (self.then.is_some() || self.deadline.is_some()) {
            return Err("`then` and `deadline` are for activation \"drain\"".to_owned());
        }
        if self.then == Some(Activation::Drain) {
            return Err("`then` must be \"stopped\" or \"active\"".to_owned());
        }
        if self.deadline.is_some() && self.then.is_none() {
            return Err("`deadline` needs `then`, such as \"stopped\"".to_owned());
        }
        Ok(())
    }

    /// Applies the patch to `settings`, which is the override of `member`.
    pub(crate) fn apply(&self, settings: &mut Override, member: &Member, now: u64) {
        let file = member.file();
        match self.activation {
            Edit::Keep => {}
            Edit::Reset => settings.activate(None, file),
            Edit::To(activation) => {
                settings.activate(Some(activation), file);
                settings.drain = self.then.map(|then| Drain {
                    then,
                    deadline: self.deadline,
                    began: now,
                    sessions: member.sessions_seen().unwrap_or_default(),
                });
            }
        }
        match self.weight {
            Edit::Keep => {}
            Edit::Reset => settings.weigh(None, file),
            Edit::To(weight) => settings.weigh(Some(weight), file),
        }
        match self.distance {
            Edit::Keep => {}
            Edit::Reset => settings.place(None, file),
            Edit::To(distance) => settings.place(Some(distance), file),
        }
        self.until.apply(&mut settings.until);
        self.reason.apply(&mut settings.reason);
    }
}

impl<T: Clone> Edit<T> {
    fn apply(&self, slot: &mut Option<T>) {
        match self {
            Self::Keep => {}
            Self::Reset => *slot = None,
            Self::To(value) => *slot = Some(value.clone()),
        }
    }
}

/// Shows the requested change for the audit log, escaped so that no log line can be forged.
impl fmt::Display for Patch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Self::reset() {
            return f.write_str("reset");
        }
        let mut words = Vec::new();
        let mut add = |name: &str, value: Option<String>| {
            if let Some(value) = value {
                words.push(format!("{name}={value}"));
            }
        };
        add(
            "activation",
            self.activation.show("file", |it| it.token().to_owned()),
        );
        add("weight", self.weight.show("file", u32::to_string));
        add("distance", self.distance.show("file", u32::to_string));
        add("then", self.then.map(|it| it.token().to_owned()));
        add("deadline", self.deadline.map(show_moment));
        add("until", self.until.show("none", |it| show_moment(*it)));
        add("reason", self.reason.show("none", |it| format!("{it:?}")));
        f.write_str(&words.join(" "))
    }
}

impl<T> Edit<T> {
    /// The edit as text: `reset` stands for a reset value; `None`: nothing is changed.
    fn show(&self, reset: &str, show: impl Fn(&T) -> String) -> Option<String> {
        match self {
            Self::Keep => None,
            Self::Reset => Some(reset.to_owned()),
            Self::To(value) => Some(show(value)),
        }
    }
}

/// Prefixes a fault with the key that it concerns.
fn named<T>(key: &str, read: Result<T, String>) -> Result<T, String> {
    read.map_err(|what| format!("`{key}` {what}"))
}

fn edit<T>(value: &Value, read: impl Fn(&Value) -> Result<T, String>) -> Result<Edit<T>, String> {
    match value {
        Value::Null => Ok(Edit::Reset),
        value => read(value).map(Edit::To),
    }
}

fn activation(value: &Value) -> Result<Activation, String> {
    let known = value.as_str().and_then(Activation::from_token);
    known.ok_or_else(|| "must be \"active\", \"drain\" or \"stopped\"".to_owned())
}

/// Reads a number from `min` to [`NUMBER_MAX`].
fn number(value: &Value, min: u32) -> Result<u32, String> {
    let number = value.as_u64().and_then(|it| u32::try_from(it).ok());
    match number {
        Some(number @ ..=NUMBER_MAX) if number >= min => Ok(number),
        _ => Err(format!("must be a number from {min} to {NUMBER_MAX}")),
    }
}

/// Reads a time of RFC 3339, or a duration from now, as seconds of the Unix epoch.
fn moment(value: &Value) -> Result<u64, String> {
    let wrong = || "must be a duration such as \"2h\", or a time such as \"2030-01-31T04:00:00Z\"";
    let text = value.as_str().ok_or_else(wrong)?;
    if let Ok(duration) = parse_duration(text) {
        // At least a second, so that the time lies in the future.
        return Ok(now().saturating_add(duration.as_secs().max(1)));
    }
    let timestamp: Timestamp = text.parse().map_err(|_| wrong())?;
    let at = u64::try_from(timestamp.as_second()).map_err(|_| wrong().to_owned())?;
    let now = now();
    if at <= now {
        return Err(format!("lies in the past: it is {} now", show_moment(now)));
    }
    Ok(at)
}

fn reason(value: &Value) -> Result<String, String> {
    let text = value.as_str().ok_or("must be a text")?;
    if text.chars().count() > REASON_MAX {
        return Err(format!("must have no more than {REASON_MAX} characters"));
    }
    Ok(text.to_owned())
}

/// The greatest weight and distance, as in the file.
const NUMBER_MAX: u32 = 1000;

/// The most characters of a reason.
const REASON_MAX: usize = 500;

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(value: &Value) -> Result<Patch, String> {
        Patch::read(value.as_object().expect("an object"))
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (value, said) in [
            (
                json!({"weight": 0}),
                "`weight` must be a number from 1 to 1000",
            ),
            (json!({"weight": 1.5}), "`weight` must"),
            (
                json!({"distance": 1001}),
                "`distance` must be a number from 0",
            ),
            (json!({"activation": "up"}), "`activation` must be"),
            (
                json!({"activation": "active", "then": "stopped"}),
                "are for activation",
            ),
            (
                json!({"activation": "drain", "then": "drain"}),
                "`then` must be",
            ),
            (
                json!({"activation": "drain", "deadline": "2h"}),
                "needs `then`",
            ),
            (json!({"until": "soon"}), "`until` must be a duration"),
            (
                json!({"until": "2020-01-31T04:00:00Z"}),
                "`until` lies in the past: it is 20",
            ),
            (
                json!({
                    "activation": "drain", "then": "stopped", "deadline": "2020-01-31T04:00:00Z",
                }),
                "`deadline` lies in the past",
            ),
            (json!({"reason": 7}), "`reason` must be a text"),
            (json!({"reason": "x".repeat(501)}), "no more than 500"),
            (json!({"wieght": 2}), "no setting \"wieght\""),
        ] {
            let error = read(&value).expect_err("a fault");
            assert!(error.contains(said), "{value}: {error}");
        }
    }

    #[test]
    fn a_patch_is_told_on_one_line() {
        let patch = read(&json!({
            "activation": "drain", "then": "stopped", "until": "2030-01-31T04:00:00Z",
            "reason": "disk\nfull", "weight": null, "force": true,
        }));
        let expected = "activation=drain weight=file then=stopped until=2030-01-31T04:00:00Z \
                        reason=\"disk\\nfull\"";
        assert_eq!(patch.expect("a patch").to_string(), expected);
    }
}

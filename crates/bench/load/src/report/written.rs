//! Writes values of a report as JSON, and reads them.

use std::collections::BTreeMap;

use serde::de::Error as _;
use serde::ser::SerializeStruct as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{Ending, FailureKind, Failures, FatalError, Warning};

/// Writes a duration as seconds, and reads it.
pub(super) mod seconds {
    use std::time::Duration;

    use serde::de::Error as _;
    use serde::{Deserialize as _, Deserializer, Serializer};

    pub(crate) fn serialize<S: Serializer>(time: &Duration, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_f64(time.as_secs_f64())
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
        Duration::try_from_secs_f64(f64::deserialize(from)?).map_err(D::Error::custom)
    }
}

/// Writes texts by the token of their kind, in the order of tokens, and reads them.
pub(super) mod by_token {
    use std::collections::BTreeMap;

    use serde::{Deserialize as _, Deserializer, Serialize as _, Serializer};

    use super::FailureKind;

    pub(crate) fn serialize<S: Serializer>(
        reasons: &BTreeMap<FailureKind, String>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        let entries = reasons.iter();
        let by_token: BTreeMap<&str, &String> = entries
            .map(|(kind, reason)| (kind.token(), reason))
            .collect();
        by_token.serialize(to)
    }

    /// Kinds that only a newer program knows are left out.
    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<BTreeMap<FailureKind, String>, D::Error> {
        let by_token: BTreeMap<String, String> = BTreeMap::deserialize(from)?;
        let mut reasons = BTreeMap::new();
        for (token, reason) in by_token {
            if let Some(kind) = FailureKind::named(&token) {
                reasons.insert(kind, reason);
            }
        }
        Ok(reasons)
    }
}

impl Serialize for FailureKind {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.token())
    }
}

impl<'de> Deserialize<'de> for FailureKind {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let token = String::deserialize(from)?;
        let unknown = || D::Error::custom(format_args!("unknown kind of failure {token:?}"));
        Self::named(&token).ok_or_else(unknown)
    }
}

/// Writes the counts by the tokens of their kinds.
impl Serialize for Failures {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let counts = self.iter();
        let by_token: BTreeMap<&str, u64> =
            counts.map(|(kind, count)| (kind.token(), count)).collect();
        by_token.serialize(to)
    }
}

impl<'de> Deserialize<'de> for Failures {
    /// Kinds that only a newer program knows are left out.
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let by_token: BTreeMap<String, u64> = BTreeMap::deserialize(from)?;
        let mut failures = Self::default();
        for (token, count) in by_token {
            if let Some(kind) = FailureKind::named(&token) {
                failures.set(kind, count);
            }
        }
        Ok(failures)
    }
}

/// Writes a warning as its token and its text.
impl Serialize for Warning {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut warning = to.serialize_struct("Warning", 2)?;
        warning.serialize_field("kind", self.token())?;
        warning.serialize_field("text", &self.text())?;
        warning.end()
    }
}

impl<'de> Deserialize<'de> for Warning {
    /// A warning that is read keeps its token and its text alone, not its figures.
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct RawWarning {
            kind: String,
            text: String,
        }
        let RawWarning { kind, text } = RawWarning::deserialize(from)?;
        Ok(Self::Written { kind, text })
    }
}

/// The JSON members about how a run ended.
#[derive(Serialize, Deserialize)]
pub(super) struct EndingFacts {
    ending: String,
    error: Option<FatalError>,
}

impl From<Ending> for EndingFacts {
    fn from(ending: Ending) -> Self {
        let (word, error) = match ending {
            Ending::Requests => ("requests", None),
            Ending::Duration => ("duration", None),
            Ending::Stopped => ("stopped", None),
            Ending::Idle => ("idle", None),
            Ending::Failure(error) => ("failure", Some(error)),
        };
        Self {
            ending: word.to_owned(),
            error,
        }
    }
}

impl TryFrom<EndingFacts> for Ending {
    type Error = String;

    fn try_from(facts: EndingFacts) -> Result<Self, String> {
        Ok(match (facts.ending.as_str(), facts.error) {
            ("requests", _) => Self::Requests,
            ("duration", _) => Self::Duration,
            ("stopped", _) => Self::Stopped,
            ("idle", _) => Self::Idle,
            ("failure", Some(error)) => Self::Failure(error),
            (other, _) => return Err(format!("unknown ending {other:?}")),
        })
    }
}

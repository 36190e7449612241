//! Which requests an operator or the configuration lets a member get, apart from its health.

use serde::{Deserialize, Serialize};

/// Which requests a member gets: all, those of its own sessions, or none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Activation {
    /// The backend takes all requests that a policy or a session leads to it.
    #[default]
    Active,
    /// The backend takes only requests of its own sessions. mod_jk: `disabled`; HAProxy: `drain`.
    Drain,
    /// The backend takes no requests; exchanges in flight end. mod_jk: `stopped`; HAProxy: `maint`;
    /// nginx: `down`.
    Stopped,
}

impl Activation {
    /// All activations, in the order of declaration.
    pub const ALL: [Self; 3] = [Self::Active, Self::Drain, Self::Stopped];

    /// Whether the member may get requests without a session, and sessions of other members.
    #[must_use]
    pub fn takes_new(self) -> bool {
        self == Self::Active
    }

    /// Whether the member may get requests of its own sessions.
    #[must_use]
    pub fn takes_own(self) -> bool {
        self != Self::Stopped
    }

    /// The word for the activation in the file, in logs and in the admin API.
    #[must_use]
    pub fn token(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Drain => "drain",
            Self::Stopped => "stopped",
        }
    }

    /// The activation that a word names; `None`: it is no such word.
    #[must_use]
    pub fn from_token(token: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.token() == token)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_what_they_allow() {
        for (word, own, new) in [
            ("active", true, true),
            ("drain", true, false),
            ("stopped", false, false),
        ] {
            let activation = Activation::from_token(word).expect(word);
            assert_eq!(activation.token(), word);
            assert_eq!((activation.takes_own(), activation.takes_new()), (own, new));
        }
        assert_eq!(Activation::from_token("Active"), None);
    }
}

//! The clients that the source lets in.

use super::Members;

/// The clients that are let in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Access {
    /// All clients are let in.
    #[default]
    Open,
    /// Clients that pass tests.
    Clients(ClientTests),
    /// All clients with one of these methods, of which GET includes HEAD; with `except`, all with any other method.
    /// It is used only while sections are being applied; then there are rules by methods.
    Methods { names: Vec<String>, except: bool },
    /// No client; the source also refuses all.
    Nobody,
    /// Clients that only the old server can distinguish; without it, the paths are closed.
    Unsaid,
}

/// Tests that a client must all pass.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ClientTests {
    /// The networks of which the client's address must be.
    pub(crate) networks: Networks,
    /// The users who may pass, after they have signed on by a password; `None`: no password is asked for. It is used
    /// only while sections are being applied; then the rule has a sign-on.
    pub(crate) members: Option<Members>,
    /// Whether the client must have shown a certificate that was verified. It is used only while sections are being
    /// applied; then it is a key of the rule.
    pub(crate) certificate: bool,
    /// Whether the client must have come over TLS. It is used only while sections are being applied; then a rule of its
    /// own closes plain HTTP.
    pub(crate) tls: bool,
}

/// Addresses of clients.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Networks {
    /// The networks that are let in; empty: all addresses are.
    pub(crate) allow: Vec<String>,
    /// The networks that are refused, even if `allow` has them.
    pub(crate) deny: Vec<String>,
}

impl Access {
    /// The clients that pass both guards.
    pub(crate) fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Open, other) | (other, Self::Open) => other,
            (Self::Nobody, _) | (_, Self::Nobody) => Self::Nobody,
            (Self::Clients(one), Self::Clients(two)) => {
                one.and(two).map_or(Self::Unsaid, Self::from)
            }
            (one, two) if one == two => one,
            _ => Self::Unsaid,
        }
    }

    /// The clients that pass one of two guards.
    pub(crate) fn or(self, other: Self) -> Self {
        match (self, other) {
            (Self::Nobody, other) | (other, Self::Nobody) => other,
            (Self::Clients(one), Self::Clients(two)) => {
                one.or(two).map_or(Self::Unsaid, Self::from)
            }
            (Self::Open, Self::Clients(tests)) | (Self::Clients(tests), Self::Open)
                if tests.are_of_networks() =>
            {
                Self::Open
            }
            (one, two) if one == two => one,
            _ => Self::Unsaid,
        }
    }
}

impl From<ClientTests> for Access {
    fn from(tests: ClientTests) -> Self {
        if tests == ClientTests::default() {
            Self::Open
        } else {
            Self::Clients(tests)
        }
    }
}

impl From<Networks> for Access {
    fn from(networks: Networks) -> Self {
        Self::from(ClientTests {
            networks,
            ..ClientTests::default()
        })
    }
}

impl ClientTests {
    /// Whether they ask for nothing but the client's address.
    pub(crate) fn are_of_networks(&self) -> bool {
        self.members.is_none() && !self.certificate && !self.tls
    }

    /// The networks that pass; `None` if they are not all that is asked for, or some addresses of them do not pass.
    pub(crate) fn named_networks(self) -> Option<Vec<String>> {
        let are_all = self.are_of_networks() && self.networks.deny.is_empty();
        are_all.then_some(self.networks.allow)
    }

    /// The tests of both; `None` if the importer cannot tell who passes all.
    fn and(self, other: Self) -> Option<Self> {
        let members = match (self.members, other.members) {
            (Some(one), Some(two)) => Some(one.and(two)?),
            (one, two) => one.or(two),
        };
        Some(Self {
            networks: self.networks.and(other.networks)?,
            members,
            certificate: self.certificate || other.certificate,
            tls: self.tls || other.tls,
        })
    }

    /// Tests that those pass who pass one of both; `None` if the front cannot make them.
    fn or(mut self, mut other: Self) -> Option<Self> {
        if self.are_of_networks() && other.are_of_networks() {
            self.networks = self.networks.or(other.networks)?;
            return Some(self);
        }
        let (one, two) = (self.members.take(), other.members.take());
        // Otherwise some clients would need no password, or no certificate.
        if self != other || one.is_some() != two.is_some() {
            return None;
        }
        self.members = one.zip(two).map(|(one, two)| one.or(two));
        Some(self)
    }
}

impl Networks {
    /// All addresses but those of some networks.
    pub(crate) fn but(deny: Vec<String>) -> Self {
        Self {
            allow: Vec::new(),
            deny,
        }
    }

    /// The addresses of some networks.
    pub(crate) fn of(allow: Vec<String>) -> Self {
        Self {
            allow,
            deny: Vec::new(),
        }
    }

    /// Those of both; `None` if both name the networks that they let in: the importer does not compute their common part.
    fn and(mut self, other: Self) -> Option<Self> {
        if self == other {
            return Some(self);
        }
        if self.allow.is_empty() {
            self.allow = other.allow;
        } else if !other.allow.is_empty() && self.allow != other.allow {
            return None;
        }
        self.deny.extend(other.deny);
        Some(self)
    }

    /// Those of either; `None` if a list of networks cannot contain them.
    fn or(mut self, other: Self) -> Option<Self> {
        if self == other {
            return Some(self);
        }
        let are_named = |it: &Self| it.deny.is_empty() && !it.allow.is_empty();
        if !are_named(&self) || !are_named(&other) {
            return None;
        }
        self.allow.extend(other.allow);
        Some(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowed(text: &str) -> Access {
        Access::from(Networks::of(vec![text.to_owned()]))
    }

    fn denied(text: &str) -> Access {
        Access::from(Networks::but(vec![text.to_owned()]))
    }

    fn signed_on(user: &str) -> Access {
        Access::from(ClientTests {
            members: Some(Members {
                users: vec![user.to_owned()],
                groups: Vec::new(),
                asked: Vec::new(),
            }),
            ..ClientTests::default()
        })
    }

    /// A user who must come from these networks.
    fn signed_on_from(user: &str, networks: Networks) -> Access {
        signed_on(user).and(Access::from(networks))
    }

    #[test]
    fn two_guards_let_in_whom_both_do() {
        let ten = || "10.0.0.0/8".to_owned();
        let both = Networks {
            allow: vec![ten()],
            deny: vec!["10.1.0.0/16".to_owned()],
        };
        for (one, two, expected) in [
            (Access::Open, Access::Nobody, Access::Nobody),
            (Access::Open, allowed("10.0.0.0/8"), allowed("10.0.0.0/8")),
            (Access::Unsaid, Access::Nobody, Access::Nobody),
            (allowed("::1"), allowed("10.0.0.0/8"), Access::Unsaid),
            (
                allowed("10.0.0.0/8"),
                denied("10.1.0.0/16"),
                Access::from(both.clone()),
            ),
            (
                signed_on("ann"),
                Access::from(both.clone()),
                signed_on_from("ann", both),
            ),
            (signed_on("ann"), signed_on("bob"), Access::Unsaid),
            (signed_on("ann"), Access::Unsaid, Access::Unsaid),
        ] {
            assert_eq!(one.clone().and(two.clone()), expected, "{one:?} {two:?}");
            assert_eq!(two.clone().and(one.clone()), expected, "{two:?} {one:?}");
        }
    }

    #[test]
    fn one_of_two_guards_lets_in_whom_either_does() {
        let two = Networks::of(vec!["10.0.0.0/8".to_owned(), "::1".to_owned()]);
        for (one, other, expected) in [
            (Access::Nobody, signed_on("ann"), signed_on("ann")),
            (allowed("10.0.0.0/8"), allowed("::1"), Access::from(two)),
            (Access::Open, allowed("::1"), Access::Open),
            (Access::Open, Access::Unsaid, Access::Unsaid),
            (Access::Open, signed_on("ann"), Access::Unsaid),
            (allowed("::1"), signed_on("ann"), Access::Unsaid),
            (allowed("::1"), denied("10.0.0.0/8"), Access::Unsaid),
            (
                signed_on("ann"),
                signed_on_from("ann", Networks::of(vec!["::1".to_owned()])),
                Access::Unsaid,
            ),
        ] {
            assert_eq!(one.or(other), expected);
        }
    }
}

//! Conditions of a rule: how a client came, and which host it asked for.
//!
//! Those on the scheme alone are settled at once. Those on hosts wait until all virtual hosts are known:
//! [`crate::hosts`] asks each for its names.

use crate::ledger::Id;
use crate::regex::{HostTest, host_tests};

/// A condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Condition {
    /// It holds for every request.
    Always,
    /// It holds for none.
    Never,
    /// It is not known for which requests it holds.
    Unsaid,
    /// It holds for clients that came by this scheme.
    Scheme(Scheme),
    /// It holds for some hosts.
    Host(HostTest),
    /// It holds where another does not.
    Not(Box<Self>),
    /// It holds where all of these do.
    All(Vec<Self>),
    /// It holds where any of these does.
    Any(Vec<Self>),
}

/// The scheme by which a client came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scheme {
    Http,
    Https,
}

/// The hosts that a condition is asked about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HostClass<'n> {
    /// This host.
    Name(&'n str),
    /// All hosts with this ending, except those that a test names.
    Below(&'n str),
    /// All hosts that no test names.
    Other,
}

/// A condition of a rule on hosts, until the virtual hosts are known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct When {
    pub(crate) condition: Condition,
    /// The directives that say so.
    pub(crate) ids: Vec<Id>,
    /// The beginning of a host whose rest the redirect has in the place of [`CAPTURED`].
    pub(crate) capture: Option<String>,
}

/// The value of a condition as far as it is known before the virtual hosts are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SettledCondition {
    /// It holds for no request.
    Never,
    /// It holds for requests by this scheme; `None`: by either.
    Holds(Option<Scheme>),
    /// It depends on the host.
    Waits,
    /// It is not known for which requests it holds.
    Unsaid,
}

/// Port of a listener, and whether clients connect over TLS.
pub(crate) type Port = (u16, bool);

impl Condition {
    /// All of several.
    pub(crate) fn all(conditions: impl IntoIterator<Item = Self>) -> Self {
        let mut parts: Vec<Self> = Vec::new();
        for it in conditions {
            match it {
                Self::Never => return Self::Never,
                Self::Always => {}
                it => parts.push(it),
            }
        }
        match parts.len() {
            0 => Self::Always,
            1 => parts.remove(0),
            _ => Self::All(parts),
        }
    }

    /// Any of several.
    pub(crate) fn any(conditions: impl IntoIterator<Item = Self>) -> Self {
        let mut parts: Vec<Self> = Vec::new();
        for it in conditions {
            match it {
                Self::Always => return Self::Always,
                Self::Never => {}
                it => parts.push(it),
            }
        }
        match parts.len() {
            0 => Self::Never,
            1 => parts.remove(0),
            _ => Self::Any(parts),
        }
    }

    /// The opposite, if `negated`.
    pub(crate) fn negated_if(self, negated: bool) -> Self {
        match (self, negated) {
            (it, false) => it,
            (Self::Always, true) => Self::Never,
            (Self::Never, true) => Self::Always,
            (Self::Unsaid, true) => Self::Unsaid,
            (Self::Not(inner), true) => *inner,
            (it, true) => Self::Not(Box::new(it)),
        }
    }

    /// Whether it holds; `None` if that cannot be said.
    pub(crate) fn holds(&self, scheme: Scheme, host: HostClass<'_>) -> Option<bool> {
        match self {
            Self::Always => Some(true),
            Self::Never => Some(false),
            Self::Unsaid => None,
            Self::Scheme(only) => Some(*only == scheme),
            Self::Host(test) => test.holds(host),
            Self::Not(inner) => inner.holds(scheme, host).map(|it| !it),
            Self::All(parts) => joined(parts.iter().map(|it| it.holds(scheme, host)), false),
            Self::Any(parts) => joined(parts.iter().map(|it| it.holds(scheme, host)), true),
        }
    }

    /// The value of the condition before hosts are known: it waits if it asks for the host.
    pub(crate) fn settled(&self) -> SettledCondition {
        if self.asks_host() {
            return SettledCondition::Waits;
        }
        let holds = |scheme: Scheme| self.holds(scheme, HostClass::Other);
        match (holds(Scheme::Http), holds(Scheme::Https)) {
            (Some(true), Some(true)) => SettledCondition::Holds(None),
            (Some(true), Some(false)) => SettledCondition::Holds(Some(Scheme::Http)),
            (Some(false), Some(true)) => SettledCondition::Holds(Some(Scheme::Https)),
            (Some(false), Some(false)) => SettledCondition::Never,
            _ => SettledCondition::Unsaid,
        }
    }

    /// Whether it asks for the host.
    pub(crate) fn asks_host(&self) -> bool {
        self.is_any(&|it| matches!(it, Self::Host(_)))
    }

    /// Whether part of it cannot be said of any request.
    pub(crate) fn is_unsaid(&self) -> bool {
        self.is_any(&|it| *it == Self::Unsaid)
    }

    fn is_any(&self, is: &dyn Fn(&Self) -> bool) -> bool {
        match self {
            Self::Not(inner) => inner.is_any(is),
            Self::All(parts) | Self::Any(parts) => parts.iter().any(|it| it.is_any(is)),
            it => is(it),
        }
    }

    /// The hosts that it names.
    pub(crate) fn names(&self) -> Vec<&str> {
        match self {
            Self::Host(HostTest::Is(name)) => vec![name],
            Self::Not(inner) => inner.names(),
            Self::All(parts) | Self::Any(parts) => parts.iter().flat_map(Self::names).collect(),
            _ => Vec::new(),
        }
    }
}

/// All or any of several answers; `decides` is the one that decides alone.
fn joined(answers: impl Iterator<Item = Option<bool>>, decides: bool) -> Option<bool> {
    let mut result = Some(!decides);
    for answer in answers {
        match answer {
            Some(it) if it == decides => return Some(decides),
            Some(_) => {}
            None => result = None,
        }
    }
    result
}

impl HostTest {
    fn holds(&self, host: HostClass<'_>) -> Option<bool> {
        match (self, host) {
            (Self::Is(text), HostClass::Name(name)) => Some(name == text),
            (Self::Is(_), _) => Some(false),
            (Self::Starts(text), HostClass::Name(name)) => Some(name.starts_with(text.as_str())),
            (Self::Ends(text), HostClass::Name(name)) => Some(name.ends_with(text.as_str())),
            (Self::Has(text), HostClass::Name(name)) => Some(name.contains(text.as_str())),
            (Self::Ends(text), HostClass::Below(end)) => {
                if end.ends_with(text.as_str()) {
                    Some(true)
                } else {
                    (!text.ends_with(end)).then_some(false)
                }
            }
            (Self::Has(text), HostClass::Below(end)) => end.contains(text.as_str()).then_some(true),
            (Self::Starts(_), HostClass::Below(_)) | (_, HostClass::Other) => None,
        }
    }
}

/// A condition on the port, as far as it is one on the scheme of the listeners that a host has. `test` is an
/// expression, or begins with `=` for a whole number; with `!` before it it is negated.
pub(crate) fn of_port(test: &str, ports: &[Port]) -> Condition {
    let (negated, plain) = match test.strip_prefix('!') {
        Some(plain) => (true, plain),
        None => (false, test),
    };
    let (whole, plain) = match (plain.strip_prefix('='), plain.strip_prefix('^')) {
        (Some(digits), _) => (true, digits),
        (_, Some(digits)) if digits.ends_with('$') => (true, digits.trim_end_matches('$')),
        _ => (false, plain),
    };
    if plain.is_empty() || !plain.bytes().all(|it| it.is_ascii_digit()) || ports.is_empty() {
        return Condition::Unsaid;
    }
    let holds = |port: &Port| {
        let text = port.0.to_string();
        let found = if whole {
            text == plain
        } else {
            text.contains(plain)
        };
        found != negated
    };
    let all = |tls: bool| ports.iter().filter(|it| it.1 == tls).all(holds);
    let none = |tls: bool| !ports.iter().filter(|it| it.1 == tls).any(holds);
    match () {
        () if all(true) && all(false) => Condition::Always,
        () if none(true) && none(false) => Condition::Never,
        () if none(true) && all(false) => Condition::Scheme(Scheme::Http),
        () if all(true) && none(false) => Condition::Scheme(Scheme::Https),
        () => Condition::Unsaid,
    }
}

/// A condition on the host by an expression. `ports` are those that clients may write behind the host, if the
/// server has them in what it compares.
pub(crate) fn of_host(expression: &str, ports: &[Port]) -> Condition {
    let ports_of_host = [
        "(:[0-9]+)?$",
        "(:[0-9]*)?$",
        "(:\\d+)?$",
        "(:\\d*)?$",
        "(?::\\d+)?$",
        ":?[0-9]*$",
        "(:80)?$",
        "(:443)?$",
    ];
    let stripped = ports_of_host
        .iter()
        .find_map(|it| expression.strip_suffix(it));
    let plain = match stripped {
        Some(before) => format!("{before}$"),
        None => expression.to_owned(),
    };
    let Some(tests) = host_tests(&plain) else {
        return Condition::Unsaid;
    };
    // Behind another port a host does not end as the expression does.
    let is_whole = |it: &HostTest| matches!(it, HostTest::Is(_) | HostTest::Ends(_));
    let has_port = stripped.is_none() && ports.iter().any(|it| !matches!(it.0, 80 | 443));
    if has_port && tests.iter().any(is_whole) {
        return Condition::Unsaid;
    }
    let test = |it: HostTest| match it {
        HostTest::Is(text) if text.is_empty() => Condition::Never,
        HostTest::Starts(text) | HostTest::Ends(text) | HostTest::Has(text) if text.is_empty() => {
            Condition::Always
        }
        it => Condition::Host(it),
    };
    Condition::any(tests.into_iter().map(test))
}

/// The beginning of a host before what the only group of an expression takes, `^www\.(.+)$`.
pub(crate) fn captured(expression: &str) -> Option<String> {
    let (before, group) = expression.strip_prefix('^')?.split_once('(')?;
    let group = group.strip_suffix('$').unwrap_or(group);
    let before = before.replace("\\.", ".").replace("\\-", "-");
    let is_name = |it: u8| it.is_ascii_alphanumeric() || matches!(it, b'.' | b'-');
    let is_plain = matches!(group, ".*)" | ".+)") && before.bytes().all(is_name);
    is_plain.then(|| before.to_ascii_lowercase())
}

/// Stands in a redirect for the rest of a host, until that is known.
pub(crate) const CAPTURED: &str = "{captured}";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_on_hosts_by_class() {
        let www = of_host("^www\\.", &[]);
        let one = of_host("^(www\\.)?example.org$", &[]);
        let end = of_host("\\.example\\.org$", &[]);
        let name = HostClass::Name;
        for (condition, host, expected) in [
            (&www, name("www.a.org"), Some(true)),
            (&www, name("a.org"), Some(false)),
            (&www, HostClass::Below(".a.org"), None),
            (&www, HostClass::Other, None),
            (&one, name("example.org"), Some(true)),
            (&one, name("www.example.org"), Some(true)),
            (&one, name("x.example.org"), Some(false)),
            (&one, HostClass::Other, Some(false)),
            (&end, HostClass::Below(".example.org"), Some(true)),
            (&end, HostClass::Below(".other.org"), Some(false)),
            (&end, HostClass::Below(".org"), None),
        ] {
            let holds = condition.holds(Scheme::Http, host);
            assert_eq!(holds, expected, "{condition:?} {host:?}");
            let not = condition.clone().negated_if(true);
            let opposite = not.holds(Scheme::Http, host);
            assert_eq!(opposite, expected.map(|it| !it), "{not:?} {host:?}");
        }
    }

    #[test]
    fn what_cannot_be_said_decides_only_where_it_matters() {
        let one = Condition::Host(HostTest::Is("a.org".to_owned()));
        let both = Condition::all([one.clone(), Condition::Unsaid]);
        let either = Condition::any([one, Condition::Unsaid]);
        let of = |condition: &Condition, name| condition.holds(Scheme::Http, HostClass::Name(name));
        assert_eq!(
            (of(&both, "a.org"), of(&both, "b.org")),
            (None, Some(false))
        );
        assert_eq!(
            (of(&either, "a.org"), of(&either, "b.org")),
            (Some(true), None)
        );
        assert_eq!(Condition::all([Condition::Never, both]), Condition::Never);
    }

    #[test]
    fn expressions_of_hosts_and_ports() {
        let is = |text: &str| Condition::Host(HostTest::Is(text.to_owned()));
        let (clear, odd) = ([(80, false)], [(8080, false)]);
        for (expression, ports, expected) in [
            ("^a\\.org$", &clear[..], is("a.org")),
            ("^a.org$", &clear, is("a.org")),
            ("^A\\.org$", &clear, is("a.org")),
            ("^a\\.org$", &odd, Condition::Unsaid),
            ("^a\\.org(:[0-9]+)?$", &odd, is("a.org")),
            ("^a\\.org:?[0-9]*$", &odd, is("a.org")),
            ("^$", &clear, Condition::Never),
            (".", &clear, Condition::Always),
            ("^a[0-9]\\.org$", &clear, Condition::Unsaid),
            (
                "^(a|b)\\.org$",
                &clear,
                Condition::Any(vec![is("a.org"), is("b.org")]),
            ),
        ] {
            assert_eq!(of_host(expression, ports), expected, "{expression}");
        }
        for (expression, expected) in [
            ("^www\\.(.+)$", Some("www.")),
            ("^WWW\\.(.*)", Some("www.")),
            ("^(.*)$", Some("")),
            ("^(www)\\.(.*)$", None),
            ("www\\.(.*)$", None),
        ] {
            assert_eq!(captured(expression).as_deref(), expected, "{expression}");
        }
    }
}

//! Conditions of a rule: the scheme by which a client came, and the host that it asked for.
//!
//! Conditions on the scheme alone are decided at once. Those on hosts wait until all virtual hosts are known:
//! [`crate::hosts`] then evaluates them for the names of each.

use crate::ledger::Id;
use crate::regex::{HostTest, host_tests};

/// A condition of the source on the scheme or the host of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Condition {
    /// Holds for every request.
    Always,
    /// Holds for no request.
    Never,
    /// The importer cannot tell for which requests the condition holds.
    Unsaid,
    /// Holds for clients that came by this scheme.
    Scheme(Scheme),
    /// Holds for the hosts that pass this test.
    Host(HostTest),
    /// Holds where the inner condition does not.
    Not(Box<Self>),
    /// Holds for a request for which all of these conditions hold.
    All(Vec<Self>),
    /// Holds for a request for which any of these conditions holds.
    Any(Vec<Self>),
}

/// The scheme by which a client came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scheme {
    Http,
    Https,
}

/// A class of hosts for which [`Condition::holds`] is evaluated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HostClass<'n> {
    /// One host name.
    Name(&'n str),
    /// All hosts with this ending, except the names that conditions test.
    Below(&'n str),
    /// All other hosts: those that no condition tests.
    Other,
}

/// The condition of a rule that depends on the host, kept until the virtual hosts are known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct When {
    pub(crate) condition: Condition,
    /// The directives that state the condition.
    pub(crate) ids: Vec<Id>,
    /// For a redirect with [`CAPTURED`]: the beginning of the host. The rest of the host replaces
    /// [`CAPTURED`].
    pub(crate) capture: Option<String>,
}

/// What is known of a condition before the virtual hosts are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SettledCondition {
    /// The condition holds for no request.
    Never,
    /// The condition holds for requests by this scheme; `None`: by either.
    Holds(Option<Scheme>),
    /// The condition depends on the host.
    Waits,
    /// The importer cannot tell for which requests the condition holds.
    Unsaid,
}

/// The port of a listener, and whether clients connect to it over TLS.
pub(crate) type Port = (u16, bool);

impl Condition {
    /// A condition that holds where all of these do, simplified.
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

    /// A condition that holds where any of these does, simplified.
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

    /// The opposite of this condition if `negated`, else the condition itself.
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

    /// Whether the condition holds for this scheme and these hosts; `None` if the importer cannot tell.
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

    /// The value of the condition before hosts are known; [`SettledCondition::Waits`] if it depends on the
    /// host.
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

    /// Whether the condition depends on the host.
    pub(crate) fn asks_host(&self) -> bool {
        self.is_any(&|it| matches!(it, Self::Host(_)))
    }

    /// Whether the importer cannot evaluate some part of the condition.
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

    /// The host names that the condition names.
    pub(crate) fn names(&self) -> Vec<&str> {
        match self {
            Self::Host(HostTest::Is(name)) => vec![name],
            Self::Not(inner) => inner.names(),
            Self::All(parts) | Self::Any(parts) => parts.iter().flat_map(Self::names).collect(),
            _ => Vec::new(),
        }
    }
}

/// Joins answers by "and" (`decides` is `false`) or by "or" (`decides` is `true`): one answer that equals `decides`
/// is the result. `None` stands for an unknown answer.
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

/// Turns a test of the port into a condition on the scheme of the host's listeners, as far as it is one. `test` is an
/// expression, or `=` and a whole number; `!` before it negates it.
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

/// A condition on the host by a regular expression. `ports` are the ports of the listeners if the server compares the
/// host together with its port, and empty otherwise.
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
    // If the port is compared, too, an expression for the end of a host matches only hosts with the default port.
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

/// For an expression such as `^www\.(.+)$`, the part of the host before its only group, here `www.`.
pub(crate) fn captured(expression: &str) -> Option<String> {
    let (before, group) = expression.strip_prefix('^')?.split_once('(')?;
    let group = group.strip_suffix('$').unwrap_or(group);
    let before = before.replace("\\.", ".").replace("\\-", "-");
    let is_name = |it: u8| it.is_ascii_alphanumeric() || matches!(it, b'.' | b'-');
    let is_plain = matches!(group, ".*)" | ".+)") && before.bytes().all(is_name);
    is_plain.then(|| before.to_ascii_lowercase())
}

/// Placeholder in a redirect for the rest of a host, until that is known.
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

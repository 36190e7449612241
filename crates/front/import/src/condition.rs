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
        for condition in conditions {
            match condition {
                Self::Never => return Self::Never,
                Self::Always => {}
                other => parts.push(other),
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
        for condition in conditions {
            match condition {
                Self::Always => return Self::Always,
                Self::Never => {}
                other => parts.push(other),
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
        if !negated {
            return self;
        }
        match self {
            Self::Always => Self::Never,
            Self::Never => Self::Always,
            Self::Unsaid => Self::Unsaid,
            Self::Not(inner) => *inner,
            other => Self::Not(Box::new(other)),
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
            Self::All(parts) => joined(parts.iter().map(|part| part.holds(scheme, host)), false),
            Self::Any(parts) => joined(parts.iter().map(|part| part.holds(scheme, host)), true),
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
        self.has_part(&|it| matches!(it, Self::Host(_)))
    }

    /// Whether the importer cannot evaluate some part of the condition.
    pub(crate) fn is_unsaid(&self) -> bool {
        self.has_part(&|it| *it == Self::Unsaid)
    }

    /// Whether a test passes for the condition or for one of those that it is made of.
    fn has_part(&self, passes: &dyn Fn(&Self) -> bool) -> bool {
        match self {
            Self::Not(inner) => inner.has_part(passes),
            Self::All(parts) | Self::Any(parts) => parts.iter().any(|it| it.has_part(passes)),
            simple => passes(simple),
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

/// Joins answers by "and" (`decisive` is `false`) or by "or" (`decisive` is `true`): one answer that equals `decisive`
/// is the result. `None` stands for an unknown answer.
fn joined(answers: impl Iterator<Item = Option<bool>>, decisive: bool) -> Option<bool> {
    let mut result = Some(!decisive);
    for answer in answers {
        match answer {
            Some(known) if known == decisive => return Some(decisive),
            Some(_) => {}
            None => result = None,
        }
    }
    result
}

impl HostTest {
    /// Whether the hosts of a class pass the test; `None` if only some of them may.
    fn holds(&self, host: HostClass<'_>) -> Option<bool> {
        match host {
            HostClass::Name(name) => Some(match self {
                Self::Is(text) => name == text,
                Self::Starts(text) => name.starts_with(text.as_str()),
                Self::Ends(text) => name.ends_with(text.as_str()),
                Self::Has(text) => name.contains(text.as_str()),
            }),
            HostClass::Below(end) => match self {
                // Both other classes are without the names that conditions test.
                Self::Is(_) => Some(false),
                Self::Ends(text) if end.ends_with(text.as_str()) => Some(true),
                // The names with the longer ending are some of those below `end`.
                Self::Ends(text) if text.ends_with(end) => None,
                Self::Ends(_) => Some(false),
                Self::Has(text) if end.contains(text.as_str()) => Some(true),
                Self::Has(_) | Self::Starts(_) => None,
            },
            HostClass::Other => match self {
                Self::Is(_) => Some(false),
                Self::Starts(_) | Self::Ends(_) | Self::Has(_) => None,
            },
        }
    }
}

/// Turns a test of the port into a condition on the scheme of the host's listeners; [`Condition::Unsaid`] if it
/// distinguishes listeners of one scheme. `test` is an expression, or `=` and a whole number; `!` before it negates it.
pub(crate) fn of_port(test: &str, ports: &[Port]) -> Condition {
    let positive = test.strip_prefix('!');
    let negated = positive.is_some();
    let plain = positive.unwrap_or(test);
    let number = plain.strip_prefix('=').or_else(|| {
        let anchored = plain.strip_prefix('^')?;
        let has_end = anchored.ends_with('$');
        has_end.then(|| anchored.trim_end_matches('$'))
    });
    let is_whole = number.is_some();
    let digits = number.unwrap_or(plain);
    if digits.is_empty() || !digits.bytes().all(|it| it.is_ascii_digit()) || ports.is_empty() {
        return Condition::Unsaid;
    }
    let holds = |(port, _): &Port| {
        let text = port.to_string();
        // An expression without both anchors matches a part of the number, too.
        let matches = if is_whole {
            text == digits
        } else {
            text.contains(digits)
        };
        matches != negated
    };
    let holds_on_all = |tls: bool| ports.iter().filter(|it| it.1 == tls).all(holds);
    let holds_on_none = |tls: bool| !ports.iter().filter(|it| it.1 == tls).any(holds);
    // Without listeners of a scheme, the test holds both on all and on none of them.
    if holds_on_all(true) && holds_on_all(false) {
        Condition::Always
    } else if holds_on_none(true) && holds_on_none(false) {
        Condition::Never
    } else if holds_on_none(true) && holds_on_all(false) {
        Condition::Scheme(Scheme::Http)
    } else if holds_on_all(true) && holds_on_none(false) {
        Condition::Scheme(Scheme::Https)
    } else {
        Condition::Unsaid
    }
}

/// A condition that the host is this text. `ports` are as for [`of_host`].
pub(crate) fn of_whole_host(host: &str, ports: &[Port]) -> Condition {
    match host {
        // Every request that is served has a host.
        "" => Condition::Never,
        // Clients send the port behind the host, unless it is the default one.
        _ if host.contains(':') || has_other_port(ports) => Condition::Unsaid,
        _ => Condition::Host(HostTest::Is(host.to_ascii_lowercase())),
    }
}

/// A condition on the host by a regular expression. `ports` are the ports of the listeners if the server compares the
/// host together with its port, and empty otherwise.
pub(crate) fn of_host(expression: &str, ports: &[Port]) -> Condition {
    let mut port_endings = PORT_ENDINGS.iter();
    let without_port = port_endings.find_map(|ending| expression.strip_suffix(ending));
    let tests = match without_port {
        Some(before) => host_tests(&format!("{before}$")),
        None => host_tests(expression),
    };
    let Some(tests) = tests else {
        return Condition::Unsaid;
    };
    // If the port is compared, too, an expression for the end of a host matches only hosts with the default port.
    let compares_port = without_port.is_none() && has_other_port(ports);
    let asks_end = |test: &HostTest| matches!(test, HostTest::Is(_) | HostTest::Ends(_));
    if compares_port && tests.iter().any(asks_end) {
        return Condition::Unsaid;
    }
    // No host is empty, and each host contains the empty text.
    let condition = |test: HostTest| match test {
        HostTest::Is(text) if text.is_empty() => Condition::Never,
        HostTest::Starts(text) | HostTest::Ends(text) | HostTest::Has(text) if text.is_empty() => {
            Condition::Always
        }
        other => Condition::Host(other),
    };
    Condition::any(tests.into_iter().map(condition))
}

/// Whether any of these ports is none of the default ones.
fn has_other_port(ports: &[Port]) -> bool {
    ports.iter().any(|(port, _)| !matches!(port, 80 | 443))
}

/// For an expression such as `^www\.(.+)$`, the part of the host before its only group, here `www.`. `None` for any
/// other expression.
pub(crate) fn captured(expression: &str) -> Option<String> {
    let (start, group) = expression.strip_prefix('^')?.split_once('(')?;
    if !matches!(group, ".*)" | ".*)$" | ".+)" | ".+)$") {
        return None;
    }
    let unescaped = start.replace("\\.", ".").replace("\\-", "-");
    let is_of_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-');
    // All other signs are operators of expressions.
    if !unescaped.bytes().all(is_of_name) {
        return None;
    }
    Some(unescaped.to_ascii_lowercase())
}

/// The ends of expressions for hosts that allow a port.
const PORT_ENDINGS: [&str; 8] = [
    "(:[0-9]+)?$",
    "(:[0-9]*)?$",
    "(:\\d+)?$",
    "(:\\d*)?$",
    "(?::\\d+)?$",
    ":?[0-9]*$",
    "(:80)?$",
    "(:443)?$",
];

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
    fn a_whole_host_is_not_compared_with_its_port() {
        let is = Condition::Host(HostTest::Is("a.org".to_owned()));
        for (host, ports, expected) in [
            ("A.org", &[][..], is.clone()),
            ("a.org", &[(80, false), (443, true)], is),
            ("a.org", &[(80, false), (8080, false)], Condition::Unsaid),
            ("a.org:80", &[], Condition::Unsaid),
            ("", &[(8080, false)], Condition::Never),
        ] {
            assert_eq!(of_whole_host(host, ports), expected, "{host} {ports:?}");
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

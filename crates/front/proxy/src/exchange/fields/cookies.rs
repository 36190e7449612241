//! The changes of a backend's cookies: other domains and paths, and flags by the cookie's name.
//!
//! `Domain` and `Path` are replaced by the first rule of the route that fits the value of the backend. What no rule fits is
//! turned back if the route rewrites paths. A cache stores the result of both. Flags are changed each time that a response
//! is sent.

use std::borrow::Cow;

use catamaran_message::name::SET_COOKIE;
use catamaran_message::{Fields, field, pairs};
use regex::bytes::Captures;

use crate::config::template::{Blank, ResponseValue};
use crate::config::{
    CookieReplacement, CookieRules, CookieTest, FlagChanges, PathExpression, Template,
};
use crate::exchange::fields::passage::Values;
use crate::exchange::fields::reverse::Site;

/// The rules of a route for cookies, in which the values of one request are filled in.
#[derive(Debug, Default)]
pub(super) struct CookieChanges<'s> {
    flags: Box<[(Option<Test<'s>>, FlagChanges)]>,
    domains: Box<[Replacement<'s>]>,
    paths: Box<[Replacement<'s>]>,
}

#[derive(Debug)]
enum Test<'s> {
    Text(Cow<'s, [u8]>),
    Expression(&'s PathExpression),
}

#[derive(Debug)]
struct Replacement<'s> {
    from: Test<'s>,
    /// The new text, without the groups of `from`.
    to: Cow<'s, Template>,
}

impl<'s> CookieChanges<'s> {
    /// Fills in the values of a request.
    pub(super) fn new(rules: &'s CookieRules, values: Values<'_>) -> Self {
        let flags = rules.flags.iter();
        let replacements = |of: &'s [CookieReplacement]| {
            let filled = of.iter().map(|rule| Replacement::new(rule, values));
            filled.collect()
        };
        Self {
            flags: flags
                .map(|rule| {
                    let name = rule.name.as_ref().map(|test| Test::new(test, values));
                    let mut changes = rule.changes;
                    for word in &rule.words {
                        changes.add(&values.fill(word));
                    }
                    (name, changes)
                })
                .collect(),
            domains: replacements(&rules.domains),
            paths: replacements(&rules.paths),
        }
    }

    /// Changes the `Domain` and `Path` of cookies to those that the client uses. `site`: how they are turned back if no
    /// rule fits; `None`: they are not.
    pub(super) fn turn_back(&self, headers: &mut Fields, site: Option<&Site<'_>>) {
        if site.is_some() || !self.domains.is_empty() || !self.paths.is_empty() {
            headers.change(SET_COOKIE, |cookie| self.turned_back(cookie, site));
        }
    }

    /// The cookie with its new domain and path; `None`: it does not change.
    fn turned_back(&self, cookie: &[u8], site: Option<&Site<'_>>) -> Option<Vec<u8>> {
        let mut is_changed = false;
        let mut new = Vec::with_capacity(cookie.len() + 16);
        let mut pieces = cookie.split(|&byte| byte == b';');
        new.extend_from_slice(pieces.next()?);
        for piece in pieces {
            let Some((attribute, value)) = self.attribute(piece, site) else {
                new.push(b';');
                new.extend_from_slice(piece);
                continue;
            };
            is_changed = true;
            // Without a domain, the cookie is for the host that the client asked for.
            if !value.is_empty() {
                new.extend_from_slice(attribute);
                new.extend_from_slice(&value);
            }
        }
        is_changed.then_some(new)
    }

    /// The beginning and the new value of a `Domain` or `Path`; an empty value removes it. `None`: the piece stays.
    fn attribute(&self, piece: &[u8], site: Option<&Site<'_>>) -> Option<(&'static [u8], Vec<u8>)> {
        let (name, value) = pairs::split(piece);
        let value = field::unquoted(value?.trim_ascii());
        let is = |attribute: &str| name.eq_ignore_ascii_case(attribute.as_bytes());
        if is("domain") {
            let by_rule = self.domains.iter().find_map(|it| it.domain(value));
            let turned = || {
                site.filter(|it| it.is_own_domain(value))
                    .map(|_| Vec::new())
            };
            new_value(by_rule, turned).map(|new| (&b"; Domain="[..], new))
        } else if is("path") {
            let by_rule = self.paths.iter().find_map(|it| it.path(value));
            let turned = || site.and_then(|it| it.cookie_path(value));
            new_value(by_rule, turned).map(|new| (&b"; Path="[..], new))
        } else {
            None
        }
    }

    /// Changes the flags of cookies.
    pub(super) fn flag(&self, headers: &mut Fields) {
        if !self.flags.is_empty() {
            headers.change(SET_COOKIE, |cookie| self.flagged(cookie));
        }
    }

    /// The cookie with its new flags; `None`: no rule fits it.
    fn flagged(&self, cookie: &[u8]) -> Option<Vec<u8>> {
        let (name, _) = pairs::pieces(cookie).next()?;
        let fits = |test: &Option<Test<'_>>| test.as_ref().is_none_or(|test| test.fits_name(name));
        let (_, changes) = self.flags.iter().find(|(test, _)| fits(test))?;
        let mut pieces = cookie.split(|&byte| byte == b';').map(<[u8]>::trim_ascii);
        let mut new = pieces.next()?.to_vec();
        for piece in pieces {
            let (attribute, _) = pairs::split(piece);
            let is = |flag: &str| attribute.eq_ignore_ascii_case(flag.as_bytes());
            let is_replaced = changes.secure.is_some() && is("Secure")
                || changes.http_only.is_some() && is("HttpOnly")
                || changes.same_site.is_some() && is("SameSite");
            if !is_replaced {
                new.extend_from_slice(b"; ");
                new.extend_from_slice(piece);
            }
        }
        if changes.secure == Some(true) {
            new.extend_from_slice(b"; Secure");
        }
        if changes.http_only == Some(true) {
            new.extend_from_slice(b"; HttpOnly");
        }
        if let Some(Some(same_site)) = changes.same_site {
            new.extend_from_slice(b"; SameSite=");
            new.extend_from_slice(same_site.name().as_bytes());
        }
        Some(new)
    }
}

impl<'s> Test<'s> {
    fn new(test: &'s CookieTest, values: Values<'_>) -> Self {
        match test {
            CookieTest::Text(text) => Self::Text(match text.plain() {
                Some(plain) => Cow::Borrowed(plain),
                None => Cow::Owned(values.fill(text)),
            }),
            CookieTest::Expression(expression) => Self::Expression(expression),
        }
    }

    fn fits_name(&self, name: &[u8]) -> bool {
        match self {
            Self::Text(text) => text.eq_ignore_ascii_case(name),
            Self::Expression(expression) => expression.matches(name),
        }
    }
}

impl<'s> Replacement<'s> {
    fn new(rule: &'s CookieReplacement, values: Values<'_>) -> Self {
        Self {
            from: Test::new(&rule.from, values),
            to: match rule.to.plain() {
                Some(_) => Cow::Borrowed(&rule.to),
                None => Cow::Owned(values.fill_all_but_response(&rule.to)),
            },
        }
    }

    /// The new value of a domain; `None`: the rule does not fit it. The dot before a domain is not compared, and stays: it
    /// means nothing (RFC 6265, section 5.2.3).
    fn domain(&self, domain: &[u8]) -> Option<Vec<u8>> {
        match &self.from {
            Test::Text(from) => {
                let bare = domain.strip_prefix(b".").unwrap_or(domain);
                if !bare.eq_ignore_ascii_case(from) {
                    return None;
                }
                let to = self.filled(None);
                let dot = if to.is_empty() {
                    0
                } else {
                    domain.len() - bare.len()
                };
                Some([&domain[..dot], &to].concat())
            }
            Test::Expression(expression) => Some(self.filled(Some(&expression.groups_in(domain)?))),
        }
    }

    /// The new value of a path; `None`: the rule does not fit it.
    fn path(&self, path: &[u8]) -> Option<Vec<u8>> {
        match &self.from {
            Test::Text(from) => {
                let rest = path.strip_prefix(&from[..])?;
                Some([&self.filled(None), rest].concat())
            }
            Test::Expression(expression) => Some(self.filled(Some(&expression.groups_in(path)?))),
        }
    }

    /// The new text, with the groups of the expression.
    fn filled(&self, groups: Option<&Captures<'_>>) -> Vec<u8> {
        self.to.fill(|blank, text| {
            if let Blank::Response(ResponseValue::Group(group)) = blank
                && let Some(captured) = groups.and_then(|it| it.get(*group))
            {
                text.extend_from_slice(captured.as_bytes());
            }
        })
    }
}

/// The new value of an attribute: that of a rule, or else what is `turned` back; `None`: the attribute stays. What the
/// client sent must not begin another attribute, so the attribute also stays if the value of a rule would.
fn new_value(
    by_rule: Option<Vec<u8>>,
    turned: impl FnOnce() -> Option<Vec<u8>>,
) -> Option<Vec<u8>> {
    let Some(value) = by_rule else {
        return turned();
    };
    let ends_it = |byte: &u8| *byte == b';' || byte.is_ascii_control();
    (!value.iter().any(ends_it)).then_some(value)
}

#[cfg(test)]
mod tests;

//! The changes that a route makes to cookies of its backends.
//!
//! Each list is the table of that name of `[[route]]` in `docs/reference.md`. Of the rules in a list the first that fits a
//! cookie changes it.

use super::SameSite;
use super::expression::PathExpression;
use super::template::Template;

/// The changes of cookies, in the order of the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CookieRules {
    /// The changes of flags: `[[route.cookie]]`.
    pub flags: Vec<FlagRule>,
    /// The replacements of `Domain`: `[[route.cookie_domain]]`.
    pub domains: Vec<CookieReplacement>,
    /// The replacements of `Path`: `[[route.cookie_path]]`.
    pub paths: Vec<CookieReplacement>,
}

/// A test of a cookie's name, domain or path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CookieTest {
    /// A name or domain must be this text, whatever the case of letters; a path must begin with it.
    Text(Template),
    /// The expression must match somewhere.
    Expression(PathExpression),
}

/// A change of the flags of some cookies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlagRule {
    /// The test of the cookie's name; `None`: the rule fits all cookies.
    pub name: Option<CookieTest>,
    /// What is changed.
    pub changes: FlagChanges,
    /// Further changes: each text is for a request the name of a flag that is set, or with `no` before it removed.
    pub words: Vec<Template>,
}

/// Which flags a cookie has afterwards; `None` leaves a flag as it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlagChanges {
    /// Whether it has `Secure`.
    pub secure: Option<bool>,
    /// Whether it has `HttpOnly`.
    pub http_only: Option<bool>,
    /// Its `SameSite`; `Some(None)`: it has none.
    pub same_site: Option<Option<SameSite>>,
}

impl FlagChanges {
    /// Adds the change that a word names, in any case of letters: a flag that is set, such as `samesite=lax`, or with `no`
    /// before it one that is removed unless it is set. Any other word changes nothing.
    pub(crate) fn add(&mut self, word: &[u8]) {
        match word.to_ascii_lowercase().as_slice() {
            b"secure" => self.secure = Some(true),
            b"httponly" => self.http_only = Some(true),
            b"samesite=strict" => self.same_site = Some(Some(SameSite::Strict)),
            b"samesite=lax" => self.same_site = Some(Some(SameSite::Lax)),
            b"samesite=none" => self.same_site = Some(Some(SameSite::None)),
            b"nosecure" => self.secure = self.secure.or(Some(false)),
            b"nohttponly" => self.http_only = self.http_only.or(Some(false)),
            b"nosamesite" => self.same_site = self.same_site.or(Some(None)),
            _ => {}
        }
    }
}

/// A replacement of the `Domain` or `Path` of some cookies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CookieReplacement {
    /// The test of the old value.
    pub from: CookieTest,
    /// What stands in the place of the text that was compared, or of the whole value if an expression was. It may have
    /// groups of that expression. If the new value is empty, the attribute is removed.
    pub to: Template,
}

//! Tests of values of a request by regular expressions: the key `match_regex` of routes.
//!
//! A test decides who gets an answer in the place of another one, so a client must not escape it by sending a value twice,
//! or in a spelling that an application reads as the same: it holds if it holds for any reading of the value.

use std::borrow::Cow;
use std::fmt;

use bytes::Bytes;
use catamaran_message::name::COOKIE;
use catamaran_message::{FieldName, RequestHead};
use regex::bytes::{Regex, RegexBuilder};
use thiserror::Error;

/// A test such as `header:User-Agent ~ (?i)bot`.
#[derive(Clone, Debug)]
pub struct RequestTest {
    value: TestedValue,
    /// Whether the test holds where the expression does not match.
    is_negated: bool,
    expression: Regex,
}

/// The value that is compared.
#[derive(Clone, Debug, PartialEq, Eq)]
enum TestedValue {
    /// `header:NAME`: each line of the field, and all of them joined by `, `, those of `Cookie` by `; `.
    Header(FieldName),
    /// `query:NAME`: the parameters whose names are equal but for case, as they were sent and decoded.
    Parameter(Box<str>),
    /// `cookie:NAME`: the cookies whose names are equal but for case, with their quotes and without.
    Cookie(Box<str>),
    /// `query`: the query as it was sent.
    Query,
    /// `target`: the path and the query as they were sent.
    Target,
}

/// The reason why a text is no test.
#[derive(Debug, PartialEq, Eq, Error)]
pub enum RequestTestError {
    /// There is no ` ~ ` or ` !~ ` between a value and an expression.
    #[error("has no ` ~ ` or ` !~ ` between a value and an expression")]
    Sign,
    /// The value to test is not one of those that there are.
    #[error(
        "compares `{0}`, which is not known; write `header:NAME`, `query:NAME`, `cookie:NAME`, `query` or `target`"
    )]
    Value(String),
    /// The expression is not valid.
    #[error("is no expression: {0}")]
    Syntax(String),
    /// The expression is too long, or what is made of it is too large.
    #[error("is too large; an expression may have {TEXT_MAX} characters")]
    Large,
}

impl RequestTest {
    /// Parses a test: a value, ` ~ ` or ` !~ `, and an expression.
    ///
    /// # Errors
    /// There is no sign, the value is not known, or the expression is not valid or too large.
    pub fn parse(text: &str) -> Result<Self, RequestTestError> {
        let signs = [(" !~ ", true), (" ~ ", false)];
        let parts = signs.iter().filter_map(|(sign, is_negated)| {
            let (value, expression) = text.split_once(sign)?;
            Some((value, *is_negated, expression))
        });
        // The first sign counts: the expression may have another one.
        let first = parts.min_by_key(|(value, ..)| value.len());
        let (value, is_negated, expression) = first.ok_or(RequestTestError::Sign)?;
        if expression.len() > TEXT_MAX {
            return Err(RequestTestError::Large);
        }
        let unknown = || RequestTestError::Value(value.to_owned());
        let mut builder = RegexBuilder::new(expression);
        let built = builder.unicode(false).size_limit(SIZE_MAX).build();
        Ok(Self {
            value: TestedValue::parse(value).ok_or_else(unknown)?,
            is_negated,
            expression: built.map_err(|error| match error {
                regex::Error::Syntax(text) => {
                    RequestTestError::Syntax(super::expression::reason(&text))
                }
                _ => RequestTestError::Large,
            })?,
        })
    }

    /// The field that is compared; `None`: another value is.
    #[must_use]
    pub fn field(&self) -> Option<&FieldName> {
        match &self.value {
            TestedValue::Header(name) => Some(name),
            _ => None,
        }
    }

    /// Whether the test holds for any reading of the value in this head. A missing value is tested as an empty text.
    pub(crate) fn holds(&self, head: &RequestHead) -> bool {
        let readings = self.value.readings(head);
        let fits = |value: &[u8]| self.expression.is_match(value) != self.is_negated;
        match &readings[..] {
            [] => fits(b""),
            readings => readings.iter().any(|it| fits(it)),
        }
    }

    /// Whether a CORS preflight has the tested value of the request that it announces: the query or the target.
    pub(crate) fn is_known_at_preflight(&self) -> bool {
        use TestedValue::{Cookie, Header, Parameter, Query, Target};
        match self.value {
            Header(_) | Cookie(_) => false,
            Parameter(_) | Query | Target => true,
        }
    }

    /// A text that is equal for equal tests.
    pub(crate) fn identity(&self) -> String {
        let sign = if self.is_negated { "!~" } else { "~" };
        format!("{} {sign} {}", self.value, self.expression.as_str())
    }
}

/// Two tests are equal if their texts are.
impl PartialEq for RequestTest {
    fn eq(&self, other: &Self) -> bool {
        self.identity() == other.identity()
    }
}

impl Eq for RequestTest {}

impl fmt::Display for RequestTest {
    /// Writes which value is compared, not with what: that may be a secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a test of {}", self.value)
    }
}

impl TestedValue {
    fn parse(text: &str) -> Option<Self> {
        match text {
            "query" => return Some(Self::Query),
            "target" => return Some(Self::Target),
            _ => {}
        }
        let (kind, name) = text.split_once(':')?;
        let is_name = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_graphic());
        match kind {
            "header" => FieldName::parse(name.as_bytes()).map(Self::Header),
            "query" => is_name.then(|| Self::Parameter(name.into())),
            "cookie" => is_name.then(|| Self::Cookie(name.into())),
            _ => None,
        }
    }

    /// All readings of the value, any of which an application may use; none if the request does not have the value.
    fn readings<'h>(&self, head: &'h RequestHead) -> Vec<Cow<'h, [u8]>> {
        let query = head.target.query.as_ref();
        match self {
            Self::Header(name) => {
                let lines: Vec<&[u8]> = head.headers.get_all(name).collect();
                let separator: &[u8] = match name {
                    FieldName::Known(COOKIE) => b"; ",
                    _ => b", ",
                };
                let joined = (lines.len() > 1).then(|| Cow::Owned(lines.join(separator)));
                let each = lines.into_iter().map(Cow::Borrowed);
                each.chain(joined).collect()
            }
            Self::Parameter(name) => parameters(query.map_or(b"", |it| it), name),
            Self::Cookie(name) => {
                let lines = head.headers.get_all(COOKIE);
                let values = lines.flat_map(|line| cookies(line, name));
                values.map(Cow::Borrowed).collect()
            }
            Self::Query => query.map(|it| Cow::Borrowed(&it[..])).into_iter().collect(),
            Self::Target => vec![Cow::Owned(target(&head.target.path, query))],
        }
    }
}

impl fmt::Display for TestedValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Header(name) => write!(f, "header:{}", name.as_str().to_ascii_lowercase()),
            Self::Parameter(name) => write!(f, "query:{name}"),
            Self::Cookie(name) => write!(f, "cookie:{name}"),
            Self::Query => f.write_str("query"),
            Self::Target => f.write_str("target"),
        }
    }
}

/// The values of the parameters with this name, as they were sent and decoded.
fn parameters<'q>(query: &'q [u8], name: &str) -> Vec<Cow<'q, [u8]>> {
    let is_name = |it: &[u8]| it.eq_ignore_ascii_case(name.as_bytes());
    let sent = query.split(|&byte| byte == b'&').filter_map(|pair| {
        let at = pair.iter().position(|&byte| byte == b'=')?;
        is_name(&pair[..at]).then(|| Cow::Borrowed(&pair[at + 1..]))
    });
    let decoded = form_urlencoded::parse(query).filter_map(|(key, value)| {
        is_name(key.as_bytes()).then(|| Cow::Owned(value.into_owned().into_bytes()))
    });
    sent.chain(decoded).collect()
}

/// The values of the cookies with this name, as they were sent, and without blanks and quotes around them. Some readers
/// let a comma end a cookie, too, and some let nothing end it within quotes.
///
/// All of them together are at most five times as long as the line: of the values that only a semicolon ends, the
/// first one counts between two semicolons.
fn cookies<'l>(line: &'l [u8], name: &str) -> Vec<&'l [u8]> {
    let bare = |value: &'l [u8]| {
        let value = value.trim_ascii_start();
        [value, unquoted(value.trim_ascii_end())]
    };
    let mut values = Vec::new();
    let mut start = 0;
    for piece in line.split(|&byte| byte == b';') {
        let end = start + piece.len();
        let mut whole = value_at(piece, name).map(|at| &piece[at..]);
        for part in piece.split(|&byte| byte == b',') {
            if let Some(at) = value_at(part, name) {
                values.extend(bare(&part[at..]));
                values.extend(quoted(&line[start + at..]));
                whole.get_or_insert_with(|| &line[start + at..end]);
            }
            start += part.len() + 1;
        }
        values.extend(whole.into_iter().flat_map(bare));
    }
    values.dedup();
    values
}

/// Where the value starts if this is a cookie with this name.
fn value_at(cookie: &[u8], name: &str) -> Option<usize> {
    let at = cookie.iter().position(|&byte| byte == b'=')?;
    let its = cookie[..at].trim_ascii();
    its.eq_ignore_ascii_case(name.as_bytes()).then_some(at + 1)
}

/// The part of a text within the quotes with which it begins; `None`: it does not begin with a quote.
fn quoted(text: &[u8]) -> Option<&[u8]> {
    let inner = text.trim_ascii_start().strip_prefix(b"\"")?;
    let end = inner.iter().position(|&byte| byte == b'"')?;
    Some(&inner[..end])
}

fn target(path: &[u8], query: Option<&Bytes>) -> Vec<u8> {
    let mut whole = path.to_vec();
    if let Some(query) = query {
        whole.push(b'?');
        whole.extend_from_slice(query);
    }
    whole
}

fn unquoted(value: &[u8]) -> &[u8] {
    let inner = value
        .strip_prefix(b"\"")
        .and_then(|it| it.strip_suffix(b"\""));
    inner.unwrap_or(value)
}

/// The most bytes of an expression.
const TEXT_MAX: usize = 4096;

/// The most bytes that the program of an expression may take.
const SIZE_MAX: usize = 64 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    fn holds(test: &str, fields: &[(&str, &str)], target: &str) -> bool {
        let mut head = RequestHead::empty();
        let (path, query) = target
            .split_once('?')
            .map_or((target, None), |it| (it.0, Some(it.1)));
        head.target.path = Bytes::copy_from_slice(path.as_bytes());
        head.target.query = query.map(|it| Bytes::copy_from_slice(it.as_bytes()));
        for (name, value) in fields {
            head.headers.append(*name, value);
        }
        RequestTest::parse(test).unwrap().holds(&head)
    }

    #[test]
    fn a_test_holds_for_any_reading_of_a_field() {
        const EVIL: (&str, &str) = ("X-A", "evil");
        const GOOD: (&str, &str) = ("x-a", "good");
        for (test, fields, expected) in [
            ("header:X-A ~ ^evil$", &[EVIL][..], true),
            ("header:X-A ~ ^evil$", &[GOOD], false),
            ("header:X-A ~ ^evil$", &[EVIL, GOOD], true),
            ("header:X-A ~ ^evil$", &[GOOD, EVIL], true),
            ("header:X-A ~ ^evil, good$", &[EVIL, GOOD], true),
            ("header:X-A !~ ^good$", &[EVIL, GOOD], true),
            ("header:X-A !~ ^good$", &[GOOD], false),
            ("header:X-A !~ ^good$", &[], true),
            ("header:X-A ~ ^$", &[], true),
            ("header:X-A ~ .", &[], false),
            ("cookie:a ~ ^1$", &[("Cookie", "b=2; A=\"1\"")], true),
            (
                "cookie:a ~ ^1$",
                &[("Cookie", "a=2"), ("Cookie", "a=1")],
                true,
            ),
            ("cookie:a ~ ^1$", &[("Cookie", "a=12")], false),
            ("cookie:a ~ ^1$", &[("Cookie", "b=2, a=1; c=3")], true),
            ("cookie:a ~ ^1$", &[("Cookie", "b=2, a=1 , c=3")], true),
            ("cookie:a ~ ^1,2$", &[("Cookie", "a=1,2; c=3")], true),
            ("cookie:a ~ ^1,2$", &[("Cookie", "b=0, a=1,2")], true),
            ("cookie:a ~ ^1,2$", &[("Cookie", "a=0; a=1,2")], true),
            ("cookie:a ~ ^1,2$", &[("Cookie", "a=0, a=\"1,2\"")], true),
            ("cookie:a ~ ^1;2$", &[("Cookie", "a=\"1;2\"")], true),
            ("cookie:a ~ ^ 1$", &[("Cookie", "a=\" 1\"")], true),
            ("cookie:a,b ~ ^1$", &[("Cookie", "a,b=1")], true),
            ("cookie:a ~ 2", &[("Cookie", "a=1; b=\"2,3\"")], false),
            ("cookie:a ~ ^$", &[("Cookie", "b=1")], true),
            (
                "header:Cookie ~ b=2; a=1",
                &[("Cookie", "b=2"), ("Cookie", "a=1")],
                true,
            ),
        ] {
            assert_eq!(holds(test, fields, "/"), expected, "{test} {fields:?}");
        }
    }

    /// A client may send a long line, and each route may read it 16 times.
    #[test]
    fn a_line_of_commas_has_few_readings() {
        const LINE: usize = 8 << 10;
        let readings = |piece: &str| {
            let line = piece.repeat(LINE / piece.len());
            let values = cookies(line.as_bytes(), "a");
            (
                values.len(),
                values.iter().map(|it| it.len()).sum::<usize>(),
            )
        };
        assert_eq!(readings(","), (0, 0));
        assert_eq!(readings("a,"), (0, 0));
        for piece in [
            "a=,a=1,",
            "a=1,a=2,",
            "a=1;a=2;",
            "a=1,;a=2;,",
            "a= 1 ,a= 2 ,",
            "a=\",a=1,",
            "a=\"1\",a=\"2\",",
            "a=\"1,2\",",
            "a=a=1,",
        ] {
            let (count, bytes) = readings(piece);
            assert!(count <= LINE, "{piece} {count}");
            assert!(bytes <= 5 * LINE, "{piece} {bytes}");
        }
        let (count, whole) = (LINE / 4, LINE - "a=".len());
        assert_eq!(readings("a=1,a=2,"), (count + 1, count + whole));
    }

    #[test]
    fn a_test_holds_for_any_reading_of_a_query() {
        for (test, target, expected) in [
            ("query:a ~ ^1$", "/?a=1", true),
            ("query:a ~ ^1$", "/?b=1&a=%31", true),
            ("query:a ~ ^1$", "/?%61=1", true),
            ("query:a ~ ^1$", "/?A=1", true),
            ("query:a ~ ^1$", "/?a=2&a=1", true),
            ("query:a ~ ^1$", "/?a=12", false),
            ("query:a ~ ^%31$", "/?a=%31", true),
            ("query:a ~ ^$", "/?a", true),
            ("query:a ~ ^$", "/", true),
            ("query:a !~ ^2$", "/?b=2", true),
            ("query ~ ^a=b$", "/?a=b", true),
            ("query ~ ^$", "/", true),
            ("target ~ ^/a%20b\\?c$", "/a%20b?c", true),
            ("target ~ ^/$", "/", true),
        ] {
            assert_eq!(holds(test, &[], target), expected, "{test} {target}");
        }
    }

    #[test]
    fn what_is_no_test_is_refused() {
        for text in [
            "",
            "header:X-A",
            "header:X-A~a",
            "header:X A ~ a",
            "host ~ a",
            "query: ~ a",
            "query ~ (",
            "query ~ (?=a)",
        ] {
            assert!(RequestTest::parse(text).is_err(), "{text}");
        }
        let text = format!("query ~ {}", "a".repeat(TEXT_MAX + 1));
        assert_eq!(RequestTest::parse(&text), Err(RequestTestError::Large));
        let test = RequestTest::parse("header:X ~ a !~ b").unwrap();
        assert_eq!(test.identity(), "header:x ~ a !~ b");
        assert_eq!(test.to_string(), "a test of header:x");
    }
}

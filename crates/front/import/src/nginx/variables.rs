//! Replaces variables of nginx in texts, by placeholders of the front or by values.

use catamaran_proxy::config::{Placeholder, Template};

/// Replaces each variable of a text, and doubles the text's own braces; `None` if `known` does not know one
/// of the variables. A name ends where nginx ends it: `$host_x` is not `$host`.
pub(crate) fn expand(text: &str, known: impl Fn(&str) -> Option<String>) -> Option<String> {
    expand_between(text, known, |own| Some(doubled(own)))
}

/// Replaces each variable of a text for an answer, in which braces of no placeholder stand for themselves; `None` if
/// `known` does not know one of the variables, or if the text itself has what the front would fill in.
pub(crate) fn expand_text(text: &str, known: impl Fn(&str) -> Option<String>) -> Option<String> {
    expand_between(text, known, |own| {
        let template = Template::parse_text(own, Placeholder::OF_TEXTS);
        (template.beginning() == own.as_bytes()).then(|| own.to_owned())
    })
}

fn expand_between(
    text: &str,
    known: impl Fn(&str) -> Option<String>,
    between: impl Fn(&str) -> Option<String>,
) -> Option<String> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        out.push_str(&between(&rest[..at])?);
        let (name, behind) = name(&rest[at + 1..])?;
        out.push_str(&known(name)?);
        rest = behind;
    }
    out.push_str(&between(rest)?);
    Some(out)
}

/// Replaces the variables of a text that `known` knows; others stay as they are.
pub(crate) fn fill<'v>(text: &str, known: impl Fn(&str) -> Option<&'v str>) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        out.push_str(&rest[..at]);
        let after = &rest[at + 1..];
        let (name, behind) = name(after).unwrap_or(("", after));
        let own = &rest[at..rest.len() - behind.len()];
        out.push_str(known(name).unwrap_or(own));
        rest = behind;
    }
    out.push_str(rest);
    out
}

/// Splits off the variable name that a text begins with, in braces or without.
fn name(text: &str) -> Option<(&str, &str)> {
    if let Some(inner) = text.strip_prefix('{') {
        return inner.split_once('}');
    }
    let end = match text.as_bytes().first()? {
        // Of what an expression took, one digit.
        b'1'..=b'9' => 1,
        _ => {
            let is_name = |it: char| it.is_ascii_alphanumeric() || it == '_';
            text.find(|it| !is_name(it)).unwrap_or(text.len())
        }
    };
    Some(text.split_at(end))
}

fn doubled(text: &str) -> String {
    text.replace('{', "{{").replace('}', "}}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_end_where_nginx_ends_them() {
        let known = |name: &str| match name {
            "host" => Some("{host}".to_owned()),
            "1" => Some("<1>".to_owned()),
            _ => None,
        };
        for (text, expected) in [
            ("a $host b", Some("a {host} b")),
            ("${host}_x", Some("{host}_x")),
            ("$host-x", Some("{host}-x")),
            ("$host_x", None),
            ("$hostname", None),
            ("$12", Some("<1>2")),
            ("{a}", Some("{{a}}")),
            ("$", None),
            ("a$ b", None),
            ("${host", None),
            ("", Some("")),
        ] {
            assert_eq!(expand(text, known).as_deref(), expected, "{text}");
        }
        let known = |name: &str| (name == "host").then_some("h");
        for (text, expected) in [
            ("a $host b", "a h b"),
            ("${host}_x$host", "h_xh"),
            ("$host_x$1${other}", "$host_x$1${other}"),
            ("$$host${host", "$h${host"),
            ("^/a(/|$)$", "^/a(/|$)$"),
        ] {
            assert_eq!(fill(text, known), expected, "{text}");
        }
    }
}

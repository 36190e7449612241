//! Replaces variables of nginx in texts by placeholders of the front or by values.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};

use catamaran_config::{is_route_host, is_ruled_field};
use catamaran_proxy::config::{Placeholder, Template};

use crate::directive::Directive;
use crate::ledger::Ledger;

/// The placeholder for a variable of nginx, in fields and in texts; `None`: the front has none.
pub(super) fn placeholder(name: &str) -> Option<String> {
    let known = match name {
        "host" => "{host}",
        "http_host" => "{authority}",
        "scheme" => "{scheme}",
        "remote_addr" => "{client_ip}",
        "request_id" => "{request_id}",
        "request_method" => "{method}",
        "uri" | "document_uri" => "{path}",
        "request_uri" => "{path_query}",
        "args" | "query_string" => "{query}",
        SEARCH => "{search}",
        "content_type" => "{header:Content-Type}",
        "ssl_protocol" => "{tls_version}",
        "ssl_cipher" => "{tls_cipher}",
        "ssl_server_name" => "{tls_name}",
        "ssl_session_reused" => "{tls_reused}",
        _ => return named(name),
    };
    Some(known.to_owned())
}

/// The placeholder for a count of the whole front, which only its own answers have.
pub(super) fn of_front(name: &str) -> Option<String> {
    let known = match name {
        "connections_active" => "{connections_open}",
        "connections_waiting" => "{connections_idle}",
        "connections_writing" => "{requests_in_flight}",
        "connections_reading" => "0",
        _ => return None,
    };
    Some(known.to_owned())
}

/// The placeholder for a value of the response, in its fields; `None`: the front has none.
pub(super) fn of_response(name: &str) -> Option<String> {
    let field = ["upstream_http_", "sent_http_"]
        .iter()
        .find_map(|it| name.strip_prefix(it).filter(is_name));
    if let Some(field) = field {
        return Some(format!("{{response:{}}}", field.replace('_', "-")));
    }
    let cookie = name.strip_prefix("upstream_cookie_").filter(is_name)?;
    Some(format!("{{response_cookie:{cookie}}}"))
}

/// The placeholder for a variable that is named for a field, a parameter or a cookie.
fn named(name: &str) -> Option<String> {
    if let Some(field) = name.strip_prefix("http_").filter(is_name) {
        let field = field.replace('_', "-");
        // The front sets these fields itself.
        return (!is_ruled_field(&field, true)).then(|| format!("{{header:{field}}}"));
    }
    let kinds = [("arg_", "query"), ("cookie_", "cookie")];
    kinds.iter().find_map(|(start, kind)| {
        let value = name.strip_prefix(start).filter(is_name)?;
        Some(format!("{{{kind}:{value}}}"))
    })
}

/// The directives with new names for variables that have several sources: variables of nginx itself to which a
/// directive gives a value, and variables of a `map` that another directive sets, too. `None` if there are none. A
/// directive that uses such a variable then has an unknown one.
pub(super) fn without_redefined(directives: &[Directive]) -> Option<Vec<Directive>> {
    let mut found = BTreeMap::new();
    givers(directives, &mut found);
    let is_own = |name: &str| placeholder(name).is_some() || name == "invalid_referer";
    found.retain(|name, givers| is_own(name) || are_several(givers));
    let names: HashSet<String> = found.into_keys().collect();
    (!names.is_empty()).then(|| renamed(directives, &names))
}

/// Whether a `map` and another directive give a variable a value. The same `map` may be in several files.
fn are_several(givers: &[&Directive]) -> bool {
    let has_map = givers.iter().any(|it| it.name == "map");
    let is_same = |it: &&Directive| it.name == "map" && it.words == givers[0].words;
    has_map && !givers.iter().all(is_same)
}

/// Collects the names of the variables that directives give a value, with those directives. nginx ignores the case of
/// these names.
fn givers<'d>(directives: &'d [Directive], found: &mut BTreeMap<String, Vec<&'d Directive>>) {
    for directive in directives {
        let name = directive.name.as_str();
        let at = match name {
            "map" | "split_clients" | "keyval" => Some(1),
            "geo" => directive.words.len().checked_sub(1),
            "js_var" => Some(0),
            _ => (name.starts_with("set") || name.ends_with("_set")).then_some(0),
        };
        let own = at.and_then(|at| directive.word(at).strip_prefix('$'));
        let mut names: Vec<&str> = own.into_iter().chain(name.strip_prefix('$')).collect();
        for word in &directive.words {
            for start in ["(?<", "(?P<", "(?'"] {
                let groups = word.split(start).skip(1);
                names.extend(groups.filter_map(|it| it.split(['>', '\'']).next()));
            }
        }
        for name in names {
            let all = found.entry(name.to_ascii_lowercase()).or_default();
            all.push(directive);
        }
        givers(directive.inside(), found);
    }
}

/// Whether a text is a plain name of a variable, or a later part of one.
pub(super) fn is_name(text: &&str) -> bool {
    let mut bytes = text.bytes();
    !text.is_empty() && bytes.all(|it| it.is_ascii_alphanumeric() || it == b'_')
}

fn renamed(directives: &[Directive], names: &HashSet<String>) -> Vec<Directive> {
    let rename = |word: &String| {
        let with = |name: &str| {
            names
                .contains(&name.to_ascii_lowercase())
                .then(|| format!("${{{name} of its own}}"))
        };
        replaced(word, with)
    };
    let rename_in = |it: &Directive| {
        let sets_query = it.name == "set" && it.word(0).eq_ignore_ascii_case("$args");
        Directive {
            // The directive changes the query that is passed on.
            name: if sets_query {
                "set $args".to_owned()
            } else {
                it.name.clone()
            },
            words: it.words.iter().map(rename).collect(),
            inner: it.inner.as_ref().map(|it| renamed(it, names)),
            ..it.clone()
        }
    };
    directives.iter().map(rename_in).collect()
}

/// The values of variables that one `set` defines without other variables, by their names, and the server's first
/// name if it is a plain one.
pub(super) fn constants(inner: &[Directive], ledger: &mut Ledger) -> Vec<(String, String)> {
    let mut found: Vec<(String, String)> = Vec::new();
    let named = inner.iter().find(|it| it.name == "server_name");
    let first = named.map_or("", |it| it.word(0));
    if is_route_host(first) && !first.starts_with('*') {
        found.push(("server_name".to_owned(), first.to_ascii_lowercase()));
    }
    for directive in inner.iter().filter(|it| it.name == "set") {
        let (name, value) = (directive.word(0), directive.word(1));
        if is_set_again(inner, name) || value.contains('$') {
            continue;
        }
        if let Some(name) = name.strip_prefix('$') {
            ledger.mapped(directive.id);
            found.push((name.to_owned(), value.to_owned()));
        }
    }
    found
}

/// Whether anything other than one `set` of the server itself gives a variable a value.
fn is_set_again(inner: &[Directive], name: &str) -> bool {
    let mut found = BTreeMap::new();
    givers(inner, &mut found);
    let name = name.trim_start_matches('$').to_ascii_lowercase();
    found.get(&name).is_some_and(|it| it.len() > 1)
}

/// The directives with the values of these variables in their place.
pub(super) fn filled<'d>(
    directives: &'d [Directive],
    constants: &[(String, String)],
) -> Cow<'d, [Directive]> {
    let names = |it: &Directive| names_one(it, constants);
    if !directives.iter().any(names) {
        return Cow::Borrowed(directives);
    }
    let constant = |name: &str| constants.iter().find(|it| it.0 == name);
    let fill = |word: &String| fill(word, |name| constant(name).map(|it| &*it.1));
    let fill_one = |it: &Directive| Directive {
        words: match it.name.as_str() {
            // A zone counts by the variable.
            "set" | "limit_req_zone" | "limit_conn_zone" => it.words.clone(),
            "proxy_pass" => passed(it, fill),
            _ => it.words.iter().map(fill).collect(),
        },
        inner: it
            .inner
            .as_ref()
            .map(|it| filled(it, constants).into_owned()),
        ..it.clone()
    };
    directives.iter().map(fill_one).collect()
}

/// Whether a directive, or one in it, may name one of these variables.
fn names_one(directive: &Directive, constants: &[(String, String)]) -> bool {
    let has = |word: &String| constants.iter().any(|(name, _)| word.contains(&**name));
    let mut inside = directive.inside().iter();
    directive.words.iter().any(has) || inside.any(|it| names_one(it, constants))
}

/// The words of a `proxy_pass` with values in place of variables. If the URL has a path they are not replaced,
/// because with variables nginx sends this path for every request, which the front does not do.
pub(super) fn passed(directive: &Directive, fill: impl Fn(&String) -> String) -> Vec<String> {
    let filled: Vec<String> = directive.words.iter().map(fill).collect();
    let url = filled.first().map_or("", String::as_str);
    let behind = url.split_once("://").map_or(url, |it| it.1);
    let has_path = behind.contains('/') && !behind.ends_with("$request_uri");
    if has_path && filled != directive.words {
        return directive.words.clone();
    }
    filled
}

/// Replaces each variable of a text, and doubles the text's own braces; `None` if `known` does not know one
/// of the variables. A name ends where nginx ends it: `$host_x` is not `$host`.
pub(crate) fn expand(text: &str, known: impl Fn(&str) -> Option<String>) -> Option<String> {
    expand_between(text, known, |own| Some(doubled(own)))
}

/// Replaces each variable of a text for an answer, in which braces that are no placeholder stand for themselves.
/// `None` if `known` does not know a variable, or if the text itself contains a placeholder.
pub(crate) fn expand_text(text: &str, known: impl Fn(&str) -> Option<String>) -> Option<String> {
    expand_between(text, known, |own| {
        let template = Template::parse_text(own, Placeholder::OF_TEXTS);
        (template.beginning() == own.as_bytes()).then(|| own.to_owned())
    })
}

/// Replaces each variable of a text, and the parts between them by what `between` returns; `None` if any of both
/// fails.
pub(super) fn expand_between(
    text: &str,
    known: impl Fn(&str) -> Option<String>,
    between: impl Fn(&str) -> Option<String>,
) -> Option<String> {
    let mut out = String::with_capacity(text.len());
    let joined = text.replace("$is_args$args", &format!("${{{SEARCH}}}"));
    let mut rest = joined.as_str();
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
    replaced(text, |name| known(name).map(str::to_owned))
}

/// The text with each variable in braces, so that it means the same before any other text.
pub(super) fn braced(text: &str) -> String {
    replaced(text, |name| {
        (!name.is_empty()).then(|| format!("${{{name}}}"))
    })
}

fn replaced(text: &str, known: impl Fn(&str) -> Option<String>) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        out.push_str(&rest[..at]);
        let after = &rest[at + 1..];
        let (name, behind) = name(after).unwrap_or(("", after));
        let own = &rest[at..rest.len() - behind.len()];
        match known(name) {
            Some(value) => out.push_str(&value),
            None => out.push_str(own),
        }
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
        // A group of an expression has one digit.
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

/// Stands for `$is_args$args`: the query with its question mark.
const SEARCH: &str = "is_args and args";

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

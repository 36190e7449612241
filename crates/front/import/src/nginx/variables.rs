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
    if name == "upstream_addr" {
        return Some("{backend}".to_owned());
    }
    let field = ["upstream_http_", "sent_http_"]
        .iter()
        .find_map(|it| name.strip_prefix(it).filter(is_variable_name));
    if let Some(field) = field {
        return Some(format!("{{response:{}}}", field.replace('_', "-")));
    }
    let cookie = name
        .strip_prefix("upstream_cookie_")
        .filter(is_variable_name)?;
    Some(format!("{{response_cookie:{cookie}}}"))
}

/// The placeholder for a variable that is named for a field, a parameter or a cookie.
fn named(name: &str) -> Option<String> {
    if let Some(field) = name.strip_prefix("http_").filter(is_variable_name) {
        let field = field.replace('_', "-");
        // The front sets these fields itself.
        return (!is_ruled_field(&field, true)).then(|| format!("{{header:{field}}}"));
    }
    let kinds = [("arg_", "query"), ("cookie_", "cookie")];
    kinds.iter().find_map(|(start, kind)| {
        let value = name.strip_prefix(start).filter(is_variable_name)?;
        Some(format!("{{{kind}:{value}}}"))
    })
}

/// The directives with new names for variables whose value is not certain: those of nginx itself to which a directive
/// gives a value, and those of a `map` that another directive sets, too. No reader knows the new names, so that none
/// converts a use of such a variable. `None` if there are no such variables.
pub(super) fn without_redefined(directives: &[Directive]) -> Option<Vec<Directive>> {
    let mut givers = BTreeMap::new();
    collect_givers(directives, &mut givers);
    let is_of_nginx = |name: &str| placeholder(name).is_some() || name == "invalid_referer";
    givers.retain(|name, of_name| is_of_nginx(name) || differ(of_name));
    let names: HashSet<String> = givers.into_keys().collect();
    (!names.is_empty()).then(|| renamed(directives, &names))
}

/// Whether a `map` and another directive give a variable a value. The same `map` may be in several files.
fn differ(givers: &[&Directive]) -> bool {
    let has_map = givers.iter().any(|it| it.name == "map");
    let is_same_map = |it: &&Directive| it.name == "map" && it.words == givers[0].words;
    has_map && !givers.iter().all(is_same_map)
}

/// Collects the names of the variables that directives give a value, with those directives. nginx ignores the case of
/// these names.
fn collect_givers<'d>(
    directives: &'d [Directive],
    givers: &mut BTreeMap<String, Vec<&'d Directive>>,
) {
    for directive in directives {
        let name = directive.name.as_str();
        // Which of its words is the variable; the last one of a `geo`, whose source may be left out.
        let index = match name {
            "map" | "split_clients" | "keyval" => Some(1),
            "geo" => directive.words.len().checked_sub(1),
            "js_var" => Some(0),
            _ => (name.starts_with("set") || name.ends_with("_set")).then_some(0),
        };
        let set_by_word = index.and_then(|it| directive.word(it).strip_prefix('$'));
        let mut variables: Vec<&str> = set_by_word.into_iter().collect();
        // A line of a block that is not known here may begin with a variable.
        variables.extend(name.strip_prefix('$'));
        // The named groups of an expression are variables.
        for word in &directive.words {
            for opening in ["(?<", "(?P<", "(?'"] {
                let groups = word.split(opening).skip(1);
                variables.extend(groups.filter_map(|it| it.split(['>', '\'']).next()));
            }
        }
        for variable in variables {
            let of_variable = givers.entry(variable.to_ascii_lowercase()).or_default();
            of_variable.push(directive);
        }
        collect_givers(directive.inside(), givers);
    }
}

/// Whether a text is a plain name of a variable, or a later part of one.
pub(super) fn is_variable_name(text: &&str) -> bool {
    let mut bytes = text.bytes();
    !text.is_empty() && bytes.all(|it| it.is_ascii_alphanumeric() || it == b'_')
}

/// The directives with a name that no reader knows in place of each of these variables.
fn renamed(directives: &[Directive], names: &HashSet<String>) -> Vec<Directive> {
    let new_name = |name: &str| {
        let is_renamed = names.contains(&name.to_ascii_lowercase());
        is_renamed.then(|| format!("${{{name} of its own}}"))
    };
    let mut result = directives.to_vec();
    for directive in &mut result {
        // It changes the query that is passed on, so under this name it is unknown and closes its place.
        if directive.name == "set" && directive.word(0).eq_ignore_ascii_case("$args") {
            directive.name = "set $args".to_owned();
        }
        for word in &mut directive.words {
            *word = replaced(word, new_name);
        }
        if let Some(inner) = &mut directive.inner {
            *inner = renamed(inner, names);
        }
    }
    result
}

/// The variables of a server that have one value for all requests, with that value: `$server_name` if the first name
/// is a plain one, and those that a single `set` defines without other variables. Marks these `set`s as mapped. `outer` are
/// the directives that the server inherits.
pub(super) fn constants(
    inner: &[Directive],
    outer: &[Directive],
    ledger: &mut Ledger,
) -> Vec<(String, String)> {
    let mut found: Vec<(String, String)> = Vec::new();
    let server_name = inner.iter().find(|it| it.name == "server_name");
    let first_name = server_name.map_or("", |it| it.word(0));
    if is_route_host(first_name) && !first_name.starts_with('*') {
        found.push(("server_name".to_owned(), first_name.to_ascii_lowercase()));
    }
    for directive in inner.iter().filter(|it| it.name == "set") {
        let (name, value) = (directive.word(0), directive.word(1));
        let is_changed = has_several_givers(inner, name) || is_given_later(outer, name);
        if is_changed || value.contains('$') {
            continue;
        }
        if let Some(name) = name.strip_prefix('$') {
            ledger.mapped(directive.id);
            found.push((name.to_owned(), value.to_owned()));
        }
    }
    found
}

/// Whether more than one directive of a server, or inside its blocks, gives a variable a value.
pub(super) fn has_several_givers(inner: &[Directive], variable: &str) -> bool {
    let mut givers = BTreeMap::new();
    collect_givers(inner, &mut givers);
    let name = variable.trim_start_matches('$').to_ascii_lowercase();
    givers.get(&name).is_some_and(|it| it.len() > 1)
}

/// Whether a directive such as `auth_request_set`, among these or inside them, gives a variable a value that replaces the one
/// of a `set`: nginx executes it later.
pub(super) fn is_given_later(directives: &[Directive], variable: &str) -> bool {
    directives.iter().any(|it| {
        let is_giver = it.name.ends_with("_set") && it.word(0).eq_ignore_ascii_case(variable);
        is_giver || is_given_later(it.inside(), variable)
    })
}

/// The directives with the values of these variables in their place.
pub(super) fn filled<'d>(
    directives: &'d [Directive],
    constants: &[(String, String)],
) -> Cow<'d, [Directive]> {
    if !directives.iter().any(|it| names_one(it, constants)) {
        return Cow::Borrowed(directives);
    }
    let value = |name: &str| {
        let known = constants.iter().find(|it| it.0 == name);
        known.map(|it| it.1.as_str())
    };
    let filled_word = |word: &String| fill(word, value);
    let mut result = directives.to_vec();
    for directive in &mut result {
        directive.words = match directive.name.as_str() {
            // A `set` defines the variable; a zone counts by the variable itself.
            "set" | "limit_req_zone" | "limit_conn_zone" => directive.words.clone(),
            "proxy_pass" => passed(directive, filled_word),
            _ => directive.words.iter().map(filled_word).collect(),
        };
        if let Some(inner) = &mut directive.inner {
            *inner = filled(inner, constants).into_owned();
        }
    }
    Cow::Owned(result)
}

/// Whether a directive, or one in it, may name one of these variables.
fn names_one(directive: &Directive, constants: &[(String, String)]) -> bool {
    let has = |word: &String| constants.iter().any(|(name, _)| word.contains(&**name));
    let mut inside = directive.inside().iter();
    directive.words.iter().any(has) || inside.any(|it| names_one(it, constants))
}

/// The words of a `proxy_pass`, in each of which `fill` puts values in place of variables. If the URL has a path other
/// than `$request_uri`, variables stay: with them nginx sends this path for every request, which the front does not do.
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
    // The front has one placeholder for both variables, so they become one.
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

/// Replaces the variables of a text that `known` knows; all others, and each other `$`, stay as they are.
fn replaced(text: &str, known: impl Fn(&str) -> Option<String>) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        out.push_str(&rest[..at]);
        let after = &rest[at + 1..];
        // A `$` at the end, or before a brace that is not closed, begins no variable: its name is empty.
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

/// Splits a text behind a `$` into the name of the variable, in braces or without, and the rest. `None` if the text is
/// empty or its brace is not closed.
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

/// The text with its braces doubled, so that the front takes none for a placeholder.
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

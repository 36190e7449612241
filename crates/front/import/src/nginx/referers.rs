//! Converts `valid_referers`, the values of `Referer` that a server accepts, into tests.

use crate::directive::Directive;
use crate::expression::translated;
use crate::nginx::request_tests::{Choice, escaped};

/// The values of the variable `$invalid_referer` by these directives, for a server with these names: `1` or empty.
/// `None` if there are no directives, or if no tests of the front do the same.
///
/// An empty field counts as a missing one.
pub(super) fn choice(directives: &[&Directive], names: &[&str]) -> Option<Choice> {
    let words: Vec<&str> = directives
        .iter()
        .flat_map(|it| it.words.iter().map(String::as_str))
        .collect();
    if words.is_empty() {
        return None;
    }
    let is_there = |name: &str| words.contains(&name);
    let (admits_none, admits_blocked) = (is_there("none"), is_there("blocked"));
    let mut valid: Vec<String> = Vec::new();
    valid.extend(admits_none.then(|| "^$".to_owned()));
    if admits_blocked {
        valid.extend([SHORT, NO_SCHEME].map(str::to_owned));
    }
    let of_server = names.iter().copied().filter(|_| is_there("server_names"));
    let is_host = |it: &&str| !matches!(*it, "none" | "blocked" | "server_names");
    let own = words.iter().copied().filter(is_host);
    let (expressions, mut hosts): (Vec<&str>, Vec<&str>) = own.partition(|it| it.starts_with('~'));
    for pcre in expressions {
        valid.push(of_expression(&pcre[1..])?);
    }
    for name in of_server {
        match name.strip_prefix('~') {
            Some(pcre) => valid.push(of_name(pcre)?),
            None => hosts.push(name),
        }
    }
    // If several names match a host, only the path of the most specific one counts.
    if hosts.iter().any(|it| it.contains('/')) && hosts.len() > 1 {
        return None;
    }
    for host in hosts.iter().filter(|it| !it.is_empty()) {
        valid.push(format!("^(?i:https?://){}", of_host(host)?));
    }
    let groups = valid.iter().map(|it| format!("(?:{it})"));
    let any = groups.collect::<Vec<_>>().join("|");
    let mut tests = Vec::new();
    if !admits_blocked {
        tests.push(format!("~ {SHORT}"));
    }
    tests.push("~ ^(?i:https?://)[^/:]{257}".to_owned());
    tests.push(if valid.is_empty() {
        "~ ^".to_owned()
    } else {
        format!("!~ {any}")
    });
    let invalid = tests
        .into_iter()
        .map(|it| (format!("header:Referer {it}"), "1".to_owned()));
    Some(Choice {
        entries: invalid.collect(),
        otherwise: String::new(),
    })
}

/// The remaining expression, after the scheme, for a host such as `*.example.org` and the beginning of its path;
/// `None` if it cannot be converted.
fn of_host(host: &str) -> Option<String> {
    let (name, path) = match host.find('/') {
        Some(at) => host.split_at(at),
        None => (host, ""),
    };
    let end = name.trim_start_matches("*.").trim_start_matches('.');
    let bare = end.strip_suffix(".*").unwrap_or(end);
    let is_sign = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
    if bare.is_empty()
        || !bare.bytes().all(is_sign)
        || name.starts_with("*.") && name.ends_with(".*")
    {
        return None;
    }
    let literal = escaped(bare)?;
    let expression = match name {
        name if name.starts_with("*.") => format!("[^/:]+\\.{literal}"),
        name if name.starts_with('.') => format!("(?:[^/:]+\\.)?{literal}"),
        name if name.ends_with(".*") => format!("{literal}\\.[^/:]+"),
        _ => literal,
    };
    Some(match path {
        "" => format!("(?i:{expression})(?:[/:]|$)"),
        path => format!("(?i:{expression})(?::[^/]*)?{}", escaped(path)?),
    })
}

/// The expression for an entry `~…`, which is compared with what follows the scheme.
fn of_expression(pcre: &str) -> Option<String> {
    let (start, rest) = match pcre.strip_prefix('^') {
        Some(rest) => ("", rest),
        None => (".*", pcre),
    };
    let (rest, ignores_case) = match rest.strip_prefix("(?-i)") {
        Some(rest) => (rest, false),
        None => (rest, true),
    };
    let expression = translated(rest, ignores_case);
    let is_one = start == ".*" || !rest.contains('|');
    (expression.is_exact && is_one && !rest.contains('^') && !rest.contains("\\A"))
        .then(|| format!("^(?i:https?://){start}(?:{})", expression.text()))
}

/// The expression for a server name `~…`, which is compared with the host alone.
fn of_name(pcre: &str) -> Option<String> {
    let (start, rest) = match pcre.strip_prefix('^') {
        Some(rest) => ("", rest),
        None => ("[^/:]*", pcre),
    };
    let (plain, end) = match rest.strip_suffix('$') {
        Some(plain) => (plain, "(?:[/:]|$)"),
        None => (rest, ""),
    };
    let name = plain.replace("\\.", ".");
    let is_sign = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.');
    let is_literal =
        name.bytes().all(is_sign) && name.matches('.').count() == plain.matches("\\.").count();
    is_literal.then(|| Some(format!("^(?i:https?://{start}{}){end}", escaped(&name)?)))?
}

/// Values that are too short to contain a host.
const SHORT: &str = "^.{1,10}$";

/// Values that do not begin with `http://` or `https://`.
const NO_SCHEME: &str = "(?i)^(?:[^h]|h[^t]|ht[^t]|htt[^p]|http[^:s]|http:[^/]|http:/[^/]|https[^:]|https:[^/]|https:/[^/])";

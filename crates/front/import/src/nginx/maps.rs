//! `map`: variables that have one of a few values, by one value of the request.

use std::cmp::Reverse;

use crate::directive::Directive;
use crate::expression::translated;
use crate::nginx::request_tests::{Choice, escaped, exact, tested_value};
use crate::nginx::variables::braced;
use crate::read::nginx::Node;

/// The lines of a `map` as words: each key with its value, and behind them `hostnames` if the keys are names of hosts.
/// A line that is not a key with one value becomes an `include`, for which [`choice`] gives up.
pub(super) fn words(lines: Vec<Node>) -> Vec<String> {
    let is_flag = |line: &Node, name: &str| line.name == name && line.words.is_empty();
    let mut words = Vec::with_capacity(lines.len() * 2);
    let mut are_hosts = false;
    for line in lines {
        if is_flag(&line, "volatile") {
            // No value of a request changes while it is answered.
        } else if words.is_empty() && !are_hosts && is_flag(&line, HOSTNAMES) {
            are_hosts = true;
        } else {
            words.extend(match <[String; 1]>::try_from(line.words) {
                Ok([value]) => [line.name, value],
                Err(_) => ["include".to_owned(), String::new()],
            });
        }
    }
    words.extend(are_hosts.then(|| HOSTNAMES.to_owned()));
    words
}

/// The values of a `map` whose words [`words`] made. `None` if the front cannot test the source's value, if a key or a
/// value is not known, or if there are too many.
pub(super) fn choice(map: &Directive) -> Option<Choice> {
    let source = tested_value(map.word(0).strip_prefix('$')?)?;
    let pairs = map.words.get(2..)?;
    // Of an odd number of words the last is `hostnames`.
    let end = if pairs.len() % 2 == 1 { HOST_END } else { "$" };
    let mut otherwise = String::new();
    // Whether a key is the empty text, and whether an expression matches it.
    let (mut has_empty, mut takes_empty) = (false, false);
    let mut ranked = Vec::new();
    for pair in pairs.chunks_exact(2) {
        let (key, value) = (pair[0].as_str(), braced(&pair[1]));
        if key == "include" || names_group(&value) {
            return None;
        }
        if key == "default" {
            otherwise = value;
            continue;
        }
        let (rank, expression) = match key.strip_prefix('~') {
            Some(pcre) => {
                let (text, matches_empty) = of_expression(pcre, end)?;
                takes_empty |= matches_empty;
                (Rank::Expression, text)
            }
            None => {
                let text = key.strip_prefix('\\').unwrap_or(key);
                has_empty |= text.is_empty();
                of_text(text, end)?
            }
        };
        ranked.push((rank, format!("{source} ~ {expression}"), value));
    }
    // nginx tries no expression on an empty value, which gets the default.
    if takes_empty && !has_empty {
        ranked.push((Rank::Whole, format!("{source} ~ ^{end}"), otherwise.clone()));
    }
    ranked.sort_by_key(|it| it.0);
    let entries = ranked.into_iter().map(|(_, test, value)| (test, value));
    (entries.len() <= ENTRIES_MAX).then(|| Choice {
        entries: entries.collect(),
        otherwise,
    })
}

/// In which order nginx asks keys. Of hosts with a star the longest comes first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    Whole,
    StarBefore(Reverse<usize>),
    StarBehind(Reverse<usize>),
    Expression,
}

/// The rank of a key that is a text, and the expression that matches the same; `None` if it is not plain ASCII. Only
/// if `end` is [`HOST_END`], stars and a dot at the beginning stand for parts of a host.
fn of_text(text: &str, end: &str) -> Option<(Rank, String)> {
    let whole = |text: &str| Some(format!("(?i)^{}{end}", escaped(text)?));
    if end != HOST_END {
        return Some((Rank::Whole, whole(text)?));
    }
    let length = Reverse(text.len());
    Some(if let Some(name) = text.strip_prefix("*.") {
        let expression = format!("(?i)\\.{}{end}", escaped(name)?);
        (Rank::StarBefore(length), expression)
    } else if let Some(name) = text.strip_prefix('.') {
        let expression = format!("(?i)(?:^|\\.){}{end}", escaped(name)?);
        (Rank::StarBefore(length), expression)
    } else if let Some(name) = text.strip_suffix(".*") {
        let expression = format!("(?i)^{}\\..", escaped(name)?);
        (Rank::StarBehind(length), expression)
    } else {
        (Rank::Whole, whole(text)?)
    })
}

/// The front's expression for that of a key, and whether it matches the empty text; `None` if the front has none.
fn of_expression(pcre: &str, end: &str) -> Option<(String, bool)> {
    let ignores_case = pcre.strip_prefix('*');
    let expression = translated(ignores_case.unwrap_or(pcre), ignores_case.is_some());
    let text = exact(&expression)?;
    let matches_empty = expression.has("");
    if end != HOST_END {
        return Some((text, matches_empty));
    }
    // The dot at the end of a host is no part of what nginx compares, so the expression must end with another sign.
    let body = text.strip_suffix('$')?;
    let is_plain = !body.replace("\\.", "").contains(['\\', '|', '$']);
    let ends = body.ends_with(|it: char| it.is_ascii_alphanumeric());
    (is_plain && ends).then(|| (format!("{body}{HOST_END}"), matches_empty))
}

/// Whether a value, with its variables in braces, has what an expression captured (`${1}`). That may be the expression
/// of a key, which tests do not capture.
fn names_group(value: &str) -> bool {
    let mut names = value.split("${").skip(1);
    names.any(|it| it.starts_with(|sign: char| sign.is_ascii_digit()))
}

/// The line by which the keys of a `map` are names of hosts.
const HOSTNAMES: &str = "hostnames";

/// The end of an expression for hosts, which may end with a dot.
const HOST_END: &str = "\\.?$";

/// The most values of a variable.
const ENTRIES_MAX: usize = 32;

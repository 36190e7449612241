//! `map`: variables that have one of a few values, by one value of the request.

use std::cmp::Reverse;

use crate::directive::Directive;
use crate::expression::translated;
use crate::nginx::request_tests::{Choice, escaped, exact, tested_value};
use crate::nginx::variables::braced;
use crate::read::nginx::Node;

/// The lines of a `map` as words: each key with its value, and behind them `hostnames` if the keys are names of hosts. A
/// line that says anything else is an `include`.
pub(super) fn words(lines: Vec<Node>) -> Vec<String> {
    let is = |it: &Node, name: &str| it.name == name && it.words.is_empty();
    // No value of a request changes while it is answered.
    let kept: Vec<Node> = lines.into_iter().filter(|it| !is(it, "volatile")).collect();
    let of_hosts = kept.first().is_some_and(|it| is(it, HOSTNAMES));
    let pairs = kept.into_iter().skip(usize::from(of_hosts));
    let words = pairs.flat_map(|line| match <[String; 1]>::try_from(line.words) {
        Ok([value]) => [line.name, value],
        Err(_) => ["include".to_owned(), String::new()],
    });
    words
        .chain(of_hosts.then(|| HOSTNAMES.to_owned()))
        .collect()
}

/// The values of a `map` of a value that can be tested; `None`: they are not known.
pub(super) fn choice(map: &Directive) -> Option<Choice> {
    let source = tested_value(map.word(0).strip_prefix('$')?)?;
    let pairs = map.words.get(2..)?;
    let end = if pairs.len() % 2 == 1 { HOST_END } else { "$" };
    let mut otherwise = String::new();
    // nginx tries no expression on an empty value.
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

/// The rank of a key that is a text, and the expression that matches the same.
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

/// The expression for a key's, and whether it matches the empty text.
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

/// Whether a value, with its variables in braces, has what an expression captured, which may be that of a key.
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

//! Converts `split_clients` whose variable is the backend of a `proxy_pass` into the `split` of a route.
//!
//! nginx sends requests with the same key to the same part; the front divides all requests by the weights, and keeps
//! sessions at their part.

use std::cell::Cell;

use crate::directive::Directive;
use crate::ledger::Ledger;
use crate::nginx::location::Scope;
use crate::nginx::variables::fill;

/// The URLs of a `proxy_pass` with their weights: one for each part of the `split_clients` whose variable it
/// contains; otherwise the text itself with one weight.
pub(super) fn urls(text: &str, scope: Scope<'_>, ledger: &mut Ledger) -> Vec<(String, u32)> {
    // A `split_clients` stands outside of servers, in the outermost block.
    let outer = scope.blocks.last().copied().unwrap_or_default();
    let mut splits = outer.iter().filter(|it| it.name == "split_clients");
    let used = splits.find(|it| variable(it).is_some_and(|name| has_variable(text, name)));
    let known = used.and_then(|it| Some((it, variable(it)?, shares(it)?)));
    let Some((split, name, shares)) = known else {
        return vec![(text.to_owned(), 1)];
    };
    ledger.mapped(split.id);
    ledger.note(split.id, BY_SHARES);
    let mut urls = Vec::with_capacity(shares.len());
    for (value, weight) in &shares {
        let value_of = |variable: &str| {
            let is_of_split = variable.eq_ignore_ascii_case(name);
            is_of_split.then_some(value.as_str())
        };
        urls.push((fill(text, value_of), *weight));
    }
    urls
}

/// Whether another directive may change or use the variable of a `split_clients`, so that its shares are not those of
/// the requests.
pub(super) fn is_changed(split: &Directive, all: &[Directive]) -> bool {
    // The `split_clients` itself is one of those counted.
    split.name == "split_clients" && variable(split).is_none_or(|name| setters(name, all) > 1)
}

/// How many directives may set a variable: those with a named group of an expression, and those that name the variable
/// and do not only use it.
fn setters(name: &str, directives: &[Directive]) -> usize {
    let group = format!("<{name}>").to_ascii_lowercase();
    let mut count = 0;
    for directive in directives {
        let words = &directive.words;
        let only_uses = USERS.contains(&directive.name.as_str());
        let captures = words
            .iter()
            .any(|it| it.to_ascii_lowercase().contains(&group));
        if captures || (!only_uses && words.iter().any(|it| has_variable(it, name))) {
            count += 1;
        }
        count += setters(name, directive.inside());
    }
    count
}

/// Whether a text has this variable.
fn has_variable(text: &str, name: &str) -> bool {
    let is_there = Cell::new(false);
    // The filled text is not needed: `fill` calls this for each variable of the text.
    fill(text, |variable| {
        is_there.set(is_there.get() || variable.eq_ignore_ascii_case(name));
        None
    });
    is_there.get()
}

/// The variable of a `split_clients`, without its `$`; `None` if it has none.
fn variable(split: &Directive) -> Option<&str> {
    let name = split.word(1).strip_prefix('$')?;
    (!name.is_empty()).then_some(name)
}

/// The values of a split with their weights, in lowest terms; `None` if some requests would have no known value, or a
/// value has variables.
fn shares(split: &Directive) -> Option<Vec<(String, u32)>> {
    // The part of the requests that has no value yet.
    let mut left = WHOLE;
    let mut found: Vec<(String, u32)> = Vec::new();
    for word in split.words.iter().skip(2) {
        let (share, value) = word.split_once('=')?;
        let weight = match share {
            "*" => left,
            share => hundredths(share.strip_suffix('%')?)?,
        };
        left = left.checked_sub(weight)?;
        let is_plain = !value.is_empty() && !value.contains('$');
        match found.iter_mut().find(|it| it.0 == value) {
            Some(known) => known.1 += weight,
            None => found.push((is_plain.then(|| value.to_owned())?, weight)),
        }
    }
    let common_divisor = found.iter().fold(0, |known, it| divisor(known, it.1));
    // It is zero without shares, or if all are zero.
    if left > 0 || common_divisor == 0 {
        return None;
    }
    found.iter_mut().for_each(|it| it.1 /= common_divisor);
    Some(found)
}

/// A percentage with at most two decimals, in hundredths.
fn hundredths(text: &str) -> Option<u32> {
    let (whole, decimals) = text.split_once('.').unwrap_or((text, ""));
    let is_number = |it: &str| it.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number(whole) || !is_number(decimals) || decimals.len() > 2 {
        return None;
    }
    format!("{whole}{decimals:0<2}").parse().ok()
}

/// The greatest common divisor.
fn divisor(one: u32, other: u32) -> u32 {
    match other {
        0 => one,
        other => divisor(other, one % other),
    }
}

const BY_SHARES: &str = "each request is sent by the shares here, and in nginx by its key: if requests of a client belong \
    together, give the upstreams [upstream.NAME.sticky]";

/// Directives that only use variables.
const USERS: [&str; 5] = [
    "add_header",
    "log_format",
    "proxy_pass",
    "proxy_set_header",
    "server_name",
];

/// All requests, in hundredths of a percent.
const WHOLE: u32 = 10_000;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::Place;

    #[test]
    fn parts_are_weights_of_all_requests() {
        let check = |words: &[&str], expected: Option<&[(&str, u32)]>| {
            let mut ledger = Ledger::new(false);
            let place = Place {
                file: "a.conf".into(),
                line: 1,
            };
            let mut all = vec!["$remote_addr".to_owned(), "$v".to_owned()];
            all.extend(words.iter().map(|it| (*it).to_owned()));
            let split = Directive {
                id: ledger.enter("nginx", "split_clients", &place),
                name: "split_clients".to_owned(),
                words: all,
                inner: Some(Vec::new()),
            };
            let found = shares(&split);
            let shown: Option<Vec<(&str, u32)>> = found
                .as_ref()
                .map(|it| it.iter().map(|(name, weight)| (&**name, *weight)).collect());
            assert_eq!(shown.as_deref(), expected, "{words:?}");
        };
        check(&["90%=a", "*=b"], Some(&[("a", 9), ("b", 1)]));
        check(&["0.5%=a", "*=b"], Some(&[("a", 1), ("b", 199)]));
        check(
            &["33.33%=a", "33.33%=b", "*=a"],
            Some(&[("a", 6667), ("b", 3333)]),
        );
        check(&["50%=a", "50%=b"], Some(&[("a", 1), ("b", 1)]));
        // The rest would have no value, or one that is not known.
        check(&["90%=a"], None);
        check(&["90%=a", "*="], None);
        check(&["90%=a", "*=$x"], None);
        check(&["90%=a", "20%=b"], None);
        check(&["0.125%=a", "*=b"], None);
        check(&["x=a", "*=b"], None);
        check(&[], None);
    }
}

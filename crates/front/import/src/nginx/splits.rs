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
    let outer = scope.blocks.last().copied().unwrap_or_default();
    let mut splits = outer.iter().filter(|it| it.name == "split_clients");
    let named = splits.find(|it| variable(it).is_some_and(|name| names(text, name)));
    let known = named.and_then(|it| Some((it, variable(it)?, shares(it)?)));
    let Some((split, name, shares)) = known else {
        return vec![(text.to_owned(), 1)];
    };
    ledger.mapped(split.id);
    ledger.note(split.id, BY_SHARES);
    let is_it = |found: &str| found.eq_ignore_ascii_case(name);
    let filled = |value: &str| fill(text, |it| is_it(it).then_some(value));
    let urls = shares.iter();
    urls.map(|(value, weight)| (filled(value), *weight))
        .collect()
}

/// Whether another directive may change or use the variable of a `split_clients`, so that its shares are not those of
/// the requests.
pub(super) fn is_changed(split: &Directive, all: &[Directive]) -> bool {
    split.name == "split_clients" && variable(split).is_none_or(|name| count(name, all) > 1)
}

/// How many directives may set a variable.
fn count(name: &str, directives: &[Directive]) -> usize {
    let group = format!("<{name}>").to_ascii_lowercase();
    let sets = |it: &Directive| {
        let mut words = it.words.iter();
        let only_uses = USERS.contains(&it.name.as_str());
        let is_taken = |word: &&String| word.to_ascii_lowercase().contains(&group);
        words.clone().any(|word| is_taken(&word)) || !only_uses && words.any(|it| names(it, name))
    };
    let one = |it: &Directive| usize::from(sets(it)) + count(name, it.inside());
    directives.iter().map(one).sum()
}

/// Whether a text has this variable.
fn names(text: &str, name: &str) -> bool {
    let is_there = Cell::new(false);
    let note = |found: &str| {
        is_there.set(is_there.get() || found.eq_ignore_ascii_case(name));
        None
    };
    fill(text, note);
    is_there.get()
}

fn variable(split: &Directive) -> Option<&str> {
    let name = split.word(1).strip_prefix('$')?;
    (!name.is_empty()).then_some(name)
}

/// The values of a split with their weights; `None` if some requests would have no known value.
fn shares(split: &Directive) -> Option<Vec<(String, u32)>> {
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
    let divisor = found.iter().fold(0, |known, it| divisor(known, it.1));
    found.iter_mut().for_each(|it| it.1 /= divisor.max(1));
    (left == 0 && divisor > 0).then_some(found)
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

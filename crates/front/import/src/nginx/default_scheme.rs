//! The idiom by which nginx tells applications the scheme that a proxy before it reports, and its own if there is none:
//! `if ($http_x_forwarded_proto = '') { set $http_x_forwarded_proto $scheme; }`.
//!
//! That is the scheme which the front tells applications, but that it believes only proxies that it trusts.

use crate::directive::Directive;
use crate::ledger::Ledger;
use crate::nginx::request_tests::Condition;
use crate::nginx::variables::{fill, has_several_givers};

/// The directives with `$scheme` in place of the variable, in each server that has the idiom; `None` if none has it.
pub(super) fn settled(directives: &[Directive], ledger: &mut Ledger) -> Option<Vec<Directive>> {
    let mut all = Vec::with_capacity(directives.len());
    let mut is_changed = false;
    for directive in directives {
        let inner = match directive.name.as_str() {
            "http" => settled(directive.inside(), ledger),
            "server" => of_server(directive.inside(), ledger),
            _ => None,
        };
        is_changed |= inner.is_some();
        all.push(Directive {
            inner: inner.or_else(|| directive.inner.clone()),
            ..directive.clone()
        });
    }
    is_changed.then_some(all)
}

/// The directives of a server without the idiom; `None` if it has none, or if more depends on the variable than what
/// applications are told.
fn of_server(inner: &[Directive], ledger: &mut Ledger) -> Option<Vec<Directive>> {
    let at = inner
        .iter()
        .position(|it| EXECUTED.contains(&it.name.as_str()))?;
    // It is the first that is executed, so that nothing leaves it out or asks for the variable before.
    let idiom = &inner[at];
    let [set] = idiom.inside() else {
        return None;
    };
    let is_default = idiom.name == "if"
        && Condition::read(&idiom.words)?.empty_variable() == Some(CLAIM)
        && set.name == "set"
        && set.word(0) == format!("${CLAIM}")
        && set.word(1) == "$scheme";
    let others = [&inner[..at], &inner[at + 1..]].concat();
    if !is_default || has_several_givers(inner, CLAIM) || asks(&others) {
        return None;
    }
    let text = "the front tells applications the scheme of the client's connection, or what a proxy in \
                `trusted_proxies` of [server] says";
    ledger.dropped(idiom.id, text);
    ledger.dropped(set.id, text);
    ledger.note(idiom.id, text);
    Some(with_scheme(&others))
}

/// Whether a condition, a redirect or an address depends on the variable, here or inside.
fn asks(directives: &[Directive]) -> bool {
    directives.iter().any(|it| {
        let is_told = it.name == "proxy_set_header";
        let mut words = it.words.iter();
        (!is_told && words.any(|word| word.contains(CLAIM))) || asks(it.inside())
    })
}

fn filled(word: &str) -> String {
    // Readers compare with the usual form, without braces.
    let scheme = if word.contains(&format!("${{{CLAIM}}}")) {
        "${scheme}"
    } else {
        "$scheme"
    };
    fill(word, |name| (name == CLAIM).then_some(scheme))
}

fn with_scheme(directives: &[Directive]) -> Vec<Directive> {
    let with = |it: &Directive| Directive {
        words: it.words.iter().map(|word| filled(word)).collect(),
        inner: it.inner.as_deref().map(with_scheme),
        ..it.clone()
    };
    directives.iter().map(with).collect()
}

/// The variable for the scheme that a proxy before the server reports.
const CLAIM: &str = "http_x_forwarded_proto";

/// Directives that a server executes in the order of the file before it chooses a location.
const EXECUTED: [&str; 5] = ["break", "if", "return", "rewrite", "set"];

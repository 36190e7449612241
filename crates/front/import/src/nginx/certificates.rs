//! Certificates that clients of a location must have shown.

use crate::directive::Directive;
use crate::ledger::Ledger;
use crate::nginx::location::Scope;
use crate::toml_text::quoted;

/// The key by which a route asks clients for a certificate, with its value, if nginx does so here. Marks the directives.
pub(super) fn certificate_key(scope: Scope<'_>, ledger: &mut Ledger) -> Option<(String, String)> {
    let verify = scope.find("ssl_verify_client");
    let on = verify.filter(|it| it.word(0) == "on").map(|it| it.id);
    let refusal = refusal(scope).map(|it| it.id);
    for id in on.into_iter().chain(refusal) {
        ledger.mapped(id);
    }
    let is_asked = on.or(refusal).is_some();
    is_asked.then(|| ("client_certificate".to_owned(), quoted("required")))
}

/// The `if` by which a location refuses all clients without a certificate that nginx has verified; `None` if there is
/// none, or something beside it may answer them otherwise.
pub(super) fn refusal(scope: Scope<'_>) -> Option<&Directive> {
    let verify = scope.find("ssl_verify_client")?;
    if !matches!(verify.word(0), "on" | "optional") {
        return None;
    }
    // In a server there are two blocks: its directives of this kind are asked before those of locations.
    let [inner, _server, _outer] = scope.blocks else {
        return None;
    };
    let mut answering = inner.iter().filter(|it| ANSWERING.contains(&&*it.name));
    let (only, None) = (answering.next()?, answering.next()) else {
        return None;
    };
    refuses_unverified(only).then_some(only)
}

/// Whether an `if` answers with an error unless the client's certificate was verified.
fn refuses_unverified(directive: &Directive) -> bool {
    let words = directive.words.join(" ");
    let tests: Vec<&str> = words
        .split([' ', '(', ')'])
        .filter(|it| !it.is_empty())
        .collect();
    let [answer] = directive.inside() else {
        return false;
    };
    let is_error = |word: &str| matches!(word.parse::<u16>(), Ok(400..=599));
    directive.name == "if"
        && tests == ["$ssl_client_verify", "!=", "SUCCESS"]
        && answer.name == "return"
        && answer.words.len() == 1
        && is_error(answer.word(0))
}

/// Directives of a location that may answer a request, or lead it elsewhere, before its access rules are asked.
const ANSWERING: [&str; 5] = ["if", "location", "return", "rewrite", "set"];

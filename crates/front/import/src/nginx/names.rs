//! Names of servers: those that routes can have, and the empty one, which is that of requests without `Host`.

use catamaran_config::is_route_host;

use crate::directive::Directive;
use crate::ledger::{Id, Ledger};
use crate::plan::Plan;

/// The names of a server that routes can have, and the directives with names that they cannot.
pub(super) fn names(inner: &[Directive], ledger: &mut Ledger) -> (Vec<String>, Vec<Id>) {
    let (mut names, mut unsayable) = (Vec::new(), Vec::new());
    for directive in inner.iter().filter(|it| it.name == "server_name") {
        ledger.mapped(directive.id);
        for word in &directive.words {
            let word = word.to_ascii_lowercase();
            let bare = word
                .strip_prefix("*.")
                .or_else(|| word.strip_prefix('.'))
                .unwrap_or(&word);
            let wild = (word.len() != bare.len()).then(|| format!("*.{bare}"));
            match word.as_str() {
                "" | "_" => {}
                _ if !is_route_host(wild.as_deref().unwrap_or(bare)) => {
                    let text = format!("`{word}` is no host that a route can have");
                    ledger.note(directive.id, text);
                    unsayable.push(directive.id);
                }
                _ => {
                    if !word.starts_with("*.") {
                        names.push(bare.to_owned());
                    }
                    names.extend(wild);
                }
            }
        }
    }
    names.dedup();
    (names, unsayable)
}

/// The directive by which a server has the empty name, which is that of requests without `Host`.
pub(super) fn nameless(server: &Directive, inner: &[Directive]) -> Option<Id> {
    let mut named = inner
        .iter()
        .filter(|it| it.name == "server_name")
        .peekable();
    if named.peek().is_none() {
        return Some(server.id);
    }
    let empty = named.find(|it| it.words.iter().any(String::is_empty));
    empty.map(|it| it.id)
}

/// Counts the empty name among those that no route can have, where another than the default server has it first.
pub(super) fn leave_nameless(plan: &mut Plan, ledger: &mut Ledger) {
    for listener in 0..plan.listeners.len() {
        let mut hosts = plan.hosts.iter_mut();
        let first = hosts.find(|it| it.listeners.contains(&listener) && it.nameless.is_some());
        let Some(host) = first.filter(|it| !it.default_on.contains(&listener)) else {
            continue;
        };
        if let Some(id) = host.nameless {
            ledger.note(
                id,
                "in nginx this server answers requests of HTTP/1.0 without `Host`",
            );
            host.unsayable.push(id);
        }
    }
}

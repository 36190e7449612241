//! Clients' addresses behind trusted proxies: mod_remoteip and mod_rpaf.

use crate::directive::Directive;
use crate::httpd::access::network;
use crate::ledger::{Id, Ledger};
use crate::plan::Plan;

/// Reads which proxies the server and its virtual hosts trust. If the front would not find the same client addresses
/// as httpd, rules that let in only some networks are closed.
pub(crate) fn read(main: &[Directive], hosts: &[&Directive], plan: &mut Plan, ledger: &mut Ledger) {
    let own = scope(main, ledger);
    let others: Vec<SenderScope> = hosts
        .iter()
        .map(|it| scope(it.inside(), ledger))
        .filter(|it| !it.ids.is_empty())
        .collect();
    let all: Vec<&SenderScope> = std::iter::once(&own)
        .chain(&others)
        .filter(|it| !it.ids.is_empty())
        .collect();
    let Some(first) = all.first() else { return };
    if first.has_protocol {
        for listener in &mut plan.listeners {
            listener
                .keys
                .insert("proxy_protocol".to_owned(), "true".to_owned());
        }
        ledger.risk(
            first.ids[0],
            "name the proxies in `proxy_protocol_from`: until then no connection is accepted",
        );
    }
    // The front has one setting for all hosts.
    let is_one = all.iter().all(|it| it.proxies == first.proxies)
        && (!own.ids.is_empty() || others.len() == hosts.len());
    let is_plain = all
        .iter()
        .all(|it| it.is_plain && (it.has_protocol || it.has_header && !it.proxies.is_empty()));
    if is_one && is_plain {
        plan.trusted.clone_from(&first.proxies);
        for it in &all {
            it.ids.iter().for_each(|&id| ledger.mapped(id));
        }
        return;
    }
    let text = "who clients are cannot be told as here: name the proxies in `trusted_proxies` if they send \
                X-Forwarded-For. Clients that a network admitted are answered 403";
    ledger.risk(first.ids[0], text);
    for it in &all {
        it.ids.iter().for_each(|&id| ledger.kept_or_risk(id, text));
    }
    ledger.address_guards.void_all();
    plan.hide_networks();
}

/// Whether a directive is about clients' addresses behind proxies.
pub(crate) fn is_one(name: &str) -> bool {
    name.starts_with("remoteip") || name.starts_with("rpaf")
}

/// The trusted proxies of one server or virtual host.
#[derive(Debug, Default)]
struct SenderScope {
    ids: Vec<Id>,
    proxies: Vec<String>,
    is_plain: bool,
    /// Whether the header field is named; without it mod_remoteip reads none.
    has_header: bool,
    has_protocol: bool,
}

fn scope(directives: &[Directive], ledger: &mut Ledger) -> SenderScope {
    let mut scope = SenderScope {
        is_plain: true,
        ..SenderScope::default()
    };
    let on = |it: &Directive| it.word(0).eq_ignore_ascii_case("on");
    for directive in directives {
        let name = directive.name.replace('_', "");
        let words = || directive.words.iter();
        match name.as_str() {
            "remoteipheader" | "rpafheader" => {
                scope.has_header = true;
                scope.is_plain &= directive.word(0).eq_ignore_ascii_case("x-forwarded-for");
            }
            // The front accepts private addresses from all trusted proxies; httpd does not from
            // `RemoteIPTrustedProxy`.
            "remoteipinternalproxy" | "rpafproxyips" => {
                scope.has_header |= name == "rpafproxyips";
                scope.is_plain &= words().all(|it| network(it).is_some());
                scope.proxies.extend(words().filter_map(|it| network(it)));
            }
            "remoteipproxyprotocol" if on(directive) => scope.has_protocol = true,
            "rpafenable" if !on(directive) => scope.is_plain = false,
            "rpafenable"
            | "rpafsethostname"
            | "rpafsethttps"
            | "rpafsetport"
            | "remoteipproxiesheader"
            | "remoteipproxyprotocol" => {
                ledger.mapped(directive.id);
                continue;
            }
            name if name.starts_with("remoteip") => scope.is_plain = false,
            _ => continue,
        }
        scope.ids.push(directive.id);
    }
    scope
}

//! Clients' addresses behind trusted proxies: mod_remoteip and mod_rpaf.

use crate::directive::Directive;
use crate::httpd::access::network;
use crate::ledger::{Id, Ledger};
use crate::plan::Plan;

/// Reads which proxies the server and its virtual hosts trust. If the front would not find the same client addresses
/// as httpd, rules that let in only some networks are closed.
pub(crate) fn read(main: &[Directive], hosts: &[&Directive], plan: &mut Plan, ledger: &mut Ledger) {
    let of_server = scope(main, ledger);
    let is_set_for_server = !of_server.ids.is_empty();
    let of_hosts = hosts.iter().map(|host| scope(host.inside(), ledger));
    let mut scopes: Vec<SenderScope> = of_hosts.collect();
    let is_set_for_each_host = scopes.iter().all(|scope| !scope.ids.is_empty());
    scopes.insert(0, of_server);
    scopes.retain(|scope| !scope.ids.is_empty());
    let Some(first) = scopes.first() else { return };
    if first.has_protocol {
        for listener in &mut plan.listeners {
            let keys = &mut listener.keys;
            keys.insert("proxy_protocol".to_owned(), "true".to_owned());
        }
        ledger.risk(
            first.ids[0],
            "name the proxies in `proxy_protocol_from`: until then no connection is accepted",
        );
    }
    // The front has one setting for all hosts.
    let is_same_everywhere = scopes.iter().all(|scope| scope.proxies == first.proxies)
        && (is_set_for_server || is_set_for_each_host);
    let ids = scopes.iter().flat_map(|scope| &scope.ids);
    if is_same_everywhere && scopes.iter().all(SenderScope::can_be_written) {
        plan.trusted.clone_from(&first.proxies);
        ids.for_each(|&id| ledger.mapped(id));
        return;
    }
    let text = "who clients are cannot be told as here: name the proxies in `trusted_proxies` if they send \
                X-Forwarded-For. Clients that a network admitted are answered 403";
    ledger.risk(first.ids[0], text);
    ids.for_each(|&id| ledger.kept_or_risk(id, text));
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
    /// Whether the front can do the same for all directives.
    is_plain: bool,
    /// Whether the header field is named; without it mod_remoteip reads none.
    has_header: bool,
    /// Whether proxies send the PROXY protocol.
    has_protocol: bool,
}

impl SenderScope {
    /// Whether the front can learn clients' addresses in the same way.
    fn can_be_written(&self) -> bool {
        let has_field_of_proxies = self.has_header && !self.proxies.is_empty();
        self.is_plain && (self.has_protocol || has_field_of_proxies)
    }
}

/// Reads the directives of one server or virtual host. Those that change nothing here are reported as mapped; the
/// others are in `ids`, for [`read`] to report.
fn scope(directives: &[Directive], ledger: &mut Ledger) -> SenderScope {
    let mut scope = SenderScope {
        is_plain: true,
        ..SenderScope::default()
    };
    let is_on = |it: &Directive| it.word(0).eq_ignore_ascii_case("on");
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
            "remoteipproxyprotocol" if is_on(directive) => scope.has_protocol = true,
            "rpafenable" if !is_on(directive) => scope.is_plain = false,
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

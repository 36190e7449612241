//! `upstream` blocks, and the addresses of `proxy_pass`.

use std::collections::BTreeMap;

use crate::directive::Directive;
use crate::ledger::{Id, Ledger};
use crate::mod_jk::workers::number;
use crate::plan::{Backend, Keys, Upstream};
use crate::target::Target;
use crate::toml_text::quoted;

/// The upstreams of a configuration by name. Their addresses have no scheme: `proxy_pass` adds it.
pub(crate) type Upstreams = BTreeMap<String, Upstream>;

/// Converts an `upstream` block, and marks its directives. Its members have no scheme: [`with_scheme`] adds it.
pub(crate) fn read(block: &Directive, ledger: &mut Ledger) -> Upstream {
    ledger.mapped(block.id);
    let mut upstream = Upstream {
        name: block.word(0).to_owned(),
        ..Upstream::default()
    };
    let policy = |text: &str, upstream: &mut Upstream| {
        upstream.keys.insert("policy".to_owned(), quoted(text));
    };
    for directive in block.inside() {
        match directive.name.as_str() {
            "server" => {
                let backend = member(directive, ledger);
                upstream.backends.push(backend);
            }
            "least_conn" | "random" | "least_time" => {
                policy("least-in-flight", &mut upstream);
                ledger.mapped(directive.id);
            }
            "ip_hash" => {
                policy("hash", &mut upstream);
                upstream
                    .keys
                    .insert("hash_by".to_owned(), quoted("address"));
                ledger.mapped(directive.id);
            }
            "hash" => match hash_by(directive.word(0)) {
                Some(by) => {
                    policy("hash", &mut upstream);
                    upstream.keys.insert("hash_by".to_owned(), quoted(&by));
                    ledger.mapped(directive.id);
                    if directive.word(0) == "$request_uri" {
                        let text = "the front hashes the path without the query, which `$request_uri` contains";
                        ledger.note(directive.id, text);
                    }
                }
                None => ledger.risk(
                    directive.id,
                    format!("`hash {}` was not converted", directive.word(0)),
                ),
            },
            "zone" | "keepalive" | "keepalive_timeout" | "keepalive_requests"
            | "keepalive_time" => {
                ledger.dropped(
                    directive.id,
                    "the front keeps connections open without a setting",
                );
            }
            _ => {}
        }
    }
    upstream
}

/// The value of `hash_by` for the key of a `hash`; `None` if the front has none, as for a key of several parts such as
/// `$http_host$uri`. `$request_uri` loses its query.
fn hash_by(key: &str) -> Option<String> {
    let by = match key {
        "$remote_addr" | "$binary_remote_addr" => "address".to_owned(),
        "$uri" | "$request_uri" => "path".to_owned(),
        key => {
            let (kind, name) = ["$cookie_", "$http_", "$arg_"]
                .iter()
                .find_map(|it| Some((*it, key.strip_prefix(it)?)))?;
            let is_of_name = |it: char| it.is_ascii_alphanumeric() || it == '_';
            if name.is_empty() || !name.chars().all(is_of_name) {
                return None;
            }
            match kind {
                "$cookie_" => format!("cookie:{name}"),
                "$http_" => format!("header:{}", name.replace('_', "-")),
                _ => format!("query:{name}"),
            }
        }
    };
    Some(by)
}

/// The backend of a `server` line of an `upstream` block, with the bare address as its URL.
fn member(directive: &Directive, ledger: &mut Ledger) -> Backend {
    ledger.mapped(directive.id);
    let mut keys = Keys::new();
    for word in directive.words.iter().skip(1) {
        let (key, value) = word.split_once('=').unwrap_or((word, ""));
        match key {
            "weight" => {
                let weight = number(value).unwrap_or(1).clamp(1, 1000);
                keys.insert("weight".to_owned(), weight.to_string());
            }
            "backup" => drop(keys.insert("distance".to_owned(), "1".to_owned())),
            "down" => drop(keys.insert("activation".to_owned(), quoted("stopped"))),
            "max_conns" => {
                if let Some(most @ 1..=65535) = number(value) {
                    keys.insert("connections_max".to_owned(), most.to_string());
                }
            }
            "max_fails" | "fail_timeout" | "resolve" => {}
            _ => ledger.risk(
                directive.id,
                format!("`{word}` of a server was not converted"),
            ),
        }
    }
    Backend {
        place: Some(ledger.place(directive.id).clone()),
        url: directive.word(0).to_owned(),
        keys,
    }
}

/// An upstream with the scheme of a `proxy_pass`; `None` if it has no members, or the front cannot
/// reach one of them.
pub(crate) fn with_scheme(upstream: &Upstream, scheme: &str) -> Option<Upstream> {
    let mut result = upstream.clone();
    for backend in &mut result.backends {
        let target = target(scheme, &backend.url)?;
        backend.url = target.url;
        backend.keys.extend(target.keys);
    }
    (!result.backends.is_empty()).then_some(result)
}

/// The target for an address with this scheme; `None` if the front cannot reach it.
pub(crate) fn target(scheme: &str, address: &str) -> Option<Target> {
    match address.strip_prefix("unix:") {
        Some(path) => Target::new(&format!(
            "unix:{}|{scheme}://localhost",
            path.trim_end_matches(':')
        )),
        None => Target::new(&format!("{scheme}://{address}")),
    }
}

/// Reports an address that the front cannot reach.
pub(crate) fn unreachable(id: Id, address: &str, ledger: &mut Ledger) {
    ledger.unmapped(id, &format!("the front cannot reach `{address}`"));
}

//! `RewriteRule`s that pass WebSocket handshakes to a backend.

use crate::directive::Directive;
use crate::httpd::expressions;
use crate::httpd::proxy::whole_path;
use crate::httpd::redirect::{Rewrite, flags};
use crate::ledger::{Id, Ledger};
use crate::matcher::Matcher;
use crate::plan::{Action, Plan, Rule};
use crate::target::Target;
use crate::toml_text::quoted;

/// A `RewriteRule` that passes WebSocket handshakes to a backend, with their paths unchanged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TunnelRule {
    ids: Vec<Id>,
    matchers: Vec<Matcher>,
    /// The backend's URL.
    url: String,
}

/// Allows WebSocket on rules of mod_proxy where a `RewriteRule` passes its handshakes to the same backend.
pub(crate) fn open_tunnels(
    rewrites: &[Rewrite],
    proxied: &mut [Rule],
    plan: &Plan,
    ledger: &mut Ledger,
) {
    for rewrite in rewrites {
        if let Rewrite::Tunnel(tunnel) = rewrite {
            tunnel.open(proxied, plan, ledger);
        }
    }
}

impl TunnelRule {
    /// Sets `upgrade` on those rules that forward to the same backend with the same paths. Reports the rule as lost if
    /// there are none, or if another rule gets some of its paths.
    fn open(&self, rules: &mut [Rule], plan: &Plan, ledger: &mut Ledger) {
        let mut has_tunnel = false;
        let mut misses_some = false;
        for rule in rules {
            let Action::Forward { upstream, rewrite } = &rule.action else {
                continue;
            };
            let mut members = plan.upstreams[*upstream].backends.iter();
            let is_same_backend = members.all(|it| it.url == self.url);
            let takes_all_paths = self.matchers.iter().any(|it| it.covers(&rule.matcher));
            let keeps_paths = match (rewrite, &rule.matcher) {
                (None, _) => true,
                (Some(_), Matcher::Prefix(path)) => rule.action.keeps_path(path),
                _ => false,
            };
            if is_same_backend && takes_all_paths && keeps_paths {
                has_tunnel = true;
                let keys = &mut rule.settings.keys;
                keys.insert("upgrade".to_owned(), quoted("websocket"));
            } else {
                misses_some |= self.matchers.iter().any(|it| it.overlaps(&rule.matcher));
            }
        }
        for &id in &self.ids {
            if has_tunnel && !misses_some {
                ledger.mapped(id);
            } else {
                ledger.lost(
                    id,
                    "it sends only WebSocket to this backend, but all requests of a route go to one upstream",
                );
            }
        }
    }
}

/// The rule as one that passes on WebSocket handshakes; `None` if it does anything else.
pub(super) fn tunnel(directive: &Directive, conditions: &[&Directive]) -> Option<TunnelRule> {
    let (expression, target) = (directive.word(0), directive.word(1));
    let backend = Target::new(&tunnel_authority(expression, target)?)?;
    let flags = flags(directive);
    let has_plain_flags = flags.split(',').all(|it| matches!(it, "P" | "L" | "NC"));
    let asks_upgrade = |it: &&Directive| it.word(0).eq_ignore_ascii_case("%{HTTP:Upgrade}");
    let is_for_handshakes =
        conditions.iter().any(asks_upgrade) && conditions.iter().all(|it| is_handshake(it));
    let set = expressions::paths(expression, false);
    if !backend.is_tunnel || !backend.path.is_empty() {
        return None;
    }
    if !has_plain_flags || !is_for_handshakes || !set.is_exact {
        return None;
    }
    let directives = conditions.iter().chain([&directive]);
    Some(TunnelRule {
        ids: directives.map(|it| it.id).collect(),
        matchers: set.matchers,
        url: backend.url,
    })
}

/// The target's URL without its path, if the rule keeps the request's path; else `None`.
fn tunnel_authority(expression: &str, target: &str) -> Option<String> {
    let bare = expression.trim_start_matches('^').trim_end_matches('$');
    let base = match bare {
        "/?(.*)" | "/(.*)" => target.strip_suffix("/$1"),
        "(.*)" => target.strip_suffix("$1"),
        ".*" => target.strip_suffix("%{REQUEST_URI}"),
        _ => return whole_path(expression, target),
    };
    base.map(str::to_owned)
}

/// Whether a condition holds for WebSocket handshakes.
fn is_handshake(condition: &Directive) -> bool {
    let expected = match condition.word(0).to_ascii_lowercase().as_str() {
        "%{http:upgrade}" => "websocket",
        "%{http:connection}" => "upgrade",
        _ => return false,
    };
    // The test may be `=websocket`, or an expression such as `^WebSocket$`.
    let test = condition.word(1).to_ascii_lowercase();
    let word: String = test.chars().filter(char::is_ascii_alphabetic).collect();
    let has_plain_flags = matches!(flags(condition).as_str(), "" | "NC");
    word == expected && !test.starts_with('!') && has_plain_flags
}

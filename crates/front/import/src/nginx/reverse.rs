//! Converts `proxy_redirect`: what becomes of the URLs in `Location` and `Refresh` of backends.
//!
//! Without it, or with `default` alone, nginx puts the location's path in the place of the URL of its `proxy_pass`,
//! which the front does for each `rewrite` by itself. Everything else becomes `reverse_url`, in nginx's order.

use crate::directive::Directive;
use crate::expression::{Expression, translated};
use crate::ledger::Ledger;
use crate::nginx::backends::of_pass;
use crate::nginx::location::Scope;
use crate::nginx::variables::expand;
use crate::plan::Settings;
use crate::toml_text::{inline_table, quoted};

/// Whether the location says which URLs are changed, so that no `rewrite` is needed for that.
pub(super) fn is_said(scope: Scope<'_>) -> bool {
    in_force(scope).iter().any(|it| it.words != ["default"])
}

/// Sets the key `reverse_url` of a location that passes requests on. `path` is that of the location; `None` if it has an
/// expression or only a name. `port` is the value of `$server_port`.
pub(super) fn urls(
    scope: Scope<'_>,
    path: Option<&str>,
    port: u16,
    settings: &mut Settings,
    ledger: &mut Ledger,
) {
    let Some(pass) = scope.own("proxy_pass") else {
        return;
    };
    let directives = in_force(scope);
    if !is_said(scope) {
        return directives.iter().for_each(|it| ledger.mapped(it.id));
    }
    let place = PassPlace {
        scope,
        url: pass.word(0),
        path,
        port,
    };
    let mut rules = Vec::new();
    // With `off`, nginx ignores the others of its level.
    if directives.iter().any(|it| it.words == ["off"]) {
        directives.iter().for_each(|it| ledger.mapped(it.id));
    } else {
        for directive in &directives {
            match place.rule(directive) {
                Some(rule) => {
                    rules.push(rule);
                    ledger.mapped(directive.id);
                }
                None => {
                    let text = format!(
                        "`{}` was not converted: URLs that it changes lead clients elsewhere",
                        directive.shown(ledger)
                    );
                    ledger.lost(directive.id, text);
                }
            }
        }
    }
    let list = format!("[{}]", rules.join(", "));
    settings.keys.insert("reverse_url".to_owned(), list);
}

fn in_force(scope: Scope<'_>) -> Vec<&Directive> {
    scope.level(|it| it.name == "proxy_redirect")
}

/// A location that passes requests on.
struct PassPlace<'a> {
    scope: Scope<'a>,
    /// The URL of its `proxy_pass`.
    url: &'a str,
    path: Option<&'a str>,
    port: u16,
}

impl PassPlace<'_> {
    /// The rule for a `proxy_redirect`, as the file has it; `None` if the front cannot express it.
    fn rule(&self, directive: &Directive) -> Option<String> {
        let (from, to) = match &directive.words[..] {
            [word] if word == "default" => return self.default_rule(),
            [from, to] => (from.as_str(), to.as_str()),
            _ => return None,
        };
        let expression = match (from.strip_prefix("~*"), from.strip_prefix('~')) {
            (Some(pcre), _) => Some(translated(pcre, true)),
            (None, Some(pcre)) => Some(translated(pcre, false)),
            (None, None) => None,
        };
        let to = self.text(to, expression.as_ref())?;
        match &expression {
            Some(expression) if !expression.is_exact => None,
            Some(expression) => table("regex", expression.text(), &to),
            None => table("prefix", &self.text(from, None)?, &to),
        }
    }

    /// The rule of `default`: the path of the location stands in the place of the URL of its `proxy_pass`.
    fn default_rule(&self) -> Option<String> {
        let (_, behind) = self.url.split_once("://")?;
        if behind.starts_with("unix:") || self.url.contains('$') {
            return None;
        }
        let (prefix, path) = if behind.contains('/') {
            (self.url.to_owned(), self.path?)
        } else {
            (format!("{}/", self.url), "/")
        };
        table(
            "prefix",
            &self.text(&prefix, None)?,
            &self.text(path, None)?,
        )
    }

    /// A text with placeholders of the front in the place of variables; `None` if it has others, or signs that are in no
    /// URL.
    fn text(&self, text: &str, expression: Option<&Expression>) -> Option<String> {
        let known = |name: &str| {
            let of_site = match name {
                "scheme" => "{scheme}".to_owned(),
                "host" => "{host}".to_owned(),
                "http_host" => "{authority}".to_owned(),
                "server_port" => self.port.to_string(),
                group => {
                    let captured = expression.and_then(|it| it.placeholder(group));
                    return captured.or_else(|| of_pass(group, self.scope));
                }
            };
            Some(of_site)
        };
        expand(text, known).filter(|it| it.bytes().all(|byte| byte.is_ascii_graphic()))
    }
}

/// A table of `reverse_url` with this key; `None` if its text is empty, with which every URL begins.
fn table(key: &str, text: &str, to: &str) -> Option<String> {
    let pairs = [(key, text), ("to", to)].map(|(key, text)| (key.to_owned(), quoted(text)));
    (!text.is_empty()).then(|| inline_table(pairs.into_iter()))
}

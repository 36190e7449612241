//! Cookies of backends that httpd changes: `ProxyPassReverseCookieDomain` and `ProxyPassReverseCookiePath`.
//!
//! Of several the first that fits a cookie changes it, those of outer levels before others, as in the lists of the front.

use crate::directive::Directive;
use crate::ledger::Ledger;
use crate::plan::Settings;
use crate::toml_text::{inline_table, quoted};

/// Adds what the directive says to the list of tables of a route; a text that no table can have is reported, and cookies
/// are as the application sends them.
pub(super) fn turn_back(directive: &Directive, settings: &mut Settings, ledger: &mut Ledger) {
    let (key, is_domain) = match directive.name.as_str() {
        "proxypassreversecookiedomain" => ("cookie_domain", true),
        _ => ("cookie_path", false),
    };
    // A dot before a domain means nothing to browsers.
    let bare = |text: &String| match text.strip_prefix('.') {
        Some(behind) if is_domain => behind.to_owned(),
        _ => text.clone(),
    };
    // Behind a semicolon is another attribute. With a third word httpd fills in variables.
    let is_value =
        |text: &String| !text.is_empty() && !text.contains([';', '{', '}', '%']) && text.is_ascii();
    match &directive.words[..] {
        [from, to] if is_value(from) && is_value(to) => {
            ledger.mapped(directive.id);
            let texts = [("from", bare(from)), ("to", bare(to))];
            let pairs = texts.map(|(key, text)| (key.to_owned(), quoted(&text)));
            settings.add_table(key, &inline_table(pairs.into_iter()));
        }
        _ => {
            let text = "this was not converted, and cookies are as the application sends them";
            ledger.lost(directive.id, text);
        }
    }
}

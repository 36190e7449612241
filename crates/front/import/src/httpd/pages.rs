//! Error pages of httpd: `ErrorDocument` and `ProxyErrorOverride`.

use std::collections::BTreeMap;

use crate::common_settings::REPLACE_ERRORS;
use crate::directive::Directive;
use crate::httpd::files::Site;
use crate::ledger::Ledger;
use crate::matcher::Matcher;
use crate::pages::{page, status};
use crate::plan::{Access, Action, Keys, Rule};
use crate::toml_text::quoted;

/// Gives all rules of a virtual host the error pages of its `ErrorDocument`s. Pages that the front cannot show are
/// reported.
pub(super) fn give(site: Site<'_>, rules: &mut [Rule], ledger: &mut Ledger) {
    let mut documents: BTreeMap<String, &Directive> = BTreeMap::new();
    for directive in site.all().filter(|it| it.name == "errordocument") {
        match status(directive.word(0)) {
            Some(status) => drop(documents.insert(status, directive)),
            None => ledger.dropped(directive.id, "it is no status of an error"),
        }
        // A later one for the same status replaces it.
        ledger.mapped(directive.id);
    }
    if documents.is_empty() || sends_all_away(rules) {
        return;
    }
    let mut pages = Keys::new();
    for (status, directive) in documents {
        match document(directive, site, rules) {
            Ok(Some(file)) => drop(pages.insert(status, file)),
            Ok(None) => {}
            Err(text) => ledger.risk(directive.id, text),
        }
    }
    for rule in rules {
        rule.settings.pages.extend(pages.clone());
    }
}

/// Which error responses of backends httpd replaces with its own pages, as a value of
/// `replace_errors`; `None`: none.
pub(super) fn replaced(site: Site<'_>, ledger: &mut Ledger) -> Option<String> {
    let mut found = None;
    for directive in site.all().filter(|it| it.name == "proxyerroroverride") {
        ledger.mapped(directive.id);
        let statuses = directive.words.iter().skip(1);
        let listed: Vec<String> = statuses
            .filter_map(|it| Some(quoted(&status(it)?)))
            .collect();
        found = if !directive.word(0).eq_ignore_ascii_case("on") {
            None
        } else if listed.is_empty() {
            // A single status means: from this one on.
            Some("400".to_owned())
        } else {
            Some(format!("[{}]", listed.join(", ")))
        };
    }
    found
}

/// Sets `replace_errors` on the rules that lead to backends of mod_proxy.
pub(super) fn replace<'r>(replaced: Option<&str>, rules: impl Iterator<Item = &'r mut Rule>) {
    let Some(replaced) = replaced else {
        return;
    };
    for rule in rules {
        if matches!(rule.action, Action::Forward { .. }) {
            let pages = &mut rule.settings.pages;
            pages.insert(REPLACE_ERRORS.to_owned(), replaced.to_owned());
        }
    }
}

/// Whether every request is redirected, so that the front never shows an error page.
fn sends_all_away(rules: &[Rule]) -> bool {
    let everything = Matcher::everything();
    let redirects = |rule: &Rule| matches!(rule.action, Action::Redirect { .. });
    let mut of_all = rules.iter().filter(|rule| rule.matcher == everything);
    let Some(last) = of_all.find(|rule| rule.is_unconditional()) else {
        return false;
    };
    let mut before = rules.iter().take_while(|rule| rule.matcher != everything);
    redirects(last) && before.all(redirects)
}

/// The file of an `ErrorDocument`; `None` for the built-in page of httpd.
///
/// # Errors
/// The reason why the front cannot show the page.
fn document(
    directive: &Directive,
    site: Site<'_>,
    rules: &[Rule],
) -> Result<Option<String>, String> {
    let text = directive.word(1);
    if text.eq_ignore_ascii_case("default") {
        return Ok(None);
    }
    if text.starts_with("http://") || text.starts_with("https://") {
        return Err(
            "it sends clients to another URL, which the front does not do for an error".to_owned(),
        );
    }
    if !text.starts_with('/') {
        return Err(
            "it is a text: write it into a file, and name that in `[error_pages]`".to_owned(),
        );
    }
    if text.contains(['?', '#', '%']) || directive.words.len() > 2 {
        return Err("what it names is no plain file".to_owned());
    }
    page(site.files, &page_path(text, site, rules)?).map(Some)
}

/// The path of the file that a server sends for a URL path.
///
/// # Errors
/// The reason why there is none that all clients get.
fn page_path(url_path: &str, site: Site<'_>, rules: &[Rule]) -> Result<String, String> {
    let mut unconditional = rules.iter().filter(|rule| rule.is_unconditional());
    let rule = unconditional.find(|rule| rule.matcher.has(url_path));
    let is_guarded =
        |rule: &Rule| rule.settings.access != Access::Open || rule.settings.sign_on.is_some();
    if rule.is_some_and(is_guarded) {
        return Err("the source guards its page".to_owned());
    }
    match rule.map(|rule| (&rule.action, &rule.matcher)) {
        Some((Action::Serve(serve), matcher)) => {
            // An `Alias` replaces its own path.
            let below = match (&serve.rewrite, matcher) {
                (Some(_), Matcher::Prefix(above)) => url_path.strip_prefix(above.as_str()),
                _ => None,
            };
            Ok(format!("{}{}", serve.source, below.unwrap_or(url_path)))
        }
        Some((Action::Files, _)) | None => {
            let root = site.find("documentroot");
            let root = root.ok_or("no directory has its page")?;
            Ok(format!("{}{url_path}", root.word(0).trim_end_matches('/')))
        }
        Some(_) => Err("its page is not among the files that this server serves".to_owned()),
    }
}

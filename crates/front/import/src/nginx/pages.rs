//! Error pages of nginx: `error_page` and `proxy_intercept_errors`.

use std::collections::HashMap;

use crate::common_settings::REPLACE_ERRORS;
use crate::directive::Directive;
use crate::expression::translated;
use crate::files::Files;
use crate::ledger::{Id, Ledger};
use crate::nginx::location::{Scope, modifier};
use crate::nginx::sign_on::is_never_shown;
use crate::pages::{page, status};
use crate::plan::Keys;
use crate::toml_text::quoted_list;

/// The error pages found so far, by their URIs, so that each is looked up once.
#[derive(Debug, Default)]
pub(crate) struct Pages {
    found: HashMap<String, Result<String, String>>,
}

/// A server of nginx whose error pages are converted: its directives, and access to its
/// files.
#[derive(Clone, Copy)]
pub(crate) struct PageServer<'a> {
    pub(crate) inner: &'a [Directive],
    pub(crate) files: &'a dyn Files,
}

impl Pages {
    /// The keys for a location's error pages.
    pub(crate) fn keys(
        &mut self,
        scope: Scope<'_>,
        server: PageServer<'_>,
        ledger: &mut Ledger,
    ) -> Keys {
        let mut keys = Keys::new();
        for directive in scope.level(|it| it.name == "error_page") {
            let Some((uri, codes)) = directive.words.split_last() else {
                continue;
            };
            // It is for clients that have not signed on.
            if ledger.is_handled(directive.id) {
                continue;
            }
            match self.file(uri, codes, scope, server, &mut *ledger) {
                Ok(file) => {
                    ledger.mapped(directive.id);
                    let statuses = codes.iter().filter_map(|it| status(it));
                    keys.extend(statuses.map(|it| (it, file.clone())));
                }
                Err(_) if is_never_shown(directive, scope) => ledger.mapped(directive.id),
                Err(text) => ledger.risk(directive.id, text),
            }
        }
        if let Some(intercepts) = scope.find("proxy_intercept_errors") {
            ledger.mapped(intercepts.id);
            // Without a page of the source, the backend's error response is passed on.
            if intercepts.word(0) == "on" && !keys.is_empty() {
                let statuses: Vec<String> = keys.keys().cloned().collect();
                let value = match &statuses[..] {
                    [one] => format!("[{}]", quoted_list([one])),
                    all => quoted_list(all),
                };
                keys.insert(REPLACE_ERRORS.to_owned(), value);
            }
        }
        keys
    }

    /// The path of the file of an error page, looked up once for each URI; `Err` says why the front cannot show it.
    fn file(
        &mut self,
        uri: &str,
        codes: &[String],
        scope: Scope<'_>,
        server: PageServer<'_>,
        ledger: &mut Ledger,
    ) -> Result<String, String> {
        if codes.iter().any(|it| it.starts_with('=')) {
            return Err(
                "it changes the status of responses (`=CODE`), which the front does not do"
                    .to_owned(),
            );
        }
        if !uri.starts_with('/') || uri.contains(['$', '?', '#', '%']) {
            return Err(
                "it sends requests elsewhere, which the front does not do for an error".to_owned(),
            );
        }
        if let Some(known) = self.found.get(uri) {
            return known.clone();
        }
        let found = locate(uri, scope, server).and_then(|(path, id)| {
            let file = page(server.files, &path)?;
            ledger.mapped(id);
            Ok(file)
        });
        self.found.insert(uri.to_owned(), found.clone());
        found
    }
}

/// The file of a URI and the directive that places it.
///
/// # Errors
/// The reason why the front cannot show the page.
fn locate(uri: &str, scope: Scope<'_>, server: PageServer<'_>) -> Result<(String, Id), String> {
    let location = location(uri, server.inner)?;
    let own = location.map(Directive::inside).unwrap_or_default();
    let outer = scope.blocks.len().saturating_sub(2);
    let blocks: Vec<&[Directive]> = std::iter::once(own)
        .chain(scope.blocks[outer..].iter().copied())
        .collect();
    let all = Scope {
        expression: None,
        blocks: &blocks,
        ..scope
    };
    if own.iter().any(decides) {
        return Err("its page is no plain file".to_owned());
    }
    if GUARDS.iter().any(|it| all.find(it).is_some()) {
        return Err("the source guards its page".to_owned());
    }
    path_in(location, all, uri)
}

/// The path of a file below the `alias` or `root` in force at its location, and that directive.
fn path_in(
    location: Option<&Directive>,
    all: Scope<'_>,
    uri: &str,
) -> Result<(String, Id), String> {
    let alias = all.own("alias");
    let text = location
        .and_then(|it| modifier(&it.words))
        .map_or("", |it| it.1);
    let (root, below) = match (alias, all.find("root")) {
        (Some(alias), _) => (alias, uri.strip_prefix(text).unwrap_or(uri)),
        (None, Some(root)) => (root, uri),
        (None, None) => return Err("no directory has its page".to_owned()),
    };
    let directory = root.word(0);
    let is_plain = directory.starts_with('/') && !directory.contains('$');
    let joined = match alias {
        Some(_) => format!("{directory}{below}"),
        None => format!("{}{below}", directory.trim_end_matches('/')),
    };
    is_plain
        .then_some((joined, root.id))
        .ok_or_else(|| "the directory of its page is not plain".to_owned())
}

/// Whether a location with this directive answers in another way than by the file at the path.
fn decides(directive: &Directive) -> bool {
    let name = directive.name.as_str();
    name.ends_with("_pass") || matches!(name, "return" | "rewrite" | "if" | "try_files")
}

/// The location that decides about a URI; `Ok(None)` if there is none.
///
/// # Errors
/// An expression may decide, whose location is not read here.
pub(super) fn location<'d>(
    uri: &str,
    server: &'d [Directive],
) -> Result<Option<&'d Directive>, String> {
    // The longest prefix so far: its length, whether nginx asks no expressions after it, and its location.
    let mut longest: Option<(usize, bool, &Directive)> = None;
    let mut is_expression = false;
    for it in server.iter().filter(|it| it.name == "location") {
        match modifier(&it.words) {
            Some(("=", text)) if text == uri => return Ok(Some(it)),
            Some(("" | "^~", text)) if uri.starts_with(text) => {
                let is_longer = longest.is_none_or(|known| text.len() > known.0);
                let firm = it.word(0).starts_with("^~");
                longest = is_longer.then_some((text.len(), firm, it)).or(longest);
            }
            Some(("~" | "~*", text)) => {
                let ignores_case = it.word(0).starts_with("~*");
                is_expression |= translated(text, ignores_case).has(uri);
            }
            _ => {}
        }
    }
    let is_firm = longest.is_some_and(|it| it.1);
    if is_expression && !is_firm {
        return Err("an expression may decide about its page".to_owned());
    }
    Ok(longest.map(|it| it.2))
}

/// Directives by which nginx lets in only some clients.
const GUARDS: [&str; 6] = [
    "allow",
    "deny",
    "auth_basic",
    "auth_request",
    "auth_jwt",
    "limit_except",
];

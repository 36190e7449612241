//! Files that a location serves: `root`, `alias`, `index`, `try_files`.

use std::path::Path;

use crate::directive::Directive;
use crate::directory::contents;
use crate::files::Files;
use crate::ledger::{Ledger, Weight};
use crate::matcher::Matcher;
use crate::nginx::location::Scope;
use crate::plan::{Action, Keys, Rule, Serve};
use crate::toml_text::{quoted, quoted_list};

/// What a location does for paths that are no files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum MissingRule {
    /// With status 404.
    NotFound,
    /// Sends the page at this path.
    Page(String),
    /// Passes the request to this named location.
    Named(String),
}

/// Reads a `try_files`; without one, missing files are answered 404. `None` if the front cannot do what it says.
pub(crate) fn missing(directive: Option<&Directive>) -> Option<MissingRule> {
    let Some(directive) = directive else {
        return Some(MissingRule::NotFound);
    };
    let (last, tried) = directive.words.split_last()?;
    let is_usual = |it: &String| matches!(it.as_str(), "$uri" | "$uri/" | "$uri/index.html");
    if !tried.iter().all(is_usual) {
        return None;
    }
    if last == "=404" {
        return Some(MissingRule::NotFound);
    }
    if last.starts_with('@') {
        return Some(MissingRule::Named(last.clone()));
    }
    let page = last.strip_prefix('/').unwrap_or(last);
    let is_sign = |it: u8| it.is_ascii_alphanumeric() || b"-_.".contains(&it);
    let is_plain = !page.is_empty() && page.bytes().all(is_sign);
    is_plain.then(|| MissingRule::Page(page.to_owned()))
}

/// The action of a location without `proxy_pass`. `upstream` gets requests for which there is no file, and all if the
/// front has none of the files. Without one these are left to the old server ([`Action::Files`]).
pub(crate) fn serve(
    scope: Scope<'_>,
    matcher: &Matcher,
    path: Option<&str>,
    upstream: Option<usize>,
    files: &dyn Files,
    ledger: &mut Ledger,
) -> Action {
    let action = served(scope, matcher, path, upstream, files, ledger);
    match upstream {
        Some(upstream) if action == Action::Files => Action::Forward {
            upstream,
            rewrite: None,
        },
        _ => action,
    }
}

/// The action that serves the directory of a `root` or `alias`; [`Action::Files`], with the reason in the ledger, if
/// the front cannot serve it.
fn served(
    scope: Scope<'_>,
    matcher: &Matcher,
    path: Option<&str>,
    upstream: Option<usize>,
    files: &dyn Files,
    ledger: &mut Ledger,
) -> Action {
    let own = scope.blocks.first().copied().unwrap_or_default();
    let alias = own.iter().find(|it| it.name == "alias");
    let Some(root) = alias.or_else(|| scope.find("root")) else {
        return Action::Files;
    };
    let directory = root.word(0).trim_end_matches('/');
    let is_alias = alias.is_some();
    // The `alias` replaces an inherited `root`.
    if let Some(other) = scope.find("root").filter(|_| is_alias) {
        ledger.handle(other.id);
    }
    let is_expression = matcher.is_expression() && !is_alias;
    let has_text = matches!(matcher, Matcher::Prefix(_) | Matcher::Pattern(_))
        || (matches!(matcher, Matcher::Exact(_)) && !is_alias);
    let path = match path {
        Some(path) if has_text => path,
        // An expression has no path of its own, and below a `root` none is needed.
        _ if is_expression => "",
        _ => {
            ledger.kept_or_risk(root.id, FOR_PREFIXES);
            return Action::Files;
        }
    };
    // nginx replaces the text of the location by that of the `alias`.
    let fits = !is_alias || path.ends_with('/') == root.word(0).ends_with('/');
    let fault = match directory {
        _ if directory.contains('$') => Some("their path contains variables"),
        _ if !directory.starts_with('/') => Some(
            "their path is relative to nginx's prefix: give it by --prefix (`nginx -V` shows it), or write the path absolutely",
        ),
        _ if !fits => Some("one of location and `alias` ends with a slash"),
        _ => None,
    };
    if let Some(fault) = fault {
        let text = format!("the front does not serve these files: {fault}");
        ledger.kept_or_risk(root.id, &text);
        return Action::Files;
    }
    if files.names(Path::new(directory)).is_none() {
        let text = format!(
            "the directory `{directory}` does not exist on this machine: create it and import again, or run the import where it is"
        );
        ledger.kept_or_risk(root.id, &text);
        return Action::Files;
    }
    let inside = contents(files, Path::new(directory), &[]);
    if inside.is_bare && upstream.is_none() {
        ledger.dropped(
            root.id,
            "it holds only the default page of the distribution",
        );
        return Action::Files;
    }
    ledger.mapped(root.id);
    let mut keys = keys(scope, path, upstream.is_some(), ledger);
    if is_expression {
        // The expression decides about the path of the index file, too, which the front does not ask again.
        keys.insert("index".to_owned(), "[]".to_owned());
        if let Some(index) = scope.own("index") {
            ledger.risk(
                index.id,
                "directories that an expression matches are answered 404 here",
            );
        }
    }
    Action::Serve(Box::new(Serve {
        directory: files.located(Path::new(directory)),
        source: directory.to_owned(),
        rewrite: is_alias.then(|| "/".to_owned()),
        upstream,
        keys,
    }))
}

/// The keys of a route that serves the files below `path`. `forwards` says that an upstream gets requests for missing
/// files. Directives without a counterpart are reported.
fn keys(scope: Scope<'_>, path: &str, forwards: bool, ledger: &mut Ledger) -> Keys {
    let mut keys = Keys::new();
    let word = scope.find("charset").map_or("off", |it| it.word(0));
    let charset = if word.contains('$') { "off" } else { word };
    keys.insert("charset".to_owned(), quoted(charset));
    if let Some(index) = scope.find("index") {
        let is_name = |it: &&String| !it.contains(['/', '$']);
        let names: Vec<&String> = index.words.iter().filter(is_name).collect();
        if !names.is_empty() {
            keys.insert("index".to_owned(), quoted_list(names));
        }
        ledger.mapped(index.id);
    }
    if let Some(index) = tried_index(scope.own("try_files")) {
        keys.insert("index".to_owned(), index.to_owned());
    }
    if let Some(listing) = scope.find("autoindex").filter(|it| it.word(0) == "on") {
        ledger.risk(
            listing.id,
            "directories are not listed here: they are answered 404",
        );
    }
    if let Some(tries) = scope.own("try_files") {
        match missing(Some(tries)) {
            Some(MissingRule::Page(page)) if path == "/" && !forwards => {
                keys.insert("fallback".to_owned(), quoted(&page));
                ledger.mapped(tries.id);
                ledger.note(tries.id, "the front sends this page for missing paths, but not for names that contain a dot");
            }
            Some(MissingRule::Page(_)) => {
                ledger.lost(tries.id, "the page for missing files was not converted");
            }
            _ => ledger.mapped(tries.id),
        }
    }
    keys
}

/// The value of `index` for a location whose `try_files` tries files but no directories; `None` if the directive
/// `index` decides.
fn tried_index(tries: Option<&Directive>) -> Option<&'static str> {
    let tries = tries?;
    let has = |it: &str| tries.words.iter().any(|word| word == it);
    match missing(Some(tries)) {
        _ if has("$uri/") => None,
        Some(MissingRule::Page(page)) if page == "index.html" => None,
        _ if has("$uri/index.html") => Some("\"index.html\""),
        _ => Some("[]"),
    }
}

/// Gives served files the media types of `types`, which add to those of an included `mime.types`. Without that the
/// source knows no others: then all files get one type, or the rule is closed.
pub(crate) fn give_types(rule: &mut Rule, scope: Scope<'_>, ledger: &mut Ledger) {
    let tables = scope.level(|it| matches!(it.name.as_str(), "types" | MIME_TYPES));
    let default = scope.find("default_type");
    if let Some(default) = default.filter(|it| !tables.is_empty() || it.word(0) == UNTYPED) {
        let text = "files of unknown kinds are `application/octet-stream`";
        ledger.dropped(default.id, text);
    }
    if let (Action::Files, Some(own)) = (&rule.action, scope.own("types")) {
        // Another rule may serve these files, for instance as the index of a directory.
        ledger.unmapped(own.id, TYPES_OF_THEIR_OWN);
        rule.action = Action::Closed;
    }
    let Action::Serve(serve) = &mut rule.action else {
        return;
    };
    if tables.is_empty() {
        return give_few_types(rule, default, ledger);
    }
    let own: Vec<&Directive> = tables
        .iter()
        .copied()
        .filter(|it| it.name == "types")
        .collect();
    if own.is_empty() {
        return;
    }
    let has_mime_types = own.len() < tables.len();
    let words = own.iter().flat_map(|it| &it.words);
    let entries: Option<Vec<String>> = words.map(|it| type_entry(it)).collect();
    let default_type = default.map_or("text/plain", |it| it.word(0));
    match entries {
        Some(entries) if has_mime_types => {
            if !entries.is_empty() {
                let table = format!("{{ {} }}", entries.join(", "));
                serve.keys.insert("types".to_owned(), table);
            }
        }
        // An empty table: all files have the default type. The field would also be on responses of an upstream.
        Some(entries)
            if entries.is_empty() && serve.upstream.is_none() && is_type(default_type) =>
        {
            let fields = &mut rule.settings.response_fields.set;
            fields.insert("Content-Type".to_owned(), default_type.to_owned());
        }
        _ => {
            own.iter()
                .for_each(|it| ledger.unmapped(it.id, TYPES_OF_THEIR_OWN));
            rule.action = Action::Closed;
            return;
        }
    }
    own.iter().for_each(|it| ledger.mapped(it.id));
}

/// The media type that the extension of a path has by the `types` in force, or by `mime.types` if that is one of the
/// usual ones of texts; `None`: that of `default_type`.
pub(crate) fn type_of<'d>(path: &str, scope: Scope<'d>) -> Option<&'d str> {
    let name = path.rsplit('/').next()?;
    let (_, extension) = name.rsplit_once('.')?;
    let tables = scope.level(|it| matches!(it.name.as_str(), "types" | MIME_TYPES));
    let own = tables.iter().flat_map(|it| it.words.iter());
    let mut pairs = own.filter_map(|it| it.split_once('='));
    let of_table = pairs.find(|it| it.0.eq_ignore_ascii_case(extension));
    let known: &[(&str, &str)] = if tables.is_empty() {
        OF_NGINX
    } else if tables.iter().any(|it| it.name == MIME_TYPES) {
        OF_TEXTS
    } else {
        &[]
    };
    let mut usual = known.iter().copied();
    let found = of_table.or_else(|| usual.find(|it| it.0.eq_ignore_ascii_case(extension)));
    found.map(|it| it.1)
}

/// Gives served files the media types of a source without `types`: it knows pages and two kinds of images, and sends
/// all other files with the default type. So no other file may get a type that browsers run.
fn give_few_types(rule: &mut Rule, default: Option<&Directive>, ledger: &mut Ledger) {
    let kind = default.map_or("text/plain", |it| it.word(0));
    let Action::Serve(serve) = &mut rule.action else {
        return;
    };
    if !is_type(kind) {
        return;
    }
    let entry = |it: &&str| format!("{} = {}", quoted(it), quoted(kind));
    let entries: Vec<String> = RUN_BY_BROWSERS.iter().map(entry).collect();
    let table = format!("{{ {} }}", entries.join(", "));
    serve.keys.insert("types".to_owned(), table);
    let text = format!(
        "no `types` and no `mime.types` are in force here, so all files but pages are `{kind}`: `types` says so of what \
         browsers would run"
    );
    ledger.say(Weight::Note, rule.place.clone(), text);
    if let Some(default) = default {
        ledger.mapped(default.id);
    }
}

/// The entry of a `types` table for `EXTENSION=TYPE`; `None` if either is not valid.
fn type_entry(pair: &str) -> Option<String> {
    let (extension, kind) = pair.split_once('=')?;
    let is_plain = !extension.is_empty() && extension.bytes().all(|it| it.is_ascii_alphanumeric());
    let lower = extension.to_ascii_lowercase();
    (is_plain && is_type(kind)).then(|| format!("{} = {}", quoted(&lower), quoted(kind)))
}

/// Whether a text is a media type without parameters.
fn is_type(text: &str) -> bool {
    let is_name = |it: &str| {
        let is_sign = |byte: u8| byte.is_ascii_alphanumeric() || b"+-._".contains(&byte);
        !it.is_empty() && it.bytes().all(is_sign)
    };
    text.split_once('/')
        .is_some_and(|it| is_name(it.0) && is_name(it.1))
}

/// Extensions of files, apart from pages, to which the front gives a type that browsers run.
const RUN_BY_BROWSERS: &[&str] = &[
    "htc", "js", "mht", "mhtml", "mjs", "mml", "rdf", "rss", "atom", "shtml", "svg", "svgz", "swf",
    "wasm", "xht", "xhtml", "xml", "xsl", "xslt",
];

/// The types of texts in the `mime.types` of nginx, by extension.
const OF_TEXTS: &[(&str, &str)] = &[
    ("css", "text/css"),
    ("htm", "text/html"),
    ("html", "text/html"),
    ("js", "application/javascript"),
    ("json", "application/json"),
    ("shtml", "text/html"),
    ("svg", "image/svg+xml"),
    ("txt", "text/plain"),
    ("xml", "text/xml"),
];

/// The types that nginx knows without `types`.
const OF_NGINX: &[(&str, &str)] = &[
    ("gif", "image/gif"),
    ("html", "text/html"),
    ("jpg", "image/jpeg"),
];

/// The type that the front gives files of unknown kinds.
const UNTYPED: &str = "application/octet-stream";

const TYPES_OF_THEIR_OWN: &str = "its files have types of their own, which were not converted";

/// The name of the directive that stands in for an included `mime.types`.
pub(crate) const MIME_TYPES: &str = "mime.types";

const FOR_PREFIXES: &str = "the front does not serve an `alias` of an expression or of one path";

//! Compression: converts `gzip` of nginx and mod_deflate of httpd into the keys `compress…` of routes.

use catamaran_proxy::config::MediaPattern;

use crate::directive::Directive;
use crate::ledger::Ledger;
use crate::mod_jk::workers::number;
use crate::plan::Keys;
use crate::toml_text::{quoted, quoted_list};

/// The compression keys of an nginx location, or of a server outside its locations; `find` returns the directive with
/// a given name that is in force there.
pub(crate) fn of_nginx<'d>(
    find: impl Fn(&str) -> Option<&'d Directive>,
    ledger: &mut Ledger,
) -> Keys {
    let mut keys = Keys::new();
    let Some(gzip) = find("gzip") else {
        return keys;
    };
    ledger.mapped(gzip.id);
    if gzip.word(0) != "on" {
        return keys;
    }
    keys.insert("compress".to_owned(), quoted("gzip"));
    let mut listed: &[String] = &[];
    if let Some(types) = find("gzip_types") {
        ledger.mapped(types.id);
        listed = &types.words;
    }
    // With `*`, the front's own list of types applies.
    if !listed.iter().any(|media_type| media_type == "*") {
        // nginx compresses HTML whatever the list has.
        let types = std::iter::once("text/html").chain(listed.iter().map(String::as_str));
        keys.extend(media_types(types));
    }
    keys.insert("compress_min".to_owned(), NGINX_MIN.to_owned());
    if let Some(minimum) = find("gzip_min_length") {
        match number(minimum.word(0)).filter(|bytes| *bytes <= MIN_MAX) {
            Some(bytes) => {
                keys.insert("compress_min".to_owned(), bytes.to_string());
                ledger.mapped(minimum.id);
            }
            None => ledger.dropped(minimum.id, "it is not a length; the default applies"),
        }
    }
    keys
}

/// The compression keys of an httpd server or section.
pub(crate) fn of_httpd<'d>(
    directives: impl IntoIterator<Item = &'d Directive>,
    ledger: &mut Ledger,
) -> Keys {
    let mut keys = Keys::new();
    let mut types: Vec<&str> = Vec::new();
    let mut has_filter_of_all = false;
    for directive in directives {
        let upper = directive.word(0).to_ascii_uppercase();
        let mut filters = upper.split(';');
        let compresses = filters.any(|it| matches!(it, "DEFLATE" | "BROTLI_COMPRESS"));
        match directive.name.as_str() {
            "addoutputfilterbytype" if compresses => {
                ledger.mapped(directive.id);
                keys.insert("compress".to_owned(), quoted("gzip"));
                types.extend(directive.words.iter().skip(1).map(String::as_str));
            }
            "setoutputfilter" | "addoutputfilter" if compresses => {
                ledger.mapped(directive.id);
                keys.insert("compress".to_owned(), quoted("gzip"));
                has_filter_of_all = true;
                let text = "texts are compressed (`compress_types`), and no images or archives";
                ledger.note(directive.id, text);
            }
            name if name.starts_with("deflate") || name.starts_with("brotli") => {
                ledger.dropped(directive.id, "the front compresses by settings of its own");
            }
            name if name.starts_with("setenvif") && is_about_compression(directive) => {
                ledger.dropped(
                    directive.id,
                    "the front compresses texts alone, for clients that ask for it",
                );
            }
            _ => {}
        }
    }
    // For a filter of all responses, the front's own list of types applies.
    if !has_filter_of_all {
        keys.extend(media_types(types));
    }
    keys
}

/// Whether a `SetEnvIf` sets only variables that mod_deflate or mod_brotli reads.
fn is_about_compression(directive: &Directive) -> bool {
    // The words before the variables are what is tested, and the expression.
    let variables = directive.words.get(2..).unwrap_or_default();
    let is_read_by_them = |variable: &String| {
        let bare = variable.trim_start_matches('!');
        let name = bare.split_once('=').map_or(bare, |(name, _)| name);
        VARIABLES.split(' ').any(|it| it == name)
    };
    !variables.is_empty() && variables.iter().all(is_read_by_them)
}

/// The key `compress_types` and its value, from those media types that the front supports.
fn media_types<'t>(types: impl IntoIterator<Item = &'t str>) -> Option<(String, String)> {
    let mut found: Vec<String> = Vec::new();
    for text in types {
        let lower = text.to_ascii_lowercase();
        if MediaPattern::parse(&lower).is_some() && !found.contains(&lower) {
            found.push(lower);
        }
    }
    (!found.is_empty()).then(|| ("compress_types".to_owned(), quoted_list(found)))
}

/// The variables that mod_deflate and mod_brotli read, separated by blanks.
const VARIABLES: &str = "no-gzip dont-vary gzip-only-text/html force-gzip no-brotli";

/// The length in bytes from which on nginx compresses if `gzip_min_length` is not set.
const NGINX_MIN: &str = "20";

/// The largest `compress_min` that the front accepts, in bytes.
const MIN_MAX: u64 = 1 << 30;

//! Compression: converts `gzip` of nginx and mod_deflate of httpd into the keys `compress…` of routes.

use catamaran_proxy::config::MediaPattern;

use crate::directive::Directive;
use crate::ledger::{Ledger, Weight};
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
    let gzip = find("gzip");
    if let Some(gzip) = gzip {
        ledger.mapped(gzip.id);
    }
    if gzip.is_none_or(|it| it.word(0) != "on") {
        return keys;
    }
    keys.insert("compress".to_owned(), quoted("gzip"));
    let types = find("gzip_types");
    if let Some(types) = types {
        ledger.mapped(types.id);
    }
    let listed = types.map(|it| &it.words[..]).unwrap_or_default();
    if !listed.iter().any(|it| it == "*") {
        let all = std::iter::once("text/html").chain(listed.iter().map(String::as_str));
        keys.extend(media_types(all));
    }
    keys.insert("compress_min".to_owned(), NGINX_MIN.to_owned());
    if let Some(least) = find("gzip_min_length") {
        let bytes = number(least.word(0)).filter(|it| *it <= MIN_MAX);
        match bytes {
            Some(bytes) => {
                keys.insert("compress_min".to_owned(), bytes.to_string());
                ledger.mapped(least.id);
            }
            None => ledger.dropped(least.id, "it is not a length; the default applies"),
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
    let mut takes_all = false;
    for directive in directives {
        let upper = directive.word(0).to_ascii_uppercase();
        let mut filters = upper.split(';');
        let is_by_type = directive.name == "addoutputfilterbytype";
        let compresses = filters.any(|it| matches!(it, "DEFLATE" | "BROTLI_COMPRESS"));
        match directive.name.as_str() {
            "addoutputfilterbytype" | "setoutputfilter" | "addoutputfilter" if compresses => {
                ledger.mapped(directive.id);
                keys.insert("compress".to_owned(), quoted("gzip"));
                takes_all |= !is_by_type;
                types.extend(
                    directive
                        .words
                        .iter()
                        .skip(1)
                        .map(String::as_str)
                        .filter(|_| is_by_type),
                );
                if !is_by_type {
                    let place = ledger.place(directive.id).clone();
                    let text = "texts are compressed (`compress_types`), and no images or archives";
                    ledger.say(Weight::Note, Some(place), text);
                }
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
    if !takes_all {
        keys.extend(media_types(types));
    }
    keys
}

/// Whether a `SetEnvIf` sets only variables that mod_deflate or mod_brotli reads.
fn is_about_compression(directive: &Directive) -> bool {
    let mut variables = directive.words.iter().skip(2).peekable();
    variables.peek().is_some()
        && variables.all(|it| {
            let name = it
                .trim_start_matches('!')
                .split('=')
                .next()
                .unwrap_or_default();
            matches!(
                name,
                "no-gzip" | "dont-vary" | "gzip-only-text/html" | "force-gzip" | "no-brotli"
            )
        })
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

/// The length in bytes from which on nginx compresses if `gzip_min_length` is not set.
const NGINX_MIN: &str = "20";

/// The largest `compress_min` that the front accepts, in bytes.
const MIN_MAX: u64 = 1 << 30;

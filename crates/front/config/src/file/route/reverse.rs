//! `[[route.reverse_url]]`: what becomes of URLs in responses of backends.

use std::ops::Range;

use catamaran_proxy::config::{PathExpression, Placeholder, Template, UrlPattern, UrlRule};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::text::BLANKS_MAX;
use crate::fill;
use crate::key::{ALL, Key, Part, Preset, Section};
use crate::report::{Finding, Report};
use crate::table::{Table, tables};
use crate::value::route::{UrlTextError, parse_url_text};
use crate::value::{Optional, Syntax};

pub(super) const NAME: &str = "reverse_url";

/// The values of the keys, before they are checked against each other.
#[derive(Default)]
struct RawUrlRule {
    prefix: Option<String>,
    regex: Option<PathExpression>,
    to: Option<String>,
}

/// Reads the tables.
pub(super) fn read(value: &Spanned<DeValue<'_>>, report: &mut Report) -> Vec<UrlRule> {
    let entries = tables(SECTION.header, value, report);
    if let Some((place, _)) = entries.get(RULES_MAX) {
        let message = format!("[[route]] has more than {RULES_MAX} of {}", SECTION.header);
        let hint = "join several by one `regex`";
        report.push(Finding::fault(message, place.clone()).hint(hint));
    }
    let rules = entries.into_iter();
    rules
        .filter_map(|(place, entries)| read_one(place, entries, report))
        .collect()
}

/// Reads one table; `None`, with a fault, if it is no rule.
fn read_one(place: Range<usize>, entries: &DeTable<'_>, report: &mut Report) -> Option<UrlRule> {
    let mut table = Table::new(&SECTION, place, entries);
    let mut written = RawUrlRule::default();
    table.read(KEYS, &mut written);
    let rule = rule(&mut table, written);
    table.finish(report);
    rule
}

fn rule(table: &mut Table<'_>, written: RawUrlRule) -> Option<UrlRule> {
    if table.has("prefix") == table.has("regex") {
        let message = if table.has("prefix") {
            "`regex` stands in the place of `prefix`"
        } else {
            "no URL is named"
        };
        let place = table.place_of("regex");
        let hint = "write either `prefix` or `regex`";
        table.push(Finding::fault(message, place).hint(hint));
        return None;
    }
    let to = template(table, "to", &written.to?, written.regex.as_ref())?;
    let from = match written.regex {
        Some(expression) => UrlPattern::Expression(expression),
        None => UrlPattern::Prefix(template(table, "prefix", &written.prefix?, None)?),
    };
    Some(UrlRule { from, to })
}

/// Parses the value of a key, which may have placeholders and groups of the rule's expression.
fn template(
    table: &mut Table<'_>,
    key: &str,
    text: &str,
    expression: Option<&PathExpression>,
) -> Option<Template> {
    let message = match Template::parse_with(text, Placeholder::OF_STORED, expression) {
        Ok(template) if template.blanks() <= BLANKS_MAX => return Some(template),
        Ok(_) => format!("`{key}` has more than {BLANKS_MAX} placeholders"),
        Err(error) => format!("`{key}` {error}"),
    };
    table.push(Finding::fault(message, table.place_of(key)));
    None
}

/// The most rules of a route.
const RULES_MAX: usize = 50;

pub(crate) static SECTION: Section = Section {
    header: "[[route.reverse_url]]",
    intro: "Which URLs in `Location`, `Content-Location` and `Refresh` of backends' responses are changed, in the \
            place of what `reverse` does to them: by the first of these tables that fits a URL, and no others. Cookies are turned back \
            as before. `reverse_url = []` leaves all URLs as they are.",
    keys: &[Part::all(&KEYS)],
    later: &[],
};

static KEYS: &[Key<RawUrlRule>] = &[
    Key {
        name: "prefix",
        group: ALL,
        value: fill!(
            Optional(Syntax::<String, UrlTextError> {
                what: "the beginning of a URL or path, such as \"http://app.internal:8080/app/\"",
                parse: |text| match text {
                    "" => Err(UrlTextError::Empty),
                    text => parse_url_text(text),
                },
            }),
            RawUrlRule.prefix
        ),
        preset: Preset::Unset("then `regex` is needed"),
        sample: "\"http://app.internal:8080/app/\"",
        effect: "URLs that begin with this text, letter by letter; `to` takes its place. `{host}`, `{authority}` and \
                 `{scheme}` are those of the client, and `{{` is a brace.",
        extremes: "It is a text: with `/app` `/apple` begins, too. End it with a slash.",
        elsewhere: "nginx `proxy_redirect`; httpd `ProxyPassReverse`",
    },
    Key {
        name: "regex",
        group: ALL,
        value: fill!(
            Optional(Syntax {
                what: "an expression such as \"^https?://[^/]+/app/(.*)$\"",
                parse: PathExpression::parse,
            }),
            RawUrlRule.regex
        ),
        preset: Preset::Unset("then `prefix` is needed"),
        sample: "\"^https?://[^/]+/app/(.*)$\"",
        effect: "Instead of `prefix`: URLs in which this expression matches, in the syntax of `regex` of a route. `to` takes the \
                 place of the whole URL.",
        extremes: "A URL of more than 4096 bytes stays as it is.",
        elsewhere: "nginx `proxy_redirect ~`, `proxy_redirect ~*` with `(?i)`; httpd `Header edit Location`",
    },
    Key {
        name: "to",
        group: ALL,
        value: fill!(
            Optional(Syntax {
                what: "a part of a URL such as \"/shop/\"",
                parse: parse_url_text,
            }),
            RawUrlRule.to
        ),
        preset: Preset::Required,
        sample: "\"/shop/\"",
        effect: "What stands there instead. Beside `regex` `{1}` and `{name}` are what its groups captured. If a URL with a host \
                 becomes a path, the scheme and host of the client are put before it, but in `Refresh`, where a path is enough.",
        extremes: "A URL that would begin with `//` or `/\\`, and so name another host, stays as it is, unless `to` itself \
                   begins so.",
        elsewhere: "nginx `proxy_redirect`; httpd `ProxyPassReverse`",
    },
];

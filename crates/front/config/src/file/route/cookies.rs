//! `[[route.cookie]]`, `[[route.cookie_domain]]` and `[[route.cookie_path]]`: what a route changes of its backends'
//! cookies.

use catamaran_proxy::config::{
    CookieReplacement, CookieRules, CookieTest, ExpressionError, FlagChanges, FlagRule, KnownNames,
    PathExpression, Placeholder, Template, TemplateError,
};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::text::BLANKS_MAX;
use crate::fill;
use crate::key::{ALL, Key, Part, Preset, Section};
use crate::report::{Finding, Report};
use crate::table::{Table, tables};
use crate::value::route::{CookieFlag, CookieFlagError, parse_cookie_flag};
use crate::value::{Choices, OneOrMore, Optional, Syntax};

pub(super) const FLAGS: &str = "cookie";
pub(super) const DOMAINS: &str = "cookie_domain";
pub(super) const PATHS: &str = "cookie_path";

/// A flag that cookies get.
enum WrittenFlag {
    Flag(CookieFlag),
    /// A word of the request, which is read when the request is there.
    Word(Template),
}

/// A flag of cookies, without its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FlagName {
    Secure,
    HttpOnly,
    SameSite,
}

/// The values of a `[[route.cookie]]`, before they are checked against each other.
#[derive(Default)]
struct RawFlags {
    name: Option<Template>,
    regex: Option<PathExpression>,
    flags: Vec<WrittenFlag>,
    remove: Vec<FlagName>,
}

/// The values of a table that replaces domains or paths, before they are checked against each other.
#[derive(Default)]
struct RawReplacement {
    from: Option<Template>,
    regex: Option<PathExpression>,
    to: String,
}

/// Reads the tables of a route. New values may contain groups of the route's `expression`.
pub(super) fn read(
    route: &DeTable<'_>,
    expression: Option<&PathExpression>,
    report: &mut Report,
) -> CookieRules {
    let mut rules = CookieRules::default();
    if let Some(value) = route.get(FLAGS) {
        rules.flags = all(value, &SECTION, report, flag_rule);
    }
    for (name, section, replacements) in [
        (DOMAINS, &DOMAIN_SECTION, &mut rules.domains),
        (PATHS, &PATH_SECTION, &mut rules.paths),
    ] {
        if let Some(value) = route.get(name) {
            let read = |table: &mut Table<'_>| replacement(table, expression);
            *replacements = all(value, section, report, read);
        }
    }
    rules
}

/// Reads the tables of one list by `read`, as far as they are valid.
fn all<T>(
    value: &Spanned<DeValue<'_>>,
    section: &'static Section,
    report: &mut Report,
    read: impl Fn(&mut Table<'_>) -> Option<T>,
) -> Vec<T> {
    let entries = tables(section.header, value, report);
    if entries.len() > RULES_MAX {
        let message = format!(
            "a route has more than {RULES_MAX} tables {}",
            section.header
        );
        let hint = "join some by a `regex`";
        report.push(Finding::fault(message, value.span()).hint(hint));
    }
    let mut rules = Vec::new();
    for (place, entries) in entries {
        let mut table = Table::new(section, place, entries);
        rules.extend(read(&mut table));
        table.finish(report);
    }
    rules
}

/// Reads a `[[route.cookie]]`.
fn flag_rule(table: &mut Table<'_>) -> Option<FlagRule> {
    let mut written = RawFlags::default();
    table.read(KEYS, &mut written);
    let mut changes = FlagChanges::default();
    let mut words = Vec::new();
    for flag in written.flags {
        match flag {
            WrittenFlag::Word(word) => words.push(word),
            WrittenFlag::Flag(CookieFlag::Secure) => changes.secure = Some(true),
            WrittenFlag::Flag(CookieFlag::HttpOnly) => changes.http_only = Some(true),
            WrittenFlag::Flag(CookieFlag::SameSite(same_site)) => {
                let earlier = changes.same_site.replace(Some(same_site));
                if earlier.is_some_and(|earlier| earlier != Some(same_site)) {
                    let message = "`flags` has two values of SameSite";
                    let place = table.place_of("flags");
                    table.push(Finding::fault(message, place).hint("keep one of them"));
                }
            }
        }
    }
    for name in &written.remove {
        let is_set = match name {
            FlagName::Secure => changes.secure.replace(false).is_some_and(|it| it),
            FlagName::HttpOnly => changes.http_only.replace(false).is_some_and(|it| it),
            FlagName::SameSite => changes.same_site.replace(None).flatten().is_some(),
        };
        if is_set {
            let message = "`remove` has a flag that `flags` has, too";
            let place = table.place_of("remove");
            table.push(Finding::fault(message, place).hint("keep it in one of them"));
        }
    }
    if changes == FlagChanges::default() && words.is_empty() && table.is_good() {
        let message = "[[route.cookie]] changes nothing";
        let hint = "give it `flags` or `remove`";
        table.push(Finding::fault(message, table.place()).hint(hint));
    }
    Some(FlagRule {
        name: test(table, "name", written.name, written.regex),
        changes,
        words,
    })
}

/// Reads a `[[route.cookie_domain]]` or `[[route.cookie_path]]`; `None`: it is not valid.
fn replacement(
    table: &mut Table<'_>,
    of_route: Option<&PathExpression>,
) -> Option<CookieReplacement> {
    let mut written = RawReplacement::default();
    table.read(REPLACEMENT_KEYS, &mut written);
    let to = Template::parse_replacement(&written.to, written.regex.as_ref(), of_route);
    let from = test(table, "from", written.from, written.regex);
    if from.is_none() && table.is_good() {
        let message = "neither `from` nor `regex` says what is replaced";
        let hint = "write one of them";
        table.push(Finding::fault(message, table.place()).hint(hint));
    }
    match to {
        Ok(to) if to.blanks() <= BLANKS_MAX => Some(CookieReplacement { from: from?, to }),
        Ok(_) => {
            let message = format!("`to` {}", PartError::Blanks);
            table.push(Finding::fault(message, table.place_of("to")));
            None
        }
        Err(error) => {
            let message = format!("`to` {error}");
            table.push(Finding::fault(message, table.place_of("to")));
            None
        }
    }
}

/// The test of a text: by the key `key`, or by `regex`, which stands in its place; `None`: neither is there.
fn test(
    table: &mut Table<'_>,
    key: &str,
    text: Option<Template>,
    regex: Option<PathExpression>,
) -> Option<CookieTest> {
    if table.has(key) && table.has("regex") {
        let message = format!("`regex` stands in the place of `{key}`");
        let place = table.place_of("regex");
        table.push(Finding::fault(message, place).hint("remove one of them"));
    }
    let expression = regex.map(CookieTest::Expression);
    expression.or_else(|| text.map(CookieTest::Text))
}

/// Why a text is not the name of cookies, or a part of them.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
enum PartError {
    /// The text is empty.
    #[error("is empty")]
    Empty,
    /// The text has a character that ends an attribute, or is too long.
    #[error(
        "must have at most {PART_MAX} characters, without control characters, and without `;`, which begins another \
         attribute"
    )]
    Character,
    /// The text has more placeholders than a value may have.
    #[error("has more than {BLANKS_MAX} placeholders")]
    Blanks,
    /// The placeholders of the text are not valid.
    #[error(transparent)]
    Template(#[from] TemplateError),
    /// The text has no placeholders, and is no flag.
    #[error(transparent)]
    Flag(#[from] CookieFlagError),
}

/// Checks the characters of a new value, whose placeholders depend on the table.
fn parse_value(text: &str) -> Result<String, PartError> {
    if text.len() > PART_MAX || text.contains(';') || text.chars().any(char::is_control) {
        return Err(PartError::Character);
    }
    Ok(text.to_owned())
}

fn parse_compared(text: &str, known: KnownNames) -> Result<Template, PartError> {
    if text.is_empty() {
        return Err(PartError::Empty);
    }
    let template = Template::parse(&parse_value(text)?, known)?;
    if template.blanks() > BLANKS_MAX {
        return Err(PartError::Blanks);
    }
    Ok(template)
}

fn parse_flag(text: &str) -> Result<WrittenFlag, PartError> {
    if text.contains('{') {
        return parse_name(text).map(WrittenFlag::Word);
    }
    Ok(WrittenFlag::Flag(parse_cookie_flag(text)?))
}

fn parse_name(text: &str) -> Result<Template, PartError> {
    parse_compared(text, Placeholder::OF_FIELDS)
}

fn parse_from(text: &str) -> Result<Template, PartError> {
    parse_compared(text, Placeholder::OF_STORED)
}

/// The place of a `regex`, and what it is.
const EXPRESSION: Optional<Syntax<PathExpression, ExpressionError>> = Optional(Syntax {
    what: "an expression such as \"^/app/(.*)$\"",
    parse: PathExpression::parse,
});

/// The most tables of one list of a route. Each is compared with each cookie.
const RULES_MAX: usize = 32;

/// The most characters of a name or of a part of a cookie.
const PART_MAX: usize = 1024;

pub(crate) static SECTION: Section = Section {
    header: "[[route.cookie]]",
    intro: "Which flags cookies of the application get or lose on the route above it. Of several tables the first that \
            fits a cookie's name changes it, before `cookie_flags` adds what is missing.",
    keys: &[Part::all(&KEYS)],
    later: &[],
};

pub(crate) static DOMAIN_SECTION: Section = Section {
    header: "[[route.cookie_domain]]",
    intro: "Another `Domain` for cookies of the application. Of several tables the first that fits a domain replaces it; \
            what none fits is turned back as `reverse` says. A `from` is the whole domain, whatever the case of letters \
            and without a dot before it.",
    keys: &[Part::all(&REPLACEMENT_KEYS)],
    later: &[],
};

pub(crate) static PATH_SECTION: Section = Section {
    header: "[[route.cookie_path]]",
    intro: "Another `Path` for cookies of the application. Of several tables the first that fits a path replaces it; what \
            none fits is turned back as `reverse` says. A `from` is the beginning of the path, letter by letter: the rest \
            stays. Its keys are those of `[[route.cookie_domain]]`.",
    keys: &[Part::all(&REPLACEMENT_KEYS)],
    later: &[],
};

static KEYS: &[Key<RawFlags>] = &[
    Key {
        name: "name",
        group: ALL,
        value: fill!(
            Optional(Syntax {
                what: "the name of a cookie",
                parse: parse_name,
            }),
            RawFlags.name
        ),
        preset: Preset::Unset("every cookie"),
        sample: "\"JSESSIONID\"",
        effect: "The cookies that the table is for, by their name, whatever the case of its letters. It may have the \
                 placeholders of `[route.request_headers]`.",
        extremes: "A name that the application does not use fits nothing, and nothing says so.",
        elsewhere: "nginx `proxy_cookie_flags NAME`",
    },
    Key {
        name: "regex",
        group: ALL,
        value: fill!(EXPRESSION, RawFlags.regex),
        preset: Preset::Unset("`name`"),
        sample: "\"(?i)^session\"",
        effect: "Instead of `name`: a regular expression that must match somewhere in the name, as `regex` of a route.",
        extremes: "Without `^` and `$` it also fits names that only contain what it matches.",
        elsewhere: "nginx `proxy_cookie_flags ~EXPRESSION`",
    },
    Key {
        name: "flags",
        group: ALL,
        value: fill!(
            OneOrMore(Syntax {
                what: "\"Secure\", \"HttpOnly\", \"SameSite=Lax\", \"SameSite=Strict\" or \"SameSite=None\", or a text with \
                       placeholders",
                parse: parse_flag,
            }),
            RawFlags.flags
        ),
        preset: Preset::Unset("none is added"),
        sample: "[\"Secure\", \"SameSite=None\"]",
        effect: "The flags that the cookies get. A `SameSite` of the application is replaced. A text with the placeholders of \
                 `[route.request_headers]`, such as `{cookie:flag}`, is a flag that the request names: one of these \
                 words in any case of letters, or with `no` before it, as in `nosecure`, a flag that is removed. Any other \
                 word changes nothing.",
        extremes: "Browsers refuse a cookie with `SameSite=None` that is not `Secure`. What is said of `cookie_flags` holds \
                   here, too.",
        elsewhere: "nginx `proxy_cookie_flags`",
    },
    Key {
        name: "remove",
        group: ALL,
        value: fill!(
            OneOrMore(Choices(&[
                ("Secure", FlagName::Secure),
                ("HttpOnly", FlagName::HttpOnly),
                ("SameSite", FlagName::SameSite),
            ])),
            RawFlags.remove
        ),
        preset: Preset::Unset("none is removed"),
        sample: "\"HttpOnly\"",
        effect: "The flags that the cookies lose.",
        extremes: "Without `Secure` a browser also sends the cookie in clear, and without `HttpOnly` scripts read it.",
        elsewhere: "nginx `proxy_cookie_flags … nosecure nohttponly nosamesite`",
    },
];

static REPLACEMENT_KEYS: &[Key<RawReplacement>] = &[
    Key {
        name: "from",
        group: ALL,
        value: fill!(
            Optional(Syntax {
                what: "a domain such as \"app.internal\", or the beginning of a path such as \"/app/\"",
                parse: parse_from,
            }),
            RawReplacement.from
        ),
        preset: Preset::Unset("`regex`"),
        sample: "\"/inner/\"",
        effect: "What is replaced. `{host}` is the host that the client asked for, `{authority}` the host with its port, \
                 `{scheme}` `http` or `https`.",
        extremes: "The path `/app` is the beginning of `/apple`, too: end it with a slash.",
        elsewhere: "nginx `proxy_cookie_domain`, `proxy_cookie_path`; httpd `ProxyPassReverseCookieDomain`, \
                    `ProxyPassReverseCookiePath`",
    },
    Key {
        name: "regex",
        group: ALL,
        value: fill!(EXPRESSION, RawReplacement.regex),
        preset: Preset::Unset("`from`"),
        sample: "\"^/inner/(.*)$\"",
        effect: "Instead of `from`: a regular expression that must match somewhere in the domain or path, as `regex` of a \
                 route. Then `to` stands in the place of the whole value.",
        extremes: "Without `(?i)` letters are compared by case, and the case of a domain means nothing.",
        elsewhere: "nginx `proxy_cookie_domain ~…`, `proxy_cookie_path ~…`",
    },
    Key {
        name: "to",
        group: ALL,
        value: fill!(
            Syntax {
                what: "a text such as \"/shop/\"",
                parse: parse_value,
            },
            RawReplacement.to
        ),
        preset: Preset::Required,
        sample: "\"/shop/\"",
        effect: "What stands in its place, with the same placeholders. `{1}` and `{name}` are what the groups of the table's \
                 own `regex` captured, or without one those of the route's. If nothing is left, the attribute is removed: \
                 without `Domain` a cookie is for the host that the client asked for alone.",
        extremes: "Browsers drop a cookie for a domain to which the host that they asked does not belong, and do not send one \
                   back whose path is not that of the page.",
        elsewhere: "nginx `proxy_cookie_domain`, `proxy_cookie_path`",
    },
];

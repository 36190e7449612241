//! `[route.unless]`: the clients that a route leaves to others.

use catamaran_proxy::config::Unless;
use toml::Spanned;
use toml::de::DeValue;

use crate::fill;
use crate::key::{ALL, Key, Part, Preset, Section};
use crate::report::{Finding, Report};
use crate::table::{Table, table};
use crate::value::text::{TextError, parse_network, parse_token};
use crate::value::{OneOrMore, Optional, Syntax};

pub(super) const NAME: &str = "unless";

/// Reads `[route.unless]`.
pub(super) fn read(value: &Spanned<DeValue<'_>>, report: &mut Report) -> Option<Box<Unless>> {
    let (place, entries) = table(SECTION.header, value, report)?;
    let mut table = Table::new(&SECTION, place.clone(), entries);
    let mut unless = Unless::default();
    table.read(KEYS, &mut unless);
    if unless == Unless::default() && table.is_good() {
        let message = "[route.unless] names nobody";
        let hint = "give it an `address` or a `cookie`, or remove it";
        table.push(Finding::fault(message, place).hint(hint));
    }
    table.finish(report);
    Some(Box::new(unless))
}

/// Parses `NAME=VALUE`, of the characters that a cookie may have (RFC 6265, section 4.1.1).
fn parse_cookie(text: &str) -> Result<(String, String), TextError> {
    let (name, value) = text.split_once('=').ok_or(TextError::Cookie)?;
    let is_good = |byte: u8| byte.is_ascii_graphic() && !b"\",;\\".contains(&byte);
    if value.is_empty() || !value.bytes().all(is_good) {
        return Err(TextError::Cookie);
    }
    Ok((parse_token(name)?, value.to_owned()))
}

pub(crate) static SECTION: Section = Section {
    header: "[route.unless]",
    intro: "The clients that the route above it leaves to the next route that matches, such as the operators during \
            maintenance. One that fits `address` or `cookie` is left. Of two routes for the same path the one with \
            this table is asked first.",
    keys: &[Part::all(&KEYS)],
    later: &[],
};

static KEYS: &[Key<Unless>] = &[
    Key {
        name: "address",
        group: ALL,
        value: fill!(
            OneOrMore(Syntax {
                what: "an IP address or network such as \"10.0.0.0/8\"",
                parse: parse_network,
            }),
            Unless.address
        ),
        preset: Preset::Value("[]"),
        sample: "[\"10.0.0.0/8\", \"::1\"]",
        effect: "Addresses of clients, as `trusted_proxies` tell them.",
        extremes: "Behind a proxy that is not trusted every client has the proxy's address.",
        elsewhere: "httpd `RewriteCond %{REMOTE_ADDR}`; nginx `geo` with `if`",
    },
    Key {
        name: "cookie",
        group: ALL,
        value: fill!(
            Optional(Syntax {
                what: "a cookie such as \"operator=a-long-secret\"",
                parse: parse_cookie,
            }),
            Unless.cookie
        ),
        preset: Preset::Unset("none"),
        sample: "\"operator=a-long-secret\"",
        effect: "A cookie with its value. If a client sends several of the name, the first counts.",
        extremes: "Whoever knows the value is let through: make it long, and change it afterwards.",
        elsewhere: "httpd `RewriteCond %{HTTP_COOKIE}`; nginx `if ($cookie_operator)`",
    },
];

//! `[upstream.NAME.sticky]`: how a session stays with its backend.

use std::path::PathBuf;
use std::time::Duration;

use catamaran_proxy::config::{IdFirst, SameSite, Secret, StickyConfig, StickyCookie};
use toml::Spanned;
use toml::de::DeValue;

use super::{Surroundings, long_enough};
use crate::fill;
use crate::key::{ALL, Group, Key, Part, Preset, Section};
use crate::report::{Finding, Report};
use crate::table::{Table, table};
use crate::value::text::{TextError, file_path, parse_cookie_path, parse_separator, parse_token};
use crate::value::{Choices, Durations, OneOrMore, Optional, OrOff, Switch, Syntax};

/// What an upstream says of sessions.
#[derive(Debug, Default)]
pub(crate) enum Sticky {
    /// The upstream says nothing about sessions.
    #[default]
    Unsaid,
    /// The upstream has `sticky = "off"`, or a value with a fault.
    Off,
    On(StickyConfig),
}

/// The values of the keys of `[upstream.NAME.sticky]`, before they are checked against each other.
struct RawSticky {
    sticky: StickyConfig,
    /// The front's own cookie; its name is empty if the front sets none.
    cookie: StickyCookie,
    key_file: Option<PathBuf>,
}

/// Reads `sticky` of an upstream: the table, or `"off"`.
pub(crate) fn read(
    value: &Spanned<DeValue<'_>>,
    surroundings: &Surroundings<'_>,
    report: &mut Report,
) -> Sticky {
    if value.get_ref().as_str() == Some("off") {
        return Sticky::Off;
    }
    // A value that is no table is reported; `Unsaid` would lead to a warning besides.
    let Some((place, entries)) = table(SECTION.header, value, report) else {
        return Sticky::Off;
    };
    let mut table = Table::new(&SECTION, place, entries);
    let mut written = RawSticky {
        sticky: StickyConfig::default(),
        cookie: StickyCookie::new(""),
        key_file: None,
    };
    table.read(KEYS, &mut written);
    let RawSticky {
        mut sticky,
        mut cookie,
        key_file,
    } = written;
    cookie.key = key_file.and_then(|path| {
        let check = |key| long_enough(key, KEY_MIN);
        let key = surroundings.secret("cookie_key_file", &path, check, &mut table);
        key.map(Secret::new)
    });
    let has_cookie = table.has("set_cookie");
    if !has_cookie {
        for (name, place) in table.written(KEYS, |group| group == OWN_COOKIE) {
            let message = format!("`{name}` has no effect without `set_cookie`");
            table.push(Finding::warning(message, place).hint("add `set_cookie`, or remove it"));
        }
    }
    sticky.set_cookie = (!cookie.name.is_empty()).then_some(cookie);
    if !has_cookie && sticky.cookies.is_empty() && sticky.parameters.is_empty() {
        let message = "neither `cookies` nor `parameters` names anything, so no session is found";
        let hint = "name one, or add `set_cookie`, or write sticky = \"off\" in the upstream";
        table.push(Finding::fault(message, table.place()).hint(hint));
    }
    overwritten(&mut table, &sticky);
    table.finish(report);
    Sticky::On(sticky)
}

/// Warns if the front's own cookie has the name of a session cookie.
fn overwritten(table: &mut Table<'_>, sticky: &StickyConfig) {
    let own = sticky.set_cookie.as_ref().map(|cookie| &cookie.name);
    if own.is_some_and(|own| sticky.cookies.contains(own)) {
        let message = "`set_cookie` is one of `cookies`: it would overwrite the application's";
        let hint = "give it a name of its own, such as \"ROUTEID\"";
        table.push(Finding::warning(message, table.place_of("set_cookie")).hint(hint));
    }
}

pub(crate) static SECTION: Section = Section {
    header: "[upstream.NAME.sticky]",
    intro: "Requests of a session go to the backend that has it. Tomcat writes its `jvmRoute` behind \
            each session id (`3F2A.a`); the backend with that `jvm_route` gets the request. The \
            header alone turns it on; without it, or with `sticky = \"off\"` in the upstream, each \
            request goes to any backend. [sessions.md](sessions.md) explains it with examples.",
    keys: &[Part::all(&KEYS)],
    later: &[],
};

const TOKEN: Syntax<String, TextError> = Syntax {
    what: "a name such as \"JSESSIONID\"",
    parse: parse_token,
};

/// The least characters of a key: 128 bits as hexadecimal digits.
const KEY_MIN: usize = 32;

/// Keys of the front's own cookie, which have no effect without it.
const OWN_COOKIE: Group = Group("own cookie");

static KEYS: &[Key<RawSticky>] = &[
    Key {
        name: "cookies",
        group: ALL,
        value: fill!(OneOrMore(TOKEN), RawSticky.sticky.cookies),
        preset: Preset::Value("\"JSESSIONID\""),
        sample: "[\"JSESSIONID\", \"SHOPSESSION\"]",
        effect: "The cookies that hold a session id. All of them are read, in the order received, \
                 until one leads to a backend. Upper and lower case differ.",
        extremes: "A name that is not Tomcat's `sessionCookieName` lets every session break: \
                   requests show as `sticky=new`. `[]` reads none.",
        elsewhere: "httpd `stickysession`; mod_jk `session_cookie`; nginx `sticky route`",
    },
    Key {
        name: "parameters",
        group: ALL,
        value: fill!(
            OneOrMore(Syntax {
                what: "a name such as \"jsessionid\"",
                parse: parse_token,
            }),
            RawSticky.sticky.parameters
        ),
        preset: Preset::Value("\"jsessionid\""),
        sample: "[]",
        effect: "The path parameters (`/page;jsessionid=3F2A.a`) that hold a session id, for clients \
                 without cookies. Read in any segment of the path as received.",
        extremes: "`[]` reads none. A parameter of the query is not one of these.",
        elsewhere: "httpd `stickysession` after `|`; mod_jk `session_path`",
    },
    Key {
        name: "first",
        group: ALL,
        value: fill!(
            Choices(&[("cookie", IdFirst::Cookie), ("path", IdFirst::Path)]),
            RawSticky.sticky.first
        ),
        preset: Preset::Value("\"cookie\""),
        sample: "\"path\"",
        effect: "Which is read first when a request has a session id in a cookie and one in its path. \
                 Tomcat lets the cookie win.",
        extremes: "With `\"path\"` a bookmark with an old `;jsessionid` leads to a backend that does \
                   not have the session of the cookie.",
        elsewhere: "httpd and mod_jk read the path first",
    },
    Key {
        name: "separator",
        group: ALL,
        value: fill!(
            OrOff(Syntax {
                what: "one character, such as \".\"",
                parse: parse_separator,
            }),
            RawSticky.sticky.separator
        ),
        preset: Preset::Value("\".\""),
        sample: "\"!\"",
        effect: "The character between a session id and its route: the route is the text after the \
                 first one. If no backend has that route, the front looks for each part between \
                 separators, from left to right. With `\"off\"` the whole value is the route.",
        extremes: "Tomcat, Jetty and Undertow write a dot; WebLogic writes an exclamation mark.",
        elsewhere: "httpd `stickysessionsep`",
    },
    Key {
        name: "force",
        group: ALL,
        value: fill!(Switch, RawSticky.sticky.force),
        preset: Preset::Value("false"),
        sample: "true",
        effect: "If the backend of a session is out, the answer is 503 \
                 (`front:sticky-backend-out`). Without `force` the session moves to another \
                 backend, which may not know it.",
        extremes: "With `true`, no session of that backend is served until it is back. A session \
                   whose route no backend has still goes to any backend.",
        elsewhere: "httpd `nofailover`; mod_jk `sticky_session_force`",
    },
    Key {
        name: "session_timeout",
        group: ALL,
        value: fill!(
            Durations(Duration::from_secs(1)..=Duration::from_secs(7 * 24 * 3600)),
            RawSticky.sticky.session_timeout
        ),
        preset: Preset::Value("\"30m\""),
        sample: "\"2h\"",
        effect: "How long after its last request a session may come again: Tomcat's \
                 `session-timeout`. For so long the front counts a session as one of its backend: \
                 `status` shows the number, and a drain ends when no session of the backend was \
                 seen for so long.",
        extremes: "Shorter than Tomcat's, a drain ends before the sessions do, and some are lost. \
                   Longer, drains last longer than they need to.",
        elsewhere: "Tomcat `session-timeout`",
    },
    Key {
        name: "count_unknown",
        group: ALL,
        value: fill!(Switch, RawSticky.sticky.count_unknown),
        preset: Preset::Value("false"),
        sample: "true",
        effect: "Whether a session counts whose id no response of the backend gave out through this front. \
                 A client can invent ids that lead to a backend, and a drain would wait for them as long as \
                 they come. In the first `session_timeout` after a start every id counts.",
        extremes: "Turn it on where several fronts serve the same clients, and where session ids come \
                   in links only and never in a `Set-Cookie`. Otherwise a drain may end while such \
                   sessions last, and they move to another backend.",
        elsewhere: "",
    },
    Key {
        name: "set_cookie",
        group: ALL,
        value: fill!(TOKEN, RawSticky.cookie.name),
        preset: Preset::Unset("none is set"),
        sample: "\"ROUTEID\"",
        effect: "The name of a cookie of the front's own, for backends whose session ids have no \
                 route. It is set on each response that was not `sticky=kept`, and is read after all \
                 session ids. It is not passed on to backends. Its value names no backend.",
        extremes: "Responses with `Cache-Control: public` or `s-maxage`, and 304, do not get it: a \
                   cache would hand it to others.",
        elsewhere: "HAProxy `cookie insert`; httpd `Header add Set-Cookie`; mod_jk \
                    `set_session_cookie`; nginx `sticky cookie`",
    },
    Key {
        name: "cookie_path",
        group: OWN_COOKIE,
        value: fill!(
            Syntax {
                what: "a path such as \"/app\"",
                parse: parse_cookie_path,
            },
            RawSticky.cookie.path
        ),
        preset: Preset::Value("\"/\""),
        sample: "\"/app\"",
        effect: "The `Path` of that cookie.",
        extremes: "Outside of it clients do not send the cookie, and their requests go anywhere.",
        elsewhere: "mod_jk `session_cookie_path`",
    },
    Key {
        name: "cookie_same_site",
        group: OWN_COOKIE,
        value: fill!(
            Choices(&[
                ("lax", SameSite::Lax),
                ("strict", SameSite::Strict),
                ("none", SameSite::None),
            ]),
            RawSticky.cookie.same_site
        ),
        preset: Preset::Value("\"lax\""),
        sample: "\"none\"",
        effect: "The `SameSite` of that cookie: whether browsers send it with requests that other \
                 sites cause.",
        extremes: "`\"none\"` is for applications inside frames of other sites; browsers take it \
                   over TLS only.",
        elsewhere: "nginx `sticky cookie samesite=`",
    },
    Key {
        name: "cookie_key_file",
        group: OWN_COOKIE,
        value: fill!(
            Optional(file_path("the path of a file")),
            RawSticky.key_file
        ),
        preset: Preset::Unset("a fixed key"),
        sample: "\"sticky.key\"",
        effect: "A file whose first line, 32 characters or more, is the key that the cookie's values \
                 are made with. Fronts with the same key agree on the values.",
        extremes: "With the fixed key somebody can find out which value leads to which backend, and \
                   send many requests to one. Another key lets every such cookie lead nowhere once.",
        elsewhere: "HAProxy `dynamic-cookie-key`",
    },
];

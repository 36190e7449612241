//! `[cache.NAME]`: caches of responses, which routes name.

use std::ops::{Range, RangeInclusive};
use std::time::Duration;

use catamaran_proxy::config::FieldName;
use catamaran_proxy::config::{CacheConfig, QueryRule, SetCookie};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::named;
use crate::fill;
use crate::key::{ALL, Key, Part, Preset, Section};
use crate::report::{Finding, Report};
use crate::table::Table;
use crate::value::route::{FieldError, parse_field_name};
use crate::value::text::{TextError, parse_statuses, parse_token};
use crate::value::{
    Choices, Complaint, Counts, Durations, Map, NamedValues, OneOrMore, Percents, Sizes, Switch,
    Syntax, Values, complaint,
};

/// A cache and its place in the file.
#[derive(Debug)]
pub(crate) struct Cache {
    pub(crate) value: CacheConfig,
    pub(crate) place: Range<usize>,
    /// Where `memory` is in the file; without it, the table's header.
    pub(crate) memory_place: Range<usize>,
    /// Where `session_cookies` is in the file; without it, the table's header.
    pub(crate) sessions_place: Range<usize>,
}

/// The values of the keys of `[cache.NAME]`, before they are checked against each other.
struct RawCache {
    cache: CacheConfig,
    /// How many seconds a response is fresh, by a status or a range of statuses.
    ttl: Vec<(String, u32)>,
}

/// Reads all tables `[cache.NAME]`.
pub(crate) fn read(value: &Spanned<DeValue<'_>>, report: &mut Report) -> Vec<Cache> {
    let tables = named(&[&SECTION], "a cache", value, report).into_iter();
    tables
        .map(|(name, place, entries)| read_one(name, place, entries, report))
        .collect()
}

/// Reads one `[cache.NAME]`.
fn read_one(name: &str, place: Range<usize>, entries: &DeTable<'_>, report: &mut Report) -> Cache {
    let mut table = Table::new(&SECTION, place.clone(), entries);
    let mut written = RawCache {
        cache: CacheConfig::new(name),
        ttl: Vec::new(),
    };
    table.read(KEYS, &mut written);
    let RawCache { mut cache, ttl } = written;
    fresh_for(ttl, &mut table, &mut cache.freshness.ttl);
    check(&mut table, &mut cache);
    let (memory_place, sessions_place) =
        (table.place_of("memory"), table.place_of("session_cookies"));
    table.finish(report);
    Cache {
        value: cache,
        place,
        memory_place,
        sessions_place,
    }
}

/// Adds the rows of `ttl` to `fresh`: how long responses with these statuses are fresh if they do not say so
/// themselves. Reports rows that are not valid.
fn fresh_for(
    written: Vec<(String, u32)>,
    table: &mut Table<'_>,
    fresh: &mut Vec<(RangeInclusive<u16>, u32)>,
) {
    for (statuses, ttl) in written {
        let place = table.place_of("ttl");
        match parse_statuses(&statuses) {
            Ok(range)
                if *range.start() < 200 || NEVER.iter().any(|never| range.contains(never)) =>
            {
                let message =
                    format!("`ttl` has `{statuses}`, and such a response is never stored");
                table.push(Finding::fault(message, place).hint("remove it"));
            }
            Ok(range) => fresh.push((range, ttl)),
            Err(_) => {
                let message = format!("`ttl` has `{statuses}`, which is no status");
                let hint = "write a status such as 404, or a range such as \"500-504\"";
                table.push(Finding::fault(message, place).hint(hint));
            }
        }
    }
    // A single status comes before a range that contains it.
    fresh.sort_by_key(|(statuses, _)| statuses.len());
}

/// Reports keys of a cache that contradict each other, and lowers `object_max` to what `memory` permits.
fn check(table: &mut Table<'_>, cache: &mut CacheConfig) {
    if cache.object_max > cache.memory / 8 {
        if table.has("object_max") {
            let message = "`object_max` is more than an eighth of `memory`";
            let hint = "a few such responses would take the place of all others: raise `memory`, or lower it";
            table.push(Finding::fault(message, table.place_of("object_max")).hint(hint));
        }
        cache.object_max = cache.memory / 8;
    }
    if cache.freshness.obey {
        return;
    }
    let place = table.place_of("obey");
    if cache.freshness.ttl.is_empty() {
        let message = "with `obey = false` only `ttl` says what is stored, and there is none";
        let hint = "write ttl = { 200 = \"1m\" }, or remove `obey`";
        table.push(Finding::fault(message, place).hint(hint));
    } else {
        let message = "`obey = false` stores what the application says is not to be stored";
        let hint = "name this cache on routes alone whose pages are the same for everybody";
        table.push(Finding::warning(message, place).hint(hint));
    }
}

fn whole(duration: Duration) -> u32 {
    u32::try_from(duration.as_secs()).unwrap_or(u32::MAX)
}

pub(crate) static SECTION: Section = Section {
    header: "[cache.NAME]",
    intro: "A cache of responses in memory. Routes name it with `cache`; without that nothing is stored. \
            It obeys `Cache-Control`, `Expires` and `Vary` of the application as RFC 9111 says, and stores \
            nothing that is for one user alone. Its name must be unique. A reload keeps what is stored. \
            [cache.md](cache.md) explains it.",
    keys: &[Part::all(&KEYS)],
    later: &[(
        "shared",
        "a level in memcached that several fronts share is not available: each front has its own memory",
    )],
};

fn parse_cookie(text: &str) -> Result<String, TextError> {
    // A star is allowed in tokens.
    parse_token(text)
}

/// The value of `query`: which parameters belong to a cache's key.
struct Queries;

impl Values for Queries {
    type Read = QueryRule;

    fn read(&self, value: &Spanned<DeValue<'_>>) -> Result<QueryRule, Vec<Complaint>> {
        const NAMES: OneOrMore<Syntax<String, TextError>> = OneOrMore(Syntax {
            what: "the name of a parameter",
            parse: parse_parameter,
        });
        let wrong = || complaint(format!("must be {}", self.describe()), value);
        match value.get_ref() {
            DeValue::String(word) if word == "all" => Ok(QueryRule::All),
            DeValue::String(word) if word == "none" => Ok(QueryRule::None),
            DeValue::Array(_) => NAMES.read(value).map(QueryRule::Keep),
            DeValue::Table(entries) => match entries.get("drop") {
                Some(names) if entries.len() == 1 => NAMES.read(names).map(QueryRule::Drop),
                _ => Err(wrong()),
            },
            _ => Err(wrong()),
        }
    }

    fn describe(&self) -> String {
        "\"all\" or \"none\", a list of parameters, or { drop = a list of parameters }".to_owned()
    }
}

/// Parses the name of a parameter as it is in a query.
fn parse_parameter(text: &str) -> Result<String, TextError> {
    let is_name = !text.is_empty() && !text.contains(['&', '=', '#']) && text.is_ascii();
    if !is_name {
        return Err(TextError::Token);
    }
    Ok(text.to_owned())
}

/// Statuses that cannot be in `ttl`: a part of a response, and the news that a stored one is valid.
const NEVER: [u16; 2] = [206, 304];

const LONG: Durations = Durations(Duration::ZERO..=Duration::from_secs(365 * 24 * 3600));

const SHORT: Durations = Durations(Duration::from_millis(1)..=Duration::from_secs(3600));

pub(crate) const COOKIE: Syntax<String, TextError> = Syntax {
    what: "a cookie's name such as \"JSESSIONID\"",
    parse: parse_cookie,
};

const FIELD: Syntax<FieldName, FieldError> = Syntax {
    what: "a field's name such as \"Accept-Language\"",
    parse: parse_field_name,
};

static KEYS: &[Key<RawCache>] = &[
    Key {
        name: "memory",
        group: ALL,
        value: fill!(Sizes(1 << 20..=1 << 42), RawCache.cache.memory),
        preset: Preset::Value("\"256MiB\""),
        sample: "\"1GiB\"",
        effect: "Memory for stored responses, with their keys, their fields and what `compress` makes of \
                 them. When it is full, what is used least makes room.",
        extremes: "Too little evicts what is asked for again (`catamaran_cache_evictions_total`). More than \
                   the machine has ends the process.",
        elsewhere: "nginx `proxy_cache_path max_size`; Varnish `-s malloc`",
    },
    Key {
        name: "object_max",
        group: ALL,
        value: fill!(Sizes(1..=1 << 40), RawCache.cache.object_max),
        preset: Preset::Value("\"8MiB\""),
        sample: "\"1MiB\"",
        effect: "The longest body that is stored; a longer one goes to its client alone. It is at most an \
                 eighth of `memory`, and by default no more than that.",
        extremes: "A large one lets a few downloads take the place of many pages.",
        elsewhere: "httpd `CacheMaxFileSize`",
    },
    Key {
        name: "heuristic",
        group: ALL,
        value: fill!(Map(Percents, u32::from), RawCache.cache.freshness.heuristic),
        preset: Preset::Value("\"10%\""),
        sample: "\"0%\"",
        effect: "A response that says nothing of its freshness and has `Last-Modified` is fresh for this \
                 part of the time since then. Only requests without a query, a session or `Authorization` \
                 have such responses stored.",
        extremes: "`\"0%\"` stores only what says how long it is fresh. A large part shows old pages.",
        elsewhere: "httpd `CacheLastModifiedFactor`",
    },
    Key {
        name: "heuristic_max",
        group: ALL,
        value: fill!(Map(LONG, whole), RawCache.cache.freshness.heuristic_max),
        preset: Preset::Value("\"1h\""),
        sample: "\"5m\"",
        effect: "The longest time that `heuristic` makes of it.",
        extremes: "Long times show old pages after a change, since the application has not been asked.",
        elsewhere: "httpd `CacheMaxExpire`",
    },
    Key {
        name: "ttl",
        group: ALL,
        value: fill!(
            NamedValues {
                what: "statuses with how long their responses are fresh",
                of: Map(LONG, whole),
            },
            RawCache.ttl
        ),
        preset: Preset::Value("{}"),
        sample: "{ 200 = \"10m\", 404 = \"30s\" }",
        effect: "How long responses are fresh that do not say it themselves, by status or range of statuses \
                 (`\"500-504\"`). `no-store` and `private` still hold.",
        extremes: "It stores pages whose author thought of no cache: name the cache only on routes whose \
                   pages are the same for everybody.",
        elsewhere: "nginx `proxy_cache_valid`; httpd `CacheDefaultExpire`; Varnish `default_ttl`",
    },
    Key {
        name: "ttl_max",
        group: ALL,
        value: fill!(Map(LONG, whole), RawCache.cache.freshness.ttl_max),
        preset: Preset::Value("\"720h\""),
        sample: "\"1h\"",
        effect: "The longest time for which anything is fresh, whatever says so.",
        extremes: "A short one asks the application again although it said how long a response lasts.",
        elsewhere: "httpd `CacheMaxExpire`",
    },
    Key {
        name: "obey",
        group: ALL,
        value: fill!(Switch, RawCache.cache.freshness.obey),
        preset: Preset::Value("true"),
        sample: "false",
        effect: "`false` ignores what a response says of caches; `ttl` alone decides. Requests with a \
                 session or `Authorization` are still not answered from memory, and responses that set \
                 cookies are treated as `set_cookie` says. For applications whose framework says `no-store` \
                 of every page.",
        extremes: "A page for one user alone is shown to others if its request has neither a session cookie \
                   nor `Authorization`. `check` warns of it.",
        elsewhere: "nginx `proxy_ignore_headers`; httpd `CacheStoreNoStore`, `CacheIgnoreCacheControl`",
    },
    Key {
        name: "stale_while_revalidate",
        group: ALL,
        value: fill!(
            Map(LONG, whole),
            RawCache.cache.freshness.stale_while_revalidate
        ),
        preset: Preset::Value("\"0s\""),
        sample: "\"30s\"",
        effect: "How long after its end of freshness a response is still sent at once, while the front \
                 fetches another. It holds for responses that do not say it themselves \
                 (`stale-while-revalidate`), and never against `must-revalidate`, `no-cache` or `s-maxage`.",
        extremes: "Clients see a page that is older by up to this time.",
        elsewhere: "nginx `proxy_cache_background_update`; Varnish `default_grace`",
    },
    Key {
        name: "stale_if_error",
        group: ALL,
        value: fill!(Map(LONG, whole), RawCache.cache.freshness.stale_if_error),
        preset: Preset::Value("\"0s\""),
        sample: "\"10m\"",
        effect: "How long after its end of freshness a response is sent if no backend gives another: none is \
                 there, it fails, answers one of `stale_status`, or is silent for `stale_wait`. It holds for \
                 responses that do not say it themselves (`stale-if-error`), and never against \
                 `must-revalidate`, `no-cache` or `s-maxage`.",
        extremes: "A broken application looks healthy for as long. [cache.md](cache.md) has a setting for \
                   redeploys.",
        elsewhere: "nginx `proxy_cache_use_stale`; httpd `CacheStaleOnError`",
    },
    Key {
        name: "stale_status",
        group: ALL,
        value: fill!(
            OneOrMore(Syntax {
                what: "a status such as \"503\", or a range such as \"502-504\"",
                parse: parse_statuses,
            }),
            RawCache.cache.stale_status
        ),
        preset: Preset::Value("[\"500\", \"502-504\"]"),
        sample: "[\"404\", \"500\", \"502-504\"]",
        effect: "Statuses of a backend in whose place a stale response is sent, as long as `stale_if_error` \
                 lasts. A Tomcat answers 404 while a WAR is replaced.",
        extremes: "With `404` a page that was removed is shown until `stale_if_error` is over.",
        elsewhere: "nginx `proxy_cache_use_stale http_404`",
    },
    Key {
        name: "stale_wait",
        group: ALL,
        value: fill!(SHORT, RawCache.cache.stale_wait),
        preset: Preset::Value("\"2s\""),
        sample: "\"500ms\"",
        effect: "How long a backend may be silent before a stale response is sent instead; the fetch goes on. \
                 A Tomcat that restarts accepts connections long before it answers.",
        extremes: "Shorter than the application usually takes, clients get stale pages from a healthy one.",
        elsewhere: "",
    },
    Key {
        name: "stale_retry",
        group: ALL,
        value: fill!(SHORT, RawCache.cache.stale_retry),
        preset: Preset::Value("\"1s\""),
        sample: "\"5s\"",
        effect: "How long no backend is asked for a page again after it could not be fetched, while a stale one \
                 may be sent.",
        extremes: "A long one notices late that the application is back.",
        elsewhere: "",
    },
    Key {
        name: "targeted",
        group: ALL,
        value: fill!(OneOrMore(FIELD), RawCache.cache.freshness.targeted),
        preset: Preset::Value("[\"CDN-Cache-Control\"]"),
        sample: "[\"Catamaran-Cache-Control\", \"CDN-Cache-Control\"]",
        effect: "Fields with directives for this cache alone (RFC 9213), the most important first. The first \
                 that a response has and that is well formed counts in the place of `Cache-Control` and \
                 `Expires`.",
        extremes: "`[]` knows `Cache-Control` alone.",
        elsewhere: "nginx `X-Accel-Expires`",
    },
    Key {
        name: "query",
        group: ALL,
        value: fill!(Queries, RawCache.cache.query),
        preset: Preset::Value("\"all\""),
        sample: "{ drop = [\"utm_*\", \"fbclid\"] }",
        effect: "What of a query tells responses apart: `\"all\"`, `\"none\"`, a list of parameters, or all \
                 but those of `drop`, which may end in `*`. What does not count is not sent to the backend, \
                 either.",
        extremes: "The application does not see what is left out. Parameters of advertisements that are not \
                   left out make a copy of each page for each click.",
        elsewhere: "nginx `proxy_cache_key`; httpd `CacheIgnoreQueryString`; Varnish `hash_data`",
    },
    Key {
        name: "key_cookies",
        group: ALL,
        value: fill!(OneOrMore(COOKIE), RawCache.cache.key_cookies),
        preset: Preset::Value("[]"),
        sample: "[\"currency\"]",
        effect: "Cookies whose values tell responses apart, for what an application shows by a cookie \
                 without saying `Vary: Cookie`.",
        extremes: "A cookie that each user has with another value makes a copy for each.",
        elsewhere: "nginx `proxy_cache_key \"…$cookie_NAME\"`",
    },
    Key {
        name: "key_fields",
        group: ALL,
        value: fill!(OneOrMore(FIELD), RawCache.cache.key_fields),
        preset: Preset::Value("[]"),
        sample: "[\"Sec-CH-UA-Mobile\"]",
        effect: "Fields of requests whose values tell responses apart, besides those that `Vary` names.",
        extremes: "`User-Agent` makes a copy of each page for each version of each browser.",
        elsewhere: "nginx `proxy_cache_key \"…$http_NAME\"`",
    },
    Key {
        name: "encodings",
        group: ALL,
        value: fill!(
            OneOrMore(Syntax {
                what: "a coding such as \"gzip\"",
                parse: parse_token,
            }),
            RawCache.cache.encodings
        ),
        preset: Preset::Value("[\"br\", \"gzip\"]"),
        sample: "[\"gzip\"]",
        effect: "Codings that a backend is told the client takes, if it does, in this order: \
                 `Accept-Encoding` is sent as these alone. So all spellings of browsers are one, and a page \
                 has one copy for each coding.",
        extremes: "With `[]` the application compresses nothing.",
        elsewhere: "Varnish, Fastly and Traffic Server do it by themselves",
    },
    Key {
        name: "set_cookie",
        group: ALL,
        value: fill!(
            Choices(&[
                ("refuse", SetCookie::Refuse),
                ("strip", SetCookie::Strip),
                ("store", SetCookie::Store),
            ]),
            RawCache.cache.set_cookie
        ),
        preset: Preset::Value("\"refuse\""),
        sample: "\"strip\"",
        effect: "What is done with a response that sets cookies: `refuse` does not store it, `strip` stores \
                 it without them. A JSP begins a session for everybody unless its page says \
                 `session=\"false\"`. `store` stores it with them.",
        extremes: "With `strip` a client whose page comes from memory begins no session by it. With `store` \
                   all clients get the cookie of the first: a login is shared.",
        elsewhere: "nginx `proxy_ignore_headers Set-Cookie`; httpd `CacheIgnoreHeaders Set-Cookie`",
    },
    Key {
        name: "session_cookies",
        group: ALL,
        value: fill!(OneOrMore(COOKIE), RawCache.cache.session_cookies),
        preset: Preset::Value("[\"JSESSIONID\"]"),
        sample: "[\"JSESSIONID\", \"remember*\"]",
        effect: "Cookies that make a request one of a user, besides those of the upstream's `sticky`; a name \
                 may end in `*`. Such a request gets from memory only what says `public` or `s-maxage`, and \
                 only such a response of it is stored.",
        extremes: "A login whose cookie is not named shows one user's pages to all.",
        elsewhere: "nginx `proxy_no_cache`, `proxy_cache_bypass`; Varnish `builtin.vcl`",
    },
    Key {
        name: "collapse_wait",
        group: ALL,
        value: fill!(SHORT, RawCache.cache.collapse_wait),
        preset: Preset::Value("\"5s\""),
        sample: "\"1s\"",
        effect: "How long a request waits for the same page that another request has asked for, until it \
                 asks itself.",
        extremes: "Shorter than the application takes, all ask at once.",
        elsewhere: "nginx `proxy_cache_lock_timeout`; httpd `CacheLockMaxAge`",
    },
    Key {
        name: "collapse_max",
        group: ALL,
        value: fill!(Counts(0..=1_000_000), RawCache.cache.collapse_max),
        preset: Preset::Value("10000"),
        sample: "0",
        effect: "How many requests wait for one response; more than these ask themselves. 0 lets nobody \
                 wait.",
        extremes: "With 0 every client of a page that expires asks for it.",
        elsewhere: "nginx `proxy_cache_lock`; httpd `CacheLock`",
    },
    Key {
        name: "uncacheable_for",
        group: ALL,
        value: fill!(LONG, RawCache.cache.uncacheable_for),
        preset: Preset::Value("\"2m\""),
        sample: "\"10s\"",
        effect: "How long nobody waits for another one's response of a page that could not be stored.",
        extremes: "With `\"0s\"` clients of a page that is never stored wait for each other.",
        elsewhere: "Varnish hit-for-miss",
    },
    Key {
        name: "variants_max",
        group: ALL,
        value: fill!(Counts(1..=1000), RawCache.cache.variants_max),
        preset: Preset::Value("16"),
        sample: "4",
        effect: "Responses of one URL that differ by what `Vary` names. The oldest makes room.",
        extremes: "Each request compares them one by one.",
        elsewhere: "",
    },
    Key {
        name: "cache_status",
        group: ALL,
        value: fill!(Switch, RawCache.cache.cache_status),
        preset: Preset::Value("true"),
        sample: "false",
        effect: "Whether responses tell by `Cache-Status` (RFC 9211) what the cache did with them.",
        extremes: "`false` hides from clients that there is a cache; the access log has it all the same.",
        elsewhere: "httpd `CacheHeader`; nginx `$upstream_cache_status`",
    },
];

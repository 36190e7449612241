//! `[limit.NAME]`: limits of requests, which listeners and routes name.

use std::ops::Range;
use std::time::Duration;

use catamaran_proxy::config::{FieldName, LimitBy, LimitConfig, Quota};
use http::Method;
use ipnet::IpNet;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::named;
use crate::fill;
use crate::key::{ALL, Key, Part, Preset, Section};
use crate::report::{Finding, Report};
use crate::table::Table;
use crate::value::route::parse_method;
use crate::value::text::{TextError, parse_name, parse_network};
use crate::value::{Counts, OneOrMore, Optional, Switch, Syntax};

/// A limit and its place in the file.
#[derive(Debug)]
pub(crate) struct Limit {
    pub(crate) value: LimitConfig,
    pub(crate) place: Range<usize>,
    /// Where `burst` is in the file; without it, the table's header.
    pub(crate) burst_place: Range<usize>,
}

/// The values of the keys of `[limit.NAME]`, before they are checked against each other.
struct RawLimit {
    rate: Option<(u32, Duration)>,
    in_flight: Option<u32>,
    burst: u32,
    by: LimitBy,
    methods: Vec<Method>,
    except: Vec<IpNet>,
    prefix: Vec<u8>,
    enforce: bool,
    fields: bool,
}

/// Reads all tables `[limit.NAME]`. Those with faults are missing.
pub(crate) fn read(value: &Spanned<DeValue<'_>>, report: &mut Report) -> Vec<Limit> {
    let tables = named(&[&SECTION], "a limit", value, report).into_iter();
    tables
        .filter_map(|(name, place, entries)| read_one(name, place, entries, report))
        .collect()
}

/// Reads one `[limit.NAME]`; `None` if it has faults.
fn read_one(
    name: &str,
    place: Range<usize>,
    entries: &DeTable<'_>,
    report: &mut Report,
) -> Option<Limit> {
    let mut table = Table::new(&SECTION, place.clone(), entries);
    // The defaults of the keys.
    let mut written = RawLimit {
        rate: None,
        in_flight: None,
        burst: 1,
        by: LimitBy::Client,
        methods: Vec::new(),
        except: Vec::new(),
        prefix: vec![32, 64],
        enforce: true,
        fields: false,
    };
    table.read(KEYS, &mut written);
    let (quota, prefix) = (quota(&mut table, &written), prefix(&mut table, &written));
    let burst_place = table.place_of("burst");
    // A limit of GET takes HEAD as well.
    if written.methods.contains(&Method::GET) {
        written.methods.push(Method::HEAD);
    }
    table.finish(report);
    Some(Limit {
        value: LimitConfig {
            name: name.to_owned(),
            quota: quota?,
            by: written.by,
            methods: written.methods,
            except: written.except,
            prefix: prefix?,
            enforce: written.enforce,
            fields: written.fields,
        },
        place,
        burst_place,
    })
}

/// The quota of a limit: requests in a time, or requests in flight. Reports keys that do not fit together.
fn quota(table: &mut Table<'_>, written: &RawLimit) -> Option<Quota> {
    match (table.has("rate"), table.has("in_flight")) {
        (true, true) => {
            let message = "[limit.NAME] has both `rate` and `in_flight`";
            let hint = "write two limits, and name both in `limits`";
            table.push(Finding::fault(message, table.place_of("in_flight")).hint(hint));
            None
        }
        (true, false) => {
            let (count, period) = written.rate?;
            Some(Quota::rate(count, period, written.burst))
        }
        (false, true) => {
            for key in ["burst", "fields"] {
                if table.has(key) {
                    let message = format!("`{key}` has no use beside `in_flight`");
                    table.push(Finding::fault(message, table.place_of(key)).hint("remove it"));
                }
            }
            written.in_flight.map(Quota::InFlight)
        }
        (false, false) => {
            // If one of the keys is only misspelled, the report about that key says so.
            if !table.has_slip_of(&["rate", "in_flight"]) {
                let message = "[limit.NAME] says neither `rate` nor `in_flight`";
                let hint =
                    "write how many requests are granted in which time, such as rate = \"30/m\"";
                table.push(Finding::fault(message, table.place()).hint(hint));
            }
            None
        }
    }
}

/// The bits of an IPv4 and of an IPv6 address by which clients are one key; `None`, with a fault, if they are not
/// valid.
fn prefix(table: &mut Table<'_>, written: &RawLimit) -> Option<[u8; 2]> {
    match written.prefix[..] {
        [v4, v6] if v4 <= 32 => Some([v4, v6]),
        _ => {
            let message = "`prefix` must be two numbers: bits of an IPv4 address, at most 32, and of an IPv6 address";
            let finding = Finding::fault(message, table.place_of("prefix"));
            table.push(finding.hint("write prefix = [32, 64]"));
            None
        }
    }
}

/// Parses a rate such as `30/m` as a number of requests and the time for it.
pub(crate) fn parse_rate(text: &str) -> Result<(u32, Duration), RateError> {
    let (count, unit) = text.split_once('/').ok_or(RateError::Form)?;
    let seconds = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        _ => return Err(RateError::Form),
    };
    if count.is_empty() || !count.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(RateError::Form);
    }
    // Digits alone that are no number of 32 bits are too many.
    let count: u32 = count.parse().map_err(|_| RateError::High)?;
    if count == 0 {
        return Err(RateError::Zero);
    }
    if u64::from(count) > seconds * PER_SECOND_MAX {
        return Err(RateError::High);
    }
    Ok((count, Duration::from_secs(seconds)))
}

/// Why a text is not a rate.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum RateError {
    /// The text is not a number, a slash, and `s`, `m` or `h`.
    #[error("must be a whole number and a time, such as \"20/s\", \"30/m\" or \"100/h\"")]
    Form,
    /// The rate is 0.
    #[error("must be at least 1; to serve nobody, write status = 403 in the route")]
    Zero,
    /// The rate is higher than [`PER_SECOND_MAX`].
    #[error("is more than {PER_SECOND_MAX} a second; remove the limit")]
    High,
}

/// Parses the value of `by`: what makes requests one key.
fn parse_by(text: &str) -> Result<LimitBy, TextError> {
    match text {
        "client" => Ok(LimitBy::Client),
        "all" => Ok(LimitBy::All),
        "user" => Ok(LimitBy::User),
        "host" => Ok(LimitBy::Host),
        _ => {
            let name = text.strip_prefix("header:").ok_or(TextError::LimitBy)?;
            let field = FieldName::parse(name.as_bytes());
            field.map(LimitBy::Header).ok_or(TextError::LimitBy)
        }
    }
}

/// The value of the key `limits` of a listener or a route: names of limits.
pub(crate) const NAMES: OneOrMore<Syntax<String, TextError>> = OneOrMore(Syntax {
    what: "the name of a [limit.NAME]",
    parse: parse_name,
});

pub(crate) static SECTION: Section = Section {
    header: "[limit.NAME]",
    intro: "A limit of requests, which listeners and routes name with `limits`; without that it limits nothing. A \
            request beyond it is answered 429 with `Retry-After` at once. Its name must be unique, and is its scope: \
            what a client sends to one route counts on all others with the same limit. A reload keeps what clients \
            owe; an upgrade and a restart forget it. [limits.md](limits.md) explains it.",
    keys: &[Part::all(&KEYS)],
    later: &[],
};

static KEYS: &[Key<RawLimit>] = &[
    Key {
        name: "rate",
        group: ALL,
        value: fill!(
            Optional(Syntax {
                what: "a rate such as \"20/s\", \"30/m\" or \"100/h\"",
                parse: parse_rate,
            }),
            RawLimit.rate
        ),
        preset: Preset::Unset("none; this or `in_flight` must be written"),
        sample: "\"30/m\"",
        effect: "How many requests a key may send in a second, a minute or an hour; at most 1,000,000 a second. They \
                 are spread evenly: with `\"30/m\"` and `burst = 1`, one every two seconds.",
        extremes: "Too low refuses people behind one address, such as a school or a company. Too high limits nobody; \
                   `enforce = false` shows which requests would be refused.",
        elsewhere: "nginx `limit_req_zone rate=`; HAProxy `http_req_rate`; Traefik `rateLimit.average`",
    },
    Key {
        name: "in_flight",
        group: ALL,
        value: fill!(Optional(Counts(1..=1_000_000)), RawLimit.in_flight),
        preset: Preset::Unset("none; this or `rate` must be written"),
        sample: "4",
        effect: "How many requests a key may have at the same time, instead of a rate: from the verdict on a request to \
                 the last byte of its response, or the end of its tunnel. One more is answered 429 (`in-flight`) with \
                 `Retry-After: 1`.",
        extremes: "It counts requests, not connections: HTTP/2 has 100 on one. A browser has six or more, and a page \
                   with WebSocket one for as long as it is open.",
        elsewhere: "nginx `limit_conn`; HAProxy `maxconn` with `stick-table conn_cur`; Traefik `inFlightReq`",
    },
    Key {
        name: "burst",
        group: ALL,
        value: fill!(Counts(1..=1_000_000), RawLimit.burst),
        preset: Preset::Value("1"),
        sample: "10",
        effect: "How many requests a key may send at once if it has sent none for long. Then the rate holds.",
        extremes: "A browser asks for six or more parts of a page at once, and 1 refuses most of them. A burst as \
                   large as a minute's requests lets twice the rate pass in one minute.",
        elsewhere: "nginx `limit_req burst= nodelay`, which does not count the first request; Traefik `rateLimit.burst`",
    },
    Key {
        name: "by",
        group: ALL,
        value: fill!(
            Syntax {
                what: "\"client\", \"user\", \"host\", \"header:NAME\" or \"all\"",
                parse: parse_by,
            },
            RawLimit.by
        ),
        preset: Preset::Value("\"client\""),
        sample: "\"all\"",
        effect: "What makes requests one key: `\"client\"` is the client's address, of IPv6 the network (`prefix`), \
                 as `trusted_proxies` tell it. `\"header:NAME\"` is the value \
                 of that field, `\"host\"` the host that is asked for; a request without it, or with the field twice, counts \
                 to its client's address. \
                 `\"user\"` is the user that the sign-on of the route told (`auth`), after which such a limit is asked; \
                 an anonymous client counts by its address. With `\"all\"` all requests are one key.",
        extremes: "Requests of a proxy in `trusted_proxies` that does not tell its client's address are not limited, \
                   and counted (`limit-no-client`). Behind a proxy that is not in `trusted_proxies`, all clients are \
                   one key.",
        elsewhere: "nginx `limit_req_zone KEY`; HAProxy `stick-table type`",
    },
    Key {
        name: "methods",
        group: ALL,
        value: fill!(
            OneOrMore(Syntax {
                what: "a method such as \"POST\"",
                parse: parse_method,
            }),
            RawLimit.methods
        ),
        preset: Preset::Unset("all methods"),
        sample: "[\"POST\"]",
        effect: "The methods whose requests are limited; others pass and cost nothing.",
        extremes: "A limit of a login with `\"POST\"` alone lets the form be shown as often as one likes.",
        elsewhere: "httpd `<Limit>`; nginx a `map` of `$request_method` to an empty key",
    },
    Key {
        name: "except",
        group: ALL,
        value: fill!(
            OneOrMore(Syntax {
                what: "an IP address or network such as \"10.0.0.0/8\"",
                parse: parse_network,
            }),
            RawLimit.except
        ),
        preset: Preset::Value("[]"),
        sample: "[\"10.0.0.0/8\"]",
        effect: "The networks whose clients are not limited. What counts is the client's address as \
                 `trusted_proxies` tell it.",
        extremes: "A network of strangers in it is a way around the limit.",
        elsewhere: "nginx a `geo` to an empty key; Traefik `excludedIPs`",
    },
    Key {
        name: "prefix",
        group: ALL,
        value: fill!(OneOrMore(Counts(0..=128)), RawLimit.prefix),
        preset: Preset::Value("[32, 64]"),
        sample: "[24, 48]",
        effect: "How many bits of a client's IPv4 and IPv6 address make a key.",
        extremes: "A client of IPv6 has a whole /64, often a /48 with 65,536 of them: a second limit with \
                   `prefix = [24, 48]` and a higher rate limits those. With less bits strangers share a key.",
        elsewhere: "HAProxy `ipmask`; Traefik `ipv6Subnet`",
    },
    Key {
        name: "enforce",
        group: ALL,
        value: fill!(Switch, RawLimit.enforce),
        preset: Preset::Value("true"),
        sample: "false",
        effect: "Whether requests beyond the limit are refused. With `false` they are served, counted \
                 (`result=\"dry\"`) and logged (`limit_dry=NAME`).",
        extremes: "A limit that is never enforced protects nothing; `status --limits` says that it is dry.",
        elsewhere: "nginx `limit_req_dry_run`",
    },
    Key {
        name: "fields",
        group: ALL,
        value: fill!(Switch, RawLimit.fields),
        preset: Preset::Value("false"),
        sample: "true",
        effect: "Whether responses of routes with this limit have `RateLimit-Policy` and `RateLimit` \
                 (draft-ietf-httpapi-ratelimit-headers-10), by which a program can slow down before it is refused. A \
                 limit of a listener sends them with 429 alone.",
        extremes: "The draft has expired, and its fields have changed their names before. It tells attackers the limit.",
        elsewhere: "Kong `rate-limiting` sends such fields; nginx, httpd and HAProxy none",
    },
];

/// The highest rate, in requests a second: with a higher one the front could not tell the times of two requests apart.
const PER_SECOND_MAX: u64 = 1_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_a_number_and_a_time() {
        for (text, expected) in [
            ("20/s", Ok((20, 1))),
            ("30/m", Ok((30, 60))),
            ("1/h", Ok((1, 3600))),
            ("1000000/s", Ok((1_000_000, 1))),
            ("1000001/s", Err(RateError::High)),
            ("60000000/m", Ok((60_000_000, 60))),
            ("3600000000/h", Ok((3_600_000_000, 3600))),
            ("3600000001/h", Err(RateError::High)),
            ("99999999999999999999/h", Err(RateError::High)),
            ("0/s", Err(RateError::Zero)),
            ("20", Err(RateError::Form)),
            ("20/d", Err(RateError::Form)),
            ("/s", Err(RateError::Form)),
            ("+2/s", Err(RateError::Form)),
            ("2.5/s", Err(RateError::Form)),
            ("20r/s", Err(RateError::Form)),
        ] {
            let rate = parse_rate(text).map(|(count, period)| (count, period.as_secs()));
            assert_eq!(rate, expected, "{text}");
        }
    }
}

//! `[[listen]]`: where clients are accepted, and their limits.

mod http2;
mod https;
mod limits;
mod proxy;

use std::path::PathBuf;
use std::time::Duration;

use catamaran_proxy::config::{ListenAddress, ListenerConfig, QueryForm, Quota};
use http2::Protocol;
use toml::Spanned;
use toml::de::DeValue;

use super::limit::{self, RateError, parse_rate};
use super::{PlacedValue, Surroundings};
use crate::fill;
use crate::key::{ALL, Key, Part, Preset, Section};
use crate::report::{Finding, Report};
use crate::table::{Table, tables};
use crate::value::address::{listen_from, parse_listen_address};
use crate::value::text::parse_name;
use crate::value::{Choices, Counts, Durations, Optional, OrOff, Sizes, Switch, Syntax};

/// The values of the keys of `[[listen]]`, before they are checked against each other.
struct RawListen {
    address: Option<ListenAddress>,
    protocols: Option<Vec<Protocol>>,
    listener: ListenerConfig,
}

/// Reads all tables `[[listen]]`.
pub(crate) fn read(
    value: &Spanned<DeValue<'_>>,
    surroundings: &Surroundings<'_>,
    report: &mut Report,
) -> Vec<PlacedValue<ListenerConfig>> {
    let mut listeners = Vec::new();
    for (place, entries) in tables(SECTION.header, value, report) {
        let mut table = Table::new(&SECTION, place, entries);
        let mut written = RawListen {
            address: None,
            protocols: None,
            // A placeholder: a bad address must not hide the faults of the other keys.
            listener: ListenerConfig::new(ListenAddress::Unix(PathBuf::new())),
        };
        for keys in [KEYS, proxy::KEYS, http2::KEYS, https::KEYS, limits::KEYS] {
            table.read(keys, &mut written);
        }
        let place = table.place_of("address");
        let listener = read_one(written, &mut table, surroundings);
        table.finish(report);
        listeners.extend(listener.map(|value| PlacedValue { value, place }));
    }
    listeners
}

/// The listener of a table; `None` if its address is missing or not valid.
fn read_one(
    written: RawListen,
    table: &mut Table<'_>,
    surroundings: &Surroundings<'_>,
) -> Option<ListenerConfig> {
    let RawListen {
        address,
        protocols,
        mut listener,
    } = written;
    let has_address = address.is_some();
    if let Some(mut address) = address {
        if let Err(error) = listen_from(surroundings.base, &mut address) {
            let message = format!("`address` {error}");
            table.push(Finding::fault(message, table.place_of("address")));
        }
        listener.address = address;
    }
    // Without an address, the listener is checked for the report alone.
    https::check(table, surroundings, &mut listener);
    proxy::check(table, &listener);
    http2::check(table, protocols, &mut listener);
    limits::check(table, &listener.limits);
    has_address.then_some(listener)
}

/// Parses a rate of connections, such as `30/m`. The whole number may come at once.
fn parse_connections(text: &str) -> Result<Quota, RateError> {
    let (count, period) = parse_rate(text)?;
    Ok(Quota::rate(count, period, count))
}

pub(crate) static SECTION: Section = Section {
    header: "[[listen]]",
    intro: "Where clients are accepted; one table per address, at least one.",
    keys: &[
        Part::all(&KEYS),
        Part::all(&proxy::KEYS),
        Part::all(&http2::KEYS),
        Part::all(&https::KEYS),
        Part::all(&limits::KEYS),
    ],
    later: &[
        ("certificate", TLS_ADVICE),
        ("certificate_file", TLS_ADVICE),
        ("certificate_key", TLS_ADVICE),
        ("key_file", TLS_ADVICE),
    ],
};

const TLS_ADVICE: &str = "certificates stand in [[tls.NAME.certificate]]; write them there, and \
                          tls = \"NAME\" here";

const RATE: Counts<u64> = Counts(0..=1_000_000_000);

/// The range of timeouts for clients: less than 10 ms would be a mistake, and more than a day has no use.
const WAIT: Durations = Durations(Duration::from_millis(10)..=Duration::from_secs(24 * 3600));

static KEYS: &[Key<RawListen>] = &[
    Key {
        name: "address",
        group: ALL,
        value: fill!(
            Optional(Syntax {
                what: "an address such as \"127.0.0.1:8080\", \"[::1]:8080\" or \"unix:/run/front.sock\"",
                parse: parse_listen_address,
            }),
            RawListen.address
        ),
        preset: Preset::Required,
        sample: "\"127.0.0.1:8080\"",
        effect: "Where to listen. `[::]:80` takes clients of IPv4, too, unless another listener of the file \
                 has an IPv4 address with the same port. Port 0 lets the system choose; the choice is \
                 printed at the start. A socket's file is created with mode 0660, and a stale one is \
                 replaced; a relative path starts from the directory of the configuration file.",
        extremes: "Ports below 1024 need a privilege (`CAP_NET_BIND_SERVICE`). A reload cannot add an \
                   IPv4 address beside a `[::]` that took its clients so far: that needs a restart.",
        elsewhere: "nginx `listen`; httpd `Listen`; Tomcat `<Connector address port>`",
    },
    Key {
        name: "name",
        group: ALL,
        value: fill!(
            Optional(Syntax {
                what: "a name such as \"partners\"",
                parse: parse_name,
            }),
            RawListen.listener.name
        ),
        preset: Preset::Unset("its `address`"),
        sample: "\"partners\"",
        effect: "By what `listen` of a [[route]] may name this listener, besides its address. \
                 [tls.md](tls.md) has an example.",
        extremes: "Two listeners of one name are a fault. With port 0, only a name tells two of them apart.",
        elsewhere: "HAProxy `frontend NAME`",
    },
    Key {
        name: "keep_alive_timeout",
        group: ALL,
        value: fill!(WAIT, RawListen.listener.keep_alive_timeout),
        preset: Preset::Value("\"60s\""),
        sample: "\"15s\"",
        effect: "How long an idle connection waits for the next request before it is closed.",
        extremes: "Too short and clients pay a new connection per click. Too long and idle \
                   connections use up `connections_max`. Behind a load balancer, keep it above the \
                   balancer's own idle time, or it will reuse connections that are closing.",
        elsewhere: "nginx `keepalive_timeout`; httpd `KeepAliveTimeout`; Tomcat `keepAliveTimeout`",
    },
    Key {
        name: "keep_alive_requests",
        group: ALL,
        value: fill!(
            Counts(1..=1_000_000_000),
            RawListen.listener.keep_alive_requests
        ),
        preset: Preset::Value("10000"),
        sample: "100",
        effect: "Requests on one connection before it is closed, so that connections spread over \
                 the workers anew from time to time.",
        extremes: "1 turns keep-alive off.",
        elsewhere: "nginx `keepalive_requests`; httpd `MaxKeepAliveRequests`; Tomcat \
                    `maxKeepAliveRequests`",
    },
    Key {
        name: "head_timeout",
        group: ALL,
        value: fill!(WAIT, RawListen.listener.head_timeout),
        preset: Preset::Value("\"10s\""),
        sample: "\"5s\"",
        effect: "The deadline for a whole head from its first byte; for a connection's first \
                 request, from the accept. Late heads are answered 408.",
        extremes: "Too short hurts clients on bad networks. Too long lets clients that send a byte \
                   at a time hold connections.",
        elsewhere: "nginx `client_header_timeout`; httpd `RequestReadTimeout header`; HAProxy \
                    `timeout http-request`",
    },
    Key {
        name: "body_timeout",
        group: ALL,
        value: fill!(WAIT, RawListen.listener.body_timeout),
        preset: Preset::Value("\"15s\""),
        sample: "\"30s\"",
        effect: "How long a client may be silent within a request's body.",
        extremes: "Too short breaks uploads from phones. Too long lets a silent client hold a \
                   connection of the backend.",
        elsewhere: "nginx `client_body_timeout`; httpd `RequestReadTimeout body`; Tomcat \
                    `connectionUploadTimeout`",
    },
    Key {
        name: "write_timeout",
        group: ALL,
        value: fill!(WAIT, RawListen.listener.write_timeout),
        preset: Preset::Value("\"30s\""),
        sample: "\"1m\"",
        effect: "How long a client may refuse to take the next bytes of a response before its \
                 connection is cut; over HTTP/2 the response alone is.",
        extremes: "Too short cuts slow readers off. Too long lets a stalled reader hold a \
                   connection of the backend.",
        elsewhere: "nginx `send_timeout`; httpd `TimeOut`",
    },
    Key {
        name: "body_rate_min",
        group: ALL,
        value: fill!(RATE, RawListen.listener.body_rate_min),
        preset: Preset::Value("500"),
        sample: "1000",
        effect: "Bytes a second that a client must send of a body, on average, after 10 s of grace. \
                 Time in which the backend takes nothing does not count. A slower client is answered \
                 408.",
        extremes: "0 demands none: a byte within each `body_timeout` then holds a connection of the \
                   backend for as long as the client likes.",
        elsewhere: "httpd `RequestReadTimeout body=10,MinRate=500`",
    },
    Key {
        name: "write_rate_min",
        group: ALL,
        value: fill!(RATE, RawListen.listener.write_rate_min),
        preset: Preset::Value("500"),
        sample: "2000",
        effect: "Bytes a second that a client must take of a response, on average, after 10 s of \
                 grace; a slower one is cut. Over HTTP/2 it holds for each response: see \
                 [http2.md](http2.md#clients-that-hold-responses).",
        extremes: "0 demands none: a byte within each `write_timeout` is enough.",
        elsewhere: "none in nginx, httpd or Tomcat",
    },
    Key {
        name: "body_max",
        group: ALL,
        value: fill!(OrOff(Sizes(0..=1 << 50)), RawListen.listener.body_max),
        preset: Preset::Value("\"off\""),
        sample: "\"100MiB\"",
        effect: "The largest body of a request; a larger one is answered 413. Off by default: \
                 bodies are streamed, and the application has a limit of its own.",
        extremes: "0 refuses every body. Off leaves the limit to the application.",
        elsewhere: "nginx `client_max_body_size`; httpd `LimitRequestBody`; Tomcat `maxPostSize`, \
                    `maxSwallowSize`",
    },
    Key {
        name: "serve_half_closed",
        group: ALL,
        value: fill!(Switch, RawListen.listener.serve_half_closed),
        preset: Preset::Value("false"),
        sample: "true",
        effect: "Whether a client is answered that closes its sending side before it has its \
                 response, as `nc -N` and `ncat` do. By default it is taken to have left, because \
                 over TCP a client that gives up looks the same: its request is taken out of the \
                 queue, or given up at the backend, and logged as `499` with `client:gone`.",
        extremes: "With `true`, only clients that reset their connections are noticed before a \
                   response is written to them: the requests of the others are run for nobody.",
        elsewhere: "nginx `proxy_ignore_client_abort`; HAProxy `option abortonclose` (its reverse)",
    },
    Key {
        name: "query",
        group: ALL,
        value: fill!(
            Choices(&[
                ("as-received", QueryForm::AsReceived),
                ("escape", QueryForm::Escaped),
            ]),
            RawListen.listener.query
        ),
        preset: Preset::Value("\"as-received\""),
        sample: "\"escape\"",
        effect: "How queries are passed on. As received, all printable ASCII stays as the client \
                 sent it, so that signatures over the query hold. With `escape`, the characters \
                 `\"<>[\\]^`{|}` are escaped, and a percent sign that begins no escape becomes \
                 `%25`. Either way bytes beyond ASCII are escaped, and controls, space and `#` are \
                 refused.",
        extremes: "As received, a Tomcat behind HTTP answers 400 to `\"<>[\\]^`{|}` in a query, \
                   unless its `relaxedQueryChars` lists them; over AJP it takes them.",
        elsewhere: "Tomcat `relaxedQueryChars`; nginx, httpd and mod_jk pass a query on as received",
    },
    Key {
        name: "limits",
        group: ALL,
        value: fill!(limit::NAMES, RawListen.listener.request_limits),
        preset: Preset::Value("[]"),
        sample: "[\"NAME\"]",
        effect: "The limits, at most four, that all requests of this listener are subject to, before those of their \
                 routes. A request beyond one of them is answered 429 (`rate-limited`).",
        extremes: "Requests that are refused or redirected to `https` before a route is looked for are not counted.",
        elsewhere: "nginx `limit_req`; HAProxy `http-request deny if`; Traefik `rateLimit`",
    },
    Key {
        name: "connection_rate",
        group: ALL,
        value: fill!(
            OrOff(Syntax {
                what: "a rate such as \"20/s\", \"30/m\" or \"100/h\"",
                parse: parse_connections,
            }),
            RawListen.listener.connection_rate
        ),
        preset: Preset::Value("\"off\""),
        sample: "\"20/s\"",
        effect: "How many connections of one client address, or network of 64 bits, are accepted in a time; as many may \
                 come at once. One more is closed before TLS (`connection-rate`), and the log, `status` and the events \
                 say so. Peers in `trusted_proxies` and clients of Unix sockets are not counted.",
        extremes: "Too low turns away many people behind one address. Clients of HTTP/1.0, and those that keep no \
                   connection, need one for each request.",
        elsewhere: "HAProxy `src_conn_rate`; nftables `limit rate` with `ct state new`",
    },
    Key {
        name: "linger_max",
        group: ALL,
        value: fill!(Sizes(0..=1 << 50), RawListen.listener.linger_max),
        preset: Preset::Value("\"10MiB\""),
        sample: "\"100MiB\"",
        effect: "How much of a request's body is read after its response, when the application \
                 answers before it has read the body, such as with 401 or 413. Many clients write \
                 all of a request before they read; they get the answer only if all of it is read. \
                 If the response said `Connection: close`, the connection is half-closed meanwhile.",
        extremes: "Below the size of common uploads, clients report a reset instead of the answer. \
                   The bytes are received for nothing, so without a limit a client could send for \
                   ever.",
        elsewhere: "mod_jk and httpd read all of it; Tomcat `maxSwallowSize`",
    },
    Key {
        name: "linger_timeout",
        group: ALL,
        value: fill!(WAIT, RawListen.listener.linger_timeout),
        preset: Preset::Value("\"30s\""),
        sample: "\"2m\"",
        effect: "How long a request's body is read after its response; see `linger_max`. Within \
                 this time `body_timeout` and `body_rate_min` hold as before the response.",
        extremes: "Too short loses answers to uploads over slow lines. Too long lets clients hold \
                   connections that nobody serves.",
        elsewhere: "nginx `lingering_time`; httpd lingers 30 s",
    },
    Key {
        name: "tls",
        group: ALL,
        value: fill!(
            Optional(Syntax {
                what: "the name of a [tls.NAME]",
                parse: parse_name,
            }),
            RawListen.listener.tls
        ),
        preset: Preset::Unset("clear text"),
        sample: "\"NAME\"",
        effect: "The profile of TLS that clients are served with. A client that speaks HTTP without \
                 TLS is answered 400 in clear.",
        extremes: "Without it everybody on the way reads and changes what is sent.",
        elsewhere: "nginx `listen ... ssl`; httpd `SSLEngine`; HAProxy `bind ... ssl`",
    },
];

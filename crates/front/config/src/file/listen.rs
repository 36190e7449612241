//! `[[listen]]`: where clients are accepted, and their limits.

mod http2;
mod https;
mod proxy;

use std::time::Duration;

use catamaran_front::config::{ListenAddress, ListenerConfig, QueryForm};
use toml::Spanned;
use toml::de::DeValue;

use super::{PlacedValue, Surroundings};
use crate::key::{Doc, Key, Preset, Section};
use crate::report::{Finding, Report};
use crate::table::{Table, tables};
use crate::value::address::{ListenError, listen_from, parse_listen_address};
use crate::value::text::{TextError, parse_name};
use crate::value::{Choices, Counts, Durations, OrOff, Parsed, Sizes, Switch};

/// Reads the tables.
pub(crate) fn read(
    value: &Spanned<DeValue<'_>>,
    surroundings: &Surroundings<'_>,
    report: &mut Report,
) -> Vec<PlacedValue<ListenerConfig>> {
    let mut listeners = Vec::new();
    for (place, entries) in tables(SECTION.header, value, report) {
        let mut table = Table::new(&SECTION, place, entries);
        let mut address = table.require(&ADDRESS);
        if let Some(Err(error)) = address
            .as_mut()
            .map(|it| listen_from(surroundings.base, it))
        {
            let message = format!("`{}` {error}", ADDRESS.name);
            table.push(Finding::fault(message, table.place_of(&ADDRESS)));
        }
        let place = table.place_of(&ADDRESS);
        // A bad address must not hide the faults of the other keys.
        let unplaced = || ListenAddress::Unix(std::path::PathBuf::new());
        let mut listener = ListenerConfig::new(address.clone().unwrap_or_else(unplaced));
        listener.name = table.take(&NAME);
        settings(&mut table, &mut listener);
        https::read(&mut table, surroundings, &mut listener);
        proxy::read(&mut table, &mut listener);
        http2::read(&mut table, &mut listener);
        limits(&mut table, &mut listener);
        table.finish(report);
        listeners.extend(address.map(|_| PlacedValue {
            value: listener,
            place,
        }));
    }
    listeners
}

fn settings(table: &mut Table<'_>, listener: &mut ListenerConfig) {
    table.set(&KEEP_ALIVE_TIMEOUT, &mut listener.keep_alive_timeout);
    table.set(&KEEP_ALIVE_REQUESTS, &mut listener.keep_alive_requests);
    table.set(&HEAD_TIMEOUT, &mut listener.head_timeout);
    table.set(&BODY_TIMEOUT, &mut listener.body_timeout);
    table.set(&WRITE_TIMEOUT, &mut listener.write_timeout);
    table.set(&BODY_RATE_MIN, &mut listener.body_rate_min);
    table.set(&WRITE_RATE_MIN, &mut listener.write_rate_min);
    table.set(&BODY_MAX, &mut listener.body_max);
    table.set(&SERVE_HALF_CLOSED, &mut listener.serve_half_closed);
    table.set(&QUERY, &mut listener.query);
    table.set(&LINGER_MAX, &mut listener.linger_max);
    table.set(&LINGER_TIMEOUT, &mut listener.linger_timeout);
}

fn limits(table: &mut Table<'_>, listener: &mut ListenerConfig) {
    let limits = &mut listener.limits;
    table.set(&HEAD_MAX, &mut limits.head_bytes);
    table.set(&TARGET_MAX, &mut limits.target_bytes);
    table.set(&LINE_MAX, &mut limits.line_bytes);
    table.set(&FIELDS_MAX, &mut limits.fields);
    table.set(&TRAILER_MAX, &mut limits.trailer_bytes);
    table.set(&CHUNK_EXTENSIONS_MAX, &mut limits.chunk_extension_bytes);
    for (key, bytes) in [
        (&TARGET_MAX, limits.target_bytes),
        (&LINE_MAX, limits.line_bytes),
    ] {
        if table.has(key) && bytes > limits.head_bytes {
            let message = format!("`{}` is larger than `{}`", key.name, HEAD_MAX.name);
            let hint = "a head over `head_max` is refused first; raise that one too";
            table.push(Finding::warning(message, table.place_of(key)).hint(hint));
        }
    }
}

pub(crate) static SECTION: Section = Section {
    header: "[[listen]]",
    intro: "Where clients are accepted; one table per address, at least one.",
    keys: &[
        &ADDRESS,
        &NAME,
        &KEEP_ALIVE_TIMEOUT,
        &KEEP_ALIVE_REQUESTS,
        &HEAD_TIMEOUT,
        &BODY_TIMEOUT,
        &WRITE_TIMEOUT,
        &BODY_RATE_MIN,
        &WRITE_RATE_MIN,
        &BODY_MAX,
        &SERVE_HALF_CLOSED,
        &QUERY,
        &LINGER_MAX,
        &LINGER_TIMEOUT,
        &https::TLS,
        &proxy::PROXY_PROTOCOL,
        &proxy::PROXY_PROTOCOL_FROM,
        &proxy::PROXY_PROTOCOL_TLS,
        &http2::PROTOCOLS,
        &http2::STREAMS_MAX,
        &http2::WINDOW,
        &http2::CONNECTION_WINDOW,
        &http2::RESETS,
        &http2::RESETS_TRUSTED,
        &https::REDIRECT_HTTPS,
        &https::HSTS,
        &https::ACME_WEBROOT,
        &HEAD_MAX,
        &TARGET_MAX,
        &LINE_MAX,
        &FIELDS_MAX,
        &TRAILER_MAX,
        &CHUNK_EXTENSIONS_MAX,
    ],
    parts: &[],
    later: &[
        ("certificate", TLS_ADVICE),
        ("certificate_file", TLS_ADVICE),
        ("certificate_key", TLS_ADVICE),
        ("key_file", TLS_ADVICE),
    ],
};

const TLS_ADVICE: &str = "certificates stand in [[tls.NAME.certificate]]; write them there, and \
                          tls = \"NAME\" here";

static ADDRESS: Key<Parsed<ListenAddress, ListenError>> = Key {
    name: "address",
    values: Parsed {
        what: "an address such as \"127.0.0.1:8080\", \"[::1]:8080\" or \"unix:/run/front.sock\"",
        parse: parse_listen_address,
    },
    doc: Doc {
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
};

static NAME: Key<Parsed<String, TextError>> = Key {
    name: "name",
    values: Parsed {
        what: "a name such as \"partners\"",
        parse: parse_name,
    },
    doc: Doc {
        preset: Preset::Unset("its `address`"),
        sample: "\"partners\"",
        effect: "By what `listen` of a [[route]] may name this listener, besides its address. \
                 [tls.md](tls.md) has an example.",
        extremes: "Two listeners of one name are a fault. With port 0, only a name tells two of them apart.",
        elsewhere: "HAProxy `frontend NAME`",
    },
};

static KEEP_ALIVE_TIMEOUT: Key<Durations> = Key {
    name: "keep_alive_timeout",
    values: WAIT,
    doc: Doc {
        preset: Preset::Value("\"60s\""),
        sample: "\"15s\"",
        effect: "How long an idle connection waits for the next request before it is closed.",
        extremes: "Too short and clients pay a new connection per click. Too long and idle \
                   connections use up `connections_max`. Behind a load balancer, keep it above the \
                   balancer's own idle time, or it will reuse connections that are closing.",
        elsewhere: "nginx `keepalive_timeout`; httpd `KeepAliveTimeout`; Tomcat `keepAliveTimeout`",
    },
};

static KEEP_ALIVE_REQUESTS: Key<Counts<u64>> = Key {
    name: "keep_alive_requests",
    values: Counts {
        min: 1,
        max: 1_000_000_000,
    },
    doc: Doc {
        preset: Preset::Value("10000"),
        sample: "100",
        effect: "Requests on one connection before it is closed, so that connections spread over \
                 the workers anew from time to time.",
        extremes: "1 turns keep-alive off.",
        elsewhere: "nginx `keepalive_requests`; httpd `MaxKeepAliveRequests`; Tomcat \
                    `maxKeepAliveRequests`",
    },
};

static HEAD_TIMEOUT: Key<Durations> = Key {
    name: "head_timeout",
    values: WAIT,
    doc: Doc {
        preset: Preset::Value("\"10s\""),
        sample: "\"5s\"",
        effect: "The deadline for a whole head from its first byte; for a connection's first \
                 request, from the accept. Late heads are answered 408.",
        extremes: "Too short hurts clients on bad networks. Too long lets clients that send a byte \
                   at a time hold connections.",
        elsewhere: "nginx `client_header_timeout`; httpd `RequestReadTimeout header`; HAProxy \
                    `timeout http-request`",
    },
};

static BODY_TIMEOUT: Key<Durations> = Key {
    name: "body_timeout",
    values: WAIT,
    doc: Doc {
        preset: Preset::Value("\"15s\""),
        sample: "\"30s\"",
        effect: "How long a client may be silent within a request's body.",
        extremes: "Too short breaks uploads from phones. Too long lets a silent client hold a \
                   connection of the backend.",
        elsewhere: "nginx `client_body_timeout`; httpd `RequestReadTimeout body`; Tomcat \
                    `connectionUploadTimeout`",
    },
};

static WRITE_TIMEOUT: Key<Durations> = Key {
    name: "write_timeout",
    values: WAIT,
    doc: Doc {
        preset: Preset::Value("\"30s\""),
        sample: "\"1m\"",
        effect: "How long a client may refuse to take the next bytes of a response before its \
                 connection is cut; over HTTP/2 the response alone is.",
        extremes: "Too short cuts slow readers off. Too long lets a stalled reader hold a \
                   connection of the backend.",
        elsewhere: "nginx `send_timeout`; httpd `TimeOut`",
    },
};

const RATE: Counts<u64> = Counts {
    min: 0,
    max: 1_000_000_000,
};

static BODY_RATE_MIN: Key<Counts<u64>> = Key {
    name: "body_rate_min",
    values: RATE,
    doc: Doc {
        preset: Preset::Value("500"),
        sample: "1000",
        effect: "Bytes a second that a client must send of a body, on average, after 10 s of grace. \
                 Time in which the backend takes nothing does not count. A slower client is answered \
                 408.",
        extremes: "0 demands none: a byte within each `body_timeout` then holds a connection of the \
                   backend for as long as the client likes.",
        elsewhere: "httpd `RequestReadTimeout body=10,MinRate=500`",
    },
};

static WRITE_RATE_MIN: Key<Counts<u64>> = Key {
    name: "write_rate_min",
    values: RATE,
    doc: Doc {
        preset: Preset::Value("500"),
        sample: "2000",
        effect: "Bytes a second that a client must take of a response, on average, after 10 s of \
                 grace; a slower one is cut. Over HTTP/2 it holds for each response: see \
                 [http2.md](http2.md#clients-that-hold-responses).",
        extremes: "0 demands none: a byte within each `write_timeout` is enough.",
        elsewhere: "none in nginx, httpd or Tomcat",
    },
};

static BODY_MAX: Key<OrOff<Sizes<u64>>> = Key {
    name: "body_max",
    values: OrOff(Sizes {
        min: 0,
        max: 1 << 50,
    }),
    doc: Doc {
        preset: Preset::Value("\"off\""),
        sample: "\"100MiB\"",
        effect: "The largest body of a request; a larger one is answered 413. Off by default: \
                 bodies are streamed, and the application has a limit of its own.",
        extremes: "0 refuses every body. Off leaves the limit to the application.",
        elsewhere: "nginx `client_max_body_size`; httpd `LimitRequestBody`; Tomcat `maxPostSize`, \
                    `maxSwallowSize`",
    },
};

static SERVE_HALF_CLOSED: Key<Switch> = Key {
    name: "serve_half_closed",
    values: Switch,
    doc: Doc {
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
};

static QUERY: Key<Choices<QueryForm>> = Key {
    name: "query",
    values: Choices(&[
        ("as-received", QueryForm::AsReceived),
        ("escape", QueryForm::Escaped),
    ]),
    doc: Doc {
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
};

static LINGER_MAX: Key<Sizes<u64>> = Key {
    name: "linger_max",
    values: Sizes {
        min: 0,
        max: 1 << 50,
    },
    doc: Doc {
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
};

static LINGER_TIMEOUT: Key<Durations> = Key {
    name: "linger_timeout",
    values: WAIT,
    doc: Doc {
        preset: Preset::Value("\"30s\""),
        sample: "\"2m\"",
        effect: "How long a request's body is read after its response; see `linger_max`. Within \
                 this time `body_timeout` and `body_rate_min` hold as before the response.",
        extremes: "Too short loses answers to uploads over slow lines. Too long lets clients hold \
                   connections that nobody serves.",
        elsewhere: "nginx `lingering_time`; httpd lingers 30 s",
    },
};

static HEAD_MAX: Key<Sizes<usize>> = Key {
    name: "head_max",
    values: Sizes {
        min: 1 << 10,
        max: 1 << 20,
    },
    doc: Doc {
        preset: Preset::Value("\"32KiB\""),
        sample: "\"16KiB\"",
        effect: "The largest head of a request, from request line to empty line; a larger one is \
                 answered 431. Towards an AJP backend a head must also fit one packet: see \
                 `packet_size`.",
        extremes: "Too low refuses requests with many cookies. Each connection that is sending a \
                   head may take this much memory.",
        elsewhere: "nginx `large_client_header_buffers`; Tomcat `maxHttpRequestHeaderSize`",
    },
};

static TARGET_MAX: Key<Sizes<usize>> = Key {
    name: "target_max",
    values: Sizes {
        min: 64,
        max: 1 << 20,
    },
    doc: Doc {
        preset: Preset::Value("\"8KiB\""),
        sample: "\"4KiB\"",
        effect: "The longest path with its query; a longer one is answered 414.",
        extremes: "Too low refuses long searches and redirects that carry a whole address.",
        elsewhere: "httpd `LimitRequestLine`",
    },
};

static LINE_MAX: Key<Sizes<usize>> = Key {
    name: "line_max",
    values: Sizes {
        min: 64,
        max: 1 << 20,
    },
    doc: Doc {
        preset: Preset::Value("\"8KiB\""),
        sample: "\"4KiB\"",
        effect: "The longest single field of a head; a longer one is answered 431.",
        extremes: "Too low refuses large cookies and tokens.",
        elsewhere: "httpd `LimitRequestFieldSize`",
    },
};

static FIELDS_MAX: Key<Counts<usize>> = Key {
    name: "fields_max",
    values: Counts { min: 1, max: 1000 },
    doc: Doc {
        preset: Preset::Value("94"),
        sample: "50",
        effect: "How many fields a head may have; more are answered 431. The front adds up to six: \
                 `Via`, the request's id, and for HTTP `X-Forwarded-For`, `-Proto`, `-Host` and `-Port`.",
        extremes: "Above the container's own limit (Tomcat: 100), less six, the container refuses \
                   instead.",
        elsewhere: "httpd `LimitRequestFields`; Tomcat `maxHeaderCount`",
    },
};

static TRAILER_MAX: Key<Sizes<usize>> = Key {
    name: "trailer_max",
    values: Sizes {
        min: 0,
        max: 1 << 20,
    },
    doc: Doc {
        preset: Preset::Value("\"8KiB\""),
        sample: "\"1KiB\"",
        effect: "How many bytes of trailer fields a chunked body may end with. They are read and \
                 dropped.",
        extremes: "0 refuses every trailer.",
        elsewhere: "Tomcat `maxTrailerSize`",
    },
};

static CHUNK_EXTENSIONS_MAX: Key<Sizes<usize>> = Key {
    name: "chunk_extensions_max",
    values: Sizes {
        min: 0,
        max: 1 << 20,
    },
    doc: Doc {
        preset: Preset::Value("\"8KiB\""),
        sample: "\"1KiB\"",
        effect: "How many bytes of chunk extensions a whole body may carry. They mean nothing to \
                 anybody and are dropped.",
        extremes: "Without a limit, a body of nothing but extensions would be endless work.",
        elsewhere: "Tomcat `maxExtensionSize`",
    },
};

/// The range of waiting for clients: less than a moment is a slip, more than a day is for ever.
const WAIT: Durations = Durations {
    min: Duration::from_millis(10),
    max: Duration::from_secs(24 * 3600),
};

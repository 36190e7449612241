//! The protocols of `[[listen]]`, and the limits of HTTP/2.

use catamaran_proxy::config::{Http2Config, ListenerConfig, Protocols};

use super::RawListen;
use crate::fill;
use crate::key::{ALL, Group, Key, Preset};
use crate::report::Finding;
use crate::table::Table;
use crate::value::{Counts, OneOrMore, Optional, Sizes, Syntax};

/// A protocol that clients can speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Protocol {
    Http1,
    Http2,
}

#[derive(Debug, thiserror::Error)]
pub(super) enum ProtocolError {
    #[error("has \"h3\", which is not served yet; remove it")]
    Http3,
    #[error("has a protocol that is not known; write \"h2\" or \"http/1.1\"")]
    Unknown,
}

/// Parses a protocol by its name in ALPN.
fn parse(text: &str) -> Result<Protocol, ProtocolError> {
    match text {
        "http/1.1" => Ok(Protocol::Http1),
        "h2" => Ok(Protocol::Http2),
        "h3" => Err(ProtocolError::Http3),
        _ => Err(ProtocolError::Unknown),
    }
}

/// Sets the protocols of the listener to those that were chosen, and reports keys of HTTP/2 that do not fit.
pub(super) fn check(
    table: &mut Table<'_>,
    chosen: Option<Vec<Protocol>>,
    listener: &mut ListenerConfig,
) {
    let has = |protocol| chosen.iter().flatten().any(|chosen| *chosen == protocol);
    listener.protocols = match (has(Protocol::Http1), has(Protocol::Http2)) {
        (true, true) => Protocols::Both,
        (true, false) => Protocols::Http1,
        (false, true) => Protocols::Http2,
        // The usual protocols: over TLS the client chooses, in cleartext it speaks HTTP/1.1.
        (false, false) if listener.tls.is_some() => Protocols::Both,
        (false, false) => Protocols::Http1,
    };
    if chosen.is_some_and(|chosen| chosen.is_empty()) {
        let fault = Finding::fault("`protocols` is empty", table.place_of("protocols"));
        table.push(fault.hint("write \"h2\", \"http/1.1\" or both"));
    }
    resets(table, &listener.http2);
    if !listener.protocols.has_http2() {
        for (name, place) in table.written(KEYS, |group| group == HTTP2) {
            let message = format!("`{name}` has no effect: clients speak HTTP/1.1 here");
            let hint = "add \"h2\" to `protocols`, or remove it";
            table.push(Finding::warning(message, place).hint(hint));
        }
    }
}

/// Warns if trusted proxies may reset fewer streams than other clients.
fn resets(table: &mut Table<'_>, limits: &Http2Config) {
    if limits.resets_per_second_trusted < limits.resets_per_second {
        let named = if table.has("h2_resets_per_second_trusted") {
            "h2_resets_per_second_trusted"
        } else {
            "h2_resets_per_second"
        };
        let message = format!(
            "trusted proxies may give up fewer requests a second ({}) than any client ({})",
            limits.resets_per_second_trusted, limits.resets_per_second
        );
        let hint = "a proxy's connection carries requests of many users; raise \
                    `h2_resets_per_second_trusted`";
        table.push(Finding::warning(message, table.place_of(named)).hint(hint));
    }
}

const RESET_RATES: Counts<u32> = Counts(1..=1_000_000);

/// The range of windows: from the one with which each connection begins to the largest of the protocol.
const WINDOWS: Sizes<u32> = Sizes(65_535..=(1 << 31) - 1);

/// Keys that have no effect where clients do not speak HTTP/2.
const HTTP2: Group = Group("HTTP/2");

pub(super) static KEYS: &[Key<RawListen>] = &[
    Key {
        name: "protocols",
        group: ALL,
        value: fill!(
            Optional(OneOrMore(Syntax {
                what: "\"h2\" or \"http/1.1\"",
                parse,
            })),
            RawListen.protocols
        ),
        preset: Preset::Unset("with `tls` both, else [\"http/1.1\"]"),
        sample: "[\"h2\", \"http/1.1\"]",
        effect: "The protocols that clients may speak. Over TLS they choose one by ALPN, and `h2` is \
                 preferred. In clear, a client that knows beforehand that HTTP/2 is served begins with \
                 its preface; browsers do not. [http2.md](http2.md) explains it.",
        extremes: "With `h2` alone, clients without HTTP/2 are not served.",
        elsewhere: "nginx `http2 on`; httpd `Protocols`; HAProxy `alpn`, `proto h2`",
    },
    Key {
        name: "h2_streams_max",
        group: ALL,
        value: fill!(Counts(1..=10_000), RawListen.listener.http2.streams_max),
        preset: Preset::Value("100"),
        sample: "250",
        effect: "Requests that a client may have under way on one connection of HTTP/2. A request that \
                 the client gave up counts until the backend has let go of it.",
        extremes: "Too low and pages with many parts load slowly. Too high and one connection can \
                   occupy a whole backend.",
        elsewhere: "nginx `http2_max_concurrent_streams`; httpd `H2MaxSessionStreams`; HAProxy \
                    `tune.h2.fe.max-concurrent-streams`",
    },
    Key {
        name: "h2_window",
        group: HTTP2,
        value: fill!(WINDOWS, RawListen.listener.http2.window),
        preset: Preset::Value("\"256KiB\""),
        sample: "\"1MiB\"",
        effect: "How much of one request's body a client may send ahead of what the backend has taken. \
                 An upload is no faster than this much in one round trip.",
        extremes: "Too low slows uploads over long distances. Each upload to a slow backend may take \
                   this much memory, within `h2_connection_window`.",
        elsewhere: "nginx `http2_body_preread_size`; httpd `H2WindowSize`; HAProxy \
                    `tune.h2.fe.initial-window-size`",
    },
    Key {
        name: "h2_connection_window",
        group: HTTP2,
        value: fill!(WINDOWS, RawListen.listener.http2.connection_window),
        preset: Preset::Value("\"1MiB\""),
        sample: "\"4MiB\"",
        effect: "As `h2_window`, for all requests of a connection together.",
        extremes: "Below `h2_window` one stalled upload holds up all others of its connection. Each \
                   connection may take this much memory.",
        elsewhere: "none in nginx, httpd or HAProxy",
    },
    Key {
        name: "h2_resets_per_second",
        group: HTTP2,
        value: fill!(RESET_RATES, RawListen.listener.http2.resets_per_second),
        preset: Preset::Value("20"),
        sample: "50",
        effect: "Requests that a client may give up on one connection in a second, for as long as it lasts; \
                 at once it may give up those of five seconds. Requests that the front has to reset, \
                 because they are malformed, count as well. A client beyond it is told that the connection \
                 ends (GOAWAY, `h2-reset-flood`): further requests are refused, those under way may finish \
                 within `drain_timeout`. Half as many again end the connection at once.",
        extremes: "Too low closes connections of users who scroll through many pictures. Too high lets a \
                   client make backends begin work that nobody waits for (\"rapid reset\").",
        elsewhere: "none in nginx or httpd, which have fixed limits; HAProxy \
                    `tune.h2.fe.glitches-threshold` comes near",
    },
    Key {
        name: "h2_resets_per_second_trusted",
        group: HTTP2,
        value: fill!(
            RESET_RATES,
            RawListen.listener.http2.resets_per_second_trusted
        ),
        preset: Preset::Value("2000"),
        sample: "500",
        effect: "As `h2_resets_per_second`, for peers in `trusted_proxies`: a load balancer passes on what \
                 all of its users cancel, on few connections. Their requests are taken until the balancer \
                 knows that the connection ends, and those given up do not count for `h2_streams_max`.",
        extremes: "Too low and a busy balancer's connections are replaced often. Too high and a client \
                   behind a balancer without a limit of its own can do what `h2_resets_per_second` prevents.",
        elsewhere: "none in nginx, httpd or HAProxy",
    },
];

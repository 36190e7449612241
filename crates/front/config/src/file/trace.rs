//! `[trace]`: traces of requests, and the collector of their spans.

use std::path::PathBuf;

use catamaran_proxy::config::{Address, Protocol, TraceConfig};
use toml::Spanned;
use toml::de::DeValue;

use super::Surroundings;
use crate::fill;
use crate::key::{ALL, Key, Part, Preset, Section};
use crate::report::{Finding, Report};
use crate::table::{Table, table};
use crate::value::address::{BackendUrl, UrlError, from_directory, parse_upstream_url};
use crate::value::text::parse_label;
use crate::value::{Counts, Fractions, Optional, Syntax};

/// The values of the keys of `[trace]`, before they are checked against each other.
struct RawTrace {
    address: Option<Address>,
    trace: TraceConfig,
}

/// Reads `[trace]`.
pub(crate) fn read(
    value: &Spanned<DeValue<'_>>,
    surroundings: &Surroundings<'_>,
    report: &mut Report,
) -> Option<TraceConfig> {
    let (place, entries) = table(SECTION.header, value, report)?;
    let mut table = Table::new(&SECTION, place, entries);
    let mut written = RawTrace {
        address: None,
        // A placeholder: the address is a key that must be written.
        trace: TraceConfig::new(Address::Unix(PathBuf::new())),
    };
    table.read(KEYS, &mut written);
    if let Some(Address::Unix(path)) = &mut written.address
        && let Err(error) = from_directory(surroundings.base, path)
    {
        let message = format!("`address` {error}");
        table.push(Finding::fault(message, table.place_of("address")));
    }
    table.finish(report);
    Some(TraceConfig {
        address: written.address?,
        ..written.trace
    })
}

/// Why a text is not the address of a collector.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
enum CollectorError {
    #[error(
        "must be the URL of a collector, such as \"http://127.0.0.1:4318\" or \"http+unix:/PATH\""
    )]
    Form,
    #[error(
        "asks for TLS, which the front does not speak to collectors; run a collector on this machine, or in this pod, \
         that passes spans on over TLS"
    )]
    Tls,
    #[error("has a path; end it after the port, since spans always go to /v1/traces")]
    Path,
    #[error(transparent)]
    Url(UrlError),
}

/// Parses the URL of a collector, `http://HOST:PORT`.
fn parse_collector(text: &str) -> Result<Address, CollectorError> {
    match parse_upstream_url(text) {
        Ok(BackendUrl { tls: true, .. }) => Err(CollectorError::Tls),
        Ok(BackendUrl {
            protocol: Protocol::Http,
            address,
            tls: false,
        }) => Ok(address),
        Err(UrlError::Path) => Err(CollectorError::Path),
        Err(
            error @ (UrlError::NoPort(..) | UrlError::Port | UrlError::Host | UrlError::Unix(_)),
        ) => Err(CollectorError::Url(error)),
        Ok(BackendUrl {
            protocol: Protocol::Ajp,
            ..
        })
        | Err(
            UrlError::NoScheme
            | UrlError::Ajps
            | UrlError::HttpsUnix
            | UrlError::Scheme(_)
            | UrlError::User,
        ) => Err(CollectorError::Form),
    }
}

pub(crate) static SECTION: Section = Section {
    header: "[trace]",
    intro: "Traces of requests by W3C Trace Context, and the collector that gets their spans by OpenTelemetry's protocol \
            (OTLP over HTTP, in JSON): [traces.md](traces.md). Without the table the front passes `traceparent` and \
            `tracestate` on as clients send them.",
    keys: &[Part::all(&KEYS)],
    later: &[],
};

static KEYS: &[Key<RawTrace>] = &[
    Key {
        name: "address",
        group: ALL,
        value: fill!(
            Optional(Syntax {
                what: "the URL of a collector, such as \"http://127.0.0.1:4318\"",
                parse: parse_collector,
            }),
            RawTrace.address
        ),
        preset: Preset::Required,
        sample: "\"http://127.0.0.1:4318\"",
        effect: "The collector. Spans are sent to `/v1/traces` there, a batch each second or each 512 spans, by a thread of \
                 its own. A batch that is not taken is sent up to five times, with pauses that grow.",
        extremes: "If the collector hangs or is gone, up to 2048 spans wait in memory, and further ones are dropped and \
                   counted (`catamaran_trace_spans_total`). Requests never wait. There is no TLS.",
        elsewhere: "nginx `otel_exporter { endpoint }`; OpenTelemetry `OTEL_EXPORTER_OTLP_ENDPOINT`",
    },
    Key {
        name: "name",
        group: ALL,
        value: fill!(
            Syntax {
                what: "a text such as \"shop-front\"",
                parse: parse_label,
            },
            RawTrace.trace.name
        ),
        preset: Preset::Value("\"catamaran\""),
        sample: "\"shop-front\"",
        effect: "The name of the service in spans, `service.name`.",
        extremes: "Fronts with the same name are one service.",
        elsewhere: "nginx `otel_service_name`; OpenTelemetry `OTEL_SERVICE_NAME`",
    },
    Key {
        name: "sample",
        group: ALL,
        value: fill!(Fractions, RawTrace.trace.sample),
        preset: Preset::Value("0.01"),
        sample: "0.1",
        effect: "The part of traces that begin at the front which is recorded. A trace that a client has begun is recorded \
                 if its `traceparent` says so, as OpenTelemetry's `parentbased_traceidratio` has it.",
        extremes: "With 1 each request makes at least two spans, of some 700 bytes each. With 0 only clients have traces \
                   recorded.",
        elsewhere: "nginx `otel_trace`; OpenTelemetry `OTEL_TRACES_SAMPLER_ARG`",
    },
    Key {
        name: "strangers_per_second",
        group: ALL,
        value: fill!(Counts(0..=1_000_000), RawTrace.trace.strangers_per_second),
        preset: Preset::Value("10"),
        sample: "0",
        effect: "How many traces a second are recorded because a client asks for it that is not in `trusted_proxies`. \
                 Beyond it, `sample` decides as for a trace that begins here, and the reason `trace-strangers` is counted.",
        extremes: "With 0 no stranger has a trace recorded. Too high, anybody can fill the queue, and spans of others are \
                   dropped.",
        elsewhere: "",
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_collector_speaks_http_in_clear_text() {
        let tcp = |host: &str, port| Address::Tcp {
            host: host.to_owned(),
            port,
        };
        for (text, address) in [
            ("http://127.0.0.1:4318", tcp("127.0.0.1", 4318)),
            ("http://[::1]:4318", tcp("::1", 4318)),
            ("http://Collector:4318", tcp("collector", 4318)),
            (
                "http+unix:/run/otel.sock",
                Address::Unix("/run/otel.sock".into()),
            ),
        ] {
            assert_eq!(parse_collector(text), Ok(address), "{text}");
        }
        for (text, error) in [
            ("https://a:4318", CollectorError::Tls),
            ("http://a:4318/v1/traces", CollectorError::Path),
            ("ajp://a:4318", CollectorError::Form),
            ("a:4318", CollectorError::Form),
            ("http://u@a:4318", CollectorError::Form),
        ] {
            assert_eq!(parse_collector(text), Err(error), "{text}");
        }
    }
}

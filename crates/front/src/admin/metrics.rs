//! The metrics at `/metrics`: every family, and where its samples come from.
//!
//! Counters are plain structs all over the front and get their public names only here. The page
//! `docs/metrics.md` is generated from the same families, so the two always agree.

use std::fmt::Write as _;
use std::time::UNIX_EPOCH;

use catamaran_tls::CertificateFacts;

use crate::admin::exposition::{Exposition, Family, Kind};
use crate::site::BackendStatus;
use crate::worker::counters::CountersSnapshot;

/// All values at one moment.
#[derive(Clone, Debug, Default)]
pub(crate) struct Observed {
    pub(crate) counters: CountersSnapshot,
    /// Each with the name of its profile.
    pub(crate) certificates: Vec<(String, CertificateFacts)>,
    pub(crate) backends: Vec<BackendStatus>,
    pub(crate) log_lines_dropped: u64,
    pub(crate) log_lines_lost: u64,
    pub(crate) draining: bool,
    pub(crate) ready: bool,
    pub(crate) state_file_fails: bool,
}

/// Writes the page of `/metrics`.
pub(crate) fn render(observed: &Observed) -> String {
    let mut page = Exposition::default();
    let counters = &observed.counters;
    page.family(&BUILD_INFO)
        .sample(&[env!("CARGO_PKG_VERSION")], 1);
    page.family(&READY).only(u8::from(observed.ready));
    page.family(&DRAINING).only(u8::from(observed.draining));
    page.family(&STATE_FILE_FAILS)
        .only(u8::from(observed.state_file_fails));
    let mut reloads = page.family(&RELOADS);
    reloads.sample(&["applied"], counters.reloads_applied);
    reloads.sample(&["refused"], counters.reloads_refused);
    page.family(&CONNECTIONS_ACCEPTED).only(counters.accepted);
    page.family(&CONNECTIONS_OPEN).only(counters.open);
    page.family(&H2_CONNECTIONS_OPEN)
        .only(counters.h2_connections);
    page.family(&H2_STREAMS_OPEN).only(counters.h2_streams);
    render_tls(&mut page, observed);
    page.family(&REQUESTS).only(counters.requests);
    let mut responses = page.family(&RESPONSES);
    for (digit, class) in CLASSES {
        responses.sample(&[class], counters.responses[digit]);
    }
    page.family(&RETRIES).only(counters.retries);
    page.family(&TUNNELS_OPEN).only(counters.tunnels_open);
    let mut tunnelled = page.family(&TUNNEL_BYTES);
    for (direction, bytes) in ["from_client", "to_client"]
        .into_iter()
        .zip(counters.tunnel_bytes)
    {
        tunnelled.sample(&[direction], bytes);
    }
    let mut sticky = page.family(&STICKY);
    for (outcome, count) in &counters.sticky {
        sticky.sample(&[outcome.token()], count);
    }
    let mut reasons = page.family(&REASONS);
    for (reason, count) in &counters.reasons {
        let culprit = reason.culprit().to_string();
        reasons.sample(&[&culprit, reason.token()], count);
    }
    page.family(&LOG_LINES_DROPPED)
        .only(observed.log_lines_dropped);
    page.family(&LOG_LINES_LOST).only(observed.log_lines_lost);
    let mut panics = page.family(&UPSTREAM_PANIC);
    for of_upstream in observed
        .backends
        .chunk_by(|one, next| one.upstream == next.upstream)
    {
        let panic = of_upstream.iter().any(|it| it.counts.panic);
        panics.sample(&[&of_upstream[0].upstream], u8::from(panic));
    }
    render_backends(&mut page, &observed.backends);
    page.into_text()
}

fn render_tls(page: &mut Exposition, observed: &Observed) {
    let counters = &observed.counters;
    let mut handshakes = page.family(&TLS_HANDSHAKES);
    let kinds = [
        ("TLSv1.2", "no"),
        ("TLSv1.3", "no"),
        ("TLSv1.2", "yes"),
        ("TLSv1.3", "yes"),
    ];
    for ((version, resumed), count) in kinds.into_iter().zip(counters.handshakes) {
        handshakes.sample(&[version, resumed], count);
    }
    page.family(&TLS_HANDSHAKES_OPEN)
        .only(counters.handshakes_open);
    let mut reloads = page.family(&TLS_CERTIFICATE_RELOADS);
    reloads.sample(&["applied"], counters.certificates_renewed);
    reloads.sample(&["refused"], counters.certificates_refused);
    let mut expiry = page.family(&TLS_CERTIFICATE_NOT_AFTER);
    for (profile, certificate) in &observed.certificates {
        let name = certificate.names.first().map_or("", |name| name);
        let since = certificate.not_after.duration_since(UNIX_EPOCH);
        let seconds = since.map_or(0, |since| since.as_secs());
        expiry.sample(&[profile, name, certificate.key_type], seconds);
    }
}

fn render_backends(page: &mut Exposition, backends: &[BackendStatus]) {
    for (family, value) in BACKEND_FAMILIES {
        let mut samples = page.family(family);
        for status in backends {
            samples.sample(&[&status.upstream, &status.backend], value(status));
        }
    }
    let mut shares = page.family(&BACKEND_SHARE);
    for status in backends {
        let share = f64::from(status.counts.share) / 100.0;
        shares.sample(&[&status.upstream, &status.backend], share);
    }
    let mut probes = page.family(&BACKEND_PROBES);
    for status in backends {
        let of = |outcome| [status.upstream.as_str(), status.backend.as_str(), outcome];
        probes.sample(&of("answered"), status.counts.probes_answered);
        probes.sample(&of("failed"), status.counts.probes_failed);
    }
}

/// The page `docs/metrics.md`: every metric with its meaning.
#[must_use]
pub fn metrics_reference() -> String {
    let mut page = String::from(REFERENCE_HEAD);
    for family in families() {
        let Family {
            name, help, labels, ..
        } = family;
        let kind = family.kind.name();
        write!(page, "\n## `{name}`\n\n{help}\n\n- Type: {kind}.\n").expect("a string takes all");
        for (label, meaning) in *labels {
            writeln!(page, "- Label `{label}`: {meaning}.").expect("a string takes all");
        }
    }
    page
}

/// Every family, in the order of the page.
fn families() -> impl Iterator<Item = &'static Family> {
    let front = [
        &BUILD_INFO,
        &READY,
        &DRAINING,
        &STATE_FILE_FAILS,
        &RELOADS,
        &CONNECTIONS_ACCEPTED,
        &CONNECTIONS_OPEN,
        &H2_CONNECTIONS_OPEN,
        &H2_STREAMS_OPEN,
        &TLS_HANDSHAKES,
        &TLS_HANDSHAKES_OPEN,
        &TLS_CERTIFICATE_RELOADS,
        &TLS_CERTIFICATE_NOT_AFTER,
        &REQUESTS,
        &RESPONSES,
        &RETRIES,
        &TUNNELS_OPEN,
        &TUNNEL_BYTES,
        &STICKY,
        &REASONS,
        &LOG_LINES_DROPPED,
        &LOG_LINES_LOST,
        &UPSTREAM_PANIC,
    ];
    let backends = BACKEND_FAMILIES.iter().map(|(family, _)| *family);
    front
        .into_iter()
        .chain(backends)
        .chain([&BACKEND_SHARE, &BACKEND_PROBES])
}

const REFERENCE_HEAD: &str = "\
# Metrics

What `GET /metrics` of the admin listener (`[admin]` in the file, or `--admin`) tells, in
Prometheus' text format 0.0.4. Counters begin at 0 with the process; those of a backend stay
with its upstream, protocol and address, whatever else a reload changes.

The same listener has `GET /healthz`, which is 200 as long as the process lives, and `GET /readyz`,
which is 200 while requests can be served: 503 from the beginning of a drain, and while every
backend of every upstream is left out. `GET /readyz?upstream=NAME` asks whether that upstream has a
backend that takes new sessions.

(Written by `cargo run -p catamaran-front --example metrics > docs/metrics.md`.)
";

/// Responses by the first digit of their status.
const CLASSES: [(usize, &str); 6] = [
    (1, "1xx"),
    (2, "2xx"),
    (3, "3xx"),
    (4, "4xx"),
    (5, "5xx"),
    (0, "none"),
];

static BUILD_INFO: Family = Family {
    name: "catamaran_build_info",
    kind: Kind::Gauge,
    help: "Always 1; the label says which version runs.",
    labels: &[("version", "the version of the program")],
};

static TUNNELS_OPEN: Family = Family {
    name: "catamaran_tunnels_open",
    kind: Kind::Gauge,
    help: "Tunnels open now, such as WebSocket connections.",
    labels: &[],
};

static TUNNEL_BYTES: Family = Family {
    name: "catamaran_tunnel_bytes_total",
    kind: Kind::Counter,
    help: "Bytes that went through tunnels.",
    labels: &[("direction", "`from_client` or `to_client`")],
};

static READY: Family = Family {
    name: "catamaran_ready",
    kind: Kind::Gauge,
    help: "1 while `/readyz` answers 200, else 0.",
    labels: &[],
};

static DRAINING: Family = Family {
    name: "catamaran_draining",
    kind: Kind::Gauge,
    help: "1 from the beginning of a drain, else 0.",
    labels: &[],
};

static STATE_FILE_FAILS: Family = Family {
    name: "catamaran_state_file_fails",
    kind: Kind::Gauge,
    help: "1 if `state_file` of `[admin]` could not be read or written the last time, else 0.",
    labels: &[],
};

static RELOADS: Family = Family {
    name: "catamaran_reloads_total",
    kind: Kind::Counter,
    help: "Reloads that were asked for; a refused one changed nothing.",
    labels: &[("result", "`applied` or `refused`")],
};

static CONNECTIONS_ACCEPTED: Family = Family {
    name: "catamaran_connections_accepted_total",
    kind: Kind::Counter,
    help: "Connections of clients that were accepted, those closed at once for a limit included.",
    labels: &[],
};

static CONNECTIONS_OPEN: Family = Family {
    name: "catamaran_connections_open",
    kind: Kind::Gauge,
    help: "Connections of clients that are open.",
    labels: &[],
};

static H2_CONNECTIONS_OPEN: Family = Family {
    name: "catamaran_h2_connections_open",
    kind: Kind::Gauge,
    help: "Connections of clients that speak HTTP/2, of those that are open.",
    labels: &[],
};

static H2_STREAMS_OPEN: Family = Family {
    name: "catamaran_h2_streams_open",
    kind: Kind::Gauge,
    help: "Requests over HTTP/2 that are under way. One that the client gave up counts until the \
           backend has let go of it.",
    labels: &[],
};

static TLS_HANDSHAKES: Family = Family {
    name: "catamaran_tls_handshakes_total",
    kind: Kind::Counter,
    help: "Handshakes of TLS that succeeded; others are among the reasons, as `tls-*`.",
    labels: &[
        ("version", "`TLSv1.2` or `TLSv1.3`"),
        ("resumed", "`yes` if a session was resumed, else `no`"),
    ],
};

static TLS_HANDSHAKES_OPEN: Family = Family {
    name: "catamaran_tls_handshakes_open",
    kind: Kind::Gauge,
    help: "Handshakes of TLS that are under way.",
    labels: &[],
};

static TLS_CERTIFICATE_RELOADS: Family = Family {
    name: "catamaran_tls_certificate_reloads_total",
    kind: Kind::Counter,
    help: "Changes of files of a TLS profile; after a refused one those of before stay in force.",
    labels: &[("result", "`applied` or `refused`")],
};

static TLS_CERTIFICATE_NOT_AFTER: Family = Family {
    name: "catamaran_tls_certificate_not_after_seconds",
    kind: Kind::Gauge,
    help: "The end of a certificate's validity, in Unix time.",
    labels: &[
        ("profile", "the name of the TLS profile"),
        ("name", "the certificate's first name"),
        ("key", "the type of its key"),
    ],
};

static REQUESTS: Family = Family {
    name: "catamaran_requests_total",
    kind: Kind::Counter,
    help: "Requests whose head was understood.",
    labels: &[],
};

static RESPONSES: Family = Family {
    name: "catamaran_responses_total",
    kind: Kind::Counter,
    help: "Exchanges that ended, by the status that the client was sent.",
    labels: &[(
        "class",
        "`1xx` to `5xx`, or `none` where the client was sent no head",
    )],
};

static RETRIES: Family = Family {
    name: "catamaran_retries_total",
    kind: Kind::Counter,
    help: "Attempts after a first failed one.",
    labels: &[],
};

static STICKY: Family = Family {
    name: "catamaran_sticky_requests_total",
    kind: Kind::Counter,
    help: "Requests to upstreams with `sticky`, by what became of their sessions.",
    labels: &[(
        "outcome",
        "`kept`: served by the backend of the session; `moved`: that one was out or failed; \
         `unknown`: no backend has the route; `new`: no session id; `ignored`: a session id without \
         a route",
    )],
};

static REASONS: Family = Family {
    name: "catamaran_reasons_total",
    kind: Kind::Counter,
    help: "Refusals and failures, by the reason that the access log gives; \
           those that a retry made good are included.",
    labels: &[
        ("culprit", "`client`, `backend` or `front`"),
        (
            "reason",
            "one word, such as `bare-lf`, `connect-failed` or `retry-budget`; only those that occurred",
        ),
    ],
};

static LOG_LINES_DROPPED: Family = Family {
    name: "catamaran_access_log_lines_dropped_total",
    kind: Kind::Counter,
    help: "Lines of the access log that were dropped because writing did not keep up.",
    labels: &[],
};

static LOG_LINES_LOST: Family = Family {
    name: "catamaran_access_log_lines_lost_total",
    kind: Kind::Counter,
    help: "Lines of the access log that could not be written, such as to a full disk, counted by their \
           ends.",
    labels: &[],
};

static UPSTREAM_PANIC: Family = Family {
    name: "catamaran_upstream_panic",
    kind: Kind::Gauge,
    help: "1 while more than `unwell_max` of the upstream's weight is unwell or cannot be connected to, \
           so that backends that are unwell serve where no other can; else 0.",
    labels: &[UPSTREAM],
};

const OF_BACKEND: &[(&str, &str)] = &[UPSTREAM, BACKEND];
const UPSTREAM: (&str, &str) = ("upstream", "the name of the group");
const BACKEND: (&str, &str) = ("backend", "the name of the backend");

/// A family with one whole number of each backend.
type BackendFamily = (&'static Family, fn(&BackendStatus) -> u64);

static BACKEND_FAMILIES: &[BackendFamily] = &[
    (
        &Family {
            name: "catamaran_backend_up",
            kind: Kind::Gauge,
            help: "1 while the backend may be picked, 0 while it is left out.",
            labels: OF_BACKEND,
        },
        |status| u64::from(status.counts.share > 0),
    ),
    (
        &Family {
            name: "catamaran_backend_suspect",
            kind: Kind::Gauge,
            help: "1 while others are preferred because nothing is heard of the backend although \
                   requests await its answer.",
            labels: OF_BACKEND,
        },
        |status| u64::from(status.counts.suspect),
    ),
    (
        &Family {
            name: "catamaran_backend_unwell",
            kind: Kind::Gauge,
            help: "1 while the backend is left out because it does not answer CPING or its probe \
                   fails; 0 if it cannot be connected to, or is not left out.",
            labels: OF_BACKEND,
        },
        |status| u64::from(status.counts.unwell),
    ),
    (
        &Family {
            name: "catamaran_backend_tls_unverified",
            kind: Kind::Gauge,
            help: "1 if the backend is spoken to over TLS and its certificate is not verified \
                   (`verify = \"off\"`), else 0.",
            labels: OF_BACKEND,
        },
        |status| u64::from(status.counts.unverified),
    ),
    (
        &Family {
            name: "catamaran_backend_in_flight",
            kind: Kind::Gauge,
            help: "Exchanges in flight, those waiting for a connection and those abandoned included.",
            labels: OF_BACKEND,
        },
        |status| status.counts.in_flight as u64,
    ),
    (
        &Family {
            name: "catamaran_backend_waiting",
            kind: Kind::Gauge,
            help: "Exchanges waiting for a connection because `connections_max` is reached.",
            labels: OF_BACKEND,
        },
        |status| status.counts.waiting as u64,
    ),
    (
        &Family {
            name: "catamaran_backend_connections_open",
            kind: Kind::Gauge,
            help: "Connections to the backend that are open, unused ones included.",
            labels: OF_BACKEND,
        },
        |status| status.counts.open as u64,
    ),
    (
        &Family {
            name: "catamaran_backend_connections_idle",
            kind: Kind::Gauge,
            help: "Connections to the backend that are unused.",
            labels: OF_BACKEND,
        },
        |status| status.counts.idle as u64,
    ),
    (
        &Family {
            name: "catamaran_backend_exchanges_abandoned",
            kind: Kind::Gauge,
            help: "Exchanges whose client left and that the backend may still be at work on. Each \
                   keeps its connection, which counts against `connections_max`, until the backend \
                   closes it, at most `first_byte_timeout`.",
            labels: OF_BACKEND,
        },
        |status| status.counts.abandoned as u64,
    ),
    (
        &Family {
            name: "catamaran_backend_exchanges_abandoned_total",
            kind: Kind::Counter,
            help: "Exchanges whose client left after the request had been sent to the backend.",
            labels: OF_BACKEND,
        },
        |status| status.counts.abandoned_total,
    ),
    (
        &Family {
            name: "catamaran_backend_connections_dialled_total",
            kind: Kind::Counter,
            help: "Connections to the backend that were opened, those of probes apart.",
            labels: OF_BACKEND,
        },
        |status| status.counts.dialled,
    ),
    (
        &Family {
            name: "catamaran_backend_connections_reused_total",
            kind: Kind::Counter,
            help: "Exchanges that got a pooled connection.",
            labels: OF_BACKEND,
        },
        |status| status.counts.reused,
    ),
    (
        &Family {
            name: "catamaran_backend_connections_stale_total",
            kind: Kind::Counter,
            help: "Pooled connections found closed, with unexpected bytes, or without an answer to CPING.",
            labels: OF_BACKEND,
        },
        |status| status.counts.stale,
    ),
    (
        &Family {
            name: "catamaran_backend_sent_bytes_total",
            kind: Kind::Counter,
            help: "Bytes that exchanges sent to the backend, heads and framing included.",
            labels: OF_BACKEND,
        },
        |status| status.counts.sent,
    ),
    (
        &Family {
            name: "catamaran_backend_received_bytes_total",
            kind: Kind::Counter,
            help: "Bytes that exchanges received from the backend, heads and framing included.",
            labels: OF_BACKEND,
        },
        |status| status.counts.received,
    ),
    (
        &Family {
            name: "catamaran_backend_ejections_total",
            kind: Kind::Counter,
            help: "Times the backend was left out.",
            labels: OF_BACKEND,
        },
        |status| status.counts.ejections,
    ),
    (
        &Family {
            name: "catamaran_backend_suspicions_total",
            kind: Kind::Counter,
            help: "Times the backend became suspect.",
            labels: OF_BACKEND,
        },
        |status| status.counts.suspicions,
    ),
];

static BACKEND_SHARE: Family = Family {
    name: "catamaran_backend_share_ratio",
    kind: Kind::Gauge,
    help: "The part of its weight that the backend gets: 1, less while it comes back, 0 while it is \
           left out.",
    labels: OF_BACKEND,
};

static BACKEND_PROBES: Family = Family {
    name: "catamaran_backend_probes_total",
    kind: Kind::Counter,
    help: "Probes that the front made by itself: after a failure, and as `probe` has it.",
    labels: &[UPSTREAM, BACKEND, ("result", "`answered` or `failed`")],
};

#[cfg(test)]
mod tests;

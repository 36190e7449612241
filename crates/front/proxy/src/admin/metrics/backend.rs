//! The metrics of backends: families with one sample for each backend, or one for each value of a
//! further label.

use catamaran_upstream::BucketSums;

use crate::admin::exposition::{Exposition, Family, Kind};
use crate::admin::metrics::families::UPSTREAM;
use crate::site::BackendStatus;

/// Writes the samples of all backends.
pub(super) fn render(page: &mut Exposition, backends: &[BackendStatus]) {
    for (family, value) in BACKEND_FAMILIES {
        let mut samples = page.family(family);
        for status in backends {
            samples.sample(&labels(status), value(status));
        }
    }
    for (family, sums) in HISTOGRAMS {
        let mut samples = page.family(family);
        for status in backends {
            samples.histogram(&labels(status), sums(status));
        }
    }
    render_labelled(page, backends);
    let mut shares = page.family(&BACKEND_SHARE);
    for status in backends {
        let share = f64::from(status.counts.share) / 100.0;
        shares.sample(&labels(status), share);
    }
    let mut ages = page.family(&BACKEND_NAME_AGE);
    for status in backends {
        if let Some(age) = status.name_age {
            ages.sample(&labels(status), age.as_secs());
        }
    }
    let mut probes = page.family(&BACKEND_PROBES);
    for status in backends {
        let [upstream, backend] = labels(status);
        let counts = &status.counts;
        probes.sample(&[upstream, backend, "answered"], counts.probes_answered);
        probes.sample(&[upstream, backend, "failed"], counts.probes_failed);
    }
}

/// Writes the families that have a further label.
fn render_labelled(page: &mut Exposition, backends: &[BackendStatus]) {
    let mut responses = page.family(&BACKEND_RESPONSES);
    for status in backends {
        for (digit, class) in CLASSES {
            let [upstream, backend] = labels(status);
            let count = status.totals.responses[digit];
            responses.sample(&[upstream, backend, class], count);
        }
    }
    let mut failures = page.family(&BACKEND_FAILURES);
    for status in backends {
        for ((culprit, reason), count) in &status.totals.failures {
            let [upstream, backend] = labels(status);
            let culprit = culprit.to_string();
            failures.sample(&[upstream, backend, &culprit, reason], count);
        }
    }
}

fn labels(status: &BackendStatus) -> [&str; 2] {
    [&status.upstream, &status.backend]
}

/// Every family of this module, in the order of `docs/metrics.md`.
pub(super) fn families() -> impl Iterator<Item = &'static Family> {
    let numbers = BACKEND_FAMILIES.iter().map(|(family, _)| *family);
    let histograms = HISTOGRAMS.iter().map(|(family, _)| *family);
    numbers.chain(histograms).chain([
        &BACKEND_RESPONSES,
        &BACKEND_FAILURES,
        &BACKEND_SHARE,
        &BACKEND_NAME_AGE,
        &BACKEND_PROBES,
    ])
}

const OF_BACKEND: &[(&str, &str)] = &[UPSTREAM, BACKEND];
const BACKEND: (&str, &str) = ("backend", "");

/// A family, and the function that reads its value from a backend's status.
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
            name: "catamaran_backend_active",
            kind: Kind::Gauge,
            help: "1 while `activation` of the backend is `active`, 0 while an operator has it drained or \
                   stopped, or a reload removed it.",
            labels: OF_BACKEND,
        },
        |status| u64::from(status.active),
    ),
    (
        &Family {
            name: "catamaran_backend_retired",
            kind: Kind::Gauge,
            help: "1 if a reload removed the backend and it still has exchanges, else 0. With the last of \
                   them it vanishes. If its name is another's by then, its address is added.",
            labels: OF_BACKEND,
        },
        |status| u64::from(status.retired),
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
            name: "catamaran_backend_attempts_total",
            kind: Kind::Counter,
            help: "Attempts on the backend: requests, and their retries.",
            labels: OF_BACKEND,
        },
        |status| status.totals.attempts,
    ),
    (
        &Family {
            name: "catamaran_backend_retries_total",
            kind: Kind::Counter,
            help: "Attempts on the backend after which the front made another, here or elsewhere.",
            labels: OF_BACKEND,
        },
        |status| status.totals.retried,
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
            name: "catamaran_backend_waiting_max",
            kind: Kind::Gauge,
            help: "How many exchanges may wait: `queue_max`. Others fail at once.",
            labels: OF_BACKEND,
        },
        |status| status.counts.queue_max as u64,
    ),
    (
        &Family {
            name: "catamaran_backend_connections_max",
            kind: Kind::Gauge,
            help: "How many connections to the backend may be open: `connections_max`.",
            labels: OF_BACKEND,
        },
        |status| status.counts.connections_max as u64,
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
            name: "catamaran_backend_connections_in_use",
            kind: Kind::Gauge,
            help: "Connections to the backend that carry an exchange or are being opened.",
            labels: OF_BACKEND,
        },
        |status| status.counts.open.saturating_sub(status.counts.idle) as u64,
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
            name: "catamaran_backend_connections_failed_total",
            kind: Kind::Counter,
            help: "Connections to the backend that could not be opened, those of probes apart.",
            labels: OF_BACKEND,
        },
        |status| status.counts.dials_failed,
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
            name: "catamaran_backend_returns_total",
            kind: Kind::Counter,
            help: "Times the backend came back after it had been left out.",
            labels: OF_BACKEND,
        },
        |status| status.counts.returns,
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

/// A family, and the function that reads its histogram from a backend's status.
type HistogramFamily = (&'static Family, fn(&BackendStatus) -> &BucketSums);

static HISTOGRAMS: &[HistogramFamily] = &[
    (
        &Family {
            name: "catamaran_backend_first_byte_seconds",
            kind: Kind::Histogram,
            help: "From the beginning of an attempt to the head of its response, a wait for a \
                   connection included.",
            labels: OF_BACKEND,
        },
        |status| &status.totals.first_byte,
    ),
    (
        &Family {
            name: "catamaran_backend_response_seconds",
            kind: Kind::Histogram,
            help: "From the beginning of an attempt to the end of its response, as far as the client \
                   has taken it; only responses that were complete. A slow client makes it longer.",
            labels: OF_BACKEND,
        },
        |status| &status.totals.whole,
    ),
    (
        &Family {
            name: "catamaran_backend_queue_seconds",
            kind: Kind::Histogram,
            help: "Waits for a connection because `connections_max` was reached, those that got none \
                   included; not those of clients that left meanwhile.",
            labels: OF_BACKEND,
        },
        |status| &status.totals.queued,
    ),
];

static BACKEND_RESPONSES: Family = Family {
    name: "catamaran_backend_responses_total",
    kind: Kind::Counter,
    help: "Responses of the backend whose head arrived, by its status, those included that made the \
           front try another backend (`retry_status`).",
    labels: &[UPSTREAM, BACKEND, ("class", "`1xx` to `5xx`")],
};

static BACKEND_FAILURES: Family = Family {
    name: "catamaran_backend_failures_total",
    kind: Kind::Counter,
    help: "Attempts on the backend that failed, by the reason that the access log gives; those that a \
           retry made good are included, what clients cause is not.",
    labels: &[
        UPSTREAM,
        BACKEND,
        ("culprit", "`backend` or `front`"),
        (
            "reason",
            "one word, such as `connect-failed`, `first-byte-timeout` or `queue-full`; only those \
             that occurred",
        ),
    ],
};

/// The first digit of a status, and its label. `1xx` counts 101 alone: no other interim response
/// ends an exchange.
const CLASSES: [(usize, &str); 5] = [(1, "1xx"), (2, "2xx"), (3, "3xx"), (4, "4xx"), (5, "5xx")];

static BACKEND_SHARE: Family = Family {
    name: "catamaran_backend_share_ratio",
    kind: Kind::Gauge,
    help: "The part of its weight that the backend gets: 1, less while it comes back, 0 while it is \
           left out.",
    labels: OF_BACKEND,
};

static BACKEND_NAME_AGE: Family = Family {
    name: "catamaran_backend_name_age_seconds",
    kind: Kind::Gauge,
    help: "How long ago the addresses of the backend's name were resolved. More than some seconds: resolving fails, \
           and the last good addresses stay in use. There is no sample for a backend without a name, or before the \
           first answer.",
    labels: OF_BACKEND,
};

static BACKEND_PROBES: Family = Family {
    name: "catamaran_backend_probes_total",
    kind: Kind::Counter,
    help: "Probes that the front made by itself: after a failure, and as `probe` has it.",
    labels: &[UPSTREAM, BACKEND, ("result", "`answered` or `failed`")],
};

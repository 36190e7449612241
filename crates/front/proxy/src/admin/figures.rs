//! Figures of backends and of requests in flight, as the API shows them. Their size is bounded: reasons are
//! words of the program, and of the requests in flight only the slowest are shown.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use catamaran_admin_api as api;
use catamaran_balance::affinity::Outcome;
use catamaran_upstream::{Backend, FiguresSnapshot, LastFailure, LastProbe, ProbeQuestion, Rates};

use super::health_events::is_mostly_5xx;
use crate::date::{show_moment, unix_seconds};
use crate::deadlines::Tick;
use crate::site::{Site, Upstream};
use crate::worker::FrontState;
use crate::worker::in_flight::Sight;

/// The requests in flight: how many there are, and the slowest.
pub(super) fn in_flight(
    shared: &FrontState,
    site: &Site,
    retired: &[Arc<Backend>],
) -> api::InFlight {
    let (mut sights, mut count, mut unseen) = (Vec::new(), 0, 0);
    for worker in shared.figures.in_flight() {
        let (slowest, in_flight) = worker.slowest(SLOWEST);
        sights.extend(slowest);
        count += in_flight;
        unseen += worker.unseen();
    }
    // Each worker gave its slowest; of these the slowest of all are kept.
    sights.sort_unstable_by_key(|sight| u64::from(sight.began));
    sights.truncate(SLOWEST);
    let mut names = HashMap::new();
    for backend in site.backends().chain(retired) {
        let number = backend.number();
        if sights.iter().any(|sight| sight.backend == number) {
            let name = backend.settings().name.clone();
            names.insert(number, (backend.upstream(), name));
        }
    }
    let now = Tick::from(millis(shared.began.elapsed()));
    let slowest = sights.into_iter().map(|sight| {
        let found = names.get(&sight.backend);
        let name = found.map(|(upstream, backend)| (*upstream, backend.as_str()));
        one_in_flight(sight, name, now)
    });
    api::InFlight {
        count,
        unseen,
        slowest: slowest.collect(),
    }
}

/// A request in flight; `backend` is the name of the upstream and of the backend, if these are still known.
fn one_in_flight(sight: Sight, backend: Option<(&str, &str)>, now: Tick) -> api::RequestInFlight {
    api::RequestInFlight {
        id: sight.id.to_string(),
        method: sight.method,
        path: sight.path,
        path_cut: sight.is_cut,
        upstream: backend.map(|(upstream, _)| upstream.to_owned()),
        backend: backend.map(|(_, backend)| backend.to_owned()),
        phase: sight.phase.token().to_owned(),
        age_ms: millis(now.since(sight.began)),
    }
}

pub(super) fn rates(rates: Rates) -> api::BackendRates {
    api::BackendRates {
        requests_s: tenths(rates.attempts),
        sent_s: rates.sent.round(),
        received_s: rates.received.round(),
    }
}

/// A backend's latency in the last minute; `None` if no response came in it.
pub(super) fn latency(figures: &FiguresSnapshot) -> Option<api::BackendLatency> {
    Some(api::BackendLatency {
        count: figures.timed,
        p50_ms: in_millis(figures.median?),
        p99_ms: in_millis(figures.p99?),
    })
}

/// A backend's failures by reason, as `culprit:token`: in total and in the last minute.
pub(super) fn errors(figures: &FiguresSnapshot) -> BTreeMap<String, api::FailureCounts> {
    let mut errors = BTreeMap::new();
    for (&(culprit, token), &(total, minute)) in &figures.failures {
        let counts = api::FailureCounts { total, minute };
        errors.insert(format!("{culprit}:{token}"), counts);
    }
    errors
}

/// Responses 5xx since the start and within the last minute, with the number of all responses of that minute.
pub(super) fn server_errors(figures: &FiguresSnapshot) -> api::ServerErrors {
    let minute = figures.responses_minute[5];
    let responses_minute = figures.responses_minute.iter().sum();
    api::ServerErrors {
        total: figures.responses[5],
        minute,
        responses_minute,
        mostly: is_mostly_5xx(minute, responses_minute),
    }
}

pub(super) fn sticky(outcomes: &[(Outcome, u64)]) -> BTreeMap<String, u64> {
    let of_outcome = |(outcome, count): &(Outcome, u64)| (outcome.token().to_owned(), *count);
    outcomes.iter().map(of_outcome).collect()
}

/// The outcomes for sessions, summed over all backends; `None` if sessions are not kept.
pub(super) fn sticky_of_all(upstream: &Upstream) -> Option<BTreeMap<String, u64>> {
    upstream.sticky.as_ref()?;
    let mut sums = BTreeMap::new();
    for member in &upstream.members {
        for (outcome, count) in member.backend.figures().sticky_outcomes() {
            *sums.entry(outcome.token().to_owned()).or_default() += count;
        }
    }
    Some(sums)
}

pub(super) fn last_failure(failure: &LastFailure) -> api::BackendFailure {
    let (culprit, token) = failure.reason;
    api::BackendFailure {
        culprit: culprit.to_string(),
        token: token.to_owned(),
        stage: failure.stage.to_owned(),
        at: show_moment(unix_seconds(failure.at)),
        request: failure.request.clone(),
        detail: failure.detail.clone(),
    }
}

pub(super) fn last_probe(probe: &LastProbe) -> api::BackendProbe {
    let (method, path) = match &probe.question {
        ProbeQuestion::Request { method, target } => {
            (Some(method.as_str().to_owned()), Some(target.clone()))
        }
        ProbeQuestion::Cping | ProbeQuestion::Connection => (None, None),
    };
    api::BackendProbe {
        number: probe.number,
        at: show_moment(unix_seconds(probe.at)),
        took_ms: in_millis(probe.took),
        kind: probe.question.kind().to_owned(),
        method,
        path,
        answered: probe.answered,
        found: probe.found.clone(),
        unproved: unproved(probe).map(str::to_owned),
    }
}

/// What an answered probe does not prove, in words; `None`: nothing, or it was not answered.
fn unproved(probe: &LastProbe) -> Option<&'static str> {
    if !probe.answered {
        return None;
    }
    match probe.question {
        ProbeQuestion::Request { .. } => None,
        ProbeQuestion::Cping => Some(
            "CPING does not tell whether `secret` is right and the application is deployed; a \
             [probe] with kind = \"request\" does",
        ),
        ProbeQuestion::Connection => Some(
            "a connection does not tell whether anybody answers, or the application is deployed; a \
             [probe] with kind = \"request\" does",
        ),
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

fn in_millis(duration: Duration) -> f64 {
    // Whole microseconds, since the clock measures no smaller times.
    (duration.as_micros() as f64) / 1000.0
}

fn tenths(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}

/// The most requests in flight that are shown.
const SLOWEST: usize = 10;

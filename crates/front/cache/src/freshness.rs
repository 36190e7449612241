//! How long a response is fresh, how old it is when it arrives, and for how long it may be used stale
//! (RFC 9111, sections 4.2 and 4.2.4; RFC 5861).

use std::ops::RangeInclusive;

use catamaran_message::name::{AGE, CDN_CACHE_CONTROL, DATE, EXPIRES, LAST_MODIFIED};
use catamaran_message::{FieldName, Fields, Id};
use http::StatusCode;

use crate::directives::{Directives, SECONDS_MAX, elements, number};
use crate::{Millis, date};

/// What an operator says of the freshness of responses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FreshnessRules {
    /// For a response that does not say how long it is fresh: the percentage of the time since its last change
    /// for which it is fresh. 0: not at all. Default 10. httpd: `CacheLastModifiedFactor`.
    pub heuristic: u32,
    /// The most seconds of [`Self::heuristic`]. Default 1 h.
    pub heuristic_max: u32,
    /// Seconds for which responses of some statuses are fresh that say nothing themselves; the first
    /// that has the status counts. Default: none. nginx: `proxy_cache_valid`.
    pub ttl: Vec<(RangeInclusive<u16>, u32)>,
    /// The most seconds for which anything is fresh. Default 30 days.
    pub ttl_max: u32,
    /// Whether the response decides how long it is fresh. If not, [`Self::ttl`] alone does. Default on.
    pub obey: bool,
    /// Seconds for which a stale response is used while another is fetched, if the response says nothing
    /// of it. Default 0. nginx: `proxy_cache_background_update`.
    pub stale_while_revalidate: u32,
    /// Seconds for which a stale response is used if no fresh one can be fetched, if the response says nothing
    /// of it. Default 0. nginx: `proxy_cache_use_stale`.
    pub stale_if_error: u32,
    /// Fields with directives for this cache alone, the most important first. Default
    /// `CDN-Cache-Control`.
    pub targeted: Vec<FieldName>,
}

impl Default for FreshnessRules {
    fn default() -> Self {
        Self {
            heuristic: 10,
            heuristic_max: 3600,
            ttl: Vec::new(),
            ttl_max: 30 * 24 * 3600,
            obey: true,
            stale_while_revalidate: 0,
            stale_if_error: 0,
            targeted: vec![CDN_CACHE_CONTROL.into()],
        }
    }
}

/// The source of a response's lifetime.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LifetimeSource {
    /// The response.
    Explicit,
    /// The operator: [`FreshnessRules::ttl`].
    Ttl,
    /// Nobody: it was estimated from when the response was changed.
    Heuristic,
    /// Nobody, and nothing can be estimated: it is stale at once.
    Unknown,
}

/// How long a response is fresh.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lifetime {
    /// In seconds, from when it was made.
    pub seconds: u32,
    /// The source of the lifetime.
    pub source: LifetimeSource,
}

/// The directives of a response that count, and whether they are of a field that is meant for this cache
/// alone.
#[must_use]
pub fn directives(headers: &Fields, rules: &FreshnessRules) -> (Directives, bool) {
    if !rules.obey {
        return (Directives::default(), false);
    }
    let names = rules.targeted.iter();
    let targeted = names
        .filter_map(|name| Directives::targeted(headers, name))
        .next();
    match targeted {
        Some(directives) => (directives, true),
        None => (Directives::of(headers).unwrap_or_default(), false),
    }
}

/// The lifetime of a response that arrived at `now`. `may_estimate` says whether its request lets it be
/// estimated.
#[must_use]
pub fn lifetime(
    status: StatusCode,
    headers: &Fields,
    directives: &Directives,
    is_targeted: bool,
    rules: &FreshnessRules,
    may_estimate: bool,
    now: Millis,
) -> Lifetime {
    let made = date_of(headers).unwrap_or(now);
    // A field for this cache alone replaces `Cache-Control` and `Expires` as a whole (RFC 9213, 2.2).
    let expires = || headers.contains(EXPIRES) && rules.obey && !is_targeted;
    let (seconds, source) = if let Some(seconds) = directives.s_maxage.or(directives.max_age) {
        (seconds, LifetimeSource::Explicit)
    } else if expires() {
        let seconds = only(headers, EXPIRES).map_or(0, |at| seconds_between(made, at));
        (seconds, LifetimeSource::Explicit)
    } else if let Some(seconds) = ttl(status, rules) {
        (seconds, LifetimeSource::Ttl)
    } else if may_estimate
        && rules.obey
        && rules.heuristic > 0
        && (is_heuristic(status) || directives.public)
        && let Some(changed) = only(headers, LAST_MODIFIED)
    {
        let unchanged = u64::from(seconds_between(changed, made));
        let part = unchanged * u64::from(rules.heuristic) / 100;
        let seconds = part.min(rules.heuristic_max.into());
        (
            u32::try_from(seconds).unwrap_or(0),
            LifetimeSource::Heuristic,
        )
    } else {
        (0, LifetimeSource::Unknown)
    };
    Lifetime {
        seconds: seconds.min(rules.ttl_max),
        source,
    }
}

/// What the operator says of responses with a status.
fn ttl(status: StatusCode, rules: &FreshnessRules) -> Option<u32> {
    let mut ttl = rules.ttl.iter();
    let found = ttl.find(|(statuses, _)| statuses.contains(&status.as_u16()));
    found.map(|(_, seconds)| *seconds)
}

/// The age in seconds of a response that arrives at `arrived` and was asked for at `asked` (RFC 9111, section
/// 4.2.3).
#[must_use]
pub fn initial_age(headers: &Fields, asked: Millis, arrived: Millis) -> u32 {
    let apparent = date_of(headers).map_or(0, |made| seconds_between(made, arrived));
    let delay = seconds_between(asked, arrived);
    let told = told_age(headers).saturating_add(delay);
    apparent.max(told).min(SECONDS_MAX)
}

/// What `Age` says: its first member, if that is a number.
fn told_age(headers: &Fields) -> u32 {
    let line = headers.get(AGE);
    let first = line.and_then(|line| line.split(|byte| *byte == b',').next());
    first
        .and_then(|first| number(first.trim_ascii()))
        .unwrap_or(0)
}

/// The time in the only line of `Date`.
#[must_use]
pub fn date_of(headers: &Fields) -> Option<Millis> {
    only(headers, DATE)
}

/// The time in the only line of a field.
fn only(headers: &Fields, name: Id) -> Option<Millis> {
    let mut lines = headers.get_all(name);
    let time = date::parse(lines.next()?);
    time.filter(|_| lines.next().is_none())
}

/// Whole seconds from one time to a later one; 0 if it is none.
fn seconds_between(from: Millis, to: Millis) -> u32 {
    let seconds = to.saturating_sub(from) / 1000;
    u32::try_from(seconds).map_or(SECONDS_MAX, |seconds| seconds.min(SECONDS_MAX))
}

/// Whether responses of a status are cacheable unless they say otherwise (RFC 9110, section 15.1).
#[must_use]
pub fn is_heuristic(status: StatusCode) -> bool {
    matches!(
        status.as_u16(),
        200 | 203 | 204 | 300 | 301 | 308 | 404 | 405 | 410 | 414 | 501
    )
}

/// Whether a list has an element of this name, in any case.
#[must_use]
pub fn lists(line: &[u8], name: &[u8]) -> bool {
    elements(line).any(|element| element.eq_ignore_ascii_case(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Millis = 784_111_777_000;

    fn headers(fields: &[(&'static str, &'static str)]) -> Fields {
        fields.iter().copied().collect()
    }

    fn life(
        status: u16,
        fields: &[(&'static str, &'static str)],
        rules: &FreshnessRules,
    ) -> Lifetime {
        let headers = headers(fields);
        let (directives, is_targeted) = directives(&headers, rules);
        let status = StatusCode::from_u16(status).unwrap();
        lifetime(status, &headers, &directives, is_targeted, rules, true, NOW)
    }

    #[test]
    fn the_first_word_counts() {
        use LifetimeSource::{Explicit, Heuristic, Ttl, Unknown};
        let rules = FreshnessRules {
            ttl: vec![(404..=404, 30), (500..=599, 5)],
            ..FreshnessRules::default()
        };
        let date = ("date", "Sun, 06 Nov 1994 08:49:37 GMT");
        let expires = ("expires", "Sun, 06 Nov 1994 08:50:37 GMT");
        let changed = ("last-modified", "Sun, 06 Nov 1994 08:32:57 GMT");
        let targeted = ("cdn-cache-control", "max-age=9");
        for (status, fields, seconds, source) in [
            (
                200,
                vec![targeted, ("cache-control", "s-maxage=1"), date, expires],
                9,
                Explicit,
            ),
            (
                200,
                vec![("cdn-cache-control", "?"), ("cache-control", "s-maxage=1")],
                1,
                Explicit,
            ),
            (
                200,
                vec![("cache-control", "max-age=2, s-maxage=3")],
                3,
                Explicit,
            ),
            (
                200,
                vec![("cache-control", "max-age=2"), date, expires],
                2,
                Explicit,
            ),
            (200, vec![date, expires], 60, Explicit),
            (200, vec![expires], 60, Explicit),
            (200, vec![date, expires, expires], 0, Explicit),
            (200, vec![date, ("expires", "0")], 0, Explicit),
            (200, vec![date, changed], 100, Heuristic),
            (500, vec![date, changed], 5, Ttl),
            (404, vec![], 30, Ttl),
            (302, vec![date, changed], 0, Unknown),
            (
                302,
                vec![date, changed, ("cache-control", "public")],
                100,
                Heuristic,
            ),
            (200, vec![], 0, Unknown),
            (
                200,
                vec![("cache-control", "max-age=9999999999")],
                rules.ttl_max,
                Explicit,
            ),
        ] {
            let expected = Lifetime { seconds, source };
            assert_eq!(
                life(status, &fields, &rules),
                expected,
                "{status} {fields:?}"
            );
        }
    }

    #[test]
    fn what_is_not_obeyed_does_not_count() {
        let rules = FreshnessRules {
            obey: false,
            ttl: vec![(200..=200, 7)],
            ..FreshnessRules::default()
        };
        let fields = [("cache-control", "no-store, max-age=1"), ("expires", "0")];
        assert_eq!(life(200, &fields, &rules).seconds, 7);
        assert_eq!(life(404, &fields, &rules).source, LifetimeSource::Unknown);
    }

    #[test]
    fn a_response_may_be_old_when_it_arrives() {
        let date = ("date", "Sun, 06 Nov 1994 08:49:27 GMT");
        for (fields, expected) in [
            (vec![], 2),
            (vec![date], 10),
            (vec![("age", "30"), date], 32),
            (vec![("age", "30, 5")], 32),
            (vec![("age", "0"), ("age", "30")], 2),
            (vec![("age", "-1")], 2),
            (vec![("age", "x")], 2),
            (vec![("age", "100000000000000000000")], SECONDS_MAX),
            (vec![("date", "Sun, 06 Nov 2094 08:49:27 GMT")], 2),
        ] {
            let age = initial_age(&headers(&fields), NOW - 2000, NOW);
            assert_eq!(age, expected, "{fields:?}");
        }
    }
}

//! Computes how long a response is fresh, how old it is when it arrives, and how long it may be used stale
//! (RFC 9111, sections 4.2 and 4.2.4; RFC 5861).

use std::ops::RangeInclusive;

use catamaran_message::name::{AGE, CDN_CACHE_CONTROL, DATE, EXPIRES, LAST_MODIFIED};
use catamaran_message::{FieldName, Fields, Id};
use http::StatusCode;

use crate::directives::{Directives, SECONDS_MAX, elements, number};
use crate::{Millis, date};

/// The operator's rules for the freshness of responses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FreshnessRules {
    /// For a response that does not say how long it is fresh: the percentage of the time since its last change
    /// for which it is fresh. 0: it is not fresh. Default 10. httpd: `CacheLastModifiedFactor`.
    pub heuristic: u32,
    /// The longest lifetime by [`Self::heuristic`], in seconds. Default 1 h.
    pub heuristic_max: u32,
    /// Lifetimes in seconds by status, for responses that do not say how long they are fresh; the first range
    /// that contains the status counts. Default: none. nginx: `proxy_cache_valid`.
    pub ttl: Vec<(RangeInclusive<u16>, u32)>,
    /// The longest lifetime of any response, in seconds. Default 30 days.
    pub ttl_max: u32,
    /// Whether the response decides how long it is fresh; if not, only [`Self::ttl`] does. Default: it does.
    pub obey: bool,
    /// Seconds for which a stale response is used while a new one is fetched, if the response does not say
    /// that. Default 0. nginx: `proxy_cache_background_update`.
    pub stale_while_revalidate: u32,
    /// Seconds for which a stale response is used if no fresh one can be fetched, if the response does not say
    /// that. Default 0. nginx: `proxy_cache_use_stale`.
    pub stale_if_error: u32,
    /// Names of fields with directives for this cache, the most important first. Default `CDN-Cache-Control`.
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

/// Who decided the lifetime of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LifetimeSource {
    /// The response itself, by `max-age`, `s-maxage` or `Expires`.
    Explicit,
    /// The operator, by [`FreshnessRules::ttl`].
    Ttl,
    /// An estimate from the time of the response's last change.
    Heuristic,
    /// The response does not say how long it is fresh, and nothing allows an estimate: it is stale at once.
    Unknown,
}

/// How long a response is fresh, and who decided that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lifetime {
    /// The lifetime in seconds, from when the response was made.
    pub seconds: u32,
    /// Who decided the lifetime.
    pub source: LifetimeSource,
}

/// The directives of a response that apply, and whether they are from a field for this cache alone.
#[must_use]
pub fn directives(headers: &Fields, rules: &FreshnessRules) -> (Directives, bool) {
    if !rules.obey {
        return (Directives::default(), false);
    }
    let mut names = rules.targeted.iter();
    match names.find_map(|name| Directives::targeted(headers, name)) {
        Some(directives) => (directives, true),
        None => (Directives::of(headers).unwrap_or_default(), false),
    }
}

/// The lifetime of a response that arrived at `now`. `may_estimate`: whether its request allows an estimate.
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
    let obeys_expires = || headers.contains(EXPIRES) && rules.obey && !is_targeted;
    let may_estimate = may_estimate && (is_heuristic(status) || directives.public);
    let (seconds, source) = if let Some(seconds) = directives.s_maxage.or(directives.max_age) {
        (seconds, LifetimeSource::Explicit)
    } else if obeys_expires() {
        // A malformed date is one in the past (RFC 9111, section 5.3).
        let seconds = time_in(headers, EXPIRES).map_or(0, |end| seconds_between(made, end));
        (seconds, LifetimeSource::Explicit)
    } else if let Some(seconds) = ttl(status, rules) {
        (seconds, LifetimeSource::Ttl)
    } else if may_estimate && let Some(seconds) = estimate(headers, rules, made) {
        (seconds, LifetimeSource::Heuristic)
    } else {
        (0, LifetimeSource::Unknown)
    };
    Lifetime {
        seconds: seconds.min(rules.ttl_max),
        source,
    }
}

/// The operator's lifetime for responses with this status, in seconds.
fn ttl(status: StatusCode, rules: &FreshnessRules) -> Option<u32> {
    let mut lifetimes = rules.ttl.iter();
    let found = lifetimes.find(|(statuses, _)| statuses.contains(&status.as_u16()));
    found.map(|(_, seconds)| *seconds)
}

/// The lifetime in seconds by [`FreshnessRules::heuristic`] of a response that was made at `made`; `None`: there is no
/// such rule, or the response does not say when it last changed.
fn estimate(headers: &Fields, rules: &FreshnessRules, made: Millis) -> Option<u32> {
    if !rules.obey || rules.heuristic == 0 {
        return None;
    }
    let changed = time_in(headers, LAST_MODIFIED)?;
    let unchanged = u64::from(seconds_between(changed, made));
    let part = unchanged * u64::from(rules.heuristic) / 100;
    let seconds = part.min(rules.heuristic_max.into());
    Some(u32::try_from(seconds).unwrap_or(0))
}

/// The age in seconds of a response that arrived at `arrived` and was requested at `asked` (RFC 9111, section
/// 4.2.3).
#[must_use]
pub fn initial_age(headers: &Fields, asked: Millis, arrived: Millis) -> u32 {
    let apparent = date_of(headers).map_or(0, |made| seconds_between(made, arrived));
    let delay = seconds_between(asked, arrived);
    // The first member counts; 0 if that is not a number.
    let age = headers.elements(AGE).next().and_then(number);
    // The time of the request and of its response is added, since the age may be from its beginning.
    let corrected = age.unwrap_or(0).saturating_add(delay);
    apparent.max(corrected).min(SECONDS_MAX)
}

/// The time in the field `Date`; `None` if the field is missing, repeated or malformed.
#[must_use]
pub fn date_of(headers: &Fields) -> Option<Millis> {
    time_in(headers, DATE)
}

/// The time in a field; `None` if the field is missing, repeated or malformed.
fn time_in(headers: &Fields, name: Id) -> Option<Millis> {
    headers.only(name).and_then(date::parse)
}

/// Whole seconds from one time to a later one; 0 if it is not later.
fn seconds_between(from: Millis, to: Millis) -> u32 {
    let seconds = to.saturating_sub(from) / 1000;
    u32::try_from(seconds).map_or(SECONDS_MAX, |seconds| seconds.min(SECONDS_MAX))
}

/// Whether responses with a status are cacheable unless they say otherwise (RFC 9110, section 15.1).
#[must_use]
pub fn is_heuristic(status: StatusCode) -> bool {
    matches!(
        status.as_u16(),
        200 | 203 | 204 | 300 | 301 | 308 | 404 | 405 | 410 | 414 | 501
    )
}

/// Whether a comma-separated list has this element, in any case of letters.
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

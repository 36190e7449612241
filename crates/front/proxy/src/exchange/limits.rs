//! Asks the limits of a request, and refuses a request that exceeds one.
//!
//! All limits are asked before any is charged, so that a request which one refuses costs nothing at the others. Which
//! limits there are is [`crate::exchange::limit_keys`]'s part; what keys owe is in [`crate::site::limits`].

use std::fmt::Write as _;
use std::slice;
use std::sync::Arc;
use std::time::Duration;

use arrayvec::ArrayVec;
use catamaran_limit::{ASKS_MAX, Ask, Judgement, Outcome, Quota};
use catamaran_message::{Fields, NameRef, Traits};
use catamaran_upstream::Culprit;

use crate::config::LimitBy;
use crate::counters::Reason;
use crate::exchange::limit_keys::{LimitKey, LimitKeys, LimitSubject};
use crate::exchange::state::Exchange;
use crate::exchange::verdict::OwnAnswer;
use crate::site::limits::{Flights, LimitResult, SiteLimit, SiteLimits};

/// A limit that was asked, with the key and the limit's judgement.
struct AskedLimit<'k, 's> {
    limit: &'s SiteLimit,
    ask: Ask,
    subject: &'k LimitSubject<'k>,
    judgement: Judgement,
}

impl AskedLimit<'_, '_> {
    /// Whether the request takes a place of those in flight, unless another limit refuses it.
    fn is_flight(&self) -> bool {
        let quota = self.limit.config.quota;
        self.judgement.passes() && matches!(quota, Quota::InFlight(_))
    }

    /// The result for the counters. A limit that is not enforced refuses nothing.
    fn result(&self) -> LimitResult {
        if self.judgement.passes() {
            LimitResult::Passed
        } else if self.ask.enforced {
            LimitResult::Refused
        } else {
            LimitResult::Dry
        }
    }
}

/// Asks the limits that `add` adds for a request. Returns the answer if one of them refuses it.
#[inline]
pub(crate) fn ask<'s, 'r>(
    exchange: &mut Exchange<'_>,
    add: impl FnOnce(&mut LimitKeys<'s, 'r>),
) -> Option<OwnAnswer> {
    let mut keys = LimitKeys::new();
    add(&mut keys);
    match &keys[..] {
        [] => None,
        [key] => ask_one(exchange, key),
        several => ask_all(exchange, several),
    }
}

/// Does the work of [`ask`] for the only limit. Not inlined, because most sites have no limits.
#[inline(never)]
fn ask_one(exchange: &mut Exchange<'_>, key: &LimitKey<'_, '_>) -> Option<OwnAnswer> {
    let limits = exchange.site.limits.as_deref()?;
    let worker = exchange.scene.worker;
    let Some((ask, _)) = &key.asked else {
        worker.count(Reason::new(Culprit::Front, NO_CLIENT));
        return None;
    };
    let judgement = limits.take_one(ask);
    if judgement.passes() && key.limit.is_settled_by_pass {
        limits.count(worker.index(), key.limit, LimitResult::Passed);
        return None;
    }
    let outcome = Outcome::of(ask, judgement);
    settle(exchange, limits, slice::from_ref(key), &outcome)
}

/// Does the work of [`ask`] for several limits.
#[inline(never)]
fn ask_all(exchange: &mut Exchange<'_>, keys: &[LimitKey<'_, '_>]) -> Option<OwnAnswer> {
    let limits = exchange.site.limits.as_deref()?;
    let mut asks: ArrayVec<Ask, ASKS_MAX> = ArrayVec::new();
    asks.extend(keys.iter().filter_map(|key| Some(key.asked.as_ref()?.0)));
    let worker = exchange.scene.worker;
    if asks.len() < keys.len() {
        worker.count(Reason::new(Culprit::Front, NO_CLIENT));
    }
    if asks.is_empty() {
        return None;
    }
    let outcome = limits.take(&asks);
    let is_settled = |key: &LimitKey<'_, '_>| key.asked.is_some() && key.limit.is_settled_by_pass;
    if outcome.passes() && keys.iter().all(is_settled) {
        for key in keys {
            limits.count(worker.index(), key.limit, LimitResult::Passed);
        }
        return None;
    }
    settle(exchange, limits, keys, &outcome)
}

/// Counts and notes what each limit said of a request. Returns the answer if one of them refuses it.
#[inline(never)]
fn settle<'a>(
    exchange: &mut Exchange<'a>,
    limits: &'a SiteLimits,
    keys: &[LimitKey<'_, '_>],
    outcome: &Outcome,
) -> Option<OwnAnswer> {
    let worker = exchange.scene.worker;
    let mut refusing = None;
    let mut fields: Option<LimitFields> = None;
    let mut flights: ArrayVec<Ask, ASKS_MAX> = ArrayVec::new();
    for asked in asked_limits(keys, outcome) {
        let result = asked.result();
        limits.count(worker.index(), asked.limit, result);
        if result != LimitResult::Passed {
            note(exchange, limits, &asked);
            if result == LimitResult::Refused {
                refusing.get_or_insert(asked.limit);
            }
        }
        if asked.limit.config.fields {
            fields.get_or_insert_default().add(&asked);
        }
        if asked.is_flight() {
            flights.push(asked.ask);
        }
    }
    let decided = &mut exchange.decided;
    if let Some(fields) = fields {
        fields.finish(decided.client_fields.get_or_insert_default());
    }
    if let Some(limit) = refusing {
        let seconds = whole_seconds(outcome.wait());
        return Some(OwnAnswer::limited(limit.config.token(), seconds));
    }
    // Limits by user are asked later, and those places add to the others.
    match &mut decided.flights {
        Some(taken) => taken.add(flights),
        None if flights.is_empty() => {}
        None => decided.flights = Some(Box::new(Flights::new(limits, flights))),
    }
    None
}

/// Each limit that was asked, with its judgement.
fn asked_limits<'k, 's>(
    keys: &'k [LimitKey<'s, 'k>],
    outcome: &'k Outcome,
) -> impl Iterator<Item = AskedLimit<'k, 's>> {
    // There is a judgement for each key that was asked, in their order.
    let mut judgements = outcome.judgements().iter();
    keys.iter().filter_map(move |key| {
        let (ask, subject) = key.asked.as_ref()?;
        Some(AskedLimit {
            limit: key.limit,
            ask: *ask,
            subject,
            judgement: *judgements.next()?,
        })
    })
}

/// Keeps a refusal for the log and for administrators, also that of a limit which is not enforced.
fn note(exchange: &mut Exchange<'_>, limits: &SiteLimits, asked: &AskedLimit<'_, '_>) {
    limits.note(asked.ask, || label(asked));
    if let Some(logged) = exchange.logged.as_deref_mut() {
        let first_refusing = if asked.ask.enforced {
            &mut logged.limit
        } else {
            &mut logged.limit_dry
        };
        first_refusing.get_or_insert_with(|| Arc::clone(&asked.limit.config));
    }
}

/// The name of a key for administrators. A field that holds a secret is not shown.
fn label(asked: &AskedLimit<'_, '_>) -> String {
    if let LimitBy::Header(name) = &asked.limit.config.by
        && NameRef::from(name).traits().has_any(Traits::SECRET)
        && matches!(asked.subject, LimitSubject::Text(_))
    {
        return format!("{name} with the hash {:016x}", asked.ask.key);
    }
    asked.subject.to_string()
}

/// The fields that tell a client what is left (draft-ietf-httpapi-ratelimit-headers-10).
#[derive(Default)]
struct LimitFields {
    policies: String,
    remainders: String,
}

impl LimitFields {
    /// Adds what a limit leaves.
    fn add(&mut self, asked: &AskedLimit<'_, '_>) {
        let Self {
            policies,
            remainders,
        } = self;
        let config = &asked.limit.config;
        let (burst, window) = config.quota.policy();
        let (left, wait) = config.quota.left(asked.judgement);
        let separator = if remainders.is_empty() { "" } else { ", " };
        let name = &config.name;
        // Writing to a string always succeeds.
        let _ = write!(policies, "{separator}\"{name}\";q={burst}");
        if let Some(window) = window {
            let _ = write!(policies, ";w={}", whole_seconds(window));
        }
        let seconds = whole_seconds(wait);
        let _ = write!(remainders, "{separator}\"{name}\";r={left};t={seconds}");
    }

    /// Adds the fields to those of a response, which may have them of limits that were asked before.
    fn finish(self, fields: &mut Fields) {
        fields.add_element("RateLimit-Policy", self.policies);
        fields.add_element("RateLimit", self.remainders);
    }
}

/// A time in seconds, rounded up, at least 1.
pub(crate) fn whole_seconds(time: Duration) -> u64 {
    let begun_second = u64::from(time.subsec_nanos() > 0);
    time.as_secs().saturating_add(begun_second).max(1)
}

/// The reason why a limit by address was not asked.
const NO_CLIENT: &str = "limit-no-client";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_to_wait_is_rounded_up() {
        for (millis, expected) in [(0, 1), (1, 1), (1000, 1), (1001, 2), (59_999, 60)] {
            assert_eq!(whole_seconds(Duration::from_millis(millis)), expected);
        }
    }
}

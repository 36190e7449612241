//! Decides whether a stored response answers a request at once, after validation, or not at all.

use crate::Millis;
use crate::directives::Directives;
use crate::storable::{Credentials, Terms};

/// The facts of a stored response that decide how it may be used.
#[derive(Clone, Copy, Debug)]
pub struct StoredFacts<'s> {
    /// The terms on which the response is used.
    pub terms: &'s Terms,
    /// When the response was made, computed from its age then; its age is the time since.
    pub made: Millis,
    /// When the response was stored, or last found to be valid.
    pub validated: Millis,
    /// Whether the response was purged softly: it is stale, even if its lifetime is not over.
    pub is_purged: bool,
}

/// The demands of a request on the cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Demand {
    /// The directives of the request.
    pub directives: Directives,
    /// The credentials in the request; a response may be meant for their owner only.
    pub credentials: Credentials,
}

/// Whether a stored response may answer a request, and whether it must be validated first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The response answers the request. The number is the seconds for which it stays fresh; 0 or less
    /// if the client accepts it although it is stale.
    Fresh(i64),
    /// The response answers the request after it was validated.
    Stale(StaleUse),
    /// The response must not answer the request, because it is for other credentials.
    Foreign,
}

/// How a stale response may be used without being validated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StaleUse {
    /// Whether the stale response may be used at once, while a fresh one is fetched.
    pub at_once: bool,
    /// Whether the stale response may be used if no fresh one can be fetched.
    pub on_error: bool,
    /// The seconds for which its lifetime still lasts; 0 or less if it is over. More than 0 if the client, a
    /// purge or the response's own `no-cache` demands validation earlier.
    pub left: i64,
}

impl StoredFacts<'_> {
    /// The age of the response in seconds.
    #[must_use]
    pub fn age(&self, now: Millis) -> u32 {
        let seconds = now.saturating_sub(self.made) / 1000;
        u32::try_from(seconds).unwrap_or(u32::MAX)
    }

    /// Decides whether and how the response answers a request with this demand.
    #[must_use]
    pub fn judge(&self, demand: &Demand, now: Millis) -> Verdict {
        let terms = self.terms;
        if !terms.admit(demand.credentials) {
            return Verdict::Foreign;
        }
        let age = i64::from(self.age(now));
        let left = i64::from(terms.lifetime) - age;
        let is_fresh = left > 0 && !terms.no_cache && !self.is_purged;
        let is_demanded = self.is_validation_demanded(demand, age, left, now);
        if is_fresh && !is_demanded {
            return Verdict::Fresh(left);
        }
        let stale_for = (-left).max(0);
        let may_be_stale = !is_demanded && !terms.never_stale && !self.is_purged;
        if may_be_stale
            && let Some(most) = demand.directives.max_stale
            && stale_for <= i64::from(most)
        {
            return Verdict::Fresh(left);
        }
        let within = |seconds: u32| !terms.never_stale && stale_for < i64::from(seconds);
        Verdict::Stale(StaleUse {
            at_once: !is_demanded && within(terms.stale_while_revalidate),
            on_error: within(terms.stale_if_error),
            left,
        })
    }

    /// Whether the client demands validation. For demands of all clients together, one validation a
    /// second is enough.
    fn is_validation_demanded(&self, demand: &Demand, age: i64, left: i64, now: Millis) -> bool {
        let Directives {
            no_cache,
            max_age,
            min_fresh,
            ..
        } = demand.directives;
        let wants_new = no_cache || max_age == Some(0);
        if wants_new {
            return now.saturating_sub(self.validated) >= VALIDATION_PERIOD;
        }
        let is_too_old = max_age.is_some_and(|most| age > i64::from(most));
        is_too_old || min_fresh.is_some_and(|least| left < i64::from(least))
    }
}

/// The shortest time between two validations of a response that clients ask for.
const VALIDATION_PERIOD: Millis = 1000;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::freshness::LifetimeSource;

    /// A model of RFC 9111, section 4, sentence by sentence: whether a response may be reused without
    /// validation. It computes with real numbers of seconds, and does not use the shortcuts of the terms.
    fn model_reuses(stored: &StoredFacts<'_>, demand: &Demand, now: Millis) -> bool {
        let terms = stored.terms;
        let asks = demand.directives;
        // 3.5 and sessions.
        if demand.credentials.authorization && !terms.for_authorization
            || demand.credentials.session && !terms.for_sessions
        {
            return false;
        }
        // 4: "the stored response does not contain the no-cache directive, unless it is successfully
        // validated".
        if terms.no_cache {
            return false;
        }
        let age = (now.saturating_sub(stored.made) / 1000) as f64;
        let lifetime = f64::from(terms.lifetime);
        let asked_just_now = now.saturating_sub(stored.validated) < 1000;
        if (asks.no_cache || asks.max_age == Some(0)) && !asked_just_now {
            return false;
        }
        if let Some(most) = asks.max_age.filter(|most| *most > 0 && !asks.no_cache)
            && age > f64::from(most)
        {
            return false;
        }
        let wants_new = asks.no_cache || asks.max_age == Some(0);
        if let Some(least) = asks.min_fresh.filter(|_| !wants_new)
            && lifetime - age < f64::from(least)
        {
            return false;
        }
        // 4.2: fresh, or 4.2.4: allowed to be served stale.
        let fresh = lifetime > age && !stored.is_purged;
        let allowed = !terms.never_stale
            && !stored.is_purged
            && asks
                .max_stale
                .is_some_and(|most| (age - lifetime).max(0.0) <= f64::from(most));
        fresh || allowed
    }

    prop_compose! {
        fn some_terms()(
            lifetime in prop_oneof![Just(0_u32), 0..100_u32, Just(1 << 31)],
            while_revalidate in 0..50_u32,
            if_error in 0..50_u32,
            flags in any::<[bool; 4]>(),
        ) -> Terms {
            let [no_cache, never_stale, for_sessions, for_authorization] = flags;
            Terms {
                lifetime,
                source: LifetimeSource::Explicit,
                stale_while_revalidate: while_revalidate,
                stale_if_error: if_error,
                no_cache,
                never_stale: never_stale || no_cache,
                for_sessions,
                for_authorization,
            }
        }
    }

    prop_compose! {
        fn some_demand()(
            no_cache in any::<bool>(),
            max_age in proptest::option::of(0..120_u32),
            min_fresh in proptest::option::of(0..120_u32),
            max_stale in proptest::option::of(prop_oneof![0..120_u32, Just(u32::MAX)]),
            authorization in any::<bool>(),
            session in any::<bool>(),
        ) -> Demand {
            Demand {
                directives: Directives { no_cache, max_age, min_fresh, max_stale, ..Directives::default() },
                credentials: Credentials { authorization, session },
            }
        }
    }

    proptest! {
        /// The verdict agrees with the model, and a stale response is used only within its terms.
        #[test]
        fn the_verdict_is_that_of_the_rfc(
            terms in some_terms(),
            demand in some_demand(),
            made in 0..400_000_u64,
            validated in 0..400_000_u64,
            is_purged in any::<bool>(),
            now in 0..400_000_u64,
        ) {
            let stored = StoredFacts { terms: &terms, made, validated, is_purged };
            let verdict = stored.judge(&demand, now);
            let reused = matches!(verdict, Verdict::Fresh(_));
            prop_assert_eq!(reused, model_reuses(&stored, &demand, now), "{:?}", verdict);
            prop_assert_eq!(verdict == Verdict::Foreign, !terms.admit(demand.credentials));
            if let Verdict::Stale(usage) = verdict {
                let age = u64::from(stored.age(now));
                let over = age.saturating_sub(terms.lifetime.into());
                prop_assert!(!usage.at_once || over < u64::from(terms.stale_while_revalidate));
                prop_assert!(!usage.on_error || over < u64::from(terms.stale_if_error));
                prop_assert!(!(terms.never_stale && (usage.at_once || usage.on_error)));
            }
        }
    }

    #[test]
    fn a_clock_that_went_back_makes_nothing_older() {
        let terms = Terms {
            lifetime: 5,
            source: LifetimeSource::Explicit,
            stale_while_revalidate: 0,
            stale_if_error: 0,
            no_cache: false,
            never_stale: false,
            for_sessions: false,
            for_authorization: false,
        };
        let stored = StoredFacts {
            terms: &terms,
            made: 10_000,
            validated: 10_000,
            is_purged: false,
        };
        assert_eq!(stored.age(5000), 0);
        assert_eq!(stored.judge(&Demand::default(), 5000), Verdict::Fresh(5));
        let purged = StoredFacts {
            is_purged: true,
            ..stored
        };
        let expected = Verdict::Stale(StaleUse {
            at_once: false,
            on_error: false,
            left: 5,
        });
        assert_eq!(purged.judge(&Demand::default(), 10_000), expected);
    }
}

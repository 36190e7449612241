//! The limits of the whole front at which it turns clients away, and the record of when it did.
//!
//! A client that is closed at once sees no status and has no line in the access log. So for each limit the front
//! keeps a *spell*, which its log, its status and its events report: it begins with the first client turned away,
//! and is over when none was for [`QUIET`]. Limits of a backend are not here: its requests get an answer.

use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use crate::lock::lock;

/// A limit of the whole front at which clients are turned away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Limit {
    Connections,
    Address,
    ConnectionRate,
    Descriptors,
    Memory,
    Handshakes,
    Administrators,
}

/// The current spell of each limit, shared by all workers.
#[derive(Debug, Default)]
pub(crate) struct Limits([Mutex<Option<Spell>>; Limit::ALL.len()]);

/// A period in which clients were turned away. Its times count from the front's start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Spell {
    pub(crate) began: Duration,
    /// When the last client of the spell was turned away.
    pub(crate) last: Duration,
    /// How many clients were turned away in the spell.
    pub(crate) clients: u64,
    /// When the spell was last logged.
    said: Duration,
}

impl Limit {
    pub(crate) const ALL: [Self; 7] = [
        Self::Connections,
        Self::Address,
        Self::ConnectionRate,
        Self::Descriptors,
        Self::Memory,
        Self::Handshakes,
        Self::Administrators,
    ];

    /// The limit as a token of the log.
    pub(crate) fn token(self) -> &'static str {
        match self {
            Self::Connections => "connections-max",
            Self::Address => "connections-per-address",
            Self::ConnectionRate => "connection-rate",
            Self::Descriptors => "descriptors-exhausted",
            Self::Memory => "accept-failed",
            Self::Handshakes => "tls-handshakes-max",
            Self::Administrators => "admin-connections-max",
        }
    }

    /// A word for those who are turned away.
    pub(crate) fn whom(self) -> &'static str {
        match self {
            Self::Connections | Self::Descriptors | Self::Memory | Self::Handshakes => "clients",
            Self::Address | Self::ConnectionRate => "address",
            Self::Administrators => "administrators",
        }
    }

    /// A sentence that says which limit was reached, and what to do.
    pub(crate) fn words(self) -> &'static str {
        match self {
            Self::Connections => {
                "`connections_max` is reached; raise it, or shorten `keep_alive_timeout`, so that idle clients make \
                 room"
            }
            Self::Address => {
                "`connections_per_address` is reached; a proxy that brings many clients belongs in \
                 `trusted_proxies`"
            }
            Self::ConnectionRate => {
                "`connection_rate` of a listener is reached; a proxy that brings many clients belongs in \
                 `trusted_proxies`"
            }
            Self::Descriptors => {
                "no further file may be opened; raise the limit (`ulimit -Hn`, systemd: LimitNOFILE) or lower \
                 `connections_max`"
            }
            Self::Memory => "the system lacks memory for another socket",
            Self::Handshakes => {
                "`handshakes_max` handshakes of TLS are under way on one worker; the one that stalled for longest \
                 was closed"
            }
            Self::Administrators => {
                "the admin listener has as many connections as it takes; the oldest one that waited for its client \
                 was closed"
            }
        }
    }
}

impl Limits {
    /// Counts a client that is turned away. Returns the number of clients in this spell if it should be logged now,
    /// else `None`.
    pub(crate) fn turn_away(&self, limit: Limit, now: Duration) -> Option<u64> {
        let mut current = self.spell(limit);
        if let Some(spell) = &mut *current
            && !spell.is_over(now)
        {
            spell.clients += 1;
            spell.last = now;
            if now < spell.said + SAID_PERIOD {
                return None;
            }
            spell.said = now;
            return Some(spell.clients);
        }
        *current = Some(Spell {
            began: now,
            last: now,
            clients: 1,
            said: now,
        });
        Some(1)
    }

    /// The limits whose spell is not over: a client was turned away less than [`QUIET`] ago.
    pub(crate) fn reached(&self, now: Duration) -> Vec<(Limit, Spell)> {
        let mut reached = Vec::new();
        for limit in Limit::ALL {
            if let Some(spell) = &*self.spell(limit)
                && !spell.is_over(now)
            {
                reached.push((limit, spell.clone()));
            }
        }
        reached
    }

    /// Removes and returns the spells that are over.
    pub(crate) fn take_over(&self, now: Duration) -> Vec<(Limit, Spell)> {
        let mut over = Vec::new();
        for limit in Limit::ALL {
            if let Some(spell) = self.spell(limit).take_if(|spell| spell.is_over(now)) {
                over.push((limit, spell));
            }
        }
        over
    }

    fn spell(&self, limit: Limit) -> MutexGuard<'_, Option<Spell>> {
        // Its place in the order of declaration, which is that of `ALL`.
        let spell = &self.0[limit as usize];
        lock(spell)
    }
}

impl Spell {
    fn is_over(&self, now: Duration) -> bool {
        now >= self.last + QUIET
    }
}

/// A spell is over when no client was turned away for this time.
const QUIET: Duration = Duration::from_secs(60);

/// How often a spell is logged while it lasts.
const SAID_PERIOD: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spell_is_said_at_its_beginning_and_every_ten_seconds() {
        let limits = Limits::default();
        let said = [0, 1, 9, 10, 11, 80, 81]
            .map(|at| limits.turn_away(Limit::Connections, Duration::from_secs(at)));
        assert_eq!(said, [Some(1), None, None, Some(4), None, Some(1), None]);
        assert_eq!(limits.turn_away(Limit::Memory, Duration::ZERO), Some(1));
    }

    #[test]
    fn a_spell_is_over_when_nobody_was_turned_away_for_a_minute() {
        let limits = Limits::default();
        for at in [5, 6] {
            limits.turn_away(Limit::Address, Duration::from_secs(at));
        }
        let (last, over) = (Duration::from_secs(65), Duration::from_secs(66));
        let reached = limits.reached(last);
        assert_eq!((reached[0].0, reached[0].1.clients), (Limit::Address, 2));
        assert_eq!(limits.take_over(last), []);
        assert_eq!(limits.reached(over), []);
        assert_eq!(limits.take_over(over), reached);
        assert_eq!(limits.take_over(over), []);
    }

    #[test]
    fn each_limit_has_its_own_spell() {
        let limits = Limits::default();
        for limit in Limit::ALL {
            assert_eq!(
                limits.turn_away(limit, Duration::ZERO),
                Some(1),
                "{limit:?}"
            );
        }
    }
}

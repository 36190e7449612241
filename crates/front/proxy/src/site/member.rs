//! A backend as a member of an upstream in one site: with its settings and controls.

use std::sync::Arc;
use std::time::Duration;

use catamaran_upstream::{Backend, Settings};

use crate::config::{Activation, BackendConfig};

/// A backend with the settings and controls that one site gives it.
#[derive(Clone, Debug)]
pub(crate) struct Member {
    pub(crate) backend: Arc<Backend>,
    /// The member's settings, used once the site is in force, and by exchanges that began under it.
    pub(crate) settings: Arc<Settings>,
    /// The member's controls in this site: the file's, or those that an operator set.
    pub(crate) controls: Controls,
}

/// The settings of a member that an operator may change while the front runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Controls {
    pub(crate) activation: Activation,
    pub(crate) weight: u32,
    pub(crate) distance: u32,
}

impl Member {
    /// Builds the member that `config` describes. Its backend is taken from `reusable` if one is at that address.
    pub(super) fn new(
        upstream: &str,
        config: &BackendConfig,
        workers: usize,
        reusable: &mut Vec<Arc<Backend>>,
    ) -> Self {
        let known = reusable.iter().position(|it| it.is_at(upstream, config));
        let backend = match known {
            // The first one: if an upstream has an address twice, its backends keep their order.
            Some(index) => reusable.remove(index),
            None => Backend::new(upstream, config.clone(), workers),
        };
        let settings = backend.plan(config);
        Self {
            controls: Controls::of_file(&settings),
            settings,
            backend,
        }
    }

    /// The member's name, unique in the upstream.
    pub(crate) fn name(&self) -> &str {
        &self.settings.name
    }

    /// The controls of the file, without overrides.
    pub(crate) fn file(&self) -> Controls {
        Controls::of_file(&self.settings)
    }

    /// The percentage of its weight at which the member gets requests other than those of its own sessions; 0: none.
    pub(crate) fn share(&self) -> u8 {
        if self.controls.activation.takes_new() {
            self.backend.share()
        } else {
            0
        }
    }

    /// How many of its sessions were seen within `session_timeout`; `None`: sessions are not counted.
    pub(crate) fn sessions_seen(&self) -> Option<u64> {
        let (sessions, now) = self.backend.sessions()?;
        Some(sessions.seen(now))
    }

    /// How many requests named a session id that this member is not known to have given out; `None`: sessions are
    /// not counted.
    pub(crate) fn unknown_ids(&self) -> Option<u64> {
        let (sessions, _) = self.backend.sessions()?;
        Some(sessions.unknown_total())
    }

    /// The time until the member's last session expires if none of its requests comes; `None`: sessions are not
    /// counted.
    pub(crate) fn drained_in(&self) -> Option<Duration> {
        let (sessions, now) = self.backend.sessions()?;
        let last = sessions.last_seen().unwrap_or_default();
        Some((last + sessions.timeout()).saturating_sub(now))
    }

    /// Whether all its sessions have expired; `true` if sessions are not counted.
    pub(crate) fn is_drained(&self) -> bool {
        let sessions = self.backend.sessions();
        sessions.is_none_or(|(sessions, now)| sessions.are_over(now))
    }

    /// Tells the backend that a request found no member, so that it is probed sooner; not if it takes no new
    /// sessions.
    pub(super) fn want(&self) {
        if self.controls.activation.takes_new() {
            self.backend.want();
        }
    }
}

impl Controls {
    fn of_file(config: &BackendConfig) -> Self {
        Self {
            activation: config.activation,
            weight: config.weight,
            distance: config.distance,
        }
    }
}

//! Limits the connections of clients, so that backends and logs are never short of descriptors.
//!
//! The limit depends on the members of upstreams, some of which come and go, so each site has its own.

use std::sync::Arc;

use catamaran_gauge::machine::SPARE_FILES;

use super::Site;
use crate::config::{Config, ServerConfig};

/// The configured limits, before it is known how many descriptors backends need.
#[derive(Clone, Copy, Debug)]
pub(super) struct WantedLimits {
    /// `connections_max` of the file; `None`: the file does not set it.
    connections_max: Option<usize>,
    /// The most connections that clients should have, by [`ServerConfig::clients_max`].
    clients: usize,
    /// How many files are kept open besides connections.
    files: usize,
}

impl WantedLimits {
    pub(super) fn of(config: &Config) -> Self {
        Self {
            connections_max: config.server.connections_max,
            clients: config.server.clients_max(),
            files: config.files_kept_open(),
        }
    }
}

impl Site {
    /// Sets `connections_max` of this site to what is configured, or to what backends' connections and open files
    /// leave of `files_max` if that is less; clients get half of the descriptors at least. Changes nothing without
    /// `files_max`.
    pub(super) fn fitted(self) -> Self {
        let Some(limit) = self.server.files_max else {
            return self;
        };
        let backends = self.members().map(|it| it.settings.connections_max);
        let others = backends.sum::<usize>() + self.wanted.files;
        let share = share_of_clients(limit, self.wanted.clients, others);
        let server = ServerConfig {
            connections_max: Some(share),
            ..ServerConfig::clone(&self.server)
        };
        Self {
            server: Arc::new(server),
            ..self
        }
    }

    /// Logs how many connections clients may have if the limit of open files allows fewer than configured, unless
    /// `before` had the same numbers. It is a warning only if the file sets `connections_max`.
    pub(crate) fn say_clients_max(&self, before: Option<&Self>) {
        let numbers = |site: &Self| (site.server.clients_max(), site.wanted.connections_max);
        let (share, configured) = numbers(self);
        let Some(limit) = self.server.files_max else {
            return;
        };
        if share >= self.wanted.clients || before.map(numbers) == Some((share, configured)) {
            return;
        }
        match configured {
            Some(wanted) => tracing::warn!(
                "{limit} files may be open, so clients may have {share} connections, not the {wanted} of \
                 `connections_max`; raise the limit (`ulimit -Hn`, systemd: LimitNOFILE) or lower \
                 `connections_max`"
            ),
            None => tracing::info!(
                "{limit} files may be open, so clients may have {share} connections; a higher limit \
                 (`ulimit -Hn`, systemd: LimitNOFILE) allows more"
            ),
        }
    }
}

/// How many of the `wanted` connections clients may have if `limit` files may be open, of which backends and files
/// need `others`. Clients get at least half of the descriptors that are not spare.
fn share_of_clients(limit: u64, wanted: usize, others: usize) -> usize {
    let files = usize::try_from(limit).unwrap_or(usize::MAX);
    let spare = usize::try_from(SPARE_FILES).unwrap_or(usize::MAX);
    // With a very low limit, most of the files are still for connections.
    let connections = files - spare.min(files / 4);
    let left = connections.saturating_sub(others);
    wanted.min(left.max(connections / 2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_leave_descriptors_to_backends() {
        for (limit, wanted, backends, expected) in [
            (u64::MAX, 20_000, 200, 20_000),
            (65_536, 20_000, 200, 20_000),
            (4096, 20_000, 200, 4096 - 64 - 200),
            (256, 20_000, 200, (256 - 64) / 2),
            (256, 10, 200, 10),
            (8, 20_000, 200, 3),
        ] {
            let share = share_of_clients(limit, wanted, backends);
            assert_eq!(share, expected, "{limit:?} {wanted} {backends}");
        }
    }
}

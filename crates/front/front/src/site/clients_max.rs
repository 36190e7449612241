//! How many connections clients may have, so that backends and logs are never short of a descriptor.
//!
//! It depends on the members of upstreams, of which some come and go: each site has a number of its own.

use std::sync::Arc;

use catamaran_gauge::machine::SPARE_FILES;

use super::Site;
use crate::config::{Config, ServerConfig};

/// What the configuration wants, whatever the backends are.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted {
    connections_max: usize,
    /// Files that are kept open besides connections.
    files: usize,
}

impl Wanted {
    pub(super) fn of(config: &Config) -> Self {
        Self {
            connections_max: config.server.connections_max,
            files: config.files_kept_open(),
        }
    }
}

impl Site {
    /// The same site, in which clients may have as many connections as those of all backends leave them. Says so if
    /// that is another number than before.
    pub(super) fn fitted(self) -> Self {
        let Some(limit) = self.server.files_max else {
            return self;
        };
        let backends = self.members().map(|it| it.settings.connections_max);
        let others = backends.sum::<usize>() + self.wanted.files;
        let wanted = self.wanted.connections_max;
        let share = share_of_clients(limit, wanted, others);
        if share == self.server.connections_max {
            return self;
        }
        if share < wanted {
            tracing::warn!(
                "{limit} files may be open, so clients may have {share} connections, not the {wanted} of \
                 `connections_max`; raise the limit (`ulimit -Hn`, systemd: LimitNOFILE) or lower \
                 `connections_max`"
            );
        }
        let server = ServerConfig {
            connections_max: share,
            ..ServerConfig::clone(&self.server)
        };
        Self {
            server: Arc::new(server),
            ..self
        }
    }
}

/// How many connections clients may have of the `wanted` ones if so many files may be open, `others` of them for
/// connections to backends and what else is kept open. At least half of what there is goes to the clients.
fn share_of_clients(limit: u64, wanted: usize, others: usize) -> usize {
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let spare = usize::try_from(SPARE_FILES).unwrap_or(usize::MAX);
    let connections = limit - spare.min(limit / 4);
    wanted.min(connections.saturating_sub(others).max(connections / 2))
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

//! Decides which connections are admitted, and which idle ones are closed when descriptors run out.
//!
//! The limits apply to the whole front, so the workers share the counts. The counts change when a connection
//! begins and when it ends, not with a request.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use crate::config::{ListenerConfig, ServerConfig};
use crate::deadlines::Tick;
use crate::limits::Limit;
use crate::listener::Incoming;
use crate::listener::addresses::{AddressCount, Addresses};
use crate::listener::descriptors::Reserve;
use crate::site::Site;
use crate::trust::is_trusted;

/// The counts of connections and the reserved descriptor, shared by all workers.
#[derive(Debug)]
pub(crate) struct Admission {
    open: Arc<AtomicUsize>,
    addresses: Addresses,
    reserve: Reserve,
}

/// An admitted connection, which counts as open until this is dropped.
#[derive(Debug)]
pub(crate) struct Admitted {
    _open: OpenConnection,
    /// The count of its address; boxed, because most connections have none and there are many idle ones.
    of_address: Option<Box<AddressCount>>,
}

/// A connection that counts as open until this is dropped.
#[derive(Debug)]
struct OpenConnection(Arc<AtomicUsize>);

impl Admission {
    pub(crate) fn new() -> Self {
        Self {
            open: Arc::default(),
            addresses: Addresses::default(),
            reserve: Reserve::new(),
        }
    }

    /// The number of open connections.
    pub(crate) fn open(&self) -> usize {
        self.open.load(Ordering::Relaxed)
    }

    /// The descriptor in reserve, with which a connection can be refused when descriptors run out.
    pub(crate) fn reserve(&self) -> &Reserve {
        &self.reserve
    }

    /// Counts a connection as open; `Err`: the limit at which it is turned away.
    pub(crate) fn admit(
        &self,
        site: &Site,
        listener: &ListenerConfig,
        incoming: &Incoming,
    ) -> Result<Admitted, Limit> {
        let mut admitted = self.admit_unknown(&site.server)?;
        let (remote, limited) = (incoming.remote, incoming.is_tcp());
        self.admit_address(site, listener, &mut admitted, remote, limited)?;
        Ok(admitted)
    }

    /// Counts a connection like [`Self::admit`], but without the limit per address: a proxy has not yet said who the
    /// client is.
    pub(crate) fn admit_unknown(&self, server: &ServerConfig) -> Result<Admitted, Limit> {
        let open = self.connect(server.clients_max());
        Ok(Admitted {
            _open: open.ok_or(Limit::Connections)?,
            of_address: None,
        })
    }

    /// Counts the connection for its client's address, if `limited` and the address is no trusted proxy; `Err`:
    /// the limit at which it is turned away.
    pub(crate) fn admit_address(
        &self,
        site: &Site,
        listener: &ListenerConfig,
        admitted: &mut Admitted,
        remote: SocketAddr,
        limited: bool,
    ) -> Result<(), Limit> {
        let (server, ip) = (&site.server, remote.ip());
        if !limited || is_trusted(&server.trusted_proxies, ip) {
            return Ok(());
        }
        if let Some(limits) = &site.limits
            && !limits.admits(&listener.address, ip)
        {
            return Err(Limit::ConnectionRate);
        }
        if let Some(max) = server.connections_per_address {
            let count = self.addresses.connect(ip, max.get());
            admitted.of_address = Some(Box::new(count.ok_or(Limit::Address)?));
        }
        Ok(())
    }

    /// Counts a connection; `None` if `max` are open.
    fn connect(&self, max: usize) -> Option<OpenConnection> {
        // Counted first, so that two that come at once cannot both be the last one.
        if self.open.fetch_add(1, Ordering::Relaxed) >= max {
            self.open.fetch_sub(1, Ordering::Relaxed);
            return None;
        }
        Some(OpenConnection(Arc::clone(&self.open)))
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Decides which idle clients of a worker are closed to free descriptors.
#[derive(Debug, Default)]
pub(crate) struct ShedPolicy {
    /// A client that has been idle since before this tick is closed.
    before: AtomicU64,
}

impl ShedPolicy {
    /// Decides that clients are closed which have been idle for at least [`SHED_IDLE`] at `now`.
    pub(crate) fn begin(&self, now: Tick) {
        let before = u64::from(now.before(SHED_IDLE));
        self.before.store(before, Ordering::Relaxed);
    }

    /// Whether a client that has been idle since `since` must be closed.
    pub(crate) fn concerns(&self, since: Tick) -> bool {
        u64::from(since) < self.before.load(Ordering::Relaxed)
    }
}

/// The idle time after which a client is closed when descriptors run out. Clients that just connected, or that
/// send several requests in a row, are idle for less.
const SHED_IDLE: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_is_counted_until_it_is_closed() {
        let admission = Admission::new();
        let first = admission.connect(1);
        assert!(first.is_some() && admission.connect(1).is_none());
        assert_eq!(admission.open(), 1);
        drop(first);
        assert_eq!(admission.open(), 0);
        assert!(admission.connect(1).is_some());
    }

    #[test]
    fn whoever_just_connected_is_spared() {
        let shedding = ShedPolicy::default();
        assert!(!shedding.concerns(Tick::START));
        let now = Tick::START + 3 * SHED_IDLE;
        shedding.begin(now);
        assert!(shedding.concerns(Tick::START));
        assert!(!shedding.concerns(now));
    }
}

//! Replaces the configuration of a running front.
//!
//! The steps that can fail come first: bind new listeners, build the site, open the log. The steps
//! that follow cannot fail. Requests in flight keep their site.

use std::collections::HashSet;
use std::net::SocketAddr;
use std::sync::{Arc, MutexGuard, Weak};
use std::time::Duration;
use std::{fmt, io, thread};

use catamaran_upstream::Backend;
use thiserror::Error;
use tokio::time::Instant;

use crate::access_log::OpenedLog;
use crate::config::{Config, ListenAddress, ListenerConfig};
use crate::control::discovered::{SourcedUpstream, own_addresses};
use crate::listener::drain::Ending;
use crate::listener::{
    self, Acceptor, BindError, BoundAddress, BoundListener, Ipv4Ports, Listener,
};
use crate::lock::lock;
use crate::running::{Running, StartError};
use crate::site::Site;
use crate::tls::{self, CertificateChanges, ProfileError, Profiles};

/// Why a new configuration was not applied; the one before it stays in force.
#[derive(Debug, Error)]
pub enum ReloadError {
    /// A front cannot start with this configuration.
    #[error(transparent)]
    Start(#[from] StartError),
    /// A worker cannot accept from a new listener.
    #[error("a worker cannot accept from a new listener: {0}")]
    Worker(#[source] io::Error),
    /// The front drains, so it takes no new configuration.
    #[error("the front is draining and takes no new configuration")]
    Draining,
}

/// What a reload changed. Its `Display` is one line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReloadReport {
    /// Addresses of listeners that were added, with the ports that the system chose for port 0.
    pub listeners_added: Vec<BoundAddress>,
    /// Addresses of listeners that were removed; their connections finish as in a drain.
    pub listeners_removed: Vec<BoundAddress>,
    /// How many listeners stayed.
    pub listeners_kept: usize,
    /// Names of backends that their upstream did not have before, by protocol and address.
    pub backends_added: Vec<String>,
    /// Names of backends that their upstream no longer has.
    pub backends_removed: Vec<String>,
    /// How many backends stayed, with their connections, health and counters.
    pub backends_kept: usize,
    /// Names of the kept backends whose settings changed.
    pub backends_changed: Vec<String>,
    /// What became of the certificates that are served; `None`: no profile has any.
    pub certificates: Option<CertificateChanges>,
    /// Keys of settings that differ but take effect only at the next start.
    pub at_next_start: Vec<&'static str>,
}

impl fmt::Display for ReloadReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "listeners: {} kept", self.listeners_kept)?;
        list(f, "added", &self.listeners_added)?;
        list(f, "removed", &self.listeners_removed)?;
        write!(f, "; backends: {} kept", self.backends_kept)?;
        list(f, "changed", &self.backends_changed)?;
        list(f, "added", &self.backends_added)?;
        list(f, "removed", &self.backends_removed)?;
        if let Some(certificates) = &self.certificates {
            write!(f, "; {certificates}")?;
        }
        for setting in &self.at_next_start {
            write!(f, "; `{setting}` takes effect at the next start")?;
        }
        Ok(())
    }
}

/// Appends `, added a, and b`, for example; nothing without items.
fn list(f: &mut fmt::Formatter<'_>, verb: &str, items: &[impl fmt::Display]) -> fmt::Result {
    for (index, item) in items.iter().enumerate() {
        let word = if index == 0 { verb } else { "and" };
        write!(f, ", {word} {item}")?;
    }
    Ok(())
}

impl Running {
    /// Applies another configuration, either whole or not at all. Listeners whose address stays keep their sockets;
    /// backends whose upstream, protocol and address stay keep their connections, health and counters; the access log
    /// is opened anew. Must not be called from within an event loop.
    ///
    /// # Errors
    /// [`ReloadError`]; then nothing has changed.
    pub fn reload(&self, mut config: Config) -> Result<ReloadReport, ReloadError> {
        let mut listeners = self.listeners();
        if self.shared.drain.has_begun() {
            return Err(ReloadError::Draining);
        }
        let workers = self.workers.len();
        // Until the new site is in force, nobody may change the old one.
        let mut overrides = self.shared.control.lock();
        let before = self.shared.site.load_full();
        let (sources, own) = (SourcedUpstream::all(&config), own_addresses(&config));
        self.shared.control.discovered.fill(&mut config);
        let mut replaced: Vec<Arc<Backend>> = before.backends().cloned().collect();
        // A backend that an earlier reload removed may return, with the exchanges that are still in flight.
        replaced.extend(self.shared.retired.in_use());
        let mut site = Site::new(&config, workers, &mut replaced)
            .map_err(|name| StartError::UnknownUpstream { name })?;
        site.read_users().map_err(StartError::Users)?;
        site.follow(&before);
        let log = OpenedLog::new(&config.log).map_err(StartError::AccessLog)?;
        let profiles = self.next_profiles(&config).map_err(StartError::Tls)?;
        let at_next_start = self.at_next_start(&config);
        // New listeners are bound, and adopted by the workers, while the old ones still serve.
        let ports = Ipv4Ports::of(&config);
        let bind = |address: &ListenAddress| self.bind(address, &ports, &listeners);
        let plan = ReloadPlan::new(&listeners, config.listeners, bind).map_err(StartError::Bind)?;
        let adopted = self
            .adopt(plan.added, &profiles)
            .map_err(ReloadError::Worker)?;
        let trace = config.trace.as_ref();
        (self.shared.traces.follow(trace)).map_err(StartError::Worker)?;
        (self.shared.access_log.switch(log)).map_err(StartError::AccessLog)?;

        // From here on nothing can fail.
        let known: HashSet<*const Backend> = before.backends().map(Arc::as_ptr).collect();
        replaced.retain(|backend| known.contains(&Arc::as_ptr(backend)));
        let mut report = ReloadReport::of_backends(&known, &site, &replaced);
        report.at_next_start = at_next_start;
        site.say_clients_max(Some(&before));
        let settled = self.shared.control.settle(&site, &mut overrides);
        settled.configure();
        settled.put_in_force(&self.shared.site);
        self.shared.control.discovered.follow(&sources, &own);
        drop(overrides);
        self.ask_sources(sources);
        if let (Some(admin), Some(config)) = (&self.admin, config.admin) {
            admin.configure(config);
        }
        self.shared.retired.add(&replaced, &self.shared.site.load());
        let added = self.assign(adopted);
        *listeners = in_order(plan.order, &listeners, added, &profiles, &mut report);
        for removed in plan.removed {
            self.remove(&removed);
            report.listeners_removed.push(removed.address().clone());
        }
        report.certificates = tls::changes(&self.shared.profiles.load(), &profiles);
        self.shared.profiles.store(Arc::new(profiles));
        self.shared.counters.reload(true);
        self.shared.control.note_reload(None);
        Ok(report)
    }

    /// Reads the configuration's TLS profiles, which keep the ticket keys of the profiles in use.
    fn next_profiles(&self, config: &Config) -> Result<Profiles, ProfileError> {
        let served = self.shared.profiles.load();
        let known = |profile: &str| served.get(profile).map(|it| it.ticket_keys());
        let key_log = self.shared.key_log.as_ref();
        let memory = &self.shared.issued_memory;
        let profiles = tls::profiles(&config.tls, &config.listeners, known, key_log, memory)?;
        tls::in_place_of(&served, profiles)
    }

    /// Has the discovery thread ask the configuration's sources of members. A failure is only logged.
    fn ask_sources(&self, sources: Vec<SourcedUpstream>) {
        if let Err(error) = self.discovery.follow(&self.shared, sources) {
            tracing::error!(%error, "cannot start the thread that finds members; reload again");
        }
    }

    /// Begins to drain a removed listener: its connections finish, then its sockets are closed.
    fn remove(&self, listener: &Listener) {
        let sockets = listener.acceptors();
        self.leaving().extend(sockets.iter().map(Arc::downgrade));
        listener.drain().begin(Ending::Closed);
    }

    /// Keys of settings that differ from those in use and take effect only at the next start.
    fn at_next_start(&self, config: &Config) -> Vec<&'static str> {
        let is_same_admin = match (&self.admin, &config.admin) {
            (Some(admin), Some(config)) => admin.stays(config),
            (admin, config) => admin.is_none() && config.is_none(),
        };
        let mut keys = Vec::new();
        if config.server.workers.get() != self.workers.len() {
            keys.push("workers");
        }
        if !is_same_admin {
            keys.push("admin");
        }
        keys
    }

    /// Binds a new listener. If its address is in use, waits until listeners that earlier reloads removed are closed,
    /// as one of them may still hold it, and tries once more.
    fn bind(
        &self,
        address: &ListenAddress,
        ports: &Ipv4Ports,
        present: &[Arc<Listener>],
    ) -> Result<BoundListener, BindError> {
        let bind = || listener::bind(address, ports, self.workers.len());
        let bound = match bind() {
            Err(BindError::InUse { .. }) if self.wait_for_leaving() => bind(),
            bound => bound,
        };
        match (bound, listener_of_both(address, present)) {
            (Err(BindError::InUse { address }), Some(by)) => {
                Err(BindError::TakenByBoth { address, by })
            }
            (bound, _) => bound,
        }
    }

    /// Waits until the sockets of removed listeners are closed, at most [`LEAVING_MAX`]; `false` if there were none.
    fn wait_for_leaving(&self) -> bool {
        let mut leaving = self.leaving();
        leaving.retain(|socket| socket.strong_count() > 0);
        let were_there = !leaving.is_empty();
        let limit = Instant::now() + LEAVING_MAX;
        while !leaving.is_empty() && Instant::now() < limit {
            thread::park_timeout(LEAVING_PAUSE);
            leaving.retain(|socket| socket.strong_count() > 0);
        }
        were_there
    }

    fn leaving(&self) -> MutexGuard<'_, Vec<Weak<Acceptor>>> {
        lock(&self.leaving)
    }

    /// Counts a refused configuration, and keeps the reason until a configuration is applied.
    pub fn note_refused_reload(&self, reason: String) {
        self.shared.counters.reload(false);
        self.shared.control.note_reload(Some(reason));
    }
}

impl ReloadReport {
    /// Reports the backends that were added, removed, kept and changed. `known`: those of the old site; `replaced`:
    /// those of them that the new site `now` does not have.
    fn of_backends(known: &HashSet<*const Backend>, now: &Site, replaced: &[Arc<Backend>]) -> Self {
        let name = |backend: &Arc<Backend>| backend.settings().name.clone();
        let mut report = Self {
            backends_removed: replaced.iter().map(name).collect(),
            backends_kept: known.len() - replaced.len(),
            ..Self::default()
        };
        for member in now.members() {
            if !known.contains(&Arc::as_ptr(&member.backend)) {
                report.backends_added.push(member.name().to_owned());
            } else if !Arc::ptr_eq(&member.settings, &member.backend.settings()) {
                report.backends_changed.push(member.name().to_owned());
            }
        }
        report
    }
}

/// The address of a listener on `[::]` that has the same port as an IPv4 address, and so may have taken it.
fn listener_of_both(address: &ListenAddress, present: &[Arc<Listener>]) -> Option<String> {
    let ListenAddress::Tcp(SocketAddr::V4(wanted)) = address else {
        return None;
    };
    for listener in present {
        if let BoundAddress::Tcp(SocketAddr::V6(bound)) = listener.address()
            && bound.ip().is_unspecified()
            && bound.port() == wanted.port()
        {
            return Some(bound.to_string());
        }
    }
    None
}

/// Which listeners a reload keeps, adds and removes.
struct ReloadPlan {
    /// The listeners in the order of the new configuration.
    order: Vec<ListenerPlace>,
    /// The listeners bound for this reload, in the order of `order`.
    added: Vec<(ListenerConfig, BoundListener)>,
    removed: Vec<Arc<Listener>>,
}

enum ListenerPlace {
    /// A listener that stays, by its index, with its new settings.
    Kept(usize, Box<ListenerConfig>),
    /// The next listener of `added`.
    Added,
}

/// Returns the listeners of the new configuration, in its order; gives those that stay their new settings.
fn in_order(
    places: Vec<ListenerPlace>,
    before: &[Arc<Listener>],
    added: Vec<Arc<Listener>>,
    profiles: &Profiles,
    report: &mut ReloadReport,
) -> Vec<Arc<Listener>> {
    let mut added = added.into_iter();
    let mut listeners = Vec::with_capacity(places.len());
    for place in places {
        match place {
            ListenerPlace::Kept(index, config) => {
                let listener = &before[index];
                let tls = tls::of_listener(profiles, &config);
                listener.configure(*config, tls);
                report.listeners_kept += 1;
                listeners.push(Arc::clone(listener));
            }
            ListenerPlace::Added => {
                if let Some(listener) = added.next() {
                    report.listeners_added.push(listener.address().clone());
                    listeners.push(listener);
                }
            }
        }
    }
    listeners
}

impl ReloadPlan {
    /// Compares the listeners that are `present` with those that are `wanted`, and binds new ones. If one cannot be
    /// bound, those bound before are dropped.
    fn new(
        present: &[Arc<Listener>],
        wanted: Vec<ListenerConfig>,
        bind: impl Fn(&ListenAddress) -> Result<BoundListener, BindError>,
    ) -> Result<Self, BindError> {
        let mut unmatched: Vec<usize> = (0..present.len()).collect();
        let mut order = Vec::with_capacity(wanted.len());
        let mut added = AddedListeners(Vec::new());
        for config in wanted {
            let is_at = |&index: &usize| present[index].is_at(&config.address);
            let has_name = |&index: &usize| present[index].config().name == config.name;
            // With port 0 several may have one address; then the one with the same name is preferred.
            let same = (unmatched.iter())
                .position(|index| is_at(index) && has_name(index))
                .or_else(|| unmatched.iter().position(is_at));
            match same {
                Some(position) => {
                    let index = unmatched.remove(position);
                    order.push(ListenerPlace::Kept(index, Box::new(config)));
                }
                None => {
                    let bound = bind(&config.address)?;
                    added.0.push((config, bound));
                    order.push(ListenerPlace::Added);
                }
            }
        }
        Ok(Self {
            order,
            added: std::mem::take(&mut added.0),
            removed: unmatched
                .into_iter()
                .map(|index| Arc::clone(&present[index]))
                .collect(),
        })
    }
}

/// The listeners bound so far. Dropping this removes their sockets' files.
struct AddedListeners(Vec<(ListenerConfig, BoundListener)>);

impl Drop for AddedListeners {
    fn drop(&mut self) {
        for (_, bound) in &self.0 {
            if let Some(file) = &bound.file {
                listener::remove_file(file);
            }
        }
    }
}

/// How long a removed listener's sockets may take to close: a drain's grace period and some more.
const LEAVING_MAX: Duration = Duration::from_secs(2);

/// The pause between checks whether the sockets of removed listeners are closed.
const LEAVING_PAUSE: Duration = Duration::from_millis(5);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_one_line() {
        let at = |port: u16| BoundAddress::Tcp(([127, 0, 0, 1], port).into());
        let report = ReloadReport {
            listeners_added: vec![at(1), at(2)],
            listeners_removed: vec![],
            listeners_kept: 1,
            backends_added: vec!["blue".to_owned()],
            backends_removed: vec!["green".to_owned()],
            backends_kept: 3,
            backends_changed: vec!["red".to_owned()],
            certificates: None,
            at_next_start: vec!["workers"],
        };
        let expected = "listeners: 1 kept, added http://127.0.0.1:1, and http://127.0.0.1:2; \
             backends: 3 kept, changed red, added blue, removed green; `workers` takes effect at the next start";
        assert_eq!(report.to_string(), expected);
    }
}

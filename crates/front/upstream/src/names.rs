//! Resolves the host names of backends apart from requests: once for all workers, as the system does (`nsswitch.conf`),
//! on threads of their own.
//!
//! A dial uses the known addresses and starts no lookup. While resolving fails, for whatever reason, the last good
//! addresses stay in use: a failure says nothing about the backend. A name is resolved as long as a [`Name`] is held.

use std::collections::HashMap;
use std::fmt::Display;
use std::future::Future;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;
use std::{io, thread};

use tokio::net::lookup_host;
use tokio::runtime::{Builder, Handle};
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep, timeout};

use crate::error::Listed;

/// A backend's host name, with the addresses that it resolves to.
#[derive(Debug)]
pub(crate) struct Name {
    host: String,
    /// Whether a task keeps resolving the name; `false` if no thread could be started for it.
    is_kept: AtomicBool,
    known: watch::Sender<LookupResult>,
    /// Wakes the task, so that it resolves the name again soon.
    resolve_again: Arc<Notify>,
    /// The address that the last dial with several addresses connected to.
    preferred: Mutex<Option<IpAddr>>,
}

/// The last result of resolving a name.
#[derive(Clone, Debug, Default)]
struct LookupResult {
    /// The last good addresses, IPv4 and IPv6 alternating; their ports are 0.
    addresses: Arc<[SocketAddr]>,
    /// When the addresses were received; `None` before the first good answer.
    good: Option<Instant>,
    /// Why resolving fails; `None`: it does not.
    failed: Option<String>,
}

/// A backend's host name and its addresses, for administrators.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resolution {
    /// The host name.
    pub host: String,
    /// The addresses that dials use.
    pub addresses: Vec<IpAddr>,
    /// The age of the addresses; `None` before the first good answer.
    pub age: Option<Duration>,
    /// Why resolving fails; `None`: it does not.
    pub failed: Option<String>,
}

impl PartialEq for Name {
    fn eq(&self, other: &Self) -> bool {
        self.host == other.host
    }
}

impl Eq for Name {}

/// Returns the name of a host, and starts resolving it; `None` if `host` is an IP address.
pub(crate) fn name(host: &str) -> Option<Arc<Name>> {
    if host.parse::<IpAddr>().is_ok() {
        return None;
    }
    let mut registry = REGISTRY.lock().unwrap_or_else(PoisonError::into_inner);
    let Registry { names, thread } = registry.get_or_insert_default();
    let name = match names.get(host).and_then(Weak::upgrade) {
        Some(name) => name,
        None => {
            let name = Name::new(host);
            names.retain(|_, name| name.strong_count() > 0);
            names.insert(host.to_owned(), Arc::downgrade(&name));
            name
        }
    };
    name.begin(thread);
    Some(name)
}

/// Keeps a host name, and so its handed-over addresses, until this is dropped or a backend has the name.
#[derive(Debug)]
pub struct HeldName {
    _name: Option<Arc<Name>>,
}

/// Takes over addresses that the previous process had resolved, so that an upgrade works while the resolver is down. If
/// this process has received an answer, that is kept instead.
#[must_use]
pub fn remember(host: &str, addresses: &[IpAddr], age: Duration) -> HeldName {
    let name = name(host);
    if let Some(name) = &name
        && !addresses.is_empty()
    {
        let kept = addresses.iter().take(ADDRESSES_MAX);
        let without_port = kept.map(|ip| SocketAddr::new(*ip, 0)).collect();
        name.known.send_modify(|known| {
            if known.good.is_none() {
                let now = Instant::now();
                known.addresses = without_port;
                // The clock may have begun less than `age` ago; then the addresses count as new.
                known.good = now.checked_sub(age).or(Some(now));
            }
        });
    }
    HeldName { _name: name }
}

/// All names that are held, and the thread that resolves them; it starts with the first name.
#[derive(Debug, Default)]
struct Registry {
    names: HashMap<String, Weak<Name>>,
    thread: Option<Handle>,
}

static REGISTRY: Mutex<Option<Registry>> = Mutex::new(None);

/// The runtime on the thread that resolves names, which is started at the first call.
fn resolver(running: &mut Option<Handle>) -> io::Result<Handle> {
    if let Some(handle) = running {
        return Ok(handle.clone());
    }
    let runtime = Builder::new_current_thread()
        .enable_time()
        .max_blocking_threads(LOOKUPS_MAX)
        .build()?;
    let handle = runtime.handle().clone();
    thread::Builder::new()
        .name("names".to_owned())
        .spawn(move || runtime.block_on(std::future::pending::<()>()))?;
    Ok(running.insert(handle).clone())
}

/// Resolves a name again and again until no [`Arc`] of it is left.
async fn keep<F>(name: Weak<Name>, resolve: impl Fn(String) -> F, pause_min: Duration)
where
    F: Future<Output = io::Result<Vec<SocketAddr>>>,
{
    while let Some(held) = name.upgrade() {
        // `resolve_again` outlives `held`, which is dropped before the pause.
        let (host, resolve_again) = (held.host.clone(), Arc::clone(&held.resolve_again));
        let mut lookup = std::pin::pin!(resolve(host));
        let answer = match timeout(LOOKUP_MAX, &mut lookup).await {
            Ok(answer) => answer,
            Err(_) => {
                held.fail(&format!("no answer within {LOOKUP_MAX:?}"));
                // A lookup cannot be cancelled and occupies a thread, so no other is started beside it.
                lookup.await
            }
        };
        held.note(answer);
        // The name may be forgotten during the pause.
        drop(held);
        sleep(pause_min).await;
        let rest_of_period = PERIOD.saturating_sub(pause_min);
        timeout(rest_of_period, resolve_again.notified()).await.ok();
    }
}

impl Name {
    fn new(host: &str) -> Arc<Self> {
        Arc::new(Self {
            host: host.to_owned(),
            is_kept: AtomicBool::default(),
            known: watch::Sender::default(),
            resolve_again: Arc::default(),
            preferred: Mutex::default(),
        })
    }

    /// Starts the task that resolves the name, if there is none yet.
    fn begin(self: &Arc<Self>, thread: &mut Option<Handle>) {
        if self.is_kept.load(Ordering::Relaxed) {
            return;
        }
        match resolver(thread) {
            Ok(runtime) => {
                self.is_kept.store(true, Ordering::Relaxed);
                let of_system = |host| async move { Ok(lookup_host((host, 0)).await?.collect()) };
                runtime.spawn(keep(Arc::downgrade(self), of_system, PAUSE_MIN));
            }
            Err(error) => self.fail(&error.to_string()),
        }
    }

    /// Returns the addresses to dial, with `port`; the one that last worked comes first. Waits for the first answer.
    ///
    /// # Errors
    /// Why there are no addresses, in words.
    pub(crate) async fn addresses(self: &Arc<Self>, port: u16) -> Result<Vec<SocketAddr>, String> {
        let mut changes = self.known.subscribe();
        let is_answer = |known: &LookupResult| known.good.is_some() || known.failed.is_some();
        let known = match changes.wait_for(is_answer).await {
            Ok(known) => known.clone(),
            // The sender is gone, which cannot be: it is this name's own.
            Err(_) => LookupResult::default(),
        };
        if let (None, Some(failed)) = (known.good, known.failed) {
            // This dial fails at once; the name is resolved again for the next one.
            self.resolve_again.notify_one();
            let mut registry = REGISTRY.lock().unwrap_or_else(PoisonError::into_inner);
            // The thread may not have been started so far.
            self.begin(&mut registry.get_or_insert_default().thread);
            return Err(failed);
        }
        let preferred = *self.lock_preferred();
        let mut addresses = known.addresses.to_vec();
        for address in &mut addresses {
            address.set_port(port);
        }
        // `false` comes first, and the order of the others stays.
        addresses.sort_by_key(|address| Some(address.ip()) != preferred);
        Ok(addresses)
    }

    /// Records the address that a dial connected to, which is then tried first. `None`: the dial failed, so the name is
    /// resolved again soon.
    pub(crate) fn note_dial(&self, connected: Option<IpAddr>) {
        match connected {
            Some(_) => *self.lock_preferred() = connected,
            None => self.resolve_again.notify_one(),
        }
    }

    /// Why the name has no addresses yet; `None`: it has some, or no answer has come.
    pub(crate) fn lack(&self) -> Option<String> {
        let known = self.known.borrow();
        known.failed.clone().filter(|_| known.good.is_none())
    }

    pub(crate) fn resolution(&self) -> Resolution {
        let known = self.known.borrow();
        Resolution {
            host: self.host.clone(),
            addresses: known.addresses.iter().map(SocketAddr::ip).collect(),
            age: known.good.map(|good| good.elapsed()),
            failed: known.failed.clone(),
        }
    }

    /// Stores an answer, and logs what is new about it.
    fn note(&self, answer: io::Result<Vec<SocketAddr>>) {
        let addresses = match answer {
            Ok(addresses) if addresses.is_empty() => return self.fail("it has no addresses"),
            Ok(addresses) => by_turns(addresses),
            Err(error) => return self.fail(&error.to_string()),
        };
        let mut before = LookupResult::default();
        self.known.send_modify(|known| {
            let next = LookupResult {
                addresses: addresses.into(),
                good: Some(Instant::now()),
                failed: None,
            };
            before = std::mem::replace(known, next);
        });
        let host = &self.host;
        let now = &self.known.borrow().addresses;
        let is_same = now.len() == before.addresses.len()
            && now.iter().all(|address| before.addresses.contains(address));
        if before.failed.is_some() {
            tracing::info!(host, addresses = %listed(now), "the name resolves again");
        } else if before.good.is_some() && !is_same {
            tracing::info!(host, addresses = %listed(now), "the name has other addresses");
        }
    }

    /// Records that resolving failed, and logs the first failure after a success.
    fn fail(&self, error: &str) {
        let mut is_new = false;
        self.known.send_modify(|known| {
            is_new = known.failed.replace(error.to_owned()).is_none();
        });
        if !is_new {
            return;
        }
        let host = &self.host;
        let known = self.known.borrow();
        match known.good {
            Some(good) => tracing::warn!(
                host,
                error,
                age_s = good.elapsed().as_secs(),
                addresses = %listed(&known.addresses),
                "the name does not resolve; its last addresses stay in use"
            ),
            None => tracing::warn!(
                host,
                error,
                "the name does not resolve; its backends are out until it does"
            ),
        }
    }

    fn lock_preferred(&self) -> std::sync::MutexGuard<'_, Option<IpAddr>> {
        self.preferred
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// Orders addresses by alternating families, beginning with that of the first one (RFC 8305, section 4), so that after
/// a failure the other family is tried next.
fn by_turns(addresses: Vec<SocketAddr>) -> Vec<SocketAddr> {
    let begins_with_ipv4 = addresses.first().is_some_and(SocketAddr::is_ipv4);
    let (first_family, other_family): (Vec<_>, Vec<_>) = addresses
        .into_iter()
        .partition(|address| address.is_ipv4() == begins_with_ipv4);
    let mut others = other_family.into_iter();
    let mut turns = Vec::new();
    for address in first_family {
        turns.push(address);
        turns.extend(others.next());
    }
    turns.extend(others);
    turns.truncate(ADDRESSES_MAX);
    turns
}

/// Displays addresses without their ports.
fn listed(addresses: &[SocketAddr]) -> impl Display {
    Listed(addresses.iter().map(SocketAddr::ip))
}

/// The pause between an answer and the next lookup. The system does not say how long an answer is valid.
const PERIOD: Duration = Duration::from_secs(3);

/// The shortest pause between an answer and the next lookup, used after a dial that failed.
const PAUSE_MIN: Duration = Duration::from_secs(1);

/// The time after which a lookup counts as failed, although it goes on.
const LOOKUP_MAX: Duration = Duration::from_secs(5);

/// The most names that are looked up at the same time.
const LOOKUPS_MAX: usize = 16;

/// The most addresses of a name that are kept.
const ADDRESSES_MAX: usize = 32;

#[cfg(test)]
mod tests;

//! Discovers the pods of a Service of Kubernetes: lists its EndpointSlices, then watches them.
//!
//! `api` asks the API server, `slices` makes members of what it says. This module is the thread between
//! them: it goes on from the last version after a watch has ended or broken off, and lists anew if the version is too
//! old or the server refuses. What is in force stays while the server is away.

pub mod facts;
pub(crate) mod slices;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::time::Instant;

use self::facts::WatchFacts;
use self::slices::{EndpointSlice, Family};
use crate::api::control::Control;
use crate::api::error::{ApiError, ApiErrorKind};
use crate::api::lines::{Event, Metadata};
use crate::api::{ApiClient, ApiConfig, ApiObject as _, Resource};
use crate::back_off::{back_off, spread};
use crate::member::Speech;
use crate::merge::Answer;

/// A Service of Kubernetes, whose pods are the members.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KubernetesSource {
    /// The API server.
    pub api: ApiConfig,
    /// The namespace of the Service.
    pub namespace: String,
    /// The name of the Service.
    pub service: String,
    /// Which port of the pods is the members'; `None`: the Service has one alone.
    pub port: Option<ServicePort>,
    /// The protocol that the members speak; `None`: the port's `appProtocol` tells it.
    pub speech: Option<Speech>,
}

/// A port of a Service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServicePort {
    /// The port's name in the Service.
    Name(String),
    /// The port's number at the pods.
    Number(u16),
}

/// What is read of a Service.
#[derive(Deserialize)]
struct Service {
    spec: ServiceSpec,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ServiceSpec {
    #[serde(default)]
    ip_families: Vec<String>,
}

impl KubernetesSource {
    /// Follows the Service until `answers` is closed; see [`crate::MemberSource::run`].
    pub(crate) async fn run(
        self,
        answers: mpsc::Sender<Answer>,
        ask_again: Arc<Notify>,
        facts: Arc<WatchFacts>,
    ) {
        let control = Arc::new(Control::default());
        let follower = Follower::new(self, Arc::clone(&control), answers.clone(), facts);
        run_thread(move || follower.run(), &control, &answers, &ask_again).await;
    }

    /// Lists the pods once.
    pub(crate) async fn ask(&self) -> Answer {
        let source = self.clone();
        let listing = tokio::task::spawn_blocking(move || {
            let (answers, _receiver) = mpsc::channel(1);
            let mut follower = Follower::new(source, Arc::default(), answers, Arc::default());
            let listed = follower.list().and_then(|()| follower.find_family());
            listed.map_or_else(
                |error| Answer::Failed(error.to_string()),
                |()| follower.answer(),
            )
        });
        // Fails only if the event loop ends.
        let ended = |_| Answer::Failed("the program ends".to_owned());
        listing.await.unwrap_or_else(ended)
    }

    fn slices(&self) -> Resource {
        Resource {
            group: "/apis/discovery.k8s.io/v1",
            plural: "endpointslices",
            namespace: self.namespace.clone(),
            selector: format!("kubernetes.io/service-name={}", self.service),
        }
    }

    fn services(&self) -> Resource {
        Resource {
            group: "/api/v1",
            plural: "services",
            namespace: self.namespace.clone(),
            selector: String::new(),
        }
    }
}

/// Runs a thread until `answers` is closed, and tells it of `ask_again`. If it ends before, which only a fault of this
/// program causes, that is an answer: nobody else would notice.
async fn run_thread(
    work: impl FnOnce() + Send + 'static,
    control: &Arc<Control>,
    answers: &mpsc::Sender<Answer>,
    ask_again: &Notify,
) {
    // Dropped when the thread ends, also by a panic.
    let (alive, mut ended) = oneshot::channel::<()>();
    let builder = std::thread::Builder::new().name("kubernetes".to_owned());
    let spawned = builder.spawn(move || {
        let _alive = alive;
        work();
    });
    let reason = match spawned {
        Ok(_) => {
            let _end = EndOnDrop(Arc::clone(control));
            loop {
                tokio::select! {
                    () = ask_again.notified() => control.ask(),
                    () = answers.closed() => return,
                    _ = &mut ended => break,
                }
            }
            "the thread that asks it has ended: reload to start another".to_owned()
        }
        Err(error) => format!("cannot start a thread: {error}"),
    };
    // Nobody waits for the answer if the receiver is gone.
    answers.send(Answer::Failed(reason)).await.ok();
}

/// Ends the thread of a source when the source's task is dropped.
struct EndOnDrop(Arc<Control>);

impl Drop for EndOnDrop {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// The thread that follows a Service, and what it knows.
struct Follower {
    source: KubernetesSource,
    client: Arc<ApiClient>,
    control: Arc<Control>,
    answers: mpsc::Sender<Answer>,
    facts: Arc<WatchFacts>,
    /// The Service's slices by name.
    slices: BTreeMap<String, EndpointSlice>,
    /// The version from which a watch goes on; `None`: all must be listed first.
    version: Option<String>,
    /// The family of addresses that counts if there are endpoints of two; `None`: not known yet.
    first_family: Option<Family>,
    /// The last answer that was sent.
    told: Option<Answer>,
    /// Failures in a row.
    failures: u32,
    /// When the server accepted the present watch; `None`: it has not.
    accepted: Option<Instant>,
}

impl Follower {
    fn new(
        source: KubernetesSource,
        control: Arc<Control>,
        answers: mpsc::Sender<Answer>,
        facts: Arc<WatchFacts>,
    ) -> Self {
        let client = ApiClient::new(source.api.clone(), Arc::clone(&control));
        Self {
            source,
            client: Arc::new(client),
            control,
            answers,
            facts,
            slices: BTreeMap::new(),
            version: None,
            first_family: None,
            told: None,
            failures: 0,
            accepted: None,
        }
    }

    /// Follows the Service until the source's task ends.
    fn run(mut self) {
        loop {
            if self.control.take_asked() {
                self.version = None;
                self.told = None;
            }
            let began = Instant::now();
            let followed = self.follow();
            self.control.close();
            if self.control.has_ended() {
                return;
            }
            // The connection was closed to this end.
            if self.control.is_asked() {
                continue;
            }
            // Events alone prove nothing: a server in trouble may send one and end each watch.
            if self.accepted.is_some_and(|at| at.elapsed() >= WATCH_MIN) {
                self.failures = 0;
            }
            match followed {
                Ok(()) if began.elapsed() >= WATCH_MIN => {}
                // A server that ends each watch at once is not asked without pause.
                Ok(()) => self.control.pause(spread(WATCH_MIN, fastrand::f64())),
                Err(error) => self.recover(&error),
            }
        }
    }

    /// Lists the slices if need be, and watches them until the watch ends.
    fn follow(&mut self) -> Result<(), ApiError> {
        self.accepted = None;
        if self.version.is_none() {
            self.list()?;
        }
        if self.lacks_family() {
            self.find_family()?;
        }
        self.tell();
        let version = self.version.clone().unwrap_or_default();
        let (client, resource) = (Arc::clone(&self.client), self.source.slices());
        client.watch(&resource, &version, |events| self.take(events))
    }

    /// Replaces what is known by a whole list.
    fn list(&mut self) -> Result<(), ApiError> {
        let listed = self.client.list::<EndpointSlice>(&self.source.slices())?;
        if bytes(&listed.items) > BYTES_MAX {
            let text = format!(
                "the EndpointSlices of the Service take more than {} MiB of memory",
                BYTES_MAX >> 20
            );
            return Err(ApiError::new(ApiErrorKind::TooLarge, text));
        }
        let by_name = |slice: EndpointSlice| (slice.metadata().name.clone(), slice);
        self.slices = listed.items.into_iter().map(by_name).collect();
        self.version = Some(listed.version);
        self.first_family = None;
        self.facts.note_list(self.slices.len());
        Ok(())
    }

    /// The families of which there are endpoints.
    fn families(&self) -> BTreeSet<Family> {
        let slices = self.slices.values().filter(|it| it.has_endpoints());
        slices.filter_map(EndpointSlice::family).collect()
    }

    /// Whether there are endpoints of two families, and it is not known which counts.
    fn lacks_family(&self) -> bool {
        self.first_family.is_none() && self.families().len() > 1
    }

    /// Forgets the family that counts when there is no slice of it: the Service was made anew.
    fn forget_family(&mut self) {
        let has_slices = |family| self.slices.values().any(|it| it.family() == family);
        if !has_slices(self.first_family) {
            self.first_family = None;
        }
    }

    /// Asks the Service which family comes first, if its slices have two.
    fn find_family(&mut self) -> Result<(), ApiError> {
        if !self.lacks_family() {
            return Ok(());
        }
        let (name, services) = (&self.source.service, self.source.services());
        let service: Service = self.client.get(&services, name)?;
        let first = service.spec.ip_families.first();
        let family = first.and_then(|family| Family::of(family));
        self.first_family = Some(family.unwrap_or(Family::V4));
        Ok(())
    }

    /// Takes the events of a watch; `false`: the watch is not wanted any more.
    fn take(&mut self, events: Vec<Event<EndpointSlice>>) -> bool {
        self.accepted.get_or_insert_with(Instant::now);
        for event in events {
            match event {
                Event::Set(slice) => {
                    self.note_version(slice.metadata());
                    self.slices.insert(slice.metadata().name.clone(), slice);
                }
                Event::Gone(slice) => {
                    self.note_version(slice.metadata());
                    self.slices.remove(&slice.metadata().name);
                }
                Event::Bookmark(metadata) => self.note_version(&metadata),
            }
        }
        self.forget_family();
        self.facts.note_watch(self.slices.len());
        if self.slices.len() > SLICES_MAX || bytes(self.slices.values()) > BYTES_MAX {
            self.version = None;
            return false;
        }
        if self.lacks_family() {
            return false;
        }
        self.tell()
    }

    fn note_version(&mut self, metadata: &Metadata) {
        if !metadata.resource_version.is_empty() {
            self.version = Some(metadata.resource_version.clone());
        }
    }

    /// The answer that the slices give.
    fn answer(&self) -> Answer {
        let families = self.families();
        let first = self.first_family.filter(|it| families.contains(it));
        let counts = |slice: &&EndpointSlice| first.is_none() || slice.family() == first;
        let slices = self.slices.values().filter(counts);
        // Lists are whole, and watches leave nothing out.
        match slices::members(slices, &self.source) {
            Ok(found) => Answer::Whole {
                found,
                asked: self.control.server(),
            },
            Err(reason) => Answer::Failed(reason),
        }
    }

    /// Sends the answer that the slices give, if it is another one than the last; `false`: nobody wants it.
    fn tell(&mut self) -> bool {
        let answer = self.answer();
        if self.told.as_ref() == Some(&answer) {
            return true;
        }
        if matches!(answer, Answer::Failed(_)) {
            self.facts.note_error(ApiErrorKind::Unclear);
        }
        self.send(answer)
    }

    fn send(&mut self, answer: Answer) -> bool {
        self.told = Some(answer.clone());
        self.answers.blocking_send(answer).is_ok()
    }

    /// Counts an error, tells of it and waits, unless it is one that the next attempt mends.
    fn recover(&mut self, error: &ApiError) {
        self.facts.note_error(error.kind);
        self.failures = self.failures.saturating_add(1);
        // After a cut a watch goes on from its version; otherwise the server may not know the version any more.
        let was_cut = matches!(error.kind, ApiErrorKind::Cut | ApiErrorKind::Connect);
        let had_list = self.version.is_some();
        if !was_cut {
            self.version = None;
        }
        let is_usual = had_list && matches!(error.kind, ApiErrorKind::Cut | ApiErrorKind::Expired);
        if !is_usual || self.failures > 1 {
            self.send(Answer::Failed(error.to_string()));
        }
        if error.kind != ApiErrorKind::Expired || self.failures > 1 {
            let pause = spread(back_off(self.failures), fastrand::f64());
            self.control.pause(pause);
        }
    }
}

/// About how many bytes slices take in memory.
fn bytes<'s>(slices: impl IntoIterator<Item = &'s EndpointSlice>) -> usize {
    slices.into_iter().map(EndpointSlice::bytes).sum()
}

/// The shortest time from the begin of a watch to that of the next. A watch that lasts as long is no failure.
const WATCH_MIN: Duration = Duration::from_secs(1);

/// The most slices that are kept; with more, all are listed anew, which then fails.
const SLICES_MAX: usize = 10_000;

/// The most bytes that the slices may take in memory: about as many as those of 50,000 endpoints. Whoever may write
/// EndpointSlices could fill the memory otherwise.
const BYTES_MAX: usize = 32 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_thread_that_panics_is_told() {
        let (answers, mut answered) = mpsc::channel(1);
        let work = || panic!("a fault of this program");
        run_thread(work, &Arc::default(), &answers, &Notify::new()).await;
        let Some(Answer::Failed(reason)) = answered.recv().await else {
            panic!("a failure");
        };
        assert!(reason.contains("has ended"), "{reason}");
    }
}

//! The thread that discovers members of upstreams; it exists once an upstream has a source of members.
//!
//! Each source is a task of the thread's event loop. The thread merges the answers and builds a new site from
//! them, one for all changes within a short time ([`gather`]). Workers have no part in it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use std::{io, thread};

use catamaran_discover::{Answer, McmpHooks};
use tokio::sync::{Notify, mpsc, watch};
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep_until};

use crate::config::MembersConfig;
use crate::control::discovered::SourcedUpstream;
use crate::lock::lock;
use crate::worker::FrontState;

/// The channel to the discovery thread; `None` until an upstream has a source of members.
#[derive(Debug, Default)]
pub(crate) struct Discovery(Mutex<Option<watch::Sender<Vec<SourcedUpstream>>>>);

impl Discovery {
    /// Replaces the sources that are asked. The first source starts the thread.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub(crate) fn follow(
        &self,
        shared: &Arc<FrontState>,
        sources: Vec<SourcedUpstream>,
    ) -> io::Result<()> {
        let mut channel = lock(&self.0);
        if let Some(sender) = &*channel {
            sender.send_replace(sources);
        } else if !sources.is_empty() {
            *channel = Some(start(Arc::clone(shared), sources)?);
        }
        Ok(())
    }
}

/// Starts the discovery thread with an event loop of its own. Returns the channel for its sources.
fn start(
    shared: Arc<FrontState>,
    sources: Vec<SourcedUpstream>,
) -> io::Result<watch::Sender<Vec<SourcedUpstream>>> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let (plans, mut planned) = watch::channel(sources);
    planned.mark_changed();
    thread::Builder::new()
        .name("discovery".to_owned())
        .spawn(move || {
            runtime.block_on(Discoverer::new(shared).run(planned));
            // Does not wait for a thread that is stuck while it looks at a file.
            runtime.shutdown_background();
        })?;
    Ok(plans)
}

/// A source of members and the task that asks it.
struct SourceTask {
    config: Arc<MembersConfig>,
    task: AbortHandle,
    again: Arc<Notify>,
    /// When to ask again because the last answer is doubted; `None`: it is not.
    ask: Option<Instant>,
    /// Whether the first answer of the source has become part of a site.
    is_answered: bool,
    /// The number of answers that were merged; `in_force` says how many of them are part of the site.
    taken: u64,
    in_force: watch::Sender<u64>,
}

impl Drop for SourceTask {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The state of the thread: all sources, and the times at which it acts.
struct Discoverer {
    shared: Arc<FrontState>,
    tasks: HashMap<String, SourceTask>,
    answers: mpsc::Sender<(String, Answer)>,
    answered: mpsc::Receiver<(String, Answer)>,
    /// When the changes so far become a site; `None`: nothing has changed.
    publish: Option<Instant>,
    /// When the next leaving member is to be removed.
    gone: Option<Instant>,
}

impl Discoverer {
    fn new(shared: Arc<FrontState>) -> Self {
        let (answers, answered) = mpsc::channel(ANSWERS_MAX);
        Self {
            shared,
            tasks: HashMap::new(),
            answers,
            answered,
            publish: None,
            gone: None,
        }
    }

    /// Runs until the front drains, or the sender of the planned sources is dropped.
    async fn run(mut self, mut planned: watch::Receiver<Vec<SourcedUpstream>>) {
        let shared = Arc::clone(&self.shared);
        let mut ending = std::pin::pin!(shared.drain.begun());
        loop {
            let next = self.next();
            tokio::select! {
                _ = &mut ending => return,
                changed = planned.changed() => {
                    if changed.is_err() {
                        return;
                    }
                    let sources = planned.borrow_and_update().clone();
                    self.follow(sources);
                }
                Some((upstream, answer)) = self.answered.recv() => self.take(&upstream, &answer),
                () = sleep_until(next.unwrap_or_else(Instant::now)), if next.is_some() => self.act(),
            }
        }
    }

    /// The next time at which the thread must act, if no answer comes before.
    fn next(&self) -> Option<Instant> {
        let asks = self.tasks.values().filter_map(|it| it.ask);
        asks.chain(self.publish).chain(self.gone).min()
    }

    /// Keeps the tasks of sources that stay, starts those of new ones, and ends the others.
    fn follow(&mut self, sources: Vec<SourcedUpstream>) {
        let mut before = std::mem::take(&mut self.tasks);
        for SourcedUpstream {
            upstream, config, ..
        } in sources
        {
            let running = before.remove(&upstream);
            let task = match running {
                Some(mut task)
                    if task.config.source == config.source && !task.task.is_finished() =>
                {
                    task.config = config;
                    task
                }
                _ => self.ask(&upstream, config),
            };
            self.tasks.insert(upstream, task);
        }
        // Members that the process before this one had may be about to go.
        self.gone.get_or_insert_with(Instant::now);
    }

    /// Starts the task that asks a source.
    fn ask(&self, upstream: &str, config: Arc<MembersConfig>) -> SourceTask {
        let (answers_of_source, mut answers) = mpsc::channel(1);
        let again = Arc::new(Notify::new());
        let (in_force, knows_in_force) = watch::channel(0);
        let hooks = Arc::new(self.hooks(upstream, knows_in_force));
        let source = config.source.clone();
        let facts = self.shared.control.discovered.watch(upstream);
        let asking = source.run(answers_of_source, Arc::clone(&again), hooks, facts);
        let (all_answers, name) = (self.answers.clone(), upstream.to_owned());
        let naming = async move {
            while let Some(answer) = answers.recv().await {
                if all_answers.send((name.clone(), answer)).await.is_err() {
                    return;
                }
            }
        };
        let task = tokio::spawn(async move {
            tokio::join!(asking, naming);
        });
        SourceTask {
            config,
            task: task.abort_handle(),
            again,
            ask: None,
            is_answered: false,
            taken: 0,
            in_force,
        }
    }

    /// Makes the functions through which an MCMP source asks the front for requests in flight and has messages
    /// counted.
    fn hooks(&self, upstream: &str, in_force: watch::Receiver<u64>) -> McmpHooks {
        let (shared, name) = (Arc::clone(&self.shared), upstream.to_owned());
        let in_flight = move |member_name: &str| {
            let site = shared.site.load();
            let found = site.upstream(&name).and_then(|it| it.member(member_name));
            found.map_or(0, |(_, member)| member.backend.in_flight() as u64)
        };
        let nodes = self.shared.control.discovered.nodes(upstream);
        let (shared, name) = (Arc::clone(&self.shared), upstream.to_owned());
        McmpHooks {
            in_flight: Box::new(in_flight),
            count: Box::new(move |count| shared.control.discovered.count(&name, count)),
            nodes,
            in_force,
        }
    }

    /// Merges an answer of a source. Its first answer becomes part of a site at once, later changes after [`gather`].
    fn take(&mut self, upstream: &str, answer: &Answer) {
        let Some(task) = self.tasks.get_mut(upstream) else {
            return;
        };
        let control = &self.shared.control;
        let progress = control.discovered.answer(upstream, answer, &control.events);
        let instant_of = |moment| control.discovered.at(moment);
        task.taken += 1;
        task.ask = progress.deadlines.ask.map(instant_of);
        let removal = progress.deadlines.gone.map(instant_of);
        self.gone = self.gone.into_iter().chain(removal).min();
        if !task.is_answered {
            // At once, because the start waits for the first answer.
            task.is_answered = true;
            self.publish();
            self.shared.control.discovered.note_answered(upstream);
        } else if progress.changed {
            let due = Instant::now() + gather(progress.members);
            self.publish = Some(self.publish.map_or(due, |planned| planned.min(due)));
        }
        self.settle();
    }

    /// Tells the sources that all their answers so far are part of the site, unless changes still wait for one.
    fn settle(&self) {
        if self.publish.is_none() {
            for task in self.tasks.values() {
                task.in_force.send_replace(task.taken);
            }
        }
    }

    /// Does what is due: asks sources again, removes members that left, builds a site.
    fn act(&mut self) {
        let now = Instant::now();
        let is_due = |time: Option<Instant>| time.is_some_and(|time| time <= now);
        for task in self.tasks.values_mut() {
            if is_due(task.ask) {
                task.ask = None;
                task.again.notify_one();
            }
        }
        let mut changed = false;
        if is_due(self.gone) {
            let control = &self.shared.control;
            let (has_changed, next_removal) = control.discovered.pass(&control.events);
            changed = has_changed;
            self.gone = next_removal.map(|moment| control.discovered.at(moment));
        }
        if changed || is_due(self.publish) {
            self.publish();
        }
    }

    fn publish(&mut self) {
        self.publish = None;
        let FrontState {
            control,
            site,
            retired,
            ..
        } = &*self.shared;
        control.publish(site, retired);
        self.settle();
    }
}

/// How long changes are gathered before they become one site, for an upstream with so many members.
fn gather(members: usize) -> Duration {
    if members > MANY { GATHER_MANY } else { GATHER }
}

/// How long changes are gathered usually.
const GATHER: Duration = Duration::from_millis(200);

/// How long those of an upstream with more than [`MANY`] members are gathered: a new site takes long then.
const GATHER_MANY: Duration = Duration::from_secs(1);
const MANY: usize = 1000;

/// The most answers that may wait to be merged.
const ANSWERS_MAX: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_of_many_members_are_gathered_for_longer() {
        let millis = [0, 1000, 1001, 10_000].map(|members| gather(members).as_millis());
        assert_eq!(millis, [200, 200, 1000, 1000]);
    }
}

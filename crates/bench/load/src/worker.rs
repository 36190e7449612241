//! The loop of one worker thread: it sends requests when they are due, and records the responses.
//!
//! A worker has its share of the connections, each in a [`slot`]. It waits for events on them and
//! for the next intended start. It ends when no request will begin and none is in flight, when the
//! grace after the run's duration is over, or when the run is stopped. Requests that are then in
//! flight are reported.

mod controller;
mod filled;
mod jar;
mod lent;
mod lingering;
mod outgoing;
mod scheduling;
mod slot;
mod timer;

use std::cmp::Reverse;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use mio::{Events, Poll, Token};

use self::controller::Controller;
use self::lent::SlotResources;
use self::scheduling::ThreadTimes;
use self::slot::Slot;
use self::timer::Timer;
use crate::board::Board;
use crate::clock::{NEVER, after, nanos};
use crate::pace::{self, ArrivalList, Feed, Level, Mode, Open, Schedule};
use crate::plan::{Arrivals, Pace, Plan, Samples};
use crate::record::{Record, merge_connections};
use crate::report::{Connections, Ending, Thread, UnfinishedRequests};
use crate::stop::Share;

/// The part of a run that one worker does.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part {
    /// The number of the worker's thread.
    pub(crate) index: usize,
    /// The number of the worker's first connection, and the number of its connections.
    pub(crate) first: usize,
    pub(crate) connections: usize,
}

/// The results of a worker: its record, and what was unfinished.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) record: Record,
    pub(crate) connections: Connections,
    pub(crate) unfinished: UnfinishedRequests,
    pub(crate) usage: ThreadUse,
    pub(crate) warm_up_requests: u64,
    pub(crate) open_max: u64,
    pub(crate) streams_max: usize,
    /// The time that its clients had a request in flight within the measured span, and the time
    /// that they should have had, in nanoseconds.
    pub(crate) busy: u128,
    pub(crate) expected_busy: u128,
    /// The time at which the worker ended, on the run's clock.
    pub(crate) ended: u64,
    /// The end of the planned time; `None`: the run had no such time.
    pub(crate) span_end: Option<u64>,
}

impl Outcome {
    /// Adds up the results of all threads.
    pub(crate) fn sum(outcomes: &[Self], plan: &Plan) -> Self {
        let mut whole = Self {
            record: Record::new(matches!(plan.pace, Pace::Open { .. }), 0, 0, NEVER),
            connections: Connections::default(),
            unfinished: UnfinishedRequests::default(),
            usage: ThreadUse::default(),
            warm_up_requests: 0,
            open_max: 0,
            streams_max: 0,
            busy: 0,
            expected_busy: 0,
            ended: 0,
            span_end: None,
        };
        for outcome in outcomes {
            whole.add(outcome);
        }
        whole
    }

    fn add(&mut self, other: &Self) {
        self.record.merge(&other.record);
        merge_connections(&mut self.connections, &other.connections);
        self.unfinished.hung += other.unfinished.hung;
        self.unfinished.cut += other.unfinished.cut;
        self.unfinished.unsent += other.unfinished.unsent;
        self.unfinished.ages.merge(&other.unfinished.ages);
        self.usage.wall += other.usage.wall;
        self.usage.cpu += other.usage.cpu;
        self.usage.spun += other.usage.spun;
        self.warm_up_requests += other.warm_up_requests;
        self.open_max += other.open_max;
        self.streams_max = self.streams_max.max(other.streams_max);
        self.busy += other.busy;
        self.expected_busy += other.expected_busy;
        self.ended = self.ended.max(other.ended);
        self.span_end = self.span_end.max(other.span_end);
    }
}

/// The time that a thread used while measuring, for [`Thread`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ThreadUse {
    pub(crate) wall: Duration,
    pub(crate) cpu: Duration,
    pub(crate) starved: Option<Duration>,
    pub(crate) spun: Duration,
}

impl From<ThreadUse> for Thread {
    fn from(usage: ThreadUse) -> Self {
        let mut thread = Self {
            wall_s: usage.wall.as_secs_f64(),
            cpu_s: usage.cpu.as_secs_f64(),
            busy: 0.0,
            starved_s: usage.starved.map(|time| time.as_secs_f64()),
            spun_s: usage.spun.as_secs_f64(),
        };
        thread.busy = thread.share(thread.cpu_s);
        thread
    }
}

/// The state of one worker thread.
#[derive(Debug)]
pub(crate) struct Worker {
    part: Part,
    poll: Poll,
    timer: Option<Timer>,
    slots: Vec<Slot>,
    lent: SlotResources,
    level: Level,
    controller: Option<Controller>,
    is_measuring: bool,
    /// The time from which no request begins.
    until: u64,
    /// The end of the planned time: `until`, or the last request of a schedule.
    span_end: u64,
    next_tick: u64,
    next_sweep: u64,
    tick: u64,
    sweep: u64,
    timeout: u64,
    /// The time at which this thread began to measure, and the CPU times that it had used until then.
    usage_from: (u64, ThreadTimes),
    /// The time that the thread has waited without sleeping since then, in nanoseconds.
    spun: u64,
    /// The time at which the thread last returned from waiting for events.
    woke_at: u64,
}

impl Worker {
    /// Prepares the worker of one thread: its poll, its slots without connections, and its share of the load.
    pub(crate) fn new(board: &Arc<Board>, part: Part, share: Share) -> io::Result<Self> {
        let plan = &board.plan;
        let poll = Poll::new()?;
        let base = match plan.pace {
            Pace::Closed { concurrency, .. } => concurrency.get() as f64,
            Pace::Open { per_second, .. } => per_second,
        };
        let level = Level::new(base, &plan.stages);
        let timer = match plan.pace {
            Pace::Closed { .. } => None,
            Pace::Open { .. } => Some(Timer::new(poll.registry(), TIMER)?),
        };
        let feed = Feed::new(mode(plan, part, &level), share);
        // A record for the warm-up, without samples and without a planned end. `begin_to_measure` replaces it.
        let record = Record::new(timer.is_some(), 0, 0, NEVER);
        let lent = SlotResources::new(
            Arc::clone(board),
            poll.registry().try_clone()?,
            feed,
            record,
            part.index,
        );
        let slots = (0..part.connections).map(|key| Slot::new(key, part.first + key, &lent));
        let timeout = plan.timeouts.request.map_or(NEVER, nanos);
        let tick = if plan.stages.is_empty() {
            TICK
        } else {
            TICK_OF_STAGES
        };
        Ok(Self {
            slots: slots.collect(),
            part,
            poll,
            timer,
            lent,
            level,
            controller: (part.index == 0).then(Controller::default),
            is_measuring: false,
            until: NEVER,
            span_end: NEVER,
            next_tick: 0,
            next_sweep: 0,
            tick,
            // A request ends late by a tenth of its timeout at most.
            sweep: (timeout / 10).clamp(SWEEP_MIN, SWEEP_MAX),
            timeout,
            usage_from: (0, ThreadTimes::default()),
            spun: 0,
            woke_at: NEVER,
        })
    }

    /// Runs the worker's loop until the run ends; returns its results.
    pub(crate) fn run(mut self) -> Outcome {
        let mut events = Events::with_capacity(EVENTS_MAX);
        self.lent.board.get_ready();
        self.lent.look_at_the_clock();
        self.line().active_at.store(self.lent.now, Relaxed);
        self.usage_from = (
            self.lent.now,
            ThreadTimes::now(self.lent.board.plan.starved_time),
        );
        self.tend();
        self.begin();
        while !self.is_over() {
            if let Err(error) = self.wait(&mut events) {
                // No event that this worker waits for will come.
                debug_assert!(false, "poll failed: {error}");
                break;
            }
            for event in &events {
                let slot = self.slots.get_mut(slot::key_of(event.token()));
                match slot {
                    Some(slot) if slot.token() == event.token() => {
                        slot.handle_event(event, &mut self.lent);
                        if self.lent.now >= self.lent.feed.next_due() {
                            self.send_due();
                        }
                    }
                    // The event belongs to the timer, or to a connection that its slot has given away.
                    _ => self.lent.lingering.handle_event(event),
                }
            }
            if !events.is_empty() {
                self.line().active_at.store(self.lent.now, Relaxed);
            }
            self.lent.look_at_the_clock();
            self.tend();
        }
        self.end()
    }

    /// Starts every slot, or sets the time at which it may start.
    fn begin(&mut self) {
        let spacing = match self.lent.board.plan.pace {
            Pace::Closed { spacing, .. } => nanos(spacing),
            Pace::Open { .. } => 0,
        };
        let began = self.lent.now;
        for (key, slot) in self.slots.iter_mut().enumerate() {
            if self.lent.board.is_stopped() {
                return;
            }
            // Thousands of connects take time, so each looks at the clock anew.
            self.lent.look_at_the_clock();
            let after = spacing.saturating_mul((self.part.first + key) as u64);
            let at = began.saturating_add(after);
            if at > self.lent.now {
                slot.wait_until(at, &mut self.lent);
            } else {
                slot.start(&mut self.lent);
            }
        }
    }

    /// Does all work that is due by time: begins measuring, ends pauses, sends requests, checks
    /// time limits, publishes counts.
    fn tend(&mut self) {
        let now = self.lent.now;
        if !self.is_measuring && now >= self.lent.board.measure_from() {
            self.begin_to_measure();
        }
        while let Some(&Reverse((at, key))) = self.lent.pauses.peek()
            && at <= now
        {
            self.lent.pauses.pop();
            self.slots[key].wake(&mut self.lent);
        }
        self.send_due();
        if now >= self.next_sweep && self.has_sweeps() {
            self.next_sweep = now + self.sweep;
            self.lent.lingering.expire(now);
            for slot in &mut self.slots {
                slot.check_time(self.timeout, &mut self.lent);
            }
        }
        if now >= self.next_tick {
            self.next_tick = now + self.tick;
            self.tick();
        }
    }

    /// Gives requests that are due to free slots.
    fn send_due(&mut self) {
        let now = self.lent.now;
        let refused = self.lent.feed.collect_due(now);
        self.lent.record.refuse(refused, now);
        // Each free slot is tried once, so that the loop ends whatever the slots do.
        for _ in 0..self.lent.idle.len() {
            if !self.lent.feed.has_waiting(now) {
                break;
            }
            if let Some(key) = self.lent.idle.pop_front() {
                self.slots[key].start(&mut self.lent);
            }
        }
    }

    /// Does what is due every tick: looks at the warm-up and at the limit without events, starts further clients,
    /// publishes counts.
    fn tick(&mut self) {
        if let Some(controller) = &mut self.controller {
            controller.look(&self.lent.board, self.lent.now);
        }
        let board = Arc::clone(&self.lent.board);
        // Every worker checks this, since any of them may be the last one.
        let idle_at = after(board.active_at(), board.plan.timeouts.idle);
        if self.lent.now > idle_at {
            board.end(Ending::Idle);
        }
        if let Mode::Closed { clients } = &mut self.lent.feed.mode {
            if self.level.changes() && self.is_measuring {
                let since = self.lent.now.saturating_sub(self.usage_from.0) as f64 / 1e9;
                *clients = self.level.at(since).round() as usize;
            }
            // Each free slot is tried once: one whose client is not wanted yet goes back into the queue.
            for _ in 0..self.lent.idle.len() {
                if let Some(key) = self.lent.idle.pop_front() {
                    self.slots[key].start(&mut self.lent);
                }
            }
        }
        let line = &board.lines[self.part.index];
        self.lent.publish(line, self.is_measuring);
    }

    /// Ends the warm-up: from now on requests are recorded, and the run's time runs.
    fn begin_to_measure(&mut self) {
        let board = Arc::clone(&self.lent.board);
        let (plan, now) = (&board.plan, self.lent.now);
        self.is_measuring = true;
        let mut duration = plan.stop.duration;
        if duration.is_none() && !plan.stages.is_empty() {
            // The run ends with its last stage.
            duration = Some(plan.stages.iter().map(|stage| stage.duration).sum());
        }
        self.until = after(now, duration);
        self.span_end = self.planned_end(plan);
        let schedule = self.schedule(&board);
        self.lent.feed.measure(now, self.until, schedule);
        self.lent.busy = 0;
        self.lent.span = (now, self.until);
        let samples = match plan.samples {
            Samples::None => 0,
            Samples::First(max) => max.get(),
        };
        let (is_open, from) = (self.timer.is_some(), board.measure_from());
        self.lent.record = Record::new(is_open, samples, from, self.span_end);
        self.lent.record.by_name = board.names.record();
        self.usage_from = (now, ThreadTimes::now(plan.starved_time));
        self.spun = 0;
        self.next_tick = 0;
    }

    /// The time at which the last request of an open loop or a replay that begins now is due, at most the end of the run.
    fn planned_end(&self, plan: &Plan) -> u64 {
        let is_open = self.timer.is_some();
        let span = if is_open && let Some(requests) = plan.stop.requests {
            let seconds = self.level.reach(0.0, requests.get() as f64);
            seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
        } else {
            plan.replay.as_ref().map(|replay| replay.span)
        };
        self.until.min(after(self.lent.now, span))
    }

    /// The times at which this thread's requests are due, of a replay or an open loop; `None` for a closed loop.
    fn schedule(&self, board: &Board) -> Option<Schedule> {
        let now = self.lent.now;
        if let Some(replay) = &board.plan.replay {
            let (index, threads) = (self.part.index, board.lines.len());
            let arrivals = Arc::clone(&replay.arrivals);
            let list = ArrivalList::new(arrivals, index, threads, now);
            return Some(Schedule::Listed(list));
        }
        let is_open = self.timer.is_some();
        is_open.then(|| thread_schedule(&board.plan, self.part, &self.level, now))
    }

    /// Whether no request of this worker will begin and none is in flight, or its time or grace is over.
    fn is_over(&self) -> bool {
        let now = self.lent.now;
        self.lent.board.is_stopped()
            || (self.lent.in_flight == 0 && self.lent.feed.is_exhausted(now))
            || now >= after(self.until, Some(self.lent.board.plan.stop.grace))
    }

    /// Waits for events, or until the next work by time is due. A wait that is too short for a timer is spent spinning.
    fn wait(&mut self, events: &mut Events) -> io::Result<()> {
        let now = self.lent.now;
        let mut wait = self.next_work().saturating_sub(now);
        let due = self.lent.feed.next_due();
        let mut spins = false;
        if let Some(timer) = &mut self.timer
            && due != NEVER
        {
            match due.saturating_sub(now) {
                0..=SPIN => {
                    wait = 0;
                    spins = true;
                }
                left => timer.set(due, left)?,
            }
        }
        match self.poll.poll(events, Some(Duration::from_nanos(wait))) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => events.clear(),
            polled => polled?,
        }
        self.lent.look_at_the_clock();
        // A worker that comes back later than this had no CPU or was stopped, which is no silence of the server.
        let expected_at = self.woke_at.saturating_add(wait);
        self.lent
            .record
            .silences
            .come_round(expected_at, self.lent.now);
        self.woke_at = self.lent.now;
        if spins && events.is_empty() {
            self.spun += self.lent.now.saturating_sub(now);
        }
        Ok(())
    }

    /// The time at which the next work by time is due, except requests of a schedule.
    fn next_work(&self) -> u64 {
        let mut next = self.next_tick;
        if self.has_sweeps() {
            next = next.min(self.next_sweep);
        }
        if let Some(Reverse((pause_end, _))) = self.lent.pauses.peek() {
            next = next.min(*pause_end);
        }
        if !self.is_measuring {
            next = next.min(self.lent.board.measure_from());
        }
        // During the grace the end is over.
        if self.until > self.lent.now {
            next = next.min(self.until);
        }
        next
    }

    /// Whether anything must be checked for its age: requests with a timeout, or lingering connections.
    fn has_sweeps(&self) -> bool {
        self.timeout != NEVER || !self.lent.lingering.is_empty()
    }

    fn line(&self) -> &crate::board::Line {
        &self.lent.board.lines[self.part.index]
    }

    /// Ends the worker: counts its unfinished and unsent requests, and returns its results.
    fn end(mut self) -> Outcome {
        self.lent.look_at_the_clock();
        let now = self.lent.now;
        let (span_from, span_to) = (self.lent.span.0, self.lent.span.1.min(now));
        let slots = self.slots.iter();
        let expected = slots.map(|slot| u128::from(slot.expected_busy(span_from, span_to)));
        let expected_busy = expected.sum();
        let unfinished = self.count_unfinished(now);
        self.lent.in_flight = 0;
        let board = Arc::clone(&self.lent.board);
        let line = &board.lines[self.part.index];
        self.lent.publish(line, self.is_measuring);
        let (from, before) = self.usage_from;
        let used = ThreadTimes::now(board.plan.starved_time).since(&before);
        Outcome {
            record: self.lent.record,
            connections: self.lent.connections,
            unfinished,
            usage: ThreadUse {
                wall: Duration::from_nanos(now.saturating_sub(from)),
                cpu: used.cpu,
                starved: used.starved,
                spun: Duration::from_nanos(self.spun).min(used.cpu),
            },
            warm_up_requests: self.lent.warm_up.started,
            open_max: self.lent.open_max,
            // Before the server's settings arrive, a connection may begin more streams than it allows.
            streams_max: self.lent.streams_max.min(self.lent.streams_allowed),
            busy: self.lent.busy,
            expected_busy,
            ended: now,
            span_end: Some(self.span_end).filter(|end| *end != NEVER),
        }
    }

    /// Counts the requests in flight and those that wait in the backlog; the worker ends at `now`.
    fn count_unfinished(&mut self, now: u64) -> UnfinishedRequests {
        let was_stopped = self.lent.board.is_stopped();
        let mut unfinished = UnfinishedRequests::default();
        for flight in self.slots.iter_mut().flat_map(Slot::abandon) {
            self.lent.add_busy(&flight);
            if !flight.counted {
                continue;
            }
            if was_stopped {
                unfinished.cut += 1;
            } else {
                unfinished.hung += 1;
            }
            let age = Duration::from_nanos(now.saturating_sub(flight.due));
            unfinished.ages.record(age);
            self.lent.record.abandon(age);
            self.lent.record.silences.abandon(flight.begun, now);
            self.lent.record.by_name.abandon(&flight, now);
        }
        // Requests that wait from here on were not sent because the duration was over.
        let sendable_until = now.min(self.until);
        for due in self.lent.feed.take_unsent() {
            let age = Duration::from_nanos(sendable_until.saturating_sub(due));
            unfinished.unsent += 1;
            self.lent.record.counts.started += 1;
            unfinished.ages.record(age);
            self.lent.record.abandon(age);
        }
        unfinished
    }
}

/// The feed's mode for the warm-up: clients, or a schedule.
fn mode(plan: &Plan, part: Part, level: &Level) -> Mode {
    match plan.pace {
        Pace::Closed { .. } => Mode::Closed {
            clients: level.warm().at(0.0).round() as usize,
        },
        Pace::Open { backlog, .. } => Mode::Open(Open::new(
            thread_schedule(plan, part, &level.warm(), 0),
            backlog.get(),
        )),
    }
}

/// When one thread sends requests: its share of `level` by the thread's part of the connections, from `origin` on, in
/// nanoseconds of the run's clock.
fn thread_schedule(plan: &Plan, part: Part, level: &Level, origin: u64) -> Schedule {
    let arrivals = match plan.pace {
        Pace::Open { arrivals, .. } => arrivals,
        Pace::Closed { .. } => Arrivals::Constant,
    };
    let share = part.connections as f64 / plan.pace.connections().get() as f64;
    let random = pace::random(plan.seed, part.index);
    Schedule::new(level.clone(), share, arrivals, random, origin)
}

/// The timer's token; a slot's token has its number in the lower half.
const TIMER: Token = Token(usize::MAX);

const EVENTS_MAX: usize = 1024;

/// The interval in nanoseconds at which a worker checks whether it should end, and publishes its counts.
const TICK: u64 = 50_000_000;
/// The interval at which a worker checks for its end while the number of clients changes, in nanoseconds.
const TICK_OF_STAGES: u64 = 10_000_000;
/// The shortest interval between two checks of requests for their timeout, in nanoseconds; the next
/// constant is the longest.
const SWEEP_MIN: u64 = 1_000_000;
const SWEEP_MAX: u64 = 100_000_000;
/// The longest wait, in nanoseconds, that is spent spinning instead of with a timer.
const SPIN: u64 = 20_000;

//! The times at which requests are due, in closed and open loops.
//!
//! A [`Feed`] returns [`Ticket`]s, one per request, each with the time at which the request was
//! *due*. In a closed loop that is when its client becomes free. In an open loop it comes from a
//! [`Schedule`] that does not depend on connections and answers, so a server that stalls does not
//! reduce the load (coordinated omission). Nothing here reads a clock.

mod level;
mod listed;
mod schedule;

use std::collections::VecDeque;

pub(crate) use level::Level;
pub(crate) use listed::ArrivalList;
pub(crate) use schedule::{Schedule, random};

use crate::clock::NEVER;
use crate::stop::Share;

/// The permission to send one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ticket {
    /// The time at which the request was due.
    pub(crate) due: u64,
    /// Whether the request is measured; requests of the warm-up are not.
    pub(crate) counted: bool,
    /// The request's place among the target's requests; `None`: the connection sends them in turn.
    pub(crate) request: Option<u32>,
}

/// The source of one thread's requests: a schedule or clients, and the number of requests left.
#[derive(Debug)]
pub(crate) struct Feed {
    pub(crate) mode: Mode,
    share: Share,
    /// The time at which measuring begins.
    measure_from: u64,
    /// The time from which no request begins. An exception are requests that became due since the last look:
    /// without it they would count as unsent, although only the generator is late.
    until: u64,
    /// The times of the last look at the schedule and of the one before.
    looked_at: u64,
    looked_before: u64,
    /// Whether the number of requests is used up.
    is_spent: bool,
}

/// The kind of loop: closed, by clients, or open, by a schedule.
#[derive(Debug)]
pub(crate) enum Mode {
    /// A closed loop: clients numbered below `clients` may send.
    Closed { clients: usize },
    /// An open loop: any free client sends what is due.
    Open(Open),
}

/// The schedule of an open loop, and its requests that are due.
#[derive(Debug)]
pub(crate) struct Open {
    schedule: Schedule,
    /// The waiting requests: the time at which each was due, and its place.
    backlog: VecDeque<(u64, Option<u32>)>,
    backlog_max: usize,
}

impl Open {
    /// The open loop of `schedule`, of which at most `backlog_max` due requests wait for a connection.
    pub(crate) fn new(schedule: Schedule, backlog_max: usize) -> Self {
        Self {
            schedule,
            backlog: VecDeque::new(),
            backlog_max,
        }
    }
}

impl Feed {
    pub(crate) fn new(mode: Mode, share: Share) -> Self {
        Self {
            mode,
            share,
            measure_from: NEVER,
            until: NEVER,
            looked_at: 0,
            looked_before: 0,
            is_spent: false,
        }
    }

    /// Begins the measured span, from `from` to `until`; `schedule` replaces the warm-up's.
    pub(crate) fn measure(&mut self, from: u64, until: u64, schedule: Option<Schedule>) {
        self.measure_from = from;
        self.until = until;
        if let (Mode::Open(open), Some(schedule)) = (&mut self.mode, schedule) {
            open.schedule = schedule;
        }
    }

    /// The permission for `client`, which is free since `now`, to send a request; `None`: there is none to send.
    pub(crate) fn claim(&mut self, client: usize, now: u64) -> Option<Ticket> {
        // A request that became due just before the end may begin a little after it.
        if now >= self.until && !self.has_fresh(now) {
            return None;
        }
        match &mut self.mode {
            Mode::Closed { clients } => {
                // Stages may want fewer clients than there are connections.
                if client >= *clients {
                    return None;
                }
                let counted = now >= self.measure_from;
                if counted && !self.share.claim() {
                    self.is_spent = true;
                    return None;
                }
                Some(Ticket {
                    due: now,
                    counted,
                    request: None,
                })
            }
            Mode::Open(open) => open.backlog.pop_front().map(|(due, request)| Ticket {
                due,
                counted: due >= self.measure_from,
                request,
            }),
        }
    }

    /// Whether the number of requests is used up.
    pub(crate) fn is_spent(&self) -> bool {
        self.is_spent
    }

    /// Moves the requests that have become due from the schedule to the backlog; returns the number
    /// of counted requests that had no room there.
    pub(crate) fn collect_due(&mut self, now: u64) -> u64 {
        let Mode::Open(open) = &mut self.mode else {
            return 0;
        };
        (self.looked_before, self.looked_at) = (self.looked_at, now);
        let mut refused = 0;
        loop {
            let due = open.schedule.next();
            if due > now || due >= self.until || self.is_spent {
                return refused;
            }
            let counted = due >= self.measure_from;
            if counted && !self.share.claim() {
                self.is_spent = true;
                return refused;
            }
            if open.backlog.len() < open.backlog_max {
                open.backlog.push_back((due, open.schedule.request()));
            } else {
                refused += u64::from(counted);
            }
            open.schedule.advance();
        }
    }

    /// The time at which the schedule's next request is due; never in a closed loop.
    pub(crate) fn next_due(&self) -> u64 {
        match &self.mode {
            Mode::Open(open) if !self.is_spent && open.schedule.next() < self.until => {
                open.schedule.next()
            }
            _ => NEVER,
        }
    }

    /// Whether [`Self::claim`] would return a waiting request at `now`. Always `false` in a closed
    /// loop, where no request waits.
    pub(crate) fn has_waiting(&self, now: u64) -> bool {
        if now < self.until {
            matches!(&self.mode, Mode::Open(open) if !open.backlog.is_empty())
        } else {
            self.has_fresh(now)
        }
    }

    /// Whether the request that has waited longest became due after the look before last, so that
    /// it could not have been sent before.
    fn has_fresh(&self, now: u64) -> bool {
        let Mode::Open(open) = &self.mode else {
            return false;
        };
        if now.saturating_sub(self.until) > LATE_MAX {
            return false;
        }
        match open.backlog.front() {
            Some((due, _)) => *due > self.looked_before,
            None => false,
        }
    }

    /// The number of requests that are due and not sent yet; 0 in a closed loop.
    pub(crate) fn waiting(&self) -> usize {
        match &self.mode {
            Mode::Open(open) => open.backlog.len(),
            Mode::Closed { .. } => 0,
        }
    }

    /// Whether no further request will begin.
    pub(crate) fn is_exhausted(&self, now: u64) -> bool {
        if now >= self.until {
            return !self.has_fresh(now);
        }
        match &self.mode {
            Mode::Closed { .. } => self.is_spent,
            Mode::Open(open) => {
                let has_more = !self.is_spent && open.schedule.next() < self.until;
                open.backlog.is_empty() && !has_more
            }
        }
    }

    /// Empties the backlog; returns the time at which each of its counted requests was due.
    pub(crate) fn take_unsent(&mut self) -> Vec<u64> {
        let Mode::Open(open) = &mut self.mode else {
            return Vec::new();
        };
        let due_times = open.backlog.drain(..).map(|(due, _)| due);
        due_times.filter(|due| *due >= self.measure_from).collect()
    }
}

/// The time after the end, in nanoseconds, after which no late request begins.
const LATE_MAX: u64 = 100_000_000;

#[cfg(test)]
mod tests;

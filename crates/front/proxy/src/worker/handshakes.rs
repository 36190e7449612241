//! The TLS handshakes that one worker has under way, and limits on their number and on their cost.
//!
//! The number of handshakes is limited: when the limit is reached, one of them is given up for the next. It is the one
//! whose client has been inactive for longest: among those without a whole ClientHello if they have more than half of
//! the places, else among the others. So neither silent connections nor stalled handshakes, however many, take the
//! places that a client in the middle of an honest handshake needs: it is given up only if half of the places were
//! taken after its last step.
//!
//! The cryptography of handshakes is limited, too: one turn of the event loop does only [`TURNS`] steps of it, so that
//! other connections wait little, and further handshakes wait in order of arrival. Only the worker's own thread locks
//! the mutexes.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::task::yield_now;

use crate::deadlines::Tick;
use crate::lock::lock;

/// The TLS handshakes that one worker has under way, and the turns that they take.
#[derive(Debug, Default)]
pub(crate) struct Handshakes {
    state: Mutex<HandshakeState>,
    /// Wakes [`Handshakes::pace`] after a handshake has taken a turn, so that it makes turns available again.
    taken: Notify,
}

/// When failures of connections were last logged, for all workers. Strangers cause them, so each reason is logged only
/// once in [`LOG_PERIOD`].
#[derive(Debug, Default)]
pub(crate) struct FailureLog {
    /// For each reason, when it was last logged.
    logged: Mutex<Vec<(&'static str, Tick)>>,
}

#[derive(Debug, Default)]
struct HandshakeState {
    /// The number of the last step of any client: a handshake that begins, or a whole ClientHello.
    next: u64,
    open: usize,
    /// Handshakes without a whole ClientHello, by the number of the step in which they began.
    silent: BTreeMap<u64, Waker>,
    /// Handshakes with a whole ClientHello, by the number of the step in which it came.
    greeted: BTreeMap<u64, Waker>,
    /// How many turns were taken since the event loop last polled all sockets.
    taken: usize,
    /// Handshakes that wait for a turn, in the order in which they asked.
    waiting: BTreeMap<u64, Waker>,
    /// The key in `waiting` for the next handshake that has to wait.
    last_place: u64,
}

/// A handshake under way; dropping it ends it.
#[derive(Debug)]
pub(crate) struct Open<'a> {
    handshakes: &'a Handshakes,
    /// The number of the client's last step, which is the key in `silent` or `greeted`.
    number: u64,
    /// Whether the client has not sent a whole ClientHello yet, as far as the worker knows.
    silent: bool,
    /// The key in `waiting`; `None`: the handshake waits for no turn.
    place: Option<u64>,
}

impl Handshakes {
    /// Begins a handshake. If `max` are under way, one of them is given up: its task is woken by the `waker` that it
    /// gave here.
    pub(crate) fn begin(&self, max: usize, waker: &Waker) -> Open<'_> {
        let mut state = self.lock();
        if state.open >= max {
            state.make_room(max);
        }
        state.open += 1;
        let number = state.next_number();
        state.silent.insert(number, waker.clone());
        Open {
            handshakes: self,
            number,
            silent: true,
            place: None,
        }
    }

    /// Makes turns available again whenever the event loop has polled all sockets. Runs until dropped.
    pub(crate) async fn pace(&self) {
        loop {
            self.taken.notified().await;
            loop {
                // This task goes on after the sockets were polled, and after all tasks that they have woken.
                yield_now().await;
                if !self.refill() {
                    break;
                }
            }
        }
    }

    /// Makes all turns available, and gives them to waiting handshakes first. Returns whether any was given.
    fn refill(&self) -> bool {
        let mut state = self.lock();
        state.taken = 0;
        while state.taken < TURNS
            && let Some((_, waker)) = state.waiting.pop_first()
        {
            state.taken += 1;
            waker.wake();
        }
        state.taken > 0
    }

    fn lock(&self) -> MutexGuard<'_, HandshakeState> {
        lock(&self.state)
    }
}

impl HandshakeState {
    fn next_number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// Gives up the handshake whose client has been inactive for longest: among those without a whole ClientHello if
    /// they would have more than half of the places, else among the others.
    fn make_room(&mut self, max: usize) {
        // A handshake that begins is silent, too.
        let (first, second) = if self.silent.len() >= max / 2 {
            (&mut self.silent, &mut self.greeted)
        } else {
            (&mut self.greeted, &mut self.silent)
        };
        if let Some((_, victim)) = first.pop_first().or_else(|| second.pop_first()) {
            victim.wake();
        }
    }
}

impl FailureLog {
    /// Whether to log a failure with this reason now: none was logged within the last [`LOG_PERIOD`].
    pub(crate) fn is_news(&self, token: &'static str, now: Tick) -> bool {
        let mut logged = lock(&self.logged);
        match logged.iter_mut().find(|(known, _)| *known == token) {
            Some((_, last)) if now < *last + LOG_PERIOD => false,
            Some((_, last)) => {
                *last = now;
                true
            }
            None => {
                logged.push((token, now));
                true
            }
        }
    }
}

impl Open<'_> {
    /// Whether this handshake was given up to make room for another.
    pub(crate) fn is_given_up(&self) -> bool {
        let state = self.handshakes.lock();
        let of_its_kind = if self.silent {
            &state.silent
        } else {
            &state.greeted
        };
        !of_its_kind.contains_key(&self.number)
    }

    /// Records that the client has sent a whole ClientHello. That counts as a step; parts of one do not.
    pub(crate) fn heard(&mut self) {
        if !self.silent {
            return;
        }
        self.silent = false;
        let mut state = self.handshakes.lock();
        // If it was given up meanwhile, it stays so.
        if let Some(waker) = state.silent.remove(&self.number) {
            self.number = state.next_number();
            state.greeted.insert(self.number, waker);
        }
    }

    /// Waits for a turn, which allows one step of the handshake.
    pub(crate) fn poll_turn(&mut self, cx: &Context<'_>) -> Poll<()> {
        let mut state = self.handshakes.lock();
        if let Some(place) = self.place {
            if let Some(waker) = state.waiting.get_mut(&place) {
                waker.clone_from(cx.waker());
                return Poll::Pending;
            }
            // `refill` has taken it out of `waiting`, and so has given it a turn.
            self.place = None;
            return Poll::Ready(());
        }
        if state.waiting.is_empty() && state.taken < TURNS {
            state.taken += 1;
            self.handshakes.taken.notify_one();
            return Poll::Ready(());
        }
        let place = state.last_place;
        state.last_place += 1;
        state.waiting.insert(place, cx.waker().clone());
        self.place = Some(place);
        Poll::Pending
    }
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        let mut state = self.handshakes.lock();
        state.open -= 1;
        state.silent.remove(&self.number);
        state.greeted.remove(&self.number);
        if let Some(place) = self.place {
            state.waiting.remove(&place);
        }
    }
}

/// How many steps of handshakes one turn of the event loop does; a step takes 0.1 to 0.5 ms with elliptic curves, up
/// to 2 ms with RSA.
const TURNS: usize = 8;

/// The shortest time between two log lines about failures with one reason.
const LOG_PERIOD: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use catamaran_testkit::Wakes;

    use super::*;

    fn begin(handshakes: &Handshakes, max: usize) -> (Open<'_>, Arc<Wakes>) {
        let (waker, wakes) = Wakes::counted();
        (handshakes.begin(max, &waker), wakes)
    }

    /// Begins `count` handshakes whose clients have sent a whole ClientHello.
    fn greeted<'a>(handshakes: &'a Handshakes, max: usize, count: usize) -> Vec<Open<'a>> {
        let mut opened: Vec<Open<'a>> = (0..count).map(|_| begin(handshakes, max).0).collect();
        opened.iter_mut().for_each(Open::heard);
        opened
    }

    fn given_up(opened: &[Open<'_>]) -> Vec<usize> {
        let given_up = |index: &usize| opened[*index].is_given_up();
        (0..opened.len()).filter(given_up).collect()
    }

    #[test]
    fn the_oldest_silent_one_makes_room() {
        let handshakes = Handshakes::default();
        let (mut first, _) = begin(&handshakes, 3);
        let (second, woken) = begin(&handshakes, 3);
        let (third, _) = begin(&handshakes, 3);
        first.heard();
        let (fourth, _) = begin(&handshakes, 3);
        assert_eq!(woken.count(), 1);
        assert_eq!(given_up(&[first, second, third, fourth]), [1]);
    }

    #[test]
    fn the_oldest_stalled_one_makes_room_if_few_are_silent() {
        let handshakes = Handshakes::default();
        let mut stalled = greeted(&handshakes, 8, 8);
        for round in 1..8 {
            let (mut honest, _) = begin(&handshakes, 8);
            assert_eq!(given_up(&stalled), (0..round).collect::<Vec<_>>());
            honest.heard();
            assert!(!honest.is_given_up());
        }
        stalled.clear();
        assert_eq!(handshakes.lock().open, 0);
    }

    #[test]
    fn neither_kind_takes_the_half_of_the_other() {
        let handshakes = Handshakes::default();
        let honest = greeted(&handshakes, 8, 4);
        let silent: Vec<_> = (0..100).map(|_| begin(&handshakes, 8).0).collect();
        assert!(given_up(&honest).is_empty());
        assert_eq!(given_up(&silent), (0..96).collect::<Vec<_>>());

        let handshakes = Handshakes::default();
        let slow: Vec<_> = (0..3).map(|_| begin(&handshakes, 8).0).collect();
        let mut stalled = Vec::new();
        for _ in 0..100 {
            let (mut next, _) = begin(&handshakes, 8);
            next.heard();
            stalled.push(next);
        }
        assert!(given_up(&slow).is_empty());
        assert_eq!(given_up(&stalled), (0..95).collect::<Vec<_>>());
    }

    #[test]
    fn a_client_hello_is_a_step_that_others_come_before() {
        let handshakes = Handshakes::default();
        let (mut slow, _) = begin(&handshakes, 3);
        let stalled = greeted(&handshakes, 3, 2);
        slow.heard();
        let (_next, _) = begin(&handshakes, 3);
        assert!(!slow.is_given_up());
        assert_eq!(given_up(&stalled), [0]);
    }

    #[test]
    fn turns_are_limited_and_given_in_the_order_of_coming() {
        let handshakes = Handshakes::default();
        let mut all: Vec<Open<'_>> = (0..20).map(|_| begin(&handshakes, 100).0).collect();
        let cx = Context::from_waker(Waker::noop());
        let turns = |all: &mut [Open<'_>]| -> Vec<usize> {
            let turn = |(index, open): (usize, &mut Open<'_>)| {
                open.poll_turn(&cx).is_ready().then_some(index)
            };
            all.iter_mut().enumerate().filter_map(turn).collect()
        };
        assert_eq!(turns(&mut all), (0..8).collect::<Vec<_>>());
        assert_eq!(turns(&mut all[8..]), Vec::<usize>::new());
        // Leaving the queue makes room in it.
        all.remove(8);
        assert!(handshakes.refill());
        assert_eq!(turns(&mut all[8..]), (0..8).collect::<Vec<_>>());
        assert!(handshakes.refill());
        assert_eq!(turns(&mut all[16..]), [0, 1, 2]);
        assert!(!handshakes.refill(), "all turns are there again");
        assert!(all[0].poll_turn(&cx).is_ready());
    }

    #[tokio::test]
    async fn turns_come_back_when_sockets_were_looked_at() {
        let handshakes = Handshakes::default();
        let mut all: Vec<Open<'_>> = (0..30).map(|_| begin(&handshakes, 100).0).collect();
        let turns = async {
            for open in &mut all {
                std::future::poll_fn(|cx| open.poll_turn(cx)).await;
            }
        };
        tokio::select! {
            () = turns => {}
            () = handshakes.pace() => {}
        }
    }

    #[test]
    fn a_failure_is_logged_once_in_a_while_for_each_reason() {
        let log = FailureLog::default();
        let at = |seconds| Tick::START + Duration::from_secs(seconds);
        let news = [("a", 0), ("a", 9), ("b", 9), ("a", 10), ("a", 11)]
            .map(|(token, seconds)| log.is_news(token, at(seconds)));
        assert_eq!(news, [true, false, true, true, false]);
    }
}

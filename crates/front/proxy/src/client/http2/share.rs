//! How the exchanges of one connection share what its client sends, or takes.
//!
//! Bytes of bodies that move are divided equally among the exchanges that wait for the client at that moment. The sum
//! is an exchange's part: the bytes that it would have moved if all had been served in turn. The connection carries a
//! piece of one body after the other, so an exchange may be behind its part by one turn ([`TURN_MAX`]). What it lacks
//! beyond that, others did not cause, and it is not excused. If an exchange is cut for its pace, its part goes to the
//! others. So a slow client keeps only as many exchanges open as its rate is enough for.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crate::client::pace::Turn;
use crate::deadlines::Tick;

/// One direction of a connection.
#[derive(Debug, Default)]
pub(crate) struct SharedDirection {
    /// Exchanges that wait for the client.
    waiting: AtomicUsize,
    /// The sum of all equal parts so far, in thousandths of a byte, as for an exchange that has waited all the time.
    part: AtomicU64,
}

/// The share of one exchange in one direction of its connection.
#[derive(Debug, Default)]
pub(crate) struct Share {
    waits: bool,
    /// [`SharedDirection::part`] when the exchange last looked at it.
    seen: u64,
    /// The equal part of this exchange so far, in thousandths of a byte.
    part: u64,
}

impl SharedDirection {
    /// Divides bytes that the client moved, for any exchange, among those that wait.
    pub(crate) fn moved(&self, bytes: usize) {
        self.divide((bytes as u64).saturating_mul(THOUSAND));
    }

    /// Whether several exchanges wait for the client.
    pub(crate) fn is_shared(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) > 1
    }

    /// Adds bytes, in thousandths, to the equal part of each exchange that waits, if any does.
    fn divide(&self, thousandths: u64) {
        let waiting = self.waiting.load(Ordering::Relaxed) as u64;
        if let Some(part) = thousandths.checked_div(waiting) {
            self.part.fetch_add(part, Ordering::Relaxed);
        }
    }
}

impl Share {
    /// Adds the part since the last call, and notes whether the exchange waits for the client from now on.
    pub(crate) fn wait(&mut self, direction: &SharedDirection, waits: bool) {
        let part = direction.part.load(Ordering::Relaxed);
        if self.waits {
            self.part = self.part.saturating_add(part.saturating_sub(self.seen));
        }
        self.seen = part;
        if waits && !self.waits {
            direction.waiting.fetch_add(1, Ordering::Relaxed);
        } else if self.waits && !waits {
            direction.waiting.fetch_sub(1, Ordering::Relaxed);
        }
        self.waits = waits;
    }

    /// The allowance of the exchange, which itself has moved `own` bytes: the bytes that are missing to its part, at
    /// most [`TURN_MAX`]. `others` becomes [`Turn::others`].
    pub(crate) fn turn(&self, own: u64, others: Option<Tick>) -> Turn {
        let behind = (self.part / THOUSAND).saturating_sub(own);
        Turn {
            due: behind.min(TURN_MAX),
            others,
        }
    }

    /// Gives the part of an exchange that is cut for its pace to the others.
    pub(crate) fn leave(&mut self, direction: &SharedDirection) {
        if self.waits {
            self.wait(direction, false);
            direction.divide(self.part);
        }
    }
}

/// Bytes of one response that are written in a turn while others wait, and the most that an exchange may be behind
/// its part. A client that takes a whole piece, and then next to nothing, is cut within a minute: at the default rates
/// 16 KiB and a turn are enough for 45 s, after 10 s of grace. nginx: `http2_chunk_size`, 8 KiB.
pub(crate) const TURN_MAX: u64 = 6 * 1024;

const THOUSAND: u64 = 1000;

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::client::pace::{Demand, Pace};

    const IDLE: Duration = Duration::from_secs(30);

    /// An exchange as the relay has it.
    #[derive(Default)]
    struct Exchange {
        own: u64,
        pace: Pace,
        share: Share,
        cut: Option<u64>,
    }

    /// A connection, and each second's bytes of each exchange.
    struct Simulation {
        way: SharedDirection,
        exchanges: Vec<Exchange>,
    }

    impl Simulation {
        fn new(exchanges: usize) -> Self {
            let exchanges = (0..exchanges).map(|_| Exchange::default()).collect();
            Self {
                way: SharedDirection::default(),
                exchanges,
            }
        }

        /// Lets `millis` pass in ticks of a tenth of a second; `moves` says how many bytes of which
        /// exchange move in the next tick, of those still there.
        fn run(&mut self, millis: u64, mut moves: impl FnMut(u64, &[usize]) -> Vec<(usize, u64)>) {
            let mut moved_at = Tick::START;
            for now in (0..millis).step_by(100) {
                let open: Vec<usize> = (0..self.exchanges.len())
                    .filter(|&index| self.exchanges[index].cut.is_none())
                    .collect();
                for (index, bytes) in moves(now, &open) {
                    let exchange = &mut self.exchanges[index];
                    exchange.own += bytes;
                    exchange.pace.moved(Tick::from(now), bytes);
                    self.way.moved(usize::try_from(bytes).expect("small"));
                    moved_at = Tick::from(now);
                }
                for index in open {
                    let exchange = &mut self.exchanges[index];
                    exchange.share.wait(&self.way, true);
                    let demand = Demand {
                        idle: IDLE,
                        rate_min: 500,
                        turn: exchange.share.turn(exchange.own, Some(moved_at)),
                    };
                    if Tick::from(now) >= exchange.pace.wait(Tick::from(now), demand) {
                        exchange.cut = Some(now / 1000);
                        exchange.share.leave(&self.way);
                    }
                }
            }
        }

        fn open(&self) -> usize {
            let cut = |it: &&Exchange| it.cut.is_none();
            self.exchanges.iter().filter(cut).count()
        }
    }

    /// Pieces of one exchange after the other, at so many bytes a second.
    fn in_turn(rate: u64) -> impl FnMut(u64, &[usize]) -> Vec<(usize, u64)> {
        let (mut next, mut sent) = (0, 0);
        move |_, open| {
            let mut moves = Vec::new();
            let mut left = rate / 10;
            while left > 0 {
                let Some(index) = open.iter().find(|&&it| it >= next).or_else(|| open.first())
                else {
                    break;
                };
                let bytes = left.min(TURN_MAX - sent);
                moves.push((*index, bytes));
                (left, sent, next) = (left - bytes, sent + bytes, *index);
                if sent == TURN_MAX {
                    (sent, next) = (0, index + 1);
                }
            }
            moves
        }
    }

    #[test]
    fn a_slow_line_carries_a_hundred_responses_in_turn() {
        for rate in [50_000, 60_000, 500_000] {
            let mut simulation = Simulation::new(100);
            simulation.run(600_000, in_turn(rate));
            assert_eq!(simulation.open(), 100, "{rate} bytes a second");
        }
    }

    #[test]
    fn what_is_too_little_for_all_is_enough_for_some() {
        for (rate, exchanges, kept) in [(40_000, 100, 75..=80), (3_000, 8, 5..=6), (500, 1, 1..=1)]
        {
            let mut simulation = Simulation::new(exchanges);
            simulation.run(600_000, in_turn(rate));
            let open = simulation.open();
            assert!(kept.contains(&open), "{open} at {rate} bytes a second");
        }
    }

    #[test]
    fn five_hundred_bytes_a_second_hold_one_of_a_hundred() {
        let mut simulation = Simulation::new(100);
        simulation.run(60_000, in_turn(500));
        assert!(simulation.open() <= 1, "{} are held", simulation.open());
    }

    #[test]
    fn a_window_taken_at_once_holds_nothing_for_a_minute() {
        let mut simulation = Simulation::new(100);
        simulation.run(58_000, |now, open| {
            if now == 0 {
                return (0..4).map(|index| (index, 16 * 1024)).collect();
            }
            // 40 bytes a second, each for another exchange.
            let next = usize::try_from(now / 100).expect("small") % open.len().max(1);
            open.get(next)
                .map(|&index| (index, 4))
                .into_iter()
                .collect()
        });
        assert_eq!(simulation.open(), 0);
    }

    #[test]
    fn a_fast_response_pays_for_none_that_is_held() {
        // One takes a lot; the others nothing, or a byte now and then.
        for drip in [u64::MAX, 59_000, 9_900, 100] {
            let mut simulation = Simulation::new(100);
            simulation.run(60_000, |now, open| {
                let drips = now % drip == 0;
                let others = open.iter().filter(|&&it| drips && it != 0);
                let others = others.map(|&it| (it, 1));
                [(0, 1_000_000)].into_iter().chain(others).collect()
            });
            assert_eq!(simulation.open(), 1, "a byte each {drip} ms");
            assert_eq!(simulation.exchanges[0].cut, None);
        }
    }

    #[test]
    fn nothing_that_moves_is_nothing_due() {
        let mut simulation = Simulation::new(100);
        simulation.run(20_000, |_, _| Vec::new());
        assert_eq!(simulation.open(), 0);
    }

    #[test]
    fn only_those_that_wait_have_a_part() {
        let way = SharedDirection::default();
        way.moved(1000);
        let (mut first, mut second) = (Share::default(), Share::default());
        first.wait(&way, true);
        way.moved(1000);
        second.wait(&way, true);
        way.moved(500);
        first.wait(&way, false);
        way.moved(250);
        second.wait(&way, false);
        let due = |share: &Share| share.turn(0, None).due;
        assert_eq!((due(&first), due(&second)), (1250, 500));
        assert_eq!(first.turn(1200, None).due, 50);
        assert_eq!(first.turn(2000, None).due, 0);
    }
}

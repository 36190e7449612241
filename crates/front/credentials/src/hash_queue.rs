//! The hashes that wait for a thread: who may wait, and in which order they run.
//!
//! One hash of a password takes a thread for some 100 ms, and anybody may cause one. So only a few wait, in the order
//! in which they came, and few of one address, so that one client cannot keep the others from signing in.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;

use thiserror::Error;

/// Hashes that wait for a thread. `A` is the address or network whose hashes are counted together, `J` what a thread
/// needs to compute one.
#[derive(Debug)]
pub struct HashQueue<A, J> {
    waiting: VecDeque<WaitingHash<A, J>>,
    /// For each address the number of its hashes that wait or run, which is never 0.
    places: HashMap<A, usize>,
    next_ticket: u64,
}

/// Why a hash may not wait. The request is answered 503.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum HashQueueRefusal {
    /// [`HashQueue::WAITING_MAX`] hashes wait already.
    #[error("too many passwords wait to be checked")]
    Full,
    /// The address has [`HashQueue::ADDRESS_MAX`] hashes that wait or run.
    #[error("too many passwords of one address wait to be checked")]
    Address,
}

#[derive(Debug)]
struct WaitingHash<A, J> {
    ticket: u64,
    address: A,
    job: J,
}

impl<A, J> HashQueue<A, J> {
    /// The most hashes that wait. Those that run are not counted.
    pub const WAITING_MAX: usize = 64;

    /// The most hashes of one address. Those that run are counted, so that one address cannot have all threads.
    pub const ADDRESS_MAX: usize = 2;
}

impl<A: Clone + Eq + Hash, J> HashQueue<A, J> {
    /// Adds a hash behind all others. Returns a ticket by which it can be withdrawn.
    ///
    /// # Errors
    /// It may not wait; `job` is dropped.
    pub fn push(&mut self, address: A, job: J) -> Result<u64, HashQueueRefusal> {
        if self.waiting.len() >= Self::WAITING_MAX {
            return Err(HashQueueRefusal::Full);
        }
        if self
            .places
            .get(&address)
            .is_some_and(|count| *count >= Self::ADDRESS_MAX)
        {
            return Err(HashQueueRefusal::Address);
        }
        *self.places.entry(address.clone()).or_default() += 1;
        let ticket = self.next_ticket;
        self.next_ticket += 1;
        self.waiting.push_back(WaitingHash {
            ticket,
            address,
            job,
        });
        Ok(ticket)
    }

    /// Takes the hash that has waited longest. Its address keeps the place until [`Self::finish`].
    pub fn pop(&mut self) -> Option<(A, J)> {
        let first = self.waiting.pop_front()?;
        Some((first.address, first.job))
    }

    /// Gives back the place of a hash that [`Self::pop`] took and that was computed or given up.
    pub fn finish(&mut self, address: &A) {
        if let Some(count) = self.places.get_mut(address) {
            *count -= 1;
            if *count == 0 {
                self.places.remove(address);
            }
        }
    }

    /// Removes a hash that still waits, because its client has left. `None`: it no longer waits.
    pub fn withdraw(&mut self, ticket: u64) -> Option<J> {
        // Tickets are in order, because hashes are added at the end.
        let index = self
            .waiting
            .binary_search_by_key(&ticket, |it| it.ticket)
            .ok()?;
        let left = self.waiting.remove(index)?;
        self.finish(&left.address);
        Some(left.job)
    }

    /// The number of hashes that wait.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }
}

impl<A, J> Default for HashQueue<A, J> {
    fn default() -> Self {
        Self {
            waiting: VecDeque::new(),
            places: HashMap::new(),
            next_ticket: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    type Queue = HashQueue<u8, u32>;

    #[test]
    fn an_address_has_two_places_until_its_hashes_end() {
        let mut queue = Queue::default();
        assert_eq!(queue.push(1, 10), Ok(0));
        assert_eq!(queue.push(1, 11), Ok(1));
        assert_eq!(queue.push(1, 12), Err(HashQueueRefusal::Address));
        assert_eq!(queue.push(2, 20), Ok(2));
        assert_eq!(queue.pop(), Some((1, 10)));
        assert_eq!(queue.push(1, 12), Err(HashQueueRefusal::Address));
        queue.finish(&1);
        assert_eq!(queue.push(1, 12), Ok(3));
        assert_eq!(queue.withdraw(0), None);
        assert_eq!(queue.withdraw(2), Some(20));
        assert_eq!(queue.withdraw(2), None);
        assert_eq!(
            [queue.pop(), queue.pop(), queue.pop()],
            [Some((1, 11)), Some((1, 12)), None]
        );
        assert_eq!(queue.waiting(), 0);
    }

    #[test]
    fn few_wait() {
        let mut queue = Queue::default();
        let max = u8::try_from(Queue::WAITING_MAX).unwrap();
        for address in 0..max {
            assert_eq!(queue.push(address, 0), Ok(u64::from(address)));
        }
        assert_eq!(queue.push(max, 0), Err(HashQueueRefusal::Full));
        assert_eq!(queue.pop(), Some((0, 0)));
        assert!(queue.push(max, 0).is_ok());
    }

    proptest! {
        /// After any steps the limits hold, and once all has ended no place is left behind.
        #[test]
        fn limits_hold(steps in prop::collection::vec((0..4_u8, 0..40_u8), 0..400)) {
            let mut queue = Queue::default();
            let mut running = Vec::new();
            let mut tickets = Vec::new();
            for (step, address) in steps {
                match step {
                    0 | 1 => tickets.extend(queue.push(address, 0)),
                    2 => running.extend(queue.pop().map(|(address, _)| address)),
                    _ if address % 2 == 0 => {
                        if let Some(address) = running.pop() {
                            queue.finish(&address);
                        }
                    }
                    _ => {
                        if let Some(ticket) = tickets.pop() {
                            queue.withdraw(ticket);
                        }
                    }
                }
                prop_assert!(queue.waiting() <= Queue::WAITING_MAX);
                prop_assert!(queue.places.values().all(|count| (1..=Queue::ADDRESS_MAX).contains(count)));
                prop_assert_eq!(queue.places.values().sum::<usize>(), queue.waiting() + running.len());
            }
            running.extend(std::iter::from_fn(|| queue.pop()).map(|(address, _)| address));
            for address in running {
                queue.finish(&address);
            }
            prop_assert!(queue.places.is_empty());
        }
    }
}

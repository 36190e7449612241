//! Consistent hashing: on every front, the same key leads to the same member.
//!
//! The table is Maglev's (Eisenbud et al., NSDI 2016, section 3.4), with weights: each member fills
//! slots in an order that its name determines, as many as its weight demands. The table is built once
//! per configuration and shared by all workers; a lookup reads one slot. A member that may not be
//! picked keeps its slots: its keys are spread over the others by hashing them again, and no other
//! key moves.

use std::hash::Hasher as _;

use siphasher::sip::SipHasher13;

use crate::health::SHARE_FULL;

/// The table of slots, each of which belongs to a member of an upstream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Maglev {
    slots: Box<[u32]>,
    count: usize,
}

/// The hash of the part of a request that decides its member. Equal bytes give equal keys, on every
/// machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key(u64);

impl Key {
    /// Hashes the bytes of the part that decides the member.
    #[must_use]
    pub fn new(bytes: &[u8]) -> Self {
        Self(hash(bytes, KEY_SEED))
    }

    /// Derives another hash from this key, a different one for each `salt`.
    fn salted(self, salt: u64) -> u64 {
        // The finaliser of SplitMix64 (Steele, Lea, Flood 2014).
        let mut mixed = self.0 ^ salt.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

impl Maglev {
    /// Builds a table for members with these names and weights; a weight of 0 is treated as 1. This
    /// takes milliseconds, so it must not happen where requests are served.
    #[must_use]
    pub fn new<'a>(members: impl IntoIterator<Item = (&'a str, u32)>) -> Self {
        let members: Vec<(&str, u32)> = members.into_iter().collect();
        if members.is_empty() {
            let slots = Box::default();
            return Self { slots, count: 0 };
        }
        let size = slots_of(members.len());
        let count = members.len();
        let claim = |&(name, weight): &(&str, u32)| Claim::new(name, weight, size);
        let mut claims: Vec<Claim> = members.iter().map(claim).collect();
        let heaviest = claims.iter().map(|claim| claim.weight).max().unwrap_or(1);
        let mut slots = Slots::new(size);
        let mut left = slots.members.len();
        while left > 0 {
            for (member, claim) in (0_u32..).zip(&mut claims) {
                // In each round the heaviest member gets a slot; the others get slots in proportion to their weights.
                claim.due += claim.weight;
                if claim.due < heaviest || left == 0 {
                    continue;
                }
                claim.due -= heaviest;
                claim.take(&mut slots, member);
                left -= 1;
            }
        }
        let slots = slots.members.into();
        Self { slots, count }
    }

    /// Picks the member of a key; `None` if no member may be picked. `share` returns how much of its
    /// weight a member gets, in percent; 0 if it may not be picked. A member that ramps up gets this
    /// percentage of its own keys, and the others go elsewhere.
    pub fn pick(&self, key: Key, share: impl Fn(usize) -> u8) -> Option<usize> {
        if self.slots.is_empty() {
            return None;
        }
        let takes = |member: usize, salt: u64| {
            let percent = share(member);
            // Another hash than that of the slot decides whether the key is one of this percentage.
            percent >= SHARE_FULL
                || (key.salted(!salt) % u64::from(SHARE_FULL)) < u64::from(percent)
        };
        let size = u64::try_from(self.slots.len()).unwrap_or(u64::MAX);
        for salt in 0..=REHASHES {
            let slot = usize::try_from(key.salted(salt) % size).unwrap_or_default();
            let member = usize::try_from(self.slots[slot]).unwrap_or_default();
            if takes(member, salt) {
                return Some(member);
            }
        }
        // Few members may be picked: look at all, beginning with one that the key determines.
        let count = u64::try_from(self.count).unwrap_or(u64::MAX);
        let first = usize::try_from(key.salted(SCAN_SALT) % count).unwrap_or_default();
        let mut members = (first..self.count).chain(0..first);
        members.find(|&member| share(member) > 0)
    }
}

/// The order in which a member takes slots, and how far it is.
struct Claim {
    /// The slot that the member takes next if it is free.
    next: u64,
    /// The distance between slots of the member's order.
    skip: u64,
    weight: u64,
    /// The part of the heaviest member's weight that the member has saved up since its last slot.
    due: u64,
}

impl Claim {
    fn new(name: &str, weight: u32, size: u64) -> Self {
        Self {
            next: hash(name.as_bytes(), OFFSET_SEED) % size,
            skip: hash(name.as_bytes(), SKIP_SEED) % (size - 1) + 1,
            weight: u64::from(weight.max(1)),
            due: 0,
        }
    }

    /// Takes the first free slot in the member's order; at least one slot must be free.
    fn take(&mut self, slots: &mut Slots, member: u32) {
        loop {
            let slot = self.next;
            self.next += self.skip;
            if self.next >= slots.size {
                self.next -= slots.size;
            }
            if slots.take(slot, member) {
                return;
            }
        }
    }
}

/// A table that is being filled with members.
struct Slots {
    size: u64,
    members: Vec<u32>,
    /// A bit for each slot that is taken. Most checks find a taken slot, and all bits fit into a
    /// cache.
    taken: Vec<u64>,
}

impl Slots {
    fn new(size: u64) -> Self {
        let slots = usize::try_from(size).unwrap_or(usize::MAX);
        Self {
            size,
            members: vec![0; slots],
            taken: vec![0; slots / 64 + 1],
        }
    }

    /// Gives a slot to a member; `false` if the slot is taken.
    fn take(&mut self, slot: u64, member: u32) -> bool {
        let index = usize::try_from(slot).unwrap_or_default();
        let (word, bit) = (&mut self.taken[index / 64], 1 << (index % 64));
        if *word & bit != 0 {
            return false;
        }
        *word |= bit;
        self.members[index] = member;
        true
    }
}

/// The number of slots of a table for this many members: each gets its weight within 1 %, for up to
/// 6,553 members.
fn slots_of(members: usize) -> u64 {
    let needed = u64::try_from(members).unwrap_or(u64::MAX);
    // A hundred slots for each member make its share exact to a hundredth.
    if needed.saturating_mul(100) <= SLOTS_FEW {
        SLOTS_FEW
    } else {
        SLOTS_MANY
    }
}

fn hash(bytes: &[u8], seed: u64) -> u64 {
    let mut hasher = SipHasher13::new_with_keys(seed, 0);
    hasher.write(bytes);
    hasher.finish()
}

/// The slots for up to 655 members: a prime number, so that each member's order reaches every slot.
const SLOTS_FEW: u64 = 65_537;

/// The slots for more members: a prime number.
const SLOTS_MANY: u64 = 655_373;

/// How often a key is hashed again because its member may not be picked. After that, the members are
/// tried one after the other.
const REHASHES: u64 = 8;

/// The salt of the hash that decides with which member the search through all members begins.
const SCAN_SALT: u64 = REHASHES + 1;

// All fronts have to agree: these never change.
const OFFSET_SEED: u64 = 1;
const SKIP_SEED: u64 = 2;
const KEY_SEED: u64 = 3;

#[cfg(test)]
mod tests;

//! The requests that a worker is serving, for administrators who look for slow ones.
//!
//! Each request has a slot while it is served. Its worker writes the slot's words and the admin thread reads
//! them, without a lock: a version shows whether the words that were read belong together. Freed slots are
//! reused, the last one first. There are at most [`SLOTS_MAX`]; a request beyond them has none.

use std::fmt;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

use catamaran_message::RequestHead;
use catamaran_transport::Count;

use crate::deadlines::Tick;
use crate::request_id::RequestId;

/// The slots of one worker. Only the worker's thread writes them.
#[derive(Debug, Default)]
pub(crate) struct InFlight {
    /// The blocks of slots, each twice as long as the one before; a block is allocated when it is first
    /// needed.
    blocks: [OnceLock<Box<[RequestSlot]>>; BLOCKS],
    /// How many slots have ever been used; they are the first ones.
    used: AtomicU32,
    /// The index of the slot that was freed last, plus one; 0: no used slot is free.
    free: AtomicU32,
    /// How many requests had no slot because all were taken.
    unseen: Count,
}

#[derive(Debug, Default)]
struct RequestSlot {
    /// A counter that is odd while the slot is being written, so that a reader can discard a torn read.
    version: AtomicU32,
    /// 0 in a free slot, else a [`Phase`].
    phase: AtomicU32,
    /// In a free slot, the index of the next free slot plus one; 0: there is none.
    next_free: AtomicU32,
    /// The length of the path in bytes, even if only the first [`PATH_MAX`] are kept.
    path_length: AtomicU32,
    id: AtomicU64,
    /// When the request began, as a [`Tick`].
    began: AtomicU64,
    /// The number of the request's backend (`Backend::number`); 0: none is chosen yet.
    backend: AtomicU64,
    method: AtomicU64,
    path: [AtomicU64; PATH_WORDS],
}

/// The phase that a request in flight has reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Phase {
    /// The backend is not chosen yet, or the request waits for a connection to it.
    Connecting = 1,
    /// The request is being sent: its body has not ended.
    Sending = 2,
    /// The request was sent, and no response has begun.
    Waiting = 3,
    /// The response has begun.
    Responding = 4,
}

/// The slot of a request while it is served; dropping this frees it.
#[derive(Debug)]
pub(crate) struct Seen<'w> {
    in_flight: &'w InFlight,
    slot: Option<u32>,
}

/// A copy of a slot: the facts about one request in flight.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sight {
    pub(crate) id: RequestId,
    pub(crate) began: Tick,
    /// The number of the request's backend (`Backend::number`); 0: none is chosen yet.
    pub(crate) backend: u64,
    pub(crate) phase: Phase,
    pub(crate) method: String,
    /// The path without its query, up to its first parameter, which may hold a session id.
    pub(crate) path: String,
    /// Whether the path is longer than [`PATH_MAX`], so that its end is missing.
    pub(crate) is_cut: bool,
}

impl InFlight {
    /// Takes a slot for a request that begins, if one is free, and writes the request to it.
    pub(crate) fn begin(&self, id: RequestId, began: Tick, head: &RequestHead) -> Seen<'_> {
        let index = self.take();
        if let Some(slot) = index.and_then(|index| self.slot(index)) {
            slot.write(id, began, head);
        }
        Seen {
            in_flight: self,
            slot: index,
        }
    }

    /// The `count` oldest requests in flight, the oldest first, and the number of all that have a slot.
    pub(crate) fn slowest(&self, count: usize) -> (Vec<Sight>, usize) {
        let used = self.used.load(Ordering::Acquire);
        let slots = (0..used).filter_map(|index| self.slot(index));
        let mut sights: Vec<Sight> = slots.filter_map(RequestSlot::read).collect();
        let total = sights.len();
        sights.sort_unstable_by_key(|sight| u64::from(sight.began));
        sights.truncate(count);
        (sights, total)
    }

    /// How many requests since the start had no slot.
    pub(crate) fn unseen(&self) -> u64 {
        self.unseen.read()
    }

    /// Takes the slot that was freed last, or else one that was never used; `None`: all are taken.
    fn take(&self) -> Option<u32> {
        // Only this worker's thread changes these numbers.
        let free = self.free.load(Ordering::Relaxed);
        if let Some(index) = free.checked_sub(1) {
            let next = self.slot(index)?.next_free.load(Ordering::Relaxed);
            self.free.store(next, Ordering::Relaxed);
            return Some(index);
        }
        let index = self.used.load(Ordering::Relaxed);
        if index >= SLOTS_MAX {
            self.unseen.increment();
            return None;
        }
        let (block, _) = place(index);
        let length = FIRST_BLOCK << block;
        self.blocks[block].get_or_init(|| (0..length).map(|_| RequestSlot::default()).collect());
        self.used.store(index + 1, Ordering::Release);
        Some(index)
    }

    fn slot(&self, index: u32) -> Option<&RequestSlot> {
        let (block, within) = place(index);
        self.blocks.get(block)?.get()?.get(within)
    }
}

impl Seen<'_> {
    /// Records that the request has reached this phase.
    pub(crate) fn enter(&self, phase: Phase) {
        if let Some(slot) = self.slot() {
            slot.phase.store(phase as u32, Ordering::Relaxed);
        }
    }

    /// Records that an attempt on the backend with this number begins by connecting.
    pub(crate) fn attempt(&self, backend: u64) {
        if let Some(slot) = self.slot() {
            slot.backend.store(backend, Ordering::Relaxed);
            slot.phase
                .store(Phase::Connecting as u32, Ordering::Relaxed);
        }
    }

    fn slot(&self) -> Option<&RequestSlot> {
        self.in_flight.slot(self.slot?)
    }
}

impl Drop for Seen<'_> {
    fn drop(&mut self) {
        if let (Some(index), Some(slot)) = (self.slot, self.slot()) {
            let free = &self.in_flight.free;
            slot.phase.store(0, Ordering::Relaxed);
            slot.next_free
                .store(free.load(Ordering::Relaxed), Ordering::Relaxed);
            free.store(index + 1, Ordering::Relaxed);
        }
    }
}

impl RequestSlot {
    /// Writes a request to the slot. The version is odd meanwhile.
    fn write(&self, id: RequestId, began: Tick, head: &RequestHead) {
        let version = self.version.load(Ordering::Relaxed);
        self.version
            .store(version.wrapping_add(1), Ordering::Relaxed);
        fence(Ordering::Release);
        let before_parameters = head.target.path.split(|&byte| byte == b';').next();
        let path = before_parameters.unwrap_or_default();
        let length = u32::try_from(path.len()).unwrap_or(u32::MAX);
        self.path_length.store(length, Ordering::Relaxed);
        for (word, bytes) in self.path.iter().zip(path.chunks(8)) {
            word.store(word_of(bytes), Ordering::Relaxed);
        }
        let method = head.method.as_str().as_bytes();
        self.method
            .store(word_of(&method[..method.len().min(8)]), Ordering::Relaxed);
        self.id.store(id.number(), Ordering::Relaxed);
        self.began.store(began.into(), Ordering::Relaxed);
        self.backend.store(0, Ordering::Relaxed);
        self.phase
            .store(Phase::Connecting as u32, Ordering::Relaxed);
        self.version
            .store(version.wrapping_add(2), Ordering::Release);
    }

    /// Copies the slot; `None` if it is free, or was written meanwhile.
    fn read(&self) -> Option<Sight> {
        let version = self.version.load(Ordering::Acquire);
        let phase = Phase::from_number(self.phase.load(Ordering::Relaxed))?;
        let length = self.path_length.load(Ordering::Relaxed);
        let words = self.path.iter().map(|word| word.load(Ordering::Relaxed));
        let mut path: Vec<u8> = words.flat_map(u64::to_le_bytes).collect();
        let padded_method = self.method.load(Ordering::Relaxed).to_le_bytes();
        let id = RequestId::from_number(self.id.load(Ordering::Relaxed));
        let began = Tick::from(self.began.load(Ordering::Relaxed));
        let backend = self.backend.load(Ordering::Relaxed);
        fence(Ordering::Acquire);
        if version % 2 == 1 || self.version.load(Ordering::Relaxed) != version {
            return None;
        }
        path.truncate(usize::try_from(length).unwrap_or(usize::MAX));
        let method = padded_method.split(|&byte| byte == 0).next();
        Some(Sight {
            id,
            began,
            backend,
            phase,
            method: String::from_utf8_lossy(method.unwrap_or_default()).into_owned(),
            is_cut: length as usize > PATH_MAX,
            path: String::from_utf8_lossy(&path).into_owned(),
        })
    }
}

impl Phase {
    fn from_number(number: u32) -> Option<Self> {
        let all = [
            Self::Connecting,
            Self::Sending,
            Self::Waiting,
            Self::Responding,
        ];
        all.into_iter().find(|phase| *phase as u32 == number)
    }

    /// The phase as a token, for the admin API.
    pub(crate) fn token(self) -> &'static str {
        match self {
            Self::Connecting => "connecting",
            Self::Sending => "sending",
            Self::Waiting => "waiting",
            Self::Responding => "responding",
        }
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.token())
    }
}

/// Packs at most eight bytes into a word, the first into the lowest bits; missing ones are 0.
fn word_of(bytes: &[u8]) -> u64 {
    match bytes.try_into() {
        Ok(whole) => u64::from_le_bytes(whole),
        Err(_) => bytes
            .iter()
            .rev()
            .fold(0, |word, &byte| word << 8 | u64::from(byte)),
    }
}

/// Returns the block of a slot and the slot's index in that block.
fn place(index: u32) -> (usize, usize) {
    let block = (index / FIRST_BLOCK + 1).ilog2();
    // The number of slots in the blocks before it.
    let before = FIRST_BLOCK * ((1 << block) - 1);
    (block as usize, (index - before) as usize)
}

/// How many bytes of a path are kept.
const PATH_MAX: usize = 8 * PATH_WORDS;

const PATH_WORDS: usize = 12;

/// The number of slots in the first block.
const FIRST_BLOCK: u32 = 64;

const BLOCKS: usize = 9;

/// The number of slots in all blocks, which take some 5 MB.
const SLOTS_MAX: u32 = FIRST_BLOCK * ((1 << BLOCKS) - 1);

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use bytes::Bytes;
    use catamaran_message::Target;
    use http::Method;

    use super::*;

    fn head(method: &[u8], path: &str) -> RequestHead {
        RequestHead {
            method: Method::from_bytes(method).expect("a token"),
            target: Target {
                path: Bytes::copy_from_slice(path.as_bytes()),
                query: None,
                scheme: None,
            },
            ..RequestHead::empty()
        }
    }

    fn begin<'w>(in_flight: &'w InFlight, number: u64, path: &str) -> Seen<'w> {
        let id = RequestId::from_number(number);
        in_flight.begin(id, Tick::from(1000 - number), &head(b"GET", path))
    }

    #[test]
    fn the_slowest_come_first() {
        let in_flight = InFlight::default();
        let first = begin(&in_flight, 1, "/one");
        let second = begin(&in_flight, 2, "/two");
        second.attempt(7);
        second.enter(Phase::Waiting);
        let third = begin(&in_flight, 3, "/three");
        let (sights, total) = in_flight.slowest(2);
        let paths: Vec<&str> = sights.iter().map(|it| &it.path[..]).collect();
        assert_eq!((paths, total), (vec!["/three", "/two"], 3));
        assert_eq!((sights[1].backend, sights[1].phase), (7, Phase::Waiting));
        assert_eq!((sights[0].backend, sights[0].phase), (0, Phase::Connecting));
        drop((first, second));
        assert_eq!(in_flight.slowest(9).1, 1);
        let fourth = begin(&in_flight, 4, "/four/and/more");
        assert_eq!(in_flight.slowest(9).0[0].path, "/four/and/more");
        assert_eq!(
            in_flight.used.load(Ordering::Relaxed),
            3,
            "a slot was used again"
        );
        drop((third, fourth));
        assert_eq!(in_flight.slowest(9), (Vec::new(), 0));
    }

    #[test]
    fn long_names_are_cut_and_bytes_replaced() {
        let in_flight = InFlight::default();
        let long = "/x".repeat(200);
        let request = head(b"PROPFINDALL", &format!("{long};jsessionid=3F.a"));
        let _seen = in_flight.begin(RequestId::from_number(1), Tick::from(0), &request);
        let mut odd = head(b"GET", "");
        odd.target.path = Bytes::from_static(b"/\xff;jsessionid=3F.a");
        let _other = in_flight.begin(RequestId::from_number(2), Tick::from(1), &odd);
        let (sights, _) = in_flight.slowest(2);
        assert_eq!((sights[0].path.len(), sights[0].is_cut), (PATH_MAX, true));
        assert_eq!(
            (&sights[0].method[..], &sights[1].method[..]),
            ("PROPFIND", "GET")
        );
        assert_eq!(
            (&sights[1].path[..], sights[1].is_cut),
            ("/\u{fffd}", false)
        );
    }

    #[test]
    fn there_are_not_more_slots_than_allowed() {
        let in_flight = InFlight::default();
        let many: Vec<Seen<'_>> = (0..=u64::from(SLOTS_MAX))
            .map(|_| begin(&in_flight, 1, "/"))
            .collect();
        assert_eq!(in_flight.unseen(), 1);
        assert_eq!(in_flight.slowest(1).1, SLOTS_MAX as usize);
        many.last().expect("the one without").enter(Phase::Waiting);
        drop(many);
        assert_eq!(in_flight.slowest(1).1, 0);
        let _again = begin(&in_flight, 2, "/");
        assert_eq!((in_flight.unseen(), in_flight.slowest(1).1), (1, 1));
    }

    #[test]
    fn words_of_two_requests_are_never_mixed() {
        let in_flight = InFlight::default();
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let reader = scope.spawn(|| {
                let mut read = 0;
                while !done.load(Ordering::Relaxed) {
                    for sight in in_flight.slowest(9).0 {
                        let letter = &sight.path[1..2];
                        assert_eq!(sight.path[1..], letter.repeat(sight.path.len() - 1));
                        let number = u64::from(letter.as_bytes()[0]);
                        assert_eq!(sight.id, RequestId::from_number(number));
                        read += 1;
                    }
                }
                read
            });
            for round in 0..20_000_u32 {
                let letter = char::from(b'a' + u8::try_from(round % 26).expect("a letter"));
                let path = format!("/{}", String::from(letter).repeat(60 + round as usize % 7));
                let _seen = begin(&in_flight, u64::from(letter), &path);
            }
            done.store(true, Ordering::Relaxed);
            reader.join().expect("no mixture");
        });
    }
}

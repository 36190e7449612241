//! The responses that a cache holds, the fetches under way, and purges.
//!
//! A key has a few responses, one for each set of values of the fields that its `Vary` names. They are changed as a
//! whole: a reader has an [`Entry`] that stays as it is. The memory of all entries is bounded.

use std::collections::HashMap;
use std::hash::RandomState;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use arc_swap::ArcSwap;
use bytes::Bytes;
use catamaran_cache::Millis;
use catamaran_cache::bans::{Bans, Purge, PurgeEffect};
use catamaran_cache::key::CacheKey;
use catamaran_cache::vary::RequestFields;
use catamaran_coding::Coding;
use catamaran_message::FieldName;
use catamaran_transport::{Count, PerWorker};
use quick_cache::sync::Cache;
use quick_cache::{Lifecycle, OptionsBuilder, Weighter};
use slab::Slab;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use crate::cache::counts::CacheCounts;
use crate::cache::fill::{Fill, FillRoom};
use crate::cache::hot::{HotTable, StoredResponse, WorkerEntry};
use crate::cache::object::{ALLOCATION, Object};
use crate::config::CacheConfig;
use crate::lock::lock;

/// The entry of one key: its responses, and the outcome of its last fetches.
#[derive(Debug, Default)]
pub(crate) struct Entry {
    /// The newest response, if there is any.
    newest: Option<Arc<Object>>,
    /// The older responses, the newest of them first.
    others: Option<Box<Others>>,
    /// The time until which requests of this key do not wait for each other, because the last response could not be
    /// stored.
    uncacheable_until: Millis,
    /// The time until which a stale response is used without asking the backend, because the backend has failed.
    failed_until: AtomicU64,
    /// The number of requests that it has answered, roughly, as [`Store::note_use`] counts.
    uses: AtomicU32,
    /// Whether the entry was replaced or removed.
    is_over: AtomicBool,
}

/// The state of an entry besides its responses.
#[derive(Clone, Copy, Debug, Default)]
struct EntryState {
    uncacheable_until: Millis,
    failed_until: Millis,
    uses: u32,
}

/// Older responses of a key. In memory of their own: most keys have none, and there are many keys.
#[derive(Debug)]
struct Others(Box<[Arc<Object>]>);

/// A key that is asked for often.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FrequentKey {
    pub(crate) key: Box<[u8]>,
    /// The number of times that it was answered from memory since it was stored, roughly.
    pub(crate) uses: u32,
    /// Bytes of memory that its responses take.
    pub(crate) bytes: u64,
    /// The number of responses that are stored for the key.
    pub(crate) variants: usize,
}

/// A response that was found, and whether a purge made it stale.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    pub(crate) response: StoredResponse,
    pub(crate) is_purged: bool,
}

impl Found {
    /// The stored response.
    pub(crate) fn object(&self) -> &Arc<Object> {
        self.response.object()
    }
}

/// The contents of a cache, and the fetches that are under way.
#[derive(Debug)]
pub(crate) struct Store {
    entries: Cache<Box<[u8]>, Arc<Entry>, EntryWeight, RandomState, Evictions>,
    /// For each worker, the entries that it is asked for most. The mutexes are never contended.
    hot: PerWorker<Mutex<HotTable>>,
    evicted: Arc<AtomicU64>,
    /// Held while an entry is changed, so that no change is lost.
    changes: Mutex<()>,
    bans: ArcSwap<Bans>,
    /// The number of purges so far. A response that began after the last one need not be compared with [`Bans`].
    purges: AtomicU64,
    /// The fetches that further requests may join, by key and values of fields.
    flights: Mutex<HashMap<Bytes, Arc<Fill>>>,
    /// The times at which all open fetches began, also of those that no further request may join.
    fetches: Arc<Mutex<Slab<Instant>>>,
    /// The room for bodies that are being received.
    room: Arc<FillRoom>,
    /// Permits to compress long bodies, [`CODERS_MAX`] in all.
    coders: Arc<Semaphore>,
    /// The number of uses on each worker: every [`NOTED_ONE_OF`]th is counted.
    turns: PerWorker<Count>,
    pub(crate) counts: CacheCounts,
}

/// Counts a fetch as open until it is dropped.
#[derive(Debug)]
pub(crate) struct OpenFetch {
    fetches: Arc<Mutex<Slab<Instant>>>,
    key: usize,
}

impl Drop for OpenFetch {
    fn drop(&mut self) {
        lock(&self.fetches).remove(self.key);
    }
}

/// The part that a request takes in the fetch of a response.
pub(crate) enum Flight {
    /// No fetch is under way: the caller must begin one.
    Lead(Arc<Fill>),
    /// A fetch is under way: the caller reads what it receives.
    Follow(Arc<Fill>),
}

impl Store {
    /// An empty store for caches of these settings.
    pub(crate) fn new(config: &CacheConfig, workers: usize) -> Self {
        let evicted = Arc::<AtomicU64>::default();
        let items = usize::try_from(config.memory / OBJECT_USUAL).unwrap_or(usize::MAX);
        let options = OptionsBuilder::new()
            .estimated_items_capacity(items.clamp(64, ITEMS_MAX))
            .weight_capacity(config.memory)
            // With more shards, one of them could not hold the largest object.
            .shards(SHARDS)
            .build()
            .expect("both capacities are given");
        Self {
            entries: Cache::with_options(
                options,
                EntryWeight,
                RandomState::new(),
                Evictions(Arc::clone(&evicted)),
            ),
            hot: PerWorker::new(workers, |_| Mutex::default()),
            evicted,
            changes: Mutex::default(),
            bans: ArcSwap::default(),
            purges: AtomicU64::new(0),
            flights: Mutex::default(),
            fetches: Arc::default(),
            room: Arc::default(),
            coders: Arc::new(Semaphore::new(CODERS_MAX)),
            turns: PerWorker::new(workers, |_| Count::default()),
            counts: CacheCounts::new(workers),
        }
    }

    /// Sets the memory that entries may take, in bytes.
    pub(crate) fn resize(&self, memory: u64) {
        if self.entries.capacity() != memory {
            self.entries.set_capacity(memory);
        }
    }

    /// The entry of a key, from the table of `worker`, whose thread calls this, or else from the store.
    pub(crate) fn entry(&self, worker: usize, key: &CacheKey) -> Option<Arc<WorkerEntry>> {
        let bytes = key.as_bytes();
        let mut hot = lock(&self.hot[worker]);
        if let Some(entry) = hot.find(bytes, self.purge_count()) {
            return Some(entry);
        }
        let entry = self.entries.get(bytes)?;
        Some(hot.keep(bytes, entry))
    }

    /// The entry of a key, without counting this as a use.
    pub(crate) fn peek(&self, key: &CacheKey) -> Option<Arc<WorkerEntry>> {
        let entry = self.entries.peek(key.as_bytes())?;
        Some(Arc::new(WorkerEntry::new(entry)))
    }

    /// Frees entries that the calling worker holds and no longer needs.
    pub(crate) fn sweep(&self, worker: usize) {
        lock(&self.hot[worker]).sweep();
    }

    /// The number of purges so far. A response notes this number when it begins; only later purges concern it.
    pub(crate) fn purge_count(&self) -> u64 {
        self.purges.load(Ordering::Acquire)
    }

    /// The effect of purges that were made since an object began.
    fn purge_effect(&self, key: &CacheKey, object: &Object) -> PurgeEffect {
        if object.head.began >= self.purge_count() {
            PurgeEffect::No
        } else {
            let bans = self.bans.load();
            bans.judge(object.head.began, key.url(), object.head.tags())
        }
    }

    /// The response of an entry that answers a request; `None` if there is none, or it was purged.
    pub(crate) fn find(
        &self,
        key: &CacheKey,
        entry: &Arc<WorkerEntry>,
        request: &dyn RequestFields,
    ) -> Option<Found> {
        let mut variants = entry.variants().enumerate();
        let (index, object) = variants.find(|(_, it)| it.head.answers(request))?;
        let effect = self.purge_effect(key, object);
        if effect == PurgeEffect::Hard {
            return None;
        }
        Some(Found {
            response: StoredResponse::Found(Arc::clone(entry), index),
            is_purged: effect == PurgeEffect::Softly,
        })
    }

    /// Stores a response. `false`: it was not stored, because a purge named it while it was received.
    pub(crate) fn insert(&self, key: &CacheKey, object: Arc<Object>, config: &CacheConfig) -> bool {
        let _changing = lock(&self.changes);
        if self.purge_effect(key, &object) != PurgeEffect::No {
            return false;
        }
        let before = self.entries.peek(key.as_bytes());
        // The new response replaces the one for the same requests; of the others the oldest give way.
        let others = (before.iter())
            .flat_map(|entry| entry.variants())
            .filter(|it| it.head.selection() != object.head.selection())
            .take(config.variants_max.saturating_sub(1))
            .cloned();
        let variants = std::iter::once(Arc::clone(&object)).chain(others);
        // The backend has sent a response that can be stored, so notes of its failures are dropped.
        let state = EntryState {
            uses: before.as_ref().map_or(0, |entry| entry.uses()),
            ..EntryState::default()
        };
        self.put(key, variants, before.as_deref(), state);
        true
    }

    /// Removes a response, unless another has taken its place.
    pub(crate) fn remove(&self, key: &CacheKey, object: &Arc<Object>) {
        let _changing = lock(&self.changes);
        let Some(before) = self.entries.peek(key.as_bytes()) else {
            return;
        };
        let mut others = (before.variants())
            .filter(|it| !it.is_same_response(object))
            .cloned()
            .peekable();
        if others.peek().is_some() {
            self.put(key, others, Some(&*before), before.state());
        } else {
            self.entries.remove(key.as_bytes());
            before.end();
        }
    }

    /// Removes all responses of a key.
    pub(crate) fn remove_all(&self, key: &CacheKey) {
        let _changing = lock(&self.changes);
        if let Some((_, entry)) = self.entries.remove(key.as_bytes()) {
            entry.end();
        }
    }

    /// Remembers until `until` that the response of a key could not be stored. Responses that are stored stay.
    pub(crate) fn note_uncacheable(&self, key: &CacheKey, until: Millis) {
        let _changing = lock(&self.changes);
        let before = self.entries.peek(key.as_bytes());
        let before_state = before.as_ref().map(|entry| entry.state());
        let state = EntryState {
            uncacheable_until: until,
            ..before_state.unwrap_or_default()
        };
        let variants = before.iter().flat_map(|entry| entry.variants()).cloned();
        self.put(key, variants, before.as_deref(), state);
    }

    /// Whether there is room to keep a compressed copy: the object with it must not exceed the largest size that is
    /// stored.
    pub(crate) fn has_room_for_coding(&self, object: &Object) -> bool {
        object.weight() + object.len() <= self.entries.capacity() / OBJECTS_MIN
    }

    /// A permit to compress a long body; `None` while [`CODERS_MAX`] are in use.
    pub(crate) fn coder(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.coders).try_acquire_owned().ok()
    }

    /// Keeps a compressed copy of a response, if the response is still stored.
    pub(crate) fn keep_coded(
        &self,
        key: &CacheKey,
        object: &Object,
        coding: Coding,
        bytes: &Bytes,
    ) {
        let _changing = lock(&self.changes);
        let Some(before) = self.entries.peek(key.as_bytes()) else {
            return;
        };
        if before.variants().any(|it| it.is_same_response(object)) {
            let variants = before.variants().map(|it| {
                if it.is_same_response(object) {
                    Arc::new(it.with_coding(coding, bytes.clone()))
                } else {
                    Arc::clone(it)
                }
            });
            self.put(key, variants, Some(&*before), before.state());
        }
    }

    /// Replaces the entry `before` by one with these responses, the newest first. [`Self::changes`] must be locked.
    fn put(
        &self,
        key: &CacheKey,
        mut variants: impl Iterator<Item = Arc<Object>>,
        before: Option<&Entry>,
        state: EntryState,
    ) {
        let newest = variants.next();
        let others: Box<[Arc<Object>]> = variants.collect();
        let entry = Arc::new(Entry {
            newest,
            others: (!others.is_empty()).then(|| Box::new(Others(others))),
            uncacheable_until: state.uncacheable_until,
            failed_until: AtomicU64::new(state.failed_until),
            uses: AtomicU32::new(state.uses),
            is_over: AtomicBool::new(false),
        });
        self.entries.insert(key.as_bytes().into(), entry);
        if let Some(before) = before {
            before.end();
        }
    }

    /// Counts that an entry has answered a request on `worker`, whose thread calls this. The first [`EXACT`] uses are
    /// counted exactly, then one of [`NOTED_ONE_OF`] counts for all: workers would wait for a popular page's counter.
    pub(crate) fn note_use(&self, worker: usize, entry: &Entry) {
        let turn = &self.turns[worker];
        turn.increment();
        if entry.uses() < EXACT {
            entry.uses.fetch_add(1, Ordering::Relaxed);
        } else if turn.read().is_multiple_of(NOTED_ONE_OF.into()) && entry.uses() < USES_MAX {
            entry.uses.fetch_add(NOTED_ONE_OF, Ordering::Relaxed);
        }
    }

    /// The keys that were used most often, at most `most` of them. The cost grows with the number of keys.
    pub(crate) fn frequent(&self, most: usize) -> Vec<FrequentKey> {
        // Sorted, the most used key first.
        let mut frequent: Vec<FrequentKey> = Vec::with_capacity(most + 1);
        for (key, entry) in self.entries.iter() {
            let uses = entry.uses();
            let rank = frequent.partition_point(|it| it.uses >= uses);
            if uses > 0 && rank < most {
                let used = FrequentKey {
                    uses,
                    bytes: EntryWeight.weight(&key, &entry),
                    variants: entry.variants().count(),
                    key,
                };
                frequent.insert(rank, used);
                frequent.truncate(most);
            }
        }
        frequent
    }

    /// Purges the responses that `purge` names. With `is_soft` they become stale instead.
    pub(crate) fn purge(&self, purge: Purge, is_soft: bool) {
        let _changing = lock(&self.changes);
        let removes_all = purge == Purge::All && !is_soft;
        let mut bans = Bans::clone(&self.bans.load());
        bans.push(purge, is_soft);
        let count = bans.count();
        self.bans.store(Arc::new(bans));
        self.purges.store(count, Ordering::Release);
        // Other purged responses are found out by the bans when they are next asked for.
        if removes_all {
            self.entries.clear();
        }
    }

    /// Joins the fetch of this name, or begins one. `None`: more than `most` requests already read that fetch.
    pub(crate) fn join(&self, name: &Bytes, most: usize) -> Option<Flight> {
        let mut flights = lock(&self.flights);
        if let Some(fill) = flights.get(name) {
            let fill = Arc::clone(fill);
            return (fill.readers() <= most).then_some(Flight::Follow(fill));
        }
        let fill = Arc::new(Fill::new(Arc::clone(&self.room)));
        flights.insert(name.clone(), Arc::clone(&fill));
        Some(Flight::Lead(fill))
    }

    /// Lets no further request join a fetch: it is over, or its response may not be shared.
    pub(crate) fn land(&self, name: &Bytes, fill: &Arc<Fill>) {
        let mut flights = lock(&self.flights);
        if flights.get(name).is_some_and(|it| Arc::ptr_eq(it, fill)) {
            flights.remove(name);
        }
    }

    /// The room for bodies that are being received.
    pub(crate) fn room(&self) -> &Arc<FillRoom> {
        &self.room
    }

    /// Counts a fetch as open, from now until the result is dropped.
    pub(crate) fn begin_fetch(&self) -> OpenFetch {
        OpenFetch {
            key: lock(&self.fetches).insert(Instant::now()),
            fetches: Arc::clone(&self.fetches),
        }
    }

    /// The number of fetches under way in each age group of [`FETCH_AGES`].
    pub(crate) fn fetches(&self) -> [usize; FETCH_AGES.len()] {
        let mut counts = [0; FETCH_AGES.len()];
        for (_, began) in lock(&self.fetches).iter() {
            let age = began.elapsed();
            let group = FETCH_AGES.iter().position(|(_, limit)| age < *limit);
            counts[group.unwrap_or(FETCH_AGES.len() - 1)] += 1;
        }
        counts
    }

    /// The number of requests that wait for, or read, a response that is being fetched.
    pub(crate) fn waiters(&self) -> usize {
        lock(&self.flights).values().map(|it| it.readers()).sum()
    }

    /// The bytes of memory that entries take, and the number of keys.
    pub(crate) fn size(&self) -> (u64, usize) {
        (self.entries.weight(), self.entries.len())
    }

    /// The number of keys that were evicted to make room for others.
    pub(crate) fn evicted(&self) -> u64 {
        self.evicted.load(Ordering::Relaxed)
    }
}

impl Entry {
    fn state(&self) -> EntryState {
        EntryState {
            uncacheable_until: self.uncacheable_until,
            failed_until: self.failed_until.load(Ordering::Relaxed),
            uses: self.uses(),
        }
    }

    /// Whether the last response could not be stored, so that requests do not wait for each other until a set time.
    pub(crate) fn is_uncacheable(&self, now: Millis) -> bool {
        now < self.uncacheable_until
    }

    /// Whether the backend has failed lately, so that stale responses are used without asking it.
    pub(crate) fn has_failed(&self, now: Millis) -> bool {
        now < self.failed_until.load(Ordering::Relaxed)
    }

    fn uses(&self) -> u32 {
        self.uses.load(Ordering::Relaxed)
    }

    /// Marks the entry as replaced or removed.
    pub(super) fn end(&self) {
        self.is_over.store(true, Ordering::Release);
    }

    /// Whether the entry was replaced or removed.
    pub(super) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Acquire)
    }

    /// Bytes of memory that its responses take.
    pub(super) fn weight(&self) -> u64 {
        self.variants().map(|object| object.weight()).sum()
    }

    /// The response at this index of [`Self::variants`].
    pub(super) fn variant(&self, index: usize) -> Option<&Arc<Object>> {
        match index.checked_sub(1) {
            None => self.newest.as_ref(),
            Some(among_others) => self.others.as_ref()?.0.get(among_others),
        }
    }

    /// Notes that the backend has failed: until `until` a stale response is used without asking it.
    pub(crate) fn note_failure(&self, until: Millis) {
        self.failed_until.store(until, Ordering::Relaxed);
    }

    /// The names of the request fields (`Vary`) on which the newest response depends.
    pub(crate) fn names(&self) -> &[FieldName] {
        let selection = self.newest.as_ref().and_then(|it| it.head.selection());
        selection.map_or(&[], |selection| selection.names())
    }

    /// The responses, the newest first.
    pub(crate) fn variants(&self) -> impl Iterator<Item = &Arc<Object>> {
        let others = self.others.as_ref().map_or(&[][..], |others| &*others.0);
        self.newest.iter().chain(others)
    }
}

/// Measures the memory that an entry takes, for the limit of the cache.
#[derive(Clone, Debug)]
struct EntryWeight;

impl Weighter<Box<[u8]>, Arc<Entry>> for EntryWeight {
    fn weight(&self, key: &Box<[u8]>, entry: &Arc<Entry>) -> u64 {
        entry.weight() + (key.len() + ENTRY_OVERHEAD) as u64
    }
}

/// Counts the entries that are evicted to make room for others.
#[derive(Clone, Debug)]
struct Evictions(Arc<AtomicU64>);

impl Lifecycle<Box<[u8]>, Arc<Entry>> for Evictions {
    type RequestState = ();

    fn on_evict(&self, _state: &mut (), _key: Box<[u8]>, entry: Arc<Entry>) {
        entry.end();
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// The age groups in which open fetches are counted: a name, and the age that each fetch is younger than.
pub(crate) const FETCH_AGES: [(&str, Duration); 4] = [
    ("under-10s", Duration::from_secs(10)),
    ("under-1m", Duration::from_secs(60)),
    ("under-10m", Duration::from_secs(600)),
    ("older", Duration::MAX),
];

/// The memory of an average response, in bytes, from which the first size of tables follows.
const OBJECT_USUAL: u64 = 16 * 1024;

/// The number of uses of an entry that are counted exactly.
const EXACT: u32 = 64;

/// Beyond [`EXACT`] uses, one of this number is counted. It is odd, so that clients that take turns are all counted.
const NOTED_ONE_OF: u32 = 13;

/// The number of uses at which counting stops.
const USES_MAX: u32 = u32::MAX / 2;

/// The number of objects of the largest size that fit into a cache.
const OBJECTS_MIN: u64 = 8;

/// The most long bodies that are compressed at a time.
const CODERS_MAX: usize = 2;

/// The most keys for which tables are made at once; larger tables grow as needed.
const ITEMS_MAX: usize = 1 << 20;

/// The number of shards, each with a lock. An object fits into one: its size is at most an eighth of the memory.
const SHARDS: usize = 4;

/// Memory of an entry beside its key: itself and its counters of references, what the allocator adds to it and to the
/// key, and its place in the table.
const ENTRY_OVERHEAD: usize = size_of::<Entry>() + 16 + 2 * ALLOCATION + 48;

#[cfg(test)]
mod tests {
    use catamaran_cache::key::KeyBuilder;
    use catamaran_cache::object::{ObjectDetails, ObjectHead};
    use catamaran_cache::storable::{self, RequestFacts, ResponseFacts};
    use catamaran_cache::vary::Selection;
    use catamaran_message::Fields;
    use catamaran_message::name::{ACCEPT_LANGUAGE, CACHE_CONTROL};
    use http::{Method, StatusCode};

    use super::*;
    use crate::cache::object::Body;

    fn config() -> CacheConfig {
        CacheConfig {
            memory: 1 << 20,
            variants_max: 2,
            ..CacheConfig::new("c")
        }
    }

    fn key(path: &str) -> CacheKey {
        KeyBuilder::new(b"http", b"h", path.as_bytes(), None).finish()
    }

    fn object(store: &Store, language: Option<&str>, tags: &str) -> Arc<Object> {
        let mut headers = Fields::new();
        headers.insert(CACHE_CONTROL, "max-age=60");
        let request = RequestFacts {
            method: &Method::GET,
            path: b"/",
            has_query: false,
            no_store: false,
            scope: storable::RequestScope::Whole,
            credentials: storable::Credentials::default(),
        };
        let response = ResponseFacts {
            status: StatusCode::OK,
            headers: &headers,
            is_framed: true,
            arrived: 0,
        };
        let rules = config().freshness;
        let terms = storable::judge(&request, &response, &rules, storable::SetCookie::Refuse);
        let name = ACCEPT_LANGUAGE.into();
        let selection = match language {
            Some(language) => Selection::new(vec![name], &speaking(language)),
            None => Selection::new(Vec::new(), &headers),
        };
        let (fields, body) = Body::store(&headers, vec![Bytes::from(vec![b'x'; 347])]);
        let head = ObjectHead {
            status: StatusCode::OK,
            fields,
            terms: terms.unwrap(),
            made: 0,
            validated: 0,
            began: store.purge_count(),
            details: ObjectDetails::new(None, selection, tags.as_bytes().into()),
        };
        Arc::new(Object::new(head, body))
    }

    fn speaking(language: &str) -> Fields {
        Fields::from_iter([(ACCEPT_LANGUAGE, language)])
    }

    fn has(store: &Store, key: &CacheKey, request: &Fields) -> Option<bool> {
        let entry = store.entry(0, key)?;
        store
            .find(key, &entry, request)
            .map(|found| found.is_purged)
    }

    #[test]
    fn memory_stays_bounded_and_what_is_asked_for_stays() {
        let (store, config) = (Store::new(&config(), 1), config());
        let (hot, anyone) = (key("/hot"), Fields::new());
        let page = object(&store, None, "");
        store.insert(&hot, Arc::clone(&page), &config);
        for at in 0..1_000_000 {
            let key = key(&format!("/?{at}"));
            store.insert(&key, Arc::clone(&page), &config);
            if at % 50 == 0 {
                assert_eq!(has(&store, &hot, &anyone), Some(false), "after {at}");
            }
        }
        let (bytes, objects) = store.size();
        assert!(
            bytes <= config.memory && objects > 500,
            "{bytes} bytes, {objects} objects"
        );
        assert!(store.evicted() > 990_000);
        // The goal of the specification is 900 bytes of memory for such an object.
        assert!(
            bytes / objects as u64 <= 900,
            "{} bytes each",
            bytes / objects as u64
        );
    }

    #[test]
    fn a_key_has_a_few_responses_and_the_oldest_goes() {
        let (store, config) = (Store::new(&config(), 1), config());
        let key = key("/");
        for language in ["de", "en", "fr"] {
            store.insert(&key, object(&store, Some(language), ""), &config);
        }
        assert_eq!(has(&store, &key, &speaking("de")), None);
        assert_eq!(has(&store, &key, &speaking("en")), Some(false));
        assert_eq!(has(&store, &key, &speaking("fr")), Some(false));
        store.remove_all(&key);
        assert_eq!(has(&store, &key, &speaking("fr")), None);
    }

    #[test]
    fn keys_of_much_use_are_named_most_used_first() {
        let (store, config) = (Store::new(&config(), 2), config());
        for at in 0..50_u64 {
            let key = key(&format!("/{at}"));
            store.insert(&key, object(&store, None, ""), &config);
            for turn in 0..at * 60 {
                let worker = (turn % 2) as usize;
                let entry = store.entry(worker, &key).unwrap();
                store.note_use(worker, &entry);
                if turn % 100 == 0 {
                    // A newer response takes its place.
                    store.insert(&key, object(&store, None, ""), &config);
                }
            }
        }
        let frequent = store.frequent(20);
        let expected = |at: u64| key(&format!("/{at}")).as_bytes().into();
        let keys: Vec<Box<[u8]>> = frequent.iter().map(|it| it.key.clone()).collect();
        assert_eq!(keys, (30..50).rev().map(expected).collect::<Vec<_>>());
        let most = &frequent[0];
        assert!(most.uses.abs_diff(49 * 60) <= 2 * NOTED_ONE_OF, "{most:?}");
        assert!(most.variants == 1 && most.bytes > 347, "{most:?}");
        assert_eq!(store.frequent(100).len(), 49, "one was of no use");
    }

    #[test]
    fn what_began_before_a_purge_is_not_stored() {
        let (store, config) = (Store::new(&config(), 1), config());
        let (key, anyone) = (key("/a"), Fields::new());
        let early = object(&store, None, "t\n");
        store.purge(Purge::Tag(b"t"[..].into()), false);
        assert!(!store.insert(&key, early, &config));
        let late = object(&store, None, "t\n");
        assert!(store.insert(&key, late, &config));
        store.purge(Purge::Prefix(b"http://h/a"[..].into()), true);
        assert_eq!(has(&store, &key, &anyone), Some(true));
        store.purge(Purge::All, false);
        assert_eq!(has(&store, &key, &anyone), None);
    }

    /// A fetch that began before a purge must never leave an older response behind, however the two overlap.
    #[test]
    fn a_purge_that_races_a_fill_is_never_lost() {
        const ROUNDS: u64 = 10_000;
        let (store, config) = (Store::new(&config(), 2), config());
        let (key, anyone) = (key("/a"), Fields::new());
        let version = AtomicU64::new(0);
        let stored = || {
            let entry = store.entry(1, &key)?;
            Some(store.find(&key, &entry, &anyone)?.object().head.made)
        };
        let meet = std::sync::Barrier::new(2);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..ROUNDS {
                    meet.wait();
                    // What is fetched says which version the application had meanwhile.
                    let mut fetched = Arc::into_inner(object(&store, None, "")).unwrap();
                    fetched.head.made = version.load(Ordering::SeqCst);
                    store.insert(&key, Arc::new(fetched), &config);
                    meet.wait();
                }
            });
            let mut kept = 0;
            for round in 1..=ROUNDS {
                meet.wait();
                version.store(round, Ordering::SeqCst);
                store.purge(Purge::Url(b"http://h/a"[..].into()), false);
                let seen = stored();
                assert!(
                    seen.is_none_or(|made| made == round),
                    "{seen:?} after {round}"
                );
                meet.wait();
                let left = stored();
                assert!(
                    left.is_none_or(|made| made == round),
                    "{left:?} after {round}"
                );
                kept += u64::from(left.is_some());
            }
            println!("in {kept} of {ROUNDS} rounds the fetch began after the purge");
        });
    }

    #[test]
    fn one_leads_and_a_few_follow() {
        let store = Store::new(&config(), 1);
        let name = Bytes::from_static(b"k");
        let Some(Flight::Lead(fill)) = store.join(&name, 1) else {
            panic!("the first leads");
        };
        let reader = fill.read(true);
        assert!(matches!(store.join(&name, 1), Some(Flight::Follow(_))));
        let follower = fill.read(false);
        assert!(store.join(&name, 1).is_none(), "two read it");
        let fetch = store.begin_fetch();
        assert_eq!((store.waiters(), store.fetches()), (2, [1, 0, 0, 0]));
        drop(fetch);
        assert_eq!(store.fetches(), [0; 4]);
        drop((reader, follower));
        store.land(&name, &fill);
        assert!(matches!(store.join(&name, 1), Some(Flight::Lead(_))));
    }
}

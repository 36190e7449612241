//! Compressed copies of stored bodies: each is made once, at the second request that wants it, and kept with the
//! body.
//!
//! The first request has its response compressed as it streams, and so have all whose copy is not kept. A long body
//! is compressed on a thread. Requests that want it meanwhile have it compressed as it streams, in the next coding
//! that they accept if the copy is made with Brotli.

use std::cell::LazyCell;
use std::sync::Arc;

use bytes::Bytes;
use catamaran_cache::key::CacheKey;
use catamaran_coding::{Coding, code};
use catamaran_message::ResponseHead;
use http::StatusCode;
use tokio::sync::OwnedSemaphorePermit;
use tokio::task::spawn_blocking;

use super::{BodyWindow, CachedSource, From};
use crate::cache::object::Object;
use crate::cache::store::Store;
use crate::exchange::compression::{Compression, CompressionOffer, describe};
use crate::exchange::scene::Scene;
use crate::worker::encoders::ReservedMemory;

impl CachedSource<'_> {
    /// Sends a kept compressed copy instead of the body, and adapts the head; `None`: there is no copy, or no body
    /// is sent. The head of a 304 is adapted as if the response were compressed.
    pub(crate) fn kept_coding(
        &mut self,
        offer: &CompressionOffer<'_>,
        head: &mut ResponseHead,
        scene: Scene<'_>,
    ) -> Option<Box<Compression>> {
        let From::Stored(response, ..) = &self.from else {
            return None;
        };
        let object = Arc::clone(response.object());
        if head.status == StatusCode::NOT_MODIFIED {
            let is_kept = |coding| object.coded(coding).is_some();
            offer.mark_unmodified(head, &plain_head(&object), is_kept);
            return None;
        }
        let is_whole = self.window == Some(BodyWindow::WHOLE) || offer.is_head;
        if !is_whole || !offer.mark_varying(head) {
            return None;
        }
        let store = &self.job.request.cache.store;
        // Evaluated at most once for all codings, since `is_wanted_again` counts the request.
        let is_worth_it = LazyCell::new(|| {
            !offer.is_head
                && object.codings().is_wanted_again()
                && store.has_room_for_coding(&object)
        });
        let (coding, coded) = offer.choose(|coding| match object.coded(coding) {
            Some(coded) => Some(coded.clone()),
            None if *is_worth_it => self.make_coding(&object, coding, offer, scene),
            None => None,
        })?;
        describe(head, coding);
        head.content_length = Some(coded.len() as u64);
        if offer.is_head {
            return None;
        }
        self.from = From::Coded(Some(coded));
        Some(Box::new(Compression::kept(coding, object.len())))
    }

    /// Compresses a body: a short one at once, a long one on a thread for later requests, so that `None` is
    /// returned.
    fn make_coding(
        &self,
        object: &Arc<Object>,
        coding: Coding,
        offer: &CompressionOffer<'_>,
        scene: Scene<'_>,
    ) -> Option<Bytes> {
        let store = &self.job.request.cache.store;
        if !object.codings().begin() {
            return None;
        }
        let job = CodingJob {
            store: Arc::clone(store),
            key: self.job.request.key.clone(),
            object: Arc::clone(object),
            coding,
        };
        if object.len() < thread_min(coding) {
            let coded = offer.code(coding, object.blocks(), scene)?;
            job.keep(&coded);
            return Some(coded);
        }
        // If too much is under way, a later request tries it again.
        if let (Some(memory), Some(permit)) = (offer.reserve(coding, scene), store.coder()) {
            let background = scene.worker.background();
            let _ordered = background.order(move |_worker| job.run(memory, permit));
        }
        None
    }
}

/// A compressed copy that is being made. Dropping this lets a later request try again.
struct CodingJob {
    store: Arc<Store>,
    key: CacheKey,
    object: Arc<Object>,
    coding: Coding,
}

impl CodingJob {
    /// Compresses the body on a thread, and keeps the copy.
    async fn run(self, memory: ReservedMemory, permit: OwnedSemaphorePermit) {
        let (object, coding) = (Arc::clone(&self.object), self.coding);
        let coded = spawn_blocking(move || {
            let _held = (memory, permit);
            code(coding, object.blocks()).ok()
        });
        if let Ok(Some(coded)) = coded.await {
            self.keep(&coded);
        }
    }

    fn keep(&self, coded: &Bytes) {
        self.store
            .keep_coded(&self.key, &self.object, self.coding, coded);
    }
}

impl Drop for CodingJob {
    fn drop(&mut self) {
        self.object.codings().end();
    }
}

/// The head of the whole stored response, without compression.
fn plain_head(object: &Object) -> ResponseHead {
    ResponseHead {
        status: object.head.status,
        headers: object.head.fields.clone(),
        content_length: Some(object.len()),
        ..ResponseHead::default()
    }
}

/// The least length of a body that is compressed on a thread. A shorter one takes about a millisecond on the event
/// loop.
fn thread_min(coding: Coding) -> u64 {
    match coding {
        Coding::Brotli => 32 * 1024,
        Coding::Gzip | Coding::Zstd => 64 * 1024,
    }
}

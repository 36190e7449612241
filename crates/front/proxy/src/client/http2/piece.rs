//! A piece of a response's body, which tells its stream when it was written.
//!
//! The `h2` crate queues pieces and does not say what became of them. It asks a piece for its bytes
//! as it writes them, and drops a piece that it does not write.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Waker};

use bytes::{Buf, Bytes};

use crate::client::http2::session::Session;
use crate::deadlines::Tick;
use crate::lock::lock;

/// Bytes that were handed to the connection.
#[derive(Debug)]
pub(crate) struct Piece {
    bytes: Bytes,
    /// `None` for a piece without bytes.
    outflow: Option<Arc<Outflow>>,
}

/// Counts the bytes that one stream has handed to the connection.
#[derive(Debug)]
pub(crate) struct Outflow {
    session: Arc<Session>,
    unwritten: AtomicUsize,
    /// Bytes written, and when the last of them were.
    written: AtomicU64,
    written_at: AtomicU64,
    waker: Mutex<Option<Waker>>,
}

impl Outflow {
    pub(crate) fn new(session: Arc<Session>) -> Self {
        Self {
            session,
            unwritten: AtomicUsize::new(0),
            written: AtomicU64::new(0),
            written_at: AtomicU64::new(0),
            waker: Mutex::new(None),
        }
    }

    /// Bytes handed over and not written.
    pub(crate) fn unwritten(&self) -> usize {
        self.unwritten.load(Ordering::Relaxed)
    }

    /// Bytes written so far, and when the last of them were.
    pub(crate) fn written(&self) -> (u64, Tick) {
        let written_at = self.written_at.load(Ordering::Relaxed);
        (self.written.load(Ordering::Relaxed), Tick::from(written_at))
    }

    /// Has the task of `cx` woken when all is written, or when at most [`LOW_WATER`] bytes are left to be written.
    pub(crate) fn watch(&self, cx: &Context<'_>) {
        let mut waker = lock(&self.waker);
        match &mut *waker {
            Some(waker) => waker.clone_from(cx.waker()),
            none => *none = Some(cx.waker().clone()),
        }
    }

    fn note_written(&self, bytes: usize) {
        let now = self.session.now();
        self.written.fetch_add(bytes as u64, Ordering::Relaxed);
        self.written_at.store(now.into(), Ordering::Relaxed);
        self.session.note_body_written(bytes, now);
    }

    fn left(&self, bytes: usize) {
        let before = self.unwritten.fetch_sub(bytes, Ordering::Relaxed);
        self.session.dequeue(bytes);
        let after = before - bytes;
        if after == 0 || (before > LOW_WATER && after <= LOW_WATER) {
            let mut waker = lock(&self.waker);
            if let Some(waker) = waker.take() {
                waker.wake();
            }
        }
    }
}

impl Piece {
    /// Bytes of a stream, which its session has counted as queued.
    pub(crate) fn new(bytes: Bytes, outflow: &Arc<Outflow>) -> Self {
        outflow.unwritten.fetch_add(bytes.len(), Ordering::Relaxed);
        Self {
            bytes,
            outflow: Some(Arc::clone(outflow)),
        }
    }

    /// A piece without bytes, which ends a body.
    pub(crate) fn end() -> Self {
        Self {
            bytes: Bytes::new(),
            outflow: None,
        }
    }

    fn left(&self, bytes: usize) {
        if let Some(outflow) = &self.outflow
            && bytes > 0
        {
            outflow.left(bytes);
        }
    }
}

impl Buf for Piece {
    fn remaining(&self) -> usize {
        self.bytes.len()
    }

    fn chunk(&self) -> &[u8] {
        &self.bytes
    }

    fn advance(&mut self, bytes: usize) {
        self.bytes.advance(bytes);
        if let Some(outflow) = &self.outflow {
            outflow.note_written(bytes);
        }
        self.left(bytes);
    }
}

impl Drop for Piece {
    fn drop(&mut self) {
        self.left(self.bytes.len());
    }
}

/// A stream is woken for more when no more than this number of bytes is left to be written.
const LOW_WATER: usize = 32 * 1024;

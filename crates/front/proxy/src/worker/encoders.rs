//! Limits the memory of compression encoders, which all workers share.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The number of bytes that all encoders of the process hold.
#[derive(Debug, Default)]
pub(crate) struct EncoderMemory(Arc<AtomicU64>);

impl EncoderMemory {
    /// Reserves `bytes` for an encoder; `None` if all encoders would then hold more than `max`.
    pub(crate) fn reserve(&self, bytes: u64, max: u64) -> Option<ReservedMemory> {
        let add = |held: u64| held.checked_add(bytes).filter(|sum| *sum <= max);
        let (order, failed_order) = (Ordering::Relaxed, Ordering::Relaxed);
        self.0.fetch_update(order, failed_order, add).ok()?;
        Some(ReservedMemory {
            held: Arc::clone(&self.0),
            bytes,
        })
    }

    /// The number of bytes that are reserved now.
    pub(crate) fn held(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// The memory of one encoder; dropping this releases it.
#[derive(Debug)]
pub(crate) struct ReservedMemory {
    /// The bytes that all encoders hold.
    held: Arc<AtomicU64>,
    bytes: u64,
}

impl Drop for ReservedMemory {
    fn drop(&mut self) {
        self.held.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encoders_hold_no_more_than_they_may_together() {
        let memory = EncoderMemory::default();
        let one = memory.reserve(60, 100).unwrap();
        assert!(memory.reserve(41, 100).is_none());
        let other = memory.reserve(40, 100).unwrap();
        assert!(memory.reserve(u64::MAX, u64::MAX).is_none());
        assert_eq!(memory.held(), 100);
        drop(one);
        assert_eq!(memory.held(), 40);
        assert!(memory.reserve(61, 100).is_none());
        drop(other);
        assert_eq!(memory.held(), 0);
    }
}

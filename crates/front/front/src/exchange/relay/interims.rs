//! Interim responses (1xx) on their way to the client, and how fast they may come.
//!
//! How many come in all is not limited: an application may send 102 (Processing) for an hour. Their rate is,
//! since each costs work and a write.

use std::time::Duration;

use catamaran_message::ResponseHead;
use http::{StatusCode, Version};

use crate::deadlines::Tick;
use crate::exchange::relay::{Relay, RelayError};

/// Counts those of one second after the other.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Interims {
    /// When the second began; `None` before the first.
    since: Option<Tick>,
    count: u32,
}

impl Interims {
    /// Counts one more. `false` if there are too many of this second.
    fn admit(&mut self, now: Tick) -> bool {
        if self.since.is_none_or(|since| now >= since + SECOND) {
            (self.since, self.count) = (Some(now), 0);
        }
        self.count += 1;
        self.count <= PER_SECOND_MAX
    }
}

impl Relay<'_, '_, '_> {
    /// Passes one on, if the client understands it.
    #[inline(never)]
    pub(super) fn handle_interim(&mut self, head: &ResponseHead) -> Result<(), RelayError> {
        if !self.interims.admit(self.scene.now()) {
            return Err(RelayError::InterimFlood);
        }
        // We answer `Expect` ourselves.
        if head.status == StatusCode::CONTINUE || self.terms.version == Version::HTTP_10 {
            return Ok(());
        }
        if let Some(hook) = &self.progress.hook {
            hook.interim(head.status, &head.headers);
        }
        self.down.send_interim(head.status, &head.headers);
        Ok(())
    }
}

/// How many may come in a second: frameworks send one 103 (Early Hints) for each of a page's resources.
const PER_SECOND_MAX: u32 = 100;

const SECOND: Duration = Duration::from_secs(1);

//! Interim responses (1xx) on their way to the client, and how fast they may come.
//!
//! How many come in all is not limited: an application may send 102 (Processing) for an hour. Their rate is,
//! since each costs work and a write, and those for a client of HTTP/2 wait in memory.

use std::time::Duration;

use catamaran_message::{Fields, ResponseHead};
use http::StatusCode;

use crate::deadlines::Tick;
use crate::exchange::relay::{Relay, RelayError};

/// Counts those of one second after the other.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Interims {
    /// When the second began; `None` before the first.
    since: Option<Tick>,
    count: u32,
    bytes: usize,
}

impl Interims {
    /// Counts one more with these fields. `false` if there are too many of this second.
    fn admit(&mut self, headers: &Fields, now: Tick) -> bool {
        if self.since.is_none_or(|since| now >= since + SECOND) {
            *self = Self {
                since: Some(now),
                ..Self::default()
            };
        }
        let lines = headers.iter();
        let lines = lines.map(|field| field.name().len() + field.value().len());
        self.count += 1;
        self.bytes += lines.sum::<usize>();
        self.count <= PER_SECOND_MAX && self.bytes <= BYTES_PER_SECOND_MAX
    }
}

impl Relay<'_, '_, '_> {
    /// Passes one on, if the client understands it.
    #[inline(never)]
    pub(super) fn handle_interim(&mut self, head: &ResponseHead) -> Result<(), RelayError> {
        if !self.interims.admit(&head.headers, self.scene.now()) {
            return Err(RelayError::InterimFlood);
        }
        // We answer `Expect` ourselves.
        if head.status == StatusCode::CONTINUE || !self.terms.takes_interims {
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

/// Bytes of their fields in a second.
const BYTES_PER_SECOND_MAX: usize = 128 * 1024;

const SECOND: Duration = Duration::from_secs(1);

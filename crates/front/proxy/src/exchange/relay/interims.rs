//! Passes interim responses (1xx) to the client, and limits their rate.
//!
//! Their total is not limited: an application may send 102 (Processing) for an hour. Their rate is limited,
//! because each costs work and a write, and for a client of HTTP/2 they wait in memory.

use std::time::Duration;

use catamaran_message::{Fields, ResponseHead};
use http::StatusCode;

use crate::deadlines::Tick;
use crate::exchange::relay::{Relay, RelayError};

/// Counts the interim responses of the present second.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Interims {
    /// The beginning of the second; `None` before the first interim response.
    since: Option<Tick>,
    count: u32,
    bytes: usize,
}

impl Interims {
    /// Counts an interim response with these fields. `false`: there are too many in this second.
    fn admit(&mut self, headers: &Fields, now: Tick) -> bool {
        if self.since.is_none_or(|since| now >= since + SECOND) {
            *self = Self {
                since: Some(now),
                ..Self::default()
            };
        }
        self.count += 1;
        for field in headers.iter() {
            self.bytes += field.name().len() + field.value().len();
        }
        self.count <= PER_SECOND_MAX && self.bytes <= BYTES_PER_SECOND_MAX
    }
}

impl Relay<'_, '_, '_> {
    /// Passes an interim response on, if the client accepts it.
    #[inline(never)]
    pub(super) fn handle_interim(&mut self, head: &ResponseHead) -> Result<(), RelayError> {
        if !self.interims.admit(&head.headers, self.scene.now()) {
            return Err(RelayError::InterimFlood);
        }
        // The front answers `Expect: 100-continue` itself.
        if head.status == StatusCode::CONTINUE || !self.terms.takes_interims {
            return Ok(());
        }
        if let Some(sink) = &self.progress.sink {
            sink.interim(head.status, &head.headers);
        }
        self.down.send_interim(head.status, &head.headers);
        Ok(())
    }
}

/// The most interim responses in a second: frameworks send one 103 (Early Hints) for each resource of a
/// page.
const PER_SECOND_MAX: u32 = 100;

/// The most bytes of the fields of interim responses in a second.
const BYTES_PER_SECOND_MAX: usize = 128 * 1024;

const SECOND: Duration = Duration::from_secs(1);

//! Counts responses 5xx that a backend gives one after the other.

use std::sync::atomic::Ordering;

use super::Backend;

impl Backend {
    /// Counts a response: a 5xx lengthens the row, any other ends it. Returns the length of the
    /// row.
    pub(crate) fn note_in_row(&self, is_server_error: bool) -> u32 {
        if is_server_error {
            let before = self.server_errors.fetch_add(1, Ordering::Relaxed);
            return before.saturating_add(1);
        }
        // Loaded before it is stored: many responses at once must not contend for it.
        if self.server_errors.load(Ordering::Relaxed) > 0 {
            self.server_errors.store(0, Ordering::Relaxed);
        }
        0
    }

    /// Whether the backend has answered with 2xx, 3xx or 4xx before, and its last response was not a 5xx.
    pub(crate) fn answers_well(&self) -> bool {
        if self.server_errors.load(Ordering::Relaxed) > 0 {
            return false;
        }
        // Responses by the first digit of their status: 2xx, 3xx and 4xx.
        let responses = self.figures.totals().responses;
        responses[2..5].iter().any(|count| *count > 0)
    }
}

//! Prints what happens, with the time since the beginning of the run.

use std::time::Instant;

/// Prints lines.
#[derive(Debug)]
pub(crate) struct Transcript {
    began: Instant,
}

impl Transcript {
    #[expect(
        clippy::disallowed_methods,
        reason = "the time is for readers; nothing depends on it"
    )]
    pub(crate) fn begin() -> Self {
        Self {
            began: Instant::now(),
        }
    }

    pub(crate) fn say(&self, line: impl AsRef<str>) {
        let seconds = self.began.elapsed().as_secs_f64();
        println!("{seconds:8.1} s  {}", line.as_ref());
    }
}

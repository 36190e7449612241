//! The signals a running front or connector obeys.
//!
//! SIGTERM and SIGINT ask for a drain, a second one of them ends the process at once, and SIGHUP
//! will reload one day. The main thread waits here while the workers work.

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;
use signal_hook::iterator::Signals as Arrivals;

use crate::failure::Failure;

/// Signals, caught from now on.
pub(crate) struct Signals {
    arrivals: Arrivals,
}

impl Signals {
    /// Catches the signals. To be called before anything is started, so that none is missed.
    pub(crate) fn catch() -> Result<Self, Failure> {
        Self::register().map_err(|error| Failure::Fault(format!("cannot catch signals: {error}")))
    }

    fn register() -> io::Result<Self> {
        let asked = Arc::new(AtomicBool::new(false));
        for signal in [SIGTERM, SIGINT] {
            // Handlers run in the order of their registration: the first signal meets an unset
            // flag and sets it, the second one finds it set and ends the process.
            flag::register_conditional_shutdown(signal, 1, Arc::clone(&asked))?;
            flag::register(signal, Arc::clone(&asked))?;
        }
        Ok(Self {
            arrivals: Arrivals::new([SIGTERM, SIGINT, SIGHUP])?,
        })
    }

    /// Returns when the process is asked to stop.
    pub(crate) fn wait_for_stop(mut self) {
        for signal in self.arrivals.forever() {
            if signal == SIGHUP {
                tracing::warn!("reload is not supported yet; nothing changed");
            } else {
                tracing::info!("draining; a second signal quits at once");
                return;
            }
        }
    }
}

//! The signals that a running front or connector handles.
//!
//! SIGTERM and SIGINT ask for a drain, and a second one of them ends the process at once; a front with
//! `drain_delay` begins to drain at the second one instead, and ends at a third ([`Deadly`]). For the front, SIGHUP asks for a reload, SIGUSR1 for logs to be opened again and SIGUSR2 for an upgrade, as
//! they do of nginx.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::SyncSender;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1, SIGUSR2};
use signal_hook::flag;
use signal_hook::iterator::Signals as Arrivals;

use crate::failure::Failure;

/// Signals, caught from now on.
pub(crate) struct Signals {
    arrivals: Arrivals,
    /// Set once a stop was asked for: then SIGTERM and SIGINT end the process.
    asked: Arc<AtomicBool>,
}

/// Whether the next signal to stop ends the process at once.
pub(crate) struct Deadly(Arc<AtomicBool>);

impl Deadly {
    pub(crate) fn set(&self, deadly: bool) {
        self.0.store(deadly, Ordering::SeqCst);
    }
}

/// What a signal asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SignalRequest {
    /// To drain and end.
    Stop,
    /// To read the configuration again.
    Reload,
    /// To open the access log again.
    Reopen,
    /// To hand over to a new process.
    Upgrade,
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
            arrivals: Arrivals::new([SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2])?,
            asked,
        })
    }

    /// A hand on what the next signal to stop does.
    pub(crate) fn deadly(&self) -> Deadly {
        Deadly(Arc::clone(&self.asked))
    }

    /// Returns when the process is asked to stop; there is nothing else that it could do.
    pub(crate) fn wait_for_stop(mut self) {
        for signal in self.arrivals.forever() {
            if asked(signal) == SignalRequest::Stop {
                say_draining();
                return;
            }
            tracing::warn!("there is nothing to reload or to upgrade; nothing changed");
        }
    }

    /// Sends on what is asked for, from a thread of its own that ends with the process.
    pub(crate) fn forward<E>(mut self, to: SyncSender<E>) -> io::Result<()>
    where
        E: From<SignalRequest> + Send + 'static,
    {
        let thread = std::thread::Builder::new().name("signals".into());
        thread.spawn(move || {
            for signal in self.arrivals.forever() {
                if to.send(asked(signal).into()).is_err() {
                    return;
                }
            }
        })?;
        Ok(())
    }
}

/// Says what a first signal does, and a second one would.
pub(crate) fn say_draining() {
    tracing::info!("draining; a second signal quits at once");
}

fn asked(signal: i32) -> SignalRequest {
    match signal {
        SIGHUP => SignalRequest::Reload,
        SIGUSR1 => SignalRequest::Reopen,
        SIGUSR2 => SignalRequest::Upgrade,
        _ => SignalRequest::Stop,
    }
}

//! The signals that a running front or connector handles.
//!
//! SIGTERM and SIGINT ask for a drain, and a second one of them ends the process at once. A front with `drain_delay`
//! begins to drain only at the second one, and ends at a third ([`Deadly`]). For the front, SIGHUP asks for a reload,
//! SIGUSR1 for opening the logs again, and SIGUSR2 for an upgrade, as with nginx.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::SyncSender;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1, SIGUSR2};
use signal_hook::flag;
use signal_hook::iterator::Signals as Arrivals;

use crate::failure::Failure;

/// The caught signals, waiting to be handled.
pub(crate) struct Signals {
    arrivals: Arrivals,
    /// Set after a stop was asked for: from then on SIGTERM and SIGINT end the process.
    asked: Arc<AtomicBool>,
}

/// Controls whether the next SIGTERM or SIGINT ends the process at once.
pub(crate) struct Deadly(Arc<AtomicBool>);

impl Deadly {
    /// With `true`, the next SIGTERM or SIGINT ends the process at once; with `false` it is a request like the first.
    pub(crate) fn set(&self, deadly: bool) {
        self.0.store(deadly, Ordering::SeqCst);
    }
}

/// What a signal asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SignalRequest {
    /// Drain and end.
    Stop,
    /// Read the configuration again.
    Reload,
    /// Open the access log again.
    Reopen,
    /// Hand over to a new process.
    Upgrade,
}

impl Signals {
    /// Begins to catch the signals. Call this before anything is started, so that no signal is missed.
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

    /// The control of what the next SIGTERM or SIGINT does.
    pub(crate) fn deadly(&self) -> Deadly {
        Deadly(Arc::clone(&self.asked))
    }

    /// Waits until a signal asks the process to stop. All other requests are refused with a warning.
    pub(crate) fn wait_for_stop(mut self) {
        for signal in self.arrivals.forever() {
            if asked(signal) == SignalRequest::Stop {
                say_draining();
                return;
            }
            tracing::warn!("there is nothing to reload or to upgrade; nothing changed");
        }
    }

    /// Starts a thread that sends the requests of signals to `to`. The thread ends with the process, or when
    /// the receiver is gone.
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

/// Logs that the process is draining and that a further signal ends it at once.
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

//! A run: its threads, what is seen of it while it lasts, and its end.

use std::{
    sync::Arc,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use crate::{
    plan::{Plan, PlanFault},
    report::Report,
};

/// What a run has done so far, for whoever shows it while it lasts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Since the run began.
    pub elapsed: Duration,
    /// Whether it is still warming up; the numbers then are of the warm-up.
    pub is_warm_up: bool,
    /// Requests begun.
    pub started: u64,
    /// Answered in full.
    pub completed: u64,
    /// Failed.
    pub failed: u64,
    /// In flight now.
    pub in_flight: u64,
    /// Bytes received.
    pub received: u64,
    /// Sum of the raw latencies of completed requests in nanoseconds; the mean of an interval is
    /// the difference of two sums by the difference of two `completed`.
    pub latency_sum: u64,
    /// The longest of them so far, in nanoseconds.
    pub latency_max: u64,
}

/// Ends a run from elsewhere, as on ctrl-C.
#[derive(Clone, Debug)]
pub struct Stopper {
    stop: Arc<AtomicBool>,
}

impl Stopper {
    /// Ends the run now; requests in flight are counted as cut. The report follows as usual.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Release);
    }
}

/// A run that has begun.
#[derive(Debug)]
pub struct Running {
    stop: Arc<AtomicBool>,
}

/// Begins a run: checks the plan, looks up names, raises the limit of open files and starts the
/// threads.
///
/// # Errors
/// [`PlanFault`]: the plan makes no sense; nothing was sent. What fails later is in the report.
pub fn start(plan: Plan) -> Result<Running, PlanFault> {
    plan.check()?;
    Ok(Running {
        stop: Arc::default(),
    })
}

impl Running {
    /// What ends it early. Cheap to clone, and fine to use from a signal handler's thread.
    pub fn stopper(&self) -> Stopper {
        Stopper {
            stop: self.stop.clone(),
        }
    }

    /// What has happened so far.
    pub fn progress(&self) -> Progress {
        Progress::default()
    }

    /// Waits for the end, at most so long; `true` if it has come. For whoever shows progress.
    pub fn wait(&self, _timeout: Duration) -> bool {
        self.stop.load(Ordering::Acquire)
    }

    /// Waits for the end and gives the report.
    #[expect(clippy::todo, reason = "the workers are the next step")]
    pub fn finish(self) -> Report {
        todo!("the workers")
    }
}

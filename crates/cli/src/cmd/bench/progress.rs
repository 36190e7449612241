//! What is shown while a run lasts: a bar for people, ab's lines, counters every few seconds.
//!
//! Everything goes to standard error. The bar is only there when that is a terminal. ab's lines
//! come when so many requests are complete, which is looked at a few times a second, so that
//! several may come at once; after the last one nothing is missing.

use std::io::{self, IsTerminal as _, Write as _};
use std::time::Duration;

use catamaran_load::Progress;
use catamaran_load::plan::Plan;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::getopt::Mode;
use super::typed::Typed;

/// Shows a run.
#[derive(Debug)]
pub(super) struct Display {
    bar: Option<Bar>,
    /// ab's "Completed N requests" at multiples of so many; 0 is never.
    heartbeat: u64,
    said: u64,
    /// When the next line of counters is due.
    watchdog: Option<Duration>,
}

impl Display {
    pub(super) fn new(typed: &Typed, plan: &Plan) -> Self {
        let ours = typed.mode == Mode::Ours;
        let wanted = ours && !typed.output.quiet && io::stderr().is_terminal();
        let requests = plan.stop.requests.map_or(0, std::num::NonZero::get);
        Self {
            bar: wanted.then(|| Bar::new(plan)),
            heartbeat: match typed.mode {
                Mode::Ab if !typed.output.quiet => heartbeat(requests),
                _ => 0,
            },
            said: 0,
            watchdog: typed.output.watchdog.then_some(WATCHDOG_INTERVAL),
        }
    }

    /// Whether ab's lines are shown, on which its other lines depend.
    pub(super) fn has_heartbeat(&self) -> bool {
        self.heartbeat > 0
    }

    /// Shows how far it is.
    pub(super) fn show(&mut self, progress: &Progress) {
        if let Some(bar) = &mut self.bar {
            bar.show(progress);
        }
        self.beat(progress.completed);
        if let Some(due) = self.watchdog
            && progress.elapsed >= due
        {
            self.watchdog = Some(due + WATCHDOG_INTERVAL);
            say(&counters(progress));
        }
    }

    /// Says what is still to be said of `done` requests, and takes the bar away.
    pub(super) fn finish(mut self, done: u64) {
        if let Some(bar) = self.bar.take() {
            bar.bar.finish_and_clear();
        }
        self.beat(done);
        if self.has_heartbeat() {
            say(&format!("Finished {done} requests"));
        }
    }

    fn beat(&mut self, done: u64) {
        if self.heartbeat == 0 {
            return;
        }
        while self.said + self.heartbeat <= done {
            self.said += self.heartbeat;
            say(&format!("Completed {} requests", self.said));
        }
    }
}

/// As ab: ten lines, but one per 100 requests at most, and none for few requests.
fn heartbeat(requests: u64) -> u64 {
    if requests > 150 {
        (requests / 10).max(100)
    } else {
        0
    }
}

fn say(line: &str) {
    // Nobody is told when standard error is closed, and the run is worth more than its progress.
    let _ = writeln!(io::stderr(), "{line}");
}

fn counters(progress: &Progress) -> String {
    format!(
        "{:.0} s: {} started, {} completed, {} failed, {} in flight, {} bytes received",
        progress.elapsed.as_secs_f64(),
        progress.started,
        progress.completed,
        progress.failed,
        progress.in_flight,
        progress.received
    )
}

/// A bar that knows what it measures.
#[derive(Debug)]
struct Bar {
    bar: ProgressBar,
    by_requests: bool,
    before: Progress,
}

impl Bar {
    fn new(plan: &Plan) -> Self {
        let requests = plan.stop.requests.map(std::num::NonZero::get);
        let stages = plan.stages.iter().map(|stage| stage.duration).sum();
        let duration = plan.stop.duration.unwrap_or(stages);
        let by_requests = requests.is_some() && plan.stop.duration.is_none();
        let length = match requests {
            Some(requests) if by_requests => requests,
            _ => millis(duration),
        };
        let bar = ProgressBar::with_draw_target(Some(length), ProgressDrawTarget::stderr());
        let style = ProgressStyle::with_template("{bar:30} {percent:>3}% {msg}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        Self {
            bar,
            by_requests,
            before: Progress::default(),
        }
    }

    fn show(&mut self, progress: &Progress) {
        if !progress.is_warm_up {
            let position = if self.by_requests {
                progress.completed + progress.failed
            } else {
                millis(progress.elapsed)
            };
            self.bar.set_position(position);
        }
        self.bar.set_message(message(progress, &self.before));
        // A warm-up's counters are its own: the run begins anew.
        let longer = progress.elapsed.saturating_sub(self.before.elapsed) >= SMOOTHING;
        if longer || progress.completed < self.before.completed {
            self.before = *progress;
        }
    }
}

/// Rate and mean latency since `before`, and what failed so far.
fn message(progress: &Progress, before: &Progress) -> String {
    let elapsed = progress
        .elapsed
        .saturating_sub(before.elapsed)
        .as_secs_f64();
    let completed = progress.completed.saturating_sub(before.completed) as f64;
    let rate = completed / elapsed.max(1e-3);
    let latency = progress.latency_sum.saturating_sub(before.latency_sum) as f64;
    let mean = latency / completed.max(1.0) / 1e6;
    let warm_up = if progress.is_warm_up { "warm-up, " } else { "" };
    format!(
        "{warm_up}{rate:.0}/s, mean {mean:.3} ms, longest {:.3} ms, {} failed",
        progress.latency_max as f64 / 1e6,
        progress.failed
    )
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

const WATCHDOG_INTERVAL: Duration = Duration::from_secs(5);

/// The rate shown is that of about so long.
const SMOOTHING: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_often_as_ab() {
        for (requests, expected) in [(150, 0), (151, 100), (1000, 100), (50_000, 5000)] {
            assert_eq!(heartbeat(requests), expected, "{requests}");
        }
    }

    #[test]
    fn the_message_is_of_the_last_interval() {
        let before = Progress {
            elapsed: Duration::from_secs(1),
            completed: 1000,
            latency_sum: 9_000_000_000,
            ..Progress::default()
        };
        let now = Progress {
            elapsed: Duration::from_secs(2),
            completed: 3000,
            failed: 7,
            latency_sum: 13_000_000_000,
            latency_max: 5_000_000,
            ..Progress::default()
        };
        assert_eq!(
            message(&now, &before),
            "2000/s, mean 2.000 ms, longest 5.000 ms, 7 failed"
        );
    }
}

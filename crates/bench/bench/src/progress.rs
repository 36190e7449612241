//! Prints the progress of a run: five lines on a terminal, ab's lines, or counters every few seconds.
//!
//! Everything goes to standard error, and the five lines only to a terminal. ab's lines are due at
//! certain numbers of complete requests. That is checked a few times a second, so several lines may
//! appear together; at the end none is missing.

use std::io::{self, IsTerminal as _, Write as _};
use std::time::Duration;

use catamaran_load::document::Tick;
use catamaran_load::plan::{Pace, Plan};
use catamaran_load::render::verdict::{self, Facts};
use catamaran_load::{LatencyFloor, Progress};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::getopt::Mode;
use crate::settings::Settings;

/// Shows the progress of a run on standard error.
#[derive(Debug)]
pub(crate) struct Display {
    lines: Option<Lines>,
    /// ab prints "Completed N requests" at multiples of this number; 0: never.
    heartbeat: u64,
    /// The number of requests in ab's last line.
    said: u64,
    /// The time at which the next line of counters is printed; `None`: none are printed.
    watchdog: Option<Duration>,
    /// The schedule of lines of JSON (`--ticks`); `None`: none are printed.
    ticks: Option<Ticks>,
}

impl Display {
    pub(crate) fn new(settings: &Settings, plan: &Plan) -> Self {
        let is_quiet = settings.output.quiet;
        let requests = plan.stop.requests.map_or(0, std::num::NonZero::get);
        let has_lines = settings.mode == Mode::Ours && !is_quiet && io::stderr().is_terminal();
        let has_heartbeat = settings.mode == Mode::Ab && !is_quiet;
        Self {
            lines: has_lines.then(|| Lines::new(plan)),
            heartbeat: if has_heartbeat {
                heartbeat(requests)
            } else {
                0
            },
            said: 0,
            watchdog: settings.output.watchdog.then_some(WATCHDOG_INTERVAL),
            ticks: settings.output.ticks.map(Ticks::every),
        }
    }

    /// Whether ab's lines of progress are printed; other lines of ab depend on it.
    pub(crate) fn has_heartbeat(&self) -> bool {
        self.heartbeat > 0
    }

    /// Prints the lines that are due when the run has come to `progress`.
    pub(crate) fn show(&mut self, progress: &Progress) {
        if let Some(lines) = &mut self.lines {
            lines.show(progress);
        }
        self.beat(progress.completed);
        if let Some(due) = self.watchdog
            && progress.elapsed >= due
        {
            self.watchdog = Some(due + WATCHDOG_INTERVAL);
            say(&counters(progress));
        }
        if let Some(ticks) = &mut self.ticks
            && ticks.is_due(progress.elapsed)
            && let Ok(line) = serde_json::to_string(&tick(progress))
        {
            say(&line);
        }
    }

    /// Ends the display: removes the five lines, and prints ab's lines up to `done` requests.
    pub(crate) fn finish(mut self, done: u64) {
        if let Some(lines) = self.lines.take() {
            lines.bar.finish_and_clear();
        }
        self.beat(done);
        if self.has_heartbeat() {
            say(&format!("Finished {done} requests"));
        }
    }

    /// Prints ab's lines for `done` complete requests that are not printed yet.
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

/// The schedule of the lines of `--ticks`.
#[derive(Debug)]
struct Ticks {
    every: Duration,
    next: Duration,
}

impl Ticks {
    fn every(every: Duration) -> Self {
        Self { every, next: every }
    }

    /// Whether a line is due at `elapsed`. A line that was missed is left out.
    fn is_due(&mut self, elapsed: Duration) -> bool {
        // The time begins anew after a warm-up, so the next line is due at most one interval from now.
        self.next = self.next.min(elapsed.saturating_add(self.every));
        let is_due = elapsed >= self.next;
        if is_due {
            let periods = elapsed.as_nanos() / self.every.as_nanos().max(1);
            // One less than the largest number, because one is added below.
            let passed = u32::try_from(periods).unwrap_or(u32::MAX - 1);
            self.next = self.every.saturating_mul(passed + 1);
        }
        is_due
    }
}

/// The number of requests between ab's lines of progress: a tenth of all, at least 100; 0 (no lines) for up to 150.
fn heartbeat(requests: u64) -> u64 {
    if requests > 150 {
        (requests / 10).max(100)
    } else {
        0
    }
}

fn say(line: &str) {
    // Errors are ignored: when standard error is closed, the run matters more than its progress.
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

fn tick(progress: &Progress) -> Tick {
    let recent_ms = progress
        .recent
        .map(|times| times.map(|time| time.as_secs_f64() * 1000.0));
    Tick {
        elapsed_s: progress.elapsed.as_secs_f64(),
        is_warm_up: progress.is_warm_up,
        started: progress.started,
        completed: progress.completed,
        failed: progress.failed,
        p50_ms: recent_ms.map(|[p50, _]| p50),
        p99_ms: recent_ms.map(|[_, p99]| p99),
    }
}

/// The five lines on a terminal, rewritten once a second in the form of the report.
#[derive(Debug)]
struct Lines {
    bar: ProgressBar,
    duration: Option<Duration>,
    requests: Option<u64>,
    rate: Option<f64>,
    is_open: bool,
    before: Progress,
}

impl Lines {
    fn new(plan: &Plan) -> Self {
        // The sum is zero without stages, which then do not bound the run.
        let stages: Duration = plan.stages.iter().map(|stage| stage.duration).sum();
        let by_stages = Some(stages).filter(|stages| !stages.is_zero());
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        let style = ProgressStyle::with_template("{msg}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        let (rate, is_open) = match plan.pace {
            Pace::Open { per_second, .. } => (Some(per_second), true),
            Pace::Closed { .. } => (None, false),
        };
        Self {
            bar,
            duration: [plan.stop.duration, by_stages].into_iter().flatten().min(),
            requests: plan.stop.requests.map(std::num::NonZero::get),
            // With stages the rate that is asked for changes, so none is shown.
            rate: rate.filter(|_| plan.stages.is_empty()),
            is_open,
            before: Progress::default(),
        }
    }

    /// Draws the lines anew, if [`INTERVAL`] has passed since the last time.
    fn show(&mut self, progress: &Progress) {
        // A warm-up's counters are its own: the run begins anew.
        if progress.completed < self.before.completed || progress.elapsed < self.before.elapsed {
            self.before = Progress::default();
        }
        if progress.elapsed.saturating_sub(self.before.elapsed) < INTERVAL {
            return;
        }
        self.bar.set_message(self.lines(progress).join("\n"));
        self.before = *progress;
    }

    /// Makes the five lines of progress. The rate in them covers the time since the last call.
    fn lines(&self, progress: &Progress) -> [String; 5] {
        let elapsed = progress.elapsed.saturating_sub(self.before.elapsed);
        let completed = progress.completed.saturating_sub(self.before.completed);
        let latency = progress.recent.map(|times| {
            times.map(|at_least| LatencyFloor {
                at_least,
                is_exact: true,
            })
        });
        verdict::lines(&Facts {
            // At least a millisecond, so that the rate is finite.
            per_second: completed as f64 / elapsed.as_secs_f64().max(1e-3),
            asked_per_second: self.rate,
            latency,
            is_corrected: self.is_open,
            failed: progress.failed,
            unanswered: vec![("waiting", progress.waiting)],
            requests: progress.started,
            statuses: progress.statuses,
            operations: (progress.operations.total() > 0).then_some(progress.operations),
            first: if progress.is_warm_up {
                let seconds = progress.elapsed.as_secs();
                ("Warm-up", format!("for {seconds} s so far"))
            } else {
                ("Left", self.left(progress))
            },
        })
    }

    /// The time left, by the duration or by the number of requests, whichever ends sooner.
    fn left(&self, progress: &Progress) -> String {
        let elapsed = progress.elapsed;
        let by_time = self
            .duration
            .map(|duration| duration.saturating_sub(elapsed));
        let done = progress.completed + progress.failed;
        let mut by_requests = None;
        if let Some(requests) = self.requests
            && done > 0
        {
            let requests_left = requests.saturating_sub(done) as f64;
            by_requests = Some(elapsed.mul_f64(requests_left / done as f64));
        }
        match [by_time, by_requests].into_iter().flatten().min() {
            Some(left) => format!("{} s", left.as_secs_f64().ceil()),
            None => "unknown".to_owned(),
        }
    }
}

const WATCHDOG_INTERVAL: Duration = Duration::from_secs(5);

/// The interval at which the lines are rewritten.
const INTERVAL: Duration = Duration::from_secs(1);

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
    fn ticks_keep_to_their_times_and_begin_anew_after_a_warm_up() {
        let mut ticks = Ticks::every(Duration::from_secs(1));
        let due = [900, 1050, 1990, 2010, 4500, 4900, 5000, 100, 999, 1100]
            .map(|millis| ticks.is_due(Duration::from_millis(millis)));
        let expected = [
            false, true, false, true, true, false, true, false, false, true,
        ];
        assert_eq!(due, expected);
    }

    #[test]
    fn a_tick_has_the_last_seconds_latency() {
        let progress = Progress {
            elapsed: Duration::from_millis(1500),
            completed: 20,
            recent: Some([2, 9].map(Duration::from_millis)),
            ..Progress::default()
        };
        let line = serde_json::to_string(&tick(&progress)).unwrap();
        let expected = r#"{"elapsed_s":1.5,"is_warm_up":false,"started":0,"completed":20,"failed":0,"p50_ms":2.0,"p99_ms":9.0}"#;
        assert_eq!(line, expected);
    }

    #[test]
    fn the_lines_are_of_the_last_second() {
        let lines = Lines {
            bar: ProgressBar::hidden(),
            duration: Some(Duration::from_secs(10)),
            requests: None,
            rate: Some(2000.0),
            is_open: true,
            before: Progress {
                elapsed: Duration::from_secs(1),
                completed: 1000,
                ..Progress::default()
            },
        };
        let progress = Progress {
            elapsed: Duration::from_secs(2),
            started: 3020,
            completed: 3000,
            failed: 7,
            waiting: 13,
            statuses: [0, 2990, 0, 0, 10],
            recent: Some([2, 9].map(Duration::from_millis)),
            ..Progress::default()
        };
        assert_eq!(
            lines.lines(&progress),
            [
                "Left      8 s",
                "Rate      2000.0/s, 2000.0/s were asked for",
                "Latency   p50 2.000 ms, p99 9.000 ms, corrected",
                "Failed    7, waiting 13, of 3020 requests",
                "Statuses  2xx 2990, 5xx 10",
            ]
        );
    }

    #[test]
    fn what_is_left_goes_by_time_and_requests() {
        let left = |duration: Option<u64>, requests, completed| {
            let lines = Lines {
                bar: ProgressBar::hidden(),
                duration: duration.map(Duration::from_secs),
                requests,
                rate: None,
                is_open: false,
                before: Progress::default(),
            };
            lines.left(&Progress {
                elapsed: Duration::from_secs(5),
                completed,
                ..Progress::default()
            })
        };
        assert_eq!(left(Some(12), None, 100), "7 s");
        assert_eq!(left(None, Some(300), 100), "10 s");
        assert_eq!(left(Some(12), Some(150), 100), "3 s");
        assert_eq!(left(None, Some(150), 0), "unknown");
    }
}

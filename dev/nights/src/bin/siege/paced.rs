//! Measures clients that keep their connections and send by a schedule: our own bench in its open loop, whose clock
//! is finer than the timers of the other clients here. Latency counts from the time at which a request was due, unless
//! it is called raw.

use std::time::Duration;

use anyhow::Context as _;
use catamaran_e2e::catamaran;
use catamaran_testkit::Deadline;
use serde_json::Value;

use crate::tier::wait;

/// The results of one round; times in milliseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Round {
    pub(crate) p50: f64,
    pub(crate) p99: f64,
    /// The 99th percentile of the latency from when a request was sent: how late the clients sent is no part of it.
    pub(crate) raw_p99: f64,
    /// The 99th percentile of how late the clients themselves sent.
    pub(crate) late: f64,
    pub(crate) failed: u64,
}

/// Runs `clients` that send `rate` requests per second to `url`, for `time`.
pub(crate) fn round(
    url: &str,
    clients: usize,
    rate: usize,
    time: Duration,
) -> anyhow::Result<Round> {
    round_with(&[], url, clients, rate, time)
}

/// As [`round`], with further flags of the bench.
pub(crate) fn round_with(
    flags: &[&str],
    url: &str,
    clients: usize,
    rate: usize,
    time: Duration,
) -> anyhow::Result<Round> {
    let [clients, rate] = [clients, rate].map(|number| number.to_string());
    let duration = format!("{}s", time.as_secs());
    let words = ["bench", "-q", "--json", "-W", "1", "-k", "-c", &clients];
    let more = ["--rate", &rate, "--duration", &duration, url];
    let mut bench = catamaran(&[&words[..], flags, &more[..]].concat())?;
    wait(time)?;
    bench.wait(Deadline::default())?;
    let report: Value = serde_json::from_str(&bench.stdout())
        .with_context(|| format!("bench: {}", bench.stderr()))?;
    let number = |pointer: &str| {
        let value = report.pointer(pointer).and_then(Value::as_f64);
        value.with_context(|| format!("bench reports no {pointer}"))
    };
    let millis = |name: &str| Ok::<f64, anyhow::Error>(number(name)? / 1000.0);
    Ok(Round {
        p50: millis("/latency/corrected/p50_us")?,
        p99: millis("/latency/corrected/p99_us")?,
        raw_p99: millis("/latency/total/p99_us")?,
        late: millis("/latency/lateness/p99_us")?,
        failed: number("/requests/started")? as u64 - number("/requests/ok")? as u64,
    })
}

/// The median of the ratios of `of` in `after` to that in `before`, for rounds that followed each other.
pub(crate) fn ratio(before: &[Round], after: &[Round], of: fn(&Round) -> f64) -> f64 {
    let pairs = before.iter().zip(after);
    let mut ratios: Vec<f64> = pairs.map(|(calm, then)| of(then) / of(calm)).collect();
    ratios.sort_by(f64::total_cmp);
    let middle = ratios.len() / 2;
    f64::midpoint(ratios[middle], ratios[(ratios.len() - 1) / 2])
}

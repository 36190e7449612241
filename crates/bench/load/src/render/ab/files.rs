//! Renders the files of `ab -e` and `ab -g`.

use std::fmt::Write as _;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::{millis, round};
use crate::report::{Report, Sample};

/// The file of `-e`: for each percentage of requests, the time within which they were served.
pub fn percentiles_csv(report: &Report) -> String {
    let total = &report.latency.total.histogram;
    let mut text = "Percentage served,Time in ms\n".to_owned();
    for percent in 0..=100_u8 {
        let time = millis(total.percentile(f64::from(percent)));
        writeln!(text, "{percent},{time:.3}").expect("a string takes all");
    }
    text
}

/// The file of `-g`: one line per request, the fastest first, with times in whole milliseconds.
/// `ctime` formats a time as C's `ctime` does, which depends on the time zone.
pub fn gnuplot(report: &Report, ctime: impl Fn(SystemTime) -> String) -> String {
    let mut samples: Vec<&Sample> = report.samples.iter().collect();
    samples.sort_by_key(|sample| sample.total);
    let mut text = "starttime\tseconds\tctime\tdtime\tttime\twait\n".to_owned();
    for sample in samples {
        let since = report.started_at + Duration::from_nanos(sample.start);
        let seconds = since.as_secs();
        let [connect, processing, total, wait] = [
            sample.connect,
            sample.total.saturating_sub(sample.connect),
            sample.total,
            sample.first_byte,
        ]
        .map(|nanos| round(Duration::from_nanos(nanos)));
        let name = ctime(UNIX_EPOCH + since);
        writeln!(
            text,
            "{name}\t{seconds}\t{connect}\t{processing}\t{total}\t{wait}"
        )
        .expect("a string takes all");
    }
    text
}

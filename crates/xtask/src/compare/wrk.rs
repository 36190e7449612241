//! Driving wrk, and reading what it prints.
//!
//! wrk is a closed loop: its percentiles are those of a saturated front, mostly time spent queueing.
//! That compares fronts under the same pressure; it says nothing of latency at a given rate.

use std::net::SocketAddr;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, bail};

/// What wrk saw of one front.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Report {
    pub(super) requests: u64,
    pub(super) per_second: f64,
    pub(super) p50: Duration,
    pub(super) p99: Duration,
    /// Connections that failed or timed out.
    pub(super) socket_errors: u64,
    /// Responses whose status was neither 2xx nor 3xx.
    pub(super) bad_statuses: u64,
}

/// One wrk thread with [`CONNECTIONS`] kept-alive connections that ask for the page, on the core
/// this process is on.
pub(super) fn run(front: SocketAddr, seconds: u32) -> anyhow::Result<Report> {
    let output = command(CONNECTIONS, seconds, true)
        .arg(format!("http://{front}/"))
        .output()
        .context("wrk")?;
    if !output.status.success() {
        bail!("wrk: {}", String::from_utf8_lossy(&output.stderr));
    }
    parse(&String::from_utf8_lossy(&output.stdout))
}

/// wrk with one thread; the URL is still to be added.
pub(super) fn command(connections: usize, seconds: u32, keep_alive: bool) -> Command {
    let mut command = Command::new("wrk");
    command
        .args(["--threads", "1", "--latency", "--timeout", "10s"])
        .args(["--connections", &connections.to_string()])
        .args(["--duration", &format!("{seconds}s")]);
    if !keep_alive {
        command.args(["--header", "Connection: close"]);
    }
    command
}

/// How many clients there are; design figures are for a hundred.
pub(super) const CONNECTIONS: usize = 100;

/// Reads what wrk printed.
pub(super) fn parse(text: &str) -> anyhow::Result<Report> {
    let mut report = Report {
        requests: 0,
        per_second: 0.0,
        p50: Duration::ZERO,
        p99: Duration::ZERO,
        socket_errors: 0,
        bad_statuses: 0,
    };
    for line in text.lines().map(str::trim) {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            ["50%", time] => report.p50 = duration(time)?,
            ["99%", time] => report.p99 = duration(time)?,
            [requests, "requests", "in", ..] => report.requests = requests.parse()?,
            ["Requests/sec:", rate] => report.per_second = rate.parse()?,
            ["Non-2xx", "or", "3xx", "responses:", count] => report.bad_statuses = count.parse()?,
            ["Socket", "errors:", counts @ ..] => {
                let numbers = counts.iter().filter_map(|word| {
                    let word = word.trim_end_matches(',');
                    word.parse::<u64>().ok()
                });
                report.socket_errors = numbers.sum();
            }
            _ => {}
        }
    }
    if report.per_second <= 0.0 || report.p99.is_zero() {
        bail!("cannot read what wrk printed:\n{text}");
    }
    Ok(report)
}

/// A time as wrk prints it: a number with two decimals and a unit.
fn duration(text: &str) -> anyhow::Result<Duration> {
    let unit = text.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    let number: f64 = text[..text.len() - unit.len()].parse()?;
    let seconds = match unit {
        "us" => number / 1e6,
        "ms" => number / 1e3,
        "s" => number,
        "m" => number * 60.0,
        _ => bail!("wrk's unit {unit:?} of {text} is unknown"),
    };
    Ok(Duration::try_from_secs_f64(seconds)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLEAN: &str = "Running 3s test @ http://127.0.0.1:8080/
  1 threads and 100 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency     1.53ms  221.17us   9.87ms   92.70%
    Req/Sec    65.35k     2.31k   68.20k    73.33%
  Latency Distribution
     50%    1.50ms
     75%    1.58ms
     90%  980.00us
     99%    2.01s
  195123 requests in 3.01s, 86.52MB read
Requests/sec:  64823.11
Transfer/sec:     28.74MB
";

    #[test]
    fn a_clean_run_is_read() {
        let report = parse(CLEAN).unwrap();
        let expected = Report {
            requests: 195_123,
            per_second: 64_823.11,
            p50: Duration::from_micros(1500),
            p99: Duration::from_millis(2010),
            socket_errors: 0,
            bad_statuses: 0,
        };
        assert_eq!(report, expected);
    }

    #[test]
    fn every_error_counts() {
        let errors = "  Socket errors: connect 1, read 20, write 300, timeout 4000\n  \
                      Non-2xx or 3xx responses: 17\nRequests/sec:";
        let report = parse(&CLEAN.replace("Requests/sec:", errors)).unwrap();
        assert_eq!((report.socket_errors, report.bad_statuses), (4321, 17));
    }

    #[test]
    fn anything_else_is_refused() {
        assert!(parse("unable to connect to 127.0.0.1:1\n").is_err());
        assert!(parse(&CLEAN.replace("1.50ms", "1.50h")).is_err());
    }

    #[test]
    fn times_have_units() {
        assert_eq!(duration("512.00us").unwrap(), Duration::from_micros(512));
        assert_eq!(duration("1.10m").unwrap(), Duration::from_secs(66));
        assert!(duration("12").is_err());
        assert!(duration("us").is_err());
    }
}

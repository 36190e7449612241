//! Reads Linux's scheduler statistics of the calling thread.

use std::fs;
use std::time::Duration;

/// The time for which the calling thread was ready to run, but had no CPU; `None` where the kernel does not tell.
pub(crate) fn starved_time() -> Option<Duration> {
    starved(&fs::read_to_string("/proc/thread-self/schedstat").ok()?)
}

/// Parses a `schedstat` (the kernel's sched-stats.rst): its second figure is nanoseconds in a run
/// queue. The first two are zero where the kernel does not account for them.
fn starved(schedstat: &str) -> Option<Duration> {
    let mut figures = schedstat.split_ascii_whitespace().map(str::parse::<u64>);
    let (Ok(running), Ok(waiting)) = (figures.next()?, figures.next()?) else {
        return None;
    };
    (running > 0).then(|| Duration::from_nanos(waiting))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_figure_is_read() {
        let expected = Some(Duration::from_nanos(27_000));
        assert_eq!(starved("15000 27000 3\n"), expected);
        for text in ["", "0 0 0", "1", "a b c"] {
            assert_eq!(starved(text), None, "{text}");
        }
    }
}

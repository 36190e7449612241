//! What other tools print, read into figures: ab, wrk, strace -c.
//!
//! A text gives what it has and nothing else: a figure that is not in it is `None`, so that no gate
//! takes silence for a zero. What the figures mean is decided in [`crate::gate`].

use std::collections::BTreeMap;

use thiserror::Error;

/// What a published text says.
#[derive(Clone, Debug, PartialEq)]
pub enum Published {
    /// A run of a load generator.
    Run(Figures),
    /// A table of system calls.
    Calls(Calls),
}

/// The figures of one run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Figures {
    /// What printed it: `ab` or `wrk`.
    pub tool: &'static str,
    /// Clients at once.
    pub clients: Option<u64>,
    /// How long the run took.
    pub seconds: Option<f64>,
    /// Requests that were answered.
    pub completed: Option<u64>,
    /// Requests that failed, by the tool's own idea of it.
    pub failed: Option<u64>,
    /// Answers outside 200 to 299; of wrk: outside 200 to 399, and `None` if there were none.
    pub non_2xx: Option<u64>,
    /// Answers after which the connection was kept; `None`: keep-alive was not asked for.
    pub kept: Option<u64>,
    /// All bytes received.
    pub bytes: Option<u64>,
    /// Bytes of bodies.
    pub body_bytes: Option<u64>,
    /// Answers per second.
    pub rate: Option<f64>,
    /// Mean, median and maximum of a request's time.
    pub total_ms: Option<Times>,
    /// What the server calls itself.
    pub software: Option<String>,
}

/// How long requests took, in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Times {
    /// The arithmetic mean.
    pub mean: f64,
    /// The median.
    pub median: Option<f64>,
    /// The longest.
    pub max: f64,
}

/// A table of `strace -c`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Calls {
    /// Calls by name.
    pub counts: BTreeMap<String, u64>,
    /// Calls that failed, by name.
    pub errors: BTreeMap<String, u64>,
}

/// Why a text gives no figures.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum TextFault {
    /// It has none of the lines by which the tools are known.
    #[error(
        "this is no text of ab, wrk or strace -c, and no report of `catamaran bench --json`; give \
         the whole output of a run"
    )]
    Unknown,
    /// ab ended before it printed its figures.
    #[error("ab's report is not complete: `{0}` is missing")]
    Incomplete(&'static str),
}

/// What the published tests printed, by name.
pub const BUILTIN: [(&str, &str); 10] = [
    ("000-ajp", include_str!("../published/000-ajp.txt")),
    ("000-http", include_str!("../published/000-http.txt")),
    ("002-bio-1", include_str!("../published/002-bio-1.txt")),
    ("002-bio-2", include_str!("../published/002-bio-2.txt")),
    ("002-nio-1", include_str!("../published/002-nio-1.txt")),
    ("002-nio-2", include_str!("../published/002-nio-2.txt")),
    ("004-off", include_str!("../published/004-off.txt")),
    (
        "004-off.strace",
        include_str!("../published/004-off.strace.txt"),
    ),
    ("004-on", include_str!("../published/004-on.txt")),
    (
        "004-on.strace",
        include_str!("../published/004-on.strace.txt"),
    ),
];

/// Reads a text of ab, wrk or strace.
///
/// # Errors
/// It is none of them, or cut short.
pub fn parse(text: &str) -> Result<Published, TextFault> {
    if text.contains("Concurrency Level:") {
        ab(text).map(Published::Run)
    } else if text.contains("Requests/sec:") && text.contains("threads and") {
        Ok(Published::Run(wrk(text)))
    } else if text.contains("% time") && text.contains("syscall") {
        Ok(Published::Calls(strace(text)))
    } else {
        Err(TextFault::Unknown)
    }
}

fn ab(text: &str) -> Result<Figures, TextFault> {
    let number = |name: &'static str| field(text, name).and_then(first_number);
    let count = |name| number(name).map(|value| value as u64);
    let completed = count("Complete requests:").ok_or(TextFault::Incomplete("Complete requests"));
    Ok(Figures {
        tool: "ab",
        clients: count("Concurrency Level:"),
        seconds: number("Time taken for tests:"),
        completed: Some(completed?),
        failed: count("Failed requests:"),
        non_2xx: Some(count("Non-2xx responses:").unwrap_or(0)),
        kept: count("Keep-Alive requests:"),
        bytes: count("Total transferred:"),
        body_bytes: count("HTML transferred:"),
        rate: number("Requests per second:"),
        total_ms: ab_times(text),
        software: field(text, "Server Software:")
            .filter(|name| !name.is_empty())
            .map(str::to_owned),
    })
}

/// The row `Total:` of ab's table of connection times: min, mean, deviation, median, max. ab
/// prints either whole milliseconds or, with its confidence lines off, three columns.
fn ab_times(text: &str) -> Option<Times> {
    let row = text.lines().find(|line| {
        let mut words = line.split_whitespace();
        words.next() == Some("Total:")
            && words.next().is_some_and(|word| word.parse::<f64>().is_ok())
    })?;
    let values = row
        .split_whitespace()
        .skip(1)
        .map_while(|word| word.parse().ok());
    match values.collect::<Vec<f64>>()[..] {
        [_, mean, _, median, max] => Some(Times {
            mean,
            median: Some(median),
            max,
        }),
        [_, mean, max] => Some(Times {
            mean,
            median: None,
            max,
        }),
        _ => None,
    }
}

fn wrk(text: &str) -> Figures {
    let non_2xx = field(text, "Non-2xx or 3xx responses:").and_then(first_number);
    let errors = field(text, "Socket errors:").map(numbers);
    let summary = text.lines().find(|line| line.contains(" requests in "));
    let summary = summary.map(|line| line.split_whitespace().collect::<Vec<_>>());
    let latency = text
        .lines()
        .find(|line| line.trim_start().starts_with("Latency  "));
    let latency: Vec<f64> = latency.map_or_else(Vec::new, |line| {
        line.split_whitespace().skip(1).filter_map(wrk_ms).collect()
    });
    let clients = text.lines().find(|line| line.contains("threads and"));
    let clients = clients.and_then(|line| numbers(line).get(1).copied());
    let summary_word = |at: usize| summary.as_ref().and_then(|words| words.get(at).copied());
    Figures {
        tool: "wrk",
        clients: clients.map(|count| count as u64),
        seconds: summary_word(3).and_then(wrk_ms).map(|ms| ms / 1000.0),
        completed: summary_word(0).and_then(|word| word.parse().ok()),
        failed: Some(errors.map_or(0.0, |errors| errors.iter().sum()) as u64),
        // The line counts what is neither 2xx nor 3xx, so that no line does not mean all 2xx.
        non_2xx: non_2xx.map(|count| count as u64),
        rate: field(text, "Requests/sec:").and_then(first_number),
        total_ms: match latency[..] {
            [mean, _, max, ..] => Some(Times {
                mean,
                median: None,
                max,
            }),
            _ => None,
        },
        ..Figures::default()
    }
}

/// wrk's `1.25ms`, `30.01s` or `812.00us` in milliseconds.
fn wrk_ms(word: &str) -> Option<f64> {
    let word = word.trim_end_matches(',');
    for (unit, factor) in [("us", 0.001), ("ms", 1.0), ("s", 1000.0), ("m", 60_000.0)] {
        if let Some(value) = word
            .strip_suffix(unit)
            .and_then(|value| value.parse::<f64>().ok())
        {
            return Some(value * factor);
        }
    }
    None
}

/// Rows of percent, seconds, microseconds a call, calls, errors where there were any, name.
fn strace(text: &str) -> Calls {
    let mut calls = Calls::default();
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (Some(name), Some(count)) = (words.last(), words.get(3)) else {
            continue;
        };
        let Ok(count) = count.parse::<u64>() else {
            continue;
        };
        if *name == "total" {
            continue;
        }
        calls.counts.insert((*name).to_owned(), count);
        if let Some(errors) = words.get(4).and_then(|word| word.parse::<u64>().ok()) {
            calls.errors.insert((*name).to_owned(), errors);
        }
    }
    calls
}

/// What follows `name` on the first line that begins with it.
fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines()
        .find_map(|line| line.trim_start().strip_prefix(name))
        .map(str::trim)
}

fn first_number(text: &str) -> Option<f64> {
    text.split_whitespace()
        .next()?
        .trim_end_matches('%')
        .parse()
        .ok()
}

fn numbers(text: &str) -> Vec<f64> {
    text.split(|letter: char| !letter.is_ascii_digit())
        .filter_map(|word| word.parse().ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(text: &str) -> Figures {
        match parse(text) {
            Ok(Published::Run(figures)) => figures,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn ab_with_keep_alive_and_redirects() {
        let figures = run(include_str!("../published/002-bio-1.txt"));
        assert_eq!(figures.clients, Some(500));
        assert_eq!(figures.completed, Some(5000));
        assert_eq!(figures.non_2xx, Some(5000));
        assert_eq!(figures.kept, Some(0));
        assert_eq!(figures.bytes, Some(715_000));
        let times = figures.total_ms.unwrap();
        assert_eq!(
            (times.mean, times.median, times.max),
            (386.0, Some(369.0), 992.0)
        );
    }

    #[test]
    fn ab_without_keep_alive_and_with_one_space() {
        let figures = run(include_str!("../published/000-ajp.txt"));
        assert_eq!(figures.kept, None);
        assert_eq!(figures.non_2xx, Some(0));
        assert_eq!(figures.rate, Some(1989.24));
        assert_eq!(figures.seconds, Some(50.270));
        assert_eq!(figures.total_ms.unwrap().max, 747.0);
    }

    #[test]
    fn wrk_with_errors() {
        let figures = run("Running 10s test @ http://127.0.0.1:8080/\n  \
             2 threads and 100 connections\n  \
             Thread Stats   Avg      Stdev     Max   +/- Stdev\n    \
             Latency     1.25ms  812.00us  30.01ms   91.23%\n    \
             Req/Sec    40.10k     1.20k   43.00k    70.00%\n  \
             798765 requests in 10.01s, 250.00MB read\n  \
             Socket errors: connect 0, read 3, write 0, timeout 2\n  \
             Non-2xx or 3xx responses: 17\n\
             Requests/sec:  79796.70\nTransfer/sec:     24.98MB\n");
        assert_eq!(figures.clients, Some(100));
        assert_eq!(figures.completed, Some(798_765));
        assert_eq!(figures.failed, Some(5));
        assert_eq!(figures.non_2xx, Some(17));
        assert_eq!(figures.seconds, Some(10.01));
        let times = figures.total_ms.unwrap();
        assert_eq!((times.mean, times.max), (1.25, 30.01));
    }

    #[test]
    fn strace_counts_and_errors() {
        let Ok(Published::Calls(calls)) = parse(include_str!("../published/004-on.strace.txt"))
        else {
            panic!("a table of calls")
        };
        assert_eq!(calls.counts["write"], 9919);
        assert_eq!(calls.errors["stat"], 9919);
        assert_eq!(calls.counts.values().sum::<u64>(), 288_408);
        assert_eq!(calls.errors.values().sum::<u64>(), 29_780);
    }

    #[test]
    fn other_texts_and_cut_ones_are_refused() {
        assert_eq!(parse("hello"), Err(TextFault::Unknown));
        assert_eq!(parse(""), Err(TextFault::Unknown));
        let cut = "Concurrency Level:      500\nTime taken for tests:   4.005 seconds\n";
        assert_eq!(parse(cut), Err(TextFault::Incomplete("Complete requests")));
    }
}

//! Reads the output of other tools into figures: of load generators and of `strace -c`.
//!
//! A figure that is not in the text is `None`, so that no gate takes a missing figure for zero.
//! [`crate::gate`] decides what the figures mean.
//!
//! Texts may be as people have them: with a terminal's colours, as a log whose lines begin with
//! times and names of containers, or as a whole HTML page with several reports and prose between
//! them.

mod ab;
mod autocannon;
mod calls;
mod h2load;
mod hey;
mod jmeter;
mod k6;
mod plain;
mod scan;
mod siege;
mod vegeta;
mod wrk;

use std::collections::BTreeMap;

use thiserror::Error;

/// The figures of a published text.
#[derive(Clone, Debug, PartialEq)]
pub enum PublishedText {
    /// The output of a load generator for one run.
    Run(Box<TextFigures>),
    /// A table of system calls by `strace -c`.
    Calls(Calls),
}

/// The figures of one run, as a tool has printed them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TextFigures {
    /// The name of the tool: `ab`, `wrk`, `JMeter`.
    pub tool: &'static str,
    /// The number of clients at once.
    pub clients: Option<u64>,
    /// The length of the run in seconds.
    pub seconds: Option<f64>,
    /// The length that was asked for; `None`: the text does not say, or a number of requests was asked for.
    pub asked_seconds: Option<f64>,
    /// The length of the warm-up before the run in seconds; `None`: the text names none.
    pub warm_up_s: Option<f64>,
    /// Why the tool gave up before the end, in its own words; `None`: it did not.
    pub gave_up: Option<String>,
    /// The number of clients that never had a connection.
    pub unconnected: u64,
    /// The number of requests that were answered; k6, JMeter and siege count only those with a status below 400.
    pub completed: Option<u64>,
    /// The number of requests without a response; for k6, JMeter and siege also those with a status from 400 on.
    pub failed: Option<u64>,
    /// The number of requests that took longer than the tool's timeout; some tools count their responses, too.
    pub late: Option<u64>,
    /// The number of responses whose body was not as long as the first one; ab calls them failed.
    pub other_length: Option<u64>,
    /// The checks of responses by the user's script; `None`: there were none, or the tool has no scripts.
    pub checks: Option<Checks>,
    /// The number of iterations of a script that were due but not begun, because no client was free.
    pub dropped: u64,
    /// The number of responses whose statuses and times the tool has kept; `None`: all.
    pub sampled: Option<u64>,
    /// The number of requests that ab calls failed, if the line with the reasons is missing from the text; else 0.
    pub unexplained: u64,
    /// The numbers of responses by status; empty if the tool does not distinguish them.
    pub statuses: BTreeMap<u16, u64>,
    /// The number of responses outside 200 to 299. For wrk: outside 200 to 399, and `None` if there were none.
    pub non_2xx: Option<u64>,
    /// The number of responses after which the connection was kept; `None`: keep-alive was off.
    pub kept: Option<u64>,
    /// Whether connections were to be kept; `None`: the text does not say.
    pub keep_alive: Option<bool>,
    /// All bytes received.
    pub bytes: Option<u64>,
    /// The number of bytes of bodies.
    pub body_bytes: Option<u64>,
    /// The length of the first body in bytes.
    pub document_bytes: Option<u64>,
    /// The number of responses per second.
    pub rate: Option<f64>,
    /// The mean, the median and the maximum of requests' times.
    pub total_ms: Option<Times>,
    /// The standard deviation of a request's time, in milliseconds.
    pub deviation_ms: Option<f64>,
    /// The value of the `Server` field, empty if the server sent none; `None` if the text does not say.
    pub software: Option<String>,
}

/// The times of requests, in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Times {
    /// The arithmetic mean of the requests' times.
    pub mean: f64,
    /// The median; `None` if it is not in the text.
    pub median: Option<f64>,
    /// The longest time of a request.
    pub max: f64,
    /// The largest error of the times by rounding, in milliseconds.
    pub rounding: f64,
}

/// The checks of responses by the user's own script.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Checks {
    /// The number of checks.
    pub made: u64,
    /// The number of checks that failed.
    pub failed: u64,
}

/// A table of `strace -c`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Calls {
    /// The number of calls, by name.
    pub counts: BTreeMap<String, u64>,
    /// The number of calls that failed, by name.
    pub errors: BTreeMap<String, u64>,
}

/// Why no figures could be read from a text.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum TextFault {
    /// The text has none of the lines by which reports are recognised.
    #[error(
        "this is no text of {}, and no report of `catamaran bench --json`; give the whole output of a run",
        readable()
    )]
    Unknown,
    /// The report of a tool (the first text) ends before a required line (the second text).
    #[error("the report of {0} is not complete: `{1}` is missing")]
    Incomplete(&'static str, &'static str),
}

/// The tools whose texts are read, with their versions.
fn readable() -> String {
    let versions = versions();
    let (last, others) = versions.split_last().expect("there are tools");
    format!("{} or {last}", others.join(", "))
}

/// Each tool whose texts are read, with the versions that are known to work.
#[must_use]
pub fn versions() -> [&'static str; TOOLS.len()] {
    TOOLS.map(|tool| tool.versions)
}

/// A report that was found in a text.
#[derive(Clone, Debug, PartialEq)]
pub struct Block {
    /// The line of the text in which the report begins, from 1. On an HTML page, it is the line of the report's first
    /// words.
    pub line: usize,
    /// The figures of the report, or why they cannot be read.
    pub content: Result<PublishedText, TextFault>,
}

/// The texts of published tests that are compiled in, with their names.
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

/// Reads the first report in a text.
///
/// # Errors
/// The text has no report, or it was cut.
pub fn parse(text: &str) -> Result<PublishedText, TextFault> {
    let first = blocks(text).into_iter().next();
    first.map_or(Err(TextFault::Unknown), |block| block.content)
}

/// Reads all reports in a text, which may be an HTML page, in their order.
#[must_use]
pub fn blocks(text: &str) -> Vec<Block> {
    let text = plain::plain(text);
    let mut reports: Vec<(usize, &Tool)> = Vec::new();
    for tool in &TOOLS {
        reports.extend((tool.starts)(&text).into_iter().map(|start| (start, tool)));
    }
    reports.sort_by_key(|(start, _)| *start);
    let mut blocks = Vec::new();
    for (number, (start, tool)) in reports.iter().enumerate() {
        // A report ends where the next one begins.
        let end = reports
            .get(number + 1)
            .map_or(text.len(), |(next, _)| *next);
        blocks.push(Block {
            line: text[..*start].matches('\n').count() + 1,
            content: (tool.read)(&text[*start..end]),
        });
    }
    blocks
}

/// A tool whose output can be read.
struct Tool {
    /// The name of the tool, and the versions whose texts are known to be read, as in docs/lab.md.
    versions: &'static str,
    /// Finds the bytes of a text at which reports of this tool begin. A report ends where the next one of any tool
    /// begins.
    starts: fn(&str) -> Vec<usize>,
    read: fn(&str) -> Result<PublishedText, TextFault>,
}

const TOOLS: [Tool; 10] = [
    Tool {
        versions: "ab 1.3 to 2.3",
        starts: ab::starts,
        read: ab::read,
    },
    Tool {
        versions: "wrk 2 to 4 with wrk2",
        starts: wrk::starts,
        read: wrk::read,
    },
    Tool {
        versions: "hey 0.1, oha 0.5 to 1",
        starts: hey::starts,
        read: hey::read,
    },
    Tool {
        versions: "h2load 1",
        starts: h2load::starts,
        read: h2load::read,
    },
    Tool {
        versions: "k6 0.17 to 1",
        starts: k6::starts,
        read: k6::read,
    },
    Tool {
        versions: "JMeter 2.11 to 5",
        starts: jmeter::starts,
        read: jmeter::read,
    },
    Tool {
        versions: "vegeta 12",
        starts: vegeta::starts,
        read: vegeta::read,
    },
    Tool {
        versions: "siege 3 and 4",
        starts: siege::starts,
        read: siege::read,
    },
    Tool {
        versions: "autocannon 1 to 8",
        starts: autocannon::starts,
        read: autocannon::read,
    },
    Tool {
        versions: "strace -c",
        starts: calls::starts,
        read: calls::read,
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    fn run(text: &str) -> TextFigures {
        match parse(text) {
            Ok(PublishedText::Run(figures)) => *figures,
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
        assert_eq!((figures.failed, figures.late), (Some(3), Some(2)));
        assert_eq!(figures.non_2xx, Some(17));
        assert_eq!(figures.seconds, Some(10.01));
        assert_eq!(figures.bytes, Some(250 << 20));
        let times = figures.total_ms.unwrap();
        assert_eq!((times.mean, times.max), (1.25, 30.01));
    }

    #[test]
    fn strace_counts_and_errors() {
        let Ok(PublishedText::Calls(calls)) = parse(include_str!("../published/004-on.strace.txt"))
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
        let fault = TextFault::Incomplete("ab", "Complete requests");
        assert_eq!(parse(cut), Err(fault));
    }

    #[test]
    fn hey_and_oha_differ_in_little() {
        let text = "Summary:\n  Success rate:\t100.00%\n  Total:\t2000.1234 ms\n  Slowest:\t12.5 ms\n  \
                    Fastest:\t0.0511 ms\n  Average:\t5.0000 ms\n  Requests/sec:\t1995.0000\n\n  \
                    Total data:\t1.32 MiB\n\nResponse time histogram:\n  0.051 ms [1]    |\n\n\
                    Response time distribution:\n  10.00% in 3.0 ms\n  50.00% in 4.5 ms\n\n\
                    Status code distribution:\n  [200] 3990 responses\n\nError distribution:\n  \
                    [10] aborted due to deadline\n  [2] connection closed before message completed\n";
        let figures = run(text);
        assert_eq!(
            (figures.tool, figures.completed, figures.failed),
            ("oha", Some(3990), Some(2))
        );
        let times = figures.total_ms.unwrap();
        assert_eq!(
            (times.mean, times.median, times.max),
            (5.0, Some(4.5), 12.5)
        );
        let text = text
            .replace("  Success rate:\t100.00%\n", "")
            .replace(" ms", " secs");
        assert_eq!(run(&text).tool, "hey");
        assert_eq!(run(&text).total_ms.unwrap().max, 12_500.0);
    }

    #[test]
    fn forms_of_other_versions() {
        let siege = run(
            "Transactions:\t\t        1000 hits\nAvailability:\t\t       99.01 %\n\
                         Elapsed time:\t\t        1.02 secs\nResponse time:\t\t        0.01 secs\n\
                         Transaction rate:\t      980.39 trans/sec\nConcurrency:\t\t        9.80\n\
                         Successful transactions:        1000\nFailed transactions:\t          10\n\
                         Longest transaction:\t        0.05\nShortest transaction:\t        0.00\n",
        );
        assert_eq!(
            (siege.completed, siege.failed, siege.rate),
            (Some(1000), Some(10), Some(980.39))
        );
        assert_eq!(
            siege.total_ms.map(|times| (times.mean, times.max)),
            Some((10.0, 50.0))
        );
        let k6 = run(
            "     http_req_duration..............: avg=1.5ms  min=200\u{b5}s med=1ms max=1.2s p(95)=3ms\n       \
                      { expected_response:true }...: avg=1ms min=200\u{b5}s med=1ms max=2ms p(95)=3ms\n     \
                      http_req_failed................: 25.00% \u{2713} 50       \u{2717} 150\n     \
                      http_req_waiting...............: avg=1ms\n     \
                      http_reqs......................: 200    40.5/s\n     vus............................: 5 min=5\n",
        );
        assert_eq!(
            (k6.completed, k6.failed, k6.rate),
            (Some(150), Some(50), Some(40.5))
        );
        assert_eq!(
            k6.total_ms.map(|times| (times.median, times.max)),
            Some((Some(1.0), 1200.0))
        );
        let jmeter = run(
            "summary +   500 in 00:00:03 = 166.7/s Avg: 5 Min: 0 Max: 50 Err: 0 (0.00%) Active: 4\n\
                          summary =   500 in 00:00:03 = 166.7/s Avg: 5 Min: 0 Max: 50 Err: 0 (0.00%)\n\
                          summary =  1000 in 00:01:05 =  15.4/s Avg: 6 Min: 0 Max: 60 Err: 3 (0.30%)\n",
        );
        assert_eq!(
            (jmeter.completed, jmeter.failed, jmeter.seconds),
            (Some(997), Some(3), Some(65.0))
        );
    }

    #[test]
    fn reports_of_several_tools_in_one_text() {
        let ab = include_str!("../published/004-off.txt");
        let calls = include_str!("../published/004-off.strace.txt");
        let text = format!("one\n{ab}two\n{calls}Concurrency Level: is a line of ab\n{ab}");
        let blocks = blocks(&text);
        let lines: Vec<usize> = blocks.iter().map(|block| block.line).collect();
        assert_eq!(lines, [2, 20, 44]);
        assert!(matches!(blocks[1].content, Ok(PublishedText::Calls(_))));
        assert_eq!(blocks[0].content, blocks[2].content);
    }
}

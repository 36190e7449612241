//! Writes the system calls of a run in the form of `strace -c`: for each server, and for each of its processes.
//!
//! Calls and errors are the kernel's own counts. Times are taken only by `lab run --strace`; they
//! are those from entry to exit, waiting included, as with `strace -c -w`. Without `-w` strace
//! prints the CPU time in the kernel instead.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use catamaran_gauge::{Call, Counts};
use serde::{Deserialize, Serialize};

use crate::experiment::{Experiment, Levels, PublishedFigure};
use crate::published::{self, PublishedText};
use crate::run::{Run, median_run};

/// The system calls of a run's servers, by server: `runs/N/strace.json`.
pub type Traces = BTreeMap<String, Trace>;

/// The system calls of one server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Trace {
    /// The calls of all processes of the server together.
    pub all: CallTable,
    /// The calls of each process of the server; empty if processes were not counted by themselves.
    #[serde(default)]
    pub processes: Vec<ProcessTrace>,
}

/// The system calls of one process.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ProcessTrace {
    /// The number of the process (PID).
    pub id: u32,
    /// The name of the process; empty if it had ended.
    pub name: String,
    /// The system calls of the process.
    pub calls: CallTable,
}

/// The figures of system calls, by name.
pub type CallTable = BTreeMap<String, CallRow>;

/// The figures of one call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CallRow {
    /// The number of calls.
    pub calls: u64,
    /// The number of calls that failed.
    pub errors: u64,
    /// The time between entries and exits in seconds; `None` if times were not taken.
    pub seconds: Option<f64>,
}

/// Makes a table of counts; `has_times` tells whether times were taken.
#[must_use]
pub fn table_of(counts: &Counts, has_times: bool) -> CallTable {
    let row = |(name, call): (&str, Call)| {
        let row = CallRow {
            calls: call.calls,
            errors: call.errors,
            seconds: has_times.then_some(call.time.as_secs_f64()),
        };
        (name.to_owned(), row)
    };
    counts.iter().map(row).collect()
}

/// The introduction to the tables: what they contain, and how they were made.
#[must_use]
pub fn preface(experiment: &Experiment) -> String {
    let times = if experiment.is_traced {
        "Times are those from entry to exit, waiting included, as of `strace -c -w`; strace's own without \
         -w, as published, are CPU time in the kernel, and each call stopped the process twice."
    } else {
        "Times and single processes were not counted; `lab run --strace` counts them, which costs CPU time."
    };
    format!(
        "The median run of each cell, counted in the kernel while the load was measured. {times}\n"
    )
}

/// A text with the tables of each cell's median run; published tables follow those of the server in front. `traces`
/// returns the system calls of a run by its number, counted from 0; `None` if they are not stored.
#[must_use]
pub fn text(
    experiment: &Experiment,
    runs: &[Run],
    traces: impl Fn(usize) -> Option<Traces>,
) -> String {
    let mut text = String::new();
    for cell in 0..experiment.cells.len() {
        let Some((number, run)) = median_run(runs, cell) else {
            continue;
        };
        let Some(servers) = traces(number) else {
            continue;
        };
        let label = experiment.label(cell);
        let _ = writeln!(text, "{label}, round {}", run.round + 1);
        for (server, trace) in &servers {
            of_server(&mut text, server, trace);
        }
        if !servers.is_empty() {
            for (name, table) in published_of(experiment, &experiment.cells[cell]) {
                let table = table.trim_end();
                let _ = writeln!(text, "\nPublished, one process ({name}):\n{table}");
            }
        }
        text.push('\n');
    }
    text
}

/// Writes a server's table, that of its busiest process, and a line for each of the others.
fn of_server(text: &mut String, server: &str, trace: &Trace) {
    let count = trace.processes.len();
    let scope = match count {
        0 => "all processes".to_owned(),
        1 => "the one process that called anything".to_owned(),
        count => format!("all {count} processes that called anything"),
    };
    let _ = writeln!(text, "\n{server}, {scope}:\n{}", table(&trace.all));
    if count < 2 {
        return;
    }
    let calls = |process: &&ProcessTrace| total(&process.calls).calls;
    let mut processes: Vec<&ProcessTrace> = trace.processes.iter().collect();
    processes.sort_by_key(|process| std::cmp::Reverse(calls(process)));
    let id_and_name = |process: &ProcessTrace| format!("{} {}", process.id, process.name);
    let _ = writeln!(
        text,
        "{server}, its busiest process ({}):\n{}",
        id_and_name(processes[0]).trim_end(),
        table(&processes[0].calls)
    );
    // The busiest process is one of those that are listed.
    let (listed, others) = processes[1..].split_at(count.min(LISTED) - 1);
    for process in listed {
        let CallRow { calls, errors, .. } = total(&process.calls);
        let name = id_and_name(process);
        let _ = writeln!(text, "{name}: {calls} calls, {errors} errors");
    }
    if !others.is_empty() {
        let calls: u64 = others.iter().map(calls).sum();
        let _ = writeln!(text, "{} more processes: {calls} calls", others.len());
    }
}

/// The published tables of system calls that have the levels of a cell: names and texts.
fn published_of<'a>(experiment: &'a Experiment, cell: &Levels) -> Vec<(&'a str, &'a str)> {
    let runs = experiment.published.iter().filter(|run| {
        let mut levels = run.cell.iter();
        levels.all(|(name, level)| cell.get(name) == Some(level))
    });
    let tables = runs.filter_map(|run| match &run.figures {
        PublishedFigure::Text(text)
            if matches!(published::parse(text), Ok(PublishedText::Calls(_))) =>
        {
            Some((run.name.as_str(), *text))
        }
        _ => None,
    });
    tables.collect()
}

/// A table as `strace -c` prints it, sorted by the time of calls, or by their number if there are no times.
#[must_use]
pub fn table(rows: &CallTable) -> String {
    let sum = total(rows);
    let mut sorted: Vec<(&String, &CallRow)> = rows.iter().collect();
    sorted.sort_by(|(_, one), (_, other)| {
        let seconds = |row: &CallRow| row.seconds.unwrap_or(0.0);
        let by_time = seconds(other).total_cmp(&seconds(one));
        by_time.then(other.calls.cmp(&one.calls))
    });
    let mut text = format!("{HEAD}\n{RULE}\n");
    for (name, row) in sorted {
        let _ = writeln!(text, "{}", line(row, name, sum.seconds));
    }
    let _ = writeln!(text, "{RULE}\n{}", line(&sum, "total", sum.seconds));
    text
}

/// A line of a table; `total_s` is the time of all calls, if times were taken.
fn line(row: &CallRow, name: &str, total_s: Option<f64>) -> String {
    // Without times, these columns have a dash.
    let [mut share, mut seconds, mut micros] = ["-"; 3].map(str::to_owned);
    if let (Some(row_s), Some(total_s)) = (row.seconds, total_s) {
        let part = if total_s > 0.0 { row_s / total_s } else { 0.0 };
        share = format!("{:.2}", part * 100.0);
        seconds = format!("{row_s:.6}");
        // strace cuts off the digits after the point.
        micros = format!("{:.0}", (row_s * 1e6 / row.calls.max(1) as f64).floor());
    }
    // strace leaves the column empty if no call failed.
    let errors = match row.errors {
        0 => String::new(),
        errors => errors.to_string(),
    };
    let calls = row.calls;
    format!("{share:>6} {seconds:>11} {micros:>11} {calls:>9} {errors:>9} {name}")
}

/// The sums over all calls.
fn total(rows: &CallTable) -> CallRow {
    let seconds: Vec<f64> = rows.values().filter_map(|row| row.seconds).collect();
    CallRow {
        calls: rows.values().map(|row| row.calls).sum(),
        errors: rows.values().map(|row| row.errors).sum(),
        seconds: (!seconds.is_empty()).then(|| seconds.iter().sum()),
    }
}

const HEAD: &str = "% time     seconds  usecs/call     calls    errors syscall";
const RULE: &str = "------ ----------- ----------- --------- --------- ----------------";
/// The most processes of a server that are listed.
const LISTED: usize = 10;

#[cfg(test)]
mod tests {
    use super::*;

    fn row(calls: u64, errors: u64, seconds: Option<f64>) -> CallRow {
        CallRow {
            calls,
            errors,
            seconds,
        }
    }

    #[test]
    fn a_table_is_that_of_strace() {
        let rows = CallTable::from([
            ("read".to_owned(), row(67_716, 17_737, Some(0.010_976))),
            ("accept".to_owned(), row(9997, 0, Some(0.187_941))),
        ]);
        let expected = "\
% time     seconds  usecs/call     calls    errors syscall
------ ----------- ----------- --------- --------- ----------------
 94.48    0.187941          18      9997           accept
  5.52    0.010976           0     67716     17737 read
------ ----------- ----------- --------- --------- ----------------
100.00    0.198917           2     77713     17737 total
";
        assert_eq!(table(&rows), expected);
        // Our own reader of strace's tables reads it.
        let Ok(PublishedText::Calls(read)) = published::parse(expected) else {
            panic!("a table of calls")
        };
        assert_eq!((read.counts["read"], read.errors["read"]), (67_716, 17_737));
    }

    #[test]
    fn without_times_the_most_frequent_call_is_first() {
        let rows = CallTable::from([
            ("a".to_owned(), row(1, 0, None)),
            ("b".to_owned(), row(2, 1, None)),
        ]);
        let text = table(&rows);
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[2].ends_with("2         1 b"), "{text}");
        assert!(
            lines[2].starts_with("     -           -           -"),
            "{text}"
        );
        assert!(lines[5].ends_with("3         1 total"), "{text}");
        assert!(table(&CallTable::new()).contains("0           total"));
    }

    #[test]
    fn each_cell_has_its_tables_beside_the_published() {
        let text_of = include_str!("../fixtures/keepalive.toml");
        let experiment = Experiment::read("k.toml", text_of, true).unwrap();
        let run = |cell: usize| Run {
            cell,
            ..Run::default()
        };
        let runs: Vec<Run> = (0..experiment.cells.len()).map(run).collect();
        let process = |id: u32, calls: u64| ProcessTrace {
            id,
            name: "apache2".to_owned(),
            calls: CallTable::from([("read".to_owned(), row(calls, 0, Some(0.5)))]),
        };
        let trace = Trace {
            all: CallTable::from([("read".to_owned(), row(78, 0, Some(6.0)))]),
            processes: (1..13).map(|id| process(id, u64::from(id))).collect(),
        };
        let traces = Traces::from([("httpd".to_owned(), trace)]);
        let text = text(&experiment, &runs, |run| (run == 0).then(|| traces.clone()));
        assert_eq!(text.matches(", round 1\n").count(), 1, "{text}");
        assert!(
            text.contains("httpd, all 12 processes that called anything:"),
            "{text}"
        );
        assert!(
            text.contains("httpd, its busiest process (12 apache2):"),
            "{text}"
        );
        assert!(text.contains("11 apache2: 11 calls, 0 errors\n"), "{text}");
        assert!(text.contains("2 more processes: 3 calls\n"), "{text}");
        assert!(
            text.contains("Published, one process (004-off.strace):"),
            "{text}"
        );
        assert!(text.contains("375310     37725 total"), "{text}");
        assert!(!text.contains("004-on.strace"), "{text}");
    }
}

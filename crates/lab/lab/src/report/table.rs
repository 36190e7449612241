//! Decides which figures the tables of a report show, and with how many digits.

use catamaran_chart::StripRow;

use crate::measure::{ERRORS, FAILED, Measure, ReportTable, SILENCES};
use crate::result::{CellResult, MeasureResult, ResultDocument};

/// One table of a report: its measures.
pub(super) struct Group {
    /// The title of the table.
    pub(super) title: &'static str,
    /// The names of the measures.
    pub(super) names: Vec<String>,
    /// Whether this is the table of times, which also has the deviations and the longest request.
    pub(super) is_times: bool,
}

/// The tables of cells: times, costs, and traffic between servers.
pub(super) fn groups(result: &ResultDocument) -> Vec<Group> {
    let all_names = measures(result);
    let mut groups = Vec::new();
    for (table, title) in [
        (ReportTable::Times, "Throughput and latency"),
        (ReportTable::Costs, "CPU, system calls, memory"),
        (ReportTable::Hops, "Between the servers"),
    ] {
        let mut names = all_names.clone();
        names.retain(|name| table_of(name) == table);
        if !names.is_empty() {
            groups.push(Group {
                title,
                names,
                is_times: table == ReportTable::Times,
            });
        }
    }
    groups
}

/// The names of the measures that any cell has and that tell something, in the usual order.
pub(super) fn measures(result: &ResultDocument) -> Vec<String> {
    let cells = result.cells.iter();
    let mut names: Vec<&String> = cells.flat_map(|cell| cell.measures.keys()).collect();
    let rank = |name: &str| match Measure::parse(name) {
        Ok(measure) => (false, Some(measure.rank())),
        // Measures that only another version knows are last.
        Err(_) => (true, None),
    };
    names.sort_by_key(|name| (rank(name), name.as_str()));
    names.dedup();
    names.retain(|name| !says_nothing_new(result, name));
    names.into_iter().cloned().collect()
}

/// Whether the strip of a measure is shown at once; strips of other measures are folded away.
pub(super) fn is_drawn_first(result: &ResultDocument, name: &str) -> bool {
    let is_claimed = result
        .claims
        .iter()
        .any(|claim| claim.measure.name() == name);
    is_claimed || DRAWN.contains(&name)
}

/// The table that has a measure; measures that only another version knows are in that of costs.
fn table_of(name: &str) -> ReportTable {
    Measure::parse(name).map_or(ReportTable::Costs, |measure| measure.record().table)
}

/// Whether a measure adds nothing: that of one server equals that of all servers in each cell, that
/// of one port equals all traffic to the application, or it counts failures and there were none.
fn says_nothing_new(result: &ResultDocument, name: &str) -> bool {
    if [FAILED, ERRORS, SILENCES].contains(&name) {
        return is_zero(result, name);
    }
    let Some((base, _)) = name.split_once('.') else {
        return false;
    };
    if base == "bytes" && name != UPSTREAM {
        return is_part_of_upstream(result, name);
    }
    result.cells.iter().all(
        |cell| match (cell.measures.get(base), cell.measures.get(name)) {
            (Some(of_all), Some(of_one)) => of_one.values == of_all.values,
            // The cell does not have this server.
            (Some(_), None) => true,
            // There is nothing to compare with.
            (None, _) => false,
        },
    )
}

/// Whether a measure is 0 in all runs.
fn is_zero(result: &ResultDocument, name: &str) -> bool {
    let mut measures = result
        .cells
        .iter()
        .filter_map(|cell| cell.measures.get(name));
    measures.all(|measure| measure.min == 0.0 && measure.max == 0.0)
}

/// Whether each cell has either nothing at this port, or no other traffic to the application.
fn is_part_of_upstream(result: &ResultDocument, name: &str) -> bool {
    result.cells.iter().all(|cell| {
        let Some(at_port) = cell.measures.get(name) else {
            return true;
        };
        let upstream = cell.measures.get(UPSTREAM);
        upstream.is_some_and(|upstream| at_port.max == 0.0 || at_port.values == upstream.values)
    })
}

/// The head of a measure's column: name and unit.
pub(super) fn head(name: &str) -> String {
    let unit = Measure::parse(name).map_or("", |measure| measure.unit());
    match (name, unit) {
        ("throughput", unit) => unit.to_owned(),
        (name, "") => name.to_owned(),
        (name, unit) => format!("{name} ({unit})"),
    }
}

/// The figure of one measure in one cell, as text.
pub(super) struct CellFigure {
    /// The median of the valid runs.
    pub(super) median: String,
    /// The lowest and the highest value; `None` if they look the same.
    pub(super) spread: Option<String>,
    /// The number of runs that have the measure; `None` if all have it.
    pub(super) runs: Option<String>,
}

impl CellFigure {
    /// The figure with its spread and number of runs, in one line.
    pub(super) fn line(&self) -> String {
        let beside: Vec<&str> = self.beside().collect();
        match beside[..] {
            [] => self.median.clone(),
            _ => format!("{} ({})", self.median, beside.join(", ")),
        }
    }

    /// The spread and the number of runs, if the figure has them.
    pub(super) fn beside(&self) -> impl Iterator<Item = &str> {
        let parts = [self.spread.as_deref(), self.runs.as_deref()];
        parts.into_iter().flatten()
    }
}

/// The figure of the measure `name` in a cell; `None` if the cell does not have it.
pub(super) fn figure(cell: &CellResult, name: &str) -> Option<CellFigure> {
    let measure = cell.measures.get(name)?;
    let (min, max) = (digits(measure.min), digits(measure.max));
    let count = measure.values.len();
    Some(CellFigure {
        median: digits(measure.median),
        spread: (min != max).then(|| format!("{min}..{max}")),
        runs: (count < cell.runs).then(|| format!("{count} of {} runs", cell.runs)),
    })
}

/// A column that is not of a measure: its head, and the function that reads a cell's figure.
type Extra = (&'static str, fn(&CellResult) -> Option<f64>);

/// The columns of deviations and of the longest request that any cell has. There are no claims on them.
pub(super) fn extras(result: &ResultDocument, group: &Group) -> Vec<Extra> {
    let mut extras: Vec<Extra> = vec![
        ("sd (req/s)", |cell| cell.measures.get("throughput")?.stddev),
        ("sd (ms)", |cell| cell.stddev_ms),
        ("max (ms)", |cell| cell.max_ms),
    ];
    extras.retain(|(_, figure)| {
        group.is_times && result.cells.iter().any(|cell| figure(cell).is_some())
    });
    extras
}

/// The figures of a cell in the columns `extras`, as text.
pub(super) fn of_extras(cell: &CellResult, extras: &[Extra]) -> Vec<String> {
    let figures = extras.iter().map(|(_, figure)| figure(cell));
    let texts = figures.map(|figure| figure.map_or_else(String::new, digits));
    texts.collect()
}

/// A cell as a row of a strip.
pub(super) struct MedianRow<'a> {
    label: &'a str,
    measure: &'a MeasureResult,
    median: String,
}

/// The cells that have the measure `name`, as rows of a strip.
pub(super) fn strip_rows<'a>(result: &'a ResultDocument, name: &str) -> Vec<MedianRow<'a>> {
    let row = |cell: &'a CellResult| {
        let measure = cell.measures.get(name)?;
        Some(MedianRow {
            label: &cell.label,
            measure,
            median: digits(measure.median),
        })
    };
    result.cells.iter().filter_map(row).collect()
}

impl MedianRow<'_> {
    /// The row in the form that the strip draws.
    pub(super) fn drawn(&self) -> StripRow<'_> {
        StripRow {
            label: self.label,
            values: &self.measure.values,
            median: self.measure.median,
            median_text: &self.median,
        }
    }
}

/// The explanation below all tables of cells.
pub(super) fn legend(result: &ResultDocument) -> String {
    let counts_failures = |cell: &CellResult| cell.measures.contains_key(FAILED);
    let is_without_failures = result.cells.iter().any(counts_failures) && is_zero(result, FAILED);
    let failures = if is_without_failures {
        " No request failed."
    } else {
        ""
    };
    format!(
        "Medians of valid runs, with the lowest and the highest. sd: standard deviation, of the runs' \
         throughput, and of the latencies of all requests; max: the longest request. No claim is on \
         these.{failures}"
    )
}

/// A figure as text, with three significant digits or more.
pub(crate) fn digits(value: f64) -> String {
    match value.abs() {
        0.0 => "0".to_owned(),
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        size if size >= 1.0 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

const UPSTREAM: &str = "bytes.upstream";

const DRAWN: [&str; 4] = ["throughput", "p50", "p99", "cpu"];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Experiment;
    use crate::result::StoredResult;
    use crate::run::Run;

    fn result(measures: impl Fn(usize) -> Vec<(&'static str, f64)>) -> ResultDocument {
        let text = include_str!("../../fixtures/keepalive.toml");
        let experiment = Experiment::read("k.toml", text, true).unwrap();
        let run = |cell: usize, round: usize| Run {
            cell,
            round,
            measures: measures(cell)
                .into_iter()
                .map(|(name, value)| (name.to_owned(), value))
                .collect(),
            ..Run::default()
        };
        let cells = experiment.cells.len();
        let runs = (0..2).flat_map(|round| (0..cells).map(move |cell| run(cell, round)));
        let runs = runs.collect();
        ResultDocument::of(&StoredResult::of(experiment, runs), true)
    }

    #[test]
    fn tables_are_of_times_of_costs_and_of_hops() {
        let result = result(|cell| {
            vec![
                ("time_wait", 0.5),
                ("cpu", 50.0),
                ("cpu.httpd", 50.0),
                ("cpu@0.5", 60.0),
                ("p99@0.5", 7.0),
                ("throughput", 9.0),
                ("failed", 0.0),
                ("bytes.app.http", if cell == 0 { 0.0 } else { 7.0 }),
                ("bytes.app.ajp", if cell == 0 { 8.0 } else { 0.0 }),
                ("bytes.upstream", if cell == 0 { 8.0 } else { 7.0 }),
            ]
        });
        let groups: Vec<Vec<String>> = groups(&result).into_iter().map(|it| it.names).collect();
        assert_eq!(
            groups,
            [
                vec!["throughput", "p99@0.5"],
                vec!["cpu", "cpu@0.5"],
                vec!["bytes.upstream", "time_wait"],
            ]
        );
        assert!(legend(&result).ends_with("No request failed."));
        assert!(is_drawn_first(&result, "memory") && !is_drawn_first(&result, "time_wait"));
    }

    #[test]
    fn a_figure_says_what_it_is_of() {
        let mut result = result(|_| vec![("p99", 7.0)]);
        let cell = &mut result.cells[0];
        assert_eq!(figure(cell, "p99").unwrap().line(), "7.00");
        let p99 = cell.measures.get_mut("p99").unwrap();
        (p99.max, p99.values) = (9.0, vec![7.0]);
        assert_eq!(
            figure(cell, "p99").unwrap().line(),
            "7.00 (7.00..9.00, 1 of 2 runs)"
        );
        assert!(figure(cell, "cpu").is_none());
        cell.stddev_ms = Some(1.25);
        let groups = groups(&result);
        let extras = extras(&result, &groups[0]);
        assert_eq!(extras.len(), 1, "no cell has the others");
        assert_eq!(of_extras(&result.cells[0], &extras), ["1.25"]);
        assert_eq!(of_extras(&result.cells[1], &extras), [""]);
    }
}

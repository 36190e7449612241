//! Writes plots over time: for each measure a panel for each cell, all on one pair of axes.

use std::collections::BTreeSet;

use catamaran_chart::{Axis, Panel, Steps, bar_key, escaped, line_key, panels, shaded_key};

use super::page::Page;
use crate::report::table::digits;
use crate::result::{CellResult, OverTime, ResultDocument};

/// One measure over time: a panel for each cell.
struct Plot {
    title: &'static str,
    unit: &'static str,
    /// The rows of [`OverTime`] that are drawn, with their names in the legend. A name that ends in
    /// a dot stands for a row of each server.
    rows: &'static [(&'static str, &'static str)],
    /// The beginning of the names of rows whose sum hangs below the axis as bars; `None`: there are no bars.
    bars: Option<&'static str>,
}

/// A cell with its values over time.
struct PanelCell<'a> {
    cell: &'a CellResult,
    over: &'a OverTime,
    /// The levels that distinguish the cell from its neighbours.
    label: String,
}

/// Writes the section of plots; if nothing was sampled, a sentence that says so.
pub(super) fn section(page: &mut Page, result: &ResultDocument) {
    let (first, others) = panel_cells(result);
    if first.is_empty() && others.is_empty() {
        page.put(format_args!(
            "<p>The samples of the runs are not at hand: they stand in <code>runs/</code> beside the \
             result, where it was made.</p>\n"
        ));
        return;
    }
    page.put(format_args!(
        "<p>The median run of each cell; seconds since its load began. All panels of a measure have \
         the same axes. Steps: means of a second, or of some; memory and heap as they stood at its \
         end.</p>\n"
    ));
    let mut cells = first.iter().chain(&others);
    if cells.any(|cell| !cell.over.silences_s.0.is_empty()) {
        let key = shaded_key();
        page.put(format_args!(
            "<p class=\"keys\"><span>{key}no answer came although requests waited</span></p>\n"
        ));
    }
    let mut zero_names = Vec::new();
    for (number, measure) in MEASURES.iter().enumerate() {
        let is_above_zero = |(row, _): &(String, String)| {
            let cells = first.iter().chain(&others);
            let mut rows = cells.filter_map(|cell| cell.over.rows.get(row));
            rows.any(|row| row.0.iter().any(|value| *value > ZERO_MAX))
        };
        let (drawn, zero): (Vec<_>, Vec<_>) =
            measure.lines(result).into_iter().partition(is_above_zero);
        if !drawn.is_empty() {
            draw(page, number, measure, &drawn, &first, &others);
        }
        for (_, line) in zero {
            zero_names.push(if drawn.is_empty() {
                measure.title.to_owned()
            } else {
                format!("{}: {line}", measure.title)
            });
        }
    }
    // Several lines of one measure without a plot have one name.
    zero_names.dedup();
    if !zero_names.is_empty() {
        let names = escaped(&zero_names.join("; "));
        page.put(format_args!("<p>Zero in all cells: {names}.</p>\n"));
    }
}

/// The cells that differ from the control in at most the first factor, and the other cells.
fn panel_cells(result: &ResultDocument) -> (Vec<PanelCell<'_>>, Vec<PanelCell<'_>>) {
    let control = result.cells.get(result.control);
    let mut factors = result.factors.iter();
    let first_factor = factors.find(|factor| factor.levels.len() > 1);
    let name = first_factor.map_or("", |factor| factor.name.as_str());
    let (mut first, mut others) = (Vec::new(), Vec::new());
    for cell in &result.cells {
        let Some(over) = &cell.over_time else {
            continue;
        };
        let is_first = control.is_none_or(|control| {
            let mut levels = cell.levels.iter();
            levels
                .all(|(factor, level)| factor == name || control.levels.get(factor) == Some(level))
        });
        let label = match cell.levels.get(name) {
            Some(level) if is_first => format!("{name}={level}"),
            _ => cell.label.clone(),
        };
        let cells = if is_first { &mut first } else { &mut others };
        cells.push(PanelCell { cell, over, label });
    }
    (first, others)
}

/// Writes the plot `number`: its axes, its legend, the panels of the first cells, and those of the others folded away.
fn draw(
    page: &mut Page,
    number: usize,
    measure: &Plot,
    names: &[(String, String)],
    first: &[PanelCell<'_>],
    others: &[PanelCell<'_>],
) {
    let cells = first.iter().chain(others);
    let all: Vec<Panel> = cells.map(|cell| measure.panel(names, cell)).collect();
    let id = format!("over-time-{number}");
    let (x, y) = (Axis::linear("s"), Axis::linear(measure.unit));
    let drawn = panels(&id, &x, &y, &all);
    page.put(format_args!(
        "<h3>{} <small>({})</small></h3>\n{}",
        escaped(measure.title),
        measure.unit,
        drawn.axes
    ));
    let is_plain = matches!(measure.rows, [(row, _)] if !row.ends_with('.'));
    let bars = all.iter().filter_map(|panel| panel.bars.as_ref());
    let deepest = bars.flat_map(|bars| bars.values.iter().copied());
    legend(page, names, is_plain, deepest.reduce(f64::max));
    let (of_first, of_others) = drawn.panels.split_at(first.len());
    row(page, first, of_first);
    if !others.is_empty() {
        page.put(format_args!(
            "<details><summary>{} other cells</summary>\n",
            others.len()
        ));
        row(page, others, of_others);
        page.put(format_args!("</details>\n"));
    }
}

/// Writes the names of the lines, and `deepest`, the largest value of the bars, if there are any. A plot with a single
/// line that its title names already (`is_plain`), and without bars, needs no legend.
fn legend(page: &mut Page, names: &[(String, String)], is_plain: bool, deepest: Option<f64>) {
    if is_plain && deepest.is_none() {
        return;
    }
    page.put(format_args!("<p class=\"keys\">"));
    for (number, (_, name)) in names.iter().enumerate() {
        let (key, name) = (line_key(number), escaped(name));
        page.put(format_args!("<span>{key}{name}</span> "));
    }
    if let Some(deepest) = deepest {
        let (key, deepest) = (bar_key(), digits(deepest));
        page.put(format_args!(
            "<span>{key}time in garbage collection (deepest: {deepest} ms/s)</span>"
        ));
    }
    page.put(format_args!("</p>\n"));
}

/// Writes the panels of `cells` side by side, each below its label.
fn row(page: &mut Page, cells: &[PanelCell<'_>], panels: &[String]) {
    page.put(format_args!("<div class=\"panels\">\n"));
    for (cell, panel) in cells.iter().zip(panels) {
        let label = escaped(&cell.label);
        page.put(format_args!("<div><small>{label}</small>{panel}</div>\n"));
    }
    page.put(format_args!("</div>\n"));
}

impl Plot {
    /// The rows of this plot that any cell has, with their names in the legend.
    fn lines(&self, result: &ResultDocument) -> Vec<(String, String)> {
        let cells = result.cells.iter();
        let over_time = cells.filter_map(|cell| cell.over_time.as_ref());
        let rows = over_time.flat_map(|over| over.rows.keys());
        let known: BTreeSet<&str> = rows.map(String::as_str).collect();
        let mut lines = Vec::new();
        for (row, name) in self.rows {
            if !row.ends_with('.') {
                if known.contains(row) {
                    lines.push(((*row).to_owned(), (*name).to_owned()));
                }
                continue;
            }
            for key in &known {
                if let Some(server) = key.strip_prefix(row) {
                    lines.push(((*key).to_owned(), server.to_owned()));
                }
            }
        }
        lines
    }

    /// The panel of one cell with the rows `names`; a row that the cell does not have is empty.
    fn panel(&self, names: &[(String, String)], cell: &PanelCell<'_>) -> Panel {
        let mut lines = Vec::new();
        for (row, _) in names {
            let values = cell.over.rows.get(row);
            lines.push(Steps {
                edges: cell.over.edges(row),
                values: values.map_or_else(Vec::new, |values| values.0.clone()),
            });
        }
        Panel {
            title: cell.cell.label.clone(),
            lines,
            bars: self.bars.and_then(|base| bars(base, cell.over)),
            shaded: cell.over.silences(),
        }
    }
}

/// The sum of all rows whose names begin with `base`; `None` if there are none, or all are zero.
fn bars(base: &str, over: &OverTime) -> Option<Steps> {
    let of_base = over.rows.iter().filter(|(name, _)| name.starts_with(base));
    let mut sums: Vec<f64> = Vec::new();
    for (_, row) in of_base {
        // All sampled rows have as many values, so only the first one changes the length.
        sums.resize(row.0.len(), 0.0);
        for (sum, value) in sums.iter_mut().zip(&row.0) {
            *sum += value;
        }
    }
    sums.iter().any(|sum| *sum > 0.0).then(|| Steps {
        edges: over.edges_s.0.clone(),
        values: sums,
    })
}

const MEASURES: [Plot; 13] = [
    Plot {
        title: "Answers",
        unit: "1/s",
        rows: &[("answers", "answers")],
        bars: Some("collecting."),
    },
    Plot {
        title: "99th percentile of each second's latencies",
        unit: "ms",
        rows: &[("p99", "p99")],
        bars: None,
    },
    Plot {
        title: "CPU of the machine",
        unit: "% of all cores",
        rows: &[
            ("cpu.user", "user"),
            ("cpu.system", "system"),
            ("cpu.wait", "wait"),
            ("cpu.steal", "steal"),
        ],
        bars: None,
    },
    Plot {
        title: "CPU of each server",
        unit: "% of a core",
        rows: &[("server.", "")],
        bars: None,
    },
    Plot {
        title: "Network",
        unit: "MiB/s sent",
        rows: &[("network.sent", "sent")],
        bars: None,
    },
    Plot {
        title: "Packets",
        unit: "1/s sent",
        rows: &[("network.packets", "sent")],
        bars: None,
    },
    Plot {
        title: "Disks",
        unit: "MiB/s",
        rows: &[("disk.read", "read"), ("disk.written", "written")],
        bars: None,
    },
    Plot {
        title: "Disk transfers",
        unit: "1/s",
        rows: &[("disk.transfers", "reads and writes")],
        bars: None,
    },
    Plot {
        title: "Free memory",
        unit: "MiB",
        rows: &[("memory.free", "free")],
        bars: None,
    },
    Plot {
        title: "Slab",
        unit: "MiB",
        rows: &[("memory.slab", "slab")],
        bars: None,
    },
    Plot {
        title: "TCP buffers of the machine",
        unit: "MiB",
        rows: &[("memory.tcp", "TCP")],
        bars: None,
    },
    Plot {
        title: "Heap in use",
        unit: "MiB",
        rows: &[("heap.", "")],
        bars: None,
    },
    Plot {
        title: "Garbage collection",
        unit: "ms/s",
        rows: &[("collecting.", "")],
        bars: None,
    },
];

/// The largest value that still counts as zero: a row that never exceeds it is not drawn.
const ZERO_MAX: f64 = 0.0005;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Experiment;
    use crate::result::StoredResult;
    use crate::run::{Run, Second};
    use crate::sample::{CoreSample, JvmSample, Sample};

    fn result() -> (ResultDocument, Vec<Run>) {
        let text = include_str!("../../../fixtures/keepalive.toml");
        let experiment = Experiment::read("k.toml", text, true).unwrap();
        let run = |cell: usize| Run {
            cell,
            measures: [("throughput".to_owned(), 100.0)].into(),
            seconds: vec![
                Second {
                    completed: 100,
                    p99_ms: None
                };
                3
            ],
            ..Run::default()
        };
        let runs: Vec<Run> = (0..experiment.cells.len()).map(run).collect();
        let result = ResultDocument::of(&StoredResult::of(experiment, runs.clone()), true);
        (result, runs)
    }

    fn samples(busy: f64) -> String {
        let sample = |second: u32| {
            let time = f64::from(second);
            let core = CoreSample {
                user: time * busy,
                total: time,
                ..CoreSample::default()
            };
            let jvm = JvmSample {
                heap: 32 << 20,
                collecting_s: time * 0.01,
                ..JvmSample::default()
            };
            Sample {
                time_s: time,
                cores: vec![core],
                servers: [("httpd<".to_owned(), time * busy)].into(),
                jvms: [("java".to_owned(), jvm)].into(),
                ..Sample::default()
            }
        };
        let line = |second| serde_json::to_string(&sample(second)).unwrap() + "\n";
        (0..4).map(line).collect()
    }

    fn page(result: &ResultDocument) -> String {
        let mut page = Page::begin("");
        section(&mut page, result);
        page.end()
    }

    #[test]
    fn each_measure_has_a_panel_of_each_cell_on_one_pair_of_axes() {
        let (mut result, runs) = result();
        // The run in cell 1 is the only one whose samples are lost.
        result.add_over_time(&runs, |run| (run != 1).then(|| samples(0.1 * run as f64)));
        let cells = result.cells.len();
        assert!(cells > 3 && result.cells[1].over_time.is_none());
        let page = page(&result);
        let cpu = page
            .split("<h3>")
            .find(|it| it.starts_with("CPU of the machine"))
            .unwrap();
        assert_eq!(cpu.matches("<symbol").count(), 1, "{cpu}");
        assert_eq!(cpu.matches("<use ").count(), cells - 1, "{cpu}");
        assert!(cpu.contains("</svg>user</span>"), "{cpu}");
        assert!(
            page.contains("</svg>time in garbage collection (deepest: 10.0 ms/s)"),
            "{page}"
        );
        assert!(
            page.contains("<h3>Garbage collection <small>(ms/s)"),
            "{page}"
        );
        for title in ["Network", "Disks", "Slab"] {
            assert!(
                !page.contains(&format!("<h3>{title} <small>")),
                "{title}: {page}"
            );
        }
        assert!(
            page.contains(
                "<p>Zero in all cells: CPU of the machine: system; CPU of the machine: \
                 wait; CPU of the machine: steal; TCP buffers of the machine.</p>"
            ),
            "{page}"
        );
        assert!(
            page.contains("httpd&lt;") || !page.contains("httpd<"),
            "{page}"
        );
    }

    #[test]
    fn a_silence_is_shaded_in_each_panel_of_its_cell() {
        let (mut result, mut runs) = result();
        runs[2].silences = vec![[1.0, 1.5]];
        result.add_over_time(&runs, |_| Some(samples(0.1)));
        let page = page(&result);
        let gloss = "</svg>no answer came although requests waited</span>";
        assert_eq!(page.matches(gloss).count(), 1, "{page}");
        let shaded = |part: &str| part.matches("<rect class=\"shaded\" x=").count();
        let plots: Vec<usize> = page.split("<h3>").skip(1).map(shaded).collect();
        assert!(
            plots.len() > 2 && plots.iter().all(|count| *count == 1),
            "{plots:?}"
        );
    }

    #[test]
    fn a_result_without_samples_says_so() {
        let (mut result, runs) = result();
        result.add_over_time(&runs, |_| None);
        let page = page(&result);
        assert!(
            page.contains("The samples of the runs are not at hand"),
            "{page}"
        );
        assert!(!page.contains("<h3>"), "{page}");
        // Such as one that was committed before there were plots.
        let mut json = serde_json::to_value(&result).unwrap();
        for cell in json["cells"].as_array_mut().unwrap() {
            cell.as_object_mut().unwrap().remove("over_time");
        }
        let read: ResultDocument = serde_json::from_value(json).unwrap();
        assert_eq!(read, result);
    }
}

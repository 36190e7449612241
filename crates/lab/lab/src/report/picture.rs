//! Draws one measure of all cells as an SVG file, such as for a README.

use catamaran_chart::{StripRow, strip_file};

use super::table::{self, MedianRow};
use crate::result::ResultDocument;

/// Draws the measure `name` of all cells: a dot for each run, a stroke at the median. `None` if no cell has it.
#[must_use]
pub fn picture(result: &ResultDocument, name: &str) -> Option<String> {
    let rows = table::strip_rows(result, name);
    let rows: Vec<StripRow<'_>> = rows.iter().map(MedianRow::drawn).collect();
    (!rows.is_empty()).then(|| strip_file(&table::head(name), &rows, WIDTH))
}

/// The width of a README without its margins, in pixels.
const WIDTH: f64 = 820.0;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Experiment;
    use crate::result::StoredResult;
    use crate::run::Run;

    #[test]
    fn a_file_has_its_own_style_and_a_row_for_each_cell() {
        let text = include_str!("../../fixtures/keepalive.toml");
        let experiment = Experiment::read("k.toml", text, true).unwrap();
        let run = |cell: usize| Run {
            cell,
            measures: [("cpu".to_owned(), 50.0 + cell as f64)].into(),
            ..Run::default()
        };
        let runs = (0..experiment.cells.len()).map(run).collect();
        let result = ResultDocument::of(&StoredResult::of(experiment, runs), true);
        let svg = picture(&result, "cpu").unwrap();
        assert!(
            svg.starts_with("<svg ") && svg.trim_end().ends_with("</svg>"),
            "{svg}"
        );
        assert!(
            svg.contains("xmlns=\"http://www.w3.org/2000/svg\""),
            "{svg}"
        );
        assert!(
            svg.contains("<style>") && svg.contains("svg.strip .dot"),
            "{svg}"
        );
        for cell in &result.cells {
            assert!(svg.contains(&cell.label), "{}", cell.label);
        }
        assert_eq!(picture(&result, "p99"), None);
    }
}

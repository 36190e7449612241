//! The result of a long run: each criterion with its figure, and whether all were met.

/// The criteria of one siege, in the order in which they were judged.
#[derive(Debug, Default)]
pub struct Verdict {
    rows: Vec<Row>,
}

#[derive(Debug)]
struct Row {
    criterion: String,
    figure: String,
    met: bool,
}

impl Verdict {
    /// Adds a criterion: `figure` is the value that was seen, `met` whether it is good.
    pub fn judge(&mut self, criterion: &str, figure: impl ToString, met: bool) {
        self.rows.push(Row {
            criterion: criterion.to_owned(),
            figure: figure.to_string(),
            met,
        });
    }

    /// Adds the criterion that something never happened; `times` says how often it did.
    pub fn never(&mut self, what: &str, times: u64) {
        self.judge(&format!("no {what}"), times, times == 0);
    }

    /// Adds the criterion that `figure` is at most `limit`.
    pub fn at_most(&mut self, what: &str, figure: f64, limit: f64) {
        let met = figure <= limit;
        self.judge(&format!("{what} <= {limit}"), format!("{figure:.3}"), met);
    }

    /// Adds the criterion that `figure` is at least `limit`.
    pub fn at_least(&mut self, what: &str, figure: f64, limit: f64) {
        let met = figure >= limit;
        self.judge(&format!("{what} >= {limit}"), format!("{figure:.3}"), met);
    }

    /// Prints all criteria; `true` if there is at least one and all are met.
    #[expect(clippy::print_stdout, reason = "it is the report")]
    pub fn print(&self) -> bool {
        for row in &self.rows {
            let word = if row.met { "ok  " } else { "FAIL" };
            println!("{word}  {}: {}", row.criterion, row.figure);
        }
        !self.rows.is_empty() && self.rows.iter().all(|row| row.met)
    }
}

//! The figures of a row, and their summary.

use std::fmt;

use catamaran_stats::{Spread, signed_rank};

use crate::row::Row;
use crate::stand::FRONTS;

/// The figures of a row, of all rounds so far.
#[derive(Debug)]
pub(crate) struct Table {
    pub(crate) row: &'static Row,
    rounds: Vec<[f64; FRONTS.len()]>,
}

impl Table {
    pub(crate) fn new(row: &'static Row) -> Self {
        Self {
            row,
            rounds: Vec::new(),
        }
    }

    /// Measures each front once; every second round is in the reverse order.
    pub(crate) fn add(
        &mut self,
        round: usize,
        measure: impl Fn(usize) -> anyhow::Result<f64>,
    ) -> anyhow::Result<()> {
        let mut figures = [0.0; FRONTS.len()];
        for turn in 0..FRONTS.len() {
            let front = if round.is_multiple_of(2) {
                turn
            } else {
                FRONTS.len() - 1 - turn
            };
            figures[front] = measure(front)?;
        }
        self.rounds.push(figures);
        Ok(())
    }

    /// The figures of the last round.
    pub(crate) fn last(&self) -> String {
        let figures = self.rounds.last().into_iter().flatten();
        let figures: Vec<String> = figures.map(|it| format!("{it:9.1}")).collect();
        format!("{:12} {}", self.row.name, figures.join(" "))
    }

    /// The median of a front's figures.
    fn median(&self, front: usize) -> f64 {
        let of_front: Vec<f64> = self.rounds.iter().map(|round| round[front]).collect();
        Spread::of(&of_front).map_or(f64::NAN, |it| it.median)
    }

    /// The ratio of our figure to that of another front, with its interval.
    fn ratio(&self, front: usize) -> String {
        let log = |round: &[f64; FRONTS.len()]| (round[0] / round[front]).ln();
        let logs: Vec<f64> = self.rounds.iter().map(log).collect();
        signed_rank::centre(&logs, LEVEL).map_or_else(String::new, |it| {
            let [low, ratio, high] = [it.low, it.estimate, it.high].map(f64::exp);
            format!("{ratio:.2} [{low:.2}..{high:.2}]")
        })
    }
}

/// Writes a line of Markdown.
impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "| {} |", self.row.what)?;
        for front in 0..FRONTS.len() {
            write!(f, " {:.1} |", self.median(front))?;
        }
        let ratios = [1, 2].map(|front| self.ratio(front));
        write!(f, " {} | {:.2} |", ratios.join(" | "), self.row.goal)
    }
}

const LEVEL: f64 = 0.95;

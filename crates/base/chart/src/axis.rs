//! The axes of charts: the range of values that they cover, where on the axis a value lies, and
//! which ticks and labels are drawn.

/// The horizontal or vertical axis of a chart: its label and its kind of scale.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// The label of the axis: what it shows, with the unit.
    pub label: String,
    kind: Kind,
}

#[derive(Clone, Debug, PartialEq)]
enum Kind {
    /// Starts at zero, evenly divided, and ends at this value or above.
    Linear { end: f64 },
    /// Logarithmic, covering whole decades.
    Log,
    /// Runs from 0 to 1, with ticks only at these positions, each with its label.
    Places(Vec<(f64, String)>),
}

/// An axis with a fixed range of values, which maps a value to a coordinate in pixels.
#[derive(Clone, Debug)]
pub(crate) struct Scale<'a> {
    kind: &'a Kind,
    /// The ends of the range; their decimal logarithms if the axis is logarithmic.
    low: f64,
    high: f64,
    /// The pixel coordinates of the ends.
    from: f64,
    to: f64,
}

impl Axis {
    /// A linear axis, which starts at zero.
    #[must_use]
    pub fn linear(label: &str) -> Self {
        Self::linear_to(label, 0.0)
    }

    /// A linear axis, which starts at zero and ends at `end`, also if no value is as large.
    #[must_use]
    pub fn linear_to(label: &str, end: f64) -> Self {
        Self::new(label, Kind::Linear { end })
    }

    /// A logarithmic axis, divided by powers of ten.
    #[must_use]
    pub fn log(label: &str) -> Self {
        Self::new(label, Kind::Log)
    }

    /// An axis from 0 to 1 that has only these ticks, each a position with its label.
    #[must_use]
    pub fn places(label: &str, ticks: Vec<(f64, String)>) -> Self {
        Self::new(label, Kind::Places(ticks))
    }

    /// The value at which the axis ends at least; 0: none.
    fn end(&self) -> f64 {
        match self.kind {
            Kind::Linear { end } => end,
            Kind::Log | Kind::Places(_) => 0.0,
        }
    }

    fn new(label: &str, kind: Kind) -> Self {
        Self {
            label: label.to_owned(),
            kind,
        }
    }

    /// Chooses the range that covers these values and lays it between the pixel coordinates
    /// `from` and `to`.
    pub(crate) fn scale(&self, values: impl Iterator<Item = f64>, from: f64, to: f64) -> Scale<'_> {
        let is_log = self.kind == Kind::Log;
        let (mut smallest, mut largest) = (f64::INFINITY, self.end());
        for value in values {
            if value.is_finite() && (!is_log || value > 0.0) {
                smallest = smallest.min(value);
                largest = largest.max(value);
            }
        }
        // Without a value that can be shown, the axis ends at 1.
        let largest = if largest > 0.0 { largest } else { 1.0 };
        let (low, high) = match self.kind {
            Kind::Linear { .. } => (0.0, largest),
            Kind::Places(_) => (0.0, 1.0),
            Kind::Log => {
                let first_decade = smallest.min(largest).log10().floor();
                let last_decade = largest.log10().ceil();
                (first_decade, last_decade.max(first_decade + 1.0))
            }
        };
        Scale {
            kind: &self.kind,
            low,
            high,
            from,
            to,
        }
    }
}

impl Scale<'_> {
    /// The pixel coordinate of a value; `None` if the axis cannot show it, such as zero on a
    /// logarithmic axis.
    pub(crate) fn at(&self, value: f64) -> Option<f64> {
        let position = match self.kind {
            Kind::Log if value > 0.0 => value.log10(),
            Kind::Log => return None,
            Kind::Linear { .. } | Kind::Places(_) => value,
        };
        position.is_finite().then(|| self.pixel(position))
    }

    /// The pixel coordinate of a value, or of the axis' end if the value lies beyond it.
    pub(crate) fn at_most_end(&self, value: f64) -> Option<f64> {
        let at = self.at(value)?;
        Some(at.min(self.from.max(self.to)))
    }

    /// The ticks as pairs of a pixel coordinate and a label: at most about `count` of them.
    pub(crate) fn ticks(&self, count: usize) -> Vec<(f64, String)> {
        let count = count.max(1);
        match self.kind {
            Kind::Linear { .. } => {
                let step = round_step(self.high / count as f64);
                // The tolerance keeps a tick at the end of the axis.
                let last = (self.high / step + 1e-9).floor() as u32;
                let values = (0..=last).map(|number| f64::from(number) * step);
                values
                    .map(|value| (self.pixel(value), number(value)))
                    .collect()
            }
            Kind::Log => {
                let decades = (self.high - self.low).round() as usize;
                let step = decades.div_ceil(count).max(1);
                let mut ticks = Vec::new();
                for decade in (0..=decades).step_by(step) {
                    let power = self.low + decade as f64;
                    ticks.push((self.pixel(power), number(10_f64.powf(power))));
                }
                ticks
            }
            Kind::Places(ticks) => {
                let step = ticks.len().div_ceil(count).max(1);
                let shown = ticks.iter().step_by(step);
                shown
                    .map(|(position, label)| (self.pixel(*position), label.clone()))
                    .collect()
            }
        }
    }

    /// The pixel coordinate of a position between `low` and `high`, which on a logarithmic axis are powers of ten.
    fn pixel(&self, position: f64) -> f64 {
        self.from + (position - self.low) / (self.high - self.low) * (self.to - self.from)
    }
}

/// A round distance between ticks: the smallest of 1, 2 and 5 times a power of ten that is not
/// below `least`, with a thousandth of tolerance. `least` must be positive.
#[must_use]
pub fn round_step(least: f64) -> f64 {
    let power = 10_f64.powf(least.log10().floor());
    let mut factors = [1.0, 2.0, 5.0].into_iter();
    let factor = factors.find(|factor| factor * power >= least * 0.999);
    factor.unwrap_or(10.0) * power
}

/// A short label for a number, such as `1.5G`.
fn number(value: f64) -> String {
    match value {
        value if value >= 1e9 => format!("{}G", short(value / 1e9)),
        value if value >= 1e6 => format!("{}M", short(value / 1e6)),
        value if value >= 1e4 => format!("{}k", short(value / 1e3)),
        value => short(value),
    }
}

fn short(value: f64) -> String {
    let text = format!("{value:.6}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(axis: &Axis, values: &[f64], count: usize) -> Vec<String> {
        let scale = axis.scale(values.iter().copied(), 0.0, 100.0);
        scale
            .ticks(count)
            .into_iter()
            .map(|(_, label)| label)
            .collect()
    }

    #[test]
    fn labels_are_round_and_few() {
        let linear = Axis::linear("s");
        assert_eq!(labels(&linear, &[9.3], 5), ["0", "2", "4", "6", "8"]);
        assert_eq!(labels(&linear, &[48_000.0], 3), ["0", "20k", "40k"]);
        assert_eq!(labels(&linear, &[], 2), ["0", "0.5", "1"]);
        // Nothing came in the last six of ten seconds.
        let whole = Axis::linear_to("s", 10.0);
        assert_eq!(labels(&whole, &[1.0, 4.0], 2), ["0", "5", "10"]);
        let log = Axis::log("ms");
        assert_eq!(
            labels(&log, &[0.3, 250.0], 5),
            ["0.1", "1", "10", "100", "1000"]
        );
        assert_eq!(labels(&log, &[0.3, 250.0], 2), ["0.1", "10", "1000"]);
    }

    #[test]
    fn a_value_has_its_place() {
        let log = Axis::log("ms");
        let scale = log.scale([1.0, 100.0].into_iter(), 0.0, 100.0);
        assert_eq!(scale.at(10.0), Some(50.0));
        assert_eq!(scale.at(0.0), None);
        let linear = Axis::linear("s");
        let scale = linear.scale([8.0].into_iter(), 100.0, 0.0);
        assert_eq!(scale.at(2.0), Some(75.0));
    }
}

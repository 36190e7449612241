//! Little's law as a check of a run's own figures: on average, rate × latency requests are under
//! way. A run whose figures contradict it lost requests, or counted some twice.

/// Whether the requests found under way are those that rate and latency predict.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LittlesLaw {
    /// Requests under way on average, as found or as set.
    pub in_flight: f64,
    /// Rate × mean latency.
    pub predicted: f64,
}

impl LittlesLaw {
    /// Of a run with `rate` requests per second of `mean_latency_s` seconds each, with `in_flight`
    /// of them under way on average.
    #[must_use]
    pub fn of(in_flight: f64, rate: f64, mean_latency_s: f64) -> Self {
        Self {
            in_flight,
            predicted: rate * mean_latency_s,
        }
    }

    /// Whether both agree to 5 %.
    #[must_use]
    pub fn holds(&self) -> bool {
        (self.in_flight - self.predicted).abs() <= MARGIN * self.in_flight.max(self.predicted)
    }
}

const MARGIN: f64 = 0.05;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_within_five_percent() {
        assert!(LittlesLaw::of(100.0, 10_000.0, 0.01).holds());
        assert!(LittlesLaw::of(100.0, 9600.0, 0.01).holds());
        assert!(!LittlesLaw::of(100.0, 9400.0, 0.01).holds());
        assert!(!LittlesLaw::of(100.0, 10_600.0, 0.01).holds());
        assert!(LittlesLaw::of(0.0, 0.0, 0.0).holds());
    }
}

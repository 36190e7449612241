//! Little's law as a check of a run's own figures: on average, rate × latency requests are under
//! way. A run whose figures contradict it lost requests, or counted some twice.

/// Whether clients were busy for as long as they should have been.
///
/// Little's law says that the requests under way are rate times latency. In a closed loop those under
/// way are known without looking at latencies: one for each client, all the time. So the sum of the
/// latencies must be clients times time; less means that clients idled, or that requests are missing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LittlesLaw {
    /// Clients times seconds: how long clients had a request to send or to wait for.
    pub expected_s: f64,
    /// Sum of the latencies, in seconds.
    pub busy_s: f64,
}

impl LittlesLaw {
    /// Whether both agree to 5 %.
    #[must_use]
    pub fn holds(&self) -> bool {
        (self.expected_s - self.busy_s).abs() <= MARGIN * self.expected_s.max(self.busy_s)
    }

    /// The share of the time in which clients had no request under way, 0 to 1.
    #[must_use]
    pub fn idle(&self) -> f64 {
        if self.expected_s > 0.0 {
            (1.0 - self.busy_s / self.expected_s).clamp(0.0, 1.0)
        } else {
            0.0
        }
    }
}

const MARGIN: f64 = 0.05;

#[cfg(test)]
mod tests {
    use super::*;

    fn law(expected_s: f64, busy_s: f64) -> LittlesLaw {
        LittlesLaw { expected_s, busy_s }
    }

    #[test]
    fn agrees_within_five_percent() {
        assert!(law(100.0, 100.0).holds());
        assert!(law(100.0, 96.0).holds());
        assert!(!law(100.0, 94.0).holds());
        assert!(!law(100.0, 106.0).holds());
        assert!(law(0.0, 0.0).holds());
    }

    #[test]
    fn clients_that_idle_are_seen() {
        let idling = law(100.0, 2.0);
        assert!(!idling.holds() && (idling.idle() - 0.98).abs() < 1e-9);
        assert!(law(100.0, 101.0).idle() < 1e-9 && law(0.0, 0.0).idle() < 1e-9);
    }
}

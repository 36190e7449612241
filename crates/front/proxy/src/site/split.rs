//! The shares in which a route divides its requests among upstreams.

/// Upstreams by their index in the site, each with the end of its share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Split {
    /// The index of each upstream, and the sum of the weights up to and with its own.
    ends: Box<[(usize, u64)]>,
}

impl Split {
    /// Makes the shares of these upstreams and weights. At least one weight is above 0.
    pub(super) fn new(parts: impl IntoIterator<Item = (usize, u32)>) -> Self {
        let mut sum = 0;
        let mut ends = Vec::new();
        for (upstream, weight) in parts {
            sum += u64::from(weight);
            ends.push((upstream, sum));
        }
        Self { ends: ends.into() }
    }

    /// The indices of the upstreams.
    pub(crate) fn upstreams(&self) -> impl Iterator<Item = usize> {
        self.ends.iter().map(|(upstream, _)| *upstream)
    }

    /// The upstream of the request with this number. Numbers of successive requests are spread over all 64 bits, so each
    /// upstream gets its share of any longer series.
    pub(crate) fn pick(&self, number: u64) -> usize {
        let sum = self.ends.last().map_or(0, |(_, end)| *end);
        // `number` as a part of 2^64 becomes the same part of `sum`, and so is below the last end.
        let place = (u128::from(number) * u128::from(sum)) >> 64;
        let mut ends = self.ends.iter();
        let found = ends.find(|(_, end)| place < u128::from(*end));
        let found_or_first = found.or_else(|| self.ends.first());
        found_or_first.map_or(0, |(upstream, _)| *upstream)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request_id::RequestIds;

    #[test]
    fn each_upstream_gets_its_share() {
        let split = Split::new([(4, 90), (7, 0), (2, 9), (5, 1)]);
        let ids = RequestIds::new();
        let mut counts = [0; 8];
        for _ in 0..10_000 {
            counts[split.pick(ids.next().number())] += 1;
        }
        for (upstream, percent) in [(4, 90), (7, 0), (2, 9), (5, 1)] {
            let expected = percent * 100;
            assert!(
                (expected - 5..=expected + 5).contains(&counts[upstream]),
                "{counts:?}"
            );
        }
        assert_eq!(Split::new([(3, 1)]).pick(u64::MAX), 3);
    }
}

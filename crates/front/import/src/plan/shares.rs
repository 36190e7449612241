//! Upstreams that share the requests of a place.

use super::{Plan, Upstream};

impl Plan {
    /// The index of an upstream whose requests these upstreams share by their weights. If only one shares them, it is
    /// the index of that one.
    pub(crate) fn shared(&mut self, shares: Vec<(usize, u32)>) -> usize {
        let mut joined: Vec<(usize, u32)> = Vec::new();
        for (upstream, weight) in shares {
            match joined.iter_mut().find(|it| it.0 == upstream) {
                Some(known) => known.1 += weight,
                None => joined.push((upstream, weight)),
            }
        }
        if let [(only, _)] = joined[..] {
            return only;
        }
        self.upstream(Upstream {
            name: "split".to_owned(),
            shares: joined,
            ..Upstream::default()
        })
    }

    /// The upstreams that get the requests of the upstream with this index, with their weights.
    pub(crate) fn shares(&self, upstream: usize) -> Vec<(&Upstream, u32)> {
        match &self.upstreams[upstream] {
            own if own.shares.is_empty() => vec![(own, 1)],
            split => {
                let shares = split.shares.iter();
                shares
                    .map(|(at, weight)| (&self.upstreams[*at], *weight))
                    .collect()
            }
        }
    }
}

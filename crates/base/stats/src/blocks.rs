//! The order in which the cells of an experiment are measured.
//!
//! A round has every cell once, in random order, and the next round has the reverse order. A steady
//! drift over time, such as that of a machine that warms up, then affects all cells alike.

/// The orders of `rounds` rounds of `cells` cells. Each is a permutation of `0..cells`; every second one is the reverse
/// of the one before. The same seed gives the same orders.
#[must_use]
pub fn mirrored(cells: usize, rounds: usize, seed: u64) -> Vec<Vec<usize>> {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut orders: Vec<Vec<usize>> = Vec::with_capacity(rounds);
    for round in 0..rounds {
        let order = match orders.last() {
            Some(before) if round % 2 == 1 => before.iter().rev().copied().collect(),
            _ => {
                let mut order: Vec<usize> = (0..cells).collect();
                random.shuffle(&mut order);
                order
            }
        };
        orders.push(order);
    }
    orders
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_second_round_is_the_mirror_of_the_one_before() {
        let orders = mirrored(5, 7, 3);
        assert_eq!(orders.len(), 7);
        for pair in orders.chunks_exact(2) {
            let mut mirror = pair[1].clone();
            mirror.reverse();
            assert_eq!(pair[0], mirror);
        }
        for order in &orders {
            let mut cells = order.clone();
            cells.sort_unstable();
            assert_eq!(cells, [0, 1, 2, 3, 4]);
        }
    }

    #[test]
    fn the_seed_decides() {
        assert_eq!(mirrored(4, 9, 1), mirrored(4, 9, 1));
        let firsts = (0..100).filter(|&seed| mirrored(2, 1, seed)[0] == [0, 1]);
        assert!(
            (30..70).contains(&firsts.count()),
            "either cell begins as often"
        );
    }
}

//! Each policy's order, share and behaviour when backends come and go.

use proptest::prelude::*;

use super::*;

fn backend(weight: u32) -> Candidate {
    Candidate {
        weight,
        share: 100,
        in_flight: 0,
        eligible: true,
    }
}

fn picks(balancer: &mut Balancer, candidates: &[Candidate], count: usize) -> Vec<usize> {
    (0..count)
        .filter_map(|_| balancer.pick(candidates))
        .collect()
}

#[test]
fn round_robin_spreads_a_heavy_backend_out() {
    let mut balancer = Balancer::new(Policy::RoundRobin, 3);
    let order = picks(&mut balancer, &[backend(5), backend(1), backend(1)], 7);
    assert_eq!(order, [0, 0, 1, 0, 2, 0, 0]);
}

#[test]
fn round_robin_starts_where_told() {
    for start in 0..3 {
        let mut balancer = Balancer::new(Policy::RoundRobin, 3).starting_at(start);
        let order = picks(&mut balancer, &[backend(1); 3], 6);
        assert_eq!(order[0], start);
        assert_eq!(order[..3], order[3..], "turns repeat");
    }
}

#[test]
fn nobody_eligible_is_none() {
    for policy in [Policy::RoundRobin, Policy::LeastInFlight] {
        let out = Candidate {
            eligible: false,
            ..backend(1)
        };
        assert_eq!(Balancer::new(policy, 2).pick(&[out, out]), None);
        assert_eq!(Balancer::new(policy, 0).pick(&[]), None);
    }
}

#[test]
fn least_in_flight_weighs_the_load() {
    let mut balancer = Balancer::new(Policy::LeastInFlight, 3);
    let busy = |weight, in_flight| Candidate {
        weight,
        share: 100,
        in_flight,
        eligible: true,
    };
    assert_eq!(
        balancer.pick(&[busy(1, 1), busy(4, 3), busy(1, 2)]),
        Some(1)
    );
    assert_eq!(
        balancer.pick(&[busy(1, 0), busy(4, 0), busy(1, 0)]),
        Some(1),
        "heavier when idle"
    );
}

#[test]
fn least_in_flight_rotates_ties() {
    let mut balancer = Balancer::new(Policy::LeastInFlight, 3);
    assert_eq!(picks(&mut balancer, &[backend(1); 3], 4), [0, 1, 2, 0]);
}

#[test]
fn a_share_scales_the_weight_and_whoever_is_alone_gets_all() {
    let ramping = Candidate {
        share: 10,
        ..backend(1)
    };
    let mut balancer = Balancer::new(Policy::RoundRobin, 2);
    let order = picks(&mut balancer, &[backend(1), ramping], 110);
    assert_eq!(order.iter().filter(|&&index| index == 1).count(), 10);
    let out = Candidate {
        eligible: false,
        ..backend(1)
    };
    assert_eq!(picks(&mut balancer, &[out, ramping], 3), [1, 1, 1]);
    let mut balancer = Balancer::new(Policy::LeastInFlight, 2);
    let busy = Candidate {
        in_flight: 8,
        ..backend(1)
    };
    assert_eq!(balancer.pick(&[busy, ramping]), Some(0), "9 of 10 is less");
    let busier = Candidate {
        in_flight: 10,
        ..backend(1)
    };
    assert_eq!(balancer.pick(&[busier, ramping]), Some(1));
}

proptest! {
    #[test]
    fn round_robin_gives_each_its_exact_share(
        weights in prop::collection::vec(1u32..20, 1..6),
        start in 0usize..6,
    ) {
        let candidates: Vec<_> = weights.iter().copied().map(backend).collect();
        let round: u32 = weights.iter().sum();
        let mut balancer = Balancer::new(Policy::RoundRobin, weights.len()).starting_at(start);
        let mut counts = vec![0u32; weights.len()];
        for index in picks(&mut balancer, &candidates, 10 * round as usize) {
            counts[index] += 1;
        }
        for (count, weight) in counts.iter().zip(&weights) {
            prop_assert!(count.abs_diff(10 * weight) <= 1, "{counts:?} for {weights:?}");
        }
    }

    #[test]
    fn a_pick_is_always_eligible(
        rounds in prop::collection::vec(prop::collection::vec(any::<(bool, u8, u8)>(), 4), 1..50),
        least in any::<bool>(),
    ) {
        let policy = if least { Policy::LeastInFlight } else { Policy::RoundRobin };
        let mut balancer = Balancer::new(policy, 4);
        for round in rounds {
            let candidates: Vec<_> = round
                .iter()
                .map(|&(eligible, weight, in_flight)| Candidate {
                    weight: weight.into(),
                    share: weight,
                    in_flight: in_flight.into(),
                    eligible,
                })
                .collect();
            match balancer.pick(&candidates) {
                Some(index) => prop_assert!(candidates[index].eligible),
                None => prop_assert!(candidates.iter().all(|candidate| !candidate.eligible)),
            }
        }
    }
}

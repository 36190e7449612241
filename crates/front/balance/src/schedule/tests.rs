//! Tests order, shares, and members that are out or tried, under any order of events.

use std::time::Duration;

use proptest::prelude::*;

use super::*;

/// The members' states at one moment.
#[derive(Clone, Debug, Default)]
struct Now {
    share: Vec<u8>,
    in_flight: Vec<usize>,
    sessions: Vec<u64>,
    traffic: Vec<u64>,
}

impl Now {
    fn all_up(count: usize) -> Self {
        Self {
            share: vec![SHARE_FULL; count],
            in_flight: vec![0; count],
            sessions: vec![0; count],
            traffic: vec![0; count],
        }
    }
}

impl Members for Now {
    fn share(&self, member: usize) -> u8 {
        self.share[member]
    }

    fn in_flight(&self, member: usize) -> usize {
        self.in_flight[member]
    }

    fn sessions(&self, member: usize) -> u64 {
        self.sessions[member]
    }

    fn traffic(&self, member: usize) -> u64 {
        self.traffic[member]
    }
}

/// Checks that the heap is ordered, and that each member is in it or out, at the place that it records.
fn check(schedule: &Schedule) {
    for (place, &member) in schedule.heap.iter().enumerate() {
        assert_eq!(schedule.members[member].place, place);
        let parent = place.saturating_sub(1) / 2;
        assert!(schedule.deadline(parent) <= schedule.deadline(place));
    }
    for &member in &schedule.out {
        assert_eq!(schedule.members[member].place, OUT);
    }
    let known = schedule.heap.len() + schedule.out.len();
    assert_eq!(known, schedule.members.len());
}

/// Counts how often each member is picked in `count` picks, if exchanges take no time.
fn counts(schedule: &mut Schedule, members: &Now, count: usize) -> Vec<usize> {
    let mut counts = vec![0; members.share.len()];
    for _ in 0..count {
        let picked = schedule.pick(members, &[], START);
        counts[picked.expect("somebody is up")] += 1;
    }
    check(schedule);
    counts
}

fn round_robin(weights: &[u32], seed: u64) -> Schedule {
    Schedule::new(Policy::RoundRobin, weights.iter().copied(), seed)
}

fn least(weights: &[u32], seed: u64) -> Schedule {
    Schedule::new(Policy::LeastInFlight, weights.iter().copied(), seed)
}

#[test]
fn equals_take_turns_and_workers_begin_anywhere() {
    let members = Now::all_up(5);
    let mut begun = [false; 5];
    for seed in 0..64 {
        let mut schedule = round_robin(&[1; 5], seed);
        let order: Vec<_> = (0..10)
            .filter_map(|_| schedule.pick(&members, &[], START))
            .collect();
        begun[order[0]] = true;
        assert_eq!(order[..5], order[5..], "turns repeat");
        assert_eq!(counts(&mut schedule, &members, 50), [10; 5]);
    }
    assert_eq!(begun, [true; 5]);
}

#[test]
fn a_heavy_member_is_spread_out() {
    let members = Now::all_up(3);
    for seed in 0..64 {
        let mut schedule = round_robin(&[5, 1, 1], seed);
        let order: Vec<_> = (0..70)
            .filter_map(|_| schedule.pick(&members, &[], START))
            .collect();
        let burst = order.split(|&member| member != 0).map(<[_]>::len).max();
        assert!(burst <= Some(5), "{order:?}");
    }
}

#[test]
fn what_others_gave_counts() {
    let members = Now::all_up(3);
    for seed in 0..64 {
        let mut schedule = round_robin(&[1; 3], seed);
        // Member 0 has sessions that come every time; the others get what is free.
        let mut free = [0_usize; 3];
        for _ in 0..300 {
            schedule.note(&members, 0);
            free[schedule.pick(&members, &[], START).expect("somebody is up")] += 1;
        }
        assert!(free[0] <= 1 && free[1].abs_diff(free[2]) <= 1, "{free:?}");
        check(&schedule);
    }
}

#[test]
fn a_few_are_picked_among_in_turn() {
    let mut members = Now::all_up(5);
    for policy in [Policy::RoundRobin, Policy::LeastInFlight] {
        let mut schedule = Schedule::new(policy, [1; 5], 3);
        let mut counts = [0; 5];
        for _ in 0..30 {
            counts[schedule
                .pick_among(&members, &[1, 3, 4], &[4])
                .expect("two are up")] += 1;
        }
        assert_eq!(counts, [0, 15, 0, 15, 0], "{policy:?}");
        assert_eq!(schedule.pick_among(&members, &[1, 3], &[1, 3]), None);
        assert_eq!(schedule.pick_among(&members, &[], &[]), None);
        check(&schedule);
    }
    members.in_flight[1] = 5;
    members.share[4] = 0;
    let mut schedule = least(&[1; 5], 3);
    assert_eq!(schedule.pick_among(&members, &[1, 3, 4], &[]), Some(3));
    assert_eq!(schedule.pick_among(&members, &[4], &[]), None);
}

#[test]
fn nobody_to_pick_is_none() {
    for policy in [Policy::RoundRobin, Policy::LeastInFlight] {
        let mut nobody = Schedule::new(policy, [], 1);
        assert_eq!(nobody.pick(&Now::default(), &[], START), None);
        let mut all_out = Schedule::new(policy, [1, 1], 1);
        let mut members = Now {
            share: vec![0, 0],
            in_flight: vec![0, 0],
            ..Now::default()
        };
        assert_eq!(all_out.pick(&members, &[], START), None);
        assert_eq!(all_out.pick(&members, &[], START), None);
        // Who comes back is picked at once when nobody else is there.
        members.share[1] = 10;
        assert_eq!(all_out.pick(&members, &[], START), Some(1));
        assert_eq!(all_out.pick(&members, &[1], START), None);
        members.share[0] = 10;
        assert_eq!(all_out.pick(&members, &[1], START), Some(0));
        check(&all_out);
    }
}

#[test]
fn what_was_tried_keeps_its_turn() {
    let members = Now::all_up(3);
    let mut schedule = round_robin(&[1; 3], 7);
    let first = schedule.pick(&members, &[], START).unwrap();
    let second = schedule.pick(&members, &[first], START).unwrap();
    let third = schedule.pick(&members, &[first, second], START).unwrap();
    assert_eq!(first + second + third, 3);
    assert_eq!(schedule.pick(&members, &[0, 1, 2], START), None);
    assert_eq!(counts(&mut schedule, &members, 30), [10; 3]);
}

#[test]
fn a_share_scales_the_weight_and_who_is_alone_gets_all() {
    let mut members = Now::all_up(2);
    members.share[1] = 10;
    let mut schedule = round_robin(&[1, 1], 3);
    let counted = counts(&mut schedule, &members, 1100);
    assert!(counted[1].abs_diff(100) <= 1, "{counted:?}");
    members.share[0] = 0;
    assert_eq!(counts(&mut schedule, &members, 5), [0, 5]);
    // Nothing is made up for after a time out.
    members.share = vec![100, 100];
    let counted = counts(&mut schedule, &members, 100);
    assert!(counted[0] >= 50 && counted[0] <= 70, "{counted:?}");
}

#[test]
fn debt_of_a_small_share_is_forgotten_and_a_turn_is_not() {
    let mut members = Now::all_up(2);
    members.share[1] = 1;
    let mut schedule = round_robin(&[1, 1], 3);
    let in_debt = counts(&mut schedule, &members, 10);
    assert_eq!(in_debt, [9, 1]);
    // A hundred steps ahead, of which seven seconds leave less than one beyond its turn.
    members.share[1] = 100;
    let later = Duration::from_secs(7);
    let mut counted = [0, 0];
    for _ in 0..100 {
        counted[schedule.pick(&members, &[], later).unwrap()] += 1;
    }
    assert!(counted[1] >= 48, "{counted:?}");
    // One request each three seconds: weights count all the same.
    let mut schedule = round_robin(&[3, 1], 5);
    let mut counted = [0, 0];
    for request in 0..400 {
        let now = Duration::from_secs(3 * request);
        counted[schedule.pick(&members, &[], now).unwrap()] += 1;
    }
    assert!(counted[1] >= 99 && counted[1] <= 101, "{counted:?}");
}

#[test]
fn least_in_flight_weighs_the_load() {
    let mut members = Now::all_up(3);
    for (in_flight, expected) in [([1, 3, 2], 1), ([0, 4, 1], 0), ([1, 8, 0], 2)] {
        members.in_flight = in_flight.to_vec();
        let picked = least(&[1, 4, 1], 9).pick(&members, &[], START);
        assert_eq!(picked, Some(expected), "{in_flight:?}");
    }
    // Nine of ten is less than one of a tenth.
    members.in_flight = vec![8, 100, 0];
    members.share = vec![100, 0, 10];
    assert_eq!(least(&[1; 3], 9).pick(&members, &[], START), Some(0));
}

#[test]
fn least_in_flight_takes_turns_among_equals() {
    let members = Now::all_up(4);
    assert_eq!(counts(&mut least(&[1; 4], 2), &members, 40), [10; 4]);
    // One after the other, nothing is ever in flight: each gets its share, and not the heavier all.
    let members = Now::all_up(2);
    assert_eq!(counts(&mut least(&[2, 1], 2), &members, 60), [40, 20]);
}

#[test]
fn among_many_the_less_loaded_is_preferred() {
    let count = 100;
    let mut members = Now::all_up(count);
    let mut schedule = least(&vec![1; count], 4);
    // Nothing ends: after ten a member, two choices leave nobody far from ten.
    for _ in 0..10 * count {
        let picked = schedule.pick(&members, &[], START).unwrap();
        members.in_flight[picked] += 1;
    }
    let extremes = (
        members.in_flight.iter().min(),
        members.in_flight.iter().max(),
    );
    assert!(
        extremes.0 >= Some(&6) && extremes.1 <= Some(&13),
        "{extremes:?}"
    );
}

#[test]
fn few_that_are_up_among_many_are_found() {
    let mut members = Now::all_up(1000);
    members.share = vec![0; 1000];
    for policy in [Policy::RoundRobin, Policy::LeastInFlight] {
        let mut schedule = Schedule::new(policy, vec![1; 1000], 8);
        members.share[123] = 100;
        assert_eq!(schedule.pick(&members, &[], START), Some(123));
        members.share[456] = 100;
        // A few of those that are out are looked at with each pick.
        let picked = (0..1000 / LOOKS + 2).filter_map(|_| schedule.pick(&members, &[], START));
        assert!(picked.collect::<Vec<_>>().contains(&456));
        check(&schedule);
        members.share[456] = 0;
    }
}

/// Simulates new and ending sessions; the member with index 3 joins three that have all sessions.
fn sessions_after(minutes: u64, seed: u64) -> (Vec<u64>, f64) {
    let mut members = Now::all_up(4);
    members.sessions = vec![5200, 5200, 5200, 0];
    // Each session is seen for half an hour: those of before end evenly.
    let mut ends: VecDeque<(u64, usize)> = (0..15_600)
        .map(|it| (it * 1800 / 15_600, usize::try_from(it % 3).unwrap()))
        .collect();
    let mut schedule = Schedule::new(Policy::Sessions, [1; 4], seed);
    let (mut begun, mut joined) = (0_u64, 0_u64);
    for second in 0..minutes * 60 {
        let now = Duration::from_secs(second);
        while ends.front().is_some_and(|(end, _)| *end <= second) {
            let (_, member) = ends.pop_front().expect("there is one");
            members.sessions[member] -= 1;
        }
        for _ in 0..8 + u64::from(second % 3 > 0) {
            let picked = schedule.pick(&members, &[], now).expect("all are up");
            // Requests of sessions that are kept change nothing.
            schedule.note(&members, 0);
            members.sessions[picked] += 1;
            ends.push_back((second + 1800, picked));
            if (1..61).contains(&second) {
                begun += 1;
                joined += u64::from(picked == 3);
            }
        }
        check(&schedule);
    }
    (members.sessions, joined as f64 / begun as f64)
}

#[test]
fn one_that_joins_gets_half_of_the_new_sessions_until_it_is_level() {
    for seed in 0..3 {
        let (_, first_minute) = sessions_after(2, seed);
        assert!((0.42..0.50).contains(&first_minute), "{first_minute}");
        let (levelled, _) = sessions_after(43, seed);
        let mean = levelled.iter().sum::<u64>() / 4;
        let level = |own: &u64| own.abs_diff(mean) * 100 <= 5 * mean;
        assert!(levelled.iter().all(level), "{levelled:?}");
    }
}

#[test]
fn who_moved_more_bytes_gets_fewer_requests_and_the_past_is_forgotten() {
    let mut members = Now::all_up(2);
    let mut schedule = Schedule::new(Policy::Traffic, [1, 1], 5);
    // Responses of the first are nine times as long.
    let mut counted = [0_u64; 2];
    for second in 1..600 {
        for _ in 0..20 {
            let now = Duration::from_secs(second);
            let picked = schedule.pick(&members, &[], now).expect("both are up");
            members.traffic[picked] += [9000, 1000][picked];
            counted[picked] += u64::from(second > 300);
        }
        check(&schedule);
    }
    // With a third of the requests it moves three times the bytes: two thirds of its weight, and
    // twice that of the other, which is the most that is given.
    let ratio = counted[1] as f64 / counted[0] as f64;
    assert!((2.9..3.1).contains(&ratio), "{counted:?}");
    // Responses are equal now, and after some minutes so are the requests.
    let mut counted = [0_u64; 2];
    for second in 600..1800 {
        for _ in 0..20 {
            let now = Duration::from_secs(second);
            let picked = schedule.pick(&members, &[], now).expect("both are up");
            members.traffic[picked] += 1000;
            counted[picked] += u64::from(second > 1500);
        }
    }
    assert!(
        counted[0].abs_diff(counted[1]) * 20 < counted[1],
        "{counted:?}"
    );
}

#[test]
fn what_one_that_is_out_has_concerns_nobody() {
    let mut members = Now::all_up(3);
    members.sessions = vec![100, 100, 10_000];
    members.share[2] = 0;
    let mut schedule = Schedule::new(Policy::Sessions, [1, 1, 1], 5);
    let later = Duration::from_secs(2);
    assert!(schedule.pick(&members, &[], later).is_some());
    let factors =
        |schedule: &Schedule| -> Vec<u32> { schedule.members.iter().map(|it| it.factor).collect() };
    assert_eq!(factors(&schedule)[..2], [level::ONE; 2]);
    members.share[2] = 100;
    assert!(schedule.pick(&members, &[], 2 * later).is_some());
    assert_eq!(factors(&schedule), [2 * level::ONE, 2 * level::ONE, 128]);
}

proptest! {
    /// Each member gets its weight of the picks, within 1 % of the weight or a single pick.
    #[test]
    fn round_robin_gives_each_its_weight(
        weights in prop::collection::vec(1u32..=1000, 1..50),
        seed in any::<u64>(),
    ) {
        let members = Now::all_up(weights.len());
        let round: u32 = weights.iter().sum();
        let mut schedule = round_robin(&weights, seed);
        let counted = counts(&mut schedule, &members, 2 * round as usize);
        for (count, weight) in counted.iter().zip(&weights) {
            let wanted = 2 * *weight as usize;
            let allowed = 1 + wanted.div_ceil(100);
            prop_assert!(count.abs_diff(wanted) <= allowed, "{counted:?} for {weights:?}");
        }
    }

    /// If many members are equally loaded, two random choices pick in proportion to the weights.
    #[test]
    fn random_choices_are_weighted(seed in any::<u64>()) {
        let weights: Vec<u32> = (0..40).map(|index| 1 + index % 4).collect();
        let members = Now::all_up(40);
        let mut schedule = least(&weights, seed);
        let mut by_weight = [0; 4];
        for _ in 0..20_000 {
            let member = schedule.sample(&members, &[]).unwrap();
            by_weight[member % 4] += 1;
        }
        for (index, count) in by_weight.iter().enumerate() {
            // Six standard deviations.
            let wanted = 2000 * (index + 1);
            prop_assert!(wanted.abs_diff(*count) < 420, "{by_weight:?}");
        }
    }

    /// In any order of events: a picked member may be picked, and if any member may be, one is.
    #[test]
    fn a_pick_may_be_picked(
        rounds in prop::collection::vec(
            (prop::collection::vec((0u8..4, 0usize..5), 40), 0u64..4000, 0usize..40),
            1..60,
        ),
        count in 1usize..40,
        policy in prop::sample::select(POLICIES.to_vec()),
        seed in any::<u64>(),
    ) {
        let mut schedule = Schedule::new(policy, (0..count as u32).map(|it| it % 7), seed);
        let mut now = START;
        for (states, passed, tried) in rounds {
            let members = Now {
                share: states.iter().map(|(share, _)| [0, 10, 55, 100][usize::from(*share)]).collect(),
                in_flight: states.iter().map(|(_, in_flight)| *in_flight).collect(),
                sessions: vec![3; 40],
                traffic: vec![5; 40],
            };
            now += Duration::from_millis(passed);
            let may = |member: usize| members.share[member] > 0 && member != tried;
            match schedule.pick(&members, &[tried], now) {
                Some(member) => prop_assert!(may(member)),
                None => prop_assert!(!(0..count).any(may)),
            }
            check(&schedule);
        }
    }
}

proptest! {
    /// The next pick was foreseen, every foreseen member may be picked, and foreseeing changes nothing.
    #[test]
    fn what_is_picked_was_foreseen(
        weights in prop::collection::vec(1_u32..20, 1..40),
        share in prop::collection::vec(prop_oneof![Just(0_u8), Just(SHARE_FULL), 1_u8..100], 40),
        in_flight in prop::collection::vec(0_usize..5, 40),
        policy in prop::sample::select(&POLICIES[..]),
        picks in 0_usize..30,
    ) {
        let count = weights.len();
        let now = Now { share, in_flight, ..Now::all_up(40) };
        let mut schedule = Schedule::new(policy, weights, 7);
        for _ in 0..picks {
            schedule.pick(&now, &[], START);
        }
        let mut other = schedule.clone();
        let foreseen = schedule.foresee(&now, 0..count, false);
        prop_assert!(foreseen.iter().all(|(member, weight)| now.share[*member] > 0 && *weight > 0));
        let picked = schedule.pick(&now, &[], START);
        prop_assert_eq!(picked, other.pick(&now, &[], START));
        let may_be = |picked: usize| foreseen.iter().any(|(member, _)| *member == picked);
        prop_assert_eq!(picked.is_some_and(may_be), !foreseen.is_empty());
    }
}

#[test]
fn what_is_foreseen_is_in_proportion_to_weights_and_shares() {
    let now = Now {
        share: vec![100, 50, 0],
        ..Now::all_up(3)
    };
    let schedule = Schedule::new(Policy::RoundRobin, [1, 2, 3], 7);
    let foreseen = schedule.foresee(&now, 0..3, false);
    assert_eq!(foreseen.len(), 2);
    assert_eq!(foreseen[0].1, foreseen[1].1, "half of two is one");
    let now = Now {
        in_flight: vec![3, 2, 9],
        ..Now::all_up(3)
    };
    let schedule = Schedule::new(Policy::LeastInFlight, [2, 1, 3], 7);
    let members: Vec<usize> = schedule
        .foresee(&now, 0..3, false)
        .iter()
        .map(|it| it.0)
        .collect();
    assert_eq!(
        members,
        [0],
        "four for a weight of 2 are less than three for 1 and ten for 3"
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// Each member that is up gets its weight of the picks, within 1 % or two picks, whichever others
    /// are out.
    #[test]
    fn each_has_its_weight_of_the_picks(
        members in prop::collection::vec((1_u32..=100, prop::bool::weighted(0.8)), 1..50),
        seed: u64,
    ) {
        prop_assume!(members.iter().any(|(_, up)| *up));
        let share = members.iter().map(|(_, up)| if *up { SHARE_FULL } else { 0 }).collect();
        let now = Now { share, ..Now::all_up(members.len()) };
        let weights: Vec<u32> = members.iter().map(|(weight, _)| *weight).collect();
        let up = |(weight, up): &(u32, bool)| if *up { f64::from(*weight) } else { 0.0 };
        let total: f64 = members.iter().map(up).sum();
        let mut schedule = round_robin(&weights, seed);
        let picks = 20_000;
        let counted = counts(&mut schedule, &now, picks);
        for (count, member) in counted.iter().zip(&members) {
            let wanted = up(member) / total * picks as f64;
            let off = (*count as f64 - wanted).abs();
            prop_assert!(off <= 2.0 + wanted / 100.0, "{} for {}", count, wanted);
        }
    }
}

const POLICIES: [Policy; 5] = [
    Policy::RoundRobin,
    Policy::LeastInFlight,
    Policy::Sessions,
    Policy::Traffic,
    Policy::Hash,
];

const START: Moment = Duration::ZERO;

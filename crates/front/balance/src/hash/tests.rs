//! Tests the members' shares of keys, and which keys move when a member goes.

use proptest::prelude::*;

use super::*;

fn table(names: &[String]) -> Maglev {
    Maglev::new(names.iter().map(|name| (name.as_str(), 1)))
}

fn names(count: usize) -> Vec<String> {
    (0..count)
        .map(|index| format!("ajp://10.0.0.{index}:8009"))
        .collect()
}

fn keys(count: u64) -> impl Iterator<Item = Key> {
    (0..count).map(|it| Key::new(&it.to_be_bytes()))
}

#[test]
fn nobody_is_none() {
    let key = Key::new(b"k");
    assert_eq!(Maglev::new([]).pick(key, |_| 100), None);
    let only = Maglev::new([("a", 0)]);
    assert_eq!(only.pick(key, |_| 100), Some(0));
    assert_eq!(only.pick(key, |_| 0), None);
    // Alone it gets all, ramping or not.
    assert!(keys(200).all(|key| only.pick(key, |_| 1) == Some(0)));
}

#[test]
fn only_the_keys_of_one_that_is_out_move_and_evenly() {
    let table = table(&names(5));
    let mut moved = [0_u32; 5];
    for key in keys(20_000) {
        let home = table.pick(key, |_| 100).expect("all are in");
        let now = table.pick(key, |member| if member == 2 { 0 } else { 100 });
        let now = now.expect("four are in");
        assert!(home == 2 || now == home, "a key of another one moved");
        assert_ne!(now, 2);
        moved[now] += u32::from(home == 2);
    }
    // 4,000 keys over four, six standard deviations.
    let even = |count: &u32| count.abs_diff(1000) < 170;
    assert!(moved[2] == 0 && moved.iter().filter(|it| **it > 0).all(even));
}

#[test]
fn the_last_that_is_in_is_found() {
    let table = table(&names(1000));
    for key in keys(500) {
        let only = |member| if member == 123 { 100 } else { 0 };
        assert_eq!(table.pick(key, only), Some(123));
        assert_eq!(table.pick(key, |_| 0), None);
    }
}

#[test]
fn one_that_ramps_up_gets_back_its_own_keys_one_after_the_other() {
    let table = table(&names(4));
    let mut got = [0_u32; 3];
    for key in keys(20_000) {
        let home = table.pick(key, |_| 100).expect("all are in");
        let at = |share| table.pick(key, |member| if member == 1 { share } else { 100 });
        let mut before = false;
        for (share, got) in [10, 50, 90].into_iter().zip(&mut got) {
            if home != 1 {
                assert_eq!(at(share), Some(home), "others' keys stay");
                continue;
            }
            let has = at(share) == Some(1);
            assert!(has || !before, "what it has got it keeps");
            before = has;
            *got += u32::from(has);
        }
    }
    let of_own = |percent: u32| 5000 * percent / 100;
    let near = |(got, percent): (&u32, u32)| got.abs_diff(of_own(percent)) < 400;
    assert!(got.iter().zip([10, 50, 90]).all(near), "{got:?}");
}

#[test]
fn taking_one_of_100_away_moves_few_others() {
    let all = names(100);
    let with = table(&all);
    let without = table(&all[..99]);
    let before = with.slots.iter().zip(&without.slots);
    let others = before.clone().filter(|(before, _)| **before != 99).count();
    let moved = before.filter(|(before, now)| **before != 99 && before != now);
    let percent = moved.count() as f64 * 100.0 / others as f64;
    assert!(percent <= 4.0, "{percent} % of the others' slots moved");
}

#[test]
fn fronts_agree_whatever_the_machine() {
    // Not to be changed: a front that is upgraded must agree with its neighbours.
    let table = table(&names(7));
    let picked: Vec<_> = keys(12).map(|key| table.pick(key, |_| 100)).collect();
    let picked: Vec<_> = picked.into_iter().flatten().collect();
    assert_eq!(picked, AGREED);
    assert_eq!(Key::new(b"203.0.113.7"), Key(AGREED_KEY));
}

const AGREED: [usize; 12] = [6, 5, 6, 4, 4, 6, 4, 3, 5, 6, 6, 2];
const AGREED_KEY: u64 = 10_675_439_914_296_419_692;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Each member gets its weight of the slots, within 1 % of the weight or a few slots.
    #[test]
    fn each_has_its_weight_of_the_slots(
        weights in prop::collection::vec(1u32..=100, 1..60),
        salt in any::<u32>(),
    ) {
        let names: Vec<String> = (0..weights.len()).map(|it| format!("{salt}-{it}")).collect();
        let members = names.iter().map(String::as_str).zip(weights.iter().copied());
        let table = Maglev::new(members);
        let mut counted = vec![0_u32; weights.len()];
        for slot in &table.slots {
            counted[*slot as usize] += 1;
        }
        let total: u32 = weights.iter().sum();
        for (count, weight) in counted.iter().zip(&weights) {
            let wanted = f64::from(*weight) / f64::from(total) * 65_537.0;
            let off = (f64::from(*count) - wanted).abs();
            prop_assert!(off <= 1.0 + wanted / 100.0, "{count} for {wanted}");
        }
    }
}

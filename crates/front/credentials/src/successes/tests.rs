use super::*;
use crate::users::Users;

fn key(number: usize) -> SuccessKey {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&number.to_le_bytes());
    SuccessKey(bytes)
}

fn credentials(value: &str) -> BasicCredentials {
    BasicCredentials::parse(value.as_bytes()).unwrap().unwrap()
}

#[test]
fn a_key_depends_on_secret_user_password_and_hash() {
    let bcrypt = "$2y$04$BDsctodQR/lVgkBWw8Wue.7UqFJZ1OUfa1MHqRqRBxBImKQbgf.e.";
    let apr1 = "$apr1$WYrnZ5sg$So.B3R9PrvygW7DDBwrTX0";
    let users = |hash: &str| Users::parse(format!("ann:{hash}\nbob:{hash}\n").as_bytes()).unwrap();
    let (before, after) = (users(bcrypt), users(apr1));
    let mac = SuccessMac::new(&[1; 32]);
    // ann:secret, ann:secres, bob:secret, an:nsecret
    let [ann, other_password, bob, nobody] = [
        "Basic YW5uOnNlY3JldA==",
        "Basic YW5uOnNlY3Jlcw==",
        "Basic Ym9iOnNlY3JldA==",
        "Basic YW46bnNlY3JldA==",
    ]
    .map(credentials);
    let keys = [
        mac.key(&ann, &before.candidate("ann")),
        mac.key(&ann, &after.candidate("ann")),
        mac.key(&other_password, &before.candidate("ann")),
        mac.key(&bob, &before.candidate("bob")),
        mac.key(&nobody, &before.candidate("an")),
        SuccessMac::new(&[2; 32]).key(&ann, &before.candidate("ann")),
    ];
    for (index, one) in keys.iter().enumerate() {
        assert!(
            keys[index + 1..].iter().all(|other| other != one),
            "{index}"
        );
    }
    // The same hash in a file that was read again is the same.
    assert_eq!(
        keys[0],
        mac.clone().key(&ann, &users(bcrypt).candidate("ann"))
    );
    // So is the text of a cost, which decides as much as the digest.
    let costlier = users(&bcrypt.replace("$04$", "$05$"));
    assert_ne!(keys[0], mac.key(&ann, &costlier.candidate("ann")));
    // A user who was removed is not remembered, although the hash for nobody has the same text.
    let without_ann = Users::parse(format!("bob:{bcrypt}\n").as_bytes()).unwrap();
    assert_ne!(keys[0], mac.key(&ann, &without_ann.candidate("ann")));
    assert!(!format!("{mac:?}").contains('1'));
}

#[test]
fn a_success_is_forgotten_in_time() {
    let mut successes = Successes::default();
    assert!(successes.is_empty());
    let start = Duration::from_secs(1000);
    successes.insert(key(1), start);
    let end = start + Successes::TIME;
    assert!(successes.contains(&key(1), start));
    assert!(!successes.contains(&key(2), start));
    // A second success does not prolong the first.
    successes.insert(key(1), end - SECOND);
    assert!(successes.contains(&key(1), end - SECOND));
    assert!(!successes.contains(&key(1), end));
    assert_eq!(successes.len(), 1);
    // What is forgotten makes room when the next comes, and may be remembered again.
    successes.insert(key(2), end);
    assert_eq!(successes.len(), 1);
    successes.insert(key(1), end);
    assert!(successes.contains(&key(1), end + SECOND));
    assert_eq!(successes.len(), 2);
}

#[test]
fn the_eldest_goes() {
    let mut successes = Successes::default();
    for number in 0..Successes::COUNT_MAX {
        successes.insert(key(number), Duration::from_millis(number as u64));
    }
    let now = Duration::from_secs(60);
    assert!(successes.contains(&key(0), now));
    // One that is remembered already pushes nothing out.
    successes.insert(key(7), now);
    assert!(successes.contains(&key(0), now));
    successes.insert(key(Successes::COUNT_MAX), now);
    assert!(!successes.contains(&key(0), now));
    assert!(successes.contains(&key(1), now));
    assert_eq!(successes.len(), Successes::COUNT_MAX);
    assert_eq!(successes.ends.len(), Successes::COUNT_MAX);
}

const SECOND: Duration = Duration::from_secs(1);

//! Files that real programs wrote, and the committed fuzz corpus.

use catamaran_credentials::{HashFault, LineFault, Users, UsersWarning};
use catamaran_testkit::replay_corpus;

#[path = "../../../../../dev/fuzz/bodies/credentials.rs"]
mod bodies;

#[test]
fn corpora_hold() {
    replay_corpus("credentials_file", bodies::file);
    replay_corpus("credentials_basic", bodies::basic);
}

#[test]
fn users_of_other_programs_sign_in() {
    let file = include_bytes!("users.txt");
    let users = Users::parse(file).expect("no line has a fault");
    let names = names(file);
    assert_eq!((users.len(), names.len()), (16, 16));
    for name in names {
        let candidate = users.candidate(name);
        assert!(candidate.verify("open sesame: ü"), "{name}");
        assert!(!candidate.verify("open sesame: u"), "{name}");
    }
    let apr1 = UsersWarning::Apr1 {
        first: 16,
        count: 3,
    };
    let mixed = UsersWarning::MixedWork {
        first: 6,
        count: 13,
    };
    assert_eq!(users.warnings(), [apr1, mixed]);
}

#[test]
fn weak_and_costly_hashes_of_other_programs_are_faults() {
    let file = include_bytes!("refused.txt");
    let faults = Users::parse(file).unwrap_err();
    let expected = [
        ("sha1", HashFault::Braces),
        ("des", HashFault::Des),
        ("plain", HashFault::Plain),
        ("cost", HashFault::BcryptCost { cost: 15 }),
        ("rounds", HashFault::Rounds { rounds: 500_001 }),
        ("md5", HashFault::UnknownKind),
        ("memory", HashFault::Argon2Memory { kib: 65_537 }),
        ("passes", HashFault::Argon2Passes { passes: 11 }),
        ("argon2i", HashFault::UnknownKind),
        ("argon2d", HashFault::UnknownKind),
    ];
    assert_eq!(names(file), expected.map(|(name, _)| name));
    for (fault, (name, kind)) in faults.iter().zip(expected) {
        assert_eq!(fault.fault, LineFault::Hash(kind), "{name}");
        assert!(fault.hint().contains("htpasswd -B"), "{name}");
    }
    assert_eq!(faults.len(), expected.len());
}

/// The users of a file in the order of their lines.
fn names(file: &[u8]) -> Vec<&str> {
    let text = std::str::from_utf8(file).expect("the file is text");
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines
        .filter_map(|line| Some(line.split_once(':')?.0))
        .collect()
}

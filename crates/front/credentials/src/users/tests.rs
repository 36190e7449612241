use super::*;
use crate::hash::HashFault;

#[test]
fn a_user_has_a_name_and_a_password() {
    let text = format!("ann:{BCRYPT}\nJörg O'Neill :{APR1}:of accounting:{BCRYPT}\n");
    let users = Users::parse(text.as_bytes()).unwrap();
    assert_eq!((users.len(), users.is_empty()), (2, false));
    for (name, password, expected) in [
        ("ann", "secret", true),
        ("ann", "Secret", false),
        ("ann", "", false),
        ("Ann", "secret", false),
        ("Jörg O'Neill ", "secret", true),
        ("Jörg O'Neill", "secret", false),
        ("", "secret", false),
        // Those of the hash that is computed for them.
        ("bob", "secret", false),
    ] {
        let candidate = users.candidate(name);
        assert_eq!(candidate.verify(password), expected, "{name} {password}");
    }
}

#[test]
fn an_unknown_user_costs_the_work_of_most_users() {
    let sha = "$5$rounds=1000$saltstring$5B8vYYiY.CVt1RlTTf8KbXBH3hsxY/GNooZaBBGWEc5";
    let work = |hash: &str| PasswordHash::parse(hash).unwrap().work;
    for (hashes, expected) in [
        (vec![BCRYPT], BCRYPT),
        (vec![BCRYPT, APR1, APR1], APR1),
        (vec![APR1, BCRYPT, APR1, sha, BCRYPT, BCRYPT], BCRYPT),
        (vec![sha, BCRYPT], sha),
        (vec![BCRYPT, sha], BCRYPT),
        // Another cost is other work.
        (vec![BCRYPT, &BCRYPT.replace("$04$", "$05$"), sha, sha], sha),
    ] {
        let lines = (0..)
            .zip(&hashes)
            .map(|(number, hash)| format!("user{number}:{hash}\n"));
        let users = Users::parse(lines.collect::<String>().as_bytes()).unwrap();
        let candidate = users.candidate("nobody");
        assert_eq!(candidate.hash.unwrap().work, work(expected), "{hashes:?}");
        assert!(!candidate.is_user);
        let known = users.candidate("user0");
        assert_eq!(known.hash.unwrap().work, work(hashes[0]));
    }
}

#[test]
fn a_file_without_users_admits_nobody() {
    let users = Users::parse(b"# nobody yet\n").unwrap();
    assert!(!users.candidate("ann").verify("secret"));
    assert_eq!(users.warnings(), [UsersWarning::NoUsers]);
    assert!(users.is_empty());
}

#[test]
fn weak_hashes_are_counted() {
    let text = format!("\nbob:{APR1}\ncat:{APR1}\n");
    let users = Users::parse(text.as_bytes()).unwrap();
    assert_eq!(
        users.warnings(),
        [UsersWarning::Apr1 { first: 2, count: 2 }]
    );
    let text = format!("ann:{BCRYPT}\nbob:{BCRYPT}\n");
    assert_eq!(Users::parse(text.as_bytes()).unwrap().warnings(), []);
}

#[test]
fn users_whom_the_time_of_an_answer_tells_apart_are_counted() {
    let costly = BCRYPT.replace("$04$", "$05$");
    let sha = "$5$rounds=1000$saltstring$5B8vYYiY.CVt1RlTTf8KbXBH3hsxY/GNooZaBBGWEc5";
    for (hashes, first, count) in [
        (vec![BCRYPT, &costly], 2, 1),
        (vec![BCRYPT, &costly, &costly], 1, 1),
        (vec![BCRYPT, BCRYPT, sha, BCRYPT, &costly, &costly], 3, 3),
    ] {
        let lines = (0..)
            .zip(&hashes)
            .map(|(number, hash)| format!("user{number}:{hash}\n"));
        let users = Users::parse(lines.collect::<String>().as_bytes()).unwrap();
        let expected = UsersWarning::MixedWork { first, count };
        assert_eq!(users.warnings(), [expected], "{hashes:?}");
    }
}

#[test]
fn all_faults_come_with_their_lines() {
    let text = format!(
        "ann:{BCRYPT}\nbob\n:{BCRYPT}\ncat:\nann:{APR1}\ndan:secret\ndan:{BCRYPT}\n{}:x\neve\x01:{BCRYPT}\nfay:{}\n",
        "n".repeat(256),
        "x".repeat(LINE_BYTES_MAX),
    );
    let faults = Users::parse(text.as_bytes()).unwrap_err();
    let found: Vec<_> = faults.iter().map(|it| (it.line, it.fault)).collect();
    assert_eq!(
        found,
        [
            (2, LineFault::NoColon),
            (3, LineFault::NoName),
            (4, LineFault::Hash(HashFault::Missing)),
            (5, LineFault::Duplicate { first: 1 }),
            (6, LineFault::Hash(HashFault::Plain)),
            (7, LineFault::Duplicate { first: 6 }),
            (8, LineFault::NameTooLong),
            (9, LineFault::ControlCharacter),
            (
                10,
                LineFault::TooLong {
                    max: LINE_BYTES_MAX
                }
            ),
        ]
    );
    assert_eq!(
        faults[4].to_string(),
        "line 6: this is no hash; a plain password is not taken"
    );
    assert_eq!(
        faults[4].hint(),
        "set the password anew with `htpasswd -B FILE USER`"
    );
    assert_eq!(
        faults[3].to_string(),
        "line 5: the user has a line already: line 1"
    );
}

#[test]
fn users_are_limited() {
    let lines = |count: usize| -> String {
        (0..count)
            .map(|number| format!("user{number}:{APR1}\n"))
            .collect()
    };
    let users = Users::parse(lines(USERS_MAX).as_bytes()).unwrap();
    assert_eq!(users.len(), USERS_MAX);
    assert!(users.candidate("user9999").verify("secret"));
    let fault = LineFault::TooMany { max: USERS_MAX };
    let line = USERS_MAX + 1;
    let faults = Users::parse(lines(USERS_MAX + 9).as_bytes()).unwrap_err();
    assert_eq!(faults, [FaultyLine { line, fault }]);
}

#[test]
fn nothing_secret_is_printed() {
    let text = format!("ann:{BCRYPT}\n");
    let users = Users::parse(text.as_bytes()).unwrap();
    let printed = format!("{users:?} {:?}", users.candidate("ann"));
    assert!(
        printed.contains("ann") && !printed.contains("BDsctodQR"),
        "{printed}"
    );
}

/// htpasswd -nbBC 4 ann secret
const BCRYPT: &str = "$2y$04$BDsctodQR/lVgkBWw8Wue.7UqFJZ1OUfa1MHqRqRBxBImKQbgf.e.";

/// htpasswd -nb u secret
const APR1: &str = "$apr1$WYrnZ5sg$So.B3R9PrvygW7DDBwrTX0";

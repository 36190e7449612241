//! Checks files of users and groups, and the field `Authorization` with the Basic scheme, with any bytes.
//!
//! Plain functions that panic on a finding: the fuzz targets call them, and so does the replay of the committed corpora
//! in the crate's own tests.

use base64ct::{Base64, Encoding as _};
use catamaran_credentials::{
    BasicCredentials, FaultyLine, Groups, LineFault, Users, UsersWarning, challenge,
};

/// Reads a file as one of users and as one of groups. Line ends of Windows must change nothing, a user may not be
/// there twice, and messages must be fit for a log.
pub(crate) fn file(input: &[u8]) {
    if input.len() > 1 << 20 {
        return;
    }
    let windows = with_carriage_returns(input);
    let users = Users::parse(input);
    let again = Users::parse(&windows);
    match (&users, &again) {
        (Ok(users), Ok(again)) => {
            assert_eq!(users.len(), again.len());
            assert_eq!(users.warnings(), again.warnings());
            assert_eq!(
                users.is_empty(),
                users.warnings() == [UsersWarning::NoUsers]
            );
        }
        (Err(faults), Err(again)) => {
            assert_eq!(faults, again);
            check_faults(input, faults);
        }
        _ => panic!("line ends decide: {users:?} {again:?}"),
    }
    if let Ok(users) = users {
        let twice = [input, b"\n", input].concat();
        match Users::parse(&twice) {
            Ok(_) => assert!(users.is_empty()),
            Err(faults) => {
                let is_told = |it: &FaultyLine| {
                    matches!(it.fault, LineFault::Duplicate { .. } | LineFault::More)
                };
                assert!(
                    !users.is_empty() && faults.iter().all(is_told),
                    "{faults:?}"
                );
            }
        }
    }
    let groups = Groups::parse(input);
    assert_eq!(groups, Groups::parse(&windows));
    match groups {
        Ok(groups) => check_members(input, &groups),
        Err(faults) => check_faults(input, &faults),
    }
}

/// The members of each name that a line may begin with.
fn check_members(input: &[u8], groups: &Groups) {
    for line in String::from_utf8_lossy(input).lines() {
        let name = line.trim_ascii().split(':').next().unwrap_or_default();
        let members: Vec<&str> = groups.members(name).collect();
        assert!(members.is_sorted());
        assert!(members.iter().all(|member| groups.contains(name, member)));
        assert!(!groups.contains(name, ""));
    }
}

fn check_faults(input: &[u8], faults: &[FaultyLine]) {
    let lines = input.split(|byte| *byte == b'\n').count();
    assert!(!faults.is_empty() && faults.len() <= 101);
    assert!(faults.is_sorted_by(|one, next| one.line < next.line));
    for fault in faults {
        assert!((1..=lines).contains(&fault.line), "{fault}");
        let texts = [fault.to_string(), fault.hint().to_owned()];
        let is_printable = |byte: u8| (b' '..=b'~').contains(&byte);
        assert!(
            texts.iter().all(|text| text.bytes().all(is_printable)),
            "{texts:?}"
        );
    }
}

fn with_carriage_returns(input: &[u8]) -> Vec<u8> {
    let lines: Vec<&[u8]> = input.split(|byte| *byte == b'\n').collect();
    lines.join(&b"\r\n"[..])
}

/// Reads a value of `Authorization`, and makes a challenge with the same text as the realm. Credentials must have one
/// spelling only, but for the case of the scheme and spaces behind it.
pub(crate) fn basic(input: &[u8]) {
    if let Ok(Some(credentials)) = BasicCredentials::parse(input) {
        let (user, password) = (credentials.user(), credentials.password());
        assert!(!user.is_empty() && !user.contains(':'));
        let text = format!("{user}:{password}");
        assert!(!text.contains(char::is_control));
        let mut buffer = vec![0; input.len()];
        let token =
            Base64::encode(text.as_bytes(), &mut buffer).expect("it came from as many bytes");
        assert!(input[..5].eq_ignore_ascii_case(b"basic"));
        assert_eq!(input[5..].trim_ascii_start(), token.as_bytes());
        let canonical = format!("Basic {token}");
        let again = BasicCredentials::parse(canonical.as_bytes()).expect("it was read before");
        let again = again.expect("the scheme is Basic");
        assert_eq!((again.user(), again.password()), (user, password));
    }
    let realm = String::from_utf8_lossy(input);
    if let Ok(value) = challenge(&realm) {
        assert!(!value.contains(char::is_control));
        let quoted = value
            .strip_prefix("Basic realm=\"")
            .expect("it is a challenge");
        let mut read = String::new();
        let mut characters = quoted.chars();
        loop {
            match characters.next().expect("the quotes are closed") {
                '"' => break,
                '\\' => read.extend(characters.next()),
                other => read.push(other),
            }
        }
        assert_eq!(read, realm);
        assert_eq!(characters.as_str(), ", charset=\"UTF-8\"");
    }
}

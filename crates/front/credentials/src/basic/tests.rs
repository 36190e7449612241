use proptest::prelude::*;

use super::*;

/// The user and the password, or the fault.
fn check(value: &[u8]) -> Result<Option<(String, String)>, BasicFault> {
    let credentials = BasicCredentials::parse(value)?;
    Ok(credentials.map(|it| (it.user().to_owned(), it.password().to_owned())))
}

fn field(text: impl AsRef<[u8]>) -> Vec<u8> {
    let mut buffer = vec![0; text.as_ref().len() * 2 + 4];
    let token = Base64::encode(text.as_ref(), &mut buffer).unwrap();
    format!("Basic {token}").into_bytes()
}

#[track_caller]
fn accepts(value: &[u8], user: &str, password: &str) {
    assert_eq!(
        check(value),
        Ok(Some((user.to_owned(), password.to_owned())))
    );
}

#[test]
fn examples_of_rfc_7617() {
    accepts(
        b"Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==",
        "Aladdin",
        "open sesame",
    );
    accepts(b"Basic dGVzdDoxMjPCow==", "test", "123\u{a3}");
}

#[test]
fn the_scheme_has_any_case_and_spaces_behind_it() {
    for scheme in ["basic ", "BASIC ", "bAsIc   "] {
        accepts(format!("{scheme}YTpi").as_bytes(), "a", "b");
    }
    for value in [
        "",
        "Basi",
        "Bearer YTpi",
        "BasicYTpi",
        "Basic\tYTpi",
        "Basics YTpi",
        "Digest a=\"Basic \"",
    ] {
        assert_eq!(check(value.as_bytes()), Ok(None), "{value}");
    }
    assert_eq!(check(&[b'x'; 100_000]), Ok(None));
}

#[test]
fn a_password_may_contain_a_colon_and_be_empty() {
    accepts(&field("ann:a:b:"), "ann", "a:b:");
    accepts(&field("ann:"), "ann", "");
    accepts(&field("ann e:  "), "ann e", "  ");
}

#[test]
fn what_cannot_be_right_is_a_fault() {
    for (value, expected) in [
        (b"Basic".to_vec(), BasicFault::NoColon),
        (b"Basic  ".to_vec(), BasicFault::NoColon),
        (b"Basic YTpi YTpi".to_vec(), BasicFault::NotBase64),
        (b"Basic YTpi,".to_vec(), BasicFault::NotBase64),
        (b"Basic realm=\"x\"".to_vec(), BasicFault::NotBase64),
        (b"Basic \tYTpi".to_vec(), BasicFault::NotBase64),
        (b"Basic YTpi\xff".to_vec(), BasicFault::NotBase64),
        // Padding is neither left out nor added, and the bits that it hides are 0.
        (b"Basic YTo".to_vec(), BasicFault::NotBase64),
        (b"Basic YTpi====".to_vec(), BasicFault::NotBase64),
        (b"Basic YTp=".to_vec(), BasicFault::NotBase64),
        (b"Basic YTpi=".to_vec(), BasicFault::NotBase64),
        (b"Basic =".to_vec(), BasicFault::NotBase64),
        // The alphabet of URLs is another.
        (b"Basic YTr_".to_vec(), BasicFault::NotBase64),
        (field("ann"), BasicFault::NoColon),
        (field(":secret"), BasicFault::NoUser),
        (field(":"), BasicFault::NoUser),
        (field("a\0nn:secret"), BasicFault::ControlCharacter),
        (field("ann:sec\0ret"), BasicFault::ControlCharacter),
        (field("ann:secret\r\n"), BasicFault::ControlCharacter),
        (field("ann:\u{7f}"), BasicFault::ControlCharacter),
        (field("ann\u{85}:x"), BasicFault::ControlCharacter),
        (field(b"j\xf6rg:x"), BasicFault::NotUtf8),
    ] {
        assert_eq!(check(&value), Err(expected), "{}", value.escape_ascii());
    }
}

#[test]
fn lengths_are_limited() {
    let name = "n".repeat(NAME_BYTES_MAX);
    let password = "p".repeat(PASSWORD_BYTES_MAX);
    accepts(&field(format!("{name}:{password}")), &name, &password);
    for (user, secret) in [
        (format!("{name}n"), "x".to_owned()),
        ("x".to_owned(), format!("{password}p")),
    ] {
        assert_eq!(
            check(&field(format!("{user}:{secret}"))),
            Err(BasicFault::TooLong)
        );
    }
    // 8 KiB are decoded, one more byte is not: then it would be a fault of another kind.
    let mut longest = b"Basic ".to_vec();
    longest.resize(AUTHORIZATION_BYTES_MAX, b'?');
    assert_eq!(check(&longest), Err(BasicFault::NotBase64));
    longest.push(b'?');
    assert_eq!(check(&longest), Err(BasicFault::TooLong));
}

#[test]
fn the_password_is_not_printed() {
    let credentials = BasicCredentials::parse(&field("ann:secret"))
        .unwrap()
        .unwrap();
    assert_eq!(format!("{credentials:?}"), "BasicCredentials(\"ann\")");
}

#[test]
fn a_realm_is_quoted() {
    for (realm, expected) in [
        ("staff", Ok("Basic realm=\"staff\", charset=\"UTF-8\"")),
        ("", Ok("Basic realm=\"\", charset=\"UTF-8\"")),
        (
            "a \"b\" \\c",
            Ok("Basic realm=\"a \\\"b\\\" \\\\c\", charset=\"UTF-8\""),
        ),
        ("Büro", Ok("Basic realm=\"Büro\", charset=\"UTF-8\"")),
        ("a\r\nSet-Cookie: b", Err(RealmFault::ControlCharacter)),
        ("\u{7f}", Err(RealmFault::ControlCharacter)),
        (&"x".repeat(256), Err(RealmFault::TooLong)),
    ] {
        assert_eq!(
            challenge(realm).as_deref().map_err(|fault| *fault),
            expected,
            "{realm}"
        );
    }
}

proptest! {
    #[test]
    fn what_a_client_sends_is_read(user in "[^:\\p{Cc}]{1,60}", password in "\\P{Cc}{0,120}") {
        prop_assume!(user.len() <= NAME_BYTES_MAX && password.len() <= PASSWORD_BYTES_MAX);
        let value = field(format!("{user}:{password}"));
        prop_assert_eq!(check(&value), Ok(Some((user, password))));
    }
}

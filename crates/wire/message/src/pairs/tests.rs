use proptest::prelude::*;

use super::*;

/// The values that are not empty.
fn values<'a>(pairs: impl Iterator<Item = (&'a str, &'a [u8])>) -> Vec<&'a [u8]> {
    let values = pairs.map(|(_, value)| value);
    values.filter(|value| !value.is_empty()).collect()
}

#[test]
fn pieces_are_as_sent_but_for_blanks() {
    let found: Vec<_> = pieces(b"a=1; b ; c\t= \"d=e\" ;;=f").collect();
    let expected = [
        ("a", Some("1")),
        ("b", None),
        ("c", Some(" \"d=e\"")),
        ("", None),
        ("", Some("f")),
    ];
    let bytes = |(name, value): (&'static str, Option<&'static str>)| {
        (name.as_bytes(), value.map(str::as_bytes))
    };
    assert_eq!(found, expected.map(bytes));
}

#[test]
fn cookies_are_found_by_their_exact_names() {
    let names = ["JSESSIONID".to_owned(), "SID".to_owned()];
    for (field, expected) in [
        ("JSESSIONID=1.a", "1.a"),
        ("a=b; JSESSIONID=1.a; c=d;SID=2.b", "1.a 2.b"),
        ("JSESSIONID=1.a;JSESSIONID=2.b", "1.a 2.b"),
        ("  JSESSIONID \t=  \"1.a\"  ", "1.a"),
        ("JSESSIONID=\"1.a", "\"1.a"),
        ("jsessionid=1.a; XJSESSIONID=1.a; JSESSIONIDX=1.a", ""),
        ("JSESSIONID; JSESSIONID=; =1.a; ; JSESSIONID=\"\"", ""),
        ("JSESSIONID=1=2.a", "1=2.a"),
        ("x=\"; JSESSIONID=1.a\"", "1.a\""),
        ("", ""),
    ] {
        let found = values(named(field.as_bytes(), &names));
        let expected: Vec<_> = expected.split_whitespace().map(str::as_bytes).collect();
        assert_eq!(found, expected, "{field}");
    }
    assert_eq!(named(b"SID=; sid=; SID", &names).count(), 1);
}

#[test]
fn parameters_are_found_in_any_segment() {
    let names = ["jsessionid".to_owned()];
    for (path, expected) in [
        ("/app/page;jsessionid=1.a", "1.a"),
        ("/app;jsessionid=1.a/page;x=1;jsessionid=2.b", "1.a 2.b"),
        ("/app/page;JSESSIONID=1.a", ""),
        ("/app/jsessionid=1.a", ""),
        ("/app/page;x;jsessionid=", ""),
        ("/app/;a=b;jsessionid=1.a;/", "1.a"),
        ("*", ""),
        ("", ""),
    ] {
        let found = values(parameters(path.as_bytes(), &names));
        let expected: Vec<_> = expected.split_whitespace().map(str::as_bytes).collect();
        assert_eq!(found, expected, "{path}");
    }
}

#[test]
fn a_cookie_of_ours_is_taken_out() {
    for (field, rest) in [
        ("a=1; ROUTE=x; b=2", Some("a=1; b=2")),
        ("ROUTE=x; b=2", Some("b=2")),
        ("a=1;ROUTE=x;ROUTE=y", Some("a=1")),
        ("ROUTE=x", Some("")),
        ("a=1; XROUTE=x; ROUTE", None),
        ("", None),
    ] {
        let rest = rest.map(|rest| rest.as_bytes().to_vec());
        assert_eq!(without(field.as_bytes(), "ROUTE"), rest, "{field}");
    }
}

proptest! {
    /// Removing our own cookie keeps all other cookies, and removes every one of ours.
    #[test]
    fn other_cookies_stay(pairs in prop::collection::vec(("[ab]", "[0-9]{1,3}"), 0..20)) {
        let field: Vec<_> = pairs.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let field = field.join("; ");
        let rest = without(field.as_bytes(), "a").unwrap_or_else(|| field.clone().into_bytes());
        let (ours, others) = (["a".to_owned()], ["b".to_owned()]);
        prop_assert_eq!(named(&rest, &ours).count(), 0);
        prop_assert_eq!(values(named(field.as_bytes(), &others)), values(named(&rest, &others)));
    }

    /// Reading never panics, whatever the bytes are.
    #[test]
    fn any_bytes_are_read(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let names = ["a".to_owned()];
        prop_assert!(named(&bytes, &names).all(|(_, value)| value.len() < bytes.len()));
        prop_assert!(parameters(&bytes, &names).all(|(_, value)| !value.contains(&b'/')));
        let rest = without(&bytes, "a");
        prop_assert!(rest.is_none_or(|rest| rest.len() < bytes.len()));
    }
}

use super::ConditionOutcome::{Failed, Met, NotModified};
use super::*;

fn headers(fields: &[(&'static str, &str)]) -> Fields {
    let mut headers = Fields::new();
    for (name, value) in fields {
        headers.append(*name, value);
    }
    headers
}

fn get(fields: &[(&'static str, &str)]) -> ConditionOutcome {
    evaluate(&Method::GET, &headers(fields), &OWN)
}

#[test]
fn a_request_without_conditions_is_performed() {
    assert_eq!(get(&[]), Met);
    assert_eq!(get(&[("host", "a"), ("if-range", "\"b\"")]), Met);
}

#[test]
fn a_list_of_tags_is_searched_with_the_weak_comparison() {
    for (list, expected) in [
        ("\"a\"", NotModified),
        ("W/\"a\"", NotModified),
        ("*", NotModified),
        (" * ", NotModified),
        ("\"b\", \"a\"", NotModified),
        ("\"b\",\t,, W/\"a\" ,\"c\"", NotModified),
        ("\"b\"", Met),
        ("", Met),
        (",", Met),
        // No tag at all, or no longer one.
        ("a", Met),
        ("w/\"a\"", Met),
        ("W/ \"a\"", Met),
        ("\"a", Met),
        ("\"a\"b", Met),
        ("b, \"a\"", Met),
        ("*, \"b\"", Met),
        // A comma belongs to the tag, and there is no escape.
        ("\"x,a,y\"", Met),
        ("\"b, \"a\"", Met),
        ("\"\\\"a\"", Met),
        ("\"a \"", Met),
    ] {
        assert_eq!(get(&[("if-none-match", list)]), expected, "{list:?}");
    }
}

#[test]
fn several_lines_are_one_list() {
    for name in ["if-none-match", "if-match"] {
        let both = get(&[(name, "\"b\", \"c\""), (name, "\"a\"")]);
        let neither = get(&[(name, "\"b\""), (name, "\"c\"")]);
        let expected = match name {
            "if-match" => (Met, Failed),
            _ => (NotModified, Met),
        };
        assert_eq!((both, neither), expected, "{name}");
    }
}

#[test]
fn a_match_is_asked_for_with_the_strong_comparison() {
    let weak = Validators {
        etag: Some(b"W/\"a\""),
        ..OWN
    };
    let none = Validators { etag: None, ..OWN };
    for (list, of_strong, of_weak, of_none) in [
        ("\"a\"", Met, Failed, Failed),
        ("W/\"a\"", Failed, Failed, Failed),
        ("\"b\", \"a\"", Met, Failed, Failed),
        ("\"b\"", Failed, Failed, Failed),
        ("*", Met, Met, Met),
        ("", Failed, Failed, Failed),
        ("junk", Failed, Failed, Failed),
    ] {
        let headers = headers(&[("if-match", list)]);
        let found = [OWN, weak, none].map(|own| evaluate(&Method::GET, &headers, &own));
        assert_eq!(found, [of_strong, of_weak, of_none], "{list:?}");
    }
}

#[test]
fn dates_are_compared_to_the_second() {
    for (date, since, until) in [
        (DATE, NotModified, Met),
        (LATER, NotModified, Met),
        (EARLIER, Met, Failed),
        // The two obsolete forms.
        ("Sunday, 06-Nov-94 08:49:37 GMT", NotModified, Met),
        ("Sun Nov  6 08:49:37 1994", NotModified, Met),
        ("Sun Nov  6 08:49:36 1994", Met, Failed),
        // No date: as if the field were not there.
        ("yesterday", Met, Met),
        ("", Met, Met),
        ("0", Met, Met),
        ("Sun, 06 Nov 1994 08:49:37 CET", Met, Met),
        ("Sun, 06 Nov 1994 08:49:37", Met, Met),
        ("Sun, 6 Nov 1994 08:49:37 GMT", Met, Met),
        ("Mon, 06 Nov 1994 08:49:37 GMT", Met, Met),
        ("Sun, 06 Nov 1994 24:49:37 GMT", Met, Met),
        (
            "Sun, 06 Nov 1994 08:49:37 GMT, Sun, 06 Nov 1994 08:49:37 GMT",
            Met,
            Met,
        ),
    ] {
        assert_eq!(get(&[("if-modified-since", date)]), since, "{date:?}");
        assert_eq!(get(&[("if-unmodified-since", date)]), until, "{date:?}");
    }
}

#[test]
fn of_several_dates_none_counts() {
    for (name, date) in [
        ("if-modified-since", DATE),
        ("if-unmodified-since", EARLIER),
    ] {
        assert_ne!(get(&[(name, date)]), Met, "{name}");
        assert_eq!(get(&[(name, date), (name, date)]), Met, "{name}");
    }
}

#[test]
fn without_a_date_of_its_own_a_representation_has_no_age() {
    let undated = Validators {
        modified: None,
        ..OWN
    };
    for (name, date) in [
        ("if-modified-since", LATER),
        ("if-unmodified-since", EARLIER),
    ] {
        let headers = headers(&[(name, date)]);
        assert_eq!(evaluate(&Method::GET, &headers, &undated), Met, "{name}");
    }
}

#[test]
fn what_changes_a_resource_fails_where_a_read_has_it() {
    for (method, tag, date) in [
        (Method::GET, NotModified, NotModified),
        (Method::HEAD, NotModified, NotModified),
        (Method::PUT, Failed, Met),
        (Method::DELETE, Failed, Met),
        (Method::POST, Failed, Met),
    ] {
        let tagged = headers(&[("if-none-match", "*")]);
        assert_eq!(evaluate(&method, &tagged, &OWN), tag, "{method}");
        let dated = headers(&[("if-modified-since", DATE)]);
        assert_eq!(evaluate(&method, &dated, &OWN), date, "{method}");
    }
}

/// Compares every combination of the four fields with RFC 9110, section 13.2.2, written down
/// literally.
#[test]
fn the_order_is_that_of_the_standard() {
    let tags = [None, Some(("\"a\"", true)), Some(("\"b\"", false))];
    let dates = [None, Some((LATER, true)), Some((EARLIER, false))];
    for method in [Method::GET, Method::PUT] {
        let reads = method == Method::GET;
        for (if_match, until) in tags.iter().flat_map(|tag| dates.map(|date| (*tag, date))) {
            for (if_none, since) in tags.iter().flat_map(|tag| dates.map(|date| (*tag, date))) {
                let fields = [
                    ("if-match", if_match),
                    ("if-unmodified-since", until),
                    ("if-none-match", if_none),
                    ("if-modified-since", since),
                ];
                let present: Vec<_> = fields
                    .into_iter()
                    .filter_map(|(name, field)| Some((name, field?.0)))
                    .collect();
                let found = evaluate(&method, &headers(&present), &OWN);
                let expected = match (if_match, until, if_none, since) {
                    (Some((_, false)), _, _, _) => Failed,
                    (None, Some((_, false)), _, _) => Failed,
                    (_, _, Some((_, true)), _) if reads => NotModified,
                    (_, _, Some((_, true)), _) => Failed,
                    (_, _, None, Some((_, true))) if reads => NotModified,
                    _ => Met,
                };
                assert_eq!(found, expected, "{method} {present:?}");
            }
        }
    }
}

#[test]
fn a_range_is_given_of_exactly_what_the_client_has() {
    let weak_tag = Validators {
        etag: Some(b"W/\"a\""),
        ..OWN
    };
    let weak_date = Validators {
        is_modified_strong: false,
        ..OWN
    };
    let none = Validators::default();
    for (line, expected) in [
        ("\"a\"", [true, false, true, false]),
        (" \"a\" ", [true, false, true, false]),
        ("W/\"a\"", [false; 4]),
        ("\"b\"", [false; 4]),
        ("\"a\", \"b\"", [false; 4]),
        ("*", [false; 4]),
        ("", [false; 4]),
        (DATE, [true, true, false, false]),
        (EARLIER, [false; 4]),
        (LATER, [false; 4]),
        ("Sun Nov  6 08:49:37 1994", [true, true, false, false]),
        ("yesterday", [false; 4]),
    ] {
        let headers = headers(&[("if-range", line)]);
        let found = [OWN, weak_tag, weak_date, none].map(|own| allows_range(&headers, &own));
        assert_eq!(found, expected, "{line:?}");
    }
    assert!(allows_range(&Fields::new(), &none));
    let twice = headers(&[("if-range", "\"a\""), ("if-range", "\"a\"")]);
    assert!(!allows_range(&twice, &OWN));
}

#[test]
fn a_tag_of_our_own_that_is_malformed_equals_none() {
    for etag in ["a", "\"a", "W/a", "\"a\" ,", "\"a b\""] {
        let own = Validators {
            etag: Some(etag.as_bytes()),
            ..OWN
        };
        let tagged = headers(&[("if-none-match", etag), ("if-range", etag)]);
        assert_eq!(evaluate(&Method::GET, &tagged, &own), Met, "{etag}");
        assert!(!allows_range(&tagged, &own), "{etag}");
    }
}

/// The Unix time of Sunday, 6 November 1994, 08:49:37.
const AT: u64 = 784_111_777;
const DATE: &str = "Sun, 06 Nov 1994 08:49:37 GMT";
const EARLIER: &str = "Sun, 06 Nov 1994 08:49:36 GMT";
const LATER: &str = "Sun, 06 Nov 1994 08:49:38 GMT";

const OWN: Validators<'_> = Validators {
    etag: Some(b"\"a\""),
    modified: Some(AT),
    is_modified_strong: true,
};

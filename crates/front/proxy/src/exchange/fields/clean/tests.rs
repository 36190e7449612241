//! Tests which fields stay and which are removed; the numbers are rows of the hostile-request
//! table.

use catamaran_message::NameRef;
use catamaran_message::name::CONNECTION;

use super::*;

fn cleaned(fields: &[(&str, &str)]) -> (Vec<(String, String)>, usize) {
    let mut headers = Fields::from_iter(fields.iter().copied());
    let underscored = clean_request(&mut headers, &["sm_user".to_owned()], true, &mut None);
    headers.join_cookies();
    let mut left: Vec<_> = headers
        .iter()
        .map(|field| {
            let value = String::from_utf8_lossy(field.value()).into_owned();
            (field.lower_name(), value)
        })
        .collect();
    left.sort();
    (left, underscored)
}

fn check(fields: &[(&str, &str)], left: &[(&str, &str)]) {
    let left: Vec<_> = left
        .iter()
        .map(|&(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    assert_eq!(cleaned(fields).0, left);
}

#[test]
fn end_to_end_fields_stay() {
    let fields = [
        ("accept", "*/*"),
        ("cookie", "a=b"),
        ("host", "a"),
        ("x-own", "1"),
    ];
    check(&fields, &fields);
}

/// The fields of a request without suspicious names are not searched one by one.
#[test]
fn what_a_browser_sends_stays_without_a_look() {
    let names = [
        "host",
        "user-agent",
        "accept",
        "accept-language",
        "accept-encoding",
        "referer",
        "dnt",
        "cookie",
        "upgrade-insecure-requests",
        "sec-fetch-dest",
        "sec-fetch-mode",
        "sec-fetch-site",
        "sec-fetch-user",
        "priority",
        "pragma",
        "cache-control",
        "origin",
        "range",
        "if-none-match",
        "if-modified-since",
        "content-type",
        "authorization",
        "sec-ch-ua",
        "sec-ch-ua-mobile",
        "sec-ch-ua-platform",
        "x-requested-with",
    ];
    let headers = Fields::from_iter(names.map(|name| (name, "1")));
    assert!(!headers.may_have(SUSPECT));
    assert!(Fields::from_iter([(CONNECTION, "1")]).may_have(Traits::NOT_FORWARDED));
    for name in [NameRef::from("x-other"), "x-forwarded-for".into()] {
        assert!(
            Fields::from_iter([(name, "1")]).may_have(SUSPECT),
            "{name:?}"
        );
    }
}

#[test]
fn what_nobody_gets_is_kept_for_a_cache() {
    let mut headers = Fields::from_iter([
        ("connection", "x-own"),
        ("x-own", "1"),
        ("X-Forwarded-For", "2"),
        ("x_a", "3"),
        ("te", "4"),
    ]);
    let mut withheld = Some(Fields::new());
    clean_request(&mut headers, &[], false, &mut withheld);
    assert!(headers.is_empty(), "{headers:?}");
    let kept = withheld.expect("they are kept");
    let expected = [("x-own", "1"), ("x-forwarded-for", "2"), ("x_a", "3")];
    assert_eq!(kept, Fields::from_iter(expected));
}

#[test]
fn underscores_are_dropped_and_counted_53() {
    let fields = [
        ("X_Real_IP", "9"),
        ("transfer_encoding", "chunked"),
        ("Remote.User", "jo"),
        ("x-a", "1"),
    ];
    assert_eq!(cleaned(&fields), (vec![("x-a".into(), "1".into())], 3));
}

#[test]
fn listed_underscores_stay() {
    let fields = [("SM_USER", "jo"), ("sm-user", "x"), ("sm_users", "y")];
    let left = vec![
        ("sm-user".into(), "x".into()),
        ("sm_user".into(), "jo".into()),
    ];
    assert_eq!(cleaned(&fields), (left, 1));
}

#[test]
fn forwards_are_counted_down() {
    for (value, left, goes_on) in [
        ("0", "0", false),
        ("1", "0", true),
        ("10", "9", true),
        ("", "", true),
        ("+1", "+1", true),
        ("x", "x", true),
    ] {
        let mut headers = Fields::new();
        headers.insert(MAX_FORWARDS, value);
        assert_eq!(count_forwards(&mut headers), goes_on, "{value}");
        assert_eq!(headers.text_of(MAX_FORWARDS), Some(left));
    }
    assert!(count_forwards(&mut Fields::new()));
}

#[test]
fn connection_cannot_strip_what_matters_89() {
    check(
        &[
            ("connection", "close, X-Own, Cookie"),
            ("connection", "Authorization,host, x-other"),
            ("x-own", "1"),
            ("x-other", "2"),
            ("cookie", "a=b"),
            ("authorization", "Basic x"),
            ("host", "a"),
        ],
        &[
            ("authorization", "Basic x"),
            ("cookie", "a=b"),
            ("host", "a"),
        ],
    );
}

#[test]
fn hop_by_hop_fields_go_91() {
    check(
        &[
            ("keep-alive", "5"),
            ("proxy-connection", "x"),
            ("te", "gzip"),
            ("trailer", "x"),
            ("proxy-authorization", "x"),
            ("http2-settings", "x"),
            ("upgrade", "h2c"),
            ("expect", "100-continue"),
            ("proxy", "http://evil"),
            ("accept", "*/*"),
        ],
        &[("accept", "*/*")],
    );
}

#[test]
fn cookies_are_joined() {
    check(
        &[("cookie", "a=1"), ("cookie", "b=2")],
        &[("cookie", "a=1; b=2")],
    );
}

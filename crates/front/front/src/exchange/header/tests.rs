//! What stays and what goes; the numbers are rows of the hostile-request table.

use super::*;
use crate::exchange::forwarded;

fn cleaned(fields: &[(&'static str, &'static str)]) -> (Vec<(String, String)>, usize) {
    let mut headers = HeaderMap::new();
    for &(name, value) in fields {
        let name = HeaderName::from_bytes(name.as_bytes()).expect("a name");
        headers.append(name, HeaderValue::from_static(value));
    }
    let underscored = clean_request(
        &mut headers,
        &["sm_user".to_owned()],
        &mut Withheld::default(),
    );
    field::join_cookies(&mut headers);
    let mut left: Vec<_> = headers
        .iter()
        .map(|(name, value)| (name.to_string(), value.to_str().expect("text").to_owned()))
        .collect();
    left.sort();
    (left, underscored)
}

fn check(fields: &[(&'static str, &'static str)], left: &[(&str, &str)]) {
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

/// A request that has no other fields is not looked through for them.
#[test]
fn no_rule_removes_a_usual_field() {
    for name in USUAL {
        let headers =
            HeaderMap::from_iter([(HeaderName::from_static(name), HeaderValue::from_static("1"))]);
        assert!(are_usual(&headers), "{name}");
        let mut cleaned = headers.clone();
        let mut withheld = Withheld::new(true);
        assert_eq!(clean_request(&mut cleaned, &[], &mut withheld), 0, "{name}");
        forwarded::remove_claims(&mut cleaned, &mut withheld);
        assert!(withheld.into_fields().is_none(), "{name}");
        assert_eq!(cleaned, headers, "{name}");
        assert_ne!(*name, CONNECTION.as_str(), "it names others");
    }
    let odd = HeaderMap::from_iter([(CONNECTION, HeaderValue::from_static("close"))]);
    assert!(!are_usual(&odd));
}

#[test]
fn underscores_are_dropped_and_counted_53() {
    let fields = [
        ("X_Real_IP", "9"),
        ("transfer_encoding", "chunked"),
        ("x-a", "1"),
    ];
    assert_eq!(cleaned(&fields), (vec![("x-a".into(), "1".into())], 2));
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
        let mut headers = HeaderMap::new();
        headers.insert(MAX_FORWARDS, HeaderValue::from_static(value));
        assert_eq!(count_forwards(&mut headers), goes_on, "{value}");
        assert_eq!(headers[MAX_FORWARDS], left);
    }
    assert!(count_forwards(&mut HeaderMap::new()));
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

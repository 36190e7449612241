//! What becomes of a decoded head.

use http::{Request, Version};

use super::*;

/// A head with these fields, as the `h2` crate hands it over.
fn parts(method: &str, uri: &str, fields: &[(&str, &str)]) -> Parts {
    let mut request = Request::builder()
        .method(method)
        .uri(uri)
        .version(Version::HTTP_2);
    for (name, value) in fields {
        request = request.header(*name, *value);
    }
    request.body(()).expect("a request").into_parts().0
}

fn get(fields: &[(&str, &str)]) -> Result<Box<RequestHead>, Refusal> {
    read(
        parts("GET", "http://a.test/x?y", fields),
        true,
        &Limits::request(),
    )
}

fn refused(status: u16, token: &'static str) -> Refusal {
    answer(StatusCode::from_u16(status).expect("a status"), token)
}

#[test]
fn a_head_says_what_one_of_http_1_says() {
    let head = get(&[("accept", "*/*")]).expect("a head");
    assert_eq!(
        (&head.target.path[..], head.version),
        (&b"/x"[..], Version::HTTP_2)
    );
    assert_eq!(head.target.query.as_deref(), Some(&b"y"[..]));
    assert_eq!(head.target.scheme, Some(Scheme::Http));
    assert_eq!(
        head.authority,
        Authority::parse(&Bytes::from("a.test")).ok()
    );
    assert_eq!(
        (head.body, head.expect_continue),
        (BodyLength::Known(0), false)
    );
    let fields = [("content-length", "7"), ("expect", "100-Continue")];
    let head = read(
        parts(
            "POST",
            "/",
            &[&fields[..], &[("host", "B.test:81")]].concat(),
        ),
        false,
        &Limits::request(),
    );
    let head = head.expect("a head");
    assert_eq!(
        (head.body, head.expect_continue),
        (BodyLength::Known(7), true)
    );
    assert!(!head.headers.contains(CONTENT_LENGTH), "it became the body");
    assert_eq!(head.authority.expect("Host").to_bytes(), "b.test:81");
    let star = read(
        parts("OPTIONS", "*", &[("host", "a")]),
        true,
        &Limits::request(),
    );
    assert_eq!(star.expect("a head").target.path, "*");
}

#[test]
fn fields_obey_the_rules_of_http() {
    for (fields, expected) in [
        (&[("x", " a")][..], Refusal::Reset("h2-field-value")),
        (&[("x", "a\t")], Refusal::Reset("h2-field-value")),
        (
            &[("content-length", "5"), ("content-length", "5")],
            Refusal::Reset("h2-content-length"),
        ),
        (
            &[("content-length", "")],
            Refusal::Reset("h2-content-length"),
        ),
        (
            &[("content-length", "9223372036854775808")],
            Refusal::Reset("h2-content-length"),
        ),
        (&[("expect", "more")], refused(417, "expectation")),
        (&[("host", "b.test")], refused(400, "host-mismatch")),
        (&[("host", "a.test:80")], refused(400, "host-mismatch")),
        (
            &[("host", "a.test"), ("host", "a.test")],
            refused(400, "host-duplicate"),
        ),
        (&[("host", "a b")], refused(400, "host-syntax")),
    ] {
        assert_eq!(get(fields).err(), Some(expected), "{fields:?}");
    }
    assert!(get(&[("host", "A.test")]).is_ok(), "the same");
}

#[test]
fn targets_obey_the_rules_of_http() {
    let long = format!("http://a/{}", "x".repeat(8192));
    for (method, uri, expected) in [
        ("GET", "ftp://a.test/", refused(421, "scheme-mismatch")),
        ("GET", "http://u@a.test/", refused(400, "host-syntax")),
        ("GET", "http://a.test:0/", refused(400, "host-syntax")),
        ("GET", "/", refused(400, "host-missing")),
        ("GET", "*", refused(400, "target-form")),
        ("GET", "http://a/%zz", refused(400, "target-escape")),
        ("GET", &long, refused(414, "target-too-long")),
        ("CONNECT", "a.test:443", refused(405, "connect")),
        (
            "A123456789012345678901234567890123",
            "http://a/",
            refused(400, "method"),
        ),
    ] {
        let read = read(parts(method, uri, &[]), true, &Limits::request());
        assert_eq!(read.err(), Some(expected), "{method} {uri}");
    }
    let secure = Some(Scheme::Https);
    for uri in ["https://a/", "HTTPS://a/", "wss://a/"] {
        let head = read(parts("GET", uri, &[]), true, &Limits::request()).unwrap();
        assert_eq!(head.target.scheme, secure, "{uri}");
    }
}

#[test]
fn heads_are_limited() {
    let many: Vec<String> = (0..101).map(|index| format!("x-{index}")).collect();
    let many: Vec<_> = many.iter().map(|name| (name.as_str(), "")).collect();
    assert_eq!(get(&many).err(), Some(refused(431, "too-many-fields")));
    assert!(get(&many[1..]).is_ok());
    let long = "x".repeat(8190);
    assert_eq!(
        get(&[("x", &long)]).err(),
        Some(refused(431, "field-too-long"))
    );
    assert!(get(&[("x", &long[1..])]).is_ok());
}

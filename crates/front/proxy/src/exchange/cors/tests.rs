use std::time::Duration;

use super::*;
use crate::config::OriginPattern;

fn config(origins: &[&str]) -> CorsConfig {
    let patterns = origins
        .iter()
        .map(|text| OriginPattern::parse(text).unwrap());
    CorsConfig {
        origins: patterns.collect(),
        methods: vec![Method::GET, Method::PUT],
        headers: ["Content-Type", "X-Own"].map(FieldName::from_static).into(),
        expose: ["X-Total", "Link"].map(FieldName::from_static).into(),
        credentials: false,
        max_age: Duration::from_secs(600),
    }
}

fn request(fields: &[(&str, &str)]) -> RequestHead {
    let mut head = RequestHead::empty();
    head.headers = fields.iter().copied().collect();
    head
}

/// The fields of a response with these, as the request's answer changes them.
fn edited(fields: &CorsFields<'_>, response: &[(&str, &str)]) -> Vec<(String, String)> {
    let mut head = ResponseHead {
        headers: Fields::from_iter(response.iter().copied()),
        ..ResponseHead::default()
    };
    fields.edit(&mut head);
    let text = |value: &[u8]| String::from_utf8_lossy(value).into_owned();
    let fields = head.headers.iter();
    fields
        .map(|field| (field.lower_name(), text(field.value())))
        .collect()
}

fn owned(fields: &[(&str, &str)]) -> Vec<(String, String)> {
    let fields = fields.iter();
    fields
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect()
}

#[test]
fn the_fields_of_the_backend_are_replaced() {
    let config = CorsConfig {
        credentials: true,
        ..config(&[APP])
    };
    let backend = [
        ("Access-Control-Allow-Origin", "*"),
        ("access-control-allow-credentials", "true"),
        ("ACCESS-CONTROL-EXPOSE-HEADERS", "X-Secret"),
        ("Access-Control-Allow-Private-Network", "true"),
        ("Vary", "Cookie"),
        ("Timing-Allow-Origin", "*"),
    ];
    let allowed = CorsFields::of_request(&config, &request(&[("Origin", APP)]));
    let expected = [
        ("vary", "Cookie, Origin"),
        ("timing-allow-origin", "*"),
        ("access-control-allow-origin", APP),
        ("access-control-allow-credentials", "true"),
        ("access-control-expose-headers", "X-Total, Link"),
    ];
    assert_eq!(edited(&allowed, &backend), owned(&expected));
    let strange = CorsFields::of_request(&config, &request(&[("Origin", "https://evil.test")]));
    assert_eq!(edited(&strange, &backend), owned(&expected[..2]));
    assert_eq!(
        edited(&strange, &[("vary", "origin")]),
        owned(&[("vary", "origin")])
    );
    assert_eq!(edited(&strange, &[("vary", "*")]), owned(&[("vary", "*")]));
}

/// Row 13 of the limits.
#[test]
fn an_origin_that_is_absent_strange_or_sent_twice_gets_no_fields() {
    let config = config(&[APP, "https://*.example.org"]);
    let named = [
        &[][..],
        &[("Origin", "")],
        &[("Origin", "null")],
        &[("Origin", "https://evil.example.org.x")],
        &[("Origin", "https://app.example.org/")],
        &[("Origin", "https://app.example.org, https://app.example.org")],
        &[("Origin", APP), ("Origin", APP)],
        &[("Origin", APP), ("origin", "https://evil.test")],
        &[("Origin", "null"), ("Origin", APP)],
    ];
    for fields in named {
        let answer = CorsFields::of_request(&config, &request(fields));
        assert_eq!(
            edited(&answer, &[]),
            owned(&[("vary", "Origin")]),
            "{fields:?}"
        );
    }
}

#[test]
fn a_star_is_the_same_for_all() {
    let config = config(&["*"]);
    for fields in [&[][..], &[("Origin", APP)], &[("Origin", "null")]] {
        let answer = CorsFields::of_request(&config, &request(fields));
        let expected = [
            ("vary", "Origin"),
            ("access-control-allow-origin", "*"),
            ("access-control-expose-headers", "X-Total, Link"),
        ];
        assert_eq!(edited(&answer, &[]), owned(&expected), "{fields:?}");
    }
}

#[test]
fn a_tunnel_has_no_fields_of_cors() {
    let config = config(&[APP]);
    let answer = CorsFields::of_request(&config, &request(&[("Origin", APP)]));
    let mut head = ResponseHead {
        status: StatusCode::SWITCHING_PROTOCOLS,
        ..ResponseHead::default()
    };
    answer.edit(&mut head);
    assert!(head.headers.is_empty());
}

fn preflight(
    config: &CorsConfig,
    method: Method,
    fields: &[(&str, &str)],
) -> Result<Vec<(String, String)>, PreflightFault> {
    let head = request(fields);
    let granted = CorsFields::of_preflight(config, &head, method)?;
    Ok(edited(&granted, &[]))
}

fn asked(names: &str) -> [(&str, &str); 2] {
    [("Origin", APP), ("Access-Control-Request-Headers", names)]
}

#[test]
fn a_preflight_is_granted_what_is_listed() {
    let all = config(&[APP]);
    let granted = [
        ("vary", "Origin"),
        ("access-control-allow-origin", APP),
        ("access-control-allow-methods", "PUT"),
        ("access-control-allow-headers", "Content-Type, X-Own"),
        ("access-control-max-age", "600"),
    ];
    for names in ["", "x-own", "content-type,x-own", " X-OWN ,, Content-Type "] {
        let got = preflight(&all, Method::PUT, &asked(names));
        assert_eq!(got, Ok(owned(&granted)), "{names}");
    }
    let bare = CorsConfig {
        headers: Vec::new(),
        max_age: Duration::ZERO,
        ..config(&["*"])
    };
    let expected = [
        ("vary", "Origin"),
        ("access-control-allow-origin", "*"),
        ("access-control-allow-methods", "GET"),
        ("access-control-max-age", "0"),
    ];
    let got = preflight(&bare, Method::GET, &[("Origin", APP)]);
    assert_eq!(got, Ok(owned(&expected)));
}

#[test]
fn a_preflight_for_more_is_refused() {
    let all = config(&[APP]);
    for (method, fields, fault) in [
        (
            Method::PUT,
            &[("Origin", "https://evil.test")][..],
            PreflightFault::Origin,
        ),
        (
            Method::PUT,
            &[("Origin", APP), ("Origin", APP)],
            PreflightFault::Origin,
        ),
        (Method::DELETE, &[("Origin", APP)], PreflightFault::Method),
        (
            Method::from_bytes(b"put").unwrap(),
            &[("Origin", APP)],
            PreflightFault::Method,
        ),
        (
            Method::PUT,
            &asked("x-own, x-other"),
            PreflightFault::Headers,
        ),
        (Method::PUT, &asked("*"), PreflightFault::Headers),
        (
            Method::PUT,
            &asked("authorization"),
            PreflightFault::Headers,
        ),
        (Method::PUT, &asked("x-own x-own"), PreflightFault::Headers),
    ] {
        assert_eq!(preflight(&all, method, fields), Err(fault), "{fields:?}");
    }
    let lines = [
        ("Origin", APP),
        ("Access-Control-Request-Headers", "x-own"),
        ("Access-Control-Request-Headers", "x-other"),
    ];
    assert_eq!(
        preflight(&all, Method::PUT, &lines),
        Err(PreflightFault::Headers)
    );
    for (count, fits) in [(ASKED_MAX, true), (ASKED_MAX + 1, false)] {
        let names = vec!["x-own"; count].join(",");
        let fields = asked(&names);
        assert_eq!(
            preflight(&all, Method::PUT, &fields).is_ok(),
            fits,
            "{count}"
        );
    }
}

#[test]
fn a_preflight_has_an_origin_and_names_a_method() {
    let method = |fields: &[(&str, &str)]| {
        let head = RequestHead {
            method: Method::OPTIONS,
            ..request(fields)
        };
        is_preflight(&head).then(|| announced_method(&head))
    };
    const NAMED: (&str, &str) = ("Access-Control-Request-Method", "PUT");
    assert_eq!(method(&[("Origin", APP), NAMED]), Some(Some(Method::PUT)));
    assert_eq!(method(&[("Origin", APP), NAMED, NAMED]), Some(None));
    let bad = ("Access-Control-Request-Method", "P T");
    assert_eq!(method(&[("Origin", APP), bad]), Some(None));
    assert_eq!(method(&[("Origin", APP)]), None);
    assert_eq!(method(&[NAMED]), None);
    let head = request(&[("Origin", APP), NAMED]);
    assert!(!is_preflight(&head), "{}", head.method);
}

#[test]
fn it_is_said_who_may_do_what() {
    let credentials = CorsConfig {
        credentials: true,
        ..config(&[APP])
    };
    let head = request(&[("Origin", APP)]);
    let read = CorsFields::of_request(&credentials, &head).words();
    assert_eq!(
        read,
        "pages of https://app.example.org may read the response, with credentials ([route.cors])"
    );
    let open = config(&["*"]);
    let sent = CorsFields::of_preflight(&open, &head, Method::PUT).unwrap();
    assert_eq!(
        sent.words(),
        "pages of every origin may send PUT ([route.cors])"
    );
    let nobody = CorsFields::of_request(&credentials, &request(&[])).words();
    assert!(nobody.starts_with("no page of another origin"), "{nobody}");
}

const APP: &str = "https://app.example.org";

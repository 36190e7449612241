use super::*;
use crate::config::{Address, BackendConfig, Protocol};

fn sticky(cookie: StickyCookie) -> Sticky {
    let backend = |name: &str| BackendConfig {
        name: name.to_owned(),
        ..BackendConfig::new(Protocol::Http, Address::Unix("/backend".into()))
    };
    let mut upstream = UpstreamConfig::new("app", vec![backend("a"), backend("b")]);
    upstream.sticky = Some(StickyConfig {
        set_cookie: Some(cookie),
        ..StickyConfig::default()
    });
    Sticky::new(&upstream).expect("sticky")
}

fn text(field: Option<&HeaderValue>) -> &str {
    field
        .and_then(|field| field.to_str().ok())
        .expect("a field")
}

#[test]
fn the_cookie_leads_back_and_names_nobody() {
    let sticky = sticky(StickyCookie::new("ROUTEID"));
    for member in [0, 1] {
        let field = text(sticky.cookie(member, false));
        let (pair, attributes) = field.split_once("; ").expect("attributes");
        assert_eq!(attributes, "Path=/; HttpOnly; SameSite=Lax");
        assert_eq!(pair.len(), "ROUTEID=".len() + VALUE_LEN);
        let secure = text(sticky.cookie(member, true));
        assert_eq!(secure, format!("{field}; Secure"));
        let mut headers = HeaderMap::new();
        let received = format!("x=1; {pair}; y=2");
        headers.append(COOKIE, HeaderValue::from_str(&received).expect("a field"));
        assert_eq!(sticky.take_own(&mut headers), Some(Some(member)));
        assert_eq!(headers[COOKIE], "x=1; y=2");
        assert_eq!(sticky.take_own(&mut headers), None);
    }
}

#[test]
fn a_value_depends_on_the_key_alone() {
    // Fronts, restarts and versions agree on values made with the fixed key.
    assert_eq!(value(FIXED_KEY, "app", "a"), value(FIXED_KEY, "app", "a"));
    let own = |key: &[u8]| value(key, "app", "a");
    assert_ne!(own(FIXED_KEY), own(b"another"));
    assert_ne!(value(FIXED_KEY, "ap", "pa"), value(FIXED_KEY, "app", "a"));
}

#[test]
fn a_cookie_of_nobody_is_taken_out_as_well() {
    let sticky = sticky(StickyCookie::new("ROUTEID"));
    let mut headers = HeaderMap::new();
    headers.append(COOKIE, HeaderValue::from_static("ROUTEID=forged"));
    headers.append(COOKIE, HeaderValue::from_static("x=1"));
    headers.append(COOKIE, HeaderValue::from_static("ROUTEID=again; y=2"));
    assert_eq!(sticky.take_own(&mut headers), Some(None));
    let left: Vec<_> = headers.get_all(COOKIE).iter().collect();
    assert_eq!(left, ["x=1", "y=2"]);
}

#[test]
fn responses_for_shared_caches_get_no_cookie() {
    for (control, may) in [
        ("", true),
        ("private, max-age=5", true),
        ("no-store", true),
        ("max-age=5, public", false),
        ("Public", false),
        ("S-MaxAge = 5", false),
        ("max-age=5,s-maxage=7", false),
        ("x=public-key", true),
    ] {
        let mut headers = HeaderMap::new();
        headers.append(CACHE_CONTROL, HeaderValue::from_static("max-age=1"));
        headers.append(CACHE_CONTROL, HeaderValue::from_static(control));
        assert_eq!(may_carry_cookie(StatusCode::OK, &headers), may, "{control}");
        assert!(!may_carry_cookie(StatusCode::NOT_MODIFIED, &headers));
    }
}

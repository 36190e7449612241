use bytes::Bytes;
use catamaran_message::Fields;
use catamaran_message::name::COOKIE;

use super::own_cookie::VALUE_LEN;
use super::*;
use crate::config::{Address, BackendConfig, Protocol, StickyCookie};

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

fn text(field: Option<&Bytes>) -> &str {
    std::str::from_utf8(field.expect("a field")).expect("text")
}

#[test]
fn the_cookie_leads_back_and_names_nobody() {
    let sticky = sticky(StickyCookie::new("ROUTEID"));
    let own = sticky.own_cookie.as_ref().expect("a cookie");
    for member in [0, 1] {
        let field = text(sticky.response_cookies.own(member, false));
        let (pair, attributes) = field.split_once("; ").expect("attributes");
        assert_eq!(attributes, "Path=/; HttpOnly; SameSite=Lax");
        assert_eq!(pair.len(), "ROUTEID=".len() + VALUE_LEN);
        let secure = text(sticky.response_cookies.own(member, true));
        assert_eq!(secure, format!("{field}; Secure"));
        let mut headers = Fields::new();
        let received = format!("x=1; {pair}; y=2");
        headers.append(COOKIE, received);
        assert_eq!(own.take(&mut headers), Some(Some(member)));
        assert_eq!(headers.text_of(COOKIE), Some("x=1; y=2"));
        assert_eq!(own.take(&mut headers), None);
    }
}

#[test]
fn a_cookie_without_a_value_is_taken_out_as_well() {
    let sticky = sticky(StickyCookie::new("ROUTEID"));
    let own = sticky.own_cookie.as_ref().expect("a cookie");
    for (received, left) in [
        ("ROUTEID=", None),
        ("ROUTEID=\"\"; ROUTEID= ", None),
        ("x=1; ROUTEID=; y=2", Some("x=1; y=2")),
    ] {
        let mut headers = Fields::new();
        headers.append(COOKIE, received);
        assert_eq!(own.take(&mut headers), None, "{received}");
        assert_eq!(headers.text_of(COOKIE), left, "{received}");
    }
    let mut headers = Fields::new();
    headers.append(COOKIE, "ROUTEID=; ROUTEID=forged");
    assert_eq!(own.take(&mut headers), Some(None));
    assert!(headers.is_empty());
}

#[test]
fn a_cookie_of_nobody_is_taken_out_as_well() {
    let sticky = sticky(StickyCookie::new("ROUTEID"));
    let own = sticky.own_cookie.as_ref().expect("a cookie");
    let mut headers = Fields::new();
    headers.append(COOKIE, "ROUTEID=forged");
    headers.append(COOKIE, "x=1");
    headers.append(COOKIE, "ROUTEID=again; y=2");
    assert_eq!(own.take(&mut headers), Some(None));
    let left: Vec<_> = headers.get_all(COOKIE).collect();
    assert_eq!(left, [b"x=1", b"y=2"]);
}

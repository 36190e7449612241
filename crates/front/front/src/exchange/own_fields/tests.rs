//! Lists that somebody began grow where they are; the other fields stay beside the map.

use http::header::COOKIE;

use super::*;
use crate::exchange::forwarded::tests::{PROXY, STRANGER, headers, networks, peer, text};
use crate::exchange::forwarded::{identify, remove_claims};
use crate::exchange::header::Withheld;

/// The fields that a backend is told of a request by `from` for the host `a:81`, and which of them are
/// beside the map.
fn announced(
    from: &str,
    sent: &[(&'static str, &'static str)],
) -> (HeaderMap, Vec<(String, String)>) {
    let mut fields = headers(sent);
    let identity = identify(&peer(from), &networks(), &fields);
    if from == STRANGER {
        remove_claims(&mut fields, &mut Withheld::default());
    }
    let via = Via::new("catamaran").expect("a pseudonym");
    let id = HeaderName::from_static("x-request-id");
    let mut own = OwnFields::default();
    own.announce(&mut fields, &peer(from), &identity, 81);
    own.add_via(&mut fields, &via, Version::HTTP_11);
    own.tell_id(Some(&id), RequestId::from_number(7));
    let host = HeaderValue::from_static("a:81");
    let client = own.client();
    let lossy = |text: &[u8]| String::from_utf8_lossy(text).into_owned();
    let list = own.list(client.as_ref(), host.as_bytes());
    let beside = list.iter();
    let beside = beside.map(|(name, value)| (name.to_string(), lossy(value)));
    let beside = beside.collect();
    drop(list);
    own.move_into(&mut fields, &host);
    assert!(own.list(None, b"").is_empty(), "they are moved");
    (fields, beside)
}

#[test]
fn our_fields_replace_a_strangers() {
    let sent = [("x-forwarded-for", "1.2.3.4"), ("forwarded", "for=x")];
    let (fields, beside) = announced(STRANGER, &sent);
    let ours = [
        ("x-forwarded-for", "203.0.113.9"),
        ("x-forwarded-proto", "http"),
        ("x-forwarded-host", "a:81"),
        ("x-forwarded-port", "81"),
        ("via", "1.1 catamaran"),
        ("x-request-id", "0000000000000007"),
    ];
    assert_eq!(
        beside,
        ours.map(|(name, value)| (name.to_owned(), value.to_owned()))
    );
    assert_eq!(fields, headers(&ours), "each of them once");
}

#[test]
fn a_trusted_proxys_fields_are_extended() {
    let sent = [
        ("x-forwarded-for", "1.1.1.1"),
        ("x-forwarded-for", "198.51.100.7, 10.2.2.2"),
        ("x-forwarded-proto", "https"),
        ("x-forwarded-host", "www"),
        ("x-forwarded-port", "7"),
        ("forwarded", "for=198.51.100.7;proto=https"),
    ];
    let (fields, beside) = announced(PROXY, &sent);
    let said = |name| text(&fields, name);
    let list = "1.1.1.1, 198.51.100.7, 10.2.2.2, 10.0.0.1";
    assert_eq!(said("x-forwarded-for").as_deref(), Some(list));
    assert_eq!(said("x-forwarded-proto").as_deref(), Some("https"));
    assert_eq!(said("x-forwarded-host").as_deref(), Some("www"));
    let nodes = "for=198.51.100.7;proto=https, for=10.0.0.1;proto=https";
    assert_eq!(said("forwarded").as_deref(), Some(nodes));
    assert_eq!(
        said("x-forwarded-port").as_deref(),
        Some("81"),
        "as it is read"
    );
    assert_eq!(fields.len(), 7, "each of them once: {fields:?}");
    let names: Vec<_> = beside.iter().map(|(name, _)| name.as_str()).collect();
    let expected = [
        "x-forwarded-proto",
        "x-forwarded-port",
        "via",
        "x-request-id",
    ];
    assert_eq!(names, expected);
}

#[test]
fn what_a_trusted_proxy_does_not_say_is_ours() {
    let (fields, _) = announced(PROXY, &[("cookie", "a=1")]);
    let said = |name| text(&fields, name);
    assert_eq!(said("x-forwarded-for").as_deref(), Some("10.0.0.1"));
    assert_eq!(said("x-forwarded-proto").as_deref(), Some("http"));
    assert_eq!(said("x-forwarded-host").as_deref(), Some("a:81"));
    assert_eq!(
        fields.get(COOKIE).map(HeaderValue::as_bytes),
        Some(&b"a=1"[..])
    );
}

#[test]
fn via_grows() {
    let (fields, beside) = announced(STRANGER, &[("via", "1.0 fred"), ("via", "1.1 bob")]);
    let list = "1.0 fred, 1.1 bob, 1.1 catamaran";
    assert_eq!(text(&fields, "via").as_deref(), Some(list));
    assert!(beside.iter().all(|(name, _)| name != "via"), "{beside:?}");
}

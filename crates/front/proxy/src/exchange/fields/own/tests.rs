//! Tests that lists begun by others are extended in their place, and that the other fields are set.

use catamaran_message::name::{COOKIE, X_REQUEST_ID};

use super::*;
use crate::exchange::fields::clean::clean_request;
use crate::exchange::fields::forwarded::identify;
use crate::exchange::fields::forwarded::tests::{PROXY, STRANGER, headers, networks, peer, text};

/// The fields that a backend gets with a request of `from` for the host `a:81`.
fn announced(from: &str, sent: &[(&'static str, &'static str)]) -> Fields {
    let mut fields = headers(sent);
    let identity = identify(&peer(from), &networks(), &fields);
    clean_request(&mut fields, &[], from == PROXY, &mut None);
    let via = Via::new("catamaran");
    let own = OwnFields {
        client: Some(ForwardedClient {
            sender: Sender {
                peer: peer(from),
                identity,
            },
            port: 81,
        }),
        via: Some(&via),
        id: Some((X_REQUEST_ID.into(), RequestId::from_number(7))),
        trace: None,
    };
    own.add_to(&mut fields, b"a:81", Version::HTTP_11);
    fields
}

#[test]
fn our_fields_replace_a_strangers() {
    let sent = [("x-forwarded-for", "1.2.3.4"), ("forwarded", "for=x")];
    let ours = [
        ("x-forwarded-for", "203.0.113.9"),
        ("x-forwarded-proto", "http"),
        ("x-forwarded-port", "81"),
        ("x-forwarded-host", "a:81"),
        ("via", "1.1 catamaran"),
        ("x-request-id", "0000000000000007"),
    ];
    assert_eq!(
        announced(STRANGER, &sent),
        headers(&ours),
        "each of them once"
    );
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
    let fields = announced(PROXY, &sent);
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
}

#[test]
fn what_a_trusted_proxy_does_not_say_is_ours() {
    let fields = announced(PROXY, &[("cookie", "a=1")]);
    let said = |name| text(&fields, name);
    assert_eq!(said("x-forwarded-for").as_deref(), Some("10.0.0.1"));
    assert_eq!(said("x-forwarded-proto").as_deref(), Some("http"));
    assert_eq!(said("x-forwarded-host").as_deref(), Some("a:81"));
    assert_eq!(fields.get(COOKIE), Some(&b"a=1"[..]));
}

#[test]
fn via_grows() {
    let fields = announced(STRANGER, &[("via", "1.0 fred"), ("via", "1.1 bob")]);
    let list = "1.0 fred, 1.1 bob, 1.1 catamaran";
    assert_eq!(text(&fields, "via").as_deref(), Some(list));
}

//! Tests that claims of strangers are removed, and that claims of trusted proxies are read from the
//! right end.

use http::Version;

use super::*;
use crate::exchange::fields::clean::clean_request;

pub(crate) const STRANGER: &str = "203.0.113.9:5000";
pub(crate) const PROXY: &str = "10.0.0.1:5000";

pub(crate) fn networks() -> Vec<IpNet> {
    vec!["10.0.0.0/8".parse().expect("a network")]
}

pub(crate) fn peer(address: &str) -> Peer {
    let address: SocketAddr = address.parse().expect("an address");
    Peer {
        address,
        trusted: is_trusted(&networks(), address.ip()),
        secure: false,
    }
}

pub(crate) fn headers(fields: &[(&'static str, &'static str)]) -> Fields {
    fields.iter().copied().collect()
}

pub(crate) fn text(headers: &Fields, name: &str) -> Option<String> {
    headers.text_of(name).map(str::to_owned)
}

#[test]
fn a_stranger_is_not_believed() {
    let mut fields = headers(&[
        ("x-forwarded-for", "1.2.3.4"),
        ("x-forwarded-proto", "https"),
        ("x-forwarded-host", "evil"),
        ("x-forwarded-port", "1"),
        ("forwarded", "for=1.2.3.4"),
        ("x-real-ip", "1.2.3.4"),
        ("x-client-ip", "1.2.3.4"),
        ("true-client-ip", "1.2.3.4"),
        ("x-cluster-client-ip", "1.2.3.4"),
        ("x-forwarded", "for=1.2.3.4"),
        ("x-proxied-https", "on"),
        ("proxy-client-ip", "1.2.3.4"),
        ("wl-proxy-client-cert", "MII"),
        ("$wsra", "1.2.3.4"),
        ("ssl-client-cert", "MII"),
        ("ssl-client-verify", "SUCCESS"),
        ("proxy-ssl-id", "00"),
        ("x-own", "1"),
    ]);
    let identity = identify(&peer(STRANGER), &networks(), &fields);
    clean_request(&mut fields, &[], false, &mut None);
    let ip = "203.0.113.9".parse().expect("an address");
    assert_eq!(
        identity,
        Identity {
            ip,
            port: Some(5000),
            secure: false
        }
    );
    assert_eq!(fields, headers(&[("x-own", "1")]));
}

/// The head of a request to `authority` with these fields.
fn head(headers: Fields, authority: Option<Authority>) -> RequestHead {
    RequestHead {
        headers,
        authority,
        ..RequestHead::empty()
    }
}

#[test]
fn the_last_protocol_counts() {
    let secure = |fields: &[_]| identify(&peer(PROXY), &networks(), &headers(fields)).secure;
    let proto = "x-forwarded-proto";
    assert!(secure(&[(proto, "http"), (proto, "https")]));
    assert!(!secure(&[(proto, "https"), (proto, "http")]));
    assert!(!secure(&[(proto, "https, http")]));
    assert!(secure(&[(proto, "http"), (proto, "http, https")]));
}

#[test]
fn the_nearest_proxy_says_which_host_and_port() {
    let own = Authority::parse(&Bytes::from_static(b"inner:8080")).expect("an authority");
    let asked = |fields: &[_], secure| {
        let fields = headers(fields);
        let identity = Identity {
            secure,
            ..identify(&peer(PROXY), &networks(), &fields)
        };
        let sender = Sender {
            peer: peer(PROXY),
            identity,
        };
        let asked = asked_of_proxy(&sender, &head(fields, Some(own.clone())))?;
        Some(String::from_utf8(asked.to_bytes().to_vec()).expect("text"))
    };
    let (host, port) = ("x-forwarded-host", "x-forwarded-port");
    for (fields, secure, expected) in [
        (&[][..], true, None),
        (&[(host, "shop.example")], true, Some("shop.example")),
        (&[(host, "shop.example:443")], true, Some("shop.example")),
        (
            &[(host, "shop.example:443")],
            false,
            Some("shop.example:443"),
        ),
        (&[(host, "evil, shop.example")], true, Some("shop.example")),
        (
            &[(host, "evil"), (host, "shop.example")],
            true,
            Some("shop.example"),
        ),
        (&[(host, "a:1"), (port, "8443")], true, Some("a:8443")),
        (&[(host, "a:1"), (port, "443")], true, Some("a")),
        (&[(port, "443")], true, Some("inner")),
        (&[(port, "99, 81")], false, Some("inner:81")),
        // Neither is a host, nor a port.
        (&[(host, "a/b"), (port, "0")], true, None),
        (&[(host, ""), (port, "65536")], true, None),
    ] {
        assert_eq!(asked(fields, secure).as_deref(), expected, "{fields:?}");
    }
}

#[test]
fn a_trusted_proxy_is_believed_as_far_as_trust_goes() {
    let client = |list: &'static str| {
        let fields = headers(&[("x-forwarded-for", list)]);
        identify(&peer(PROXY), &networks(), &fields).ip.to_string()
    };
    assert_eq!(client("198.51.100.7"), "198.51.100.7");
    assert_eq!(
        client("1.1.1.1, 198.51.100.7"),
        "198.51.100.7",
        "the left may be forged"
    );
    assert_eq!(client("1.1.1.1, 198.51.100.7, 10.2.2.2"), "198.51.100.7");
    assert_eq!(client("10.3.3.3, 10.2.2.2"), "10.3.3.3");
    assert_eq!(client("198.51.100.7:4711"), "198.51.100.7");
    assert_eq!(client("[2001:db8::1]:4711"), "2001:db8::1");
    assert_eq!(client("1.1.1.1, unknown, 10.2.2.2"), "10.2.2.2");
    assert_eq!(client("nonsense"), "10.0.0.1");
}

#[test]
fn several_lines_are_one_list() {
    let fields = headers(&[
        ("x-forwarded-for", "1.1.1.1"),
        ("x-forwarded-for", "198.51.100.7, 10.2.2.2"),
    ]);
    let identity = identify(&peer(PROXY), &networks(), &fields);
    assert_eq!(identity.ip.to_string(), "198.51.100.7");
}

#[test]
fn the_scheme_is_the_nearest_proxys() {
    let secure = |list: &'static str| {
        identify(
            &peer(PROXY),
            &networks(),
            &headers(&[("x-forwarded-proto", list)]),
        )
        .secure
    };
    assert!(secure("https"));
    assert!(secure("http, https"));
    assert!(!secure("https, http"));
}

#[test]
fn the_scheme_is_a_word_without_case_and_wss_is_https() {
    for own in [false, true] {
        let secure = |word: &str| {
            let peer = Peer {
                secure: own,
                ..peer(PROXY)
            };
            let mut headers = Fields::new();
            headers.insert(X_FORWARDED_PROTO, word);
            identify(&peer, &networks(), &headers).secure
        };
        for word in ["https", "HTTPS", "wss", "WsS", "http, wss"] {
            assert!(secure(word), "{word}");
        }
        for word in ["http", "HTTP", "ws", "WS", "https, ws"] {
            assert!(!secure(word), "{word}");
        }
        // The connection's own.
        for word in [
            "",
            "on",
            "h2",
            "https:",
            "http+unix",
            "\"https\"",
            "https, spdy",
        ] {
            assert_eq!(secure(word), own, "{word}");
        }
    }
}

#[test]
fn mapped_addresses_count_as_ipv4() {
    assert!(is_trusted(
        &networks(),
        "::ffff:10.1.1.1".parse().expect("an address")
    ));
}

/// The scheme is taken from `:scheme` of HTTP/2, or from a proxy's `X-Forwarded-Proto`, if the peer
/// is trusted.
#[test]
fn the_scheme_of_a_trusted_proxy_is_believed() {
    let (http, https) = (Some(Scheme::Http), Some(Scheme::Https));
    let (trusted, stranger) = (PROXY, STRANGER);
    for (from, version, scheme, proto, expected) in [
        (trusted, Version::HTTP_2, https, None, true),
        (trusted, Version::HTTP_2, http, None, false),
        // What the proxy writes itself wins.
        (trusted, Version::HTTP_2, https, Some("http"), false),
        (trusted, Version::HTTP_2, http, Some("https"), true),
        (stranger, Version::HTTP_2, https, None, false),
        (stranger, Version::HTTP_2, https, Some("https"), false),
        // A URL in the first line is the client's, passed on.
        (trusted, Version::HTTP_11, https, None, false),
        (trusted, Version::HTTP_11, None, Some("https"), true),
    ] {
        let mut head = RequestHead {
            version,
            ..RequestHead::empty()
        };
        head.target.scheme = scheme;
        if let Some(proto) = proto {
            head.headers = headers(&[("x-forwarded-proto", proto)]);
        }
        let client = PeerFacts {
            remote: from.parse().expect("an address"),
            local: "10.9.9.9:80".parse().expect("an address"),
            secure: false,
            tls: None,
        };
        let sender = Sender::new(&client, &head, &networks());
        assert_eq!(
            sender.identity.secure, expected,
            "{from} {version:?} {scheme:?} {proto:?}"
        );
    }
}

#[test]
fn the_port_is_the_one_that_the_client_used() {
    let local = |port: u16| SocketAddr::from(([127, 0, 0, 1], port));
    let plain: &[(&str, &str)] = &[];
    for (from, host, claims, (port, secure), expected) in [
        (STRANGER, Some("a:8443"), plain, (443, true), 8443),
        (STRANGER, Some("a"), plain, (8443, true), 443),
        (STRANGER, Some("a"), plain, (8080, false), 80),
        (STRANGER, None, plain, (8080, false), 8080),
        (STRANGER, None, plain, (0, true), 443),
        (
            STRANGER,
            Some("a"),
            &[("x-forwarded-port", "7")],
            (80, false),
            80,
        ),
        (
            PROXY,
            Some("a"),
            &[("x-forwarded-port", "1, 8443")],
            (80, true),
            8443,
        ),
        (
            PROXY,
            Some("a:81"),
            &[("x-forwarded-port", "443")],
            (80, true),
            443,
        ),
        (
            PROXY,
            Some("a:81"),
            &[("x-forwarded-host", "b:8443")],
            (80, true),
            8443,
        ),
        (
            PROXY,
            Some("a:81"),
            &[("x-forwarded-host", "b")],
            (80, true),
            443,
        ),
        (
            PROXY,
            Some("a:81"),
            &[("x-forwarded-port", "x")],
            (80, false),
            81,
        ),
        (PROXY, Some("a:81"), plain, (80, false), 81),
    ] {
        let own = host.map(|it| Authority::parse(&Bytes::from(it)).expect("a host"));
        let fields = headers(claims);
        let peer = peer(from);
        let identity = Identity {
            secure,
            ..identify(&peer, &networks(), &fields)
        };
        let sender = Sender { peer, identity };
        let told = client_port(&sender, &head(fields, own), local(port));
        assert_eq!(told, expected, "{from} {host:?} {claims:?} {port} {secure}");
    }
}

//! TLS: a server with a certificate of a root of ours, and one that speaks none.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread;

use catamaran_load::plan::{ClientIdentity, Plan, PlanFault, Tls, TlsVersion, Verify};
use catamaran_load::report::FailureKind;
use catamaran_load::start;
use catamaran_testkit::{Address, Peer, Script};
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use crate::bench::{plan, requests, run};

/// Answers every request on every connection, until the test binary ends.
fn serve() -> SocketAddr {
    serve_with(LEAF, LEAF_KEY)
}

fn serve_with(certificate: &[u8], key: &[u8]) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let chain = vec![CertificateDer::from_pem_slice(certificate).unwrap()];
    let key = PrivateKeyDer::from_pem_slice(key).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .unwrap();
    let config = Arc::new(config);
    thread::spawn(move || {
        for socket in listener.incoming() {
            let session = ServerConnection::new(Arc::clone(&config)).unwrap();
            let mut stream = StreamOwned::new(session, socket.unwrap());
            thread::spawn(move || {
                let (mut buffer, mut seen) = ([0; 1024], Vec::new());
                while let Ok(len @ 1..) = stream.read(&mut buffer) {
                    seen.extend_from_slice(&buffer[..len]);
                    while let Some(end) = seen.windows(4).position(|four| four == b"\r\n\r\n") {
                        seen.drain(..end + 4);
                        let _ =
                            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello");
                    }
                }
            });
        }
    });
    address
}

fn options(verify: Verify) -> Tls {
    Tls {
        server_name: Some("localhost".to_owned()),
        verify,
        versions: vec![TlsVersion::Tls12, TlsVersion::Tls13],
        ciphers: Vec::new(),
        certificate: None,
    }
}

fn plan_of(address: &Address, tls: Tls) -> Plan {
    let mut plan = plan(address);
    plan.targets[0].endpoint.tls = Some(tls);
    plan.stop = requests(5);
    plan
}

#[test]
fn requests_go_through_and_the_facts_are_told() {
    let address = Address::Tcp(serve());
    let report = run(plan_of(&address, options(Verify::Nothing)));
    assert_eq!((report.requests.ok, report.connections.opened), (5, 1));
    let facts = report.server.tls.unwrap();
    assert_eq!(facts.version, "TLSv1.3");
    assert_eq!(facts.key_bits, Some(256));
    assert_eq!(facts.server_name.as_deref(), Some("localhost"));
    assert_eq!(facts.temp_key.as_deref(), Some("X25519"));
    let report = run(plan_of(
        &address,
        Tls {
            versions: vec![TlsVersion::Tls12],
            ciphers: vec!["ECDHE-ECDSA-AES128-GCM-SHA256".to_owned()],
            server_name: None,
            ..options(Verify::Nothing)
        },
    ));
    let facts = report.server.tls.unwrap();
    assert_eq!(
        (facts.version.as_str(), facts.cipher_bits),
        ("TLSv1.2", 128)
    );
    assert_eq!(facts.cipher, "ECDHE-ECDSA-AES128-GCM-SHA256");
    assert_eq!(facts.server_name, None);
}

#[test]
fn every_connection_has_its_own_handshake() {
    let address = Address::Tcp(serve());
    let mut plan = plan_of(&address, options(Verify::Nothing));
    plan.connections.keep_alive = false;
    let report = run(plan);
    assert_eq!((report.requests.ok, report.connections.opened), (5, 5));
}

#[test]
fn certificates_are_verified_when_asked() {
    let address = Address::Tcp(serve());
    let report = run(plan_of(&address, options(Verify::Roots(ROOT.to_vec()))));
    assert_eq!(report.requests.ok, 5, "{:?}", report.failures);
    let other = Tls {
        server_name: Some("example.org".to_owned()),
        ..options(Verify::Roots(ROOT.to_vec()))
    };
    let report = run(plan_of(&address, other));
    assert_eq!(report.failures.of(FailureKind::Tls), 5);
    let reason = &report.failure_reasons[&FailureKind::Tls];
    assert!(
        reason.contains("certificate not valid for name"),
        "{reason}"
    );
}

#[test]
fn a_certificate_of_the_server_itself_is_taken_as_a_root() {
    let address = Address::Tcp(serve_with(OWN, OWN_KEY));
    let report = run(plan_of(&address, options(Verify::Roots(OWN.to_vec()))));
    assert_eq!(report.requests.ok, 5, "{:?}", report.failures);
    let report = run(plan_of(&address, options(Verify::Roots(ROOT.to_vec()))));
    assert_eq!(report.failures.of(FailureKind::Tls), 5);
}

#[test]
fn a_server_without_tls_is_a_failure_of_tls() {
    for (script, expected) in [
        (
            Script::new()
                .send(b"HTTP/1.1 400 Bad Request\r\n\r\n")
                .stall(),
            "corrupt message",
        ),
        (
            Script::new().expect(1).finish(),
            "the server closed amid the handshake",
        ),
        (Script::new().expect(1).reset(), "Connection reset by peer"),
    ] {
        let peer = Peer::start(script);
        let report = run(plan_of(peer.address(), options(Verify::Nothing)));
        assert_eq!(
            report.failures.of(FailureKind::Tls),
            5,
            "{:?}",
            report.failures
        );
        let reason = &report.failure_reasons[&FailureKind::Tls];
        assert!(reason.contains(expected), "{reason}");
    }
}

#[test]
fn options_that_cannot_be_are_refused() {
    let address = Address::Tcp(SocketAddr::from(([127, 0, 0, 1], 1)));
    for (tls, expected) in [
        (
            Tls {
                ciphers: vec!["RC4-MD5".to_owned()],
                ..options(Verify::Nothing)
            },
            "cipher `RC4-MD5` is not supported",
        ),
        (
            options(Verify::Roots(b"nothing".to_vec())),
            "the file of root certificates has no CERTIFICATE block",
        ),
        (
            Tls {
                certificate: Some(ClientIdentity {
                    chain: LEAF.to_vec(),
                    key: LEAF.to_vec(),
                }),
                ..options(Verify::Nothing)
            },
            "the client certificate has no usable key",
        ),
        (
            Tls {
                server_name: Some("not a name".to_owned()),
                ..options(Verify::Nothing)
            },
            "`not a name` is no name",
        ),
    ] {
        let Err(PlanFault::Tls(message)) = start(plan_of(&address, tls)) else {
            panic!("{expected} was not found");
        };
        assert!(message.contains(expected), "{message}");
    }
}

const ROOT: &[u8] = include_bytes!("tls/root.pem");
/// Made by `openssl req -x509`, so it is that of an authority.
const OWN: &[u8] = include_bytes!("tls/own.pem");
const OWN_KEY: &[u8] = include_bytes!("tls/own-key.pem");
const LEAF: &[u8] = include_bytes!("tls/leaf.pem");
const LEAF_KEY: &[u8] = include_bytes!("tls/leaf-key.pem");

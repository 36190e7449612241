//! Both ends against each other, with certificates made on the spot.

use std::io::Write;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use base64::Engine as _;
use catamaran_testkit::tls::{Authority, End, Pair, build, file, files, profile, settings, trust};
use catamaran_tls::{
    ChallengeCertificates, ClientCertificate, Connection, DEPTH_MAX, Facts, Identity,
    IssuedCertificates, Profile, ProfileFiles, ProfileSettings, Protocols, Roots, TicketKeys,
    TlsError, Trust, TrustSettings, Version, looks_like_tls,
};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, SerialNumber, date_time_ymd};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::version::TLS13;

use crate::{authority, plain};

/// Both ends of one connection.
struct Pipe {
    client: End,
    server: End,
    /// Bytes passed on at a time.
    step: usize,
}

impl Pipe {
    fn new(profile: &Profile, trust: &Trust, step: usize) -> Self {
        Self {
            client: End::new(Connection::client(trust).expect("a connection")),
            server: End::new(Connection::server(profile, Protocols::Http1).expect("a connection")),
            step,
        }
    }

    /// Passes bytes on until neither end has any. The error is that of the end named with it.
    fn pump(&mut self) -> Result<(), (&'static str, TlsError)> {
        self.client
            .receive(&[])
            .map_err(|error| ("client", error))?;
        loop {
            let up = std::mem::take(&mut self.client.out);
            for piece in up.chunks(self.step) {
                if let Err(error) = self.server.receive(piece) {
                    let alert = std::mem::take(&mut self.server.out);
                    self.client.receive(&alert).expect_err("an alert");
                    return Err(("server", error));
                }
            }
            let down = std::mem::take(&mut self.server.out);
            for piece in down.chunks(self.step) {
                self.client
                    .receive(piece)
                    .map_err(|error| ("client", error))?;
            }
            if up.is_empty() && down.is_empty() {
                return Ok(());
            }
        }
    }

    fn server_facts(&mut self) -> Facts {
        self.server.connection.facts()
    }
}

/// What the server makes of a client.
fn meet(profile: &Profile, trust: &Trust) -> Result<Facts, String> {
    let mut pipe = Pipe::new(profile, trust, 4096);
    match pipe.pump() {
        Ok(()) => Ok(pipe.server_facts()),
        Err(("server", error)) => Err(error.client_token().to_owned()),
        Err((_, error)) => Err(error.server_token().to_owned()),
    }
}

#[test]
fn data_passes_whatever_the_size_of_reads() {
    let ca = authority("ca");
    let pair = plain(&ca, &["a.test"]);
    for version_min in [Version::Tls12, Version::Tls13] {
        let settings = ProfileSettings {
            version_min,
            ..settings()
        };
        let profile = profile(&settings, &files(std::slice::from_ref(&pair)));
        let trust = trust(&ca.pem(), "a.test", None);
        for step in [1, 2, 5, 17, 1000, 100_000] {
            let mut pipe = Pipe::new(&profile, &trust, step);
            pipe.pump().unwrap();
            assert!(pipe.client.is_open && pipe.server.is_open);
            let up: Vec<u8> = (0..50_000).map(|at| at as u8).collect();
            pipe.client.seal(&up);
            pipe.server.seal(b"down");
            pipe.pump().unwrap();
            assert!(pipe.server.plain == up, "step {step}");
            assert_eq!(&pipe.client.plain[..], b"down");
            assert!(pipe.server.rest.is_empty(), "nothing complete is left");
            pipe.client.connection.close(&mut [], &mut pipe.client.out);
            assert!(!pipe.server.connection.is_peer_closed());
            pipe.pump().unwrap();
            assert!(pipe.server.connection.is_peer_closed());
            // The other direction stays open.
            pipe.server.seal(b"!");
            pipe.pump().unwrap();
            assert_eq!(&pipe.client.plain[..], b"down!");
        }
    }
}

/// A client that has a ticket of a server that takes early data, and sends so much of it in records of a
/// kilobyte.
fn eager(issuer: &Authority, pair: &Pair, early: usize) -> rustls::ClientConnection {
    let mut roots = rustls::RootCertStore::empty();
    let issuer = CertificateDer::from_pem_slice(issuer.pem().as_bytes()).expect("PEM");
    roots.add(issuer).expect("an issuer");
    let mut config = rustls::ClientConfig::builder_with_protocol_versions(&[&TLS13])
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.enable_early_data = true;
    config.max_fragment_size = Some(1024);
    let config = Arc::new(config);
    let begin = || {
        let name = "a.test".try_into().expect("a name");
        rustls::ClientConnection::new(Arc::clone(&config), name).expect("a connection")
    };
    let chain = CertificateDer::pem_slice_iter(pair.chain.as_bytes());
    let key = PrivateKeyDer::from_pem_slice(pair.key.as_bytes()).expect("PEM");
    let mut other = rustls::ServerConfig::builder_with_protocol_versions(&[&TLS13])
        .with_no_client_auth()
        .with_single_cert(chain.collect::<Result<_, _>>().expect("no failure"), key)
        .expect("no failure");
    other.max_early_data_size = 64 << 10;
    let mut server = rustls::ServerConnection::new(Arc::new(other)).expect("no failure");
    let mut client = begin();
    for _ in 0..4 {
        let mut bytes = Vec::new();
        client.write_tls(&mut bytes).expect("no failure");
        server.read_tls(&mut &bytes[..]).expect("no failure");
        server.process_new_packets().expect("no failure");
        bytes.clear();
        server.write_tls(&mut bytes).expect("no failure");
        client.read_tls(&mut &bytes[..]).expect("no failure");
        client.process_new_packets().expect("no failure");
    }
    let mut client = begin();
    let sent = client
        .early_data()
        .expect("no failure")
        .write(&vec![b'x'; early]);
    assert_eq!(sent.expect("no failure"), early);
    client
}

/// Clients may have it from another server of the name, such as one before a move.
#[test]
fn early_data_of_a_foreign_ticket_is_skipped_in_any_number_of_records() {
    let ca = authority("ca");
    let pair = plain(&ca, &["a.test"]);
    for tickets in [true, false] {
        let settings = ProfileSettings {
            tickets,
            ..settings()
        };
        let profile = profile(&settings, &files(std::slice::from_ref(&pair)));
        for step in [500, 1500, 100_000] {
            let mut client = eager(&ca, &pair, 16 << 10);
            let server = Connection::server(&profile, Protocols::Http1);
            let mut server = End::new(server.unwrap());
            for _ in 0..3 {
                let mut up = Vec::new();
                while client.wants_write() {
                    client.write_tls(&mut up).unwrap();
                }
                for piece in up.chunks(step) {
                    server.receive(piece).unwrap();
                }
                client.read_tls(&mut &server.out[..]).unwrap();
                server.out.clear();
                client.process_new_packets().unwrap();
            }
            assert!(server.is_open && !client.is_early_data_accepted());
            assert!(server.plain.is_empty() && server.rest.is_empty());
            client.writer().write_all(b"late").unwrap();
            let mut up = Vec::new();
            client.write_tls(&mut up).unwrap();
            server.receive(&up).unwrap();
            assert_eq!(&server.plain[..], b"late");
        }
    }
}

#[test]
fn an_exact_name_wins_then_a_wildcard_then_the_default() {
    let ca = authority("ca");
    let (default, wild, exact) = (
        plain(&ca, &["default.test"]),
        plain(&ca, &["*.w.test"]),
        plain(&ca, &["x.w.test"]),
    );
    let served = |strict_sni, name: &str| {
        let settings = ProfileSettings {
            strict_sni,
            ..settings()
        };
        let profile = profile(
            &settings,
            &files(&[default.clone(), wild.clone(), exact.clone()]),
        );
        meet(&profile, &trust(&ca.pem(), name, None)).map(|facts| facts.sni.unwrap().into_string())
    };
    for name in ["default.test", "x.w.test", "y.w.test"] {
        assert_eq!(served(true, name).as_deref(), Ok(name));
    }
    // The client finds the default's name wrong; a strict server does not get that far.
    assert_eq!(served(false, "a.b.w.test"), Err("tls-name".to_owned()));
    assert_eq!(
        served(true, "a.b.w.test"),
        Err("tls-unknown-name".to_owned())
    );
}

/// The certificate without the field for its version, so that it has version 1 (RFC 5280, section 4.1.2.1).
fn of_version_1(pair: &Pair) -> Pair {
    const VERSION_3: [u8; 5] = [0xa0, 3, 2, 1, 2];
    let der = CertificateDer::from_pem_slice(pair.chain.as_bytes()).expect("PEM");
    let mut bytes = der.to_vec();
    // The field is the first of the inner of two sequences, whose lengths have two bytes.
    assert_eq!(bytes[8..13], VERSION_3);
    bytes.drain(8..13);
    for at in [2, 6] {
        let length = u16::from_be_bytes([bytes[at], bytes[at + 1]]) - 5;
        bytes[at..at + 2].copy_from_slice(&length.to_be_bytes());
    }
    let text = base64::engine::general_purpose::STANDARD.encode(&bytes);
    Pair {
        chain: format!("-----BEGIN CERTIFICATE-----\n{text}\n-----END CERTIFICATE-----\n"),
        key: pair.key.clone(),
    }
}

#[test]
fn a_backend_that_is_not_verified_may_have_a_certificate_of_version_1() {
    let ca = authority("ca");
    let long = "a-name-that-makes-the-certificate-long-enough.for-lengths-of-two-bytes.test";
    let pair = of_version_1(&plain(&ca, &["a.test", long]));
    let profile = profile(&settings(), &files(std::slice::from_ref(&pair)));
    for verify in [false, true] {
        let settings = TrustSettings {
            server_name: "a.test".to_owned(),
            verify,
            roots: Roots::from_pem(ca.pem().as_bytes()).unwrap(),
            identity: None,
        };
        let met = meet(&profile, &Trust::new(settings).unwrap());
        assert_eq!(met.is_ok(), !verify, "{met:?}");
    }
}

#[test]
fn a_client_is_told_that_its_name_is_unknown() {
    let ca = authority("ca");
    let pair = plain(&ca, &["a.test"]);
    for version_min in [Version::Tls12, Version::Tls13] {
        let settings = ProfileSettings {
            strict_sni: true,
            version_min,
            ..settings()
        };
        let profile = profile(&settings, &files(std::slice::from_ref(&pair)));
        let mut pipe = Pipe::new(&profile, &trust(&ca.pem(), "b.test", None), 4096);
        pipe.client.receive(&[]).unwrap();
        let hello = std::mem::take(&mut pipe.client.out);
        pipe.server.receive(&hello).expect_err("no certificate");
        // A fatal alert: unrecognized_name (RFC 6066, section 3).
        assert_eq!(pipe.server.out, [21, 3, 3, 0, 2, 2, 112]);
    }
}

/// The certificate as one that was issued to this program.
fn issued(pair: &Pair) -> Identity {
    let (chain, key) = (file("chain.pem", &*pair.chain), file("key.pem", &*pair.key));
    Identity::issued(&chain, &key, SystemTime::now()).expect("a good certificate")
}

#[test]
fn a_certificate_that_is_served_stays_for_an_awaited_name_until_it_ends() {
    let ca = authority("ca");
    let identity = issued(&plain(&ca, &["a.test"]));
    let not_after = identity.facts.not_after;
    let served = IssuedCertificates {
        identities: vec![identity],
        awaited: Vec::new(),
    };
    let next = |awaited: &[&str]| IssuedCertificates {
        identities: Vec::new(),
        awaited: awaited.iter().map(ToString::to_string).collect(),
    };
    let shown = |issued: IssuedCertificates| (issued.identities.len(), issued.awaited.join(" "));
    let before = not_after - Duration::from_secs(1);
    let both = next(&["a.test", "b.test"]);
    let kept = both.clone().or_served(&served, before);
    assert_eq!(shown(kept), (1, "b.test".to_owned()));
    let ended = both.or_served(&served, not_after);
    assert_eq!(shown(ended), (0, "a.test b.test".to_owned()));
    let removed = next(&["b.test"]).or_served(&served, before);
    assert_eq!(
        shown(removed),
        (0, "b.test".to_owned()),
        "a name that is not configured any more"
    );
    let renewed = served.clone().or_served(&served, before);
    assert_eq!(shown(renewed), (1, String::new()), "it was read");
}

#[test]
fn of_two_issued_certificates_of_a_name_the_newer_is_shown() {
    let (older, newer) = (authority("older"), authority("newer"));
    let both = plain(&older, &["a.test", "b.test"]);
    let own = newer.sign(&["b.test"], |params| {
        params.not_before = date_time_ymd(2020, 1, 1);
    });
    let identities = [both, own.unwrap()].map(|pair| issued(&pair)).to_vec();
    let files = ProfileFiles {
        issued: IssuedCertificates {
            identities,
            awaited: Vec::new(),
        },
        ..ProfileFiles::default()
    };
    let profile = profile(&settings(), &files);
    for (name, issuer) in [("a.test", older), ("b.test", newer)] {
        let met = meet(&profile, &trust(&issuer.pem(), name, None)).map(|_| ());
        assert_eq!(met, Ok(()), "{name}");
    }
}

#[test]
fn a_name_without_its_first_certificate_is_refused_until_it_is_issued() {
    let ca = authority("ca");
    let meets =
        |profile: &Profile, name: &str| meet(profile, &trust(&ca.pem(), name, None)).map(|_| ());
    let (yet, unknown) = (
        Err("tls-no-certificate-yet".to_owned()),
        Err("tls-unknown-name".to_owned()),
    );
    let awaited = IssuedCertificates {
        identities: Vec::new(),
        awaited: ["a.test", "b.test", "*.w.test"].map(str::to_owned).to_vec(),
    };
    let issued_a = IssuedCertificates {
        identities: vec![issued(&plain(&ca, &["a.test"]))],
        awaited: vec!["b.test".to_owned()],
    };

    let files_of_none = ProfileFiles {
        issued: awaited.clone(),
        ..ProfileFiles::default()
    };
    let empty = profile(&settings(), &files_of_none);
    for name in ["a.test", "other.test"] {
        assert_eq!(
            meets(&empty, name),
            yet,
            "{name}: the profile has no certificate at all"
        );
    }
    let half = empty.with_issued(&issued_a);
    assert_eq!(meets(&half, "a.test"), Ok(()));
    assert_eq!(meets(&half, "b.test"), yet);
    assert_eq!(
        meets(&half, "other.test"),
        unknown,
        "an issued one is no default"
    );
    assert!(half.allows("a.test", Some("x")) && !half.allows("b.test", Some("a.test")));
    let facts = half.certificates();
    assert!(
        facts.len() == 1 && facts[0].not_before < facts[0].not_after,
        "{facts:?}"
    );

    let beside = ProfileFiles {
        issued: awaited,
        ..files(&[plain(&ca, &["b.test", "c.test"])])
    };
    let both = profile(&settings(), &beside);
    for name in ["a.test", "x.w.test"] {
        assert_eq!(meets(&both, name), yet, "{name}: not the default either");
    }
    assert_eq!(
        meets(&both, "b.test"),
        Ok(()),
        "the certificate of a file wins"
    );
    assert_eq!(
        meets(&both, "other.test"),
        Err("tls-name".to_owned()),
        "the default"
    );
    let sha256 = |profile: &Profile| profile.certificates()[0].sha256.clone();
    let both_issued = both.with_issued(&issued_a);
    assert_eq!(
        sha256(&both_issued),
        sha256(&both),
        "that of the file stays"
    );
    assert_eq!(meets(&both_issued, "a.test"), Ok(()));
}

#[test]
fn an_issued_certificate_is_identified_to_its_authority() {
    let ca = authority("ca");
    let with_key = ca.sign(&["a.test"], |params| {
        params.use_authority_key_identifier_extension = true;
        params.serial_number = Some(SerialNumber::from_slice(&[0x7f, 0xff]));
    });
    let id = issued(&with_key.unwrap())
        .renewal_id()
        .expect("an authority");
    // RFC 9773, section 4.1: base64url without padding.
    assert_eq!(id.serial, "f_8");
    assert!(
        id.authority_key.len() > 20 && !id.authority_key.contains('='),
        "{id:?}"
    );
    assert_eq!(issued(&Pair::self_signed(&["a.test"])).renewal_id(), None);
}

#[test]
fn a_certificate_without_alternative_names_is_served_by_its_common_name() {
    let ca = authority("ca");
    let of_name = |params: &mut CertificateParams| {
        params
            .distinguished_name
            .push(DnType::CommonName, "Old.test");
    };
    let nameless = ca.sign(&[], of_name).unwrap();
    let served = |strict_sni, name: &str| {
        let settings = ProfileSettings {
            strict_sni,
            ..settings()
        };
        let built = build(&settings, &files(std::slice::from_ref(&nameless))).unwrap();
        let said: Vec<_> = built.warnings.iter().map(|it| &it.message[..]).collect();
        assert_eq!(
            said,
            ["the certificate in chain.pem has no subjectAltName, so browsers refuse it"]
        );
        meet(&built.profile, &trust(&ca.pem(), name, None)).map(|_| ())
    };
    // Our client is as strict as a browser: what it finds wrong it was sent.
    let refused = Err("tls-name".to_owned());
    assert_eq!(served(true, "old.test"), refused);
    assert_eq!(served(false, "other.test"), refused);
    assert_eq!(
        served(true, "other.test"),
        Err("tls-unknown-name".to_owned())
    );
}

#[test]
fn a_host_is_allowed_if_its_certificate_would_have_been_served() {
    let ca = authority("ca");
    let allows = |strict_sni, client_certificate, host: &str, sni: Option<&str>| {
        let settings = ProfileSettings {
            strict_sni,
            client_certificate,
            ..settings()
        };
        let files = ProfileFiles {
            client_ca: Some(file("ca.pem", ca.pem())),
            ..files(&[plain(&ca, &["a.test", "*.w.test"])])
        };
        profile(&settings, &files).allows(host, sni)
    };
    use ClientCertificate::{Off, Optional, Required};
    assert!(
        allows(false, Off, "other.test", Some("a.test")),
        "the default serves it"
    );
    assert!(!allows(true, Off, "other.test", Some("a.test")));
    assert!(
        allows(true, Off, "x.w.test", Some("a.test")),
        "one certificate for both"
    );
    for trust in [Optional, Required] {
        assert!(allows(false, trust, "a.test", Some("a.test")));
        assert!(!allows(false, trust, "x.w.test", Some("a.test")));
        assert!(!allows(false, trust, "a.test", None));
        assert!(
            allows(false, trust, "[::1]", None),
            "addresses are not sent as names"
        );
    }
}

#[test]
fn sessions_are_resumed_by_other_profiles_under_the_same_trust() {
    let ca = authority("ca");
    let pair = plain(&ca, &["a.test"]);
    let keys = TicketKeys::generate().unwrap();
    let profile = |tickets, client_certificate| {
        let settings = ProfileSettings {
            tickets,
            client_certificate,
            ..settings()
        };
        let files = ProfileFiles {
            client_ca: Some(file("ca.pem", ca.pem())),
            ..files(std::slice::from_ref(&pair))
        };
        Profile::build(&settings, &files, &keys, None, SystemTime::now())
            .unwrap()
            .profile
    };
    let trust = trust(&ca.pem(), "a.test", None);
    let resumed = |profile: &Profile| meet(profile, &trust).unwrap().resumed;
    assert!(!resumed(&profile(true, ClientCertificate::Off)));
    assert!(resumed(&profile(true, ClientCertificate::Off)));
    assert!(
        !resumed(&profile(true, ClientCertificate::Optional)),
        "another trust"
    );
    assert!(resumed(&profile(true, ClientCertificate::Optional)));
    assert!(
        !resumed(&profile(false, ClientCertificate::Optional)),
        "no tickets"
    );
}

#[test]
fn clients_are_known_by_their_certificates() {
    let (ca, other) = (authority("clients"), authority("others"));
    let server = authority("servers");
    let revoked = ca
        .sign(&["revoked.test"], |params| {
            params.serial_number = Some(SerialNumber::from_slice(b"revoked.test"));
        })
        .unwrap();
    let expired = ca
        .sign(&["old.test"], |params| {
            params.not_after = date_time_ymd(2020, 1, 1);
        })
        .unwrap();
    let good = plain(&ca, &["client.test"]);
    let untrusted = plain(&other, &["client.test"]);
    let crl = ca.revocations(&["revoked.test"]).unwrap();
    let met = |client_certificate, identity: Option<&Pair>| {
        let settings = ProfileSettings {
            client_certificate,
            ..settings()
        };
        let files = ProfileFiles {
            client_ca: Some(file("ca.pem", ca.pem())),
            client_crl: Some(file("crl.pem", crl.clone())),
            ..files(&[plain(&server, &["a.test"])])
        };
        meet(
            &profile(&settings, &files),
            &trust(&server.pem(), "a.test", identity),
        )
    };
    use ClientCertificate::{Off, Optional, Required};
    for mode in [Optional, Required] {
        let facts = met(mode, Some(&good)).unwrap();
        let whole = good.chain.replace("\r\n", "\n");
        assert_eq!(facts.client_certificate(true), Some(&whole[..]));
        let leaf = facts.client_certificate(false).unwrap();
        assert!(whole.starts_with(leaf) && leaf.len() < whole.len());
        assert_eq!(facts.client_sha256.unwrap().len(), 64);
        for (pair, token) in [
            (&revoked, "tls-client-cert-revoked"),
            (&expired, "tls-client-cert-expired"),
            (&untrusted, "tls-client-cert-untrusted"),
        ] {
            assert_eq!(met(mode, Some(pair)), Err(token.to_owned()));
        }
    }
    assert!(met(Optional, None).unwrap().client_chain.is_empty());
    assert_eq!(
        met(Required, None),
        Err("tls-client-cert-missing".to_owned())
    );
    assert!(
        met(Off, Some(&untrusted)).unwrap().client_chain.is_empty(),
        "nobody asked"
    );
}

#[test]
fn a_backend_is_refused_for_its_name_its_issuer_and_its_age() {
    let (ca, other) = (authority("ca"), authority("other"));
    let met = |pair: Pair, trusted: &Authority, name| {
        meet(
            &profile(&settings(), &files(&[pair])),
            &trust(&trusted.pem(), name, None),
        )
        .map(drop)
    };
    assert_eq!(met(plain(&ca, &["a.test"]), &ca, "a.test"), Ok(()));
    assert_eq!(met(plain(&ca, &["127.0.0.1"]), &ca, "127.0.0.1"), Ok(()));
    assert_eq!(
        met(plain(&ca, &["a.test"]), &ca, "b.test"),
        Err("tls-name".to_owned())
    );
    assert_eq!(
        met(plain(&ca, &["a.test"]), &other, "a.test"),
        Err("tls-untrusted".to_owned())
    );
    let old = ca
        .sign(&["a.test"], |params| {
            params.not_after = date_time_ymd(2020, 1, 1);
        })
        .unwrap();
    assert_eq!(met(old, &ca, "a.test"), Err("tls-untrusted".to_owned()));
}

/// A certificate of an authority, with the certificates of the authorities above that as its chain.
fn below(chain: &[&Authority], name: &str) -> Pair {
    let (issuer, above) = chain.split_last().expect("an issuer");
    let mut pair = plain(issuer, &[name]);
    for authority in above.iter().rev() {
        pair.chain.push_str(&authority.pem());
    }
    pair
}

#[test]
fn chains_have_no_more_authorities_in_between_than_allowed() {
    let root = authority("root");
    let one = root.below("one").unwrap();
    let two = one.below("two").unwrap();
    let untrusted = Err("untrusted".to_owned());
    // The certificate of `root` itself, which each chain has at its end, does not count.
    for (chain, between) in [
        (&[&root][..], 0),
        (&[&root, &one][..], 1),
        (&[&root, &one, &two][..], 2),
    ] {
        let pair = below(chain, "a.test");
        for depth in 0..=3 {
            let expected = if depth >= between {
                Ok(())
            } else {
                untrusted.clone()
            };
            let asking = ProfileSettings {
                client_certificate: ClientCertificate::Required,
                client_ca_depth: depth,
                ..settings()
            };
            let files_of_server = ProfileFiles {
                client_ca: Some(file("ca.pem", root.pem())),
                ..files(&[plain(&root, &["s.test"])])
            };
            let met = meet(
                &profile(&asking, &files_of_server),
                &trust(&root.pem(), "s.test", Some(&pair)),
            );
            let met = met
                .map(drop)
                .map_err(|it| it.replace("tls-client-cert-", ""));
            assert_eq!(met, expected, "client {between} {depth}");

            let roots = Roots::from_pem(root.pem().as_bytes()).unwrap();
            let trust = Trust::new(TrustSettings {
                server_name: "a.test".to_owned(),
                verify: true,
                roots: roots.with_depth(depth),
                identity: None,
            });
            let server = profile(&settings(), &files(std::slice::from_ref(&pair)));
            let met = meet(&server, &trust.unwrap());
            let met = met.map(drop).map_err(|it| it.replace("tls-", ""));
            assert_eq!(met, expected, "backend {between} {depth}");
        }
    }
    // An authority of the file may stand below another one: the chain ends there.
    let both = format!("{}{}", root.pem(), one.pem());
    let roots = Roots::from_pem(both.as_bytes()).unwrap().with_depth(0);
    let trust = Trust::new(TrustSettings {
        server_name: "a.test".to_owned(),
        verify: true,
        roots,
        identity: None,
    });
    let server = profile(&settings(), &files(&[below(&[&root, &one], "a.test")]));
    assert_eq!(meet(&server, &trust.unwrap()).map(drop), Ok(()));
}

/// Whatever a client sends with it.
#[test]
fn a_certificate_of_the_file_is_refused_once_it_is_revoked() {
    let (ca, server) = (authority("clients"), authority("servers"));
    let listed = |is_ca| {
        ca.sign(&["client.test"], |params| {
            params.serial_number = Some(SerialNumber::from_slice(b"client.test"));
            params.is_ca = is_ca;
        })
        .unwrap()
    };
    let met = |pair: &Pair, needless: &[Authority], depth, crl: String| {
        let asking = ProfileSettings {
            client_certificate: ClientCertificate::Required,
            client_ca_depth: depth,
            ..settings()
        };
        let own = pair.chain.strip_suffix(&ca.pem()).unwrap();
        let files = ProfileFiles {
            client_ca: Some(file("ca.pem", ca.pem() + own)),
            client_crl: Some(file("crl.pem", crl)),
            ..files(&[plain(&server, &["a.test"])])
        };
        let mut sent = pair.clone();
        for authority in needless {
            sent.chain.push_str(&authority.pem());
        }
        let trust = trust(&server.pem(), "a.test", Some(&sent));
        meet(&profile(&asking, &files), &trust).map(drop)
    };
    let of_client = listed(IsCa::NoCa);
    let of_authority = listed(IsCa::Ca(BasicConstraints::Unconstrained));
    let strangers = ["one", "two"].map(authority);
    // Each may have issued the certificate, and there are more signatures than are verified.
    let twins: Vec<Authority> = (0..12).map(|_| authority("clients")).collect();
    for (pair, needless, depth, token) in [
        (&of_client, &strangers[..], 1, "tls-client-cert-revoked"),
        (&of_client, &twins[..], 1, "tls-client-cert-untrusted"),
        (
            &of_client,
            &twins[..],
            DEPTH_MAX,
            "tls-client-cert-untrusted",
        ),
        (
            &of_authority,
            &twins[..0],
            DEPTH_MAX,
            "tls-client-cert-untrusted",
        ),
    ] {
        let case = format!("{} {depth} {token}", needless.len());
        let met_with = |revoked| met(pair, needless, depth, ca.revocations(&[revoked]).unwrap());
        assert_eq!(met_with("other.test"), Ok(()), "{case}");
        assert_eq!(met_with("client.test"), Err(token.to_owned()), "{case}");
    }
    // Who is revoked since is not known.
    let old = ca.revocations_until(&[], 2021).unwrap();
    let refused = Err("tls-client-cert-untrusted".to_owned());
    assert_eq!(met(&of_client, &[], DEPTH_MAX, old), refused);
}

/// As of `openssl req -x509`, which makes certificates of authorities.
#[test]
fn a_certificate_that_is_its_own_issuer_is_taken_if_it_is_in_the_file() {
    let of_authority = Pair::of_own_authority(&["a.test"]);
    for own in [of_authority.clone(), Pair::self_signed(&["a.test"])] {
        let backend = profile(&settings(), &files(std::slice::from_ref(&own)));
        let met = |trusted: &str, name| meet(&backend, &trust(trusted, name, None)).map(drop);
        assert_eq!(met(&own.chain, "a.test"), Ok(()));
        assert_eq!(met(&own.chain, "b.test"), Err("tls-name".to_owned()));
        let twin = Pair::of_own_authority(&["a.test"]);
        let both = twin.chain.clone() + &own.chain;
        assert_eq!(met(&both, "a.test"), Ok(()), "among others");
        assert_eq!(met(&twin.chain, "a.test"), Err("tls-untrusted".to_owned()));

        let server = authority("servers");
        let asking = ProfileSettings {
            client_certificate: ClientCertificate::Required,
            ..settings()
        };
        let met = |trusted: &Pair| {
            let files = ProfileFiles {
                client_ca: Some(file("ca.pem", trusted.chain.clone())),
                ..files(&[plain(&server, &["s.test"])])
            };
            let trust = trust(&server.pem(), "s.test", Some(&own));
            meet(&profile(&asking, &files), &trust).map(drop)
        };
        assert_eq!(met(&own), Ok(()));
        assert_eq!(met(&twin), Err("tls-client-cert-untrusted".to_owned()));
    }
    for (before, after) in [((2010, 1, 1), (2020, 1, 1)), ((4000, 1, 1), (4001, 1, 1))] {
        let dated = Pair::self_signed_with(&["a.test"], |params| {
            params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
            params.not_before = date_time_ymd(before.0, before.1, before.2);
            params.not_after = date_time_ymd(after.0, after.1, after.2);
        });
        let backend = profile(&settings(), &files(std::slice::from_ref(&dated)));
        let met = meet(&backend, &trust(&dated.chain, "a.test", None)).map(drop);
        assert_eq!(met, Err("tls-untrusted".to_owned()), "{before:?}");
    }
}

#[test]
fn a_refused_certificate_is_told_of_without_names_of_types() {
    let (own, other) = (
        Pair::of_own_authority(&["a.test"]),
        Pair::of_own_authority(&["a.test"]),
    );
    let backend = profile(&settings(), &files(&[own]));
    let said = Pipe::new(&backend, &trust(&other.chain, "a.test", None), 4096).pump();
    let (_, error) = said.unwrap_err();
    let said = error.to_string();
    assert!(
        !said.contains("Other") && !said.contains("CaUsed"),
        "{said}"
    );
}

#[test]
fn bytes_that_are_no_tls_are_told_apart() {
    let ca = authority("ca");
    let profile = profile(&settings(), &files(&[plain(&ca, &["a.test"])]));
    let mut end = End::new(Connection::server(&profile, Protocols::Http1).unwrap());
    assert!(
        end.receive(b"GET / HTTP/1.1\r\n\r\n")
            .unwrap_err()
            .is_no_tls()
    );
    for (first, is_tls) in [
        (&b"\x16"[..], true),
        (b"\x16\x03\x01", true),
        (b"\x16\x04", false),
        (b"G", false),
        (b"", false),
    ] {
        assert_eq!(looks_like_tls(first), is_tls, "{first:?}");
    }
}

#[test]
fn a_flipped_byte_ends_the_connection() {
    let ca = authority("ca");
    let profile = profile(&settings(), &files(&[plain(&ca, &["a.test"])]));
    let mut pipe = Pipe::new(&profile, &trust(&ca.pem(), "a.test", None), 4096);
    pipe.pump().unwrap();
    pipe.client.seal(b"GET / HTTP/1.1");
    let mut sealed = std::mem::take(&mut pipe.client.out);
    *sealed.last_mut().unwrap() ^= 1;
    pipe.server.receive(&sealed).unwrap_err();
    assert!(pipe.server.plain.is_empty());
    assert!(!pipe.server.out.is_empty(), "an alert");
    pipe.server.receive(b"more").unwrap_err();
}

/// The certificate of a challenge for `a.test`, as PEM.
#[derive(Debug)]
struct PendingForA(String);

impl ChallengeCertificates for PendingForA {
    fn pem_for(&self, name: &str) -> Option<Vec<u8>> {
        (name == "a.test").then(|| self.0.clone().into_bytes())
    }
}

/// The certificate that a client gets which asks for `name` and offers these protocols, and the protocol that is chosen;
/// else the token of the server's error.
fn offer(
    profile: &Profile,
    ca: &Authority,
    name: &str,
    protocols: &[&[u8]],
) -> Result<(CertificateDer<'static>, Option<Vec<u8>>), &'static str> {
    let mut roots = rustls::RootCertStore::empty();
    let issuer = CertificateDer::from_pem_slice(ca.pem().as_bytes()).expect("PEM");
    roots.add(issuer).expect("an issuer");
    let mut config = rustls::ClientConfig::builder()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = protocols.iter().map(|it| it.to_vec()).collect();
    let name = name.to_owned().try_into().expect("a name");
    let mut client = rustls::ClientConnection::new(Arc::new(config), name).expect("a connection");
    let mut server = End::new(Connection::server(profile, Protocols::Both).expect("a connection"));
    while client.is_handshaking() {
        let mut up = Vec::new();
        while client.wants_write() {
            client.write_tls(&mut up).expect("no failure");
        }
        server.receive(&up).map_err(|error| error.client_token())?;
        client.read_tls(&mut &server.out[..]).expect("no failure");
        server.out.clear();
        client.process_new_packets().expect("a good server");
    }
    let leaf = client.peer_certificates().expect("a certificate")[0].clone();
    Ok((
        leaf.into_owned(),
        client.alpn_protocol().map(<[u8]>::to_vec),
    ))
}

#[test]
fn the_protocol_of_authorities_gets_the_certificate_of_a_pending_challenge_or_none() {
    let ca = authority("ca");
    let (own, challenge) = (plain(&ca, &["a.test", "b.test"]), plain(&ca, &["a.test"]));
    let leaf = |pair: &Pair| CertificateDer::from_pem_slice(pair.chain.as_bytes()).expect("PEM");
    let answering = |client_certificate| {
        let files = ProfileFiles {
            challenges: Some(Arc::new(PendingForA(format!(
                "{}{}",
                challenge.chain, challenge.key
            )))),
            client_ca: Some(file("ca.pem", ca.pem())),
            ..files(std::slice::from_ref(&own))
        };
        let settings = ProfileSettings {
            client_certificate,
            ..settings()
        };
        profile(&settings, &files)
    };
    let alone: &[&[u8]] = &[b"acme-tls/1"];
    let profile = answering(ClientCertificate::Off);
    // A renewal of issued certificates changes nothing of it.
    for profile in [&profile, &profile.with_issued(profile.issued())] {
        let (served, protocol) = offer(profile, &ca, "a.test", alone).unwrap();
        assert_eq!(
            (served, protocol),
            (leaf(&challenge), Some(alone[0].to_vec()))
        );
        let unknown = Err("tls-unknown-name");
        assert_eq!(
            offer(profile, &ca, "b.test", alone),
            unknown,
            "nothing is pending"
        );
        let among: &[&[u8]] = &[b"acme-tls/1", b"http/1.1"];
        assert_eq!(
            offer(profile, &ca, "a.test", among),
            unknown,
            "no authority does that"
        );
        for protocols in [&[b"h2" as &[u8]] as &[_], &[]] {
            let (served, _) = offer(profile, &ca, "a.test", protocols).unwrap();
            assert_eq!(served, leaf(&own), "{protocols:?}");
        }
    }
    // An authority has no certificate to show.
    let strict = answering(ClientCertificate::Optional);
    assert_eq!(offer(&strict, &ca, "a.test", alone), Err("tls-handshake"));
}

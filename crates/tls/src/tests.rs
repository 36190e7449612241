//! Both ends against each other, with certificates made on the spot.

use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use bytes::BytesMut;
use rcgen::{
    BasicConstraints, CertificateParams, CertificateRevocationListParams, CertifiedIssuer, IsCa,
    KeyIdMethod, KeyPair, KeyUsagePurpose, RevocationReason, RevokedCertParams, SerialNumber,
    date_time_ymd,
};

use crate::{
    Built, CertificateFiles, ClientCertificate, ClientIdentity, Connection, Facts, Fault, PemFile,
    Profile, ProfileFiles, ProfileSettings, Protocols, Roots, TicketKeys, TlsError, Trust,
    TrustSettings, Version,
};

type Issuer = CertifiedIssuer<'static, KeyPair>;

fn authority(name: &str) -> Issuer {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params
        .distinguished_name
        .push(rcgen::DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

/// A certificate's chain and key as PEM.
#[derive(Clone)]
struct Pair {
    chain: String,
    key: String,
}

fn issue(issuer: &Issuer, names: &[&str], change: impl FnOnce(&mut CertificateParams)) -> Pair {
    let names: Vec<String> = names.iter().map(ToString::to_string).collect();
    let mut params = CertificateParams::new(names).unwrap();
    change(&mut params);
    let key = KeyPair::generate().unwrap();
    let leaf = params.signed_by(&key, issuer).unwrap();
    Pair {
        chain: leaf.pem() + &issuer.pem(),
        key: key.serialize_pem(),
    }
}

fn plain(issuer: &Issuer, names: &[&str]) -> Pair {
    issue(issuer, names, |_| {})
}

fn file(name: &str, text: impl Into<Vec<u8>>) -> PemFile {
    PemFile {
        path: PathBuf::from(name),
        bytes: text.into(),
        is_public: false,
    }
}

fn files(pairs: &[Pair]) -> ProfileFiles {
    let of = |pair: &Pair| CertificateFiles {
        chain: file("chain.pem", pair.chain.clone()),
        key: file("key.pem", pair.key.clone()),
        default: false,
    };
    ProfileFiles {
        certificates: pairs.iter().map(of).collect(),
        ..ProfileFiles::default()
    }
}

fn settings() -> ProfileSettings {
    ProfileSettings {
        strict_sni: false,
        version_min: Version::Tls12,
        client_certificate: ClientCertificate::Off,
        client_certificate_chain: false,
        tickets: true,
        ticket_rotation: Duration::from_secs(3600),
    }
}

fn build(settings: &ProfileSettings, files: &ProfileFiles) -> Result<Built, Vec<Fault>> {
    let keys = TicketKeys::generate().unwrap();
    Profile::build(settings, files, &keys, None, SystemTime::now())
}

fn profile(settings: &ProfileSettings, files: &ProfileFiles) -> Profile {
    build(settings, files).unwrap().profile
}

fn trust(issuer: &Issuer, name: &str, identity_of: Option<&Pair>) -> Trust {
    let identity = |pair: &Pair| ClientIdentity {
        chain: pair.chain.clone().into(),
        key: pair.key.clone().into(),
    };
    Trust::new(TrustSettings {
        server_name: name.to_owned(),
        verify: true,
        roots: Roots::from_pem(issuer.pem().as_bytes()).unwrap(),
        identity: identity_of.map(identity),
    })
    .unwrap()
}

/// One end: its connection, and what it received and did not use up.
struct End {
    connection: Connection,
    rest: Vec<u8>,
    plain: BytesMut,
    out: Vec<u8>,
    is_open: bool,
}

impl End {
    fn new(connection: Connection) -> Self {
        Self {
            connection,
            rest: Vec::new(),
            plain: BytesMut::new(),
            out: Vec::new(),
            is_open: false,
        }
    }

    fn receive(&mut self, bytes: &[u8]) -> Result<(), TlsError> {
        self.rest.extend_from_slice(bytes);
        let received = self
            .connection
            .receive(&mut self.rest, &mut self.plain, &mut self.out)?;
        self.rest.drain(..received.consumed);
        self.is_open = received.is_open;
        Ok(())
    }

    fn seal(&mut self, plain: &[u8]) {
        self.connection
            .seal(plain, &mut self.rest, &mut self.out)
            .unwrap();
    }
}

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
            client: End::new(Connection::client(trust).unwrap()),
            server: End::new(Connection::server(profile, Protocols::Http1).unwrap()),
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
        let trust = trust(&ca, "a.test", None);
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
        meet(&profile, &trust(&ca, name, None)).map(|facts| facts.sni.unwrap().into_string())
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
    let trust = trust(&ca, "a.test", None);
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
    let serial = SerialNumber::from(7_u64);
    let revoked = issue(&ca, &["revoked.test"], |params| {
        params.serial_number = Some(serial.clone());
    });
    let expired = issue(&ca, &["old.test"], |params| {
        params.not_after = date_time_ymd(2020, 1, 1);
    });
    let good = plain(&ca, &["client.test"]);
    let untrusted = plain(&other, &["client.test"]);
    let crl = CertificateRevocationListParams {
        this_update: date_time_ymd(2024, 1, 1),
        next_update: date_time_ymd(2090, 1, 1),
        crl_number: SerialNumber::from(1_u64),
        issuing_distribution_point: None,
        revoked_certs: vec![RevokedCertParams {
            serial_number: serial,
            revocation_time: date_time_ymd(2024, 1, 1),
            reason_code: Some(RevocationReason::KeyCompromise),
            invalidity_date: None,
        }],
        key_identifier_method: KeyIdMethod::Sha256,
    };
    let crl = crl.signed_by(&ca).unwrap().pem().unwrap();
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
            &trust(&server, "a.test", identity),
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
    let met = |pair: Pair, trusted: &Issuer, name| {
        meet(
            &profile(&settings(), &files(&[pair])),
            &trust(trusted, name, None),
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
    let old = issue(&ca, &["a.test"], |params| {
        params.not_after = date_time_ymd(2020, 1, 1);
    });
    assert_eq!(met(old, &ca, "a.test"), Err("tls-untrusted".to_owned()));
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
        assert_eq!(crate::looks_like_tls(first), is_tls, "{first:?}");
    }
}

#[test]
fn a_flipped_byte_ends_the_connection() {
    let ca = authority("ca");
    let profile = profile(&settings(), &files(&[plain(&ca, &["a.test"])]));
    let mut pipe = Pipe::new(&profile, &trust(&ca, "a.test", None), 4096);
    pipe.pump().unwrap();
    pipe.client.seal(b"GET / HTTP/1.1");
    let mut sealed = std::mem::take(&mut pipe.client.out);
    *sealed.last_mut().unwrap() ^= 1;
    pipe.server.receive(&sealed).unwrap_err();
    assert!(pipe.server.plain.is_empty());
    assert!(!pipe.server.out.is_empty(), "an alert");
    pipe.server.receive(b"more").unwrap_err();
}

/// What is said of files, as `part: message`.
fn said(built: Result<Built, Vec<Fault>>) -> Vec<String> {
    let list = match built {
        Ok(built) => built.warnings,
        Err(faults) => faults,
    };
    list.iter()
        .map(|fault| format!("{:?}: {}", fault.part, fault.message))
        .collect()
}

#[test]
fn files_at_fault_are_named() {
    let ca = authority("ca");
    let good = plain(&ca, &["a.test"]);
    let other = plain(&ca, &["b.test"]);
    let with = |chain: &str, key: &str| {
        let pair = Pair {
            chain: chain.to_owned(),
            key: key.to_owned(),
        };
        said(build(&settings(), &files(&[pair])))
    };
    assert_eq!(
        with("", &good.key),
        ["Chain(0): there is no CERTIFICATE block in chain.pem"]
    );
    assert_eq!(
        with(&good.chain, ""),
        ["Key(0): there is no PRIVATE KEY block in key.pem"]
    );
    assert_eq!(with("", "").len(), 2, "all at once");
    assert_eq!(
        with(&good.chain, &other.key),
        ["Key(0): the key key.pem does not belong to the certificate chain.pem"]
    );
    let encrypted =
        "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----";
    assert_eq!(
        with(&good.chain, encrypted),
        ["Key(0): the key key.pem is encrypted, and nobody can type its password"]
    );
    let (leaf, issuer) = good.chain.split_at(good.chain.len() - ca.pem().len());
    assert_eq!(
        with(&format!("{issuer}{leaf}"), &good.key),
        ["Chain(0): the server's own certificate is not the first in chain.pem"]
    );
    let nameless = plain(&ca, &[]);
    assert_eq!(
        with(&nameless.chain, &nameless.key),
        ["Chain(0): the certificate in chain.pem has no subjectAltName, so no client accepts it"]
    );
    let der = ProfileFiles {
        certificates: vec![CertificateFiles {
            chain: file("chain.der", ca.der().to_vec()),
            key: file("key.pem", good.key.clone()),
            default: false,
        }],
        ..ProfileFiles::default()
    };
    assert_eq!(
        said(build(&settings(), &der)),
        ["Chain(0): chain.der is DER, not PEM"]
    );
    let twice = build(
        &settings(),
        &files(&[good.clone(), plain(&ca, &["a.test"])]),
    );
    assert_eq!(
        said(twice),
        ["Chain(1): another certificate for a.test has an ECDSA key, too"]
    );
    let mut defaults = files(&[good.clone(), other]);
    defaults
        .certificates
        .iter_mut()
        .for_each(|it| it.default = true);
    assert_eq!(
        said(build(&settings(), &defaults)),
        ["Default(1): another certificate is the default already"]
    );
}

#[test]
fn trust_at_fault_is_named() {
    let (ca, other) = (authority("ca"), authority("other"));
    let crl = |issuer: &Issuer, next_update| {
        let params = CertificateRevocationListParams {
            this_update: date_time_ymd(2020, 1, 1),
            next_update,
            crl_number: SerialNumber::from(1_u64),
            issuing_distribution_point: None,
            revoked_certs: Vec::new(),
            key_identifier_method: KeyIdMethod::Sha256,
        };
        params.signed_by(issuer).unwrap().pem().unwrap()
    };
    let with = |client_ca: Option<String>, client_crl: Option<String>| {
        let settings = ProfileSettings {
            client_certificate: ClientCertificate::Required,
            ..settings()
        };
        let files = ProfileFiles {
            client_ca: client_ca.map(|text| file("ca.pem", text)),
            client_crl: client_crl.map(|text| file("crl.pem", text)),
            ..files(&[plain(&ca, &["a.test"])])
        };
        said(build(&settings, &files))
    };
    let future = date_time_ymd(2090, 1, 1);
    assert_eq!(with(Some(ca.pem()), Some(crl(&ca, future))), [""; 0]);
    assert_eq!(
        with(None, None),
        ["Profile: `client_certificate` is on, and no `client_ca` says who may issue them"]
    );
    assert_eq!(
        with(Some(String::new()), None),
        ["ClientCa: there is no CERTIFICATE block in ca.pem"]
    );
    assert_eq!(
        with(Some(ca.pem()), Some(String::new())),
        ["ClientCrl: there is no X509 CRL block in crl.pem"]
    );
    assert_eq!(
        with(Some(ca.pem()), Some(crl(&other, future))),
        ["ClientCrl: crl.pem was issued by CN=other, which is not in `client_ca`"]
    );
    assert_eq!(
        with(Some(ca.pem()), Some(crl(&ca, date_time_ymd(2021, 1, 1)))),
        ["ClientCrl: crl.pem was to be replaced already; certificates of clients are refused"]
    );
}

#[test]
fn what_will_not_last_is_warned_of() {
    let ca = authority("ca");
    let good = plain(&ca, &["a.test"]);
    let alone = Pair {
        chain: good.chain[..good.chain.len() - ca.pem().len()].to_owned(),
        ..good.clone()
    };
    assert_eq!(
        said(build(&settings(), &files(&[alone]))),
        [
            "Chain(0): the chain of a.test has the certificate alone, so some clients cannot verify it"
        ]
    );
    let old = issue(&ca, &["a.test"], |params| {
        params.not_after = date_time_ymd(2020, 1, 1);
    });
    let at = |day| {
        let keys = TicketKeys::generate().unwrap();
        let now = SystemTime::from(date_time_ymd(2019, 12, day));
        said(Profile::build(
            &settings(),
            &files(std::slice::from_ref(&old)),
            &keys,
            None,
            now,
        ))
    };
    assert_eq!(at(1), [""; 0]);
    assert_eq!(
        at(30),
        ["Chain(0): the certificate of a.test expires in 2 days"]
    );
    assert_eq!(
        said(build(&settings(), &files(std::slice::from_ref(&old))))[0]
            .split(" expired ")
            .next(),
        Some("Chain(0): the certificate of a.test")
    );
    let mut public = files(&[good]);
    public.certificates[0].key.is_public = true;
    assert_eq!(
        said(build(&settings(), &public)),
        ["Key(0): every user may read the key key.pem"]
    );
}

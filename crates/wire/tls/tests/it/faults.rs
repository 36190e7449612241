//! What is said of files that cannot be served with, or not for long.

use std::time::SystemTime;

use catamaran_testkit::tls::{Authority, Pair, build, file, files, settings};
use catamaran_tls::{
    BuiltProfile, CertificateFiles, ClientCertificate, Fault, Profile, ProfileFiles,
    ProfileSettings, TicketKeys,
};
use rcgen::{CustomExtension, date_time_ymd};

use crate::{authority, plain};

/// What is said of files, as `part: message`.
fn said(built: Result<BuiltProfile, Vec<Fault>>) -> Vec<String> {
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
    let crl = |issuer: &Authority, year| issuer.revocations_until(&[], year).unwrap();
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
    let future = 2090;
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
        with(Some(ca.pem()), Some(crl(&ca, 2021))),
        ["ClientCrl: crl.pem was to be replaced already; certificates of clients are refused"]
    );
}

#[test]
fn what_will_not_last_is_warned_of() {
    let ca = authority("ca");
    let without_issuer = |pair: &Pair| Pair {
        chain: pair.chain[..pair.chain.len() - ca.pem().len()].to_owned(),
        ..pair.clone()
    };
    // A root of one's own that signs directly.
    let alone = without_issuer(&plain(&ca, &["a.test"]));
    assert_eq!(said(build(&settings(), &files(&[alone]))), [""; 0]);
    // Proofs of transparency, as each authority that browsers know adds them.
    let public = ca.sign(&["a.test"], |params| {
        let id = [1, 3, 6, 1, 4, 1, 11129, 2, 4, 2];
        let proofs = CustomExtension::from_oid_content(&id, vec![4, 2, 0, 0]);
        params.custom_extensions.push(proofs);
    });
    let alone = without_issuer(&public.unwrap());
    assert_eq!(
        said(build(&settings(), &files(&[alone]))),
        [
            "Chain(0): the chain of a.test has the certificate alone, so some clients cannot verify it"
        ]
    );
    let old = ca
        .sign(&["a.test"], |params| {
            params.not_after = date_time_ymd(2020, 1, 1);
        })
        .unwrap();
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
    let mut public = files(&[plain(&ca, &["a.test"])]);
    public.certificates[0].key.is_public = true;
    assert_eq!(
        said(build(&settings(), &public)),
        ["Key(0): every user may read the key key.pem"]
    );
}

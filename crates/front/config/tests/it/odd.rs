//! Odd files, each with one peculiarity: those of `tests/odd_faulty.txt` have a fault, of those of
//! `tests/odd_fine.txt` nothing is said.

#![expect(
    clippy::unwrap_used,
    reason = "the whole file is a test; clippy exempts only the functions marked as one"
)]

use std::collections::BTreeSet;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use catamaran_config::load;
use catamaran_testkit::{Case, Cases};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};

/// The files of that kind.
fn files(kind: &str) -> Cases {
    Cases::read(Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/odd_{kind}.txt")))
}

/// A directory with what the files name: a certificate that a root of one's own has signed, alone and without
/// an intermediate, its key, and the first bytes of a PKCS#12 store.
fn place() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    let mut root = CertificateParams::default();
    root.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    root.distinguished_name
        .push(DnType::CommonName, "Our own root");
    let root = Issuer::new(root, KeyPair::generate().unwrap());
    let key = KeyPair::generate().unwrap();
    let leaf = CertificateParams::new(["www.example.org".to_owned()]).unwrap();
    fs::write(at("www.pem"), leaf.signed_by(&key, &root).unwrap().pem()).unwrap();
    fs::write(at("www.key"), key.serialize_pem()).unwrap();
    fs::set_permissions(at("www.key"), Permissions::from_mode(0o600)).unwrap();
    fs::write(at("store.p12"), STORE).unwrap();
    directory
}

/// What is said of a file that lies in a directory of its own.
fn said(file: &Case) -> String {
    let place = place();
    let path = place.path().join(&file.name);
    fs::write(&path, &file.text).unwrap();
    let said = match load(&path) {
        Ok(loaded) => loaded.report.to_string(),
        Err(error) => error.to_string(),
    };
    said.replace(&format!("{}/", place.path().display()), "")
}

#[test]
fn each_fault_is_named_with_its_hint_and_none_beside_it() {
    files("faulty").check(|file| {
        let said = said(file);
        assert!(said.contains("fault: "), "{}: {said}", file.name);
        said
    });
}

#[test]
fn nothing_is_said_of_what_is_merely_odd() {
    for file in files("fine").iter() {
        assert_eq!(said(file), "", "{}", file.name);
    }
}

#[test]
fn the_corpus_has_its_size_and_no_file_twice() {
    let (faulty, fine) = (files("faulty"), files("fine"));
    let texts: BTreeSet<&str> = faulty
        .iter()
        .chain(fine.iter())
        .map(|it| it.text.as_str())
        .collect();
    assert_eq!(texts.len(), faulty.len() + fine.len());
    assert!(
        texts.len() >= 43 && fine.len() >= 10,
        "{}, {}",
        faulty.len(),
        fine.len()
    );
}

/// A sequence with the version 3 and data of PKCS#7.
const STORE: &[u8] =
    b"\x30\x82\x01\x00\x02\x01\x03\x30\x82\x00\xf9\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x07\x01";

//! Odd files, each with one peculiarity: `tests/odd/faulty/NAME` has the exact words in `NAME.txt`, of those in
//! `tests/odd/fine` nothing is said.

#![expect(
    clippy::unwrap_used,
    reason = "the whole file is a test; clippy exempts only the functions marked as one"
)]

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use catamaran_config::load;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};

/// The files of that kind, without the words.
fn files(kind: &str) -> Vec<PathBuf> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/odd")
        .join(kind);
    let entries = fs::read_dir(directory).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    let mut paths: Vec<_> = paths
        .filter(|path| path.extension().is_none_or(|it| it != "txt"))
        .collect();
    paths.sort();
    paths
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
fn said(file: &Path) -> String {
    let place = place();
    let path = place.path().join(file.file_name().unwrap());
    fs::copy(file, &path).unwrap();
    let said = match load(&path) {
        Ok(loaded) => loaded.report.to_string(),
        Err(error) => error.to_string(),
    };
    said.replace(&format!("{}/", place.path().display()), "")
}

#[test]
fn each_fault_is_named_with_its_hint_and_none_beside_it() {
    let mut different = Vec::new();
    for file in files("faulty") {
        let mut words = file.clone().into_os_string();
        words.push(".txt");
        let (said, expected) = (said(&file), fs::read_to_string(&words).unwrap_or_default());
        if said != expected {
            different.push(format!("--- {}\n{said}", file.display()));
        }
        assert!(said.contains("fault: "), "{}: {said}", file.display());
    }
    assert!(
        different.is_empty(),
        "now it is said:\n{}",
        different.concat()
    );
}

#[test]
fn nothing_is_said_of_what_is_merely_odd() {
    for file in files("fine") {
        assert_eq!(said(&file), "", "{}", file.display());
    }
}

#[test]
fn the_corpus_has_its_size_and_no_file_twice() {
    let all: Vec<PathBuf> = files("faulty").into_iter().chain(files("fine")).collect();
    let texts: std::collections::BTreeSet<_> = all.iter().map(|it| fs::read(it).unwrap()).collect();
    assert_eq!(texts.len(), all.len());
    assert!(all.len() >= 43 && files("fine").len() >= 10, "{all:?}");
}

/// A sequence with the version 3 and data of PKCS#7.
const STORE: &[u8] =
    b"\x30\x82\x01\x00\x02\x01\x03\x30\x82\x00\xf9\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x07\x01";

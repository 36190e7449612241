//! What `check` says of certificates and keys at fault: each row in a directory of its own.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use catamaran_e2e::binary;
use catamaran_testkit::tls::Authority;
use rcgen::{CertificateParams, CustomExtension, date_time_ymd};

/// What is broken, and what is said of it.
struct Row {
    /// Changes the files, and may change the configuration.
    spoil: fn(&Place<'_>, &mut String),
    /// Words of the finding.
    said: &'static str,
    /// The text that the finding is shown below.
    at: &'static str,
    /// Words of the hint.
    hint: &'static str,
}

/// The directory of a row, and who issues its certificates.
struct Place<'a> {
    directory: &'a Path,
    authority: &'a Authority,
}

impl Place<'_> {
    fn write(&self, file: &str, text: impl AsRef<[u8]>) {
        fs::write(self.directory.join(file), text).unwrap();
    }

    /// Runs OpenSSL in the directory.
    fn openssl(&self, arguments: &str) {
        let output = Command::new("openssl")
            .args(arguments.split_whitespace())
            .current_dir(self.directory)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments}: {said}");
    }

    /// Has OpenSSL put another file in place of this one.
    fn convert(&self, file: &str, command: &str) {
        self.openssl(&format!("{command} -in {file} -out converted"));
        fs::rename(self.directory.join("converted"), self.directory.join(file)).unwrap();
    }

    /// A certificate that OpenSSL has made and signed with its own key.
    fn self_signed(&self, options: &str) {
        self.openssl(&format!(
            "req -x509 -nodes -keyout a.key -out a.pem -subj /CN=a {options}"
        ));
    }

    /// A certificate of the authority with something changed.
    fn issue(&self, change: impl FnOnce(&mut CertificateParams)) {
        let issued = self
            .authority
            .issue_with(self.directory, "a", &["a.test"], change);
        issued.unwrap();
    }
}

/// A file whose only peculiarity is the row's, and what `check` says of it, with its exit code.
fn check(row: &Row) -> (Option<i32>, String) {
    let directory = tempfile::tempdir().unwrap();
    let authority = Authority::new("authority").unwrap();
    let place = Place {
        directory: directory.path(),
        authority: &authority,
    };
    for (file, name) in [("a", "a.test"), ("b", "b.test")] {
        authority.issue(place.directory, file, &[name]).unwrap();
    }
    place.write("ca.pem", authority.pem());
    place.write("crl.pem", authority.revocations(&[]).unwrap());
    let mut config = CONFIG.to_owned();
    (row.spoil)(&place, &mut config);
    for key in ["a.key", "b.key"] {
        let file = place.directory.join(key);
        let mode = fs::metadata(&file).unwrap().permissions().mode();
        // A row may have made it even more public.
        let mode = if mode & 0o777 == 0o666 { 0o666 } else { 0o600 };
        fs::set_permissions(file, fs::Permissions::from_mode(mode)).unwrap();
    }
    place.write("catamaran.toml", config);
    let output = Command::new(binary().unwrap())
        .args(["check", "--config", "catamaran.toml"])
        .current_dir(place.directory)
        .output()
        .unwrap();
    let said = String::from_utf8(output.stdout).unwrap() + &String::from_utf8_lossy(&output.stderr);
    (output.status.code(), said)
}

/// What is said of the row, and nothing of its kind beside.
fn expect(row: &Row, kind: &str, code: i32) {
    let (got, said) = check(row);
    let findings: Vec<&str> = said
        .lines()
        .filter(|line| line.contains(": fault: ") || line.contains(": warning: "))
        .collect();
    let [finding] = findings[..] else {
        panic!("{}: not one finding: {said}", row.said);
    };
    assert!(finding.contains(&format!(": {kind}: ")), "{said}");
    assert!(finding.contains(row.said), "{}: {said}", row.said);
    assert!(finding.contains(row.hint), "{}: {said}", row.hint);
    assert!(said.contains(row.at), "{}: {said}", row.at);
    assert_eq!(got, Some(code), "{said}");
}

#[test]
fn a_file_without_faults_has_no_findings() {
    // The second has the certificate alone, which a root of one's own has signed.
    let spoilers: [fn(&Place<'_>, &mut String); 2] = [
        |_, _| {},
        |place, _| {
            let chain = fs::read_to_string(place.directory.join("a.pem")).unwrap();
            place.write("a.pem", chain.replacen(&place.authority.pem(), "", 1));
        },
    ];
    for spoil in spoilers {
        let row = Row {
            spoil,
            said: "",
            at: "",
            hint: "",
        };
        let (code, said) = check(&row);
        assert_eq!(code, Some(0), "{said}");
        assert!(
            !said.contains("fault: ") && !said.contains("warning: "),
            "{said}"
        );
    }
}

#[test]
fn faults_are_named_with_line_and_hint() {
    for row in FAULTS {
        expect(row, "fault", 1);
    }
}

#[test]
fn warnings_are_given_and_the_file_can_be_used() {
    for row in WARNINGS {
        expect(row, "warning", 0);
    }
}

const CONFIG: &str = "\
[[listen]]
address = \"127.0.0.1:8443\"
tls = \"www\"

[tls.www]
client_certificate = \"required\"
client_ca = \"ca.pem\"
client_crl = \"crl.pem\"

[[tls.www.certificate]]
chain = \"a.pem\"
key = \"a.key\"

[[tls.www.certificate]]
chain = \"b.pem\"
key = \"b.key\"

[upstream.app]
[[upstream.app.backend]]
url = \"ajp://127.0.0.1:8009\"
secret = \"a secret\"
packet_size = \"16KiB\"

[[route]]
upstream = \"app\"
";

static FAULTS: &[Row] = &[
    Row {
        spoil: |place, _| place.write("a.pem", "nothing\n"),
        said: "there is no CERTIFICATE block in a.pem",
        at: "chain = \"a.pem\"",
        hint: "name the PEM file with the certificate",
    },
    Row {
        spoil: |place, _| place.write("a.key", "nothing\n"),
        said: "there is no PRIVATE KEY block in a.key",
        at: "key = \"a.key\"",
        hint: "name the PEM file with the certificate's key",
    },
    Row {
        spoil: |place, _| place.convert("a.pem", "x509 -outform der"),
        said: "a.pem is DER, not PEM",
        at: "chain = \"a.pem\"",
        hint: "openssl x509 -inform der -in a.pem",
    },
    Row {
        spoil: |place, _| place.convert("a.key", "pkey -outform der"),
        said: "a.key is DER, not PEM",
        at: "key = \"a.key\"",
        hint: "openssl pkey -inform der -in a.key",
    },
    Row {
        spoil: |place, _| {
            place.openssl("pkcs12 -export -in a.pem -inkey a.key -passout pass:x -out a.p12");
            fs::rename(place.directory.join("a.p12"), place.directory.join("a.pem")).unwrap();
        },
        said: "a.pem is a PKCS#12 store, not PEM",
        at: "chain = \"a.pem\"",
        hint: "openssl pkcs12 -in a.pem -nokeys -out a.pem.pem",
    },
    Row {
        spoil: |place, _| {
            place.openssl("pkcs12 -export -in a.pem -inkey a.key -passout pass:x -out a.p12");
            fs::rename(place.directory.join("a.p12"), place.directory.join("a.key")).unwrap();
        },
        said: "a.key is a PKCS#12 store, not PEM",
        at: "key = \"a.key\"",
        hint: "openssl pkcs12 -in a.key -nocerts -nodes -out a.key.key",
    },
    Row {
        spoil: |place, _| {
            place.openssl("crl2pkcs7 -nocrl -certfile a.pem -out a.p7b");
            fs::rename(place.directory.join("a.p7b"), place.directory.join("a.pem")).unwrap();
        },
        said: "a.pem is PKCS#7, not PEM",
        at: "chain = \"a.pem\"",
        hint: "openssl pkcs7 -in a.pem -print_certs",
    },
    Row {
        spoil: |place, _| place.convert("a.key", "pkey -aes256 -passout pass:x"),
        said: "the key a.key is encrypted",
        at: "key = \"a.key\"",
        hint: "openssl pkey -in a.key",
    },
    Row {
        spoil: |_, config| *config = config.replace("key = \"a.key\"", "key = \"b.key\""),
        said: "the key b.key does not belong to the certificate a.pem",
        at: "key = \"b.key\"",
        hint: "openssl x509 -noout -pubkey",
    },
    Row {
        spoil: |place, _| {
            let chain = fs::read_to_string(place.directory.join("a.pem")).unwrap();
            let leaf = chain.replacen(&place.authority.pem(), "", 1);
            place.write("a.pem", place.authority.pem() + &leaf);
        },
        said: "the server's own certificate is not the first in a.pem",
        at: "chain = \"a.pem\"",
        hint: "order the file",
    },
    Row {
        spoil: |place, _| {
            // The key of before stays: one of 1024 bits cannot even be read.
            place.openssl(
                "req -x509 -nodes -keyout other.key -out a.pem -subj /CN=a -newkey rsa:1024 \
                 -addext subjectAltName=DNS:a.test",
            );
        },
        said: "RSA key of 1024 bits; 2048 is the least",
        at: "chain = \"a.pem\"",
        hint: "openssl genpkey",
    },
    Row {
        spoil: |place, _| {
            place.self_signed("-newkey rsa:2048 -sha1 -addext subjectAltName=DNS:a.test");
        },
        said: "the certificate in a.pem is signed with SHA-1",
        at: "chain = \"a.pem\"",
        hint: "-sha256",
    },
    Row {
        spoil: |place, _| {
            place
                .authority
                .issue(place.directory, "b", &["a.test"])
                .unwrap();
        },
        said: "another certificate for a.test has an ECDSA key, too",
        at: "chain = \"b.pem\"",
        hint: "remove one of them",
    },
    Row {
        spoil: |_, config| {
            *config = config
                .replace("\"a.key\"\n", "\"a.key\"\ndefault = true\n")
                .replace("\"b.key\"\n", "\"b.key\"\ndefault = true\n");
        },
        said: "another certificate is the default already",
        at: "default = true",
        hint: "keep one",
    },
    Row {
        spoil: |place, _| place.write("ca.pem", ""),
        said: "there is no CERTIFICATE block in ca.pem",
        at: "client_ca = \"ca.pem\"",
        hint: "name the PEM file",
    },
    Row {
        spoil: |place, _| {
            place.write(
                "ca.pem",
                "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
            );
        },
        said: "a certificate in ca.pem cannot be used",
        at: "client_ca = \"ca.pem\"",
        hint: "name a file with certificates of authorities",
    },
    Row {
        spoil: |place, _| place.write("crl.pem", ""),
        said: "there is no X509 CRL block in crl.pem",
        at: "client_crl = \"crl.pem\"",
        hint: "openssl crl",
    },
    Row {
        spoil: |place, _| {
            place.write(
                "crl.pem",
                "-----BEGIN X509 CRL-----\nAAAA\n-----END X509 CRL-----\n",
            );
        },
        said: "a CRL in crl.pem cannot be read",
        at: "client_crl = \"crl.pem\"",
        hint: "openssl crl",
    },
    Row {
        spoil: |place, _| {
            let other = Authority::new("another authority").unwrap();
            place.write("crl.pem", other.revocations(&[]).unwrap());
        },
        said: "crl.pem was issued by CN=another authority",
        at: "client_crl = \"crl.pem\"",
        hint: "add the certificate of that issuer",
    },
    Row {
        spoil: |place, _| fs::remove_file(place.directory.join("crl.pem")).unwrap(),
        said: "cannot read crl.pem: No such file",
        at: "client_crl = \"crl.pem\"",
        hint: "may read",
    },
    Row {
        spoil: |_, config| {
            *config = config.replace("tls = \"www\"", "tls = \"wwww\"");
        },
        said: "there is no TLS profile `wwww`",
        at: "address = \"127.0.0.1:8443\"",
        hint: "did you mean `www`?",
    },
    Row {
        spoil: |_, config| {
            let clear = "[[listen]]\naddress = \"127.0.0.1:8080\"\nhsts = \"max-age=1\"\n";
            *config = format!("{clear}{config}");
        },
        said: "`hsts` is sent over TLS only",
        at: "hsts = \"max-age=1\"",
        hint: "write it in the [[listen]] with `tls`",
    },
    Row {
        spoil: |_, config| {
            *config = config.replace("tls = \"www\"", "tls = \"www\"\nredirect_https = true");
        },
        said: "`redirect_https` has no use beside `tls`",
        at: "redirect_https = true",
        hint: "port 80",
    },
];

static WARNINGS: &[Row] = &[
    Row {
        spoil: |place, _| {
            place.issue(|params| params.not_after = date_time_ymd(2020, 1, 1));
        },
        said: "the certificate of a.test expired",
        at: "chain = \"a.pem\"",
        hint: "renew it; it is served meanwhile",
    },
    Row {
        spoil: |place, _| place.self_signed("-newkey ec -pkeyopt ec_paramgen_curve:P-256 -days 90"),
        said: "the certificate in a.pem has no subjectAltName",
        at: "chain = \"a.pem\"",
        hint: "-addext subjectAltName",
    },
    Row {
        spoil: |place, _| {
            place.self_signed(
                "-newkey ec -pkeyopt ec_paramgen_curve:P-256 -days 7 \
                 -addext subjectAltName=DNS:a.test -addext basicConstraints=CA:FALSE",
            );
        },
        said: "the certificate of a.test expires in 6 days",
        at: "chain = \"a.pem\"",
        hint: "renew it",
    },
    Row {
        spoil: |place, _| {
            // Proofs of Certificate Transparency, as each authority that browsers know adds them.
            let id = [1, 3, 6, 1, 4, 1, 11129, 2, 4, 2];
            place.issue(|params| {
                let proofs = CustomExtension::from_oid_content(&id, vec![4, 2, 0, 0]);
                params.custom_extensions.push(proofs);
            });
            let chain = fs::read_to_string(place.directory.join("a.pem")).unwrap();
            place.write("a.pem", chain.replacen(&place.authority.pem(), "", 1));
        },
        said: "the chain of a.test has the certificate alone",
        at: "chain = \"a.pem\"",
        hint: "fullchain.pem",
    },
    Row {
        spoil: |place, _| {
            let public = fs::Permissions::from_mode(0o666);
            fs::set_permissions(place.directory.join("a.key"), public).unwrap();
        },
        said: "every user may read the key a.key",
        at: "key = \"a.key\"",
        hint: "chmod 600 a.key",
    },
    Row {
        spoil: |place, _| {
            // A list with `status_request` (RFC 7633).
            let features = vec![0x30, 3, 2, 1, 5];
            let id = [1, 3, 6, 1, 5, 5, 7, 1, 24];
            place.issue(|params| {
                let must_staple = CustomExtension::from_oid_content(&id, features);
                params.custom_extensions.push(must_staple);
            });
        },
        said: "the certificate of a.test demands OCSP stapling",
        at: "chain = \"a.pem\"",
        hint: "reissue it without must-staple",
    },
    Row {
        spoil: |place, _| {
            place.write(
                "crl.pem",
                place.authority.revocations_until(&[], 2021).unwrap(),
            );
        },
        said: "crl.pem was to be replaced already",
        at: "client_crl = \"crl.pem\"",
        hint: "get a new one",
    },
    Row {
        spoil: |_, config| *config = config.replace("\"16KiB\"", "\"8KiB\""),
        said: "a client's certificate may not fit into a packet",
        at: "url = \"ajp://127.0.0.1:8009\"",
        hint: "set packet_size = \"16KiB\" here and packetSize=\"16384\" in the connector",
    },
];

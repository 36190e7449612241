//! Forms, uploads and bodies that nobody reads, from curl over HTTP/2 to Tomcat: the exchanges of
//! `interop`, over each connector.

use std::fs;

use catamaran_e2e::{Container, Front, curl};
use catamaran_testkit::{Pattern, Sha256};

use crate::http2::{certify, tls_address};
use crate::through::value;

struct Site {
    front: Front,
    address: String,
    files: tempfile::TempDir,
}

impl Site {
    fn new(url: &str) -> Self {
        let files = tempfile::tempdir().unwrap();
        certify(files.path());
        let mut front = Front::with_config(&format!(
            "[[listen]]\naddress = \"127.0.0.1:0\"\n[[listen]]\naddress = \"127.0.0.1:0\"\n\
             tls = \"www\"\n[[tls.www.certificate]]\nchain = \"{files}/chain.pem\"\n\
             key = \"{files}/key.pem\"\n\
             [[route]]\nupstream = \"app\"\n[[upstream.app.backend]]\nurl = \"{url}\"\n\
             [admin]\naddress = \"127.0.0.1:0\"\n",
            files = files.path().display()
        ))
        .unwrap();
        let address = tls_address(&mut front);
        Self {
            front,
            address,
            files,
        }
    }

    /// What the application says to requests for these targets on one connection.
    fn curl(&self, targets: &[&str], options: &[&str]) -> String {
        let urls = targets
            .iter()
            .map(|target| format!("https://{}{target}", self.address));
        let output = curl()
            .args(["--fail", "--insecure", "--http2"])
            .args(options)
            .args(urls)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            output.status.success(),
            "{options:?}: {said}\n{}",
            self.front.log()
        );
        String::from_utf8(output.stdout).unwrap()
    }

    /// A file with so many bytes of the pattern, and their digest.
    fn file(&self, length: u64) -> (String, String) {
        let path = self.files.path().join(length.to_string());
        let bytes = Pattern::bytes(length);
        fs::write(&path, &bytes).unwrap();
        let mut digest = Sha256::default();
        std::io::Write::write_all(&mut digest, &bytes).unwrap();
        (path.display().to_string(), digest.hex())
    }
}

#[test]
fn forms_and_uploads_reach_tomcat() {
    let started = Container::Tomcat10.start().unwrap();
    for url in started.urls() {
        println!("through {url}");
        let site = Site::new(url);
        let text = site.curl(&["/form?a=1"], &[]);
        assert_eq!(value(&text, "parameter.a"), "1", "{text}");
        for framing in FRAMINGS {
            forms(&site, framing);
            uploads(&site, framing);
            unread(&site, framing);
        }
        assert_eq!(site.front.metric("catamaran_retries_total").unwrap(), [0.0]);
    }
}

fn forms(site: &Site, framing: &[&str]) {
    let long = "x".repeat(20_000);
    let pairs = format!("a=1&long={long}");
    let text = site.curl(&["/form?q=0"], &[framing, &["-d", &pairs]].concat());
    for (name, expected) in [("a", "1"), ("long", &long), ("q", "0")] {
        assert_eq!(value(&text, &format!("parameter.{name}")), expected);
    }
    let (path, digest) = site.file(30_000);
    let file = format!("file=@{path};filename=f");
    let parts = ["-F", "text=hello", "-F", &file];
    let text = site.curl(&["/parts"], &[framing, &parts].concat());
    assert_eq!(value(&text, "part.text.length"), "5");
    assert_eq!(value(&text, "part.file.sha256"), digest);
}

fn uploads(site: &Site, framing: &[&str]) {
    for length in [0, 8187, 3_000_000] {
        let (path, digest) = site.file(length);
        let data = format!("@{path}");
        let text = site.curl(&["/upload"], &[framing, &["--data-binary", &data]].concat());
        assert_eq!(value(&text, "body.length"), length.to_string());
        assert_eq!(value(&text, "body.sha256"), digest);
    }
}

/// A body that the application leaves unread is not taken for what follows, on this connection or on
/// the backend's.
fn unread(site: &Site, framing: &[&str]) {
    for length in [1, 30_000] {
        let (path, _) = site.file(length);
        let data = format!("@{path}");
        let options = [framing, &["--data-binary", &data]].concat();
        let text = site.curl(&["/ignore", "/ignore", "/ignore"], &options);
        let answers = text.lines().filter(|line| *line == "uri=/ignore").count();
        assert_eq!(answers, 3, "{text}");
        let text = site.curl(&["/form?a=1"], &[]);
        assert_eq!(value(&text, "parameter.a"), "1", "{text}");
    }
}

/// With the length that curl knows, and without.
const FRAMINGS: [&[&str]; 2] = [&[], &["-H", "content-length:"]];

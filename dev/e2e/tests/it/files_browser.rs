//! Files for a real browser: an application with its routes in the browser, a script that was compressed
//! beforehand, and a media file in which the user seeks.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;

use catamaran_e2e::{Browser, Front};
use catamaran_testkit::tls::Authority;
use serde_json::json;

#[test]
fn a_browser_opens_a_route_of_its_own() {
    let files = tempfile::tempdir().unwrap();
    fs::create_dir(files.path().join("assets")).unwrap();
    fs::write(files.path().join("index.html"), PAGE).unwrap();
    fs::write(files.path().join("assets/app.js"), SCRIPT).unwrap();
    let front = Front::with_tables(&format!(
        "[[route]]\nfiles = \"{}\"\nfallback = \"index.html\"\n",
        files.path().display()
    ))
    .unwrap();
    let mut browser = Browser::start(&[]).unwrap();
    for path in ["/", "/orders/7", "/orders/"] {
        let url = format!("http://{}{path}", front.address());
        browser.open(&url).unwrap();
        browser.wait("document.title").unwrap();
        assert_eq!(
            browser.evaluate("document.title").unwrap(),
            format!("at {path}")
        );
        assert_eq!(browser.text().unwrap(), "Orders");
    }
    assert!(browser.complaints().is_empty());
    // What is missing of a page is missing: no page is taken for a script.
    let missing = "fetch('/assets/gone.js').then(it => it.status)";
    assert_eq!(browser.evaluate(missing).unwrap(), 404);
}

/// These bytes as Brotli (RFC 7932) that is only framed: one stored piece of at most 64 KiB.
fn stored(bytes: &[u8]) -> Vec<u8> {
    // A window of 16 bits; not the last piece; a length of four nibbles; stored.
    let head = (bytes.len() as u32 - 1) << 4 | 1 << 20;
    // Then the last piece, which is empty.
    [&head.to_le_bytes()[..3], bytes, &[3]].concat()
}

fn over_tls(files: &Path) -> (Front, tempfile::TempDir) {
    let certificates = tempfile::tempdir().unwrap();
    let authority = Authority::new("authority").unwrap();
    authority
        .issue(certificates.path(), "www", &["www.test"])
        .unwrap();
    let at = certificates.path().display();
    let config = format!(
        "[[listen]]\naddress = \"127.0.0.1:0\"\ntls = \"www\"\n\
         [tls.www]\n[[tls.www.certificate]]\nchain = \"{at}/www.pem\"\nkey = \"{at}/www.key\"\n\
         [[route]]\nfiles = \"{}\"\n[log]\nformat = \"json\"\n",
        files.display()
    );
    (Front::with_config(&config).unwrap(), certificates)
}

#[test]
fn a_browser_takes_brotli_over_tls() {
    let files = tempfile::tempdir().unwrap();
    fs::create_dir(files.path().join("assets")).unwrap();
    fs::write(files.path().join("index.html"), PAGE).unwrap();
    fs::write(
        files.path().join("assets/app.js"),
        "document.title = 'plain'",
    )
    .unwrap();
    fs::write(
        files.path().join("assets/app.js.br"),
        stored(SCRIPT.as_bytes()),
    )
    .unwrap();
    let (front, _certificates) = over_tls(files.path());
    let mut browser = Browser::start(&["www.test"]).unwrap();
    let url = format!("https://www.test:{}/", front.address().port());
    browser.open(&url).unwrap();
    browser.wait("document.title").unwrap();
    // The compressed file was run, so it was taken and decoded.
    assert_eq!(browser.evaluate("document.title").unwrap(), "at /");
    let coding = "fetch('/assets/app.js').then(it => it.headers.get('content-encoding'))";
    assert_eq!(browser.evaluate(coding).unwrap(), "br");
    let line = front.wait_for_log("/assets/app.js").unwrap();
    let length = stored(SCRIPT.as_bytes()).len();
    assert!(line.contains(&format!("\"sent\":{length}")), "{line}");
    assert!(line.contains("\"protocol\":\"h2\""), "{line}");
    assert!(browser.complaints().is_empty());
}

/// An hour of sound as WAV, which is nearly all silence.
fn sound(path: &Path) {
    const RATE: u32 = 8000;
    const BYTES: u32 = 3600 * RATE;
    let mut file = File::create(path).unwrap();
    let mut head = Vec::new();
    head.extend_from_slice(b"RIFF");
    head.extend_from_slice(&(36 + BYTES).to_le_bytes());
    head.extend_from_slice(b"WAVEfmt ");
    head.extend_from_slice(&16_u32.to_le_bytes());
    // PCM, one channel, a byte for each sample.
    for number in [1_u16, 1] {
        head.extend_from_slice(&number.to_le_bytes());
    }
    for number in [RATE, RATE] {
        head.extend_from_slice(&number.to_le_bytes());
    }
    for number in [1_u16, 8] {
        head.extend_from_slice(&number.to_le_bytes());
    }
    head.extend_from_slice(b"data");
    head.extend_from_slice(&BYTES.to_le_bytes());
    file.write_all(&head).unwrap();
    file.set_len(44 + u64::from(BYTES)).unwrap();
}

/// A seek to the end of a file asks for its end, and not for all that is before it.
#[test]
fn a_browser_seeks_in_a_media_file() {
    let files = tempfile::tempdir().unwrap();
    sound(&files.path().join("hour.wav"));
    let page =
        "<!doctype html><link rel=icon href=data:,><video src=/hour.wav preload=metadata></video>";
    fs::write(files.path().join("index.html"), page).unwrap();
    let (front, _certificates) = over_tls(files.path());
    let mut browser = Browser::start(&["www.test"]).unwrap();
    let url = format!("https://www.test:{}/", front.address().port());
    browser.open(&url).unwrap();
    browser
        .wait("document.querySelector('video').readyState >= 1")
        .unwrap();
    let length = browser.evaluate("document.querySelector('video').duration");
    assert_eq!(length.unwrap(), json!(3600));
    let seek = "new Promise(done => { \
                    const media = document.querySelector('video'); \
                    media.onseeked = () => done(media.currentTime); \
                    media.currentTime = 3500; })";
    assert_eq!(browser.evaluate(seek).unwrap(), json!(3500));
    let ranges = || {
        let log = front.log();
        let lines = log.lines().filter(|line| line.contains("/hour.wav"));
        lines.filter(|line| line.contains("\"status\":206")).count()
    };
    catamaran_testkit::Deadline::default()
        .poll("two ranges", || (ranges() >= 2).then_some(()))
        .unwrap();
    assert!(browser.complaints().is_empty());
}

/// The application of a page, with a route that only the browser knows.
const PAGE: &str = "<!doctype html><link rel=icon href=data:,><title></title><h1></h1>\
                    <script src=/assets/app.js></script>";

const SCRIPT: &str = "document.title = 'at ' + location.pathname;\
                      document.querySelector('h1').textContent = 'Orders';";

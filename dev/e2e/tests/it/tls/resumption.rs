//! Sessions that OpenSSL resumes, and those that it may not; and their secrets.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use catamaran_testkit::tls::Authority;
use catamaran_testkit::{Deadline, Signal, replace_file, signal_process};

use super::{Site, site, site_before, site_with};
use crate::reload::{application, nth_line};
use crate::upgrade::upgrade;

/// Has OpenSSL begin a session of each version and keep it.
fn begin(site: &Site) {
    for version in VERSIONS {
        let session = site.path(version);
        let said = site.s_client(&[version, "-servername", "a.test", "-sess_out", &session]);
        assert!(
            said.contains("HTTP/1.1 200") && said.contains("New, TLSv1."),
            "{said}"
        );
    }
}

/// Whether OpenSSL can resume the session of a version; it is served in any case.
fn resumes(site: &Site, version: &str) -> bool {
    let session = site.path(version);
    let said = site.s_client(&[version, "-servername", "a.test", "-sess_in", &session]);
    assert!(said.contains("HTTP/1.1 200"), "{said}");
    assert_ne!(
        said.contains("Reused, TLSv1."),
        said.contains("New, TLSv1.")
    );
    said.contains("Reused, TLSv1.")
}

#[test]
fn a_session_is_resumed_on_any_worker_and_after_a_reload() {
    let (_application, url) = application();
    let backend = format!("[[upstream.app.backend]]\nurl = \"{url}\"\n");
    let mut site = site_with(&backend, "", &["--workers", "4"]);
    begin(&site);
    // The kernel spreads connections over the workers.
    for _ in 0..8 {
        assert!(VERSIONS.iter().all(|version| resumes(&site, version)));
    }
    site.front.process().signal(Signal::Hangup).unwrap();
    nth_line(site.front.process(), "reloaded", 1);
    assert!(VERSIONS.iter().all(|version| resumes(&site, version)));
}

#[test]
fn a_session_outlives_two_upgrades() {
    let mut site = site("");
    begin(&site);
    let first = site.front.process().id();
    let last = (1..=2).fold(first, |id, nth| upgrade(site.front.process(), id, nth));
    // Whoever serves now is not who made the tickets.
    let ended = || site.front.process().try_wait().unwrap();
    Deadline::default().poll("the first to end", ended).unwrap();
    let resumed = VERSIONS.map(|version| resumes(&site, version));
    signal_process(last, Signal::Terminate).unwrap();
    assert_eq!(resumed, [true, true]);
}

/// A front whose profile has this file of keys, in a directory of its own.
fn with_keys(backend: &str, keys: &str) -> Site {
    let prepare = |directory: &Path| {
        let path = directory.join("ticket.keys");
        fs::write(&path, keys).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    };
    let profile = "ticket_keys_file = \"{files}/ticket.keys\"\ncertificate_watch = \"1s\"";
    super::site_prepared(backend, profile, &[], prepare)
}

/// Three lines, each of a key that this digit stands for.
fn keys(digits: [&str; 3]) -> String {
    digits.map(|digit| digit.repeat(96) + "\n").concat()
}

#[test]
fn a_session_is_resumed_by_another_front_with_the_same_keys() {
    let (_application, url) = application();
    let backend = format!("[[upstream.app.backend]]\nurl = \"{url}\"\n");
    let first = with_keys(&backend, &keys(["1", "2", "3"]));
    let next = with_keys(&backend, &keys(["2", "3", "1"]));
    let stranger = with_keys(&backend, &keys(["4", "5", "6"]));
    begin(&first);
    for version in VERSIONS {
        for site in [&next, &stranger] {
            fs::copy(first.path(version), site.path(version)).unwrap();
        }
        assert!(
            resumes(&next, version) && !resumes(&stranger, version),
            "{version}"
        );
    }
    // The keys are read again when they change, and only then.
    let file = Path::new(&stranger.path("ticket.keys")).to_owned();
    replace_file(&file, keys(["4", "5", "1"])).unwrap();
    stranger
        .front
        .wait_for_log("certificates were replaced")
        .unwrap();
    for version in VERSIONS {
        fs::copy(first.path(version), stranger.path(version)).unwrap();
        assert!(resumes(&stranger, version), "{version}");
    }
    replace_file(&file, "nonsense").unwrap();
    let said = stranger
        .front
        .wait_for_log("changed files cannot be used")
        .unwrap();
    assert!(
        said.contains("has no key of 96 hexadecimal digits in line 1"),
        "{said}"
    );
    assert!(VERSIONS.iter().all(|version| resumes(&stranger, version)));
}

#[test]
fn a_session_is_not_resumed_under_other_trust() {
    let (_application, url) = application();
    let backend = format!("[[upstream.app.backend]]\nurl = \"{url}\"\n");
    let clients = "client_certificate = \"optional\"\nclient_ca = \"{files}/clients.pem\"";
    let others = Authority::new("authority").unwrap();
    let files = |site: &Site| site.path("clients.pem");
    let mut site = {
        let with_file = |directory: &Path| {
            fs::write(
                directory.join("clients.pem"),
                Authority::new("authority").unwrap().pem(),
            )
            .unwrap();
        };
        super::site_prepared(&backend, clients, &[], with_file)
    };
    begin(&site);
    assert!(VERSIONS.iter().all(|version| resumes(&site, version)));
    fs::write(files(&site), others.pem()).unwrap();
    site.front.process().signal(Signal::Hangup).unwrap();
    nth_line(site.front.process(), "reloaded", 1);
    assert!(!VERSIONS.iter().any(|version| resumes(&site, version)));
}

#[test]
fn without_tickets_nothing_is_resumed() {
    let (_application, url) = application();
    let backend = format!("[[upstream.app.backend]]\nurl = \"{url}\"\n");
    let site = site_before(&backend, "tickets = false");
    let session = site.path("session");
    let said = site.s_client(&["-tls1_3", "-servername", "a.test", "-sess_out", &session]);
    assert!(said.contains("HTTP/1.1 200"), "{said}");
    assert!(
        !said.contains("Post-Handshake New Session Ticket"),
        "{said}"
    );
}

#[test]
fn the_secrets_of_sessions_are_written_if_so_asked() {
    let (_application, url) = application();
    let backend = format!("[[upstream.app.backend]]\nurl = \"{url}\"\n");
    let directory = tempfile::tempdir().unwrap();
    let ours = directory.path().join("ours");
    let flags = ["--tls-key-log", ours.to_str().unwrap()];
    let site = site_with(&backend, "", &flags);
    site.front
        .wait_for_log("the secrets of all TLS sessions are written")
        .unwrap();
    let theirs = site.path("theirs");
    for version in VERSIONS {
        let said = site.s_client(&[version, "-servername", "a.test", "-keylogfile", &theirs]);
        assert!(said.contains("HTTP/1.1 200"), "{said}");
    }
    let theirs = fs::read_to_string(&theirs).unwrap();
    for label in ["CLIENT_RANDOM ", "CLIENT_TRAFFIC_SECRET_0 "] {
        let line = theirs.lines().find(|line| line.starts_with(label)).unwrap();
        // The front writes them on a thread of their own.
        let is_written = || {
            let written = fs::read_to_string(&ours).unwrap();
            let secret = &line.to_lowercase()[label.len()..];
            written.contains(secret).then_some(())
        };
        Deadline::default().poll(line, is_written).unwrap();
    }
    let mode = fs::metadata(&ours).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

const VERSIONS: [&str; 2] = ["-tls1_2", "-tls1_3"];

//! What is told of TLS: in the access log, and by the admin listener.

use serde_json::Value;

use super::{site, site_before};
use crate::reload::application;

#[test]
fn the_access_log_has_what_was_agreed_on() {
    let (_application, url) = application();
    let tables = format!("[[upstream.app.backend]]\nurl = \"{url}\"\n[log]\nformat = \"json\"\n");
    let site = site_before(&tables, CLIENTS);
    let (certificate, key) = (site.path("client.pem"), site.path("client.key"));
    let shown = ["--cert", &certificate, "--key", &key];
    let (status, _) = site.curl("a.test", "/status/201", &shown);
    assert_eq!(status, "201");
    let line: Value =
        serde_json::from_str(&site.front.wait_for_log("\"status\":201").unwrap()).unwrap();
    assert_eq!(line["protocol"], "h2");
    assert_eq!(line["tls_version"], "TLSv1.3");
    assert_eq!(line["tls_cipher"], "TLS_AES_256_GCM_SHA384");
    assert_eq!(line["sni"], "a.test");
    assert_eq!(line["alpn"], "h2");
    assert_eq!(line["resumed"], false);
    assert_eq!(line["client_cert_sha256"], site.fingerprint("client"));
    assert!(line["tls_group"].as_str().unwrap().starts_with("X25519"));
}

#[test]
fn the_combined_log_has_version_and_cipher() {
    let site = site("");
    let (status, _) = site.curl("a.test", "/status/202", &["--tls-max", "1.2"]);
    assert_eq!(status, "202");
    let line = site.front.wait_for_log(" 202 ").unwrap();
    let told = "protocol=h2 tls_version=TLSv1.2 tls_cipher=ECDHE-ECDSA-AES256-GCM-SHA384 id=";
    assert!(line.contains(told), "{line}");
}

#[test]
fn the_admin_listener_shows_every_certificate() {
    let site = site(CLIENTS);
    for target in ["/api/v1/tls", "/tls"] {
        let answer = site.front.ask_admin(target).unwrap();
        assert_eq!(answer.status, 200);
        let shown: Value = serde_json::from_slice(&answer.body).unwrap();
        let profile = &shown["profiles"][0];
        assert_eq!(
            (&profile["name"], &profile["client_certificate"]),
            (&"www".into(), &"optional".into())
        );
        assert!(profile["age_s"].as_u64().is_some(), "{profile}");
        let certificate = &profile["certificates"][1];
        assert_eq!(certificate["names"][0], "*.w.test");
        assert_eq!(certificate["sha256"], site.fingerprint("w"));
        assert_eq!(certificate["file"], site.path("w.pem"));
        assert_eq!(certificate["key_type"], "ECDSA");
        assert!(
            certificate["issuer"]
                .as_str()
                .unwrap()
                .contains("authority")
        );
        assert!(certificate["not_after"].as_str().unwrap().ends_with('Z'));
    }
}

const CLIENTS: &str = "client_certificate = \"optional\"\nclient_ca = \"{files}/ca.pem\"";

//! A cache before an application that knows its clients by their certificates.

use serde_json::Value;

use super::{Site, site_before};
use crate::reload::application;

/// What the application says of the certificate that it was shown, and what the cache did.
fn page(site: &Site, target: &str, is_shown: bool) -> (String, String) {
    let (certificate, key) = (site.path("client.pem"), site.path("client.key"));
    let mut options = vec!["--include"];
    if is_shown {
        options.extend(["--cert", &certificate, "--key", &key]);
    }
    let (status, text) = site.curl("a.test", target, &options);
    let text = String::from_utf8(text).unwrap().to_lowercase();
    assert_eq!(status, "200", "{text}");
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    let of_cache = head.lines().find(|line| line.starts_with("cache-status"));
    (body.to_owned(), of_cache.unwrap_or_default().to_owned())
}

/// A page for a client with a certificate is stored for nobody, and what is stored is not for such a client, whoever comes first.
#[test]
fn a_certificate_and_none_never_share() {
    let (_application, url) = application();
    let backend = format!(
        "cache = \"pages\"\n[cache.pages]\nobey = false\nttl = {{ 200 = \"1m\" }}\n\
         [[upstream.app.backend]]\nurl = \"{url}\"\n"
    );
    let clients = "client_certificate = \"optional\"\nclient_ca = \"{files}/ca.pem\"";
    let site = site_before(&backend, clients);
    for (target, is_shown_first) in [("/snoop?one", true), ("/snoop?other", false)] {
        for is_shown in [
            is_shown_first,
            !is_shown_first,
            is_shown_first,
            !is_shown_first,
        ] {
            let (body, of_cache) = page(&site, target, is_shown);
            let told: Value = serde_json::from_str(&body).unwrap();
            let has_certificate = told["tls_certificate"].is_string();
            assert_eq!(has_certificate, is_shown, "{target}: {body}");
            let is_hit = of_cache.contains("; hit");
            assert!(!is_shown || !is_hit, "{target}: {of_cache}");
        }
        let (_, of_cache) = page(&site, target, false);
        assert!(of_cache.contains("; hit"), "{target}: {of_cache}");
    }
}

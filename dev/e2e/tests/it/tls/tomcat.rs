//! What an application in Tomcat knows of its client's TLS, over AJP and over HTTP.

use std::fs;

use catamaran_e2e::{Connector, Tomcat};

use super::{Site, site_before};
use crate::through::{has, value};

/// A site before one connector, whose backend has these further `keys`; `tables` follow.
fn site(connector: Connector, keys: &str, tables: &str) -> Site {
    let backend = Tomcat::shared().unwrap().backend_table("app", connector);
    site_before(&format!("{backend}{keys}\n{tables}"), OPTIONAL)
}

/// What the page says, asked with forged fields, and with a certificate if `shown`.
fn page(site: &Site, path: &str, shown: bool) -> String {
    let (certificate, key) = (site.path("client.pem"), site.path("client.key"));
    let mut options = Vec::new();
    for field in FORGED {
        options.extend(["--header", field]);
    }
    if shown {
        options.extend(["--cert", &certificate, "--key", &key]);
    }
    let (status, body) = site.curl("a.test", path, &options);
    let text = String::from_utf8(body).unwrap();
    assert_eq!(status, "200", "{text}");
    assert!(!text.contains("forged"), "{text}");
    assert!(!text.contains("Zm9yZ2Vk"), "{text}");
    text
}

fn check_tls(text: &str) {
    assert_eq!(
        (value(text, "secure"), value(text, "scheme")),
        ("true", "https")
    );
    assert_eq!(value(text, "cipher_suite"), "TLS_AES_256_GCM_SHA384");
    assert_eq!(value(text, "key_size"), "256");
    assert_eq!(value(text, "ssl_session_id"), "null");
}

#[test]
fn over_ajp_tomcat_gets_certificate_cipher_and_key_size() {
    let site = site(Connector::AjpLarge, "", "");
    let text = page(&site, "/tls.jsp", true);
    check_tls(&text);
    assert_eq!(value(&text, "protocol"), "TLSv1.3");
    assert_eq!(value(&text, "certificates"), "2", "{text}");
    assert_eq!(value(&text, "sha256"), site.fingerprint("client"));
    let text = page(&site, "/tls.jsp", false);
    check_tls(&text);
    assert_eq!(value(&text, "certificates"), "0");
}

#[test]
fn over_http_the_ssl_valve_gets_certificate_cipher_and_key_size() {
    let site = site(Connector::Http, "client_cert_fields = \"tomcat\"", "");
    let text = page(&site, "/valve/tls.jsp", true);
    check_tls(&text);
    assert_eq!(value(&text, "certificates"), "1", "{text}");
    assert_eq!(value(&text, "sha256"), site.fingerprint("client"));
    let text = page(&site, "/valve/tls.jsp", false);
    check_tls(&text);
    assert_eq!(value(&text, "certificates"), "0");
}

#[test]
fn over_http_the_fields_are_those_of_rfc_9440_or_none() {
    let with_fields = site(Connector::Http, "client_cert_fields = \"rfc9440\"", "");
    let text = page(&with_fields, "/tls.jsp", true);
    for (field, at) in [("client-cert", 0), ("client-cert-chain", 1)] {
        let sent = value(&text, &format!("header.{field}"));
        assert_eq!(sent, format!(":{}:", der(&with_fields, at)), "{field}");
    }
    for text in [
        page(&with_fields, "/tls.jsp", false),
        page(&site(Connector::Http, "", ""), "/tls.jsp", true),
    ] {
        assert!(!has(&text, "header.client-cert"), "{text}");
        assert!(!has(&text, "header.client-cert-chain"), "{text}");
    }
}

/// The base64 of the certificate at this place in the client's chain.
fn der(site: &Site, at: usize) -> String {
    let chain = fs::read_to_string(site.path("client.pem")).unwrap();
    let block = chain
        .split("-----BEGIN CERTIFICATE-----")
        .nth(at + 1)
        .unwrap();
    let (base64, _) = block.split_once("-----END").unwrap();
    base64.split_whitespace().collect()
}

#[test]
fn a_trusted_proxy_is_believed_unless_we_verify_clients_ourselves() {
    let trusted = "[server]\ntrusted_proxies = [\"127.0.0.1\"]\n";
    let verifying = site(Connector::Http, "", trusted);
    page(&verifying, "/tls.jsp", false);
    let backend = Tomcat::shared()
        .unwrap()
        .backend_table("app", Connector::Http);
    let fields = "client_cert_fields = \"rfc9440\"";
    let site = site_before(&format!("{backend}{fields}\n{trusted}"), "");
    let options = ["--header", "Client-Cert: :cHJveHk=:"];
    let (_, body) = site.curl("a.test", "/tls.jsp", &options);
    let text = String::from_utf8(body).unwrap();
    assert_eq!(value(&text, "header.client-cert"), ":cHJveHk=:");
}

#[test]
fn a_revoked_certificate_and_another_host_are_refused() {
    let backend = Tomcat::shared()
        .unwrap()
        .backend_table("app", Connector::AjpLarge);
    let keys =
        format!("{OPTIONAL}\nclient_crl = \"{{files}}/clients.crl\"\ncertificate_watch = \"1s\"");
    let site = site_before(&backend, &keys);
    page(&site, "/tls.jsp", true);
    let (status, _) = site.curl("a.test", "/tls.jsp", &["--header", "Host: x.w.test"]);
    assert_eq!(status, "421");
    fs::write(
        site.path("clients.crl"),
        site.authority.revocations(&["client"]).unwrap(),
    )
    .unwrap();
    site.front
        .wait_for_log("certificates were replaced")
        .unwrap();
    let (certificate, key) = (site.path("client.pem"), site.path("client.key"));
    let shown = ["--cert", &certificate, "--key", &key];
    let (error, body) = site.curl("a.test", "/tls.jsp", &shown);
    assert!(error.contains("000"), "no response: {error}");
    assert!(body.is_empty());
    site.front
        .wait_for_log("client:tls-client-cert-revoked")
        .unwrap();
    page(&site, "/tls.jsp", false);
}

const OPTIONAL: &str = "client_certificate = \"optional\"\nclient_ca = \"{files}/ca.pem\"\nclient_certificate_chain = true";

/// What a client would like to be taken for.
const FORGED: [&str; 12] = [
    "Client-Cert: :Zm9yZ2Vk:",
    "Client-Cert-Chain: :Zm9yZ2Vk:",
    "ssl_client_cert: forged",
    "ssl_client_escaped_cert: forged",
    "ssl_cipher: forged",
    "ssl_cipher_usekeysize: 7",
    "ssl_session_id: forged",
    "X-SSL-Client-Cert: forged",
    "X-Client-Cert: forged",
    "X-Forwarded-Client-Cert: forged",
    "X-Forwarded-Tls-Client-Cert: forged",
    "X-ARR-ClientCert: forged",
];

//! Who the user is and which attributes a request has, as an application in Tomcat reads them.

use std::net::{IpAddr, Ipv4Addr};

use catamaran_e2e::{Connector, Front, Tomcat, curl};
use catamaran_testkit::HttpClient;

use crate::through::{has, value};

fn front(tables: &str, connector: Connector) -> Front {
    let backend = Tomcat::shared().unwrap().backend_table("app", connector);
    Front::with_tables(&format!("{tables}{backend}")).unwrap()
}

/// What the application says of a request from this address.
fn ask(front: &Front, from: IpAddr, fields: &str) -> String {
    let mut client = HttpClient::connect_from(from, front.address()).unwrap();
    let request = front.head("GET", "/attributes.jsp", fields);
    let answer = client.ask(request).unwrap();
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.text()
}

#[test]
fn a_trusted_proxy_says_who_the_user_is() {
    let front = front(TABLES, Connector::AjpTold);
    let text = ask(&front, PROXY, CLAIMS);
    for (name, expected) in [
        ("remote_user", "ann"),
        ("auth_type", "SSO"),
        ("attribute.TENANT", "blue"),
        ("attribute.SITE", "north & south"),
        ("attribute.CLIENT", "203.0.113.7"),
        ("attribute.ASKED", "127.0.0.1"),
        ("attribute.VERSION", "null"),
    ] {
        assert_eq!(value(&text, name), expected, "{name}");
    }
    assert_ne!(value(&text, "principal"), "null");
    assert!(
        !has(&text, "header.x-remote-user") && !has(&text, "header.x-tenant"),
        "{text}"
    );
}

#[test]
fn a_client_cannot_be_a_user_by_a_field() {
    let front = front(TABLES, Connector::AjpTold);
    for fields in [
        CLAIMS,
        "X-Remote-User: root\r\n",
        "x-remote-USER:root\r\n",
        "X_Remote_User: root\r\n",
    ] {
        let text = ask(&front, IpAddr::V4(Ipv4Addr::LOCALHOST), fields);
        for name in ["remote_user", "principal", "auth_type", "attribute.TENANT"] {
            assert_eq!(value(&text, name), "null", "{name} {fields}");
        }
        assert_eq!(value(&text, "attribute.CLIENT"), "127.0.0.1");
        assert!(!text.contains("root"), "{text}");
    }
}

#[test]
fn a_backend_by_http_gets_neither_attributes_nor_the_fields() {
    let tables = TABLES.replace("[admin]", "[log]\naccess = \"-\"\n[admin]");
    let front = front(&tables, Connector::Http);
    front
        .wait_for_log("`remote_user` is for AJP, and no backend")
        .unwrap();
    let text = ask(&front, PROXY, CLAIMS);
    assert_eq!(value(&text, "remote_user"), "null");
    assert!(
        !has(&text, "header.x-remote-user") && !has(&text, "header.x-tenant"),
        "{text}"
    );
}

#[test]
fn tomcat_refuses_attributes_that_it_was_not_told_to_take() {
    let front = front(TABLES, Connector::Ajp);
    assert_eq!(front.get("/attributes.jsp").unwrap().status, 403);
    front
        .wait_for_log("the connector refuses a request attribute")
        .unwrap();
}

#[test]
fn explain_shows_what_the_application_would_be_told() {
    let front = front(TABLES, Connector::AjpTold);
    let answer = front
        .ask_admin("/api/v1/explain?url=http://www.example.org/attributes.jsp")
        .unwrap();
    let text = answer.text();
    assert!(text.contains("north & south"), "{text}");
    assert!(text.contains("\"ASKED\""), "{text}");
}

#[test]
fn attributes_tell_of_the_tls_of_a_client() {
    let directory = tempfile::tempdir().unwrap();
    let certified = rcgen::generate_simple_self_signed(["www.test".to_owned()]).unwrap();
    let file = |name: &str| directory.path().join(name).display().to_string();
    std::fs::write(file("chain.pem"), certified.cert.pem()).unwrap();
    std::fs::write(file("key.pem"), certified.signing_key.serialize_pem()).unwrap();
    let backend = Tomcat::shared()
        .unwrap()
        .backend_table("app", Connector::AjpTold);
    let front = Front::with_config(&format!(
        "[[listen]]\naddress = \"127.0.0.1:0\"\ntls = \"www\"\n[tls.www]\n\
         [[tls.www.certificate]]\nchain = \"{}\"\nkey = \"{}\"\n{TABLES}{backend}",
        file("chain.pem"),
        file("key.pem"),
    ))
    .unwrap();
    let port = front.address().port();
    let output = curl()
        .args(["--insecure", "--tlsv1.3"])
        .args(["--resolve", &format!("www.test:{port}:127.0.0.1")])
        .arg(format!("https://www.test:{port}/attributes.jsp"))
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(value(&text, "attribute.VERSION"), "TLSv1.3");
    assert!(
        value(&text, "attribute.CIPHER").starts_with("TLS_"),
        "{text}"
    );
    assert_eq!(value(&text, "attribute.ASKED"), "www.test");
}

/// The proxy that is believed.
const PROXY: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 9));

const TABLES: &str = r#"
[server]
trusted_proxies = ["127.0.0.9"]
[admin]
address = "127.0.0.1:0"
[[route]]
upstream = "app"
[upstream.app]
remote_user = "header:X-Remote-User"
auth_type = "text:SSO"
[upstream.app.attributes]
TENANT = "header:X-Tenant"
SITE = "text:north & south"
CLIENT = "client:address"
ASKED = "client:host"
VERSION = "tls:version"
CIPHER = "tls:cipher"
"#;

const CLAIMS: &str = "X-Remote-User: root\r\nX-Remote-User: ann\r\nX-Tenant: blue\r\n\
                      X-Forwarded-For: 203.0.113.7\r\n";

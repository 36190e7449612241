//! Who the client is and what it asked for, as the application sees it.

use std::net::IpAddr;

use catamaran_e2e::{Connector, Front, Tomcat};
use catamaran_testkit::HttpClient;

use crate::through::{every_connector, has, value};

/// Sends a GET of the snoop page from [`CLIENT`]; returns its text and the client's port.
fn snoop(front: &Front, fields: &str) -> (String, u16) {
    let mut client = HttpClient::connect_from(CLIENT, front.address()).unwrap();
    client
        .send(format!("GET /snoop.jsp HTTP/1.1\r\n{fields}\r\n").as_bytes())
        .unwrap();
    let port = client.local_address().unwrap().port();
    (client.receive().unwrap().text(), port)
}

#[test]
fn the_application_sees_the_client_and_the_name_it_asked_for() {
    every_connector(|front, connector| {
        let (text, port) = snoop(front, "Host: www.example.org:8443\r\n");
        assert_eq!(value(&text, "server_name"), "www.example.org");
        assert_eq!(value(&text, "server_port"), "8443");
        assert_eq!(value(&text, "url"), "http://www.example.org:8443/snoop.jsp");
        assert_eq!(value(&text, "scheme"), "http");
        assert_eq!(value(&text, "secure"), "false");
        assert_eq!(value(&text, "remote_user"), "null");
        if connector.is_ajp() {
            assert_eq!(value(&text, "remote_addr"), CLIENT.to_string());
            assert_eq!(value(&text, "remote_port"), port.to_string());
            assert_eq!(value(&text, "local_addr"), front.address().ip().to_string());
        } else {
            assert_eq!(value(&text, "header.x-forwarded-for"), CLIENT.to_string());
            assert_eq!(value(&text, "header.x-forwarded-proto"), "http");
            assert_eq!(
                value(&text, "header.x-forwarded-host"),
                "www.example.org:8443"
            );
            assert_eq!(value(&text, "header.x-forwarded-port"), "8443");
        }
    });
}

#[test]
fn the_default_port_is_that_of_the_scheme() {
    every_connector(|front, connector| {
        let (text, _) = snoop(front, "Host: www.example.org\r\n");
        assert_eq!(value(&text, "server_name"), "www.example.org");
        assert_eq!(value(&text, "server_port"), "80");
        assert_eq!(value(&text, "url"), "http://www.example.org/snoop.jsp");
        if !connector.is_ajp() {
            assert_eq!(value(&text, "header.x-forwarded-port"), "80");
        }
    });
}

#[test]
fn nobody_can_claim_to_be_somebody_else() {
    every_connector(|front, connector| {
        let (text, _) = snoop(
            front,
            "Host: a\r\nX-Forwarded-For: 6.6.6.6\r\nX-Forwarded-Proto: https\r\n\
             X-Forwarded-Host: evil\r\nForwarded: for=6.6.6.6\r\nX-Real-IP: 6.6.6.6\r\n\
             X-Client-IP: 6.6.6.6\r\nTrue-Client-IP: 6.6.6.6\r\n\
             X-Cluster-Client-IP: 6.6.6.6\r\nX-Forwarded: for=6.6.6.6\r\n\
             X-Forwarded-Port: 6666\r\n",
        );
        assert!(
            !["6.6.6.6", "evil", "6666"]
                .iter()
                .any(|it| text.contains(it)),
            "{text}"
        );
        assert_eq!(value(&text, "secure"), "false");
        if connector.is_ajp() {
            assert_eq!(value(&text, "remote_addr"), CLIENT.to_string());
        } else {
            assert_eq!(value(&text, "header.x-forwarded-for"), CLIENT.to_string());
        }
    });
}

#[test]
fn a_trusted_proxy_is_believed() {
    let tomcat = Tomcat::shared().unwrap();
    for connector in [Connector::Ajp, Connector::AjpUnix, Connector::Http] {
        let front = Front::with_tables(&format!(
            "[server]\ntrusted_proxies = [\"{CLIENT}\"]\n[[route]]\nupstream = \"app\"\n{}",
            tomcat.backend_table("app", connector)
        ))
        .unwrap();
        let (text, _) = snoop(
            &front,
            "Host: shop.example\r\nX-Forwarded-For: 6.6.6.6, 203.0.113.7\r\n\
             X-Forwarded-Proto: https\r\n",
        );
        let (asked, _) = snoop(
            &front,
            "Host: inner\r\nX-Forwarded-Proto: http\r\nX-Forwarded-Proto: https\r\n\
             X-Forwarded-Host: evil, www.shop.example\r\nX-Forwarded-Port: 8443\r\n",
        );
        if connector.is_ajp() {
            let url = "https://www.shop.example:8443/snoop.jsp";
            assert_eq!(value(&asked, "url"), url);
            assert_eq!(value(&text, "remote_addr"), "203.0.113.7");
            assert_eq!(value(&text, "secure"), "true");
            assert_eq!(value(&text, "scheme"), "https");
            assert_eq!(value(&text, "server_port"), "443");
            assert_eq!(value(&text, "url"), "https://shop.example/snoop.jsp");
        } else {
            let chain = format!("6.6.6.6, 203.0.113.7, {CLIENT}");
            assert_eq!(value(&text, "header.x-forwarded-for"), chain);
            assert_eq!(value(&text, "header.x-forwarded-proto"), "https");
            assert_eq!(value(&asked, "header.x-forwarded-proto"), "https");
            assert_eq!(value(&text, "header.x-forwarded-port"), "443");
            assert_eq!(value(&asked, "header.x-forwarded-port"), "8443");
        }
    }
}

#[test]
fn fields_of_the_connection_stay_on_it() {
    every_connector(|front, _| {
        let (text, _) = snoop(
            front,
            "Host: a\r\nConnection: keep-alive, X-Nominated, Cookie\r\nX-Nominated: 1\r\n\
             Keep-Alive: timeout=5\r\nProxy-Connection: keep-alive\r\nTE: trailers\r\n\
             Upgrade: h2c\r\nProxy: http://evil\r\nX_Real_IP: 6.6.6.6\r\nCookie: kept=1\r\n\
             X-Kept: yes\r\n",
        );
        for name in [
            "x-nominated",
            "keep-alive",
            "proxy-connection",
            "te",
            "upgrade",
            "proxy",
        ] {
            assert!(!has(&text, &format!("header.{name}")), "{name} in {text}");
        }
        assert!(!text.contains("6.6.6.6"), "{text}");
        assert_eq!(value(&text, "header.x-kept"), "yes");
        assert_eq!(value(&text, "cookie.kept"), "1");
        assert_eq!(value(&text, "header.via"), "1.1 catamaran");
    });
}

#[test]
fn the_container_gets_the_path_that_was_matched() {
    every_connector(|front, _| {
        for (target, expected) in [
            ("/snoop.jsp", "/snoop.jsp"),
            ("/a/../snoop.jsp", "/snoop.jsp"),
            ("/./snoop.jsp", "/snoop.jsp"),
            ("/%73noop.jsp", "/snoop.jsp"),
            ("/a/%2e%2e/snoop.jsp", "/snoop.jsp"),
            ("/snoop.jsp;x=y", "/snoop.jsp;x=y"),
        ] {
            let text = front.get(target).unwrap().text();
            assert_eq!(value(&text, "uri"), expected, "{target}");
        }
    });
}

/// Tomcat's `RemoteIpValve` with `portHeader`, as Spring's `forward-headers-strategy=native` has it: redirects
/// lead to the port that the client used.
#[test]
fn an_application_behind_http_learns_of_scheme_and_port() {
    let tomcat = Tomcat::shared().unwrap();
    let table = tomcat.backend_table("app", Connector::Http);
    let seen = |server: &str, fields: &str| {
        let tables = format!("{server}[[route]]\nupstream = \"app\"\n{table}");
        let front = Front::with_tables(&tables).unwrap();
        let head = format!("GET /valve/tls.jsp HTTP/1.1\r\n{fields}\r\n");
        let text = front.ask(head).unwrap().text();
        ["scheme", "server_port"].map(|name| value(&text, name).to_owned())
    };
    let trusted = "[server]\ntrusted_proxies = [\"127.0.0.1\"]\n";
    let https = "X-Forwarded-Proto: https\r\n";
    for (server, fields, expected) in [
        ("", "Host: a.test:8443\r\n".to_owned(), ["http", "8443"]),
        (
            "",
            "Host: a.test\r\nX-Forwarded-Port: 7\r\n".to_owned(),
            ["http", "80"],
        ),
        (
            trusted,
            format!("Host: a.test:8443\r\n{https}"),
            ["https", "8443"],
        ),
        (
            trusted,
            format!("Host: a.test\r\n{https}"),
            ["https", "443"],
        ),
        (
            trusted,
            format!("Host: a.test\r\n{https}X-Forwarded-Port: 8443\r\n"),
            ["https", "8443"],
        ),
    ] {
        assert_eq!(seen(server, &fields), expected, "{fields}");
    }
}

/// `host` of an upstream: by what the backend is called, whatever the client asked for.
#[test]
fn a_backend_is_called_by_the_host_that_is_configured() {
    let tomcat = Tomcat::shared().unwrap();
    for connector in [Connector::Ajp, Connector::AjpUnix, Connector::Http] {
        let table = tomcat.backend_table("app", connector);
        let seen = |host: &str| {
            let tables = format!(
                "[[route]]\nupstream = \"app\"\n[upstream.app]\nhost = \"{host}\"\n{table}"
            );
            let front = Front::with_tables(&tables).unwrap();
            snoop(&front, "Host: www.example.org:8443\r\n").0
        };
        let check = |text: &str, host: &str, name: &str, port: &str| {
            assert_eq!(value(text, "header.host"), host, "{connector:?}");
            assert_eq!(value(text, "server_name"), name, "{connector:?}");
            assert_eq!(value(text, "server_port"), port, "{connector:?}");
            if !connector.is_ajp() {
                let asked = "www.example.org:8443";
                assert_eq!(value(text, "header.x-forwarded-host"), asked);
                assert_eq!(value(text, "header.x-forwarded-port"), "8443");
            }
        };
        let called = seen("inner.test:81");
        check(&called, "inner.test:81", "inner.test", "81");
        check(&seen("inner.test"), "inner.test", "inner.test", "80");
        let client = seen("client");
        check(&client, "www.example.org:8443", "www.example.org", "8443");
        if connector == Connector::AjpUnix {
            continue;
        }
        let url = tomcat.url(connector);
        let (_, address) = url.split_once("://").unwrap();
        let (ip, port) = address.rsplit_once(':').unwrap();
        if connector.is_ajp() {
            // A port of AJP is none that a client could ask for.
            check(&seen("backend"), ip, ip, "80");
        } else {
            check(&seen("backend"), address, ip, port);
        }
    }
}

/// A client that is not the front's own address, so that the two cannot be mixed up.
const CLIENT: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(127, 0, 0, 9));

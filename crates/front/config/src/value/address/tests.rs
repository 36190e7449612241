use super::*;

fn tcp_address(host: &str, port: u16) -> Address {
    Address::Tcp {
        host: host.to_owned(),
        port,
    }
}

#[test]
fn reads_the_five_urls() {
    let unix = |path: &str| Address::Unix(PathBuf::from(path));
    for (text, protocol, address) in [
        (
            "ajp://127.0.0.1:8009",
            Protocol::Ajp,
            tcp_address("127.0.0.1", 8009),
        ),
        (
            "http://App-1.Example.ORG:80",
            Protocol::Http,
            tcp_address("app-1.example.org", 80),
        ),
        (
            "AJP://[0:0::1]:8009",
            Protocol::Ajp,
            tcp_address("::1", 8009),
        ),
        (
            "http://my_container:65535",
            Protocol::Http,
            tcp_address("my_container", 65535),
        ),
        (
            "ajp+unix:/run/tomcat.sock",
            Protocol::Ajp,
            unix("/run/tomcat.sock"),
        ),
        ("http+unix:/run/a b", Protocol::Http, unix("/run/a b")),
        ("ajp+unix:run/ajp.sock", Protocol::Ajp, unix("run/ajp.sock")),
    ] {
        let url = BackendUrl {
            protocol,
            address,
            tls: false,
        };
        assert_eq!(parse_upstream_url(text), Ok(url), "{text}");
    }
    let url = BackendUrl {
        protocol: Protocol::Http,
        address: tcp_address("a", 443),
        tls: true,
    };
    assert_eq!(parse_upstream_url("HTTPS://A:443"), Ok(url));
}

#[test]
fn says_what_is_wrong_with_a_url() {
    for (text, start) in [
        ("", "has no scheme"),
        ("localhost", "has no scheme"),
        ("localhost:8009", "has no scheme"),
        ("ajp:127.0.0.1:8009", "has no scheme"),
        ("https://a", "has no port; write https://a:8443"),
        ("ajps://a:8009", "asks for AJP over TLS"),
        ("https+unix:/run/a", "asks for TLS on a Unix socket"),
        ("fcgi://a:9000", "has the unknown scheme `fcgi`"),
        ("http://a:80/", "has a path"),
        ("http://a:80?x", "has a path"),
        ("http://me:pw@a:80", "has a user name"),
        ("ajp://tomcat", "has no port; write ajp://tomcat:8009"),
        ("http://[::1]", "has no port; write http://[::1]:8080"),
        ("ajp://a:", "has a bad port"),
        ("ajp://a:0", "has a bad port"),
        ("ajp://a:+80", "has a bad port"),
        ("ajp://a:65536", "has a bad port"),
        ("ajp://:80", "has a bad host"),
        ("ajp://10.0.0.256:80", "has a bad host"),
        ("ajp://::1:80", "has a bad host"),
        ("ajp://[127.0.0.1]:80", "has a bad host"),
        ("ajp://a..b:80", "has a bad host"),
        ("ajp://ä:80", "has a bad host"),
        ("ajp+unix:", "needs the path of a socket"),
        ("ajp+unix:/", "needs the path of a socket"),
        ("ajp+unix:///run/x", "has slashes"),
        ("http+unix:/a\nb", "has a control character"),
    ] {
        let message = parse_upstream_url(text).unwrap_err().to_string();
        assert!(message.starts_with(start), "{text}: {message}");
    }
    let long = format!("ajp+unix:/{}", "x".repeat(UNIX_PATH_MAX));
    assert_eq!(
        parse_upstream_url(&long),
        Err(UrlError::Unix(UnixPathError::Long))
    );
}

#[test]
fn reads_listen_addresses() {
    for text in ["127.0.0.1:8080", "0.0.0.0:0", "[::]:80", "[::1]:65535"] {
        let expected = ListenAddress::Tcp(text.parse().unwrap());
        assert_eq!(parse_listen_address(text), Ok(expected), "{text}");
    }
    for path in ["/run/front.sock", "run/front.sock", "front.sock"] {
        let expected = ListenAddress::Unix(PathBuf::from(path));
        assert_eq!(parse_listen_address(&format!("unix:{path}")), Ok(expected));
    }
}

#[test]
fn says_what_is_wrong_with_a_listen_address() {
    for (text, start) in [
        ("", "has no port"),
        ("8080", "is a port alone; write [::]:8080 for all"),
        ("[::1]", "has no port"),
        ("http://127.0.0.1:80", "is a URL"),
        ("/run/admin.sock", "is a path; write unix:/run/admin.sock"),
        (
            ":8080",
            "has no address; write [::]:8080 for all of IPv4 and IPv6",
        ),
        ("*:8080", "has no address; write [::]:8080"),
        (
            "localhost:80",
            "has the name `localhost`; write an address, such as 127.0.0.1:80",
        ),
        ("::1:80", "has the name `::1`"),
        ("127.0.0.1:x", "has a bad port"),
        ("127.0.0.1:65536", "has a bad port"),
        ("unix:", "needs the path of a socket"),
        ("unix:run/", "needs the path of a socket"),
    ] {
        let message = parse_listen_address(text).unwrap_err().to_string();
        assert!(message.starts_with(start), "{text}: {message}");
    }
}

#[test]
fn knows_what_is_local() {
    for (host, expected) in [
        ("127.0.0.1", true),
        ("127.9.9.9", true),
        ("::1", true),
        ("localhost", true),
        ("10.0.0.1", false),
        ("tomcat", false),
        ("localhost.example.org", false),
    ] {
        assert_eq!(is_local(&tcp_address(host, 1)), expected, "{host}");
    }
}

//! Requests of every kind, made from numbers.

use std::net::{IpAddr, SocketAddr};

use fastrand::Rng;

use super::config::{LISTENERS, Listener, PATHS};

/// A request, and the connection that it comes by.
#[derive(Clone, Debug)]
pub(super) struct Request {
    pub(super) listener: Listener,
    pub(super) tls: bool,
    pub(super) http2: bool,
    pub(super) client_certificate: bool,
    /// The address of the connection's other end.
    pub(super) from: IpAddr,
    /// The client that a proxy tells by the PROXY protocol.
    pub(super) proxied: Option<SocketAddr>,
    method: &'static str,
    /// `http` or `https`: what the client believes.
    scheme: &'static str,
    authority: &'static str,
    target: String,
    /// Whole lines.
    fields: Vec<String>,
    pub(super) body: Vec<u8>,
    chunked: bool,
    /// The protocol of `:protocol`.
    protocol: Option<&'static str>,
}

impl Request {
    pub(super) fn new(rng: &mut Rng) -> Self {
        let listener = *rng.choice(&LISTENERS).expect("a listener");
        let http2 = listener.http2 && (!listener.http1 || rng.bool());
        let mut it = Self {
            listener,
            tls: listener.tls,
            http2,
            client_certificate: listener.verifies && rng.bool(),
            from: [127, 0, 0, rng.u8(1..=3)].into(),
            proxied: listener.proxied.then(|| {
                let ip = rng.choice([[192, 0, 2, 7], [127, 0, 0, 2]]).expect("one");
                SocketAddr::from((ip, rng.u16(1024..)))
            }),
            method: "GET",
            scheme: if listener.tls { "https" } else { "http" },
            authority: pick(rng, &AUTHORITIES),
            target: target(rng),
            fields: Vec::new(),
            body: Vec::new(),
            chunked: false,
            protocol: None,
        };
        if http2 && rng.u8(..8) == 0 {
            it.scheme = pick(rng, &["http", "https"]);
        }
        for line in FIELDS {
            if rng.u8(..12) == 0 {
                it.fields.push(line.to_owned());
            }
        }
        match rng.u8(..40) {
            0 => it.fields.push(format!("X-Long: {}", "x".repeat(900))),
            1 => it
                .fields
                .extend((0..100).map(|index| format!("X-{index}: 1"))),
            2 => it.fields.push(format!("X-Longer: {}", "x".repeat(3000))),
            _ => {}
        }
        match rng.u8(..10) {
            0 => it.ask_for_tunnel(rng),
            1..=4 => it.carry_body(rng),
            _ => it.method = pick(rng, &["GET", "GET", "GET", "HEAD", "OPTIONS", "DELETE"]),
        }
        if !http2 && rng.u8(..6) == 0 {
            let lines = [
                "Connection: X-Hop",
                "Connection: close, X-User",
                "TE: trailers",
            ];
            it.fields.push(pick(rng, &lines).to_owned());
        } else if http2 && rng.u8(..40) == 0 {
            it.fields.push("Connection: X-Hop".to_owned());
        }
        if it.method == "OPTIONS" {
            let lines = ["Max-Forwards: 0", "Max-Forwards: 3", "Max-Forwards: x"];
            it.fields.push(pick(rng, &lines).to_owned());
            if rng.bool() {
                it.announce(rng);
            }
            if rng.bool() && !listener.tls {
                // A question about it names neither scheme nor host.
                (it.target, it.authority, it.scheme) = ("*".to_owned(), "localhost", "http");
            }
        }
        it
    }

    fn ask_for_tunnel(&mut self, rng: &mut Rng) {
        let token = pick(rng, &["websocket", "WebSocket", "other", "unknown"]);
        if self.http2 {
            self.method = "CONNECT";
            self.protocol = Some(token);
            return;
        }
        self.fields.push("Connection: Upgrade".to_owned());
        self.fields.push(format!("Upgrade: {token}"));
        self.fields
            .push("Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==".to_owned());
    }

    /// Makes it a preflight of CORS.
    fn announce(&mut self, rng: &mut Rng) {
        let origins = ["https://a.test", "https://b.example.org", "null"];
        let methods = ["GET", "PUT", "POST", "BAD METHOD"];
        let (origin, method) = (pick(rng, &origins), pick(rng, &methods));
        self.fields.push(format!("Origin: {origin}"));
        self.fields
            .push(format!("Access-Control-Request-Method: {method}"));
        if rng.bool() {
            let line = "Access-Control-Request-Headers: x-user";
            self.fields.push(line.to_owned());
        }
    }

    fn carry_body(&mut self, rng: &mut Rng) {
        let methods = ["POST", "POST", "PUT", "PATCH", "PROPFIND", "FOO", "TRACE"];
        self.method = pick(rng, &methods);
        self.body = vec![b'b'; rng.usize(..30)];
        // Of a body that tells no length only so much may come that no `body_max` is exceeded.
        self.chunked = !self.http2 && rng.u8(..4) == 0;
        if self.chunked {
            self.body.truncate(10);
            self.fields.push("Transfer-Encoding: chunked".to_owned());
        } else {
            let length = self.body.len();
            self.fields.push(format!("Content-Length: {length}"));
        }
    }

    pub(super) fn is_tunnel(&self) -> bool {
        self.protocol.is_some()
    }

    fn has_field(&self, line: &str) -> bool {
        self.fields.iter().any(|it| it == line)
    }

    /// Whether of a file it asks for a part.
    pub(super) fn asks_for_part(&self) -> bool {
        self.method == "GET" && self.has_field(RANGE)
    }

    /// Whether a file may be sent in a coding.
    pub(super) fn takes_codings(&self) -> bool {
        self.has_field(CODINGS)
    }

    /// Whether a page may stand in for one that is missing.
    pub(super) fn takes_pages(&self) -> bool {
        self.has_field(PAGES)
    }

    /// The host without port and brackets.
    pub(super) fn bare_host(&self) -> &str {
        let host = self
            .authority
            .rsplit_once(':')
            .filter(|it| !it.1.contains(']'));
        let host = host.map_or(self.authority, |it| it.0);
        host.trim_matches(['[', ']'])
    }

    /// The bytes of the request over HTTP/1.1.
    pub(super) fn http1(&self) -> Vec<u8> {
        let mut head = format!("{} {} HTTP/1.1\r\n", self.method, self.target);
        if !self.fields.iter().any(|line| line.starts_with("Host:")) {
            head += &format!("Host: {}\r\n", self.authority);
        }
        for line in &self.fields {
            head += &format!("{line}\r\n");
        }
        let mut bytes = format!("{head}\r\n").into_bytes();
        if !self.chunked {
            bytes.extend_from_slice(&self.body);
        } else {
            for piece in self.body.chunks(4) {
                bytes.extend(format!("{:x}\r\n", piece.len()).bytes());
                bytes.extend(piece);
                bytes.extend(b"\r\n");
            }
            bytes.extend(b"0\r\n\r\n");
        }
        bytes
    }

    /// The fields of the request over HTTP/2.
    pub(super) fn http2_fields(&self) -> Vec<(String, String)> {
        let pseudo = [
            (":method", Some(self.method)),
            (":protocol", self.protocol),
            (":scheme", Some(self.scheme)),
            (":authority", Some(self.authority)),
            (":path", Some(&self.target[..])),
        ];
        let pseudo = pseudo
            .into_iter()
            .filter_map(|(name, value)| Some((name.to_owned(), value?.to_owned())));
        let fields = self.fields.iter().map(|line| {
            let (name, value) = line.split_once(": ").expect("a field");
            (name.to_ascii_lowercase(), value.to_owned())
        });
        pseudo.chain(fields).collect()
    }

    /// The question to the admin API about this request on a connection from there.
    pub(super) fn question(&self, from: &str) -> String {
        let url = match &self.target[..] {
            "*" => "*".to_owned(),
            target => format!("{}://{}{target}", self.scheme, self.authority),
        };
        let protocol = self.protocol.map(|it| format!(":protocol: {it}"));
        let headers = self.fields.iter().chain(&protocol);
        let headers = headers.map(|line| ("header", line.clone()));
        let pairs = [
            ("url", url),
            ("method", self.method.to_owned()),
            ("from", from.to_owned()),
            ("listen", self.listener.name.to_owned()),
            ("client_certificate", self.client_certificate.to_string()),
            ("http2", self.http2.to_string()),
        ];
        let pairs: Vec<String> = pairs
            .into_iter()
            .chain(headers)
            .map(|(name, value)| format!("{name}={}", escape(&value)))
            .collect();
        format!("/api/v1/explain?{}", pairs.join("&"))
    }
}

fn escape(text: &str) -> String {
    let escape = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => char::from(byte).to_string(),
        byte => format!("%{byte:02X}"),
    };
    text.bytes().map(escape).collect()
}

fn pick<'t>(rng: &mut Rng, texts: &[&'t str]) -> &'t str {
    rng.choice(texts).expect("a text")
}

fn target(rng: &mut Rng) -> String {
    let behind = [
        "",
        "",
        "/",
        "/x",
        "/x1.do",
        "2/page.jsp",
        "/page.jsp",
        "/;jsessionid=1.a",
        ";jsessionid=2.h",
        "/%61/../y",
        "/static/i.gif",
        "/..;/x",
        "/%2e%2e/x",
        "//double",
        "/a%2Fb",
        "/b%5Cc",
        "/a|b",
        "/a[b]",
        "/%zz",
        "/%00",
        "/../../x",
        "/;v=1/x",
        "/long/long/long/long/long/long/long/long/long",
    ];
    let whole = [
        "/.well-known/acme-challenge/token1",
        "/.well-known/acme-challenge/..",
        "/.well-known/acme-challenge/nobody",
        "/p1a/x1.do",
        "/p4/x/xy.do",
        "/nowhere",
    ];
    let path = match rng.u8(..10) {
        0 => pick(rng, &whole).to_owned(),
        _ => match pick(rng, &PATHS) {
            "/" => format!("/{}", pick(rng, &behind).trim_start_matches('/')),
            path => format!("{path}{}", pick(rng, &behind)),
        },
    };
    let queries = [
        "?q=1",
        "?x=[1]&q=100%",
        "?a=%20b&c={d}|e",
        "?user=7",
        "?user=8",
        "?v=2",
        "?",
        "?q=\"<`>^\\",
    ];
    if rng.bool() {
        path + pick(rng, &queries)
    } else {
        path
    }
}

const AUTHORITIES: [&str; 7] = [
    "www.example.org",
    "shop.example.org:8443",
    "example.org",
    "other.test",
    "WWW.Example.org",
    "127.0.0.1",
    "[::1]:81",
];

const RANGE: &str = "Range: bytes=0-1";
const CODINGS: &str = "Accept-Encoding: br, gzip";
const PAGES: &str = "Accept: text/html, */*;q=0.1";

const FIELDS: [&str; 43] = [
    "X-Beta: yes",
    "X-Beta: no",
    "Cookie: beta=1; operator=1",
    "Host: other.test",
    "X_Real_IP: 192.0.2.9",
    "X_Known: 1",
    "X-Forwarded-For: 192.0.2.7",
    "X-Forwarded-For: 198.51.100.7, 127.0.0.3",
    "X-Forwarded-Proto: https",
    "X-Forwarded-Proto: http",
    "X-Forwarded-Host: told.example.org:444",
    "X-Forwarded-Port: 444",
    "Forwarded: for=192.0.2.7",
    "X-Request-Id: given-1",
    "X-Correlation-Id: given-2",
    "Via: 1.0 fred",
    "X-Hop: 1",
    "X-User: u1",
    "X-User: u2",
    "X-Gone: 1",
    "Cookie: JSESSIONID=1.a",
    "Cookie: JSESSIONID=2.h; U=7",
    "Cookie: OWN=nobody; a=b",
    "Cookie: OWN=",
    "X-Remote-User: ann",
    "X-Tenant: blue",
    "SSL_CLIENT_CERT: MII",
    "X-SSL-Client-Cert: MII",
    "Client-Cert: :MII:",
    "Accept: */*",
    "Accept-Language: de",
    "User-Agent: test/1.0",
    "Authorization: Basic YTpi",
    "Proxy: 192.0.2.1",
    "Proxy-Authorization: Basic YTpi",
    "If-None-Match: \"1\"",
    RANGE,
    CODINGS,
    PAGES,
    "Content-Type: text/plain",
    "Expect: 100-continue",
    "WL-Proxy-Client-IP: 192.0.2.1",
    "X-Empty: ",
];

//! Forms and uploads of every kind through the front to containers of many kinds and versions.
//!
//! Containers differ in how they take the length of a request's body over AJP: what one reads from
//! Content-Length, another reads from Transfer-Encoding. Each test starts a container and runs the
//! same exchanges over each of its connectors.

use catamaran_e2e::{Connector, Container, Front, Tomcat};
use catamaran_testkit::{HttpClient, Pattern, Sha256};

use crate::through::{has, value};

#[test]
fn tomcat_7() {
    serves_everything(Container::Tomcat7);
}

#[test]
fn tomcat_8_5() {
    serves_everything(Container::Tomcat85);
}

#[test]
fn tomcat_9() {
    serves_everything(Container::Tomcat9);
}

#[test]
fn tomcat_10() {
    serves_everything(Container::Tomcat10);
}

#[test]
fn tomcat_11() {
    serves_everything(Container::Tomcat11);
}

#[test]
fn undertow() {
    serves_everything(Container::Undertow);
}

#[test]
fn jetty_8() {
    serves_everything(Container::Jetty8);
}

/// What a form in chunks comes to without the announcement is why it is on by default.
#[test]
fn the_announcement_can_be_turned_off() {
    let table = Tomcat::shared()
        .unwrap()
        .backend_table("app", Connector::Ajp);
    for (setting, announced) in [("", true), ("announce_chunked = false\n", false)] {
        let front = Front::to_app(&format!("{table}{setting}")).unwrap();
        let mut client = front.connect().unwrap();
        let fields = "Content-Type: application/x-www-form-urlencoded\r\n";
        let chunks = Framing::Chunks(100);
        let text = post(&front, &mut client, chunks, ("/snoop.jsp", fields), b"a=1");
        assert_eq!(has(&text, "header.transfer-encoding"), announced, "{text}");
        assert_eq!(has(&text, "parameter.a"), announced, "{text}");
        assert!(!has(&text, "header.content-length"), "{text}");
    }
}

/// How a body's end is told to the front.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Framing {
    Length,
    Chunks(usize),
}

fn serves_everything(container: Container) {
    let started = container.start().unwrap();
    for url in started.urls() {
        let front = Front::to(&[url]).unwrap();
        println!("through {url}");
        // One connection to the client and, as nothing is in parallel, one to the container: what
        // an exchange leaves behind would be found by the next.
        let mut client = front.connect().unwrap();
        bodiless(&front, &mut client);
        // How many of the queries the container takes. Undertow decodes a query before the
        // application asks, and refuses what it cannot decode; over HTTP it is strict.
        let taken = match (container, url.starts_with("ajp:")) {
            (Container::Undertow, true) => 1,
            (Container::Undertow, false) => 0,
            _ => RAW_QUERIES.len(),
        };
        queries(url, taken);
        for framing in FRAMINGS {
            println!("{framing:?}");
            forms(&front, &mut client, framing);
            parts(&front, &mut client, framing);
            uploads(&front, &mut client, framing);
            // Jetty 8 loses its place in the stream over AJP then.
            if container != Container::Jetty8 || url.starts_with("http:") {
                unread(&front, framing);
            }
        }
        bodiless(&front, &mut client);
    }
}

/// A request without a body has no parameters but its query's, and is not waited for.
fn bodiless(front: &Front, client: &mut HttpClient) {
    for (method, fields) in [("GET", ""), ("POST", "Content-Length: 0\r\n"), ("PUT", "")] {
        let text = client
            .ask(front.head(method, "/form?a=1", fields))
            .unwrap()
            .text();
        assert_eq!(value(&text, "method"), method);
        assert_eq!(parameters(&text), ["a=1"], "{text}");
    }
}

/// A query arrives as it was sent, or escaped if so configured.
fn queries(url: &str, taken: usize) {
    let backend =
        format!("[[route]]\nupstream = \"app\"\n[[upstream.app.backend]]\nurl = \"{url}\"\n");
    for (setting, escaped) in [
        ("", false),
        ("query = \"as-received\"\n", false),
        ("query = \"escape\"\n", true),
    ] {
        let front = Front::with_tables(&format!("{setting}{backend}")).unwrap();
        let count = if escaped { RAW_QUERIES.len() } else { taken };
        for (raw, strict) in &RAW_QUERIES[..count] {
            let answer = front.get(&format!("/ignore?{raw}")).unwrap();
            let expected = if escaped { strict } else { raw };
            assert_eq!(answer.status, 200, "{setting}{raw}: {}", front.log());
            assert_eq!(value(&answer.text(), "query"), *expected);
        }
    }
}

fn forms(front: &Front, client: &mut HttpClient, framing: Framing) {
    let long = format!("a=1&b=2&long={}", "x".repeat(20_000));
    for form in ["a=1&b=2", "", &long] {
        let fields = "Content-Type: application/x-www-form-urlencoded\r\n";
        let text = post(
            front,
            client,
            framing,
            ("/form?q=0", fields),
            form.as_bytes(),
        );
        let mut expected: Vec<&str> = form.split('&').filter(|pair| !pair.is_empty()).collect();
        expected.push("q=0");
        assert_eq!(parameters(&text), expected);
    }
}

fn parts(front: &Front, client: &mut HttpClient, framing: Framing) {
    let file = Pattern::bytes(30_000);
    let mut body = b"--limit\r\nContent-Disposition: form-data; name=\"text\"\r\n\r\nhello\r\n\
        --limit\r\nContent-Disposition: form-data; name=\"file\"; filename=\"f\"\r\n\r\n"
        .to_vec();
    body.extend_from_slice(&file);
    body.extend_from_slice(b"\r\n--limit--\r\n");
    let fields = "Content-Type: multipart/form-data; boundary=limit\r\n";
    let text = post(front, client, framing, ("/parts", fields), &body);
    assert_eq!(value(&text, "part.text.length"), "5");
    assert_eq!(value(&text, "part.file.length"), "30000");
    assert_eq!(value(&text, "part.file.sha256"), digest(&file));
}

fn uploads(front: &Front, client: &mut HttpClient, framing: Framing) {
    for length in LENGTHS {
        let body = Pattern::bytes(length);
        let text = post(front, client, framing, ("/upload", ""), &body);
        assert_eq!(value(&text, "body.length"), length.to_string());
        assert_eq!(value(&text, "body.sha256"), digest(&body));
    }
}

/// A body that the application does not read is not taken for the next request, whether or not the
/// connections are kept.
fn unread(front: &Front, framing: Framing) {
    for length in [1, 8187, 30_000] {
        let mut client = front.connect().unwrap();
        let body = Pattern::bytes(length);
        let text = post(front, &mut client, framing, ("/ignore", ""), &body);
        assert_eq!(value(&text, "uri"), "/ignore");
        for _ in 0..3 {
            let text = front.get("/form?a=1").unwrap().text();
            assert_eq!(parameters(&text), ["a=1"], "{length}: {}", front.log());
        }
    }
}

fn post(
    front: &Front,
    client: &mut HttpClient,
    framing: Framing,
    (target, fields): (&str, &str),
    mut body: &[u8],
) -> String {
    let own = match framing {
        Framing::Length => format!("Content-Length: {}\r\n", body.len()),
        Framing::Chunks(_) => "Transfer-Encoding: chunked\r\n".to_owned(),
    };
    let head = front.head("POST", target, &format!("{fields}{own}"));
    client.send(head.as_bytes()).unwrap();
    match framing {
        Framing::Length => client.send(body).unwrap(),
        Framing::Chunks(max) => client.send_chunked(&mut body, max).unwrap(),
    }
    let answer = client.receive().unwrap();
    assert_eq!(answer.status, 200, "{}\n{}", answer.text(), front.log());
    answer.text()
}

/// The parameters that the application got, in the order of their names.
fn parameters(text: &str) -> Vec<&str> {
    let lines = text.lines();
    lines
        .filter_map(|line| line.strip_prefix("parameter."))
        .collect()
}

fn digest(bytes: &[u8]) -> String {
    let mut digest = Sha256::default();
    std::io::Write::write_all(&mut digest, bytes).unwrap();
    digest.hex()
}

/// Around the most that one packet of AJP holds.
const LENGTHS: [u64; 6] = [0, 1, 8186, 8187, 16_372, 200_000];

const FRAMINGS: [Framing; 3] = [
    Framing::Length,
    Framing::Chunks(70_000),
    Framing::Chunks(777),
];

/// All printable ASCII that RFC 3986 has no place for in a query, but `#`, and what it is escaped.
const RAW_QUERIES: [(&str, &str); 2] = [
    (
        "a=[1]&b=\"<>\\^`{|}",
        "a=%5B1%5D&b=%22%3C%3E%5C%5E%60%7B%7C%7D",
    ),
    ("a=100%&%zz=%20", "a=100%25&%25zz=%20"),
];

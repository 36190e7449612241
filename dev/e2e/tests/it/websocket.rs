//! WebSocket through the front, to the echo example of Debian's Tomcat 10: by HTTP and over TLS, and
//! beside AJP by `upgrade_url`. In frames made by hand, and in a browser. From clients over HTTP/1.1 and
//! over HTTP/2 (RFC 8441).

use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::sync::OnceLock;
use std::{fs, thread};

use catamaran_e2e::{Browser, Connector, Front, Tomcat};
use catamaran_testkit::http2::{END_HEADERS, Http2Client, Said, block, kind, opening};
use catamaran_testkit::{HttpClient, Signal, http2 as frames};
use serde_json::Value;

use crate::http2::tls_address;

/// The examples take their time to be deployed, so the tests share an instance, with those of
/// [`crate::examples`].
pub(crate) fn tomcat() -> &'static Tomcat {
    static SHARED: OnceLock<Tomcat> = OnceLock::new();
    SHARED.get_or_init(|| Tomcat::start_with_examples("blue").unwrap())
}

fn front(connector: Connector, keys: &str) -> Front {
    let backend = tomcat().backend_table("app", connector);
    Front::with_config(&format!(
        "[[listen]]\naddress = \"127.0.0.1:0\"\nprotocols = [\"h2\", \"http/1.1\"]\n\
         [[route]]\nupstream = \"app\"\nupgrade = [\"websocket\"]\n{backend}{keys}\n\
         [admin]\naddress = \"127.0.0.1:0\"\n[log]\nformat = \"json\"\n"
    ))
    .unwrap()
}

/// Beside each way of requests, the keys by which tunnels go.
pub(crate) fn ways() -> [(Connector, String); 4] {
    let upgrade = |connector| format!("upgrade_url = \"{}\"", tomcat().url(connector));
    let tls = tomcat().backend_table("x", Connector::Https);
    let (_, ca_file) = tls.split_once("ca_file").unwrap();
    [
        (Connector::Http, String::new()),
        (Connector::Https, String::new()),
        (Connector::Ajp, upgrade(Connector::Http)),
        (
            Connector::AjpUnix,
            format!("{}\nca_file{ca_file}", upgrade(Connector::Https)),
        ),
    ]
}

/// The fields of a handshake, with the key of RFC 6455, section 1.3.
pub(crate) const HANDSHAKE: &str = "Connection: Upgrade\r\nUpgrade: websocket\r\n\
                                    Sec-WebSocket-Version: 13\r\n\
                                    Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";

/// Makes the handshake of RFC 6455.
fn open(front: &Front, path: &str) -> HttpClient {
    let mut client = front.connect().unwrap();
    client
        .send(front.head("GET", path, HANDSHAKE).as_bytes())
        .unwrap();
    let head = client.receive_head().unwrap();
    assert_eq!(head.status, 101, "{head:?}");
    assert_eq!(
        head.header("sec-websocket-accept"),
        Some("s3pPLMBiTxaQ9kYGzzhZRbK+xOo=")
    );
    client
}

/// A frame as a client sends it: final, masked.
pub(crate) fn masked(opcode: u8, payload: &[u8]) -> Vec<u8> {
    let mask = [1, 2, 3, 4];
    let length = u8::try_from(payload.len()).unwrap();
    let bytes = payload.iter().zip(mask.iter().cycle());
    let mut frame = vec![0x80 | opcode, 0x80 | length];
    frame.extend(mask);
    frame.extend(bytes.map(|(byte, mask)| byte ^ mask));
    frame
}

/// The next frame: its opcode and payload.
pub(crate) fn frame(client: &HttpClient) -> (u8, Vec<u8>) {
    let mut head = [0; 2];
    client.socket().read_exact(&mut head).unwrap();
    let mut payload = vec![0; usize::from(head[1])];
    client.socket().read_exact(&mut payload).unwrap();
    (head[0] & 0x0f, payload)
}

/// Says something to Tomcat's echo, and hears it.
pub(crate) fn check_echo(front: &Front) {
    let mut client = open(front, ECHO);
    client.send(&masked(TEXT, b"hello")).unwrap();
    assert_eq!(frame(&client), (TEXT, b"hello".to_vec()));
}

#[test]
fn frames_are_echoed_and_the_close_is_in_order() {
    for (connector, keys) in ways() {
        let front = front(connector, &keys);
        let mut client = open(&front, ECHO);
        for text in ["hello", "", "again"] {
            client.send(&masked(TEXT, text.as_bytes())).unwrap();
            assert_eq!(
                frame(&client),
                (TEXT, text.as_bytes().to_vec()),
                "{connector:?}"
            );
        }
        assert_eq!(front.metric("catamaran_tunnels_open").unwrap(), [1.0]);
        client
            .send(&masked(CLOSE, &1000_u16.to_be_bytes()))
            .unwrap();
        assert_eq!(frame(&client).0, CLOSE);
        assert_eq!(client.receive_to_end().unwrap(), b"");
        drop(client);
        let line = front.wait_for_log("\"status\":101").unwrap();
        // Four frames of the client have six bytes of head each, Tomcat's two.
        assert!(
            line.contains("\"received\":36") && line.contains("\"sent\":20"),
            "{line}"
        );
        let page = front.get("/examples/websocket/echo.xhtml").unwrap();
        assert_eq!(page.status, 200);
    }
}

#[test]
fn frames_are_echoed_over_http_2() {
    for (connector, keys) in ways() {
        let front = front(connector, &keys);
        let mut client = Http2Client::connect(front.address()).unwrap();
        let fields = [
            (":method", "CONNECT"),
            (":protocol", "websocket"),
            (":scheme", "http"),
            (":authority", "a"),
            (":path", ECHO),
            ("sec-websocket-version", "13"),
        ];
        let fields = fields.map(|(name, value)| (name.as_bytes(), value.as_bytes()));
        let head = frames::frame(kind::HEADERS, END_HEADERS, 1, &block(&fields));
        client.send(&[opening(65_535), head].concat(), usize::MAX);
        assert_eq!(client.next_said().unwrap(), Said::Status(1, 200));
        let mut send = |opcode, payload: &[u8]| {
            let frame = masked(opcode, payload);
            client.send(&frames::frame(kind::DATA, 0, 1, &frame), usize::MAX);
            let head = client.read_body(2).unwrap();
            let payload = client.read_body(usize::from(head[1])).unwrap();
            (head[0] & 0x0f, payload)
        };
        for text in ["hello", "", "again"] {
            let echoed = send(TEXT, text.as_bytes());
            assert_eq!(echoed, (TEXT, text.as_bytes().to_vec()), "{connector:?}");
        }
        assert_eq!(send(CLOSE, &1000_u16.to_be_bytes()).0, CLOSE);
        assert_eq!(client.next_said().unwrap(), Said::End(1));
        drop(client);
        let line = front.wait_for_log("\"CONNECT\"").unwrap();
        let line: Value = serde_json::from_str(&line).unwrap();
        let told = ["protocol", "path"].map(|name| line[name].as_str().unwrap());
        assert_eq!(told, ["h2", ECHO], "{line}");
        let told = ["status", "received", "sent"].map(|name| line[name].as_u64().unwrap());
        assert_eq!(told, [200, 36, 20], "{line}");
    }
}

/// A backend that agrees to every tunnel, and keeps it.
fn agreeing() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        let mut open = Vec::new();
        for socket in listener.incoming() {
            let mut socket = socket.unwrap();
            let mut head = BufReader::new(&socket).lines();
            while head.next().is_some_and(|line| !line.unwrap().is_empty()) {}
            let agreed = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n\
                          Upgrade: websocket\r\nSec-WebSocket-Accept: \
                          s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n";
            socket.write_all(agreed.as_bytes()).unwrap();
            open.push(socket);
        }
    });
    address
}

/// The head of the request, which has 4 KiB and more in buffers, is not kept; nor is it for the log.
#[test]
fn an_idle_tunnel_takes_little_memory() {
    let backend = agreeing();
    let front = Front::to_app(&format!(
        "upgrade = [\"websocket\"]\n[[upstream.app.backend]]\nurl = \"http://{backend}\"\n"
    ))
    .unwrap();
    let first: Vec<HttpClient> = (0..20).map(|_| open(&front, "/")).collect();
    let before = front.memory().unwrap().private;
    let others: Vec<HttpClient> = (0..TUNNELS).map(|_| open(&front, "/")).collect();
    let grown = front.memory().unwrap().private.saturating_sub(before);
    let each = grown / TUNNELS;
    assert!(each <= 8192, "{each} bytes for each tunnel");
    drop((first, others));
}

#[test]
fn a_refused_handshake_is_an_ordinary_response() {
    let front = front(Connector::Ajp, &ways()[2].1);
    let mut client = front.connect().unwrap();
    let fields = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 1\r\n\
                  Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
    let answer = client.ask(front.head("GET", ECHO, fields)).unwrap();
    assert_eq!(answer.status, 426);
    let answer = client.ask(front.head("GET", "/page.html", "")).unwrap();
    assert_eq!(answer.status, 200, "the connection stays");
}

#[test]
fn without_another_url_ajp_has_none() {
    let front = front(Connector::Ajp, "");
    let fields = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
                  Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
    let answer = front.ask(front.head("GET", ECHO, fields)).unwrap();
    assert_eq!(answer.status, 501);
    front.wait_for_log(":no-upgrade-url").unwrap();
}

#[test]
fn a_stop_closes_tunnels_in_order_at_its_end() {
    let backend = tomcat().backend_table("app", Connector::Http);
    let mut front = Front::with_config(&format!(
        "[server]\ndrain_timeout = \"6s\"\n[[listen]]\naddress = \"127.0.0.1:0\"\n\
         [[route]]\nupstream = \"app\"\nupgrade = [\"websocket\"]\n{backend}[log]\nformat = \"json\"\n"
    ))
    .unwrap();
    let mut client = open(&front, ECHO);
    front.process().signal(Signal::Terminate).unwrap();
    client.send(&masked(TEXT, b"still")).unwrap();
    assert_eq!(frame(&client), (TEXT, b"still".to_vec()));
    assert_eq!(client.receive_to_end().unwrap(), b"");
    front.wait_for_log(":drained").unwrap();
}

/// Uses the page of the echo example.
fn echo_in(browser: &mut Browser) {
    browser
        .evaluate(&format!(
            "updateTarget('{ECHO}'); document.getElementById('message').value = 'over the catamaran'; \
             connect(); true"
        ))
        .unwrap();
    let says =
        |text: &str| format!("document.getElementById('console').textContent.includes('{text}')");
    browser.wait(&says("WebSocket connection opened")).unwrap();
    browser.evaluate("echo(); true").unwrap();
    browser.wait(&says("Received: over the catamaran")).unwrap();
    browser.evaluate("ws.close(1000); true").unwrap();
    browser.wait(&says("closed, Code: 1000")).unwrap();
}

#[test]
fn a_browser_speaks_to_the_echo_example() {
    let mut browser = Browser::start(&[]).unwrap();
    for (connector, keys) in ways() {
        let front = front(connector, &keys);
        let page = format!("http://{}/examples/websocket/echo.xhtml", front.address());
        browser.open(&page).unwrap();
        echo_in(&mut browser);
        front.wait_for_log("\"status\":101").unwrap();
    }
}

#[test]
fn a_browser_speaks_to_the_echo_example_over_http_2() {
    let files = tempfile::tempdir().unwrap();
    let certified = rcgen::generate_simple_self_signed(["echo.test".to_owned()]).unwrap();
    let [chain, key] = ["chain", "key"].map(|name| files.path().join(name));
    fs::write(&chain, certified.cert.pem()).unwrap();
    fs::write(&key, certified.signing_key.serialize_pem()).unwrap();
    let mut browser = Browser::start(&["echo.test"]).unwrap();
    for (connector, keys) in ways() {
        let listener = format!(
            "{keys}\n[[listen]]\naddress = \"127.0.0.1:0\"\ntls = \"www\"\n\
             [[tls.www.certificate]]\nchain = {chain:?}\nkey = {key:?}\n"
        );
        let mut front = front(connector, &listener);
        let address = tls_address(&mut front);
        let (_, port) = address.rsplit_once(':').unwrap();
        let page = format!("https://echo.test:{port}/examples/websocket/echo.xhtml");
        browser.open(&page).unwrap();
        echo_in(&mut browser);
        let line = front.wait_for_log("\"CONNECT\"").unwrap();
        let line: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(
            (&line["protocol"], &line["status"]),
            (&"h2".into(), &200.into()),
            "{line}"
        );
    }
}

pub(crate) const TEXT: u8 = 1;
const CLOSE: u8 = 8;

pub(crate) const ECHO: &str = "/examples/websocket/echoProgrammatic";

/// Few enough for a process that may have 1,024 open files.
const TUNNELS: u64 = 300;

//! A cache of a split route: upstreams are told of the same request in different ways.

use std::sync::atomic::AtomicUsize;

use catamaran_proxy::config::{
    AttributeSource, FieldName, RequestAttributes, RouteTarget, UpstreamConfig,
};
use catamaran_testkit::ajp;

use super::*;

/// How often an origin was asked for its page, and to change it.
#[derive(Default)]
struct Asks {
    pages: AtomicUsize,
    changes: AtomicUsize,
}

impl Asks {
    /// Counts a request; returns whether it is a change.
    fn count(&self, is_change: bool) -> bool {
        let asks = if is_change {
            &self.changes
        } else {
            &self.pages
        };
        asks.fetch_add(1, Ordering::SeqCst);
        is_change
    }

    fn pages(&self) -> usize {
        self.pages.load(Ordering::SeqCst)
    }

    fn changes(&self) -> usize {
        self.changes.load(Ordering::SeqCst)
    }
}

/// An origin over HTTP.
fn http_origin(asks: &Arc<Asks>) -> Origin {
    let asks = Arc::clone(asks);
    Origin::start(move |asked| {
        let bytes = if asks.count(asked.text.starts_with("POST")) {
            response("204 No Content", "", "")
        } else {
            ok(FRESH, "http")
        };
        (bytes, false)
    })
}

/// An origin over AJP13.
fn ajp_origin(asks: &Arc<Asks>) -> BackendConfig {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let asks = Arc::clone(asks);
    thread::spawn(move || {
        while let Ok((socket, _)) = listener.accept() {
            let asks = Arc::clone(&asks);
            thread::spawn(move || serve_ajp(socket, &asks));
        }
    });
    let host = "127.0.0.1".to_owned();
    BackendConfig::new(Protocol::Ajp, Address::Tcp { host, port })
}

fn serve_ajp(mut socket: TcpStream, asks: &Asks) {
    let mut head = [0; 4];
    while socket.read_exact(&mut head).is_ok() {
        let mut packet = vec![0; usize::from(u16::from_be_bytes([head[2], head[3]]))];
        socket.read_exact(&mut packet).unwrap();
        let answer = if asks.count(packet[1] == AJP_POST) {
            [ajp::send_headers(204, &[]), ajp::end_response(1)].concat()
        } else {
            let fields = [("Cache-Control", "max-age=60"), ("Content-Length", "3")];
            let fields = fields.map(|(name, value)| ajp::field(name, value));
            let page = [ajp::send_headers(200, &fields), ajp::chunk(b"ajp")];
            [page.concat(), ajp::end_response(1)].concat()
        };
        socket.write_all(&answer).unwrap();
    }
}

/// Whichever upstream of a split is asked to change something, the pages of the one that speaks another protocol are
/// taken away, too.
#[test]
fn a_change_takes_away_what_a_sibling_of_another_protocol_gave() {
    let (of_http, of_ajp) = (Arc::<Asks>::default(), Arc::<Asks>::default());
    let origin = http_origin(&of_http);
    let mut config = cached(origin.backend(), cache());
    config.server.trusted_proxies = vec!["127.0.0.0/8".parse().unwrap()];
    config.upstreams[0].name = "http".to_owned();
    let mut second = UpstreamConfig::new("ajp", vec![ajp_origin(&of_ajp)]);
    let tenant = AttributeSource::Header(FieldName::from_static("x-tenant"));
    second.attributes = Some(Arc::new(RequestAttributes {
        remote_user: None,
        auth_type: None,
        named: vec![("TENANT".to_owned(), tenant)],
    }));
    config.upstreams.push(second);
    let shares = [("http", 1), ("ajp", 1)].map(|(name, weight)| (name.to_owned(), weight));
    config.routes[0].target = RouteTarget::Split(shares.into());
    let front = start(config).unwrap();
    for fields in [
        "",
        "X-Tenant: alpha\r\n",
        "X-Forwarded-Host: shop.example\r\nX-Forwarded-Port: 81\r\n",
        "X-Forwarded-Proto: https\r\n",
    ] {
        let pages = || {
            for _ in 0..40 {
                get_as(&front, "/", fields);
            }
            [of_http.pages(), of_ajp.pages()]
        };
        let changes = || [of_http.changes(), of_ajp.changes()];
        let mut stored = pages();
        assert_eq!(pages(), stored, "{fields}: all is stored");
        let before = changes();
        while (0..2).any(|at| changes()[at] == before[at]) {
            ask_as(
                &front,
                "POST",
                "/",
                &format!("{fields}Content-Length: 0\r\n"),
            );
            let fetched = pages();
            assert_eq!(fetched, stored.map(|pages| pages + 1), "{fields}");
            stored = fetched;
        }
    }
}

/// The code of the method in AJP13.
const AJP_POST: u8 = 4;

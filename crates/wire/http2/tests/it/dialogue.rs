//! Both roles talk to each other, and what was said arrives, however it was cut.

use std::collections::BTreeMap;

use bytes::BytesMut;
use catamaran_http2::{Client, Config, Event, Limits, Server};
use catamaran_message::{BodyLength, Fields, Request, RequestHead, Response, Scheme};
use http::{Method, StatusCode};
use proptest::prelude::*;

/// What one stream carries.
#[derive(Clone, Debug)]
struct Exchange {
    upload: usize,
    download: usize,
    announces: bool,
    field: String,
}

fn exchanges() -> impl Strategy<Value = Vec<Exchange>> {
    let one = (
        0..40_000_usize,
        0..90_000_usize,
        any::<bool>(),
        "[ -~]{0,40}",
    );
    let one = one.prop_map(|(upload, download, announces, field)| Exchange {
        upload,
        download,
        announces,
        field: field.trim().to_owned(),
    });
    prop::collection::vec(one, 1..8)
}

fn length(announces: bool, bytes: usize) -> BodyLength {
    match (announces, bytes) {
        (true, bytes) => BodyLength::Known(bytes as u64),
        (false, _) => BodyLength::Unknown,
    }
}

/// Bytes of a body that are still to be sent, by stream.
type Bodies = BTreeMap<u32, usize>;

macro_rules! send {
    ($side:expr, $bodies:expr, $out:expr) => {
        $bodies.retain(|stream, left| {
            loop {
                let taken = $side
                    .connection
                    .begin_data(*stream, *left, true, $out)
                    .unwrap();
                $out.extend(std::iter::repeat_n(b'x', taken));
                *left -= taken;
                match (taken, *left) {
                    (_, 0) => return false,
                    (0, _) => return true,
                    _ => {}
                }
            }
        });
    };
}

fn move_bytes(from: &mut BytesMut, to: &mut BytesMut, cut: usize) {
    let len = from.len().min(cut);
    to.extend_from_slice(&from.split_to(len));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_was_said_arrives(
        exchanges in exchanges(),
        cuts in prop::collection::vec(1..20_000_usize, 1..20),
        window in 1..100_000_u32,
    ) {
        let config = Config { window, ..Config::default() };
        let (mut up, mut down) = (BytesMut::new(), BytesMut::new());
        let (mut at_server, mut at_client) = (BytesMut::new(), BytesMut::new());
        let mut client = Client::new(Limits::response(), config, &mut up);
        let mut server = Server::new(Limits::request(), config, &mut down);
        let (mut uploads, mut downloads) = (Bodies::new(), Bodies::new());
        for (index, exchange) in exchanges.iter().enumerate() {
            let path = format!("/{index}");
            let request = Request {
                method: &Method::POST,
                path: path.as_bytes(),
                query: None,
                host: b"example.org",
                headers: &Fields::from_iter([("x-field", &exchange.field)]),
                body: length(exchange.announces, exchange.upload),
            };
            let stream = client.send_request(&request, Scheme::Https, &mut up).unwrap();
            if request.body != BodyLength::Known(0) {
                uploads.insert(stream, exchange.upload);
            }
        }
        let mut received = vec![(0, 0); exchanges.len()];
        let mut ended = 0;
        let mut cut = cuts.iter().cycle();
        for _ in 0..1_000_000 {
            send!(client, uploads, &mut up);
            move_bytes(&mut up, &mut at_server, *cut.next().unwrap());
            while let Some(event) = server.receive(&mut at_server, &mut down, || Box::new(RequestHead::empty())).unwrap() {
                match event {
                    Event::Head { stream, head, .. } => {
                        let index: usize = str::from_utf8(&head.target.path[1..]).unwrap().parse().unwrap();
                        prop_assert_eq!(index as u32 * 2 + 1, stream);
                        let exchange = &exchanges[index];
                        prop_assert_eq!(head.headers.text_of("x-field"), Some(&exchange.field[..]));
                        let response = Response {
                            status: StatusCode::OK,
                            reason: None,
                            headers: &head.headers,
                            body: length(exchange.announces, exchange.download),
                        };
                        server.send_head(stream, &response, false, &mut down).unwrap();
                        if response.body != BodyLength::Known(0) {
                            downloads.insert(stream, exchange.download);
                        }
                    }
                    Event::Body { stream, data, .. } => {
                        received[stream as usize / 2].0 += data.len();
                        server.connection.credit(stream, data.len() as u32, &mut down);
                    }
                    Event::Window { .. } => {}
                    other => prop_assert!(false, "{:?}", other),
                }
            }
            send!(server, downloads, &mut down);
            move_bytes(&mut down, &mut at_client, *cut.next().unwrap());
            while let Some(event) = client.receive(&mut at_client, &mut up).unwrap() {
                match event {
                    Event::Head { stream, head, ends } => {
                        let field = &exchanges[stream as usize / 2].field;
                        prop_assert_eq!(head.headers.text_of("x-field"), Some(&field[..]));
                        ended += usize::from(ends);
                    }
                    Event::Body { stream, data, ends } => {
                        received[stream as usize / 2].1 += data.len();
                        client.connection.credit(stream, data.len() as u32, &mut up);
                        ended += usize::from(ends);
                    }
                    Event::Window { .. } => {}
                    other => prop_assert!(false, "{:?}", other),
                }
            }
            if ended == exchanges.len() && uploads.is_empty() && up.is_empty() && at_server.is_empty() {
                break;
            }
        }
        prop_assert_eq!(ended, exchanges.len());
        let sizes: Vec<_> = exchanges.iter().map(|it| (it.upload, it.download)).collect();
        prop_assert_eq!(received, sizes);
        prop_assert_eq!(server.connection.open_streams(), 0);
        prop_assert_eq!(client.connection.open_streams(), 0);
    }
}

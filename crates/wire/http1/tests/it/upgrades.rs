//! Tunnels: a request that asks to change the protocol, the 101, and bytes as they are after it.

use bytes::BytesMut;
use catamaran_http1::{
    BodyLength, Client, ClientEvent, Fault, Limits, Request, RequestError, Response, ResponseError,
    Server, ServerEvent,
};
use catamaran_message::Fields;
use catamaran_message::name::UPGRADE;
use http::{HeaderValue, Method, StatusCode};

fn get(headers: &Fields, body: BodyLength) -> Request<'_> {
    Request {
        method: &Method::GET,
        path: b"/",
        query: None,
        host: b"a",
        headers,
        body,
    }
}

fn asking() -> (Client, BytesMut) {
    let mut client = Client::new(Limits::response());
    let mut out = BytesMut::new();
    let headers = Fields::new();
    client
        .send_upgrade(&get(&headers, BodyLength::Known(0)), b"websocket", &mut out)
        .unwrap();
    (client, out)
}

fn switching(token: &'static str) -> Fields {
    [(UPGRADE, HeaderValue::from_static(token))]
        .into_iter()
        .collect()
}

fn answer(headers: &Fields) -> Response<'_> {
    Response {
        status: StatusCode::SWITCHING_PROTOCOLS,
        reason: None,
        headers,
        body: BodyLength::Unknown,
    }
}

#[test]
fn bytes_go_both_ways_as_they_are() {
    let (mut client, mut up) = asking();
    assert_eq!(
        up,
        "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
    );
    let mut server = Server::new(Limits::request());
    let event = server.receive(&mut up).unwrap();
    assert!(matches!(event, Some(ServerEvent::Head(_))));
    let mut down = BytesMut::new();
    server
        .send_upgrade(&answer(&switching("websocket")), &mut down)
        .unwrap();
    assert_eq!(
        down,
        "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
    );
    // What looks like a message, or like a chunk, is none.
    let data = "GET /x HTTP/1.1\r\n\r\n0\r\n\r\n";
    server.send_data(data.as_bytes(), &mut down);
    let event = client.receive(&mut down).unwrap();
    assert!(
        matches!(event, Some(ClientEvent::Upgraded(head)) if head.headers.text_of(UPGRADE) == Some("websocket"))
    );
    let event = client.receive(&mut down).unwrap();
    assert_eq!(event, Some(ClientEvent::Body(data.into())));
    client.send_data(data.as_bytes(), &mut up);
    assert_eq!(
        server.receive(&mut up),
        Ok(Some(ServerEvent::Body(data.into())))
    );
    // Each way ends by itself.
    assert_eq!(client.receive_eof(), Ok(Some(ClientEvent::End)));
    client.send_data(b"more", &mut up);
    assert_eq!(
        server.receive(&mut up),
        Ok(Some(ServerEvent::Body("more".into())))
    );
    assert_eq!(server.receive_eof(&up), Ok(()));
    assert!(!client.can_reuse() && !server.can_reuse());
}

#[test]
fn a_101_is_taken_whole_however_it_is_cut() {
    let text = format!("{GOOD}early");
    for cut in 1..text.len() {
        let (mut client, _) = asking();
        let mut input = BytesMut::from(&text.as_bytes()[..cut]);
        let mut events = Vec::new();
        while let Some(event) = client.receive(&mut input).unwrap() {
            events.push(event);
        }
        input.extend_from_slice(&text.as_bytes()[cut..]);
        while let Some(event) = client.receive(&mut input).unwrap() {
            events.push(event);
        }
        let mut data = Vec::new();
        assert!(
            matches!(&events[0], ClientEvent::Upgraded(head) if head.headers.text_of("x") == Some("y"))
        );
        for event in &events[1..] {
            let ClientEvent::Body(bytes) = event else {
                panic!("{event:?}");
            };
            data.extend_from_slice(bytes);
        }
        assert_eq!(data, b"early", "cut at {cut}");
    }
}

#[test]
fn only_the_protocol_that_was_asked_for_opens() {
    for bad in [
        GOOD.replace("websocket", "h2c"),
        GOOD.replace("websocket", "websocket, h2c"),
        GOOD.replace("Upgrade: websocket\r\n", ""),
        GOOD.replace("X: y", "Upgrade: websocket"),
        GOOD.replace("Connection: Upgrade", "Connection: close"),
        GOOD.replace("X: y", "Content-Length: 4"),
        GOOD.replace("X: y", "Transfer-Encoding: chunked"),
        GOOD.replace("HTTP/1.1", "HTTP/1.0"),
    ] {
        let (mut client, _) = asking();
        let mut input = BytesMut::from(bad.as_bytes());
        assert_eq!(client.receive(&mut input), Err(Fault::Upgraded), "{bad}");
    }
    let mut client = Client::new(Limits::response());
    let headers = Fields::new();
    let plain = get(&headers, BodyLength::Known(0));
    client.send_request(&plain, &mut BytesMut::new()).unwrap();
    let mut input = BytesMut::from(GOOD.as_bytes());
    assert_eq!(client.receive(&mut input), Err(Fault::Upgraded), "unasked");
    // Another spelling is the same protocol.
    let (mut client, _) = asking();
    let mut input = BytesMut::from(GOOD.replace("websocket", "WebSocket").as_bytes());
    assert!(matches!(
        client.receive(&mut input),
        Ok(Some(ClientEvent::Upgraded(_)))
    ));
}

#[test]
fn another_status_is_an_ordinary_response() {
    let (mut client, _) = asking();
    let mut input = BytesMut::from(
        &b"HTTP/1.1 200 OK\r\nUpgrade: websocket\r\nContent-Length: 2\r\n\r\nokmore"[..],
    );
    let event = client.receive(&mut input).unwrap();
    assert!(matches!(event, Some(ClientEvent::Head(head)) if !head.headers.contains(UPGRADE)));
    assert_eq!(
        client.receive(&mut input),
        Ok(Some(ClientEvent::Body("ok".into())))
    );
    assert_eq!(client.receive(&mut input), Ok(Some(ClientEvent::End)));
    assert_eq!(client.receive(&mut input), Err(Fault::Unsolicited));
}

#[test]
fn no_tunnel_is_opened_beside_a_body_or_for_http_10() {
    let mut client = Client::new(Limits::response());
    let headers = Fields::new();
    for body in [BodyLength::Known(1), BodyLength::Unknown] {
        let sent = client.send_upgrade(&get(&headers, body), b"x", &mut BytesMut::new());
        assert_eq!(sent, Err(RequestError::OutOfTurn));
    }
    for request in [
        "GET / HTTP/1.0\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n",
    ] {
        let mut server = Server::new(Limits::request());
        server.receive(&mut BytesMut::from(request)).unwrap();
        let sent = server.send_upgrade(&answer(&switching("x")), &mut BytesMut::new());
        assert_eq!(sent, Err(ResponseError::OutOfTurn), "{request}");
    }
}

const GOOD: &str =
    "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nX: y\r\n\r\n";

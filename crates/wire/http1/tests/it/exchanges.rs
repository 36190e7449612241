//! Exchanges as a whole: turns, early responses, refusals, and what may be reused after them.

use bytes::BytesMut;
use catamaran_http1::{
    BodyLength, Client, ClientEvent, Fault, Limits, Request, RequestError, Response, ResponseError,
    Server, ServerEvent,
};
use catamaran_message::Fields;
use http::{Method, StatusCode};

fn respond(server: &mut Server, status: StatusCode) -> String {
    let head = Response {
        status,
        reason: None,
        headers: &Fields::new(),
        body: BodyLength::Known(2),
    };
    let mut out = BytesMut::new();
    server.send_head(&head, &mut out).unwrap();
    server.send_data(b"ok", &mut out);
    server.send_end(&mut out).unwrap();
    String::from_utf8(out.to_vec()).unwrap()
}

fn post(client: &mut Client, body: BodyLength) -> BytesMut {
    let mut out = BytesMut::new();
    let request = Request {
        method: &Method::POST,
        path: b"/",
        query: None,
        host: b"a",
        headers: &Fields::new(),
        body,
    };
    client.send_request(&request, &mut out).unwrap();
    out
}

fn drain(client: &mut Client, input: &mut BytesMut) -> Vec<ClientEvent> {
    std::iter::from_fn(|| client.receive(input).unwrap()).collect()
}

#[test]
fn the_next_request_waits_for_the_response() {
    let mut server = Server::new(Limits::request());
    assert!(server.is_idle() && server.can_reuse());
    let request = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
    let mut input = BytesMut::from(request.repeat(2).as_bytes());
    assert!(matches!(
        server.receive(&mut input),
        Ok(Some(ServerEvent::Head(_)))
    ));
    assert_eq!(server.receive(&mut input), Ok(None));
    assert_eq!(input, request.as_bytes());
    assert!(!server.is_idle() && !server.can_reuse());
    respond(&mut server, StatusCode::OK);
    assert!(server.is_idle() && server.can_reuse());
    assert!(matches!(
        server.receive(&mut input),
        Ok(Some(ServerEvent::Head(_)))
    ));
}

#[test]
fn a_connection_is_idle_only_between_heads() {
    let mut server = Server::new(Limits::request());
    let mut input = BytesMut::from(&b"\r\n"[..]);
    assert_eq!(server.receive(&mut input), Ok(None));
    assert!(server.is_idle() && input.is_empty());
    assert_eq!(server.receive_eof(&input), Ok(()));
    assert!(!server.can_reuse());

    let mut server = Server::new(Limits::request());
    let mut input = BytesMut::from(&b"G"[..]);
    assert_eq!(server.receive(&mut input), Ok(None));
    assert!(!server.is_idle() && !server.can_reuse());
    assert_eq!(server.receive_eof(&input), Err(Fault::TruncatedHead));
}

/// A client that has closed its sending side still gets its responses, pipelined ones too.
#[test]
fn half_closed_clients_are_served() {
    let mut server = Server::new(Limits::request());
    let mut input = BytesMut::from("GET / HTTP/1.1\r\nHost: a\r\n\r\n".repeat(2).as_bytes());
    for _ in 0..2 {
        assert!(matches!(
            server.receive(&mut input),
            Ok(Some(ServerEvent::Head(_)))
        ));
        assert_eq!(server.receive_eof(&input), Ok(()));
        respond(&mut server, StatusCode::OK);
    }
    assert_eq!(server.receive_eof(&input), Ok(()));
    assert!(!server.can_reuse());
}

#[test]
fn a_refusal_is_the_last_message() {
    for bytes in [
        "GET / HTTP/1.1\r\n\r\n",
        "BAD\n",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz",
        "HEAD / HTTP/1.1\r\nHost: a\r\nContent-Length: x\r\n\r\n",
    ] {
        let mut server = Server::new(Limits::request());
        let mut input = BytesMut::from("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        server.receive(&mut input).unwrap();
        respond(&mut server, StatusCode::OK);
        input.extend_from_slice(bytes.as_bytes());
        let fault = loop {
            if let Err(fault) = server.receive(&mut input) {
                break fault;
            }
        };
        assert_eq!(
            respond(&mut server, fault.status()),
            "HTTP/1.1 400 Bad Request\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok",
            "{bytes:?}"
        );
        assert!(!server.can_reuse());
        assert_eq!(server.receive(&mut input), Err(fault));
    }
}

#[test]
fn a_slow_head_can_be_answered_before_it_is_complete() {
    let mut server = Server::new(Limits::request());
    let mut input = BytesMut::from(&b"GET / HTTP/1.1\r\nHo"[..]);
    assert_eq!(server.receive(&mut input), Ok(None));
    let text = respond(&mut server, StatusCode::REQUEST_TIMEOUT);
    assert!(text.contains("\r\nConnection: close\r\n"), "{text}");
    assert!(!server.can_reuse());
    input.extend_from_slice(b"st: a\r\n\r\n");
    assert_eq!(server.receive(&mut input), Ok(None), "too late");
}

/// Row 97: whether the body follows is unknown once 100 was not sent.
#[test]
fn an_unanswered_expectation_ends_the_connection() {
    let bytes = "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n";
    let mut server = Server::new(Limits::request());
    let mut input = BytesMut::from(bytes);
    let Ok(Some(ServerEvent::Head(head))) = server.receive(&mut input) else {
        panic!()
    };
    assert!(head.expect_continue);
    let text = respond(&mut server, StatusCode::UNAUTHORIZED);
    assert!(text.contains("\r\nConnection: close\r\n"), "{text}");
    assert!(!server.can_reuse());

    // The body came without waiting: all is as usual.
    let mut server = Server::new(Limits::request());
    let mut input = BytesMut::from(format!("{bytes}hi").as_bytes());
    server.receive(&mut input).unwrap();
    assert_eq!(
        server.receive(&mut input),
        Ok(Some(ServerEvent::Body("hi".into())))
    );
    assert_eq!(server.receive(&mut input), Ok(Some(ServerEvent::BodyEnd)));
    let mut out = BytesMut::new();
    server.send_continue(&mut out);
    assert!(out.is_empty());
    respond(&mut server, StatusCode::OK);
    assert!(server.can_reuse());
}

/// Rows 31 and 32 of the responses: the final response may come before the request has ended.
#[test]
fn an_early_response_leaves_the_request_owed() {
    let mut client = Client::new(Limits::response());
    let mut sent = post(&mut client, BodyLength::Known(4));
    let mut server = Server::new(Limits::request());
    client.send_data(b"ab", &mut sent);
    assert!(matches!(
        server.receive(&mut sent),
        Ok(Some(ServerEvent::Head(_)))
    ));
    let mut back = BytesMut::from(respond(&mut server, StatusCode::PAYLOAD_TOO_LARGE).as_bytes());
    assert!(!server.is_idle() && !server.can_reuse() && !server.request_body_done());
    let events = drain(&mut client, &mut back);
    assert_eq!(events.last(), Some(&ClientEvent::End));
    assert!(!client.is_idle() && !client.can_reuse());

    // Should the body be sent and read after all, both ends are in step again.
    client.send_data(b"cd", &mut sent);
    client.finish_body(&mut sent).unwrap();
    assert!(client.is_idle() && client.can_reuse());
    while !server.request_body_done() {
        server
            .receive(&mut sent)
            .unwrap()
            .expect("the rest of the body");
    }
    assert!(server.is_idle() && server.can_reuse());
}

#[test]
fn closing_after_an_exchange_is_announced() {
    let mut server = Server::new(Limits::request());
    let mut client = Client::new(Limits::response());
    client.close_after();
    let mut sent = post(&mut client, BodyLength::Known(0));
    let Ok(Some(ServerEvent::Head(_))) = server.receive(&mut sent) else {
        panic!()
    };
    assert!(server.is_last());
    assert!(respond(&mut server, StatusCode::OK).contains("\r\nConnection: close\r\n"));

    let mut server = Server::new(Limits::request());
    let mut client = Client::new(Limits::response());
    server.close_after();
    let mut sent = post(&mut client, BodyLength::Known(0));
    server.receive(&mut sent).unwrap();
    let mut back = BytesMut::from(respond(&mut server, StatusCode::OK).as_bytes());
    assert!(!server.can_reuse());
    assert_eq!(drain(&mut client, &mut back).len(), 3);
    assert!(client.is_idle() && !client.can_reuse());
}

#[test]
fn nothing_is_sent_on_a_connection_that_is_over() {
    let mut client = Client::new(Limits::response());
    assert_eq!(client.receive_eof(), Ok(None));
    let request = Request {
        method: &Method::GET,
        path: b"/",
        query: None,
        host: b"a",
        headers: &Fields::new(),
        body: BodyLength::Known(0),
    };
    let mut out = BytesMut::new();
    assert_eq!(
        client.send_request(&request, &mut out),
        Err(RequestError::OutOfTurn)
    );

    let mut server = Server::new(Limits::request());
    let mut input = BytesMut::from("GET / HTTP/1.0\r\n\r\n");
    server.receive(&mut input).unwrap();
    respond(&mut server, StatusCode::OK);
    assert!(server.is_idle() && !server.can_reuse());
    let head = Response {
        status: StatusCode::OK,
        reason: None,
        headers: &Fields::new(),
        body: BodyLength::Known(0),
    };
    assert_eq!(
        server.send_head(&head, &mut out),
        Err(ResponseError::OutOfTurn)
    );
    assert!(out.is_empty());
}

//! Golden outputs of both roles.

use bytes::BytesMut;
use catamaran_http1::{
    BodyError, BodyLength, Client, Limits, Request, RequestError, Response, ResponseError, Server,
};
use catamaran_message::Fields;
use http::{Method, StatusCode};

fn map(fields: &[(&'static str, &'static str)]) -> Fields {
    fields.iter().copied().collect()
}

/// A server that has read a request beginning with `line`.
fn server(line: &str, fields: &str) -> Server {
    let mut server = Server::new(Limits::request());
    let mut input = BytesMut::from(format!("{line}\r\nHost: a\r\n{fields}\r\n").as_bytes());
    server.receive(&mut input).unwrap().expect("a whole head");
    server
}

fn response(status: u16, headers: &Fields, body: BodyLength) -> Response<'_> {
    let status = StatusCode::from_u16(status).unwrap();
    Response {
        status,
        reason: None,
        headers,
        body,
    }
}

/// What a server writes for a response with body `hello`.
fn respond(mut server: Server, head: &Response<'_>) -> (String, bool) {
    let mut out = BytesMut::new();
    server.send_head(head, &mut out).unwrap();
    server.send_data(b"hel", &mut out);
    server.send_data(b"", &mut out);
    server.send_data(b"lo", &mut out);
    server.send_end(&mut out).unwrap();
    (String::from_utf8(out.to_vec()).unwrap(), server.can_reuse())
}

#[rustfmt::skip]
#[test]
fn framing_and_reuse_follow_version_method_and_status() {
    use BodyLength::{Known, Unknown};
    let get = "GET / HTTP/1.1";
    let head = "HEAD / HTTP/1.1";
    let old = "GET / HTTP/1.0";
    let old_kept = "Connection: keep-alive\r\n";
    let close = "Connection: close\r\n";
    let length = "Content-Length: 5\r\n";
    let chunked = "Transfer-Encoding: chunked\r\n";
    let chunks = "3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n";
    for (line, fields, status, body, expected_fields, expected_body, reusable) in [
        (get, "", 200, Known(5), length.to_owned(), "hello", true),
        (get, "", 200, Unknown, chunked.to_owned(), chunks, true),
        (get, close, 200, Known(5), format!("{length}{close}"), "hello", false),
        (get, close, 200, Unknown, format!("{chunked}{close}"), chunks, false),
        (old, "", 200, Known(5), format!("{length}{close}"), "hello", false),
        (old, "", 200, Unknown, close.to_owned(), "hello", false),
        (old, old_kept, 200, Known(5), format!("{length}{old_kept}"), "hello", true),
        (old, old_kept, 200, Unknown, close.to_owned(), "hello", false),
        (head, "", 200, Known(5), length.to_owned(), "", true),
        (head, "", 200, Unknown, String::new(), "", true),
        (get, "", 204, Known(5), String::new(), "", true),
        (get, "", 204, Unknown, String::new(), "", true),
        (get, "", 304, Known(5), length.to_owned(), "", true),
        (get, "", 304, Unknown, String::new(), "", true),
    ] {
        let about = format!("{line}, {fields:?}, {status}, {body:?}");
        let (text, can_reuse) = respond(
            server(line, fields),
            &response(status, &Fields::new(), body),
        );
        let (status_line, rest) = text.split_once("\r\n").unwrap();
        assert!(
            status_line.starts_with(&format!("HTTP/1.1 {status} ")),
            "{about}"
        );
        assert_eq!(
            rest,
            format!("{expected_fields}\r\n{expected_body}"),
            "{about}"
        );
        assert_eq!(can_reuse, reusable, "{about}");
    }
}

#[test]
fn a_response_head_is_written_as_given() {
    let headers = map(&[
        ("set-cookie", "a"),
        ("set-cookie", "b"),
        ("content-length", "77"),
        ("transfer-encoding", "gzip"),
        ("connection", "x"),
        ("keep-alive", "timeout=1"),
        ("proxy-connection", "close"),
        ("te", "x"),
        ("trailer", "x"),
        ("upgrade", "x"),
        ("etag", "\"e\""),
        ("x", ""),
    ]);
    let head = Response {
        status: StatusCode::NOT_FOUND,
        reason: Some(b"Gone fishing"),
        headers: &headers,
        body: BodyLength::Known(5),
    };
    let (text, _) = respond(server("GET / HTTP/1.1", ""), &head);
    assert_eq!(
        text,
        "HTTP/1.1 404 Gone fishing\r\nSet-Cookie: a\r\nSet-Cookie: b\r\nETag: \"e\"\r\n\
         x: \r\nContent-Length: 5\r\n\r\nhello"
    );
}

#[test]
fn status_lines_have_a_reason_or_none() {
    for (status, reason, expected) in [
        (200, None, "HTTP/1.1 200 OK"),
        (431, None, "HTTP/1.1 431 Request Header Fields Too Large"),
        (299, None, "HTTP/1.1 299 "),
        (999, None, "HTTP/1.1 999 "),
        (200, Some("Fine"), "HTTP/1.1 200 Fine"),
        (299, Some(""), "HTTP/1.1 299 "),
        (404, Some("a\r\nX: y"), "HTTP/1.1 404 Not Found"),
        (299, Some("a\nb"), "HTTP/1.1 299 "),
    ] {
        let headers = Fields::new();
        let reason = reason.map(str::as_bytes);
        let head = Response {
            reason,
            ..response(status, &headers, BodyLength::Known(5))
        };
        let (text, _) = respond(server("GET / HTTP/1.1", ""), &head);
        assert_eq!(text.lines().next(), Some(expected));
    }
}

#[test]
fn a_response_that_cannot_be_sent_writes_nothing() {
    let headers = Fields::new();
    let good = response(200, &headers, BodyLength::Known(0));
    let mut server = server("GET / HTTP/1.1", "");
    let mut out = BytesMut::new();
    let interim = response(103, &headers, BodyLength::Known(0));
    assert_eq!(
        server.send_head(&interim, &mut out),
        Err(ResponseError::InterimStatus)
    );
    assert_eq!(server.send_end(&mut out), Err(BodyError::OutOfTurn));
    assert!(out.is_empty());
    server.send_head(&good, &mut out).unwrap();
    let written = out.len();
    assert_eq!(
        server.send_head(&good, &mut out),
        Err(ResponseError::OutOfTurn)
    );
    assert_eq!(out.len(), written);
}

#[test]
fn interim_responses_are_for_those_who_understand_them() {
    let links = map(&[("link", "</a>"), ("connection", "x")]);
    let expecting = "Expect: 100-continue\r\nContent-Length: 5\r\n";
    let hints = "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n";
    let go_on = "HTTP/1.1 100 Continue\r\n\r\n";
    for (line, fields, expected) in [
        ("POST / HTTP/1.1", expecting, format!("{go_on}{hints}")),
        ("POST / HTTP/1.1", "Content-Length: 5\r\n", hints.to_owned()),
        ("POST / HTTP/1.0", expecting, String::new()),
    ] {
        let mut server = server(line, fields);
        let mut out = BytesMut::new();
        server.send_continue(&mut out);
        server.send_continue(&mut out);
        server.send_interim(StatusCode::EARLY_HINTS, &links, &mut out);
        server.send_interim(StatusCode::SWITCHING_PROTOCOLS, &links, &mut out);
        server.send_interim(StatusCode::OK, &links, &mut out);
        assert_eq!(out, expected.as_bytes(), "{line} {fields}");
        out.clear();
        server
            .send_head(&response(200, &links, BodyLength::Known(0)), &mut out)
            .unwrap();
        out.clear();
        server.send_continue(&mut out);
        server.send_interim(StatusCode::EARLY_HINTS, &links, &mut out);
        assert!(out.is_empty(), "nothing interim after the final head");
    }
}

fn request<'a>(method: &'a Method, headers: &'a Fields, body: BodyLength) -> Request<'a> {
    Request {
        method,
        path: b"/p",
        query: None,
        host: b"a:81",
        headers,
        body,
    }
}

#[test]
fn a_request_head_is_written_as_given() {
    let headers = map(&[
        ("cookie", "a"),
        ("host", "b"),
        ("content-length", "77"),
        ("transfer-encoding", "gzip"),
        ("connection", "x"),
        ("keep-alive", "timeout=1"),
        ("proxy-connection", "close"),
        ("te", "x"),
        ("trailer", "x"),
        ("upgrade", "h2c"),
        ("http2-settings", "x"),
        ("expect", "100-continue"),
        ("accept", "*/*"),
        ("x-forwarded-for", "::1"),
    ]);
    let method = Method::from_bytes(b"FOO").unwrap();
    let request = Request {
        query: Some(b"q?=%20"),
        ..request(&method, &headers, BodyLength::Unknown)
    };
    let mut client = Client::new(Limits::response());
    let mut out = BytesMut::new();
    client.send_request(&request, &mut out).unwrap();
    client.send_data(b"0123456789abcdef", &mut out);
    assert_eq!(client.begin_data(2, &mut out), 2);
    out.extend_from_slice(b"gh");
    client.finish_data(&mut out);
    client.finish_body(&mut out).unwrap();
    assert_eq!(
        String::from_utf8(out.to_vec()).unwrap(),
        "FOO /p?q?=%20 HTTP/1.1\r\nHost: a:81\r\nCookie: a\r\nAccept: */*\r\n\
         X-Forwarded-For: ::1\r\nTransfer-Encoding: chunked\r\n\r\n\
         10\r\n0123456789abcdef\r\n2\r\ngh\r\n0\r\n\r\n"
    );
}

#[test]
fn names_of_the_table_are_written_as_rfcs_have_them() {
    let headers = map(&[("accept", "*/*"), ("X-Own", "1"), ("VIA", "1.1 a")]);
    let request = request(&Method::GET, &headers, BodyLength::Known(0));
    let mut out = BytesMut::new();
    let sent = Client::new(Limits::response()).send_request(&request, &mut out);
    sent.unwrap();
    assert_eq!(
        out,
        "GET /p HTTP/1.1\r\nHost: a:81\r\nAccept: */*\r\nX-Own: 1\r\nVia: 1.1 a\r\n\r\n"
    );
}

/// Row 73: a method that usually has a body says that it has none.
#[test]
fn an_empty_request_body_is_announced_where_one_is_usual() {
    let headers = Fields::new();
    for (method, announced) in [
        (Method::GET, false),
        (Method::HEAD, false),
        (Method::OPTIONS, false),
        (Method::TRACE, false),
        (Method::DELETE, false),
        (Method::POST, true),
        (Method::PUT, true),
        (Method::PATCH, true),
        (Method::from_bytes(b"FOO").unwrap(), true),
    ] {
        let mut out = BytesMut::new();
        let request = request(&method, &headers, BodyLength::Known(0));
        Client::new(Limits::response())
            .send_request(&request, &mut out)
            .unwrap();
        let length = if announced {
            "Content-Length: 0\r\n"
        } else {
            ""
        };
        assert_eq!(
            out,
            format!("{method} /p HTTP/1.1\r\nHost: a:81\r\n{length}\r\n").as_bytes()
        );
    }
}

#[test]
fn a_request_that_cannot_be_sent_writes_nothing() {
    let headers = Fields::new();
    let good = request(&Method::GET, &headers, BodyLength::Known(0));
    let mut client = Client::new(Limits::response());
    let mut out = BytesMut::new();
    let mut refused = |request: &Request<'_>, error| {
        assert_eq!(
            client.send_request(request, &mut out),
            Err(error),
            "{request:?}"
        );
        assert!(out.is_empty());
    };
    for path in [
        "", "p", "*", "/ ", "/\r\n", "/?", "/#", "/%", "/%4", "/\u{e9}", "/\"", "/\\",
    ] {
        refused(
            &Request {
                path: path.as_bytes(),
                ..good
            },
            RequestError::Target,
        );
    }
    for query in [" ", "\n", "#", "\x7f", "\u{e9}"] {
        refused(
            &Request {
                query: Some(query.as_bytes()),
                ..good
            },
            RequestError::Target,
        );
    }
    for host in ["", "a b", "a\r\n", "a/", "u@a", "\u{e9}"] {
        refused(
            &Request {
                host: host.as_bytes(),
                ..good
            },
            RequestError::Host,
        );
    }
    refused(
        &Request {
            method: &Method::CONNECT,
            ..good
        },
        RequestError::Connect,
    );
    client.send_request(&good, &mut out).unwrap();
    let written = out.len();
    assert_eq!(
        client.send_request(&good, &mut out),
        Err(RequestError::OutOfTurn)
    );
    assert_eq!(out.len(), written);
}

#[test]
fn a_body_must_be_what_its_head_announced() {
    let headers = Fields::new();
    for (offered, written, end) in [
        (&["hel", "lo"][..], "hello", Ok(())),
        (&["hel"], "hel", Err(BodyError::Short { missing: 2 })),
        (&[], "", Err(BodyError::Short { missing: 5 })),
        (&["hello!"], "hello", Err(BodyError::Long)),
        (&["hello", "!"], "hello", Err(BodyError::Long)),
    ] {
        let mut server = server("GET / HTTP/1.1", "");
        let mut client = Client::new(Limits::response());
        let mut out = BytesMut::new();
        server
            .send_head(&response(200, &headers, BodyLength::Known(5)), &mut out)
            .unwrap();
        client
            .send_request(
                &request(&Method::POST, &headers, BodyLength::Known(5)),
                &mut out,
            )
            .unwrap();
        let (mut response, mut request) = (BytesMut::new(), BytesMut::new());
        for data in offered {
            server.send_data(data.as_bytes(), &mut response);
            client.send_data(data.as_bytes(), &mut request);
        }
        assert_eq!(server.send_end(&mut response), end);
        assert_eq!(client.finish_body(&mut request), end);
        assert_eq!(client.finish_body(&mut request), end, "asked again");
        assert_eq!(
            (&response[..], &request[..]),
            (written.as_bytes(), written.as_bytes())
        );
        assert_eq!(server.can_reuse(), end.is_ok());
    }
}

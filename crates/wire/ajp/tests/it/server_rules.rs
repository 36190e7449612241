//! What the server role promises a container beyond refusing bad input. Several tests play what
//! Tomcat's own AJP test client sends and expects.

use bytes::{Bytes, BytesMut};
use catamaran_ajp::{
    BodyLength, End, PacketSize, RequestHead, Response, ResponseError, Server, ServerConfig,
    ServerEvent,
};
use catamaran_message::Fields;
use catamaran_message::name::{CONTENT_LENGTH, DATE, TRANSFER_ENCODING};
use http::StatusCode;

use crate::raw::{self, attribute, coded, data, field, get, post, text, to_container};

/// A server with its buffers.
struct Conn {
    server: Server,
    input: BytesMut,
    out: BytesMut,
}

impl Conn {
    fn new() -> Self {
        Self::with(ServerConfig::default())
    }

    fn with(config: ServerConfig) -> Self {
        let (input, out) = (BytesMut::new(), BytesMut::new());
        Self {
            server: Server::new(config),
            input,
            out,
        }
    }

    /// A connection that has received `request`.
    fn after(request: &raw::Forward) -> Self {
        let mut conn = Self::new();
        conn.request(request);
        conn
    }

    fn request(&mut self, request: &raw::Forward) -> Box<RequestHead> {
        match self.feed(&request.packet()) {
            Some(ServerEvent::Request(head)) => head,
            other => panic!("{other:?}"),
        }
    }

    fn feed(&mut self, bytes: &[u8]) -> Option<ServerEvent> {
        self.input.extend_from_slice(bytes);
        self.next()
    }

    fn next(&mut self) -> Option<ServerEvent> {
        self.server.receive(&mut self.input, &mut self.out).unwrap()
    }

    fn body(&mut self) -> Bytes {
        match self.next() {
            Some(ServerEvent::Body(body)) => body,
            other => panic!("{other:?}"),
        }
    }

    fn is_at_body_end(&mut self) -> bool {
        matches!(self.next(), Some(ServerEvent::BodyEnd))
    }

    fn want_body(&mut self) {
        self.server.want_body(&mut self.out);
    }

    fn head(&mut self, status: u16, headers: &Fields) {
        let head = response(status, headers);
        self.server.send_head(&head, &mut self.out).unwrap();
    }

    fn data(&mut self, bytes: &[u8]) {
        self.server.send_data(bytes, &mut self.out);
    }

    fn end(&mut self) -> End {
        self.server.send_end(&self.input, &mut self.out)
    }

    /// What was written since the last call.
    fn written(&mut self) -> BytesMut {
        self.out.split()
    }
}

fn length(length: u64) -> Fields {
    Fields::from_iter([(CONTENT_LENGTH, length.to_string())])
}

/// A head with these fields, of which Content-Length says how long the body is.
fn response(status: u16, headers: &Fields) -> Response<'_> {
    let length = headers.text_of(CONTENT_LENGTH);
    Response {
        status: StatusCode::from_u16(status).unwrap(),
        reason: None,
        headers,
        body: length.map_or(BodyLength::Unknown, |length| {
            BodyLength::Known(length.parse().unwrap())
        }),
    }
}

fn no_fields() -> Fields {
    Fields::new()
}

#[test]
fn a_body_is_asked_for_when_it_is_wanted_and_once() {
    let mut conn = Conn::after(&get().method(4));
    assert!(!conn.server.expects_input() && conn.next().is_none());
    conn.want_body();
    conn.want_body();
    assert_eq!(conn.written(), raw::get_body_chunk(8186));
    assert!(conn.server.expects_input());
    conn.input.extend_from_slice(&data(b"hello"));
    assert_eq!(conn.body(), "hello");
    conn.want_body();
    assert_eq!(conn.written(), raw::get_body_chunk(8186));
    conn.input.extend_from_slice(&data(b""));
    assert!(conn.is_at_body_end());
    conn.want_body();
    assert_eq!(conn.written(), b""[..]);
}

#[test]
fn a_known_length_is_asked_for_as_far_as_it_goes() {
    let mut conn = Conn::after(&post(10_000));
    conn.want_body();
    assert_eq!(conn.written(), b""[..], "the first packet comes unasked");
    conn.input.extend_from_slice(&data(&[b'x'; 1000]));
    assert_eq!(conn.body().len(), 1000);
    conn.want_body();
    assert_eq!(conn.written(), raw::get_body_chunk(8186));
    conn.input.extend_from_slice(&data(&[b'x'; 8186]));
    assert_eq!(conn.body().len(), 8186);
    conn.want_body();
    assert_eq!(conn.written(), raw::get_body_chunk(814));
    conn.input.extend_from_slice(&data(&[b'x'; 814]));
    assert_eq!(conn.body().len(), 814);
    assert!(conn.is_at_body_end());
    conn.want_body();
    assert_eq!(conn.written(), b""[..]);
}

/// CVE-2014-0095, and Tomcat's testZeroLengthRequestBody: nobody waits for nothing.
#[test]
fn packets_ahead_are_asked_for_only_where_they_are_needed() {
    let ahead = |request: &raw::Forward| {
        let mut conn = Conn::with(ServerConfig {
            body_ahead: 2,
            ..ServerConfig::default()
        });
        conn.request(request);
        conn
    };
    let mut conn = ahead(&post(3 * 8186 + 5));
    conn.want_body();
    conn.want_body();
    let asked = [raw::get_body_chunk(8186), raw::get_body_chunk(8186)].concat();
    assert_eq!(conn.written(), asked[..], "the first comes unasked");
    conn.input.extend_from_slice(&data(&[b'x'; 8186]));
    assert_eq!(conn.body().len(), 8186);
    conn.want_body();
    assert_eq!(conn.written(), raw::get_body_chunk(5));
    // Short packets leave a rest to be asked for.
    for _ in 0..3 {
        conn.input.extend_from_slice(&data(b"short"));
        assert_eq!(conn.body(), "short");
    }
    conn.want_body();
    let asked = [raw::get_body_chunk(8186), raw::get_body_chunk(8176)].concat();
    assert_eq!(conn.written(), asked[..]);

    let mut unknown = ahead(&get().method(4));
    unknown.want_body();
    assert_eq!(unknown.written(), raw::get_body_chunk(8186));
}

#[test]
fn an_early_end_waits_for_all_that_was_asked_ahead() {
    let mut conn = Conn::with(ServerConfig {
        body_ahead: 2,
        ..ServerConfig::default()
    });
    conn.request(&post(100_000));
    conn.want_body();
    conn.head(200, &length(0));
    for _ in 0..3 {
        assert_eq!(conn.end(), End::Owed);
        conn.input.extend_from_slice(&data(b"unread"));
        assert!(conn.is_at_body_end());
    }
    assert_eq!(conn.end(), End::Reuse);
}

#[test]
fn a_body_of_length_zero_is_not_waited_for() {
    let mut conn = Conn::new();
    assert_eq!(conn.request(&post(0)).body, BodyLength::Known(0));
    conn.want_body();
    assert!(conn.next().is_none());
    conn.head(200, &no_fields());
    assert_eq!(conn.end(), End::Reuse);
    assert_eq!(
        conn.written(),
        [raw::send_headers(200, &[]), raw::end_response(1)].concat()
    );
}

#[test]
fn both_forms_of_the_end_are_taken_and_slack_with_them() {
    for end in [
        to_container(&[]),
        to_container(&[0, 0]),
        to_container(&[0, 0, 0, 0, 0, 0xFF]),
    ] {
        let mut conn = Conn::after(&get().method(4));
        conn.want_body();
        conn.input.extend_from_slice(&end);
        assert!(conn.is_at_body_end(), "{end:x?}");
    }
}

/// CVE-2005-3164: bytes of an earlier request never stand in for a body that did not come.
#[test]
fn a_bare_body_has_no_count_and_ends_with_its_length() {
    let mut conn = Conn::with(ServerConfig {
        bare_body: true,
        ..ServerConfig::default()
    });
    conn.request(&post(7));
    // Read as a count, the first two bytes would be far too many.
    conn.input
        .extend_from_slice(&[to_container(b"zzzz"), to_container(b"zzz")].concat());
    assert_eq!(conn.body(), b"zzzz"[..]);
    conn.server.want_body(&mut conn.out);
    assert_eq!(conn.body(), b"zzz"[..]);
    assert!(matches!(conn.next(), Some(ServerEvent::BodyEnd)));
}

#[test]
fn a_body_that_does_not_come_is_a_fault() {
    let mut conn = Conn::after(&post(5));
    conn.input.extend_from_slice(&data(b"hello"));
    assert_eq!(conn.body(), "hello");
    conn.head(200, &no_fields());
    assert_eq!(conn.end(), End::Reuse);
    conn.request(&post(100));
    conn.input.extend_from_slice(&data(b""));
    let fault = conn
        .server
        .receive(&mut conn.input, &mut conn.out)
        .unwrap_err();
    assert_eq!(fault.token(), "ajp-request-body-too-short");
}

#[test]
fn an_early_end_waits_for_the_owed_packet_alone() {
    let mut conn = Conn::after(&post(20_000));
    conn.head(413, &no_fields());
    assert_eq!(
        conn.written(),
        raw::send_headers_of(413, &text("Payload Too Large"), 0, &[])
    );
    assert_eq!(conn.end(), End::Owed);
    assert_eq!(conn.written(), b""[..], "the end is withheld");
    assert!(conn.server.expects_input() && !conn.server.is_idle());
    assert_eq!(conn.end(), End::Owed);
    assert!(conn.next().is_none());
    conn.input.extend_from_slice(&data(&[2; 8186]));
    assert!(conn.is_at_body_end());
    assert_eq!(conn.end(), End::Reuse);
    assert_eq!(conn.written(), raw::end_response(1));
    conn.request(&get());
}

#[test]
fn an_early_end_waits_for_what_was_asked() {
    let mut conn = Conn::after(&get().method(4));
    conn.want_body();
    conn.head(200, &no_fields());
    assert_eq!(conn.end(), End::Owed);
    conn.input.extend_from_slice(&data(b""));
    assert!(conn.is_at_body_end());
    assert_eq!(conn.end(), End::Reuse);
}

#[test]
fn an_owed_packet_that_never_comes_closes_the_connection() {
    let mut conn = Conn::after(&post(5));
    conn.head(200, &no_fields());
    assert_eq!(conn.end(), End::Owed);
    conn.written();
    conn.server.send_end_now(&mut conn.out);
    assert_eq!(conn.written(), raw::end_response(0));
    assert!(!conn.server.expects_input() && !conn.server.is_idle());
}

#[test]
fn bytes_sent_ahead_of_time_are_never_a_request() {
    for ahead in [
        get().packet(),
        data(b"x"),
        b"\x12".to_vec(),
        to_container(&[0x0A]),
    ] {
        let mut conn = Conn::after(&get());
        conn.input.extend_from_slice(&ahead);
        assert!(conn.next().is_none());
        conn.head(200, &no_fields());
        assert_eq!(conn.end(), End::Close, "{ahead:x?}");
        assert!(conn.written().ends_with(&raw::end_response(0)));
        assert!(conn.next().is_none(), "nothing more is read");
    }
}

/// CVE-2022-26377: what a faulty web server sends unasked may come after the response as well.
#[test]
fn a_chunked_body_that_was_not_read_closes_the_connection() {
    let chunked = get().method(4).field(field("Transfer-Encoding", "chunked"));
    let mut unread = Conn::new();
    assert!(unread.request(&chunked).is_chunked);
    unread.head(403, &no_fields());
    assert_eq!(unread.end(), End::Close);

    let mut half_read = Conn::after(&chunked);
    half_read.want_body();
    half_read.input.extend_from_slice(&data(b"hello"));
    assert_eq!(half_read.body(), "hello");
    half_read.head(200, &no_fields());
    assert_eq!(half_read.end(), End::Close);

    let mut read = Conn::after(&chunked);
    read.want_body();
    read.input.extend_from_slice(&data(b""));
    assert!(read.is_at_body_end());
    read.head(200, &no_fields());
    assert_eq!(read.end(), End::Reuse);
    assert!(!read.request(&get().method(4)).is_chunked);
    read.head(200, &no_fields());
    assert_eq!(read.end(), End::Reuse, "it concerns its own exchange only");
}

/// lighttpd sends an empty packet behind a request without body.
#[test]
fn one_stray_empty_packet_is_overlooked() {
    for stray in [to_container(&[]), to_container(&[0, 0])] {
        let mut before_the_end = Conn::after(&post(0));
        before_the_end.input.extend_from_slice(&stray);
        assert!(before_the_end.next().is_none());
        before_the_end.head(200, &no_fields());
        assert_eq!(before_the_end.end(), End::Reuse);
        before_the_end.request(&get());

        let mut behind_the_end = Conn::after(&post(0));
        behind_the_end.head(200, &no_fields());
        assert_eq!(behind_the_end.end(), End::Reuse);
        assert!(behind_the_end.feed(&stray).is_none() && behind_the_end.server.is_idle());
        behind_the_end.input.extend_from_slice(&stray);
        let Conn { server, input, out } = &mut behind_the_end;
        assert!(server.receive(input, out).is_err(), "one, not two");
    }
    let mut two = Conn::after(&post(0));
    two.input.extend_from_slice(&to_container(&[]).repeat(2));
    two.head(200, &no_fields());
    assert_eq!(two.end(), End::Close);
}

/// Tomcat's testKeepAlive, with the CPING of its client, which has a tail.
#[test]
fn a_connection_serves_pings_and_requests_in_turn() {
    let mut conn = Conn::new();
    for _ in 0..3 {
        assert!(conn.feed(&to_container(b"\x0A\0\0\xFF")).is_none());
        assert_eq!(conn.written(), raw::to_web_server(&[9]));
        conn.request(&get());
        conn.head(200, &no_fields());
        assert_eq!(conn.end(), End::Reuse);
        conn.written();
        assert!(conn.server.is_idle());
    }
}

#[test]
fn a_started_request_is_not_idle() {
    let mut conn = Conn::new();
    assert!(conn.server.is_idle() && conn.server.receive_eof().is_ok());
    let packet = get().packet();
    conn.feed(&packet[..1]);
    assert!(!conn.server.is_idle() && conn.server.receive_eof().is_err());
    assert!(conn.feed(&packet[1..]).is_some());
}

/// S22 where the packet has room for it: such a length is neither a code nor a name.
#[test]
fn a_name_length_beyond_the_codes_is_refused() {
    let packet_size = PacketSize::MAX;
    let mut conn = Conn::with(ServerConfig {
        packet_size,
        ..ServerConfig::default()
    });
    conn.input
        .extend_from_slice(&get().field(field("n".repeat(0xA100), "v")).packet());
    let fault = conn
        .server
        .receive(&mut conn.input, &mut conn.out)
        .unwrap_err();
    assert_eq!(fault.token(), "ajp-malformed-request");
}

/// CVE-2023-34981 and Tomcat's testNoHeaders.
#[test]
fn a_response_without_fields_still_has_a_head() {
    let mut conn = Conn::after(&get());
    conn.head(200, &no_fields());
    conn.server.send_flush(&mut conn.out);
    assert_eq!(conn.end(), End::Reuse);
    let expected = [
        raw::send_headers(200, &[]),
        raw::chunk(b""),
        raw::end_response(1),
    ];
    assert_eq!(conn.written(), expected.concat());
}

#[test]
fn an_end_without_a_head_becomes_a_500() {
    let mut conn = Conn::after(&get());
    assert_eq!(conn.end(), End::Close);
    let head = raw::send_headers_of(500, &text("Internal Server Error"), 1, &coded(3, "0"));
    assert_eq!(conn.written(), [head, raw::end_response(0)].concat());
}

/// Tomcat's test304WithBody, and its kin.
#[test]
fn what_must_not_have_a_body_gets_none() {
    let head_request = get().method(3);
    for (request, status) in [
        (&get(), 304),
        (&get(), 204),
        (&get(), 205),
        (&head_request, 200),
    ] {
        let mut conn = Conn::after(request);
        conn.head(status, &no_fields());
        assert_eq!(conn.server.chunk_room(), 0);
        let head = conn.written();
        assert_eq!(head[4], 4);
        conn.data(b"body");
        conn.server.send_flush(&mut conn.out);
        assert_eq!(conn.end(), End::Reuse);
        assert_eq!(conn.written(), raw::end_response(1), "{status}");
    }
    let mut conn = Conn::after(&get().method(3));
    conn.head(200, &length(4));
    conn.data(b"body");
    assert_eq!(conn.end(), End::Reuse, "the length of a HEAD is not owed");
}

#[test]
fn a_response_keeps_to_its_length() {
    let mut exact = Conn::after(&get());
    exact.head(200, &length(4));
    exact.data(b"bo");
    assert_eq!(exact.server.chunk_room(), 2);
    exact.data(b"dy");
    assert_eq!(exact.end(), End::Reuse);

    let mut short = Conn::after(&get());
    short.head(200, &length(4));
    short.data(b"bod");
    short.written();
    assert_eq!(short.end(), End::Close);
    assert_eq!(short.written(), raw::end_response(0));

    let mut long = Conn::after(&get());
    long.head(200, &length(4));
    long.written();
    long.data(b"body, and more");
    assert_eq!(long.end(), End::Close);
    assert_eq!(
        long.written(),
        [raw::chunk(b"body"), raw::end_response(0)].concat()
    );
}

#[test]
fn data_is_cut_into_chunks_that_fit() {
    let mut conn = Conn::after(&get());
    conn.head(200, &no_fields());
    conn.written();
    assert_eq!(conn.server.chunk_room(), 8184);
    conn.data(&[b'x'; 8185]);
    assert_eq!(
        conn.written(),
        [raw::chunk(&[b'x'; 8184]), raw::chunk(b"x")].concat()
    );
    conn.server.begin_chunk(3, &mut conn.out);
    conn.out.extend_from_slice(b"abc");
    conn.server.finish_chunk(&mut conn.out);
    assert_eq!(conn.written(), raw::chunk(b"abc"));
}

/// Tomcat's testLargeResponse: one chunk if the packet size allows.
#[test]
fn a_larger_packet_size_takes_larger_chunks() {
    let packet_size = PacketSize::new(16_000).unwrap();
    let mut conn = Conn::with(ServerConfig {
        packet_size,
        ..ServerConfig::default()
    });
    conn.request(&get());
    conn.head(200, &no_fields());
    conn.written();
    conn.data(&[b'X'; 15_000]);
    assert_eq!(conn.written(), raw::chunk(&[b'X'; 15_000]));
}

#[test]
fn a_head_that_cannot_be_sent_leaves_room_for_another() {
    let mut conn = Conn::after(&get());
    let too_large = Fields::from_iter([("a", "v".repeat(9000))]);
    let Conn { server, out, .. } = &mut conn;
    let mut send = |head: &Response<'_>| server.send_head(head, out);
    assert!(matches!(
        send(&response(200, &too_large)),
        Err(ResponseError::HeadTooLarge { max: 8188, .. })
    ));
    let none = Fields::new();
    let split = Response {
        reason: Some(b"a\r\nb"),
        ..response(200, &none)
    };
    let endless = Response {
        body: BodyLength::Known(1 << 63),
        ..response(200, &none)
    };
    for (head, error) in [
        (split, ResponseError::Reason),
        (response(103, &none), ResponseError::Interim),
        (endless, ResponseError::ContentLength),
    ] {
        assert_eq!(send(&head), Err(error));
    }
    assert_eq!(*out, b""[..]);
    conn.head(500, &no_fields());
    let Conn { server, out, .. } = &mut conn;
    assert_eq!(
        server.send_head(&response(200, &none), out),
        Err(ResponseError::NotDue)
    );
    assert_eq!(conn.end(), End::Reuse);
}

#[test]
fn fields_of_one_connection_do_not_travel() {
    let hop = [
        "Connection",
        "Keep-Alive",
        "Proxy-Connection",
        "TE",
        "Trailer",
        "Upgrade",
    ];
    let mut request = get();
    let mut headers = Fields::new();
    for name in hop {
        request = request.field(field(name, "x"));
        headers.insert(name, "x");
    }
    headers.insert(TRANSFER_ENCODING, "chunked");
    headers.insert("x-end", "y");
    let mut conn = Conn::new();
    let head = conn.request(&request);
    assert_eq!(head.headers.len(), 1, "{:?}", head.headers);
    conn.head(200, &headers);
    assert_eq!(
        conn.written(),
        raw::send_headers(200, &[field("x-end", "y")])
    );
}

#[test]
fn the_length_is_that_of_the_body_behind_the_other_fields() {
    let mut conn = Conn::after(&get());
    let mut headers = length(9);
    headers.insert("x-own", "1");
    headers.insert(DATE, "now");
    let head = Response {
        body: BodyLength::Known(4),
        ..response(200, &headers)
    };
    conn.server.send_head(&head, &mut conn.out).unwrap();
    assert_eq!(
        conn.written(),
        raw::send_headers(200, &[field("x-own", "1"), coded(4, "now"), coded(3, "4")])
    );
}

#[test]
fn a_refusal_is_one_head_and_one_end() {
    let mut conn = Conn::after(&post(5));
    conn.server.refuse(StatusCode::FORBIDDEN, &mut conn.out);
    let head = raw::send_headers_of(403, &text("Forbidden"), 1, &coded(3, "0"));
    assert_eq!(conn.written(), [head, raw::end_response(0)].concat());
    conn.server.refuse(StatusCode::FORBIDDEN, &mut conn.out);
    conn.server.send_end_now(&mut conn.out);
    assert_eq!(conn.end(), End::Close);
    assert_eq!(conn.written(), b""[..]);
}

#[test]
fn a_connection_can_be_made_to_close() {
    let mut conn = Conn::after(&get());
    conn.server.close_after();
    conn.head(200, &no_fields());
    conn.written();
    assert_eq!(conn.end(), End::Close);
    assert_eq!(conn.written(), raw::end_response(0));
}

#[test]
fn the_last_of_repeated_attributes_counts_and_named_ones_all_do() {
    let request = get()
        .attribute(attribute(3, "ann"))
        .attribute(attribute(3, "bob"))
        .attribute(raw::named("a", "1"))
        .attribute(raw::named("a", "2"))
        .attribute(vec![0x0B, 0, 128])
        .attribute(attribute(0x0B, "256"))
        .attribute(attribute(0x0C, "s3cret"));
    let attributes = Conn::new().request(&request).attributes;
    assert_eq!(attributes.remote_user.as_deref(), Some(&b"bob"[..]));
    assert_eq!(attributes.ssl.as_ref().unwrap().key_size, Some(256));
    assert_eq!(attributes.other.len(), 2);
    assert_eq!(attributes.secret.as_deref(), Some(&b"s3cret"[..]));
    assert!(!format!("{attributes:?}").contains("s3cret"));
}

//! Plays both roles against each other: each must receive what the other sent, wherever the stream is cut.

use bytes::BytesMut;
use catamaran_http1::{
    Authority, BodyLength, Client, ClientEvent, Limits, Request, Response, Server, ServerEvent,
};
use catamaran_message::Fields;
use http::{Method, StatusCode};

use super::NO_BODY;
use super::feed::SeenRequest;

/// Plays the exchanges that `data` describes.
pub(crate) fn play(data: &[u8]) {
    let mut script = Script(data);
    let mut client = Client::new(Limits::response());
    let mut server = Server::new(Limits::request());
    for _ in 0..=script.below(3) {
        let plan = Plan::draw(&mut script);
        let upward = plan.write_request(&mut client);
        let (request, downward) = plan.serve(&mut server, &upward, &mut script);
        plan.check_request(&request);
        plan.check_response(&mut client, &downward, &mut script);
        assert!(client.can_reuse() && server.can_reuse());
    }
    assert_eq!(server.receive_eof(&BytesMut::new()), Ok(()));
    assert_eq!(client.receive_eof(), Ok(None));
}

/// One exchange to play.
struct Plan {
    method: Method,
    request_body: Vec<u8>,
    request_length: BodyLength,
    status: StatusCode,
    response_body: Vec<u8>,
    response_length: BodyLength,
    /// Bodies are handed over in pieces of this size.
    piece: usize,
    interim: bool,
    /// Whether the server answers as soon as it has the head.
    early: bool,
}

impl Plan {
    fn draw(script: &mut Script<'_>) -> Self {
        let methods = [Method::GET, Method::HEAD, Method::POST, Method::OPTIONS];
        let statuses = [200, 204, 304, 404, 599].map(|code| StatusCode::from_u16(code).unwrap());
        let (request_body, request_length) = script.body();
        let (response_body, response_length) = script.body();
        Self {
            method: methods[script.below(methods.len())].clone(),
            request_body,
            request_length,
            status: statuses[script.below(statuses.len())],
            response_body,
            response_length,
            piece: 1 + script.below(40),
            interim: script.below(2) == 1,
            early: script.below(2) == 1,
        }
    }

    fn write_request(&self, client: &mut Client) -> BytesMut {
        let mut out = BytesMut::new();
        let request = Request {
            method: &self.method,
            path: b"/a",
            query: Some(b"b"),
            host: b"c:80",
            headers: &Fields::new(),
            body: self.request_length,
        };
        client
            .send_request(&request, &mut out)
            .expect("an idle client sends");
        for piece in self.request_body.chunks(self.piece) {
            client.send_data(piece, &mut out);
        }
        client
            .finish_body(&mut out)
            .expect("the body is as announced");
        out
    }

    fn write_response(&self, server: &mut Server, out: &mut BytesMut) {
        if self.interim {
            server.send_interim(StatusCode::EARLY_HINTS, &Fields::new(), out);
        }
        let head = Response {
            status: self.status,
            reason: None,
            headers: &Fields::from_iter([("x", "z")]),
            body: self.response_length,
        };
        server
            .send_head(&head, out)
            .expect("it is the server's turn");
        for piece in self.response_body.chunks(self.piece) {
            let allowed = server.begin_data(piece.len(), out);
            out.extend_from_slice(&piece[..allowed]);
            server.finish_data(out);
        }
        server.send_end(out).expect("the body is as announced");
    }

    /// Gives the client's bytes to the server, which answers at the head or after the body. Returns the request and the
    /// bytes of the response.
    fn serve(
        &self,
        server: &mut Server,
        bytes: &[u8],
        script: &mut Script<'_>,
    ) -> (SeenRequest, BytesMut) {
        let mut input = BytesMut::new();
        let mut out = BytesMut::new();
        let mut seen = None::<SeenRequest>;
        for piece in script.pieces(bytes) {
            input.extend_from_slice(piece);
            while let Some(event) = server.receive(&mut input).expect("our client is correct") {
                match (event, &mut seen) {
                    (ServerEvent::Head(head), None) => {
                        let complete = head.body == NO_BODY;
                        seen = Some(SeenRequest {
                            head: *head,
                            keep_alive: !server.is_last(),
                            body: Vec::new(),
                            complete,
                        });
                        if self.early {
                            self.write_response(server, &mut out);
                        }
                    }
                    (ServerEvent::Body(data), Some(seen)) => seen.body.extend_from_slice(&data),
                    (ServerEvent::BodyEnd, Some(seen)) => seen.complete = true,
                    (event, seen) => panic!("{event:?} after {seen:?}"),
                }
            }
        }
        assert!(input.is_empty());
        if !self.early {
            self.write_response(server, &mut out);
        }
        (seen.expect("a request"), out)
    }

    fn check_request(&self, seen: &SeenRequest) {
        assert!(seen.complete);
        assert_eq!(seen.head.method, self.method);
        assert_eq!(seen.head.target.path, "/a");
        assert_eq!(seen.head.target.query.as_deref(), Some(&b"b"[..]));
        let authority = Authority {
            host: "c".into(),
            port: Some(80),
        };
        assert_eq!(seen.head.authority, Some(authority));
        assert_eq!(seen.head.body, self.request_length);
        assert_eq!(seen.body, self.request_body);
        assert!(seen.keep_alive);
    }

    fn check_response(&self, client: &mut Client, bytes: &[u8], script: &mut Script<'_>) {
        let mut input = BytesMut::new();
        let mut interim = 0;
        let mut head = None;
        let mut body = Vec::new();
        let mut ended = false;
        for piece in script.pieces(bytes) {
            input.extend_from_slice(piece);
            while let Some(event) = client.receive(&mut input).expect("our server is correct") {
                match event {
                    ClientEvent::Interim(_) => interim += 1,
                    ClientEvent::Upgraded(_) => panic!("nothing asked for it"),
                    ClientEvent::Head(received) => head = Some(received),
                    ClientEvent::Body(data) => body.extend_from_slice(&data),
                    ClientEvent::End => ended = true,
                }
            }
        }
        assert!(ended && input.is_empty());
        assert_eq!(interim, usize::from(self.interim));
        let head = head.expect("a final response");
        assert_eq!(head.status, self.status);
        assert_eq!(head.headers.text_of("x"), Some("z"));
        let has_no_body = self.method == Method::HEAD || [204, 304].contains(&self.status.as_u16());
        let expected_body = if has_no_body {
            &[]
        } else {
            &self.response_body[..]
        };
        assert_eq!(body, expected_body);
        let announced = match self.response_length {
            BodyLength::Known(length) if self.status != StatusCode::NO_CONTENT => Some(length),
            _ => None,
        };
        assert_eq!(head.content_length, announced);
    }
}

/// Choices read from bytes; zeros once they are used up.
struct Script<'a>(&'a [u8]);

impl Script<'_> {
    fn below(&mut self, end: usize) -> usize {
        let (byte, rest) = self.0.split_first().unwrap_or((&0, &[]));
        self.0 = rest;
        usize::from(*byte) % end
    }

    fn body(&mut self) -> (Vec<u8>, BodyLength) {
        let body = vec![b'\n'; self.below(200)];
        let length = match self.below(2) {
            0 => BodyLength::Known(body.len() as u64),
            _ => BodyLength::Unknown,
        };
        (body, length)
    }

    fn pieces<'b>(&mut self, mut bytes: &'b [u8]) -> Vec<&'b [u8]> {
        let mut pieces = Vec::new();
        while !bytes.is_empty() {
            let (piece, rest) = bytes.split_at((1 + self.below(64)).min(bytes.len()));
            pieces.push(piece);
            bytes = rest;
        }
        pieces
    }
}

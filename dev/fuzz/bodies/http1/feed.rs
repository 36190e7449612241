//! Gives bytes to one of the roles, and records what it reads.

use bytes::BytesMut;
use catamaran_http1::{
    BodyLength, Client, ClientEvent, Fault, Limits, Request, RequestHead, Response, ResponseHead,
    Server, ServerEvent,
};
use catamaran_message::Fields;
use http::{Method, StatusCode};

/// A request as a server read it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SeenRequest {
    pub(crate) head: RequestHead,
    pub(crate) keep_alive: bool,
    pub(crate) body: Vec<u8>,
    pub(crate) complete: bool,
}

/// A response as a client read it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SeenResponse {
    pub(crate) interim: Vec<ResponseHead>,
    pub(crate) head: Option<ResponseHead>,
    pub(crate) body: Vec<u8>,
    pub(crate) complete: bool,
    pub(crate) reusable: bool,
}

/// The state after the last byte.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Ending {
    /// More bytes are needed; this many were not consumed.
    Open(usize),
    Fault(Fault),
}

/// Gives `pieces` one after the other to a server that answers every request with 204 as soon as it is complete. With
/// `eof`, the stream ends after them.
pub(crate) fn serve(limits: Limits, pieces: &[&[u8]], eof: bool) -> (Vec<SeenRequest>, Ending) {
    let mut server = Server::new(limits);
    let mut seen = Vec::new();
    let mut input = BytesMut::new();
    for piece in pieces {
        input.extend_from_slice(piece);
        if let Err(fault) = serve_input(&mut server, &mut input, &mut seen) {
            return (seen, Ending::Fault(fault));
        }
    }
    if eof && let Err(fault) = server.receive_eof(&input) {
        return (seen, Ending::Fault(fault));
    }
    (seen, Ending::Open(input.len()))
}

fn serve_input(
    server: &mut Server,
    input: &mut BytesMut,
    seen: &mut Vec<SeenRequest>,
) -> Result<(), Fault> {
    loop {
        match server.receive(input) {
            Ok(None) => return Ok(()),
            Ok(Some(ServerEvent::Head(head))) => {
                let complete = head.body == BodyLength::Known(0);
                seen.push(SeenRequest {
                    head: *head,
                    keep_alive: !server.is_last(),
                    body: Vec::new(),
                    complete,
                });
                if complete {
                    answer(server);
                }
            }
            Ok(Some(ServerEvent::Body(data))) => {
                assert!(!data.is_empty(), "an empty piece of body");
                seen.last_mut().unwrap().body.extend_from_slice(&data);
            }
            Ok(Some(ServerEvent::BodyEnd)) => {
                seen.last_mut().unwrap().complete = true;
                answer(server);
            }
            Err(fault) => {
                assert_eq!(server.receive(input), Err(fault), "a fault is final");
                assert!(!server.can_reuse());
                return Err(fault);
            }
        }
    }
}

fn answer(server: &mut Server) {
    assert!(server.request_body_done());
    let head = Response {
        status: StatusCode::NO_CONTENT,
        reason: None,
        headers: &Fields::new(),
        body: BodyLength::Known(0),
    };
    let mut out = BytesMut::new();
    server.send_head(&head, &mut out).unwrap();
    server.send_end(&mut out).unwrap();
}

/// Gives `pieces` to a client that has sent a request with `method`. With `eof`, the stream ends after them.
pub(crate) fn ask(
    limits: Limits,
    method: &Method,
    pieces: &[&[u8]],
    eof: bool,
) -> (SeenResponse, Ending) {
    let mut client = Client::new(limits);
    send(&mut client, method);
    let mut seen = SeenResponse {
        interim: Vec::new(),
        head: None,
        body: Vec::new(),
        complete: false,
        reusable: false,
    };
    let mut input = BytesMut::new();
    for piece in pieces {
        input.extend_from_slice(piece);
        if let Err(fault) = take_response(&mut client, &mut input, &mut seen) {
            return (seen, Ending::Fault(fault));
        }
    }
    if eof {
        match client.receive_eof() {
            Ok(None) => {}
            Ok(Some(event)) => {
                assert_eq!(event, ClientEvent::End);
                seen.complete = true;
            }
            Err(fault) => return (seen, Ending::Fault(fault)),
        }
    }
    seen.reusable = client.can_reuse() && input.is_empty();
    (seen, Ending::Open(input.len()))
}

pub(crate) fn send(client: &mut Client, method: &Method) {
    let request = Request {
        method,
        path: b"/",
        query: None,
        host: b"a",
        headers: &Fields::new(),
        body: BodyLength::Known(0),
    };
    client.send_request(&request, &mut BytesMut::new()).unwrap();
}

fn take_response(
    client: &mut Client,
    input: &mut BytesMut,
    seen: &mut SeenResponse,
) -> Result<(), Fault> {
    loop {
        match client.receive(input) {
            Ok(None) => return Ok(()),
            Ok(Some(ClientEvent::Interim(head))) => seen.interim.push(*head),
            Ok(Some(ClientEvent::Upgraded(_))) => panic!("nothing asked for it"),
            Ok(Some(ClientEvent::Head(head))) => assert_eq!(seen.head.replace(*head), None),
            Ok(Some(ClientEvent::Body(data))) => {
                assert!(!data.is_empty(), "an empty piece of body");
                seen.body.extend_from_slice(&data);
            }
            Ok(Some(ClientEvent::End)) => seen.complete = true,
            Err(fault) => {
                assert_eq!(client.receive(input), Err(fault), "a fault is final");
                assert!(!client.can_reuse());
                return Err(fault);
            }
        }
    }
}

/// `bytes` in one piece, then in pieces of one byte.
pub(crate) fn cuts(bytes: &[u8]) -> [Vec<&[u8]>; 2] {
    [vec![bytes], bytes.chunks(1).collect()]
}

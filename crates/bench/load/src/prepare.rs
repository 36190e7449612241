//! Turns the plan's requests into the bytes that will be written, once before the run.
//!
//! HTTP requests are written exactly as in the plan, even if they are invalid: a tool that tests
//! servers must be able to send invalid requests. AJP13 requests are encoded by the codec, whose
//! state afterwards is kept with the bytes: a connection that sends the bytes continues from a clone
//! of that state. HTTP/2 requests are encoded as they are sent, for its compression depends on what
//! was sent before. Operations on memcached are made one by one.

mod dynamic;
mod http2;

use std::net::{IpAddr, Ipv4Addr};

use bytes::{Bytes, BytesMut};
use catamaran_ajp as ajp;
use catamaran_memcache::Dialect;
use catamaran_message::field::{is_token_text, is_value_text};
use catamaran_message::name::{CONNECTION, KEEP_ALIVE, PROXY_CONNECTION};
use catamaran_message::{BodyLength, Fields};
pub(crate) use dynamic::Dynamic;
use http::{Method, Version};
pub(crate) use http2::PreparedHttp2;

use crate::memcached;
use crate::plan::{self, Endpoint, HttpVersion, Operation, Plan, PlanFault, Protocol};

/// The prepared requests of one target.
#[derive(Debug)]
pub(crate) struct PreparedTarget {
    pub(crate) codec: Codec,
    pub(crate) requests: Vec<PreparedRequest>,
    /// Draws the next request by weight; `None`: all have the same weight and are sent in turn.
    pub(crate) choice: Option<Choice>,
    has_dynamic: bool,
}

/// The protocol whose code reads a target's responses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Codec {
    Http1,
    Http2,
    Ajp,
    Memcached(Dialect),
}

/// Draws requests by their weights.
#[derive(Debug)]
pub(crate) struct Choice {
    /// The sum of the weights up to and with each request.
    below: Vec<u64>,
}

/// A request in the form in which it is written.
#[derive(Debug)]
pub(crate) struct PreparedRequest {
    /// The request's place among all requests of all targets.
    pub(crate) number: usize,
    /// The bytes that are written at once: for HTTP the whole request, for AJP13 the head and the first packet
    /// of the body, which is sent unasked.
    pub(crate) bytes: Vec<u8>,
    /// The number of `bytes` that belong to the body.
    pub(crate) body_bytes: usize,
    pub(crate) to_head: bool,
    /// Whether the request may run twice without harm (RFC 9110, section 9.2.2).
    pub(crate) is_idempotent: bool,
    pub(crate) ajp: Option<PreparedAjp>,
    pub(crate) http2: Option<PreparedHttp2>,
    /// The operation on memcached; `None` for other protocols.
    pub(crate) memcached: Option<memcached::KeyOperation>,
    /// Makes the bytes of an operation on memcached each time that it is sent; `None` for other protocols.
    pub(crate) maker: Option<Box<memcached::Maker>>,
    /// Fills in placeholders and cookies each time that the request is sent; `bytes` then has the
    /// longest possible request. `None`: the request stays the same.
    pub(crate) dynamic: Option<Box<Dynamic>>,
    /// The path of the request, for a client that keeps cookies.
    pub(crate) path: String,
}

/// The parts of a prepared AJP13 request besides its bytes.
#[derive(Debug)]
pub(crate) struct PreparedAjp {
    /// The state of the codec after it has encoded the bytes.
    pub(crate) client: ajp::Client,
    /// The rest of the body, which the server must ask for.
    pub(crate) rest: Bytes,
}

/// Encodes the requests of all targets. A request that is made anew each time is encoded at its
/// longest, so that one that is too long is found now.
///
/// # Errors
/// [`PlanFault::Request`] for a request that AJP13 or HTTP/2 cannot carry.
pub(crate) fn prepare(plan: &Plan) -> Result<Vec<PreparedTarget>, PlanFault> {
    let mut number = 0;
    let mut targets = Vec::with_capacity(plan.targets.len());
    for (target_index, target) in plan.targets.iter().enumerate() {
        let mut requests = Vec::with_capacity(target.requests.len());
        for (index, request) in target.requests.iter().enumerate() {
            let prepared = prepare_one(plan, &target.endpoint, request, number);
            requests.push(prepared.map_err(|what| PlanFault::Request {
                target: target_index,
                request: index,
                what,
            })?);
            number += 1;
        }
        targets.push(PreparedTarget {
            codec: Codec::of(&target.endpoint.protocol),
            choice: Choice::new(&target.requests),
            has_dynamic: requests.iter().any(PreparedRequest::is_made_anew),
            requests,
        });
    }
    Ok(targets)
}

/// Encodes one request of a target, which is at its longest if it is made anew each time.
fn prepare_one(
    plan: &Plan,
    endpoint: &Endpoint,
    request: &plan::Request,
    number: usize,
) -> Result<PreparedRequest, String> {
    if !request.has_placeholders && !plan.cookie_jar {
        return encode(endpoint, request, number);
    }
    let table = plan.table.as_deref();
    let dynamic = Dynamic::compile(request, table).map_err(|fault| fault.to_string())?;
    let mut prepared = encode(endpoint, &dynamic.longest(table), number)?;
    if plan.cookie_jar || dynamic.varies() {
        prepared.dynamic = Some(Box::new(dynamic));
    }
    Ok(prepared)
}

/// Encodes one request as the plan has it.
///
/// # Errors
/// AJP13 or HTTP/2 cannot carry the request; the text says why.
pub(crate) fn encode(
    endpoint: &Endpoint,
    request: &plan::Request,
    number: usize,
) -> Result<PreparedRequest, String> {
    match &endpoint.protocol {
        Protocol::Http => Ok(http(request, number)),
        Protocol::Http2 => http2::encode(request, endpoint.tls.is_some(), number),
        Protocol::Ajp(options) => ajp(request, options, number),
        Protocol::Memcached(options) => operation(request, options, number),
    }
}

impl Codec {
    fn of(protocol: &Protocol) -> Self {
        match protocol {
            Protocol::Http => Self::Http1,
            Protocol::Http2 => Self::Http2,
            Protocol::Ajp(_) => Self::Ajp,
            Protocol::Memcached(options) => Self::Memcached(options.dialect),
        }
    }
}

impl PreparedRequest {
    /// An HTTP/1.x request of these bytes, which stays the same.
    fn new(number: usize, method: &str, bytes: Vec<u8>, body_bytes: usize) -> Self {
        Self {
            number,
            bytes,
            body_bytes,
            to_head: method == "HEAD",
            is_idempotent: is_idempotent(method),
            ajp: None,
            http2: None,
            memcached: None,
            maker: None,
            dynamic: None,
            path: String::new(),
        }
    }

    fn is_made_anew(&self) -> bool {
        self.dynamic.is_some() || self.maker.is_some()
    }

    /// A prepared request of the operation `written`, with the place `number`.
    pub(crate) fn of_memcached(written: memcached::OperationBytes, number: usize) -> Self {
        Self {
            is_idempotent: true,
            memcached: Some(written.sent),
            ..Self::new(number, "", written.bytes, written.value_bytes)
        }
    }
}

impl PreparedTarget {
    /// Whether the target's requests need numbers, for placeholders or weights.
    pub(crate) fn needs_number(&self) -> bool {
        self.has_dynamic || self.choice.is_some()
    }
}

impl Choice {
    /// Makes a choice by the requests' weights; `None`: all have the same weight.
    fn new(requests: &[plan::Request]) -> Option<Self> {
        let mut weights = requests
            .iter()
            .map(|request| u64::from(request.weight.get()));
        let first = weights.next()?;
        // The sums of the weights up to each request: a random number below the last sum chooses one.
        let mut below = vec![first];
        let mut is_even = true;
        for weight in weights {
            is_even &= weight == first;
            below.push(below[below.len() - 1] + weight);
        }
        (!is_even).then_some(Self { below })
    }

    /// The place of the request that is drawn for `number`, the request's number in the run.
    pub(crate) fn place(&self, seed: u64, number: u64) -> usize {
        let sum = self.below.last().copied().unwrap_or(1);
        let mut random = crate::pace::random(seed ^ STREAM, number as usize);
        let drawn = random.u64(..sum);
        self.below.partition_point(|below| *below <= drawn)
    }
}

/// The bytes of an HTTP/1.x request. `number` is its place in the plan.
fn http(request: &plan::Request, number: usize) -> PreparedRequest {
    // 256 bytes are enough for most heads; longer ones make it grow.
    let mut bytes = Vec::with_capacity(256 + request.body.len());
    for part in [
        &request.method,
        " ",
        &request.target,
        " ",
        request.version.text(),
    ] {
        bytes.extend_from_slice(part.as_bytes());
    }
    bytes.extend_from_slice(b"\r\n");
    for header in &request.headers {
        bytes.extend_from_slice(header.name.as_bytes());
        bytes.extend_from_slice(b": ");
        bytes.extend_from_slice(&header.value);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes.extend_from_slice(b"\r\n");
    bytes.extend_from_slice(&request.body);
    PreparedRequest::new(number, &request.method, bytes, request.body.len())
}

fn is_idempotent(method: &str) -> bool {
    let methods = ["GET", "HEAD", "PUT", "DELETE", "OPTIONS", "TRACE"];
    methods.contains(&method)
}

/// Encodes an AJP13 request with the codec. The first part of the body is sent with the head, the rest when the server
/// asks for it.
fn ajp(
    request: &plan::Request,
    options: &plan::Ajp,
    number: usize,
) -> Result<PreparedRequest, String> {
    let packet_size =
        ajp::PacketSize::new(options.packet_bytes).map_err(|error| error.to_string())?;
    let mut client = ajp::Client::new(ajp::ClientConfig {
        packet_size,
        reply_packet_size: packet_size,
        ..ajp::ClientConfig::default()
    });
    let mut out = BytesMut::new();
    send_ajp_head(&mut client, request, options, &mut out)?;
    let mut rest = request.body.clone();
    let first = rest.split_to(client.body_credit().min(rest.len()));
    client.send_data(&first, &mut out);
    if rest.is_empty() {
        client
            .finish_body(&mut out)
            .map_err(|error| error.to_string())?;
    }
    let prepared = PreparedRequest::new(number, &request.method, out.to_vec(), first.len());
    Ok(PreparedRequest {
        ajp: Some(PreparedAjp { client, rest }),
        ..prepared
    })
}

/// Writes the head of an AJP13 request to `out`. `Err` is the text of why it cannot be encoded.
fn send_ajp_head(
    client: &mut ajp::Client,
    request: &plan::Request,
    options: &plan::Ajp,
    out: &mut BytesMut,
) -> Result<(), String> {
    let method = Method::from_bytes(request.method.as_bytes())
        .map_err(|_| format!("`{}` is no method", request.method))?;
    let headers = fields(request)?;
    let (path, query) = match request.target.split_once('?') {
        Some((path, query)) => (path, Some(query.as_bytes())),
        None => (request.target.as_str(), None),
    };
    let secret = options.secret.as_deref().map(ajp::Attribute::Secret);
    let head = ajp::Request {
        method: &method,
        path: path.as_bytes(),
        query,
        host: options.server_name.as_bytes(),
        headers: &headers,
        body: BodyLength::Known(request.body.len() as u64),
    };
    let facts = ajp::Facts {
        version: match request.version {
            HttpVersion::Http10 => Version::HTTP_10,
            HttpVersion::Http11 => Version::HTTP_11,
        },
        remote_ip: IpAddr::V4(Ipv4Addr::LOCALHOST),
        server_name: options.server_name.as_bytes(),
        server_port: options.server_port,
        is_ssl: options.is_ssl,
        announce_chunked: false,
        attributes: secret.as_slice(),
    };
    client
        .send_request(&head, &facts, out)
        .map_err(|error| error.to_string())
}

/// A prepared operation on memcached. Its bytes are those of the first sending; later sendings have bytes of
/// their own.
fn operation(
    request: &plan::Request,
    options: &plan::Memcached,
    number: usize,
) -> Result<PreparedRequest, String> {
    let operation = Operation::named(&request.method)
        .ok_or_else(|| format!("`{}` is none of get and set", request.method))?;
    let maker = memcached::Maker::new(operation, options);
    let first = maker.write(0, 1);
    Ok(PreparedRequest {
        maker: Some(Box::new(maker)),
        ..PreparedRequest::of_memcached(first, number)
    })
}

/// The request's header fields, without the fields of a connection of HTTP/1.x, which do not exist in AJP13 and
/// HTTP/2.
fn fields(request: &plan::Request) -> Result<Fields, String> {
    let mut fields = Fields::new();
    for plan::Header { name, value } in &request.headers {
        if !is_token_text(name.as_bytes()) {
            return Err(format!("`{name}` is no field name"));
        }
        if !is_value_text(value) {
            return Err(format!("the value of {name} has control characters"));
        }
        fields.append(name.as_str(), value);
    }
    for name in [CONNECTION, KEEP_ALIVE, PROXY_CONNECTION] {
        fields.remove(name);
    }
    Ok(fields)
}

/// A constant that makes the random numbers of weights independent of those of schedules and placeholders.
const STREAM: u64 = 0x6368_6F69_6365_0001;

#[cfg(test)]
mod tests {
    use catamaran_message::Field;

    use super::*;
    use crate::plan::{HttpVersion, Request};

    #[test]
    fn http_is_written_as_it_stands() {
        let request = Request {
            body: Bytes::from_static(b"a=b"),
            method: "POST".to_owned(),
            ..Request::get("/x?y", HttpVersion::Http10)
                .header("Content-Length", "3")
                .header("X-ODD", "  v ")
        };
        let prepared = http(&request, 3);
        assert_eq!(
            String::from_utf8(prepared.bytes).unwrap(),
            "POST /x?y HTTP/1.0\r\nContent-Length: 3\r\nX-ODD:   v \r\n\r\na=b"
        );
        assert!(!prepared.to_head);
    }

    fn options() -> plan::Ajp {
        plan::Ajp {
            secret: Some(b"s3cret".to_vec()),
            server_name: "localhost".to_owned(),
            server_port: 80,
            is_ssl: false,
            packet_bytes: 8192,
        }
    }

    #[test]
    fn a_container_reads_what_was_prepared() {
        let body = Bytes::from(vec![b'x'; 10_000]);
        let request = Request {
            method: "POST".to_owned(),
            body: body.clone(),
            ..Request::get("/x?y=z", HttpVersion::Http11)
                .header("Host", "h")
                .header("Connection", "close")
                .header("Content-Length", "10000")
                .header("Proxy-Authorization", "Basic YTpi")
                .header("x-Odd", "1")
        };
        let prepared = ajp(&request, &options(), 0).unwrap();
        let mut input = BytesMut::from(&prepared.bytes[..]);
        let mut server = ajp::Server::new(ajp::ServerConfig::default());
        let Ok(Some(ajp::ServerEvent::Request(head))) =
            server.receive(&mut input, &mut BytesMut::new())
        else {
            panic!("no request in the bytes");
        };
        assert_eq!(head.path, "/x");
        assert_eq!(head.query.as_deref(), Some(&b"y=z"[..]));
        let names: Vec<_> = head.headers.iter().map(Field::name).collect();
        assert_eq!(names, [&b"Host"[..], b"Proxy-Authorization", b"x-Odd"]);
        let rest = prepared.ajp.unwrap().rest;
        assert_eq!(rest.len(), 10_000 - 8186);
    }

    #[test]
    fn requests_are_drawn_by_weight() {
        let weighted = |weight: u32| Request {
            weight: weight.try_into().unwrap(),
            ..Request::get("/", HttpVersion::Http11)
        };
        assert!(Choice::new(&[weighted(2), weighted(2)]).is_none());
        let choice = Choice::new(&[weighted(1), weighted(8), weighted(1)]).unwrap();
        let mut counts = [0; 3];
        for number in 1..=10_000 {
            counts[choice.place(1, number)] += 1;
        }
        let [one, eight, last] = counts;
        assert!(
            (900..1100).contains(&one) && (900..1100).contains(&last),
            "{counts:?}"
        );
        assert_eq!(one + eight + last, 10_000);
    }

    #[test]
    fn what_ajp_cannot_carry_is_named() {
        let huge = Request::get("/", HttpVersion::Http11).header("X", "v".repeat(9000));
        let fault = ajp(&huge, &options(), 0).unwrap_err();
        assert!(fault.contains("8188"), "{fault}");
    }
}

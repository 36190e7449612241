//! What the recording backend reads and writes: just enough of HTTP/1.1 and AJP13 for a front.
//!
//! A front writes messages anew, so here nothing is lenient: what is not in the one form that a
//! front of ours may send becomes part of the text and fails the test that compares it. The text
//! of a request is `METHOD TARGET | field: value | ... | LENGTH:BODY`, fields sorted by name,
//! LENGTH a number or `?` for a body that ends by its own framing. What a front adds on its own
//! account is left out if it is exactly right.

use bytes::BytesMut;
use catamaran_ajp::{BodyLength, Fields, Response, Server, ServerConfig, ServerEvent};
use http::StatusCode;

use super::backend::{Conn, Front};

/// A request, as far as it has arrived.
pub(crate) struct Request {
    line: String,
    fields: Vec<(String, String)>,
    /// `None`: the body ends by its own framing.
    length: Option<u64>,
    body: Vec<u8>,
    ajp: Option<Server>,
}

/// The head of the next request over HTTP/1.1, and its bytes.
pub(crate) fn http_head(conn: &mut Conn) -> Option<(Vec<u8>, Request)> {
    let head = take_until(conn, b"\r\n\r\n")?;
    let text = latin1(&head[..head.len() - 4]);
    let mut lines = text.split("\r\n");
    let line = lines.next().unwrap_or_default();
    let mut request = Request {
        line: line.strip_suffix(" HTTP/1.1").unwrap_or(line).to_owned(),
        fields: Vec::new(),
        length: Some(0),
        body: Vec::new(),
        ajp: None,
    };
    for line in lines {
        let (name, value) = line.split_once(": ").unwrap_or(("malformed", line));
        match (name.to_ascii_lowercase().as_str(), value) {
            ("content-length", digits) if digits.parse::<u64>().is_ok() => {
                request.length = digits.parse().ok();
            }
            ("transfer-encoding", "chunked") => request.length = None,
            (name, value) => request.fields.push((name.to_owned(), value.to_owned())),
        }
    }
    let framed = ["\r\ncontent-length:", "\r\ntransfer-encoding:"];
    let lower = text.to_ascii_lowercase();
    let lengths: usize = framed.iter().map(|it| lower.matches(it).count()).sum();
    // What RFC 9110, section 8.6, says a user agent should send, a gateway of ours must.
    if lengths > 1 || (lengths == 0 && line.starts_with("POST ")) {
        request.note("framing fields", &lengths.to_string());
    }
    request.check_own_fields(conn.front);
    Some((head, request))
}

/// The head of the next request over AJP13, and its bytes.
pub(crate) fn ajp_head(conn: &mut Conn) -> Option<(Vec<u8>, Request)> {
    loop {
        let packet = take_packet(conn)?;
        match packet.get(4) {
            Some(0x0a) => conn.pong(),
            // A container takes any packet that begins so for a request: so do we.
            Some(0x02) => return Some(ajp_request(packet, conn.front)),
            _ => conn.unexpected(&packet),
        }
    }
}

fn ajp_request(packet: Vec<u8>, front: Front) -> (Vec<u8>, Request) {
    let config = ServerConfig {
        fields_max: 200,
        ..ServerConfig::default()
    };
    let mut server = Server::new(config);
    let mut request = Request {
        line: String::new(),
        fields: Vec::new(),
        length: Some(0),
        body: Vec::new(),
        ajp: None,
    };
    let event = server.receive(&mut BytesMut::from(&packet[..]), &mut BytesMut::new());
    let head = match event {
        Ok(Some(ServerEvent::Request(head))) => head,
        Err(fault) => {
            request.note("malformed", fault.token());
            return (packet, request);
        }
        Ok(_) => {
            request.note("malformed", "not all of a head");
            return (packet, request);
        }
    };
    request.line = format!("{} {}", head.method, latin1(&head.path));
    if let Some(query) = &head.query {
        request.line.push('?');
        request.line.push_str(&latin1(query));
    }
    let fields = head.headers.iter();
    let fields = fields.map(|field| (field.lower_name(), latin1(field.value())));
    request.fields = fields.collect();
    request.length = match head.body {
        BodyLength::Known(length) => Some(length),
        BodyLength::Unknown => None,
    };
    if front == Front::Ours && !announces_truly(&packet, head.body) {
        request.note("transfer-encoding", "over AJP13");
    }
    if front == Front::Ours && head.remote_addr.as_deref() != Some(b"127.0.0.1") {
        request.note("remote_addr", &format!("{:?}", head.remote_addr));
    }
    let server_name = latin1(&head.server_name);
    let host = request.host();
    let host = host.rsplit_once(':').map_or(host, |(name, _)| name);
    if front == Front::Ours && host != server_name {
        request.note("server_name", &server_name);
    }
    let known = ["AJP_REMOTE_PORT", "AJP_LOCAL_ADDR"].map(str::as_bytes);
    for (name, value) in &head.attributes.other {
        if front == Front::Ours && !known.contains(&&name[..]) {
            request.note(&latin1(name), &latin1(value));
        }
    }
    request.ajp = Some(server);
    request.check_own_fields(front);
    (packet, request)
}

/// Whether the packet says `Transfer-Encoding: chunked` once, byte for byte as the codec writes it,
/// for a body of unknown length, and nothing of the kind for another.
fn announces_truly(packet: &[u8], body: BodyLength) -> bool {
    let lower = latin1(packet).to_ascii_lowercase();
    let said = lower.matches("transfer-encoding").count();
    match body {
        BodyLength::Known(_) => said == 0,
        BodyLength::Unknown => {
            said == 1 && lower.contains("\0\u{11}transfer-encoding\0\0\u{7}chunked\0")
        }
    }
}

impl Request {
    /// Reads the body to its end; `false` if the connection ended first.
    pub(crate) fn read_body(&mut self, conn: &mut Conn) -> bool {
        match (self.ajp.take(), self.length) {
            (Some(mut server), Some(0)) => {
                let done = server.receive(&mut BytesMut::new(), &mut BytesMut::new());
                self.ajp = Some(server);
                done.is_ok()
            }
            (Some(mut server), _) => {
                let done = self.read_ajp_body(conn, &mut server);
                self.ajp = Some(server);
                done.is_some()
            }
            // Ours answers expectations itself; others leave that to the backend.
            (None, _) if self.expects_continue() && !conn.send(CONTINUE) => false,
            (None, Some(length)) => {
                let body = take(conn, usize::try_from(length).unwrap_or(usize::MAX));
                body.map(|body| self.body = body).is_some()
            }
            (None, None) => self.read_chunks(conn).is_some(),
        }
    }

    fn read_ajp_body(&mut self, conn: &mut Conn, server: &mut Server) -> Option<()> {
        let mut out = BytesMut::new();
        loop {
            server.want_body(&mut out);
            if !out.is_empty() && !conn.send(&out.split()) {
                return None;
            }
            match server.receive(&mut conn.input, &mut out) {
                Ok(Some(ServerEvent::Body(data))) => self.body.extend_from_slice(&data),
                Ok(Some(ServerEvent::BodyEnd)) => return Some(()),
                Ok(Some(ServerEvent::Request(_))) => self.note("second request", "in a body"),
                Ok(None) => conn.fill().then_some(())?,
                Err(fault) => {
                    self.note("body", fault.token());
                    return Some(());
                }
            }
        }
    }

    fn read_chunks(&mut self, conn: &mut Conn) -> Option<()> {
        loop {
            let line = latin1(&take_until(conn, b"\r\n")?);
            let line = line.trim_end_matches("\r\n");
            let Ok(size) = usize::from_str_radix(line, 16) else {
                self.note("chunk", line);
                return Some(());
            };
            if size == 0 {
                break;
            }
            self.body.extend(take(conn, size)?);
            if take(conn, 2)? != b"\r\n" {
                self.note("chunk", "without its end");
            }
        }
        loop {
            let line = latin1(&take_until(conn, b"\r\n")?);
            match line.trim_end_matches("\r\n") {
                "" => return Some(()),
                line => self.note("trailer", line),
            }
        }
    }

    /// The whole request on one line.
    pub(crate) fn text(&self) -> String {
        let mut fields = self.fields.clone();
        fields.sort_by(|(one, _), (other, _)| one.cmp(other));
        let mut text = self.line.clone();
        for (name, value) in fields {
            text.push_str(&format!(" | {name}: {value}"));
        }
        let length = self
            .length
            .map_or_else(|| "?".to_owned(), |it| it.to_string());
        let body = latin1(&self.body);
        if body.len() > 200 {
            return format!("{text} | {length}:({} bytes)", self.body.len());
        }
        format!("{text} | {length}:{body}")
    }

    /// 200 with `body`.
    pub(crate) fn usual_answer(&mut self, body: &[u8], input: &BytesMut) -> Vec<u8> {
        let length = body.len();
        let body = if self.line.starts_with("HEAD ") {
            &[]
        } else {
            body
        };
        let Some(server) = &mut self.ajp else {
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n");
            return [head.as_bytes(), body].concat();
        };
        let mut out = BytesMut::new();
        let head = Response {
            status: StatusCode::OK,
            reason: None,
            headers: &Fields::new(),
            body: BodyLength::Known(length as u64),
        };
        if server.send_head(&head, &mut out).is_ok() {
            server.send_data(body, &mut out);
            server.send_end(input, &mut out);
        }
        out.to_vec()
    }

    /// Leaves out what the front says on its own account, if all of it is there and right: `Via`,
    /// the request's id, and over HTTP/1.1, which has no other place for it, who the client is.
    fn check_own_fields(&mut self, front: Front) {
        if front == Front::Another {
            let usual = |name: &str, value: &str| {
                let value = value.to_ascii_lowercase();
                let persistence = ["close", "keep-alive"].contains(&value.as_str());
                let named = ["via", "x-request-id", "!framing fields"].contains(&name);
                named || name.starts_with("x-forwarded-") || (name == "connection" && persistence)
            };
            self.fields.retain(|(name, value)| !usual(name, value));
            return;
        }
        let host = self.host().to_owned();
        let port = host
            .rsplit_once(':')
            .map_or("80", |(_, port)| port)
            .to_owned();
        let own = [
            ("via", "1.1 catamaran"),
            ("via", "1.0 catamaran"),
            ("via", "2.0 catamaran"),
            ("x-forwarded-for", "127.0.0.1"),
            ("x-forwarded-proto", "http"),
            ("x-forwarded-host", host.as_str()),
            ("x-forwarded-port", port.as_str()),
        ];
        let all = self.fields.len();
        let is_own = |name: &str, value: &str| match name {
            "x-request-id" => value.len() == 16 && value.bytes().all(|it| it.is_ascii_hexdigit()),
            _ => own.contains(&(name, value)),
        };
        self.fields.retain(|(name, value)| !is_own(name, value));
        let left_out = all - self.fields.len();
        let required = if self.ajp.is_some() { 2 } else { 6 };
        if left_out != required {
            self.note("fields of the front's own", &left_out.to_string());
        }
    }

    fn expects_continue(&self) -> bool {
        let mut fields = self.fields.iter();
        fields.any(|(name, value)| name == "expect" && value == "100-continue")
    }

    fn host(&self) -> &str {
        let host = self.fields.iter().find(|(name, _)| name == "host");
        host.map_or("", |(_, value)| value.as_str())
    }

    /// Makes something that must not be part of the text.
    fn note(&mut self, what: &str, value: &str) {
        self.fields.push((format!("!{what}"), value.to_owned()));
    }
}

fn take(conn: &mut Conn, length: usize) -> Option<Vec<u8>> {
    while conn.input.len() < length {
        conn.fill().then_some(())?;
    }
    Some(conn.input.split_to(length).to_vec())
}

fn take_until(conn: &mut Conn, end: &[u8]) -> Option<Vec<u8>> {
    loop {
        let found = conn.input.windows(end.len()).position(|it| it == end);
        match found {
            Some(at) => return take(conn, at + end.len()),
            None => conn.fill().then_some(())?,
        }
    }
}

/// One packet of the front's, with its prefix.
fn take_packet(conn: &mut Conn) -> Option<Vec<u8>> {
    while conn.input.len() < 4 {
        conn.fill().then_some(())?;
    }
    let length = usize::from(u16::from_be_bytes([conn.input[2], conn.input[3]]));
    take(conn, 4 + length)
}

fn latin1(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| char::from(*byte)).collect()
}

const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

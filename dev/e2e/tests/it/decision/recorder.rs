//! Backends that record what they are sent, over AJP13 and HTTP/1.1.
//!
//! AJP13 is read byte by byte here: nothing of the front's codec is used.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use catamaran_testkit::ajp;

/// A request as a backend received it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Received {
    /// `ajp` or `http`.
    pub(super) protocol: &'static str,
    /// Method, path and query.
    pub(super) line: String,
    /// Names in lower case.
    pub(super) fields: Vec<(String, String)>,
    /// What AJP13 says besides, named as `explain` names it.
    pub(super) attributes: Vec<(String, String)>,
    pub(super) body: Vec<u8>,
}

/// Both backends. What they receive is known before it is answered.
pub(super) struct Recorder {
    pub(super) ajp: SocketAddr,
    pub(super) http: SocketAddr,
    received: Receiver<Received>,
}

impl Recorder {
    pub(super) fn start() -> io::Result<Self> {
        let (sender, received) = sync_channel(64);
        Ok(Self {
            ajp: serve(sender.clone(), serve_ajp)?,
            http: serve(sender, serve_http)?,
            received,
        })
    }

    /// What was received since the last call.
    pub(super) fn take(&self) -> Vec<Received> {
        self.received.try_iter().collect()
    }
}

type Serve = fn(TcpStream, &SyncSender<Received>) -> io::Result<()>;

/// Accepts connections until the process ends.
fn serve(sender: SyncSender<Received>, serve: Serve) -> io::Result<SocketAddr> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let address = listener.local_addr()?;
    thread::spawn(move || {
        for socket in listener.incoming().flatten() {
            let sender = sender.clone();
            // A front that ends breaks its connections.
            thread::spawn(move || serve(socket, &sender).ok());
        }
    });
    Ok(address)
}

fn serve_http(socket: TcpStream, sender: &SyncSender<Received>) -> io::Result<()> {
    socket.set_nodelay(true)?;
    let mut input = BufReader::new(socket.try_clone()?);
    let mut output = socket;
    while let Some(received) = read_http(&mut input)? {
        let field = |name: &str| {
            let mut fields = received.fields.iter();
            fields.find(|it| it.0 == name).map(|it| it.1.clone())
        };
        let answer = match field("upgrade") {
            // A proof of the key is no concern of this test.
            Some(token) if token == "websocket" => REFUSED.to_owned(),
            Some(token) => format!(
                "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: {token}\r\n\r\n"
            ),
            None => ANSWER.to_owned(),
        };
        let ends = answer.contains(" 101 ");
        sender.send(received).map_err(io::Error::other)?;
        output.write_all(answer.as_bytes())?;
        if ends {
            break;
        }
    }
    Ok(())
}

fn read_http(input: &mut impl BufRead) -> io::Result<Option<Received>> {
    let mut lines = Vec::new();
    loop {
        let mut line = Vec::new();
        if input.read_until(b'\n', &mut line)? == 0 {
            return Ok(None);
        }
        let line = String::from_utf8_lossy(&line)
            .trim_end_matches("\r\n")
            .to_owned();
        if line.is_empty() {
            break;
        }
        lines.push(line);
    }
    let pair = |line: &String| {
        let (name, value) = line.split_once(": ")?;
        Some((name.to_ascii_lowercase(), value.to_owned()))
    };
    let fields: Vec<_> = lines[1..].iter().filter_map(pair).collect();
    let body = match fields.iter().find(|it| it.0 == "content-length") {
        Some((_, length)) => read_exactly(input, length.parse().map_err(io::Error::other)?)?,
        None if fields.iter().any(|it| it.0 == "transfer-encoding") => read_chunks(input)?,
        None => Vec::new(),
    };
    Ok(Some(Received {
        protocol: "http",
        line: lines[0].trim_end_matches(" HTTP/1.1").to_owned(),
        fields,
        attributes: Vec::new(),
        body,
    }))
}

fn read_exactly(input: &mut impl Read, length: usize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; length];
    input.read_exact(&mut bytes)?;
    Ok(bytes)
}

fn read_chunks(input: &mut impl BufRead) -> io::Result<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let mut line = String::new();
        input.read_line(&mut line)?;
        let length = usize::from_str_radix(line.trim(), 16).map_err(io::Error::other)?;
        body.extend(read_exactly(input, length)?);
        read_exactly(input, 2)?;
        if length == 0 {
            return Ok(body);
        }
    }
}

fn serve_ajp(mut socket: TcpStream, sender: &SyncSender<Received>) -> io::Result<()> {
    socket.set_nodelay(true)?;
    loop {
        let packet = read_packet(&mut socket)?;
        if packet == [CPING] {
            socket.write_all(&ajp::to_web_server(&[CPONG]))?;
            continue;
        }
        let mut received = Bytes(&packet).request();
        let has = |name: &str| received.fields.iter().find(|it| it.0 == name).cloned();
        if let Some((_, length)) = has("content-length") {
            let length: usize = length.parse().map_err(io::Error::other)?;
            // The first packet comes unasked, and the bodies of this test fit it.
            if length > 0 {
                received.body = data(&read_packet(&mut socket)?);
            }
        } else if has("transfer-encoding").is_some() {
            loop {
                socket.write_all(&ajp::get_body_chunk(8000))?;
                match data(&read_packet(&mut socket)?) {
                    piece if piece.is_empty() => break,
                    piece => received.body.extend(piece),
                }
            }
        }
        sender.send(received).map_err(io::Error::other)?;
        let head = ajp::send_headers(200, &[ajp::field("content-length", "0")]);
        socket.write_all(&[head, ajp::end_response(1)].concat())?;
    }
}

/// The payload of the next packet.
fn read_packet(socket: &mut TcpStream) -> io::Result<Vec<u8>> {
    let mut header = [0; 4];
    socket.read_exact(&mut header)?;
    assert_eq!(header[..2], [0x12, 0x34]);
    let length = u16::from_be_bytes([header[2], header[3]]);
    read_exactly(socket, length.into())
}

/// The bytes of a DATA packet.
fn data(payload: &[u8]) -> Vec<u8> {
    payload.get(2..).unwrap_or_default().to_vec()
}

/// A payload that is being read.
struct Bytes<'p>(&'p [u8]);

impl Bytes<'_> {
    fn byte(&mut self) -> u8 {
        let (byte, rest) = self.0.split_first().expect("a byte");
        self.0 = rest;
        *byte
    }

    fn number(&mut self) -> u16 {
        u16::from_be_bytes([self.byte(), self.byte()])
    }

    /// A string; `None` for the null string.
    fn text(&mut self) -> Option<String> {
        let length = self.number();
        (length != 0xFFFF).then(|| self.text_of(length))
    }

    fn text_of(&mut self, length: u16) -> String {
        let (text, rest) = self.0.split_at(length.into());
        self.0 = &rest[1..];
        String::from_utf8_lossy(text).into_owned()
    }

    /// A FORWARD_REQUEST.
    fn request(mut self) -> Received {
        assert_eq!(self.byte(), 2, "a FORWARD_REQUEST");
        let code = self.byte();
        let mut attributes = Vec::new();
        let mut say = |name: &str, value: Option<String>| {
            attributes.extend(value.map(|value| (name.to_owned(), value)));
        };
        say("protocol", self.text());
        let path = self.text().expect("a path");
        say("remote_addr", self.text());
        say("remote_host", self.text());
        say("server_name", self.text());
        say("server_port", Some(self.number().to_string()));
        say("is_ssl", Some((self.byte() == 1).to_string()));
        let count = self.number();
        let fields = (0..count).map(|_| self.field()).collect();
        let (mut query, mut stored) = (None, None);
        loop {
            match self.byte() {
                0xFF => break,
                0x03 => say("remote_user", self.text()),
                0x04 => say("auth_type", self.text()),
                0x05 => query = self.text(),
                0x06 => say("jvm_route", self.text()),
                0x07 => say("ssl_cert", self.text()),
                0x08 => say("ssl_cipher", self.text()),
                0x09 => say("ssl_session", self.text()),
                0x0A => {
                    let name = self.text().expect("a name");
                    say(&name, self.text());
                }
                0x0B => say("ssl_key_size", Some(self.number().to_string())),
                0x0C => say("secret", self.text().map(|_| "(set)".to_owned())),
                0x0D => stored = self.text(),
                code => panic!("an attribute of code {code}"),
            }
        }
        let method = match code {
            0xFF => stored.expect("a method"),
            code => METHODS[usize::from(code) - 1].to_owned(),
        };
        let query = query.map_or_else(String::new, |query| format!("?{query}"));
        Received {
            protocol: "ajp",
            line: format!("{method} {path}{query}"),
            fields,
            attributes,
            body: Vec::new(),
        }
    }

    fn field(&mut self) -> (String, String) {
        let name = match self.number() {
            code @ 0xA001..=0xA00E => FIELDS[usize::from(code) - 0xA001].to_owned(),
            length => self.text_of(length).to_ascii_lowercase(),
        };
        (name, self.text().expect("a value"))
    }
}

const ANSWER: &str = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
const REFUSED: &str = "HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n";

const CPING: u8 = 10;
const CPONG: u8 = 9;

/// By their codes, from 1 on: as far as this test has them.
const METHODS: [&str; 8] = [
    "OPTIONS", "GET", "HEAD", "POST", "PUT", "DELETE", "TRACE", "PROPFIND",
];

/// By their codes, from 0xA001 on.
const FIELDS: [&str; 14] = [
    "accept",
    "accept-charset",
    "accept-encoding",
    "accept-language",
    "authorization",
    "connection",
    "content-type",
    "content-length",
    "cookie",
    "cookie2",
    "host",
    "pragma",
    "referer",
    "user-agent",
];

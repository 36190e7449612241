//! A blocking AJP client: what a web server does, one exchange at a time.

use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr};

use bytes::BytesMut;
use catamaran_ajp::{
    Attribute, BodyLength, Client, ClientConfig, ClientEvent, Facts, Fields, Request,
};
use catamaran_testkit::{Address, Deadline};
use http::{Method, Version};
use socket2::Socket;

/// One connection to a container.
pub(crate) struct AjpClient {
    pub(crate) socket: Socket,
    codec: Client,
    input: BytesMut,
    deadline: Deadline,
}

/// What came back.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) content_length: Option<u64>,
    pub(crate) body: Vec<u8>,
    /// END_RESPONSE allowed another request.
    pub(crate) reuse: bool,
    /// Whether the container asked for body bytes.
    pub(crate) asked: bool,
}

impl Answer {
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// One exchange; a GET of `path` without body unless told otherwise.
pub(crate) struct Exchange<'a> {
    pub(crate) method: Method,
    pub(crate) path: &'a str,
    pub(crate) length: BodyLength,
    pub(crate) attributes: &'a [Attribute<'a>],
}

impl<'a> Exchange<'a> {
    pub(crate) fn get(path: &'a str) -> Self {
        Self {
            method: Method::GET,
            path,
            length: BodyLength::Known(0),
            attributes: &[],
        }
    }

    pub(crate) fn post(path: &'a str, length: BodyLength) -> Self {
        Self {
            method: Method::POST,
            length,
            ..Self::get(path)
        }
    }
}

impl AjpClient {
    pub(crate) fn connect(address: &Address) -> Self {
        Self {
            socket: address.connect(Deadline::DEFAULT).unwrap(),
            codec: Client::new(ClientConfig::default()),
            input: BytesMut::new(),
            deadline: Deadline::default(),
        }
    }

    pub(crate) fn get(&mut self, path: &str) -> Answer {
        self.exchange(&Exchange::get(path), &mut std::io::empty())
    }

    pub(crate) fn ping(&mut self) {
        let mut out = BytesMut::new();
        self.codec.send_ping(&mut out);
        self.send(&out);
        assert!(matches!(self.event(), ClientEvent::Pong));
    }

    /// Writes the request and nothing of its body.
    pub(crate) fn send_head(&mut self, exchange: &Exchange<'_>) {
        self.try_send_head(exchange).unwrap();
    }

    /// The same to a container that may have closed the connection.
    pub(crate) fn try_send_head(&mut self, exchange: &Exchange<'_>) -> std::io::Result<()> {
        let mut out = BytesMut::new();
        let request = Request {
            method: &exchange.method,
            path: exchange.path.as_bytes(),
            query: None,
            host: b"a.example",
            headers: &Fields::new(),
            body: exchange.length,
        };
        let facts = Facts {
            version: Version::HTTP_11,
            remote_ip: IpAddr::V4(Ipv4Addr::new(192, 0, 2, 7)),
            server_name: b"a.example",
            server_port: 80,
            is_ssl: false,
            announce_chunked: false,
            attributes: exchange.attributes,
        };
        self.codec.send_request(&request, &facts, &mut out).unwrap();
        self.try_send(&out)
    }

    pub(crate) fn exchange(&mut self, exchange: &Exchange<'_>, body: &mut impl Read) -> Answer {
        self.send_head(exchange);
        self.send_body(body);
        self.receive(body)
    }

    /// Receives the response, feeding `body` as it is asked for.
    pub(crate) fn receive(&mut self, body: &mut impl Read) -> Answer {
        let mut answer = Answer {
            status: 0,
            content_length: None,
            body: Vec::new(),
            reuse: false,
            asked: false,
        };
        loop {
            match self.event() {
                ClientEvent::Head(head) => {
                    answer.status = head.status.as_u16();
                    answer.content_length = head.content_length;
                }
                ClientEvent::Body(data) => answer.body.extend_from_slice(&data),
                ClientEvent::BodyWanted => {
                    answer.asked = true;
                    self.send_body(body);
                }
                ClientEvent::End => {
                    answer.reuse = self.codec.can_reuse() && self.input.is_empty();
                    return answer;
                }
                ClientEvent::Interim(_) | ClientEvent::Flush | ClientEvent::Pong => {}
            }
        }
    }

    /// Sends one packet, if one is due.
    pub(crate) fn send_body(&mut self, body: &mut impl Read) {
        let credit = self.codec.body_credit();
        if credit == 0 {
            return;
        }
        let mut packet = Vec::with_capacity(credit);
        body.take(credit as u64).read_to_end(&mut packet).unwrap();
        let mut out = BytesMut::new();
        if packet.is_empty() {
            self.codec.finish_body(&mut out).unwrap();
        } else {
            self.codec.send_data(&packet, &mut out);
        }
        self.send(&out);
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) {
        self.try_send(bytes).unwrap();
    }

    fn try_send(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.socket.set_write_timeout(self.deadline.remaining())?;
        self.socket.write_all(bytes)
    }

    /// Everything up to the end of stream. A reset ends it, too: a client that is dropped in the middle of
    /// what it sends is told so, and what was lost by it is missing here.
    pub(crate) fn receive_to_end(&mut self) -> Vec<u8> {
        loop {
            match self.try_fill() {
                Ok(1..) => {}
                Ok(_) => break,
                Err(error) if error.kind() == ErrorKind::ConnectionReset => break,
                Err(error) => panic!("neither bytes nor an end: {error}"),
            }
        }
        self.input.split().to_vec()
    }

    fn event(&mut self) -> ClientEvent {
        loop {
            let mut out = BytesMut::new();
            let event = self.codec.receive(&mut self.input, &mut out).unwrap();
            if !out.is_empty() {
                self.send(&out);
            }
            match event {
                Some(event) => return event,
                None => assert!(self.fill() > 0, "the container closed the connection"),
            }
        }
    }

    fn fill(&mut self) -> usize {
        self.try_fill().unwrap()
    }

    fn try_fill(&mut self) -> std::io::Result<usize> {
        let left = self
            .deadline
            .remaining()
            .expect("an answer before the deadline");
        self.socket.set_read_timeout(Some(left))?;
        let mut buffer = vec![0; 64 * 1024];
        let count = self.socket.read(&mut buffer)?;
        self.input.extend_from_slice(&buffer[..count]);
        Ok(count)
    }
}

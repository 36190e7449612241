//! A web server's end of an AJP13 connection, packet by packet and without our codec.

use std::io::{ErrorKind, Read, Write};

use catamaran_connector::Protocol;
use catamaran_testkit::ajp::to_container;
use catamaran_testkit::{Address, Deadline};
use socket2::Socket;

use super::Tier;

/// One connection to a container.
pub(crate) struct Packets {
    pub(crate) socket: Socket,
    input: Vec<u8>,
    deadline: Deadline,
}

/// Everything that answered one request.
#[derive(Debug, Default)]
pub(crate) struct Response {
    /// The payloads of all packets, in order.
    pub(crate) packets: Vec<Vec<u8>>,
    pub(crate) status: u16,
    pub(crate) body: Vec<u8>,
    /// How often the container asked for body bytes.
    pub(crate) asks: usize,
    /// The flag of END_RESPONSE.
    pub(crate) reuse: u8,
}

/// The message codes of the container.
pub(crate) const SEND_BODY_CHUNK: u8 = 3;
pub(crate) const SEND_HEADERS: u8 = 4;
pub(crate) const END_RESPONSE: u8 = 5;
pub(crate) const GET_BODY_CHUNK: u8 = 6;
pub(crate) const CPONG: u8 = 9;

impl Tier {
    pub(crate) fn packets(&self) -> Packets {
        Packets::connect(&self.address(Protocol::Ajp))
    }
}

impl Packets {
    pub(crate) fn connect(address: &Address) -> Self {
        Self {
            socket: address.connect(Deadline::DEFAULT).unwrap(),
            input: Vec::new(),
            deadline: Deadline::default(),
        }
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) {
        self.try_send(bytes).unwrap();
    }

    /// Sends to a container that may have closed before it has everything.
    pub(crate) fn try_send(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.socket
            .set_write_timeout(self.deadline.remaining())
            .unwrap();
        self.socket.write_all(bytes)
    }

    /// CPING as Tomcat's test client sends it, and its answer.
    pub(crate) fn ping(&mut self) {
        self.send(&to_container(&[10, 0, 0, 0xff]));
        assert_eq!(self.packet(), Some(vec![CPONG]));
    }

    /// The payload of the next packet; `None` at the end of the stream, be it by a reset: that is
    /// what follows when something was refused before it was read whole.
    pub(crate) fn packet(&mut self) -> Option<Vec<u8>> {
        loop {
            if let [a, b, high, low, rest @ ..] = &self.input[..] {
                assert_eq!([*a, *b], *b"AB", "the container's magic");
                let length = usize::from(u16::from_be_bytes([*high, *low]));
                if let Some(payload) = rest.get(..length) {
                    let payload = payload.to_vec();
                    self.input.drain(..4 + length);
                    return Some(payload);
                }
            }
            if !self.fill() {
                return None;
            }
        }
    }

    /// One response up to its end; asks are left unanswered.
    pub(crate) fn response(&mut self) -> Response {
        self.response_answering(&[])
    }

    /// The same, answering each ask with `packet`.
    pub(crate) fn response_answering(&mut self, packet: &[u8]) -> Response {
        let mut response = Response::default();
        loop {
            let payload = self.packet().expect("a response to its end");
            match payload[0] {
                SEND_HEADERS => response.status = u16::from_be_bytes([payload[1], payload[2]]),
                SEND_BODY_CHUNK => {
                    let length = usize::from(u16::from_be_bytes([payload[1], payload[2]]));
                    response.body.extend_from_slice(&payload[3..3 + length]);
                }
                GET_BODY_CHUNK => {
                    response.asks += 1;
                    self.send(packet);
                }
                END_RESPONSE => response.reuse = payload[1],
                code => panic!("message {code} in a response"),
            }
            let ended = payload[0] == END_RESPONSE;
            response.packets.push(payload);
            if ended {
                return response;
            }
        }
    }

    /// All bytes up to the end of the stream.
    pub(crate) fn rest(&mut self) -> Vec<u8> {
        while self.fill() {}
        std::mem::take(&mut self.input)
    }

    fn fill(&mut self) -> bool {
        let left = self.deadline.remaining();
        let left = left.expect("bytes or an end before the deadline");
        self.socket.set_read_timeout(Some(left)).unwrap();
        let mut buffer = vec![0; 64 * 1024];
        match self.socket.read(&mut buffer) {
            Ok(count) => {
                self.input.extend_from_slice(&buffer[..count]);
                count > 0
            }
            Err(error) if error.kind() == ErrorKind::ConnectionReset => false,
            Err(error) => panic!("neither bytes nor an end: {error}"),
        }
    }
}

/// How many packets carry body bytes.
pub(crate) fn chunks(packets: &[Vec<u8>]) -> usize {
    let is_chunk = |packet: &&Vec<u8>| packet[0] == SEND_BODY_CHUNK && packet[1..3] != [0, 0];
    packets.iter().filter(is_chunk).count()
}

/// The value of a field that is spelt out in the head.
pub(crate) fn field_of(packets: &[Vec<u8>], name: &str) -> Vec<u8> {
    let head = packets.iter().find(|packet| packet[0] == SEND_HEADERS);
    let head = head.expect("a head");
    let name = catamaran_testkit::ajp::text(name);
    let at = head.windows(name.len()).position(|window| window == name);
    let value = &head[at.expect("the field is in the head") + name.len()..];
    let length = usize::from(u16::from_be_bytes([value[0], value[1]]));
    value[2..2 + length].to_vec()
}

//! Bad input over AJP13 on sockets: testkit's table of the server role on every driver, each row
//! whole and byte by byte.
//!
//! The codec is held to the same rows in its own tests; here it is what sockets, `Conn` and the
//! drivers add: what can be answered is answered with a well-formed head and END_RESPONSE(0)
//! before the close, what cannot be read as AJP13 is dropped without a byte, and the reason is
//! counted.

use catamaran_connector::{Body, Request, Response};
use catamaran_testkit::ajp::{
    App as Behaviour, Expect, Row, data, field, get as forward, server_rows, to_container,
};
use http::StatusCode;

use super::*;
use crate::packets::{CPONG, END_RESPONSE, GET_BODY_CHUNK, Packets, SEND_HEADERS};

/// What the container sent, packet by packet.
struct Answer {
    packets: Vec<Vec<u8>>,
    /// Whether the end of the stream came behind it.
    ended: bool,
}

/// An application that behaves as a row wants it to.
fn tier(io: Model, behaviour: Behaviour) -> Tier {
    let handler = move |_: &Request| {
        let mut response = Response::new(StatusCode::OK, Body::Full("".into()));
        response.after_body = behaviour == Behaviour::Reads;
        response
    };
    Tier::serving(io, handler, |_| {})
}

/// Where the connector's own policy decides about what the codec lets pass.
fn policy(row: &Row) -> Option<Expect> {
    match (row.number, row.what) {
        // Broken escapes are refused as on a request line; others reach the application as sent.
        ("S19", "%zz %2f %5c") => Some(Expect::Refuse(400, "target-escape")),
        // No name is allowed that is not configured or well known.
        ("S29", "unknown name: the connector's policy" | "value null") => {
            Some(Expect::Refuse(403, "attribute"))
        }
        _ => None,
    }
}

impl Answer {
    /// Reads until the end of the stream, or until `complete` says that all has come.
    fn receive(wire: &mut Packets, complete: impl Fn(&[Vec<u8>]) -> bool) -> Self {
        let mut packets = Vec::new();
        while !complete(&packets) {
            match wire.packet() {
                Some(packet) => packets.push(packet),
                None => {
                    let ended = true;
                    return Self { packets, ended };
                }
            }
        }
        let ended = false;
        Self { packets, ended }
    }

    fn count(&self, code: u8) -> usize {
        count(&self.packets, code)
    }

    /// The statuses of all heads; there is never more than one.
    fn statuses(&self) -> Vec<u16> {
        let heads = self
            .packets
            .iter()
            .filter(|packet| packet[0] == SEND_HEADERS);
        heads
            .map(|head| u16::from_be_bytes([head[1], head[2]]))
            .collect()
    }

    /// The reuse flags of all ends; there is never more than one.
    fn ends(&self) -> Vec<u8> {
        let ends = self
            .packets
            .iter()
            .filter(|packet| packet[0] == END_RESPONSE);
        ends.map(|end| end[1]).collect()
    }
}

fn count(packets: &[Vec<u8>], code: u8) -> usize {
    packets.iter().filter(|packet| packet[0] == code).count()
}

fn check_row(tier: &Tier, row: &Row, piece: usize) {
    let name = format!("{} {} in pieces of {piece}", row.number, row.what);
    let expect = policy(row).unwrap_or(row.expect);
    let before = tier.running.counters();
    let mut wire = tier.packets();
    for piece in row.input.chunks(piece) {
        // The connector may close before it has everything, and then writing fails.
        if wire.try_send(piece).is_err() {
            break;
        }
    }
    let pongs_due = match expect {
        Expect::Serve(_, pongs) => pongs,
        _ => 0,
    };
    let complete = |packets: &[Vec<u8>]| match expect {
        Expect::Serve([], pongs) => count(packets, CPONG) == pongs,
        Expect::Serve(..) => packets
            .last()
            .is_some_and(|last| *last == [END_RESPONSE, 1]),
        _ => false,
    };
    let answer = Answer::receive(&mut wire, complete);
    assert_eq!(answer.count(CPONG), pongs_due, "{name}");
    let (statuses, ends) = (answer.statuses(), answer.ends());
    let token = match expect {
        Expect::Refuse(status, token) => {
            assert_eq!((statuses, ends), (vec![status], vec![0]), "{name}");
            Some(token)
        }
        Expect::Drop(token) => {
            assert_eq!(answer.packets, [[0; 0]; 0], "{name}");
            Some(token)
        }
        Expect::Abort(token) => {
            assert_eq!((statuses, ends), (vec![200], vec![]), "{name}");
            Some(token)
        }
        Expect::Serve([], _) => None,
        Expect::Serve(events, _) => {
            assert_eq!((statuses, ends), (vec![200], vec![1]), "{name}");
            let asks = events
                .iter()
                .filter(|event| event.starts_with("body"))
                .count();
            assert!(answer.count(GET_BODY_CHUNK) <= asks + 1, "{name}");
            None
        }
    };
    assert_eq!(answer.ended, token.is_some(), "{name}");
    match token {
        Some(token) => tier.counted(token, &before, &name),
        None => assert_eq!(tier.running.counters().refused, before.refused, "{name}"),
    }
    let served = tier.running.counters().requests - before.requests;
    let is_served = matches!(expect, Expect::Serve([_, ..], _) | Expect::Abort(_));
    assert!(!is_served || served == 1, "{name}: {served} served");
}

fn check_rows(piece: usize) {
    on_each_driver(|io| {
        for behaviour in [Behaviour::Reads, Behaviour::Early] {
            let tier = tier(io, behaviour);
            let rows = server_rows();
            let mut rows = rows.iter().filter(|row| row.app == behaviour).peekable();
            assert!(rows.peek().is_some());
            rows.for_each(|row| check_row(&tier, row, piece));
            assert!(tier.ajp().get("/").reuse, "the connector is as it was");
        }
    });
}

#[test]
fn every_row_whole() {
    check_rows(usize::MAX);
}

#[test]
fn every_row_byte_by_byte() {
    check_rows(1);
}

#[test]
fn every_cut_head_is_dropped_without_being_served() {
    on_each_tier(|tier| {
        let head = forward().field(field("a", "b")).packet();
        for length in 1..head.len() {
            let mut wire = tier.packets();
            wire.send(&head[..length]);
            wire.socket.shutdown(std::net::Shutdown::Write).unwrap();
            assert_eq!(wire.rest(), b"", "{length}");
        }
        assert_eq!(tier.running.counters().requests, 0);
    });
}

#[test]
fn tails_of_pings_and_stray_empty_packets_are_tolerated() {
    on_each_tier(|tier| {
        let mut wire = tier.packets();
        wire.ping();
        for stray in [to_container(&[]), data(b"")] {
            wire.send(&forward().packet());
            assert_eq!(wire.response().reuse, 1);
            wire.send(&stray);
        }
        wire.ping();
    });
}

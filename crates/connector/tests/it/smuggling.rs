//! Requests hidden in bodies: bytes that a front may not have sent are never taken for a request.
//!
//! No front sends its next request before it has seen END_RESPONSE. So whatever else has arrived
//! by then was written by somebody else, and the connection ends with the response.

use catamaran_testkit::ajp::{coded, data, field, get as forward, text};
use tokio::time::Instant;

use super::*;

/// A FORWARD_REQUEST for `/status/299`, which the tests never want to see answered.
fn hidden() -> Vec<u8> {
    forward().uri(text("/status/299")).packet()
}

/// A DATA packet that a parser reads as a GET if it expects no body: inner length 0x0202.
fn disguised() -> Vec<u8> {
    let mut inside = forward().uri(text("/status/299")).payload()[2..].to_vec();
    inside.resize(0x0202, 0);
    data(&inside)
}

/// Sends all of it in one write; exactly one request is served, and nothing follows its end.
fn last_of_its_connection(io: Model, bytes: &[Vec<u8>], status: u16) {
    let tier = Tier::start(io);
    let mut wire = tier.packets();
    wire.send(&bytes.concat());
    let response = wire.response();
    assert_eq!((response.status, response.reuse), (status, 0));
    assert_eq!(wire.rest(), b"");
    assert_eq!(tier.running.counters().requests, 1);
}

/// CVE-2022-26377: a front that does not know the coding sends the body without being asked.
#[test]
fn an_unasked_chunked_body_is_no_request() {
    on_each_driver(|io| {
        let chunked = field("transfer-encoding", "chunked");
        let request = forward().method(4).field(chunked).packet();
        last_of_its_connection(io, &[request.clone(), hidden()], 200);
        last_of_its_connection(io, &[request, disguised()], 200);
    });
}

#[test]
fn an_unasked_body_without_any_length_is_no_request() {
    on_each_driver(|io| {
        last_of_its_connection(io, &[forward().method(4).packet(), disguised()], 200);
    });
}

#[test]
fn a_request_sent_ahead_is_not_served() {
    on_each_driver(|io| last_of_its_connection(io, &[forward().packet(), hidden()], 200));
}

#[test]
fn a_request_behind_the_owed_packet_is_not_served() {
    on_each_driver(|io| {
        let request = forward().method(4).field(coded(8, "5")).packet();
        last_of_its_connection(io, &[request, data(b"hello"), hidden()], 200);
    });
}

/// CVE-2011-3190: the body of a request that was answered early is swallowed, not dispatched.
#[test]
fn the_body_of_a_refused_request_is_swallowed() {
    on_each_tier(|tier| {
        for status in [403, 404, 413] {
            let mut wire = tier.packets();
            let path = text(format!("/status/{status}"));
            let request = forward().method(4).uri(path).field(coded(8, "514"));
            wire.send(&[request.packet(), disguised()].concat());
            let response = wire.response();
            assert_eq!((response.status, response.reuse), (status, 1));
            wire.send(&forward().packet());
            assert_eq!(wire.response().status, 200, "the next is the next");
        }
        assert_eq!(tier.running.counters().requests, 6);
    });
}

#[test]
fn nothing_behind_a_refusal_is_served() {
    on_each_driver(|io| {
        let tier = Tier::with(io, |config| {
            config.secret = catamaran_connector::Secret::new("s");
        });
        let mut wire = tier.packets();
        let request = forward().method(4).field(coded(8, "514")).packet();
        wire.send(&[request, disguised(), hidden()].concat());
        let response = wire.response();
        assert_eq!((response.status, response.reuse), (403, 0));
        assert_eq!(wire.rest(), b"");
        assert_eq!(tier.running.counters().requests, 0);
    });
}

/// The usual case is an application that takes its time: the bytes arrive while it works.
#[test]
fn bytes_that_arrive_while_the_application_works_are_no_request() {
    on_each_driver(|io| {
        // On a busy machine the bytes may come behind the response, where they are a request; then another one is asked.
        let checked = Deadline::default().poll("bytes in time", || {
            let tier = Tier::start(io);
            let mut wire = tier.packets();
            let began = Instant::now();
            wire.send(&forward().method(4).uri(text("/delay/100")).packet());
            let requests = || (tier.running.counters().requests == 1).then_some(());
            Deadline::default().poll("the request", requests).unwrap();
            wire.send(&hidden());
            if began.elapsed() >= Duration::from_millis(100) {
                return None;
            }
            let response = wire.response();
            assert_eq!((response.status, response.reuse), (200, 0));
            assert_eq!(wire.rest(), b"");
            assert_eq!(tier.running.counters().requests, 1);
            Some(())
        });
        checked.unwrap();
    });
}

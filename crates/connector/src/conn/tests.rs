//! Tests by transcripts: bytes in, bytes out, without a socket or a clock.

use std::io::IoSlice;
use std::net::SocketAddr;
use std::num::NonZeroU64;

use bytes::Bytes;
use catamaran_ajp as ajp;
use catamaran_message::Fields;
use http::Method;

use super::*;
use crate::output::{OUT_MARK, SLICES_MAX};
use crate::{App, Handler, Secret};

mod ajp13;
mod http11;
mod piped;

/// A driver for tests: it gives a connection the bytes of a script, and does not wait for
/// anything.
struct Play {
    conn: Conn,
    app: App,
    input: BytesMut,
    out: Output,
    sent: Vec<u8>,
    waits: Vec<Duration>,
    /// The most bytes that waited to be sent at any time.
    out_max: usize,
    action: Action,
}

impl Play {
    fn new(protocol: Protocol) -> Self {
        Self::with(protocol, Config::default(), Peer::Unix)
    }

    fn with(protocol: Protocol, config: Config, peer: Peer) -> Self {
        let mut play = Self {
            conn: Conn::new(protocol, peer, Arc::new(config)),
            app: App::new(),
            input: BytesMut::new(),
            out: Output::default(),
            sent: Vec::new(),
            waits: Vec::new(),
            out_max: 0,
            action: Action::Write,
        };
        play.run();
        play
    }

    /// Gives `bytes` to the connection in pieces of `size`, and lets it continue after
    /// each.
    fn feed_by(&mut self, size: usize, bytes: &[u8]) -> &mut Self {
        for piece in bytes.chunks(size) {
            if matches!(self.action, Action::Close(_)) {
                break;
            }
            self.input.extend_from_slice(piece);
            self.run();
        }
        self
    }

    fn feed(&mut self, bytes: impl AsRef<[u8]>) -> &mut Self {
        self.feed_by(usize::MAX, bytes.as_ref())
    }

    fn eof(&mut self) -> &mut Self {
        self.call(Conn::handle_eof)
    }

    fn time_out(&mut self) -> &mut Self {
        self.call(Conn::handle_timeout)
    }

    fn hang_up(&mut self) -> &mut Self {
        self.call(|conn, io| conn.handle_hangup(io).expect("it matters"))
    }

    fn call(&mut self, event: impl FnOnce(&mut Conn, &mut Io<'_>) -> Action) -> &mut Self {
        let io = &mut Io {
            input: &mut self.input,
            out: &mut self.out,
            date: Some(DATE),
        };
        self.action = event(&mut self.conn, io);
        self.flush();
        self
    }

    fn run(&mut self) {
        self.call(Conn::poll);
        loop {
            match std::mem::replace(&mut self.action, Action::Write) {
                Action::Serve(request) => {
                    let response = self.app.handle(&request);
                    self.call(|conn, io| conn.respond(response, io));
                }
                Action::Wait(pause) => {
                    self.waits.push(pause);
                    self.call(Conn::poll);
                }
                Action::Write => {
                    self.call(Conn::poll);
                }
                action => {
                    self.action = action;
                    break;
                }
            }
        }
    }

    fn flush(&mut self) {
        self.out_max = self.out_max.max(self.out.len());
        self.sent.extend(written(&mut self.out));
    }

    /// Returns what was sent since the last call.
    fn sent(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.sent)
    }

    fn text(&mut self) -> String {
        String::from_utf8_lossy(&self.sent()).into_owned()
    }

    fn awaiting(&self) -> Option<WaitClass> {
        match self.action {
            Action::Read(awaiting) => Some(awaiting),
            _ => None,
        }
    }

    fn closed(&self) -> Option<Close> {
        match self.action {
            Action::Close(close) => Some(close),
            _ => None,
        }
    }

    fn reason(&self) -> Option<&'static str> {
        self.closed().expect("the connection is closed").reason
    }
}

/// Takes all bytes out of `out`.
fn written(out: &mut Output) -> Vec<u8> {
    let mut bytes = Vec::new();
    while !out.is_empty() {
        let mut slices = [IoSlice::new(&[]); SLICES_MAX];
        let before = bytes.len();
        for slice in out.slices(&mut slices) {
            bytes.extend_from_slice(slice);
        }
        out.advance(bytes.len() - before);
    }
    bytes
}

/// Checks that the answer to `bytes` is the same in whatever pieces they arrive, and
/// returns it.
fn check_splits(protocol: Protocol, bytes: &[u8]) -> Vec<u8> {
    let whole = Play::new(protocol).feed(bytes).sent();
    for size in [1, 2, 7, 100] {
        let mut play = Play::new(protocol);
        let split = play.feed_by(size, bytes).sent();
        assert_eq!(split, whole, "in pieces of {size}");
    }
    whole
}

const DATE: &str = "Sun, 06 Nov 1994 08:49:37 GMT";

const ORDERLY: Close = Close {
    linger: false,
    reason: None,
};

//! Transcripts with applications that run elsewhere; the test also plays the application.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Poll, Waker};

use super::*;
use crate::pipe::{self, BODY_MARK, BodyEnd, ClosedPipe, PARTS_MARK, ResponseEnd, Wake, Wakeup};

/// Counts how often the driver was woken.
#[derive(Debug, Default)]
struct Woken(AtomicUsize);

impl Wake for Woken {
    fn wake(&self, key: usize) {
        assert_eq!(key, KEY);
        self.0.fetch_add(1, Relaxed);
    }
}

impl std::task::Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Relaxed);
    }
}

/// The application's side of one exchange, played by a test.
pub(super) struct Script {
    request: Request,
    body: Option<BodyEnd>,
    response: Option<ResponseEnd>,
    driver: Arc<Woken>,
    own: Arc<Woken>,
}

impl Script {
    /// Sends a request to the connection, and begins an exchange that a pipe answers.
    pub(super) fn begin(play: &mut Play, bytes: impl AsRef<[u8]>) -> Self {
        play.input.extend_from_slice(bytes.as_ref());
        play.call(Conn::poll);
        let Action::Serve(request) = std::mem::replace(&mut play.action, Action::Write) else {
            panic!("no request")
        };
        let driver = Arc::new(Woken::default());
        let wakeup = Wakeup {
            driver: Arc::<Woken>::clone(&driver),
            key: KEY,
        };
        let (port, body, response) = pipe::pipe(wakeup, request.body);
        play.call(|conn, io| conn.attach(port, io));
        Self {
            request: *request,
            body: Some(body),
            response: Some(response),
            driver,
            own: Arc::default(),
        }
    }

    /// Begins to read the body, and answers without waiting for any byte of it.
    pub(super) fn refuse_while_reading(&mut self, play: &mut Play) {
        assert!(self.read(&mut Vec::new()).is_pending());
        play.run();
        self.head(BodyLength::Known(0));
        self.end();
        play.run();
    }

    fn waker(&self) -> Waker {
        Arc::clone(&self.own).into()
    }

    fn response(&self) -> &ResponseEnd {
        self.response.as_ref().expect("the response goes on")
    }

    fn head(&self, length: BodyLength) -> &Self {
        self.response().set_head(pipe::Head {
            status: StatusCode::OK,
            headers: Fields::new(),
            length,
        });
        self
    }

    fn push(&self, data: impl Into<Bytes>) -> &Self {
        self.response().push(data.into()).expect("a connection");
        self
    }

    fn end(&mut self) {
        self.response.take().expect("only one end").end();
    }

    /// Reads what has arrived of the body; `Ready(Ok)` if the body has ended.
    fn read(&self, to: &mut Vec<u8>) -> Poll<Result<(), &'static str>> {
        let body = self.body.as_ref().expect("a body");
        loop {
            match body.poll_read(&self.waker()) {
                Poll::Ready(Some(Ok(piece))) => to.extend_from_slice(&piece),
                Poll::Ready(Some(Err(error))) => return Poll::Ready(Err(error.reason())),
                Poll::Ready(None) => return Poll::Ready(Ok(())),
                Poll::Pending => return Poll::Pending,
            }
        }
    }

    /// How often the driver was woken since the last call.
    fn wakes(&self) -> usize {
        self.driver.0.swap(0, Relaxed)
    }

    fn is_gone(&self) -> bool {
        let response = self.response.as_ref().expect("the response goes on");
        response.poll_gone(&self.waker()).is_ready()
    }
}

fn get(protocol: Protocol) -> Vec<u8> {
    match protocol {
        Protocol::Ajp => ajp13::get("/"),
        Protocol::Http => http11::get("/").into_bytes(),
    }
}

/// The head of a request whose body of `length` bytes, or of unknown length, has not been
/// sent yet.
fn post(protocol: Protocol, length: Option<u64>) -> Vec<u8> {
    match (protocol, length) {
        (Protocol::Ajp, Some(length)) => ajp13::post("/", BodyLength::Known(length)),
        (Protocol::Ajp, None) => ajp13::post("/", BodyLength::Unknown),
        (Protocol::Http, Some(length)) => {
            format!("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n").into()
        }
        (Protocol::Http, None) => {
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n".into()
        }
    }
}

/// A piece of a body of known length, as the protocol sends it.
fn piece(protocol: Protocol, bytes: &[u8]) -> Vec<u8> {
    match protocol {
        Protocol::Ajp => ajp13::data(bytes),
        Protocol::Http => bytes.to_vec(),
    }
}

fn body_of(protocol: Protocol, answer: &[u8]) -> Vec<u8> {
    match protocol {
        Protocol::Ajp => ajp13::body(answer),
        Protocol::Http => http11::body(std::str::from_utf8(answer).unwrap()).into(),
    }
}

fn on_both(check: impl Fn(Protocol, Play)) {
    for protocol in [Protocol::Ajp, Protocol::Http] {
        check(protocol, Play::new(protocol));
    }
}

fn is_parked(play: &Play) -> bool {
    let parked = Action::Park {
        awaiting: None,
        write: false,
    };
    format!("{:?}", play.action) == format!("{parked:?}")
}

fn reads_while_parked(play: &Play) -> bool {
    matches!(
        play.action,
        Action::Park {
            awaiting: Some(WaitClass::Body),
            ..
        }
    )
}

/// Checks that the connection serves another request.
fn check_next(protocol: Protocol, play: &mut Play) {
    play.sent();
    play.feed(get(protocol));
    assert_eq!(body_of(protocol, &play.sent()).len(), 347);
    assert_eq!(play.awaiting(), Some(WaitClass::NextRequest));
}

#[test]
fn a_small_response_is_kept_together_and_its_length_told() {
    on_both(|protocol, mut play| {
        let mut script = Script::begin(&mut play, get(protocol));
        assert!(is_parked(&play));
        assert_eq!(script.request.path, "/");
        script
            .head(BodyLength::Unknown)
            .push("hello, ")
            .push("world");
        play.run();
        assert_eq!((play.sent(), script.wakes()), (vec![], 0), "not let go yet");
        script.end();
        assert_eq!(script.wakes(), 1);
        play.run();
        let answer = play.sent();
        assert_eq!(body_of(protocol, &answer), b"hello, world");
        let head = String::from_utf8_lossy(&answer).to_ascii_lowercase();
        match protocol {
            Protocol::Ajp => assert_eq!(ajp13::codes(&answer), [4, 3, 5]),
            Protocol::Http => assert!(head.contains("content-length: 12\r\n"), "{head}"),
        }
        check_next(protocol, &mut play);
    });
}

#[test]
fn a_response_that_comes_during_a_look_is_whole_at_the_next() {
    let driver = Arc::new(Woken::default());
    let wakeup = Wakeup {
        driver: Arc::<Woken>::clone(&driver),
        key: KEY,
    };
    let (port, _body, response) = pipe::pipe(wakeup, BodyLength::Known(0));
    assert!(!port.wants_body());
    assert!(port.take_head().is_none());
    response.set_head(pipe::Head {
        status: StatusCode::OK,
        headers: Fields::new(),
        length: BodyLength::Unknown,
    });
    response.push(Bytes::from_static(b"late")).unwrap();
    response.end();
    let progress = port.send(|parts| panic!("{} bytes without a head", parts.len()));
    assert_eq!(progress, pipe::Progress::Open { flush: false });
    assert_eq!(driver.0.load(Relaxed), 1);
    assert!(port.take_head().is_some());
}

#[test]
fn a_flush_sends_what_there_is() {
    on_both(|protocol, mut play| {
        let mut script = Script::begin(&mut play, get(protocol));
        script
            .head(BodyLength::Unknown)
            .push("one")
            .response()
            .flush()
            .unwrap();
        assert_eq!(script.wakes(), 1);
        play.run();
        let first = play.sent();
        match protocol {
            // The empty chunk is what has a front pass it on.
            Protocol::Ajp => assert_eq!(ajp13::codes(&first), [4, 3, 3]),
            Protocol::Http => assert!(first.ends_with(b"3\r\none\r\n")),
        }
        script.push("two");
        script.end();
        play.run();
        match protocol {
            Protocol::Ajp => assert_eq!(ajp13::body(&play.sent()), b"two"),
            Protocol::Http => assert_eq!(play.text(), "3\r\ntwo\r\n0\r\n\r\n"),
        }
        check_next(protocol, &mut play);
    });
}

#[test]
fn small_pieces_fill_chunks() {
    let mut play = Play::new(Protocol::Ajp);
    let mut script = Script::begin(&mut play, ajp13::get("/"));
    script.head(BodyLength::Unknown);
    for _ in 0..300 {
        script.push(vec![b'x'; 100]);
    }
    script.end();
    play.run();
    let packets = ajp13::packets(&play.sent());
    let sizes: Vec<usize> = packets.iter().map(|(_, packet)| packet.len()).collect();
    assert_eq!(sizes[1..], [8187, 8187, 8187, 30_000 - 3 * 8184 + 3, 1]);
}

#[test]
fn a_body_is_read_when_asked_for_and_no_further_than_the_mark() {
    on_both(|protocol, mut play| {
        let length = 4 * BODY_MARK as u64;
        let script = Script::begin(&mut play, post(protocol, Some(length)));
        assert!(is_parked(&play), "nobody has asked");
        let mut read = Vec::new();
        assert!(script.read(&mut read).is_pending());
        assert_eq!(script.wakes(), 1);
        play.run();
        assert!(reads_while_parked(&play));
        let bytes = vec![b'b'; 8000];
        let mut sent = 0;
        while reads_while_parked(&play) {
            play.feed(piece(protocol, &bytes));
            sent += bytes.len();
        }
        assert!(is_parked(&play));
        assert!((BODY_MARK..BODY_MARK + 2 * bytes.len()).contains(&sent));
        assert_eq!(
            script.own.0.load(Relaxed),
            1,
            "told once that there is something"
        );
        assert!(script.read(&mut read).is_pending());
        assert_eq!(read.len(), sent);
        play.run();
        assert!(reads_while_parked(&play));
    });
}

#[test]
fn both_directions_go_on_at_the_same_time() {
    on_both(|protocol, mut play| {
        let mut script = Script::begin(&mut play, post(protocol, Some(6)));
        script.head(BodyLength::Known(6));
        let mut seen = Vec::new();
        assert!(script.read(&mut seen).is_pending());
        play.run();
        let mut echoed = Vec::new();
        for (input, output) in [("abc", "ABC"), ("def", "DEF")] {
            play.feed(piece(protocol, input.as_bytes()));
            let _ = script.read(&mut seen);
            script.push(output).response().flush().unwrap();
            play.run();
            echoed.extend(play.sent());
        }
        assert_eq!(script.read(&mut seen), Poll::Ready(Ok(())));
        assert_eq!(seen, b"abcdef");
        script.end();
        play.run();
        echoed.extend(play.sent());
        match protocol {
            Protocol::Ajp => assert_eq!(ajp13::body(&echoed), b"ABCDEF"),
            Protocol::Http => assert!(echoed.ends_with(b"ABCDEF")),
        }
        check_next(protocol, &mut play);
    });
}

#[test]
fn a_body_of_unknown_length_ends_for_the_application() {
    on_both(|protocol, mut play| {
        let mut script = Script::begin(&mut play, post(protocol, None));
        let mut seen = Vec::new();
        assert!(script.read(&mut seen).is_pending());
        play.run();
        match protocol {
            Protocol::Ajp => play.feed(ajp13::data(b"abc")).feed(ajp13::data(b"")),
            Protocol::Http => play.feed("3\r\nabc\r\n0\r\n\r\n"),
        };
        assert_eq!(script.read(&mut seen), Poll::Ready(Ok(())));
        assert_eq!(seen, b"abc");
        script.head(BodyLength::Unknown);
        script.end();
        play.run();
        check_next(protocol, &mut play);
    });
}

#[test]
fn an_early_answer_leaves_the_body_to_be_swallowed() {
    on_both(|protocol, mut play| {
        let mut script = Script::begin(&mut play, post(protocol, Some(5)));
        script.head(BodyLength::Known(2)).push("no");
        script.end();
        play.run();
        assert_eq!(play.awaiting(), Some(WaitClass::Leftover));
        let mut seen = Vec::new();
        let closed = script.read(&mut seen);
        assert_eq!(closed, Poll::Ready(Err("exchange-over")), "for good");
        play.feed(piece(protocol, b"later"));
        check_next(protocol, &mut play);
    });
}

#[test]
fn a_body_partly_read_does_no_harm() {
    on_both(|protocol, mut play| {
        let mut script = Script::begin(&mut play, post(protocol, Some(10)));
        let mut seen = Vec::new();
        assert!(script.read(&mut seen).is_pending());
        play.run();
        play.feed(piece(protocol, b"01234"));
        script.body = None;
        script.head(BodyLength::Known(0));
        script.end();
        play.run();
        play.feed(piece(protocol, b"56789"));
        check_next(protocol, &mut play);
    });
}

#[test]
fn continue_is_sent_when_the_body_is_first_asked_for() {
    let mut play = Play::new(Protocol::Http);
    let request = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n";
    let mut script = Script::begin(&mut play, request);
    play.run();
    assert_eq!(play.text(), "");
    let mut seen = Vec::new();
    assert!(script.read(&mut seen).is_pending());
    play.run();
    assert_eq!(play.text(), "HTTP/1.1 100 Continue\r\n\r\n");
    play.feed("ok");
    assert_eq!(script.read(&mut seen), Poll::Ready(Ok(())));
    script.head(BodyLength::Known(0));
    script.end();
    play.run();
    assert!(!play.text().to_ascii_lowercase().contains("close"));
    check_next(Protocol::Http, &mut play);

    let mut refusing = Script::begin(&mut play, request);
    refusing.head(BodyLength::Known(0));
    refusing.end();
    play.run();
    assert!(
        play.text()
            .to_ascii_lowercase()
            .contains("connection: close")
    );
    assert!(play.closed().is_some_and(|close| close.reason.is_none()));
}

#[test]
fn a_response_is_taken_no_faster_than_it_is_sent() {
    on_both(|protocol, mut play| {
        let script = Script::begin(&mut play, get(protocol));
        script.head(BodyLength::Unknown);
        let waker = script.waker();
        let mut pushed = 0;
        while script.response().poll_room(&waker).is_ready() {
            script.push(vec![b'x'; 5000]);
            pushed += 5000;
        }
        assert!((PARTS_MARK..PARTS_MARK + 5000).contains(&pushed));
        assert_eq!(script.wakes(), 1);

        let mut out = Output::default();
        out.push(vec![b'o'; OUT_MARK].into());
        let mut io = Io {
            input: &mut play.input,
            out: &mut out,
            date: Some(DATE),
        };
        let action = play.conn.poll(&mut io);
        assert!(
            matches!(action, Action::Park { write: true, .. }),
            "{action:?}"
        );
        assert_eq!(script.own.0.load(Relaxed), 0, "the output had no room");
        written(&mut out);
        play.run();
        assert_eq!(script.own.0.load(Relaxed), 1);
        assert!(script.response().poll_room(&waker).is_ready());
    });
}

#[test]
fn a_failure_before_the_head_is_a_500_and_after_it_a_cut() {
    on_both(|protocol, mut play| {
        let mut script = Script::begin(&mut play, get(protocol));
        script.head(BodyLength::Unknown).push("never seen");
        script.response.take().unwrap().fail("handler-error");
        assert_eq!(script.wakes(), 1);
        play.run();
        let answer = play.sent();
        match protocol {
            Protocol::Ajp => assert_eq!(ajp13::status(&answer), 500),
            Protocol::Http => assert!(answer.starts_with(b"HTTP/1.1 500 ")),
        }
        assert!(!answer.windows(4).any(|bytes| bytes == b"seen"));
        assert_eq!(play.reason(), Some("handler-error"));

        let mut play = Play::new(protocol);
        let mut script = Script::begin(&mut play, get(protocol));
        script
            .head(BodyLength::Unknown)
            .push("half")
            .response()
            .flush()
            .unwrap();
        play.run();
        script.push("never seen");
        script.response = None;
        play.run();
        let answer = play.sent();
        match protocol {
            Protocol::Ajp => assert_eq!(ajp13::codes(&answer), [4, 3, 3], "no END_RESPONSE"),
            Protocol::Http => assert!(answer.ends_with(b"4\r\nhalf\r\n"), "no last chunk"),
        }
        assert_eq!(play.reason(), Some("handler-gave-up"));
    });
}

#[test]
fn a_response_of_another_length_than_announced_is_no_whole_one() {
    on_both(|protocol, mut play| {
        let mut script = Script::begin(&mut play, get(protocol));
        script.head(BodyLength::Known(9)).push("short");
        script.end();
        play.run();
        assert_eq!(play.reason(), Some("response-length"));
        let answer = play.sent();
        if protocol == Protocol::Ajp {
            assert_eq!(ajp13::codes(&answer), [4, 3], "no END_RESPONSE");
        }

        let mut play = Play::new(protocol);
        let mut script = Script::begin(&mut play, get(protocol));
        script.head(BodyLength::Known(2)).push("too long");
        script.end();
        play.run();
        assert!(play.closed().is_some());
        assert_eq!(body_of(protocol, &play.sent()), b"to");
    });
}

#[test]
fn a_response_without_a_body_ends_with_its_head() {
    on_both(|protocol, mut play| {
        let request = match protocol {
            Protocol::Ajp => ajp13::request(&Method::HEAD, "/", ajp13::NO_BODY, &[]),
            Protocol::Http => "HEAD / HTTP/1.1\r\nHost: a\r\n\r\n".into(),
        };
        let script = Script::begin(&mut play, request);
        script
            .head(BodyLength::Known(1 << 40))
            .response()
            .flush()
            .unwrap();
        play.run();
        assert!(script.is_gone());
        assert_eq!(script.response().push("x".into()), Err(ClosedPipe));
        assert_eq!(play.awaiting(), Some(WaitClass::NextRequest));
        check_next(protocol, &mut play);
    });
}

#[test]
fn a_peer_that_leaves_takes_the_exchange_along() {
    on_both(|protocol, mut play| {
        let mut script = Script::begin(&mut play, get(protocol));
        assert!(!script.is_gone());
        play.hang_up();
        if protocol == Protocol::Http {
            // Perhaps it has merely finished sending.
            assert!(play.closed().is_none() && !script.is_gone());
            play.time_out();
        }
        assert_eq!(play.reason(), Some("peer-gone"));
        assert_eq!(script.own.0.load(Relaxed), 1, "told");
        assert!(script.is_gone());
        assert_eq!(script.response().copy(b"x"), Err(ClosedPipe));
        script.end();
    });
}

#[test]
fn a_client_that_has_finished_sending_is_answered() {
    let mut play = Play::new(Protocol::Http);
    let mut script = Script::begin(&mut play, http11::get("/"));
    play.hang_up();
    let waits = |play: &Play| {
        matches!(
            play.action,
            Action::Park {
                awaiting: Some(WaitClass::Answer),
                ..
            }
        )
    };
    assert!(waits(&play));
    script.head(BodyLength::Known(2)).push("o");
    script.response().flush().unwrap();
    play.run();
    assert!(is_parked(&play), "a sign of life: the deadline starts anew");
    play.hang_up();
    assert!(waits(&play));
    script.push("k");
    script.end();
    play.run();
    assert_eq!(http11::body(&play.text()), "ok");
}

#[test]
fn a_body_that_stops_half_way_is_an_error_for_the_application() {
    on_both(|protocol, mut play| {
        let script = Script::begin(&mut play, post(protocol, Some(10)));
        let mut seen = Vec::new();
        assert!(script.read(&mut seen).is_pending());
        play.run();
        play.feed(piece(protocol, b"half")).eof();
        let Poll::Ready(Err(reason)) = script.read(&mut seen) else {
            panic!("no error")
        };
        assert_eq!(
            (seen.as_slice(), Some(reason)),
            (&b"half"[..], play.reason())
        );
    });
}

#[test]
fn only_who_waits_for_the_body_is_kept_waiting() {
    on_both(|protocol, mut play| {
        let script = Script::begin(&mut play, post(protocol, Some(10)));
        let mut seen = Vec::new();
        assert!(script.read(&mut seen).is_pending());
        play.run();
        play.feed(piece(protocol, b"half"));
        play.time_out();
        assert!(
            reads_while_parked(&play),
            "the application is busy with a piece"
        );
        assert!(script.read(&mut seen).is_pending());
        play.time_out();
        assert_eq!(script.read(&mut seen), Poll::Ready(Err("body-timeout")));
        assert_eq!(play.reason(), Some("body-timeout"));
        let answer = play.sent();
        match protocol {
            Protocol::Ajp => assert_eq!(ajp13::status(&answer), 408),
            Protocol::Http => assert!(answer.starts_with(b"HTTP/1.1 408 ")),
        }
    });
}

#[test]
fn bytes_that_refuse_a_body_end_the_exchange() {
    let mut play = Play::new(Protocol::Http);
    let script = Script::begin(&mut play, post(Protocol::Http, None));
    let mut seen = Vec::new();
    assert!(script.read(&mut seen).is_pending());
    play.run();
    play.feed("3\r\nabc\r\nzz\r\n");
    assert_eq!(script.read(&mut seen), Poll::Ready(Err("chunk-size")));
    assert!(play.text().starts_with("HTTP/1.1 400 "));
    assert_eq!(play.reason(), Some("chunk-size"));
}

#[test]
fn draining_lets_the_exchange_end() {
    on_both(|protocol, mut play| {
        let mut script = Script::begin(&mut play, get(protocol));
        play.conn.drain();
        play.run();
        assert!(is_parked(&play));
        script.head(BodyLength::Unknown).push("last");
        script.end();
        play.run();
        assert_eq!(body_of(protocol, &play.sent()), b"last");
        assert!(play.closed().is_some_and(|close| close.reason.is_none()));
    });
}

const KEY: usize = 7;

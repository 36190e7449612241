//! Transcripts of HTTP/1.1.

use super::*;

fn http() -> Play {
    Play::new(Protocol::Http)
}

pub(super) fn get(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n")
}

fn post(path: &str, body: &str) -> String {
    let length = body.len();
    format!("POST {path} HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n{body}")
}

pub(super) fn body(response: &str) -> &str {
    response.split_once("\r\n\r\n").expect("a head").1
}

/// Checks that `answer` announces the end of the connection and that the driver waits for
/// the peer's end, and returns how it closes.
#[track_caller]
fn announced_close(play: &Play, answer: &str) -> Close {
    let fields = answer.to_ascii_lowercase();
    assert!(fields.contains("connection: close"), "{answer}");
    let close = play.closed().expect("the connection is closed");
    assert!(close.linger, "{close:?}");
    close
}

#[test]
fn a_page_has_its_length_and_a_date_and_leaves_the_connection_open() {
    let mut play = http();
    assert_eq!(play.awaiting(), Some(WaitClass::FirstByte));
    let page = play.feed(get("/")).text();
    assert!(page.starts_with("HTTP/1.1 200 OK\r\n"), "{page}");
    let lower = page.to_ascii_lowercase();
    assert!(lower.contains("\r\ncontent-length: 347\r\n"), "{page}");
    assert!(page.contains(DATE), "{page}");
    assert_eq!(body(&page).len(), 347);
    assert_eq!(play.awaiting(), Some(WaitClass::NextRequest));
}

#[test]
fn the_same_bytes_get_the_same_answers_however_they_arrive() {
    let requests = [
        get("/"),
        get("/") + &get("/status/404") + &post("/echo", "hello") + &get("/bytes/100000"),
        "HEAD /bytes/5 HTTP/1.1\r\nHost: a\r\n\r\n".to_owned() + &get("/status/204"),
        post("/status/200", "unread") + &get("/snoop"),
        post("/sink", "gone") + &get("/sink"),
        "GET / HTTP/1.0\r\n\r\n".to_owned() + &get("/"),
        get("/stream/3/10"),
        "GET / HTTP/1.1\r\n\r\n".to_owned(),
        "nonsense\r\n\r\n".to_owned(),
    ];
    for request in requests {
        let answer = check_splits(Protocol::Http, request.as_bytes());
        assert!(answer.starts_with(b"HTTP/1.1 "), "{request}");
    }
}

#[test]
fn head_and_204_have_no_body() {
    let mut play = http();
    let head = play
        .feed("HEAD /bytes/1000000000000000000 HTTP/1.1\r\nHost: a\r\n\r\n")
        .text();
    assert!(
        head.to_ascii_lowercase()
            .contains("content-length: 1000000000000000000\r\n"),
        "{head}"
    );
    assert_eq!(body(&head), "");
    let empty = play.feed(get("/status/204")).text();
    assert_eq!(body(&empty), "");
    let reset = play.feed(get("/status/205")).text();
    assert_eq!(body(&reset), "");
    assert_eq!(play.awaiting(), Some(WaitClass::NextRequest));
}

#[test]
fn an_echo_streams_within_bounds() {
    let mut play = http();
    let length = 4 << 20;
    play.feed(format!(
        "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n"
    ));
    assert_eq!(play.awaiting(), Some(WaitClass::Body));
    let piece = vec![b'%'; 32 * 1024];
    for _ in 0..length / piece.len() {
        play.feed(&piece);
        assert!(play.input.is_empty());
    }
    assert!(play.out_max <= OUT_MARK + PIECE, "{}", play.out_max);
    let echoed = play.sent();
    assert_eq!(echoed.iter().filter(|byte| **byte == b'%').count(), length);
    assert_eq!(play.awaiting(), Some(WaitClass::NextRequest));
}

#[test]
fn a_sink_is_silent_until_the_body_has_ended() {
    let mut play = http();
    let length = 4 << 20;
    play.feed(format!(
        "POST /sink HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n"
    ));
    let piece = vec![b'%'; 32 * 1024];
    for _ in 0..length / piece.len() {
        assert_eq!(play.awaiting(), Some(WaitClass::Body));
        assert_eq!(play.sent(), b"");
        play.feed(&piece);
    }
    assert_eq!(body(&play.text()), "all of it read\n");
    assert_eq!(play.awaiting(), Some(WaitClass::NextRequest));
}

#[test]
fn a_sink_lets_the_client_continue_and_keeps_the_connection() {
    let mut play = http();
    let head =
        "POST /sink HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n";
    let first = play.feed(head).text();
    assert!(first.starts_with("HTTP/1.1 100 "), "{first}");
    assert_eq!(body(&play.feed("ok").text()), "all of it read\n");
    assert_eq!(play.awaiting(), Some(WaitClass::NextRequest));
}

#[test]
fn a_chunked_echo_is_chunked_anew() {
    let mut play = http();
    let head = "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
    play.feed(head.to_owned() + "3;ignored=1\r\nabc\r\n0\r\nTrailer: dropped\r\n\r\n");
    let echo = play.text();
    assert!(echo.ends_with("\r\n3\r\nabc\r\n0\r\n\r\n"), "{echo}");
    assert_eq!(play.awaiting(), Some(WaitClass::NextRequest));
}

#[test]
fn a_large_response_is_produced_only_as_it_is_sent() {
    let mut conn = Conn::new(Protocol::Http, Peer::Unix, Arc::new(Config::default()));
    let (mut input, mut out) = (
        BytesMut::from(get("/bytes/18446744073709551615").as_bytes()),
        Output::default(),
    );
    let mut io = Io {
        input: &mut input,
        out: &mut out,
        date: Some(DATE),
    };
    let Action::Serve(request) = conn.poll(&mut io) else {
        panic!("no request")
    };
    let mut action = conn.respond(App::new().handle(&request), &mut io);
    for _ in 0..10 {
        assert!(matches!(action, Action::Write));
        assert!((OUT_MARK..OUT_MARK + PIECE).contains(&io.out.len()));
        action = conn.poll(&mut io);
        assert!(
            io.out.len() < OUT_MARK + PIECE,
            "polling without sending produces nothing"
        );
        written(io.out);
        action = match action {
            Action::Write => conn.poll(&mut io),
            other => other,
        };
    }
}

#[test]
fn a_client_that_expects_100_gets_it_only_from_who_reads_the_body() {
    let request = |path| {
        format!(
            "POST {path} HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n"
        )
    };
    let mut play = http();
    let first = play.feed(request("/echo")).text();
    assert!(first.starts_with("HTTP/1.1 100 "), "{first}");
    let rest = play.feed("ok").text();
    assert!(rest.ends_with("ok"), "{rest}");
    assert_eq!(play.awaiting(), Some(WaitClass::NextRequest));

    let unread = play.feed(request("/status/403")).text();
    assert!(unread.starts_with("HTTP/1.1 403 "), "{unread}");
    assert_eq!(announced_close(&play, &unread).reason, None);
}

#[test]
fn an_unread_body_is_read_and_dropped_up_to_the_limit() {
    let mut play = http();
    play.feed(post("/", "half of it").trim_end_matches("of it"));
    assert_eq!(play.awaiting(), Some(WaitClass::Leftover));
    assert!(
        play.text().starts_with("HTTP/1.1 200 "),
        "the response does not wait"
    );
    let next = play.feed("of it".to_owned() + &get("/status/418")).text();
    assert!(next.starts_with("HTTP/1.1 418 "), "{next}");

    let large = play
        .feed("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9000000\r\n\r\n")
        .text();
    assert_eq!(announced_close(&play, &large).reason, None);
}

#[test]
fn an_unread_body_of_unknown_length_is_given_up_at_the_limit() {
    let config = Config {
        max_swallow_size: 10,
        ..Config::default()
    };
    let mut play = Play::with(Protocol::Http, config, Peer::Unix);
    play.feed("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
    play.feed("8\r\n12345678\r\n").feed("3\r\n123\r\n");
    assert_eq!(play.reason(), Some("body-unread"));
}

#[test]
fn a_fault_is_answered_once_and_nothing_after_it_is_served() {
    let mut play = http();
    let answer = play
        .feed("GET / HTTP/1.1\r\nHost : a\r\n\r\n".to_owned() + &get("/"))
        .text();
    assert!(answer.starts_with("HTTP/1.1 400 "), "{answer}");
    assert_eq!(answer.matches("HTTP/1.1").count(), 1);
    assert!(announced_close(&play, &answer).reason.is_some());
}

#[test]
fn a_target_that_names_https_is_for_somebody_else() {
    let mut play = http();
    let answer = play
        .feed("GET https://a/ HTTP/1.1\r\nHost: a\r\n\r\n")
        .text();
    assert!(answer.starts_with("HTTP/1.1 421 "), "{answer}");
    assert_eq!(play.reason(), Some("scheme"));
    assert!(
        http()
            .feed("GET http://a/ HTTP/1.1\r\nHost: a\r\n\r\n")
            .text()
            .contains(" 200 ")
    );
}

#[test]
fn a_fault_in_a_body_that_is_being_echoed_cuts_the_response() {
    let mut play = http();
    play.feed(
        "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nzz\r\n",
    );
    let answer = play.text();
    assert_eq!(answer.matches("HTTP/1.1 200").count(), 1);
    assert!(!answer.ends_with("0\r\n\r\n"), "no last chunk: {answer}");
    assert_eq!(play.reason(), Some("chunk-size"));
}

#[test]
fn the_end_of_stream_is_orderly_only_between_requests() {
    assert_eq!(http().eof().closed(), Some(ORDERLY));
    assert_eq!(http().feed(get("/")).eof().closed(), Some(ORDERLY));
    assert_eq!(
        http().feed("GET / HT").eof().reason(),
        Some("truncated-head")
    );
    let cut = post("/echo", "12345");
    assert_eq!(
        http().feed(&cut[..cut.len() - 1]).eof().reason(),
        Some("truncated-body")
    );
}

#[test]
fn deadlines_are_answered_where_somebody_may_read_the_answer() {
    assert_eq!(http().time_out().closed(), Some(ORDERLY));
    assert_eq!(http().feed(get("/")).time_out().closed(), Some(ORDERLY));

    let mut slow = http();
    slow.feed("GET / HTTP/1.1\r\n");
    assert_eq!(slow.awaiting(), Some(WaitClass::Head));
    slow.time_out();
    assert!(slow.text().starts_with("HTTP/1.1 408 "));
    assert_eq!(slow.reason(), Some("head-timeout"));

    let mut stalled = http();
    stalled.feed("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n");
    stalled.time_out();
    assert!(!stalled.text().contains("408"), "the head was sent already");
    assert_eq!(stalled.reason(), Some("body-timeout"));
}

#[test]
fn the_last_request_of_a_connection_says_so() {
    let config = Config {
        max_keep_alive_requests: NonZeroU64::new(2),
        ..Config::default()
    };
    let mut play = Play::with(Protocol::Http, config, Peer::Unix);
    assert!(
        !play
            .feed(get("/"))
            .text()
            .to_ascii_lowercase()
            .contains("connection: close")
    );
    assert!(
        play.feed(get("/"))
            .text()
            .to_ascii_lowercase()
            .contains("connection: close")
    );
    assert_eq!(play.closed(), Some(ORDERLY));
}

#[test]
fn draining_ends_an_idle_connection_now_and_a_busy_one_after_its_response() {
    let mut idle = http();
    idle.conn.drain();
    idle.run();
    assert_eq!(idle.closed(), Some(ORDERLY));

    let mut busy = http();
    busy.feed("GET / HTTP/1.1\r\n");
    busy.conn.drain();
    busy.feed("Host: a\r\n\r\n");
    assert!(
        busy.text()
            .to_ascii_lowercase()
            .contains("connection: close")
    );
    assert_eq!(busy.closed(), Some(ORDERLY));
}

#[test]
fn delays_and_streams_are_timers() {
    let mut play = http();
    play.feed(get("/delay/60000") + &get("/stream/3/7"));
    let ms = Duration::from_millis;
    assert_eq!(play.waits, [ms(60_000), ms(7), ms(7)]);
    assert_eq!(play.text().matches("one more line").count(), 3);
}

/// The most bytes that may be written beyond the mark: one piece with its framing,
/// written when the mark was almost reached.
const PIECE: usize = crate::source::PIECE_MAX + 1024;

//! Clients that reset, flood, stall and leave, and the end of a connection.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::process::Command;

use catamaran_e2e::{App, Front};
use catamaran_testkit::http2::{
    END_HEADERS, END_STREAM, Http2Client, Said, block, frame, kind, opening,
};
use catamaran_testkit::{Deadline, Signal};

/// A front with `keys` of its listener, to an application over both protocols.
fn site(keys: &str) -> (Front, App) {
    let app = App::start("epoll", &[]).unwrap();
    let front = Front::with_config(&format!(
        "[[listen]]\naddress = \"127.0.0.1:0\"\nprotocols = [\"h2\", \"http/1.1\"]\n{keys}\n\
         [[route]]\npath = \"/ok\"\nstatus = 204\n\
         [[route]]\nhost = \"ajp.test\"\nupstream = \"ajp\"\n\
         [[route]]\nhost = \"http.test\"\nupstream = \"http\"\n\
         [[upstream.ajp.backend]]\nurl = \"ajp://{}\"\n\
         [[upstream.http.backend]]\nurl = \"http://{}\"\n\
         [log]\naccess = \"-\"\n[admin]\naddress = \"127.0.0.1:0\"\n",
        app.ajp(),
        app.http()
    ))
    .unwrap();
    (front, app)
}

fn connect(front: &Front, window: u32) -> Http2Client {
    let mut client = Http2Client::connect(front.address()).unwrap();
    client.send(&opening(window), usize::MAX);
    client
}

/// A request on `stream`; `flags` beside END_HEADERS.
fn request(stream: u32, flags: u8, method: &str, host: &str, path: &str) -> Vec<u8> {
    let fields = [
        (&b":method"[..], method.as_bytes()),
        (b":scheme", b"http"),
        (b":authority", host.as_bytes()),
        (b":path", path.as_bytes()),
    ];
    frame(kind::HEADERS, END_HEADERS | flags, stream, &block(&fields))
}

fn get(stream: u32, host: &str, path: &str) -> Vec<u8> {
    request(stream, END_STREAM, "GET", host, path)
}

fn reset(stream: u32) -> Vec<u8> {
    frame(kind::RST_STREAM, 0, stream, &8_u32.to_be_bytes())
}

/// The connection of a client that sent `bytes` is closed with this code, and the reason is counted.
fn is_closed(front: &Front, bytes: &[u8], code: u32, reason: &str) {
    let mut client = connect(front, 65_535);
    client.send(bytes, usize::MAX);
    let ended = client.wait(|said| matches!(said, Said::GoAway(_))).unwrap();
    assert_eq!(ended, Some(Said::GoAway(code)), "{reason}");
    assert_eq!(client.wait(|_| false).unwrap(), None);
    let is_counted = || {
        let metrics = front.ask_admin("/metrics").unwrap().text();
        metrics
            .contains(&format!("reason=\"{reason}\"}}"))
            .then_some(())
    };
    Deadline::default().poll(reason, is_counted).unwrap();
}

fn streams_open(front: &Front) -> f64 {
    front.metric("catamaran_h2_streams_open").unwrap()[0]
}

#[test]
fn floods_end_the_connection() {
    let (front, _app) = site("");
    for host in ["ajp.test", "http.test"] {
        let rapid: Vec<u8> = (0..200)
            .flat_map(|index| {
                [
                    get(2 * index + 1, host, "/delay/60000"),
                    reset(2 * index + 1),
                ]
                .concat()
            })
            .collect();
        is_closed(&front, &rapid, ENHANCE_YOUR_CALM, "h2-reset-flood");
        // The front is made to reset: a window has an end.
        let made: Vec<u8> = (0..200)
            .flat_map(|index| {
                let stream = 2 * index + 1;
                let widened = frame(kind::WINDOW_UPDATE, 0, stream, &[0x7f, 0xff, 0xff, 0xff]);
                [get(stream, host, "/delay/60000"), widened].concat()
            })
            .collect();
        is_closed(&front, &made, ENHANCE_YOUR_CALM, "h2-reset-flood");
        let head = request(1, 0, "GET", host, "/ok");
        let mut open = head;
        open[4] = 0;
        let endless = [open.clone(), frame(kind::CONTINUATION, 0, 1, &[]).repeat(3)].concat();
        is_closed(&front, &endless, ENHANCE_YOUR_CALM, "h2-continuation-flood");
    }
    for useless in [
        frame(kind::PING, 0, 0, &[0; 8]),
        frame(kind::SETTINGS, 0, 0, &[]),
        frame(kind::PRIORITY, 0, 1, &[0, 0, 0, 3, 7]),
        frame(200, 0, 0, b"unknown"),
    ] {
        is_closed(
            &front,
            &useless.repeat(1100),
            ENHANCE_YOUR_CALM,
            "h2-frame-flood",
        );
    }
    let empty = [
        request(1, 0, "POST", "ajp.test", "/echo"),
        frame(kind::DATA, 0, 1, &[]).repeat(1100),
    ];
    is_closed(&front, &empty.concat(), ENHANCE_YOUR_CALM, "h2-frame-flood");
    let gone = || (streams_open(&front) == 0.0).then_some(());
    Deadline::default().poll("no stream", gone).unwrap();
}

/// A front in front of a backend that accepts connections and never reads.
fn stopped(scheme: &str, keys: &str) -> (Front, TcpListener) {
    let backend = TcpListener::bind("127.0.0.1:0").unwrap();
    let front = Front::with_config(&format!(
        "[server]\nworkers = 1\n[[listen]]\naddress = \"127.0.0.1:0\"\nprotocols = [\"h2\"]\n{keys}\n\
         [[route]]\npath = \"/ok\"\nstatus = 204\n\
         [[route]]\nupstream = \"app\"\n[[upstream.app.backend]]\nurl = \"{scheme}://{}\"\n\
         [admin]\naddress = \"127.0.0.1:0\"\n",
        backend.local_addr().unwrap()
    ))
    .unwrap();
    (front, backend)
}

#[test]
fn row_21_small_pieces_for_a_stopped_backend_are_few() {
    for scheme in ["ajp", "http"] {
        for cut in [usize::MAX, 7] {
            let (front, _backend) = stopped(scheme, "");
            let mut first = connect(&front, 65_535);
            first.send(&get(1, "a", "/ok"), usize::MAX);
            assert_eq!(first.next_said().unwrap(), Said::Status(1, 204));
            let before = front.memory().unwrap().resident;
            let pieces = frame(kind::DATA, 0, 1, b"x").repeat(60_000);
            let upload = [request(1, 0, "POST", "a", "/"), pieces].concat();
            let mut client = connect(&front, 65_535);
            client.send(&upload, cut);
            client.send(&frame(kind::PING, 0, 0, &[0; 8]), 1);
            let said = client.next_said().unwrap();
            // They are within the window, and are kept as the bytes that they are.
            assert_eq!(said, Said::Pong);
            let after = front.memory().unwrap().resident_peak;
            assert!(after < before + (4 << 20), "{before} to {after}");
        }
    }
}

#[test]
fn row_19_requests_count_until_their_backend_lets_go() {
    const REFUSED_STREAM: u32 = 7;
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    for scheme in ["ajp", "http"] {
        let front = Front::with_config(&format!(
            "[[listen]]\naddress = \"127.0.0.1:0\"\nprotocols = [\"h2\"]\nh2_streams_max = 2\n\
             [[route]]\nupstream = \"app\"\n[[upstream.app.backend]]\nurl = \"{scheme}://{}\"\n\
             [admin]\naddress = \"127.0.0.1:0\"\n",
            silent.local_addr().unwrap()
        ))
        .unwrap();
        let mut client = connect(&front, 65_535);
        client.send(&[get(1, "a", "/"), get(3, "a", "/")].concat(), 1);
        let begun = || (streams_open(&front) == 2.0).then_some(());
        Deadline::default().poll("the requests", begun).unwrap();
        // Accepted, and never answered.
        let backends = [(); 2].map(|()| silent.accept().unwrap());
        client.send(&[reset(1), reset(3), get(5, "a", "/")].concat(), 1);
        let refused = client.next_said().unwrap();
        assert_eq!(refused, Said::Reset(5, REFUSED_STREAM));
        drop(backends);
        let gone = || (streams_open(&front) == 0.0).then_some(());
        Deadline::default().poll("no stream", gone).unwrap();
    }
}

#[test]
fn a_reset_ends_the_exchange_alone() {
    let (front, _app) = site("");
    for host in ["ajp.test", "http.test"] {
        let mut client = connect(&front, 65_535);
        client.send(&get(1, host, "/delay/60000"), 1);
        let begun = || (streams_open(&front) == 1.0).then_some(());
        Deadline::default().poll("the request", begun).unwrap();
        client.send(&[reset(1), get(3, host, "/")].concat(), 1);
        let served = client
            .wait(|said| matches!(said, Said::Status(..)))
            .unwrap();
        assert_eq!(served, Some(Said::Status(3, 200)));
        front.wait_for_log("reason=client:client-reset").unwrap();
        // More of a body than its head announced.
        let fields = [
            (&b":method"[..], &b"POST"[..]),
            (b":scheme", b"http"),
            (b":authority", host.as_bytes()),
            (b":path", b"/echo"),
            (b"content-length", b"3"),
        ];
        client.send(&frame(kind::HEADERS, END_HEADERS, 5, &block(&fields)), 1);
        client.send(&frame(kind::DATA, END_STREAM, 5, b"four"), 1);
        let ended = client.wait(|said| matches!(said, Said::Reset(..))).unwrap();
        assert_eq!(ended, Some(Said::Reset(5, 1)));
        client.send(&get(7, host, "/"), 1);
        let served = client
            .wait(|said| matches!(said, Said::Status(7, _)))
            .unwrap();
        assert_eq!(served, Some(Said::Status(7, 200)));
    }
}

#[test]
fn a_response_that_breaks_off_is_reset() {
    let backend = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = backend.local_addr().unwrap();
    let serving = std::thread::spawn(move || {
        let (mut socket, _) = backend.accept().unwrap();
        let mut head = [0; 1024];
        let read = socket.read(&mut head).unwrap();
        assert!(read > 0);
        socket
            .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc")
            .unwrap();
    });
    let front = Front::with_config(&format!(
        "[[listen]]\naddress = \"127.0.0.1:0\"\nprotocols = [\"h2\"]\n\
         [[route]]\nupstream = \"app\"\n[[upstream.app.backend]]\nurl = \"http://{address}\"\n"
    ))
    .unwrap();
    let mut client = connect(&front, 65_535);
    client.send(&get(1, "a.test", "/"), 1);
    assert_eq!(client.next_said().unwrap(), Said::Status(1, 200));
    assert_eq!(client.next_said().unwrap(), Said::Reset(1, INTERNAL_ERROR));
    assert_eq!(client.body(), 3, "what there was");
    serving.join().unwrap();
}

#[test]
fn an_early_answer_spares_the_upload() {
    let (front, _app) = site("body_max = \"40KiB\"");
    for host in ["ajp.test", "http.test"] {
        let mut client = connect(&front, 1 << 20);
        let widened = frame(kind::WINDOW_UPDATE, 0, 0, &(1_u32 << 20).to_be_bytes());
        client.send(&widened, 1);
        client.send(&request(1, 0, "POST", host, "/echo"), 1);
        let piece = frame(kind::DATA, 0, 1, &[b'x'; 16_000]);
        client.send(&piece.repeat(4), usize::MAX);
        let mut said = Vec::new();
        while !matches!(said.last(), Some(Said::Reset(..) | Said::Closed)) {
            said.push(client.next_said().unwrap());
        }
        let whole = [Said::Status(1, 413), Said::End(1), Said::Reset(1, NO_ERROR)];
        // The application may have answered 200 before all was received.
        let cut = [Said::Status(1, 200), Said::Reset(1, INTERNAL_ERROR)];
        assert!(said == whole || said == cut, "{said:?}");
    }
}

#[test]
fn a_stalled_window_ends_its_own_stream() {
    let (front, _app) = site("write_timeout = \"200ms\"");
    for host in ["ajp.test", "http.test"] {
        let mut client = connect(&front, 0);
        client.send(&get(1, host, "/bytes/1000000"), 1);
        assert_eq!(client.next_said().unwrap(), Said::Status(1, 200));
        client.send(&get(3, host, "/status/204"), 1);
        // In whichever order: on a busy machine the time may be over before the second request.
        let mut said = Vec::new();
        while said.len() < 2 {
            let next = client.next_said().unwrap();
            let expected = [Said::Status(3, 204), Said::Reset(1, INTERNAL_ERROR)];
            match next {
                Said::End(3) => {}
                next if expected.contains(&next) && !said.contains(&next) => said.push(next),
                other => panic!("{other:?} after {said:?}"),
            }
        }
        assert_eq!(client.body(), 0);
    }
    front.wait_for_log("reason=client:write-timeout").unwrap();
}

/// Windows so wide that only the socket is in the way.
fn wide() -> Vec<u8> {
    let most = 0x7fff_0000_u32.to_be_bytes();
    frame(kind::WINDOW_UPDATE, 0, 0, &most)
}

#[test]
fn a_client_that_reads_nothing_is_cut() {
    let (front, _app) = site("write_timeout = \"300ms\"");
    for host in ["ajp.test", "http.test"] {
        let mut client = connect(&front, 0x7fff_0000);
        let both = [
            get(1, host, "/bytes/200000000"),
            get(3, host, "/bytes/200000000"),
        ];
        client.send(&[wide(), both.concat()].concat(), usize::MAX);
        let is_cut = || {
            let open = front.metric("catamaran_h2_connections_open").unwrap()[0];
            let metrics = front.ask_admin("/metrics").unwrap().text();
            let counted = metrics.contains("culprit=\"client\",reason=\"write-timeout\"}");
            (open == 0.0 && streams_open(&front) == 0.0 && counted).then_some(())
        };
        Deadline::default().poll("the cut", is_cut).unwrap();
        drop(client);
    }
}

#[test]
fn a_stalled_window_of_the_connection_ends_its_streams() {
    let (front, _app) = site("write_timeout = \"300ms\"");
    for host in ["ajp.test", "http.test"] {
        // Each stream may send more than the connection.
        let mut client = connect(&front, 1 << 20);
        let both = [
            get(1, host, "/bytes/1000000"),
            get(3, host, "/bytes/1000000"),
        ];
        client.send(&both.concat(), 1);
        let mut reset = Vec::new();
        while reset.len() < 2 {
            match client.next_said().unwrap() {
                Said::Reset(stream, INTERNAL_ERROR) => reset.push(stream),
                said => assert!(matches!(said, Said::Status(_, 200)), "{said:?}"),
            }
        }
        reset.sort_unstable();
        assert_eq!((reset, client.body()), (vec![1, 3], 65_535));
        // What needs no window is served.
        client.send(&get(5, host, "/status/204"), 1);
        assert_eq!(client.next_said().unwrap(), Said::Status(5, 204));
    }
}

#[test]
fn an_upload_to_a_stopped_backend_takes_no_memory() {
    let files = tempfile::tempdir().unwrap();
    let upload = files.path().join("upload");
    let file = std::fs::File::create(&upload).unwrap();
    file.set_len(64 << 20).unwrap();
    for scheme in ["ajp", "http"] {
        let (front, _backend) = stopped(scheme, "");
        let run = |path: &str, seconds: &str| {
            let url = format!("http://{}{path}", front.address());
            Command::new("curl")
                .args(["--silent", "--http2-prior-knowledge", "--max-time", seconds])
                .args(["--output", "/dev/null", "--write-out", "%{size_upload}"])
                .args(["--upload-file", upload.to_str().unwrap(), &url])
                .output()
                .unwrap()
        };
        // What one connection takes anyhow.
        run("/ok", "30");
        let before = front.memory().unwrap().private;
        let mut clients = Vec::new();
        for _ in 0..2 {
            clients.push(run("/", "2"));
        }
        let after = front.memory().unwrap().private;
        for client in clients {
            let sent: u64 = String::from_utf8(client.stdout).unwrap().parse().unwrap();
            assert!(sent < 64 << 20, "{sent} bytes went somewhere");
        }
        // Each of two workers may keep what one window of a body took, by the allocator's pages of half a MiB.
        assert!(after < before + (3 << 20), "{scheme}: {before} to {after}");
    }
}

#[test]
fn connections_end_in_order() {
    let (front, _app) = site("keep_alive_requests = 2");
    let mut client = connect(&front, 65_535);
    client.send(
        &[get(1, "ajp.test", "/"), get(3, "http.test", "/")].concat(),
        1,
    );
    let said = client.wait(|said| matches!(said, Said::GoAway(_))).unwrap();
    assert_eq!(said, Some(Said::GoAway(NO_ERROR)));
    assert_eq!(client.wait(|_| false).unwrap(), None, "closed");

    let (front, _app) = site("keep_alive_timeout = \"100ms\"");
    let mut client = connect(&front, 65_535);
    client.send(&get(1, "ajp.test", "/"), 1);
    let said = client.wait(|said| matches!(said, Said::GoAway(_))).unwrap();
    assert_eq!(said, Some(Said::GoAway(NO_ERROR)));
    assert_eq!(client.wait(|_| false).unwrap(), None, "closed");

    let (front, _app) = site("head_timeout = \"200ms\"");
    let mut open = get(1, "ajp.test", "/");
    open[4] = 0;
    is_closed(&front, &open, ENHANCE_YOUR_CALM, "head-timeout");
}

#[test]
fn a_drain_lets_requests_finish() {
    let (mut front, _app) = site("");
    let mut client = connect(&front, 65_535);
    for (stream, host) in [(1, "ajp.test"), (3, "http.test")] {
        client.send(&request(stream, 0, "POST", host, "/echo"), 1);
    }
    let begun = || (streams_open(&front) == 2.0).then_some(());
    Deadline::default().poll("the requests", begun).unwrap();
    front.process().signal(Signal::Terminate).unwrap();
    let mut said = Vec::new();
    loop {
        let next = client.next_said().unwrap();
        // The bodies end once the front drains.
        if next == Said::GoAway(NO_ERROR) && !said.contains(&next) {
            for stream in [1, 3] {
                client.send(&frame(kind::DATA, END_STREAM, stream, b"end"), 1);
            }
        }
        match next {
            Said::Closed => break,
            other => said.push(other),
        }
    }
    for expected in [
        Said::Status(1, 200),
        Said::Status(3, 200),
        Said::GoAway(NO_ERROR),
    ] {
        assert!(said.contains(&expected), "{expected:?} in {said:?}");
    }
    assert!(front.process().wait(Deadline::default()).unwrap().success());
}

const ENHANCE_YOUR_CALM: u32 = 11;
const INTERNAL_ERROR: u32 = 2;
const NO_ERROR: u32 = 0;

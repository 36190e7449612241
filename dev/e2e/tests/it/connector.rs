//! The built-in application behind the web servers that people have, on each I/O model: Apache
//! httpd with mod_jk, mod_proxy_ajp and mod_proxy_http, nginx, and our own front, over TCP and Unix
//! sockets.
//!
//! What is true of every way is tested over all of them: see [`Way`].

mod way;

use std::net::SocketAddr;
use std::time::Duration;
use std::{fs, thread};

use catamaran_e2e::{App, Httpd, Module};
use catamaran_gauge::cpu;
use catamaran_gauge::process::open_files;
use catamaran_testkit::{Address, Deadline, HttpClient, Pattern, Sha256};

use self::way::{Server, Way};

/// Makes a test of each function for each I/O model.
macro_rules! on_each_model {
    ($($test:ident),+ $(,)?) => {
        on_each_model!(@ epoll [$($test),+]);
        on_each_model!(@ uring [$($test),+]);
        on_each_model!(@ threads [$($test),+]);
    };
    (@ $model:ident [$($test:ident),+]) => {
        mod $model {
            $(
                #[test]
                fn $test() {
                    super::$test(stringify!($model));
                }
            )+
        }
    };
}

on_each_model!(
    pages_and_bodies_both_ways,
    connections_are_kept,
    large_downloads_are_exact,
    a_gigabyte_is_exact,
    large_uploads_are_exact,
    pings_are_answered,
    the_secret_decides,
    a_client_that_leaves_a_download_is_noticed,
    a_client_that_leaves_an_upload_is_noticed,
    descriptors_may_run_out,
);

/// Runs `test` over every way to an application on `model`.
fn over_every_way(model: &str, test: impl Fn(&App, &Server, Way)) {
    let tcp = App::start(model, &[]).unwrap();
    let unix = App::start_on_unix_sockets(model).unwrap();
    for way in Way::ALL {
        // Shown only when the test fails.
        println!("over {way:?}");
        let app = if way.is_unix() { &unix } else { &tcp };
        test(app, &way.start(app), way);
    }
}

fn pages_and_bodies_both_ways(model: &str) {
    over_every_way(model, |_, server, _| {
        let mut client = server.connect();
        for length in [0, 1, 8183, 8184, 8185, 65_536, 1_000_000] {
            let answer = get(&mut client, &format!("/bytes/{length}"));
            assert!(answer == Pattern::bytes(length), "{length}");
        }
        for length in [0, 1, 8185, 8186, 8187, 65_536] {
            let fields = format!("Content-Length: {length}\r\n");
            client.send(&head("POST", "/echo", &fields)).unwrap();
            client.send_from(&mut Pattern::new(length)).unwrap();
            echoed(&mut client, length);
            client
                .send(&head("POST", "/echo", "Transfer-Encoding: chunked\r\n"))
                .unwrap();
            client
                .send_chunked(&mut Pattern::new(length), 5000)
                .unwrap();
            echoed(&mut client, length);
        }
        let answer = client.ask(head("GET", "/status/404", "")).unwrap();
        assert_eq!(answer.status, 404);
        client.send(&head("HEAD", "/", "")).unwrap();
        assert_eq!(client.receive_head().unwrap().status, 200);
        assert_eq!(get(&mut client, "/").len(), 347);
    });
}

#[track_caller]
fn echoed(client: &mut HttpClient, length: u64) {
    let answer = client.receive().unwrap();
    assert_eq!(answer.status, 200, "{length}");
    assert!(answer.body.ends_with(&Pattern::bytes(length)), "{length}");
}

fn connections_are_kept(model: &str) {
    over_every_way(model, |app, server, way| {
        let mut client = server.connect();
        for _ in 0..100 {
            assert_eq!(get(&mut client, "/").len(), 347);
        }
        let address = if way.is_ajp() { app.ajp() } else { app.http() };
        if let Address::Tcp(address) = address {
            let connections = connections_to(*address);
            // httpd has its pool's connection back a moment after the client has the answer, and
            // may take another for the next request: up to one for each of its 25 threads.
            assert!((1..=25).contains(&connections), "{way:?}: {connections}");
        }
    });
}

/// How many connections to `address` there are or were in the last minute: closed ones are kept in
/// the system's table for a while, at the end that closed first.
fn connections_to(address: SocketAddr) -> usize {
    let SocketAddr::V4(v4) = address else {
        panic!("{address} is not where tests listen");
    };
    let ip = u32::from_ne_bytes(v4.ip().octets());
    let wanted = format!("{ip:08X}:{:04X}", v4.port());
    let table = fs::read_to_string("/proc/net/tcp").unwrap();
    // One line for each end: local address, remote address, state.
    let remote = table.lines().filter(|line| {
        let mut words = line.split_whitespace();
        words.nth(2) == Some(&wanted)
    });
    let waiting = table.lines().filter(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        matches!(words[..], [_, local, _, TIME_WAIT, ..] if local == wanted)
    });
    remote.count() + waiting.count()
}

fn large_downloads_are_exact(model: &str) {
    let expected = Pattern::sha256_hex(LARGE);
    over_every_way(model, |_, server, _| download(server, LARGE, &expected));
}

fn a_gigabyte_is_exact(model: &str) {
    let app = App::start(model, &[]).unwrap();
    let gigabyte = 1 << 30;
    download(
        &Way::ModProxyAjp.start(&app),
        gigabyte,
        &Pattern::sha256_hex(gigabyte),
    );
}

fn download(server: &Server, length: u64, sha256: &str) {
    let mut client = server.connect();
    client.set_deadline(Deadline::after(Deadline::DEFAULT * 4));
    client
        .send(&head("GET", &format!("/bytes/{length}"), ""))
        .unwrap();
    let mut digest = Sha256::default();
    let answer = client.receive_into(&mut digest).unwrap();
    assert_eq!((answer.status, digest.count()), (200, length));
    assert_eq!(digest.hex(), sha256);
}

/// Sent and received at the same time, for nobody on the way keeps more than a few buffers.
fn large_uploads_are_exact(model: &str) {
    over_every_way(model, |_, server, way| {
        let length = match way {
            // As much as the buffers of sockets hold: mod_proxy_http sends all of a body before it
            // reads any of the answer, and nginx stops in the middle of a body that does not fit
            // the socket at once when the answer has begun.
            Way::ModProxyHttp | Way::ModProxyHttpUnix | Way::Nginx | Way::NginxUnix => 100_000,
            _ => 4 << 20,
        };
        for framing in [
            &format!("Content-Length: {length}\r\n")[..],
            "Transfer-Encoding: chunked\r\n",
        ] {
            let mut client = server.connect();
            let head = head("POST", "/echo", framing);
            let mut sender = HttpClient::on(client.socket().try_clone().unwrap());
            let answer = thread::scope(|scope| {
                scope.spawn(move || {
                    sender.send(&head).unwrap();
                    let mut body = Pattern::new(length);
                    if framing.starts_with("Content-Length") {
                        sender.send_from(&mut body).unwrap();
                    } else {
                        sender.send_chunked(&mut body, 5000).unwrap();
                    }
                });
                client.receive().unwrap()
            });
            assert_eq!(answer.status, 200, "{framing}");
            assert!(answer.body.ends_with(&Pattern::bytes(length)), "{framing}");
        }
    });
}

/// Web servers that ask before each request whether the application is there.
fn pings_are_answered(model: &str) {
    let app = App::start(model, &[]).unwrap();
    let pinging = [
        (
            Module::ProxyAjp,
            ("ping", "10"),
            "ajp_handle_cping_cpong: Done",
        ),
        (
            Module::Jk,
            ("ping_mode", "A"),
            "received from ajp13 pos=0 len=1 max=16",
        ),
    ];
    for (module, setting, said) in pinging {
        let httpd = Httpd::talkative(module, app.ajp(), &[setting]).unwrap();
        let mut client = HttpClient::connect(httpd.address()).unwrap();
        for _ in 0..3 {
            assert_eq!(get(&mut client, "/").len(), 347);
        }
        let answered = |line: &str| line.contains(said).then_some(());
        httpd.process().wait_for_line(said, answered).unwrap();
    }
}

fn the_secret_decides(model: &str) {
    let app = App::start(model, &["--secret=right"]).unwrap();
    for way in Way::AJP {
        for (secret, status) in [(Some("right"), 200), (Some("wrong"), 403), (None, 403)] {
            let server = way.start_with(&app, secret);
            let mut client = server.connect();
            let answer = client.ask(head("GET", "/", "")).unwrap();
            assert_eq!(answer.status, status, "{way:?} with {secret:?}");
        }
    }
    app.wait_until_gave_up("secret-wrong").unwrap();
    app.wait_until_gave_up("secret-missing").unwrap();
}

fn a_client_that_leaves_a_download_is_noticed(model: &str) {
    leave_over_every_way(model, "peer-gone", |client, _| {
        let head = head("GET", "/bytes/1000000000000", "");
        client.send(&head).unwrap();
        assert_eq!(client.receive_head().unwrap().status, 200);
    });
}

fn a_client_that_leaves_an_upload_is_noticed(model: &str) {
    // Cut short, abandoned or reset: that depends on the web server.
    leave_over_every_way(model, "", |client, app| {
        let before = open_files(app.id()).unwrap();
        let head = head("POST", "/sink", "Content-Length: 1000000\r\n");
        client.send(&head).unwrap();
        client.send_from(&mut Pattern::new(500_000)).unwrap();
        // Had the web server not come so far, there would be nothing to notice.
        let connected = || (open_files(app.id()).unwrap() > before).then_some(());
        Deadline::default().poll("a connection", connected).unwrap();
    });
}

/// After `begin` the client leaves; the application gives the exchange up for `reason`, and the way
/// is as good as before.
fn leave_over_every_way(model: &str, reason: &str, begin: impl Fn(&mut HttpClient, &App)) {
    for way in Way::ALL {
        println!("over {way:?}");
        // One for each way, so that what it says is about this one.
        let app = if way.is_unix() {
            App::start_on_unix_sockets(model).unwrap()
        } else {
            App::start(model, &[]).unwrap()
        };
        let server = way.start(&app);
        let mut client = server.connect();
        begin(&mut client, &app);
        drop(client);
        app.wait_until_gave_up(reason).unwrap();
        assert_eq!(get(&mut server.connect(), "/").len(), 347);
    }
}

/// Connections that cannot be accepted wait without costing CPU time, and are served when others
/// have gone.
fn descriptors_may_run_out(model: &str) {
    const FILES: usize = 40;
    let app = App::start_with_files(model, FILES).unwrap();
    let connect = || HttpClient::connect(app.http()).unwrap();
    let mut first = connect();
    assert_eq!(get(&mut first, "/").len(), 347);
    let mut clients: Vec<HttpClient> = (0..FILES).map(|_| connect()).collect();
    app.wait_for_log("cannot accept connections").unwrap();
    let before = cpu::of_process(app.id()).unwrap();
    assert_eq!(get(&mut first, "/delay/1000"), b"waited 1000 ms\n");
    let used = (cpu::of_process(app.id()).unwrap() - before).total();
    assert!(used < Duration::from_millis(500), "{used:?} of a second");
    let mut last = clients.pop().unwrap();
    last.send(&head("GET", "/", "")).unwrap();
    drop((first, clients));
    assert_eq!(last.receive().unwrap().body.len(), 347);
}

fn get(client: &mut HttpClient, target: &str) -> Vec<u8> {
    let answer = client.ask(head("GET", target, "")).unwrap();
    assert_eq!(answer.status, 200, "{target}");
    answer.body
}

fn head(method: &str, target: &str, fields: &str) -> Vec<u8> {
    format!("{method} {target} HTTP/1.1\r\nHost: app.example\r\n{fields}\r\n").into_bytes()
}

/// A state in the system's table of connections.
const TIME_WAIT: &str = "06";

/// Large enough for thousands of packets.
const LARGE: u64 = 64 << 20;

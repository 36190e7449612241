//! Handlers that block, and the threads they block.

use std::io::{self, ErrorKind, Read, Write};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use bytes::Bytes;
use catamaran_ajp::BodyLength;
use catamaran_connector::{BodyReader, Request, Responder};
use catamaran_testkit::{Failure, Pattern};
use http::{Method, StatusCode};

use super::*;
use crate::ajp_client::Exchange;

/// A tier with a blocking handler.
fn serving<H>(io: IoModel, handler: H, change: impl FnOnce(&mut Config)) -> Tier
where
    H: Fn(&Request, &mut BodyReader<'_>, Responder<'_>) -> io::Result<()> + Send + Sync + 'static,
{
    Tier::running(io, Application::blocking(handler), change)
}

/// As [`on_each_model`], where handlers run in the executor and not on threads of connections.
fn on_each_loop(check: impl Fn(IoModel)) {
    let loops = IoModel::ALL.iter().filter(|io| **io != IoModel::Threads);
    loops.for_each(|io| check(*io));
}

/// Answers `/held` when it is let go, everything else at once.
fn gate() -> (
    impl Fn(&Request, &mut BodyReader<'_>, Responder<'_>) -> io::Result<()> + Send + Sync + 'static,
    Gate,
) {
    let (entering, entered) = sync_channel(10);
    let (key, lock) = sync_channel::<()>(10);
    let lock = std::sync::Mutex::new(lock);
    let handler = move |request: &Request, _: &mut BodyReader<'_>, responder: Responder<'_>| {
        if request.path == "/held" {
            entering.send(()).unwrap();
            // An error is a test that is over.
            let _ = lock.lock().unwrap().recv();
        }
        responder.begin(StatusCode::OK).write_all(b"done")
    };
    (handler, Gate { entered, key })
}

struct Gate {
    entered: Receiver<()>,
    key: SyncSender<()>,
}

impl Gate {
    fn wait_entered(&self) {
        let left = Deadline::default().remaining().unwrap();
        self.entered.recv_timeout(left).unwrap();
    }
}

#[test]
fn a_full_queue_answers_503_and_harms_nobody() {
    on_each_loop(|io| {
        let (handler, gate) = gate();
        let tier = serving(io, handler, |config| {
            config.max_threads = NonZeroUsize::MIN;
            config.min_spare_threads = 0;
            config.max_queue_size = 1;
        });
        let (mut first, mut second, mut third) = (tier.http(), tier.http(), tier.ajp());
        first.send(&get("/held")).unwrap();
        gate.wait_entered();
        second.send(&get("/waits")).unwrap();
        // Only when its request has been counted is it in the queue.
        let counted = || (tier.running.counters().requests == 2).then_some(());
        Deadline::default().poll("two requests", counted).unwrap();
        let refused = third.get("/refused");
        assert_eq!((refused.status, refused.reuse), (503, true));
        assert_eq!(tier.refused("executor-full"), 1);
        gate.key.send(()).unwrap();
        assert_eq!(first.receive().unwrap().text(), "done");
        assert_eq!(second.receive().unwrap().text(), "done");
        assert_eq!(third.get("/again").text(), "done");
    });
}

#[test]
fn a_connection_without_a_thread_waits_for_one() {
    let (handler, gate) = gate();
    let tier = serving(IoModel::Threads, handler, |config| {
        config.max_threads = NonZeroUsize::MIN;
        config.min_spare_threads = 0;
    });
    let mut first = tier.http();
    first.send(&get("/held")).unwrap();
    gate.wait_entered();
    let mut second = tier.http();
    second.send(&get("/waits")).unwrap();
    gate.key.send(()).unwrap();
    assert_eq!(first.receive().unwrap().text(), "done");
    assert_eq!(tier.running.counters().accepted, 1, "the thread is taken");
    drop(first);
    assert_eq!(second.receive().unwrap().text(), "done");
}

#[test]
fn a_reader_and_a_writer_stream_at_the_same_time() {
    let echo = |_: &Request, body: &mut BodyReader<'_>, responder: Responder<'_>| {
        io::copy(body, &mut responder.begin(StatusCode::OK)).map(drop)
    };
    on_each_model(|io| {
        let tier = serving(io, echo, |_| {});
        for length in [1, 8186, 3_000_000] {
            for announced in [BodyLength::Known(length), BodyLength::Unknown] {
                let exchange = Exchange::post("/", announced);
                let answer = tier.ajp().exchange(&exchange, &mut Pattern::new(length));
                assert!(answer.body == Pattern::bytes(length), "the body differs");
                assert!(answer.reuse);
            }
            let mut client = tier.http();
            let sender = HttpClient::on(client.socket().try_clone().unwrap());
            let echoed = std::thread::scope(|scope| {
                let sending = scope.spawn(move || {
                    let mut sender = sender;
                    let head = b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
                    sender.send(head).unwrap();
                    sender
                        .send_chunked(&mut Pattern::new(length), 10_000)
                        .unwrap();
                });
                let echoed = client.receive().unwrap();
                sending.join().unwrap();
                echoed
            });
            assert!(echoed.body == Pattern::bytes(length), "the body differs");
        }
    });
}

#[test]
fn a_small_response_has_its_length_and_fields() {
    let handler = |_: &Request, _: &mut BodyReader<'_>, mut responder: Responder<'_>| {
        responder.headers_mut().insert("x-made", "yes");
        let mut writer = responder.begin(StatusCode::CREATED);
        writer.write_all(b"two ")?;
        writer.write_bytes(Bytes::from_static(b"parts"))
    };
    on_each_model(|io| {
        let tier = serving(io, handler, |_| {});
        let mut client = tier.http();
        let answer = client.ask(get("/")).unwrap();
        assert_eq!((answer.status, answer.text().as_str()), (201, "two parts"));
        assert_eq!(answer.header("content-length"), Some("9"));
        assert_eq!(answer.header("x-made"), Some("yes"));
        assert_eq!(tier.ajp().get("/").content_length, Some(9));
    });
}

#[test]
fn a_handler_that_fails_is_a_500_or_a_visible_cut() {
    let handler = |request: &Request, _: &mut BodyReader<'_>, responder: Responder<'_>| {
        if request.path == "/early" {
            return Err(io::Error::other("not today"));
        }
        if request.path == "/silent" {
            return Ok(());
        }
        let mut writer = responder.begin(StatusCode::OK);
        writer.write_all(b"half")?;
        writer.flush()?;
        assert!(request.path != "/panic", "asked to");
        Err(io::Error::other("half-way"))
    };
    on_each_model(|io| {
        let tier = serving(io, handler, |_| {});
        for (path, reason) in [("/early", "handler-error"), ("/silent", "handler-gave-up")] {
            assert_eq!(tier.ajp().get(path).status, 500, "{path}");
            let mut client = tier.http();
            assert_eq!(client.ask(get(path)).unwrap().status, 500, "{path}");
            tier.wait_for_refused(reason, 2);
        }
        for path in ["/cut", "/panic"] {
            let mut client = tier.http();
            client.send(&get(path)).unwrap();
            // What was flushed need not have been sent when the handler failed.
            if let Ok(answer) = client.receive() {
                assert_eq!(answer.status, 500, "{path}");
            }
            let mut old = tier.http();
            let request = format!("GET {path} HTTP/1.0\r\n\r\n");
            old.send(request.as_bytes()).unwrap();
            match old.receive_to_end() {
                Ok(answer) => assert!(answer.starts_with(b"HTTP/1.1 500 "), "{path}: {answer:?}"),
                Err(cut) => assert!(matches!(cut, Failure::Reset { .. }), "{path}: {cut:?}"),
            }
            let mut ajp = tier.ajp();
            ajp.send_head(&Exchange::get(path));
            let cut = ajp.receive_to_end();
            assert!(!cut.ends_with(&[5, 1]), "{path}: {cut:?}");
        }
        tier.wait_for_refused("handler-panic", 3);
    });
}

#[test]
fn a_handler_outlives_its_client_without_harm() {
    on_each_model(|io| {
        let (telling, told) = sync_channel(10);
        let (entering, entered) = sync_channel(10);
        let handler =
            move |request: &Request, body: &mut BodyReader<'_>, responder: Responder<'_>| {
                let result = if request.method == Method::POST {
                    body.read_exact(&mut [0; 4])?;
                    entering.send(()).unwrap();
                    body.read_to_end(&mut Vec::new()).map(drop)
                } else {
                    let mut writer = responder.begin(StatusCode::OK);
                    loop {
                        if let Err(error) = writer.write_all(&[b'x'; 8192]) {
                            break Err(error);
                        }
                    }
                };
                telling.send(result.as_ref().unwrap_err().kind()).unwrap();
                result
            };
        let tier = serving(io, handler, |_| {});
        let told = || {
            let left = Deadline::default().remaining().unwrap();
            told.recv_timeout(left).unwrap()
        };
        let mut downloading = tier.http();
        downloading.send(&get("/")).unwrap();
        assert_eq!(downloading.receive_head().unwrap().status, 200);
        drop(downloading);
        assert_eq!(told(), ErrorKind::BrokenPipe);
        let mut uploading = tier.ajp();
        uploading.send_head(&Exchange::post("/", BodyLength::Known(9)));
        uploading.send_body(&mut &b"half"[..]);
        let left = Deadline::default().remaining().unwrap();
        entered.recv_timeout(left).unwrap();
        drop(uploading);
        assert_eq!(told(), ErrorKind::Other);
        tier.wait_until_quiet();
    });
}

#[test]
fn a_stalled_handler_does_not_hold_up_the_end() {
    on_each_model(|io| {
        let (handler, gate) = gate();
        let tier = serving(io, handler, |_| {});
        let mut client = tier.http();
        client.send(&get("/held")).unwrap();
        gate.wait_entered();
        tier.running.shutdown(Duration::ZERO);
        tier.running.join();
        assert!(client.receive().is_err());
        drop(gate.key);
    });
}

#[test]
fn requests_of_many_connections_share_the_threads() {
    let handler = |request: &Request, _: &mut BodyReader<'_>, responder: Responder<'_>| {
        responder.begin(StatusCode::OK).write_all(&request.path)
    };
    on_each_loop(|io| {
        let tier = Arc::new(serving(io, handler, |config| {
            config.max_threads = NonZeroUsize::new(3).unwrap();
        }));
        let mut clients: Vec<HttpClient> = (0..100).map(|_| tier.http()).collect();
        for round in 0..3 {
            for (index, client) in clients.iter_mut().enumerate() {
                client.send(&get(&format!("/{round}/{index}"))).unwrap();
            }
            for (index, client) in clients.iter_mut().enumerate() {
                assert_eq!(
                    client.receive().unwrap().text(),
                    format!("/{round}/{index}")
                );
            }
        }
    });
}

//! Tower services: an axum router on each driver, over both protocols.

use std::convert::Infallible;
use std::future::{Future, pending};
use std::io::ErrorKind;
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::task::{Context, Poll};

use axum::extract::Path as PathValue;
use axum::routing::{get as on_get, post as on_post};
use axum::{Extension, Router};
use bytes::Bytes;
use catamaran_ajp::{Attribute, BodyLength};
use catamaran_connector::{Identity, Origin, RequestBody, StartError};
use catamaran_testkit::Pattern;
use http::StatusCode;
use http_body_util::{Empty, Full};
use socket2::Socket;
use tower_service::Service;

use super::*;
use crate::ajp_client::Exchange;

fn serving(io: IoModel, router: Router) -> Tier {
    Tier::running(io, Application::service(router), |_| {})
}

/// Tells when it is dropped.
struct Guard(SyncSender<()>);

impl Drop for Guard {
    fn drop(&mut self) {
        let _ = self.0.send(());
    }
}

#[test]
fn a_router_is_served_over_both_protocols() {
    on_each_model(|io| {
        let who = |Extension(origin): Extension<Origin>, who: Option<Extension<Identity>>| async move {
            let user = who.and_then(|Extension(who)| who.user).unwrap_or_default();
            format!("{user:?} by {:?}", origin.protocol)
        };
        let router = Router::new()
            .route(
                "/greet/{name}",
                on_get(
                    |PathValue(name): PathValue<String>| async move { format!("hello, {name}") },
                ),
            )
            .route("/who", on_get(who))
            .route(
                "/length",
                on_post(|body: Bytes| async move { body.len().to_string() }),
            );
        let tier = serving(io, router);
        let mut http = tier.http();
        let greeting = http.ask(get("/greet/you%20all")).unwrap();
        assert_eq!(greeting.text(), "hello, you all");
        assert_eq!(greeting.header("content-length"), Some("14"));
        assert_eq!(http.ask(get("/nowhere")).unwrap().status, 404);

        let mut ajp = tier.ajp();
        assert_eq!(ajp.get("/greet/me").text(), "hello, me");
        let exchange = Exchange {
            attributes: &[Attribute::RemoteUser(b"jo")],
            ..Exchange::get("/who")
        };
        let answer = ajp.exchange(&exchange, &mut std::io::empty());
        assert_eq!(answer.text(), "b\"jo\" by Ajp");
        let exchange = Exchange::post("/length", BodyLength::Unknown);
        let answer = ajp.exchange(&exchange, &mut Pattern::new(100_000));
        assert_eq!((answer.text().as_str(), answer.reuse), ("100000", true));
    });
}

#[test]
fn the_page_shows_the_example() {
    let example = include_str!("../../examples/axum.rs");
    // Without the comment at its top, which the text around it stands for.
    let (_, code) = example.split_once("\n\n").unwrap();
    assert!(include_str!("../../../../docs/connector.md").contains(code.trim()));
}

#[test]
fn bodies_stream_both_ways_at_the_same_time() {
    on_each_model(|io| {
        let echo = tower_of(|request| async { http::Response::new(request.into_body()) });
        let tier = Tier::running(io, Application::service(echo), |_| {});
        for length in [0, 1, 3_000_000] {
            for announced in [BodyLength::Known(length), BodyLength::Unknown] {
                let exchange = Exchange::post("/", announced);
                let answer = tier.ajp().exchange(&exchange, &mut Pattern::new(length));
                assert!(answer.body == Pattern::bytes(length), "the body differs");
                let expected = (announced != BodyLength::Unknown).then_some(length);
                assert_eq!(answer.content_length, expected);
                assert!(answer.reuse);
            }
        }
    });
}

#[test]
fn a_client_that_leaves_has_its_future_dropped() {
    on_each_model(|io| {
        let (dropping, dropped) = sync_channel(10);
        let (entering, entered) = sync_channel(10);
        let stall = tower_of(move |_| {
            let guard = Guard(dropping.clone());
            entering.send(()).unwrap();
            async move {
                let _guard = guard;
                pending::<http::Response<Empty<Bytes>>>().await
            }
        });
        let tier = Tier::running(io, Application::service(stall), |config| {
            config.connection_timeout = SOON;
        });
        // A connection that says nothing for so short a time is closed; then another one is made.
        let ajp = Deadline::default().poll("a request over AJP13", || {
            let mut ajp = tier.ajp();
            ajp.try_send_head(&Exchange::get("/")).ok()?;
            is_served(&ajp.socket, &entered).then_some(ajp)
        });
        let http = Deadline::default().poll("a request over HTTP", || {
            let mut http = tier.http();
            http.send(&get("/")).ok()?;
            is_served(http.socket(), &entered).then_some(http)
        });
        drop((ajp.unwrap(), http.unwrap()));
        for _ in 0..2 {
            let left = Deadline::default().remaining().unwrap();
            dropped.recv_timeout(left).unwrap();
        }
        tier.wait_until_quiet();
        tier.wait_for_refused("peer-gone", 2);
    });
}

/// Waits until the request of a connection is served, or the connection is closed. Whether it is served.
fn is_served(socket: &Socket, entered: &Receiver<()>) -> bool {
    socket.set_nonblocking(true).unwrap();
    let served = Deadline::default().poll("a request or an end", || {
        if entered.try_recv().is_ok() {
            return Some(true);
        }
        match socket.peek(&mut [MaybeUninit::uninit()]) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => None,
            _ => Some(false),
        }
    });
    served.unwrap()
}

#[test]
fn what_fails_is_a_500_or_a_visible_cut_and_harms_nobody() {
    on_each_model(|io| {
        let service = tower_of(|request| async move {
            assert!(request.uri().path() != "/panic", "asked to");
            http::Response::new(Failing(Some(Bytes::from_static(b"half"))))
        });
        let tier = Tier::running(io, Application::service(service), |_| {});
        let mut victim = tier.http();
        assert_eq!(victim.ask(get("/panic")).unwrap().status, 500);
        assert_eq!(tier.refused("handler-panic"), 1);
        let mut ajp = tier.ajp();
        ajp.send_head(&Exchange::get("/"));
        let cut = ajp.receive_to_end();
        assert!(!cut.ends_with(&[5, 1]), "no orderly end: {cut:?}");
        let mut http = tier.http();
        http.send(&get("/")).unwrap();
        let _ = http.receive();
        tier.wait_for_refused("handler-error", 2);
    });
}

#[test]
fn an_early_answer_does_not_wait_for_the_body() {
    on_each_model(|io| {
        let refusing = tower_of(|_| async {
            let mut response = http::Response::new(Full::new(Bytes::from_static(b"too much")));
            *response.status_mut() = StatusCode::PAYLOAD_TOO_LARGE;
            response
        });
        let tier = Tier::running(io, Application::service(refusing), |_| {});
        let mut ajp = tier.ajp();
        let exchange = Exchange::post("/", BodyLength::Known(5));
        let answer = ajp.exchange(&exchange, &mut Pattern::new(5));
        assert_eq!(
            (answer.status, answer.asked, answer.reuse),
            (413, false, true)
        );
        let mut http = tier.http();
        let answer = http
            .ask(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999\r\n\r\n")
            .unwrap();
        assert_eq!(
            (answer.status, answer.header("connection")),
            (413, Some("close"))
        );
    });
}

#[test]
fn a_service_is_called_when_it_is_ready() {
    on_each_model(|io| {
        let service = Reluctant {
            asked: Arc::default(),
        };
        let tier = Tier::running(io, Application::service(service), |_| {});
        assert_eq!(tier.ajp().get("/").text(), "asked 3 times");
    });
}

#[test]
fn without_a_runtime_a_service_does_not_start() {
    on_each_model(|io| {
        let config = Config {
            listeners: vec![loopback(Protocol::Ajp)],
            io,
            ..Config::default()
        };
        let started = start(config, Application::service(Router::<()>::new()));
        assert!(matches!(started, Err(StartError::NoRuntime)));
    });
}

/// A body that is cut after its first piece.
struct Failing(Option<Bytes>);

impl http_body::Body for Failing {
    type Data = Bytes;
    type Error = &'static str;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<http_body::Frame<Bytes>, &'static str>>> {
        let piece = self.0.take().ok_or("half-way");
        Poll::Ready(Some(piece.map(http_body::Frame::data)))
    }
}

/// A service that is a function.
#[derive(Clone)]
struct Function<F>(F);

fn tower_of<F, R, B>(function: F) -> Function<F>
where
    F: Fn(http::Request<RequestBody>) -> R,
    R: Future<Output = http::Response<B>>,
{
    Function(function)
}

impl<F, R, B> Service<http::Request<RequestBody>> for Function<F>
where
    F: Fn(http::Request<RequestBody>) -> R,
    R: Future<Output = http::Response<B>> + Send + 'static,
{
    type Response = http::Response<B>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<http::Response<B>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<RequestBody>) -> Self::Future {
        let answer = (self.0)(request);
        Box::pin(async { Ok(answer.await) })
    }
}

/// Ready when it has been asked three times.
#[derive(Clone)]
struct Reluctant {
    asked: Arc<AtomicUsize>,
}

impl Service<http::Request<RequestBody>> for Reluctant {
    type Response = http::Response<Full<Bytes>>;
    type Error = Infallible;
    type Future = std::future::Ready<Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        if self.asked.fetch_add(1, Relaxed) + 1 < 3 {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: http::Request<RequestBody>) -> Self::Future {
        let text = format!("asked {} times", self.asked.load(Relaxed));
        std::future::ready(Ok(http::Response::new(Full::new(text.into()))))
    }
}

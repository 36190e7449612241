//! Connectors that serve requests and do not speak CPING, as Undertow with a secret.

use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use catamaran_proxy::config::{Address, BackendConfig, ProbeConfig, ProbeKind, Protocol};
use catamaran_testkit::ajp;

use crate::admin::{admin, status, with_admin};
use crate::health::{first, until};
use crate::{Front, get, start, tcp};

/// What it does when it is asked CPING.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Manner {
    Closes,
    Stalls,
    Answers403,
    AnswersHttp,
}

/// A connector on a Unix socket. It answers each request with 200.
struct Connector {
    ended: Arc<AtomicBool>,
    /// How often it was asked CPING.
    asked: Arc<AtomicUsize>,
    acceptor: Option<JoinHandle<()>>,
    path: std::path::PathBuf,
}

impl Connector {
    fn start(path: &Path, manner: Manner) -> Self {
        let listener = UnixListener::bind(path).unwrap();
        let (ended, asked) = (Arc::<AtomicBool>::default(), Arc::<AtomicUsize>::default());
        let (is_ended, count) = (Arc::clone(&ended), Arc::clone(&asked));
        let acceptor = thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if is_ended.load(Ordering::SeqCst) {
                    return;
                }
                let count = Arc::clone(&count);
                thread::spawn(move || serve(stream, manner, &count));
            }
        });
        Self {
            ended,
            asked,
            acceptor: Some(acceptor),
            path: path.to_owned(),
        }
    }
}

impl Drop for Connector {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::SeqCst);
        UnixStream::connect(&self.path).ok();
        if let Some(acceptor) = self.acceptor.take() {
            acceptor.join().ok();
        }
        std::fs::remove_file(&self.path).ok();
    }
}

/// One packet; it answers and closes, or keeps silent until the front closes.
fn serve(mut stream: UnixStream, manner: Manner, asked: &AtomicUsize) {
    let mut header = [0; 4];
    if stream.read_exact(&mut header).is_err() {
        return;
    }
    let mut payload = vec![0; usize::from(u16::from_be_bytes([header[2], header[3]]))];
    if stream.read_exact(&mut payload).is_err() {
        return;
    }
    let is_cping = payload == [10];
    asked.fetch_add(usize::from(is_cping), Ordering::SeqCst);
    let answer = |status| [ajp::send_headers(status, &[]), ajp::end_response(0)].concat();
    match (is_cping, manner) {
        (false, _) => drop(stream.write_all(&answer(200))),
        (true, Manner::Closes) => {}
        (true, Manner::Answers403) => drop(stream.write_all(&answer(403))),
        (true, Manner::AnswersHttp) => drop(stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n")),
        (true, Manner::Stalls) => drop(stream.read(&mut header)),
    }
}

fn at(path: &Path) -> BackendConfig {
    let mut backend = BackendConfig::new(Protocol::Ajp, Address::Unix(path.to_owned()));
    backend.slow_start = Duration::ZERO;
    backend
}

/// A front whose backend has served, was out, and is there again.
fn restarted(directory: &Path, manner: Manner) -> (Front, Connector) {
    let path = directory.join("ajp.sock");
    let connector = Connector::start(&path, manner);
    let mut backend = at(&path);
    if manner == Manner::Stalls {
        backend.ajp.ping_timeout = Duration::from_millis(100);
    }
    let running = start(with_admin(vec![backend])).unwrap();
    let front = tcp(&running, 0);
    assert_eq!(get(front).status, 200, "{manner:?}");
    drop(connector);
    until("the outage", || (get(front).status == 503).then_some(()));
    (running, Connector::start(&path, manner))
}

#[test]
fn a_backend_that_does_not_speak_cping_is_back_after_a_restart() {
    for manner in [Manner::Closes, Manner::Answers403] {
        let directory = tempfile::tempdir().unwrap();
        let (running, _connector) = restarted(directory.path(), manner);
        let front = tcp(&running, 0);
        until(&format!("an answer of one that {manner:?}"), || {
            (get(front).status == 200).then_some(())
        });
        assert_eq!(first(&running).ejections, 1, "{manner:?}");
        let status = status(admin(&running));
        assert!(
            status.contains("does not speak CPING"),
            "{manner:?}: {status}"
        );
        assert!(status.contains("ping_after_idle"), "{manner:?}: {status}");
    }
}

/// A Tomcat that listens while it still deploys is silent; a server of HTTP in its place does not serve either.
#[test]
fn a_backend_that_is_silent_or_speaks_no_ajp_after_a_restart_stays_out() {
    for manner in [Manner::Stalls, Manner::AnswersHttp] {
        let directory = tempfile::tempdir().unwrap();
        let (running, connector) = restarted(directory.path(), manner);
        let front = tcp(&running, 0);
        // What a question says is known when the next one is asked.
        until(&format!("a second question to one that {manner:?}"), || {
            assert_eq!(get(front).status, 503, "{manner:?}");
            (connector.asked.load(Ordering::SeqCst) > 1).then_some(())
        });
        let status = status(admin(&running));
        assert!(
            status.contains("does not answer CPING"),
            "{manner:?}: {status}"
        );
    }
}

#[test]
fn a_probe_that_only_connects_never_asks_cping() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("undertow.sock");
    let mut backend = at(&path);
    backend.probe = Some(ProbeConfig {
        interval: Duration::from_millis(20),
        up: 1,
        ..ProbeConfig::new(ProbeKind::Connect)
    });
    let running = start(with_admin(vec![backend])).unwrap();
    let front = tcp(&running, 0);
    until("the outage", || (first(&running).share == 0).then_some(()));
    let connector = Connector::start(&path, Manner::Closes);
    until("an answer", || (get(front).status == 200).then_some(()));
    assert_eq!(connector.asked.load(Ordering::SeqCst), 0);
    drop(connector);
}

//! What is counted of each backend since the start, for metrics.

use catamaran_proxy::{BackendStatus, Culprit};
use catamaran_testkit::{HttpClient, Peer, Script};

use crate::health::until;
use crate::operate::site;
use crate::sticky::{named, nobody};
use crate::{Front, backend, get, start, tcp, to};

/// Waits until the counts of the backend so named are as wanted.
fn until_counted(running: &Front, name: &str, wanted: impl Fn(&BackendStatus) -> bool) {
    until(name, || {
        let all = running.backends();
        let own = all.iter().find(|it| it.backend == name)?;
        wanted(own).then_some(())
    });
}

#[test]
fn attempts_answers_and_retries_are_counted_for_their_backend() {
    let directory = tempfile::tempdir().unwrap();
    let good = backend("good");
    let backends = vec![nobody("gone", &good), named("good", to(&good))];
    let running = start(site(directory.path(), backends)).unwrap();
    for _ in 0..4 {
        assert_eq!(get(tcp(&running, 0)).status, 200);
    }
    until_counted(&running, "good", |it| {
        let totals = &it.totals;
        totals.responses == [0, 0, 4, 0, 0, 0]
            && (totals.first_byte.count(), totals.whole.count()) == (4, 4)
            && (totals.attempts, totals.retried) == (4, 0)
            && totals.failures.is_empty()
    });
    // After a failed dial it is left out: later requests do not meet it.
    until_counted(&running, "gone", |it| {
        let totals = &it.totals;
        let failed = totals.failures.keys().all(|it| it.0 == Culprit::Backend);
        failed
            && it.counts.dials_failed == totals.attempts
            && totals.retried == totals.attempts
            && totals.failures.values().sum::<u64>() == totals.attempts
            && totals.attempts > 0
            && (it.counts.ejections, totals.whole.count()) == (1, 0)
    });
}

#[test]
fn a_declined_answer_counts_for_the_backend_that_gave_it() {
    let directory = tempfile::tempdir().unwrap();
    let turn = Script::new()
        .expect_until(b"\r\n\r\n")
        .send(b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n");
    let all = (0..ASKED).fold(Script::new(), |script, _| script.then(turn.clone()));
    let (busy, good) = (Peer::start(all.stall()), backend("good"));
    let mut declining = named("busy", to(&busy));
    declining.retry_status = vec![503..=503];
    let backends = vec![declining, named("good", to(&good))];
    let running = start(site(directory.path(), backends)).unwrap();
    for _ in 0..ASKED {
        assert_eq!(get(tcp(&running, 0)).text(), "good");
    }
    until_counted(&running, "good", |it| {
        it.totals.responses[2] == ASKED && it.totals.responses[5] == 0
    });
    // Its turn came at least once in so many.
    until_counted(&running, "busy", |it| {
        let totals = &it.totals;
        let declined = totals.responses[5];
        declined > 0 && (totals.attempts, totals.retried) == (declined, declined)
    });
}

#[test]
fn a_wait_for_a_connection_is_counted() {
    let directory = tempfile::tempdir().unwrap();
    let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
    let one = Script::new().expect_until(b"body").send(answer);
    let other = Script::new().expect_until(b"\r\n\r\n").send(answer);
    let script = one.then(other.clone()).stall();
    // Workers do not share connections: the second may dial.
    let peer = Peer::start_with(move |index| match index {
        0 => script.clone(),
        _ => other.clone().stall(),
    });
    let mut narrow = named("narrow", to(&peer));
    narrow.connections_max = 1;
    let running = start(site(directory.path(), vec![narrow])).unwrap();
    let connect = || HttpClient::connect(tcp(&running, 0)).unwrap();
    let (mut first, mut second) = (connect(), connect());
    first
        .send(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\n")
        .unwrap();
    until_counted(&running, "narrow", |it| it.counts.open == 1);
    second.send(crate::REQUEST).unwrap();
    until_counted(&running, "narrow", |it| it.counts.waiting == 1);
    assert_eq!(first.ask(b"body").unwrap().status, 200);
    assert_eq!(second.receive().unwrap().status, 200);
    until_counted(&running, "narrow", |it| {
        (it.totals.queued.count(), it.totals.responses[2]) == (1, 2)
    });
}

/// Requests, so many that each backend gets some.
const ASKED: u64 = 8;

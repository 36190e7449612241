//! Stopping: what is under way ends well, what is idle ends now, nothing outlives the deadline.

use std::io::ErrorKind;

use catamaran_testkit::Failure;
use tokio::time::Instant;

use super::*;
use crate::ajp_client::Exchange;

#[test]
fn idle_connections_are_closed_and_new_ones_refused() {
    on_each_tier(|tier| {
        let address = tier.address(Protocol::Http);
        let (mut http, mut ajp) = (tier.http(), tier.ajp());
        assert_eq!(http.ask(get("/")).unwrap().status, 200);
        assert!(ajp.get("/").reuse);
        tier.running.shutdown(AMPLE);
        assert_eq!(http.receive_to_end().unwrap(), b"");
        assert_eq!(ajp.receive_to_end(), b"");
        tier.running.join();
        let error = address.connect(AMPLE).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
    });
}

#[test]
fn exchanges_under_way_are_finished_as_the_last_of_their_connection() {
    on_each_driver(|io| {
        // On a busy machine the exchanges may end before they are seen; then others begin.
        let stopped = Deadline::default().poll("a stop in time", || stopped_amid_exchanges(io));
        let (tier, mut http, mut ajp) = stopped.unwrap();
        let last = http.receive().unwrap();
        assert_eq!(
            (last.status, last.header("connection")),
            (200, Some("close"))
        );
        assert_eq!(http.receive_to_end().unwrap(), b"");
        let last = ajp.receive(&mut std::io::empty());
        assert_eq!(
            (last.text().as_str(), last.reuse),
            ("waited 300 ms\n", false)
        );
        assert_eq!(ajp.receive_to_end(), b"");
        tier.running.join();
    });
}

/// A connector that was stopped while it served an exchange of each of these clients; `None`: they may have ended before.
fn stopped_amid_exchanges(io: Model) -> Option<(Tier, HttpClient, AjpClient)> {
    let tier = Tier::start(io);
    let (mut http, mut ajp) = (tier.http(), tier.ajp());
    let began = Instant::now();
    http.send(&get("/delay/300")).unwrap();
    ajp.send_head(&Exchange::get("/delay/300"));
    Deadline::default()
        .poll("two requests", || {
            (tier.running.counters().requests == 2).then_some(())
        })
        .unwrap();
    tier.running.shutdown(AMPLE);
    let is_amid = began.elapsed() < Duration::from_millis(300);
    is_amid.then_some((tier, http, ajp))
}

#[test]
fn a_response_without_a_length_that_is_cut_ends_with_a_reset() {
    on_each_driver(|io| {
        if io.io == IoModel::Threads {
            // Threads are stopped through their sockets, whose end cannot be a reset then.
            return;
        }
        let tier = Tier::start(io);
        let mut client = tier.http();
        client
            .send(b"GET /stream/2/3600000 HTTP/1.0\r\n\r\n")
            .unwrap();
        assert_eq!(client.receive_head().unwrap().status, 200);
        tier.running.shutdown(SOON);
        tier.running.join();
        let cut = client.receive_to_end();
        assert!(matches!(cut, Err(Failure::Reset { .. })), "{cut:?}");
    });
}

#[test]
fn the_deadline_ends_what_does_not_end_by_itself() {
    on_each_tier(|tier| {
        let mut client = tier.http();
        client.send(&get("/delay/3600000")).unwrap();
        Deadline::default()
            .poll("the request", || {
                (tier.running.counters().requests == 1).then_some(())
            })
            .unwrap();
        tier.running.shutdown(AMPLE);
        tier.running.shutdown(SOON);
        tier.running.join();
        let cut = client.receive();
        assert!(
            matches!(cut, Err(Failure::Closed | Failure::Reset { .. })),
            "{cut:?}"
        );
    });
}

const AMPLE: Duration = Duration::from_secs(60);

//! Ending: drains that lose nothing.

use std::thread;

use catamaran_e2e::{Connector, Front, Tomcat};
use catamaran_testkit::{Address, Deadline, HttpClient, Signal};

use crate::reload::application;
use crate::through::front;

#[test]
fn a_drain_finishes_what_has_begun() {
    for signal in [Signal::Terminate, Signal::Interrupt] {
        let tomcat = Tomcat::shared().unwrap();
        let mut front = front(Connector::Ajp);
        let gate = format!("drain-{signal:?}");
        let request = front.head("GET", &format!("/gate.jsp?wait&name={gate}"), "");
        let mut held = front.connect().unwrap();
        held.send(request.as_bytes()).unwrap();
        assert_eq!(
            tomcat
                .get(&format!("/gate.jsp?arrived&name={gate}"))
                .unwrap()
                .status,
            200
        );

        front.process().signal(signal).unwrap();
        wait_until_refused(&front);
        assert!(
            front.process().try_wait().unwrap().is_none(),
            "it must wait for the exchange"
        );

        assert_eq!(
            tomcat
                .get(&format!("/gate.jsp?open&name={gate}"))
                .unwrap()
                .status,
            200
        );
        let answer = held.receive().unwrap();
        assert_eq!((answer.status, answer.text().as_str()), (200, "passed\n"));
        assert_eq!(answer.header("connection"), Some("close"));
        assert_eq!(held.receive_to_end().unwrap(), b"");
        let status = front.process().wait(Deadline::default()).unwrap();
        assert_eq!(status.code(), Some(0), "{}", front.process().stderr());
    }
}

#[test]
fn a_drain_does_not_wait_for_idle_connections() {
    let mut front = front(Connector::Ajp);
    let mut idle = front.connect().unwrap();
    let answer = idle.ask(front.head("GET", "/page.html", "")).unwrap();
    assert_eq!(answer.status, 200);
    let mut unused = front.connect().unwrap();
    front.process().signal(Signal::Terminate).unwrap();
    assert_eq!(idle.receive_to_end().unwrap(), b"");
    assert_eq!(unused.receive_to_end().unwrap(), b"");
    let status = front.process().wait(Deadline::default()).unwrap();
    assert_eq!(status.code(), Some(0));
}

#[test]
fn a_drain_ends_at_its_deadline() {
    let tomcat = Tomcat::shared().unwrap();
    let mut front = Front::with_tables(&format!(
        "[server]\ndrain_timeout = \"100ms\"\n[[route]]\nupstream = \"app\"\n{}",
        tomcat.backend_table("app", Connector::Ajp)
    ))
    .unwrap();
    let mut held = front.connect().unwrap();
    let request = front.head("GET", "/gate.jsp?wait&flush&name=deadline", "");
    held.send(request.as_bytes()).unwrap();
    assert_eq!(held.receive_head().unwrap().status, 200);
    front.process().signal(Signal::Terminate).unwrap();
    front.process().wait(Deadline::default()).unwrap();
    // Cut, and visibly so: the last chunk never came.
    let rest = held.receive_to_end().unwrap_or_default();
    assert!(!rest.ends_with(b"0\r\n\r\n"), "{rest:?}");
    assert_eq!(
        tomcat.get("/gate.jsp?open&name=deadline").unwrap().status,
        200
    );
}

#[test]
fn a_drain_under_load_fails_no_request() {
    let mut front = front(Connector::Ajp);
    let address = front.address();
    let request = front.head("GET", "/download.jsp?bytes=20000", "");
    thread::scope(|scope| {
        let request = request.as_bytes();
        let clients: Vec<_> = (0..20)
            .map(|_| scope.spawn(move || requests_until_close(address.into(), request)))
            .collect();
        // Some requests have been answered by now, and all clients go on.
        front.wait_for_log("/download.jsp").unwrap();
        front.process().signal(Signal::Terminate).unwrap();
        for client in clients {
            client.join().unwrap();
        }
    });
    let status = front.process().wait(Deadline::default()).unwrap();
    assert_eq!(status.code(), Some(0));
}

/// A load balancer has time to notice: `/readyz` is 503 while requests are served as before.
#[test]
fn a_front_that_is_about_to_drain_serves_and_says_so() {
    let (_app, url) = application();
    let mut front = Front::to_app(&format!(
        "[[upstream.app.backend]]\nurl = \"{url}\"\n[server]\ndrain_delay = \"1h\"\n\
         [admin]\naddress = \"127.0.0.1:0\"\n"
    ))
    .unwrap();
    let ready = |front: &Front| front.ask_admin("/readyz").unwrap().status;
    assert_eq!(ready(&front), 200);
    front.process().signal(Signal::Terminate).unwrap();
    front.wait_for_log("while /readyz is 503").unwrap();
    assert_eq!(ready(&front), 503);
    assert_eq!(front.metric("catamaran_ready").unwrap(), [0.0]);
    assert_eq!(front.metric("catamaran_draining").unwrap(), [0.0]);
    let answer = front.get("/").unwrap();
    assert_eq!((answer.status, answer.header("connection")), (200, None));
    for (signal, asked) in [(Signal::Hangup, "Reload"), (Signal::User2, "Upgrade")] {
        front.process().signal(signal).unwrap();
        front.wait_for_log(&format!("asked={asked}")).unwrap();
    }
    // An exchange that the drain waits for.
    let mut held = front.connect().unwrap();
    held.send(front.head("GET", "/delay/3600000", "").as_bytes())
        .unwrap();
    Deadline::default()
        .poll("the request to be in flight", || {
            let in_flight = front.metric("catamaran_backend_in_flight").unwrap();
            (in_flight == [1.0]).then_some(())
        })
        .unwrap();
    front.process().signal(Signal::Terminate).unwrap();
    front.wait_for_log("a second signal quits at once").unwrap();
    wait_until_refused(&front);
    assert!(front.process().try_wait().unwrap().is_none());
    front.process().signal(Signal::Terminate).unwrap();
    let status = front.process().wait(Deadline::default()).unwrap();
    assert_eq!(status.code(), Some(1));
}

#[test]
fn a_drain_begins_by_itself_when_its_delay_is_over() {
    let (_app, url) = application();
    let mut front = Front::to_app(&format!(
        "[[upstream.app.backend]]\nurl = \"{url}\"\n[server]\ndrain_delay = \"1ms\"\n"
    ))
    .unwrap();
    assert_eq!(front.get("/").unwrap().status, 200);
    front.process().signal(Signal::Terminate).unwrap();
    let status = front.process().wait(Deadline::default()).unwrap();
    assert!(status.success(), "{status}");
    assert!(front.log().contains("while /readyz is 503"));
}

/// Sends one request after another on kept-alive connections until the front accepts no more.
/// Whoever could connect must be answered.
fn requests_until_close(address: Address, request: &[u8]) {
    while let Ok(mut client) = HttpClient::connect(&address) {
        loop {
            let answer = client.ask(request).unwrap();
            assert_eq!((answer.status, answer.body.len()), (200, 20_000));
            if answer.header("connection") == Some("close") {
                break;
            }
        }
    }
}

fn wait_until_refused(front: &Front) {
    let address = Address::from(front.address());
    Deadline::default()
        .poll("connections to be refused", || {
            address.connect(Deadline::DEFAULT).is_err().then_some(())
        })
        .unwrap();
}

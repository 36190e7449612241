//! Many clients at once: every one of them is inside Tomcat at the same time.

use std::thread;

use catamaran_e2e::{Connector, Front, Tomcat};

use crate::through::{connectors, value};

#[test]
fn two_hundred_exchanges_are_in_flight_at_once() {
    let each = [
        Connector::Ajp,
        Connector::AjpUnix,
        Connector::Http,
        Connector::HttpUnix,
    ];
    connectors(&each, |front, connector| {
        // Nobody gets an answer before all two hundred are in there.
        let target = format!("/gate.jsp?meet=200&name={connector:?}");
        let request = front.head("GET", &target, "");
        thread::scope(|scope| {
            let clients: Vec<_> = (0..200)
                .map(|_| scope.spawn(|| front.ask(&request).map(|answer| answer.status)))
                .collect();
            let answers: Vec<_> = clients.into_iter().map(|it| it.join().unwrap()).collect();
            let failed: Vec<_> = answers.iter().filter(|it| !matches!(it, Ok(200))).collect();
            assert!(
                failed.is_empty(),
                "{} failed: {}",
                failed.len(),
                failures(front)
            );
        });
    });
}

/// The lines of a front's log that have a reason.
fn failures(front: &Front) -> String {
    let log = front.log();
    let failed = log.lines().filter(|line| !line.contains(" reason=- "));
    failed.collect::<Vec<_>>().join("\n")
}

#[test]
fn two_hundred_clients_never_get_each_others_answers() {
    connectors(&[Connector::Ajp, Connector::Http], |front, _| {
        thread::scope(|scope| {
            for client in 0..200 {
                scope.spawn(move || {
                    let mut connection = front.connect().unwrap();
                    for turn in 0..20 {
                        let target = format!("/snoop.jsp?who={client}-{turn}");
                        let text = connection
                            .ask(front.head("GET", &target, ""))
                            .unwrap()
                            .text();
                        assert_eq!(value(&text, "parameter.who"), format!("{client}-{turn}"));
                    }
                });
            }
        });
    });
}

#[test]
fn more_clients_than_connections_wait_their_turn() {
    let tomcat = Tomcat::shared().unwrap();
    let table = tomcat.backend_table("app", Connector::Ajp);
    let keys = "connections_max = 3\nqueue_timeout = \"1h\"\n";
    let front = Front::to_app(&format!("{table}{keys}")).unwrap();
    thread::scope(|scope| {
        let clients: Vec<_> = (0..50)
            .map(|_| scope.spawn(|| front.get("/download.jsp?bytes=100000").unwrap()))
            .collect();
        for client in clients {
            let answer = client.join().unwrap();
            assert_eq!((answer.status, answer.body.len()), (200, 100_000));
        }
    });
}

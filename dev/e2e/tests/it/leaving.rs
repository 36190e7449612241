//! Clients that leave while a real container is at work on their requests.

use std::net::SocketAddr;
use std::thread;

use catamaran_e2e::{Connector, Front, Tomcat};
use catamaran_testkit::{Deadline, HttpClient};

/// Tomcat does not notice a half-close while a servlet runs. The front's permit tells that it does
/// run, and is free as soon as Tomcat has closed.
#[test]
fn tomcats_thread_keeps_its_permit_until_it_is_free() {
    let tomcat = Tomcat::shared().unwrap();
    for connector in [Connector::Ajp, Connector::Http] {
        let table = tomcat.backend_table("app", connector);
        let keys = "connections_max = 1\nqueue_timeout = \"1h\"\n";
        let tables = format!("[admin]\naddress = \"127.0.0.1:0\"\n{table}{keys}");
        let front = Front::to_app(&tables).unwrap();
        let gate = format!("/gate.jsp?name=leaving-{connector:?}");
        let mut left = front.connect().unwrap();
        let waits = front.head("GET", &format!("{gate}&wait"), "");
        left.send(waits.as_bytes()).unwrap();
        assert_eq!(tomcat.get(&format!("{gate}&arrived")).unwrap().status, 200);
        drop(left);
        let line = front.wait_for_log("&wait HTTP/1.1\" 499 0 ").unwrap();
        assert!(line.contains(" attempts=1 "), "{line}");
        assert!(line.contains(" reason=client:gone "), "{line}");
        thread::scope(|scope| {
            let next = scope.spawn(|| front.get("/page.html").map(|answer| answer.status));
            wait_for(&front, "waiting", 1);
            wait_for(&front, "exchanges_abandoned", 1);
            assert_eq!(tomcat.get(&format!("{gate}&open")).unwrap().status, 200);
            assert_eq!(next.join().unwrap().unwrap(), 200);
        });
        wait_for(&front, "exchanges_abandoned", 0);
        wait_for(&front, "exchanges_abandoned_total", 1);
        wait_for(&front, "ejections_total", 0);
    }
}

/// Waits until the only backend's metric has this value.
fn wait_for(front: &Front, metric: &str, value: u64) {
    let admin = front.wait_for_log("admin on ").unwrap();
    let (_, admin) = admin.rsplit_once('/').unwrap();
    let admin: SocketAddr = admin.trim().parse().unwrap();
    let name = format!("catamaran_backend_{metric}{{");
    let reached = || {
        let mut client = HttpClient::connect(admin).ok()?;
        client
            .send(b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n")
            .ok()?;
        let page = client.receive().ok()?.text();
        let line = page.lines().find(|line| line.starts_with(&name))?;
        line.ends_with(&format!(" {value}")).then_some(())
    };
    Deadline::default()
        .poll(format!("{metric} to be {value}"), reached)
        .unwrap();
}

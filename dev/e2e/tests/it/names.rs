//! Names of backends: an outage of the resolver, addresses that change, and names with several addresses.

use std::net::{Ipv6Addr, SocketAddr};

use catamaran_e2e::Front;
use catamaran_testkit::{Deadline, Peer, Script, Signal, ajp};
use serde_json::Value;
use socket2::{Domain, Socket, Type};

/// Answers one request of each connection with `body`, and closes it: each request is a dial.
fn closing(body: &str) -> Script {
    let length = body.len();
    let answer =
        format!("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}");
    Script::new()
        .expect_until(b"\r\n\r\n")
        .send(answer.as_bytes())
}

/// A front whose upstream `app` has these backends, and `still` one without a name.
fn config(urls: &[&str], still: &Peer) -> String {
    let backends = urls.iter().map(|url| {
        format!("[[upstream.app.backend]]\nurl = \"{url}\"\nconnect_timeout = \"1m\"\n")
    });
    let still = still.tcp_address();
    format!(
        "[[listen]]\naddress = \"127.0.0.1:0\"\n[admin]\naddress = \"127.0.0.1:0\"\n\
         [[route]]\nupstream = \"app\"\n[[route]]\npath = \"/still\"\nupstream = \"still\"\n{}\
         [[upstream.still.backend]]\nurl = \"http://{still}\"\n",
        backends.collect::<String>()
    )
}

/// What the API says of the backends of `app`.
fn backends(front: &Front) -> Vec<Value> {
    let status = front.ask_admin("/api/v1/status").unwrap().text();
    let status: Value = serde_json::from_str(&status).unwrap();
    status["upstreams"][0]["backends"]
        .as_array()
        .unwrap()
        .clone()
}

fn until<T>(what: &str, ready: impl FnMut() -> Option<T>) -> T {
    Deadline::default().poll(what, ready).unwrap()
}

#[test]
fn an_outage_of_the_resolver_is_none_of_the_backends() {
    let [blue, green, still] = ["blue", "green", "still"].map(|body| Peer::start(closing(body)));
    let [blue_port, green_port] = [&blue, &green].map(|peer| peer.tcp_address().port());
    let urls = [
        format!("http://blue.test:{blue_port}"),
        format!("http://green.test:{green_port}"),
    ];
    let hosts = "127.0.0.1 blue.test\n127.0.0.1 green.test\n";
    let mut front = Front::with_hosts(&config(&[&urls[0], &urls[1]], &still), hosts).unwrap();
    for _ in 0..4 {
        assert_eq!(front.get("/").unwrap().status, 200);
    }
    front.set_hosts("").unwrap();
    until("a failure of the resolver", || {
        let failed = |it: &Value| it["resolution"]["failed"].is_string();
        backends(&front).iter().all(failed).then_some(())
    });
    for _ in 0..20 {
        assert_eq!(front.get("/").unwrap().status, 200, "{}", front.log());
    }
    for backend in backends(&front) {
        assert_eq!(
            (&backend["condition"], &backend["ejections"]),
            (&Value::from("up"), &Value::from(0))
        );
        assert_eq!(
            backend["resolution"]["addresses"],
            Value::from(vec!["127.0.0.1"])
        );
        assert!(backend["resolution"]["age_s"].is_u64(), "{backend}");
    }
    let remark = backends(&front)[0]["remarks"][0].to_string();
    assert!(
        remark.contains("its name blue.test does not resolve"),
        "{remark}"
    );
    let ages = front.metric("catamaran_backend_name_age_seconds").unwrap();
    assert_eq!(ages.len(), 2, "one of each backend with a name");
    assert_eq!(front.ask_admin("/readyz").unwrap().status, 200);
    front
        .wait_for_log("the name does not resolve; its last addresses stay in use")
        .unwrap();
    // The next process has not resolved them, and serves all the same.
    let before = front.process().id();
    front.process().signal(Signal::User2).unwrap();
    until("another process", || {
        let status = front.ask_admin("/api/v1/status").ok()?.text();
        let status: Value = serde_json::from_str(&status).ok()?;
        (status["process"].as_u64()? != u64::from(before)).then_some(())
    });
    for _ in 0..20 {
        assert_eq!(front.get("/").unwrap().status, 200, "{}", front.log());
    }
    front.set_hosts(hosts).unwrap();
    front.wait_for_log("the name resolves again").unwrap();
}

#[test]
fn a_front_that_starts_without_a_resolver_serves_what_it_can_and_takes_names_as_they_come() {
    let [named, still] = ["named", "still"].map(|body| Peer::start(closing(body)));
    let url = format!("http://app.test:{}", named.tcp_address().port());
    let front = Front::with_hosts(&config(&[&url], &still), "").unwrap();
    assert_eq!(front.get("/still").unwrap().text(), "still");
    assert_eq!(front.get("/").unwrap().status, 503);
    let said = until("an answer of /readyz", || {
        let answer = front.ask_admin("/readyz").unwrap();
        let said = answer.text();
        (answer.status == 503 && said.contains("does not resolve")).then_some(said)
    });
    assert!(
        said.contains("upstream app: the name app.test does not resolve"),
        "{said}"
    );
    front
        .wait_for_log("backend is out: its name does not resolve")
        .unwrap();
    let cause = &backends(&front)[0]["cause"];
    let cause = cause.as_str().unwrap();
    assert!(cause.starts_with("its name does not resolve: "), "{cause}");
    assert_eq!(backends(&front)[0]["resolution"]["age_s"], Value::Null);
    front.set_hosts("127.0.0.1 app.test\n").unwrap();
    until("an answer of the backend", || {
        let answer = front.get("/").unwrap();
        (answer.status == 200 && answer.text() == "named").then_some(())
    });
    assert_eq!(front.ask_admin("/readyz").unwrap().status, 200);
}

#[test]
fn new_addresses_of_a_name_are_taken() {
    let [old, still] = ["old", "still"].map(|body| Peer::start(closing(body)));
    let port = old.tcp_address().port();
    let new = Peer::start_at(SocketAddr::from(([127, 0, 0, 2], port)), closing("new"));
    let url = format!("http://app.test:{port}");
    let front = Front::with_hosts(&config(&[&url], &still), "127.0.0.1 app.test\n").unwrap();
    assert_eq!(front.get("/").unwrap().text(), "old");
    front.set_hosts("127.0.0.2 app.test\n").unwrap();
    until("the new address", || {
        (front.get("/").unwrap().text() == "new").then_some(())
    });
    front.wait_for_log("the name has other addresses").unwrap();
    drop(new);
}

/// A peer on a port of 127.0.0.1, and the same port of `::1` with a full backlog and connections that keep it full.
fn beside_a_full_backlog(script: &Script) -> (Peer, Socket, Vec<Socket>) {
    loop {
        let good = Peer::start(script.clone());
        let at = SocketAddr::from((Ipv6Addr::LOCALHOST, good.tcp_address().port())).into();
        let silent = Socket::new(Domain::IPV6, Type::STREAM, None).unwrap();
        if silent.bind(&at).is_err() {
            continue;
        }
        silent.listen(0).unwrap();
        let filling = (0..4).map(|_| {
            let socket = Socket::new(Domain::IPV6, Type::STREAM, None).unwrap();
            socket.set_nonblocking(true).unwrap();
            socket.connect(&at).ok();
            socket
        });
        let filling = filling.collect();
        return (good, silent, filling);
    }
}

#[test]
fn an_address_that_is_silent_does_not_keep_a_name_from_the_next_one() {
    let still = Peer::start(closing("still"));
    let hosts = "::1 both.test\n127.0.0.1 both.test\n";
    let ajp_answer = [
        ajp::send_headers(200, &[]),
        ajp::chunk(b"good"),
        ajp::end_response(0),
    ]
    .concat();
    for (scheme, good) in [
        ("http", closing("good")),
        ("ajp", Script::new().expect_packet().send(&ajp_answer)),
    ] {
        let (good, _silent, _filling) = beside_a_full_backlog(&good);
        let port = good.tcp_address().port();
        let url = format!("{scheme}://both.test:{port}");
        let table = config(&[&url], &still)
            + "[upstream.app.probe]\nkind = \"connect\"\ninterval = \"100ms\"\ntimeout = \"1m\"\n";
        let front = Front::with_hosts(&table, hosts).unwrap();
        for _ in 0..2 {
            assert_eq!(front.get("/").unwrap().text(), "good", "{}", front.log());
        }
        until("a probe", || {
            let backend = &backends(&front)[0];
            assert_eq!(backend["probes"]["failed"], 0, "{backend}");
            (backend["probes"]["answered"].as_u64()? > 0).then_some(())
        });
        drop((front, good));
    }
}

#[test]
fn a_fault_names_the_addresses_that_were_tried() {
    let still = Peer::start(closing("still"));
    let nobody = catamaran_testkit::address::refusing().unwrap();
    let hosts = "127.0.0.1 both.test\n127.0.0.2 both.test\n";
    let url = format!("http://both.test:{}", nobody.port());
    let front = Front::with_hosts(&config(&[&url], &still), hosts).unwrap();
    assert_eq!(front.get("/").unwrap().status, 503);
    let port = nobody.port();
    for backend in backends(&front) {
        let detail = backend["last_failure"]["detail"].as_str().unwrap();
        let tried = format!("127.0.0.1:{port}, 127.0.0.2:{port}");
        assert!(detail.contains(&tried), "{detail}");
    }
}

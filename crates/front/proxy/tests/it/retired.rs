//! A backend that a reload removed is told of until its last exchange ends.

use catamaran_testkit::{HttpClient, Peer, Script};

use crate::health::until;
use crate::operate::{read, scrape, site};
use crate::sticky::named;
use crate::{Front, backend, get, start, tcp, to};

/// Answers when the request's body has come, and then one request more on each connection.
fn holding() -> Peer {
    let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nold";
    let held = Script::new().expect_until(b"body").send(answer);
    let next = Script::new().expect_until(b"\r\n\r\n").send(answer);
    Peer::start_with(move |index| match index {
        0 => held.clone().then(next.clone()).stall(),
        _ => next.clone().stall(),
    })
}

/// A request whose body is missing.
fn begin(running: &Front) -> HttpClient {
    let mut client = HttpClient::connect(tcp(running, 0)).unwrap();
    let head = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\n";
    client.send(head).unwrap();
    until("the request to be in flight", || {
        (running.backends()[0].counts.open == 1).then_some(())
    });
    client
}

fn finish(mut client: HttpClient) {
    assert_eq!(client.ask(b"body").unwrap().text(), "old");
}

fn sample(running: &Front, backend: &str) -> Option<String> {
    let page = scrape(running);
    let start = format!("catamaran_backend_retired{{upstream=\"app\",backend=\"{backend}\"}} ");
    let mut lines = page.lines().filter_map(|line| line.strip_prefix(&*start));
    let value = lines.next().map(str::to_owned);
    assert_eq!(lines.next(), None, "each name once: {page}");
    value
}

#[test]
fn it_is_told_of_until_its_last_exchange_ends() {
    let directory = tempfile::tempdir().unwrap();
    let (old, new) = (holding(), backend("new"));
    let first = site(directory.path(), vec![named("blue", to(&old))]);
    let mut second = first.clone();
    second.upstreams[0].backends = vec![named("green", to(&new))];
    let running = start(first).unwrap();
    let client = begin(&running);
    assert_eq!(sample(&running, "blue").unwrap(), "0");
    running.reload(second).unwrap();
    assert_eq!(get(tcp(&running, 0)).text(), "new");

    assert_eq!(sample(&running, "blue").unwrap(), "1");
    assert_eq!(sample(&running, "green").unwrap(), "0");
    let (status, _) = read(&running, "/api/v1/status");
    let retired = &status["retired"];
    assert_eq!(retired.as_array().unwrap().len(), 1, "{retired}");
    assert_eq!(
        (&retired[0]["name"], &retired[0]["in_flight"]),
        (&"blue".into(), &1.into())
    );
    let slowest = &status["in_flight"]["slowest"][0];
    assert_eq!(slowest["backend"], "blue", "{slowest}");
    let backends = status["upstreams"][0]["backends"].as_array().unwrap();
    assert_eq!((backends.len(), &backends[0]["name"]), (1, &"green".into()));

    finish(client);
    until("it to vanish", || {
        sample(&running, "blue").is_none().then_some(())
    });
    assert_eq!(
        read(&running, "/api/v1/status").0["retired"]
            .as_array()
            .unwrap()
            .len(),
        0
    );
}

#[test]
fn one_that_comes_back_keeps_its_exchanges_and_counters() {
    let directory = tempfile::tempdir().unwrap();
    let (old, new) = (holding(), backend("new"));
    let first = site(directory.path(), vec![named("blue", to(&old))]);
    let mut second = first.clone();
    second.upstreams[0].backends = vec![named("green", to(&new))];
    let running = start(first.clone()).unwrap();
    let client = begin(&running);
    running.reload(second.clone()).unwrap();
    let report = running.reload(first).unwrap();
    assert_eq!(
        (report.backends_added, report.backends_removed),
        (vec!["blue".to_owned()], vec!["green".to_owned()])
    );
    assert_eq!(sample(&running, "blue").unwrap(), "0");
    let own = &running.backends()[0];
    assert_eq!((own.counts.in_flight, own.totals.attempts), (1, 1));
    finish(client);
    until("its connection to be pooled", || {
        (running.backends()[0].counts.idle == 1).then_some(())
    });
    // It is not removed twice.
    let report = running.reload(second).unwrap();
    assert_eq!(report.backends_removed, ["blue"]);
}

#[test]
fn one_whose_name_is_anothers_now_is_told_apart() {
    let directory = tempfile::tempdir().unwrap();
    let (old, new) = (holding(), backend("new"));
    let first = site(directory.path(), vec![named("blue", to(&old))]);
    let mut second = first.clone();
    second.upstreams[0].backends = vec![named("blue", to(&new))];
    let running = start(first).unwrap();
    let client = begin(&running);
    running.reload(second).unwrap();
    assert_eq!(sample(&running, "blue").unwrap(), "0");
    let with_address = format!("blue ({})", old.tcp_address());
    assert_eq!(sample(&running, &with_address).unwrap(), "1");
    finish(client);
    until("it to vanish", || {
        sample(&running, &with_address).is_none().then_some(())
    });
}

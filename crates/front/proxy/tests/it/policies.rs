//! What leads a request to a backend where no session does: keys, and bytes moved.

use catamaran_proxy::config::{Config, FieldName, HashBy, Policy};
use catamaran_testkit::{HttpClient, Peer, address};

use crate::health::until;
use crate::{Front, backend, config, get, loopback, start, tcp, to};

fn hashing(by: HashBy, peers: &[Peer]) -> Config {
    let named = |(name, peer): (&&str, &Peer)| {
        let mut backend = to(peer);
        backend.name = (*name).to_owned();
        backend
    };
    let backends = NAMES.iter().zip(peers).map(named);
    let mut config = config(&[loopback()], backends.collect());
    config.upstreams[0].policy = Policy::Hash;
    config.upstreams[0].hash_by = by;
    config
}

/// Who answers a request for `target` with these fields.
fn served(running: &Front, target: &str, fields: &str) -> String {
    let mut client = HttpClient::connect(tcp(running, 0)).unwrap();
    let request = format!("GET {target} HTTP/1.1\r\nHost: a\r\n{fields}\r\n");
    client.ask(request).unwrap().text()
}

#[test]
fn a_key_stays_with_its_backend_on_every_front_and_only_lost_ones_move() {
    let peers = NAMES.map(backend);
    let by = || HashBy::Header(FieldName::from_static("x-tenant"));
    let fronts = [(); 2].map(|()| start(hashing(by(), &peers)).unwrap());
    let mut dead = hashing(by(), &peers);
    let gone = address::refusing().unwrap();
    dead.upstreams[0].backends[1].address = catamaran_proxy::config::Address::Tcp {
        host: gone.ip().to_string(),
        port: gone.port(),
    };
    let without = start(dead).unwrap();
    let mut seen = [0; 3];
    for tenant in 0..60 {
        let field = format!("X-Tenant: tenant-{tenant}\r\n");
        let home = served(&fronts[0], "/", &field);
        assert_eq!(served(&fronts[0], "/other?x", &field), home);
        assert_eq!(served(&fronts[1], "/", &field), home, "fronts agree");
        let now = served(&without, "/", &field);
        assert_ne!(now, "b");
        assert!(
            home == "b" || now == home,
            "only keys of the one that is gone move"
        );
        let index = NAMES.iter().position(|name| *name == home).unwrap();
        seen[index] += 1;
    }
    assert!(seen.iter().all(|count| *count >= 8), "{seen:?}");
}

#[test]
fn each_part_of_a_request_can_be_the_key() {
    let peers = NAMES.map(backend);
    let one_of_many = |by: HashBy, request: fn(u32) -> (String, String)| {
        let running = start(hashing(by, &peers)).unwrap();
        let mut seen = [false; 3];
        for value in 0..40 {
            let (target, fields) = request(value);
            let home = served(&running, &target, &fields);
            assert_eq!(served(&running, &target, &fields), home);
            seen[NAMES.iter().position(|name| *name == home).unwrap()] = true;
        }
        drop(running);
        assert_eq!(seen, [true; 3]);
    };
    one_of_many(HashBy::Path, |value| {
        (format!("/p{value}?{value}"), String::new())
    });
    one_of_many(HashBy::Query("user".to_owned()), |value| {
        (format!("/?x=1&user={value}"), String::new())
    });
    one_of_many(HashBy::Cookie("id".to_owned()), |value| {
        ("/".to_owned(), format!("Cookie: x=1; id={value}\r\n"))
    });
    let running = start(hashing(HashBy::Address, &peers)).unwrap();
    let home = get(tcp(&running, 0)).text();
    assert!((0..10).all(|_| get(tcp(&running, 0)).text() == home));
}

#[test]
fn requests_without_the_key_take_turns() {
    let peers = NAMES.map(backend);
    let mut config = hashing(HashBy::Cookie("id".to_owned()), &peers);
    config.server.workers = 1.try_into().unwrap();
    let running = start(config).unwrap();
    let mut counts = [0; 3];
    for _ in 0..12 {
        let served = served(&running, "/", "Cookie: id=\r\n");
        counts[NAMES.iter().position(|name| *name == served).unwrap()] += 1;
    }
    assert_eq!(counts, [4; 3]);
}

#[test]
fn bytes_are_counted_for_each_backend() {
    let peers = [backend(&"x".repeat(1000))];
    let mut config = config(&[loopback()], vec![to(&peers[0])]);
    config.upstreams[0].policy = Policy::Traffic;
    let running = start(config).unwrap();
    for _ in 0..3 {
        assert_eq!(get(tcp(&running, 0)).status, 200);
    }
    // Counted when an exchange is over, which its client may know before.
    let counts = until("the bytes", || {
        let counts = running.backends()[0].counts;
        (counts.received > 3000).then_some(counts)
    });
    assert!((3000..3300).contains(&counts.received), "{counts:?}");
    assert!((90..900).contains(&counts.sent), "{counts:?}");
}

const NAMES: [&str; 3] = ["a", "b", "c"];

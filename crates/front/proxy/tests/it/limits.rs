//! How many connections there may be.

use std::net::IpAddr;
use std::num::NonZeroUsize;

use catamaran_testkit::{Deadline, HttpClient};

use crate::{ask, backend, config, loopback, start, tcp, to};

#[test]
fn each_address_has_its_own_limit_over_all_workers() {
    let app = backend("app");
    let mut config = config(&[loopback()], vec![to(&app)]);
    config.server.connections_per_address = NonZeroUsize::new(3);
    let running = start(config).unwrap();
    let address = tcp(&running, 0);
    let connect = |last: u8| {
        let source = IpAddr::from([127, 0, 0, last]);
        HttpClient::connect_from(source, address).unwrap()
    };
    let mut first: Vec<HttpClient> = (0..3).map(|_| connect(2)).collect();
    for client in &mut first {
        assert_eq!(ask(client).status, 200);
    }
    assert_eq!(connect(2).receive_to_end().unwrap(), b"");
    assert_eq!(ask(&mut connect(3)).status, 200);
    let refused = |count| {
        let reasons = running.counters().reasons;
        let mut reasons = reasons
            .iter()
            .map(|(reason, count)| (reason.to_string(), *count));
        assert_eq!(
            reasons.next(),
            Some(("front:connections-per-address".to_owned(), count))
        );
    };
    refused(1);
    // One that ends makes room for another.
    first.pop();
    Deadline::default()
        .poll("room for another", || {
            let mut client = connect(2);
            client.send(crate::REQUEST).ok()?;
            client.receive().ok().filter(|answer| answer.status == 200)
        })
        .unwrap();
}

#[test]
fn a_trusted_proxy_may_bring_as_many_as_it_likes() {
    let app = backend("app");
    let mut config = config(&[loopback()], vec![to(&app)]);
    config.server.connections_per_address = NonZeroUsize::new(1);
    config.server.trusted_proxies = vec!["127.0.0.1/32".parse().unwrap()];
    let running = start(config).unwrap();
    let address = tcp(&running, 0);
    let mut clients: Vec<HttpClient> = (0..5)
        .map(|_| HttpClient::connect(address).unwrap())
        .collect();
    for client in &mut clients {
        assert_eq!(ask(client).status, 200);
    }
}

use super::*;
use crate::config::{ListenAddress, LogConfig, RouteConfig, RouteTarget};

fn listener(name: Option<&str>, address: &str) -> ListenerConfig {
    let address = ListenAddress::Tcp(address.parse().unwrap());
    ListenerConfig {
        name: name.map(str::to_owned),
        ..ListenerConfig::new(address)
    }
}

fn site(listeners: Vec<ListenerConfig>, listen: Vec<usize>) -> Site {
    let status = RouteTarget::Status(http::StatusCode::NOT_FOUND);
    let route = RouteConfig {
        listen,
        ..RouteConfig::new("/", status)
    };
    let config = Config {
        server: ServerConfig::default(),
        tls: vec![],
        listeners,
        upstreams: vec![],
        caches: vec![],
        auths: Vec::new(),
        limits: vec![],
        routes: vec![route],
        error_pages: None,
        log: LogConfig::default(),
        trace: None,
        admin: None,
    };
    Site::new(&config, 1, &mut Vec::new()).unwrap()
}

#[test]
fn a_connection_is_of_the_listener_at_its_address() {
    let [one, two] = ["10.0.0.1:80", "10.0.0.1:81"];
    let [a, b, none] = [Some("a"), Some("b"), None];
    let chosen = "10.0.0.1:0";
    let site = site(
        vec![
            listener(a, one),
            listener(none, two),
            listener(a, chosen),
            listener(b, chosen),
        ],
        vec![0],
    );
    for (name, address, expected) in [
        (a, one, Some(0)),
        // A reload may give it another name, or take the name away.
        (b, one, Some(0)),
        (none, one, Some(0)),
        (b, two, Some(1)),
        (a, "10.0.0.2:80", None),
        (a, chosen, Some(2)),
        (b, chosen, Some(3)),
        (none, chosen, None),
    ] {
        let found = site.listener(&listener(name, address));
        assert_eq!(found, expected, "{name:?} {address}");
    }
}

/// A client of the previous site may still have a connection from a listener that this site does not have.
#[test]
fn listeners_are_told_apart_for_one_more_site() {
    let parted = site(vec![listener(None, "10.0.0.1:80")], vec![0]);
    let mut alike = site(vec![listener(None, "10.0.0.1:81")], vec![]);
    assert!(parted.parts_listeners && !alike.parts_listeners);
    alike.follow(&parted);
    assert!(alike.parts_listeners);
    let mut later = site(vec![listener(None, "10.0.0.1:81")], vec![]);
    later.follow(&alike);
    assert!(!later.parts_listeners);
}

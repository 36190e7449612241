//! Listening: addresses, Unix sockets, limits, and refusals to start.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use catamaran_connector::StartError;
use catamaran_testkit::address;

use super::*;

fn config(listeners: Vec<Listener>, model: Model) -> Config {
    Config {
        listeners,
        io: model.io,
        workers: NonZeroUsize::new(2).unwrap(),
        ..Config::default()
    }
}

fn refused(listeners: Vec<Listener>, model: Model) -> StartError {
    match start(config(listeners, model), App::new()) {
        Ok(running) => panic!("listens on {:?}", running.addresses()),
        Err(error) => error,
    }
}

#[test]
fn a_port_in_use_is_said_plainly_and_free_again_afterwards() {
    on_each_driver(|io| {
        // Nobody else takes ports of this address in the moment when it is free.
        let address = address::unused().unwrap();
        let taken = vec![Listener {
            protocol: Protocol::Http,
            address: catamaran_connector::Address::Tcp(address),
        }];
        let first = Tier::with(io, |config| config.listeners = taken.clone());
        let error = refused(taken.clone(), io);
        assert!(matches!(&error, StartError::AddressInUse { listener } if *listener == taken[0]));
        assert!(error.to_string().contains("is in use"), "{error}");
        drop(first);
        start(config(taken, io), App::new()).unwrap();
    });
}

#[test]
fn ajp_for_everybody_needs_a_secret() {
    on_each_driver(|io| {
        let everybody = Listener {
            protocol: Protocol::Ajp,
            address: catamaran_connector::Address::Tcp("0.0.0.0:0".parse().unwrap()),
        };
        let error = refused(vec![everybody.clone()], io);
        assert!(
            matches!(error, StartError::SecretRequired { .. }),
            "{error}"
        );
        let with_secret = Config {
            secret: catamaran_connector::Secret::new("s"),
            ..config(vec![everybody], io)
        };
        start(with_secret, App::new()).unwrap();
        assert!(matches!(refused(Vec::new(), io), StartError::NoListeners));
    });
}

#[test]
fn unix_sockets_serve_both_protocols_and_leave_no_file() {
    on_each_driver(|io| {
        let directory = tempfile::tempdir().unwrap();
        let (ajp, http) = (directory.path().join("ajp"), directory.path().join("http"));
        let tier = Tier::with(io, |config| {
            config.listeners = vec![unix(Protocol::Ajp, &ajp), unix(Protocol::Http, &http)];
        });
        assert_eq!(
            fs::metadata(&ajp).unwrap().permissions().mode() & 0o777,
            0o660
        );
        let mut clients: Vec<AjpClient> = (0..20).map(|_| tier.ajp()).collect();
        for client in &mut clients {
            assert_eq!(client.get("/").body.len(), 347);
        }
        let mut client = tier.http();
        let seen = client.ask(get("/snoop")).unwrap().text();
        assert!(seen.contains("\"remote_addr\": null"), "{seen}");
        drop(tier);
        assert!(!ajp.exists() && !http.exists());
    });
}

#[test]
fn a_socket_file_left_behind_is_replaced_and_nothing_else_is() {
    on_each_driver(|io| {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("socket");
        drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        let running = start(config(vec![unix(Protocol::Ajp, &path)], io), App::new()).unwrap();
        let error = refused(vec![unix(Protocol::Ajp, &path)], io);
        assert!(matches!(error, StartError::AddressInUse { .. }), "{error}");
        drop(running);
        fs::write(&path, "precious").unwrap();
        let error = refused(vec![unix(Protocol::Ajp, &path)], io);
        assert!(matches!(error, StartError::NotASocket { .. }), "{error}");
        assert_eq!(fs::read(&path).unwrap(), b"precious");
    });
}

#[test]
fn listeners_are_shown_as_urls() {
    let addresses = Tier::start(Model::SIMPLEST).running.addresses().to_vec();
    assert!(
        addresses[0].to_string().starts_with("http://127.0.0.1:"),
        "{}",
        addresses[0]
    );
    assert_eq!(
        unix(Protocol::Ajp, Path::new("/x")).to_string(),
        "ajp+unix:/x"
    );
}

#[test]
fn connections_beyond_the_limit_wait_for_a_free_place() {
    on_each_driver(|io| {
        let tier = Tier::with(io, |config| config.max_connections = 2);
        let mut clients = [tier.http(), tier.http()];
        for client in &mut clients {
            assert_eq!(client.ask(get("/")).unwrap().status, 200);
        }
        let mut third = tier.http();
        third.send(&get("/status/418")).unwrap();
        let [mut first, _second] = clients;
        assert_eq!(first.ask(get("/")).unwrap().status, 200);
        assert_eq!(tier.running.counters().accepted, 2);
        drop(first);
        assert_eq!(third.receive().unwrap().status, 418);
    });
}

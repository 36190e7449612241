//! Our own programs as `tier`'s targets, which the lab measures.

use catamaran_e2e::binary;
use catamaran_testkit::{Deadline, HttpClient};
use catamaran_tier::{Launch, Process, Programs, Space, StartFault, builtin};

/// Isolated for root, who runs the tests of CI; else in the machine's network.
fn space(name: &str) -> Space {
    let name = format!("catamaran-e2e-{}-{name}", std::process::id());
    Space::isolated(&name).unwrap_or_else(|_| Space::shared().unwrap())
}

fn start(space: &Space, name: &str, set: &[(&str, &str)]) -> Result<Process, StartFault> {
    let target = builtin(name).unwrap();
    let programs = Programs::from([("catamaran".to_owned(), binary().unwrap())]);
    space.start(&Launch {
        name,
        target: &target,
        settings: &target.settings(set)?,
        programs: &programs,
        core: None,
        limit: None,
    })
}

/// The page, and whether its connection is kept.
fn get(space: &Space, server: &Process) -> (usize, bool) {
    let address = server.address("http");
    let ask = || {
        let mut client = HttpClient::connect(address).unwrap();
        let request = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";
        let length = client.ask(request).unwrap().text().len();
        let kept = client.send(request).is_ok() && client.receive().is_ok();
        (length, kept)
    };
    space.inside(ask).unwrap()
}

#[test]
fn front_and_application_serve_over_either_protocol() {
    let space = space("front");
    for (scheme, model) in [("ajp", "threads"), ("http", "epoll")] {
        let app = start(&space, "app", &[("model", model)]).unwrap();
        let backend = app.url(scheme);
        let set = [
            ("backend", backend.as_str()),
            ("ready_path", "/"),
            ("access_log", "on"),
            ("balance", "busyness"),
        ];
        let mut front = start(&space, "front", &set).unwrap();
        assert_eq!(get(&space, &front), (347, true));
        assert!(
            front.version().starts_with("catamaran "),
            "{}",
            front.version()
        );
        front.reload().unwrap();
        front.upgrade().unwrap();
        assert_eq!(get(&space, &front), (347, true));
        assert_eq!(front.alarms(), Vec::<String>::new());
        let log = front.directory().join("access.log");
        let written = || {
            let log = std::fs::read_to_string(&log).unwrap();
            log.contains("GET / HTTP/1.1").then_some(())
        };
        Deadline::default()
            .poll("a line of the access log", written)
            .unwrap();
    }
}

#[test]
fn keep_alive_can_be_turned_off() {
    let space = space("closing");
    let app = start(&space, "app", &[("keep_alive", "off")]).unwrap();
    assert_eq!(get(&space, &app), (347, false));
    let backend = app.url("ajp");
    let set = [
        ("backend", backend.as_str()),
        ("ready_path", "/"),
        ("keep_alive", "off"),
    ];
    let front = start(&space, "front", &set).unwrap();
    assert_eq!(get(&space, &front), (347, false));
}

#[test]
fn servers_without_a_backend_have_pages_of_their_own() {
    let space = space("pages");
    for (target, pages) in [
        ("front", "files"),
        ("nginx", "files"),
        ("nginx", "looked-up"),
    ] {
        let set = [("page_bytes", "100000"), ("pages", pages)];
        let server = start(&space, target, &set).unwrap();
        assert_eq!(get(&space, &server), (100_000, true), "{target} {pages}");
    }
}

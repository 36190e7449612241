//! Servers start, say what they say, do what they are told, and end.

use std::io::{Read as _, Write as _};
use std::net::{TcpStream, UdpSocket};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use catamaran_gauge::jvm::JvmReader;
use catamaran_testkit::Deadline;
use catamaran_tier::{Launch, Process, Programs, Space, StartFault, Target, java};

use crate::{launch, space, start};

/// What a GET over HTTP/1.0 is answered with.
fn get(space: &Space, server: &Process, path: &str) -> String {
    let address = server.address("http");
    let ask = || {
        let mut stream = TcpStream::connect(address).unwrap();
        let request = format!("GET {path} HTTP/1.0\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        let mut response = String::new();
        stream.read_to_string(&mut response).unwrap();
        response
    };
    space.inside(ask).unwrap()
}

/// A target of a shell script.
fn script(text: &str, keys: &str) -> Target {
    let text = format!(
        "name = \"script\"\nports = [\"http\"]\ncommand = [\"sh\", \"-c\", '''{text}''']\n{keys}"
    );
    Target::parse("script.toml", &text, &[]).unwrap()
}

#[test]
fn a_front_and_its_backend_serve_one_page() {
    let space = space("page");
    let nginx = start(&space, "nginx", &[("page_bytes", "1456")]).unwrap();
    for mpm in ["prefork", "worker", "event"] {
        let backend = nginx.url("http");
        let set = [
            ("mpm", mpm),
            ("backend", &backend),
            ("start_workers", "5"),
            ("access_log", "on"),
        ];
        let mut httpd = start(&space, "httpd", &set).unwrap();
        let response = get(&space, &httpd, "/");
        assert!(response.ends_with(&"x".repeat(1456)), "{response}");
        assert!(httpd.version().starts_with("Server version: Apache/2.4"));
        assert!(httpd.processes().len() > 1, "{:?}", httpd.processes());
        let log = std::fs::read_to_string(httpd.directory().join("access.log")).unwrap();
        assert!(log.contains("\"GET / HTTP/1.0\" 200"), "{log}");
        assert_eq!(httpd.alarms(), Vec::<String>::new());
        assert_eq!(httpd.ended(), None);
        httpd.stop();
    }
}

#[test]
fn haproxy_relays_and_has_a_page() {
    let space = space("haproxy");
    let own = start(&space, "haproxy", &[("page_bytes", "5")]).unwrap();
    assert!(get(&space, &own, "/").ends_with("\r\n\r\nxxxxx"));
    own.stop();
    let nginx = start(&space, "nginx", &[]).unwrap();
    for (reuse, balance) in [("on", "requests"), ("off", "busyness")] {
        let backend = format!("{0} {0}", nginx.url("http"));
        let set = [
            ("backend", backend.as_str()),
            ("reuse", reuse),
            ("balance", balance),
        ];
        let mut haproxy = start(&space, "haproxy", &set).unwrap();
        assert!(get(&space, &haproxy, "/").ends_with(&"x".repeat(347)));
        haproxy.reload().unwrap();
        assert!(get(&space, &haproxy, "/").ends_with(&"x".repeat(347)));
        assert_eq!(haproxy.alarms(), Vec::<String>::new());
    }
}

#[test]
fn memcached_takes_connections() {
    let space = space("memcached");
    let memcached = start(&space, "memcached", &[]).unwrap();
    let address = memcached.address("memcached");
    let talk = || {
        let mut stream = TcpStream::connect(address).unwrap();
        stream
            .write_all(b"set a 0 0 3\r\nabc\r\nget a\r\nquit\r\n")
            .unwrap();
        let mut said = String::new();
        stream.read_to_string(&mut said).unwrap();
        said
    };
    let said = space.inside(talk).unwrap();
    assert_eq!(said, "STORED\r\nVALUE a 0 3\r\nabc\r\nEND\r\n");
}

#[test]
fn tomcat_serves_over_both_protocols_and_all_its_connectors() {
    let space = space("tomcat");
    for (model, pairs) in [("t10-nio", "2"), ("t10-nio2", "1")] {
        let set = [
            ("model", model),
            ("pairs", pairs),
            ("context", "SMS"),
            ("heap", "64m"),
        ];
        let mut tomcat = start(&space, "tomcat10", &set).unwrap();
        let redirect = get(&space, &tomcat, "/SMS");
        assert!(redirect.starts_with("HTTP/1.1 302 "), "{redirect}");
        let mut backends = tomcat.urls("ajp");
        assert_eq!(backends.len().to_string(), pairs);
        backends.extend(tomcat.urls("http"));
        for backend in backends {
            let set = [("backend", backend.as_str()), ("ready_path", "/SMS/")];
            let httpd = start(&space, "httpd", &set).unwrap();
            assert!(get(&space, &httpd, "/SMS/page.html").ends_with(&"x".repeat(347)));
        }
        assert_eq!(tomcat.jvm().map(JvmReader::id), Some(tomcat.id()));
        assert!(
            tomcat.version().contains("Apache Tomcat/10."),
            "{}",
            tomcat.version()
        );
        assert_eq!(tomcat.alarms(), Vec::<String>::new());
    }
}

/// Starts a target that needs what Maven has fetched.
fn with_jars(space: &Space, name: &str, set: &[(&str, &str)]) -> Process {
    let target = catamaran_tier::builtin(name).unwrap();
    let home = std::env::var_os("HOME").unwrap();
    let programs: Programs = java::ALL
        .map(|jars| (jars.name.to_owned(), jars.folder(Path::new(&home))))
        .into();
    let settings = target.settings(set).unwrap();
    let launch = Launch {
        name,
        target: &target,
        settings: &settings,
        programs: &programs,
        core: None,
        limit: None,
    };
    space.start(&launch).unwrap()
}

/// A page of an embedded container over each protocol.
fn embedded(name: &str, set: &[(&str, &str)], path: &str) {
    let space = space(set[0].1);
    let mut container = with_jars(&space, name, set);
    assert!(get(&space, &container, path).ends_with(&"x".repeat(347)));
    let backend = container.url("ajp");
    let set = [("backend", backend.as_str()), ("ready_path", path)];
    let httpd = start(&space, "httpd", &set).unwrap();
    assert!(get(&space, &httpd, path).ends_with(&"x".repeat(347)));
    assert!(!container.version().is_empty());
    assert_eq!(container.alarms(), Vec::<String>::new());
}

#[test]
fn tomcat_7_serves_by_blocking() {
    embedded(
        "tomcat7",
        &[("model", "t7-bio"), ("heap", "64m")],
        "/page.html",
    );
}

#[test]
fn tomcat_7_serves_by_readiness_below_a_context() {
    let set = [("model", "t7-nio"), ("heap", "64m"), ("context", "SMS")];
    embedded("tomcat7", &set, "/SMS/page.html");
}

#[test]
fn tomcat_7_serves_by_the_native_library() {
    embedded("tomcat7", &[("model", "t7-apr"), ("heap", "64m")], "/");
}

#[test]
fn undertow_serves() {
    embedded("undertow", &[("heap", "64m")], "/page.html");
}

#[test]
fn a_gateway_asks_the_cache_and_the_provider_by_each_of_its_clients() {
    let space = space("gateway");
    let memcached = start(&space, "memcached", &[]).unwrap();
    let provider = start(&space, "nginx", &[]).unwrap();
    for (connector, client) in [("bio", "whalin"), ("apr", "spymemcached")] {
        let (cache, provider) = (memcached.url("memcached"), provider.url("http"));
        let set = [
            ("connector", connector),
            ("client", client),
            ("cache", &cache),
            ("provider", &provider),
            ("heap", "64m"),
        ];
        let mut gateway = with_jars(&space, "gateway", &set);
        for caller in ["url", "httpclient"] {
            let path = format!("/call?gets=3&sets=1&path=/page.html&caller={caller}");
            let answer = get(&space, &gateway, &path);
            assert!(answer.ends_with(&"x".repeat(347)), "{answer}");
        }
        let backend = gateway.url("ajp");
        let set = [
            ("backend", backend.as_str()),
            ("ready_path", "/call?gets=1"),
        ];
        let httpd = start(&space, "httpd", &set).unwrap();
        assert!(get(&space, &httpd, "/call?gets=3").ends_with(&"x".repeat(347)));
        assert_eq!(gateway.alarms(), Vec::<String>::new());
        for caller in ["url", "httpclient"] {
            let wrong = format!("/call?gets=1&path=/none&caller={caller}");
            let answer = get(&space, &gateway, &wrong);
            assert!(answer.starts_with("HTTP/1.1 500 "), "{answer}");
        }
    }
}

#[test]
fn an_echo_comes_back_by_each_way() {
    let space = space("echo");
    for io in ["bio", "nio"] {
        for transport in ["tcp", "udp"] {
            let set = [("transport", transport), ("io", io), ("heap", "32m")];
            let mut echo = start(&space, "echo", &set).unwrap();
            let address = echo.address("echo");
            let talk = || {
                let mut answer = [0; 5];
                if transport == "tcp" {
                    let mut stream = TcpStream::connect(address).unwrap();
                    stream.write_all(b"hello").unwrap();
                    stream.read_exact(&mut answer).unwrap();
                } else {
                    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
                    socket.send_to(b"hello", address).unwrap();
                    assert_eq!(socket.recv(&mut answer).unwrap(), 5);
                }
                answer
            };
            assert_eq!(&space.inside(talk).unwrap(), b"hello", "{transport} {io}");
            assert_eq!(echo.alarms(), Vec::<String>::new());
        }
    }
}

#[test]
fn httpd_serves_pages_of_its_own() {
    let space = space("own");
    let httpd = start(
        &space,
        "httpd",
        &[("page_bytes", "10"), ("keep_alive", "off")],
    )
    .unwrap();
    for path in ["/", "/page.html"] {
        let response = get(&space, &httpd, path);
        assert!(response.ends_with("\r\n\r\nxxxxxxxxxx"), "{response}");
    }
}

#[test]
fn several_backends_take_turns() {
    let space = space("several");
    let one = start(&space, "nginx", &[]).unwrap();
    let urls = format!("{0} {0}", one.url("http"));
    for balance in ["requests", "busyness"] {
        let set = [("backend", urls.as_str()), ("balance", balance)];
        let httpd = start(&space, "httpd", &set).unwrap();
        assert!(get(&space, &httpd, "/").contains(" 200 "));
    }
}

#[test]
fn a_server_that_is_reloaded_says_so() {
    let space = space("reload");
    for name in ["nginx", "httpd", "haproxy"] {
        let server = start(&space, name, &[]).unwrap();
        server.reload().unwrap();
        assert!(get(&space, &server, "/").contains(" 200 "));
        let fault = server.upgrade().unwrap_err().to_string();
        assert_eq!(fault, format!("the target of {name} has no upgrade"));
    }
}

#[test]
fn a_server_that_never_serves_is_told_with_what_it_said() {
    let space = space("never");
    let text = include_str!("../../targets/nginx.toml");
    let text = text.replace("ready = { ", "ready = { within = \"1s\", ");
    let templates = [
        ("nginx.conf.j2", include_str!("../../targets/nginx.conf.j2")),
        ("localhost.pem", include_str!("../../targets/localhost.pem")),
    ];
    let target = Target::parse("nginx.toml", &text, &templates).unwrap();
    // Nobody listens there.
    let set = [("backend", "http://127.0.0.1:1"), ("ready_path", "/")];
    // A machine that is busy for a second has not started it.
    let launched = || {
        let fault = launch(&space, &target, &set).unwrap_err();
        assert!(matches!(fault, StartFault::NotReady { .. }), "{fault}");
        let told = fault.to_string();
        let has_started = told.contains("status 502, 200 is expected");
        has_started.then_some(told)
    };
    let told = Deadline::default()
        .poll("a server that starts", launched)
        .unwrap();
    assert!(told.contains("Connection refused"), "{told}");
}

#[test]
fn a_server_that_is_waited_for_is_given_up_on_request() {
    let space = space("given-up");
    let stop = Arc::new(AtomicBool::new(true));
    space.interrupt_by(Arc::clone(&stop));
    // Nobody listens behind it: it would be waited for until its time is over.
    let set = [("backend", "http://127.0.0.1:1"), ("ready_path", "/")];
    let fault = start(&space, "nginx", &set).unwrap_err();
    assert!(matches!(fault, StartFault::Interrupted { .. }), "{fault}");
    assert_eq!(fault.to_string(), "interrupted while nginx was starting");
    stop.store(false, Ordering::Relaxed);
    start(&space, "nginx", &[]).unwrap();
}

#[test]
fn an_alarming_line_is_told_once() {
    let space = space("alarm");
    let backend = start(&space, "nginx", &[]).unwrap();
    let url = backend.url("http");
    let mut httpd = start(&space, "httpd", &[("backend", &url)]).unwrap();
    assert_eq!(httpd.alarms(), Vec::<String>::new());
    backend.stop();
    assert!(get(&space, &httpd, "/").starts_with("HTTP/1.1 503 "));
    let alarms = httpd.alarms();
    assert!(
        alarms
            .iter()
            .any(|line| line.contains("Connection refused")),
        "{alarms:?}"
    );
    assert_eq!(httpd.alarms(), Vec::<String>::new());
}

#[test]
fn a_server_that_ends_at_once_is_told_with_what_it_said() {
    let space = space("ends");
    let target = script("echo no such file >&2; exit 3", "");
    let fault = launch(&space, &target, &[]).unwrap_err();
    assert!(matches!(fault, StartFault::Ended { .. }), "{fault}");
    let told = fault.to_string();
    assert_eq!(
        told,
        "script ended with exit status 3 before it served\n  no such file"
    );
}

#[test]
fn a_server_that_is_killed_has_ended() {
    let space = space("killed");
    let nginx = start(&space, "nginx", &[]).unwrap();
    nginx.group().unwrap().kill().unwrap();
    let ended = || nginx.ended();
    let how = Deadline::default().poll("its end", ended).unwrap();
    assert_eq!(how, "signal 9");
}

#[test]
fn what_is_not_installed_is_told_with_the_command_that_installs_it() {
    let space = space("needs");
    let needs = "needs = [{ package = \"no-such\", proof = \"/no/such\" }]\n";
    let told = launch(&space, &script("", needs), &[])
        .unwrap_err()
        .to_string();
    assert_eq!(
        told,
        "not installed: no-such; `apt-get install no-such` does it"
    );
    let told = start(&space, "app", &[]).unwrap_err().to_string();
    assert!(told.contains("program.catamaran"), "{told}");
}

#[test]
fn a_server_that_does_not_obey_is_killed() {
    let space = space("stubborn");
    let text = "trap \"\" TERM; echo deaf; while :; do sleep 600 & wait; done";
    let keys = "stop = { patience = \"10ms\" }\nready = { within = \"10ms\" }\n";
    let told = launch(&space, &script(text, keys), &[])
        .unwrap_err()
        .to_string();
    assert!(
        told.contains("does not serve after 10ms: connecting to "),
        "{told}"
    );
    if let Some(group) = space.group() {
        assert_eq!(group.processes().unwrap(), Vec::<u32>::new());
    }
}

//! Members that a file or DNS names, which come and go while the front serves.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use catamaran_proxy::config::{
    Address, ApiConfig, ApiUrl, BackendConfig, Config, DnsKind, DnsSource, FileSource, FoundMember,
    FoundState, KubernetesSource, McmpSource, MemberPlace, MemberSource, MemberTemplate,
    MembersConfig, Protocol, RouteConfig, RouteRules, RouteTarget, Speech, UpstreamConfig,
};
use catamaran_testkit::{
    DnsAnswer, DnsRecord, DnsServer, HttpClient, KubernetesApi, Peer, PodEndpoint, Response,
    address, dns,
};
use http::StatusCode;

use crate::handover::succeed;
use crate::health::until;
use crate::operate::{read, scrape, site, write};
use crate::sticky::{ask, named};
use crate::{Front, backend, patient, start, to};

/// Each line is a name, an address, and `drain` if it drains.
fn lines(path: &Path) -> Result<Vec<FoundMember>, String> {
    let text = fs::read_to_string(path).map_err(|error| error.to_string())?;
    let member = |line: &str| {
        let mut words = line.split(' ');
        let (name, address) = (words.next()?, words.next()?);
        let (host, port) = address.rsplit_once(':')?;
        let place = MemberPlace::Tcp {
            host: host.to_owned(),
            port: port.parse().ok()?,
        };
        let mut found = FoundMember::new(name, place, Speech::Http);
        if words.next() == Some("drain") {
            found.state = FoundState::Drain;
        }
        Some(found)
    };
    let all = text
        .lines()
        .map(|line| member(line).ok_or_else(|| format!("no member: {line}")));
    all.collect()
}

/// A directory with a file of members, and a front that keeps sessions and finds them there.
struct Fleet {
    directory: tempfile::TempDir,
    running: Front,
}

impl Fleet {
    fn start(list: &str, leave: Duration) -> Self {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("members"), list).unwrap();
        let running = start(config(directory.path(), leave)).unwrap();
        Self { directory, running }
    }

    /// Replaces the file, as a program should.
    fn write(&self, list: &str) {
        let at = |name: &str| self.directory.path().join(name);
        fs::write(at("members.new"), list).unwrap();
        fs::rename(at("members.new"), at("members")).unwrap();
    }

    fn names(&self) -> Vec<String> {
        let backends = self.running.backends().into_iter();
        backends.map(|it| it.backend).collect()
    }

    fn wait_for(&self, names: &[&str]) {
        until("members", || (self.names() == names).then_some(()));
    }

    /// Who serves a request of this session; an empty one is new.
    fn served_by(&self, session: &str) -> String {
        let cookie = match session {
            "" => String::new(),
            id => format!("Cookie: JSESSIONID={id}\r\n"),
        };
        ask(&self.running, "/", &cookie).text()
    }

    /// How a member stands.
    fn standing(&self, name: &str) -> String {
        let path = format!("/api/v1/upstreams/app/backends/{name}");
        let (value, _) = read(&self.running, &path);
        let state = value["found"]["state"].as_str().unwrap_or("none");
        let in_force = match state {
            "leaving" | "drain" => "drain",
            _ => "active",
        };
        if value["file"]["activation"] == in_force {
            state.to_owned()
        } else {
            format!("{state} soon")
        }
    }

    fn wait_for_standing(&self, name: &str, standing: &str) {
        until(standing, || (self.standing(name) == standing).then_some(()));
    }
}

fn config(directory: &Path, leave: Duration) -> Config {
    config_of(directory, "members", Vec::new(), leave)
}

pub(crate) fn config_of(
    directory: &Path,
    file: &str,
    own: Vec<BackendConfig>,
    leave: Duration,
) -> Config {
    let mut config = site(directory, own);
    let source = MemberSource::File(FileSource {
        path: directory.join(file),
        read: lines,
    });
    let shared = BackendConfig::new(Protocol::Http, Address::Unix(PathBuf::new()));
    let mut members = MembersConfig::new(source, MemberTemplate::new(patient(shared), None));
    members.leave = leave;
    config.upstreams[0].members = Some(Arc::new(members));
    config
}

pub(crate) fn line(name: &str, peer: &Peer) -> String {
    format!("{name} {}\n", peer.tcp_address())
}

#[test]
fn members_serve_from_the_start_drain_when_they_are_missing_and_return() {
    let (a, b) = (backend("a"), backend("b"));
    let both = line("a", &a) + &line("b", &b);
    let fleet = Fleet::start(&both, HOUR);
    assert_eq!(fleet.names(), ["a", "b"], "the first answer was awaited");
    let mut served: Vec<String> = (0..4).map(|_| fleet.served_by("")).collect();
    served.sort();
    served.dedup();
    assert_eq!(served, ["a", "b"]);

    fleet.write(&line("a", &a));
    fleet.wait_for_standing("b", "leaving");
    for _ in 0..4 {
        assert_eq!(fleet.served_by(""), "a", "no new session");
        assert_eq!(fleet.served_by("1.b"), "b", "its own stay");
    }
    let requests = || {
        let (value, _) = read(&fleet.running, "/api/v1/upstreams/app/backends/b");
        value["requests"].as_u64().unwrap()
    };
    let before = requests();
    fleet.write(&both);
    fleet.wait_for_standing("b", "active");
    until("new sessions", || {
        (fleet.served_by("") == "b").then_some(())
    });
    // Whose connections may have been unused for too long.
    assert!(requests() > before, "it is the backend that it was");
}

#[test]
fn one_that_is_missing_for_long_is_gone_and_its_exchanges_end() {
    let (a, b) = (backend("a"), backend("b"));
    let fleet = Fleet::start(&(line("a", &a) + &line("b", &b)), Duration::ZERO);
    assert_eq!(fleet.served_by("1.b"), "b");
    fleet.write(&line("a", &a));
    fleet.wait_for(&["a"]);
    assert_eq!(fleet.served_by("1.b"), "a");
    // What was pooled is closed.
    let _ = b.wait_outcome(0);
    let (events, _) = read(&fleet.running, "/api/v1/events");
    let events = events["events"].as_array().unwrap();
    let texts: Vec<&str> = events.iter().filter_map(|it| it["text"].as_str()).collect();
    assert!(texts.contains(&"it is gone, by file"), "{texts:?}");
}

#[test]
fn a_failure_keeps_the_members_and_is_told() {
    let (a, b) = (backend("a"), backend("b"));
    let both = line("a", &a) + &line("b", &b);
    let fleet = Fleet::start(&both, HOUR);
    let failed = || {
        let (status, _) = read(&fleet.running, "/api/v1/upstreams/app");
        status["members"]["failed"].as_str().map(str::to_owned)
    };
    assert_eq!(failed(), None);
    fleet.write("nonsense\n");
    let said = until("a failure", &failed);
    assert_eq!(said, "no member: nonsense");
    fleet.write("");
    until("an empty answer", || {
        (failed()? == "the answer has no members").then_some(())
    });
    fs::remove_file(fleet.directory.path().join("members")).unwrap();
    until("no file", || {
        failed()?.contains("No such file").then_some(())
    });
    assert_eq!(fleet.names(), ["a", "b"]);
    let page = scrape(&fleet.running);
    for sample in [
        "catamaran_members{upstream=\"app\",from=\"file\",state=\"active\"} 2\n",
        "catamaran_members_answers_total{upstream=\"app\",from=\"file\",result=\"good\"} 1\n",
        "catamaran_members_answers_total{upstream=\"app\",from=\"file\",result=\"failed\"} 3\n",
    ] {
        assert!(page.contains(sample), "{sample}{page}");
    }
    fleet.write(&both);
    until("a good answer", || failed().is_none().then_some(()));
}

#[test]
fn a_front_without_a_first_answer_is_not_ready() {
    let a = backend("a");
    let directory = tempfile::tempdir().unwrap();
    let running = start(config(directory.path(), HOUR)).unwrap();
    let fleet = Fleet { directory, running };
    let page = scrape(&fleet.running);
    assert!(page.contains("catamaran_ready 0\n"), "{page}");
    assert_eq!(ask(&fleet.running, "/", "").status, 503);
    fleet.write(&line("a", &a));
    until("readiness", || {
        scrape(&fleet.running)
            .contains("catamaran_ready 1\n")
            .then_some(())
    });
    assert_eq!(fleet.served_by(""), "a");
}

#[test]
fn what_an_operator_said_outlives_a_member_that_leaves_and_returns() {
    let (a, b) = (backend("a"), backend("b"));
    let both = line("a", &a) + &line("b", &b);
    let fleet = Fleet::start(&both, Duration::ZERO);
    let path = "/api/v1/upstreams/app/backends/b";
    let body = r#"{"activation":"drain","weight":7}"#;
    assert_eq!(write(&fleet.running, "PATCH", path, "*", body).status, 200);
    let held = || {
        let (value, _) = read(&fleet.running, path);
        (
            value["settings"]["activation"].clone(),
            value["settings"]["weight"].clone(),
        )
    };
    assert_eq!(held(), ("drain".into(), 7.into()));
    fleet.write(&line("a", &a));
    fleet.wait_for(&["a"]);
    // A reload looks which of them still hold.
    let directory = fleet.directory.path();
    fleet
        .running
        .reload(config(directory, Duration::ZERO))
        .unwrap();
    fleet.write(&both);
    fleet.wait_for(&["a", "b"]);
    assert_eq!(held(), ("drain".into(), 7.into()));
    assert_eq!(fleet.served_by(""), "a");
}

#[test]
fn if_nobody_is_active_those_that_drain_serve_new_sessions() {
    let (a, b) = (backend("a"), backend("b"));
    let (line_a, line_b) = (line("a", &a), line("b", &b));
    let drains = |line: &str| line.replace('\n', " drain\n");
    let fleet = Fleet::start(&(line_a.clone() + &drains(&line_b)), HOUR);
    assert_eq!(fleet.served_by(""), "a");
    assert_eq!(fleet.served_by(""), "a");
    fleet.write(&(drains(&line_a) + &drains(&line_b)));
    fleet.wait_for_standing("a", "drain");
    until("new sessions", || {
        (fleet.served_by("") == "b").then_some(())
    });
    // An operator's word is another matter.
    let path = "/api/v1/upstreams/app/backends/b";
    let body = r#"{"activation":"drain"}"#;
    assert_eq!(write(&fleet.running, "PATCH", path, "*", body).status, 200);
    for _ in 0..4 {
        assert_eq!(fleet.served_by(""), "a");
    }
}

#[test]
fn a_reload_keeps_members_and_another_source_replaces_them() {
    let (a, b, own) = (backend("a"), backend("b"), backend("own"));
    let fleet = Fleet::start(&line("a", &a), Duration::ZERO);
    assert_eq!(fleet.served_by(""), "a");
    let directory = fleet.directory.path();
    let of_file = || vec![named("own", to(&own))];
    let report = fleet
        .running
        .reload(config_of(directory, "members", of_file(), Duration::ZERO));
    let report = report.unwrap();
    assert_eq!(
        (report.backends_kept, report.backends_added),
        (1, vec!["own".to_owned()])
    );
    assert_eq!(fleet.names(), ["own", "a"]);
    assert_eq!(a.connections(), 1, "it kept its connection");
    // Those of the other source stay until the first answer.
    fs::write(directory.join("others"), line("b", &b) + &line("own", &b)).unwrap();
    fleet
        .running
        .reload(config_of(directory, "others", of_file(), Duration::ZERO))
        .unwrap();
    fleet.wait_for(&["own", "b"]);
    let (status, _) = read(&fleet.running, "/api/v1/upstreams/app");
    let refused = &status["members"]["refused"][0];
    assert_eq!(
        (&refused["name"], &refused["reason"]),
        (&"own".into(), &"name-taken".into())
    );
    // Without a source the members are gone.
    fleet.running.reload(site(directory, of_file())).unwrap();
    assert_eq!(fleet.names(), ["own"]);
}

#[test]
fn the_next_process_goes_on_with_members_whose_source_is_gone() {
    let (a, b) = (backend("a"), backend("b"));
    let fleet = Fleet::start(&(line("a", &a) + &line("b", &b)), HOUR);
    fleet.write(&line("a", &a));
    fleet.wait_for_standing("b", "leaving");
    fs::remove_file(fleet.directory.path().join("members")).unwrap();
    until("no file", || {
        failed(&fleet.running)?
            .contains("No such file")
            .then_some(())
    });
    let Fleet { directory, running } = fleet;
    let running = succeed(running, config(directory.path(), HOUR));
    let fleet = Fleet { directory, running };
    assert_eq!(fleet.names(), ["a", "b"]);
    assert!(scrape(&fleet.running).contains("catamaran_ready 1\n"));
    for _ in 0..4 {
        assert_eq!(fleet.served_by(""), "a");
        assert_eq!(fleet.served_by("1.b"), "b", "it has the rest of its time");
    }
    // In another configuration they stay until the first answer.
    let Fleet { directory, running } = fleet;
    let others = config_of(directory.path(), "others", Vec::new(), Duration::ZERO);
    fs::write(directory.path().join("others"), line("c", &b)).unwrap();
    let fleet = Fleet {
        running: succeed(running, others),
        directory,
    };
    fleet.wait_for(&["b", "c"]);
}

#[test]
fn the_next_process_knows_the_nodes_that_announced_themselves() {
    let listen = address::refusing().unwrap();
    let (_directory, config) = for_nodes(listen);
    let running = start(config.clone()).unwrap();
    says(
        listen,
        "CONFIG",
        "JVMRoute=node1&Host=192.0.2.1&Port=8009&Type=ajp",
    );
    says(
        listen,
        "ENABLE-APP",
        "JVMRoute=node1&Alias=a&Context=%2Fdemo",
    );
    let stands = |running: &Front| {
        let names = running.backends();
        let names: Vec<String> = names.into_iter().map(|it| it.backend).collect();
        if names != ["node1"] {
            return None;
        }
        let (value, _) = read(running, "/api/v1/upstreams/app/backends/node1");
        value["found"]["state"].as_str().map(str::to_owned)
    };
    until("the node", || (stands(&running)? == "active").then_some(()));
    let running = succeed(running, config);
    assert_eq!(
        stands(&running).as_deref(),
        Some("active"),
        "it is known at once"
    );
    assert!(scrape(&running).contains("catamaran_ready 1\n"));
    // The node goes on where it was: it is not told to announce itself anew.
    let told = says(listen, "STATUS", "JVMRoute=node1&Load=1");
    assert_eq!(
        told.text(),
        "Type=STATUS-RSP&JVMRoute=node1&State=OK&id=1",
        "{}",
        told.status
    );
}

#[test]
fn a_context_below_a_route_of_the_file_keeps_what_that_asks_for() {
    let other = backend("other");
    let listen = address::refusing().unwrap();
    let (_directory, mut config) = for_nodes(listen);
    let guarded = |path: &str, upstream: &str, rules: RouteRules| {
        let mut route = RouteConfig::new(path, RouteTarget::Upstream(upstream.to_owned()));
        route.rules = Some(Arc::new(rules));
        route
    };
    let elsewhere = RouteRules {
        allow: vec!["10.0.0.0/8".parse().unwrap()],
        ..RouteRules::default()
    };
    let certified = RouteRules {
        client_certificate: true,
        ..RouteRules::default()
    };
    config
        .upstreams
        .push(UpstreamConfig::new("other", vec![to(&other)]));
    config.routes = vec![
        guarded("/guarded", "app", elsewhere),
        guarded("/certified", "app", certified),
        RouteConfig::new("/gone", RouteTarget::Status(StatusCode::GONE)),
        RouteConfig::new("/other", RouteTarget::Upstream("other".to_owned())),
    ];
    let running = start(config).unwrap();
    says(
        listen,
        "CONFIG",
        "JVMRoute=node1&Host=192.0.2.1&Port=8009&Type=ajp",
    );
    let paths = ["guarded", "certified", "gone", "other"];
    for path in paths {
        let app = format!("JVMRoute=node1&Alias=a&Context=%2F{path}%2Fsub");
        says(listen, "ENABLE-APP", &app);
    }
    until("the contexts", || {
        let (value, _) = read(&running, "/api/v1/routes");
        (value["routes"].as_array()?.len() == 8).then_some(())
    });
    let statuses = paths.map(|path| ask(&running, &format!("/{path}/sub/x"), "").status);
    assert_eq!(statuses, [403, 403, 410, 200]);
}

/// A front of which nodes are members, besides the directory of its sockets.
fn for_nodes(listen: SocketAddr) -> (tempfile::TempDir, Config) {
    let network = "127.0.0.0/8".parse().unwrap();
    let source = MemberSource::Mcmp(McmpSource {
        listen,
        peers: vec![network],
        members: vec!["192.0.2.0/24".parse().unwrap()],
        paths: vec!["/".to_owned()],
        nodes_max: 10,
        advertise: None,
    });
    let directory = tempfile::tempdir().unwrap();
    let shared = BackendConfig::new(Protocol::Http, Address::Unix(PathBuf::new()));
    let members = MembersConfig::new(source, MemberTemplate::new(shared, None));
    let mut config = site(directory.path(), Vec::new());
    config.upstreams[0].members = Some(Arc::new(members));
    (directory, config)
}

/// What a node is told, by whoever listens.
fn says(listen: SocketAddr, command: &str, form: &str) -> Response {
    let length = form.len();
    let request =
        format!("{command} / HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n{form}");
    until("an answer", || {
        let mut client = HttpClient::connect(listen).ok()?;
        client.send(request.as_bytes()).ok()?;
        client.receive().ok()
    })
}

#[test]
fn connections_of_members_are_not_for_clients() {
    let backends = ["a", "b", "c", "d", "e"].map(|name| (name, backend(name)));
    let list = |count: usize| -> String {
        let some = backends[..count].iter();
        some.map(|(name, peer)| line(name, peer)).collect()
    };
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("members"), list(1)).unwrap();
    let mut config = config(directory.path(), Duration::ZERO);
    // 64 of them are for other things, and each member may have 200 connections.
    config.server.files_max = Some(1064);
    let fleet = Fleet {
        running: start(config).unwrap(),
        directory,
    };
    let max = |expected: usize| {
        let sample = format!("catamaran_connections_max {expected}\n");
        until(&sample, || {
            scrape(&fleet.running).contains(&sample).then_some(())
        });
    };
    max(800);
    fleet.write(&list(2));
    max(600);
    // At least half of them are the clients'.
    fleet.write(&list(5));
    max(500);
    // Two of five leave.
    fleet.write(&list(3));
    max(500);
    fleet.write(&list(2));
    max(600);
}

/// Waits until the source has answered so, and gives the names of the members.
fn named_by(running: &Front, count: usize) -> Vec<String> {
    until("members", || {
        let backends = running.backends();
        (backends.len() == count).then(|| backends.into_iter().map(|it| it.backend).collect())
    })
}

fn in_dns(server: &DnsServer, kind: DnsKind, name: &str) -> MembersConfig {
    let source = MemberSource::Dns(DnsSource {
        name: name.to_owned(),
        kind,
        speech: Speech::Http,
        resolvers: vec![server.address()],
    });
    let shared = BackendConfig::new(Protocol::Http, Address::Unix(PathBuf::new()));
    MembersConfig::new(source, MemberTemplate::new(shared, None))
}

fn finding(directory: &Path, members: MembersConfig) -> Front {
    let mut config = site(directory, Vec::new());
    config.upstreams[0].members = Some(Arc::new(members));
    start(config).unwrap()
}

fn addresses(ttl: u32, hosts: std::ops::Range<u8>) -> DnsAnswer {
    let record = |host| DnsRecord::A([192, 0, 2, host].into());
    DnsAnswer::Records(ttl, hosts.map(record).collect())
}

fn failed(running: &Front) -> Option<String> {
    let (status, _) = read(running, "/api/v1/upstreams/app");
    status["members"]["failed"].as_str().map(str::to_owned)
}

#[test]
fn addresses_of_a_name_are_asked_for_when_their_time_is_over() {
    let server = DnsServer::start();
    server.set("app.test", dns::A, addresses(1, 1..4));
    let six = "2001:db8::7".parse().unwrap();
    server.set(
        "app.test",
        dns::AAAA,
        DnsAnswer::Records(1, vec![DnsRecord::Aaaa(six)]),
    );
    let directory = tempfile::tempdir().unwrap();
    let running = finding(
        directory.path(),
        in_dns(&server, DnsKind::Addresses { port: 8080 }, "app.test"),
    );
    let expected = [
        "192.0.2.1:8080",
        "192.0.2.2:8080",
        "192.0.2.3:8080",
        "[2001:db8::7]:8080",
    ];
    assert_eq!(named_by(&running, 4), expected);
    // One of four leaves, and is gone at once: nobody said how long it should drain.
    server.set("app.test", dns::A, addresses(1, 1..3));
    assert_eq!(
        named_by(&running, 3),
        ["192.0.2.1:8080", "192.0.2.2:8080", "[2001:db8::7]:8080"]
    );
    // More than half of them: they stay until further answers say so, too.
    server.set("app.test", dns::A, DnsAnswer::Records(1, Vec::new()));
    let doubted = || {
        let (value, _) = read(&running, "/api/v1/upstreams/app/backends/192.0.2.1%3A8080");
        (value["found"]["state"] == "doubted").then_some(())
    };
    until("doubts", doubted);
    assert_eq!(running.backends().len(), 3);
    server.set("app.test", dns::A, addresses(1, 1..3));
    until("no doubts", || doubted().is_none().then_some(()));
    // Whatever fails, the last list stays.
    for (answer, said) in [
        (DnsAnswer::NxDomain, "has no addresses"),
        (DnsAnswer::Failure, "A of app.test:"),
    ] {
        server.set("app.test", dns::A, answer.clone());
        server.set("app.test", dns::AAAA, answer);
        until(said, || failed(&running)?.contains(said).then_some(()));
        assert_eq!(running.backends().len(), 3);
    }
    server.set("app.test", dns::A, addresses(1, 1..3));
    server.set(
        "app.test",
        dns::AAAA,
        DnsAnswer::Records(1, vec![DnsRecord::Aaaa(six)]),
    );
    until("an answer", || failed(&running).is_none().then_some(()));
}

#[test]
fn services_have_names_weights_and_distances() {
    let server = DnsServer::start();
    let service =
        |priority, weight, target: &str| DnsRecord::Srv(priority, weight, 8009, target.to_owned());
    let services = vec![
        service(10, 3, "app-0.app.test"),
        service(20, 1, "app-1.app.test"),
    ];
    server.set(
        "_ajp._tcp.app.test",
        dns::SRV,
        DnsAnswer::Records(60, services),
    );
    for host in [0, 1] {
        server.set(
            &format!("app-{host}.app.test"),
            dns::A,
            addresses(60, host + 1..host + 2),
        );
    }
    let directory = tempfile::tempdir().unwrap();
    let running = finding(
        directory.path(),
        in_dns(&server, DnsKind::Services, "_ajp._tcp.app.test"),
    );
    assert_eq!(named_by(&running, 2), ["app-0", "app-1"]);
    let settings = |name: &str| {
        let (value, _) = read(&running, &format!("/api/v1/upstreams/app/backends/{name}"));
        let file = &value["file"];
        (
            value["address"].as_str().unwrap().to_owned(),
            value["jvm_route"].as_str().unwrap().to_owned(),
            file["weight"].as_u64().unwrap(),
            file["distance"].as_u64().unwrap(),
        )
    };
    assert_eq!(
        settings("app-0"),
        ("192.0.2.1:8009".to_owned(), "app-0".to_owned(), 3, 0)
    );
    assert_eq!(
        settings("app-1"),
        ("192.0.2.2:8009".to_owned(), "app-1".to_owned(), 1, 1)
    );
}

/// As an agent of Consul answers: a node has one name, and a service with an address of its own has digits for one.
#[test]
fn services_of_consul_are_named_by_their_nodes() {
    let server = DnsServer::start();
    let service = |port, target: &str| DnsRecord::Srv(1, 1, port, target.to_owned());
    let services = vec![
        service(8009, "web-1.node.dc1.consul"),
        service(8010, "web-1.node.dc1.consul"),
        service(8009, "c0000207.addr.dc1.consul"),
    ];
    let name = "app.service.consul";
    server.set(name, dns::SRV, DnsAnswer::Records(1, services));
    for (target, host) in [("web-1.node", 1), ("c0000207.addr", 7)] {
        let target = format!("{target}.dc1.consul");
        server.set(&target, dns::A, addresses(1, host..host + 1));
    }
    let directory = tempfile::tempdir().unwrap();
    let running = finding(directory.path(), in_dns(&server, DnsKind::Services, name));
    assert_eq!(named_by(&running, 2), ["c0000207", "web-1"]);
    let (value, _) = read(&running, "/api/v1/upstreams/app/backends/web-1");
    assert_eq!(
        (&value["address"], &value["jvm_route"]),
        (&"192.0.2.1:8009".into(), &"web-1".into())
    );
    let (status, _) = read(&running, "/api/v1/upstreams/app");
    let refused = &status["members"]["refused"][0];
    assert_eq!(
        (&refused["name"], &refused["reason"]),
        (&"web-1".into(), &"name-twice".into())
    );
}

#[test]
fn an_answer_that_does_not_fit_comes_over_tcp() {
    let server = DnsServer::start();
    server.set("app.test", dns::A, addresses(60, 1..201));
    server.set("app.test", dns::AAAA, DnsAnswer::Records(60, Vec::new()));
    server.truncate(true);
    let directory = tempfile::tempdir().unwrap();
    let running = finding(
        directory.path(),
        in_dns(&server, DnsKind::Addresses { port: 8080 }, "app.test"),
    );
    assert_eq!(named_by(&running, 200).len(), 200);
    assert!(
        server
            .asked()
            .iter()
            .any(|(_, kind, over_tcp)| *kind == dns::A && *over_tcp)
    );
}

/// Reloads with sources that `named` makes, first with the same name: until the other one is asked for, `asked` is the
/// same.
fn a_reload_asks_only_for_another(
    named: &dyn Fn(&str) -> MembersConfig,
    asked: &dyn Fn(&str) -> usize,
    first_questions: usize,
) {
    let directory = tempfile::tempdir().unwrap();
    let config = |name| {
        let mut config = site(directory.path(), Vec::new());
        config.upstreams[0].members = Some(Arc::new(named(name)));
        config
    };
    let running = start(config("app")).unwrap();
    assert_eq!(named_by(&running, 1).len(), 1);
    until("the first questions", || {
        (asked("app") >= first_questions).then_some(())
    });
    let before = asked("app");
    for _ in 0..3 {
        running.reload(config("app")).unwrap();
    }
    running.reload(config("other")).unwrap();
    until("another question", || (asked("other") > 0).then_some(()));
    assert_eq!(asked("app"), before);
}

#[test]
fn a_reload_asks_no_source_that_stays() {
    let server = DnsServer::start();
    for name in ["app.test", "other.test"] {
        server.set(name, dns::A, addresses(300, 1..2));
        server.set(name, dns::AAAA, DnsAnswer::Records(300, Vec::new()));
    }
    let port = DnsKind::Addresses { port: 8080 };
    a_reload_asks_only_for_another(
        &|name| in_dns(&server, port, &format!("{name}.test")),
        &|name| {
            let name = format!("{name}.test");
            let asked = server.asked();
            let questions = asked
                .iter()
                .filter(|(it, ..)| it.trim_end_matches('.') == name);
            questions.count()
        },
        2,
    );
    let api = KubernetesApi::start();
    api.set(
        "app-x",
        8009,
        "ajp",
        &[PodEndpoint::ready("a", [10, 0, 0, 1].into())],
    );
    let in_kubernetes = |name: &str| {
        let source = MemberSource::Kubernetes(KubernetesSource {
            api: ApiConfig {
                server: Some(ApiUrl::parse(&format!("http://{}", api.address())).unwrap()),
                token_file: PathBuf::new(),
                ca_file: PathBuf::new(),
            },
            namespace: "shop".to_owned(),
            service: name.to_owned(),
            port: None,
            speech: None,
        });
        let shared = BackendConfig::new(Protocol::Ajp, Address::Unix(PathBuf::new()));
        MembersConfig::new(source, MemberTemplate::new(shared, None))
    };
    a_reload_asks_only_for_another(
        &in_kubernetes,
        &|name| {
            let selector = format!("service-name%3D{name}");
            let asked = api.asked();
            asked.iter().filter(|it| it.contains(&selector)).count()
        },
        2,
    );
}

#[test]
fn this_machine_is_no_member_by_dns() {
    let server = DnsServer::start();
    let records =
        [[127, 0, 0, 1], [169, 254, 1, 1], [192, 0, 2, 1]].map(|it| DnsRecord::A(it.into()));
    server.set("app.test", dns::A, DnsAnswer::Records(60, records.into()));
    server.set("app.test", dns::AAAA, DnsAnswer::Records(60, Vec::new()));
    let directory = tempfile::tempdir().unwrap();
    let running = finding(
        directory.path(),
        in_dns(&server, DnsKind::Addresses { port: 80 }, "app.test"),
    );
    assert_eq!(named_by(&running, 1), ["192.0.2.1:80"]);
    let page = scrape(&running);
    for reason in ["loopback", "link-local"] {
        let sample = format!(
            "catamaran_members_refused_total{{upstream=\"app\",from=\"dns\",reason=\"{reason}\"}} 1\n"
        );
        assert!(page.contains(&sample), "{sample}");
    }
}

const HOUR: Duration = Duration::from_secs(3600);

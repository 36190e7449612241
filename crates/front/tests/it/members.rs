//! Members that a file lists, which come and go while the front serves.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use catamaran_front::config::{
    Address, BackendConfig, Config, FileSource, Found, FoundState, MemberPlace, MemberTemplate,
    MembersConfig, Protocol, Source, Speech,
};
use catamaran_front::{Running, start};
use catamaran_testkit::Peer;

use crate::health::until;
use crate::operate::{read, scrape, site, write};
use crate::sticky::{ask, named};
use crate::{backend, stop, to};

/// Each line is a name, an address, and `drain` if it drains.
fn lines(path: &Path) -> Result<Vec<Found>, String> {
    let text = fs::read_to_string(path).map_err(|error| error.to_string())?;
    let member = |line: &str| {
        let mut words = line.split(' ');
        let (name, address) = (words.next()?, words.next()?);
        let (host, port) = address.rsplit_once(':')?;
        let place = MemberPlace::Tcp {
            host: host.to_owned(),
            port: port.parse().ok()?,
        };
        let mut found = Found::new(name, place, Speech::Http);
        if words.next() == Some("drain") {
            found.state = FoundState::Drain;
        }
        Some(found)
    };
    let all = text
        .lines()
        .map(|line| member(line).ok_or(format!("no member: {line}")));
    all.collect()
}

/// A directory with a file of members, and a front that keeps sessions and finds them there.
struct Fleet {
    directory: tempfile::TempDir,
    running: Running,
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
        match value["file"]["activation"] == in_force {
            true => state.to_owned(),
            false => format!("{state} soon"),
        }
    }

    fn wait_for_standing(&self, name: &str, standing: &str) {
        until(standing, || (self.standing(name) == standing).then_some(()));
    }
}

fn config(directory: &Path, leave: Duration) -> Config {
    config_of(directory, "members", Vec::new(), leave)
}

fn config_of(directory: &Path, file: &str, own: Vec<BackendConfig>, leave: Duration) -> Config {
    let mut config = site(directory, own);
    let source = Source::File(FileSource {
        path: directory.join(file),
        read: lines,
    });
    let shared = BackendConfig::new(Protocol::Http, Address::Unix(PathBuf::new()));
    let mut members = MembersConfig::new(source, MemberTemplate::new(shared, None));
    members.leave = leave;
    config.upstreams[0].members = Some(Arc::new(members));
    config
}

fn line(name: &str, peer: &Peer) -> String {
    format!("{name} {}\n", peer.tcp_address())
}

const HOUR: Duration = Duration::from_secs(3600);

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
    let connections = b.connections();
    fleet.write(&both);
    fleet.wait_for_standing("b", "active");
    until("new sessions", || {
        (fleet.served_by("") == "b").then_some(())
    });
    assert_eq!(b.connections(), connections, "it kept its connection");
    stop(fleet.running);
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
    stop(fleet.running);
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
    stop(fleet.running);
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
    stop(fleet.running);
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
    stop(fleet.running);
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
    stop(fleet.running);
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
    stop(fleet.running);
}

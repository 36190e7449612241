//! Members that are pods of Kubernetes, before a stand-in for the API server and real applications.
//!
//! Pods have addresses of their own, which loopback addresses cannot stand for: the front refuses those. So each of
//! these tests runs itself again in a network namespace that has some.

use std::fs;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use catamaran_e2e::{Front, catamaran};
use catamaran_testkit::tls::Authority;
use catamaran_testkit::{Deadline, KubernetesApi, PodEndpoint, Process, Response};

use crate::namespace::has_namespaces;

/// Whether this process has addresses for pods. If not, it has run the test with this name in a process that has.
fn has_pods(test: &str) -> bool {
    let script = "ip link set lo up; for ip in $0; do ip address add $ip/32 dev lo; done; \
                  exec \"$@\"";
    let path = format!("kubernetes::{test}");
    has_namespaces(&["--net"], script, POD_ADDRESSES.join(" "), &path)
}

/// A pod: an application at an address of its own, which says its name in each response.
struct Pod {
    name: &'static str,
    ip: IpAddr,
    _process: Process,
}

impl Pod {
    fn start(name: &'static str, address: usize) -> Self {
        let ip = POD_ADDRESSES[address];
        let directory = tempfile::tempdir().unwrap();
        let fields = directory.path().join("fields");
        fs::write(&fields, format!("X-Pod: {name}\n")).unwrap();
        let ajp = format!("{ip}:{PORT}");
        let fields = fields.to_str().unwrap();
        let process = catamaran(&[
            "app",
            "--ajp",
            &ajp,
            "--secret",
            SECRET,
            "--response-fields",
            fields,
        ])
        .unwrap();
        process
            .wait_for_line("an address", |line| {
                line.contains("listening on").then_some(())
            })
            .unwrap();
        Self {
            name,
            ip: ip.parse().unwrap(),
            _process: process,
        }
    }

    fn ready(&self) -> PodEndpoint {
        PodEndpoint::ready(self.name, self.ip)
    }
}

/// A stand-in for the API server, and the files by which it and the front know each other.
struct Cluster {
    api: KubernetesApi,
    files: tempfile::TempDir,
}

impl Cluster {
    fn start() -> Self {
        let authority = Authority::new("cluster").unwrap();
        let files = tempfile::tempdir().unwrap();
        fs::write(files.path().join("ca.crt"), authority.pem()).unwrap();
        let cluster = Self {
            api: KubernetesApi::start_tls(&authority),
            files,
        };
        cluster.rotate("one");
        cluster
    }

    /// Replaces the token.
    fn rotate(&self, token: &str) {
        let at = |name: &str| self.files.path().join(name);
        fs::write(at("next"), token).unwrap();
        fs::rename(at("next"), at("token")).unwrap();
        self.api.require_token(token);
    }

    fn set(&self, pods: &[PodEndpoint]) {
        self.api.set("app-x", PORT, "ajp", pods);
    }

    fn config(&self, more: &str) -> String {
        let (address, files) = (self.api.address(), self.files.path().display());
        format!(
            "[[listen]]\naddress = \"127.0.0.1:0\"\n[[route]]\nupstream = \"app\"\n\
             [upstream.app]\nsecret = \"{SECRET}\"\n{more}\n[upstream.app.sticky]\n\
             [upstream.app.members]\nfrom = \"kubernetes\"\nservice = \"shop/app\"\n\
             [kubernetes]\nserver = \"https://{address}\"\ntoken_file = \"{files}/token\"\n\
             ca_file = \"{files}/ca.crt\"\n[admin]\naddress = \"127.0.0.1:0\"\n"
        )
    }
}

fn ask(front: &Front, session: &str) -> Response {
    let cookie = match session {
        "" => String::new(),
        id => format!("Cookie: JSESSIONID={id}\r\n"),
    };
    front.ask(front.head("GET", "/", &cookie)).unwrap()
}

/// The pod that serves a request of this session; an empty one is new.
fn served_by(front: &Front, session: &str) -> String {
    let response = ask(front, session);
    assert_eq!(response.status, 200, "{}", response.text());
    response.header("X-Pod").unwrap_or_default().to_owned()
}

/// Waits until requests are served by these members, each with the state that its source gives it.
fn wait_for(front: &Front, expected: &str) {
    let members = || {
        let page = front.ask_admin("/api/v1/upstreams/app").ok()?.text();
        let value: serde_json::Value = serde_json::from_str(&page).ok()?;
        let words = value["backends"].as_array()?.iter().map(|it| {
            let (name, state) = (it["name"].as_str(), it["file"]["activation"].as_str());
            format!("{} {}", name.unwrap_or("?"), state.unwrap_or("?"))
        });
        let words = words.collect::<Vec<_>>().join(", ");
        (words == expected).then_some(())
    };
    Deadline::default().poll(expected, members).unwrap();
}

/// Ends users, also if a test fails.
pub(crate) struct OnDrop<'a>(pub(crate) &'a AtomicBool);

impl Drop for OnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Does `work` while users with sessions of these pods, and without, ask again and again: no request may fail.
fn under_load(front: &Front, sessions: &[&str], work: impl FnOnce()) {
    let is_over = AtomicBool::new(false);
    let asked = AtomicUsize::new(0);
    let user = |session: &str| {
        while !is_over.load(Ordering::Relaxed) {
            served_by(front, session);
            asked.fetch_add(1, Ordering::Relaxed);
        }
    };
    std::thread::scope(|scope| {
        let users = sessions.iter().map(|&session| {
            let user = &user;
            scope.spawn(move || user(session))
        });
        let users: Vec<_> = users.collect();
        let end = OnDrop(&is_over);
        work();
        drop(end);
        for user in users {
            user.join().unwrap();
        }
    });
    assert!(asked.into_inner() > 0);
}

#[test]
fn a_rollout_fails_no_request_and_keeps_sessions_until_their_pod_ends() {
    if !has_pods("a_rollout_fails_no_request_and_keeps_sessions_until_their_pod_ends") {
        return;
    }
    let cluster = Cluster::start();
    let (a, b) = (Pod::start("a", 0), Pod::start("b", 1));
    let c = Pod::start("c", 2);
    cluster.set(&[a.ready(), b.ready()]);
    let front = Front::with_config(&cluster.config("")).unwrap();
    assert_eq!(front.ask_admin("/readyz").unwrap().text(), "ready\n");
    wait_for(&front, "a active, b active");
    assert_eq!(
        [served_by(&front, "1.a"), served_by(&front, "2.b")],
        ["a", "b"]
    );
    under_load(&front, &["", "1.a", "2.b"], || {
        cluster.set(&[a.ready(), b.ready(), c.ready()]);
        wait_for(&front, "a active, b active, c active");
        cluster.set(&[a.ready().terminating(), b.ready(), c.ready()]);
        wait_for(&front, "a drain, b active, c active");
        assert_eq!(served_by(&front, "1.a"), "a", "its session stays");
        let new: Vec<String> = (0..6).map(|_| served_by(&front, "")).collect();
        assert!(!new.contains(&"a".to_owned()), "no new session: {new:?}");
        // Before anything is ready, those that terminate serve new sessions, too.
        cluster.set(&[
            a.ready().terminating(),
            b.ready().terminating(),
            c.ready().unready(),
        ]);
        wait_for(&front, "a drain, b drain, c stopped");
        let new = served_by(&front, "");
        assert!(["a", "b"].contains(&&new[..]), "{new}");
        cluster.set(&[c.ready()]);
        wait_for(&front, "c active");
        assert_eq!(served_by(&front, "1.a"), "c");
    });
    front
        .wait_for_log("member: it drains, by kubernetes")
        .unwrap();
}

#[test]
fn nothing_that_becomes_of_the_api_server_fails_a_request() {
    if !has_pods("nothing_that_becomes_of_the_api_server_fails_a_request") {
        return;
    }
    let cluster = Cluster::start();
    let api = &cluster.api;
    let (a, b) = (Pod::start("a", 0), Pod::start("b", 1));
    cluster.set(&[a.ready()]);
    let front = Front::with_config(&cluster.config("")).unwrap();
    wait_for(&front, "a active");
    let see_changes = || {
        cluster.set(&[a.ready(), b.ready()]);
        wait_for(&front, "a active, b active");
        cluster.set(&[a.ready()]);
        wait_for(&front, "a active");
    };
    under_load(&front, &["", "1.a"], || {
        see_changes();
        cluster.rotate("two");
        api.end_watches();
        see_changes();
        api.send_raw(b"{\"type\":\"MODIFIED\",\"object\":{\"metadata\":{\"na");
        api.reset_watches();
        see_changes();
        api.bookmark();
        api.reset_watches();
        see_changes();
        api.compact();
        see_changes();
        api.set_away(true);
        front.wait_for_log("the last list stays").unwrap();
        api.set_away(false);
        front
            .wait_for_log("members from kubernetes: it answers again")
            .unwrap();
        see_changes();
        api.refuse(Some(403));
        api.reset_watches();
        let said = front.wait_for_log("(403)").unwrap();
        assert!(
            said.contains("resources: [\"endpointslices\"], verbs: [list, watch]"),
            "{said}"
        );
        api.refuse(None);
        see_changes();
    });
    let metric = |name: &str| front.metric(name).unwrap();
    assert_eq!(metric("catamaran_kubernetes_objects"), [1.0]);
    assert_eq!(metric("catamaran_kubernetes_watch_age_seconds").len(), 1);
    assert!(metric("catamaran_kubernetes_relists_total")[0] >= 2.0);
    assert!(
        metric("catamaran_kubernetes_errors_total")
            .iter()
            .sum::<f64>()
            >= 4.0
    );
}

#[test]
fn requests_wait_while_the_only_pod_is_replaced() {
    if !has_pods("requests_wait_while_the_only_pod_is_replaced") {
        return;
    }
    let cluster = Cluster::start();
    let (a, b) = (Pod::start("a", 0), Pod::start("b", 1));
    cluster.set(&[a.ready()]);
    let front = Front::with_config(&cluster.config("hold = \"60s\"")).unwrap();
    wait_for(&front, "a active");
    under_load(&front, &["", "1.a"], || {
        cluster.set(&[a.ready().terminating()]);
        wait_for(&front, "a drain");
        cluster.set(&[]);
        wait_for(&front, "");
        let held = || {
            let waiting = front.metric("catamaran_upstream_held_requests").ok()?;
            (waiting == [2.0]).then_some(())
        };
        Deadline::default()
            .poll("requests that wait", held)
            .unwrap();
        // Now it serves none any more.
        drop(a);
        cluster.set(&[b.ready().unready()]);
        wait_for(&front, "b stopped");
        cluster.set(&[b.ready()]);
        wait_for(&front, "b active");
        assert_eq!(served_by(&front, ""), "b");
    });
}

#[test]
fn a_front_serves_without_an_api_server_and_is_ready_with_the_first_list() {
    if !has_pods("a_front_serves_without_an_api_server_and_is_ready_with_the_first_list") {
        return;
    }
    let cluster = Cluster::start();
    let a = Pod::start("a", 0);
    cluster.set(&[a.ready()]);
    cluster.api.set_away(true);
    let front = Front::with_config(&cluster.config("")).unwrap();
    assert_eq!(ask(&front, "").status, 503);
    let ready = front.ask_admin("/readyz").unwrap();
    let text = ready.text();
    assert_eq!(ready.status, 503);
    assert!(
        text.contains("upstream app has no members from kubernetes yet"),
        "{text}"
    );
    cluster.api.set_away(false);
    wait_for(&front, "a active");
    assert_eq!(front.ask_admin("/readyz").unwrap().text(), "ready\n");
    assert_eq!(served_by(&front, ""), "a");
}

#[test]
fn check_and_explain_need_no_cluster() {
    let directory = tempfile::tempdir().unwrap();
    let path: PathBuf = directory.path().join("catamaran.toml");
    let config = "[[listen]]\naddress = \"127.0.0.1:0\"\n[[route]]\nupstream = \"app\"\n\
                  [upstream.app.members]\nfrom = \"kubernetes\"\nservice = \"shop/app\"\n\
                  protocol = \"http\"\n";
    fs::write(&path, config).unwrap();
    let run = |arguments: &[&str]| {
        let mut process = catamaran(arguments).unwrap();
        let status = process.wait(Deadline::default()).unwrap();
        (status.code(), process.stdout() + &process.stderr())
    };
    let path = path.to_str().unwrap();
    let (code, said) = run(&["check", path]);
    assert_eq!(code, Some(0), "{said}");
    assert!(
        said.contains("there is no API server to ask here: this is no pod"),
        "{said}"
    );
    let (_, said) = run(&["explain", "--config", path, "http://localhost/"]);
    assert!(said.contains("upstream app"), "{said}");
    let (_, said) = run(&["doctor", "--config", path]);
    assert!(
        said.contains("none known: there is no API server to ask"),
        "{said}"
    );
}

/// The addresses that pods may have.
const POD_ADDRESSES: [&str; 4] = ["198.18.0.1", "198.18.0.2", "198.18.0.3", "198.18.0.4"];

const PORT: u16 = 8009;

/// The secret of the pods' connectors, without which none listens at such an address.
const SECRET: &str = "secret of the pods";

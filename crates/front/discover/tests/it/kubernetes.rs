//! The source in Kubernetes before a stand-in for the API server.

use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use catamaran_discover::{
    Answer, ApiConfig, ApiUrl, FoundState, KubernetesSource, McmpHooks, MemberSource, WatchFacts,
};
use catamaran_testkit::tls::Authority;
use catamaran_testkit::{Deadline, KubernetesApi, PodEndpoint};
use tokio::sync::{Notify, mpsc, watch};

/// A source that follows a Service, and what it answered.
struct Following {
    answers: Arc<Mutex<Vec<Answer>>>,
    facts: Arc<WatchFacts>,
    ask_again: Arc<Notify>,
    end: Arc<Notify>,
    thread: Option<JoinHandle<()>>,
}

fn source(api: ApiConfig) -> MemberSource {
    MemberSource::Kubernetes(KubernetesSource {
        api,
        namespace: "shop".to_owned(),
        service: "app".to_owned(),
        port: None,
        speech: None,
    })
}

fn in_clear_text(api: &KubernetesApi) -> ApiConfig {
    ApiConfig {
        server: Some(ApiUrl::parse(&format!("http://{}", api.address())).unwrap()),
        token_file: PathBuf::new(),
        ca_file: PathBuf::new(),
    }
}

impl Following {
    fn start(api: ApiConfig) -> Self {
        let source = source(api);
        let answers = Arc::new(Mutex::new(Vec::new()));
        let facts = Arc::new(WatchFacts::default());
        let (ask_again, end) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let said = Arc::clone(&answers);
        let (facts_of_source, asks, ends) =
            (Arc::clone(&facts), Arc::clone(&ask_again), Arc::clone(&end));
        let thread = thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread();
            let runtime = { runtime }.enable_all().build().unwrap();
            runtime.block_on(async move {
                let (send, mut received) = mpsc::channel(1);
                let (_in_force, in_force) = watch::channel(0);
                let hooks = McmpHooks {
                    in_flight: Box::new(|_| 0),
                    count: Box::new(|_| ()),
                    nodes: Arc::default(),
                    in_force,
                };
                let running = source.run(send, asks, Arc::new(hooks), facts_of_source);
                let keep = async {
                    while let Some(answer) = received.recv().await {
                        said.lock().unwrap().push(answer);
                    }
                };
                tokio::select! {
                    () = running => {}
                    () = keep => {}
                    () = ends.notified() => {}
                }
            });
        });
        Self {
            answers,
            facts,
            ask_again,
            end,
            thread: Some(thread),
        }
    }

    /// The last answer in words: the members with their states, or the failure.
    fn last(&self) -> String {
        let answers = self.answers.lock().unwrap();
        match answers.last() {
            None => "nothing".to_owned(),
            Some(Answer::Failed(reason)) => reason.clone(),
            Some(Answer::Members { .. }) => "members".to_owned(),
            Some(Answer::Whole { found, .. }) => {
                let word = |state| match state {
                    FoundState::Active => "",
                    FoundState::Drain => " drains",
                    FoundState::Stopped => " stopped",
                };
                let words = found.iter().map(|it| it.name.clone() + word(it.state));
                words.collect::<Vec<_>>().join(", ")
            }
        }
    }

    fn wait_for(&self, expected: &str) {
        self.wait_until(expected, |last| last == expected);
    }

    fn wait_for_failure(&self, text: &str) {
        self.wait_until(text, |last| last.contains(text));
    }

    fn wait_until(&self, expected: &str, is: impl Fn(&str) -> bool) {
        let waited = Deadline::default().poll(expected, || is(&self.last()).then_some(()));
        assert!(waited.is_ok(), "{expected} expected, not {}", self.last());
    }

    fn errors(&self, reason: &str) -> u64 {
        let mut errors = self.facts.errors();
        errors.find(|(token, _)| *token == reason).unwrap().1
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        self.end.notify_one();
        self.thread.take().unwrap().join().unwrap();
    }
}

fn pod(name: &str) -> PodEndpoint {
    let last = name.bytes().last().unwrap();
    PodEndpoint::ready(name, [10, 0, 0, last].into())
}

fn set(api: &KubernetesApi, pods: &[PodEndpoint]) {
    api.set("app-x", 8009, "ajp", pods);
}

#[test]
fn pods_join_drain_stop_and_leave() {
    let api = KubernetesApi::start();
    api.limit_pages(1);
    api.set("app-a", 8009, "ajp", &[pod("a")]);
    api.set("app-b", 8009, "ajp", &[pod("b")]);
    api.set("app-c", 8009, "ajp", &[pod("c")]);
    let following = Following::start(in_clear_text(&api));
    following.wait_for("a, b, c");
    assert_eq!(following.facts.objects(), 3);
    let asked = api.asked();
    let first = "/apis/discovery.k8s.io/v1/namespaces/shop/endpointslices?limit=100&labelSelector=\
                 kubernetes.io%2Fservice-name%3Dapp";
    assert_eq!(
        asked[..3],
        [
            first,
            &format!("{first}&continue=1"),
            &format!("{first}&continue=2")
        ]
    );
    api.set("app-a", 8009, "ajp", &[pod("a").terminating(), pod("d")]);
    following.wait_for("a drains, b, c, d");
    api.bookmark();
    api.set("app-b", 8009, "ajp", &[pod("b").unready()]);
    following.wait_for("a drains, b stopped, c, d");
    api.delete("app-c");
    following.wait_for("a drains, b stopped, d");
    api.set("app-a", 8009, "ajp", &[]);
    following.wait_for("b stopped");
    api.delete("app-b");
    following.wait_for("");
    assert_eq!(following.facts.relists(), 0);
    assert!(following.facts.age().is_some());
}

#[test]
fn a_watch_goes_on_however_it_ends() {
    let api = KubernetesApi::start();
    set(&api, &[pod("a")]);
    let following = Following::start(in_clear_text(&api));
    following.wait_for("a");
    let half = br#"{"type":"MODIFIED","object":{"metadata":{"name":"app-x"#;
    let cuts: [(&str, &dyn Fn()); 8] = [
        ("in order", &|| api.end_watches()),
        ("reset", &|| api.reset_watches()),
        ("after a bookmark", &|| {
            api.bookmark();
            api.reset_watches();
        }),
        ("in a line", &|| {
            api.send_raw(half);
            api.reset_watches();
        }),
        ("in order in a line", &|| {
            api.send_raw(half);
            api.end_watches();
        }),
        ("too old", &|| api.compact()),
        ("by another error", &|| {
            api.send_raw(b"{\"type\":\"ERROR\",\"object\":{\"code\":500,\"message\":\"etcd\"}}\n");
        }),
        ("by garbage", &|| api.send_raw(b"garbage\n")),
    ];
    set(&api, &[pod("a"), pod("z")]);
    following.wait_for("a, z");
    for (how, cut) in cuts {
        // A watch that ends sooner counts as a failure.
        let lasts = || (following.facts.age()? >= Duration::from_secs(1)).then_some(());
        Deadline::default()
            .poll("a watch that lasts", lasts)
            .unwrap();
        cut();
        // A list may tell the first change. The second one comes by a watch, which the next cut finds open.
        set(&api, &[pod("a"), pod("y")]);
        following.wait_until(how, |last| last == "a, y");
        set(&api, &[pod("a"), pod("z")]);
        following.wait_until(how, |last| last == "a, z");
    }
    let errors = ["cut", "expired", "status", "malformed"].map(|it| following.errors(it));
    assert_eq!((errors, following.facts.relists()), ([3, 1, 1, 1], 3));
    let failed = |answer: &Answer| matches!(answer, Answer::Failed(_));
    let answers = following.answers.lock().unwrap();
    let failures: Vec<&Answer> = answers.iter().filter(|it| failed(it)).collect();
    assert_eq!(
        failures.len(),
        2,
        "what mends itself is not told: {failures:?}"
    );
}

#[test]
fn a_server_that_ends_each_watch_after_an_event_is_told_and_waited_for() {
    let api = KubernetesApi::start();
    api.expire_watches(true);
    set(&api, &[pod("a")]);
    let following = Following::start(in_clear_text(&api));
    following.wait_for_failure("too old resource version");
    api.expire_watches(false);
    following.wait_for("a");
}

#[test]
fn a_server_that_refuses_is_told_with_what_it_lacks() {
    let api = KubernetesApi::start();
    api.refuse(Some(403));
    set(&api, &[pod("a"), pod("b"), pod("c")]);
    let following = Following::start(in_clear_text(&api));
    following.wait_for_failure(
        "the API server forbids to list (403): it takes a Role in namespace shop with apiGroups: \
         [\"discovery.k8s.io\"], resources: [\"endpointslices\"], verbs: [list, watch]",
    );
    api.refuse(Some(401));
    following.wait_for_failure("does not accept the token");
    api.refuse(None);
    following.wait_for("a, b, c");
    api.refuse(Some(503));
    api.reset_watches();
    following.wait_for_failure(
        "answers 503 Service Unavailable to watch: \"{\\\"kind\\\":\\\"Status\\\"",
    );
    // Most of them end meanwhile, which the next list tells.
    set(&api, &[pod("c")]);
    api.refuse(None);
    following.wait_for("c");
    assert!(following.errors("forbidden") > 0 && following.errors("unauthorized") > 0);
}

#[test]
fn a_list_without_end_is_given_up() {
    let api = KubernetesApi::start();
    api.limit_pages(0);
    set(&api, &[pod("a")]);
    let following = Following::start(in_clear_text(&api));
    following.wait_for_failure("a list has more than 200 pages");
    api.limit_pages(1);
    following.wait_for("a");
}

#[test]
fn a_list_of_too_many_bytes_is_given_up() {
    let api = KubernetesApi::start();
    api.limit_pages(1);
    let large = format!(
        r#""unread":"{}","addressType":"IPv4","ports":null,"endpoints":null"#,
        "x".repeat(1 << 20)
    );
    for number in 0..33 {
        api.set_text(&format!("app-{number}"), &large);
    }
    set(&api, &[pod("a")]);
    let following = Following::start(in_clear_text(&api));
    following.wait_for_failure("a list had more than 33554432 bytes");
    for number in 0..33 {
        api.delete(&format!("app-{number}"));
    }
    following.wait_for("a");
}

#[test]
fn slices_that_would_fill_the_memory_are_refused() {
    let api = KubernetesApi::start();
    set(&api, &[pod("a")]);
    let following = Following::start(in_clear_text(&api));
    following.wait_for("a");
    let endpoints = vec![r#"{"addresses":["10.9.9.9"]}"#; 70_000].join(",");
    let ports = r#"[{"port":1,"appProtocol":"ajp"}]"#;
    let many = format!(r#""addressType":"IPv4","ports":{ports},"endpoints":[{endpoints}]"#);
    // It is added to what is known, and then found by the list.
    api.set_text("app-y", &many);
    following.wait_for_failure("take more than 32 MiB of memory");
    api.delete("app-y");
    following.wait_for("a");
    assert!(following.errors("too-large") > 0);
}

#[test]
fn a_version_that_is_too_long_is_not_sent() {
    let api = KubernetesApi::start();
    set(&api, &[pod("a")]);
    let following = Following::start(in_clear_text(&api));
    following.wait_for("a");
    let version = "9".repeat(17_000);
    let bookmark = format!(
        "{{\"type\":\"BOOKMARK\",\"object\":{{\"metadata\":{{\"resourceVersion\":\"{version}\"}}}}}}\n"
    );
    let refused = || {
        api.send_raw(bookmark.as_bytes());
        api.end_watches();
        (following.errors("malformed") > 0).then_some(())
    };
    Deadline::default()
        .poll("a version that is refused", refused)
        .unwrap();
    set(&api, &[pod("a"), pod("b")]);
    following.wait_for("a, b");
    assert!(api.asked().iter().all(|target| target.len() < 1000));
}

#[test]
fn the_server_is_named_so_that_it_becomes_no_member() {
    let api = KubernetesApi::start();
    set(&api, &[pod("a")]);
    let following = Following::start(in_clear_text(&api));
    following.wait_for("a");
    let answers = following.answers.lock().unwrap();
    let Some(Answer::Whole { asked, .. }) = answers.last() else {
        panic!("a list was told");
    };
    assert_eq!(asked[..], [api.address()]);
}

#[test]
fn a_server_that_is_away_is_told_and_asked_again() {
    let api = KubernetesApi::start();
    set(&api, &[pod("a")]);
    let following = Following::start(in_clear_text(&api));
    following.wait_for("a");
    api.set_away(true);
    following.wait_for_failure(&format!("http://{}: ", api.address()));
    api.set_away(false);
    following.wait_for("a");
    assert_eq!(following.facts.relists(), 0, "it goes on from its version");
}

#[test]
fn doubts_are_answered_by_another_list() {
    let api = KubernetesApi::start();
    set(&api, &[pod("a")]);
    let following = Following::start(in_clear_text(&api));
    following.wait_for("a");
    following.ask_again.notify_one();
    let again = || (following.answers.lock().unwrap().len() == 2).then_some(());
    Deadline::default().poll("a further answer", again).unwrap();
    assert_eq!(
        (following.last(), following.facts.relists()),
        ("a".to_owned(), 1)
    );
}

#[test]
fn a_source_ends_while_the_server_is_silent() {
    let api = KubernetesApi::start();
    api.set_hanging(true);
    let following = Following::start(in_clear_text(&api));
    let asked = || (!api.asked().is_empty()).then_some(());
    Deadline::default().poll("a request", asked).unwrap();
    drop(following);
    api.set_hanging(false);
}

#[test]
fn the_first_family_of_the_service_counts() {
    let api = KubernetesApi::start();
    api.set_families("\"IPv6\",\"IPv4\"");
    set(&api, &[pod("a")]);
    let following = Following::start(in_clear_text(&api));
    following.wait_for("a");
    assert!(
        !api.asked()
            .iter()
            .any(|target| target.contains("/services/"))
    );
    let six = PodEndpoint::ready("a", "fd00::a".parse().unwrap());
    api.set("app-y", 8009, "ajp", &[six]);
    let place = || match following.answers.lock().unwrap().last() {
        Some(Answer::Whole { found, .. }) => {
            (found[0].place.to_string() == "[fd00::a]:8009").then_some(())
        }
        _ => None,
    };
    Deadline::default().poll("the other family", place).unwrap();
    // The Service is made anew with one family, and has another pod.
    api.delete("app-x");
    api.delete("app-y");
    following.wait_for("");
    api.set("app-v", 8009, "ajp", &[pod("b")]);
    following.wait_for("b");
}

#[test]
fn a_family_without_endpoints_does_not_count() {
    let api = KubernetesApi::start();
    api.set_families("\"IPv6\",\"IPv4\"");
    let empty = r#""addressType":"IPv6","ports":null,"endpoints":null"#;
    api.set_text("app-y", empty);
    set(&api, &[pod("a")]);
    let following = Following::start(in_clear_text(&api));
    following.wait_for("a");
}

#[test]
fn a_token_is_read_again_and_sent_to_a_trusted_server_alone() {
    let (authority, other) = (
        Authority::new("ca").unwrap(),
        Authority::new("other").unwrap(),
    );
    let api = KubernetesApi::start_tls(&authority);
    let directory = tempfile::tempdir().unwrap();
    let (token_file, ca_file) = (
        directory.path().join("token"),
        directory.path().join("ca.crt"),
    );
    fs::write(&token_file, "one\n").unwrap();
    fs::write(&ca_file, other.pem()).unwrap();
    api.require_token("one");
    set(&api, &[pod("a")]);
    let following = Following::start(ApiConfig {
        server: Some(ApiUrl::parse(&format!("https://{}", api.address())).unwrap()),
        token_file: token_file.clone(),
        ca_file: ca_file.clone(),
    });
    following.wait_for_failure("https://127.0.0.1:");
    assert_eq!(api.asked(), [""; 0], "nothing is sent to a stranger");
    fs::write(&ca_file, authority.pem()).unwrap();
    following.wait_for("a");
    // The token is replaced as kubelet does it, and the watch ends.
    fs::write(directory.path().join("next"), "two").unwrap();
    fs::rename(directory.path().join("next"), &token_file).unwrap();
    api.require_token("two");
    api.end_watches();
    set(&api, &[pod("a"), pod("b")]);
    following.wait_for("a, b");
    set(&api, &[pod("a")]);
    following.wait_for("a");
    fs::remove_file(&token_file).unwrap();
    api.reset_watches();
    following.wait_for_failure("token: No such file");
    fs::create_dir(&token_file).unwrap();
    following.wait_for_failure("token: it is not a regular file");
}

#[test]
fn a_source_is_asked_once_for_those_who_do_not_serve() {
    let api = KubernetesApi::start();
    let runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = { runtime }.enable_all().build().unwrap();
    set(&api, &[pod("a")]);
    let answer = runtime.block_on(source(in_clear_text(&api)).ask());
    assert!(matches!(answer, Answer::Whole { found, .. } if found.len() == 1));
    let nowhere = ApiConfig {
        server: None,
        ..in_clear_text(&api)
    };
    let Answer::Failed(reason) = runtime.block_on(source(nowhere).ask()) else {
        panic!("there is no server");
    };
    assert!(
        reason.starts_with("there is no API server to ask"),
        "{reason}"
    );
}

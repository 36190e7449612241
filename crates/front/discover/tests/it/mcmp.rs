//! The listener for nodes: a recording of WildFly 39 is played to it, and what others might send.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use catamaran_discover::{
    Answer, FoundMember, FoundState, McmpCount, McmpHooks, McmpSource, MemberSource, NodeTable,
    Speech,
};
use catamaran_testkit::{Deadline, HttpClient, Response, address};
use tokio::sync::{Notify, mpsc, watch};
use tokio::time::Instant;

/// A listener in this process, and all that it said and counted.
struct Listener {
    address: SocketAddr,
    answers: Arc<Mutex<Vec<Answer>>>,
    counts: Arc<Mutex<Vec<McmpCount>>>,
    /// Requests at each member.
    in_flight: Arc<AtomicU64>,
    /// How many of its answers are in force; all, unless a test says otherwise.
    in_force: watch::Sender<u64>,
    end: Arc<Notify>,
    thread: Option<JoinHandle<()>>,
}

impl Listener {
    fn start(peers: &str, members: &str) -> Self {
        let address = address::refusing().unwrap();
        Self::at(address, Arc::default(), peers, members)
    }

    /// One that goes on with these nodes.
    fn at(address: SocketAddr, known: Arc<NodeTable>, peers: &str, members: &str) -> Self {
        let source = MemberSource::Mcmp(McmpSource {
            listen: address,
            peers: vec![peers.parse().unwrap()],
            members: vec![members.parse().unwrap()],
            paths: Vec::new(),
            nodes_max: 3,
            advertise: None,
        });
        let answers = Arc::new(Mutex::new(Vec::new()));
        let counts = Arc::new(Mutex::new(Vec::new()));
        let (said, counted) = (Arc::clone(&answers), Arc::clone(&counts));
        let flight = Arc::new(AtomicU64::new(0));
        let in_flight = Arc::clone(&flight);
        let (sets_in_force, in_force) = watch::channel(u64::MAX);
        let hooks = McmpHooks {
            in_flight: Box::new(move |_| in_flight.load(Ordering::SeqCst)),
            count: Box::new(move |count| counted.lock().unwrap().push(count)),
            nodes: known,
            in_force,
        };
        let end = Arc::new(Notify::new());
        let ending = Arc::clone(&end);
        let thread = thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread();
            let runtime = { runtime }.enable_all().build().unwrap();
            runtime.block_on(async move {
                let (send, mut received) = mpsc::channel(1);
                let listening = source.run(
                    send,
                    Arc::new(Notify::new()),
                    Arc::new(hooks),
                    Arc::default(),
                );
                let keep = async {
                    while let Some(answer) = received.recv().await {
                        said.lock().unwrap().push(answer);
                    }
                };
                tokio::select! {
                    () = listening => {}
                    () = keep => {}
                    () = ending.notified() => {}
                }
            });
        });
        Self {
            address,
            answers,
            counts,
            in_flight: flight,
            in_force: sets_in_force,
            end,
            thread: Some(thread),
        }
    }

    fn connect(&self) -> HttpClient {
        let connected = || HttpClient::connect(self.address).ok();
        Deadline::default().poll("the listener", connected).unwrap()
    }

    fn found(&self) -> Vec<FoundMember> {
        let answers = self.answers.lock().unwrap();
        match answers.last() {
            Some(Answer::Members { found, .. }) => found.clone(),
            _ => Vec::new(),
        }
    }

    /// Waits until the last list says so of its only member; without one, `None`.
    fn wait_for(&self, state: Option<FoundState>) {
        let what = format!("{state:?}");
        let is = || {
            let found = self.found();
            let is = found.first().map(|it| it.state);
            let said = !self.answers.lock().unwrap().is_empty();
            (said && is == state && found.len() <= 1).then_some(())
        };
        Deadline::default().poll(&what, is).unwrap();
    }

    fn counted(&self, count: McmpCount) -> usize {
        let counts = self.counts.lock().unwrap();
        counts.iter().filter(|it| **it == count).count()
    }

    fn wait_for_count(&self, count: McmpCount) {
        let what = format!("{count:?}");
        Deadline::default()
            .poll(&what, || (self.counted(count) > 0).then_some(()))
            .unwrap();
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.end.notify_one();
        if let Some(thread) = self.thread.take() {
            thread.join().ok();
        }
    }
}

fn request(command: &str, path: &str, form: &str) -> String {
    let length = form.len();
    format!(
        "{command} {path} HTTP/1.1\r\nHost: front\r\nContent-Length: {length}\r\n\
         User-Agent: ClusterListener/1.0\r\nConnection: Keep-Alive\r\n\r\n{form}"
    )
}

fn say(client: &mut HttpClient, command: &str, path: &str, form: &str) -> Response {
    let request = request(command, path, form);
    client.ask(request).unwrap()
}

/// One request of the recording: all its bytes, and its command.
fn requests(log: &str) -> Vec<(String, String)> {
    let of_line = |line: &str| {
        let (_, rest) = line.split_once(" REQ (")?;
        let (_, texts) = rest.split_once(") '")?;
        let (head, form) = texts.split_once("' '")?;
        let form = form.strip_suffix('\'')?;
        let plain = |text: &str| text.replace("\\r", "\r").replace("\\n", "\n");
        let head = plain(head);
        let command = head.split(' ').next()?.to_owned();
        Some((command, head + &plain(form)))
    };
    log.lines().filter_map(of_line).collect()
}

/// Plays a recording, and answers each word as WildFly must be answered. Each has an announcement, contexts,
/// suspending, resuming, a front that went away and came back, and the end of a node.
fn play(log: &str, speech: Speech, place: &str) {
    let listener = Listener::start("127.0.0.0/8", "10.77.0.0/24");
    let mut client = listener.connect();
    let mut known = false;
    let mut commands = 0;
    for (command, bytes) in requests(log) {
        let answer = client.ask(&bytes).unwrap();
        let is_last = bytes.starts_with("REMOVE-APP /* ");
        let says_nothing_of_a_node = command == "INFO" || command == "PING";
        known |= command == "CONFIG";
        let expected = if known || says_nothing_of_a_node {
            200
        } else {
            500
        };
        assert_eq!(answer.status, expected, "{bytes}\n{}", answer.text());
        let text = answer.text();
        match &command[..] {
            "STATUS" if known => {
                assert!(
                    text.starts_with("Type=STATUS-RSP&JVMRoute=node1&State=OK&id="),
                    "{text}"
                );
            }
            "STOP-APP" if known => {
                assert!(
                    text.starts_with(
                        "Type=STOP-APP-RSP&JvmRoute=node1&Alias=default-host%2Clocalhost&"
                    ),
                    "{text}"
                );
                assert!(text.ends_with("&Requests=0"), "{text}");
            }
            "STATUS" => assert_eq!(answer.header("type"), Some("MEM")),
            _ => {}
        }
        known &= !is_last;
        commands += 1;
    }
    assert!(commands > 40, "{commands} requests in the recording");
    assert_eq!(listener.counted(McmpCount::Refused("syntax")), 0);
    assert_eq!(listener.counted(McmpCount::Refused("garbage")), 0);
    listener.wait_for(None);
    let answers = listener.answers.lock().unwrap();
    let found = answers.iter().flat_map(|answer| match answer {
        Answer::Members { found, .. } => found.clone(),
        other => panic!("{other:?}"),
    });
    let found: Vec<FoundMember> = found.collect();
    assert!(!found.is_empty());
    for member in found {
        assert_eq!(
            (member.speech, &member.place.to_string()[..]),
            (speech, place)
        );
    }
}

#[test]
fn a_recording_of_wildfly_over_ajp_is_understood_word_by_word() {
    let log = include_str!("wildfly-39-ajp.log");
    play(log, Speech::Ajp, "10.77.0.1:8009");
}

#[test]
fn a_recording_of_wildfly_over_http_is_understood_word_by_word() {
    let log = include_str!("wildfly-39-http.log");
    play(log, Speech::Http, "10.77.0.1:8080");
}

#[test]
fn a_node_joins_is_suspended_and_leaves() {
    let listener = Listener::start("127.0.0.0/8", "10.77.0.0/24");
    let mut client = listener.connect();
    let config = "JVMRoute=node1&Host=10.77.0.1&Port=8443&Type=https";
    assert_eq!(say(&mut client, "CONFIG", "/", config).status, 200);
    listener.wait_for(Some(FoundState::Stopped));
    let demo = "JVMRoute=node1&Alias=a&Context=%2Fdemo";
    for (command, state) in [
        ("ENABLE-APP", FoundState::Active),
        ("DISABLE-APP", FoundState::Drain),
        ("STOP-APP", FoundState::Stopped),
        ("ENABLE-APP", FoundState::Active),
    ] {
        assert_eq!(say(&mut client, command, "/", demo).status, 200);
        listener.wait_for(Some(state));
    }
    let member = &listener.found()[0];
    assert_eq!(
        (&member.name[..], &member.place.to_string()[..]),
        ("node1", "10.77.0.1:8443")
    );
    assert_eq!(
        say(&mut client, "REMOVE-APP", "/*", "JVMRoute=node1").status,
        200
    );
    listener.wait_for(None);
    let answers = listener.answers.lock().unwrap();
    let left = Answer::Members {
        found: Vec::new(),
        left: vec!["node1".to_owned()],
    };
    assert_eq!(answers.last(), Some(&left));
}

/// A node takes a context down when nothing is in flight there, so the front must have stopped to send requests.
#[test]
fn a_context_that_stops_is_answered_when_no_request_is_sent_to_it() {
    let listener = Listener::start("127.0.0.0/8", "10.77.0.0/24");
    let mut client = listener.connect();
    let config = "JVMRoute=node1&Host=10.77.0.1&Port=8009&Type=ajp";
    assert_eq!(say(&mut client, "CONFIG", "/", config).status, 200);
    let demo = "JVMRoute=node1&Alias=a&Context=%2Fdemo";
    assert_eq!(say(&mut client, "ENABLE-APP", "/", demo).status, 200);
    listener.wait_for(Some(FoundState::Active));
    let request = request("STOP-APP", "/", demo);
    let in_time = || {
        listener.in_force.send_replace(0);
        listener.in_flight.store(7, Ordering::SeqCst);
        let began = Instant::now();
        client.send(request.as_bytes()).unwrap();
        listener.wait_for(Some(FoundState::Stopped));
        // Requests were sent until the list was in force.
        listener.in_flight.store(3, Ordering::SeqCst);
        listener.in_force.send_replace(u64::MAX);
        // On a busy machine it may not have waited for so long.
        let is_late = began.elapsed() >= IN_FORCE_MAX;
        let told = client.receive().unwrap().text();
        assert!(is_late || told.ends_with("&Requests=3"), "{told}");
        (!is_late).then_some(())
    };
    Deadline::default().poll("a list in time", in_time).unwrap();
}

/// As at an upgrade: the next process is there before the one before it ends.
#[test]
fn another_listener_goes_on_with_the_nodes_that_it_is_handed() {
    let address = address::refusing().unwrap();
    let known = Arc::new(NodeTable::default());
    let (everywhere, nodes) = ("127.0.0.0/8", "10.77.0.0/24");
    let first = Listener::at(address, Arc::clone(&known), everywhere, nodes);
    let mut client = first.connect();
    for number in 1..=2 {
        let config = format!("JVMRoute=node{number}&Host=10.77.0.{number}&Port=8009&Type=ajp");
        assert_eq!(say(&mut client, "CONFIG", "/", &config).status, 200);
    }
    let demo = "JVMRoute=node2&Alias=a&Context=%2Fdemo";
    assert_eq!(say(&mut client, "ENABLE-APP", "/", demo).status, 200);
    let handed = Arc::new(NodeTable::from_records(known.records()));
    // Members may be at one address only.
    let second = Listener::at(address, handed, everywhere, "10.77.0.2/32");
    // Nobody has said anything to it, and it cannot listen yet.
    second.wait_for(Some(FoundState::Active));
    assert_eq!(second.found()[0].name, "node2");
    drop((client, first));
    let mut client = second.connect();
    let told = say(&mut client, "STATUS", "/", "JVMRoute=node2&Load=1").text();
    assert_eq!(told, "Type=STATUS-RSP&JVMRoute=node2&State=OK&id=2");
    let forgotten = say(&mut client, "STATUS", "/", "JVMRoute=node1&Load=1");
    assert_eq!(
        (forgotten.status, forgotten.header("type")),
        (500, Some("MEM"))
    );
    let answers = second.answers.lock().unwrap();
    let failed = |it: &&Answer| matches!(it, Answer::Failed(_));
    assert_eq!(
        answers.iter().find(failed),
        None,
        "who listened was about to end"
    );
}

#[test]
fn what_is_no_message_is_counted_by_its_reason() {
    let listener = Listener::start("127.0.0.0/8", "10.77.0.0/24");
    let mut client = listener.connect();
    let refused = |answer: Response| {
        let kind = answer.header("type").unwrap_or_default().to_owned();
        (answer.status, kind)
    };
    let syntax = (500, "SYNTAX".to_owned());
    let memory = (500, "MEM".to_owned());
    let outside = "JVMRoute=evil&Host=192.0.2.1&Port=8009";
    assert_eq!(refused(say(&mut client, "CONFIG", "/", outside)), syntax);
    listener.wait_for_count(McmpCount::Refused("network"));
    assert_eq!(refused(say(&mut client, "CONFIG", "/", "JVMRoute")), syntax);
    listener.wait_for_count(McmpCount::Refused("syntax"));
    assert_eq!(
        refused(say(&mut client, "STATUS", "/", "JVMRoute=nobody&Load=1")),
        memory
    );
    listener.wait_for_count(McmpCount::Refused("unknown-node"));
    for garbage in [
        &b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n"[..],
        b"CONFIG / HTTP/1.1\r\nContent-Length: 65537\r\nHost: a\r\n\r\n",
    ] {
        let before = listener.counted(McmpCount::Refused("garbage"));
        let mut client = listener.connect();
        client.send(garbage).unwrap();
        assert!(client.receive().is_err(), "it is closed");
        assert_eq!(listener.counted(McmpCount::Refused("garbage")), before + 1);
    }
    assert_eq!(listener.found(), []);
}

#[test]
fn a_flood_of_messages_ends_the_connection() {
    let listener = Listener::start("127.0.0.0/8", "10.77.0.0/24");
    let mut client = listener.connect();
    let mut sent = 0;
    loop {
        let form = "JVMRoute=nobody&Load=1";
        let request = format!(
            "STATUS / HTTP/1.1\r\nHost: front\r\nContent-Length: {}\r\n\r\n{form}",
            form.len()
        );
        if client.send(request.as_bytes()).is_err() || client.receive().is_err() {
            break;
        }
        sent += 1;
        assert!(sent < 1_000_000, "a million messages were answered");
    }
    listener.wait_for_count(McmpCount::Refused("flood"));
    assert!(sent >= 1000, "{sent}: a join of many contexts is no flood");
}

#[test]
fn only_peers_are_heard() {
    let listener = Listener::start("192.0.2.0/24", "10.77.0.0/24");
    let mut client = listener.connect();
    client.send(b"INFO / HTTP/1.1\r\nHost: a\r\n\r\n").ok();
    assert!(client.receive().is_err());
    listener.wait_for_count(McmpCount::Refused("peer"));
}

/// How long the listener waits until a list is in force.
const IN_FORCE_MAX: Duration = Duration::from_secs(2);

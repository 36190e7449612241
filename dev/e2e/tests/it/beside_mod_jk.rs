//! Where sessions go, beside mod_jk: the same node for the same request, save where we mean to differ.

use std::collections::BTreeSet;
use std::net::SocketAddr;

use catamaran_e2e::{Front, Httpd};
use catamaran_testkit::{HttpClient, Peer, Script, address, ajp};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Active,
    Disabled,
    Stopped,
    Killed,
}

/// Both fronts before the same nodes, which are scripted containers that say their names.
struct Pair {
    front: Front,
    httpd: Httpd,
    _nodes: Vec<Peer>,
}

impl Pair {
    /// `ours` is of the table `sticky`, `theirs` of the balancer.
    fn start(state: State, ours: &str, theirs: &str) -> Self {
        let addresses: Vec<SocketAddr> = NODES.iter().map(|_| address::unused().unwrap()).collect();
        let mut tables = format!("[upstream.app.sticky]\n{ours}");
        let mut workers = format!(
            "worker.list=app\nworker.app.type=lb\n{theirs}worker.app.balance_workers={}\n",
            NODES.join(",")
        );
        for (name, address) in NODES.iter().zip(&addresses) {
            tables += &format!(
                "[[upstream.app.backend]]\nname = \"{name}\"\nurl = \"ajp://{address}\"\n"
            );
            workers += &format!(
                "worker.{name}.type=ajp13\nworker.{name}.host={}\nworker.{name}.port={}\n",
                address.ip(),
                address.port()
            );
            let activation = match (state, CHANGED.contains(name)) {
                (State::Disabled, true) => ("drain", "D"),
                (State::Stopped, true) => ("stopped", "S"),
                _ => ("active", "A"),
            };
            tables += &format!("activation = \"{}\"\n", activation.0);
            workers += &format!("worker.{name}.activation={}\n", activation.1);
            let (own, their) = match *name {
                "a" | "b" => ("domain = \"g1\"\n", format!("worker.{name}.domain=g1\n")),
                "c" => ("fallback = \"d\"\n", "worker.c.redirect=d\n".to_owned()),
                _ => ("", String::new()),
            };
            tables += own;
            workers += &their;
        }
        let node = |(name, address): (&&str, &SocketAddr)| {
            let runs = state != State::Killed || !CHANGED.contains(name);
            runs.then(|| Peer::start_at(*address, container(name)))
        };
        let nodes = NODES.iter().zip(&addresses).filter_map(node).collect();
        Self {
            front: Front::to_app(&tables).unwrap(),
            httpd: Httpd::with_workers(&workers).unwrap(),
            _nodes: nodes,
        }
    }

    /// Who serves each of so many such requests: behind ours, behind mod_jk.
    fn ask(&self, path: &str, cookie: &str, times: usize) -> [BTreeSet<String>; 2] {
        [self.front.address(), self.httpd.address()].map(|front| {
            let asked = (0..times).map(|_| ask(front, path, cookie));
            asked.collect()
        })
    }
}

/// A container that answers every request on a connection with its name.
pub(crate) fn container(name: &str) -> Script {
    let answer = [
        ajp::send_headers(200, &[ajp::field("Content-Length", "1")]),
        ajp::chunk(name.as_bytes()),
        ajp::end_response(1),
    ];
    Script::new()
        .expect_packet()
        .send(&answer.concat())
        .repeat(1000)
}

/// The node that serves a request, or the status if that is another than 200.
fn ask(front: SocketAddr, path: &str, cookie: &str) -> String {
    let mut client = HttpClient::connect(front).unwrap();
    let cookie = match cookie {
        "" => String::new(),
        cookie => format!("Cookie: {cookie}\r\n"),
    };
    let head = format!("GET {path} HTTP/1.1\r\nHost: a\r\n{cookie}\r\n");
    let answer = client.ask(head).unwrap();
    match answer.status {
        200 => answer.text(),
        status => status.to_string(),
    }
}

fn nodes(names: &str) -> BTreeSet<String> {
    names.split(' ').map(str::to_owned).collect()
}

/// A request, and the nodes that may serve it (mod_jk gives whoever had few requests so far all that
/// are free) while `a`, `c` and `e` are in each of [`STATES`].
type Row = (&'static str, &'static str, [&'static str; 4]);

#[test]
fn sessions_go_where_mod_jk_sends_them() {
    for (index, state) in STATES.into_iter().enumerate() {
        let pair = Pair::start(state, "first = \"path\"\n", "");
        for (path, cookie, expected) in ROWS {
            let expected = nodes(expected[index]);
            let served = pair.ask(path, cookie, TIMES);
            for (front, served) in ["catamaran", "mod_jk"].iter().zip(&served) {
                let row = format!("{front}, {state:?}, {path} {cookie}");
                assert!(
                    served.is_subset(&expected),
                    "{row}: {served:?}, not {expected:?}"
                );
            }
        }
    }
}

#[test]
fn a_session_that_is_held_is_refused_by_both() {
    for state in [State::Stopped, State::Killed] {
        let force = "worker.app.sticky_session_force=1\n";
        let pair = Pair::start(state, "first = \"path\"\nforce = true\n", force);
        for id in ["1.a", "1.c", "1.e"] {
            let cookie = format!("JSESSIONID={id}");
            let served = pair.ask("/", &cookie, 1);
            assert_eq!(served, [nodes("503"), nodes("503")], "{state:?} {id}");
        }
    }
}

#[test]
fn we_differ_where_we_mean_to() {
    let force = "worker.app.sticky_session_force=1\n";
    let pair = Pair::start(State::Active, "force = true\n", force);
    // Tomcat lets the cookie override the URL: a bookmarked link must not lead to the wrong node.
    let both = pair.ask("/x;jsessionid=1.a", "JSESSIONID=1.d", TIMES);
    assert_eq!(both, [nodes("d"), nodes("a")]);
    // A route that nobody has is no reason to refuse, even if sessions must not move.
    let [ours, theirs] = pair.ask("/", "JSESSIONID=1.nobody", TIMES);
    assert!(ours.len() > 1 && ours.is_subset(&nodes(ANY[0])), "{ours:?}");
    assert_eq!(theirs, nodes("503"));
    // An id may have dots, or several routes.
    let pair = Pair::start(State::Active, "", "");
    let [ours, theirs] = pair.ask("/", "JSESSIONID=1.x.b", TIMES);
    assert_eq!(ours, nodes("b"));
    assert!(theirs.len() > 1, "{theirs:?}");
}

/// Nodes `a` and `b` are of one domain, `d` is the redirect of `c`, and `e` has nobody.
const NODES: [&str; 5] = ["a", "b", "c", "d", "e"];

/// The nodes that are put into a state.
const CHANGED: [&str; 3] = ["a", "c", "e"];

const STATES: [State; 4] = [
    State::Active,
    State::Disabled,
    State::Stopped,
    State::Killed,
];

const ANY: [&str; 4] = ["a b c d e", "b d", "b d", "b d"];

const ROWS: &[Row] = &[
    // No session.
    ("/", "", ANY),
    // By cookie: kept; by the domain; by the redirect; by nobody.
    ("/", "JSESSIONID=1.a", ["a", "a", "b", "b"]),
    ("/", "x=y; JSESSIONID=1.c; z=1", ["c", "c", "d", "d"]),
    ("/", "JSESSIONID=1.e", ["e", "e", "b d", "b d"]),
    ("/", "JSESSIONID=1.b", ["b", "b", "b", "b"]),
    // By URL.
    ("/x;jsessionid=1.a", "", ["a", "a", "b", "b"]),
    ("/x;jsessionid=1.c?q=1", "", ["c", "c", "d", "d"]),
    // By both: the URL is read first, if that is said.
    ("/x;jsessionid=1.a", "JSESSIONID=1.d", ["a", "a", "b", "b"]),
    // Several.
    ("/", "JSESSIONID=1.e; JSESSIONID=1.d", ["e", "e", "d", "d"]),
    (
        "/",
        "JSESSIONID=1.nobody; JSESSIONID=1.b",
        ["b", "b", "b", "b"],
    ),
    // Unknown, and unknown of a domain.
    ("/", "JSESSIONID=1.nobody", ANY),
    ("/", "JSESSIONID=1.g1.z", ["a b", "b", "b", "b"]),
    // Without a route.
    ("/", "JSESSIONID=1", ANY),
];

/// Requests enough for more than one node to be seen, if there is more than one.
const TIMES: usize = 6;

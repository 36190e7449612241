//! What `explain` says of a request is what happens to it, whatever the configuration and the request: a
//! backend that records receives what was said, and what the front answers itself is what was said.
//!
//! Configurations and requests are made from numbers, so that a failure is found again. The clients speak
//! HTTP/1.1 and HTTP/2, in clear and over TLS; the backends speak AJP13 and HTTP/1.1.

mod client;
mod config;
mod file;
mod recorder;
mod request;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{Read, Write};
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use catamaran_e2e::Front;
use catamaran_testkit::tls::Authority;
use fastrand::Rng;
use serde_json::Value;

use self::client::{Answered, Credentials, Place};
use self::config::{Configuration, LISTENERS, Surroundings};
use self::file::{Became, SaidFile};
use self::recorder::{Received, Recorder};
use self::request::Request;

#[test]
fn every_key_of_listeners_and_routes_is_used() {
    let recorder = Recorder::start().unwrap();
    let surroundings = Surroundings {
        recorder: &recorder,
        files: Path::new("/files"),
    };
    let configurations = (0..CONFIGURATIONS).map(|it| Configuration::new(it, &surroundings));
    let used: BTreeSet<_> = configurations.flat_map(|it| it.keys).collect();
    let wanted = documented();
    assert!(wanted.len() > 70, "{wanted:?}");
    let unused: Vec<_> = wanted.difference(&used).collect();
    assert!(unused.is_empty(), "no configuration has {unused:?}");
}

/// The keys of listeners and routes, and of what holds for all routes, by the reference.
fn documented() -> BTreeSet<(String, String)> {
    let reference = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference.md");
    let reference = fs::read_to_string(reference).unwrap();
    let mut header = String::new();
    let mut keys = BTreeSet::new();
    for line in reference.lines() {
        if let Some(named) = line.strip_prefix("## ") {
            named.trim_matches('`').clone_into(&mut header);
        }
        let is_wanted = TABLES.contains(&&header[..]) || header.contains("route");
        if let Some((key, _)) = line.strip_prefix("| [`").and_then(|it| it.split_once('`'))
            && is_wanted
        {
            keys.insert((header.clone(), key.to_owned()));
        }
    }
    keys
}

#[test]
fn what_is_explained_is_what_a_backend_receives() {
    let files = tempfile::tempdir().unwrap();
    let authority = Authority::new("decision").unwrap();
    let credentials = prepare(files.path(), &authority);
    let recorder = Recorder::start().unwrap();
    let surroundings = Surroundings {
        recorder: &recorder,
        files: files.path(),
    };
    let (mut seen, mut different) = (BTreeMap::new(), Vec::new());
    for number in 0..CONFIGURATIONS {
        let site = Site::start(number, &surroundings);
        let mut rng = Rng::with_seed(1_000 + number);
        let (mut asked, mut received) = (0, 0);
        while received < RECEIVED {
            let request = Request::new(&mut rng);
            match site.compare(&request, &credentials, &recorder) {
                Ok(became) => {
                    received += usize::from(AT_BACKENDS.contains(&became));
                    *seen.entry(became).or_insert(0) += 1;
                }
                Err(what) => different.push(format!("{number}, {asked}: {what}")),
            }
            asked += 1;
            assert!(
                asked < ASKED_MAX,
                "too few are received: {seen:?}, {different:?}"
            );
        }
    }
    println!("{} different of {seen:?}", different.len());
    let few = different.get(..5).unwrap_or(&different).join("\n\n");
    assert!(different.is_empty(), "{} of them:\n{few}", different.len());
    let count = |what: &str| seen.get(what).copied().unwrap_or(0);
    for (what, least) in [
        ("ajp", 1000),
        ("http", 1000),
        ("tunnel", 50),
        // Of the rest of them a pick decides, which begins anywhere.
        ("tunnel over HTTP/2", 20),
        ("ajp over HTTP/2", 300),
        ("http over HTTP/2", 300),
        ("answer", 500),
        ("refused", 500),
        ("reset", 50),
        ("file", 50),
        ("directory", 10),
        ("no file", 10),
    ] {
        assert!(count(what) >= least, "{what}: {seen:?}");
    }
}

/// Writes what the configurations name.
fn prepare(files: &Path, authority: &Authority) -> Credentials {
    let names = [
        "example.org",
        "*.example.org",
        "other.test",
        "127.0.0.1",
        "::1",
    ];
    let pair = authority.sign(&names, |_| ()).unwrap();
    let challenges = files.join("acme/.well-known/acme-challenge");
    fs::create_dir_all(&challenges).unwrap();
    // No two are equally long.
    for (index, name) in file::names().enumerate() {
        let path = files.join(file::ROOT).join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "f".repeat(10 + index)).unwrap();
    }
    for (name, text) in [
        ("chain.pem", &pair.chain),
        ("key.pem", &pair.key),
        ("clients.pem", &authority.pem()),
        ("page.html", &"<p>A page</p>".to_owned()),
        ("acme/.well-known/acme-challenge/token1", &"1".to_owned()),
    ] {
        fs::write(files.join(name), text).unwrap();
    }
    Credentials::new(authority).unwrap()
}

/// A front with a generated configuration.
struct Site {
    front: Front,
    places: Vec<Place>,
    /// The directory of its routes with files.
    root: PathBuf,
}

impl Site {
    fn start(number: u64, surroundings: &Surroundings<'_>) -> Self {
        let configuration = Configuration::new(number, surroundings);
        let front = Front::with_config(&configuration.text)
            .unwrap_or_else(|error| panic!("{number}: {error:#}\n{}", configuration.text));
        front.wait_for_log("admin on").unwrap();
        let log = front.log();
        let mut tcp = log.lines().filter_map(|line| {
            let (_, url) = line.split_once("listening on http")?;
            let (_, address) = url.split_once("://")?;
            address
                .split_whitespace()
                .next()?
                .parse::<SocketAddr>()
                .ok()
        });
        let places = LISTENERS.map(|listener| {
            if listener.unix {
                Place::Unix(front.directory().join("front.sock"))
            } else {
                Place::Tcp(tcp.next().expect("a line for each listener"))
            }
        });
        let places = places.to_vec();
        Self {
            front,
            places,
            root: surroundings.files.join(file::ROOT),
        }
    }

    /// Asks about a request on a connection that is open already, sends it, and compares. Returns what
    /// became of it, or what differs.
    fn compare(
        &self,
        request: &Request,
        credentials: &Credentials,
        recorder: &Recorder,
    ) -> Result<&'static str, String> {
        let listener = LISTENERS.iter().position(|it| *it == request.listener);
        let place = &self.places[listener.unwrap()];
        let opened = client::open(place, request, credentials).unwrap();
        let explained = self.explain(&request.question(&opened.from));
        let answered = opened.ask(request);
        let received = recorder.take();
        let summary = explained["summary"].as_str().unwrap_or_default();
        let differs = |what: &str| {
            let route = &explained["route"]["place"];
            let route = format!("{route} of {}", self.front.directory().display());
            format!(
                "{what}\n{request:?}\n{summary:?}, {route}\nanswered {answered:?}\n\
                 explained {}\nreceived  {received:?}",
                explained["sent"]
            )
        };
        let Ok(answered) = &answered else {
            return Err(differs("no answer"));
        };
        if let Some(said) = SaidFile::of(&explained) {
            match said.compare(&self.root, request, answered) {
                Ok(Became::Answered(_)) if !received.is_empty() => {
                    return Err(differs("it is received"));
                }
                Ok(Became::Answered(became)) => return Ok(became),
                Ok(Became::GoesOn) => {}
                Err(what) => return Err(differs(what)),
            }
        }
        if explained["outcome"] == "forward" {
            let is_perhaps = |status| summary.contains(&format!("; or {status}, "));
            if answered.status.is_some_and(is_perhaps) && received.is_empty() {
                return Ok(PERHAPS);
            }
            let [received] = &received[..] else {
                return Err(differs("it is not received once"));
            };
            let became = became(&explained, received, request);
            return became.map_err(differs);
        }
        if !received.is_empty() {
            return Err(differs("it is received"));
        }
        answered_as_said(&explained, answered, request).map_err(differs)
    }

    /// What the front's admin listener answers to a question.
    fn explain(&self, question: &str) -> Value {
        let socket = self.front.directory().join("admin.sock");
        let mut socket = UnixStream::connect(socket).unwrap();
        let head =
            format!("GET {question} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        socket.write_all(head.as_bytes()).unwrap();
        let mut answer = Vec::new();
        socket.read_to_end(&mut answer).unwrap();
        let answer = String::from_utf8(answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 200"), "{question}: {answer}");
        serde_json::from_str(body).unwrap()
    }
}

/// What became of a request that the front answers itself, or what differs.
fn answered_as_said(
    explained: &Value,
    answered: &Answered,
    request: &Request,
) -> Result<&'static str, &'static str> {
    let summary = explained["summary"].as_str().unwrap_or_default();
    let ends = ["its stream is reset", "its connection is closed"];
    if ends.iter().any(|end| summary.contains(end)) {
        return match answered.status {
            None => Ok("reset"),
            Some(_) => Err("it is not reset"),
        };
    }
    let answer = &explained["answer"];
    let status = if is_missing(explained) {
        Some(404)
    } else {
        answer["status"].as_u64()
    };
    if status != answered.status.map(u64::from) {
        return Err("another status");
    }
    if !request.http2 && answer["location"].as_str() != answered.location.as_deref() {
        return Err("another location");
    }
    match explained["outcome"].as_str() {
        Some("answer") => Ok("answer"),
        Some("refused") => Ok("refused"),
        _ => Err("another outcome"),
    }
}

/// Whether the file that is said to be read, of a challenge of ACME, is not there.
fn is_missing(explained: &Value) -> bool {
    let rule = explained["then"][0].as_str().unwrap_or_default();
    let file = rule.strip_suffix(" is read; 404 if there is no such file");
    file.is_some_and(|file| !Path::new(file).exists())
}

/// What became of a request that is forwarded, or what differs.
fn became(
    explained: &Value,
    received: &Received,
    request: &Request,
) -> Result<&'static str, &'static str> {
    let sent = &explained["sent"];
    let is_tunnel = sent["tunnel"].is_string();
    let backend = if received.protocol == "ajp" { "a" } else { "h" };
    let members = explained["members"]
        .as_array()
        .map_or(&[][..], Vec::as_slice);
    let gets_some = |it: &Value| it["backend"] == backend && it["share"].as_f64() > Some(0.0);
    if !is_tunnel && !members.iter().any(gets_some) {
        return Err("another backend");
    }
    if received.body != request.body {
        return Err("another body");
    }
    if sent["protocol"] == received.protocol {
        let (mut shown, mut arrived) = (said(sent, request), normal(received, request));
        if may_ask_for_all(explained) {
            for (_, fields, _) in [&mut shown, &mut arrived] {
                fields.retain(|(name, _)| !OF_PARTS.contains(&&name[..]));
            }
        }
        if shown != arrived {
            // Tunnels go over HTTP to either member that a pick may take, each with fields of its own.
            if is_tunnel
                && explained["summary"]
                    .as_str()
                    .is_some_and(|it| it.contains(" or "))
            {
                return Ok(ANOTHER);
            }
            return Err("another request");
        }
    } else if !explained["backend"].is_null() {
        return Err("another protocol");
    } else {
        return Ok(ANOTHER);
    }
    Ok(match (is_tunnel, request.http2, received.protocol) {
        (true, true, _) => "tunnel over HTTP/2",
        (true, false, _) => "tunnel",
        (_, true, "ajp") => "ajp over HTTP/2",
        (_, true, _) => "http over HTTP/2",
        (_, false, protocol) => protocol,
    })
}

/// Whether a cache may ask for all of a response, whatever part of it the client has or wants.
fn may_ask_for_all(explained: &Value) -> bool {
    let cache = &explained["cache"];
    let rules = explained["then"].as_array().map_or(&[][..], Vec::as_slice);
    let is_said = |rule: &Value| {
        let rule = rule.as_str().unwrap_or_default();
        rule.ends_with("without the client's conditions and ranges")
    };
    cache.is_object() && cache["bypass"].is_null() && rules.iter().any(is_said)
}

/// The request line, the fields and the attributes of a request, by their names.
type Said = (String, Vec<(String, String)>, Vec<(String, String)>);

fn said(sent: &Value, request: &Request) -> Said {
    let text = |it: &Value| it.as_str().unwrap_or_default().to_owned();
    let pairs = |it: &Value| {
        let pairs = it.as_array().expect("a list").iter();
        pairs.map(|it| (text(&it[0]), text(&it[1]))).collect()
    };
    let (fields, attributes) = (pairs(&sent["fields"]), pairs(&sent["attributes"]));
    let line = text(&sent["request"]);
    (line, sorted(fields, request), sorted(attributes, request))
}

fn normal(received: &Received, request: &Request) -> Said {
    let Received {
        line,
        fields,
        attributes,
        ..
    } = received.clone();
    (line, sorted(fields, request), sorted(attributes, request))
}

/// Without what is made anew for each request or handshake: its id, the key of a tunnel over HTTP/2, and
/// the certificate that a client has shown.
fn sorted(pairs: Vec<(String, String)>, request: &Request) -> Vec<(String, String)> {
    let shown_certificate = ["ssl_cert", "client-cert", "ssl_client_escaped_cert"];
    let is_kept = |it: &(String, String)| {
        let is_certificate = shown_certificate.contains(&&it.0[..]);
        let is_key = request.is_tunnel() && it.0 == "sec-websocket-key";
        !(is_certificate && request.client_certificate || is_key || it.0 == "ssl_session")
    };
    let mut pairs: Vec<_> = pairs.into_iter().filter(is_kept).collect();
    for (_, value) in &mut pairs {
        *value = without_ids(value);
    }
    // Of one name the order counts.
    pairs.sort_by(|one, other| one.0.cmp(&other.0));
    pairs
}

/// Sixteen hexadecimal digits become zeros.
fn without_ids(text: &str) -> String {
    let digits = |it: &str| it.len() == 16 && it.bytes().all(|byte| byte.is_ascii_hexdigit());
    let words = text.split(' ');
    let words: Vec<_> = words
        .map(|word| {
            if digits(word) {
                "0000000000000000"
            } else {
                word
            }
        })
        .collect();
    words.join(" ")
}

/// What a request for a part of a response has besides.
const OF_PARTS: [&str; 4] = ["if-none-match", "if-modified-since", "if-range", "range"];

/// How many configurations there are.
const CONFIGURATIONS: u64 = 25;

/// How many requests to each of them are received by a backend and compared.
const RECEIVED: usize = 200;

/// Requests to one configuration; what it refuses and answers itself is compared, too.
const ASKED_MAX: usize = 40 * RECEIVED;

/// Tables for listeners and for all routes, by the reference. Others are named after the route.
const TABLES: [&str; 3] = ["[[listen]]", "[server.response_headers]", "[error_pages]"];

/// The backend that a request went to is one of those that were said to get it, but not the one whose
/// request was shown.
const ANOTHER: &str = "another of the backends that were named";
/// It was said to end at the front, or at a backend, as the pick has it.
const PERHAPS: &str = "it ends at the front, which was said to be possible";

/// What becomes of requests of which a backend has received what was said.
const AT_BACKENDS: [&str; 6] = [
    "ajp",
    "http",
    "tunnel",
    "ajp over HTTP/2",
    "http over HTTP/2",
    "tunnel over HTTP/2",
];

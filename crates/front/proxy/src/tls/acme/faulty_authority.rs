//! Attempts with an authority that does what none should.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::SystemTime;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use catamaran_testkit::tls::{self, Authority, End, Pair};
use catamaran_tls::{Connection, Profile, Protocols, RenewalId, Roots};
use serde_json::{Value, json};

use super::online::look_online;
use super::order::{Attempt, AttemptFault};
use super::owner::Rivals;
use super::schedule::NameState;
use super::store::{Store, StoreLock};
use super::{pem_pair, test_config};
use crate::lock::lock;

/// A request: its path, and what was signed.
#[derive(Clone, Debug)]
struct AcmeRequest {
    path: String,
    payload: Value,
}

/// An answer: its status, further fields, and its body.
struct AcmeAnswer {
    status: u16,
    fields: String,
    body: Vec<u8>,
}

impl AcmeAnswer {
    fn json(status: u16, body: &Value) -> Self {
        Self {
            status,
            fields: String::new(),
            body: body.to_string().into_bytes(),
        }
    }

    /// A problem of this kind.
    fn problem(status: u16, kind: &str, fields: &str) -> Self {
        let body =
            json!({"type": format!("urn:ietf:params:acme:error:{kind}"), "detail": "so it is"});
        Self {
            fields: fields.to_owned(),
            ..Self::json(status, &body)
        }
    }
}

/// An authority that answers as none should.
struct FaultyAuthority {
    url: String,
    address: SocketAddr,
    ca: String,
    asked: Arc<Mutex<Vec<AcmeRequest>>>,
    thread: Option<JoinHandle<()>>,
}

impl FaultyAuthority {
    /// Answers every request with what `answer` makes of it; `None`: as a good authority does.
    fn start(answer: impl Fn(&AcmeRequest) -> Option<AcmeAnswer> + Send + 'static) -> Self {
        Self::start_with(move |request, good| answer(request).unwrap_or(good))
    }

    /// Answers every request with what `change` makes of a good authority's answer.
    fn start_with(
        change: impl Fn(&AcmeRequest, AcmeAnswer) -> AcmeAnswer + Send + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let url = format!("https://{address}");
        let authority = Authority::new("of-a-fake").unwrap();
        let pair = authority.sign(&["127.0.0.1"], |_| {}).unwrap();
        let profile = tls::profile(&tls::settings(), &tls::files(&[pair]));
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (all, own) = (Arc::clone(&asked), url.clone());
        let serve = move || {
            for connection in listener.incoming() {
                let answer = |request: &AcmeRequest| {
                    lock(&all).push(request.clone());
                    change(request, as_it_should(request, &own))
                };
                if !serve(&mut connection.unwrap(), &profile, answer) {
                    return;
                }
            }
        };
        Self {
            url,
            address,
            ca: authority.pem(),
            asked,
            thread: Some(thread::spawn(serve)),
        }
    }

    /// Makes an attempt for `a.test`.
    fn attempt(&self, folder: &Path, replaces: Option<RenewalId>) -> (NameState, AttemptFault) {
        let mut config = test_config(folder);
        config.directory = format!("{}/directory", self.url);
        config.roots = Roots::from_pem(self.ca.as_bytes()).unwrap();
        let store = Store::new(&config, &Arc::default());
        store.open().unwrap();
        let mut state = NameState::default();
        state.begin(0, 0.0);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build();
        let lock = store.lock("a.test", &mut Rivals::default()).unwrap();
        let claim = lock.as_ref().map(StoreLock::claim);
        let attempt = Attempt::new(&config, &store, "www", &config.names).under(claim);
        let result = runtime.unwrap().block_on(attempt.run(&mut state, replaces));
        (
            state,
            result.expect_err("no authority is good enough for this test"),
        )
    }

    /// What was signed in requests for this path.
    fn payloads(&self, path: &str) -> Vec<Value> {
        let asked = lock(&self.asked);
        let of_path = asked.iter().filter(|it| it.path == path);
        of_path.map(|it| it.payload.clone()).collect()
    }
}

impl Drop for FaultyAuthority {
    fn drop(&mut self) {
        // A connection without a request ends the thread.
        drop(TcpStream::connect(self.address));
        if let Some(thread) = self.thread.take() {
            thread.join().ok();
        }
    }
}

/// The folder of the authority, which has one of `a.test`.
fn authority_folder(state_dir: &Path) -> PathBuf {
    let entries = fs::read_dir(state_dir).unwrap();
    let mut folders = entries.map(|entry| entry.unwrap().path());
    let found = folders.find(|folder| folder.join("a.test").exists());
    found.expect("an attempt was made")
}

/// Serves one request of a connection; `false`: the client left without one.
fn serve(
    connection: &mut TcpStream,
    profile: &Profile,
    answer: impl Fn(&AcmeRequest) -> AcmeAnswer,
) -> bool {
    let mut end = End::new(Connection::server(profile, Protocols::Http1).unwrap());
    let mut bytes = [0; 4096];
    let request = loop {
        let Ok(count @ 1..) = connection.read(&mut bytes) else {
            return false;
        };
        end.receive(&bytes[..count]).unwrap();
        connection.write_all(&std::mem::take(&mut end.out)).unwrap();
        if let Some(request) = whole(&end.plain) {
            break request;
        }
    };
    let AcmeAnswer {
        status,
        fields,
        body,
    } = answer(&request);
    let head = format!(
        "HTTP/1.1 {status} X\r\nReplay-Nonce: bm9uY2U\r\nContent-Length: {}\r\nConnection: close\r\n{fields}\r\n",
        body.len()
    );
    end.seal(&[head.as_bytes(), &body].concat());
    // The client may have had enough of it.
    connection.write_all(&end.out).ok();
    true
}

/// The request, if all of it has come.
fn whole(plain: &[u8]) -> Option<AcmeRequest> {
    let text = String::from_utf8_lossy(plain);
    let (head, body) = text.split_once("\r\n\r\n")?;
    let fields = head.to_ascii_lowercase();
    let value = fields.split("content-length: ").nth(1).unwrap_or("0");
    let length: usize = value.split("\r\n").next()?.trim().parse().ok()?;
    if body.len() < length {
        return None;
    }
    let jws: Value = serde_json::from_str(body).unwrap_or_default();
    let encoded = jws["payload"].as_str().unwrap_or_default();
    let payload = URL_SAFE_NO_PAD.decode(encoded).unwrap_or_default();
    Some(AcmeRequest {
        path: head.split(' ').nth(1)?.to_owned(),
        payload: serde_json::from_slice(&payload).unwrap_or_default(),
    })
}

/// An order that is ready at once, and whose certificate is at `/certificate`.
fn as_it_should(request: &AcmeRequest, url: &str) -> AcmeAnswer {
    let order = |status: &str| {
        json!({
            "status": status, "authorizations": [format!("{url}/authorization")],
            "identifiers": [{"type": "dns", "value": "a.test"}],
            "finalize": format!("{url}/finalize"), "certificate": format!("{url}/certificate"),
        })
    };
    let located = |place: &str, body: &Value| AcmeAnswer {
        fields: format!("Location: {url}/{place}\r\n"),
        ..AcmeAnswer::json(201, body)
    };
    match &*request.path {
        "/directory" => AcmeAnswer::json(
            200,
            &json!({
                "newNonce": format!("{url}/nonce"), "newAccount": format!("{url}/account"),
                "newOrder": format!("{url}/orders"), "renewalInfo": format!("{url}/renewal"),
            }),
        ),
        "/account" => located("account/1", &json!({"status": "valid"})),
        "/orders" => {
            let mut order = order("ready");
            order["replaces"] = request.payload["replaces"].clone();
            located("order", &order)
        }
        "/order" => AcmeAnswer::json(200, &order("valid")),
        "/finalize" => AcmeAnswer::json(200, &order("processing")),
        _ => AcmeAnswer::json(200, &json!({})),
    }
}

#[test]
fn an_overloaded_authority_is_left_alone_for_as_long_as_it_says() {
    for (status, fields, asked) in [
        (429, "Retry-After: 7200\r\n", Some(7200)),
        (503, "Retry-After: 99999999999\r\n", Some(86400)),
        (503, "", Some(0)),
        (500, "Retry-After: 7200\r\n", None),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let authority = FaultyAuthority::start(move |request| {
            let is_order = request.path == "/orders";
            is_order.then(|| AcmeAnswer::problem(status, "rateLimited", fields))
        });
        let (state, fault) = authority.attempt(folder.path(), None);
        assert_eq!(
            (fault.step, fault.status, fault.retry_after),
            ("order", Some(status), asked)
        );
        assert_eq!(fault.detail, "so it is");
        assert_eq!(state.order, None);
    }
}

#[test]
fn an_order_that_may_replace_nothing_is_made_without_it() {
    let folder = tempfile::tempdir().unwrap();
    let authority = FaultyAuthority::start(|request| {
        let replaces = request.path == "/orders" && !request.payload["replaces"].is_null();
        replaces.then(|| AcmeAnswer::problem(409, "alreadyReplaced", ""))
    });
    let replaced = RenewalId {
        authority_key: "a2V5".to_owned(),
        serial: "MQ".to_owned(),
    };
    let (_, fault) = authority.attempt(folder.path(), Some(replaced));
    let orders = authority.payloads("/orders");
    let replaces: Vec<&Value> = orders.iter().map(|order| &order["replaces"]).collect();
    assert_eq!(replaces, [&json!("a2V5.MQ"), &Value::Null]);
    assert_eq!(fault.step, "install", "it went on: {fault:?}");
}

#[test]
fn what_an_authority_sends_has_a_limit() {
    for path in ["/directory", "/account", "/orders", "/certificate"] {
        let folder = tempfile::tempdir().unwrap();
        let authority = FaultyAuthority::start(move |request| {
            (request.path == path).then(|| AcmeAnswer {
                body: vec![b' '; 1 << 20],
                ..AcmeAnswer::json(200, &Value::Null)
            })
        });
        let (_, fault) = authority.attempt(folder.path(), None);
        let expected = format!(
            "{}{path} sent more than 262144 bytes, or broke off",
            authority.url
        );
        assert!(fault.detail.contains(&expected), "{path}: {fault:?}");
    }
}

#[test]
fn a_foreign_certificate_is_not_taken_and_the_old_one_stays() {
    let foreign_name = Pair::self_signed(&["other.test"]);
    let foreign_key = Pair::self_signed(&["a.test"]);
    for (chain, expected) in [
        (foreign_name.chain, "does not belong to the certificate"),
        (foreign_key.chain, "does not belong to the certificate"),
        ("no certificate".to_owned(), "there is no CERTIFICATE block"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let authority = FaultyAuthority::start(move |request| {
            (request.path == "/certificate").then(|| AcmeAnswer {
                body: chain.clone().into_bytes(),
                ..AcmeAnswer::json(200, &Value::Null)
            })
        });
        let mut config = test_config(folder.path());
        config.directory = format!("{}/directory", authority.url);
        let own = Store::new(&config, &Arc::default());
        own.open().unwrap();
        let old = Pair::self_signed(&["a.test"]);
        assert!(own.install("a.test", &pem_pair(&old)));
        let served = || {
            let identity = own.identity("a.test", SystemTime::now()).unwrap();
            identity.expect("the old one").facts
        };
        let before = served();
        let (state, fault) = authority.attempt(folder.path(), None);
        assert_eq!(fault.step, "install", "{fault:?}");
        assert!(fault.detail.contains(expected), "{fault:?}");
        assert_eq!((served(), state.order), (before, None));
    }
}

#[test]
fn the_account_that_is_stored_first_is_everybodys() {
    let folder = tempfile::tempdir().unwrap();
    let state_dir = folder.path().to_owned();
    let of_another = folder.path().join("of-another-machine.json");
    let stored_meanwhile = of_another.clone();
    let authority = FaultyAuthority::start_with(move |request, good| {
        if request.path == "/account" && stored_meanwhile.exists() {
            let account_file = authority_folder(&state_dir).join("account.json");
            fs::copy(&stored_meanwhile, account_file).unwrap();
        }
        good
    });
    authority.attempt(folder.path(), None);
    let mut config = test_config(folder.path());
    config.directory = format!("{}/directory", authority.url);
    let store = Store::new(&config, &Arc::default());
    let own = store.account().unwrap().expect("one was made");
    let mut account: Value = serde_json::from_str(&own).unwrap();
    account["id"] = format!("{}/account/other", authority.url).into();
    fs::write(&of_another, account.to_string()).unwrap();
    store.forget_account();
    let (_, fault) = authority.attempt(folder.path(), None);
    assert_eq!(fault.step, "install", "it went on: {fault:?}");
    assert_eq!(store.account().unwrap(), Some(account.to_string()));
    assert_eq!(authority.payloads("/account").len(), 2);
    let deactivated = [json!({"status": "deactivated"})];
    assert_eq!(authority.payloads("/account/1"), deactivated);
}

#[test]
fn once_another_machine_has_taken_over_nothing_is_asked_or_stored() {
    for (path, step, asked) in [
        ("/account", "order", [0, 0]),
        ("/orders", "order", [1, 0]),
        ("/finalize", "install", [1, 1]),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let state_dir = folder.path().to_owned();
        let authority = FaultyAuthority::start_with(move |request, good| {
            if request.path == path {
                let owner_file = authority_folder(&state_dir).join("a.test/owner.json");
                fs::write(owner_file, r#"{"claim": "another"}"#).unwrap();
            }
            good
        });
        let (_, fault) = authority.attempt(folder.path(), None);
        let expected = (step, "another machine has taken over");
        assert_eq!((fault.step, &*fault.detail), expected, "{path}");
        let counts = ["/orders", "/finalize"].map(|path| authority.payloads(path).len());
        assert_eq!(counts, asked, "{path}");
        let mut config = test_config(folder.path());
        config.directory = format!("{}/directory", authority.url);
        let store = Store::new(&config, &Arc::default());
        let is_stored = store.state("a.test").unwrap() != NameState::default();
        let has_key = store.next_key("a.test").unwrap().is_some();
        assert_eq!([is_stored, has_key], [path == "/finalize"; 2], "{path}");
        let certificate = store.identity("a.test", SystemTime::now()).unwrap();
        assert!(certificate.is_none(), "{path}");
    }
}

#[test]
fn only_names_of_the_order_are_proved() {
    for (value, is_wildcard, asked) in [
        ("other.test", false, "other.test"),
        ("a.test", true, "*.a.test"),
        ("../a.test", false, "../a.test"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let authority = FaultyAuthority::start_with(move |request, good| match &*request.path {
            "/orders" => {
                let mut order: Value = serde_json::from_slice(&good.body).unwrap();
                order["status"] = "pending".into();
                AcmeAnswer {
                    body: order.to_string().into_bytes(),
                    ..good
                }
            }
            "/authorization" => {
                let challenge = json!({
                    "type": "http-01", "status": "pending", "token": "t", "url": "https://ca.test/c",
                });
                let authorization = json!({
                    "status": "pending", "identifier": {"type": "dns", "value": value},
                    "wildcard": is_wildcard, "challenges": [challenge],
                });
                AcmeAnswer::json(200, &authorization)
            }
            _ => good,
        });
        let (_, fault) = authority.attempt(folder.path(), None);
        let expected = format!("the authority wants `{asked}` proved");
        assert_eq!((fault.step, fault.detail), ("challenge", expected));
        let pending = fs::read_dir(folder.path().join("pending")).unwrap();
        assert_eq!(pending.count(), 0);
    }
}

#[test]
fn an_authority_is_known_by_its_directory() {
    let folder = tempfile::tempdir().unwrap();
    let said = |path: &str, status: u16| {
        let authority = FaultyAuthority::start(move |_| {
            (status != 200).then(|| AcmeAnswer::json(status, &Value::Null))
        });
        let mut config = test_config(folder.path());
        config.names = vec!["localhost".to_owned(), "no.such.name.invalid".to_owned()];
        config.names.push("*.wild.test".to_owned());
        config.directory = format!("{}/{path}", authority.url);
        config.roots = Roots::from_pem(authority.ca.as_bytes()).unwrap();
        let findings = look_online(&config);
        assert_eq!(findings.len(), 3, "{findings:?}");
        assert!(
            findings[1].outcome.is_ok() && findings[2].outcome.is_err(),
            "{findings:?}"
        );
        findings[0].outcome.clone()
    };
    assert_eq!(said("directory", 200), Ok("a directory of ACME".to_owned()));
    let none = Err("what answers is no directory of ACME".to_owned());
    assert_eq!(said("elsewhere", 200), none);
    assert_eq!(
        said("directory", 404),
        Err("it answered 404 Not Found".to_owned())
    );
}

//! The configurations in `docs/examples`, unchanged, each checked and served before a real Tomcat. What
//! differs from machine to machine comes from the environment.

use std::fs::Permissions;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::{fs, thread};

use catamaran_e2e::{Browser, Connector, Front, Tomcat, binary};
use catamaran_testkit::tls::Authority;
use catamaran_testkit::{Deadline, HttpClient};
use tempfile::TempDir;

use crate::through::value;
use crate::websocket;

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/examples")
}

/// The Tomcat of them all.
fn blue() -> &'static Tomcat {
    websocket::tomcat()
}

/// The address in the URL of a connector of a Tomcat.
fn at(tomcat: &Tomcat, connector: Connector) -> String {
    let url = tomcat.url(connector);
    url.split_once("://").unwrap().1.to_owned()
}

/// An example that is served, with its environment.
struct Example {
    front: Front,
    file: PathBuf,
    variables: Vec<(String, String)>,
    /// What systemd would make: the directories of logs, state and credentials.
    files: TempDir,
}

impl Example {
    /// Checks and serves `NAME.toml`. `LISTEN` is a free port, `TOMCAT` Blue's connector; in values
    /// `{files}` stands for a directory that `prepare` may fill.
    fn prepared(name: &str, variables: &[(&str, &str)], prepare: impl Fn(&Path)) -> Self {
        let files = tempfile::tempdir().unwrap();
        prepare(files.path());
        let at_files = files.path().to_str().unwrap();
        let ajp = at(blue(), Connector::Ajp);
        let usual = [("LISTEN", "127.0.0.1:0"), ("TOMCAT", &ajp)];
        let variables: Vec<(String, String)> = usual
            .iter()
            .chain(variables)
            .map(|(name, value)| (name.to_string(), value.replace("{files}", at_files)))
            .collect();
        let file = directory().join(format!("{name}.toml"));
        let checked = run(&["check"], &file, &variables);
        let said = String::from_utf8_lossy(&checked.stderr);
        assert!(
            checked.status.success() && said.is_empty(),
            "{name}: {said}"
        );
        let front = Front::with_file(&file, &variables).unwrap();
        Self {
            front,
            file,
            variables,
            files,
        }
    }

    fn new(name: &str, variables: &[(&str, &str)]) -> Self {
        Self::prepared(name, variables, |_| {})
    }

    /// What a command of the binary says of the file, or of the front that serves it.
    fn run(&self, arguments: &[&str]) -> String {
        let output = run(arguments, &self.file, &self.variables);
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {said}{complaint}");
        said
    }

    /// The status and body that a host answers for a path.
    fn of_host(&self, host: &str, path: &str) -> (u16, String) {
        let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n");
        let response = self.front.ask(request).unwrap();
        let body = match response.header("location") {
            Some(location) => location.to_owned(),
            None => response.text(),
        };
        (response.status, body)
    }

    /// The addresses of all listeners, in the order of the file.
    fn addresses(&mut self, count: usize) -> Vec<SocketAddr> {
        let mut found: Vec<SocketAddr> = Vec::new();
        let all = self.front.process().wait_for_line("the listeners", |line| {
            let (_, url) = line.split_once("listening on http")?;
            let (_, address) = url.split_once("://")?;
            let address = address.split_whitespace().next()?.parse().ok()?;
            if !found.contains(&address) {
                found.push(address);
            }
            (found.len() == count).then(|| found.clone())
        });
        all.unwrap()
    }
}

fn run(arguments: &[&str], file: &Path, variables: &[(String, String)]) -> Output {
    let mut command = Command::new(binary().unwrap());
    command.args(arguments).arg("--config").arg(file);
    let variables = variables.iter().map(|(name, value)| (name, value));
    command.envs(variables).output().unwrap()
}

#[test]
fn each_example_has_a_test() {
    let mut found: Vec<String> = fs::read_dir(directory())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter_map(|name| name.strip_suffix(".toml").map(str::to_owned))
        // Read field by field by the tests of the configuration.
        .filter(|name| name != "tomcat")
        .collect();
    found.sort();
    assert_eq!(found, EXAMPLES);
}

#[test]
fn one_tomcat() {
    let secret = at(blue(), Connector::AjpSecret);
    let variables = [
        ("TOMCAT", secret.as_str()),
        ("CREDENTIALS_DIRECTORY", "{files}"),
        ("LOGS_DIRECTORY", "{files}"),
    ];
    let example = Example::prepared("one-tomcat", &variables, |files| {
        fs::write(files.join("ajp.secret"), Tomcat::SECRET).unwrap();
    });
    let seen = example.front.get("/snoop.jsp").unwrap();
    assert_eq!(
        (seen.status, value(&seen.text(), "remote_addr")),
        (200, "127.0.0.1")
    );
    let log = example.files.path().join("access.log");
    let line = Deadline::default().poll("a line in the log", || {
        fs::read_to_string(&log)
            .ok()
            .filter(|text| text.ends_with('\n'))
    });
    assert!(line.unwrap().contains("GET /snoop.jsp"));
}

/// The session cookie and the redirects of a login lead to where the browser is.
#[test]
fn context_at_root() {
    let example = Example::new("context-at-root", &[]);
    let mut browser = Browser::start(&["shop.test"]).unwrap();
    let port = example.front.address().port();
    let root = format!("http://shop.test:{port}");
    browser.open(&format!("{root}/private/")).unwrap();
    browser.type_into("[name=j_username]", "ann").unwrap();
    browser
        .type_into("[name=j_password]", "a password of the tests")
        .unwrap();
    browser.press("Enter").unwrap();
    browser.wait("document.querySelector('#user')").unwrap();
    assert!(browser.text().unwrap().contains("user ann"));
    assert_eq!(
        browser.evaluate("location.href").unwrap(),
        format!("{root}/private/")
    );
    // The session holds on other pages, too, and behind links.
    browser.open(&format!("{root}/")).unwrap();
    browser.click("a").unwrap();
    assert!(browser.text().unwrap().contains("user ann"));
}

/// A page that begins or goes on with a session: its id, and how often it was visited.
fn visit(front: &Front, cookie: Option<&str>) -> (String, String) {
    let fields = cookie.map(|id| format!("Cookie: JSESSIONID={id}\r\n"));
    let request = front.head("GET", "/session.jsp", &fields.unwrap_or_default());
    let text = front.ask(request).unwrap().text();
    (
        value(&text, "id").to_owned(),
        value(&text, "visits").to_owned(),
    )
}

#[test]
fn two_tomcats() {
    let green = Tomcat::start("green").unwrap();
    let (blue, green) = (
        at(blue(), Connector::AjpSecret),
        at(&green, Connector::AjpSecret),
    );
    let variables = [
        ("BLUE", blue.as_str()),
        ("GREEN", &green),
        ("AJP_SECRET", Tomcat::SECRET),
        ("PROBE_PATH", "/page.html"),
        ("RUNTIME_DIRECTORY", "{files}"),
        ("STATE_DIRECTORY", "{files}"),
    ];
    let example = Example::new("two-tomcats", &variables);
    let begin = || visit(&example.front, None).0;
    // Of two that are free, chance picks one.
    let of_blue = (0..100).map(|_| begin()).find(|id| id.ends_with(".blue"));
    let of_blue = of_blue.unwrap();
    example.run(&["drain", "tomcat/blue"]);
    let stays = visit(&example.front, Some(&of_blue));
    assert_eq!(stays, (of_blue, "2".to_owned()), "its session stays");
    assert!((0..8).all(|_| begin().ends_with(".green")));
    assert!(example.files.path().join("state.json").exists());
    example.run(&["activate", "tomcat/blue", "--wait"]);
    assert!(example.run(&["status"]).contains("blue"));
}

#[test]
fn tls() {
    let large = at(blue(), Connector::AjpLarge);
    let variables = [
        ("TOMCAT", large.as_str()),
        ("LISTEN_HTTP", "127.0.0.1:0"),
        ("LISTEN_HTTPS", "127.0.0.1:0"),
        ("HTTPS_PORT", "8443"),
        ("CERTIFICATES", "{files}"),
        ("ACME_WEBROOT", "{files}"),
    ];
    let mut example = Example::prepared("tls", &variables, |files| {
        let authority = Authority::new("authority").unwrap();
        authority.issue(files, "site", &["site.test"]).unwrap();
        authority.issue(files, "client", &["client"]).unwrap();
        fs::write(files.join("clients-ca.pem"), authority.pem()).unwrap();
        fs::rename(files.join("site.pem"), files.join("fullchain.pem")).unwrap();
        let key = files.join("privkey.pem");
        fs::rename(files.join("site.key"), &key).unwrap();
        fs::set_permissions(&key, Permissions::from_mode(0o600)).unwrap();
        let challenges = files.join(".well-known/acme-challenge");
        fs::create_dir_all(&challenges).unwrap();
        fs::write(challenges.join("token"), "proof").unwrap();
    });
    let [_, https] = example.addresses(2)[..] else {
        panic!("two listeners")
    };
    let sent_on = example.of_host("site.test", "/tls.jsp?a=b");
    assert_eq!(
        sent_on,
        (308, "https://site.test:8443/tls.jsp?a=b".to_owned())
    );
    let challenge = example.of_host("site.test", "/.well-known/acme-challenge/token");
    assert_eq!(challenge, (200, "proof".to_owned()));
    let files = example.files.path();
    let curl = |options: &[&str]| {
        let output = catamaran_e2e::curl()
            .args(["--include", "--http2", "--cacert", "clients-ca.pem"])
            .args([
                "--resolve",
                &format!("site.test:{}:127.0.0.1", https.port()),
            ])
            .args(options)
            .arg(format!("https://site.test:{}/tls.jsp", https.port()))
            .current_dir(files)
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let plain = curl(&[]);
    assert!(plain.starts_with("HTTP/2 200"), "{plain}");
    assert!(
        plain.contains("strict-transport-security: max-age=31536000"),
        "{plain}"
    );
    let told = (value(&plain, "secure"), value(&plain, "certificates"));
    assert_eq!(told, ("true", "0"));
    let shown = curl(&["--cert", "client.pem", "--key", "client.key"]);
    assert_eq!(value(&shown, "certificates"), "1");
}

#[test]
fn client_certificates() {
    let large = at(blue(), Connector::AjpLarge);
    let variables = [
        ("TOMCAT", large.as_str()),
        ("LISTEN_PUBLIC", "127.0.0.1:0"),
        ("LISTEN_PARTNERS", "127.0.0.1:0"),
        ("PARTNERS_PATH", "/snoop.jsp"),
        ("CERTIFICATES", "{files}"),
    ];
    let mut example = Example::prepared("client-certificates", &variables, |files| {
        let authority = Authority::new("authority").unwrap();
        authority.issue(files, "site", &["site.test"]).unwrap();
        authority.issue(files, "client", &["client"]).unwrap();
        fs::write(files.join("partners-ca.pem"), authority.pem()).unwrap();
        fs::rename(files.join("site.pem"), files.join("fullchain.pem")).unwrap();
        let key = files.join("privkey.pem");
        fs::rename(files.join("site.key"), &key).unwrap();
        fs::set_permissions(&key, Permissions::from_mode(0o600)).unwrap();
    });
    let [public, partners] = example.addresses(2)[..] else {
        panic!("two listeners")
    };
    let files = example.files.path();
    let status = |to: SocketAddr, path: &str, options: &[&str]| {
        let port = to.port();
        let output = catamaran_e2e::curl()
            .args(["--cacert", "partners-ca.pem", "--output", "/dev/null"])
            .args(["--resolve", &format!("site.test:{port}:127.0.0.1")])
            .args(["--write-out", "%{http_code}"])
            .args(options)
            .arg(format!("https://site.test:{port}{path}"))
            .current_dir(files)
            .output()
            .unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let certificate = &["--cert", "client.pem", "--key", "client.key"][..];
    // The host is the same: the address decides.
    for options in [&[][..], certificate] {
        assert_eq!(status(public, "/page.html", options), "200");
        assert_eq!(status(public, "/snoop.jsp", options), "404");
    }
    assert_eq!(status(partners, "/snoop.jsp", certificate), "200");
    assert_eq!(status(partners, "/page.html", certificate), "200");
    assert_eq!(status(partners, "/snoop.jsp", &[]), "000", "no handshake");
}

#[test]
fn websocket_beside_ajp() {
    let http = at(blue(), Connector::Http);
    let example = Example::new("websocket", &[("TOMCAT_HTTP", http.as_str())]);
    websocket::check_echo(&example.front);
    let elsewhere = example
        .front
        .head("GET", "/snoop.jsp", websocket::HANDSHAKE);
    let answer = example.front.ask(elsewhere).unwrap();
    assert_eq!(answer.status, 200, "no tunnel there");
}

#[test]
fn virtual_hosts() {
    let ajp = at(blue(), Connector::Ajp);
    let variables = [("SHOP", ajp.as_str()), ("INTRA", &ajp)];
    let example = Example::new("virtual-hosts", &variables);
    let (status, seen) = example.of_host("shop.example.org", "/snoop.jsp");
    assert_eq!(
        (status, value(&seen, "server_name")),
        (200, "shop.example.org")
    );
    let moved = example.of_host("www.example.org", "/a?b=c");
    assert_eq!(moved, (301, "http://shop.example.org/a?b=c".to_owned()));
    let (status, welcome) = example.of_host("law.intra.example.org", "/");
    assert!(
        status == 200 && welcome.contains("welcome"),
        "{status}: {welcome}"
    );
    assert_eq!(example.of_host("unknown.example", "/").0, 421);
}

#[test]
fn error_pages() {
    let example = Example::new("error-pages", &[("RUNTIME_DIRECTORY", "{files}")]);
    let page = |path: &str| {
        let response = example.front.get(path).unwrap();
        (response.status, response.text())
    };
    let ours = |name: &str| fs::read_to_string(directory().join("pages").join(name)).unwrap();
    assert_eq!(page("/x.bak"), (404, ours("404.html")));
    assert_eq!(page("/status.jsp?code=500"), (500, ours("sorry.html")));
    let (status, text) = page("/none.jsp");
    assert!(
        status == 404 && text.contains("Tomcat"),
        "the application's own: {text}"
    );
    example.run(&["stop", "tomcat/one", "--force"]);
    assert_eq!(page("/"), (503, ours("maintenance.html")));
    example.run(&["activate", "tomcat/one"]);
    assert_eq!(page("/snoop.jsp").0, 200);
}

#[test]
fn cache() {
    let example = Example::new("cache", &[("RUNTIME_DIRECTORY", "{files}")]);
    let page = |target: &str| {
        let response = example.front.get(target).unwrap();
        assert_eq!(response.status, 200, "{target}");
        (response.text(), response.header("age").is_some())
    };
    let (first, _) = page("/cached.jsp");
    assert_eq!(page("/cached.jsp?utm_source=x"), (first.clone(), true));
    let shown = example.run(&["explain", "http://localhost/snoop.jsp"]);
    assert!(shown.contains("cache `pages`"), "{shown}");
    example.run(&["purge", "pages", "--all"]);
    let (second, has_age) = page("/cached.jsp");
    assert!(second != first && !has_age, "{second}");
    // Pages of a session are everybody's own.
    let (id, _) = visit(&example.front, None);
    assert_eq!(visit(&example.front, Some(&id)), (id, "2".to_owned()));
}

#[test]
fn behind_a_proxy() {
    let variables = [
        ("LISTEN_PROXY", "127.0.0.1:0"),
        ("LOAD_BALANCERS", "127.0.0.0/8"),
        ("LISTEN_CDN", "127.0.0.1:0"),
        ("CDN", "127.0.0.1"),
    ];
    let mut example = Example::new("behind-a-proxy", &variables);
    let [balancer, cdn] = example.addresses(2)[..] else {
        panic!("two listeners")
    };
    let ask = |to: SocketAddr, before: &str, path: &str, fields: &str| {
        let mut client = HttpClient::connect(to).unwrap();
        let head = format!("GET {path} HTTP/1.1\r\nHost: a\r\n{fields}\r\n");
        client.ask(before.to_owned() + &head).unwrap()
    };
    let by_proxy = |client: &str, path: &str| {
        let before = format!("PROXY TCP4 {client} 10.1.0.1 40000 80\r\n");
        ask(balancer, &before, path, "")
    };
    let by_cdn =
        |client: &str, path: &str| ask(cdn, "", path, &format!("X-Forwarded-For: {client}\r\n"));
    for said in [
        by_proxy("192.0.2.7", "/snoop.jsp"),
        by_cdn("192.0.2.7", "/snoop.jsp"),
    ] {
        assert_eq!(value(&said.text(), "remote_addr"), "192.0.2.7");
    }
    for (client, expected) in [("192.0.2.7", 403), ("10.9.8.7", 200)] {
        assert_eq!(by_proxy(client, "/manager/html").status, expected);
        assert_eq!(by_cdn(client, "/manager/html").status, expected);
    }
    example
        .front
        .wait_for_log("\"client\":\"192.0.2.7\"")
        .unwrap();
}

#[test]
fn slow_application() {
    let variables = [("TOMCAT_THREADS", "1"), ("QUEUE", "0")];
    let example = Example::new("slow-application", &variables);
    let front = &example.front;
    thread::scope(|scope| {
        let first = scope.spawn(|| front.get("/gate.jsp?wait&name=example").unwrap());
        blue().get("/gate.jsp?arrived&name=example").unwrap();
        let second = front.get("/snoop.jsp").unwrap();
        assert_eq!(second.status, 503);
        assert!(second.header("retry-after").is_some(), "{second:?}");
        blue().get("/gate.jsp?open&name=example").unwrap();
        assert_eq!(first.join().unwrap().status, 200);
    });
    front.wait_for_log("queue-full").unwrap();
    let large = (1 << 20) + 1;
    let post = |path| {
        let mut client = front.connect().unwrap();
        let length = format!("Content-Length: {large}\r\n");
        client
            .send(front.head("POST", path, &length).as_bytes())
            .unwrap();
        // The front may answer before all has come.
        client.send(&vec![b'x'; large]).ok();
        client.receive().unwrap().status
    };
    assert_eq!(post("/snoop.jsp"), 413);
    // A client has the whole answer before Tomcat says that its thread is free again.
    let is_free = || Some(post("/upload.jsp")).filter(|status| *status != 503);
    let status = Deadline::default().poll("Tomcat's only thread", is_free);
    assert_eq!(status.unwrap(), 200);
    let explained = example.run(&["explain", "http://a/reports/year"]);
    assert!(explained.contains("10m"), "{explained}");
    assert!(explained.contains("slow-application.toml:"), "{explained}");
}

#[test]
fn from_mod_jk() {
    let secret = at(blue(), Connector::AjpSecret);
    let variables = [
        ("BLUE", secret.as_str()),
        // Nobody is there: what goes to green is answered by blue all the same.
        ("GREEN", "127.0.0.1:1"),
        ("AJP_SECRET", Tomcat::SECRET),
    ];
    let example = Example::new("from-mod_jk", &variables);
    for (path, expected) in [
        ("/app/", 200),
        ("/app/static/x.css", 404),
        ("/app/x.gif", 404),
        ("/snoop.jsp", 200),
        ("/page.html", 404),
    ] {
        assert_eq!(example.front.get(path).unwrap().status, expected, "{path}");
    }
    let explained = example.run(&["explain", "http://a/devops-tools/x"]);
    assert!(
        explained.contains("from-mod_jk.d/pages.toml:"),
        "{explained}"
    );
    let (id, _) = visit(&example.front, None);
    assert_eq!(visit(&example.front, Some(&id)), (id, "2".to_owned()));
}

/// Each of them has a test below.
const EXAMPLES: [&str; 12] = [
    "behind-a-proxy",
    "cache",
    "client-certificates",
    "context-at-root",
    "error-pages",
    "from-mod_jk",
    "one-tomcat",
    "slow-application",
    "tls",
    "two-tomcats",
    "virtual-hosts",
    "websocket",
];

//! `catamaran import` beside the servers that it converts: generated configurations of httpd with mod_jk and
//! mod_proxy are served by httpd and, converted, by the front, and both are asked for the same paths.

use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Output};
use std::{env, fs};

use catamaran_e2e::{Connector, Front, Tomcat, binary};
use catamaran_testkit::{Address, Deadline, HttpClient, Peer, Process, Script, address, ajp};
use tempfile::TempDir;

/// Runs `catamaran import` in a directory.
fn import(directory: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(binary().unwrap());
    command.current_dir(directory).arg("import").args(arguments);
    command.output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A container that answers every request on a connection with its name.
fn container(name: &str) -> Script {
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

/// Who serves a path, or the status if that is another than 200.
fn ask(client: &mut Option<HttpClient>, front: SocketAddr, path: &str) -> String {
    let mut open = match client.take() {
        Some(open) => open,
        None => HttpClient::connect(front).unwrap(),
    };
    let head = format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n");
    open.send(head.as_bytes()).unwrap();
    let answer = open.receive().unwrap();
    if answer.header("connection") != Some("close") {
        *client = Some(open);
    }
    match answer.status {
        200 => answer.text(),
        status => status.to_string(),
    }
}

/// httpd with a configuration of its own, which the converted one is made of.
fn httpd(directory: TempDir, address: SocketAddr) -> Process {
    let file = directory.path().join("httpd.conf");
    let mut command = Command::new("/usr/sbin/apache2");
    command.arg("-DFOREGROUND").arg("-f").arg(file);
    let mut process = Process::spawn_in(&mut command, directory).unwrap();
    let listens = Address::from(address);
    let poll = Deadline::default().poll("httpd", || {
        let ended = !matches!(process.try_wait(), Ok(None));
        let connected = listens.connect(Deadline::DEFAULT).is_ok();
        (connected || ended).then_some(connected)
    });
    assert!(poll.unwrap(), "httpd did not start: {}", process.stderr());
    process
}

fn one<'t>(random: &mut fastrand::Rng, of: &[&'t str]) -> &'t str {
    of[random.usize(..of.len())]
}

fn path(random: &mut fastrand::Rng) -> String {
    let count = random.usize(1..4);
    let segments = (0..count).map(|_| format!("/{}", one(random, SEGMENTS)));
    segments.collect::<Vec<_>>().concat()
}

/// Directives of both modules, and guards.
fn directives(random: &mut fastrand::Rng, nodes: &[SocketAddr]) -> String {
    let mut lines = Vec::new();
    for _ in 0..random.usize(2..9) {
        let (base, worker) = (path(random), one(random, &NODES));
        let node = nodes[random.usize(..nodes.len())];
        lines.push(match random.usize(..14) {
            0 => format!("JkMount /* {worker}"),
            1 | 2 => format!("JkMount {base}/* {worker}"),
            3 => format!("JkMount {base}|/* {worker}"),
            4 => format!("JkMount {base} {worker}"),
            5 => format!("JkMount {base}/*.jsp {worker}"),
            6 => format!("JkMount /*.do {worker}"),
            7 => format!("JkUnMount {base}/* {worker}"),
            8 => format!("JkUnMount /*.jsp {}", one(random, &["*", worker])),
            9 => format!("JkMount {base}* {worker}"),
            10 => format!("ProxyPass {base} ajp://{node}{base}"),
            11 => format!("ProxyPass {base} !"),
            12 => format!("<Location {base}>\nRequire all denied\n</Location>"),
            _ => format!("<Location {base}>\nRequire ip 192.0.2.1\n</Location>"),
        });
    }
    lines.join("\n")
}

fn workers(nodes: &[SocketAddr]) -> String {
    let mut text = format!("worker.list={}\n", NODES.join(","));
    for (name, node) in NODES.iter().zip(nodes) {
        text += &format!(
            "worker.{name}.type=ajp13\nworker.{name}.host={}\nworker.{name}.port={}\n",
            node.ip(),
            node.port()
        );
    }
    text
}

fn configuration(directory: &Path, address: SocketAddr, directives: &str) -> String {
    let modules = [
        "mpm_event",
        "authz_core",
        "authz_host",
        "proxy",
        "proxy_ajp",
        "jk",
    ];
    let modules =
        modules.map(|it| format!("LoadModule {it}_module /usr/lib/apache2/modules/mod_{it}.so\n"));
    let place = directory.display();
    format!(
        "ServerRoot {place}\nServerName localhost\nListen {address}\nPidFile httpd.pid\n\
         ErrorLog /dev/stderr\nMutex file:{place}\nDefaultRuntimeDir {place}\n{}\
         JkWorkersFile {place}/workers.properties\nJkShmFile {place}/shm\nJkLogFile /dev/null\n\
         ThreadsPerChild 5\nStartServers 1\nMaxRequestWorkers 5\nServerLimit 1\n{directives}\n",
        modules.concat()
    )
}

/// With `IMPORT_CONFIGURATIONS=200` the ten thousand requests that releases are tried with.
fn how_many() -> u64 {
    let said = env::var_os("IMPORT_CONFIGURATIONS").and_then(|it| it.into_string().ok());
    said.and_then(|it| it.parse().ok()).unwrap_or(12)
}

#[test]
fn generated_configurations_are_served_as_httpd_serves_them() {
    let nodes: Vec<SocketAddr> = NODES.iter().map(|_| address::unused().unwrap()).collect();
    let start = |(name, node): (&&str, &SocketAddr)| Peer::start_at(*node, container(name));
    let _peers: Vec<Peer> = NODES.iter().zip(&nodes).map(start).collect();
    let (mut asked, mut served, mut closed, mut decided) = (0, 0, 0, 0);
    for seed in 0..how_many() {
        let mut random = fastrand::Rng::with_seed(seed);
        let directives = directives(&mut random, &nodes);
        let (directory, address) = (tempfile::tempdir().unwrap(), address::unused().unwrap());
        let place = directory.path().to_owned();
        fs::write(place.join("workers.properties"), workers(&nodes)).unwrap();
        let conf = configuration(&place, address, &directives);
        fs::write(place.join("httpd.conf"), conf).unwrap();
        let arguments = ["--listen", "127.0.0.1:0", "--out", "out.toml", "httpd.conf"];
        let said = text(&import(&place, &arguments).stderr);
        let written = fs::read_to_string(place.join("out.toml")).unwrap_or_default();
        let _httpd = httpd(directory, address);
        let front = Front::with_file(&place.join("out.toml"), &[])
            .unwrap_or_else(|error| panic!("{directives}\n{said}\n{written}\n{error}"));
        let (mut theirs, mut ours) = (None, None);
        for _ in 0..50 {
            let path =
                path(&mut random) + one(&mut random, &["", "", "/", ".jsp", ".do", "x", "/x.jsp"]);
            let [there, here] = [
                ask(&mut theirs, address, &path),
                ask(&mut ours, front.address(), &path),
            ];
            asked += 1;
            let is_served = NODES.contains(&there.as_str());
            served += usize::from(is_served);
            closed += usize::from(!is_served);
            let noted = said.contains(&format!(
                "does not match {path} in the source; here it does"
            ));
            // What patterns cannot say is closed, and a risk says so.
            let is_decided = is_served && here == "403" && said.contains("are answered 403");
            decided += usize::from(is_decided);
            let fits = match is_served {
                true => there == here || is_decided,
                false => !NODES.contains(&here.as_str()),
            };
            assert!(
                fits || noted,
                "seed {seed}, {path}: httpd {there}, here {here}\n{directives}\n{said}\n{written}"
            );
        }
    }
    println!("{asked} requests: {served} served, {closed} not; {decided} closed by a decision");
    assert!(served > 0 && closed > 0);
    assert!(10 * decided <= served, "{decided} of {served}");
}

/// Debian's own files, with the worker that they have mounted, before a Tomcat.
#[test]
fn the_files_of_debian_are_converted_checked_and_served() {
    let tomcat = Tomcat::shared().unwrap();
    let url = tomcat.url(Connector::Ajp);
    let (_, port) = url.rsplit_once(':').unwrap();
    let (host, _) = url.trim_start_matches("ajp://").rsplit_once(':').unwrap();
    let debian = fs::read_to_string("/etc/libapache2-mod-jk/workers.properties").unwrap();
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path();
    // Debian's ports: those of this Tomcat.
    let debian = debian
        .replace("8009", port)
        .replace("host=localhost", &format!("host={host}"));
    fs::write(place.join("workers.properties"), debian).unwrap();
    let jk = fs::read_to_string("/etc/libapache2-mod-jk/httpd-jk.conf").unwrap();
    let ours = "/etc/libapache2-mod-jk/workers.properties";
    let jk = jk.replace(ours, &place.join("workers.properties").to_string_lossy());
    fs::write(place.join("jk.conf"), jk + "\nJkMount /* ajp13_worker\n").unwrap();
    let arguments = ["--listen", "127.0.0.1:0", "--out", "out.toml", "jk.conf"];
    let output = import(place, &arguments);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    let mut check = Command::new(binary().unwrap());
    let checked = check
        .arg("check")
        .arg(place.join("out.toml"))
        .output()
        .unwrap();
    assert!(checked.status.success(), "{}", text(&checked.stderr));
    let front = Front::with_file(&place.join("out.toml"), &[]).unwrap();
    assert_eq!(
        front.get("/").unwrap().status,
        tomcat.get("/").unwrap().status
    );
    assert_eq!(front.get("/jk-status").unwrap().status, 404, "{said}");
}

/// A text of docs/import.md, by the language of its block.
fn block(language: &str) -> String {
    let page = include_str!("../../../../docs/import.md");
    let start = format!("```{language}\n");
    let (_, rest) = page.split_once(&start).unwrap();
    rest.split("```").next().unwrap().to_owned()
}

#[test]
fn the_page_says_what_happens() {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path();
    fs::write(place.join("workers.properties"), block("properties")).unwrap();
    fs::write(place.join("httpd.conf"), block("apache")).unwrap();
    let page = include_str!("../../../../docs/import.md");
    let commands = page
        .lines()
        .filter_map(|it| it.strip_prefix("catamaran import "));
    let commands: Vec<Vec<&str>> = commands.map(|it| it.split_whitespace().collect()).collect();
    let [plain, kept] = &commands[..] else {
        panic!("two commands: {commands:?}")
    };
    let output = import(place, plain);
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output.stderr);
    for line in block("text").lines() {
        assert!(said.contains(line), "{line}\n{said}");
    }
    let output = import(place, kept);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let written = fs::read_to_string(place.join("catamaran.toml")).unwrap();
    assert!(written.contains("upstream = \"kept\""), "{written}");
}

#[test]
fn secrets_lie_beside_the_file_and_nothing_is_overwritten() {
    use std::os::unix::fs::PermissionsExt as _;
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path();
    let workers =
        "worker.list=a\nworker.a.type=ajp13\nworker.a.secret=hush hush\nworker.a.mount=/*\n";
    fs::write(place.join("workers.properties"), workers).unwrap();
    let arguments = ["--out", "out.toml", "workers.properties"];
    let output = import(place, &arguments);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let written = fs::read_to_string(place.join("out.toml")).unwrap();
    assert!(!written.contains("hush"), "{written}");
    let secret = place.join("a.secret");
    assert_eq!(fs::read_to_string(&secret).unwrap(), "hush hush\n");
    let mode = fs::metadata(&secret).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert_eq!(import(place, &arguments).status.code(), Some(2));
    let forced = import(
        place,
        &["--force", "--out", "out.toml", "workers.properties"],
    );
    assert_eq!(forced.status.code(), Some(0));
}

#[test]
fn exit_codes_say_whether_a_decision_is_left() {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path();
    fs::write(place.join("httpd.conf"), "Listen 80\nFrobnicate on\n").unwrap();
    let output = import(
        place,
        &["--report", "json", "--out", "out.toml", "httpd.conf"],
    );
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let sum = ["mapped", "dropped", "decided", "kept"].map(|it| document[it].as_u64().unwrap());
    assert_eq!(Some(sum.iter().sum()), document["directives"].as_u64());
    assert_eq!(import(place, &["none.conf"]).status.code(), Some(2));
}

const NODES: [&str; 3] = ["a", "b", "c"];

const SEGMENTS: &[&str] = &["app", "apple", "x", "admin", "static"];

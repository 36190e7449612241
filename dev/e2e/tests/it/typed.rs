//! Commands of the documentation, typed by a shell as a reader types them.
//!
//! The shell has a network, a list of hosts and a `/run` of its own. So every port and socket that a page
//! names is free there, and `www.example.org` is this machine. This needs root.

mod acme;
mod fleet;
mod sign_on;

use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;
use std::time::Duration;

use catamaran_e2e::{binary, go_program};
use catamaran_testkit::{Deadline, Process};
use tempfile::TempDir;

/// Somebody with an empty directory, a shell and `catamaran` in the path.
struct Reader {
    directory: TempDir,
}

impl Reader {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let programs = directory.path().join("bin");
        fs::create_dir(&programs).unwrap();
        let program = fs::canonicalize(binary().unwrap()).unwrap();
        symlink(program, programs.join("catamaran")).unwrap();
        Self { directory }
    }

    /// Has a program of a Go module in the path.
    fn has_go_program(&self, name: &str) {
        let program = go_program(name).unwrap();
        symlink(program, self.directory.path().join("bin").join(name)).unwrap();
    }

    /// Writes a file below the directory.
    fn saves(&self, name: &str, text: &str) {
        let path = self.directory.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Writes the configuration of a Tomcat below `base`.
    fn saves_tomcat(&self, base: &str, connector: &str, engine: &str) {
        let server = format!(
            "<Server port=\"-1\"><Service name=\"Catalina\">{connector}\
             <Engine name=\"Catalina\" {engine}><Host name=\"localhost\" appBase=\"webapps\"/>\
             </Engine></Service></Server>"
        );
        for (name, text) in [
            ("server.xml", &server[..]),
            (
                "catalina.properties",
                include_str!("../../conf/catalina.properties"),
            ),
            ("web.xml", include_str!("../../conf/web.xml")),
        ] {
            self.saves(&format!("{base}/conf/{name}"), text);
        }
    }

    /// Types these lines, and gives what they print on standard output. The first command that fails ends the
    /// shell, and with it the test. What was started in the background ends with the shell.
    #[track_caller]
    fn types(&self, lines: &str) -> String {
        let path = self.directory.path();
        let mut shell = Command::new("unshare");
        shell
            .args(["--net", "--mount", "--pid", "--fork", "--kill-child"])
            .args(["--mount-proc", "bash", "-euo", "pipefail", "-c"])
            .arg(format!("{OWN_PLACE}{lines}"))
            .current_dir(path);
        let mut process = Process::spawn(&mut shell).unwrap();
        let status = process
            .wait(Deadline::after(Duration::from_secs(300)))
            .unwrap();
        let printed = process.stdout();
        assert!(
            status.success(),
            "{lines}\n{status}\n{printed}\n{}",
            process.stderr()
        );
        printed
    }
}

#[test]
fn the_readme_puts_a_front_before_a_tomcat() {
    let page = include_str!("../../../../README.md");
    let reader = Reader::new();
    reader.saves("catamaran.toml", block(page, "toml", 0));
    let engine = "defaultHost=\"localhost\"";
    reader.saves_tomcat("base", block(page, "xml", 0), engine);
    reader.saves("base/webapps/ROOT/hello.txt", "hello from Tomcat");
    let check = line(page, "catamaran check");
    let serve = line(page, "catamaran serve");
    let printed = reader.types(&format!(
        "mkdir base/temp base/logs base/work
         CATALINA_BASE=$PWD/base /usr/share/tomcat10/bin/catalina.sh run > tomcat.log 2>&1 &
         {check} >&2
         {serve} > access.log 2> front.log &
         answer http://127.0.0.1:8081/hello.txt"
    ));
    assert_eq!(printed.trim_end(), "hello from Tomcat");
}

#[test]
fn a_trial_of_tls_and_http2() {
    let page = include_str!("../../../../docs/tls.md");
    let http2 = include_str!("../../../../docs/http2.md");
    let reader = Reader::new();
    reader.saves("catamaran.toml", block(page, "toml", 1));
    let [own, copy, clients] = [0, 1, 2].map(|place| block(page, "sh", place));
    let get = line(page, "curl --cacert");
    let get2 = line(http2, "curl --cacert");
    let look = line(page, "openssl s_client");
    let resumes = lines(page, "openssl s_client")[1..].to_vec();
    let [save, resume] = resumes[..] else {
        panic!("two lines of resumption: {resumes:?}")
    };
    let printed = reader.types(&format!(
        "({own}{clients}) 2> openssl.log
         mount -t tmpfs tmpfs /etc/ssl
         {copy}
         catamaran app --ajp 127.0.0.1:8009 --secret 'change me' 2> app.log &
         catamaran check --config catamaran.toml >&2
         catamaran serve --config catamaran.toml > access.log 2> front.log &
         answer --insecure https://127.0.0.1/ > page
         cmp page <({get})
         cmp page <({get2})
         until grep -q 'protocol=h2' access.log; do sleep 0.1; done
         {look} < /dev/null > look 2>&1
         {save} < <(printf 'GET / HTTP/1.0\\r\\n\\r\\n'; until test -s session; do sleep 0.1; done) > saved 2>&1
         {resume} < /dev/null > resumed 2>&1
         grep '^subject=CN = www.example.org' look
         grep '^Reused' resumed"
    ));
    assert!(printed.contains("Reused, TLSv1.3"), "{printed}");
}

#[test]
fn a_trial_of_tls_without_a_file() {
    let page = include_str!("../../../../docs/tls.md");
    let reader = Reader::new();
    let serve = line(page, "catamaran serve --tls localhost");
    let get = line(page, "curl --insecure https://localhost");
    let printed = reader.types(&format!(
        "catamaran app --http 127.0.0.1:8080 2> app.log &
         {serve} > access.log 2> front.log &
         answer --insecure https://127.0.0.1:8443/ > page
         cmp page <({get})
         until grep -q 'protocol=h2' access.log; do sleep 0.1; done
         openssl s_client -connect 127.0.0.1:8443 < /dev/null 2> look |
             openssl x509 -noout -fingerprint -sha256 | tr -d : | tr A-F a-f | cut -d= -f2 > sha256
         grep --only-matching --fixed-strings --file=sha256 front.log"
    ));
    assert_eq!(printed.trim().len(), 64, "{printed}");
}

#[test]
fn the_program_for_certbot_copies_what_was_renewed() {
    let page = include_str!("../../../../docs/tls.md");
    let (_, program) = page.split_once("```\n#!/bin/sh\nset -e\n").unwrap();
    let (program, _) = program.split_once("```").unwrap();
    let reader = Reader::new();
    // The package makes the group.
    reader.saves("deploy", &program.replace("-g catamaran", "-g daemon"));
    reader.saves("live/fullchain.pem", "chain");
    reader.saves("live/privkey.pem", "key");
    let printed = reader.types(
        "mount -t tmpfs tmpfs /etc/ssl
         mkdir /etc/ssl/catamaran
         sed -i s:/etc/catamaran:/etc/ssl/catamaran: deploy
         RENEWED_LINEAGE=$PWD/live sh -e deploy
         RENEWED_LINEAGE=$PWD/live sh -e deploy
         stat --format '%a %G %n' /etc/ssl/catamaran/tls /etc/ssl/catamaran/tls/*",
    );
    let expected = [
        "750 daemon ",
        "640 daemon /fullchain.pem",
        "640 daemon /privkey.pem",
    ];
    let place = "/etc/ssl/catamaran/tls";
    let expected = expected.map(|line| line.replacen("daemon ", &format!("daemon {place}"), 1));
    assert_eq!(printed.lines().collect::<Vec<_>>(), expected);
}

#[test]
fn a_trial_of_a_clients_certificate() {
    let page = include_str!("../../../../docs/tls.md");
    let reader = Reader::new();
    let profile = lines(page, "client_certificate = \"required\"")[0];
    let authority = lines(page, "client_ca = \"/etc/ssl/partners-ca.pem\"")[0];
    let asks = format!("[tls.www]\n{profile}\n{authority}\n");
    reader.saves(
        "catamaran.toml",
        &block(page, "toml", 1).replace("[tls.www]\n", &asks),
    );
    let [own, copy, clients] = [0, 1, 2].map(|place| block(page, "sh", place));
    let flags = page.split("`--cert ").nth(1).unwrap();
    let flags = format!("--cert {}", flags.split('`').next().unwrap());
    let get = line(page, "curl --cacert");
    reader.types(&format!(
        "({own}{clients}) 2> openssl.log
         mount -t tmpfs tmpfs /etc/ssl
         {copy}
         cp ca.pem /etc/ssl/partners-ca.pem
         catamaran app --ajp 127.0.0.1:8009 --secret 'change me' 2> app.log &
         catamaran serve --config catamaran.toml > access.log 2> front.log &
         answer --insecure {flags} https://127.0.0.1/ > page
         cmp page <({get} {flags})
         ! {get} > refused"
    ));
}

#[test]
fn a_path_for_one_listener_is_closed_at_the_other() {
    let page = include_str!("../../../../docs/tls.md");
    let reader = Reader::new();
    let find = |text: &str| {
        let mut blocks = blocks(page, "toml").into_iter();
        blocks.find(|it| it.contains(text)).unwrap()
    };
    let partners = find("[[tls.partners.certificate]]");
    let public = "[tls.public]\n[[tls.public.certificate]]\n\
                  chain = \"/etc/ssl/www/fullchain.pem\"\nkey = \"/etc/ssl/www/privkey.pem\"\n";
    let upstream =
        "[[upstream.tomcat.backend]]\nurl = \"ajp://127.0.0.1:8009\"\npacket_size = \"16KiB\"\n";
    let tables = find("name = \"partners\"");
    let (wider, _) = tables.rsplit_once("[[route]]").unwrap();
    reader.saves(
        "closed.toml",
        &format!("{tables}{partners}{public}{upstream}"),
    );
    reader.saves(
        "wider.toml",
        &format!("{wider}{partners}{public}{upstream}"),
    );
    let [own, copy] = [0, 1].map(|place| block(page, "sh", place));
    let printed = reader.types(&format!(
        "({own}) 2> openssl.log
         mount -t tmpfs tmpfs /etc/ssl
         {copy}
         cp ca.pem /etc/ssl/partners-ca.pem
         chmod 600 /etc/ssl/www/privkey.pem
         ask() {{
             catamaran check $1 2>&1
             catamaran explain --config $1 --listen public https://www.example.org/partners | head -1
         }}
         ask closed.toml
         ask wider.toml"
    ));
    let lines: Vec<&str> = printed.lines().collect();
    assert!(lines[0].starts_with("closed.toml: fine ("), "{printed}");
    assert!(lines[1].starts_with("404"), "{printed}");
    let warned = "warning: clients of public reach /partners of this route without a certificate";
    assert!(lines[2].contains(warned), "{printed}");
    assert!(lines[lines.len() - 1].starts_with("backend "), "{printed}");
}

#[test]
fn explain_prints_what_its_page_prints() {
    let page = include_str!("../../../../docs/admin.md");
    let reader = Reader::new();
    reader.saves("catamaran.toml", TWO_TOMCATS);
    let (_, shown) = page.split_once("$ catamaran explain").unwrap();
    let (command, shown) = shown.split_once('\n').unwrap();
    let (shown, _) = shown.split_once("```").unwrap();
    let printed = reader.types(&format!(
        "catamaran serve --config catamaran.toml > access.log 2> front.log &
         says 'listening on'
         catamaran explain {command}"
    ));
    for expected in shown.lines().filter(|line| !line.is_empty()) {
        match expected.split_once('…') {
            Some((start, _)) => assert!(printed.contains(start), "{expected}\n{printed}"),
            None => assert!(
                printed.lines().any(|line| line == expected),
                "{expected}\n{printed}"
            ),
        }
    }
}

#[test]
fn a_backend_is_drained_by_curl() {
    let page = include_str!("../../../../docs/admin.md");
    let reader = Reader::new();
    let tables = TWO_TOMCATS.split_once("[admin]").unwrap().0;
    let tables = tables
        .replace("name = \"a\"", "name = \"blue\"")
        .replace("name = \"b\"", "name = \"green\"");
    let admin = block(page, "toml", 0);
    reader.saves("catamaran.toml", &format!("{tables}{admin}"));
    let (_, token) = admin.split_once("# ").unwrap();
    let token = token.lines().next().unwrap();
    let (_, patch) = page.split_once("```\ncurl --unix-socket").unwrap();
    let (patch, _) = patch.split_once("```").unwrap();
    let printed = reader.types(&format!(
        "{token}
         mount -t tmpfs tmpfs /var/lib
         mkdir /var/lib/catamaran
         catamaran serve --config catamaran.toml > access.log 2> front.log &
         says 'admin on'
         curl --silent --fail --unix-socket{patch}"
    ));
    let said: serde_json::Value = serde_json::from_str(&printed).unwrap();
    let text = said.to_string();
    assert!(text.contains("\"drain\""), "{text}");
    assert!(text.contains("new disk"), "{text}");
}

#[test]
fn preflights_are_answered_as_the_page_prints() {
    let page = include_str!("../../../../docs/cors.md");
    let reader = Reader::new();
    reader.saves("catamaran.toml", block(page, "toml", 0));
    let asked = page.split("$ curl").skip(1).map(|rest| {
        let (command, rest) = rest.split_once('\n').unwrap();
        let (shown, _) = rest.split_once("```").unwrap();
        (format!("curl{command}"), shown)
    });
    let (commands, shown): (Vec<String>, Vec<&str>) = asked.unzip();
    assert_eq!(commands.len(), 2, "{commands:?}");
    let printed = reader.types(&format!(
        "catamaran serve --config catamaran.toml > access.log 2> front.log &
         says 'listening on'
         {}",
        commands.join("\n")
    ));
    let lines = printed.lines().map(|line| line.trim_end_matches('\r'));
    let lines = lines.filter(|line| !line.is_empty() && !line.starts_with("Date: "));
    let lines: Vec<&str> = lines.collect();
    assert_eq!(lines.join("\n"), shown.concat().trim_end());
}

#[test]
fn explain_shows_what_a_tunnel_sends() {
    let page = include_str!("../../../../docs/websocket.md");
    let reader = Reader::new();
    let tables = block(page, "toml", 0);
    reader.saves(
        "catamaran.toml",
        &format!(
            "[[listen]]\naddress = \"127.0.0.1:80\"\nprotocols = [\"h2\", \"http/1.1\"]\n{ADMIN}{tables}"
        ),
    );
    let [first, second] = lines(page, "catamaran explain")[..] else {
        panic!("two commands")
    };
    let printed = reader.types(&format!(
        "catamaran serve --config catamaran.toml > access.log 2> front.log &
         says 'listening on'
         {first}
         {second}"
    ));
    let sent = printed.matches("http://127.0.0.1:8080").count();
    assert!(sent >= 2, "{printed}");
}

#[test]
fn explain_shows_what_a_sign_on_asks_and_supposes() {
    let page = include_str!("../../../../docs/sign-on.md");
    let reader = Reader::new();
    let tables = block(page, "toml", 0);
    reader.saves("catamaran.toml", &format!("{ADMIN}{tables}"));
    let commands = lines(page, "catamaran explain ");
    assert_eq!(commands.len(), 2, "{commands:?}");
    let printed = reader.types(&format!(
        "catamaran serve --config catamaran.toml > access.log 2> front.log &
         says 'listening on'
         {}",
        commands.join("\n")
    ));
    for expected in ["/oauth2/auth", "Cookie: _oauth2_proxy=x", "X-User: ann"] {
        let is_shown = printed
            .to_ascii_lowercase()
            .contains(&expected.to_ascii_lowercase());
        assert!(is_shown, "{expected}\n{printed}");
    }
}

#[test]
fn users_of_htpasswd_sign_on() {
    let page = include_str!("../../../../docs/sign-on.md");
    let (_, section) = page.split_once("## Users in a file").unwrap();
    let reader = Reader::new();
    reader.saves("catamaran.toml", block(section, "toml", 0));
    let commands = block(section, "sh", 0).trim_end();
    let get = line(section, "curl --user");
    let printed = reader.types(&format!(
        "catamaran app --ajp 127.0.0.1:8009 2> app.log &
         {commands} >&2
         catamaran serve --config catamaran.toml > access.log 2> front.log &
         says 'listening on' app.log
         says 'listening on'
         {get} > page
         stat -c %s page
         {get} --user ann:guess --output /dev/null --write-out '%{{http_code}}\\n'"
    ));
    assert_eq!(printed, "347\n401\n");
}

#[test]
fn readiness_names_the_upstream() {
    let page = include_str!("../../../../docs/monitoring.md");
    let reader = Reader::new();
    reader.saves(
        "catamaran.toml",
        "[admin]\naddress = \"127.0.0.1:9090\"\n[[listen]]\naddress = \"127.0.0.1:80\"\n\
         [[route]]\nupstream = \"reports\"\n\
         [[upstream.reports.backend]]\nurl = \"http://127.0.0.1:8081\"\nactivation = \"stopped\"\n",
    );
    let (_, shown) = page
        .split_once("$ curl -s localhost:9090/readyz\n")
        .unwrap();
    let (shown, _) = shown.split_once("```").unwrap();
    let command = line(page, "$ curl").trim_start_matches("$ ");
    let printed = reader.types(&format!(
        "catamaran serve --config catamaran.toml > access.log 2> front.log &
         says 'admin on'
         {command}"
    ));
    assert_eq!(printed, shown);
}

#[test]
fn a_request_is_followed_by_its_id() {
    let page = include_str!("../../../../docs/log.md");
    let reader = Reader::new();
    let log = block(page, "toml", 0);
    reader.saves(
        "catamaran.toml",
        &format!("[[listen]]\naddress = \"127.0.0.1:80\"\n[[route]]\npath = \"/other\"\nstatus = 404\n{log}"),
    );
    let ask = line(page, "$ curl").trim_start_matches("$ ");
    let find = line(page, "$ grep").trim_start_matches("$ ");
    let shown = page.lines().find(|line| line.starts_with("X-Request-Id: "));
    let id = shown.unwrap().trim_start_matches("X-Request-Id: ");
    let find = find.replace(id, "$id");
    reader.types(&format!(
        "catamaran serve --config catamaran.toml 2> front.log &
         says 'listening on'
         {ask} > field
         id=$(tr -d '\\r' < field | cut -d' ' -f2)
         until {find}
         do sleep 0.1; done"
    ));
}

#[test]
fn the_log_in_json_is_asked_by_jq() {
    let page = include_str!("../../../../docs/log.md");
    let reader = Reader::new();
    reader.saves(
        "catamaran.toml",
        "[[listen]]\naddress = \"127.0.0.1:80\"\n[[route]]\nstatus = 404\n\
         [log]\naccess = \"access.log\"\nformat = \"json\"\n",
    );
    let rows = page.lines().filter(|line| line.contains("`jq "));
    let commands = rows.map(|row| row.split('`').nth(1).unwrap().replace("\\|", "|"));
    let commands: Vec<String> = commands.collect();
    assert_eq!(commands.len(), 2, "{commands:?}");
    let printed = reader.types(&format!(
        "catamaran serve --config catamaran.toml 2> front.log &
         says 'listening on'
         curl --silent http://127.0.0.1/none > page
         until grep -q route-status access.log; do sleep 0.1; done
         {}",
        commands.join("\n")
    ));
    assert!(printed.contains("client:route-status"), "{printed}");
}

#[test]
fn a_trace_reaches_a_collector() {
    let page = include_str!("../../../../docs/traces.md");
    let reader = Reader::new();
    let tables = block(page, "toml", 0);
    reader.saves(
        "catamaran.toml",
        &format!("[[listen]]\naddress = \"127.0.0.1:80\"\n[[route]]\nstatus = 404\n{tables}"),
    );
    // In the place of a collector: prints what it is sent.
    reader.saves(
        "collector.py",
        "from http.server import *
class Collector(BaseHTTPRequestHandler):
    def do_POST(self):
        print(self.path, self.rfile.read(int(self.headers['Content-Length'])), flush=True)
        self.send_response(200)
        self.end_headers()
HTTPServer(('127.0.0.1', 4318), Collector).serve_forever()
",
    );
    let [ask, find] = ["$ curl", "$ tail"].map(|start| line(page, start).trim_start_matches("$ "));
    reader.types(&format!(
        "python3 collector.py > collected 2> errors &
         until curl --silent --output /dev/null http://127.0.0.1:4318/; do sleep 0.1; done
         catamaran serve --config catamaran.toml 2> front.log &
         says 'listening on'
         {ask}
         until [ -s access.log ]; do sleep 0.1; done
         id=$({find})
         [ ${{#id}} = 32 ]
         until grep --quiet \"/v1/traces .*$id\" collected; do sleep 0.1; done"
    ));
}

#[test]
fn a_header_of_the_proxy_protocol_names_the_client() {
    let page = include_str!("../../../../docs/proxy-protocol.md");
    let reader = Reader::new();
    let listener = block(page, "toml", 0)
        .replace("0.0.0.0:443", "127.0.0.1:8080")
        .replace("tls = \"www\"\n", "")
        .replace("10.0.0.0/8", "127.0.0.0/8");
    reader.saves(
        "catamaran.toml",
        &format!("{listener}[[route]]\nstatus = 404\n[log]\naccess = \"access.log\"\n"),
    );
    let get = line(page, "curl --haproxy-protocol");
    // curl before 8.2 tells the address that it connects from.
    reader.types(&format!(
        "catamaran serve --config catamaran.toml 2> front.log &
         says 'listening on'
         client=192.0.2.7
         get='{get}'
         if ! curl --help all | grep -q haproxy-clientip; then
             client=127.0.0.1
             get=${{get/--haproxy-clientip 192.0.2.7/}}
         fi
         $get > answer
         until grep -q \"^$client \" access.log; do sleep 0.1; done"
    ));
}

#[test]
fn a_release_is_changed_by_a_link() {
    let page = include_str!("../../../../docs/files.md");
    let reader = Reader::new();
    let application = blocks(page, "toml")
        .into_iter()
        .find(|it| it.contains("fallback = \"index.html\""));
    reader.saves(
        "catamaran.toml",
        &format!(
            "[[listen]]\naddress = \"127.0.0.1:80\"\n\
             [[upstream.tomcat.backend]]\nurl = \"ajp://127.0.0.1:8009\"\n{}",
            application.unwrap()
        ),
    );
    let [link, change] = [line(page, "ln -s"), line(page, "mv -T")];
    let compress = line(page, "gzip --keep");
    let printed = reader.types(&format!(
        "mount -t tmpfs tmpfs /srv
         mkdir -p /srv/app/release-1/assets /srv/app/release-2
         ln -s release-1 /srv/app/current
         echo one > /srv/app/release-1/index.html
         echo two > /srv/app/release-2/index.html
         (cd /srv/app/release-1; echo 'let a' > assets/a.js; echo 'a {{}}' > assets/a.css; {compress})
         catamaran serve --config catamaran.toml > access.log 2> front.log &
         answer http://127.0.0.1/ >&2
         curl --silent --header 'Accept: text/html' http://127.0.0.1/orders/7
         curl --silent --head --header 'Accept-Encoding: gzip' http://127.0.0.1/assets/a.js | grep -i content-encoding
         {link}
         {change}
         until curl --silent http://127.0.0.1/ | grep two; do sleep 0.1; done"
    ));
    let printed = printed.replace('\r', "").to_ascii_lowercase();
    assert_eq!(printed, "one\ncontent-encoding: gzip\ntwo\n");
}

#[test]
fn an_example_is_checked_and_served() {
    let page = include_str!("../../../../docs/examples/README.md");
    let reader = Reader::new();
    for name in ["context-at-root.toml", "one-tomcat.toml"] {
        let examples = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/examples");
        let text = fs::read_to_string(format!("{examples}/{name}")).unwrap();
        reader.saves(name, &text);
    }
    let commands = block(page, "sh", 0).trim_end();
    let printed = reader.types(&format!(
        "catamaran app --ajp 127.0.0.1:8009 2> app.log &
         says 'listening on' app.log
         {commands} > access.log 2> front.log &
         says 'listening on'
         curl --silent http://127.0.0.1/"
    ));
    // The built-in application has nothing at `/app/`, to which the example leads.
    assert!(printed.contains("there is nothing here"), "{printed}");
}

#[test]
fn the_paths_of_the_built_in_application() {
    let page = include_str!("../../../../docs/connector.md");
    let reader = Reader::new();
    let app = line(page, "catamaran app --ajp");
    // Rows that begin with a path; a path is a word in code that begins with a slash.
    let rows = page.lines().filter(|row| row.starts_with("| `/"));
    let words = rows.flat_map(|row| row.split('`').skip(1).step_by(2));
    let paths = words.filter(|word| word.starts_with('/'));
    let numbers = [
        ("CODE", "204"),
        ("exp:MS", "exp:1"),
        ("MS", "1"),
        ("N", "2"),
    ];
    let paths: Vec<String> = paths
        .map(|path| {
            let filled = numbers.iter();
            filled.fold(path.to_owned(), |path, (name, number)| {
                path.replace(name, number)
            })
        })
        .collect();
    assert!(paths.len() > 8, "{paths:?}");
    let gets: String = paths
        .iter()
        .map(|path| format!("curl --silent --fail --output body http://127.0.0.1:8081{path}\n"))
        .collect();
    reader.types(&format!(
        "{app} 2> app.log &
         answer http://127.0.0.1:8081/ > page
         test $(stat -c %s page) = 347
         {gets}"
    ));
}

/// With nothing that listens, a run ends at its first connect. A line that `bench` refuses gets a hint at the flags.
#[test]
fn bench_understands_every_line_of_its_page() {
    let page = include_str!("../../../../docs/bench.md");
    let reader = Reader::new();
    let (_, requests) = page.split_once("```\n{\"name\": \"login\"").unwrap();
    let (requests, _) = requests.split_once("```").unwrap();
    reader.saves("mix.jsonl", &format!("{{\"name\": \"login\"{requests}"));
    reader.saves("users.csv", "user,password,word\nann,secret,boat\n");
    reader.saves(
        "access.log",
        "127.0.0.1 - - [25/Nov/2026:12:00:00 +0000] \"GET / HTTP/1.1\" 200 3 \"-\" \"-\"\n",
    );
    let commands: Vec<String> = lines(page, "catamaran bench")
        .iter()
        // What a line says of itself stands behind some spaces.
        .map(|line| line.split("   ").next().unwrap())
        .map(|line| line.split(" | jq").next().unwrap())
        .map(|line| line.replace("URL", "http://127.0.0.1:8080/"))
        .collect();
    assert!(commands.len() > 15, "{commands:?}");
    let typed: String = commands
        .iter()
        .filter(|line| !line.contains("bench merge") && !line.contains("bench report"))
        .map(|line| format!("{line} > out 2> said || true\ngrep 'lists the flags' said || true\n"))
        .collect();
    let merge = line(page, "catamaran bench merge");
    let report = line(page, "catamaran bench report");
    let refused = reader.types(&format!(
        "catamaran bench --no-such-flag > out 2> said || true
         grep -c 'lists the flags' said
         {typed}
         {report}
         catamaran app --http 127.0.0.1:8080 2> app.log &
         answer http://127.0.0.1:8080/ > page
         catamaran bench -n 10 --hdr a.hdr http://127.0.0.1:8080/ > a
         catamaran bench -n 10 --hdr b.hdr http://127.0.0.1:8080/ > b
         {merge} > merged
         test -s both.hdr"
    ));
    assert_eq!(refused.trim(), "1");
}

#[test]
fn doctor_prints_lines_of_its_form() {
    let page = include_str!("../../../../docs/doctor.md");
    let reader = Reader::new();
    reader.saves("catamaran.toml", TWO_TOMCATS);
    let command = line(page, "$ catamaran doctor").trim_start_matches("$ ");
    let command = command.replace("/etc/catamaran/", "");
    let printed = reader.types(&format!("{command} || test $? = 1"));
    let (_, shown) = page.split_once("$ catamaran doctor").unwrap();
    let (shown, _) = shown.split_once("```").unwrap();
    let words = ["ok", "short", "note", "folklore"];
    for line in printed.lines().chain(shown.lines().skip(1)) {
        let word = line.split(' ').next().unwrap();
        let is_sum = line.ends_with("short") || line.ends_with("suffices");
        assert!(words.contains(&word) || is_sum, "{line}\n{printed}");
    }
    assert!(printed.contains("open files"), "{printed}");
}

#[test]
fn the_lab_lists_and_judges_as_its_page_prints() {
    let page = include_str!("../../../../docs/lab.md");
    let reader = Reader::new();
    let texts = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../crates/lab/lab/published"
    );
    for (name, text) in [("bio.txt", "002-bio-1.txt"), ("nio.txt", "002-nio-1.txt")] {
        reader.saves(
            name,
            &fs::read_to_string(format!("{texts}/{text}")).unwrap(),
        );
    }
    let list = line(page, "catamaran lab list");
    let judge = line(page, "catamaran lab judge bio.txt");
    let (_, shown) = page.split_once("\nbio.txt: ab").unwrap();
    let (shown, _) = shown.split_once("```").unwrap();
    let printed = reader.types(&format!(
        "{list} > list\ngrep --quiet ^keepalive list\n{judge}"
    ));
    assert!(
        printed.starts_with(&format!("bio.txt: ab{shown}")),
        "{printed}"
    );
}

/// The blocks of a page in this language, without their fences.
fn blocks<'p>(page: &'p str, language: &str) -> Vec<&'p str> {
    let fence = format!("```{language}\n");
    let parts = page.split(fence.as_str()).skip(1);
    parts.filter_map(|rest| rest.split("```").next()).collect()
}

/// One of them, counted from 0.
#[track_caller]
fn block<'p>(page: &'p str, language: &str, place: usize) -> &'p str {
    let blocks = blocks(page, language);
    blocks
        .get(place)
        .unwrap_or_else(|| panic!("the page has {} blocks of {language}", blocks.len()))
}

/// The lines of a page that begin so, without a comment at their ends.
fn lines<'p>(page: &'p str, start: &str) -> Vec<&'p str> {
    let found = page.lines().filter(|line| line.starts_with(start));
    found.filter_map(|line| line.split("  #").next()).collect()
}

/// The first of them.
#[track_caller]
fn line<'p>(page: &'p str, start: &str) -> &'p str {
    lines(page, start)
        .first()
        .unwrap_or_else(|| panic!("the page has no line {start:?}"))
}

/// `answer URL` asks until it gets a response below 400, each second anew. `says TEXT` waits until the front has
/// logged it.
const OWN_PLACE: &str = "
PATH=$PWD/bin:$PATH
ip link set lo up
mount -t tmpfs tmpfs /run
mkdir /run/catamaran
echo 127.0.0.1 localhost www.example.org shop.example.org staging h > hosts
mount --bind hosts /etc/hosts
answer() {
    curl --silent --retry 60 --retry-all-errors --retry-delay 1 --fail \"$@\"
}
says() {
    until grep --quiet --no-messages \"$1\" ${2:-front.log}; do sleep 0.1; done
}
";

const ADMIN: &str = "[admin]\naddress = \"unix:/run/catamaran/admin.sock\"\n";

/// The file that the page of `explain` is about: its lines are numbered there.
const TWO_TOMCATS: &str = "[[listen]]
address = \"0.0.0.0:80\"
[[route]]
host = \"shop.example.org\"
path = \"/app\"
upstream = \"tomcat\"
[[route]]
path = \"/app/admin\"
status = 404
[[route]]
path = \"/\"
upstream = \"tomcat\"
[upstream.tomcat.sticky]
[[upstream.tomcat.backend]]
name = \"a\"
url = \"ajp://127.0.0.1:8009\"
[[upstream.tomcat.backend]]
name = \"b\"
url = \"ajp://127.0.0.1:8010\"
[admin]
address = \"unix:/run/catamaran/admin.sock\"
";

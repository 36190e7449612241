//! Configurations of nginx from the field, beside nginx: what is imported answers as nginx does, or is closed.

use std::fs;
use std::net::SocketAddr;
use std::process::Command;

use catamaran_e2e::Front;
use catamaran_testkit::{HttpClient, Peer, Process, Script, address};

use crate::import::{import, text};
use crate::import_beside::started;

/// A request, by its path and further fields, and what is compared: the status and these fields.
type Request = (&'static str, &'static str, &'static [&'static str]);

/// nginx with the inside of its `http`, and the front with what is imported from it.
pub(crate) struct Pair {
    _nginx: Process,
    pub(crate) nginx: SocketAddr,
    pub(crate) front: Front,
    code: Option<i32>,
    pub(crate) said: String,
    directory: tempfile::TempDir,
}

impl Pair {
    /// `@DIR@` in the configuration is a directory of files, `@LISTEN@` nginx's address, `@BACKEND@` that of a backend.
    pub(crate) fn start(conf: &str, backend: SocketAddr, trusts: bool) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let place = directory.path();
        for (name, text) in FILES {
            let path = place.join("www").join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let nginx = address::unused().unwrap();
        let dir = place.display();
        let own = format!(
            "daemon off;\nmaster_process off;\npid {dir}/pid;\nevents {{ }}\nhttp {{\naccess_log off;\n\
             client_body_temp_path {dir}/1;\nproxy_temp_path {dir}/2;\nfastcgi_temp_path {dir}/3;\n\
             uwsgi_temp_path {dir}/4;\nscgi_temp_path {dir}/5;\n{conf}\n}}\n"
        );
        let conf = own
            .replace("@DIR@", &format!("{dir}/www"))
            .replace("@LISTEN@", &nginx.to_string())
            .replace("@BACKEND@", &backend.to_string());
        fs::write(place.join("nginx.conf"), &conf).unwrap();
        let arguments = ["--listen", "127.0.0.1:0", "--out", "out.toml", "nginx.conf"];
        let output = import(place, &arguments);
        let said = text(&output.stderr);
        if trusts {
            let written = fs::read_to_string(place.join("out.toml")).unwrap();
            let trusting = format!("[server]\ntrusted_proxies = \"127.0.0.1\"\n{written}");
            fs::write(place.join("out.toml"), trusting).unwrap();
        }
        let front = Front::with_file(&place.join("out.toml"), &[]).unwrap();
        let mut command = Command::new("/usr/sbin/nginx");
        command
            .args(["-e", "stderr", "-c"])
            .arg(place.join("nginx.conf"));
        let own = tempfile::tempdir().unwrap();
        Self {
            _nginx: started(&mut command, own, nginx),
            nginx,
            front,
            code: output.status.code(),
            said,
            directory,
        }
    }

    /// Both answer alike.
    fn compare(&self, requests: &[Request]) {
        for request in requests {
            let [there, here] = [self.nginx, self.front.address()].map(|it| answer(it, request));
            assert_eq!(
                there,
                here,
                "{request:?}\n{}\n{}",
                self.said,
                self.written()
            );
        }
    }

    /// The front answers 403, and the import says why.
    fn closes(&self, paths: &[&'static str]) {
        for path in paths {
            assert_eq!(
                answer(self.front.address(), &(path, "", &[])),
                "403",
                "{path}\n{}",
                self.said
            );
        }
        assert_eq!(self.code, Some(1), "{}", self.said);
    }

    pub(crate) fn written(&self) -> String {
        fs::read_to_string(self.directory.path().join("out.toml")).unwrap_or_default()
    }
}

/// The status, and the fields that are asked for, sorted.
fn answer(server: SocketAddr, (path, fields, names): &Request) -> String {
    let mut client = HttpClient::connect(server).unwrap();
    let host = if fields.contains("Host: ") {
        ""
    } else {
        "Host: www.example.org\r\n"
    };
    let head = format!("GET {path} HTTP/1.1\r\n{host}{fields}\r\n");
    let found = client.ask(head).unwrap();
    let mut lines = vec![found.status.to_string()];
    for name in *names {
        let values = found.headers_named(name);
        let mut values: Vec<String> = values.map(|it| format!("{name}: {it}")).collect();
        values.sort();
        lines.extend(values);
    }
    lines.join("; ")
}

/// A backend that answers with fields of its own.
fn backend() -> Peer {
    let answer = "HTTP/1.1 200 OK\r\nVary: Accept\r\nSet-Cookie: s=1\r\nCache-Control: no-cache\r\n\
                  Content-Length: 1\r\n\r\na";
    let script = Script::new()
        .expect_until(b"\r\n\r\n")
        .send(answer.as_bytes())
        .repeat(1000);
    Peer::start(script)
}

#[test]
fn fields_are_added_as_nginx_adds_them() {
    let backend = backend();
    let conf = "server { listen @LISTEN@; server_name www.example.org; root @DIR@;\n\
        location /t/ { add_header Vary X-Theme; add_header Set-Cookie a=1; add_header Set-Cookie b=2; \
        add_header Cache-Control public; proxy_pass http://@BACKEND@; }\n\
        location /own/ { auth_basic x; auth_basic_user_file @DIR@/users; proxy_pass http://@BACKEND@; } }";
    let pair = Pair::start(conf, backend.tcp_address(), false);
    pair.compare(&[
        ("/t/x", "", &["Vary", "Set-Cookie", "Cache-Control"]),
        ("/", "", &[]),
    ]);
    pair.closes(&["/own/x"]);
}

#[test]
fn a_folder_of_uploads_keeps_its_types_or_is_closed() {
    let conf = "server { listen @LISTEN@; server_name www.example.org; root @DIR@;\n\
        location /raw/ { types { } default_type text/plain; }\n\
        location /up/ { types { application/octet-stream html js svg; } } }";
    let pair = Pair::start(conf, backend().tcp_address(), false);
    pair.compare(&[
        ("/raw/x.html", "", &["Content-Type"]),
        ("/x.html", "", &["Content-Type"]),
    ]);
    pair.closes(&["/up/x.html"]);
}

#[test]
fn the_scheme_that_a_balancer_says_is_the_condition_of_a_route() {
    let backend = backend();
    let conf = "server { listen @LISTEN@; server_name www.example.org;\n\
        location /a { proxy_set_header X-Forwarded-Proto $http_x_forwarded_proto; proxy_pass http://@BACKEND@; }\n\
        location /b { if ($http_x_forwarded_proto != \"https\") { return 301 https://$host$request_uri; } \
        proxy_pass http://@BACKEND@; } }";
    let pair = Pair::start(conf, backend.tcp_address(), true);
    let https = "X-Forwarded-Proto: https\r\n";
    let http = "X-Forwarded-Proto: http\r\n";
    pair.compare(&[
        ("/a", https, &["Location"]),
        ("/b", https, &["Location"]),
        ("/b?x=1", http, &["Location"]),
        ("/b", "", &["Location"]),
    ]);
    assert!(
        pair.said.contains("trusted_proxies") && pair.code == Some(1),
        "{}",
        pair.said
    );
}

#[test]
fn what_nginx_keeps_closed_is_not_opened() {
    let backend = backend();
    let conf = "map $host $x { default 0; }\n\
        server { listen @LISTEN@ default_server; server_name www.example.org; root @DIR@;\n\
        location / { }\nlocation = /index.html { deny all; }\nlocation = /sub/index.html { return 404; }\n\
        location ^~ /app/ { proxy_pass http://@BACKEND@; internal; }\n\
        location ^~ /in/ { proxy_pass http://@BACKEND@; return 403; } }\n\
        server { listen @LISTEN@; server_name ~^intern[0-9]+\\.example\\.org$; deny all; }\n\
        server { listen @LISTEN@; server_name named.example.org;\n\
        location ~ \"^/(?<t>[a-z]+)/admin\" { deny all; }\n\
        location ~ \"^/x\\x2ephp$\" { deny all; }\n\
        location / { proxy_pass http://@BACKEND@; } }";
    let pair = Pair::start(conf, backend.tcp_address(), false);
    let requests: [Request; 9] = [
        ("/", "", &[]),
        ("/sub/", "", &[]),
        ("/index.html", "", &[]),
        ("/app/x", "", &[]),
        ("/in/x", "", &[]),
        ("/", "Host: intern1.example.org\r\n", &[]),
        ("/t/admin", "Host: named.example.org\r\n", &[]),
        ("/x.php", "Host: named.example.org\r\n", &[]),
        ("/x.html", "", &[]),
    ];
    for request in &requests {
        let [there, here] = [pair.nginx, pair.front.address()].map(|it| answer(it, request));
        assert_eq!(
            there == "200",
            here == "200",
            "{request:?}: {there} {here}\n{}",
            pair.written()
        );
    }
    assert_eq!(pair.code, Some(1), "{}", pair.said);
}

const FILES: [(&str, &str); 5] = [
    ("index.html", "start"),
    ("x.html", "<p>"),
    ("sub/index.html", "below"),
    ("raw/x.html", "<p>"),
    ("up/x.html", "<p>"),
];

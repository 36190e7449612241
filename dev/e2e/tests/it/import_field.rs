//! Configurations of httpd from the field, beside the real server: fields, types and programs of directories, and
//! WebSocket in two of the ways in which httpd is told of it.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::thread;

use catamaran_e2e::Front;
use catamaran_testkit::{HttpClient, Process, Response, address};

use crate::import::{import, text};
use crate::import_beside::started;
use crate::websocket::HANDSHAKE;

/// What serves a configuration: httpd, and the front with the converted file.
struct Both {
    _httpd: Process,
    servers: [SocketAddr; 2],
    _front: Front,
    /// How the import ended, and what it said.
    code: Option<i32>,
    said: String,
}

/// Serves a virtual host by both.
fn serve(place: &Path, modules: &[&str], host: &str) -> Both {
    let listens = address::unused().unwrap();
    let modules = modules
        .iter()
        .map(|it| format!("LoadModule {it}_module /usr/lib/apache2/modules/mod_{it}.so\n"));
    let conf = format!(
        "ServerRoot {0}\nServerName localhost\nListen {listens}\nPidFile httpd.pid\nErrorLog /dev/stderr\n\
         Mutex file:{0}\nDefaultRuntimeDir {0}\nLoadModule mpm_event_module /usr/lib/apache2/modules/mod_mpm_event.so\n\
         LoadModule authz_core_module /usr/lib/apache2/modules/mod_authz_core.so\n{1}\
         <VirtualHost *:{2}>\nServerName www.example.org\n{host}\n</VirtualHost>\n",
        place.display(),
        modules.collect::<String>(),
        listens.port(),
    );
    fs::write(place.join("httpd.conf"), conf).unwrap();
    let arguments = ["--listen", "127.0.0.1:0", "--out", "out.toml", "httpd.conf"];
    let output = import(place, &arguments);
    let said = text(&output.stderr);
    let mut command = Command::new("/usr/sbin/apache2");
    command
        .arg("-DFOREGROUND")
        .arg("-f")
        .arg(place.join("httpd.conf"));
    let httpd = started(&mut command, tempfile::tempdir().unwrap(), listens);
    let front = Front::with_file(&place.join("out.toml"), &[])
        .unwrap_or_else(|error| panic!("{said}\n{error}"));
    Both {
        _httpd: httpd,
        servers: [listens, front.address()],
        _front: front,
        code: output.status.code(),
        said,
    }
}

fn ask(server: SocketAddr, path: &str, fields: &str) -> Response {
    let mut client = HttpClient::connect(server).unwrap();
    let head = format!("GET {path} HTTP/1.1\r\nHost: www.example.org\r\n{fields}\r\n");
    client.send(head.as_bytes()).unwrap();
    if fields.is_empty() {
        client.receive().unwrap()
    } else {
        client.receive_head().unwrap()
    }
}

#[test]
fn directories_keep_their_fields_and_types_and_no_source_is_shown() {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path();
    let root = place.join("www");
    fs::create_dir_all(root.join("raw")).unwrap();
    for name in ["p.html", "a.txt", "raw/x.html"] {
        fs::write(root.join(name), "<?php secret ?>").unwrap();
    }
    let host = format!(
        "DocumentRoot {0}\nAddType application/x-httpd-php .html\n<Directory {0}>\nRequire all granted\n\
         Header set X-Frame-Options DENY\nHeader set Content-Security-Policy \"default-src 'self'\"\n</Directory>\n\
         <Directory {0}/raw>\nForceType application/octet-stream\nHeader set Content-Disposition attachment\n</Directory>",
        root.display()
    );
    fs::write(place.join("mime.types"), "text/plain txt\n").unwrap();
    let both = serve(place, &["mime", "headers"], &host);
    for path in ["/a.txt", "/raw/x.html"] {
        let [there, here] = both.servers.map(|it| ask(it, path, ""));
        assert_eq!(
            (there.status, here.status),
            (200, 200),
            "{path}\n{}",
            both.said
        );
        for name in [
            "x-frame-options",
            "content-security-policy",
            "content-disposition",
            "content-type",
        ] {
            assert_eq!(here.header(name), there.header(name), "{path} {name}");
        }
    }
    let program = ask(both.servers[1], "/p.html", "");
    assert_eq!(program.status, 403, "{}", both.said);
    assert!(!program.text().contains("secret"));
    // Of the program a decision is left.
    assert_eq!(both.code, Some(1), "{}", both.said);
}

/// Answers handshakes with 101, and all else with 200.
fn backend() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming().take(CONNECTIONS_MAX).flatten() {
            thread::spawn(move || answer(stream));
        }
    });
    address
}

fn answer(stream: TcpStream) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream);
    loop {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if reader.read_line(&mut head)? == 0 {
                return Ok(());
            }
        }
        let answer = if head.to_ascii_lowercase().contains("\r\nupgrade: websocket") {
            "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
             Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n"
        } else {
            "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na"
        };
        reader.get_mut().write_all(answer.as_bytes())?;
    }
}

#[test]
fn websocket_is_passed_on_by_a_member_and_by_a_rewrite() {
    let directory = tempfile::tempdir().unwrap();
    let backend = backend();
    let host = format!(
        "<Proxy balancer://w>\nBalancerMember ws://{backend}\n</Proxy>\nProxyPass /ws/ balancer://w/ws/\n\
         RewriteEngine On\nRewriteCond %{{HTTP:Upgrade}} =websocket [NC]\n\
         RewriteRule ^/?(.*) ws://{backend}/$1 [P,L]\nProxyPass / http://{backend}/"
    );
    let modules = [
        "proxy",
        "proxy_http",
        "proxy_wstunnel",
        "slotmem_shm",
        "proxy_balancer",
        "lbmethod_byrequests",
        "rewrite",
    ];
    let both = serve(directory.path(), &modules, &host);
    for server in both.servers {
        for path in ["/", "/ws/", "/ws/x", "/other"] {
            assert_eq!(
                ask(server, path, HANDSHAKE).status,
                101,
                "{path}\n{}",
                both.said
            );
        }
        assert_eq!(ask(server, "/", "").status, 200, "{}", both.said);
    }
    assert_eq!(both.code, Some(0), "{}", both.said);
}

/// Connections to the backend of one test.
const CONNECTIONS_MAX: usize = 100;

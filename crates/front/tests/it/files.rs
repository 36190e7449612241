//! Files that the front serves: every kind of request as a table, over HTTP/1.1 and HTTP/2.

mod cases;
mod hostile;
mod large;
mod through;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use std::{fs, io};

use bytes::Bytes;
use catamaran_front::config::{
    Config, FilesConfig, Protocols, RouteConfig, RouteRules, RouteTarget,
};
use catamaran_front::{Running, start};
use catamaran_testkit::HttpClient;
use http::{HeaderMap, Method, Request};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use tempfile::TempDir;

use crate::{config, loopback, tcp};

/// A directory that is served, and what is beside it.
pub(crate) struct Tree {
    top: TempDir,
}

impl Tree {
    pub(crate) fn new() -> Self {
        let tree = Self {
            top: tempfile::tempdir().unwrap(),
        };
        let (root, outside) = (tree.root(), tree.top.path().join("outside"));
        for directory in ["dir", "dir2", "empty", ".well-known", "WEB-INF"] {
            fs::create_dir_all(root.join(directory)).unwrap();
        }
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("secret.txt"), "OUTSIDE").unwrap();
        for (name, bytes) in FILES {
            fs::write(root.join(name), pattern(*bytes)).unwrap();
        }
        for (link, to) in [
            ("link-in", "page.html"),
            ("link-out", "../outside/secret.txt"),
            ("link-dir-out", "../outside"),
            ("loop", "loop"),
        ] {
            std::os::unix::fs::symlink(to, root.join(link)).unwrap();
        }
        std::os::unix::fs::symlink(outside.join("secret.txt"), root.join("link-abs")).unwrap();
        let mode = Mode::from_raw_mode(0o644);
        mknodat(CWD, root.join("fifo"), FileType::Fifo, mode, 0).unwrap();
        for entry in fs::read_dir(&root).unwrap() {
            let path = entry.unwrap().path();
            if path.is_file() {
                set_time(&path).unwrap();
            }
        }
        tree
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.top.path().join("www")
    }
}

fn set_time(path: &Path) -> io::Result<()> {
    let at = SystemTime::UNIX_EPOCH + Duration::from_secs(MODIFIED);
    fs::File::options().write(true).open(path)?.set_modified(at)
}

/// The bytes of every file, from its beginning on.
pub(crate) fn pattern(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| b'a' + (at % 23) as u8).collect()
}

/// A front that serves the files of a directory, and nothing else.
pub(crate) fn front(files: FilesConfig, change: impl FnOnce(&mut Config)) -> Running {
    let mut config = config(&[loopback()], Vec::new());
    config.listeners[0].protocols = Protocols::Both;
    config.upstreams.clear();
    config.routes = vec![route("/", RouteTarget::Files, files)];
    change(&mut config);
    start(config).unwrap()
}

pub(crate) fn route(path: &str, target: RouteTarget, files: FilesConfig) -> RouteConfig {
    RouteConfig {
        rules: Some(Arc::new(RouteRules {
            files: Some(Arc::new(files)),
            ..RouteRules::default()
        })),
        ..RouteConfig::new(path, target)
    }
}

/// What a client got.
#[derive(Debug)]
pub(crate) struct Got {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
}

impl Got {
    pub(crate) fn header(&self, name: &str) -> &str {
        let value = self.headers.get(name);
        value.map_or("", |value| value.to_str().unwrap_or("?"))
    }
}

/// A client of one of both protocols, with a connection for each request.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Client {
    Http1,
    Http2,
}

impl Client {
    pub(crate) const BOTH: [Self; 2] = [Self::Http1, Self::Http2];

    pub(crate) fn ask(
        self,
        address: SocketAddr,
        method: &str,
        path: &str,
        fields: &[(&str, String)],
    ) -> Got {
        match self {
            Self::Http1 => ask_http1(address, method, path, fields),
            Self::Http2 => ask_http2(address, method, path, fields),
        }
    }

    pub(crate) fn get(self, address: SocketAddr, path: &str) -> Got {
        self.ask(address, "GET", path, &[])
    }
}

fn ask_http1(address: SocketAddr, method: &str, path: &str, fields: &[(&str, String)]) -> Got {
    let mut client = HttpClient::connect(address).unwrap();
    let fields: String = fields
        .iter()
        .map(|(name, value)| format!("{name}: {value}\r\n"))
        .collect();
    let request = format!("{method} {path} HTTP/1.1\r\nHost: a\r\n{fields}\r\n");
    client.send(request.as_bytes()).unwrap();
    let response = match method {
        "HEAD" => client.receive_head().unwrap(),
        _ => client.receive().unwrap(),
    };
    let mut headers = HeaderMap::new();
    for (name, value) in &response.headers {
        let name: http::HeaderName = name.parse().unwrap();
        headers.append(name, value.parse().unwrap());
    }
    Got {
        status: response.status,
        headers,
        body: response.body,
    }
}

fn ask_http2(address: SocketAddr, method: &str, path: &str, fields: &[(&str, String)]) -> Got {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let socket = tokio::net::TcpStream::connect(address).await.unwrap();
        let (mut client, connection) = h2::client::handshake(socket).await.unwrap();
        tokio::spawn(connection);
        let mut request = Request::builder()
            .method(Method::from_bytes(method.as_bytes()).unwrap())
            .uri(format!("http://a{path}"));
        for (name, value) in fields {
            request = request.header(*name, value);
        }
        let request = request.body(()).unwrap();
        let (response, _) = client.send_request(request, true).unwrap();
        let (head, mut stream) = response.await.unwrap().into_parts();
        let mut body = Vec::new();
        while let Some(data) = stream.data().await {
            let data: Bytes = data.unwrap();
            stream.flow_control().release_capacity(data.len()).unwrap();
            body.extend_from_slice(&data);
        }
        Got {
            status: head.status.as_u16(),
            headers: head.headers,
            body,
        }
    })
}

pub(crate) fn address(running: &Running) -> SocketAddr {
    tcp(running, 0)
}

/// When every file was changed.
const MODIFIED: u64 = 1_700_000_000;

/// Names of files with their lengths.
const FILES: &[(&str, usize)] = &[
    ("page.html", 1456),
    ("big.bin", 100_000),
    ("empty.txt", 0),
    ("app.js", 1000),
    ("app.js.gz", 200),
    ("app.js.br", 150),
    ("only.css", 1000),
    ("only.css.gz", 200),
    ("gone.js.gz", 200),
    ("index.html", 300),
    ("dir2/index.html", 400),
    ("dir/x.txt", 100),
    (".secret", 10),
    ("dir/.secret", 10),
    (".well-known/security.txt", 20),
    ("WEB-INF/web.xml", 20),
    ("a b.txt", 11),
    ("\u{e9}.txt", 12),
    ("100%.txt", 13),
    ("a+b.txt", 14),
    ("a;b.txt", 15),
    ("x.mjs", 5),
    ("x.wasm", 5),
    ("x.woff2", 5),
    ("x.svg", 5),
    ("x.json", 5),
    ("x.webmanifest", 5),
    ("x.xml", 5),
    ("x.txt", 5),
    ("x.avif", 5),
    ("noext", 5),
    ("x.unknownext", 5),
];

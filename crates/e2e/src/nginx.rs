//! nginx, as a front to our connector's HTTP/1.1 with connections kept alive, or as a server of
//! pages.
//!
//! nginx must be told a port, so it gets one on an address that only this process uses.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

use anyhow::ensure;
use catamaran_testkit::{Address, Deadline, Process, address};

/// A running nginx.
#[derive(Debug)]
pub struct Nginx {
    process: Process,
    address: SocketAddr,
}

const PROGRAM: &str = "/usr/sbin/nginx";

impl Nginx {
    /// nginx that passes every request to `backend` over kept-alive connections, with bodies
    /// streamed both ways.
    ///
    /// # Errors
    /// nginx is not installed or did not start; the message has its log.
    pub fn to(backend: impl Into<Address>) -> anyhow::Result<Self> {
        Self::start(&blocks_to(&backend.into()))
    }

    /// As [`Nginx::to`] with two workers, room for `connections` on each, and `client_header_timeout`
    /// as our `head_timeout`.
    ///
    /// # Errors
    /// As [`Nginx::to`].
    pub fn with_room(backend: impl Into<Address>, connections: usize) -> anyhow::Result<Self> {
        let blocks = format!(
            "client_header_timeout 10s; keepalive_requests 1000000;\n{}",
            blocks_to(&backend.into())
        );
        Self::start_sized(&blocks, 2, connections)
    }

    /// nginx that answers by itself: `/` a page of 347 bytes, `/redirect` a redirect, `/bare` one
    /// without a body, `/empty` 204, `/post` five bytes to any method; others are 404.
    ///
    /// # Errors
    /// As [`Nginx::to`].
    pub fn with_pages() -> anyhow::Result<Self> {
        let page = "x".repeat(347);
        Self::start(&format!(
            "server {{
        listen ADDRESS;
        default_type text/html;
        location = / {{ return 200 {page}; }}
        location = /redirect {{ return 302 /; }}
        location = /bare {{ add_header Location / always; return 302 \"\"; }}
        location = /empty {{ return 204; }}
        location = /post {{ return 200 hello; }}
        location / {{ return 404; }}
    }}"
        ))
    }

    /// nginx with these blocks in `http`, where `ADDRESS` is what it is to listen on.
    fn start(blocks: &str) -> anyhow::Result<Self> {
        Self::start_sized(blocks, 1, 512)
    }

    fn start_sized(blocks: &str, workers: usize, connections: usize) -> anyhow::Result<Self> {
        ensure!(
            Path::new(PROGRAM).exists(),
            "{PROGRAM} is missing: `cargo xtask test` installs it"
        );
        let directory = tempfile::tempdir()?;
        let address = address::unused()?;
        let root = directory.path();
        let blocks = blocks.replace("ADDRESS", &address.to_string());
        fs::write(
            root.join("nginx.conf"),
            config(root, &blocks, workers, connections),
        )?;
        let mut command = Command::new(PROGRAM);
        command
            .arg("-e")
            .arg("stderr")
            .arg("-p")
            .arg(root)
            .arg("-c")
            .arg("nginx.conf");
        let mut process = Process::spawn_in(&mut command, directory)?;
        let listens = Address::from(address);
        let ended = Deadline::default().poll(format!("nginx on {address}"), || {
            let connected = listens.connect(Deadline::DEFAULT).is_ok();
            let ended = !connected && !matches!(process.try_wait(), Ok(None));
            (connected || ended).then_some(ended)
        })?;
        ensure!(!ended, "nginx did not start: {}", process.stderr());
        Ok(Self { process, address })
    }

    /// Where nginx listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The process, to look at its log.
    #[must_use]
    pub fn process(&self) -> &Process {
        &self.process
    }
}

fn blocks_to(backend: &Address) -> String {
    format!(
        "upstream app {{
        server {backend};
        keepalive 16;
    }}
    server {{
        listen ADDRESS;
        location / {{
            proxy_pass http://app;
            proxy_http_version 1.1;
            proxy_set_header Connection \"\";
            proxy_request_buffering off;
            proxy_buffering off;
        }}
    }}"
    )
}

fn config(root: &Path, blocks: &str, workers: usize, connections: usize) -> String {
    let root = root.display();
    format!(
        "daemon off;
user root;
pid {root}/nginx.pid;
error_log stderr;
worker_processes {workers};
events {{ worker_connections {connections}; }}
http {{
    access_log off;
    client_body_temp_path {root}/body;
    proxy_temp_path {root}/proxy;
    fastcgi_temp_path {root}/fastcgi;
    uwsgi_temp_path {root}/uwsgi;
    scgi_temp_path {root}/scgi;
    client_max_body_size 0;
    {blocks}
}}
"
    )
}

//! Our front, nginx and HAProxy before the same two Tomcats, whose addresses they resolve, with similar limits.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, ensure};
use catamaran_e2e::{Cluster, binary};
use catamaran_testkit::{Address, Deadline, Process, Signal, address};

use crate::stage::{NODES, name};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Ours,
    Nginx,
    HaProxy,
}

/// A running server.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) kind: Kind,
    /// The address for HTTP/1.1 without TLS.
    pub(crate) clear: SocketAddr,
    pub(crate) tls: SocketAddr,
    process: Process,
}

impl Kind {
    pub(crate) const ALL: [Self; 3] = [Self::Ours, Self::Nginx, Self::HaProxy];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Ours => "Catamaran",
            Self::Nginx => "nginx",
            Self::HaProxy => "HAProxy",
        }
    }

    /// The signal on which the server reads its files again.
    fn reload_signal(self) -> Signal {
        match self {
            Self::Ours | Self::Nginx => Signal::Hangup,
            // It goes to the master process.
            Self::HaProxy => Signal::User2,
        }
    }

    /// The command that runs the server in the foreground with this file.
    fn command(self, file: &Path) -> anyhow::Result<Command> {
        let mut command = match self {
            Self::Ours => Command::new(binary()?),
            Self::Nginx => Command::new("nginx"),
            Self::HaProxy => Command::new("haproxy"),
        };
        match self {
            Self::Ours => command.args(["serve", "--config"]),
            Self::Nginx => command.arg("-c"),
            Self::HaProxy => command.args(["-W", "-db", "-f"]),
        };
        command.arg(file);
        Ok(command)
    }

    /// The configuration file, in which `{files}`, `{clear}`, `{tls}` and `{admin}` are replaced at the start.
    fn file(self, cluster: &Cluster) -> String {
        let mut backends = String::new();
        for route in NODES {
            let node = cluster.node(route);
            let (host, ajp, http) = (name(route), node.ajp().port(), node.http().port());
            backends += &match self {
                Self::Ours => format!(
                    "[[upstream.shop.backend]]\nurl = \"ajp://{host}:{ajp}\"\njvm_route = \"{route}\"\n\
                     first_byte_timeout = \"2s\"\n"
                ),
                Self::Nginx => format!("server {host}:{http}; "),
                Self::HaProxy => format!(" server {route} {host}:{http} check\n"),
            };
        }
        match self {
            Self::Ours => OURS.to_owned() + &backends,
            Self::Nginx => NGINX.replace("{backends}", &backends),
            Self::HaProxy => HAPROXY.to_owned() + &backends,
        }
    }

    /// Starts the server; `files` has the certificate and the directory of logs.
    pub(crate) fn start(self, files: &Path, cluster: &Cluster) -> anyhow::Result<Server> {
        let (clear, tls) = (address::unused()?, address::unused()?);
        let text = self
            .file(cluster)
            .replace("{files}", &files.to_string_lossy())
            .replace("{clear}", &clear.to_string())
            .replace("{tls}", &tls.to_string());
        let file = files.join(self.name());
        fs::write(&file, text)?;
        let mut process = Process::spawn(&mut self.command(&file)?)?;
        let listener = Address::from(tls);
        let is_running = Deadline::default().poll(format!("{} on {tls}", self.name()), || {
            if listener.connect(Deadline::DEFAULT).is_ok() {
                return Some(true);
            }
            match process.try_wait() {
                Ok(None) => None,
                Ok(Some(_)) | Err(_) => Some(false),
            }
        })?;
        ensure!(
            is_running,
            "{} did not start: {}",
            self.name(),
            process.stderr()
        );
        Ok(Server {
            kind: self,
            clear,
            tls,
            process,
        })
    }
}

impl Server {
    pub(crate) fn reload(&mut self) -> anyhow::Result<()> {
        self.process.signal(self.kind.reload_signal())
    }

    /// The output of `catamaran status` for the front, or the message with which it failed.
    pub(crate) fn status(&self, files: &Path) -> anyhow::Result<String> {
        let mut status = Command::new(binary()?);
        status
            .arg("status")
            .arg("--config")
            .arg(files.join(self.kind.name()));
        let said = status.output().context("cannot run status")?;
        Ok(String::from_utf8_lossy(&[said.stdout, said.stderr].concat()).into_owned())
    }

    /// The output of the server.
    pub(crate) fn log(&self) -> String {
        self.process.stderr()
    }
}

/// The limit of clients' connections of each server.
pub(crate) const CONNECTIONS_MAX: usize = 400;

const OURS: &str = "[server]
workers = 2
connections_max = 400
[log]
access = \"{files}/logs/ours.log\"
[admin]
address = \"unix:{files}/admin.sock\"
[[listen]]
address = \"{clear}\"
[[listen]]
address = \"{tls}\"
tls = \"www\"
[[tls.www.certificate]]
chain = \"{files}/www.pem\"
key = \"{files}/www.key\"
[[route]]
upstream = \"shop\"
";

const NGINX: &str = "daemon off;
user root;
pid {files}/nginx.pid;
error_log stderr;
worker_processes 2;
events { worker_connections 200; }
http {
access_log {files}/logs/nginx.log;
proxy_temp_path {files}/nginx-proxy;
client_body_temp_path {files}/nginx-body;
ssl_certificate {files}/www.pem;
ssl_certificate_key {files}/www.key;
upstream shop { zone shop 64k; {backends} keepalive 32; }
server {
listen {clear};
listen {tls} ssl;
location / { proxy_pass http://shop; proxy_http_version 1.1; proxy_set_header Connection \"\";
proxy_connect_timeout 2s; proxy_read_timeout 2s; }
}
}
";

/// It logs to a socket, so a full disk does not concern it.
const HAPROXY: &str = "global
 nbthread 2
 maxconn 400
resolvers dns
 nameserver own 127.0.0.1:53
defaults
 mode http
 timeout connect 2s
 timeout client 50s
 timeout server 2s
 option redispatch
 retries 3
 default-server inter 1s fall 2 rise 1 resolvers dns resolve-prefer ipv4 init-addr last,libc
frontend front
 bind {clear}
 bind {tls} ssl crt {files}/both.pem
 default_backend shop
backend shop
 option httpchk GET /plain/health
";

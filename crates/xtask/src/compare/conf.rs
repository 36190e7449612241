//! The configuration of each front: one worker, every connection kept, no limit that load meets.
//!
//! Each text sets what a careful administrator sets for this duty and leaves the rest at its
//! default. Bodies are streamed, not spooled to disk. Nothing is written to disk but the access log
//! that was asked for.

use std::net::SocketAddr;
use std::path::Path;

use super::contender::{Backend, Scale, Setting};
use super::server::write;

/// What a configuration is made of.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place<'a> {
    /// The server's own directory.
    pub(super) root: &'a Path,
    /// Where to listen.
    pub(super) address: SocketAddr,
    pub(super) backend: Backend,
    pub(super) setting: Setting<'a>,
}

/// Our front needs no file.
pub(super) fn ours(place: Place<'_>, upstream: &str) -> Vec<String> {
    let access_log = if place.setting.access_log {
        place.root.join("access.log").to_string_lossy().into_owned()
    } else {
        "off".to_owned()
    };
    let binary = place.setting.programs.ours.to_string_lossy();
    let address = place.address.to_string();
    let command = [
        &binary,
        "serve",
        "--listen",
        &address,
        "--upstream",
        upstream,
        "--workers",
        "1",
        "--access-log",
        &access_log,
    ];
    command.map(str::to_owned).to_vec()
}

/// Our front with many routes, backends and workers. Half of the routes have a host of their own, the
/// others a path; none of them but the last matches the page.
pub(super) fn scaled(place: Place<'_>, upstream: &str) -> anyhow::Result<Vec<String>> {
    let Place {
        address, setting, ..
    } = place;
    let access_log = match setting.access_log {
        true => "access.log",
        false => "off",
    };
    let Scale {
        routes,
        backends,
        workers,
    } = setting.scale;
    let mut text = format!(
        "[server]\nworkers = {workers}\n[log]\naccess = \"{access_log}\"\n\
         [[listen]]\naddress = \"{address}\"\n[upstream.app]\nconnections_max = 256\n"
    );
    for number in 0..backends {
        text += &format!("[[upstream.app.backend]]\nname = \"b{number}\"\nurl = \"{upstream}\"\n");
    }
    for number in 1..routes {
        let matched = match number % 2 {
            0 => format!("host = \"h{number}.example.org\""),
            _ => format!("path = \"/a{number}/b\""),
        };
        text += &format!("[[route]]\n{matched}\nstatus = 404\n");
    }
    text += "[[route]]\nupstream = \"app\"\n";
    let file = write(place.root, "catamaran.toml", &text)?;
    let binary = setting.programs.ours.to_string_lossy();
    let command = [&binary, "serve", "--config", &file];
    Ok(command.map(str::to_owned).to_vec())
}

/// Without `keepalive`, HTTP/1.1 and an empty `Connection`, nginx dials the backend for each
/// request.
pub(super) fn nginx(place: Place<'_>) -> anyhow::Result<Vec<String>> {
    let Place {
        address,
        backend: Backend { http, .. },
        setting,
        ..
    } = place;
    let access_log = match setting.access_log {
        true => "access.log combined",
        false => "off",
    };
    let connections = setting.connections + SPARE;
    // Its directories belong to whoever runs this.
    let user = match rustix::process::geteuid().is_root() {
        true => "user root;",
        false => "",
    };
    let text = format!(
        "daemon off;
{user}
worker_processes 1;
pid nginx.pid;
error_log stderr;
events {{ worker_connections {connections}; }}
http {{
    access_log {access_log};
    client_body_temp_path body;
    proxy_temp_path proxy;
    fastcgi_temp_path fastcgi;
    uwsgi_temp_path uwsgi;
    scgi_temp_path scgi;
    client_max_body_size 0;
    keepalive_timeout 600s;
    keepalive_requests 1000000000;
    upstream app {{
        server {http};
        keepalive 256;
        keepalive_requests 1000000000;
    }}
    server {{
        listen {address} backlog=4096;
        location / {{
            proxy_pass http://app;
            proxy_http_version 1.1;
            proxy_set_header Connection \"\";
            proxy_request_buffering off;
            proxy_max_temp_file_size 0;
        }}
    }}
}}
"
    );
    let file = write(place.root, "nginx.conf", &text)?;
    Ok(nginx_command(place.root, &file))
}

/// What runs nginx by the configuration in `file`, with `root` for whatever it names relatively.
pub(super) fn nginx_command(root: &Path, file: &str) -> Vec<String> {
    let prefix = format!("{}/", root.display());
    let command = ["/usr/sbin/nginx", "-e", "stderr", "-p", &prefix, "-c", file];
    command.map(str::to_owned).to_vec()
}

/// `no strict-limits` because HAProxy reserves two descriptors for each client, which idle ones
/// never use.
pub(super) fn haproxy(place: Place<'_>) -> anyhow::Result<Vec<String>> {
    let Place {
        address,
        backend: Backend { http, .. },
        setting,
        ..
    } = place;
    let connections = setting.connections + SPARE;
    let (target, log) = match setting.access_log {
        true => (
            "log stdout format raw daemon",
            "log global\n    option httplog",
        ),
        false => ("", ""),
    };
    let text = format!(
        "global
    nbthread 1
    maxconn {connections}
    no strict-limits
    {target}
defaults
    mode http
    {log}
    http-reuse always
    timeout connect 5s
    timeout client 600s
    timeout server 60s
    timeout http-keep-alive 600s
listen front
    bind {address} backlog 4096
    maxconn {connections}
    server app {http}
"
    );
    let file = write(place.root, "haproxy.cfg", &text)?;
    let command = ["/usr/sbin/haproxy", "-db", "-q", "-f", &file];
    Ok(command.map(str::to_owned).to_vec())
}

pub(super) fn mod_jk(place: Place<'_>) -> anyhow::Result<Vec<String>> {
    let ajp = place.backend.ajp;
    let directives = format!(
        "JkWorkerProperty worker.list=app
JkWorkerProperty worker.app.type=ajp13
JkWorkerProperty worker.app.host={}
JkWorkerProperty worker.app.port={}
JkShmFile jk-runtime-status
JkLogFile jk.log
JkMount /* app
",
        ajp.ip(),
        ajp.port()
    );
    httpd(place, &["jk"], &directives)
}

/// `mod_proxy_ajp` or `mod_proxy_http`; both keep their backend connections by default.
pub(super) fn mod_proxy(place: Place<'_>, scheme: &str) -> anyhow::Result<Vec<String>> {
    let backend = match scheme {
        "ajp" => place.backend.ajp,
        _ => place.backend.http,
    };
    let directives = format!("ProxyPass / {scheme}://{backend}/\n");
    httpd(place, &["proxy", &format!("proxy_{scheme}")], &directives)
}

/// One process of the event MPM whose threads suffice for every client that is active at once.
/// `AsyncRequestWorkerFactor` is what limits connections that are idle.
fn httpd(place: Place<'_>, modules: &[&str], directives: &str) -> anyhow::Result<Vec<String>> {
    let root = place.root.display();
    let address = place.address;
    let factor = (place.setting.connections + SPARE).div_ceil(THREADS) * 2;
    let modules: String = ["mpm_event", "authz_core"]
        .iter()
        .chain(modules)
        .map(|module| {
            format!("LoadModule {module}_module /usr/lib/apache2/modules/mod_{module}.so\n")
        })
        .collect();
    let access_log = match place.setting.access_log {
        true => {
            "LogFormat \"%h %l %u %t \\\"%r\\\" %>s %O \\\"%{Referer}i\\\" \\\"%{User-Agent}i\\\"\" combined
CustomLog access.log combined\n"
        }
        false => "",
    };
    // Started by root, it insists on serving as somebody else.
    let user = match rustix::process::geteuid().is_root() {
        true => "User www-data\nGroup www-data\n",
        false => "",
    };
    let text = format!(
        "ServerRoot {root}
ServerName localhost
Listen {address}
ListenBackLog 4096
PidFile httpd.pid
ErrorLog /dev/stderr
Mutex file:{root}
{modules}{user}ServerLimit 1
StartServers 1
ThreadLimit {THREADS}
ThreadsPerChild {THREADS}
MaxRequestWorkers {THREADS}
MinSpareThreads 1
MaxSpareThreads {THREADS}
AsyncRequestWorkerFactor {factor}
MaxConnectionsPerChild 0
KeepAlive On
KeepAliveTimeout 600
MaxKeepAliveRequests 0
{access_log}{directives}"
    );
    let file = write(place.root, "httpd.conf", &text)?;
    let command = ["/usr/sbin/apache2", "-DFOREGROUND", "-f", &file];
    Ok(command.map(str::to_owned).to_vec())
}

/// Connections to the backend, and clients between rounds.
const SPARE: usize = 1024;
/// More than wrk's connections, so that none waits for a thread.
const THREADS: usize = 128;

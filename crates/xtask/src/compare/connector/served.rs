//! The servers that are compared: our connector on each I/O model, Tomcat 10 and nginx, all with
//! one page of the same size.
//!
//! Ours and Tomcat speak both protocols at once. Nothing is tuned but what the loads need: room for
//! the connections, and no limit on requests per connection.

use std::net::SocketAddr;
use std::path::Path;
use std::{fmt, fs};

use anyhow::{Context, ensure};
use catamaran_gauge::memory::Shares;
use catamaran_gauge::process;

use super::super::client::Client;
use super::super::conf::nginx_command;
use super::super::contender::{FRONT_CORE, PAGE_BYTES, Programs};
use super::super::{bare, server};

/// Who serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::compare) enum Kind {
    Threads,
    Epoll,
    Uring,
    Tomcat,
    Nginx,
    /// No server at all, but what any costs at least; it closes no connection by itself.
    Bare,
}

/// What is spoken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Protocol {
    Ajp,
    Http,
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ajp => "ajp",
            Self::Http => "http",
        })
    }
}

/// A server that runs.
#[derive(Debug)]
pub(super) struct Server {
    pub(super) kind: Kind,
    process: server::Server,
    ajp: Option<SocketAddr>,
    http: SocketAddr,
}

impl Kind {
    pub(in crate::compare) const ALL: [Self; 6] = [
        Self::Threads,
        Self::Epoll,
        Self::Uring,
        Self::Tomcat,
        Self::Nginx,
        Self::Bare,
    ];

    /// As it is written on the command line and in tables; of ours, the name of the I/O model.
    pub(in crate::compare) fn name(self) -> &'static str {
        match self {
            Self::Threads => "threads",
            Self::Epoll => "epoll",
            Self::Uring => "uring",
            Self::Tomcat => "tomcat",
            Self::Nginx => "nginx",
            Self::Bare => "bare-answer",
        }
    }

    /// How long it is under load before it is measured: Java compiles what it runs meanwhile.
    pub(super) fn warm_up_seconds(self) -> u32 {
        match self {
            Self::Tomcat => 8,
            _ => 1,
        }
    }

    /// Starts it on [`FRONT_CORE`] and waits until it serves the page.
    pub(super) fn start(self, programs: Programs<'_>) -> anyhow::Result<Server> {
        let directory = server::directory()?;
        let root = directory.path().to_owned();
        let (ajp, http) = (server::unused_address()?, server::unused_address()?);
        let (command, ajp) = match self {
            Self::Threads | Self::Epoll | Self::Uring => {
                (connector(self, programs.ours, [ajp, http]), Some(ajp))
            }
            Self::Tomcat => (tomcat(&root, ajp, http)?, Some(ajp)),
            Self::Nginx => (nginx(&root, http)?, None),
            Self::Bare => (bare::answer(programs.bare, http), None),
        };
        let command: Vec<&str> = command.iter().map(String::as_str).collect();
        let process = server::Server::start(self.name(), &command, FRONT_CORE, directory)?;
        let mut server = Server {
            kind: self,
            process,
            ajp,
            http,
        };
        let path = server.path();
        server.process.wait_until(|_| {
            let length = Client::connect(http)?.get(path)?;
            ensure!(length == PAGE_BYTES as u64, "the page has {length} bytes");
            Ok(())
        })?;
        Ok(server)
    }
}

impl Server {
    pub(super) fn name(&self) -> &'static str {
        self.kind.name()
    }

    pub(super) fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// Of all its processes together.
    pub(super) fn memory(&self) -> anyhow::Result<Shares> {
        self.process.memory()
    }

    /// Of all its processes together.
    pub(super) fn threads(&self) -> anyhow::Result<usize> {
        Ok(process::threads(&process::tree(self.pid())?))
    }

    pub(super) fn protocols(&self) -> Vec<Protocol> {
        match self.ajp {
            Some(_) => vec![Protocol::Ajp, Protocol::Http],
            None => vec![Protocol::Http],
        }
    }

    pub(super) fn address(&self, protocol: Protocol) -> anyhow::Result<SocketAddr> {
        match protocol {
            Protocol::Ajp => self.ajp.context("it speaks no ajp"),
            Protocol::Http => Ok(self.http),
        }
    }

    /// Where the page is: Tomcat's default servlet finds a file without asking for welcome files.
    pub(super) fn path(&self) -> &'static str {
        match self.kind {
            Kind::Tomcat => "/page.html",
            _ => "/",
        }
    }
}

fn connector(kind: Kind, binary: &Path, [ajp, http]: [SocketAddr; 2]) -> Vec<String> {
    let mut command = vec![binary.to_string_lossy().into_owned(), "app".to_owned()];
    let connections = CONNECTIONS_MAX.to_string();
    let mut option = |name: &str, value: &str| command.push(format!("--{name}={value}"));
    option("ajp", &ajp.to_string());
    option("http", &http.to_string());
    option("io", kind.name());
    option("workers", "1");
    option("accept-count", "4096");
    option("max-connections", &connections);
    option("keep-alive-timeout", "600s");
    if kind == Kind::Threads {
        option("max-threads", &connections);
    }
    command
}

fn nginx(root: &Path, http: SocketAddr) -> anyhow::Result<Vec<String>> {
    // Its directories belong to whoever runs this.
    let user = match rustix::process::geteuid().is_root() {
        true => "user root;",
        false => "",
    };
    let page = "x".repeat(PAGE_BYTES);
    let text = format!(
        "daemon off;
{user}
worker_processes 1;
pid nginx.pid;
error_log stderr;
events {{ worker_connections {CONNECTIONS_MAX}; }}
http {{
    access_log off;
    client_body_temp_path body;
    proxy_temp_path proxy;
    fastcgi_temp_path fastcgi;
    uwsgi_temp_path uwsgi;
    scgi_temp_path scgi;
    keepalive_timeout 600s;
    keepalive_requests 1000000000;
    server {{
        listen {http} backlog=4096;
        location / {{
            default_type text/html;
            return 200 \"{page}\";
        }}
    }}
}}
"
    );
    let file = server::write(root, "nginx.conf", &text)?;
    Ok(nginx_command(root, &file))
}

/// A base directory with one static page, and what Debian's start script runs.
fn tomcat(root: &Path, ajp: SocketAddr, http: SocketAddr) -> anyhow::Result<Vec<String>> {
    for folder in ["conf", "logs", "temp", "webapps/ROOT/WEB-INF", "work"] {
        fs::create_dir_all(root.join(folder))?;
    }
    let attributes = format!(
        "acceptCount=\"4096\" maxConnections=\"{CONNECTIONS_MAX}\" maxKeepAliveRequests=\"-1\" \
         connectionTimeout=\"600000\" keepAliveTimeout=\"600000\""
    );
    let connector = |protocol: &str, address: SocketAddr, more: &str| {
        format!(
            "<Connector protocol=\"{protocol}\" address=\"{}\" port=\"{}\" {attributes} {more}/>",
            address.ip(),
            address.port()
        )
    };
    let server = format!(
        "<Server port=\"-1\"><Service name=\"Catalina\">
{}
{}
<Engine name=\"Catalina\" defaultHost=\"localhost\">
<Host name=\"localhost\" appBase=\"webapps\" autoDeploy=\"false\"/>
</Engine></Service></Server>
",
        connector("HTTP/1.1", http, ""),
        connector("AJP/1.3", ajp, "secretRequired=\"false\"")
    );
    server::write(root, "conf/server.xml", &server)?;
    server::write(root, "conf/web.xml", WEB_XML)?;
    server::write(root, "conf/catalina.properties", CATALINA_PROPERTIES)?;
    server::write(root, "webapps/ROOT/page.html", &"x".repeat(PAGE_BYTES))?;
    server::write(root, "webapps/ROOT/WEB-INF/web.xml", EMPTY_WEB_XML)?;
    let class_path = format!("{HOME}/bin/bootstrap.jar:{HOME}/bin/tomcat-juli.jar");
    let base = root.display();
    let (temporary, home) = (
        format!("-Djava.io.tmpdir={base}/temp"),
        format!("-Dcatalina.home={HOME}"),
    );
    let base = format!("-Dcatalina.base={base}");
    let command = [
        "java",
        "-Xms256m",
        "-Xmx1g",
        "-Djava.net.preferIPv4Stack=true",
        &temporary,
        &home,
        &base,
        "-classpath",
        &class_path,
        "org.apache.catalina.startup.Bootstrap",
        "start",
    ];
    Ok(command.map(str::to_owned).to_vec())
}

const HOME: &str = "/usr/share/tomcat10";

const WEB_XML: &str = "<web-app xmlns=\"https://jakarta.ee/xml/ns/jakartaee\" version=\"6.0\">
<servlet><servlet-name>default</servlet-name>
<servlet-class>org.apache.catalina.servlets.DefaultServlet</servlet-class>
<load-on-startup>1</load-on-startup></servlet>
<servlet-mapping><servlet-name>default</servlet-name><url-pattern>/</url-pattern></servlet-mapping>
<mime-mapping><extension>html</extension><mime-type>text/html</mime-type></mime-mapping>
</web-app>
";

const EMPTY_WEB_XML: &str = "<web-app xmlns=\"https://jakarta.ee/xml/ns/jakartaee\" version=\"6.0\" metadata-complete=\"true\"/>\n";

const CATALINA_PROPERTIES: &str =
    "common.loader=\"${catalina.home}/lib\",\"${catalina.home}/lib/*.jar\"
server.loader=
shared.loader=
tomcat.util.scan.StandardJarScanFilter.jarsToSkip=*.jar
";

/// More than any load has.
const CONNECTIONS_MAX: usize = 16_384;

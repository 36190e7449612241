//! Debian's Tomcat 10, started with a base directory of its own.
//!
//! Its connectors bind port 0 and log the port they got, so that any number of instances and test runs can share a
//! machine. The webapp and the configuration are in `webapp/` and `conf/` of this crate. Starting takes seconds, so
//! tests share the instance that [`Tomcat::shared`] starts once.

use std::fmt::Write as _;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use anyhow::{Context, ensure};
use catamaran_testkit::tls::Authority;
use catamaran_testkit::{HttpClient, Process, Response};

/// A running Tomcat.
#[derive(Debug)]
pub struct Tomcat {
    process: Process,
    http: SocketAddr,
    ajp: SocketAddr,
    ajp_with_secret: SocketAddr,
    ajp_large: SocketAddr,
    http_decoding: SocketAddr,
    ajp_decoding: SocketAddr,
    ajp_narrow: SocketAddr,
    ajp_told: SocketAddr,
    https: SocketAddr,
}

/// The connectors, all of which lead to the same webapp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Connector {
    /// HTTP/1.1 over TCP.
    Http,
    /// HTTP/1.1 over a Unix socket.
    HttpUnix,
    /// HTTP/1.1 over TLS; [`Tomcat::backend_table`] names the certificate's authority. It is not among
    /// [`Connector::ALL`], because Tomcat takes all of its requests for secure ones.
    Https,
    /// AJP over TCP without a secret.
    Ajp,
    /// AJP over TCP; requests need [`Tomcat::SECRET`].
    AjpSecret,
    /// AJP over TCP with packets of 64 KiB.
    AjpLarge,
    /// AJP over TCP with three threads; not among [`Connector::ALL`].
    AjpNarrow,
    /// AJP over TCP. It believes the front about the user, and accepts attributes, which `attributes.jsp` shows. It
    /// is not among [`Connector::ALL`].
    AjpTold,
    /// AJP over a Unix socket (`unixDomainSocketPath`).
    AjpUnix,
    /// HTTP/1.1 over TCP; escaped slashes and backslashes are separators
    /// (`encodedSolidusHandling="decode"`).
    HttpDecoding,
    /// As [`Connector::HttpDecoding`], over AJP.
    AjpDecoding,
}

/// The files of `conf/`, with their texts.
pub(crate) const CONF: &[(&str, &str)] = &[
    (
        "catalina.properties",
        include_str!("../conf/catalina.properties"),
    ),
    ("server.xml", include_str!("../conf/server.xml")),
    ("tomcat-users.xml", include_str!("../conf/tomcat-users.xml")),
    ("web.xml", include_str!("../conf/web.xml")),
];

impl Connector {
    /// Every connector that refuses escaped slashes, as Tomcat does by default, and has threads for
    /// any test.
    pub const ALL: [Self; 6] = [
        Self::Http,
        Self::HttpUnix,
        Self::Ajp,
        Self::AjpSecret,
        Self::AjpLarge,
        Self::AjpUnix,
    ];

    /// Whether the connector speaks AJP.
    #[must_use]
    pub fn is_ajp(self) -> bool {
        !matches!(
            self,
            Self::Http | Self::HttpUnix | Self::Https | Self::HttpDecoding
        )
    }
}

impl Tomcat {
    /// The secret that the connector [`Connector::AjpSecret`] requires.
    pub const SECRET: &str = "a secret of the tests";

    /// The `jvmRoute` of the shared instance.
    pub const ROUTE: &str = "one";

    /// The instance that all tests of this binary share; the first call starts it.
    ///
    /// # Errors
    /// As [`Tomcat::start`]; every call returns the same error.
    pub fn shared() -> anyhow::Result<&'static Self> {
        static SHARED: OnceLock<Result<Tomcat, String>> = OnceLock::new();
        let started = || Self::start(Self::ROUTE).map_err(|error| format!("{error:?}"));
        SHARED
            .get_or_init(started)
            .as_ref()
            .map_err(|error| anyhow::anyhow!(error.clone()))
    }

    /// Starts an instance with `route` as its `jvmRoute` and waits until it serves.
    ///
    /// # Errors
    /// Tomcat or Java is not installed, or Tomcat did not start; the message has its log.
    pub fn start(route: &str) -> anyhow::Result<Self> {
        Self::start_as(&Start::new(route))
    }

    /// As [`Tomcat::start`], with Tomcat's own examples under `/examples`.
    ///
    /// # Errors
    /// As [`Tomcat::start`].
    pub fn start_with_examples(route: &str) -> anyhow::Result<Self> {
        Self::start_as(&Start {
            examples: true,
            ..Start::new(route)
        })
    }

    /// As [`Tomcat::start`], with [`Connector::Ajp`] on the port of another instance, which has ended.
    ///
    /// # Errors
    /// As [`Tomcat::start`].
    pub fn start_in_place_of(ended: &Self, route: &str) -> anyhow::Result<Self> {
        Self::start_as(&Start {
            ajp: Some(ended.ajp),
            ..Start::new(route)
        })
    }

    /// Ends this instance, and starts one with another secret on [`Connector::AjpSecret`] at the same port.
    ///
    /// # Errors
    /// As [`Tomcat::start`].
    pub fn restart_with_secret(self, route: &str, secret: &str) -> anyhow::Result<Self> {
        let at = self.ajp_with_secret;
        drop(self);
        Self::start_as(&Start {
            secret,
            ajp_with_secret: Some(at),
            ..Start::new(route)
        })
    }

    fn start_as(start: &Start<'_>) -> anyhow::Result<Self> {
        is_installed()?;
        let directory = tempfile::tempdir()?;
        write_base(directory.path(), start)?;
        if start.examples {
            let contexts = directory.path().join("conf/Catalina/localhost");
            fs::create_dir_all(&contexts)?;
            fs::write(contexts.join("examples.xml"), EXAMPLES)?;
        }
        for fixed in start.ajp.iter().chain(&start.ajp_with_secret) {
            fix_port(directory.path(), *fixed)?;
        }
        let process = Process::spawn_in(&mut java(directory.path(), &[]), directory)?;
        wait_for_start(&process)?;
        let tomcat = Self {
            http: port(&process, "http-nio", "127.0.0.1")?,
            ajp: match start.ajp {
                Some(ajp) => ajp,
                None => port(&process, "ajp-nio", "127.0.0.2")?,
            },
            ajp_with_secret: match start.ajp_with_secret {
                Some(ajp) => ajp,
                None => port(&process, "ajp-nio", "127.0.0.3")?,
            },
            ajp_large: port(&process, "ajp-nio", "127.0.0.4")?,
            http_decoding: port(&process, "http-nio", "127.0.0.5")?,
            ajp_decoding: port(&process, "ajp-nio", "127.0.0.6")?,
            ajp_narrow: port(&process, "ajp-nio", "127.0.0.7")?,
            ajp_told: port(&process, "ajp-nio", "127.0.0.10")?,
            https: port(&process, "https-jsse-nio", "127.0.0.8")?,
            process,
        };
        Ok(tomcat)
    }

    /// The `--upstream` URL of a connector.
    #[must_use]
    pub fn url(&self, connector: Connector) -> String {
        match connector {
            Connector::Http => format!("http://{}", self.http),
            Connector::HttpUnix => format!("http+unix:{}", self.file("http.sock").display()),
            Connector::Https => format!("https://{}", self.https),
            Connector::Ajp => format!("ajp://{}", self.ajp),
            Connector::AjpSecret => format!("ajp://{}", self.ajp_with_secret),
            Connector::AjpLarge => format!("ajp://{}", self.ajp_large),
            Connector::AjpNarrow => format!("ajp://{}", self.ajp_narrow),
            Connector::AjpTold => format!("ajp://{}", self.ajp_told),
            Connector::AjpUnix => format!("ajp+unix:{}", self.file("ajp.sock").display()),
            Connector::HttpDecoding => format!("http://{}", self.http_decoding),
            Connector::AjpDecoding => format!("ajp://{}", self.ajp_decoding),
        }
    }

    /// The `[[upstream.NAME.backend]]` table of a connector.
    #[must_use]
    pub fn backend_table(&self, upstream: &str, connector: Connector) -> String {
        let mut table = format!("[[upstream.{upstream}.backend]]\n");
        let _ = writeln!(table, "url = \"{}\"", self.url(connector));
        match connector {
            Connector::AjpSecret => {
                let _ = writeln!(table, "secret = \"{}\"", Self::SECRET);
            }
            Connector::Https => {
                let authority = self.process.directory().join("conf/authority.pem");
                let _ = writeln!(table, "ca_file = \"{}\"", authority.display());
            }
            Connector::AjpLarge => table.push_str("packet_size = \"64KiB\"\n"),
            _ => {}
        }
        table
    }

    /// The address of the HTTP connector, for requests that bypass the front.
    #[must_use]
    pub fn http(&self) -> SocketAddr {
        self.http
    }

    /// Sends a GET to Tomcat itself, without a front.
    ///
    /// # Errors
    /// Tomcat did not answer.
    pub fn get(&self, target: &str) -> anyhow::Result<Response> {
        get(self.http, target)
    }

    /// As [`Tomcat::get`], to [`Connector::HttpDecoding`].
    ///
    /// # Errors
    /// Tomcat did not answer.
    pub fn get_decoding(&self, target: &str) -> anyhow::Result<Response> {
        get(self.http_decoding, target)
    }

    /// The file of the access log; its lines end in the request's id (docs/log.md).
    #[must_use]
    pub fn access_log(&self) -> PathBuf {
        self.file("logs/access.log")
    }

    /// The process, to stop it or to read its log.
    #[must_use]
    pub fn process(&self) -> &Process {
        &self.process
    }

    /// The path of a file in the base directory.
    fn file(&self, name: &str) -> PathBuf {
        self.process.directory().join(name)
    }
}

fn get(host: SocketAddr, target: &str) -> anyhow::Result<Response> {
    let mut client = HttpClient::connect(host)?;
    client.send(format!("GET {target} HTTP/1.1\r\nHost: {host}\r\n\r\n").as_bytes())?;
    client.receive().context("Tomcat's answer")
}

/// How an instance differs from others.
struct Start<'s> {
    route: &'s str,
    /// The secret that [`Connector::AjpSecret`] requires.
    secret: &'s str,
    /// The address of [`Connector::Ajp`]; `None` for a free port.
    ajp: Option<SocketAddr>,
    /// The address of [`Connector::AjpSecret`]; `None` for a free port.
    ajp_with_secret: Option<SocketAddr>,
    /// Whether Tomcat's own examples are deployed.
    examples: bool,
}

impl<'s> Start<'s> {
    fn new(route: &'s str) -> Self {
        Self {
            route,
            secret: Tomcat::SECRET,
            ajp: None,
            ajp_with_secret: None,
            examples: false,
        }
    }
}

fn write_base(base: &Path, start: &Start<'_>) -> anyhow::Result<()> {
    for folder in [
        "conf",
        "logs",
        "temp",
        "webapps/ROOT/WEB-INF",
        "webapps/valve/META-INF",
        "webapps/app/WEB-INF",
        "webapps/app/private",
        "work",
    ] {
        fs::create_dir_all(base.join(folder))?;
    }
    let authority = Authority::new("Tomcat's authority")?;
    fs::write(base.join("conf/authority.pem"), authority.pem())?;
    authority.issue(&base.join("conf"), "https", &["127.0.0.8"])?;
    for (name, text) in CONF {
        let text = text
            .replace("@SECRET@", start.secret)
            .replace("@ROUTE@", start.route)
            .replace("@DIRECTORY@", &base.to_string_lossy());
        fs::write(base.join("conf").join(name), text)?;
    }
    for (name, text) in WEBAPP {
        fs::write(base.join("webapps/ROOT").join(name), text)?;
    }
    for (name, text) in WEBAPP_WITH_VALVES {
        fs::write(base.join("webapps/valve").join(name), text)?;
    }
    for (name, text) in LOGIN_WEBAPP {
        fs::write(base.join("webapps/app").join(name), text)?;
    }
    Ok(())
}

/// An error with what to do if Tomcat is not installed.
pub(crate) fn is_installed() -> anyhow::Result<()> {
    let bootstrap = Path::new(HOME).join("bin/bootstrap.jar");
    ensure!(
        bootstrap.exists(),
        "{} is missing: `cargo xtask test` installs it",
        bootstrap.display()
    );
    Ok(())
}

/// Waits until every connector accepts connections and every webapp is deployed.
pub(crate) fn wait_for_start(process: &Process) -> anyhow::Result<()> {
    process.wait_for_line("Tomcat's start", |line| {
        line.contains("Server startup in").then_some(())
    })
}

/// Writes the port of `at` into the connector that has the address of `at`.
fn fix_port(base: &Path, at: SocketAddr) -> anyhow::Result<()> {
    let file = base.join("conf/server.xml");
    let text = fs::read_to_string(&file)?;
    let free = format!("address=\"{}\" port=\"0\"", at.ip());
    let fixed = format!("address=\"{}\" port=\"{}\"", at.ip(), at.port());
    ensure!(text.contains(&free), "no connector with {free}");
    Ok(fs::write(file, text.replace(&free, &fixed))?)
}

/// The JVM as Debian's start script runs it, with a small heap, a quick start and further `options`.
pub(crate) fn java(base: &Path, options: &[&str]) -> Command {
    let home = Path::new(HOME);
    let class_path = format!("{HOME}/bin/bootstrap.jar:{HOME}/bin/tomcat-juli.jar");
    let mut command = Command::new("java");
    command
        .args(["-Xms64m", "-Xmx512m", "-XX:+UseSerialGC", "-Xshare:auto"])
        .args(options)
        // Tests use IPv4 on loopback; without this option Java binds IPv6 and logs such addresses.
        .arg("-Djava.net.preferIPv4Stack=true")
        .arg(format!("-Djava.io.tmpdir={}", base.join("temp").display()))
        .arg(format!("-Dcatalina.home={}", home.display()))
        .arg(format!("-Dcatalina.base={}", base.display()))
        .args(["-classpath", &class_path])
        .args(["org.apache.catalina.startup.Bootstrap", "start"])
        .current_dir(base)
        .env_remove("JAVA_TOOL_OPTIONS");
    command
}

/// The port of a connector, from a line of the log such as `Starting ProtocolHandler
/// ["ajp-nio-127.0.0.2-auto-2-38125"]`.
fn port(process: &Process, protocol: &str, address: &str) -> anyhow::Result<SocketAddr> {
    let prefix = format!("Starting ProtocolHandler [\"{protocol}-{address}-auto-");
    let what = format!("the port of {protocol} on {address}");
    let port = process.wait_for_line(&what, |line| {
        let (_, rest) = line.split_once(&prefix)?;
        let (_, port) = rest.split_once('-')?;
        port.split('"').next()?.parse::<u16>().ok()
    })?;
    Ok(SocketAddr::new(address.parse()?, port))
}

const HOME: &str = "/usr/share/tomcat10";

const WEBAPP: &[(&str, &str)] = &[
    ("WEB-INF/web.xml", include_str!("../webapp/WEB-INF/web.xml")),
    ("attributes.jsp", include_str!("../webapp/attributes.jsp")),
    ("cached.jsp", include_str!("../webapp/cached.jsp")),
    ("download.jsp", include_str!("../webapp/download.jsp")),
    ("gate.jsp", include_str!("../webapp/gate.jsp")),
    ("guarded.jsp", include_str!("../webapp/guarded.jsp")),
    ("ignore.jsp", include_str!("../webapp/ignore.jsp")),
    ("method.jsp", include_str!("../webapp/method.jsp")),
    ("open.jsp", include_str!("../webapp/open.jsp")),
    ("page.html", include_str!("../webapp/page.html")),
    ("session.jsp", include_str!("../webapp/session.jsp")),
    ("snoop.jsp", include_str!("../webapp/snoop.jsp")),
    ("status.jsp", include_str!("../webapp/status.jsp")),
    ("tls.jsp", include_str!("../webapp/tls.jsp")),
    ("upload.jsp", include_str!("../webapp/upload.jsp")),
];

/// The application under `/valve/`, with Tomcat's SSLValve and RemoteIpValve before it.
const WEBAPP_WITH_VALVES: &[(&str, &str)] = &[
    ("META-INF/context.xml", include_str!("../conf/valves.xml")),
    ("tls.jsp", include_str!("../webapp/tls.jsp")),
];

/// The application `/app`, which has a FORM login.
const LOGIN_WEBAPP: &[(&str, &str)] = &[
    (
        "WEB-INF/web.xml",
        include_str!("../webapp-login/WEB-INF/web.xml"),
    ),
    ("failed.jsp", include_str!("../webapp-login/failed.jsp")),
    ("go.jsp", include_str!("../webapp-login/go.jsp")),
    ("index.jsp", include_str!("../webapp-login/index.jsp")),
    ("login.jsp", include_str!("../webapp-login/login.jsp")),
    (
        "private/index.jsp",
        include_str!("../webapp-login/private/index.jsp"),
    ),
];

/// The context of Debian's examples, whose libraries are links.
const EXAMPLES: &str = "<Context docBase=\"/usr/share/tomcat10-examples/examples\">\
                        <Resources allowLinking=\"true\"/></Context>\n";

//! Servlet containers of several kinds and versions, each embedded in a launcher of one page.
//!
//! The launchers are those of `tier`; the application is a Java source in `containers/` of this crate. `java`
//! compiles both at the start. `tier` lists the jars, and `cargo xtask needs` fetches them. Each connector listens on
//! a free port. These containers show what differs between containers; tests of the front alone use
//! [`crate::Tomcat`].

use std::path::Path;
use std::process::Command;
use std::{env, fs};

use anyhow::{Context, ensure};
use catamaran_testkit::Process;
use catamaran_tier::java;

/// A kind and version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Container {
    /// Tomcat 7.0, with its blocking AJP connector besides the non-blocking one.
    Tomcat7,
    /// Tomcat 8.5.
    Tomcat85,
    /// Tomcat 9.0, with its asynchronous AJP connector (NIO2) besides the non-blocking one.
    Tomcat9,
    /// Debian's Tomcat 10.
    Tomcat10,
    /// Tomcat 11.0.
    Tomcat11,
    /// Undertow 2.3, the web server of WildFly and JBoss EAP.
    Undertow,
    /// Jetty 8, the last version but one with AJP.
    Jetty8,
}

/// A running container. It ends when it is dropped.
#[derive(Debug)]
pub struct Embedded {
    /// Dropping it ends the container.
    _process: Process,
    urls: Vec<String>,
}

/// The parts of a container, and how it is started.
struct Recipe {
    /// The folder of jars: absolute, or below [`java::CONTAINERS`].
    folder: &'static str,
    /// The launcher's source.
    launcher: &'static str,
    /// The package of the servlet API.
    api: &'static str,
    /// The connectors: protocol, and the launcher's name for it.
    connectors: &'static [(Scheme, &'static str)],
}

#[derive(Clone, Copy)]
enum Scheme {
    Http,
    Ajp,
}

impl Container {
    fn recipe(self) -> Recipe {
        let tomcat = |folder, api, connectors| Recipe {
            folder,
            launcher: java::TOMCAT,
            api,
            connectors,
        };
        match self {
            Self::Tomcat7 => tomcat("tomcat-7", "javax", &[HTTP_NIO, AJP_BIO, AJP_NIO]),
            Self::Tomcat85 => tomcat("tomcat-8.5", "javax", &[HTTP_NIO, AJP_NIO]),
            Self::Tomcat9 => tomcat("tomcat-9", "javax", &[HTTP_NIO, AJP_NIO, AJP_NIO2]),
            Self::Tomcat10 => tomcat("/usr/share/tomcat10/lib", "jakarta", &[HTTP_NIO, AJP_NIO]),
            Self::Tomcat11 => tomcat("tomcat-11", "jakarta", &[HTTP_NIO, AJP_NIO]),
            Self::Undertow => Recipe {
                folder: "undertow",
                launcher: java::UNDERTOW,
                api: "jakarta",
                connectors: EITHER,
            },
            Self::Jetty8 => Recipe {
                folder: "jetty-8",
                launcher: java::JETTY,
                api: "javax",
                connectors: EITHER,
            },
        }
    }

    /// Starts the container and waits until it serves.
    ///
    /// # Errors
    /// Java or the jars are not installed, or the container did not start; the message has its log.
    pub fn start(self) -> anyhow::Result<Embedded> {
        self.start_with(&[])
    }

    /// As [`Container::start`], with `route` at the end of each session id. For Undertow only.
    ///
    /// # Errors
    /// As [`Container::start`].
    pub fn start_with_route(self, route: &str) -> anyhow::Result<Embedded> {
        ensure!(self == Self::Undertow, "only its launcher knows routes");
        self.start_with(&[format!("-Droute={route}")])
    }

    fn start_with(self, options: &[String]) -> anyhow::Result<Embedded> {
        let recipe = self.recipe();
        let directory = tempfile::tempdir()?;
        let source = directory.path().join("Launcher.java");
        let text = format!("{}{APPLICATION}", recipe.launcher);
        fs::write(&source, text.replace("@API@", recipe.api))?;
        let mut command = Command::new("java");
        command
            // A cheap start matters more here than speed afterwards.
            .args(["-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"])
            .arg("-Djava.net.preferIPv4Stack=true")
            .arg(format!("-Djava.io.tmpdir={}", directory.path().display()))
            .args(options)
            .args(["-classpath", &class_path(recipe.folder)?])
            .arg(&source)
            .args(recipe.connectors.iter().map(|(_, name)| name))
            .env_remove("JAVA_TOOL_OPTIONS");
        let process = Process::spawn_in(&mut command, directory)?;
        let line = process.wait_for_line("the container's start", |line| {
            Some(line.strip_prefix("ready ")?.to_owned())
        })?;
        let ports: Vec<&str> = line.split(' ').collect();
        ensure!(ports.len() == recipe.connectors.len(), "{ports:?}");
        let connectors = recipe.connectors.iter().zip(ports);
        let urls = connectors.map(|((scheme, _), port)| match scheme {
            Scheme::Http => format!("http://127.0.0.1:{port}"),
            Scheme::Ajp => format!("ajp://127.0.0.1:{port}"),
        });
        Ok(Embedded {
            urls: urls.collect(),
            _process: process,
        })
    }
}

impl Embedded {
    /// The `--upstream` URL of each connector.
    pub fn urls(&self) -> impl Iterator<Item = &str> {
        self.urls.iter().map(String::as_str)
    }
}

/// All jars of a folder; those for logging are elsewhere on a Debian.
fn class_path(folder: &str) -> anyhow::Result<String> {
    if Path::new(folder).is_absolute() {
        return Ok(format!("{folder}/*:{folder}/../bin/*"));
    }
    let home = env::var_os("HOME").context("HOME is not set")?;
    let jars = java::CONTAINERS.folder(Path::new(&home));
    ensure!(
        java::CONTAINERS.are_fetched(&jars),
        "the containers in {} are missing or old: `cargo xtask needs` fetches them",
        jars.display()
    );
    Ok(format!("{}/*", jars.join(folder).display()))
}

/// A servlet without its imports, in which `@API@` stands for the package of the servlet API.
pub(crate) const APPLICATION: &str = include_str!("../containers/Application.java");

const HTTP_NIO: (Scheme, &str) = (Scheme::Http, "org.apache.coyote.http11.Http11NioProtocol");
const AJP_BIO: (Scheme, &str) = (Scheme::Ajp, "org.apache.coyote.ajp.AjpProtocol");
const AJP_NIO: (Scheme, &str) = (Scheme::Ajp, "org.apache.coyote.ajp.AjpNioProtocol");
const AJP_NIO2: (Scheme, &str) = (Scheme::Ajp, "org.apache.coyote.ajp.AjpNio2Protocol");
const EITHER: &[(Scheme, &str)] = &[(Scheme::Http, "http"), (Scheme::Ajp, "ajp")];

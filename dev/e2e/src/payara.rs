//! Payara Micro, whose AJP13 connector is Grizzly's, as in GlassFish.
//!
//! It starts from one jar of 90 MB, which `cargo xtask payara` fetches, in some ten seconds. The application is that
//! of [`crate::Container`], compiled and unpacked as a webapp. Payara must be told a port, so it gets a loopback
//! address that only this process uses.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::time::Duration;
use std::{env, fs};

use anyhow::{Context, ensure};
use catamaran_testkit::{Deadline, Process, address};
use catamaran_tier::java;
use tempfile::TempDir;

use crate::container::APPLICATION;

/// A running Payara. It ends when it is dropped.
#[derive(Debug)]
pub struct Payara {
    /// Dropping it ends Payara.
    _process: Process,
    address: SocketAddr,
}

impl Payara {
    /// Starts Payara with an AJP13 listener, and waits until it serves.
    ///
    /// # Errors
    /// Java or the jars are missing, or Payara did not start; the message has its log.
    pub fn start() -> anyhow::Result<Self> {
        let home = env::var_os("HOME").context("HOME is not set")?;
        let jars = java::PAYARA.folder(Path::new(&home));
        ensure!(
            java::PAYARA.are_fetched(&jars),
            "Payara is not in {}: `cargo xtask payara` fetches it",
            jars.display()
        );
        let directory = tempfile::tempdir()?;
        compile(directory.path(), &jars)?;
        let address = address::unused()?;
        let settings = directory.path().join("settings.txt");
        fs::write(&settings, listener(address))?;
        let process = Process::spawn_in(&mut command(&directory, &jars, address), directory)?;
        let ready = || {
            let said = process.stdout() + &process.stderr();
            said.contains(" ready in ").then_some(())
        };
        let started = Deadline::after(PATIENCE).poll("Payara's start", ready);
        started.with_context(|| process.stdout() + &process.stderr())?;
        Ok(Self {
            _process: process,
            address,
        })
    }

    /// The address for AJP13.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

/// The commands of asadmin that turn the HTTP listener into one for AJP13.
fn listener(address: SocketAddr) -> String {
    let ip = address.ip();
    format!("set {LISTENER}.address={ip}\nset {LISTENER}.jk-enabled=true\n")
}

/// Makes the webapp `app` in `directory`.
fn compile(directory: &Path, jars: &Path) -> anyhow::Result<()> {
    let app = directory.join("app/WEB-INF");
    fs::create_dir_all(app.join("classes"))?;
    fs::write(app.join("web.xml"), WEB_XML)?;
    let source = directory.join("Application.java");
    let text = APPLICATION.replace("@API@", "jakarta");
    // Payara creates the servlet, so the class must be public.
    fs::write(&source, text.replacen("class ", "public class ", 1))?;
    let output = Command::new("javac")
        .arg("-classpath")
        .arg(jars.join("jakarta.servlet-api-6.0.0.jar"))
        .arg("-d")
        .arg(app.join("classes"))
        .arg(&source)
        .output()
        .context("cannot run javac")?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "javac: {said}");
    Ok(())
}

fn command(directory: &TempDir, jars: &Path, address: SocketAddr) -> Command {
    let directory = directory.path();
    let mut command = Command::new("java");
    command
        .args(["-Xmx400m", "-Djava.net.preferIPv4Stack=true"])
        // Java from 17.0.8 on refuses one of its jars without this option.
        .arg("-Djdk.util.zip.disableZip64ExtraFieldValidation=true")
        .arg(format!("-Djava.io.tmpdir={}", directory.display()))
        .arg("-jar")
        .arg(jars.join("payara-micro-6.2023.4.jar"))
        .args(["--nohazelcast", "--disablephonehome"])
        .args(["--port", &address.port().to_string()])
        .arg("--prebootcommandfile")
        .arg(directory.join("settings.txt"))
        .arg("--deploy")
        .arg(directory.join("app"))
        .args(["--contextroot", "/"])
        .env_remove("JAVA_TOOL_OPTIONS");
    command
}

/// The name of the listener that Payara Micro has.
const LISTENER: &str =
    "configs.config.server-config.network-config.network-listeners.network-listener.http-listener";

/// How long a start may take on a machine that does other work, too.
const PATIENCE: Duration = Duration::from_secs(180);

const WEB_XML: &str = r#"<web-app xmlns="https://jakarta.ee/xml/ns/jakartaee" version="6.0">
  <servlet>
    <servlet-name>application</servlet-name>
    <servlet-class>Application</servlet-class>
  </servlet>
  <servlet-mapping>
    <servlet-name>application</servlet-name>
    <url-pattern>/</url-pattern>
  </servlet-mapping>
</web-app>
"#;

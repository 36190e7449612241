//! Payara Micro, whose connector for AJP13 is Grizzly's, as GlassFish's is.
//!
//! It starts from one jar of 90 MB, which `cargo xtask payara` fetches, in some ten seconds. The
//! application is that of [`crate::Container`]'s, compiled and unpacked as a webapp. Payara wants to be
//! told a port; this one is of a loopback address that only this process takes from.

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
    /// Kept for its end.
    _process: Process,
    address: SocketAddr,
}

impl Payara {
    /// Starts Payara with an AJP13 listener, and waits until it serves.
    ///
    /// # Errors
    /// Java or the jars are missing, or it did not come up; the message has its log.
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

    /// Where it speaks AJP13.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

/// What makes the HTTP listener one for AJP13, as commands of asadmin.
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
    // Payara makes the servlet itself, which it may do of a public class only.
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
        // One of its jars has a field that Java refuses since 17.0.8.
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

/// The listener that Payara Micro has.
const LISTENER: &str =
    "configs.config.server-config.network-config.network-listeners.network-listener.http-listener";

/// For a start on a machine that does other work.
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

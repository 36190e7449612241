//! A WildFly with one webapp, configured by `standalone-ha.xml` of its distribution.
//!
//! Two settings of that file are changed: the listener by which the front reaches it, and its load, which is
//! constant, so that both nodes get new sessions whatever else this machine does.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use std::{env, fs};

use anyhow::{Context as _, ensure};
use catamaran_testkit::{Deadline, Process};
use catamaran_tier::java;
use tempfile::TempDir;

use crate::network;

/// A node, which may be running or not.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) name: &'static str,
    /// The last number of its address.
    host: u8,
    /// The directory of WildFly.
    home: PathBuf,
    /// The node's directory: configuration, deployments, logs.
    base: TempDir,
    process: Option<Process>,
}

/// The settings of a node.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NodePlan {
    pub(crate) name: &'static str,
    pub(crate) host: u8,
    /// The name of the listener in the subsystem `undertow`: `ajp`, or `default` for HTTP.
    pub(crate) listener: &'static str,
    /// The protocol and address by which the front must reach it.
    pub(crate) speech: &'static str,
    pub(crate) address: &'static str,
}

impl Node {
    /// Makes the directory of a node.
    ///
    /// # Errors
    /// WildFly was not fetched, or its file differs from that of version 39.
    pub(crate) fn prepare(plan: NodePlan) -> anyhow::Result<Self> {
        let user = env::var_os("HOME").context("HOME is not set")?;
        let fetched = java::WILDFLY.folder(Path::new(&user));
        ensure!(
            java::WILDFLY.are_fetched(&fetched),
            "WildFly is not in {}: `cargo xtask wildfly-members` fetches it",
            fetched.display()
        );
        let home = fetched.join(java::WILDFLY_FOLDER);
        let base = tempfile::tempdir()?;
        copy(&home.join("standalone"), base.path())?;
        let file = base.path().join("configuration/standalone-ha.xml");
        fs::write(&file, configuration(&fs::read_to_string(&file)?, plan)?)?;
        deploy(&base.path().join("deployments"))?;
        Ok(Self {
            name: plan.name,
            host: plan.host,
            home,
            base,
            process: None,
        })
    }

    /// Starts the node without waiting until it serves.
    pub(crate) fn start(&mut self) -> anyhow::Result<()> {
        let (address, base) = (format!("10.77.0.{}", self.host), self.base.path().display());
        let mut command = self.script("standalone.sh");
        command
            .args(["-c", "standalone-ha.xml", "-b", &address])
            .args(["-bprivate", &address, "-bmanagement", "127.0.0.1"])
            .arg(format!("-Djboss.server.base.dir={base}"))
            .arg(format!("-Djboss.node.name={}", self.name))
            // A cheap start matters more here than speed afterwards.
            .env(
                "JAVA_OPTS",
                "-Xmx512m -Djava.net.preferIPv4Stack=true -XX:TieredStopAtLevel=1",
            );
        self.process = Some(Process::spawn(&mut command)?);
        Ok(())
    }

    /// Runs an operation by the command line client. The operation may take effect later than the client ends.
    pub(crate) fn tell(&self, operation: &str) -> anyhow::Result<Process> {
        let mut command = self.script("jboss-cli.sh");
        command
            .args(["--connect", "--controller=127.0.0.1:9990"])
            .arg(format!("--command={operation}"))
            .env("JAVA_OPTS", "-Xmx128m -XX:TieredStopAtLevel=1");
        Process::spawn(&mut command)
    }

    /// Waits until the node has ended.
    pub(crate) fn wait_for_end(&mut self) -> anyhow::Result<()> {
        let mut process = self.process.take().context("the node does not run")?;
        let status = process.wait(Deadline::after(PATIENCE))?;
        ensure!(status.success(), "{}: {status}", self.name);
        Ok(())
    }

    /// The last lines of the node's log.
    pub(crate) fn log(&self) -> String {
        let said = self.process.as_ref().map(Process::stdout);
        let said = said.unwrap_or_default();
        let lines: Vec<&str> = said.lines().collect();
        lines[lines.len().saturating_sub(LINES)..].join("\n")
    }

    /// The command of a script of WildFly, in the namespace of the node.
    fn script(&self, name: &str) -> Command {
        let mut command = network::at(self.host, "bash");
        command
            .arg(self.home.join("bin").join(name))
            .current_dir(self.base.path())
            .env_remove("JAVA_TOOL_OPTIONS");
        command
    }
}

/// The file of the distribution with the listener of `plan` and a constant load.
fn configuration(text: &str, plan: NodePlan) -> anyhow::Result<String> {
    let (before, rest) = text
        .split_once(PROXY)
        .context("no proxy for listener ajp")?;
    let (_, after) = rest
        .split_once("</dynamic-load-provider>")
        .context("no dynamic load")?;
    let proxy = PROXY.replace("\"ajp\"", &format!("{:?}", plan.listener));
    Ok(format!(
        "{before}{proxy}<simple-load-provider factor=\"1\"/>{after}"
    ))
}

/// Writes the webapp `/demo`.
fn deploy(deployments: &Path) -> anyhow::Result<()> {
    let webapp = deployments.join("demo.war");
    fs::create_dir_all(webapp.join("WEB-INF"))?;
    fs::write(webapp.join("index.jsp"), PAGE)?;
    fs::write(webapp.join("WEB-INF/web.xml"), WEB)?;
    // WildFly deploys a directory only if this file exists.
    Ok(fs::write(deployments.join("demo.war.dodeploy"), "")?)
}

fn copy(from: &Path, to: &Path) -> anyhow::Result<()> {
    let mut copy = Command::new("cp");
    copy.arg("-r").arg(from.join(".")).arg(to);
    let status = copy.status().context("cannot run cp")?;
    ensure!(status.success(), "cp {}: {status}", from.display());
    Ok(())
}

/// The element in the subsystem `modcluster` that names the listener.
const PROXY: &str = "<proxy name=\"default\" advertise-socket=\"modcluster\" listener=\"ajp\">";

/// A page that counts the visits of a session.
const PAGE: &str = "<%@ page contentType=\"text/plain\" session=\"true\" %><%
Integer visits = (Integer) session.getAttribute(\"visits\");
visits = visits == null ? 1 : visits + 1;
session.setAttribute(\"visits\", visits);
out.print(System.getProperty(\"jboss.node.name\") + \" \" + visits);
%>";

const WEB: &str = "<web-app xmlns=\"https://jakarta.ee/xml/ns/jakartaee\" version=\"6.0\"/>\n";

/// How many lines of a log are shown.
const LINES: usize = 40;

/// How long a node may take to start or end on a machine that does other work.
pub(crate) const PATIENCE: Duration = Duration::from_secs(240);

//! Debian's Tomcat 10 with a WAR that can be replaced while it runs, and that is started again when it ends.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Command;

use anyhow::ensure;
use catamaran_testkit::{Deadline, HttpClient, Process};

use crate::server;

/// A running Tomcat with the webapp `/shop`, whose page `/shop/page.html` caches may keep for a second.
#[derive(Debug)]
pub struct Deployed {
    process: Process,
    http: SocketAddr,
}

impl Deployed {
    /// Starts Tomcat, and waits until it serves the page.
    ///
    /// # Errors
    /// Tomcat or a JDK is not installed, or it did not start; the message has its log.
    pub fn start() -> anyhow::Result<Self> {
        let (process, http) = server::start_on("tomcat10-war", "http", &[])?;
        let tomcat = Self { process, http };
        let served = || {
            let mut client = HttpClient::connect(http).ok()?;
            let request = format!("GET /shop/page.html HTTP/1.1\r\nHost: {http}\r\n\r\n");
            client.send(request.as_bytes()).ok()?;
            (client.receive().ok()?.status == 200).then_some(())
        };
        Deadline::default().poll("the page of the WAR", served)?;
        Ok(tomcat)
    }

    /// The URL of the HTTP connector.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.http)
    }

    /// Replaces the WAR by another one, and waits until Tomcat has deployed it.
    ///
    /// # Errors
    /// The WAR cannot be made, or Tomcat does not deploy it.
    pub fn replace(&self) -> anyhow::Result<()> {
        let mut shell = Command::new("/bin/sh");
        shell.arg(self.file("replace.sh"));
        self.do_until(&mut shell, "shop.war] has finished")
    }

    /// Ends Tomcat in order, and waits until another process of it has started.
    ///
    /// # Errors
    /// Tomcat does not end or start.
    pub fn restart(&self) -> anyhow::Result<()> {
        let mut shell = Command::new("/bin/sh");
        shell.arg("-c");
        shell.arg(format!("kill $(cat {})", self.file("tomcat.pid").display()));
        self.do_until(&mut shell, "Server startup in")
    }

    /// Runs a command, and waits for a line of Tomcat's log with `done` in it.
    fn do_until(&self, command: &mut Command, done: &str) -> anyhow::Result<()> {
        let count = || self.process.stderr().matches(done).count();
        let before = count();
        let status = command.status()?;
        ensure!(status.success(), "{command:?} ended with {status}");
        Deadline::default().poll(done, || (count() > before).then_some(()))?;
        Ok(())
    }

    fn file(&self, name: &str) -> PathBuf {
        self.process.directory().join(name)
    }
}

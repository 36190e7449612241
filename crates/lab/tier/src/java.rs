//! Servlet containers and clients as jars from Maven's repository, and the launchers that embed them.
//!
//! A launcher is the Java source of a page, compiled by `java` when it is started; each needs a class
//! `Application` behind it, which is a servlet. [`Jars::fetch`] has Maven bring the jars of a list.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{fs, io};

/// A list of jars, and the folder that Maven copies them to.
#[derive(Clone, Copy, Debug)]
pub struct Jars {
    /// `{{ program.NAME }}` in targets is the folder.
    pub name: &'static str,
    folder: &'static str,
    /// The jars, each with its version and its folder below.
    list: &'static str,
    /// The goal that Maven runs.
    goal: &'static str,
}

/// Servlet containers.
pub const CONTAINERS: Jars = Jars {
    name: "jars",
    folder: "containers",
    list: include_str!("../java/pom.xml"),
    goal: COPY,
};
/// Clients of memcached and of HTTP.
pub const CLIENTS: Jars = Jars {
    name: "clients",
    folder: "clients",
    list: include_str!("../java/clients.xml"),
    goal: COPY,
};
/// Clients of memcached that an experiment compares.
pub const MEMCACHED: Jars = Jars {
    name: "memcached_clients",
    folder: "memcached-clients",
    list: include_str!("../java/memcached.xml"),
    goal: COPY,
};
/// Payara, which a long run needs and no test: not among [`ALL`].
pub const PAYARA: Jars = Jars {
    name: "payara",
    folder: "payara",
    list: include_str!("../java/payara.xml"),
    goal: COPY,
};
/// WildFly, which a long run needs and no test: not among [`ALL`]. It is unpacked into [`WILDFLY_FOLDER`].
pub const WILDFLY: Jars = Jars {
    name: "wildfly",
    folder: "wildfly",
    list: include_str!("../java/wildfly.xml"),
    goal: UNPACK,
};
/// The directory of WildFly in the folder of [`WILDFLY`].
pub const WILDFLY_FOLDER: &str = "wildfly-39.0.1.Final";
/// All lists that tests and experiments use.
pub const ALL: [Jars; 3] = [CONTAINERS, CLIENTS, MEMCACHED];
/// Launches Tomcat 7 to 11.
pub const TOMCAT: &str = include_str!("../java/Tomcat.java");
/// Launches Undertow.
pub const UNDERTOW: &str = include_str!("../java/Undertow.java");
/// Launches Jetty 8.
pub const JETTY: &str = include_str!("../java/Jetty.java");

impl Jars {
    /// The folder of the jars: beside Maven's own cache, so that all checkouts share them. `home` is the user's
    /// directory.
    #[must_use]
    pub fn folder(&self, home: &Path) -> PathBuf {
        home.join(".cache/catamaran").join(self.folder)
    }

    /// Whether the jars of today's list are in `folder`.
    #[must_use]
    pub fn are_fetched(&self, folder: &Path) -> bool {
        fs::read_to_string(folder.join(STAMP)).is_ok_and(|fetched| fetched == self.list)
    }

    /// Has Maven fetch the jars into `folder`, unless those of the same list are there.
    ///
    /// # Errors
    /// Maven is missing or fails, with what it says; or the folder cannot be written.
    pub fn fetch(&self, folder: &Path) -> io::Result<()> {
        if self.are_fetched(folder) {
            return Ok(());
        }
        if folder.exists() {
            fs::remove_dir_all(folder)?;
        }
        fs::create_dir_all(folder)?;
        // Maven takes its list from a file.
        let list = tempfile::Builder::new().suffix(".xml").tempfile()?;
        fs::write(list.path(), self.list)?;
        let output = Command::new("mvn")
            .args(["--quiet", "--batch-mode", "--file"])
            .arg(list.path())
            .arg(format!("-Dcontainers={}", folder.display()))
            .arg(self.goal)
            .output()
            .map_err(|error| io::Error::new(error.kind(), format!("cannot run mvn: {error}")))?;
        if !output.status.success() {
            let said = [output.stdout, output.stderr].concat();
            let said = String::from_utf8_lossy(&said);
            let what = self.folder;
            return Err(io::Error::other(format!(
                "mvn could not fetch the {what}\n{said}"
            )));
        }
        // The last step: where this file is, all jars are.
        fs::write(folder.join(STAMP), self.list)
    }
}

/// A copy of the list by which the jars were fetched.
const STAMP: &str = "pom.xml";

const COPY: &str = "dependency:copy";
const UNPACK: &str = "dependency:unpack";

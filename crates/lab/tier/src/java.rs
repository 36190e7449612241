//! Servlet containers and clients as jars from Maven's repository, and launchers in Java that embed them.
//!
//! A launcher is the Java source of a server that `java` compiles when it is started; each needs a
//! class `Application` after it, which is a servlet. [`Jars::fetch`] has Maven fetch the jars of a
//! list.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{fs, io};

/// A list of jars, and the folder that Maven copies them to.
#[derive(Clone, Copy, Debug)]
pub struct Jars {
    /// The name of the list: `{{ program.NAME }}` in targets is its folder.
    pub name: &'static str,
    folder: &'static str,
    /// Maven's project file (`pom.xml`) with the jars, each with its version and its folder.
    list: &'static str,
    /// The goal that Maven runs: it copies or unpacks the jars.
    goal: &'static str,
}

/// The jars of the servlet containers.
pub const CONTAINERS: Jars = Jars {
    name: "jars",
    folder: "containers",
    list: include_str!("../java/pom.xml"),
    goal: COPY,
};
/// The jars of clients of memcached and of HTTP.
pub const CLIENTS: Jars = Jars {
    name: "clients",
    folder: "clients",
    list: include_str!("../java/clients.xml"),
    goal: COPY,
};
/// The jars of the clients of memcached that an experiment compares.
pub const MEMCACHED: Jars = Jars {
    name: "memcached_clients",
    folder: "memcached-clients",
    list: include_str!("../java/memcached.xml"),
    goal: COPY,
};
/// Payara, for long runs only: not in [`ALL`].
pub const PAYARA: Jars = Jars {
    name: "payara",
    folder: "payara",
    list: include_str!("../java/payara.xml"),
    goal: COPY,
};
/// WildFly, for long runs only: not in [`ALL`]. It is unpacked into [`WILDFLY_FOLDER`].
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
/// The source of the launcher of Tomcat 7 to 11.
pub const TOMCAT: &str = include_str!("../java/Tomcat.java");
/// The source of the launcher of Undertow.
pub const UNDERTOW: &str = include_str!("../java/Undertow.java");
/// The source of the launcher of Jetty 8.
pub const JETTY: &str = include_str!("../java/Jetty.java");

impl Jars {
    /// The folder of the jars: outside the checkout, so that all checkouts share it. `home` is the
    /// user's home directory.
    #[must_use]
    pub fn folder(&self, home: &Path) -> PathBuf {
        home.join(".cache/catamaran").join(self.folder)
    }

    /// Whether `folder` has the jars of the current list, not of an older one.
    #[must_use]
    pub fn are_fetched(&self, folder: &Path) -> bool {
        fs::read_to_string(folder.join(STAMP)).is_ok_and(|fetched| fetched == self.list)
    }

    /// Has Maven fetch the jars into `folder`, unless it has them already.
    ///
    /// # Errors
    /// Maven is missing or fails, with its message; or the folder cannot be written.
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
            // All lists use this name for their folder.
            .arg(format!("-Dcontainers={}", folder.display()))
            .arg(self.goal)
            .output()
            .map_err(|error| io::Error::new(error.kind(), format!("cannot run mvn: {error}")))?;
        if !output.status.success() {
            let bytes = [output.stdout, output.stderr].concat();
            let said = String::from_utf8_lossy(&bytes);
            let jars = self.folder;
            let what = format!("mvn could not fetch the {jars}\n{said}");
            return Err(io::Error::other(what));
        }
        // The last step: where this file is, all jars are.
        fs::write(folder.join(STAMP), self.list)
    }
}

/// A file with a copy of the list, which is written once all jars are fetched.
const STAMP: &str = "pom.xml";

const COPY: &str = "dependency:copy";
const UNPACK: &str = "dependency:unpack";

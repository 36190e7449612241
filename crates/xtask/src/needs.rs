//! What the end-to-end tests and comparisons run against: Debian's packages, and servlet containers
//! from Maven's repository, installed when they are missing.
//!
//! Nothing is skipped when a server is missing: it is installed, or the command fails and says
//! what to install. Installing never leaves a service running, so no test meets a server that it
//! did not start.

use std::path::Path;
use std::{env, fs};

use anyhow::Context;

use crate::step::{program, say};

/// A Debian package, and a file that is there once it is installed.
pub(crate) struct Need {
    package: &'static str,
    proof: &'static str,
}

/// For the tests.
pub(crate) const TESTS: &[Need] = &[
    TOMCAT, JDK, MAVEN, APACHE, MOD_JK, NGINX, HAPROXY, MEMCACHED, AB, CHROMIUM, STRACE,
];

/// For `compare`; Apache's own package brings `mod_proxy_ajp` and `mod_proxy_http`.
pub(crate) const COMPARED: &[Need] = &[APACHE, MOD_JK, NGINX, HAPROXY, TOMCAT, WRK];

/// The server itself is in `tomcat10-common`; the package `tomcat10` adds a system user and a
/// service, which tests with their own directories and ports have no use for. The same goes for
/// `apache2-bin` and `apache2`.
const TOMCAT: Need = Need {
    package: "tomcat10-common",
    proof: "/usr/share/tomcat10/bin/bootstrap.jar",
};

/// The launchers of the other containers are compiled when a test starts them.
const JDK: Need = Need {
    package: "default-jdk-headless",
    proof: "/usr/bin/javac",
};

/// Fetches those containers.
const MAVEN: Need = Need {
    package: "maven",
    proof: "/usr/bin/mvn",
};

const APACHE: Need = Need {
    package: "apache2-bin",
    proof: "/usr/sbin/apache2",
};

const MOD_JK: Need = Need {
    package: "libapache2-mod-jk",
    proof: "/usr/lib/apache2/modules/mod_jk.so",
};

const NGINX: Need = Need {
    package: "nginx",
    proof: "/usr/sbin/nginx",
};

/// The tool that `bench` stands in for, to compare with.
const AB: Need = Need {
    package: "apache2-utils",
    proof: "/usr/bin/ab",
};

/// Looks at the pages of `bench report`.
const CHROMIUM: Need = Need {
    package: "chromium",
    proof: "/usr/bin/chromium",
};

/// Counts system calls, for `gauge` to be held against.
const STRACE: Need = Need {
    package: "strace",
    proof: "/usr/bin/strace",
};

const HAPROXY: Need = Need {
    package: "haproxy",
    proof: "/usr/sbin/haproxy",
};

/// A target of `tier`.
const MEMCACHED: Need = Need {
    package: "memcached",
    proof: "/usr/bin/memcached",
};

const WRK: Need = Need {
    package: "wrk",
    proof: "/usr/bin/wrk",
};

/// Forbids package scripts to start services, as Debian provides for (policy-rc.d exit 101), then
/// installs the packages given as arguments.
const INSTALL: &str = r#"
set -e
policy=/usr/sbin/policy-rc.d
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if [ ! -e "$policy" ]; then
    trap 'rm -f "$log" "$policy"' EXIT
    printf '#!/bin/sh\nexit 101\n' >"$policy"
    chmod 755 "$policy"
fi
export DEBIAN_FRONTEND=noninteractive
{
    apt-get -q -q update && apt-get -q -q install -y --no-install-recommends "$@"
} >"$log" 2>&1 || {
    cat "$log"
    exit 1
}
"#;

/// Installs what is missing and says so; quick when nothing is.
pub(crate) fn install(needs: &[Need]) -> anyhow::Result<()> {
    let missing = missing(needs, |proof| Path::new(proof).exists());
    if missing.is_empty() {
        say("everything needed is installed");
        return Ok(());
    }
    say(&format!("installing {} with apt-get", missing.join(" ")));
    let shell = ["sh", "-c", INSTALL, "sh"];
    let install = if is_root() {
        program(shell[0], &shell[1..])
    } else {
        program("sudo", &["-n"]).args(&shell)
    };
    install.args(&missing).finish().with_context(|| {
        let packages = missing.join(" ");
        format!("these Debian packages are needed, please install them: {packages}")
    })
}

/// Fetches the jars of the containers that the tests embed, unless those of the same list are there.
/// They are kept beside Maven's own cache, so that all checkouts share them.
pub(crate) fn fetch_containers(root: &Path) -> anyhow::Result<()> {
    let list = root.join("crates/e2e/containers/pom.xml");
    let wanted = fs::read(&list).with_context(|| list.display().to_string())?;
    let home = env::var_os("HOME").context("HOME is not set")?;
    let jars = Path::new(&home).join(".cache/catamaran/containers");
    let stamp = jars.join("pom.xml");
    if fs::read(&stamp).is_ok_and(|fetched| fetched == wanted) {
        return Ok(());
    }
    say("fetching servlet containers with mvn");
    if jars.exists() {
        fs::remove_dir_all(&jars)?;
    }
    let (list, target) = (list.to_string_lossy(), jars.to_string_lossy());
    let target = format!("-Dcontainers={target}");
    let fetch = ["--quiet", "--batch-mode", "--file", &list, &target];
    program("mvn", &fetch)
        .args(&["dependency:copy"])
        .finish()
        .context("mvn could not fetch the containers listed in crates/e2e/containers/pom.xml")?;
    // The last step: whoever finds it finds all jars.
    Ok(fs::write(stamp, wanted)?)
}

fn missing(needs: &[Need], exists: impl Fn(&str) -> bool) -> Vec<&'static str> {
    let missing = needs.iter().filter(|need| !exists(need.proof));
    missing.map(|need| need.package).collect()
}

fn is_root() -> bool {
    program("sh", &["-c", "test \"$(id -u)\" = 0"]).succeeds()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_missing_is_installed() {
        assert_eq!(missing(TESTS, |_| true), Vec::<&str>::new());
        let without_nginx = missing(TESTS, |proof| !proof.ends_with("nginx"));
        assert_eq!(without_nginx, ["nginx"]);
        assert_eq!(missing(TESTS, |_| false).len(), TESTS.len());
    }
}

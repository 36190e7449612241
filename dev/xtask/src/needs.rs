//! Installs what the end-to-end tests need: the servers of `tier`'s targets, and further tools.
//!
//! No test is skipped because a server is missing: it is installed, or the command fails and says what to install.

use std::path::Path;
use std::process::Command;
use std::{env, fs};

use anyhow::{Context, ensure};
use catamaran_tier::java::Jars;
use catamaran_tier::needs::{self, package};
use catamaran_tier::{Need, java};

use crate::step::say;

/// The programs that tests need.
pub(crate) fn of_tests() -> Vec<Need> {
    let tools = [
        // Sign users on, by the recipes of docs/sign-on.md.
        package(
            "libapache2-mod-auth-openidc",
            "/usr/lib/apache2/modules/mod_auth_openidc.so",
        ),
        package(
            "libapache2-mod-shib",
            "/usr/lib/apache2/modules/mod_shib.so",
        ),
        package(
            "libapache2-mod-auth-gssapi",
            "/usr/lib/apache2/modules/mod_auth_gssapi.so",
        ),
        package("krb5-kdc", "/usr/sbin/krb5kdc"),
        package("krb5-admin-server", "/usr/sbin/kadmin.local"),
        package("krb5-user", "/usr/bin/kinit"),
        // Compiles the launchers of embedded containers when they are started.
        package("default-jdk-headless", "/usr/bin/javac"),
        // Fetches those containers.
        package("maven", "/usr/bin/mvn"),
        // The tool that `bench` stands in for, to compare with, and the one that writes files of users.
        package("apache2-utils", "/usr/bin/ab"),
        // Looks at the pages of `bench report`.
        package("chromium", "/usr/bin/chromium"),
        // Has an application with a WebSocket echo, which tests reach through the front.
        package("tomcat10-examples", "/usr/share/tomcat10-examples"),
        // Clients of the tests of TLS.
        package("curl", "/usr/bin/curl"),
        package("nghttp2-client", "/usr/bin/h2load"),
        package("openssl", "/usr/bin/openssl"),
        // Sends the PROXY protocol, by which the front learns the client's address.
        package(
            "libnginx-mod-stream",
            "/usr/lib/nginx/modules/ngx_stream_module.so",
        ),
        // Fetches a parser of nmon's files, and the messages of OpenTelemetry.
        package("python3-pip", "/usr/bin/pip3"),
        // Checks metrics, rules and queries. The server that comes with it is not started.
        package("prometheus", "/usr/bin/promtool"),
        // Reads the unit file of `docs/examples`.
        package("systemd", "/usr/bin/systemd-analyze"),
        // Reads access logs, by the commands of docs/log.md.
        package("jq", "/usr/bin/jq"),
        // Moves an address between two fronts.
        package("keepalived", "/usr/sbin/keepalived"),
        // A source of members for `discover`.
        package("etcd-server", "/usr/bin/etcd"),
        package("etcd-client", "/usr/bin/etcdctl"),
        // Makes network namespaces.
        package("iproute2", "/bin/ip"),
        // Counts system calls, with which the counts of `gauge` are compared.
        package("strace", "/usr/bin/strace"),
        // A shell in which the completions are tried.
        package("zsh", "/usr/bin/zsh"),
        package("fish", "/usr/bin/fish"),
        lintian(),
        valgrind(),
    ];
    let mut needs = needs::of_targets();
    for tool in tools {
        if !needs.contains(&tool) {
            needs.push(tool);
        }
    }
    needs
}

/// lintian, which finds faults of Debian packages.
pub(crate) fn lintian() -> Need {
    package("lintian", "/usr/bin/lintian")
}

/// The program that lists the shared libraries of a binary.
pub(crate) fn shared_libraries() -> Need {
    package("dpkg-dev", "/usr/bin/dpkg-shlibdeps")
}

/// umoci, which makes and unpacks container images.
pub(crate) fn umoci() -> Need {
    package("umoci", "/usr/bin/umoci")
}

/// valgrind, which counts instructions.
pub(crate) fn valgrind() -> Need {
    package("valgrind", "/usr/bin/valgrind")
}

/// Installs those of `wanted` that are missing, and prints which. If none is missing, it only looks.
pub(crate) fn install(wanted: &[Need]) -> anyhow::Result<()> {
    let missing = needs::missing(wanted);
    let packages: Vec<String> = missing
        .into_iter()
        .filter_map(|need| need.package)
        .collect();
    if packages.is_empty() {
        say("everything needed is installed");
        return Ok(());
    }
    say(&format!("installing {} with apt-get", packages.join(" ")));
    Ok(needs::install(&packages)?)
}

/// Fetches the jars of the containers that tests and experiments use, unless they were fetched before.
pub(crate) fn fetch_containers() -> anyhow::Result<()> {
    fetch(&java::ALL)
}

/// Fetches Payara, unless it was fetched before.
pub(crate) fn fetch_payara() -> anyhow::Result<()> {
    fetch(&[java::PAYARA])
}

/// Fetches WildFly, unless it was fetched before.
pub(crate) fn fetch_wildfly() -> anyhow::Result<()> {
    fetch(&[java::WILDFLY])
}

/// Fetches those lists of jars that are not in the home directory yet.
fn fetch(lists: &[Jars]) -> anyhow::Result<()> {
    let home = env::var_os("HOME").context("HOME is not set")?;
    for jars in lists {
        let folder = jars.folder(Path::new(&home));
        if !jars.are_fetched(&folder) {
            say(&format!("fetching {} with mvn", folder.display()));
            jars.fetch(&folder)?;
        }
    }
    Ok(())
}

/// Fetches the Python packages that tests use, unless they were fetched before. All checkouts share them, as
/// they share the jars.
pub(crate) fn fetch_parsers() -> anyhow::Result<()> {
    let home = env::var_os("HOME").context("HOME is not set")?;
    let folder = Path::new(&home).join(".cache/catamaran/python");
    let stamp = folder.join("requirements.txt");
    if fs::read_to_string(&stamp).is_ok_and(|fetched| fetched == PARSERS) {
        return Ok(());
    }
    say(&format!("fetching {} with pip", folder.display()));
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(&folder)?;
    let list = folder.join("wanted.txt");
    fs::write(&list, PARSERS)?;
    let mut pip = Command::new("python3");
    pip.args([
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-deps",
        "--require-hashes",
    ])
    .args(["--disable-pip-version-check", "--target"])
    .arg(&folder)
    .arg("--requirement")
    .arg(&list);
    let output = pip.output().context("cannot run python3 -m pip")?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(
        output.status.success(),
        "pip could not fetch {}: {errors}",
        PARSERS.trim_end()
    );
    // The stamp is written last: if it exists, all packages do.
    Ok(fs::rename(list, stamp)?)
}

/// Makes the programs of Go modules that tests use, unless they were made before. The checksums of Go's own database
/// guard what is fetched. All checkouts share them, as they share the jars.
pub(crate) fn make_go_programs() -> anyhow::Result<()> {
    let home = env::var_os("HOME").context("HOME is not set")?;
    let folder = Path::new(&home).join(".cache/catamaran/go");
    let stamp = folder.join("made.txt");
    let list = GO_PROGRAMS.join("\n");
    if fs::read_to_string(&stamp).is_ok_and(|made| made == list) {
        return Ok(());
    }
    say(&format!("making programs in {} with go", folder.display()));
    fs::create_dir_all(&folder)?;
    // One command takes programs of one module alone.
    for program in GO_PROGRAMS {
        let mut go = Command::new("go");
        go.args(["install", program]).env("GOBIN", &folder);
        let output = go
            .output()
            .context("cannot run go: apt-get install golang-go")?;
        let errors = String::from_utf8_lossy(&output.stderr);
        ensure!(
            output.status.success(),
            "go could not make {program}: {errors}"
        );
    }
    Ok(fs::write(stamp, list)?)
}

/// Programs of Go modules, with their versions: Let's Encrypt's authority for tests and its DNS server, and a service that
/// signs users on.
const GO_PROGRAMS: &[&str] = &[
    "github.com/letsencrypt/pebble/v2/cmd/pebble@v2.10.1",
    "github.com/letsencrypt/pebble/v2/cmd/pebble-challtestsrv@v2.10.1",
    "github.com/oauth2-proxy/oauth2-proxy/v7@v7.15.6",
];

/// Python packages with versions and checksums, in pip's format. The first is under GPL-3.0, which is allowed because
/// tests only run it and no binary contains it.
const PARSERS: &str = "\
pynmonanalyzer==1.0.9 --hash=sha256:bd418a25d82be04c676701573b1aebbbbed969d90e8cc8fcf063e1ff6e4eeda8
opentelemetry-proto==1.45.2 --hash=sha256:03a7ca1b43f89fd5b965d5975902bb2515c0c86e2428b456836e9a6149c6235a
protobuf==7.36.2 --hash=sha256:bdb3a345d48db958e6ce1f18e508beb0cc981d64f24088427549c866cd039f1e
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_installed_twice() {
        let all = of_tests();
        let mut names: Vec<_> = all.iter().filter_map(|need| need.package.clone()).collect();
        let before = names.len();
        assert!(before > 5, "{names:?}");
        names.sort();
        names.dedup();
        assert_eq!(names.len(), before, "{names:?}");
    }
}

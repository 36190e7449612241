//! Tries the packages as somebody who installs them: in a clean Debian with systemd, which boots in a container, and
//! from the image as an ordinary user.
//!
//! No part of `ci`: the clean root takes minutes and some 460 MB. The container has a network of its own without a way
//! out, so ports are its own too.

mod authority;
mod image;
mod page;
mod root;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use serde_json::Value;

use self::root::CleanRoot;
use crate::package;
use crate::step::{Steps, say};
use crate::test::target_directory;

/// Packs `binary` as this version and as the next one, and tries both in a clean root. Then tries the image in
/// `target/package`, if there is one.
pub(crate) fn run(steps: &mut Steps, checkout: &Path, binary: &Path) -> anyhow::Result<()> {
    let target = target_directory(checkout)?;
    let package = package::of_binary(steps, checkout, binary, None)?;
    let next_version = format!("{VERSION}+next");
    let next = package::of_binary(steps, checkout, binary, Some(&next_version))?;
    let folder = target.join("installed");
    let tar = steps.run("a clean Debian", || root::make(&folder))?;
    let clean = steps.run("boot it", || CleanRoot::boot(&tar, &folder))?;
    clean.lend(&package)?;
    clean.lend(&next)?;
    // The package of the next version, which does not exist yet, must not stay in the folder.
    fs::remove_file(&next)?;
    let before = clean.files()?;
    steps.run("docs/install.md as typed", || type_page(checkout, &clean))?;
    steps.run("three lines edited", || three_lines(&clean, &package))?;
    steps.run("the next version under load", || upgrade(&clean, &next))?;
    steps.run("purge", || purge(&clean, &before))?;
    steps.run("docs/tls.md as typed", || by_acme(checkout, &clean))?;
    steps.run("purge again", || purge(&clean, &before))?;
    drop(clean);
    match image::find(&target.join("package"))? {
        Some(archive) => steps.run("the image", || image::serve(&archive, &folder)),
        None => {
            say("no image: `cargo xtask package --only static` makes one");
            Ok(())
        }
    }
}

/// Types the commands of the page, from the installation of the package to https before a Tomcat.
fn type_page(checkout: &Path, clean: &CleanRoot) -> anyhow::Result<()> {
    let text = fs::read_to_string(checkout.join(page::PAGE))?;
    let commands = page::commands(&text);
    let script = commands.join("\n");
    let said = clean.run(&format!("set -ex\n{script}"))?;
    ensure!(said.contains(TOMCAT), "Tomcat's page is not in: {said}");
    say(&format!(
        "{} commands, and https before a Tomcat",
        commands.len()
    ));
    Ok(())
}

/// Changes three lines of the configuration file that the package installs, and checks that the unit serves it.
fn three_lines(clean: &CleanRoot, package: &Path) -> anyhow::Result<()> {
    let name = root::name(package)?;
    let installed = "etc/catamaran/catamaran.toml";
    clean.run(&format!(
        "set -e
         test $(stat --format %U:%G:%a /{installed}) = root:catamaran:640
         test -s /etc/logrotate.d/catamaran
         systemctl stop catamaran
         rm -r /etc/systemd/system/catamaran.service.d /etc/catamaran/site.key /etc/catamaran/site.pem
         dpkg-deb --fsys-tarfile {name} | tar -xO ./{installed} > /{installed}
         systemctl daemon-reload
         systemctl start catamaran
         curl --silent --output /dev/null --write-out '%{{http_code}}' http://127.0.0.1:8081/ | grep 404
         cp /{installed} before"
    ))?;
    let page = clean.run(&format!(
        "set -e
         sed -i 's/^address = \"127.0.0.1:8081\"/address = \"0.0.0.0:80\"/' /{installed}
         sed -i 's/^secret = \"change me\"/secret = \"change me\" # ours/' /{installed}
         sed -i 's/^status = 404/upstream = \"tomcat\"/' /{installed}
         diff before /{installed} | grep -c '^>' | grep -x 3
         test -z \"$(catamaran check --config /{installed} 2>&1 >/dev/null)\"
         systemctl reload catamaran
         curl --silent --fail --retry 60 --retry-connrefused http://127.0.0.1/"
    ))?;
    ensure!(page.contains(TOMCAT), "Tomcat's page is not in: {page}");
    let line = clean.run("tr '\\0' ' ' < /proc/$(systemctl show -P MainPID catamaran)/cmdline")?;
    let expected = format!("/usr/bin/catamaran serve --config /{installed}");
    ensure!(line.trim() == expected, "the unit runs {line}");
    let manual = clean.run("MANPAGER=cat man catamaran-serve | head -4")?;
    ensure!(manual.contains("catamaran-serve - "), "man shows {manual}");
    say(&format!("a page of Tomcat over AJP, by {expected}"));
    Ok(())
}

/// Types the commands of docs/tls.md, from the installation of the package to https with a certificate by ACME, of an
/// authority in the root.
fn by_acme(checkout: &Path, clean: &CleanRoot) -> anyhow::Result<()> {
    authority::start(clean)?;
    let text = fs::read_to_string(checkout.join(page::TLS_PAGE))?;
    let (file, commands) = page::by_acme(&text).context("the page has another form")?;
    let file_of_trial = file.replace("terms_agreed", &format!("{}terms_agreed", authority::KEYS));
    let typed = commands.replace("curl ", "curl --insecure ");
    let said = clean.run(&format!(
        "cat > tls.toml <<'END'\n{file_of_trial}END\nset -ex\n{typed}"
    ))?;
    ensure!(said.contains(TOMCAT), "Tomcat's page is not in: {said}");
    let issuer = clean.run(
        "openssl s_client -connect 127.0.0.1:443 -servername www.example.org < /dev/null 2> look |
         openssl x509 -noout -issuer",
    )?;
    ensure!(issuer.contains("Pebble"), "the certificate is of {issuer}");
    authority::end(clean)?;
    let count = commands.lines().count();
    say(&format!("{count} commands, and https by {}", issuer.trim()));
    Ok(())
}

/// Installs the next version while clients send requests.
fn upgrade(clean: &CleanRoot, next: &Path) -> anyhow::Result<()> {
    let main_process = "systemctl show -P MainPID catamaran";
    let old_process = clean.run(main_process)?.trim().to_owned();
    let load = clean.start(&format!(
        "catamaran bench -k -n {REQUESTS} -c 8 --rate {RATE} --json http://127.0.0.1/"
    ))?;
    // The load has begun when the access log has lines of its page.
    clean.run(&format!(
        "timeout 60 sh -c 'until test $({LOGGED}{old_process} | wc -l) -gt 20; do :; done'"
    ))?;
    let name = root::name(next)?;
    let apt_output = clean.run(&format!("apt-get install -y ./{name} 2>&1"))?;
    let new_process = clean.run(main_process)?.trim().to_owned();
    ensure!(
        new_process != old_process,
        "the old process still serves: {apt_output}"
    );
    clean.run(&format!(
        "timeout 60 sh -c 'until test $({LOGGED}{new_process} | wc -l) -gt 20; do :; done'"
    ))?;
    let output = load.wait_with_output()?;
    let document: Value = serde_json::from_slice(&output.stdout)
        .with_context(|| String::from_utf8_lossy(&output.stderr).into_owned())?;
    let [requests, failed] = counts(&document).context("bench printed another document")?;
    say(&format!(
        "{failed} of {requests} failed while process {new_process} took over from {old_process}"
    ));
    ensure!(requests == REQUESTS && failed == 0, "{document:#}");
    clean.run("dpkg-query --show catamaran | grep -F +next && systemctl is-active catamaran")?;
    Ok(())
}

/// Removes the package with its configuration, and checks that no file and no process of it is left.
fn purge(clean: &CleanRoot, before: &[String]) -> anyhow::Result<()> {
    clean.run("apt-get purge -y catamaran")?;
    let after = clean.files()?;
    let files: Vec<&String> = after
        .iter()
        .filter(|file| !before.contains(*file))
        .collect();
    ensure!(files.is_empty(), "purge leaves {files:?}");
    let list = "pgrep catamaran; systemctl list-units --all --plain --no-legend 'catamaran*'";
    // `pgrep` fails if it finds nothing, which is right here.
    let running = clean.run(&format!("{list}; true"))?;
    ensure!(running.trim().is_empty(), "purge leaves {running}");
    say(&format!("{} files, as before", after.len()));
    Ok(())
}

/// Reads from a report of `bench` how many requests were made, and how many failed.
fn counts(document: &Value) -> Option<[u64; 2]> {
    let of = |name: &str| document.pointer(name).and_then(Value::as_u64);
    Some([of("/requests/completed")?, of("/requests/failed")?])
}

/// The path of the release binary, which is tried if no other is named.
pub(crate) fn default_binary(checkout: &Path) -> anyhow::Result<PathBuf> {
    Ok(target_directory(checkout)?.join("release/catamaran"))
}

const VERSION: &str = env!("CARGO_PKG_VERSION");
/// A line of the page that Debian's Tomcat serves at `/`.
const TOMCAT: &str = "<h1>It works !</h1>";
/// A command that prints the journal of one process; the process id follows.
const LOGGED: &str = "journalctl --quiet --output=cat --unit=catamaran _PID=";
const REQUESTS: u64 = 10_000;
/// Requests per second. At this rate the load lasts longer than the installation.
const RATE: u64 = 250;

//! The Debian package: a tree of files made from a built binary, packed by `dpkg-deb`.
//!
//! No part of `ci`. The package has the same bytes for the same binary and commit: owners are root, modes are set, and
//! no time is later than `SOURCE_DATE_EPOCH`, which is the commit's unless the environment names one. How the binary
//! was built is not this module's matter.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::{env, fs};

use anyhow::{Context, bail};

use crate::step::{Steps, program, say};
use crate::test::target_directory;

/// Packs `binary` into `target/package/` with SHA256SUMS beside it.
pub(crate) fn run(steps: &mut Steps, root: &Path, binary: &Path) -> anyhow::Result<()> {
    let binary = fs::canonicalize(binary)
        .with_context(|| format!("{}: build it, or name another", binary.display()))?;
    let out = target_directory(root)?.join("package");
    let package = steps.run("pack a Debian package", || pack(root, &binary, &out))?;
    say(&format!("{}", package.display()));
    Ok(())
}

fn pack(root: &Path, binary: &Path, out: &Path) -> anyhow::Result<PathBuf> {
    let tree = Tree::empty(out.join("tree"))?;
    let epoch = source_date(root)?;
    let binary_text = binary.to_str().context("the binary's path is not UTF-8")?;

    let installed = tree.directory("usr/bin")?.join("catamaran");
    let installed_text = installed.to_str().context("target is not UTF-8")?;
    program("strip", &["-o", installed_text, binary_text]).finish()?;
    fs::set_permissions(&installed, fs::Permissions::from_mode(0o755))?;

    let version = program(binary_text, &["--version"]).output()?;
    let version = version_of(&version)
        .with_context(|| format!("{binary_text} --version says {version:?}"))?
        .to_owned();
    let architecture = program("dpkg", &["--print-architecture"]).output()?;
    let architecture = architecture.trim();

    let unit = fs::read_to_string(root.join("docs/examples/catamaran.service"))?;
    let unit = unit_of_package(&unit).context("docs/examples/catamaran.service has no [Unit]")?;
    tree.write("lib/systemd/system/catamaran.service", &unit)?;
    tree.write("etc/catamaran/catamaran.toml", CONFIGURATION)?;
    generated(&tree, binary_text)?;
    let identity = Identity {
        version: &version,
        architecture,
        maintainer: &maintainer(),
        epoch: &epoch,
    };
    documents(&tree, root, &identity)?;
    control(&tree, installed_text, &identity)?;
    let package = out.join(format!("catamaran_{version}_{architecture}.deb"));
    tree.pack(&package, &epoch)?;

    let sums = "cd \"$1\" && sha256sum -- *.deb > SHA256SUMS";
    let out = out.to_str().context("target is not UTF-8")?;
    program("sh", &["-c", sums, "sh", out]).finish()?;
    Ok(package)
}

/// What the package says of itself.
struct Identity<'a> {
    version: &'a str,
    /// Debian's name of it: `amd64`.
    architecture: &'a str,
    maintainer: &'a str,
    /// Seconds since 1970.
    epoch: &'a str,
}

/// The directory that becomes the package.
struct Tree(PathBuf);

impl Tree {
    fn empty(root: PathBuf) -> anyhow::Result<Self> {
        if root.exists() {
            fs::remove_dir_all(&root).with_context(|| root.display().to_string())?;
        }
        fs::create_dir_all(&root).with_context(|| root.display().to_string())?;
        Ok(Self(root))
    }

    fn directory(&self, path: &str) -> anyhow::Result<PathBuf> {
        let directory = self.0.join(path);
        fs::create_dir_all(&directory).with_context(|| directory.display().to_string())?;
        Ok(directory)
    }

    fn write(&self, path: &str, text: &str) -> anyhow::Result<()> {
        let file = self.0.join(path);
        if let Some(directory) = file.parent() {
            fs::create_dir_all(directory)?;
        }
        fs::write(&file, text).with_context(|| file.display().to_string())
    }

    /// Runs a line of shell in the tree.
    fn shell(&self, line: &str) -> anyhow::Result<String> {
        let tree = self.0.to_str().context("target is not UTF-8")?;
        let line = format!("set -e; cd \"$1\"; {line}");
        program("sh", &["-c", &line, "sh", tree]).output()
    }

    fn pack(&self, package: &Path, epoch: &str) -> anyhow::Result<()> {
        self.shell("chmod -R u=rwX,go=rX .")?;
        let (tree, package) = (self.0.to_str(), package.to_str());
        let tree = tree.context("target is not UTF-8")?;
        let package = package.context("target is not UTF-8")?;
        let options = ["--root-owner-group", "-Zxz", "--build", tree, package];
        program("dpkg-deb", &options)
            .env("SOURCE_DATE_EPOCH", epoch)
            .finish()
    }
}

/// What only the binary knows: man pages and completions.
fn generated(tree: &Tree, binary: &str) -> anyhow::Result<()> {
    let man = tree.directory("usr/share/man/man1")?;
    let man = man.to_str().context("target is not UTF-8")?;
    program(binary, &["generate", "man", man]).finish()?;
    tree.shell("gzip -9n usr/share/man/man1/*.1")?;
    for (shell, path) in COMPLETIONS {
        let completions = program(binary, &["completions", shell]).output()?;
        tree.write(path, &completions)?;
    }
    Ok(())
}

fn documents(tree: &Tree, root: &Path, identity: &Identity<'_>) -> anyhow::Result<()> {
    let Identity {
        version,
        maintainer,
        epoch,
        ..
    } = identity;
    let documents = tree.directory("usr/share/doc/catamaran")?;
    let documents = documents.to_str().context("target is not UTF-8")?;
    let root_text = root.to_str().context("the clone's path is not UTF-8")?;
    let copy = "cd \"$1\" && cp CHANGELOG.md docs/*.md \"$2\" && cp -r docs/examples \"$2\"";
    program("sh", &["-c", copy, "sh", root_text, documents]).finish()?;
    tree.shell("gzip -9n usr/share/doc/catamaran/CHANGELOG.md")?;

    let mit = fs::read_to_string(root.join("LICENSE-MIT"))?;
    tree.write("usr/share/doc/catamaran/copyright", &copyright(&mit))?;
    let at = format!("@{epoch}");
    let date = program("date", &["-u", "-R", "-d", &at]).output()?;
    let changelog = format!(
        "catamaran ({version}) unstable; urgency=medium\n\n  * CHANGELOG.md.gz says what this version can do.\n\n \
         -- {maintainer}  {}\n",
        date.trim()
    );
    tree.write("usr/share/doc/catamaran/changelog", &changelog)?;
    tree.shell("gzip -9n usr/share/doc/catamaran/changelog")?;
    Ok(())
}

fn control(tree: &Tree, binary: &str, identity: &Identity<'_>) -> anyhow::Result<()> {
    let Identity {
        version,
        architecture,
        maintainer,
        ..
    } = identity;
    let symbols = program("objdump", &["-T", binary]).output()?;
    let libc = match newest_glibc(&symbols) {
        Some((major, minor)) => {
            format!("Depends: libc6 (>= {major}.{minor}), libgcc-s1\n")
        }
        None => String::new(),
    };
    let sums = tree.shell("find usr lib -type f | LC_ALL=C sort | xargs -d '\\n' md5sum")?;
    let size = tree.shell("du -ck --apparent-size usr lib etc | tail -n 1 | cut -f 1")?;
    let control = format!(
        "Package: catamaran\nVersion: {version}\nArchitecture: {architecture}\nMaintainer: {maintainer}\n\
         Installed-Size: {}\n{libc}Section: httpd\nPriority: optional\nDescription: {DESCRIPTION}\n",
        size.trim()
    );
    tree.write("DEBIAN/control", &control)?;
    tree.write("DEBIAN/md5sums", &sums)?;
    tree.write("DEBIAN/conffiles", "/etc/catamaran/catamaran.toml\n")?;
    for (name, script) in SCRIPTS {
        tree.write(&format!("DEBIAN/{name}"), script)?;
    }
    tree.shell("chmod 755 DEBIAN/postinst DEBIAN/prerm DEBIAN/postrm")?;
    Ok(())
}

/// Seconds since 1970 that no time in the package is later than.
fn source_date(root: &Path) -> anyhow::Result<String> {
    if let Some(epoch) = env::var_os("SOURCE_DATE_EPOCH") {
        let epoch = epoch.into_string().ok();
        return epoch.context("SOURCE_DATE_EPOCH is not a number");
    }
    let root = root.to_str().context("the clone's path is not UTF-8")?;
    let epoch = program("git", &["-C", root, "log", "-1", "--format=%ct"]).output()?;
    if epoch.trim().is_empty() {
        bail!("git names no time of the commit: set SOURCE_DATE_EPOCH");
    }
    Ok(epoch.trim().to_owned())
}

/// Who answers for the package, from the variables that Debian's own tools read.
fn maintainer() -> String {
    let variable = |name, otherwise: &str| {
        let value = env::var_os(name).and_then(|value| value.into_string().ok());
        value.unwrap_or_else(|| otherwise.to_owned())
    };
    if env::var_os("DEBEMAIL").is_none() {
        say("the package names no maintainer who can be reached: set DEBEMAIL and DEBFULLNAME");
    }
    let name = variable("DEBFULLNAME", "The Catamaran developers");
    format!("{name} <{}>", variable("DEBEMAIL", "catamaran@localhost"))
}

/// `0.1.0` of `catamaran 0.1.0 (dev build)`.
fn version_of(output: &str) -> Option<&str> {
    output.split_whitespace().nth(1)
}

/// The unit of docs/examples for a binary in /usr/bin, without the head, which installs by hand.
fn unit_of_package(example: &str) -> Option<String> {
    let start = example.find("[Unit]")?;
    Some(example[start..].replace("/usr/local/bin/", "/usr/bin/"))
}

/// The newest version of glibc that a symbol in `objdump -T` asks for; `None` for a static binary.
fn newest_glibc(symbols: &str) -> Option<(u32, u32)> {
    let versions = symbols.split("GLIBC_").skip(1).filter_map(|rest| {
        let version: &str = rest.split([')', ' ', '\n']).next()?;
        let mut parts = version.split('.');
        Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
    });
    versions.max()
}

/// Debian's file: the text of MIT, and where Debian keeps that of Apache-2.0.
fn copyright(mit: &str) -> String {
    format!(
        "Catamaran may be used under the MIT License or the Apache License 2.0, as you like.\n\n{mit}\n\
         The Apache License 2.0 is /usr/share/common-licenses/Apache-2.0 on Debian systems.\n"
    )
}

const DESCRIPTION: &str = "web tier for Java application servers
 Catamaran accepts HTTP/1.1, HTTP/2 and TLS from clients and passes requests
 to Tomcat, WildFly, Undertow, Payara or Jetty over AJP13 or HTTP/1.1. It has
 sticky sessions, health checks, reloads and upgrades that lose no request,
 and a load generator.";

const CONFIGURATION: &str = include_str!("package/catamaran.toml");

const SCRIPTS: [(&str, &str); 3] = [
    ("postinst", include_str!("package/postinst")),
    ("prerm", include_str!("package/prerm")),
    ("postrm", include_str!("package/postrm")),
];

const COMPLETIONS: [(&str, &str); 3] = [
    ("bash", "usr/share/bash-completion/completions/catamaran"),
    ("zsh", "usr/share/zsh/vendor-completions/_catamaran"),
    ("fish", "usr/share/fish/vendor_completions.d/catamaran.fish"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_unit_starts_the_installed_binary() {
        let unit =
            unit_of_package(include_str!("../../../docs/examples/catamaran.service")).unwrap();
        assert!(unit.starts_with("[Unit]"));
        assert!(unit.contains("\nExecStart=/usr/bin/catamaran serve "));
        assert!(!unit.contains("/usr/local"));
    }

    #[test]
    fn the_newest_glibc_is_compared_by_number() {
        let symbols =
            "0 DF *UND* 0 (GLIBC_2.9) a\n0 DF *UND* 0 (GLIBC_2.34) b\n0 (GLIBC_2.2.5) c\n";
        assert_eq!(newest_glibc(symbols), Some((2, 34)));
        assert_eq!(newest_glibc("not a dynamic object"), None);
    }

    #[test]
    fn the_version_is_the_binary_s() {
        assert_eq!(version_of("catamaran 0.1.0 (dev build)\n"), Some("0.1.0"));
        assert_eq!(version_of(""), None);
    }
}

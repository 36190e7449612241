//! The Debian package: a tree of files made from a built binary, packed by `dpkg-deb`.

use std::path::{Path, PathBuf};
use std::{env, fs};

use super::tree::{Tree, text};
use super::{Release, content};
use crate::step::{program, say};

/// Packs `binary`, which has no symbols, into `out`; gives the package.
pub(super) fn pack(release: &Release<'_>, binary: &Path, out: &Path) -> anyhow::Result<PathBuf> {
    let tree = Tree::empty(out.join("tree/deb"))?;
    let architecture = program("dpkg", &["--print-architecture"]).output()?;
    let identity = Identity {
        version: release.version,
        architecture: architecture.trim(),
        maintainer: &maintainer(),
        epoch: release.epoch,
    };
    tree.copy(binary, "usr/bin/catamaran")?;
    let unit = content::unit(release.source)?;
    tree.write("lib/systemd/system/catamaran.service", &unit)?;
    for (path, text) in CONFFILES {
        tree.write(path, text)?;
    }
    content::man_pages(&tree, "usr/share/man/man1", binary)?;
    tree.shell("gzip -9n usr/share/man/man1/*.1")?;
    for (shell, path) in COMPLETIONS {
        let completions = program(text(binary)?, &["completions", shell]).output()?;
        tree.write(path, &completions)?;
    }
    documents(&tree, release.source, &identity)?;
    control(&tree, binary, &identity)?;
    let Identity {
        version,
        architecture,
        epoch,
        ..
    } = identity;
    let package = out.join(format!("catamaran_{version}_{architecture}.deb"));
    build(&tree, &package, epoch)?;
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

fn build(tree: &Tree, package: &Path, epoch: &str) -> anyhow::Result<()> {
    tree.set_modes()?;
    // postinst gives it the group that the front runs in.
    tree.shell(&format!("chmod 640 {CONFIGURATION}"))?;
    let (tree, package) = (text(tree.path())?, text(package)?);
    let options = ["--root-owner-group", "-Zxz", "--build", tree, package];
    program("dpkg-deb", &options)
        .env("SOURCE_DATE_EPOCH", epoch)
        .finish()
}

fn documents(tree: &Tree, source: &Path, identity: &Identity<'_>) -> anyhow::Result<()> {
    let Identity {
        version,
        maintainer,
        epoch,
        ..
    } = identity;
    content::documents(tree, DOCUMENTS, source)?;
    tree.shell(&format!("gzip -9n {DOCUMENTS}/CHANGELOG.md"))?;
    let mit = fs::read_to_string(source.join("LICENSE-MIT"))?;
    tree.write(&format!("{DOCUMENTS}/copyright"), &copyright(&mit))?;
    let at = format!("@{epoch}");
    let date = program("date", &["-u", "-R", "-d", &at]).output()?;
    let changelog = format!(
        "catamaran ({version}) unstable; urgency=medium\n\n  * CHANGELOG.md.gz says what this version can do.\n\n \
         -- {maintainer}  {}\n",
        date.trim()
    );
    tree.write(&format!("{DOCUMENTS}/changelog"), &changelog)?;
    tree.shell(&format!("gzip -9n {DOCUMENTS}/changelog"))?;
    Ok(())
}

fn control(tree: &Tree, binary: &Path, identity: &Identity<'_>) -> anyhow::Result<()> {
    let Identity {
        version,
        architecture,
        maintainer,
        ..
    } = identity;
    let symbols = program("objdump", &["-T", text(binary)?]).output()?;
    let libc = match newest_glibc(&symbols) {
        Some((major, minor)) => {
            format!("Depends: libc6 (>= {major}.{minor}), libgcc-s1, passwd\n")
        }
        None => "Depends: passwd\n".to_owned(),
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
    let conffiles = CONFFILES.map(|(path, _)| format!("/{path}\n"));
    tree.write("DEBIAN/conffiles", &conffiles.concat())?;
    for (name, script) in SCRIPTS {
        tree.write(&format!("DEBIAN/{name}"), script)?;
    }
    tree.shell("chmod 755 DEBIAN/postinst DEBIAN/prerm DEBIAN/postrm")?;
    Ok(())
}

/// Who answers for the package, from the variables that Debian's own tools read.
fn maintainer() -> String {
    let variable = |name, otherwise: &str| {
        let value = env::var_os(name).and_then(|value| value.into_string().ok());
        value.unwrap_or_else(|| otherwise.to_owned())
    };
    if !has_maintainer() {
        say("the package names no maintainer who can be reached: set DEBEMAIL and DEBFULLNAME");
    }
    let name = variable("DEBFULLNAME", "The Catamaran developers");
    format!("{name} <{}>", variable("DEBEMAIL", "catamaran@localhost"))
}

/// Whether the environment names somebody.
pub(super) fn has_maintainer() -> bool {
    env::var_os("DEBEMAIL").is_some()
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

const DOCUMENTS: &str = "usr/share/doc/catamaran";

const DESCRIPTION: &str = "web tier for Java application servers
 Catamaran accepts HTTP/1.1, HTTP/2 and TLS from clients and passes requests
 to Tomcat, WildFly, Undertow, Payara or Jetty over AJP13 or HTTP/1.1. It has
 sticky sessions, health checks, reloads and upgrades that lose no request,
 and a load generator.";

const CONFIGURATION: &str = "etc/catamaran/catamaran.toml";

const CONFFILES: [(&str, &str); 2] = [
    (CONFIGURATION, content::CONFIGURATION),
    ("etc/logrotate.d/catamaran", include_str!("logrotate")),
];

const SCRIPTS: [(&str, &str); 3] = [
    ("postinst", include_str!("postinst")),
    ("prerm", include_str!("prerm")),
    ("postrm", include_str!("postrm")),
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
    fn the_newest_glibc_is_compared_by_number() {
        let symbols =
            "0 DF *UND* 0 (GLIBC_2.9) a\n0 DF *UND* 0 (GLIBC_2.34) b\n0 (GLIBC_2.2.5) c\n";
        assert_eq!(newest_glibc(symbols), Some((2, 34)));
        assert_eq!(newest_glibc("not a dynamic object"), None);
    }
}

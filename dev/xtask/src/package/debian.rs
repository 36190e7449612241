//! The Debian package, by cargo-deb: `crates/cli/Cargo.toml` says what is in it.

use std::path::{Path, PathBuf};
use std::{env, fs};

use super::{Release, content, text};
use crate::step::{program, say};
use crate::{needs, tools};

/// Packs the directory `stage` into `out`, and returns the path of the package.
pub(super) fn pack(release: &Release<'_>, stage: &Path, out: &Path) -> anyhow::Result<PathBuf> {
    let Release {
        root,
        source,
        version,
        epoch,
        ..
    } = *release;
    needs::install(&[needs::shared_libraries()])?;
    let tool = tools::DEB.program(root)?;
    let maintainer = maintainer();
    // cargo-deb looks for the binary here.
    let built = stage.join("release");
    content::write(&built)?;
    fs::write(built.join("catamaran.service"), content::unit(source)?)?;
    fs::write(
        built.join("changelog"),
        changelog(version, &maintainer, epoch)?,
    )?;
    let mit = fs::read_to_string(source.join("LICENSE-MIT"))?;
    fs::write(built.join("copyright"), copyright(&mit))?;
    let compress =
        "cp \"$1/CHANGELOG.md\" \"$2\" && cd \"$2\" && gzip -9nf CHANGELOG.md changelog man/*";
    program("sh", &["-c", compress, "sh", text(source)?, text(&built)?]).finish()?;
    let architecture = program("dpkg", &["--print-architecture"]).output()?;
    let package = out.join(format!("catamaran_{version}_{}.deb", architecture.trim()));
    let manifest = source.join("crates/cli/Cargo.toml");
    program(
        text(&tool)?,
        &["--no-build", "--no-strip", "--quiet", "--locked"],
    )
    .args(&[
        "--manifest-path",
        text(&manifest)?,
        "--output",
        text(&package)?,
    ])
    .args(&["--deb-version", version, "--maintainer", &maintainer])
    .env("CARGO_TARGET_DIR", stage)
    .env("SOURCE_DATE_EPOCH", epoch)
    .finish()?;
    Ok(package)
}

/// Whether the environment names a maintainer.
pub(super) fn has_maintainer() -> bool {
    env::var_os("DEBEMAIL").is_some()
}

/// The maintainer of the package, from the variables that Debian's tools read.
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

/// Writes the changelog of the package in Debian's format, with the time `epoch`.
fn changelog(version: &str, maintainer: &str, epoch: &str) -> anyhow::Result<String> {
    let at = format!("@{epoch}");
    let date = program("date", &["-u", "-R", "-d", &at]).output()?;
    Ok(format!(
        "catamaran ({version}) unstable; urgency=medium\n\n  * CHANGELOG.md.gz says what this version can do.\n\n \
         -- {maintainer}  {}\n",
        date.trim()
    ))
}

/// Writes the file `copyright` of the package: the text of MIT, and the place of Apache-2.0 on a Debian.
fn copyright(mit: &str) -> String {
    format!(
        "Catamaran may be used under the MIT License or the Apache License 2.0, as you like.\n\n{mit}\n\
         The Apache License 2.0 is /usr/share/common-licenses/Apache-2.0 on Debian systems.\n"
    )
}

//! Packages: a Debian package, a static binary in a tar, an image for containers, the list of crates, symbols apart.
//!
//! CI packs its `release` binary and checks it with lintian; the other packages take long builds and are made by
//! hand. The same commit and toolchain give packages with the same bytes: times in archives are that of
//! `SOURCE_DATE_EPOCH`, which is the commit's unless the environment sets it. `--twice` checks this.

mod archive;
mod build;
mod content;
mod debian;
mod image;
mod sbom;
mod twice;

use std::path::{Path, PathBuf};
use std::{env, fs};

use anyhow::{Context, bail};

use self::build::{Build, GNU, MUSL, Stripped, symbols_apart};
use crate::needs;
use crate::step::{Steps, program, say};
use crate::test::target_directory;

/// The options of `cargo xtask package`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Options {
    /// A built binary to pack as a Debian package. Nothing else is made then.
    binary: Option<PathBuf>,
    /// The version of the Debian package, if it is not the binary's.
    version: Option<String>,
    /// The Cargo profile of the builds.
    profile: String,
    only: Option<Kind>,
    twice: bool,
}

/// The kinds of packages, by the binary that they contain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// The Debian package.
    Deb,
    /// The tar and the image.
    Static,
}

impl Options {
    /// Parses the words of the command line; `None` if they are not valid.
    pub(crate) fn parse(words: &[&str]) -> Option<Self> {
        let mut options = Self {
            binary: None,
            version: None,
            profile: "dist".to_owned(),
            only: None,
            twice: false,
        };
        let mut words = words.iter();
        while let Some(word) = words.next() {
            match *word {
                "--twice" => options.twice = true,
                "--binary" => options.binary = Some(words.next()?.into()),
                "--version" => options.version = Some((*words.next()?).to_owned()),
                "--profile" => {
                    let profile = words.next().filter(|name| PROFILES.contains(name))?;
                    (*profile).clone_into(&mut options.profile);
                }
                "--only" => {
                    options.only = Some(match *words.next()? {
                        "deb" => Kind::Deb,
                        "static" => Kind::Static,
                        _ => return None,
                    });
                }
                _ => return None,
            }
        }
        // `--twice` and `--only` are for builds; `--version` is for a binary that was built already.
        let is_valid = if options.binary.is_some() {
            !options.twice && options.only.is_none()
        } else {
            options.version.is_none()
        };
        is_valid.then_some(options)
    }
}

/// Makes the packages that `options` select, in `target/package`, and SHA256SUMS beside them.
pub(crate) fn run(steps: &mut Steps, root: &Path, options: &Options) -> anyhow::Result<()> {
    let target = target_directory(root)?;
    let out = target.join("package");
    if let Some(binary) = &options.binary {
        let package = of_binary(steps, root, binary, options.version.as_deref())?;
        say(&format!("{}", package.display()));
        return sums(&out);
    }
    let order = Order {
        root,
        source: root,
        target: &target,
        out: &out,
        options,
    };
    make(steps, &order)?;
    if options.twice {
        twice::compare(steps, &order)?;
    }
    Ok(())
}

/// Packs a built binary as a Debian package and returns the package's path. lintian checks it, unless `version`
/// differs from the binary's, which only trials do.
pub(crate) fn of_binary(
    steps: &mut Steps,
    root: &Path,
    binary: &Path,
    version: Option<&str>,
) -> anyhow::Result<PathBuf> {
    let binary = fs::canonicalize(binary)
        .with_context(|| format!("{}: build it, or name another", binary.display()))?;
    let out = target_directory(root)?.join("package");
    let epoch = source_date(root)?;
    steps.run("pack a Debian package", || {
        let stripped = strip(&binary, &out, "gnu")?;
        let own = version_of(&binary)?;
        let release = Release::new(root, root, version.unwrap_or(&own), &epoch)?;
        let package = debian::pack(&release, &stripped.stage, &out)?;
        if version.is_none() {
            lint(&package)?;
        }
        Ok(package)
    })
}

/// What one build of packages is made from, and where it is written.
#[derive(Clone, Copy, Debug)]
struct Order<'a> {
    /// The checkout that the command runs in.
    root: &'a Path,
    /// The checkout that is built.
    source: &'a Path,
    target: &'a Path,
    out: &'a Path,
    options: &'a Options,
}

/// Facts that all packages of one build share.
#[derive(Debug)]
struct Release<'a> {
    /// The checkout that tools belong to.
    root: &'a Path,
    /// The checkout that was built.
    source: &'a Path,
    version: &'a str,
    /// The latest time of files in packages, in seconds since 1970.
    epoch: &'a str,
    /// The latest time of files in packages, in the format of RFC 3339.
    time: String,
}

impl<'a> Release<'a> {
    /// The facts about a release; `epoch` is the time of its files, in seconds since 1970.
    fn new(
        root: &'a Path,
        source: &'a Path,
        version: &'a str,
        epoch: &'a str,
    ) -> anyhow::Result<Self> {
        let at = format!("@{epoch}");
        let time = program("date", &["-u", "-d", &at, "+%Y-%m-%dT%H:%M:%SZ"]).output()?;
        Ok(Self {
            root,
            source,
            version,
            epoch,
            time: time.trim().to_owned(),
        })
    }
}

/// Builds for the targets that are wanted, and packs what was built.
fn make(steps: &mut Steps, order: &Order<'_>) -> anyhow::Result<()> {
    let Order { options, out, .. } = *order;
    if options.only.is_none() && out.exists() {
        fs::remove_dir_all(out).with_context(|| out.display().to_string())?;
    }
    let epoch = source_date(order.source)?;
    let build = Build {
        source: order.source,
        target: order.target,
        root: order.root,
        profile: &options.profile,
        epoch: &epoch,
    };
    let mut binary = |triple: &str, name: &str| {
        let built = steps.run(&format!("build for {triple}"), || build.binary(triple))?;
        strip(&built, out, name)
    };
    let gnu = match options.only {
        Some(Kind::Static) => None,
        Some(Kind::Deb) | None => Some(binary(GNU, "gnu")?),
    };
    let musl = match options.only {
        Some(Kind::Deb) => None,
        Some(Kind::Static) | None => Some(binary(MUSL, "musl")?),
    };
    let stripped = gnu
        .as_ref()
        .or(musl.as_ref())
        .context("one of them is built")?;
    let version = version_of(&stripped.stage.join("release/catamaran"))?;
    let release = Release::new(order.root, order.source, &version, &epoch)?;
    steps.run("pack", || pack(&release, out, gnu.as_ref(), musl.as_ref()))
}

/// Packs what was built: the Debian package of the `gnu` binary, the tar and the image of the `musl` one. Writes the
/// list of crates and the checksums, and prints the sizes.
fn pack(
    release: &Release<'_>,
    out: &Path,
    gnu: Option<&Stripped>,
    musl: Option<&Stripped>,
) -> anyhow::Result<()> {
    let mut files = Vec::new();
    if let Some(stripped) = gnu {
        let package = debian::pack(release, &stripped.stage, out)?;
        lint(&package)?;
        files.extend([package, stripped.symbols.clone()]);
    }
    if let Some(stripped) = musl {
        files.push(archive::pack(release, &stripped.stage, out)?);
        files.extend(image::pack(release, &stripped.stage, out)?);
        files.push(stripped.symbols.clone());
    }
    // Its tool has to be built the first time, so the packages are made before it.
    files.push(sbom::write(release, out)?);
    for path in files {
        let size = fs::metadata(&path)?.len();
        say(&format!("{:>7} KiB  {}", size / 1024, path.display()));
    }
    sums(out)
}

/// Copies `binary` without symbols into an empty directory for packing, and the symbols into `out`; `library`
/// is in their name.
fn strip(binary: &Path, out: &Path, library: &str) -> anyhow::Result<Stripped> {
    let stage = out.join("tree").join(library);
    let folder = stage.join("release");
    if stage.exists() {
        fs::remove_dir_all(&stage).with_context(|| stage.display().to_string())?;
    }
    fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
    let version = version_of(binary)?;
    let symbols = out.join(format!("catamaran-{version}-x86_64-linux-{library}.debug"));
    symbols_apart(binary, &folder.join("catamaran"), &symbols)?;
    Ok(Stripped { stage, symbols })
}

/// Checks a package by lintian. Errors fail; warnings and hints are printed.
fn lint(package: &Path) -> anyhow::Result<()> {
    needs::install(&[needs::lintian()])?;
    let words = ["--allow-root", "--no-cfg", "--fail-on", "error"];
    let mut lintian = program("lintian", &words);
    if !debian::has_maintainer() {
        // A missing maintainer is no fault of a package that is only tried; `debian::pack` has said it.
        lintian = lintian.args(&["--suppress-tags", NO_MAINTAINER]);
    }
    lintian.args(&[text(package)?]).finish()?;
    say("lintian finds no error");
    Ok(())
}

/// Writes SHA256SUMS with the checksums of all files in `out`.
fn sums(out: &Path) -> anyhow::Result<()> {
    let script = "cd \"$1\" && rm -f SHA256SUMS && find . -maxdepth 1 -type f -printf '%P\\n' \
                  | LC_ALL=C sort | xargs -d '\\n' sha256sum -- > tree/sums && mv tree/sums SHA256SUMS";
    program("sh", &["-c", script, "sh", text(out)?]).finish()
}

/// The latest time of files in packages, in seconds since 1970.
fn source_date(source: &Path) -> anyhow::Result<String> {
    if let Some(epoch) = env::var_os("SOURCE_DATE_EPOCH") {
        let epoch = epoch.into_string().ok();
        return epoch.context("SOURCE_DATE_EPOCH is not a number");
    }
    let epoch = program("git", &["-C", text(source)?, "log", "-1", "--format=%ct"]).output()?;
    if epoch.trim().is_empty() {
        bail!("git names no time of the commit: set SOURCE_DATE_EPOCH");
    }
    Ok(epoch.trim().to_owned())
}

/// A path as text; an error if it is not UTF-8.
fn text(path: &Path) -> anyhow::Result<&str> {
    path.to_str()
        .with_context(|| format!("{} is not UTF-8", path.display()))
}

fn version_of(binary: &Path) -> anyhow::Result<String> {
    let output = program(text(binary)?, &["--version"]).output()?;
    let version = version_in(&output)
        .with_context(|| format!("{} --version says {output:?}", binary.display()))?;
    Ok(version.to_owned())
}

/// Takes the version out of what the binary says, such as `0.1.0` of `catamaran 0.1.0 (dev build)`.
fn version_in(said: &str) -> Option<&str> {
    said.split_whitespace().nth(1)
}

/// Cargo profiles. The first is that of published packages; the others are for trials.
const PROFILES: [&str; 3] = ["dist", "release", "dev"];
/// lintian's tags for a maintainer's address at which nobody can be reached.
const NO_MAINTAINER: &str = "bogus-mail-host,bogus-mail-host-in-debian-changelog";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_the_binary_s() {
        assert_eq!(version_in("catamaran 0.1.0 (dev build)\n"), Some("0.1.0"));
        assert_eq!(version_in(""), None);
    }

    #[test]
    fn a_binary_that_is_there_is_packed_and_nothing_is_built() {
        let built = Options::parse(&[]).unwrap();
        assert_eq!((built.profile.as_str(), built.only), ("dist", None));
        let packed = Options::parse(&["--binary", "x", "--version", "0.2.0"]).unwrap();
        assert_eq!(packed.version.as_deref(), Some("0.2.0"));
        for words in [
            &["--binary"][..],
            &["--binary", "x", "--twice"],
            &["--binary", "x", "--only", "deb"],
            &["--version", "0.2.0"],
            &["--only", "rpm"],
            &["--profile", "fast"],
        ] {
            assert_eq!(Options::parse(words), None, "{words:?}");
        }
    }
}

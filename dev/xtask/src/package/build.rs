//! Binaries for packages: built with a list of their crates inside, without names of the machine's directories, and
//! with their symbols apart.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::Context;

use super::text;
use crate::step::{program, say};
use crate::tools;

/// The sources, the tools and the settings from which binaries are built.
#[derive(Debug)]
pub(super) struct Build<'a> {
    /// The directory of the sources.
    pub(super) source: &'a Path,
    /// Cargo's target directory.
    pub(super) target: &'a Path,
    /// The directory of the checkout, which has the tools also when `source` is a copy.
    pub(super) root: &'a Path,
    /// The Cargo profile.
    pub(super) profile: &'a str,
    /// The latest time of files in the result, in seconds since 1970.
    pub(super) epoch: &'a str,
}

/// A binary without symbols, and the path of its symbols.
#[derive(Debug)]
pub(super) struct Stripped {
    /// The directory to pack; the binary is `release/catamaran` in it.
    pub(super) stage: PathBuf,
    pub(super) symbols: PathBuf,
}

impl Build<'_> {
    /// The binary for `triple`.
    pub(super) fn binary(&self, triple: &str) -> anyhow::Result<PathBuf> {
        let auditable = tools::AUDITABLE.program(self.root)?;
        let target = text(self.target)?;
        let flags = self.flags()?;
        let variable = |name: &str| format!("{name}_{}", triple.replace('-', "_"));
        let arguments = ["auditable", "build", "--locked", "--quiet"];
        let mut build = program(text(&auditable)?, &arguments)
            .args(&["--package", "catamaran", "--profile", self.profile])
            .args(&["--target", triple, "--target-dir", target])
            .directory(self.source)
            .env("CARGO_ENCODED_RUSTFLAGS", flags.rust.join("\u{1f}"))
            .env(&variable("CFLAGS"), flags.c.join(" "))
            .env("SOURCE_DATE_EPOCH", self.epoch)
            .env("CARGO_INCREMENTAL", "0")
            // All symbols are to be in the binary: `symbols_apart` moves them into one file.
            .env("CARGO_PROFILE_DIST_SPLIT_DEBUGINFO", "off");
        if triple == MUSL {
            prepare_musl()?;
            build = build.env(&variable("CC"), "musl-gcc");
        }
        build.finish()?;
        let folder = match self.profile {
            "dev" => "debug",
            profile => profile,
        };
        Ok(self.target.join(triple).join(folder).join("catamaran"))
    }

    /// Compiler flags that replace the paths of directories in the binary. If two of them match a path, the later one
    /// applies.
    fn flags(&self) -> anyhow::Result<Flags> {
        let sysroot = program("rustc", &["--print", "sysroot"])
            .directory(self.source)
            .output()?;
        let cargo_home = match std::env::var_os("CARGO_HOME") {
            Some(home) => PathBuf::from(home),
            None => {
                let home = std::env::var_os("HOME");
                let home = home.context("neither CARGO_HOME nor HOME is set")?;
                PathBuf::from(home).join(".cargo")
            }
        };
        let mut flags = Flags::default();
        for (from, to) in [
            (Path::new(sysroot.trim()), "/toolchain"),
            (&cargo_home, "/cargo"),
            (self.source, "/catamaran"),
            (self.target, "/target"),
        ] {
            let from = text(from)?;
            flags.rust.push(format!("--remap-path-prefix={from}={to}"));
            flags.c.push(format!("-ffile-prefix-map={from}={to}"));
        }
        Ok(flags)
    }
}

#[derive(Default)]
struct Flags {
    rust: Vec<String>,
    c: Vec<String>,
}

/// Copies `binary` to `to` without symbols, and its symbols to `symbols`. The copy has the name and a checksum of the
/// file with the symbols, by which debuggers find it.
pub(super) fn symbols_apart(binary: &Path, to: &Path, symbols: &Path) -> anyhow::Result<()> {
    let (from, stripped, apart) = (text(binary)?, text(to)?, text(symbols)?);
    for path in [to, symbols] {
        if path.exists() {
            fs::remove_file(path)?;
        }
    }
    let apart_only = [
        "--only-keep-debug",
        "--compress-debug-sections",
        from,
        apart,
    ];
    program("objcopy", &apart_only).finish()?;
    program("strip", &["-o", stripped, from]).finish()?;
    let link = format!("--add-gnu-debuglink={apart}");
    program("objcopy", &[&link, stripped]).finish()?;
    fs::set_permissions(to, fs::Permissions::from_mode(0o755))?;
    fs::set_permissions(symbols, fs::Permissions::from_mode(0o644))?;
    Ok(())
}

/// Installs what static binaries need: Rust's library for the target, and a C compiler.
fn prepare_musl() -> anyhow::Result<()> {
    // Without rustup, the list is empty, and adding the target says what is wrong.
    let targets = program("rustup", &["target", "list", "--installed"])
        .output()
        .unwrap_or_default();
    if !targets.lines().any(|target| target == MUSL) {
        say(&format!("adding {MUSL} to the toolchain"));
        program("rustup", &["target", "add", MUSL]).finish()?;
    }
    if !program("musl-gcc", &["--version"]).succeeds() {
        program("apt-get", &["install", "--yes", "musl-tools"]).finish()?;
    }
    Ok(())
}

/// The target of static binaries.
pub(super) const MUSL: &str = "x86_64-unknown-linux-musl";
/// The target of the Debian package.
pub(super) const GNU: &str = "x86_64-unknown-linux-gnu";

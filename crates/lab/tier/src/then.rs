//! The software of the published tests, built from its own sources into a folder of the user.
//!
//! `then.toml` has a record for each software. Only Maven fetches anything here: the user names clones of the sources'
//! repositories, or archives of them, and the right tree is recognised by its checksum in Git. Nothing that is built
//! here is part of a package.

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::LazyLock;

use serde::Deserialize;

use crate::needs;
use crate::server::Need;

/// Software of a published test: a record of `then.toml`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OldSoftware {
    /// The name of the software. In targets, `{{ program["NAME"] }}` is the folder that it is in.
    pub name: String,
    /// A description of the software, and the test that it belongs to.
    pub what: String,
    /// The name of a record whose packages, sources and patches this one has, too, before its own.
    #[serde(default)]
    based_on: Option<String>,
    #[serde(default)]
    needs: Vec<String>,
    #[serde(default)]
    source: Vec<Source>,
    #[serde(default)]
    patch: Vec<Patch>,
    build: String,
    makes: Vec<PathBuf>,
}

/// A tree of files that software is built from.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Source {
    /// The folder of this tree, relative to the first tree.
    at: PathBuf,
    /// The repository on GitHub, OWNER/NAME.
    repository: String,
    /// The tag or the commit of the tree.
    tag: String,
    /// Git's checksum of the tree.
    tree: String,
}

/// A text that takes the place of another one in a file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Patch {
    /// The reason, for people who read the table or the stamp file.
    #[cfg_attr(not(test), expect(dead_code, reason = "people alone read it"))]
    why: String,
    file: PathBuf,
    from: String,
    to: String,
}

/// Why software could not be prepared.
#[derive(Debug, thiserror::Error)]
pub enum PrepareFault {
    /// Sources are in none of the places that the user has named.
    #[error("{}", wanted(.0))]
    Sources(Vec<Source>),
    /// Debian packages are missing.
    #[error("{}", needs::message(.0))]
    Packages(Vec<Need>),
    /// The text that a patch replaces is not in its file.
    #[error("{}: there is no `{from}` to replace", file.display())]
    Patch {
        /// The file, from the root of the first tree.
        file: PathBuf,
        /// The text that is replaced.
        from: String,
    },
    /// Building failed, or took longer than it may.
    #[error("{what} ended with {how}; its output is in {}\n{said}", log.display())]
    Build {
        /// The name of the software.
        what: String,
        /// The exit status.
        how: String,
        /// The file with all of the output.
        log: PathBuf,
        /// The last lines of the output.
        said: String,
    },
    /// The build succeeded, but did not make this file.
    #[error("building has not made {}", .0.display())]
    Unmade(PathBuf),
    /// A file could not be read or written, or a program could not be run.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// All software of the table, in its order.
#[must_use]
pub fn all() -> &'static [OldSoftware] {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Table {
        software: Vec<OldSoftware>,
    }
    static ALL: LazyLock<Vec<OldSoftware>> = LazyLock::new(|| {
        let text = include_str!("../then.toml");
        let table: Table = toml::from_str(text).expect("a test reads it");
        let records = table.software.iter();
        records
            .map(|software| software.with_base(&table.software))
            .collect()
    });
    &ALL
}

/// The software called `name`; `None` if there is none.
#[must_use]
pub fn find(name: &str) -> Option<&'static OldSoftware> {
    all().iter().find(|software| software.name == name)
}

/// The folder for all prepared software, unless the user names another one. `home` is the user's home directory.
#[must_use]
pub fn folder(home: &Path) -> PathBuf {
    home.join(".local/share/catamaran/then")
}

impl OldSoftware {
    /// This record with what it has from the record that it is based on, which is one of `records`.
    fn with_base(&self, records: &[Self]) -> Self {
        let mut whole = self.clone();
        if let Some(name) = &self.based_on {
            let mut records = records.iter();
            let found = records.find(|base| base.name == *name);
            let base = found.expect("a test reads it");
            whole.needs = [&base.needs[..], &self.needs].concat();
            whole.source = [&base.source[..], &self.source].concat();
            whole.patch = [&base.patch[..], &self.patch].concat();
        }
        whole
    }

    /// Whether the folder `out` has this software, built by its current record and not by an older one.
    #[must_use]
    pub fn is_prepared(&self, out: &Path) -> bool {
        fs::read_to_string(out.join(STAMP)).is_ok_and(|stamp| stamp == self.stamp())
    }

    /// Builds the software into the folder `out`, an absolute path, in place of what is there. `sources` are clones of
    /// repositories, archives, and folders with clones or archives in them.
    ///
    /// # Errors
    /// Sources or packages are missing, or building fails; [`PrepareFault`] says why. A build has half an hour.
    pub fn prepare(&self, out: &Path, sources: &[PathBuf]) -> Result<(), PrepareFault> {
        let missing = needs::missing(&self.packages());
        if !missing.is_empty() {
            return Err(PrepareFault::Packages(missing));
        }
        let scratch = tempfile::tempdir()?;
        let root = scratch.path().join("source");
        fs::create_dir(&root)?;
        self.unpack(&root, sources)?;
        for patch in &self.patch {
            patch.apply(&root)?;
        }
        if out.exists() {
            fs::remove_dir_all(out)?;
        }
        fs::create_dir_all(out)?;
        self.run(&root, out)?;
        if let Some(unmade) = self.makes.iter().find(|made| !out.join(made).exists()) {
            return Err(PrepareFault::Unmade(out.join(unmade)));
        }
        // This is the last step, so the file exists only if everything else is complete.
        Ok(fs::write(out.join(STAMP), self.stamp())?)
    }

    /// The packages that must be installed for the build.
    fn packages(&self) -> Vec<Need> {
        let of_software = self.needs.iter().map(String::as_str);
        let mut packages = Vec::new();
        // What Maven fetches is not compiled.
        let of_build = if self.source.is_empty() {
            &[][..]
        } else {
            &BUILD_PACKAGES[..]
        };
        for name in of_build.iter().copied().chain(of_software) {
            // Each Debian package has such a folder.
            packages.push(needs::package(name, &format!("/usr/share/doc/{name}")));
        }
        packages
    }

    /// Puts the trees of all sources where they belong below `root`.
    fn unpack(&self, root: &Path, places: &[PathBuf]) -> Result<(), PrepareFault> {
        let candidates = candidates(places)?;
        let mut missing = Vec::new();
        for source in &self.source {
            let folder = root.join(&source.at);
            fs::create_dir_all(&folder)?;
            let mut is_unpacked = false;
            for candidate in &candidates {
                if candidate.unpack(&source.tree, &folder)? {
                    is_unpacked = true;
                    break;
                }
            }
            if !is_unpacked {
                missing.push(source.clone());
            }
        }
        if missing.is_empty() {
            return Ok(());
        }
        Err(PrepareFault::Sources(missing))
    }

    /// Runs the build commands in `root`, with the folder `out` for what they make; they have half an hour.
    fn run(&self, root: &Path, out: &Path) -> Result<(), PrepareFault> {
        let log = out.join("build.log");
        let output = fs::File::create(&log)?;
        let status = Command::new("timeout")
            .args([BUILD_SECONDS, "sh", "-euc", &self.build])
            .current_dir(root)
            .env("OUT", out)
            .env("CFLAGS", CFLAGS)
            .env("COPY_JAR", COPY_JAR)
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output)
            .status()?;
        if status.success() {
            return Ok(());
        }
        let bytes = fs::read(&log)?;
        let said = String::from_utf8_lossy(&bytes);
        let lines: Vec<&str> = said.lines().collect();
        Err(PrepareFault::Build {
            what: self.name.clone(),
            how: status.to_string(),
            said: lines[lines.len().saturating_sub(LAST_LINES)..].join("\n"),
            log,
        })
    }

    /// The text of the stamp file: it changes whenever the record does.
    fn stamp(&self) -> String {
        format!("{self:#?}\n")
    }
}

impl Patch {
    fn apply(&self, root: &Path) -> Result<(), PrepareFault> {
        let path = root.join(&self.file);
        // Some source files are not UTF-8, but no patched one is.
        let text = fs::read_to_string(&path)?;
        if !text.contains(&self.from) {
            let (file, from) = (self.file.clone(), self.from.clone());
            return Err(PrepareFault::Patch { file, from });
        }
        Ok(fs::write(&path, text.replace(&self.from, &self.to))?)
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            repository,
            tag,
            tree,
            ..
        } = self;
        write!(
            f,
            "https://github.com/{repository} {tag}, tree {tree}\n    https://github.com/{repository}/archive/{tag}.tar.gz"
        )
    }
}

/// A place that may have a source, if it is a clone or an archive.
#[derive(Debug)]
enum Candidate {
    Clone(PathBuf),
    /// An archive, unpacked by tar, with the checksum of its tree in Git.
    Archive {
        tree: String,
        root: PathBuf,
        /// The directory that it is unpacked in, which is removed on drop.
        _unpacked: tempfile::TempDir,
    },
}

impl Candidate {
    /// Looks at the place `path`; `None` if it is neither a clone nor an archive.
    fn at(path: &Path) -> io::Result<Option<Self>> {
        let is_clone = path.join(".git").exists() || path.join("objects").is_dir();
        if is_clone {
            return Ok(Some(Self::Clone(path.to_owned())));
        }
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if !path.is_file() || !ARCHIVES.iter().any(|end| name.ends_with(end)) {
            return Ok(None);
        }
        let unpacked = tempfile::tempdir()?;
        let mut tar = Command::new("tar");
        tar.arg("-xf").arg(path).arg("-C").arg(unpacked.path());
        succeed(&mut tar)?;
        // Archives of a release have everything in one directory, named after the version.
        let entries = fs::read_dir(unpacked.path())?.collect::<io::Result<Vec<_>>>()?;
        let root = match &entries[..] {
            [directory] => directory.path(),
            _ => unpacked.path().to_owned(),
        };
        Ok(Some(Self::Archive {
            tree: tree_of(&root)?,
            root,
            _unpacked: unpacked,
        }))
    }

    /// Copies the tree with this checksum to `folder`; returns whether it is in this clone or archive.
    fn unpack(&self, tree: &str, folder: &Path) -> io::Result<bool> {
        match self {
            Self::Clone(clone) => {
                // In Git's syntax, the object with this checksum if it is a tree.
                let object = format!("{tree}^{{tree}}");
                let check = git(clone).args(["cat-file", "-e", &object]).output()?;
                if !check.status.success() {
                    return Ok(false);
                }
                let archive = folder.join(".archive.tar");
                succeed(git(clone).arg("archive").arg("-o").arg(&archive).arg(tree))?;
                let mut tar = Command::new("tar");
                succeed(tar.arg("-xf").arg(&archive).arg("-C").arg(folder))?;
                fs::remove_file(archive)?;
            }
            Self::Archive {
                tree: of_archive,
                root,
                ..
            } => {
                if of_archive != tree {
                    return Ok(false);
                }
                let mut copy = Command::new("cp");
                succeed(copy.arg("-a").arg(root.join(".")).arg(folder))?;
            }
        }
        Ok(true)
    }
}

/// The clones and archives among `places`, and those directly in folders among them.
fn candidates(places: &[PathBuf]) -> io::Result<Vec<Candidate>> {
    let mut found = Vec::new();
    for place in places {
        match Candidate::at(place)? {
            Some(candidate) => found.push(candidate),
            None if place.is_dir() => {
                for entry in fs::read_dir(place)? {
                    found.extend(Candidate::at(&entry?.path())?);
                }
            }
            None => {
                let what = format!("{} is no clone, folder or archive", place.display());
                return Err(io::Error::other(what));
            }
        }
    }
    Ok(found)
}

/// Git's checksum of the tree of the files in `root`.
fn tree_of(root: &Path) -> io::Result<String> {
    let repository = tempfile::tempdir()?;
    let git = |arguments: &[&str]| {
        let mut command = Command::new("git");
        command.args(arguments).current_dir(root);
        command
            .env("GIT_DIR", repository.path())
            .env("GIT_WORK_TREE", root);
        succeed(&mut command)
    };
    git(&["init", "--quiet"])?;
    fs::create_dir_all(repository.path().join("info"))?;
    // Files are added byte for byte, whatever their attributes and the user's settings say about line ends.
    fs::write(
        repository.path().join("info/attributes"),
        "* -text -ident -filter\n",
    )?;
    git(&["add", "--all", "--force", "."])?;
    let checksum = git(&["write-tree"])?.stdout;
    Ok(String::from_utf8_lossy(&checksum).trim().to_owned())
}

/// Git in the clone at `path`, which may belong to another user.
fn git(path: &Path) -> Command {
    let mut command = Command::new("git");
    command.args(["-c", "safe.directory=*", "-C"]).arg(path);
    command
}

/// Runs `command` to its end. If it fails, the error has what it printed on standard error.
fn succeed(command: &mut Command) -> io::Result<Output> {
    let output = command.stdin(Stdio::null()).output()?;
    if output.status.success() {
        return Ok(output);
    }
    let program = command.get_program().to_string_lossy();
    let said = String::from_utf8_lossy(&output.stderr);
    Err(io::Error::other(format!("{program}: {}", said.trim())))
}

fn wanted(missing: &[Source]) -> String {
    let lines: Vec<String> = missing.iter().map(|source| format!("  {source}")).collect();
    format!(
        "these sources are not at hand: clone each repository or fetch its archive, and name it, or the folder that it \
         is in, by --source\n{}",
        lines.join("\n")
    )
}

/// The file that is written once the software is complete; its text is the record that it was built by.
const STAMP: &str = "prepared";
const BUILD_PACKAGES: [&str; 3] = ["gcc", "make", "git"];
/// The C standard at the time of the software. In it, a global variable may be defined in several files (`-fcommon`).
const CFLAGS: &str = "-O2 -w -std=gnu89 -fcommon";
/// The beginning of a command that has Maven copy a jar; `=GROUP:ARTIFACT:VERSION` follows directly.
const COPY_JAR: &str =
    "mvn --quiet --batch-mode org.apache.maven.plugins:maven-dependency-plugin:2.8:copy -Dartifact";
const BUILD_SECONDS: &str = "1800";
const ARCHIVES: [&str; 5] = [".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz"];
const LAST_LINES: usize = 20;

#[cfg(test)]
mod tests;

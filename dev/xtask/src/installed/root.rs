//! A clean Debian with systemd and Tomcat: made by mmdebstrap once, unpacked and booted by systemd-nspawn for each trial.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::thread;

use anyhow::{Context, bail, ensure};
use catamaran_tier::needs::package;

use crate::needs;
use crate::step::{program, say};

/// Makes the root as a tar in `folder`, unless it was made before, and returns its path.
pub(super) fn make(folder: &Path) -> anyhow::Result<PathBuf> {
    fs::create_dir_all(folder)?;
    needs::install(&[
        package("mmdebstrap", "/usr/bin/mmdebstrap"),
        package("systemd-container", "/usr/bin/systemd-nspawn"),
        needs::umoci(),
    ])?;
    let tar = folder.join("root.tar");
    if tar.exists() {
        say(&format!("{} is there", tar.display()));
        return Ok(tar);
    }
    let partial = folder.join("partial.tar");
    let include = format!("--include={PACKAGES}");
    program(
        "mmdebstrap",
        &["--variant=minbase", "--mode=root", "--quiet"],
    )
    .args(&[&include, SUITE, &partial.to_string_lossy()])
    .finish()?;
    fs::rename(partial, &tar)?;
    Ok(tar)
}

/// A booted root file system. Dropping it ends its processes.
pub(super) struct CleanRoot {
    folder: PathBuf,
    nspawn: Child,
    /// The first process inside the root.
    leader: u32,
}

impl CleanRoot {
    /// Unpacks `tar` below `folder`, boots it in a container, and waits until systemd has started all units.
    pub(super) fn boot(tar: &Path, folder: &Path) -> anyhow::Result<Self> {
        let root = folder.join("root");
        if root.exists() {
            fs::remove_dir_all(&root)?;
        }
        fs::create_dir_all(&root)?;
        let (tar, place) = (tar.to_string_lossy(), root.to_string_lossy());
        program("tar", &["--extract", "--numeric-owner", "--file", &tar])
            .args(&["--directory", &place])
            .finish()?;
        let mut command = Command::new("systemd-nspawn");
        command
            .args(["--quiet", "--register=no", "--keep-unit"])
            .args(["--private-network", "--boot", "--directory"])
            .arg(&root)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit());
        let mut nspawn = command.spawn().context("systemd-nspawn")?;
        let console = nspawn.stdout.take().context("stdout is piped")?;
        let mut booting = Self {
            folder: root,
            nspawn,
            // Not known before it runs; `drop` ends nspawn itself if that fails.
            leader: 0,
        };
        wait_until_booted(console, &folder.join("console.log"))?;
        booting.leader = booting.find_leader()?;
        // The status is not 0 if a unit has failed, as some do in a container.
        booting.run("systemctl is-system-running --wait || true")?;
        Ok(booting)
    }

    /// Finds the process id of nspawn's child, which is the first process inside.
    fn find_leader(&self) -> anyhow::Result<u32> {
        let id = self.nspawn.id();
        let children = fs::read_to_string(format!("/proc/{id}/task/{id}/children"))?;
        let first = children.split_whitespace().next();
        let leader = first.context("nothing runs in systemd-nspawn")?;
        Ok(leader.parse()?)
    }

    /// Copies a file into the home directory of root inside.
    pub(super) fn lend(&self, file: &Path) -> anyhow::Result<()> {
        fs::copy(file, self.folder.join("root").join(name(file)?))?;
        Ok(())
    }

    /// Runs a script inside as root; gives its output. A status other than 0 is an error.
    pub(super) fn run(&self, script: &str) -> anyhow::Result<String> {
        let Output {
            status,
            stdout,
            stderr,
        } = self.command(script).output()?;
        let stdout = String::from_utf8_lossy(&stdout).into_owned();
        let stderr = String::from_utf8_lossy(&stderr);
        ensure!(status.success(), "{script}\n{status}\n{stdout}\n{stderr}");
        Ok(stdout)
    }

    /// Starts a script inside.
    pub(super) fn start(&self, script: &str) -> anyhow::Result<Child> {
        let mut command = self.command(script);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        Ok(command.spawn()?)
    }

    /// The command that runs a script inside as root, with an environment of its own.
    fn command(&self, script: &str) -> Command {
        let mut command = Command::new("nsenter");
        command
            .arg(format!("--target={}", self.leader))
            .args(["--all", "env", "--ignore-environment"])
            .args([
                PATH,
                "HOME=/root",
                "LANG=C.UTF-8",
                "DEBIAN_FRONTEND=noninteractive",
            ])
            .args(["sh", "-c", &format!("cd /root\n{script}")])
            .stdin(Stdio::null());
        command
    }

    /// Lists all files, except those that logs, package managers, systemd and other servers write while they
    /// run.
    pub(super) fn files(&self) -> anyhow::Result<Vec<String>> {
        let listed = self.run("find / -xdev | LC_ALL=C sort")?;
        let is_written_by_others = |file: &str| {
            OF_SYSTEMD.contains(&file) || OTHERS.iter().any(|start| file.starts_with(start))
        };
        let files = listed.lines().filter(|file| !is_written_by_others(file));
        Ok(files.map(str::to_owned).collect())
    }
}

impl Drop for CleanRoot {
    fn drop(&mut self) {
        if self.leader != 0 {
            // Ends the first process inside, and with it all others; nspawn then ends, too.
            let id = self.leader.to_string();
            program("kill", &["-KILL", &id]).succeeds();
        } else {
            let _ = self.nspawn.kill();
        }
        let _ = self.nspawn.wait();
    }
}

/// The file's own name.
pub(super) fn name(file: &Path) -> anyhow::Result<&str> {
    let name = file.file_name().and_then(|it| it.to_str());
    name.with_context(|| format!("{} has no name", file.display()))
}

/// Reads the console until systemd says that all units are started; then a thread copies what follows to `log`.
fn wait_until_booted(console: ChildStdout, log: &Path) -> anyhow::Result<()> {
    let mut log = File::create(log)?;
    let mut lines = BufReader::new(console).split(b'\n');
    for line in lines.by_ref() {
        let line = line?;
        log.write_all(&line)?;
        log.write_all(b"\n")?;
        if String::from_utf8_lossy(&line).contains("multi-user.target") {
            // The console must be read on: once its pipe is full, systemd would block.
            thread::spawn(move || {
                for line in lines.map_while(Result::ok) {
                    let _ = log.write_all(&line).and_then(|()| log.write_all(b"\n"));
                }
            });
            return Ok(());
        }
    }
    bail!("the clean root did not boot: installed/console.log says why")
}

const SUITE: &str = "bookworm";
const PACKAGES: &str =
    "systemd,systemd-sysv,dbus,ca-certificates,tomcat10,curl,openssl,procps,man-db";
const PATH: &str = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
const OTHERS: [&str; 16] = [
    "/root/",
    // Tomcat makes a folder there when it has started.
    "/etc/tomcat10/Catalina/",
    "/tmp/",
    "/var/tmp/",
    "/var/log/journal/",
    "/var/log/tomcat10/",
    "/var/log/apt/",
    "/var/log/dpkg.log",
    "/var/log/alternatives.log",
    "/var/cache/apt/",
    "/var/cache/man/",
    "/var/cache/tomcat10/",
    "/var/lib/apt/",
    "/var/lib/dpkg/",
    "/var/lib/systemd/",
    "/var/lib/tomcat10/",
];
/// Directories that systemd makes for units with `DynamicUser`. The directories themselves are not compared,
/// their contents are.
const OF_SYSTEMD: [&str; 2] = ["/var/lib/private", "/var/log/private"];

//! A cgroup that limits how many bytes per second its processes read from a disk.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use rustix::fs::{major, minor};

/// Such a cgroup. Dropping it removes it; its processes must have ended.
#[derive(Debug)]
pub(crate) struct Throttle {
    group: PathBuf,
}

impl Throttle {
    /// A cgroup whose processes read at most `bytes` per second from the disk of this path.
    ///
    /// # Errors
    /// There is no controller of block devices, or this user may not use it.
    pub(crate) fn new(path: &Path, bytes: u64) -> anyhow::Result<Self> {
        let device = disk(path)?;
        let name = format!("catamaran-cold-{}", std::process::id());
        // Version 1 of cgroups has a tree for each controller, version 2 one tree for all.
        let group = if Path::new(BLKIO).exists() {
            let group = Path::new(BLKIO).join(name);
            fs::create_dir(&group).with_context(|| format!("{}", group.display()))?;
            let limit = group.join("blkio.throttle.read_bps_device");
            fs::write(&limit, format!("{device} {bytes}"))
                .with_context(|| format!("{}", limit.display()))?;
            group
        } else if Path::new(UNIFIED).exists() {
            let top = Path::new("/sys/fs/cgroup");
            fs::write(top.join("cgroup.subtree_control"), "+io")
                .context("the controller `io` cannot be had")?;
            let group = top.join(name);
            fs::create_dir(&group)?;
            fs::write(group.join("io.max"), format!("{device} rbps={bytes}"))
                .with_context(|| format!("io.max for {device}"))?;
            group
        } else {
            bail!("there is neither {BLKIO} nor {UNIFIED}: no disk can be made slow")
        };
        Ok(Self { group })
    }

    /// Puts a process into the group, with all its threads.
    pub(crate) fn add(&self, id: u32) -> anyhow::Result<()> {
        let processes = self.group.join("cgroup.procs");
        fs::write(&processes, id.to_string()).with_context(|| format!("{}", processes.display()))
    }
}

impl Drop for Throttle {
    fn drop(&mut self) {
        fs::remove_dir(&self.group).ok();
    }
}

/// The whole disk on which this path is, as `MAJOR:MINOR`.
fn disk(path: &Path) -> anyhow::Result<String> {
    let number = fs::metadata(path)?.dev();
    let device = format!("{}:{}", major(number), minor(number));
    let folder = PathBuf::from(format!("/sys/dev/block/{device}"))
        .canonicalize()
        .with_context(|| format!("{} is on no disk", path.display()))?;
    if !folder.join("partition").exists() {
        return Ok(device);
    }
    let disk = folder.parent().context("the disk of a partition")?;
    Ok(fs::read_to_string(disk.join("dev"))?.trim().to_owned())
}

const BLKIO: &str = "/sys/fs/cgroup/blkio";

const UNIFIED: &str = "/sys/fs/cgroup/cgroup.controllers";

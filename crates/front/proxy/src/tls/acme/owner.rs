//! Which process orders for a name, among machines with a common directory: on NFS a lock may exclude nobody.
//!
//! `owner.json` in the folder of a name is made by exclusive creation. It holds for ten minutes and is written anew
//! every three, so that it ends with its process, and whoever finds it follows. A process of the same machine, by the
//! id of the kernel's boot, is excluded by the lock, so that what it has left is taken over at once. Another one's is
//! taken over when it has not changed for as long as it holds, or says itself that it is over, whatever the clocks of
//! the machines differ by. Of two that take it over at a time, the one whose claim is found later has it. A process that
//! stood still for so long looks at the file before it changes anything ([`OwnerClaim`]).

use std::collections::HashMap;
use std::fs;
use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};
use tempfile::NamedTempFile;
use tokio::time::Instant;

use super::disk::{at, read_text};
use crate::date::unix_seconds;

/// What the file says.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Owner {
    /// The name of the machine, for people.
    pub(crate) host: String,
    /// The id of the kernel's boot; empty: unknown.
    boot: String,
    /// What tells this claim from all others.
    claim: String,
    /// Until when it holds, in seconds of the Unix epoch.
    until: u64,
}

/// The claims of others, and own ones that are not certain yet, by the paths of their files.
#[derive(Debug, Default)]
pub(crate) struct Rivals(HashMap<PathBuf, Rival>);

/// What was found in a file, or written there in place of what was over.
#[derive(Debug)]
struct Rival {
    owner: Owner,
    /// The name of the machine that it is about, or was before it was over.
    host: String,
    /// Since when the file has been so.
    since: Instant,
    /// Whether it is this process's own claim, which holds once it is found there again.
    is_own: bool,
}

/// A moment by the clock of the machine, which may be wrong, and by that of this process.
#[derive(Clone, Copy, Debug)]
struct Moment {
    /// The seconds of the Unix epoch.
    seconds: u64,
    instant: Instant,
}

/// What a claim of this process is known by in its file.
#[derive(Clone, Debug)]
pub(crate) struct OwnerClaim {
    path: PathBuf,
    claim: String,
}

/// A claim that holds, and its file, which is removed when this is dropped.
#[derive(Debug)]
pub(super) struct OwnerFile {
    path: PathBuf,
    owner: Owner,
    /// When it is to be written anew.
    next: Instant,
}

impl Owner {
    fn of_this_process() -> Self {
        let boot = read_text(Path::new(BOOT_ID)).ok().flatten();
        let system = rustix::system::uname();
        Self {
            host: system.nodename().to_string_lossy().into_owned(),
            boot: boot.unwrap_or_default().trim().to_owned(),
            claim: format!("{:032x}", fastrand::u128(..)),
            until: 0,
        }
    }

    fn is_of_machine(&self, other: &Self) -> bool {
        !self.boot.is_empty() && self.boot == other.boot
    }

    /// Writes the claim into a file that must not be there yet.
    fn create(&mut self, path: &Path, now: u64) -> io::Result<()> {
        let file = self.draft(path, now)?;
        let created = file.persist_noclobber(path);
        created.map(drop).map_err(|error| at(path, &error.error))
    }

    /// Writes the claim in place of what the file has.
    fn write(&mut self, path: &Path, now: u64) -> io::Result<()> {
        let file = self.draft(path, now)?;
        let written = file.persist(path);
        written.map(drop).map_err(|error| at(path, &error.error))
    }

    /// The claim in a file beside its place. It is not synchronised: after a crash of the machine it is over anyway.
    fn draft(&mut self, path: &Path, now: u64) -> io::Result<NamedTempFile> {
        self.until = now + HOLDS.as_secs();
        let folder = path.parent().unwrap_or_else(|| Path::new("."));
        let mut file = NamedTempFile::new_in(folder)?;
        file.write_all(&serde_json::to_vec(self)?)?;
        Ok(file)
    }
}

impl Rivals {
    /// Claims what a file is about, the lock of which this process has; `None`: another process has it. `has_lock`:
    /// whether the file system knows locks.
    ///
    /// # Errors
    /// The file is there, and cannot be read.
    pub(super) fn claim(&mut self, path: &Path, has_lock: bool) -> io::Result<Option<OwnerFile>> {
        let now = Moment {
            seconds: unix_seconds(SystemTime::now()),
            instant: Instant::now(),
        };
        self.claim_as(Owner::of_this_process(), path, has_lock, now)
    }

    fn claim_as(
        &mut self,
        mut owner: Owner,
        path: &Path,
        has_lock: bool,
        now: Moment,
    ) -> io::Result<Option<OwnerFile>> {
        let Some(found) = read(path)? else {
            self.0.remove(path);
            let created = owner.create(path, now.seconds);
            // A directory that cannot be written keeps others from claiming it, too.
            let is_late = created.is_err_and(|error| error.kind() == ErrorKind::AlreadyExists);
            return Ok((!is_late).then(|| OwnerFile::new(path, owner)));
        };
        let known = self.0.get(path).filter(|it| it.owner == found);
        if known.is_some_and(|it| it.is_own) {
            self.0.remove(path);
            return Ok(Some(OwnerFile::new(path, found)));
        }
        if has_lock && found.is_of_machine(&owner) {
            // By the lock, its process has ended.
            self.0.remove(path);
            owner.write(path, now.seconds).ok();
            return Ok(Some(OwnerFile::new(path, owner)));
        }
        let since = known.map_or(now.instant, |it| it.since);
        let age = now.instant.saturating_duration_since(since);
        let is_over = now.seconds > found.until || age >= HOLDS;
        let is_own = is_over && owner.write(path, now.seconds).is_ok();
        let rival = Rival {
            host: found.host.clone(),
            owner: if is_own { owner } else { found },
            since,
            is_own,
        };
        self.0.insert(path.to_owned(), rival);
        Ok(None)
    }

    /// The machine of another process's claim; `None`: none was found.
    pub(crate) fn host(&self, path: &Path) -> Option<&str> {
        self.0.get(path).map(|it| &*it.host)
    }

    /// Forgets the files that are of no interest any more.
    pub(crate) fn retain(&mut self, is_of_interest: impl Fn(&Path) -> bool) {
        self.0.retain(|path, _| is_of_interest(path));
    }
}

impl OwnerClaim {
    /// Whether no other process has taken it over. A file that is gone or cannot be read says nothing of another one.
    pub(crate) fn holds(&self) -> bool {
        let found = read(&self.path);
        !matches!(found, Ok(Some(found)) if found.claim != self.claim)
    }
}

impl OwnerFile {
    fn new(path: &Path, owner: Owner) -> Self {
        Self {
            path: path.to_owned(),
            owner,
            next: Instant::now() + PERIOD,
        }
    }

    pub(super) fn claim(&self) -> OwnerClaim {
        OwnerClaim {
            path: self.path.clone(),
            claim: self.owner.claim.clone(),
        }
    }

    /// Writes the claim anew if that is due; `false`: another process has taken it over, since this one stood still.
    pub(super) fn renew(&mut self) -> bool {
        if Instant::now() < self.next {
            return true;
        }
        self.next = Instant::now() + PERIOD;
        self.renew_at(unix_seconds(SystemTime::now()))
    }

    fn renew_at(&mut self, now: u64) -> bool {
        match read(&self.path) {
            Ok(Some(found)) if found.claim != self.owner.claim => false,
            // What cannot be written now is written the next time.
            Ok(Some(_)) => {
                self.owner.write(&self.path, now).ok();
                true
            }
            Ok(None) => {
                let created = self.owner.create(&self.path, now);
                !created.is_err_and(|error| error.kind() == ErrorKind::AlreadyExists)
            }
            Err(_) => true,
        }
    }
}

impl Drop for OwnerFile {
    /// Lets others order at once.
    fn drop(&mut self) {
        let found = read(&self.path);
        if matches!(found, Ok(Some(found)) if found.claim == self.owner.claim) {
            fs::remove_file(&self.path).ok();
        }
    }
}

/// What a file says; `None`: there is none. What cannot be understood says nothing, and is over.
fn read(path: &Path) -> io::Result<Option<Owner>> {
    let text = read_text(path)?;
    Ok(text.map(|text| serde_json::from_str(&text).unwrap_or_default()))
}

/// How long a claim holds.
const HOLDS: Duration = Duration::from_secs(10 * 60);

/// How often a claim is written anew.
const PERIOD: Duration = Duration::from_secs(3 * 60);

/// The file with the id of the kernel's boot, which all containers of a machine share.
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 1_900_000_000;

    /// A process of a machine, whose clock may be wrong.
    struct Machine {
        owner: Owner,
        rivals: Rivals,
        ahead: u64,
        began: Instant,
    }

    impl Machine {
        fn new(host: &str) -> Self {
            let owner = Owner {
                host: host.to_owned(),
                boot: format!("boot of {host}"),
                ..Owner::of_this_process()
            };
            Self {
                owner,
                rivals: Rivals::default(),
                ahead: 0,
                began: Instant::now(),
            }
        }

        /// What the process finds after so many seconds.
        fn claim(&mut self, path: &Path, after: u64) -> Option<OwnerFile> {
            self.claim_with(path, after, true)
        }

        fn claim_with(&mut self, path: &Path, after: u64, has_lock: bool) -> Option<OwnerFile> {
            let mut owner = self.owner.clone();
            owner.claim = format!("{:032x}", fastrand::u128(..));
            let now = Moment {
                seconds: NOW + self.ahead + after,
                instant: self.began + Duration::from_secs(after),
            };
            self.rivals.claim_as(owner, path, has_lock, now).unwrap()
        }
    }

    #[test]
    fn one_machine_orders_and_another_follows_until_it_ends() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("owner.json");
        let [mut one, mut two] = ["one", "two"].map(Machine::new);
        let held = one.claim(&path, 0).expect("nobody has it");
        assert!(two.claim(&path, 599).is_none());
        assert_eq!(two.rivals.host(&path), Some("one"));
        drop(held);
        assert!(!path.exists() && two.claim(&path, 599).is_some());
    }

    #[test]
    fn a_claim_that_is_over_is_taken_over_and_confirmed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("owner.json");
        let [mut one, mut two, mut three] = ["one", "two", "three"].map(Machine::new);
        let mut held = one.claim(&path, 0).expect("nobody has it");
        // Both find it over at the same time; the claim of the last one is found there.
        let over = fs::read(&path).unwrap();
        assert!(two.claim(&path, 601).is_none());
        fs::write(&path, over).unwrap();
        assert!(three.claim(&path, 601).is_none());
        assert!(two.claim(&path, 606).is_none(), "it is another's");
        assert_eq!(two.rivals.host(&path), Some("three"));
        let taken = three.claim(&path, 606).expect("it is confirmed");
        // The first one, which stood still, learns of it, and leaves the file alone.
        assert!(taken.claim().holds() && !held.claim().holds());
        assert!(!held.renew_at(NOW + 606));
        drop(held);
        assert!(path.exists() && two.claim(&path, 610).is_none());
        drop(taken);
        assert!(!path.exists());
    }

    #[test]
    fn a_claim_under_another_clock_ends_when_nobody_renews_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("owner.json");
        let [mut one, mut two] = ["one", "two"].map(Machine::new);
        one.ahead = 365 * 24 * 60 * 60;
        let mut held = one.claim(&path, 0).expect("nobody has it");
        let period = PERIOD.as_secs();
        for period in (period..=10 * period).step_by(180) {
            assert!(held.renew_at(NOW + one.ahead + period));
            assert!(two.claim(&path, period).is_none());
        }
        let (left, last) = (fs::read(&path).unwrap(), 10 * period);
        drop(held);
        fs::write(&path, left).unwrap();
        for after in [last + 590, last + 599] {
            assert!(two.claim(&path, after).is_none());
            assert_eq!(two.rivals.host(&path), Some("one"));
        }
        assert!(two.claim(&path, last + 600).is_none(), "not confirmed yet");
        assert!(two.claim(&path, last + 605).is_some());
    }

    #[test]
    fn what_a_process_of_this_machine_has_left_is_taken_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("owner.json");
        let mut one = Machine::new("one");
        let held = one.claim(&path, 0).expect("nobody has it");
        let left = fs::read(&path).unwrap();
        drop(held);
        fs::write(&path, &left).unwrap();
        let mut next = Machine::new("one");
        drop(next.claim(&path, 0).expect("the lock was free"));
        // Without locks only time tells.
        fs::write(&path, &left).unwrap();
        assert!(next.claim_with(&path, 0, false).is_none());
        // What a crash of the machine has left of a file is over.
        fs::write(&path, "").unwrap();
        let mut two = Machine::new("two");
        assert!(two.claim(&path, 0).is_none() && two.claim(&path, 5).is_some());
    }

    #[test]
    fn a_directory_that_cannot_be_written_has_no_other_owner() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("folder/owner.json");
        let mut one = Machine::new("one");
        let mut held = one.claim(&path, 0).expect("its lock");
        assert!(held.renew_at(NOW) && held.claim().holds() && !path.exists());
        fs::create_dir(folder.path().join("folder")).unwrap();
        assert!(held.renew_at(NOW) && path.exists());
        // Another one that made it meanwhile has it.
        fs::remove_file(&path).unwrap();
        let taken = Machine::new("two").claim(&path, 0);
        assert!(taken.is_some() && !held.renew_at(NOW));
    }
}

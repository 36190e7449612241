//! The files of issued certificates: below `state_dir`, and readable by their owner only.
//!
//! ```text
//! pending/TOKEN                   answers to challenges http-01, whichever process is asked
//! pending/DIGEST.tls-alpn-01.pem  answers to challenges tls-alpn-01, by the digest of their name
//! CA/account.json                 the account at the authority, with its key
//! CA/account.lock                 held by the process that makes the account
//! CA/NAME/lock                    held by the process that orders for the name
//! CA/NAME/owner.json              that process, for other machines
//! CA/NAME/state.json              what is stored of a name
//! CA/NAME/next.pem                the key of the order under way
//! CA/NAME/record-DIGEST.json      a record in the DNS, until it is taken out
//! CA/NAME/N/{chain,key}.pem       certificates, the last two
//! CA/NAME/current                 the number of the one that is served, as a symbolic link
//! ```
//!
//! `NAME` of a wildcard begins with `_.` in place of `*.`.
//!
//! Every file is written beside its place, synchronised and renamed, so that after a crash it is whole or the previous
//! one. What the disk does not take is kept in memory. `CA` is the host of the directory's URL with a digest of all of it: neither an account nor an order nor a
//! certificate of one directory is taken for one of another.

use std::fmt::Write as _;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use catamaran_tls::{Identity, PemFile};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::challenges;
use super::disk::{at, make_directory, read_text, remove_if_there};
use super::memory::{MemoryFiles, PemPair};
use super::owner::{OwnerClaim, OwnerFile, Rivals};
use super::schedule::NameState;
use crate::config::AcmeConfig;

/// The files of one profile's issued certificates.
#[derive(Clone, Debug)]
pub(crate) struct Store {
    state_dir: PathBuf,
    /// The directory with the answers to challenges that are pending.
    pending: PathBuf,
    /// The directory of the authority, in `state_dir`.
    authority: PathBuf,
    /// Whether pending answers stay when their guards are dropped.
    leaves_answers: Arc<AtomicBool>,
    /// What the disk does not take.
    memory: Arc<MemoryFiles>,
}

/// Why a stored certificate is not served.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StoredFault {
    /// Its files cannot be read now. They may be good.
    #[error(transparent)]
    Unread(#[from] io::Error),
    /// Its files were read, and are of no use.
    #[error("{0}")]
    Unusable(String),
}

/// A TXT record that answers a challenge dns-01.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ChallengeRecord {
    pub(crate) name: String,
    pub(crate) value: String,
}

/// A record that was put into the DNS, or is about to be. It is stored until it is forgotten, so that the next process
/// takes it out if this one is killed.
#[derive(Debug)]
pub(crate) struct RecordFile {
    pub(crate) record: ChallengeRecord,
    path: PathBuf,
    memory: Arc<MemoryFiles>,
}

/// The right to order for a name, which one process has at a time. Its end gives it back: by SIGKILL to others on the
/// machine at once, to other machines once the claim is over.
#[derive(Debug)]
pub(crate) struct StoreLock {
    claim: OwnerFile,
    _lock: FileLock,
}

/// The lock of a file. The end of the process, even by SIGKILL, gives it back.
#[derive(Debug)]
pub(crate) struct FileLock {
    _file: File,
    /// Whether the file system knows locks.
    excludes: bool,
}

impl Store {
    /// `memory`: what the disk does not take, which all stores of a process share.
    pub(crate) fn new(config: &AcmeConfig, memory: &Arc<MemoryFiles>) -> Self {
        Self {
            state_dir: config.state_dir.clone(),
            pending: config.pending(),
            authority: config.state_dir.join(folder_of(&config.directory)),
            leaves_answers: Arc::default(),
            memory: Arc::clone(memory),
        }
    }

    /// Makes the directories, and takes the rights of others off what is there. Returns what was narrowed.
    ///
    /// # Errors
    /// Those of the system; `PermissionDenied` if a file belongs to another user.
    pub(crate) fn open(&self) -> io::Result<Vec<PathBuf>> {
        for directory in [&self.state_dir, &self.pending, &self.authority] {
            make_directory(directory)?;
        }
        let mut narrowed = Vec::new();
        // Links below it are not followed, but the directory itself may be one.
        let directory =
            fs::canonicalize(&self.state_dir).map_err(|error| at(&self.state_dir, &error))?;
        narrow(&directory, &mut narrowed)?;
        Ok(narrowed)
    }

    /// Takes the right to order for a name; `None`: another process has it. `rivals`: what is known of those on other
    /// machines.
    ///
    /// # Errors
    /// Those of the system.
    pub(crate) fn lock(&self, name: &str, rivals: &mut Rivals) -> io::Result<Option<StoreLock>> {
        make_directory(&self.of_name(name))?;
        let Some(lock) = take_lock(&self.lock_file(name))? else {
            return Ok(None);
        };
        let Some(claim) = rivals.claim(&self.owner_file(name), lock.excludes)? else {
            return Ok(None);
        };
        self.remove_old_answers()?;
        Ok(Some(StoreLock { claim, _lock: lock }))
    }

    /// Forgets what of a name could not be stored: another process orders for it.
    pub(crate) fn forget_unstored(&self, name: &str) {
        self.memory.forget(&self.of_name(name));
    }

    /// The file by which processes on several machines exclude each other.
    pub(crate) fn owner_file(&self, name: &str) -> PathBuf {
        self.of_name(name).join("owner.json")
    }

    /// The file by which processes exclude each other from ordering for a name.
    pub(crate) fn lock_file(&self, name: &str) -> PathBuf {
        self.of_name(name).join("lock")
    }

    /// Takes the right to make the account at the authority; `None`: another process has it.
    ///
    /// # Errors
    /// Those of the system.
    pub(crate) fn lock_account(&self) -> io::Result<Option<FileLock>> {
        take_lock(&self.authority.join("account.lock"))
    }

    /// Removes what processes that are gone have left in `pending`, once no attempt of theirs can need it.
    fn remove_old_answers(&self) -> io::Result<()> {
        for entry in fs::read_dir(&self.pending)? {
            let entry = entry?;
            let metadata = match entry.metadata() {
                Ok(metadata) => metadata,
                // Another process has just removed it.
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                Err(error) => return Err(at(&entry.path(), &error)),
            };
            // The clock may have been set back.
            let age = metadata.modified()?.elapsed().unwrap_or_default();
            if age > ANSWER_AGE_MAX {
                remove_if_there(&entry.path())?;
            }
        }
        Ok(())
    }

    /// Has pending answers stay from now on: the process that orders next goes on with the order, and the authority may
    /// ask meanwhile.
    pub(crate) fn leave_answers(&self) {
        self.leaves_answers.store(true, Ordering::Relaxed);
    }

    /// Whether pending answers stay when their guards are dropped.
    pub(crate) fn leaves_answers(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.leaves_answers)
    }

    /// Keeps an answer until the guard is dropped.
    fn pending(&self, path: PathBuf, answer: &str) -> PendingChallenge {
        self.memory.write(&path, answer.as_bytes());
        PendingChallenge {
            path,
            stays: self.leaves_answers(),
            memory: Arc::clone(&self.memory),
        }
    }

    /// The text of a small file; `None`: there is no such file.
    fn read(&self, path: &Path) -> io::Result<Option<String>> {
        match self.memory.file(path) {
            Some(bytes) => Ok(bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned())),
            None => read_text(path),
        }
    }

    /// The account at the authority as it was stored; `None`: there is none yet.
    pub(crate) fn account(&self) -> io::Result<Option<String>> {
        self.read(&self.account_file())
    }

    /// Forgets the account, because the authority does not know it any more.
    pub(crate) fn forget_account(&self) {
        self.memory.remove(&self.account_file());
    }

    /// Stores an account, unless another process has stored one. Returns whether none has.
    pub(crate) fn keep_account(&self, json: &str) -> bool {
        self.memory.create(&self.account_file(), json.as_bytes())
    }

    fn account_file(&self) -> PathBuf {
        self.authority.join("account.json")
    }

    /// What is stored of a name; the default if nothing is, or if it cannot be understood.
    pub(crate) fn state(&self, name: &str) -> io::Result<NameState> {
        let text = self.read(&self.of_name(name).join("state.json"))?;
        let state = text.and_then(|text| serde_json::from_str(&text).ok());
        Ok(state.unwrap_or_default())
    }

    /// Stores the state of a name. Returns whether the disk took it.
    pub(crate) fn keep_state(&self, name: &str, state: &NameState) -> bool {
        let json = serde_json::to_vec(state).expect("numbers and texts");
        let folder = self.of_name(name);
        self.memory.write(&folder.join("state.json"), &json)
    }

    /// The key of the order under way, as PEM; `None`: there is none.
    pub(crate) fn next_key(&self, name: &str) -> io::Result<Option<String>> {
        self.read(&self.of_name(name).join(NEXT_KEY))
    }

    pub(crate) fn keep_next_key(&self, name: &str, pem: &str) {
        let path = self.of_name(name).join(NEXT_KEY);
        self.memory.write(&path, pem.as_bytes());
    }

    pub(crate) fn forget_next_key(&self, name: &str) {
        self.memory.remove(&self.of_name(name).join(NEXT_KEY));
    }

    /// Puts a certificate with the key of its order in place of the current one. The previous certificate stays beside it,
    /// and the key of the order until another order is made: after a crash the same certificate can be fetched again.
    /// Returns whether the disk took it.
    pub(crate) fn install(&self, name: &str, pair: &PemPair) -> bool {
        self.memory.install(&self.of_name(name), pair)
    }

    /// Stores a record of a name before it is put into the DNS.
    pub(crate) fn keep_record(&self, name: &str, record: ChallengeRecord) -> RecordFile {
        let json = serde_json::to_vec(&record).expect("texts");
        let digest = hexadecimal(&Sha256::digest(&record.value)[..8]);
        let file = format!("{RECORD_PREFIX}{digest}.json");
        let stored = self.record_file(record, self.of_name(name).join(file));
        self.memory.write(&stored.path, &json);
        stored
    }

    /// The records of a name that were not taken out of the DNS.
    ///
    /// # Errors
    /// Those of the system.
    pub(crate) fn records(&self, name: &str) -> io::Result<Vec<RecordFile>> {
        let mut records = Vec::new();
        let entries = match fs::read_dir(self.of_name(name)) {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(records),
            Err(error) => return Err(at(&self.of_name(name), &error)),
        };
        for entry in entries {
            let entry = entry?;
            if !entry
                .file_name()
                .as_encoded_bytes()
                .starts_with(RECORD_PREFIX.as_bytes())
            {
                continue;
            }
            let path = entry.path();
            let text = self.read(&path)?.unwrap_or_default();
            match serde_json::from_str(&text) {
                Ok(record) => records.push(self.record_file(record, path)),
                // A crash of the machine may leave that.
                Err(error) => {
                    tracing::error!(path = %path.display(), %error, "what is stored of a record in the DNS cannot be understood");
                }
            }
        }
        Ok(records)
    }

    /// The names of which something is stored, be they configured or not.
    ///
    /// # Errors
    /// Those of the system.
    pub(crate) fn stored_names(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.authority).map_err(|error| at(&self.authority, &error))? {
            let entry = entry?;
            // Of a wildcard it has an underscore, which no name has.
            if let (true, Some(folder)) = (entry.file_type()?.is_dir(), entry.file_name().to_str())
            {
                names.push(folder.replacen('_', "*", 1));
            }
        }
        Ok(names)
    }

    fn record_file(&self, record: ChallengeRecord, path: PathBuf) -> RecordFile {
        RecordFile {
            record,
            path,
            memory: Arc::clone(&self.memory),
        }
    }

    /// Whether anything of a name could not be stored: the end of the process would lose it.
    pub(crate) fn is_unstored(&self, name: &str) -> bool {
        self.memory.has_any_of(&self.of_name(name))
    }

    /// The certificate of a name that is served; `None`: there is none yet.
    ///
    /// # Errors
    /// Why the stored one is not served.
    pub(crate) fn identity(
        &self,
        name: &str,
        now: SystemTime,
    ) -> Result<Option<Identity>, StoredFault> {
        let folder = self.of_name(name);
        if let Some(pair) = self.memory.certificate(&folder) {
            let [chain, key] = [&pair.chain, &pair.key].map(|text| in_memory(text));
            let identity = identity_for(&[name.to_owned()], &chain, &key, now);
            return identity.map(Some).map_err(StoredFault::Unusable);
        }
        // The link is read once: another process may change it at any time.
        let number = match fs::read_link(folder.join("current")) {
            Ok(number) => number,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(at(&folder, &error).into()),
        };
        let read = |file: &str| -> io::Result<Option<PemFile>> {
            let path = folder.join(&number).join(file);
            let text = read_text(&path)?;
            Ok(text.map(|text| PemFile {
                path,
                bytes: text.into_bytes(),
                is_public: false,
            }))
        };
        let (Some(chain), Some(key)) = (read("chain.pem")?, read("key.pem")?) else {
            let text = format!("{} lacks a file", folder.join(&number).display());
            return Err(StoredFault::Unusable(text));
        };
        let identity = identity_for(&[name.to_owned()], &chain, &key, now);
        identity.map(Some).map_err(StoredFault::Unusable)
    }

    /// Lets the front answer a challenge until the guard is dropped.
    pub(crate) fn answer(&self, token: &str, answer: &str) -> io::Result<PendingChallenge> {
        let is_token = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        if !(1..=TOKEN_MAX).contains(&token.len()) || !token.bytes().all(is_token) {
            let text =
                "the authority's token is not a short one of base64url (RFC 8555, section 8.3)";
            return Err(io::Error::new(ErrorKind::InvalidData, text));
        }
        Ok(self.pending(self.pending.join(token), answer))
    }

    /// Lets the front answer a challenge tls-alpn-01 for a name until the guard is dropped.
    pub(crate) fn answer_by_certificate(&self, name: &str, pem: &str) -> PendingChallenge {
        self.pending(challenges::certificate_file(&self.pending, name), pem)
    }

    fn of_name(&self, name: &str) -> PathBuf {
        // No other name has an underscore.
        self.authority.join(name.replacen('*', "_", 1))
    }
}

/// An answer to a challenge, which is removed when this is dropped, unless answers are left.
#[derive(Debug)]
pub(crate) struct PendingChallenge {
    path: PathBuf,
    stays: Arc<AtomicBool>,
    memory: Arc<MemoryFiles>,
}

impl StoreLock {
    /// Tells other machines, from time to time, that this process goes on; `false`: one of them has taken over.
    pub(crate) fn renew(&mut self) -> bool {
        self.claim.renew()
    }

    /// By what this process learns at any time whether another machine has taken over.
    pub(crate) fn claim(&self) -> OwnerClaim {
        self.claim.claim()
    }
}

impl RecordFile {
    /// Notes that the record is not in the DNS any more.
    pub(crate) fn forget(&self) {
        self.memory.remove(&self.path);
    }
}

impl Drop for PendingChallenge {
    fn drop(&mut self) {
        if self.stays.load(Ordering::Relaxed) {
            return;
        }
        self.memory.remove(&self.path);
    }
}

/// A certificate with its key, if it is for all of `names` and neither has a fault.
///
/// # Errors
/// What is wrong with it.
pub(crate) fn identity_for(
    names: &[String],
    chain: &PemFile,
    key: &PemFile,
    now: SystemTime,
) -> Result<Identity, String> {
    let identity =
        Identity::issued(chain, key, now).map_err(|faults| super::super::messages(&faults))?;
    if let Some(name) = names
        .iter()
        .find(|name| !identity.facts.names.contains(name))
    {
        let names = identity.facts.names.join(", ");
        return Err(format!("the certificate is for {names}, not for {name}"));
    }
    Ok(identity)
}

/// The folder for the authority with this directory: the host of its URL, with its port if it has one, and a digest of
/// the URL, since a host may have several directories.
fn folder_of(directory: &str) -> String {
    let rest = directory
        .split_once("://")
        .map_or(directory, |(_, rest)| rest);
    let host = rest.split(['/', '?', '#']).next().unwrap_or(rest);
    let is_safe = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.');
    let replaced = host.chars().map(|c| if is_safe(c) { c } else { '_' });
    let safe: String = replaced.take(HOST_CHARS_MAX).collect();
    let digest = hexadecimal(&Sha256::digest(directory)[..8]);
    format!("{safe}-{digest}")
}

fn hexadecimal(bytes: &[u8]) -> String {
    let mut text = String::new();
    for byte in bytes {
        write!(text, "{byte:02x}").expect("a string takes all");
    }
    text
}

/// A file that is in memory alone.
fn in_memory(text: &str) -> PemFile {
    PemFile {
        path: PathBuf::from("(memory)"),
        bytes: text.into(),
        is_public: false,
    }
}

/// Locks a file, which is made if it is not there; `None`: another process has it.
fn take_lock(path: &Path) -> io::Result<Option<FileLock>> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false).mode(0o600);
    let file = options.open(path).map_err(|error| at(path, &error))?;
    let excludes = match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => true,
        Err(Errno::WOULDBLOCK) => return Ok(None),
        // Some file systems of networks have none.
        Err(Errno::OPNOTSUPP | Errno::NOLCK | Errno::NOSYS) => false,
        Err(error) => return Err(at(path, &error.into())),
    };
    Ok(Some(FileLock {
        _file: file,
        excludes,
    }))
}

/// Takes the rights of others off a directory and everything below it, but follows no link.
fn narrow(path: &Path, narrowed: &mut Vec<PathBuf>) -> io::Result<()> {
    let metadata = fs::symlink_metadata(path).map_err(|error| at(path, &error))?;
    let own = rustix::process::geteuid().as_raw();
    if metadata.uid() != own {
        let text = format!(
            "{} belongs to the user {}, not to {own}",
            path.display(),
            metadata.uid()
        );
        return Err(io::Error::new(ErrorKind::PermissionDenied, text));
    }
    if metadata.is_symlink() {
        return Ok(());
    }
    if metadata.mode() & 0o077 != 0 {
        let mode = metadata.mode() & 0o700;
        fs::set_permissions(path, Permissions::from_mode(mode))?;
        narrowed.push(path.to_owned());
    }
    if metadata.is_dir() {
        for entry in fs::read_dir(path)? {
            match narrow(&entry?.path(), narrowed) {
                // Another process has just removed it, or put it in its place.
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                result => result?,
            }
        }
    }
    Ok(())
}

/// The most bytes of a token, which names a file. Authorities send some 43.
const TOKEN_MAX: usize = 200;

/// The most characters of a host in the name of a folder, which has at most 255 (`NAME_MAX`).
const HOST_CHARS_MAX: usize = 200;

/// How old an answer is that nobody asks for: an attempt takes five minutes at most.
const ANSWER_AGE_MAX: Duration = Duration::from_secs(10 * 60);

/// The file with the key of the order under way, in the folder of its name.
const NEXT_KEY: &str = "next.pem";

/// How the names of files with records in the DNS begin.
const RECORD_PREFIX: &str = "record-";

#[cfg(test)]
mod tests {
    use catamaran_testkit::tls::Pair;

    use super::*;
    use crate::config::LETS_ENCRYPT;
    use crate::tls::acme::memory::numbers;
    use crate::tls::acme::{pem_pair, test_config};

    fn store(state_dir: &Path) -> Store {
        Store::new(&test_config(state_dir), &Arc::default())
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().mode() & 0o777
    }

    #[test]
    fn the_authority_names_its_folder() {
        let (long, kept) = (format!("https://{}/", "a".repeat(253)), "a".repeat(200));
        for (url, host) in [
            (LETS_ENCRYPT, "acme-v02.api.letsencrypt.org"),
            ("https://127.0.0.1:14000/dir", "127.0.0.1_14000"),
            ("https://[::1]:1/dir", "___1__1"),
            ("https://../x", ".."),
            ("https://pending", "pending"),
            (long.as_str(), kept.as_str()),
        ] {
            let folder = folder_of(url);
            let digest = folder
                .strip_prefix(host)
                .and_then(|it| it.strip_prefix('-'));
            assert_eq!(digest.map(str::len), Some(16), "{url}: {folder}");
        }
        let folders = ["one/directory", "two/directory", "one/directory/"]
            .map(|path| folder_of(&format!("https://ca.test/acme/{path}")));
        assert!(folders[0] != folders[1] && folders[0] != folders[2]);
    }

    #[test]
    fn another_directory_on_the_same_host_has_neither_account_nor_order() {
        let folder = tempfile::tempdir().unwrap();
        let of_directory = |path: &str| {
            let config = AcmeConfig {
                directory: format!("https://ca.test/acme/{path}/directory"),
                ..test_config(folder.path())
            };
            Store::new(&config, &Arc::default())
        };
        let (one, two) = (of_directory("one"), of_directory("two"));
        for store in [&one, &two] {
            store.open().unwrap();
        }
        assert!(one.keep_account("{}"));
        let state = NameState {
            order: Some("https://ca.test/acme/one/order/1".to_owned()),
            ..NameState::default()
        };
        assert!(one.keep_state("a.test", &state));
        assert_eq!(one.state("a.test").unwrap(), state);
        assert_eq!(two.account().unwrap(), None);
        assert_eq!(two.state("a.test").unwrap(), NameState::default());
    }

    #[test]
    fn a_certificate_takes_the_place_of_the_one_before() {
        let folder = tempfile::tempdir().unwrap();
        let state_dir = folder.path().join("acme");
        let store = store(&state_dir);
        assert!(store.open().unwrap().is_empty());
        let now = SystemTime::now();
        assert!(store.identity("a.test", now).unwrap().is_none());
        let place = store.of_name("a.test");
        for number in 1..=3 {
            let pair = Pair::self_signed(&["a.test"]);
            store.keep_next_key("a.test", &pair.key);
            assert_eq!(store.next_key("a.test").unwrap(), Some(pair.key.clone()));
            assert!(store.install("a.test", &pem_pair(&pair)));
            let served = store
                .identity("a.test", now)
                .unwrap()
                .expect("a certificate");
            let chain_file = place.join(format!("{number}/chain.pem"));
            assert_eq!(served.facts.chain_file, chain_file);
            assert_eq!(
                fs::read_to_string(place.join("current/chain.pem")).unwrap(),
                pair.chain
            );
            assert_eq!(numbers(&place).unwrap().last(), Some(&number));
        }
        assert_eq!(numbers(&place).unwrap(), [2, 3], "the last two stay");
        assert_eq!(mode(&place.join("3/key.pem")), 0o600);
        assert_eq!([mode(&state_dir), mode(&place)], [0o700; 2]);

        let other = Pair::self_signed(&["other.test"]);
        assert!(store.install("a.test", &pem_pair(&other)));
        let fault = store.identity("a.test", now).unwrap_err();
        assert!(matches!(fault, StoredFault::Unusable(_)));
        assert_eq!(
            fault.to_string(),
            "the certificate is for other.test, not for a.test"
        );
        fs::remove_file(place.join("current/key.pem")).unwrap();
        let fault = store.identity("a.test", now).unwrap_err();
        assert!(matches!(fault, StoredFault::Unusable(_)), "{fault}");
    }

    #[test]
    fn a_certificate_that_cannot_be_read_is_not_taken_for_none() {
        let folder = tempfile::tempdir().unwrap();
        let store = store(folder.path());
        store.open().unwrap();
        let pair = Pair::self_signed(&["a.test"]);
        assert!(store.install("a.test", &pem_pair(&pair)));
        // A directory in place of the file: even root cannot read it.
        let key = store.of_name("a.test").join("current/key.pem");
        fs::remove_file(&key).unwrap();
        fs::create_dir(&key).unwrap();
        let fault = store.identity("a.test", SystemTime::now()).unwrap_err();
        assert!(matches!(fault, StoredFault::Unread(_)), "{fault}");
    }

    #[test]
    fn a_failed_cleanup_does_not_fail_the_attempt() {
        let folder = tempfile::tempdir().unwrap();
        let store = store(folder.path());
        store.open().unwrap();
        let place = store.of_name("a.test");
        make_directory(&place).unwrap();
        // A file where the directory of an old certificate would be: it cannot be removed as one.
        fs::write(place.join("1"), "").unwrap();
        make_directory(&place.join("2")).unwrap();
        let pair = Pair::self_signed(&["a.test"]);
        assert!(store.install("a.test", &pem_pair(&pair)));
        let served = store.identity("a.test", SystemTime::now()).unwrap();
        assert!(served.is_some());
    }

    #[test]
    fn what_is_stored_of_a_name_is_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let store = store(folder.path());
        store.open().unwrap();
        let mut state = NameState::default();
        assert_eq!(store.state("a.test").unwrap(), state);
        state.begin(7, 0.0);
        state.order = Some("https://ca.test/order/1".to_owned());
        assert!(store.keep_state("a.test", &state));
        assert_eq!(store.state("a.test").unwrap(), state);
        fs::write(store.of_name("a.test").join("state.json"), "{").unwrap();
        assert_eq!(store.state("a.test").unwrap(), NameState::default());
    }

    #[test]
    fn others_lose_their_rights() {
        let folder = tempfile::tempdir().unwrap();
        let state_dir = folder.path().join("acme");
        let store = store(&state_dir);
        store.open().unwrap();
        assert!(store.keep_account("{}"));
        let account = store.authority.join("account.json");
        for path in [&state_dir, &account] {
            fs::set_permissions(path, Permissions::from_mode(0o777)).unwrap();
        }
        assert_eq!(store.open().unwrap(), [state_dir.clone(), account.clone()]);
        assert_eq!([mode(&state_dir), mode(&account)], [0o700; 2]);
        // A directory that is reached by a link is no exception.
        fs::set_permissions(&account, Permissions::from_mode(0o644)).unwrap();
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(&state_dir, &link).unwrap();
        let by_link = self::store(&link);
        assert_eq!(by_link.open().unwrap(), std::slice::from_ref(&account));
        assert_eq!(mode(&account), 0o600);
    }

    #[test]
    fn one_process_has_the_lock_of_a_name() {
        let folder = tempfile::tempdir().unwrap();
        let (one, two) = (store(folder.path()), store(folder.path()));
        one.open().unwrap();
        let lock = |store: &Store, name| store.lock(name, &mut Rivals::default()).unwrap();
        let held = lock(&one, "a.test");
        assert!(held.is_some() && lock(&two, "a.test").is_none());
        let of_another = lock(&two, "*.a.test");
        assert!(of_another.is_some() && lock(&one, "*.a.test").is_none());
        drop(held);
        let owner_file = one.owner_file("a.test");
        assert!(!owner_file.exists());
        // Another machine's claim, whose lock this one does not see.
        fs::write(
            &owner_file,
            r#"{"host": "other", "until": 18446744073709551615}"#,
        )
        .unwrap();
        assert!(lock(&two, "a.test").is_none());
        fs::remove_file(&owner_file).unwrap();
        let mut held = lock(&two, "a.test").expect("nobody has it");
        assert!(held.renew() && owner_file.exists());
        let account = one.lock_account().unwrap();
        assert!(account.is_some() && two.lock_account().unwrap().is_none());
    }

    #[test]
    fn folders_have_the_names_of_which_something_is_stored() {
        let folder = tempfile::tempdir().unwrap();
        let store = store(folder.path());
        store.open().unwrap();
        assert!(store.keep_account("{}"));
        assert!(store.stored_names().unwrap().is_empty());
        for name in ["a.test", "*.a.test"] {
            store.keep_next_key(name, "a key");
        }
        let mut names = store.stored_names().unwrap();
        names.sort();
        assert_eq!(names, ["*.a.test", "a.test"]);
    }

    #[test]
    fn a_challenge_is_answered_while_it_is_pending() {
        let folder = tempfile::tempdir().unwrap();
        let store = store(folder.path());
        store.open().unwrap();
        let pending = store.answer("aB0-_", "aB0-_.thumb").unwrap();
        let file = folder.path().join("pending/aB0-_");
        assert_eq!(fs::read_to_string(&file).unwrap(), "aB0-_.thumb");
        drop(pending);
        assert!(!file.exists());
        // The process that orders next removes what is left, once it is old.
        let pending = store.answer("left", "left.thumb").unwrap();
        store.leave_answers();
        drop(pending);
        let left = folder.path().join("pending/left");
        drop(store.lock("a.test", &mut Rivals::default()).unwrap());
        assert!(left.exists());
        let times = fs::FileTimes::new().set_modified(SystemTime::now() - ANSWER_AGE_MAX * 2);
        File::options()
            .write(true)
            .open(&left)
            .unwrap()
            .set_times(times)
            .unwrap();
        drop(store.lock("a.test", &mut Rivals::default()).unwrap());
        assert!(!left.exists());
        let long = "a".repeat(TOKEN_MAX + 1);
        for token in ["", "../x", "a/b", "a.b", long.as_str()] {
            assert!(store.answer(token, "x").is_err(), "{token}");
        }
        drop(store.answer(&long[1..], "x").unwrap());
    }
}

//! The files of issued certificates: below `state_dir`, and readable by their owner only.
//!
//! ```text
//! lock                            held by the process that orders
//! pending/TOKEN                   answers to challenges, whichever process is asked
//! HOST/account.json               the account at the authority, with its key
//! HOST/NAME/state.json            what is stored of a name
//! HOST/NAME/next.pem              the key of the order under way
//! HOST/NAME/N/{chain,key}.pem     certificates, the last two
//! HOST/NAME/current               the number of the one that is served, as a symbolic link
//! ```
//!
//! Every file is written beside its place, synchronised and renamed, so that after a crash it is whole or the previous
//! one. `HOST` is that of the directory's URL: certificates of a trial are never taken for others.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::os::unix::fs::{
    DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _,
};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use catamaran_tls::{Identity, PemFile};
use rustix::fs::{FlockOperation, flock};

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
}

/// The right to order, which one process has at a time. Its end, even by SIGKILL, gives it back.
#[derive(Debug)]
pub(crate) struct StoreLock {
    _file: File,
}

impl Store {
    pub(crate) fn new(config: &AcmeConfig) -> Self {
        Self {
            state_dir: config.state_dir.clone(),
            pending: config.pending(),
            authority: config.state_dir.join(folder_of(&config.directory)),
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
        narrow(&self.state_dir, &mut narrowed)?;
        Ok(narrowed)
    }

    /// Takes the right to order; `None`: another process has it.
    ///
    /// # Errors
    /// Those of the system.
    pub(crate) fn lock(&self) -> io::Result<Option<StoreLock>> {
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(false).mode(0o600);
        let file = options.open(self.state_dir.join("lock"))?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(StoreLock { _file: file })),
            Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// The account at the authority as it was stored; `None`: there is none yet.
    pub(crate) fn account(&self) -> io::Result<Option<String>> {
        read_text(&self.authority.join("account.json"))
    }

    /// Forgets the account, because the authority does not know it any more.
    pub(crate) fn forget_account(&self) -> io::Result<()> {
        remove_if_there(&self.authority.join("account.json"))
    }

    pub(crate) fn keep_account(&self, json: &str) -> io::Result<()> {
        write(&self.authority.join("account.json"), json.as_bytes())
    }

    /// What is stored of a name; the default if nothing is, or if it cannot be understood.
    pub(crate) fn state(&self, name: &str) -> io::Result<NameState> {
        let text = read_text(&self.of_name(name).join("state.json"))?;
        let state = text.and_then(|text| serde_json::from_str(&text).ok());
        Ok(state.unwrap_or_default())
    }

    pub(crate) fn keep_state(&self, name: &str, state: &NameState) -> io::Result<()> {
        make_directory(&self.of_name(name))?;
        let json = serde_json::to_vec(state)?;
        write(&self.of_name(name).join("state.json"), &json)
    }

    /// The key of the order under way, as PEM; `None`: there is none.
    pub(crate) fn next_key(&self, name: &str) -> io::Result<Option<String>> {
        read_text(&self.of_name(name).join(NEXT_KEY))
    }

    pub(crate) fn keep_next_key(&self, name: &str, pem: &str) -> io::Result<()> {
        make_directory(&self.of_name(name))?;
        write(&self.of_name(name).join(NEXT_KEY), pem.as_bytes())
    }

    pub(crate) fn forget_next_key(&self, name: &str) -> io::Result<()> {
        remove_if_there(&self.of_name(name).join(NEXT_KEY))
    }

    /// Puts a certificate with the key of its order in place of the current one, and forgets the key of the order. The
    /// previous certificate stays beside it.
    pub(crate) fn install(&self, name: &str, chain: &str, key: &str) -> io::Result<()> {
        let folder = self.of_name(name);
        let numbers = numbers(&folder)?;
        let number = numbers.last().map_or(1, |last| last + 1);
        let place = folder.join(number.to_string());
        make_directory(&place)?;
        write(&place.join("chain.pem"), chain.as_bytes())?;
        write(&place.join("key.pem"), key.as_bytes())?;
        let link = folder.join(".current");
        remove_if_there(&link)?;
        std::os::unix::fs::symlink(number.to_string(), &link)?;
        fs::rename(&link, folder.join("current"))?;
        sync_directory(&folder)?;
        for old in numbers.iter().filter(|old| *old + 1 < number) {
            fs::remove_dir_all(folder.join(old.to_string()))?;
        }
        self.forget_next_key(name)
    }

    /// The certificate of a name that is served; `None`: there is none yet.
    ///
    /// # Errors
    /// Why the stored one cannot be used.
    pub(crate) fn identity(&self, name: &str, now: SystemTime) -> Result<Option<Identity>, String> {
        let folder = self.of_name(name);
        // The link is read once: another process may change it at any time.
        let number = match fs::read_link(folder.join("current")) {
            Ok(number) => number,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(format!("{}: {error}", folder.display())),
        };
        let read = |file: &str| {
            let path = folder.join(&number).join(file);
            let text = read_text(&path).map_err(|error| error.to_string())?;
            Ok::<_, String>(text.map(|text| PemFile {
                path,
                bytes: text.into_bytes(),
                is_public: false,
            }))
        };
        let (Some(chain), Some(key)) = (read("chain.pem")?, read("key.pem")?) else {
            return Ok(None);
        };
        identity_for(name, &chain, &key, now).map(Some)
    }

    /// Lets the front answer a challenge until the guard is dropped.
    pub(crate) fn answer(&self, token: &str, answer: &str) -> io::Result<PendingChallenge> {
        let is_token = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        if token.is_empty() || !token.bytes().all(is_token) {
            let text = "the authority's token is not of base64url (RFC 8555, section 8.3)";
            return Err(io::Error::new(ErrorKind::InvalidData, text));
        }
        let path = self.pending.join(token);
        write(&path, answer.as_bytes())?;
        Ok(PendingChallenge { path })
    }

    fn of_name(&self, name: &str) -> PathBuf {
        self.authority.join(name)
    }
}

/// An answer to a challenge, which is removed when this is dropped.
#[derive(Debug)]
pub(crate) struct PendingChallenge {
    path: PathBuf,
}

impl Drop for PendingChallenge {
    fn drop(&mut self) {
        // What stays is an answer to a question that nobody asks again.
        fs::remove_file(&self.path).ok();
    }
}

/// A certificate with its key, if it is for `name` and neither has a fault.
///
/// # Errors
/// What is wrong with it.
pub(crate) fn identity_for(
    name: &str,
    chain: &PemFile,
    key: &PemFile,
    now: SystemTime,
) -> Result<Identity, String> {
    let identity =
        Identity::issued(chain, key, now).map_err(|faults| super::super::messages(&faults))?;
    if !identity.facts.names.iter().any(|it| it == name) {
        let names = identity.facts.names.join(", ");
        return Err(format!("the certificate is for {names}, not for {name}"));
    }
    Ok(identity)
}

/// The folder for the authority with this directory: the host of its URL, with its port if it has one.
fn folder_of(directory: &str) -> String {
    let rest = directory
        .split_once("://")
        .map_or(directory, |(_, rest)| rest);
    let host = rest.split(['/', '?', '#']).next().unwrap_or(rest);
    let is_safe = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.');
    let name: String = host
        .chars()
        .map(|c| if is_safe(c) { c } else { '_' })
        .collect();
    // Neither `.` nor `..` may come of it.
    match name.trim_start_matches('.') {
        "" | "pending" | "lock" => format!("_{name}"),
        safe => safe.to_owned(),
    }
}

/// The numbers of a name's certificates, in order.
fn numbers(folder: &Path) -> io::Result<Vec<u64>> {
    let mut numbers = Vec::new();
    for entry in fs::read_dir(folder)? {
        numbers.extend(
            entry?
                .file_name()
                .to_str()
                .and_then(|name| name.parse::<u64>().ok()),
        );
    }
    numbers.sort_unstable();
    Ok(numbers)
}

fn make_directory(path: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    let made = builder.recursive(true).mode(0o700).create(path);
    made.map_err(|error| at(path, &error))
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
            narrow(&entry?.path(), narrowed)?;
        }
    }
    Ok(())
}

/// Writes a file beside its place, and renames it when the disk has it.
fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = path.parent().unwrap_or_else(|| Path::new("."));
    let write = || {
        let mut file = tempfile::Builder::new()
            .permissions(Permissions::from_mode(0o600))
            .tempfile_in(folder)?;
        file.write_all(bytes)?;
        file.as_file().sync_all()?;
        file.persist(path).map_err(|error| error.error)?;
        sync_directory(folder)
    };
    write().map_err(|error| at(path, &error))
}

fn sync_directory(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// The text of a small file; `None`: there is no such file.
fn read_text(path: &Path) -> io::Result<Option<String>> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(at(path, &error)),
    };
    let mut text = String::new();
    let read = file.take(FILE_MAX).read_to_string(&mut text);
    read.map_err(|error| at(path, &error))?;
    Ok(Some(text))
}

fn remove_if_there(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(at(path, &error)),
        _ => Ok(()),
    }
}

/// The error with the path that it concerns.
fn at(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

/// The file with the key of the order under way, in the folder of its name.
const NEXT_KEY: &str = "next.pem";

/// The most bytes of a file that are read. A chain has some kilobytes.
const FILE_MAX: u64 = 1 << 20;

#[cfg(test)]
mod tests {
    use catamaran_testkit::tls::Pair;
    use catamaran_tls::Roots;

    use super::*;
    use crate::config::{IssuedKeyType, LETS_ENCRYPT};

    fn store(state_dir: &Path) -> Store {
        Store::new(&AcmeConfig {
            names: vec!["a.test".to_owned()],
            directory: LETS_ENCRYPT.to_owned(),
            contact: Vec::new(),
            state_dir: state_dir.to_owned(),
            key_type: IssuedKeyType::P256,
            profile: None,
            roots: Roots::none(),
        })
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().mode() & 0o777
    }

    #[test]
    fn the_authority_names_its_folder() {
        for (url, folder) in [
            (LETS_ENCRYPT, "acme-v02.api.letsencrypt.org"),
            ("https://127.0.0.1:14000/dir", "127.0.0.1_14000"),
            ("https://[::1]:1/dir", "___1__1"),
            ("https://../x", "_.."),
            ("https://pending", "_pending"),
        ] {
            assert_eq!(folder_of(url), folder, "{url}");
        }
    }

    #[test]
    fn a_certificate_takes_the_place_of_the_one_before() {
        let folder = tempfile::tempdir().unwrap();
        let state_dir = folder.path().join("acme");
        let store = store(&state_dir);
        assert!(store.open().unwrap().is_empty());
        let now = SystemTime::now();
        assert!(store.identity("a.test", now).unwrap().is_none());
        let place = state_dir.join("acme-v02.api.letsencrypt.org/a.test");
        for number in 1..=3 {
            let pair = Pair::self_signed(&["a.test"]);
            store.keep_next_key("a.test", &pair.key).unwrap();
            assert_eq!(store.next_key("a.test").unwrap(), Some(pair.key.clone()));
            store.install("a.test", &pair.chain, &pair.key).unwrap();
            assert_eq!(store.next_key("a.test").unwrap(), None);
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
        store.install("a.test", &other.chain, &other.key).unwrap();
        let fault = store.identity("a.test", now).unwrap_err();
        assert_eq!(fault, "the certificate is for other.test, not for a.test");
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
        store.keep_state("a.test", &state).unwrap();
        assert_eq!(store.state("a.test").unwrap(), state);
        let file = folder
            .path()
            .join("acme-v02.api.letsencrypt.org/a.test/state.json");
        fs::write(file, "{").unwrap();
        assert_eq!(store.state("a.test").unwrap(), NameState::default());
    }

    #[test]
    fn others_lose_their_rights_and_one_process_has_the_lock() {
        let folder = tempfile::tempdir().unwrap();
        let state_dir = folder.path().join("acme");
        let store = store(&state_dir);
        store.open().unwrap();
        store.keep_account("{}").unwrap();
        let account = state_dir.join("acme-v02.api.letsencrypt.org/account.json");
        for path in [&state_dir, &account] {
            fs::set_permissions(path, Permissions::from_mode(0o777)).unwrap();
        }
        assert_eq!(store.open().unwrap(), [state_dir.clone(), account.clone()]);
        assert_eq!([mode(&state_dir), mode(&account)], [0o700; 2]);
        let held = store.lock().unwrap().expect("nobody has it");
        assert!(store.lock().unwrap().is_none());
        drop(held);
        assert!(store.lock().unwrap().is_some());
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
        for token in ["", "../x", "a/b", "a.b"] {
            assert!(store.answer(token, "x").is_err(), "{token}");
        }
    }
}

//! TLS profiles: reads their files, and replaces the certificates that listeners serve.
//!
//! A profile lives as long as its name is configured. A reload, or a change of its files, builds it anew and swaps it
//! if all checks pass; connections keep the one they began with. The ticket keys stay, so that sessions outlive a
//! reload, and are handed over at an upgrade.

pub(crate) mod acme;

mod changes;

use std::collections::{BTreeSet, HashMap};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use acme::challenges::PendingCertificates;
use acme::memory::MemoryFiles;
pub use acme::online::{OnlineFinding, look_online};
use arc_swap::{ArcSwap, ArcSwapOption};
use catamaran_tls::{
    BuiltProfile, CertificateFacts, CertificateFiles, ClientCertificate, KeyLog, PemFile, Profile,
    ProfileFiles, TicketKeys,
};
pub use catamaran_tls::{Fault, Part};
pub use changes::{AddedCertificate, CertificateChanges, ReplacedCertificate};

use crate::config::{ListenerConfig, OwnCertificate, TlsConfig};
use crate::line_queue::LineQueue;
use crate::local_file::{LocalFile, Stamp, stamp};
use crate::lock::lock;
use crate::log_target::LogTarget;

/// A TLS profile whose certificates can be replaced while it serves.
#[derive(Debug)]
pub(crate) struct LiveProfile {
    pub(crate) config: TlsConfig,
    current: ArcSwap<Current>,
    keys: Arc<TicketKeys>,
    key_log: Option<Arc<KeyLog>>,
    /// What of issued certificates the disk does not take.
    memory: Arc<MemoryFiles>,
    /// The stamps of the profile's files, taken before they were first read.
    pub(crate) built_of: Vec<Stamp>,
    /// Why changed files cannot be used; `None` if they are in use, or nothing has changed.
    refused: ArcSwapOption<String>,
    /// Held while the profile is replaced: changed files and issued certificates come from different threads.
    replacing: Mutex<()>,
}

/// The profile in use, and the time at which its files were read.
#[derive(Debug)]
struct Current {
    profile: Arc<Profile>,
    /// When the profile's files were read.
    read: SystemTime,
    /// For each certificate of the profile, in its order, the one that it replaced.
    replaced: Vec<Option<ReplacedCertificate>>,
}

impl Current {
    /// A profile whose files were read just now, in place of none.
    fn new(profile: Profile) -> Self {
        Self {
            replaced: vec![None; profile.certificates().len()],
            profile: Arc::new(profile),
            read: SystemTime::now(),
        }
    }

    /// The same in place of `before`, whose issued certificates stay in use for the names that would have none: their
    /// files cannot be read, say.
    fn in_place_of(&self, before: &Self) -> Self {
        let served = &before.profile;
        let own = self.profile.issued().clone();
        let issued = own.or_served(served.issued(), SystemTime::now());
        let profile = self.profile.with_issued(&issued);
        let replaced = changes::replaced_by_each(
            profile.certificates(),
            served.certificates(),
            &before.replaced,
            self.read,
        );
        Self {
            profile: Arc::new(profile),
            read: self.read,
            replaced,
        }
    }
}

/// The outcome of reading a profile's files again.
#[derive(Debug)]
pub(crate) struct Renewal {
    /// What the new files replaced.
    pub(crate) changes: CertificateChanges,
    /// Warnings about the new files.
    pub(crate) warnings: Vec<Fault>,
}

/// The outcome of reading a profile's issued certificates again.
#[derive(Debug)]
pub(crate) struct Reissue {
    pub(crate) renewal: Renewal,
    /// How many of them cannot be read now. What was served of these names stays in use.
    pub(crate) unread: usize,
}

/// All TLS profiles, by name.
pub(crate) type Profiles = HashMap<String, Arc<LiveProfile>>;

/// Why a TLS profile cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("TLS profile {name:?}: {}", messages(.faults))]
pub struct ProfileError {
    /// The name of the TLS profile.
    pub name: String,
    /// Everything that is wrong with the profile.
    pub faults: Vec<Fault>,
}

fn messages(faults: &[Fault]) -> String {
    let messages: Vec<&str> = faults.iter().map(|fault| fault.message.as_str()).collect();
    messages.join("; ")
}

/// Reads the files of a profile and checks them. `Ok` contains warnings, with which the profile can be used.
///
/// # Errors
/// Everything that is wrong with the profile.
pub fn check(config: &TlsConfig) -> Result<Vec<Fault>, Vec<Fault>> {
    match keys_of(config, None) {
        Ok(keys) => build(config, &keys, None, &Arc::default()).map(|built| built.warnings),
        // Faulty keys do not keep the faults of the other files from being reported.
        Err(fault) => {
            let other_keys = keys_made().map_err(|fault| vec![fault])?;
            let built = build(config, &other_keys, None, &Arc::default());
            let mut faults = built.err().unwrap_or_default();
            faults.push(fault);
            Err(faults)
        }
    }
}

/// Builds the profile that a front would use if it started now; `None` if its files have faults.
pub(crate) fn profile(config: &TlsConfig) -> Option<Arc<Profile>> {
    let built = build(config, &keys_made().ok()?, None, &Arc::default()).ok()?;
    Some(Arc::new(built.profile))
}

/// Builds all profiles of `configs`, and checks that those which `listeners` name are among them. `known` returns the
/// ticket keys of a profile, which are used if it has no file of keys. With `key_log`, the secrets of every session
/// are written to it. `memory`: what of issued certificates the disk does not take.
///
/// # Errors
/// The first profile that cannot be built, or that a listener names and that does not exist.
pub(crate) fn profiles(
    configs: &[TlsConfig],
    listeners: &[ListenerConfig],
    known: impl Fn(&str) -> Option<Arc<TicketKeys>>,
    key_log: Option<&Arc<KeyLog>>,
    memory: &Arc<MemoryFiles>,
) -> Result<Profiles, ProfileError> {
    let mut profiles = Profiles::with_capacity(configs.len());
    for config in configs {
        let failed = |faults| ProfileError {
            name: config.name.clone(),
            faults,
        };
        // Taken first: a change while the files are read then counts as a later one.
        let built_of = stamps(config);
        let keys = keys_of(config, known(&config.name)).map_err(|fault| failed(vec![fault]))?;
        let built = build(config, &keys, key_log, memory).map_err(failed)?;
        let live = LiveProfile {
            config: config.clone(),
            current: ArcSwap::from_pointee(Current::new(built.profile)),
            keys,
            key_log: key_log.map(Arc::clone),
            memory: Arc::clone(memory),
            built_of,
            refused: ArcSwapOption::empty(),
            replacing: Mutex::new(()),
        };
        profiles.insert(config.name.clone(), Arc::new(live));
    }
    let mut names = listeners.iter().flat_map(|listener| &listener.tls);
    match names.find(|name| !profiles.contains_key(*name)) {
        // The listener's clients must not be served in clear.
        Some(name) => Err(missing(name)),
        None => Ok(profiles),
    }
}

/// The error for a profile that a listener names and that does not exist.
fn missing(name: &str) -> ProfileError {
    let fault = Fault {
        part: Part::Profile,
        message: "a listener names it, and it does not exist".to_owned(),
        hint: format!("add [tls.{name}]"),
    };
    ProfileError {
        name: name.to_owned(),
        faults: vec![fault],
    }
}

/// Returns the profiles `next`, unless one of them would replace a valid certificate with an expired one.
///
/// # Errors
/// The first profile that would do so.
pub(crate) fn in_place_of(served: &Profiles, next: Profiles) -> Result<Profiles, ProfileError> {
    for (name, profile) in &next {
        let Some(known) = served.get(name) else {
            continue;
        };
        let faults = expired(&known.current(), &profile.current());
        if !faults.is_empty() {
            let name = name.clone();
            return Err(ProfileError { name, faults });
        }
        let current = profile.current.load();
        let following = current.in_place_of(&known.current.load());
        profile.current.store(Arc::new(following));
    }
    Ok(next)
}

/// What profiles in place of others do to the certificates that are served; `None` if neither has any.
pub(crate) fn changes(served: &Profiles, next: &Profiles) -> Option<CertificateChanges> {
    let now = SystemTime::now();
    let mut changes = CertificateChanges::default();
    let names: BTreeSet<&String> = served.keys().chain(next.keys()).collect();
    for name in names {
        let certificates = |profiles: &Profiles| {
            let profile = profiles.get(name).map(|it| it.current());
            profile.map_or_else(Vec::new, |it| it.certificates().to_vec())
        };
        changes.add(&certificates(served), &certificates(next), now);
    }
    (changes != CertificateChanges::default()).then_some(changes)
}

/// Lists certificates of `next` that have expired while `served` has a valid one for the same name. With them clients
/// would refuse a site that they accept at present.
fn expired(served: &Profile, next: &Profile) -> Vec<Fault> {
    let now = SystemTime::now();
    let served = served.certificates().iter();
    let valid: Vec<_> = served.filter(|it| it.not_after > now).collect();
    let mut faults = Vec::new();
    for (index, certificate) in next.certificates().iter().enumerate() {
        let mut names = certificate.names.iter();
        if certificate.not_after <= now
            && let Some(name) = names.find(|name| valid.iter().any(|it| it.names.contains(name)))
        {
            faults.push(Fault {
                part: Part::Chain(index),
                message: format!(
                    "the certificate of {name} has expired, and the one that is served has not"
                ),
                hint: "put a valid one there; a restart serves this one all the same".to_owned(),
            });
        }
    }
    faults
}

/// The ticket keys of a profile: those of its file, else those that are `known`, else new ones.
fn keys_of(config: &TlsConfig, known: Option<Arc<TicketKeys>>) -> Result<Arc<TicketKeys>, Fault> {
    match (&config.ticket_keys_file, known) {
        (Some(path), _) => keys_in(path),
        (None, Some(known)) => Ok(known),
        (None, None) => keys_made(),
    }
}

/// Reads the ticket keys from a file, which must be readable by its owner only.
fn keys_in(path: &Path) -> Result<Arc<TicketKeys>, Fault> {
    let fault = |message: String, hint: &str| Fault {
        part: Part::TicketKeys,
        message: format!("{} {message}", path.display()),
        hint: hint.to_owned(),
    };
    let hint = "write three lines, each by `openssl rand -hex 48`";
    let file = LocalFile::read(path, FILE_MAX)
        .map_err(|error| fault(format!("cannot be read: {error}"), hint))?;
    if file.mode & 0o077 != 0 {
        let mode = file.mode & 0o7777;
        let message = format!("has the mode {mode:04o}: others could read every session");
        let hint = "chmod 0600 it, and own it by the user of the front";
        return Err(fault(message, hint));
    }
    TicketKeys::from_file(&file.bytes).map_err(|message| fault(message, hint))
}

fn keys_made() -> Result<Arc<TicketKeys>, Fault> {
    TicketKeys::generate().ok_or_else(|| Fault {
        part: Part::Profile,
        message: "the system has no random bytes".to_owned(),
        hint: "make /dev/urandom readable".to_owned(),
    })
}

/// Reads the files of a profile and builds it, with these ticket keys.
fn build(
    config: &TlsConfig,
    keys: &Arc<TicketKeys>,
    key_log: Option<&Arc<KeyLog>>,
    memory: &Arc<MemoryFiles>,
) -> Result<BuiltProfile, Vec<Fault>> {
    let mut files = read(config)?;
    let key_log = key_log.map(Arc::clone);
    let now = SystemTime::now();
    let acme = config.acme.as_ref();
    let contents = acme.map(|config| acme::issued(config, memory, now));
    let contents = contents.unwrap_or_default();
    files.issued = contents.issued;
    let challenges = acme.and_then(|config| PendingCertificates::of(config, memory));
    files.challenges = challenges.map(|it| Arc::new(it) as _);
    let mut built = Profile::build(&config.settings, &files, keys, key_log, now)?;
    built.warnings.extend(contents.warnings);
    Ok(built)
}

/// The ticket keys of each profile, with its name.
pub(crate) fn ticket_keys(profiles: &Profiles) -> Vec<(String, Arc<TicketKeys>)> {
    let profiles = profiles.iter();
    profiles
        .map(|(name, profile)| (name.clone(), profile.ticket_keys()))
        .collect()
}

/// Opens the file to which the secrets of all sessions are appended, readable by its owner only; `None`: no path is
/// given. Its own thread writes it, so that no handshake waits for a disk, or for a FIFO's reader.
pub(crate) fn open_key_log(path: Option<&Path>) -> io::Result<Option<LineQueue>> {
    let Some(path) = path else {
        return Ok(None);
    };
    let lines = LineQueue::start_at("tls-key-log", LogTarget::append_to(path, 0o600)?)?;
    tracing::warn!(
        path = %path.display(),
        "the secrets of all TLS sessions are written to a file: everybody who can read it can decrypt them"
    );
    Ok(Some(lines))
}

/// Every certificate in use, with the name of its profile, sorted by that name.
pub(crate) fn certificates(profiles: &Profiles) -> Vec<(String, CertificateFacts)> {
    let mut certificates = Vec::new();
    for (name, profile) in profiles {
        for certificate in profile.current().certificates() {
            certificates.push((name.clone(), certificate.clone()));
        }
    }
    // Stable, so that the certificates of a profile stay in the order of the file.
    certificates.sort_by(|(one, _), (other, _)| one.cmp(other));
    certificates
}

/// The names of the profiles that have no certificate yet, so that every handshake is refused.
pub(crate) fn uncertified(profiles: &Profiles) -> Vec<String> {
    let without = profiles
        .iter()
        .filter(|(_, profile)| profile.current().certificates().is_empty());
    let mut names: Vec<String> = without.map(|(name, _)| name.clone()).collect();
    names.sort();
    names
}

/// The names of the profiles, and for each whether its changed files were refused.
pub(crate) fn refusals(profiles: &Profiles) -> Vec<(String, bool)> {
    let profiles = profiles.iter();
    let mut refusals: Vec<_> = profiles
        .map(|(name, profile)| (name.clone(), profile.refused().is_some()))
        .collect();
    refusals.sort();
    refusals
}

/// The TLS profile of a listener; `None`: it serves clear text. [`profiles`] has checked that the named one exists.
pub(crate) fn of_listener(
    profiles: &Profiles,
    listener: &ListenerConfig,
) -> Option<Arc<LiveProfile>> {
    profiles.get(listener.tls.as_ref()?).cloned()
}

impl LiveProfile {
    /// The profile for connections that begin now.
    pub(crate) fn current(&self) -> Arc<Profile> {
        Arc::clone(&self.current.load().profile)
    }

    /// When the files of the profile in use were read.
    pub(crate) fn read(&self) -> SystemTime {
        self.current.load().read
    }

    /// For each certificate of the profile in use the one that it replaced.
    pub(crate) fn replaced(&self) -> Vec<Option<ReplacedCertificate>> {
        self.current.load().replaced.clone()
    }

    /// Reads the files again and replaces the profile. If the files have faults, the profile in use stays.
    pub(crate) fn renew(&self) -> Result<Renewal, Vec<Fault>> {
        let _replacing = lock(&self.replacing);
        let rebuilt = self.rebuild();
        let refused = rebuilt.as_ref().err();
        self.refused
            .store(refused.map(|faults| Arc::new(messages(faults))));
        let built = rebuilt?;
        Ok(Renewal {
            changes: self.replace(built.profile),
            warnings: built.warnings,
        })
    }

    /// Reads the issued certificates again, and replaces them alone: files with faults do not keep a certificate back
    /// that was issued.
    pub(crate) fn reissue(&self) -> Reissue {
        let _replacing = lock(&self.replacing);
        let config = self.config.acme.as_ref();
        let now = SystemTime::now();
        let contents = config.map(|config| acme::issued(config, &self.memory, now));
        let contents = contents.unwrap_or_default();
        let next = self.current().with_issued(&contents.issued);
        let renewal = Renewal {
            changes: self.replace(next),
            warnings: contents.warnings,
        };
        Reissue {
            renewal,
            unread: contents.unread,
        }
    }

    /// Puts a profile in force, and says what it replaced.
    fn replace(&self, profile: Profile) -> CertificateChanges {
        let served = self.current.load();
        let next = Current::new(profile).in_place_of(&served);
        let mut changes = CertificateChanges::default();
        let certificates = next.profile.certificates();
        changes.add(served.profile.certificates(), certificates, next.read);
        self.current.store(Arc::new(next));
        changes
    }

    /// Builds the profile from its files as they are now. If all are good, the ticket keys of a file are in use from
    /// now on.
    fn rebuild(&self) -> Result<BuiltProfile, Vec<Fault>> {
        let file_keys = self.config.ticket_keys_file.as_deref().map(keys_in);
        let built = build(
            &self.config,
            &self.keys,
            self.key_log.as_ref(),
            &self.memory,
        )?;
        let faults = expired(&self.current(), &built.profile);
        if !faults.is_empty() {
            return Err(faults);
        }
        if let Some(keys) = file_keys {
            self.keys.replace(&*keys.map_err(|fault| vec![fault])?);
        }
        Ok(built)
    }

    /// Why the changed files cannot be used; `None` if they are in use, or were not read since they changed.
    pub(crate) fn refused(&self) -> Option<Arc<String>> {
        self.refused.load_full()
    }

    /// The keys of the profile's tickets.
    pub(crate) fn ticket_keys(&self) -> Arc<TicketKeys> {
        Arc::clone(&self.keys)
    }

    /// Makes the next ticket key the current one. Does nothing if the keys come from a file, whose first is the
    /// current one.
    pub(crate) fn rotate(&self) {
        if self.config.ticket_keys_file.is_none() {
            self.keys.rotate();
        }
    }
}

/// The current stamps of all files of a profile.
pub(crate) fn stamps(config: &TlsConfig) -> Vec<Stamp> {
    let certificates = config.certificates.iter();
    let pairs = certificates.flat_map(|certificate| [&certificate.chain, &certificate.key]);
    let clients = config.client_ca.iter().chain(&config.client_crl);
    let files = pairs.chain(clients).chain(&config.ticket_keys_file);
    files.map(|path| stamp(path)).collect()
}

/// Reads the files of a profile. The error has one fault for each file that cannot be read.
fn read(config: &TlsConfig) -> Result<ProfileFiles, Vec<Fault>> {
    let mut faults = Vec::new();
    let mut files = ProfileFiles::default();
    for (index, certificate) in config.certificates.iter().enumerate() {
        let chain = pem(&certificate.chain, Part::Chain(index), &mut faults);
        let key = pem(&certificate.key, Part::Key(index), &mut faults);
        if let (Some(chain), Some(key)) = (chain, key) {
            files.certificates.push(CertificateFiles {
                chain,
                key,
                default: certificate.default,
            });
        }
    }
    files
        .certificates
        .extend(config.own_certificates.iter().map(in_memory));
    if config.settings.client_certificate != ClientCertificate::Off {
        if let Some(path) = &config.client_ca {
            files.client_ca = pem(path, Part::ClientCa, &mut faults);
        }
        if let Some(path) = &config.client_crl {
            files.client_crl = pem(path, Part::ClientCrl, &mut faults);
        }
    }
    if !faults.is_empty() {
        return Err(faults);
    }
    Ok(files)
}

/// A certificate that is in no file.
fn in_memory(certificate: &OwnCertificate) -> CertificateFiles {
    let pem = |text: &str| PemFile {
        path: PathBuf::from("(memory)"),
        bytes: text.into(),
        is_public: false,
    };
    CertificateFiles {
        chain: pem(certificate.chain()),
        key: pem(certificate.key()),
        default: false,
    }
}

/// Reads a file; a failure is added to `faults`.
fn pem(path: &Path, part: Part, faults: &mut Vec<Fault>) -> Option<PemFile> {
    match LocalFile::read(path, FILE_MAX) {
        Ok(file) => Some(pem_file(path, file)),
        Err(error) => {
            faults.push(Fault {
                part,
                message: format!("cannot read {}: {error}", path.display()),
                hint: "name a PEM file that the user of this process may read".to_owned(),
            });
            None
        }
    }
}

/// A file as PEM.
fn pem_file(path: &Path, file: LocalFile) -> PemFile {
    PemFile {
        path: path.to_owned(),
        is_public: file.is_public(),
        bytes: file.bytes,
    }
}

/// The largest file that is read, in MiB; lists of revoked certificates are the largest files.
const FILE_MAX: u64 = 16;

//! Chooses the certificate for a client by the name that it asks for.
//!
//! An exact name wins, then a wildcard of one label, then the default. Of several key types the
//! first that the client can verify is taken, elliptic curves before RSA. A name whose first
//! certificate is awaited gets none, not even the default. An authority that asks by tls-alpn-01 gets
//! the certificate of its challenge, or none.

use std::cell::{Cell, RefCell};
use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use rustls::SignatureAlgorithm;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

use crate::challenge::{self, ChallengeCertificates};
use crate::fault::{Fault, Part};
use crate::identity::Identity;
use crate::server::IssuedCertificates;

thread_local! {
    /// The name in the ClientHello that this thread processed last. rustls calls the resolver
    /// while it processes a record, and reports the name nowhere else.
    static ASKED: RefCell<Option<Box<str>>> = const { RefCell::new(None) };

    /// Whether the ClientHello that this thread processed last was refused because its certificate is
    /// awaited.
    static IS_AWAITED: Cell<bool> = const { Cell::new(false) };
}

/// The name that a client asked for in the ClientHello just processed on this thread.
pub(crate) fn take_asked() -> Option<Box<str>> {
    ASKED.take()
}

/// Whether the client whose ClientHello was just processed on this thread got no certificate because the
/// first one of its name is awaited.
pub(crate) fn is_awaited() -> bool {
    IS_AWAITED.get()
}

/// The certificates of one name: one of each key type, elliptic curves first.
type Keys = Vec<Arc<CertifiedKey>>;

/// All certificates of a profile, by name.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names {
    exact: HashMap<Box<str>, Keys>,
    /// The certificates of wildcard names, by the part after `*.`.
    wildcard: HashMap<Box<str>, Keys>,
    /// The certificate for other names and for none; empty if no certificate comes from a file.
    default: Keys,
    strict: bool,
    /// The names whose first certificate is awaited.
    awaited: HashSet<Box<str>>,
    /// The certificates that answer challenges; `None`: none is answered.
    pub(crate) challenges: Option<Arc<dyn ChallengeCertificates>>,
}

impl Names {
    /// The names of these certificates. Unless `strict`, the certificate at index `default`,
    /// else the first one, serves clients that ask for another name or for none.
    ///
    /// # Errors
    /// Two certificates of a name have the same key type.
    pub(crate) fn new(
        identities: &[Identity],
        default: Option<usize>,
        strict: bool,
    ) -> Result<Self, Vec<Fault>> {
        let mut names = Self {
            strict,
            ..Self::default()
        };
        let mut faults = Vec::new();
        for (index, identity) in identities.iter().enumerate() {
            for name in &identity.facts.names {
                if !add(names.keys_of(name), &identity.certified) {
                    faults.push(duplicate(name, identity, index));
                    // One fault for each certificate is enough.
                    break;
                }
            }
        }
        if !faults.is_empty() {
            return Err(faults);
        }
        if let Some(default) = identities.get(default.unwrap_or(0)) {
            names.set_default(identities, default);
        }
        Ok(names)
    }

    /// These names with certificates that were issued to this program. For a name that has a certificate
    /// already, that one stays; of issued ones the newest counts; none becomes the default.
    pub(crate) fn with_issued(&self, issued: &IssuedCertificates) -> Self {
        let mut names = self.clone();
        let mut identities: Vec<&Identity> = issued.identities.iter().collect();
        identities.sort_by_key(|identity| Reverse(identity.facts.not_before));
        for identity in identities {
            for name in &identity.facts.names {
                if self.keys(name).is_none() {
                    add(names.keys_of(name), &identity.certified);
                }
            }
        }
        names.awaited = issued.awaited.iter().map(|name| (**name).into()).collect();
        names
    }

    /// The keys of exactly this name, which may be a wildcard.
    fn keys(&self, name: &str) -> Option<&Keys> {
        match name.strip_prefix("*.") {
            Some(parent) => self.wildcard.get(parent),
            None => self.exact.get(name),
        }
    }

    /// The keys for a name, which may be a wildcard.
    fn keys_of(&mut self, name: &str) -> &mut Keys {
        match name.strip_prefix("*.") {
            Some(parent) => self.wildcard.entry(parent.into()).or_default(),
            None => self.exact.entry(name.into()).or_default(),
        }
    }

    /// Makes this certificate the default, with those of other key types that share a name with it.
    fn set_default(&mut self, identities: &[Identity], default: &Identity) {
        add(&mut self.default, &default.certified);
        for identity in identities {
            let mut names = identity.facts.names.iter();
            if names.any(|name| default.facts.names.contains(name)) {
                add(&mut self.default, &identity.certified);
            }
        }
    }

    /// Whether a certificate is for `host`, or the default certificate is used for all names.
    pub(crate) fn serves(&self, host: &str) -> bool {
        self.find(host)
            .or_else(|| self.default_keys(Some(host)))
            .is_some()
    }

    /// The default for a client that asked for this name, or for none, and found no certificate of it.
    fn default_keys(&self, asked: Option<&str>) -> Option<&Keys> {
        let is_awaited = asked.is_some_and(|name| self.is_awaited(name));
        let has_default = !self.strict && !self.default.is_empty() && !is_awaited;
        has_default.then_some(&self.default)
    }

    /// Whether a client that got no certificate would get one later: its name's is awaited, or every
    /// name's.
    fn awaits(&self, asked: Option<&str>) -> bool {
        let has_none = self.exact.is_empty() && self.wildcard.is_empty();
        has_none || asked.is_some_and(|name| self.is_awaited(name))
    }

    /// Whether the first certificate of a name, or of the wildcard above it, is awaited.
    fn is_awaited(&self, name: &str) -> bool {
        let parent = || Some(format!("*.{}", name.split_once('.')?.1));
        !self.awaited.is_empty()
            && (self.awaited.contains(name)
                || parent().is_some_and(|wildcard| self.awaited.contains(&*wildcard)))
    }

    /// The certificate that answers a challenge for the name; `None`: none is pending, or the client offers other protocols
    /// beside the authority's, which no authority does.
    fn challenge_key(
        &self,
        hello: &ClientHello<'_>,
        name: Option<&str>,
    ) -> Option<Arc<CertifiedKey>> {
        let is_alone = hello.alpn()?.count() == 1;
        let challenges = self.challenges.as_ref().filter(|_| is_alone)?;
        challenge::certified(&challenges.pem_for(name?)?)
    }

    fn find(&self, host: &str) -> Option<&Keys> {
        let by_parent = || self.wildcard.get(host.split_once('.')?.1);
        self.exact.get(host).or_else(by_parent)
    }
}

/// Whether a client offers the protocol by which authorities ask.
fn offers_challenge(hello: &ClientHello<'_>) -> bool {
    let mut offered = hello.alpn().into_iter().flatten();
    offered.any(|protocol| protocol == challenge::PROTOCOL)
}

/// The fault that an earlier certificate for this name has a key of the same type.
fn duplicate(name: &str, identity: &Identity, index: usize) -> Fault {
    let key_type = identity.facts.key_type;
    let message = format!("another certificate for {name} has an {key_type} key, too");
    let hint = "remove one of them; two for a name must differ in key type";
    Fault::new(Part::Chain(index), message, hint)
}

/// Adds a key, unless there is one of its type; returns whether it was added.
fn add(keys: &mut Keys, key: &Arc<CertifiedKey>) -> bool {
    let algorithm = key.key.algorithm();
    if keys.iter().any(|other| other.key.algorithm() == algorithm) {
        return false;
    }
    match algorithm {
        SignatureAlgorithm::RSA => keys.push(Arc::clone(key)),
        // Elliptic curves come first.
        _ => keys.insert(0, Arc::clone(key)),
    }
    true
}

impl ResolvesServerCert for Names {
    /// Chooses the certificate, and leaves the name that the client asked for to [`take_asked`].
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let asked = hello.server_name().map(str::to_ascii_lowercase);
        let name = asked.as_deref();
        let is_challenge = self.challenges.is_some() && offers_challenge(&hello);
        if is_challenge {
            let key = self.challenge_key(&hello, name);
            IS_AWAITED.set(false);
            ASKED.set(asked.map(String::into_boxed_str));
            return key;
        }
        let keys = name
            .and_then(|name| self.find(name))
            .or_else(|| self.default_keys(name));
        IS_AWAITED.set(keys.is_none() && self.awaits(name));
        ASKED.set(asked.map(String::into_boxed_str));
        let keys = keys?;
        let schemes = hello.signature_schemes();
        let verifiable = keys
            .iter()
            .find(|key| key.key.choose_scheme(schemes).is_some());
        // With none that the client can verify, the handshake fails with the alert for that.
        verifiable.or_else(|| keys.first()).cloned()
    }
}

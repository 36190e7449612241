//! The settings by which an upstream discovers members that are not in the file, and makes backends of them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use catamaran_discover::{FoundState, Member, MemberSource, Place, Speech};

use crate::config::{Activation, Address, BackendConfig, Protocol, SentHost, Trust, TrustSettings};
use crate::lock::lock;

/// The source from which an upstream discovers further members, and the rules for them. Each field is the key of that
/// name in `[upstream.NAME.members]` of docs/reference.md.
#[derive(Debug)]
pub struct MembersConfig {
    /// The source to ask: the key `from`, and the keys of that source.
    pub source: MemberSource,
    /// How long a member that the source no longer names drains.
    pub leave: Duration,
    /// The most members that the upstream may have from the source.
    pub members_max: usize,
    template: MemberTemplate,
}

/// The upstream's settings that its discovered members share.
#[derive(Debug)]
pub struct MemberTemplate {
    /// The settings that are the same for every member.
    shared: BackendConfig,
    /// The trust in members that speak HTTP over TLS; `None`: they cannot be used. Each certificate must have the
    /// member's name, unless a name is set.
    tls: Option<MemberTrust>,
}

/// The trust in certificates of members: its settings, and the trust made for each name.
#[derive(Debug)]
pub struct MemberTrust {
    settings: TrustSettings,
    /// Whether the settings have a name, which the certificates of all members must have.
    is_named: bool,
    /// The trust made so far, by name. Kept because making one takes long, and because it holds sessions that can be
    /// resumed.
    made: Mutex<HashMap<String, Arc<Trust>>>,
}

impl MemberTrust {
    /// A trust with these settings. A `server_name` that is not empty holds for all members.
    #[must_use]
    pub fn new(settings: TrustSettings) -> Self {
        Self {
            is_named: !settings.server_name.is_empty(),
            settings,
            made: Mutex::default(),
        }
    }

    /// The trust in a member with this name; made at the first call. The error says why the settings cannot be used.
    fn trust_in(&self, member_name: &str) -> Result<Arc<Trust>, String> {
        let name = if self.is_named {
            &self.settings.server_name
        } else {
            member_name
        };
        let mut made = lock(&self.made);
        if let Some(trust) = made.get(name) {
            return Ok(Arc::clone(trust));
        }
        let settings = TrustSettings {
            server_name: name.to_owned(),
            ..self.settings.clone()
        };
        let trust = Arc::new(Trust::new(settings).map_err(|fault| fault.to_string())?);
        // Names come from outside; a source that invents them must not fill the memory.
        if made.len() >= TRUSTS_MAX {
            made.clear();
        }
        made.insert(name.to_owned(), Arc::clone(&trust));
        Ok(trust)
    }
}

impl MemberTemplate {
    /// A template: the settings `shared` hold for every member, except those that a member has itself, such as its name
    /// and address.
    #[must_use]
    pub fn new(shared: BackendConfig, tls: Option<MemberTrust>) -> Self {
        Self { shared, tls }
    }
}

impl MembersConfig {
    /// A configuration with that source and every default.
    #[must_use]
    pub fn new(source: MemberSource, template: MemberTemplate) -> Self {
        Self {
            source,
            leave: Duration::ZERO,
            members_max: 1000,
            template,
        }
    }

    /// Whether members may speak this protocol; `true` as well if the source tells that of each member only.
    pub(crate) fn may_speak(&self, protocol: Protocol) -> bool {
        match &self.source {
            MemberSource::Dns(dns) => (dns.speech == Speech::Ajp) == (protocol == Protocol::Ajp),
            MemberSource::Kubernetes(service) => service
                .speech
                .is_none_or(|speech| (speech == Speech::Ajp) == (protocol == Protocol::Ajp)),
            MemberSource::File(_) | MemberSource::Mcmp(_) => true,
        }
    }

    /// The most connections to each member at a time.
    pub(crate) fn connections_max(&self) -> usize {
        self.template.shared.connections_max
    }

    /// The settings of a member as a backend of the upstream.
    ///
    /// # Errors
    /// The reason why the member cannot be connected to over TLS.
    pub(crate) fn backend(&self, member: &Member) -> Result<BackendConfig, String> {
        let found = &member.found;
        let address = match &found.place {
            Place::Tcp { host, port } => Address::Tcp {
                host: host.clone(),
                port: *port,
            },
            Place::Unix(path) => Address::Unix(path.clone()),
        };
        let (protocol, tls) = match found.speech {
            Speech::Ajp => (Protocol::Ajp, None),
            Speech::Http => (Protocol::Http, None),
            Speech::Https => {
                let (Address::Tcp { host, .. }, Some(trust)) = (&address, &self.template.tls)
                else {
                    return Err("there is no TLS for this member".to_owned());
                };
                let server_name = found.server_name.as_deref().unwrap_or(host);
                (Protocol::Http, Some(trust.trust_in(server_name)?))
            }
        };
        let activation = match found.state {
            _ if member.is_leaving() => Activation::Drain,
            FoundState::Active => Activation::Active,
            FoundState::Drain => Activation::Drain,
            FoundState::Stopped => Activation::Stopped,
        };
        let named_domain = found.domain.clone();
        let named_route = found.jvm_route.clone();
        let mut backend = BackendConfig {
            name: found.name.clone(),
            protocol,
            address,
            weight: found.weight,
            distance: found.distance,
            jvm_route: named_route.unwrap_or_else(|| found.name.clone()),
            domain: named_domain.or_else(|| domain_of(found.jvm_route.as_deref()?)),
            activation,
            tls,
            ..self.template.shared.clone()
        };
        if backend.host == SentHost::Backend {
            // A backend at a Unix socket has no host of its own.
            let own_host = backend.own_host();
            backend.host = own_host.map_or(SentHost::Client, SentHost::Named);
        }
        Ok(backend)
    }
}

/// The replication group (domain) that a `jvm_route` names: the text before its first dot, as for backends of the
/// file.
fn domain_of(route: &str) -> Option<String> {
    let (domain, _) = route.split_once('.')?;
    (!domain.is_empty()).then(|| domain.to_owned())
}

/// The most names for which trust is kept; beyond it all are dropped.
const TRUSTS_MAX: usize = 10_000;

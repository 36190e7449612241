//! Where an upstream finds members that are not in the file, and what such a member is to it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use catamaran_discover::{FoundState, Member, MemberSource, Place, Speech};

use crate::config::{Activation, Address, BackendConfig, Protocol, SentHost, Trust, TrustSettings};
use crate::lock::lock;

/// Where an upstream finds members besides those of the file. A field is the key of that name in
/// `[upstream.NAME.members]` of docs/reference.md.
#[derive(Debug)]
pub struct MembersConfig {
    /// Whom to ask: `from` and the keys of that source.
    pub source: MemberSource,
    /// How long a member that is no longer found drains.
    pub leave: Duration,
    /// How many there may be.
    pub members_max: usize,
    template: MemberTemplate,
}

/// The settings of the upstream for its members.
#[derive(Debug)]
pub struct MemberTemplate {
    /// All that does not depend on the member.
    shared: BackendConfig,
    /// How members are trusted that speak HTTP over TLS. The name is the member's, unless it is given.
    tls: Option<MemberTrust>,
}

/// How a member is trusted over TLS.
#[derive(Debug)]
pub struct MemberTrust {
    settings: TrustSettings,
    /// Whether all have the name of the settings.
    is_named: bool,
    /// The trust made so far, by name. Kept because making one takes long, and it holds sessions that can be resumed.
    made: Mutex<HashMap<String, Arc<Trust>>>,
}

impl MemberTrust {
    /// The name of `settings` holds for all members if it is not empty.
    #[must_use]
    pub fn new(settings: TrustSettings) -> Self {
        Self {
            is_named: !settings.server_name.is_empty(),
            settings,
            made: Mutex::default(),
        }
    }

    fn of(&self, name: &str) -> Result<Arc<Trust>, String> {
        let name = if self.is_named {
            &self.settings.server_name
        } else {
            name
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
    /// Members have these settings, but for what is their own.
    #[must_use]
    pub fn new(shared: BackendConfig, tls: Option<MemberTrust>) -> Self {
        Self { shared, tls }
    }
}

impl MembersConfig {
    /// Members of that source, with every default.
    #[must_use]
    pub fn new(source: MemberSource, template: MemberTemplate) -> Self {
        Self {
            source,
            leave: Duration::ZERO,
            members_max: 1000,
            template,
        }
    }

    /// Connections that each member may have at a time.
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
        let tls = match (found.speech, &address, &self.template.tls) {
            (Speech::Https, Address::Tcp { host, .. }, Some(trust)) => {
                Some(trust.of(found.server_name.as_deref().unwrap_or(host))?)
            }
            (Speech::Https, ..) => return Err("there is no TLS for this member".to_owned()),
            (Speech::Ajp | Speech::Http, ..) => None,
        };
        let activation = match (member.is_leaving(), found.state) {
            (false, FoundState::Active) => Activation::Active,
            (true, _) | (_, FoundState::Drain) => Activation::Drain,
            (false, FoundState::Stopped) => Activation::Stopped,
        };
        let mut backend = BackendConfig {
            name: found.name.clone(),
            protocol: match found.speech {
                Speech::Ajp => Protocol::Ajp,
                Speech::Http | Speech::Https => Protocol::Http,
            },
            address,
            weight: found.weight,
            distance: found.distance,
            jvm_route: found
                .jvm_route
                .clone()
                .unwrap_or_else(|| found.name.clone()),
            domain: found
                .domain
                .clone()
                .or_else(|| prefix(found.jvm_route.as_deref())),
            activation,
            tls,
            ..self.template.shared.clone()
        };
        if backend.host == SentHost::Backend {
            let own = backend.own_host();
            backend.host = own.map_or(SentHost::Client, SentHost::Named);
        }
        Ok(backend)
    }
}

/// The replication group that a given route names, as for backends of the file.
fn prefix(route: Option<&str>) -> Option<String> {
    let (domain, _) = route?.split_once('.')?;
    (!domain.is_empty()).then(|| domain.to_owned())
}

/// Names of certificates that are known at a time.
const TRUSTS_MAX: usize = 10_000;

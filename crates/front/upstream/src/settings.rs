//! The settings of a backend, and which connections they allow.
//!
//! A backend is identified by its upstream, protocol and address, which never change; a reload
//! changes only its settings. An exchange keeps the settings with which it began, as it keeps its
//! site.

use std::ops::Deref;
use std::sync::Arc;

use crate::config::{Address, BackendConfig};
use crate::names::{self, Name};

/// A backend's configuration and the generation of connections that it needs. It dereferences to
/// the configuration.
#[derive(Debug, PartialEq, Eq)]
pub struct Settings {
    config: BackendConfig,
    /// A number that changes with every setting to which connections are bound: packet size,
    /// secret, TLS.
    generation: u32,
    /// The backend's own host name, held so that it is resolved.
    name: Option<Arc<Name>>,
    /// The host name of its `upgrade_url`, held so that it is resolved.
    upgrade_name: Option<Arc<Name>>,
}

impl Settings {
    pub(crate) fn new(config: BackendConfig) -> Arc<Self> {
        Arc::new(Self::with_generation(config, 0))
    }

    /// Makes settings, and starts to resolve the host names in them.
    fn with_generation(config: BackendConfig, generation: u32) -> Self {
        let upgrade_address = config.upgrade.as_ref().map(|end| &end.address);
        Self {
            name: name_of(&config.address),
            upgrade_name: upgrade_address.and_then(name_of),
            config,
            generation,
        }
    }

    /// The settings with `config` that follow these; the same ones if nothing differs. They get a new generation if
    /// open connections cannot be used with them: other TLS, or over AJP another packet size or secret.
    pub(crate) fn followed_by(self: &Arc<Self>, mut config: BackendConfig) -> Arc<Self> {
        if self.config == config {
            return Arc::clone(self);
        }
        let (before, after) = (&self.config.ajp, &config.ajp);
        let has_other_ajp =
            before.packet_size != after.packet_size || before.secret != after.secret;
        let needs_new_connections =
            (has_other_ajp && !config.speaks_http()) || self.config.tls != config.tls;
        if needs_new_connections {
            let generation = self.generation.wrapping_add(1);
            return Arc::new(Self::with_generation(config, generation));
        }
        // Equal, but the earlier value has the TLS sessions that can be resumed.
        config.tls.clone_from(&self.config.tls);
        Arc::new(Self::with_generation(config, self.generation))
    }

    /// The generation of connections. A connection of another generation is closed when its
    /// exchange ends.
    pub(crate) fn generation(&self) -> u32 {
        self.generation
    }

    /// The backend's host name; `None`: its address has none.
    pub(crate) fn name(&self) -> Option<&Arc<Name>> {
        self.name.as_ref()
    }

    /// The host name to which tunnels go; `None`: the address has none.
    pub(crate) fn tunnel_name(&self) -> Option<&Arc<Name>> {
        match self.config.upgrade {
            Some(_) => self.upgrade_name.as_ref(),
            None => self.name(),
        }
    }
}

fn name_of(address: &Address) -> Option<Arc<Name>> {
    match address {
        Address::Tcp { host, .. } => names::name(host),
        Address::Unix(_) => None,
    }
}

impl Deref for Settings {
    type Target = BackendConfig;

    fn deref(&self) -> &BackendConfig {
        &self.config
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use catamaran_ajp::PacketSize;

    use super::*;
    use crate::config::{Protocol, Secret};

    #[test]
    fn only_what_a_connection_is_bound_to_begins_a_generation() {
        let address = Address::Unix("/backend".into());
        let config = BackendConfig::new(Protocol::Ajp, address);
        let first = Settings::new(config.clone());
        assert!(Arc::ptr_eq(&first, &first.followed_by(config.clone())));
        let generation_with = |change: &dyn Fn(&mut BackendConfig)| {
            let mut config = config.clone();
            change(&mut config);
            let next = first.followed_by(config);
            assert_ne!(next, first);
            next.generation()
        };
        let kept: [&dyn Fn(&mut BackendConfig); 4] = [
            &|config| config.weight = 7,
            &|config| config.name = "other".to_owned(),
            &|config| config.first_byte_timeout = Duration::from_secs(7),
            &|config| config.ajp.ping_timeout = Duration::from_secs(7),
        ];
        for change in kept {
            assert_eq!(generation_with(change), first.generation());
        }
        let bound: [&dyn Fn(&mut BackendConfig); 2] = [
            &|config| config.ajp.packet_size = PacketSize::new(65_536).unwrap(),
            &|config| config.ajp.secret = Some(Secret::new("other".to_owned())),
        ];
        for change in bound {
            assert_ne!(generation_with(change), first.generation());
        }
    }
}

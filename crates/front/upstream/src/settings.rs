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
    /// The backend's own host name and that of its `upgrade_url`, held so that they are resolved.
    names: [Option<Arc<Name>>; 2],
}

impl Settings {
    pub(crate) fn new(config: BackendConfig) -> Arc<Self> {
        Arc::new(Self {
            names: names_of(&config),
            config,
            generation: 0,
        })
    }

    /// The settings with `config` that follow these; the same ones if nothing differs.
    pub(crate) fn followed_by(self: &Arc<Self>, mut config: BackendConfig) -> Arc<Self> {
        if self.config == config {
            return Arc::clone(self);
        }
        let (before, after) = (&self.config.ajp, &config.ajp);
        let ajp_bound = !config.speaks_http()
            && (before.packet_size, &before.secret) != (after.packet_size, &after.secret);
        let bound = ajp_bound || self.config.tls != config.tls;
        if !bound {
            // Equal, but the earlier value has the TLS sessions that can be resumed.
            config.tls.clone_from(&self.config.tls);
        }
        Arc::new(Self {
            generation: self.generation.wrapping_add(u32::from(bound)),
            names: names_of(&config),
            config,
        })
    }

    /// The generation of connections. A connection of another generation is closed when its
    /// exchange ends.
    pub(crate) fn generation(&self) -> u32 {
        self.generation
    }

    /// The backend's host name; `None`: its address has none.
    pub(crate) fn name(&self) -> Option<&Arc<Name>> {
        self.names[0].as_ref()
    }

    /// The host name to which tunnels go; `None`: the address has none.
    pub(crate) fn tunnel_name(&self) -> Option<&Arc<Name>> {
        match self.config.upgrade {
            Some(_) => self.names[1].as_ref(),
            None => self.name(),
        }
    }
}

fn names_of(config: &BackendConfig) -> [Option<Arc<Name>>; 2] {
    let upgrade = config.upgrade.as_ref().map(|end| &end.address);
    [Some(&config.address), upgrade].map(|address| match address {
        Some(Address::Tcp { host, .. }) => names::name(host),
        Some(Address::Unix(_)) | None => None,
    })
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

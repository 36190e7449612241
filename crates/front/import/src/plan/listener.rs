//! Addresses on which the source listens, with what it says of TLS there.

use catamaran_proxy::config::DEPTH_MAX;

use crate::plan::Keys;
use crate::toml_text::quoted;

/// An address on which the source listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Listener {
    /// The address as the file has it, `HOST:PORT`.
    pub(crate) address: String,
    pub(crate) port: u16,
    /// Keys of the listener's table, such as `body_max`.
    pub(crate) keys: Keys,
    /// The listener's certificates; `None` if it speaks plain HTTP.
    pub(crate) tls: Option<Tls>,
}

/// The certificates of a TLS listener, and the certificates that it asks of clients.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tls {
    /// The paths of each certificate chain and its key.
    pub(crate) certificates: Vec<(String, String)>,
    pub(crate) settings: TlsSettings,
    /// Why the listener's certificates cannot be used; then it is written with an address that the network does not
    /// reach.
    pub(crate) missing: Option<String>,
}

/// The settings of TLS that the hosts of a listener share.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TlsSettings {
    /// Whether clients must have TLS 1.3.
    pub(crate) newest_alone: bool,
    /// Whether handshakes are refused for names that no certificate has.
    pub(crate) strict_names: bool,
    /// The certificates that are asked of clients; `None`: none are.
    pub(crate) clients: Option<ClientCertificates>,
}

/// The certificates that a listener asks of clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ClientCertificates {
    pub(crate) is_required: bool,
    /// The path of the certificates of the authorities.
    pub(crate) authorities: String,
    /// The most authorities between a client's certificate and one of these.
    pub(crate) depth: usize,
    /// The path of the list of revoked certificates; `None`: there is none.
    pub(crate) revoked: Option<String>,
}

impl Listener {
    /// Limits the size of request bodies on the listener, for routes without a limit of their own.
    pub(crate) fn limit_bodies(&mut self, size: &str) {
        self.keys.insert("body_max".to_owned(), quoted(size));
    }
}

impl TlsSettings {
    /// The keys of `[tls.NAME]`.
    pub(crate) fn keys(&self) -> Keys {
        let Self {
            newest_alone,
            strict_names,
            clients,
        } = self;
        let mut keys = Keys::new();
        if *strict_names {
            keys.insert("strict_sni".to_owned(), "true".to_owned());
        }
        let mut key = |name: &str, value: &str| drop(keys.insert(name.to_owned(), quoted(value)));
        if *newest_alone {
            key("version_min", "1.3");
        }
        if let Some(ClientCertificates {
            is_required,
            authorities,
            depth,
            revoked,
        }) = clients
        {
            let demand = if *is_required { "required" } else { "optional" };
            key("client_certificate", demand);
            key("client_ca", authorities);
            if let Some(list) = revoked {
                key("client_crl", list);
            }
            if *depth < DEPTH_MAX {
                keys.insert("client_ca_depth".to_owned(), depth.to_string());
            }
        }
        keys
    }
}

impl Tls {
    /// Adds the settings of another host on the same listener, of which the stricter hold. If not all of them demand a
    /// client's certificate the listener only asks for one; routes enforce what each host demands.
    pub(crate) fn add(&mut self, of_host: &TlsSettings) {
        // Each setting is named, so that a new one needs a rule here.
        let TlsSettings {
            newest_alone,
            strict_names,
            clients,
        } = of_host;
        self.settings.newest_alone |= newest_alone;
        self.settings.strict_names |= strict_names;
        let Some(asked) = clients else { return };
        let Some(known) = &mut self.settings.clients else {
            self.settings.clients = Some(asked.clone());
            return;
        };
        let ClientCertificates {
            is_required,
            authorities,
            depth,
            revoked,
        } = asked;
        let have_one_list =
            known.revoked.is_none() || revoked.is_none() || known.revoked == *revoked;
        if known.authorities != *authorities || !have_one_list {
            let text = "two hosts of it trust different authorities of clients' certificates";
            self.missing = Some(text.to_owned());
        }
        if known.revoked.is_none() {
            known.revoked.clone_from(revoked);
        }
        known.is_required &= is_required;
        known.depth = known.depth.min(*depth);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asking(is_required: bool, authorities: &str, revoked: Option<&str>) -> TlsSettings {
        TlsSettings {
            clients: Some(ClientCertificates {
                is_required,
                authorities: authorities.to_owned(),
                depth: 1,
                revoked: revoked.map(str::to_owned),
            }),
            ..TlsSettings::default()
        }
    }

    #[test]
    fn of_several_hosts_the_stricter_settings_hold() {
        let newest = TlsSettings {
            newest_alone: true,
            ..TlsSettings::default()
        };
        let asked = asking(true, "/ca", None);
        for (hosts, expected) in [
            ([newest.clone(), TlsSettings::default()], Some(newest)),
            ([TlsSettings::default(), asked.clone()], Some(asked.clone())),
            (
                [asked.clone(), asking(false, "/ca", Some("/crl"))],
                Some(asking(false, "/ca", Some("/crl"))),
            ),
            ([asked.clone(), asking(true, "/other", None)], None),
            (
                [
                    asking(true, "/ca", Some("/a")),
                    asking(true, "/ca", Some("/b")),
                ],
                None,
            ),
        ] {
            let mut tls = Tls::default();
            hosts.iter().for_each(|it| tls.add(it));
            assert_eq!(tls.missing.is_some(), expected.is_none(), "{hosts:?}");
            if let Some(expected) = expected {
                assert_eq!(tls.settings, expected, "{hosts:?}");
            }
        }
    }
}

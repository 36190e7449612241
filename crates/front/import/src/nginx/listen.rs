//! Where servers listen: addresses, TLS, the PROXY protocol, and who clients are behind a proxy.

use std::collections::HashSet;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;

use crate::directive::Directive;
use crate::emit::{quoted, quoted_list};
use crate::files::Files;
use crate::ledger::{Id, Ledger};
use crate::plan::{Plan, VirtualHost};

/// Addresses on which any server listens, so that it is known which of a port are told apart.
#[derive(Debug, Default)]
pub(crate) struct Addresses {
    /// Ports of which some server has all addresses.
    shared: HashSet<u16>,
}

impl Addresses {
    /// Reads the `listen` of all servers.
    pub(crate) fn new<'d>(servers: impl Iterator<Item = &'d Directive>) -> Self {
        let mut shared = HashSet::new();
        for server in servers {
            let listens = server.inside().iter().filter(|it| it.name == "listen");
            let found: Vec<_> = listens
                .filter(|it| !it.word(0).starts_with("unix:"))
                .map(|it| address(it.word(0)))
                .collect();
            if found.is_empty() {
                shared.insert(80);
            }
            shared.extend(found.iter().filter(|it| it.0.is_none()).map(|it| it.1));
        }
        Self { shared }
    }

    /// Whether all addresses of a port are single ones.
    fn are_single(&self, port: u16) -> bool {
        !self.shared.contains(&port)
    }
}

/// The address of a `listen`, `None` for all, and its port.
fn address(text: &str) -> (Option<IpAddr>, u16) {
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) if port.parse::<u16>().is_ok() => (host, port.parse().unwrap_or(80)),
        _ => match text.parse::<u16>() {
            Ok(port) => ("*", port),
            Err(_) => (text, 80),
        },
    };
    let host = if host == "localhost" {
        "127.0.0.1"
    } else {
        host
    };
    let ip: Option<IpAddr> = host.trim_matches(['[', ']']).parse().ok();
    (ip.filter(|it| !it.is_unspecified()), port)
}

/// The blocks whose directives hold for a server, and where certificates are.
pub(crate) struct Listens<'a> {
    pub(crate) inner: &'a [Directive],
    pub(crate) outer: &'a [Directive],
    pub(crate) addresses: &'a Addresses,
    pub(crate) files: &'a dyn Files,
}

impl Listens<'_> {
    fn find(&self, name: &str) -> Option<&Directive> {
        let own = self.inner.iter().find(|it| it.name == name);
        own.or_else(|| self.outer.iter().find(|it| it.name == name))
    }

    /// Adds the listeners of a server. Whether it has an address that the front cannot tell from others.
    pub(crate) fn add(&self, plan: &mut Plan, host: &mut VirtualHost, ledger: &mut Ledger) -> bool {
        let listens: Vec<&Directive> = self.inner.iter().filter(|it| it.name == "listen").collect();
        if listens.is_empty() {
            self.listen("80", &[], (plan, host, ledger));
        }
        let (mut is_hidden, mut is_open) = (false, false);
        for directive in listens {
            if directive.word(0).starts_with("unix:") {
                ledger.risk(directive.id, "listening on a Unix socket was not converted");
                continue;
            }
            ledger.mapped(directive.id);
            let (ip, port) = address(directive.word(0));
            let is_apart = ip.is_none() || self.addresses.are_single(port);
            is_hidden |= !is_apart;
            is_open |= ip.is_none();
            self.listen(
                directive.word(0),
                directive.words.get(1..).unwrap_or_default(),
                (plan, host, ledger),
            );
            self.proxy_protocol(directive, (plan, host, ledger));
        }
        is_hidden && !is_open
    }

    fn listen(
        &self,
        text: &str,
        words: &[String],
        (plan, host, ledger): (&mut Plan, &mut VirtualHost, &mut Ledger),
    ) {
        let (ip, port) = address(text);
        let written = match ip.filter(|_| self.addresses.are_single(port)) {
            Some(ip) => SocketAddr::new(ip, port).to_string(),
            None => format!("[::]:{port}"),
        };
        let index = plan.listener(&written, port);
        if host.listeners.contains(&index) {
            return;
        }
        host.listeners.push(index);
        let has = |name: &str| words.iter().any(|it| it == name);
        let taken = plan.hosts.iter().any(|it| it.default_on.contains(&index));
        if has("default_server") || has("default") {
            let hosts = plan.hosts.iter_mut();
            hosts.for_each(|it| it.default_on.retain(|it| *it != index));
            host.default_on.push(index);
        } else if !taken {
            host.default_on.push(index);
        }
        let ssl_on = self
            .inner
            .iter()
            .any(|it| it.name == "ssl" && it.word(0) == "on");
        if has("ssl") || ssl_on {
            self.tls(index, plan, ledger);
        }
    }

    fn proxy_protocol(
        &self,
        directive: &Directive,
        (plan, host, ledger): (&mut Plan, &VirtualHost, &mut Ledger),
    ) {
        if !directive.words.iter().any(|it| it == "proxy_protocol") {
            return;
        }
        let Some(&index) = host.listeners.last() else {
            return;
        };
        let proxies = Senders::new(self.inner, self.outer);
        let from: &[String] = if proxies.header == "proxy_protocol" {
            &proxies.networks
        } else {
            &[]
        };
        let keys = &mut plan.listeners[index].keys;
        keys.insert("proxy_protocol".to_owned(), "true".to_owned());
        match from.is_empty() {
            true => ledger.risk(
                directive.id,
                "name the proxies in `proxy_protocol_from`: until then no connection is accepted",
            ),
            false => drop(keys.insert("proxy_protocol_from".to_owned(), quoted_list(from))),
        }
    }

    fn tls(&self, listener: usize, plan: &mut Plan, ledger: &mut Ledger) {
        let mut tls = plan.listeners[listener].tls.clone().unwrap_or_default();
        match (
            self.find("ssl_certificate"),
            self.find("ssl_certificate_key"),
        ) {
            (Some(chain), Some(key)) => {
                for directive in [chain, key] {
                    if !self.is_there(directive, ledger) {
                        tls.missing = Some("its certificate cannot be read".to_owned());
                    }
                }
                let place = |it: &Directive| self.files.located(Path::new(it.word(0)));
                let pair = (place(chain), place(key));
                if !tls.certificates.contains(&pair) {
                    tls.certificates.push(pair);
                }
            }
            _ if tls.certificates.is_empty() => {
                tls.missing = Some("it has no certificate".to_owned());
            }
            _ => {}
        }
        if let Some(protocols) = self.find("ssl_protocols") {
            let names = &protocols.words;
            if !names.is_empty() && names.iter().all(|it| it == "TLSv1.3") {
                tls.keys.insert("version_min".to_owned(), quoted("1.3"));
            }
            ledger.mapped(protocols.id);
        }
        self.client_certificates(&mut tls, ledger);
        plan.listeners[listener].tls = Some(tls);
    }

    fn client_certificates(&self, tls: &mut crate::plan::Tls, ledger: &mut Ledger) {
        let verify = self
            .find("ssl_verify_client")
            .filter(|it| it.word(0) != "off");
        let Some(verify) = verify else { return };
        let authority = self.find("ssl_client_certificate");
        let Some(authority) = authority.filter(|it| self.is_there(it, ledger)) else {
            let text = "its authority of clients' certificates cannot be read";
            tls.missing = Some(text.to_owned());
            return ledger.risk(verify.id, text);
        };
        let value = if verify.word(0) == "on" {
            "required"
        } else {
            "optional"
        };
        let place = |it: &Directive| quoted(&self.files.located(Path::new(it.word(0))));
        let mut keys = crate::plan::Keys::new();
        keys.insert("client_certificate".to_owned(), quoted(value));
        keys.insert("client_ca".to_owned(), place(authority));
        if let Some(list) = self.find("ssl_crl") {
            match self.is_there(list, ledger) {
                true => drop(keys.insert("client_crl".to_owned(), place(list))),
                false => {
                    tls.missing = Some("its list of revoked certificates is missing".to_owned());
                }
            }
        }
        ledger.mapped(verify.id);
        tls.require(&keys);
    }

    /// Whether the file that a directive names can be read.
    fn is_there(&self, directive: &Directive, ledger: &mut Ledger) -> bool {
        let path = directive.word(0);
        match self.files.read(Path::new(path)) {
            Ok(_) => {
                ledger.mapped(directive.id);
                true
            }
            Err(error) => {
                ledger.risk(directive.id, format!("`{path}` cannot be read: {error}"));
                false
            }
        }
    }
}

/// Who clients are behind a proxy, as a server has it from its block or the outer one.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Senders {
    header: String,
    networks: Vec<String>,
}

impl Senders {
    fn new(inner: &[Directive], outer: &[Directive]) -> Self {
        let level = |name: &str| {
            let of = |block: &[Directive]| -> Vec<String> {
                let all = block.iter().filter(|it| it.name == name);
                all.map(|it| it.word(0).to_ascii_lowercase()).collect()
            };
            let own = of(inner);
            if own.is_empty() { of(outer) } else { own }
        };
        Self {
            header: level("real_ip_header")
                .pop()
                .unwrap_or_else(|| "x-real-ip".to_owned()),
            networks: level("set_real_ip_from"),
        }
    }
}

/// Reads what the servers say of proxies before them. If the front cannot tell clients' addresses as they do,
/// whoever is let in by a network is let in no more.
pub(crate) fn senders<'d>(
    servers: impl Iterator<Item = &'d Directive>,
    outer: &[Directive],
    plan: &mut Plan,
    ledger: &mut Ledger,
) {
    let is = |it: &&Directive| {
        matches!(
            it.name.as_str(),
            "set_real_ip_from" | "real_ip_header" | "real_ip_recursive"
        )
    };
    let mut ids: Vec<Id> = outer.iter().filter(is).map(|it| it.id).collect();
    let mut all: Vec<Senders> = Vec::new();
    let mut in_locations = false;
    for server in servers {
        ids.extend(server.inside().iter().filter(is).map(|it| it.id));
        let locations = server.inside().iter().filter(|it| it.name == "location");
        let inner: Vec<Id> = locations
            .flat_map(|it| it.inside())
            .filter(is)
            .map(|it| it.id)
            .collect();
        in_locations |= !inner.is_empty();
        ids.extend(inner);
        all.push(Senders::new(server.inside(), outer));
    }
    let (Some(first), false) = (all.first(), ids.is_empty()) else {
        return;
    };
    let is_plain = first
        .networks
        .iter()
        .all(|it| super::location::is_network(it))
        && !first.networks.is_empty()
        && matches!(first.header.as_str(), "x-forwarded-for" | "proxy_protocol");
    if is_plain && !in_locations && all.iter().all(|it| it == first) {
        if first.header == "x-forwarded-for" {
            plan.trusted.clone_from(&first.networks);
        }
        return ids.into_iter().for_each(|id| ledger.mapped(id));
    }
    let text = "who clients are cannot be told as here: name the proxies in `trusted_proxies` if they send \
                X-Forwarded-For. Whoever was let in by a network is answered 403";
    ledger.risk(ids[0], text);
    ids.iter().for_each(|&id| ledger.kept_or_risk(id, text));
    ledger.address_guards.void_all();
    plan.hide_networks();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_listen() {
        for (text, ip, port) in [
            ("80", None, 80),
            ("*:8080", None, 8080),
            ("[::]:443", None, 443),
            ("0.0.0.0:80", None, 80),
            ("127.0.0.1", Some("127.0.0.1"), 80),
            ("localhost:8000", Some("127.0.0.1"), 8000),
            ("[::1]:81", Some("::1"), 81),
        ] {
            let ip = ip.map(|it| it.parse().unwrap());
            assert_eq!(address(text), (ip, port), "{text}");
        }
    }
}

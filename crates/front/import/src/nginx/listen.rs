//! Where nginx's servers listen: addresses, TLS, the PROXY protocol, and clients' addresses behind a proxy.

use std::collections::HashSet;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;

use catamaran_config::{Nature, foreign_answer};

use crate::directive::Directive;
use crate::files::Files;
use crate::ledger::{Id, Ledger};
use crate::plan::{
    Access, BELOW_OTHERS, ClientCertificates, DepthCount, Plan, TlsSettings, VirtualHost, depth,
};
use crate::toml_text::quoted_list;

/// The addresses on which all servers listen. They decide whether the front can distinguish two addresses of one
/// port.
#[derive(Debug, Default)]
pub(crate) struct Addresses {
    /// Ports on which some server listens on all addresses of IPv4, of IPv6, or of both with one socket.
    ipv4: HashSet<u16>,
    ipv6: HashSet<u16>,
    both: HashSet<u16>,
    /// Ports on which some server listens on all addresses of IPv4 or of IPv6, but not of the other.
    apart: HashSet<u16>,
    /// The addresses with their ports on which some server uses TLS: nginx then uses it for all servers there.
    tls: HashSet<(ListenScope, u16)>,
}

/// The addresses that a `listen` names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum ListenScope {
    One(IpAddr),
    AllOfIpv4,
    AllOfIpv6,
    All,
    /// A host name, which only the old server's machine can resolve.
    Unsaid,
}

impl Addresses {
    /// Collects the `listen` directives of all servers.
    pub(crate) fn new<'d>(servers: impl Iterator<Item = &'d Directive>) -> Self {
        let mut all = Self::default();
        for server in servers {
            let listens = server.inside().iter().filter(|it| it.name == "listen");
            let mut of_server: Vec<(ListenScope, u16)> = Vec::new();
            for listen in listens.clone() {
                let address = address(&listen.words);
                if listen.words.iter().any(|word| word == "ssl") {
                    all.tls.insert(address);
                }
                if !listen.word(0).starts_with("unix:") {
                    of_server.push(address);
                }
            }
            // The default of nginx.
            if listens.count() == 0 {
                of_server.push((ListenScope::AllOfIpv4, 80));
            }
            for &(scope, port) in &of_server {
                match scope {
                    ListenScope::AllOfIpv4 => all.ipv4.insert(port),
                    ListenScope::AllOfIpv6 => all.ipv6.insert(port),
                    ListenScope::All => all.both.insert(port),
                    ListenScope::One(_) | ListenScope::Unsaid => continue,
                };
                let has = |it: ListenScope| of_server.contains(&(it, port));
                if has(ListenScope::AllOfIpv4) != has(ListenScope::AllOfIpv6) {
                    all.apart.insert(port);
                }
            }
        }
        all
    }

    /// Whether no server listens on all addresses of this port, so that listeners of single addresses are possible.
    fn are_single(&self, port: u16) -> bool {
        let has = |it: &HashSet<u16>| it.contains(&port);
        !has(&self.ipv4) && !has(&self.ipv6) && !has(&self.both)
    }

    /// The address of the front's listener. `[::]` also accepts IPv4 clients, unless another listener has the IPv4
    /// addresses.
    fn written(&self, scope: ListenScope, port: u16) -> String {
        // Whether one listener has both families: no server listens on one of them alone.
        let is_joined = !self.apart.contains(&port) || self.both.contains(&port);
        let has_ipv6 = self.ipv6.contains(&port) || self.both.contains(&port);
        match scope {
            ListenScope::One(ip) if self.are_single(port) => SocketAddr::new(ip, port).to_string(),
            // Until the operator fills in the address, the network does not reach it.
            ListenScope::Unsaid if self.are_single(port) => format!("127.0.0.1:{port}"),
            ListenScope::AllOfIpv4 if !is_joined || !has_ipv6 => format!("0.0.0.0:{port}"),
            // On `[::]` it would accept IPv4 clients, whom the source does not serve.
            ListenScope::AllOfIpv6 if self.is_ipv6_alone(port) => format!("[::1]:{port}"),
            // Of single addresses beside it, which it cannot distinguish, the servers are closed.
            _ => format!("[::]:{port}"),
        }
    }

    /// Whether no server listens on all IPv4 addresses of this port, whose clients the front's `[::]` would accept.
    fn is_ipv6_alone(&self, port: u16) -> bool {
        !self.ipv4.contains(&port) && !self.both.contains(&port)
    }
}

/// The addresses and the port of a `listen`; without words, nginx's default. The port is 80 if none is named.
fn address(words: &[String]) -> (ListenScope, u16) {
    let text = words.first().map_or("80", String::as_str);
    let with_port = text
        .rsplit_once(':')
        .and_then(|(host, port)| Some((host, port.parse::<u16>().ok()?)));
    let (host, port) = match (with_port, text.parse::<u16>()) {
        (Some(host_and_port), _) => host_and_port,
        (None, Ok(port)) => ("*", port),
        (None, Err(_)) => (text, 80),
    };
    let scope = match host.trim_matches(['[', ']']).parse::<IpAddr>() {
        _ if host == "*" => ListenScope::AllOfIpv4,
        _ if host == "localhost" => ListenScope::One(Ipv4Addr::LOCALHOST.into()),
        Ok(IpAddr::V4(ip)) if ip.is_unspecified() => ListenScope::AllOfIpv4,
        Ok(IpAddr::V6(ip)) if ip.is_unspecified() => {
            if words.iter().any(|it| it == "ipv6only=off") {
                ListenScope::All
            } else {
                ListenScope::AllOfIpv6
            }
        }
        Ok(ip) => ListenScope::One(ip),
        Err(_) => ListenScope::Unsaid,
    };
    (scope, port)
}

/// The blocks whose directives apply to a server, and what is needed to convert its listeners.
pub(crate) struct Listens<'a> {
    pub(crate) inner: &'a [Directive],
    pub(crate) outer: &'a [Directive],
    pub(crate) addresses: &'a Addresses,
    pub(crate) files: &'a dyn Files,
}

impl Listens<'_> {
    /// The directive with this name of the server, or else of the outer block.
    fn find(&self, name: &str) -> Option<&Directive> {
        let own = self.inner.iter().find(|it| it.name == name);
        own.or_else(|| self.outer.iter().find(|it| it.name == name))
    }

    /// Adds the listeners of a server to the plan and to its host. Returns whether the server must be closed: the front
    /// cannot distinguish any of its addresses from those of other servers.
    pub(crate) fn add(&self, plan: &mut Plan, host: &mut VirtualHost, ledger: &mut Ledger) -> bool {
        let listens: Vec<&Directive> = self.inner.iter().filter(|it| it.name == "listen").collect();
        if listens.is_empty() {
            // No words stand for nginx's default.
            self.listen(&[], plan, host, ledger);
        }
        // Those of single addresses of a port on which another server listens on all.
        let mut hidden = Vec::new();
        for directive in listens {
            let (scope, port) = address(&directive.words);
            let is_one = matches!(scope, ListenScope::One(_) | ListenScope::Unsaid);
            if directive.word(0).starts_with("unix:") {
                ledger.risk(directive.id, "listening on a Unix socket was not converted");
            } else if is_one && !self.addresses.are_single(port) {
                hidden.push(directive);
            } else {
                self.convert(directive, plan, host, ledger);
            }
        }
        // If the server has no other address, its routes are there, closed.
        let is_closed = host.listeners.is_empty() && !hidden.is_empty();
        for directive in hidden {
            if is_closed {
                self.convert(directive, plan, host, ledger);
            } else {
                ledger.risk(directive.id, HIDDEN);
            }
        }
        let mut listeners = host.listeners.iter().map(|&it| &plan.listeners[it]);
        let has_tls = listeners.any(|it| it.tls.is_some());
        self.claim(has_tls, ledger);
        if let Some(rejects) = self.rejects().filter(|_| has_tls) {
            // `reject_handshakes` decides about it once all servers are known.
            ledger.handle(rejects.id);
            host.rejects = Some(rejects.id);
        }
        is_closed
    }

    /// The directive by which handshakes for the server are refused.
    fn rejects(&self) -> Option<&Directive> {
        let found = self.find("ssl_reject_handshake");
        found.filter(|it| it.word(0) == "on")
    }

    /// Marks directives that are decided for the whole server: its addresses and their TLS, where the front is
    /// stricter than a setting that is not converted; without TLS, everything about TLS; and which proxies are
    /// trusted, which [`senders`] decides for all servers.
    fn claim(&self, has_tls: bool, ledger: &mut Ledger) {
        for directive in self.inner.iter().chain(self.outer) {
            let name = directive.name.as_str();
            let nature = foreign_answer("nginx", name).and_then(|it| it.nature);
            let is_own = nature == Some(Nature::Transport) && !name.starts_with("proxy_ssl");
            let is_idle = !has_tls && name.starts_with("ssl_");
            if is_own || is_idle || SENDERS.contains(&name) {
                ledger.handle(directive.id);
            }
        }
    }

    /// Adds the listener of one `listen`, with its TLS and PROXY protocol.
    fn convert(
        &self,
        directive: &Directive,
        plan: &mut Plan,
        host: &mut VirtualHost,
        ledger: &mut Ledger,
    ) {
        ledger.mapped(directive.id);
        let (scope, port) = address(&directive.words);
        if scope == ListenScope::Unsaid {
            let text = format!(
                "`{}` is not filled in, or a name whose address only the source's machine knows: write its IP address \
                 in [[listen]]",
                directive.word(0)
            );
            ledger.risk(directive.id, text);
        }
        if scope == ListenScope::AllOfIpv6 && self.addresses.is_ipv6_alone(port) {
            ledger.risk(directive.id, IPV6_ALONE);
        }
        self.listen(&directive.words, plan, host, ledger);
        self.proxy_protocol(directive, plan, host, ledger);
    }

    /// Adds the listener for the words of a `listen`, with its TLS, unless the host has it already. The host becomes
    /// the default of the listener if it says so, or if it is the first there.
    fn listen(
        &self,
        words: &[String],
        plan: &mut Plan,
        host: &mut VirtualHost,
        ledger: &mut Ledger,
    ) {
        let scope_and_port = address(words);
        let (scope, port) = scope_and_port;
        let index = plan.listener(&self.addresses.written(scope, port), port);
        let mut outer = self.outer.iter();
        if outer.all(|it| it.name != "client_max_body_size") {
            // The default of nginx.
            plan.listeners[index].limit_bodies("1MiB");
        }
        if host.listeners.contains(&index) {
            return;
        }
        host.listeners.push(index);
        let has = |name: &str| words.iter().any(|it| it == name);
        let has_default = plan.hosts.iter().any(|it| it.default_on.contains(&index));
        if has("default_server") || has("default") {
            // It replaces the server that was the default by being the first.
            let hosts = plan.hosts.iter_mut();
            hosts.for_each(|it| it.default_on.retain(|it| *it != index));
            host.default_on.push(index);
        } else if !has_default {
            host.default_on.push(index);
        }
        let switch = self.inner.iter().find(|it| it.name == "ssl");
        if let Some(switch) = switch {
            ledger.mapped(switch.id);
        }
        let is_secure = has("ssl") || self.addresses.tls.contains(&scope_and_port);
        if is_secure || switch.is_some_and(|it| it.word(0) == "on") {
            self.tls(index, plan, ledger);
        }
    }

    /// Sets the keys for the PROXY protocol on the host's last listener, if the `listen` has it. Without known proxies
    /// no connection is accepted.
    fn proxy_protocol(
        &self,
        directive: &Directive,
        plan: &mut Plan,
        host: &VirtualHost,
        ledger: &mut Ledger,
    ) {
        if !directive.words.iter().any(|it| it == "proxy_protocol") {
            return;
        }
        let Some(&index) = host.listeners.last() else {
            return;
        };
        let proxies = Senders::new(self.inner, self.outer);
        let are_named = proxies.header == "proxy_protocol" && !proxies.networks.is_empty();
        let from = if are_named {
            quoted_list(&proxies.networks)
        } else {
            ledger.risk(
                directive.id,
                format!(
                    "name the proxies in `proxy_protocol_from` in place of {NOBODY}: until then no connection is \
                     accepted"
                ),
            );
            quoted_list([NOBODY])
        };
        let keys = &mut plan.listeners[index].keys;
        keys.insert("proxy_protocol".to_owned(), "true".to_owned());
        keys.insert("proxy_protocol_from".to_owned(), from);
    }

    /// Gives a listener the server's certificate and TLS version, and what it asks of clients, beside those of other
    /// servers there.
    fn tls(&self, listener: usize, plan: &mut Plan, ledger: &mut Ledger) {
        let mut tls = plan.listeners[listener].tls.clone().unwrap_or_default();
        let chain = self.find("ssl_certificate");
        match (chain, self.find("ssl_certificate_key")) {
            // No handshake gets so far as its certificate.
            _ if self.rejects().is_some() => {}
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
            _ if tls.certificates.is_empty() => tls.missing = Some(UNCERTIFIED.to_owned()),
            // It uses the certificate of another server of the listener.
            _ => {}
        }
        let mut settings = TlsSettings::default();
        if let Some(protocols) = self.find("ssl_protocols") {
            let names = &protocols.words;
            settings.newest_alone = !names.is_empty() && names.iter().all(|it| it == "TLSv1.3");
            ledger.mapped(protocols.id);
        }
        settings.clients = self.client_certificates(&mut tls.missing, ledger);
        tls.add(&settings);
        plan.listeners[listener].tls = Some(tls);
    }

    /// The certificates that the server asks of clients. If its CA file or its list of revoked certificates cannot be
    /// read, sets `missing`, which keeps the listener from the network.
    fn client_certificates(
        &self,
        missing: &mut Option<String>,
        ledger: &mut Ledger,
    ) -> Option<ClientCertificates> {
        let verify = self
            .find("ssl_verify_client")
            .filter(|it| it.word(0) != "off");
        let number = self.find("ssl_verify_depth");
        let Some(verify) = verify else {
            let text = "no certificates of clients are verified";
            number
                .into_iter()
                .for_each(|it| ledger.dropped(it.id, text));
            return None;
        };
        // Without authorities nginx verifies nothing; the application would be told of the certificate.
        if verify.word(0) == "optional_no_ca" && self.find("ssl_client_certificate").is_none() {
            number.into_iter().for_each(|it| ledger.mapped(it.id));
            ledger.lost(verify.id, UNVERIFIED);
            return None;
        }
        let authority = self.find("ssl_client_certificate");
        let Some(authority) = authority.filter(|it| self.is_there(it, ledger)) else {
            let text = "its CA file for client certificates cannot be read";
            *missing = Some(text.to_owned());
            ledger.risk(verify.id, text);
            return None;
        };
        let place = |it: &Directive| self.files.located(Path::new(it.word(0)));
        let mut asked = ClientCertificates {
            is_required: verify.word(0) == "on",
            authorities: place(authority),
            depth: 0,
            revoked: None,
        };
        let pem = self.files.read(Path::new(authority.word(0)));
        let text = number.map(|it| it.word(0));
        match depth(text, DepthCount::Between, &pem.unwrap_or_default()) {
            Some(depth) => {
                asked.depth = depth;
                number.into_iter().for_each(|it| ledger.mapped(it.id));
            }
            None => {
                ledger.risk(number.unwrap_or(authority).id, BELOW_OTHERS);
                *missing = Some(BELOW_OTHERS.to_owned());
            }
        }
        if let Some(list) = self.find("ssl_crl") {
            if self.is_there(list, ledger) {
                asked.revoked = Some(place(list));
            } else {
                *missing = Some("its list of revoked certificates is missing".to_owned());
            }
        }
        ledger.mapped(verify.id);
        Some(asked)
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
                let fault = if path.starts_with('/') {
                    format!("cannot be read: {error}")
                } else {
                    "is relative to the directory of nginx.conf: give that file by its absolute path, or write this one absolutely".to_owned()
                };
                let text =
                    format!("`{path}` {fault}; until then the listener is kept from the network");
                ledger.risk(directive.id, text);
                false
            }
        }
    }
}

/// Has handshakes refused for names that no certificate has, on the listeners whose default server says so
/// (`ssl_reject_handshake`). Another server that says so is closed: the front refuses no single names.
pub(crate) fn reject_handshakes(plan: &mut Plan, ledger: &mut Ledger) {
    for host in &mut plan.hosts {
        let Some(id) = host.rejects else { continue };
        let all = host.listeners.iter().copied();
        let secure: Vec<usize> = all.filter(|&it| plan.listeners[it].tls.is_some()).collect();
        if !secure.iter().all(|it| host.default_on.contains(it)) {
            ledger.unmapped(id, NO_SINGLE_NAME);
            let rules = host.rules.iter_mut();
            rules.for_each(|it| it.settings.access = Access::Unsaid);
            continue;
        }
        ledger.mapped(id);
        let mut is_reached = false;
        for &index in &secure {
            if let Some(tls) = &mut plan.listeners[index].tls {
                tls.settings.strict_names = true;
                is_reached |= !tls.certificates.is_empty();
            }
        }
        if !is_reached && secure.len() == host.listeners.len() {
            // Without a certificate of another server no client gets beyond the handshake.
            let rules = host.rules.iter_mut();
            rules.for_each(|it| it.settings.access = Access::Unsaid);
        }
    }
    for listener in &mut plan.listeners {
        if let Some(tls) = &mut listener.tls
            && tls.certificates.is_empty()
        {
            tls.missing.get_or_insert_with(|| UNCERTIFIED.to_owned());
        }
    }
}

/// How a server finds clients' addresses behind a proxy, by directives of its block or the outer one.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Senders {
    header: String,
    networks: Vec<String>,
    is_recursive: bool,
}

impl Senders {
    fn new(inner: &[Directive], outer: &[Directive]) -> Self {
        // The values of the directives of this name in the innermost block that has any.
        let values = |name: &str| -> Vec<String> {
            let own = inner.iter().any(|it| it.name == name);
            let block = if own { inner } else { outer };
            let named = block.iter().filter(|it| it.name == name);
            named.map(|it| it.word(0).to_ascii_lowercase()).collect()
        };
        let header = values("real_ip_header").pop();
        Self {
            header: header.unwrap_or_else(|| "x-real-ip".to_owned()),
            networks: values("set_real_ip_from"),
            is_recursive: values("real_ip_recursive").iter().any(|it| it == "on"),
        }
    }

    /// Whether the front finds the same client addresses as nginx. The front skips all trusted proxies of a list, as
    /// nginx does with `real_ip_recursive`. With a single proxy, both use the address before it.
    fn is_plain(&self) -> bool {
        let is_one = |it: &String| it.parse::<IpAddr>().is_ok();
        let reads_list = match self.header.as_str() {
            "x-forwarded-for" => {
                self.is_recursive || matches!(&self.networks[..], [it] if is_one(it))
            }
            header => header == "proxy_protocol",
        };
        let are_networks = self
            .networks
            .iter()
            .all(|it| super::location::is_network(it));
        are_networks && !self.networks.is_empty() && reads_list
    }
}

/// Reads which proxies the servers trust into the plan, which has one list for all. If the front would not find the
/// same client addresses as nginx, rules that let in only some networks are closed, and guards by address count as left
/// to the old server.
pub(crate) fn senders<'d>(
    servers: impl Iterator<Item = &'d Directive>,
    outer: &[Directive],
    plan: &mut Plan,
    ledger: &mut Ledger,
) {
    let is = |it: &&Directive| SENDERS.contains(&it.name.as_str());
    let mut ids: Vec<Id> = outer.iter().filter(is).map(|it| it.id).collect();
    let mut of_servers: Vec<Senders> = Vec::new();
    let mut are_in_locations = false;
    for server in servers {
        ids.extend(server.inside().iter().filter(is).map(|it| it.id));
        let locations = server.inside().iter().filter(|it| it.name == "location");
        let inner: Vec<Id> = locations
            .flat_map(|it| it.inside())
            .filter(is)
            .map(|it| it.id)
            .collect();
        are_in_locations |= !inner.is_empty();
        ids.extend(inner);
        of_servers.push(Senders::new(server.inside(), outer));
    }
    let Some(first) = of_servers.first().filter(|_| !ids.is_empty()) else {
        return;
    };
    if first.is_plain() && !are_in_locations && of_servers.iter().all(|it| it == first) {
        // The list of proxies in front of the PROXY protocol is a key of the listener.
        if first.header == "x-forwarded-for" {
            plan.trusted.clone_from(&first.networks);
        }
        return ids.into_iter().for_each(|id| ledger.mapped(id));
    }
    let text = "who clients are cannot be told as here: name the proxies in `trusted_proxies` if they send \
                X-Forwarded-For; of a list of several the front passes over all that it trusts, as `real_ip_recursive on` \
                does. Clients that a network admitted are answered 403";
    ledger.risk(ids[0], text);
    ids.iter().for_each(|&id| ledger.kept_or_risk(id, text));
    ledger.address_guards.void_all();
    plan.hide_networks();
}

/// The first of the directives by which nginx believes a proxy before it, among these and inside them.
pub(crate) fn proxy_directive<'d>(
    directives: impl IntoIterator<Item = &'d Directive>,
) -> Option<&'d Directive> {
    directives.into_iter().find_map(|it| {
        if SENDERS.contains(&it.name.as_str()) {
            return Some(it);
        }
        proxy_directive(it.inside())
    })
}

const UNCERTIFIED: &str = "it has no certificate";

const NO_SINGLE_NAME: &str = "handshakes are refused here for all names without a certificate, or for none; this server is closed";

const UNVERIFIED: &str = "no certificate is asked of clients, and the application is told of none: the source verifies none. Name the \
    authorities in `client_ca` of [tls.NAME] to have them verified";

/// Directives about clients' addresses behind a proxy.
const SENDERS: [&str; 3] = ["set_real_ip_from", "real_ip_header", "real_ip_recursive"];

const HIDDEN: &str = "left out: another server listens on all addresses of this port, and the front does not tell \
    this one from them. If clients need this server there, give it a port of its own in [[listen]]";

const IPV6_ALONE: &str = "`[::]` of the front takes clients of IPv4 as well, whom nginx does not serve here: until you \
    name another address in [[listen]], it listens on loopback";

/// An address from the block for documentation (RFC 5737), which no host has.
const NOBODY: &str = "192.0.2.1";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_listen() {
        let one = |text: &str| ListenScope::One(text.parse().unwrap());
        for (text, taken, port) in [
            ("80", ListenScope::AllOfIpv4, 80),
            ("*:8080", ListenScope::AllOfIpv4, 8080),
            ("[::]:443", ListenScope::AllOfIpv6, 443),
            ("[::]:443 ipv6only=on", ListenScope::AllOfIpv6, 443),
            ("[::]:443 ipv6only=off", ListenScope::All, 443),
            ("0.0.0.0:80", ListenScope::AllOfIpv4, 80),
            ("127.0.0.1", one("127.0.0.1"), 80),
            ("localhost:8000", one("127.0.0.1"), 8000),
            ("[::1]:81", one("::1"), 81),
            ("www.example.org:81", ListenScope::Unsaid, 81),
        ] {
            let words: Vec<String> = text.split(' ').map(str::to_owned).collect();
            assert_eq!(address(&words), (taken, port), "{text}");
        }
    }
}

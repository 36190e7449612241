//! Where httpd's servers listen: addresses, certificates, and whether they ask clients for certificates.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;

use crate::directive::Directive;
use crate::httpd::host::Reader;
use crate::ledger::Weight;
use crate::plan::{BELOW_OTHERS, ClientCertificates, DepthCount, Listener, Tls, depth};

impl Reader<'_, '_> {
    /// Adds the addresses of a `Listen`.
    pub(super) fn listen(&mut self, directive: &Directive) {
        let (addresses, port) = addresses_of(directive.word(0));
        self.files.ledger.mapped(directive.id);
        if addresses.is_empty() {
            let text = "only the source's machine knows the address of this name: write it here. Until then it is \
                        kept from the network";
            self.files.ledger.risk(directive.id, text);
            // On loopback, no client of the network reaches it.
            self.plan.listen(SocketAddr::new(LOOPBACK[0], port));
        }
        for address in addresses {
            self.plan.listen(address);
        }
    }

    /// The listeners on which httpd asks a virtual host. A host with wildcards only is not asked on an address that
    /// another host names.
    pub(super) fn listeners_of(&mut self, host: &Directive) -> Vec<usize> {
        let mut found = self.listeners(&host.words);
        let is_wildcard = |word: &String| {
            let (addresses, _) = addresses_of(word);
            addresses.iter().any(|it| it.ip().is_unspecified())
        };
        if !host.words.iter().all(is_wildcard) {
            return found;
        }
        found.retain(|&index| {
            let listener = &self.plan.listeners[index];
            let mut words = self.hosts.iter().flat_map(|host| &host.words);
            !words.any(|word| names_address(word, listener))
        });
        found
    }

    /// The listeners whose addresses and ports these words of `<VirtualHost>` name; adds those that no `Listen` named.
    fn listeners(&mut self, words: &[String]) -> Vec<usize> {
        let mut found = Vec::new();
        for word in words {
            let (addresses, port) = addresses_of(word);
            let has_port = match word.rsplit_once(':') {
                Some((_, port)) => port.parse::<u16>().is_ok(),
                None => false,
            };
            // This also holds for a host name, which has no addresses here.
            let is_any_address = addresses.iter().all(|it| it.ip().is_unspecified());
            let names_one = |listener: &Listener| {
                let mut texts = addresses.iter().map(SocketAddr::to_string);
                texts.any(|text| text == listener.address)
            };
            let mut known: Vec<usize> = (0..self.plan.listeners.len()).collect();
            known.retain(|&index| {
                let listener = &self.plan.listeners[index];
                let has_same_port = listener.port == port || !has_port;
                has_same_port && (is_any_address || names_one(listener))
            });
            if !known.is_empty() {
                found.extend(known);
                continue;
            }
            // A listener on all addresses also receives requests to a single address of its port.
            match self.plan.listeners.iter().position(|it| it.port == port) {
                Some(wild) => found.push(wild),
                None if addresses.is_empty() => {
                    found.push(self.plan.listener(&format!("[::]:{port}"), port));
                }
                None => found.extend(addresses.iter().map(|it| self.plan.listen(*it))),
            }
        }
        found.sort_unstable();
        found.dedup();
        found
    }

    /// Adds the certificates and the other TLS settings of a virtual host to its listeners, if `SSLEngine` is on.
    pub(super) fn tls(&mut self, inner: &[Directive], listeners: &[usize]) {
        let main = self.main;
        let find = |name: &str| find_in_force(name, inner, main);
        let Some(engine) = find("sslengine") else {
            return;
        };
        self.files.ledger.mapped(engine.id);
        if !engine.word(0).eq_ignore_ascii_case("on") {
            return;
        }
        let mut tls = Tls::default();
        if let Some(chain) = find("sslcertificatefile") {
            // The file of the chain may also contain the key.
            let key = find("sslcertificatekeyfile").unwrap_or(chain);
            self.certificate(chain, key, &mut tls);
        } else {
            let text = "there is no SSLCertificateFile";
            self.files.ledger.risk(engine.id, text);
            tls.missing = Some("it has no certificate".to_owned());
        }
        let ledger = &mut *self.files.ledger;
        if let Some(chain) = find("sslcertificatechainfile") {
            let text = "append this file to that of SSLCertificateFile, or clients may not trust the certificate";
            ledger.risk(chain.id, text);
        }
        if let Some(protocol) = find("sslprotocol") {
            tls.settings.newest_alone = is_newest_alone(&protocol.words);
            ledger.mapped(protocol.id);
        }
        self.client_certificates(inner, &mut tls);
        self.add_tls(&tls, listeners);
    }

    /// Adds the certificate of these two directives to `tls`. If a file cannot be read, sets `missing`, which keeps the
    /// listener from the network.
    fn certificate(&mut self, chain: &Directive, key: &Directive, tls: &mut Tls) {
        for directive in [chain, key] {
            let path = directive.word(0);
            match self.files.files.read(Path::new(path)) {
                Ok(_) => self.files.ledger.mapped(directive.id),
                Err(error) => {
                    let text = format!("`{path}` cannot be read: {error}");
                    self.files.ledger.risk(directive.id, text);
                    tls.missing = Some("its certificate cannot be read".to_owned());
                }
            }
        }
        let located = |it: &Directive| self.files.files.located(Path::new(it.word(0)));
        tls.certificates.push((located(chain), located(key)));
    }

    /// Adds the TLS settings of a virtual host to its listeners, which other virtual hosts may share.
    fn add_tls(&mut self, tls: &Tls, listeners: &[usize]) {
        for &index in listeners {
            let of_listener = self.plan.listeners[index].tls.get_or_insert_default();
            for certificate in &tls.certificates {
                if !of_listener.certificates.contains(certificate) {
                    of_listener.certificates.push(certificate.clone());
                }
            }
            of_listener.add(&tls.settings);
            if of_listener.missing.is_none() {
                of_listener.missing.clone_from(&tls.missing);
            }
        }
    }

    /// Adds to `tls` whether clients need certificates, of which authority, and which are revoked. If one of these
    /// files is missing, sets `missing`, which keeps the listener from the network.
    fn client_certificates(&mut self, inner: &[Directive], tls: &mut Tls) {
        let verifies = |it: &&Directive| {
            it.name == "sslverifyclient" && !it.word(0).eq_ignore_ascii_case("none")
        };
        let of_host = inner.iter().chain(self.main).find(verifies);
        let locations = inner.iter().filter(|it| it.name == "location");
        let of_some_paths = || locations.flat_map(Directive::inside).find(verifies);
        let find = |name: &str| find_in_force(name, inner, self.main);
        let number = find("sslverifydepth");
        let Some(verify) = of_host.or_else(of_some_paths) else {
            if let Some(number) = number {
                let text = "no certificates of clients are verified";
                self.files.ledger.dropped(number.id, text);
            }
            return;
        };
        let (authority, authorities) = (find("sslcacertificatefile"), find("sslcacertificatepath"));
        let revoked = find("sslcarevocationfile").or_else(|| find("sslcarevocationpath"));
        let ledger = &mut *self.files.ledger;
        // Without authorities that can be read the listener is kept from the network.
        if let Some(number) = number {
            ledger.mapped(number.id);
        }
        let Some(authority) = authority else {
            tls.missing = Some("its authority of clients' certificates is not named".to_owned());
            let text = match authorities {
                Some(directory) => {
                    ledger.part(directory.id, verify.id);
                    "join the certificates of SSLCACertificatePath in one file and name it in SSLCACertificateFile: \
                     until then the listener is kept from the network"
                }
                None => "there is no SSLCACertificateFile: the listener is kept from the network",
            };
            return ledger.risk(verify.id, text);
        };
        // If only some paths need a certificate, routes require it.
        let is_required = of_host.is_some() && verify.word(0).eq_ignore_ascii_case("require");
        let path = authority.word(0);
        let mut asked = ClientCertificates {
            is_required,
            authorities: self.files.files.located(Path::new(path)),
            depth: 0,
            revoked: None,
        };
        ledger.mapped(verify.id);
        match self.files.files.read(Path::new(path)) {
            Ok(pem) => {
                ledger.mapped(authority.id);
                let text = number.map(|it| it.word(0));
                match depth(text, DepthCount::WithTrusted, &pem) {
                    Some(depth) => asked.depth = depth,
                    None => {
                        ledger.risk(number.unwrap_or(authority).id, BELOW_OTHERS);
                        tls.missing = Some(BELOW_OTHERS.to_owned());
                    }
                }
            }
            Err(error) => {
                let text = format!(
                    "`{path}` cannot be read: {error}; until then the listener is kept from the network"
                );
                ledger.risk(authority.id, text);
                tls.missing = Some("its CA file for client certificates cannot be read".to_owned());
            }
        }
        asked.revoked = self.revoked(revoked, &mut tls.missing);
        tls.settings.clients = Some(asked);
    }

    /// The path of the list of revoked client certificates. If there is a list that cannot be read, sets `missing`, which
    /// keeps the listener from the network.
    fn revoked(
        &mut self,
        list: Option<&Directive>,
        missing: &mut Option<String>,
    ) -> Option<String> {
        let list = list?;
        let path = list.word(0);
        let is_file = list.name == "sslcarevocationfile";
        if is_file && self.files.files.read(Path::new(path)).is_ok() {
            self.files.ledger.mapped(list.id);
            return Some(self.files.files.located(Path::new(path)));
        }
        let text = "the list of revoked certificates cannot be read: name one file";
        self.files.ledger.risk(list.id, text);
        *missing = Some("its list of revoked certificates is missing".to_owned());
        None
    }

    /// Replaces a listener on all addresses by one for each address, if all virtual hosts of its port name single
    /// addresses.
    pub(super) fn split_addresses(&mut self) {
        let hosts = self.hosts;
        let words = || hosts.iter().flat_map(|host| &host.words);
        let mut names: Vec<&str> = words().map(|word| host_of(word)).collect();
        names.sort_unstable();
        names.dedup();
        // For instance, all may have the name of the machine.
        self.single_names = matches!(&names[..], [name] if ips(name).is_empty());
        for index in 0..self.plan.listeners.len() {
            let listener = &self.plan.listeners[index];
            let port = listener.port;
            if !listener.address.starts_with("[::]:") && !listener.address.starts_with("0.0.0.0:") {
                continue;
            }
            let is_on_port = |word: &&String| match word.rsplit_once(':') {
                Some((_, own_port)) => own_port == "*" || own_port == port.to_string(),
                None => true,
            };
            let mut addresses: Vec<SocketAddr> = Vec::new();
            let mut are_single = true;
            for word in words().filter(is_on_port) {
                let of_word = ips(host_of(word));
                are_single &= !of_word.is_empty() && !of_word.iter().any(IpAddr::is_unspecified);
                addresses.extend(of_word.into_iter().map(|ip| SocketAddr::new(ip, port)));
            }
            if !are_single || addresses.is_empty() {
                continue;
            }
            addresses.sort();
            addresses.dedup();
            self.plan.listeners[index].address = addresses[0].to_string();
            for &address in &addresses[1..] {
                self.plan.listen(address);
            }
            let text = format!(
                "all virtual hosts of port {port} are of single addresses, and only these are listened on"
            );
            self.files.ledger.say(Weight::Note, None, text);
        }
    }

    /// Whether the front has no listener of its own for the address of this virtual host, as for a host name, which
    /// only the source's machine can resolve.
    pub(super) fn shares_address(&self, host: &Directive, listeners: &[usize]) -> bool {
        let has_listener = |address: SocketAddr| {
            let text = address.to_string();
            let mut own = listeners.iter().map(|&index| &self.plan.listeners[index]);
            own.any(|listener| listener.address == text)
        };
        let is_shared = |word: &String| {
            let (addresses, _) = addresses_of(word);
            let is_here = |it: &SocketAddr| it.ip().is_unspecified() || has_listener(*it);
            !addresses.iter().any(is_here)
        };
        !self.single_names && host.words.iter().any(is_shared)
    }
}

/// The directive of this name that is in force for a virtual host: its own, or that of the server.
fn find_in_force<'d>(
    name: &str,
    inner: &'d [Directive],
    main: &'d [Directive],
) -> Option<&'d Directive> {
    inner.iter().chain(main).find(|it| it.name == name)
}

/// Whether a word of `<VirtualHost>` names exactly the address of a listener.
fn names_address(word: &str, listener: &Listener) -> bool {
    let Ok(own) = listener.address.parse::<SocketAddr>() else {
        return false;
    };
    let (addresses, port) = addresses_of(word);
    // Without a port, the word stands for all ports.
    let has_port = word.ends_with(&format!(":{port}"));
    let is_own = |it: &SocketAddr| !it.ip().is_unspecified() && it.ip() == own.ip();
    (!has_port || port == own.port()) && addresses.iter().any(is_own)
}

/// Whether `SSLProtocol` allows only TLS 1.3. The front has nothing older than TLS 1.2, so only that counts besides.
fn is_newest_alone(words: &[String]) -> bool {
    let mut has_older = false;
    let mut names_newest = false;
    for word in words {
        let lower = word.to_ascii_lowercase();
        names_newest |= lower.ends_with("tlsv1.3");
        let removed = lower.strip_prefix('-');
        let name = removed.unwrap_or_else(|| lower.trim_start_matches('+'));
        if matches!(name, "all" | "tlsv1.2") {
            has_older = removed.is_none();
        }
    }
    names_newest && !has_older
}

/// The host part of a word of `Listen` or `<VirtualHost>`.
fn host_of(word: &str) -> &str {
    match word.rsplit_once(':') {
        Some((host, port)) if port == "*" || port.parse::<u16>().is_ok() => host,
        _ => word,
    }
}

/// The addresses of a host; empty for a name, which only the source's machine can resolve.
fn ips(host: &str) -> Vec<IpAddr> {
    match host {
        "" | "*" | "_default_" => vec![Ipv6Addr::UNSPECIFIED.into()],
        "localhost" => LOOPBACK.to_vec(),
        other => other.trim_matches(['[', ']']).parse().into_iter().collect(),
    }
}

/// The addresses and the port that a word of `Listen` or `<VirtualHost>` stands for.
fn addresses_of(text: &str) -> (Vec<SocketAddr>, u16) {
    // A number alone is a port.
    let (host, port) = match text.parse::<u16>() {
        Ok(port) => ("*", port),
        Err(_) => {
            let port = text.rsplit_once(':').map(|(_, port)| port.parse::<u16>());
            (host_of(text), port.and_then(Result::ok).unwrap_or(80))
        }
    };
    let with_port = |ip: IpAddr| SocketAddr::new(ip, port);
    (ips(host).into_iter().map(with_port).collect(), port)
}

const LOOPBACK: [IpAddr; 2] = [
    IpAddr::V4(Ipv4Addr::LOCALHOST),
    IpAddr::V6(Ipv6Addr::LOCALHOST),
];

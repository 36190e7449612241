//! Where httpd's servers listen: addresses, certificates, and whether they ask clients for certificates.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;

use crate::directive::Directive;
use crate::httpd::host::Reader;
use crate::ledger::Weight;
use crate::plan::{LONGEST, Listener, Tls};
use crate::toml_text::quoted;

impl Reader<'_, '_> {
    /// Adds the addresses of a `Listen`.
    pub(super) fn listen(&mut self, directive: &Directive) {
        let (addresses, port) = addresses_of(directive.word(0));
        self.files.ledger.mapped(directive.id);
        if addresses.is_empty() {
            let text = "only the source's machine knows the address of this name: write it here. Until then it is \
                        kept from the network";
            self.files.ledger.risk(directive.id, text);
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
        let is_wild = |word: &String| {
            let (addresses, _) = addresses_of(word);
            addresses.iter().any(|it| it.ip().is_unspecified())
        };
        if !host.words.iter().all(is_wild) {
            return found;
        }
        let hosts = self.hosts;
        found.retain(|&at| {
            let listener = &self.plan.listeners[at];
            let mut words = hosts.iter().flat_map(|it| &it.words);
            !words.any(|it| names_address(it, listener))
        });
        found
    }

    /// The listeners whose addresses and ports these words of `<VirtualHost>` name.
    fn listeners(&mut self, words: &[String]) -> Vec<usize> {
        let mut found = Vec::new();
        for word in words {
            let (addresses, port) = addresses_of(word);
            let has_port = word
                .rsplit_once(':')
                .is_some_and(|it| it.1.parse::<u16>().is_ok());
            let any = addresses.iter().all(|it| it.ip().is_unspecified());
            let is_one = |it: &Listener| addresses.iter().any(|own| own.to_string() == it.address);
            let fits = |it: &Listener| (it.port == port || !has_port) && (any || is_one(it));
            let known: Vec<usize> = (0..self.plan.listeners.len())
                .filter(|&index| fits(&self.plan.listeners[index]))
                .collect();
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

    pub(super) fn tls(&mut self, inner: &[Directive], listeners: &[usize]) {
        let main = self.main;
        let find = |name: &str| {
            let own = inner.iter().find(|it| it.name == name);
            own.or_else(|| main.iter().find(|it| it.name == name))
        };
        let Some(engine) = find("sslengine") else {
            return;
        };
        self.files.ledger.mapped(engine.id);
        if !engine.word(0).eq_ignore_ascii_case("on") {
            return;
        }
        let mut tls = Tls::default();
        let (chain, key) = (find("sslcertificatefile"), find("sslcertificatekeyfile"));
        match chain {
            Some(chain) => {
                let key_path = key.unwrap_or(chain).word(0).to_owned();
                let path = chain.word(0).to_owned();
                for (id, path) in [(chain.id, &path), (key.unwrap_or(chain).id, &key_path)] {
                    match self.files.files.read(Path::new(path)) {
                        Ok(_) => self.files.ledger.mapped(id),
                        Err(error) => {
                            self.files
                                .ledger
                                .risk(id, format!("`{path}` cannot be read: {error}"));
                            tls.missing = Some("its certificate cannot be read".to_owned());
                        }
                    }
                }
                let place = |it: &str| self.files.files.located(Path::new(it));
                tls.certificates.push((place(&path), place(&key_path)));
            }
            None => {
                self.files
                    .ledger
                    .risk(engine.id, "there is no SSLCertificateFile");
                tls.missing = Some("it has no certificate".to_owned());
            }
        }
        if let Some(chain) = find("sslcertificatechainfile") {
            self.files
                .ledger
                .risk(chain.id, "append this file to that of SSLCertificateFile, or clients may not trust the certificate");
        }
        if let Some(protocol) = find("sslprotocol") {
            if is_newest_alone(&protocol.words) {
                tls.keys.insert("version_min".to_owned(), quoted("1.3"));
            }
            self.files.ledger.mapped(protocol.id);
        }
        self.client_certificates(inner, &mut tls);
        for &listener in listeners {
            let known = self.plan.listeners[listener].tls.get_or_insert_default();
            for certificate in &tls.certificates {
                if !known.certificates.contains(certificate) {
                    known.certificates.push(certificate.clone());
                }
            }
            known.require(&tls.keys);
            known.missing = known.missing.take().or_else(|| tls.missing.clone());
        }
    }

    fn client_certificates(&mut self, inner: &[Directive], tls: &mut Tls) {
        let sections = inner
            .iter()
            .filter(|it| it.name == "location")
            .flat_map(|it| it.inside());
        let mut all = inner
            .iter()
            .chain(self.main)
            .map(|it| (it, true))
            .chain(sections.map(|it| (it, false)));
        let verify = all.find(|(it, _)| {
            it.name == "sslverifyclient" && !it.word(0).eq_ignore_ascii_case("none")
        });
        let main = self.main;
        let find = |name: &str| {
            let own = inner.iter().find(|it| it.name == name);
            own.or_else(|| main.iter().find(|it| it.name == name))
        };
        let authority = find("sslcacertificatefile");
        let depth = find("sslverifydepth");
        let Some((verify, is_whole)) = verify else {
            if let Some(depth) = depth {
                let text = "no certificates of clients are verified";
                self.files.ledger.dropped(depth.id, text);
            }
            return;
        };
        self.chain_length(verify, depth);
        let Some(authority) = authority else {
            tls.missing = Some("its authority of clients' certificates is not named".to_owned());
            let text = match find("sslcacertificatepath") {
                Some(directory) => {
                    self.files.ledger.part(directory.id, verify.id);
                    "join the certificates of SSLCACertificatePath in one file and name it in SSLCACertificateFile: \
                     until then the listener is kept from the network"
                }
                None => "there is no SSLCACertificateFile: the listener is kept from the network",
            };
            return self.files.ledger.risk(verify.id, text);
        };
        let required = is_whole && verify.word(0).eq_ignore_ascii_case("require");
        let value = if required { "required" } else { "optional" };
        tls.keys
            .insert("client_certificate".to_owned(), quoted(value));
        tls.keys.insert(
            "client_ca".to_owned(),
            quoted(&self.files.files.located(Path::new(authority.word(0)))),
        );
        self.files.ledger.mapped(verify.id);
        match self.files.files.read(Path::new(authority.word(0))) {
            Ok(_) => self.files.ledger.mapped(authority.id),
            Err(error) => {
                self.files
                    .ledger
                    .risk(authority.id, format!(
                        "`{}` cannot be read: {error}; until then the listener is kept from the network",
                        authority.word(0)
                    ));
                tls.missing = Some("its CA file for client certificates cannot be read".to_owned());
            }
        }
        let list = find("sslcarevocationfile").or_else(|| find("sslcarevocationpath"));
        self.revoked(list, tls);
    }

    /// Reports whether the front accepts longer chains of client certificates than httpd.
    fn chain_length(&mut self, verify: &Directive, depth: Option<&Directive>) {
        let Some(depth) = depth else {
            return self.files.ledger.risk(verify.id, DEEPER);
        };
        if depth.word(0).parse().is_ok_and(Tls::may_have) {
            self.files.ledger.dropped(depth.id, LONGEST);
        }
    }

    /// Converts the list of revoked client certificates.
    fn revoked(&mut self, list: Option<&Directive>, tls: &mut Tls) {
        let Some(list) = list else { return };
        let path = list.word(0);
        let is_file = list.name == "sslcarevocationfile";
        if is_file && self.files.files.read(Path::new(path)).is_ok() {
            self.files.ledger.mapped(list.id);
            let path = self.files.files.located(Path::new(path));
            tls.keys.insert("client_crl".to_owned(), quoted(&path));
        } else {
            let text = "the list of revoked certificates cannot be read: name one file";
            self.files.ledger.risk(list.id, text);
            tls.missing = Some("its list of revoked certificates is missing".to_owned());
        }
    }

    /// Replaces a listener on all addresses by one for each address, if all virtual hosts of its port name single
    /// addresses.
    pub(super) fn split_addresses(&mut self) {
        let hosts = self.hosts;
        let words = || hosts.iter().flat_map(|it| &it.words);
        let mut names: Vec<&str> = words().map(|it| host_of(it)).collect();
        names.sort_unstable();
        names.dedup();
        // For instance, all may have the name of the machine.
        self.single_names = matches!(&names[..], [name] if ips(name).is_empty());
        for index in 0..self.plan.listeners.len() {
            let (address, port) = (
                &self.plan.listeners[index].address,
                self.plan.listeners[index].port,
            );
            if !address.starts_with("[::]:") && !address.starts_with("0.0.0.0:") {
                continue;
            }
            let on = words().filter(|it| {
                it.rsplit_once(':')
                    .is_none_or(|it| it.1 == "*" || it.1 == port.to_string())
            });
            let own: Vec<Vec<IpAddr>> = on.map(|it| ips(host_of(it))).collect();
            let is_any = |it: &Vec<IpAddr>| it.is_empty() || it.iter().any(IpAddr::is_unspecified);
            if own.is_empty() || own.iter().any(is_any) {
                continue;
            }
            let mut ips = own.concat();
            ips.sort();
            ips.dedup();
            let mut addresses = ips.iter().map(|it| SocketAddr::new(*it, port).to_string());
            self.plan.listeners[index].address = addresses.next().unwrap_or_default();
            for address in addresses {
                self.plan.listener(&address, port);
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
        let own = |word: &String| {
            let (addresses, _) = addresses_of(word);
            let has = |it: &SocketAddr| {
                let address = it.to_string();
                listeners
                    .iter()
                    .any(|&at| self.plan.listeners[at].address == address)
            };
            let is_here = |it: &SocketAddr| it.ip().is_unspecified() || has(it);
            !addresses.iter().any(is_here)
        };
        !self.single_names && host.words.iter().any(own)
    }
}

/// Whether a word of `<VirtualHost>` names exactly the address of a listener.
fn names_address(word: &str, listener: &Listener) -> bool {
    let Ok(own) = listener.address.parse::<SocketAddr>() else {
        return false;
    };
    let (addresses, port) = addresses_of(word);
    let has_port = word.ends_with(&format!(":{port}"));
    let is_own = |it: &SocketAddr| !it.ip().is_unspecified() && it.ip() == own.ip();
    (!has_port || port == own.port()) && addresses.iter().any(is_own)
}

/// Whether `SSLProtocol` allows only TLS 1.3.
fn is_newest_alone(words: &[String]) -> bool {
    let mut older = false;
    for word in words {
        let lower = word.to_ascii_lowercase();
        let (adds, name) = match lower.strip_prefix('-') {
            Some(name) => (false, name),
            None => (true, lower.trim_start_matches('+')),
        };
        older = match name {
            "all" => adds,
            "tlsv1.2" => adds,
            _ => older,
        };
    }
    !older
        && words
            .iter()
            .any(|it| it.to_ascii_lowercase().ends_with("tlsv1.3"))
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
    let port = text.rsplit_once(':').map_or(text, |it| it.1).parse::<u16>();
    let host = match text.parse::<u16>() {
        Ok(_) => "*",
        Err(_) => host_of(text),
    };
    let port = port.unwrap_or(80);
    let all = ips(host).into_iter().map(|it| SocketAddr::new(it, port));
    (all.collect(), port)
}

const DEEPER: &str = "without SSLVerifyDepth, httpd accepts only certificates that an authority of \
                      SSLCACertificateFile has issued itself; the front also accepts those of authorities below it. \
                      Name only authorities whose subordinates you trust as well";

const LOOPBACK: [IpAddr; 2] = [
    IpAddr::V4(Ipv4Addr::LOCALHOST),
    IpAddr::V6(Ipv6Addr::LOCALHOST),
];

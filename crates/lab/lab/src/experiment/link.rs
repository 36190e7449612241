//! `link` of a server: a network with a delay between this server and servers behind it. The link is a process of its
//! own, through whose addresses the server connects to those behind.

use std::borrow::Cow;
use std::collections::BTreeMap;

use toml::Spanned;

use super::Level;
use super::file::{ExperimentFile, LinkKeys, Restart, ServerKeys};
use super::read::FileReader;
use super::template::Addresses;

impl FileReader<'_> {
    /// Adds to the file a server for each link, before the server that has it. A fault is a link to a server that does
    /// not come before.
    pub(super) fn add_links(&mut self, file: &mut ExperimentFile) {
        let mut servers: Vec<Spanned<ServerKeys>> = Vec::new();
        for server in std::mem::take(&mut file.server) {
            if let Some(link) = &server.get_ref().link {
                let is_before =
                    |name: &String| servers.iter().any(|before| before.get_ref().name == *name);
                if let Some(name) = link.to.all().iter().find(|name| !is_before(name)) {
                    let what =
                        format!("`link` leads to {name}, which is no server before this one");
                    self.fault(&server, what);
                }
                // Faults of the link are reported at the server that has it.
                let keys = link_keys(server.get_ref(), link);
                servers.push(Spanned::new(server.span(), keys));
            }
            servers.push(server);
        }
        file.server = servers;
    }
}

/// The keys of the server that is the link from `server` to those in `link.to`.
fn link_keys(server: &ServerKeys, link: &LinkKeys) -> ServerKeys {
    ServerKeys {
        name: name(server),
        target: "link".to_owned(),
        core: link.core,
        core_share: None,
        set: BTreeMap::from([("round_trip".to_owned(), Level::Text(link.rtt.clone()))]),
        unless: server.unless.clone(),
        only: server.only.clone(),
        restart: Restart::Round,
        link: None,
        leads_to: link.to.all().to_vec(),
    }
}

/// The name of a server's link, as a server.
pub(super) fn name(server: &ServerKeys) -> String {
    format!("{}_link", server.name)
}

/// Whether `server` connects to `behind` through its link, and not directly.
pub(super) fn hides(server: &ServerKeys, behind: &ServerKeys) -> bool {
    let link = server.link.as_ref();
    link.is_some_and(|link| link.to.all().contains(&behind.name))
}

/// The setting `to` of a link: its name and value, the URLs of all servers behind the link, separated by spaces. `None`
/// if the server is not a link.
pub(super) fn to_setting(server: &ServerKeys, addresses: &Addresses) -> Option<(String, String)> {
    if server.leads_to.is_empty() {
        return None;
    }
    let mut urls = Vec::new();
    for name in &server.leads_to {
        if let Some(ports) = addresses.get(name) {
            urls.extend(ports.values().map(String::as_str));
        }
    }
    Some(("to".to_owned(), urls.join(" ")))
}

/// The addresses that a server connects to: those of its link in place of those behind the link.
pub(super) fn addresses_for<'a>(
    server: &ServerKeys,
    addresses: &'a Addresses,
) -> Cow<'a, Addresses> {
    let Some(link) = &server.link else {
        return Cow::Borrowed(addresses);
    };
    // The link has one port, with a URL for each URL behind it, in the order of [`to_setting`].
    let link_ports = addresses.get(&name(server));
    let link_urls = link_ports.and_then(|ports| ports.values().next());
    let mut link_urls = link_urls.into_iter().flat_map(|urls| urls.split(' '));
    let mut replaced = addresses.clone();
    for name in link.to.all() {
        let Some(ports) = replaced.get_mut(name) else {
            continue;
        };
        for urls in ports.values_mut() {
            let by_link = urls.split(' ').map(|url| through(url, link_urls.next()));
            *urls = by_link.collect::<Vec<_>>().join(" ");
        }
    }
    Cow::Owned(replaced)
}

/// Replaces host and port of `url` by those of `link_url`. `None` leaves the URL as it is: while a file is only
/// checked, no process has an address.
fn through(url: &str, link_url: Option<&str>) -> String {
    let link_address = link_url.and_then(|link_url| link_url.split_once("://"));
    if let Some((scheme, _)) = url.split_once("://")
        && let Some((_, address)) = link_address
    {
        return format!("{scheme}://{address}");
    }
    url.to_owned()
}

#[cfg(test)]
mod tests {
    use super::super::{Experiment, Levels};
    use super::*;

    const FILE: &str = include_str!("../../fixtures/keepalive.toml");

    fn read(to: &str) -> Result<Experiment, catamaran_toml_file::report::Report> {
        let front = format!(
            "[[server]]\nname = \"front\"\ntarget = \"nginx\"\n\
             link = {{ to = {to}, rtt = \"{{{{ factor.limit }}}}ms\", core = 1 }}\n\
             set = {{ backend = \"{{{{ server.httpd.http }}}}\" }}\n\n[load]\n"
        );
        Experiment::read("k.toml", &FILE.replacen("[load]\n", &front, 1), false)
    }

    #[test]
    fn a_server_sees_those_behind_its_link_through_it() {
        let experiment = read("\"httpd\"").unwrap();
        let cell: &Levels = &experiment.cells[experiment.control];
        let urls = |name: &str, urls: &str| {
            let ports = BTreeMap::from([("http".to_owned(), urls.to_owned())]);
            (name.to_owned(), ports)
        };
        let mut addresses = Addresses::from([urls("httpd", "http://a:1 ajp://a:2")]);
        let link = experiment.server(cell, 1, &addresses).unwrap().unwrap();
        assert_eq!((link.name.as_str(), link.core), ("front_link", Some(1)));
        let set: BTreeMap<String, String> = link.set.into_iter().collect();
        assert_eq!(set["round_trip"], "100ms");
        assert_eq!(set["to"], "http://a:1 ajp://a:2");
        addresses.extend([urls("front_link", "http://b:3 http://b:4")]);
        let front = experiment.server(cell, 2, &addresses).unwrap().unwrap();
        let set: BTreeMap<String, String> = front.set.into_iter().collect();
        assert_eq!(set["backend"], "http://b:3 ajp://b:4");
    }

    #[test]
    fn a_link_leads_to_a_server_before() {
        let fault = read("[\"httpd\", \"nobody\"]").unwrap_err().to_string();
        assert!(fault.contains("`link` leads to nobody"), "{fault}");
    }
}

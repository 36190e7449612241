//! Who asks whom in a cell: servers, load and crowd name the addresses that they ask in their templates.

use std::collections::BTreeSet;

use catamaran_tier::Faults;

use super::file::ServerKeys;
use super::load::Texts;
use super::{Experiment, Level, Levels, link};
use crate::template::{Addresses, PortName};

/// One asks another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PlannedHop {
    /// A server; `None`: the load, or clients beside it.
    pub(crate) from: Option<String>,
    /// The server that is asked.
    pub(crate) to: String,
    /// The name of its port.
    pub(crate) port: String,
    /// The addresses that are asked, with their schemes.
    pub(crate) urls: Vec<String>,
}

impl Experiment {
    /// Who asks whom in a cell, given the addresses of its servers.
    ///
    /// # Errors
    /// Templates that do not render.
    pub(crate) fn hops(
        &self,
        cell: &Levels,
        addresses: &Addresses,
    ) -> Result<Vec<PlannedHop>, Faults> {
        let mut text = Texts::new(cell, addresses);
        let mut asked = text.ports_read(&self.load.url);
        for keys in &self.beside {
            asked.extend(text.ports_read(&keys.url));
        }
        let crowd = self.load.crowd.as_ref().and_then(|keys| keys.url.as_ref());
        if self.load(cell, addresses)?.crowd.is_some() {
            asked.extend(crowd.into_iter().flat_map(|url| text.ports_read(url)));
        }
        let asked = text.or(asked)?;
        let of_load = |port: PortName| hop(None, port, addresses);
        let mut hops: Vec<PlannedHop> = asked.into_iter().filter_map(of_load).collect();
        for (number, keys) in self.servers.iter().enumerate() {
            if self.server(cell, number, addresses)?.is_some() {
                hops.extend(hops_of_server(keys, cell, addresses)?);
            }
        }
        Ok(hops)
    }
}

/// Those of a server. One that has a link asks the link, and the link asks all that is behind it.
fn hops_of_server(
    keys: &ServerKeys,
    cell: &Levels,
    addresses: &Addresses,
) -> Result<Vec<PlannedHop>, Faults> {
    let seen = link::seen(keys, addresses);
    let mut text = Texts::new(cell, &seen);
    let mut asked = BTreeSet::new();
    for value in keys.set.values() {
        if let Level::Text(value) = value {
            asked.extend(text.ports_read(value));
        }
    }
    for name in &keys.leads_to {
        let ports = addresses.get(name).into_iter().flatten();
        asked.extend(ports.map(|(port, _)| PortName {
            server: name.clone(),
            port: port.clone(),
        }));
    }
    let asked = text.or(asked)?;
    let of_server = |port: PortName| {
        let direct = hop(Some(&keys.name), port, &seen)?;
        Some(link::through_link(keys, direct, addresses))
    };
    Ok(asked.into_iter().filter_map(of_server).collect())
}

/// `None` of a server that the cell does without.
fn hop(from: Option<&String>, asked: PortName, addresses: &Addresses) -> Option<PlannedHop> {
    let urls = addresses.get(&asked.server)?.get(&asked.port)?;
    Some(PlannedHop {
        from: from.cloned(),
        to: asked.server,
        urls: urls.split_whitespace().map(str::to_owned).collect(),
        port: asked.port,
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::builtin;

    /// Addresses of servers, each with ports and their numbers.
    fn addresses(servers: &[(&str, &[(&str, u16)])]) -> Addresses {
        let ports = |ports: &[(&str, u16)]| -> BTreeMap<String, String> {
            let url = |(name, number): &(&str, u16)| {
                ((*name).to_owned(), format!("{name}://127.0.0.1:{number}"))
            };
            ports.iter().map(url).collect()
        };
        let servers = servers.iter();
        servers
            .map(|(name, all)| ((*name).to_owned(), ports(all)))
            .collect()
    }

    fn words(hops: &[PlannedHop]) -> Vec<String> {
        let word = |hop: &PlannedHop| {
            let from = hop.from.as_deref().unwrap_or("load");
            format!("{from} {} {} {}", hop.to, hop.port, hop.urls.join(" "))
        };
        hops.iter().map(word).collect()
    }

    #[test]
    fn templates_say_who_asks_whom() {
        let experiment = builtin::experiment("front-page", true).unwrap();
        let is_ajp = |cell: &&Levels| cell["front"].to_string() == "ours-ajp";
        let cell = experiment.cells.iter().find(is_ajp).unwrap();
        let addresses = addresses(&[
            ("app", &[("http", 1), ("ajp", 2)]),
            ("front", &[("http", 3), ("admin", 4)]),
        ]);
        let hops = experiment.hops(cell, &addresses).unwrap();
        let expected = [
            "load front http http://127.0.0.1:3",
            "front app ajp ajp://127.0.0.1:2",
        ];
        assert_eq!(words(&hops), expected);
    }

    #[test]
    fn a_server_with_a_link_asks_the_link() {
        let front = "[[server]]\nname = \"front\"\ntarget = \"nginx\"\n\
                     link = { to = \"httpd\", rtt = \"1ms\", core = 1 }\n\
                     set = { backend = \"{{ server.httpd.http }}\" }\n\n[load]\n";
        let file = include_str!("../../fixtures/keepalive.toml");
        let text = file.replacen("[load]\n", front, 1);
        let experiment = Experiment::read("k.toml", &text, false).unwrap();
        let mut addresses = addresses(&[
            ("httpd", &[("http", 1), ("https", 2)]),
            ("front", &[("http", 5)]),
        ]);
        let ends = "http://127.0.0.1:3 http://127.0.0.1:4".to_owned();
        let of_link = BTreeMap::from([("http".to_owned(), ends)]);
        addresses.insert("front_link".to_owned(), of_link);
        let cell = &experiment.cells[experiment.control];
        let hops = experiment.hops(cell, &addresses).unwrap();
        let expected = [
            "load httpd http http://127.0.0.1:1",
            "front_link httpd http http://127.0.0.1:1",
            "front_link httpd https https://127.0.0.1:2",
            "front front_link http http://127.0.0.1:3",
        ];
        assert_eq!(words(&hops), expected);
    }

    /// Every cell of ours has a way from its load to each of its servers.
    #[test]
    fn each_server_of_each_experiment_is_asked() {
        for name in builtin::names() {
            let experiment = builtin::experiment(name, true).unwrap();
            for cell in &experiment.cells {
                let mut addresses = Addresses::new();
                for number in 0..experiment.servers() {
                    crate::check::server(&experiment, cell, number, &mut addresses).unwrap();
                }
                let hops = experiment.hops(cell, &addresses).unwrap();
                for server in addresses.keys() {
                    let is_asked = hops.iter().any(|hop| hop.to == *server);
                    assert!(
                        is_asked,
                        "{name}: nobody asks {server} in {cell:?}: {hops:?}"
                    );
                }
            }
        }
    }
}

//! Who asks whom in a cell: read from the addresses that stand in the servers' settings.

use std::collections::BTreeMap;
use std::net::SocketAddr;

/// A server, or the load, as it is drawn.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Node {
    pub(crate) name: String,
    /// Its kind, or for the load what it is.
    pub(crate) kind: String,
    /// What else is said of it, a line each.
    pub(crate) lines: Vec<String>,
    /// Ports by their scheme.
    pub(crate) ports: Vec<(String, Vec<SocketAddr>)>,
    pub(crate) pid: Option<u32>,
    pub(crate) core: Option<usize>,
    /// Texts in which it names those that it asks: settings, or URLs.
    pub(crate) texts: Vec<String>,
}

/// One asks another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Hop {
    /// Numbers of nodes.
    pub(crate) from: usize,
    pub(crate) to: usize,
    /// What is spoken: the scheme of the port.
    pub(crate) scheme: String,
    /// The ports that are asked.
    pub(crate) ports: Vec<u16>,
}

/// A cell's servers and who asks whom.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Topology {
    /// The load is the first.
    pub(crate) nodes: Vec<Node>,
    pub(crate) hops: Vec<Hop>,
    /// Numbers of nodes by their distance from the load. Those that nobody asks are in the last layer.
    pub(crate) layers: Vec<Vec<usize>>,
}

impl Topology {
    /// `nodes` begin with the load. Ports that nobody asks are left out of servers that are asked.
    pub(crate) fn of(mut nodes: Vec<Node>) -> Self {
        let mut hops = Vec::new();
        for (from, node) in nodes.iter().enumerate() {
            for (to, other) in nodes.iter().enumerate().filter(|(to, _)| *to != from) {
                for (scheme, addresses) in &other.ports {
                    let is_asked = |address: &&SocketAddr| {
                        node.texts.iter().any(|text| names(text, **address))
                    };
                    let asked = addresses.iter().filter(is_asked);
                    let ports: Vec<u16> = asked.map(SocketAddr::port).collect();
                    if !ports.is_empty() {
                        let scheme = scheme.clone();
                        hops.push(Hop {
                            from,
                            to,
                            scheme,
                            ports,
                        });
                    }
                }
            }
        }
        for (number, node) in nodes.iter_mut().enumerate() {
            let asked = hops.iter().filter(|hop| hop.to == number);
            let asked: Vec<&str> = asked.map(|hop| hop.scheme.as_str()).collect();
            if !asked.is_empty() {
                node.ports
                    .retain(|(scheme, _)| asked.contains(&scheme.as_str()));
            }
        }
        let layers = layers(nodes.len(), &hops);
        Self {
            nodes,
            hops,
            layers,
        }
    }

    /// The layer of a node.
    pub(crate) fn layer(&self, node: usize) -> usize {
        let found = self.layers.iter().position(|layer| layer.contains(&node));
        found.unwrap_or(0)
    }
}

/// Whether the text has the address; a longer number is another port.
fn names(text: &str, address: SocketAddr) -> bool {
    let address = address.to_string();
    text.match_indices(&address).any(|(at, _)| {
        let next = text[at + address.len()..].chars().next();
        let before = text[..at].chars().next_back();
        !next.is_some_and(|next| next.is_ascii_digit())
            && !before.is_some_and(|before| before.is_ascii_digit() || before == '.')
    })
}

/// Each node as far from the first one as the longest way to it.
fn layers(nodes: usize, hops: &[Hop]) -> Vec<Vec<usize>> {
    let mut depths: BTreeMap<usize, usize> = BTreeMap::from([(0, 0)]);
    // A way has fewer hops than there are nodes, which also ends rings.
    for _ in 0..nodes {
        for hop in hops {
            if let Some(depth) = depths.get(&hop.from).copied().filter(|it| *it + 1 < nodes) {
                let known = depths.entry(hop.to).or_insert(0);
                *known = (*known).max(depth + 1);
            }
        }
    }
    let last = depths
        .values()
        .copied()
        .max()
        .unwrap_or(0)
        .max(usize::from(nodes > 1));
    let mut layers = vec![Vec::new(); last + 1];
    for node in 0..nodes {
        layers[depths.get(&node).copied().unwrap_or(last)].push(node);
    }
    layers.retain(|layer| !layer.is_empty());
    layers
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A node whose ports are of one scheme.
    pub(crate) fn node(name: &str, scheme: &str, ports: &[u16], texts: &[&str]) -> Node {
        let addresses = ports
            .iter()
            .map(|port| ([127, 0, 0, 1], *port).into())
            .collect();
        Node {
            name: name.to_owned(),
            kind: name.to_owned(),
            ports: if ports.is_empty() {
                Vec::new()
            } else {
                vec![(scheme.to_owned(), addresses)]
            },
            pid: Some(4711),
            texts: texts.iter().map(|text| (*text).to_owned()).collect(),
            ..Node::default()
        }
    }

    /// A load, a front, and two applications.
    pub(crate) fn two_applications() -> Topology {
        Topology::of(vec![
            node("load", "", &[], &["http://127.0.0.1:8005/"]),
            node("app1", "ajp", &[8001], &[]),
            node("app2", "ajp", &[8002], &[]),
            node(
                "front",
                "http",
                &[8005],
                &["[\"ajp://127.0.0.1:8001\", \"ajp://127.0.0.1:8002\"]"],
            ),
        ])
    }

    #[test]
    fn settings_say_who_asks_whom() {
        let topology = two_applications();
        let hops = topology
            .hops
            .iter()
            .map(|hop| (hop.from, hop.to, hop.scheme.as_str()));
        let hops: Vec<_> = hops.collect();
        assert_eq!(hops, [(0, 3, "http"), (3, 1, "ajp"), (3, 2, "ajp")]);
        assert_eq!(topology.layers, [vec![0], vec![3], vec![1, 2]]);
        assert_eq!(topology.layer(2), 2);
    }

    #[test]
    fn ports_that_nobody_asks_are_left_out() {
        let mut front = node("front", "http", &[8001], &[]);
        let admin = vec![([127, 0, 0, 1], 8002).into()];
        front.ports.push(("admin".to_owned(), admin));
        let load = node("load", "", &[], &["http://127.0.0.1:8001/"]);
        let topology = Topology::of(vec![load, front.clone()]);
        assert_eq!(topology.nodes[1].ports, front.ports[..1]);
        let unasked = Topology::of(vec![node("load", "", &[], &[]), front.clone()]);
        assert_eq!(unasked.nodes[1].ports, front.ports);
    }

    #[test]
    fn an_address_is_not_the_beginning_of_another() {
        let address = ([127, 0, 0, 1], 8001).into();
        assert!(names("http://127.0.0.1:8001/", address));
        assert!(names("127.0.0.1:8001", address));
        assert!(!names("127.0.0.1:80015", address));
        assert!(!names("1127.0.0.1:8001 10.127.0.0.1:8001", address));
    }

    #[test]
    fn who_is_asked_twice_stands_behind_both_and_who_is_not_stands_last() {
        let topology = Topology::of(vec![
            node("load", "", &[], &["127.0.0.1:1"]),
            node("cache", "http", &[3], &[]),
            node("gateway", "http", &[2], &["127.0.0.1:3"]),
            node("front", "http", &[1], &["127.0.0.1:2 127.0.0.1:3"]),
            node("lonely", "http", &[4], &[]),
        ]);
        assert_eq!(topology.layers, [vec![0], vec![3], vec![2], vec![1, 4]]);
        let alone = Topology::of(vec![node("load", "", &[], &[])]);
        assert_eq!(alone.layers, [vec![0]]);
    }
}

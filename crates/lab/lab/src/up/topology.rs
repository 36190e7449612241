//! Who asks whom in a cell, by its plan, and in which layers that puts its servers.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use crate::experiment::PlannedHop;

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
    pub(crate) fn of(mut nodes: Vec<Node>, planned: &[PlannedHop]) -> Self {
        let mut hops: Vec<Hop> = Vec::new();
        for hop in planned.iter().filter_map(|hop| Hop::of(hop, &nodes)) {
            let way = |it: &Hop| (it.from, it.to, it.scheme.clone());
            match hops.iter_mut().find(|known| way(known) == way(&hop)) {
                // Through a link, several servers are asked at ports of one.
                Some(known) => known.ports.extend(hop.ports),
                None => hops.push(hop),
            }
        }
        for hop in &mut hops {
            hop.ports.sort_unstable();
            hop.ports.dedup();
        }
        let place = |hop: &Hop| {
            let mut ports = nodes[hop.to].ports.iter();
            ports.position(|(scheme, _)| *scheme == hop.scheme)
        };
        hops.sort_by_key(|hop| (hop.from, hop.to, place(hop)));
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

impl Hop {
    /// `None` of a server that is not there.
    fn of(planned: &PlannedHop, nodes: &[Node]) -> Option<Self> {
        // The load is no server, whatever servers are called.
        let place = |name: &String| Some(1 + nodes[1..].iter().position(|it| it.name == *name)?);
        let number = |url: &String| url.rsplit_once(':')?.1.parse().ok();
        let ports: Vec<u16> = planned.urls.iter().filter_map(number).collect();
        Some(Self {
            from: planned.from.as_ref().map_or(Some(0), place)?,
            to: place(&planned.to)?,
            scheme: planned.port.clone(),
            ports,
        })
    }
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
    pub(crate) fn node(name: &str, scheme: &str, ports: &[u16]) -> Node {
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
            ..Node::default()
        }
    }

    /// A hop to all these ports of one scheme; the one that asks is empty for the load.
    pub(crate) fn hop(from: &str, to: &str, scheme: &str, ports: &[u16]) -> PlannedHop {
        let url = |port: &u16| format!("{scheme}://127.0.0.1:{port}");
        PlannedHop {
            from: Some(from.to_owned()).filter(|from| !from.is_empty()),
            to: to.to_owned(),
            port: scheme.to_owned(),
            urls: ports.iter().map(url).collect(),
        }
    }

    /// A load, a front, and two applications.
    pub(crate) fn two_applications() -> Topology {
        Topology::of(
            vec![
                node("load", "", &[]),
                node("app1", "ajp", &[8001]),
                node("app2", "ajp", &[8002]),
                node("front", "http", &[8005]),
            ],
            &[
                hop("front", "app2", "ajp", &[8002]),
                hop("front", "app1", "ajp", &[8001]),
                hop("", "front", "http", &[8005]),
            ],
        )
    }

    #[test]
    fn hops_stand_by_those_who_ask_and_servers_in_layers() {
        let topology = two_applications();
        let hops = topology
            .hops
            .iter()
            .map(|hop| (hop.from, hop.to, hop.scheme.as_str()));
        let hops: Vec<_> = hops.collect();
        assert_eq!(hops, [(0, 3, "http"), (3, 1, "ajp"), (3, 2, "ajp")]);
        assert_eq!(topology.hops[0].ports, [8005]);
        assert_eq!(topology.layers, [vec![0], vec![3], vec![1, 2]]);
        assert_eq!(topology.layer(2), 2);
    }

    #[test]
    fn ports_that_nobody_asks_are_left_out() {
        let mut front = node("front", "http", &[8001]);
        let admin = vec![([127, 0, 0, 1], 8002).into()];
        front.ports.push(("admin".to_owned(), admin));
        let nodes = vec![node("load", "", &[]), front.clone()];
        let asked = [hop("", "front", "http", &[8001])];
        let topology = Topology::of(nodes.clone(), &asked);
        assert_eq!(topology.nodes[1].ports, front.ports[..1]);
        let unasked = Topology::of(nodes, &[]);
        assert_eq!(unasked.nodes[1].ports, front.ports);
    }

    #[test]
    fn ports_of_one_server_are_one_hop() {
        let nodes = vec![node("load", "", &[]), node("link", "http", &[1, 2, 3])];
        let asked = [&[2, 3][..], &[1], &[3]].map(|ports| hop("", "link", "http", ports));
        let topology = Topology::of(nodes, &asked);
        assert_eq!(topology.hops.len(), 1);
        assert_eq!(topology.hops[0].ports, [1, 2, 3]);
    }

    #[test]
    fn a_server_that_is_called_load_is_not_the_load() {
        let nodes = vec![node("load", "", &[]), node("load", "http", &[1])];
        let topology = Topology::of(nodes, &[hop("", "load", "http", &[1])]);
        assert_eq!((topology.hops[0].from, topology.hops[0].to), (0, 1));
        let gone = hop("load", "app", "http", &[2]);
        assert!(Topology::of(topology.nodes, &[gone]).hops.is_empty());
    }

    #[test]
    fn who_is_asked_twice_stands_behind_both_and_who_is_not_stands_last() {
        let topology = Topology::of(
            vec![
                node("load", "", &[]),
                node("cache", "http", &[3]),
                node("gateway", "http", &[2]),
                node("front", "http", &[1]),
                node("lonely", "http", &[4]),
            ],
            &[
                hop("", "front", "http", &[1]),
                hop("gateway", "cache", "http", &[3]),
                hop("front", "gateway", "http", &[2]),
                hop("front", "cache", "http", &[3]),
            ],
        );
        assert_eq!(topology.layers, [vec![0], vec![3], vec![2], vec![1, 4]]);
        let alone = Topology::of(vec![node("load", "", &[])], &[]);
        assert_eq!(alone.layers, [vec![0]]);
    }
}

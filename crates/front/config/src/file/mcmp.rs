//! `[mcmp]`: where mod_cluster's nodes announce themselves.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV4};
use std::ops::Range;
use std::path::PathBuf;

use catamaran_proxy::config::{AdvertConfig, McmpSource};
use ipnet::IpNet;
use toml::Spanned;
use toml::de::DeValue;

use super::Surroundings;
use crate::fill;
use crate::key::{ALL, Group, Key, Part, Preset, Section};
use crate::report::{Finding, Report};
use crate::table::{Table, table};
use crate::value::address::parse_socket;
use crate::value::route::parse_path;
use crate::value::text::{file_path, parse_network};
use crate::value::{OneOrMore, Optional, Switch, Syntax};

/// The settings of `[mcmp]`; their place is that of the header.
#[derive(Debug)]
pub(crate) struct Mcmp {
    /// The settings; `None` if a key of the table has a fault, which is reported.
    pub(crate) value: Option<McmpSource>,
    pub(crate) place: Range<usize>,
}

/// The values of the keys of `[mcmp]`, before they are checked against each other.
#[derive(Default)]
struct RawMcmp {
    listen: Option<SocketAddr>,
    peers: Option<Vec<IpNet>>,
    members: Option<Vec<IpNet>>,
    paths: Vec<String>,
    advertises: bool,
    group: Option<SocketAddrV4>,
    interface: Option<Ipv4Addr>,
    key_file: Option<PathBuf>,
}

/// Reads `[mcmp]`.
pub(crate) fn read(
    value: &Spanned<DeValue<'_>>,
    surroundings: &Surroundings<'_>,
    report: &mut Report,
) -> Option<Mcmp> {
    let (place, entries) = table(SECTION.header, value, report)?;
    let mut table = Table::new(&SECTION, place.clone(), entries);
    let mut written = RawMcmp::default();
    // The keys about multicast are read only with `advertise`; without it they have no effect, and their values do not
    // matter.
    let (advert_keys, keys): (Vec<_>, Vec<_>) = KEYS.iter().partition(|key| key.group == ADVERT);
    table.read(keys, &mut written);
    if table.is_empty_list("peers") {
        let message = "`peers` names nobody, so no node can announce itself";
        let hint = "write the networks that nodes connect from";
        table.push(Finding::fault(message, table.place_of("peers")).hint(hint));
    }
    let mut advertise = None;
    if written.advertises {
        table.read(advert_keys, &mut written);
        advertise = advert(&mut table, &written, surroundings);
    } else {
        for (name, place) in table.written(KEYS, |group| group == ADVERT) {
            let message = format!("`{name}` has no effect without advertise = true");
            table.push(Finding::warning(message, place).hint("write it, or remove this"));
        }
    }
    table.finish(report);
    let source = (written.listen.zip(written.peers)).map(|(listen, peers)| McmpSource {
        listen,
        // Without `members`, nodes serve at the addresses that they may announce themselves from.
        members: written.members.unwrap_or_else(|| peers.clone()),
        peers,
        paths: written.paths,
        nodes_max: 1000,
        advertise,
    });
    Some(Mcmp {
        value: source,
        place,
    })
}

/// The settings of advertisements by multicast; `None` if a key has a fault.
fn advert(
    table: &mut Table<'_>,
    written: &RawMcmp,
    surroundings: &Surroundings<'_>,
) -> Option<AdvertConfig> {
    let usual_group = SocketAddrV4::new(GROUP_USUAL, PORT_USUAL);
    let group = written.group.unwrap_or(usual_group);
    if !group.ip().is_multicast() {
        let message = "`group` is no address of a group: those are 224.0.0.0 to 239.255.255.255";
        table.push(Finding::fault(message, table.place_of("group")));
    }
    let listen_ip = match written.listen?.ip() {
        IpAddr::V4(ip) if !ip.is_unspecified() => Some(ip),
        _ => None,
    };
    let interface = written.interface.or(listen_ip);
    if interface.is_none() {
        let message = "with advertise = true `interface` must say through which address";
        let hint =
            "write interface = \"10.0.0.1\", the address of this machine that nodes can reach";
        table.push(Finding::fault(message, table.place_of("advertise")).hint(hint));
    }
    let key_file = written.key_file.as_deref();
    let key = key_file.and_then(|path| surroundings.secret("key_file", path, Ok, table));
    Some(AdvertConfig {
        group: (*group.ip(), group.port()),
        interface: interface?,
        key,
    })
}

/// The multicast group that mod_cluster uses by default.
const GROUP_USUAL: Ipv4Addr = Ipv4Addr::new(224, 0, 1, 105);
const PORT_USUAL: u16 = 23364;

pub(crate) static SECTION: Section = Section {
    header: "[mcmp]",
    intro: "Where nodes of mod_cluster (WildFly, JBoss EAP, Tomcat) announce themselves: they are the members of \
            the upstream with from = \"mcmp\". The front is told by nobody who a node is, so it believes every client that \
            is among `peers`. [fleet.md](fleet.md) has what WildFly needs.",
    keys: &[Part::all(&KEYS)],
    later: &[("use_alias", "write `hosts` in a [[route]]")],
};

/// Keys about advertisements by multicast, which have no effect without `advertise`.
const ADVERT: Group = Group("advert");

static KEYS: &[Key<RawMcmp>] = &[
    Key {
        name: "listen",
        group: ALL,
        value: fill!(
            Optional(Syntax {
                what: "an address and port such as \"10.0.0.1:6666\"",
                parse: parse_socket,
            }),
            RawMcmp.listen
        ),
        preset: Preset::Required,
        sample: "\"10.0.0.1:6666\"",
        effect: "Where nodes connect to. It is no listener of clients, and has no TLS: use an address of an \
                 inner network.",
        extremes: "While another process has it, as at an upgrade, the front tries again ten times a second.",
        elsewhere: "httpd `EnableMCMPReceive`",
    },
    Key {
        name: "peers",
        group: ALL,
        value: fill!(
            Optional(OneOrMore(Syntax {
                what: "an IP address or a network such as \"10.0.0.0/24\"",
                parse: parse_network,
            })),
            RawMcmp.peers
        ),
        preset: Preset::Required,
        sample: "\"10.0.0.0/24\"",
        effect: "Who may connect. Connections of others are closed at once, and counted as `peer`.",
        extremes: "Every client among them can get a part of the requests: name the nodes' network alone.",
        elsewhere: "httpd `Require ip` of the `<VirtualHost>` for MCMP",
    },
    Key {
        name: "members",
        group: ALL,
        value: fill!(
            Optional(OneOrMore(Syntax {
                what: "an IP address or a network such as \"10.0.1.0/24\"",
                parse: parse_network,
            })),
            RawMcmp.members
        ),
        preset: Preset::Unset("the networks of `peers`"),
        sample: "\"10.0.1.0/24\"",
        effect: "Where members may be. A node that announces an address elsewhere, or a name, is refused.",
        extremes: "A wide network lets a node send requests to whatever it names.",
        elsewhere: "",
    },
    Key {
        name: "paths",
        group: ALL,
        value: fill!(
            OneOrMore(Syntax {
                what: "a path such as \"/\"",
                parse: parse_path,
            }),
            RawMcmp.paths
        ),
        preset: Preset::Value("[]"),
        sample: "[\"/shop\"]",
        effect: "Contexts at these paths and below become routes to the upstream, for any host, which send requests \
                 to the nodes that have the context enabled. A route of the file with the same path wins. \
                 Without `paths` the file alone has routes.",
        extremes: "With \"/\" whatever is deployed on a node is public.",
        elsewhere: "httpd `CreateBalancers`",
    },
    Key {
        name: "advertise",
        group: ALL,
        value: fill!(Switch, RawMcmp.advertises),
        preset: Preset::Value("false"),
        sample: "true",
        effect: "Whether the front tells nodes by multicast each 5 s where it is. Without it nodes need its address \
                 (`proxies` of WildFly's modcluster subsystem).",
        extremes: "Networks of clouds carry no multicast.",
        elsewhere: "httpd `ServerAdvertise`",
    },
    Key {
        name: "group",
        group: ADVERT,
        value: fill!(
            Optional(Syntax {
                what: "an address and port such as \"224.0.1.105:23364\"",
                parse: parse_socket,
            }),
            RawMcmp.group
        ),
        preset: Preset::Unset("\"224.0.1.105:23364\", which nodes have, too"),
        sample: "\"224.0.1.106:23364\"",
        effect: "The group that is told.",
        extremes: "Nodes that listen to another one hear nothing.",
        elsewhere: "httpd `AdvertiseGroup`",
    },
    Key {
        name: "interface",
        group: ADVERT,
        value: fill!(
            Optional(Syntax {
                what: "an address of this machine such as \"10.0.0.1\"",
                parse: str::parse,
            }),
            RawMcmp.interface
        ),
        preset: Preset::Unset("the address of `listen`"),
        sample: "\"10.0.0.2\"",
        effect: "The address of the interface that the group is told through.",
        extremes: "An address that this machine does not have tells nobody.",
        elsewhere: "httpd `AdvertiseBindAddress`",
    },
    Key {
        name: "key_file",
        group: ADVERT,
        value: fill!(Optional(file_path("the path of a file")), RawMcmp.key_file),
        preset: Preset::Unset("the front has no key"),
        sample: "\"advertise.key\"",
        effect: "A file whose first line is the key that nodes know the front by: `advertise-security-key` of \
                 WildFly. It proves the front to nodes, and no node to the front.",
        extremes: "A node with a key ignores a front without it.",
        elsewhere: "httpd `AdvertiseSecurityKey`",
    },
];

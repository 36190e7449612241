//! The nodes that announced themselves, and the answers to their messages. Pure: the time is an argument.
//!
//! A node is identified by its JVMRoute, and belongs to the address that announced it: messages about it from other
//! addresses are refused. It is removed when it says that it leaves, or when it was silent for [`SILENCE_MAX`].

pub mod record;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::IpAddr;
use std::time::Duration;

use md5::{Digest as _, Md5};
use serde::{Deserialize, Serialize};

use super::message::{AppMessage, Message, NodeConfig, Verb};
use crate::member::{FoundContext, FoundMember, FoundState, Place};
use crate::merge::Answer;

/// All nodes that the front knows, by their JVMRoutes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Nodes {
    nodes: BTreeMap<String, Node>,
    /// The names of nodes that announced since the last list that they leave.
    left: Vec<String>,
    /// The number of accepted announcements (CONFIG), including those of known nodes. The number at an announcement
    /// becomes the id of the node that made it.
    announced: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Node {
    config: NodeConfig,
    /// The address from which the node was announced, which alone may send messages about it.
    peer: IpAddr,
    /// A number that distinguishes the node from earlier ones with the same name.
    id: u64,
    load: i32,
    heard: Duration,
    contexts: BTreeMap<ContextKey, FoundState>,
}

/// A context of a virtual host: several hosts of a node may have contexts of the same path.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct ContextKey {
    path: String,
    /// The MD5 of the host's aliases, which would be longer.
    host: [u8; 16],
}

impl ContextKey {
    fn new(path: &str, alias: &str) -> Self {
        Self {
            path: path.to_owned(),
            host: Md5::digest(alias).into(),
        }
    }
}

/// The answer to a node's message, and whether the message changed the nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// The body of the response.
    pub text: String,
    /// Whether the message changed the nodes, so that a new list of members must be sent.
    pub changed: bool,
}

/// Why a message is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum McmpRefusal {
    /// The front does not know the node, which must announce itself first.
    Unknown,
    /// The node was announced from another address than the one that sent this message.
    Forged,
    /// The node's host is in none of the networks in which members may be.
    Network,
    /// There are too many nodes, or too many contexts of this node.
    TooMany,
}

impl McmpRefusal {
    /// The reason as a token, for counters.
    #[must_use]
    pub fn token(self) -> &'static str {
        match self {
            Self::Unknown => "unknown-node",
            Self::Forged => "forged",
            Self::Network => "network",
            Self::TooMany => "too-many",
        }
    }

    /// The message of the refusal that is sent to the node.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::Unknown => "MEM: Can't read node",
            Self::Forged => "MEM: Old node still exist",
            Self::Network => "SYNTAX: Host is not allowed here",
            Self::TooMany => "MEM: Can't update or insert node",
        }
    }

    /// MCMP's kind of the fault: after MEM a node announces itself again, after SYNTAX it gives up.
    #[must_use]
    pub fn kind(self) -> &'static str {
        match self {
            Self::Network => "SYNTAX",
            Self::Unknown | Self::Forged | Self::TooMany => "MEM",
        }
    }
}

/// The rules and facts by which messages of nodes are accepted or refused.
#[derive(Clone, Copy)]
pub struct NodeRules<'r> {
    /// Returns whether a member may have this host.
    pub may_be_member: &'r dyn Fn(&str) -> bool,
    /// Returns how many requests a member has in flight.
    pub in_flight: &'r dyn Fn(&str) -> u64,
    /// The most nodes that are accepted.
    pub nodes_max: usize,
}

impl Nodes {
    /// Applies a node's message and returns the answer to it.
    ///
    /// # Errors
    /// Why the message is refused; nothing was changed.
    pub fn handle(
        &mut self,
        message: &Message,
        peer: IpAddr,
        now: Duration,
        rules: &NodeRules<'_>,
    ) -> Result<Reply, McmpRefusal> {
        match message {
            Message::Ping => Ok(Reply {
                text: format!("Type=PING-RSP&State=OK&id={}", self.announced),
                changed: false,
            }),
            Message::Info => Ok(Reply {
                text: self.info(),
                changed: false,
            }),
            Message::Config(config) => self.config(config, peer, now, rules),
            Message::Status { route, load } => {
                let node = self.owned(route, peer)?;
                node.heard = now;
                let changed = node.load != *load;
                node.load = *load;
                let id = node.id;
                let text = format!("Type=STATUS-RSP&JVMRoute={route}&State=OK&id={id}");
                Ok(Reply { text, changed })
            }
            Message::App(app) => self.app(app, peer, now, rules),
        }
    }

    /// Whether no node is known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Removes the nodes for which `is_believed` is `false`; it gets the address that announced a node, and the
    /// node's host.
    pub fn retain(&mut self, is_believed: impl Fn(IpAddr, &str) -> bool) {
        self.nodes
            .retain(|_, node| is_believed(node.peer, &node.config.host));
    }

    /// Removes nodes that were silent for too long; returns whether there were any.
    pub fn expire(&mut self, now: Duration) -> bool {
        let before = self.nodes.len();
        self.nodes.retain(|_, node| node.heard + SILENCE_MAX > now);
        self.nodes.len() < before
    }

    /// When the node that has been silent longest is removed, if it stays silent; `None`: there are no nodes.
    #[must_use]
    pub fn deadline(&self) -> Option<Duration> {
        self.nodes
            .values()
            .map(|node| node.heard + SILENCE_MAX)
            .min()
    }

    /// The answer with all nodes as members, and those that left since the last call, which are then forgotten.
    pub fn answer(&mut self) -> Answer {
        Answer::Members {
            found: self.nodes.values().map(Node::as_member).collect(),
            left: std::mem::take(&mut self.left),
        }
    }

    /// Handles CONFIG, by which a node announces itself.
    fn config(
        &mut self,
        config: &NodeConfig,
        peer: IpAddr,
        now: Duration,
        rules: &NodeRules<'_>,
    ) -> Result<Reply, McmpRefusal> {
        if !(rules.may_be_member)(&config.host) {
            return Err(McmpRefusal::Network);
        }
        let known = self.nodes.get(&config.route);
        if known.is_some_and(|node| node.peer != peer) {
            return Err(McmpRefusal::Forged);
        }
        self.remove_predecessor(config, peer)?;
        if known_count(&self.nodes, &config.route) >= rules.nodes_max {
            return Err(McmpRefusal::TooMany);
        }
        self.announced += 1;
        let (load, contexts) = match self.nodes.remove(&config.route) {
            // The node announces its contexts anew, too; those that it had serve until then.
            Some(known) if known.config == *config => (known.load, known.contexts),
            // A new node has the smallest load factor until it tells its own, and no contexts.
            _ => (1, BTreeMap::new()),
        };
        let node = Node {
            config: config.clone(),
            peer,
            id: self.announced,
            load,
            heard: now,
            contexts,
        };
        // A node that is back must not be reported as one that left.
        self.left.retain(|route| *route != config.route);
        self.nodes.insert(config.route.clone(), node);
        Ok(Reply {
            text: String::new(),
            changed: true,
        })
    }

    /// Removes the node that had the address of `config` under another name: it was restarted, so it could not say that
    /// it leaves.
    fn remove_predecessor(&mut self, config: &NodeConfig, peer: IpAddr) -> Result<(), McmpRefusal> {
        let is_predecessor = |node: &&Node| {
            node.config.host == config.host
                && node.config.port == config.port
                && node.config.route != config.route
        };
        let Some(predecessor) = self.nodes.values().find(is_predecessor) else {
            return Ok(());
        };
        if predecessor.peer != peer {
            return Err(McmpRefusal::Forged);
        }
        let route = predecessor.config.route.clone();
        self.nodes.remove(&route);
        self.left.push(route);
        Ok(())
    }

    /// Handles a message that changes one of a node's contexts, or all.
    fn app(
        &mut self,
        app: &AppMessage,
        peer: IpAddr,
        now: Duration,
        rules: &NodeRules<'_>,
    ) -> Result<Reply, McmpRefusal> {
        let route = &app.route;
        let node = self.owned(route, peer)?;
        node.heard = now;
        let changed = match &app.context {
            Some(path) => node.set_context(ContextKey::new(path, &app.alias), app.verb)?,
            None if app.verb == Verb::Remove => {
                // A node without contexts leaves.
                self.nodes.remove(route);
                self.left.push(route.clone());
                true
            }
            None => node.set_all(app.verb),
        };
        let text = match app.verb {
            Verb::Stop => format!(
                "Type=STOP-APP-RSP&JvmRoute={route}&Alias={}&Context={}&Requests={}",
                escaped(&app.alias),
                escaped(app.context.as_deref().unwrap_or("/")),
                (rules.in_flight)(route)
            ),
            Verb::Enable | Verb::Disable | Verb::Remove => String::new(),
        };
        Ok(Reply { text, changed })
    }

    /// The node with this name, if it belongs to the address `peer`.
    fn owned(&mut self, route: &str, peer: IpAddr) -> Result<&mut Node, McmpRefusal> {
        match self.nodes.get_mut(route) {
            None => Err(McmpRefusal::Unknown),
            Some(node) if node.peer != peer => Err(McmpRefusal::Forged),
            Some(node) => Ok(node),
        }
    }

    /// The answer to INFO, in the format of mod_proxy_cluster.
    fn info(&self) -> String {
        let mut text = String::new();
        for (number, node) in (1..).zip(self.nodes.values()) {
            node.write_info(number, &mut text);
        }
        // The contexts come after all nodes. The front ignores aliases: it shows one host with the alias `*`. No node
        // has such a host, so a node that asks announces all of its contexts anew.
        for (number, node) in (1..).zip(self.nodes.values()) {
            node.write_contexts_info(number, &mut text);
        }
        text
    }
}

/// How many nodes there are besides the one with this name.
fn known_count(nodes: &BTreeMap<String, Node>, route: &str) -> usize {
    nodes.len() - usize::from(nodes.contains_key(route))
}

impl Node {
    /// Writes the node's line in the answer to INFO.
    fn write_info(&self, number: usize, text: &mut String) {
        let NodeConfig {
            route,
            host,
            port,
            speech,
            domain,
        } = &self.config;
        let speech = match speech {
            crate::Speech::Ajp => "ajp",
            crate::Speech::Http => "http",
            crate::Speech::Https => "https",
        };
        let group = domain.as_deref().unwrap_or_default();
        writeln!(
            text,
            "Node: [{number}],Name: {route},Balancer: mycluster,LBGroup: {group},Host: {host},Port: {port},\
             Type: {speech},Flushpackets: Off,Flushwait: 10,Ping: 10,Smax: 2,Ttl: 60,Elected: 0,Read: 0,\
             Transfered: 0,Connected: 0,Load: {}",
            self.load
        )
        .expect("a string takes all");
    }

    /// Writes the lines of the node's contexts in the answer to INFO.
    fn write_contexts_info(&self, number: usize, text: &mut String) {
        if !self.contexts.is_empty() {
            writeln!(text, "Vhost: [{number}:1:1], Alias: *").expect("a string takes all");
        }
        for FoundContext { path, state } in self.contexts() {
            if path.contains(',') {
                // Nodes split lines at commas.
                continue;
            }
            let status = match state {
                FoundState::Active => "ENABLED",
                FoundState::Drain => "DISABLED",
                FoundState::Stopped => "STOPPED",
            };
            writeln!(
                text,
                "Context: [{number}:1:1], Context: {path}, Status: {status}"
            )
            .expect("a string takes all");
        }
    }

    /// Applies a node's command to one of its contexts; returns whether that changed anything.
    fn set_context(&mut self, context: ContextKey, verb: Verb) -> Result<bool, McmpRefusal> {
        let Some(state) = state(verb) else {
            // REMOVE-APP: no state is left to keep.
            return Ok(self.contexts.remove(&context).is_some());
        };
        if !self.contexts.contains_key(&context) && self.contexts.len() >= CONTEXTS_MAX {
            return Err(McmpRefusal::TooMany);
        }
        Ok(self.contexts.insert(context, state) != Some(state))
    }

    /// Applies a node's command to all of its contexts; returns whether that changed anything.
    fn set_all(&mut self, verb: Verb) -> bool {
        let before = self.contexts.clone();
        if let Some(state) = state(verb) {
            for context_state in self.contexts.values_mut() {
                *context_state = state;
            }
        }
        self.contexts != before
    }

    /// The node as a member, in the state of its best context; without any context it is stopped.
    fn as_member(&self) -> FoundMember {
        // The states are ordered: the first takes the most requests.
        let best = self.contexts.values().min().copied();
        let state = match best.unwrap_or(FoundState::Stopped) {
            // A node with a negative load is in trouble, and keeps the sessions that it has.
            FoundState::Active if self.load < 0 => FoundState::Drain,
            state => state,
        };
        let config = &self.config;
        let place = Place::Tcp {
            host: config.host.clone(),
            port: config.port,
        };
        FoundMember {
            weight: u32::try_from(self.load).unwrap_or_default().max(1),
            // A load of 0 is a standby's.
            distance: u32::from(self.load == 0),
            jvm_route: Some(config.route.clone()),
            domain: config.domain.clone(),
            state,
            contexts: self.contexts(),
            ..FoundMember::new(config.route.clone(), place, config.speech)
        }
    }

    /// The contexts by path; a path that several hosts have takes the best of their states.
    fn contexts(&self) -> Vec<FoundContext> {
        let mut best: BTreeMap<&str, FoundState> = BTreeMap::new();
        for (ContextKey { path, .. }, state) in &self.contexts {
            let known = best.entry(path).or_insert(*state);
            *known = (*known).min(*state);
        }
        let context = |(path, state): (&str, FoundState)| FoundContext {
            path: path.to_owned(),
            state,
        };
        best.into_iter().map(context).collect()
    }
}

/// The state in which a command puts a context; `None`: the context is removed.
fn state(verb: Verb) -> Option<FoundState> {
    match verb {
        Verb::Enable => Some(FoundState::Active),
        Verb::Disable => Some(FoundState::Drain),
        Verb::Stop => Some(FoundState::Stopped),
        Verb::Remove => None,
    }
}

/// Encodes a text as a value of a form.
fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for byte in text.bytes() {
        match byte {
            b'-' | b'_' | b'.' => escaped.push(char::from(byte)),
            byte if byte.is_ascii_alphanumeric() => escaped.push(char::from(byte)),
            byte => write!(escaped, "%{byte:02X}").expect("a string takes all"),
        }
    }
    escaped
}

/// How long a node may be silent: three times the 10 s after which nodes send STATUS, and some more.
pub const SILENCE_MAX: Duration = Duration::from_secs(35);

/// The most contexts of one node.
const CONTEXTS_MAX: usize = 100;

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 77, 0, 1));

    fn rules() -> NodeRules<'static> {
        NodeRules {
            may_be_member: &|host| host.starts_with("10."),
            in_flight: &|_| 7,
            nodes_max: 2,
        }
    }

    struct Played(Nodes, Duration);

    impl Played {
        fn says(&mut self, command: &str, form: &str) -> Result<String, McmpRefusal> {
            self.says_from(HERE, command, form)
        }

        fn says_from(
            &mut self,
            peer: IpAddr,
            command: &str,
            form: &str,
        ) -> Result<String, McmpRefusal> {
            let (command, path) = match command.strip_suffix('*') {
                Some(command) => (command, &b"/*"[..]),
                None => (command, &b"/"[..]),
            };
            let message = Message::parse(command, path, form.as_bytes()).unwrap();
            self.0
                .handle(&message, peer, self.1, &rules())
                .map(|reply| reply.text)
        }

        fn found(&mut self) -> Vec<(String, FoundState, u32, u32)> {
            match self.0.answer() {
                Answer::Members { found, .. } => found
                    .into_iter()
                    .map(|it| (it.name, it.state, it.weight, it.distance))
                    .collect(),
                other => panic!("{other:?}"),
            }
        }
    }

    fn node(name: &str, host: u8) -> String {
        format!("JVMRoute={name}&Host=10.77.0.{host}&Port=8009&Type=ajp")
    }

    #[test]
    fn a_node_joins_serves_suspends_and_leaves() {
        let mut played = Played(Nodes::default(), Duration::ZERO);
        assert_eq!(played.says("CONFIG", &node("n1", 1)), Ok(String::new()));
        let of = |state, weight, distance| vec![("n1".to_owned(), state, weight, distance)];
        assert_eq!(played.found(), of(FoundState::Stopped, 1, 0));
        let demo = "JVMRoute=n1&Alias=default-host%2Clocalhost&Context=%2Fdemo";
        played.says("ENABLE-APP", demo).unwrap();
        assert_eq!(
            played.says("STATUS", "JVMRoute=n1&Load=50"),
            Ok("Type=STATUS-RSP&JVMRoute=n1&State=OK&id=1".to_owned())
        );
        assert_eq!(played.found(), of(FoundState::Active, 50, 0));
        played.says("STATUS", "JVMRoute=n1&Load=0").unwrap();
        assert_eq!(played.found(), of(FoundState::Active, 1, 1));
        played.says("STATUS", "JVMRoute=n1&Load=-1").unwrap();
        assert_eq!(played.found(), of(FoundState::Drain, 1, 0));
        played.says("STATUS", "JVMRoute=n1&Load=1").unwrap();
        played.says("DISABLE-APP", demo).unwrap();
        assert_eq!(played.found(), of(FoundState::Drain, 1, 0));
        let stopped = played.says("STOP-APP", demo).unwrap();
        let expected = "Type=STOP-APP-RSP&JvmRoute=n1&Alias=default-host%2Clocalhost&Context=%2Fdemo&Requests=7";
        assert_eq!(stopped, expected);
        assert_eq!(played.found(), of(FoundState::Stopped, 1, 0));
        let info = played.says("INFO", "").unwrap();
        assert!(
            info.starts_with("Node: [1],Name: n1,Balancer: mycluster,"),
            "{info}"
        );
        assert!(
            info.ends_with(
                "Vhost: [1:1:1], Alias: *\nContext: [1:1:1], Context: /demo, Status: STOPPED\n"
            ),
            "{info}"
        );
        played.says("REMOVE-APP*", "JVMRoute=n1").unwrap();
        let left = Answer::Members {
            found: Vec::new(),
            left: vec!["n1".to_owned()],
        };
        assert_eq!(played.0.answer(), left);
        assert_eq!(
            played.says("STATUS", "JVMRoute=n1&Load=1"),
            Err(McmpRefusal::Unknown)
        );
    }

    #[test]
    fn a_node_belongs_to_who_announced_it() {
        let stranger = IpAddr::from([10, 77, 0, 9]);
        let mut played = Played(Nodes::default(), Duration::ZERO);
        played.says("CONFIG", &node("n1", 1)).unwrap();
        for (command, form) in [
            ("CONFIG", node("n1", 9)),
            // At the address of another.
            ("CONFIG", node("n9", 1)),
            ("STATUS", "JVMRoute=n1&Load=1".to_owned()),
            ("REMOVE-APP*", "JVMRoute=n1".to_owned()),
        ] {
            let said = played.says_from(stranger, command, &form);
            assert_eq!(said, Err(McmpRefusal::Forged), "{command} {form}");
        }
        assert_eq!(
            played.says("CONFIG", "JVMRoute=n2&Host=192.0.2.1&Port=8009"),
            Err(McmpRefusal::Network)
        );
        played.says("CONFIG", &node("n2", 2)).unwrap();
        assert_eq!(
            played.says("CONFIG", &node("n3", 3)),
            Err(McmpRefusal::TooMany)
        );
        played.says("CONFIG", &node("n2", 2)).unwrap();
    }

    /// WildFly has a context `/` for each of its virtual hosts.
    #[test]
    fn a_context_of_one_host_is_not_that_of_another() {
        let mut played = Played(Nodes::default(), Duration::ZERO);
        played.says("CONFIG", &node("n1", 1)).unwrap();
        let of = |host: &str| format!("JVMRoute=n1&Alias={host}&Context=%2F");
        played
            .says("ENABLE-APP", &of("default-host%2Clocalhost"))
            .unwrap();
        played.says("ENABLE-APP", &of("other-host")).unwrap();
        let state = |played: &mut Played| played.found()[0].1;
        for (command, left) in [
            ("STOP-APP", FoundState::Active),
            ("REMOVE-APP", FoundState::Active),
            ("DISABLE-APP", FoundState::Active),
        ] {
            played.says(command, &of("other-host")).unwrap();
            assert_eq!(state(&mut played), left, "{command}");
        }
        let info = played.says("INFO", "").unwrap();
        assert!(info.ends_with("Context: /, Status: ENABLED\n"), "{info}");
        assert_eq!(info.matches("Context: /,").count(), 1, "{info}");
        played
            .says("STOP-APP", &of("default-host%2Clocalhost"))
            .unwrap();
        assert_eq!(state(&mut played), FoundState::Drain);
    }

    #[test]
    fn another_process_knows_what_it_is_handed() {
        let mut played = Played(Nodes::default(), Duration::from_secs(100));
        played.says("CONFIG", &node("n1", 1)).unwrap();
        played.says("CONFIG", &node("n2", 2)).unwrap();
        let demo = "JVMRoute=n2&Alias=a&Context=%2Fdemo";
        played.says("ENABLE-APP", demo).unwrap();
        played.says("STATUS", "JVMRoute=n2&Load=50").unwrap();
        let text = serde_json::to_string(&played.0.records()).unwrap();
        let records = serde_json::from_str(&text).unwrap();
        let mut next = Played(Nodes::from_records(records, Duration::ZERO), Duration::ZERO);
        assert_eq!(next.0.answer(), played.0.answer());
        assert_eq!(next.0.deadline(), Some(SILENCE_MAX));
        assert_eq!(
            next.says("STATUS", "JVMRoute=n2&Load=50"),
            Ok("Type=STATUS-RSP&JVMRoute=n2&State=OK&id=2".to_owned())
        );
        let stranger = IpAddr::from([10, 77, 0, 9]);
        assert_eq!(
            next.says_from(stranger, "CONFIG", &node("n1", 9)),
            Err(McmpRefusal::Forged)
        );
        // A node that is announced after that differs from those before.
        next.says("CONFIG", &node("n1", 1)).unwrap();
        let told = next.says("STATUS", "JVMRoute=n1&Load=1").unwrap();
        assert!(told.ends_with("&id=3"), "{told}");
        next.0.retain(|_, host| host != "10.77.0.2");
        assert_eq!(next.found().len(), 1);
    }

    #[test]
    fn whoever_is_silent_is_gone_and_a_restart_under_another_name_replaces() {
        let mut played = Played(Nodes::default(), Duration::ZERO);
        played.says("CONFIG", &node("n1", 1)).unwrap();
        assert_eq!(played.0.deadline(), Some(SILENCE_MAX));
        assert!(!played.0.expire(SILENCE_MAX - Duration::from_secs(1)));
        played.1 = Duration::from_secs(30);
        played.says("STATUS", "JVMRoute=n1&Load=1").unwrap();
        assert!(!played.0.expire(SILENCE_MAX));
        played.says("CONFIG", &node("other", 1)).unwrap();
        assert_eq!(played.found().len(), 1);
        assert!(played.0.expire(Duration::from_secs(30) + SILENCE_MAX));
        assert_eq!(played.found(), []);
    }
}

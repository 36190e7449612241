//! `server.xml` of the Tomcats behind the source (`--tomcat`): the settings of their connectors that backends
//! must match.

use std::collections::BTreeSet;
use std::sync::Arc;

use roxmltree::{Document, Node, ParsingOptions};

use crate::files::{ImportError, Text};
use crate::ledger::{Ledger, Place, Weight};
use crate::mod_jk::workers::{duration, hoist, number};
use crate::plan::{Backend, Keys, Plan};
use crate::toml_text::quoted;

/// A Tomcat's routes and connectors.
#[derive(Debug)]
pub(crate) struct Tomcat {
    /// The `jvmRoute` of each engine, with its place.
    routes: Vec<(String, Place)>,
    connectors: Vec<Connector>,
}

/// A connector of a Tomcat.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Connector {
    place: Place,
    is_ajp: bool,
    port: u16,
    secret: Option<String>,
    /// The largest AJP packet, in bytes (`packetSize`).
    packet_size: u64,
    threads: u64,
    /// How long an idle connection is kept, in milliseconds; `None`: without limit.
    keep_alive: Option<u64>,
}

/// Reads a `server.xml`.
///
/// # Errors
/// The text is no well-formed XML, or has too many nodes.
pub(crate) fn read(text: &Text) -> Result<Tomcat, ImportError> {
    let options = ParsingOptions {
        nodes_limit: NODES_MAX,
        ..ParsingOptions::default()
    };
    let document =
        Document::parse_with_options(&text.text, options).map_err(|error| ImportError::Syntax {
            file: Arc::clone(&text.name),
            line: error.pos().row as usize,
            message: format!("it is no server.xml: {error}"),
        })?;
    let mut tomcat = Tomcat {
        routes: Vec::new(),
        connectors: Vec::new(),
    };
    for node in document.descendants() {
        let line = || document.text_pos_at(node.range().start).row as usize;
        let place = || Place::new(&text.name, line());
        match node.tag_name().name() {
            "Connector" => tomcat.connectors.extend(Connector::read(node, place())),
            "Engine" => {
                let route = node.attribute("jvmRoute");
                let placed = route.map(|route| (route.to_owned(), place()));
                tomcat.routes.extend(placed);
            }
            _ => {}
        }
    }
    Ok(tomcat)
}

impl Connector {
    /// Reads a `<Connector>`; `None` if it has no port.
    fn read(node: Node<'_, '_>, place: Place) -> Option<Self> {
        let protocol = node.attribute("protocol").unwrap_or_default();
        let is_ajp = protocol.to_ascii_lowercase().contains("ajp");
        let keep_alive = if node.has_attribute("keepAliveTimeout") {
            numeric(node, "keepAliveTimeout")
        } else {
            // By default, AJP connections are kept without limit.
            let default = (!is_ajp).then_some(CONNECTION_TIMEOUT);
            numeric(node, "connectionTimeout").or(default)
        };
        let secret = node
            .attribute("secret")
            .or_else(|| node.attribute("requiredSecret"));
        // A connector with an executor has the threads of that one.
        let of_threads = match node.attribute("executor") {
            Some(executor) => {
                let mut nodes = node.document().descendants();
                nodes.find(|it| {
                    it.has_tag_name("Executor") && it.attribute("name") == Some(executor)
                })
            }
            None => Some(node),
        };
        let threads = of_threads.and_then(|it| numeric(it, "maxThreads"));
        Some(Self {
            place,
            is_ajp,
            port: node.attribute("port")?.trim().parse().ok()?,
            secret: secret.filter(|it| !it.is_empty()).map(str::to_owned),
            packet_size: numeric(node, "packetSize").unwrap_or(PACKET_MIN),
            threads: threads.unwrap_or(THREADS),
            keep_alive,
        })
    }
}

/// An attribute as a number; `None` if it is missing or negative.
fn numeric(node: Node<'_, '_>, name: &str) -> Option<u64> {
    number(node.attribute(name)?)
}

/// Sets the keys of backends that their Tomcat's connectors require.
pub(crate) fn apply(tomcats: &[Tomcat], plan: &mut Plan, ledger: &mut Ledger) {
    let mut used: BTreeSet<&Place> = BTreeSet::new();
    for upstream in &mut plan.upstreams {
        for backend in &mut upstream.backends {
            match connector(tomcats, backend) {
                ConnectorMatch::One(connector) => {
                    used.insert(&connector.place);
                    let mut pair = Pair {
                        connector,
                        backend,
                        shared: &upstream.keys,
                        ledger,
                    };
                    pair.agree();
                }
                ConnectorMatch::Several => {
                    let text = format!(
                        "several of --tomcat have a connector for `{}` and none has its jvmRoute: nothing is taken from them",
                        backend.url
                    );
                    ledger.say(Weight::Note, backend.place.clone(), text);
                }
                ConnectorMatch::Nothing => {}
            }
        }
        hoist(upstream);
    }
    for connector in tomcats.iter().flat_map(|it| &it.connectors) {
        if !used.contains(&connector.place) {
            let text = format!("no backend uses this connector (port {})", connector.port);
            ledger.say(Weight::Note, Some(connector.place.clone()), text);
        }
    }
    for (route, place) in tomcats.iter().flat_map(|it| &it.routes) {
        let mut backends = plan.upstreams.iter().flat_map(|it| &it.backends);
        if !backends.any(|backend| has_route(backend, route)) {
            let text = format!(
                "no member has the jvmRoute `{route}`: its sessions are not found again, and each request may go to \
                 another Tomcat"
            );
            ledger.say(Weight::Risk, Some(place.clone()), text);
        }
    }
}

/// The connectors that match a backend.
enum ConnectorMatch<'t> {
    One(&'t Connector),
    Several,
    Nothing,
}

/// The connectors to which the URL of a backend leads, by port and protocol.
fn connector<'t>(tomcats: &'t [Tomcat], backend: &Backend) -> ConnectorMatch<'t> {
    let Some((is_ajp, port)) = protocol_and_port(&backend.url) else {
        return ConnectorMatch::Nothing;
    };
    let mut found: Vec<&Connector> = Vec::new();
    for tomcat in tomcats {
        let mut connectors = tomcat.connectors.iter();
        let Some(connector) = connectors.find(|it| it.is_ajp == is_ajp && it.port == port) else {
            continue;
        };
        let mut routes = tomcat.routes.iter();
        if routes.any(|(route, _)| has_route(backend, route)) {
            return ConnectorMatch::One(connector);
        }
        found.push(connector);
    }
    // No Tomcat has the route of the backend, so only its port tells.
    match &found[..] {
        [] => ConnectorMatch::Nothing,
        [first, others @ ..] if others.iter().all(|it| has_same_settings(first, it)) => {
            ConnectorMatch::One(first)
        }
        _ => ConnectorMatch::Several,
    }
}

/// Whether two connectors differ at most in their places.
fn has_same_settings(one: &Connector, two: &Connector) -> bool {
    let moved = Connector {
        place: one.place.clone(),
        ..two.clone()
    };
    *one == moved
}

/// Whether a backend has this route in session ids, by `jvm_route` or else by its name.
fn has_route(backend: &Backend, route: &str) -> bool {
    let keys = &backend.keys;
    let own = keys.get("jvm_route").or_else(|| keys.get("name"));
    own.is_some_and(|own| *own == quoted(route))
}

/// Whether the URL of a backend is one of AJP, and its port; `None` for a Unix socket.
fn protocol_and_port(url: &str) -> Option<(bool, u16)> {
    let (scheme, behind) = url.split_once("://")?;
    let is_ajp = match scheme {
        "ajp" => true,
        "http" | "https" => false,
        _ => return None,
    };
    let authority = behind.split('/').next()?;
    let (_, port) = authority.rsplit_once(':')?;
    Some((is_ajp, port.parse().ok()?))
}

/// A backend and the connector of Tomcat to which it leads: the backend's keys are set to what the connector requires.
struct Pair<'a> {
    connector: &'a Connector,
    backend: &'a mut Backend,
    /// The keys of the backend's upstream, which apply to keys that the backend does not have.
    shared: &'a Keys,
    ledger: &'a mut Ledger,
}

impl Pair<'_> {
    /// Sets all keys of the backend that the connector requires.
    fn agree(&mut self) {
        if self.connector.is_ajp {
            self.agree_on_secret();
            self.agree_on_packet_size();
        }
        self.agree_on_connections();
        self.agree_on_idle_timeout();
    }

    fn agree_on_secret(&mut self) {
        let Some(secret) = &self.connector.secret else {
            return;
        };
        if secret.contains("${") {
            let text = "its secret is a variable: give `secret` to its backends";
            self.say(Weight::Risk, text.to_owned());
        } else if self.key("secret").is_some_and(|mine| mine != secret) {
            let url = &self.backend.url;
            let text = format!("its secret is another one than the source has for `{url}`");
            self.say(Weight::Risk, text);
        } else {
            self.set("secret", secret.clone());
        }
    }

    fn agree_on_packet_size(&mut self) {
        let of_source = self.key("packet_size").and_then(|it| kibibytes(it));
        let of_tomcat = self.connector.packet_size;
        if of_tomcat == of_source.unwrap_or(PACKET_MIN) {
            return;
        }
        if of_source.is_some() {
            let url = &self.backend.url;
            let text = format!(
                "its packetSize is not that of the source for `{url}`; that of Tomcat holds"
            );
            self.say(Weight::Note, text);
        }
        let bytes = of_tomcat.clamp(PACKET_MIN, PACKET_MAX);
        self.set("packet_size", bytes.to_string());
    }

    /// Limits the backend's connections to the connector's threads; requests on more connections would wait in
    /// Tomcat.
    fn agree_on_connections(&mut self) {
        let threads = self.connector.threads.clamp(1, CONNECTIONS_MAX);
        let connections = self.key("connections_max").and_then(|it| number(it));
        if connections.is_none_or(|connections| connections >= threads) {
            self.set("connections_max", threads.to_string());
        }
    }

    /// Makes the front close an idle connection before Tomcat does.
    fn agree_on_idle_timeout(&mut self) {
        let Some(keep_alive) = self.connector.keep_alive else {
            return;
        };
        let idle_timeout = match self.key("idle_timeout") {
            Some(text) => milliseconds(text),
            None => Some(IDLE_TIMEOUT),
        };
        // A second earlier, or for short times a quarter of them.
        let earlier = keep_alive - (keep_alive / 4).min(1_000);
        if idle_timeout.is_none_or(|timeout| timeout >= keep_alive)
            && let Some(time) = duration(earlier, 1)
        {
            self.set("idle_timeout", time);
        }
    }

    /// The value that a key has for the backend, by itself or by its upstream.
    fn key(&self, key: &str) -> Option<&String> {
        self.backend.keys.get(key).or_else(|| self.shared.get(key))
    }

    fn set(&mut self, key: &str, value: String) {
        self.backend.keys.insert(key.to_owned(), value);
    }

    fn say(&mut self, weight: Weight, text: String) {
        let place = self.connector.place.clone();
        self.ledger.say(weight, Some(place), text);
    }
}

/// The KiB of a size that the importer wrote, in bytes; `None` if it has another form.
fn kibibytes(text: &str) -> Option<u64> {
    let digits = text.trim_matches('"').strip_suffix("KiB")?;
    number(digits)?.checked_mul(1_024)
}

/// The milliseconds of a duration that [`duration`] wrote.
fn milliseconds(text: &str) -> Option<u64> {
    let text = text.trim_matches('"');
    match text.strip_suffix("ms") {
        Some(digits) => number(digits),
        None => number(text.strip_suffix('s')?)?.checked_mul(1_000),
    }
}

/// Tomcat's defaults.
const THREADS: u64 = 200;
const CONNECTION_TIMEOUT: u64 = 60_000;
const PACKET_MIN: u64 = 8_192;

/// The front's limits on a packet and on connections, and its default for keeping idle connections.
const PACKET_MAX: u64 = 65_536;
const CONNECTIONS_MAX: u64 = 65_535;
const IDLE_TIMEOUT: u64 = 15_000;

const NODES_MAX: u32 = 100_000;

//! Parses MCMP messages as mod_cluster sends them: a command, and a form with its parameters.
//!
//! Any bytes are either a message or a fault. Checked here is what needs no other message: names are safe to
//! log, ports are valid, contexts are paths.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use crate::member::Speech;

/// A message that a node sends to the front.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// A node announces itself, with its address and protocol.
    Config(Box<NodeConfig>),
    /// The node enables, disables, stops or removes one of its contexts, or all.
    App(AppMessage),
    /// A node reports that it is alive, and its load.
    Status {
        /// The name (JVMRoute) of the node.
        route: String,
        /// -1: the node is in trouble; 0: it is a standby; else the share of load that it can take, usually
        /// up to 100.
        load: i32,
    },
    /// A node asks whether the front is alive.
    Ping,
    /// A client asks which nodes the front knows.
    Info,
}

/// A node's name, address and protocol, as it announces them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeConfig {
    /// The node's name, which is the suffix of its session ids.
    pub route: String,
    /// The host name or IP address at which the node is reached.
    pub host: String,
    /// The port at which the node is reached, never 0.
    pub port: u16,
    /// The protocol that the node speaks on this port.
    pub speech: Speech,
    /// The node's replication group; `None`: it is in none.
    pub domain: Option<String>,
}

/// A change of one of a node's contexts, or of all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AppMessage {
    /// The kind of change.
    pub verb: Verb,
    /// The name of the node whose contexts change.
    pub route: String,
    /// The path of the context; `None`: all contexts of the node.
    pub context: Option<String>,
    /// The aliases of the virtual host as they were sent, to be repeated in the answer.
    pub alias: String,
}

/// The kind of a change of a context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// The context takes all requests.
    Enable,
    /// The context takes requests of its sessions only.
    Disable,
    /// The context takes no requests.
    Stop,
    /// The context is removed.
    Remove,
}

/// What is wrong with a message. A node that gets this as an answer gives up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SyntaxFault(pub &'static str);

impl Message {
    /// The command as a token, for counters.
    #[must_use]
    pub fn command(&self) -> &'static str {
        match self {
            Self::Config(_) => "config",
            Self::App(app) => match app.verb {
                Verb::Enable => "enable-app",
                Verb::Disable => "disable-app",
                Verb::Stop => "stop-app",
                Verb::Remove => "remove-app",
            },
            Self::Status { .. } => "status",
            Self::Ping => "ping",
            Self::Info => "info",
        }
    }

    /// The name of the node that claims to have sent the message; `None`: the message has none.
    #[must_use]
    pub fn route(&self) -> Option<&str> {
        match self {
            Self::Config(node) => Some(&node.route),
            Self::App(app) => Some(&app.route),
            Self::Status { route, .. } => Some(route),
            Self::Ping | Self::Info => None,
        }
    }

    /// Whether the node stops a context: it must then get no further requests, and asks for the number of
    /// those in flight.
    #[must_use]
    pub fn stops(&self) -> bool {
        matches!(self, Self::App(app) if app.verb == Verb::Stop)
    }

    /// Parses a message from its command, the path that it was sent to, and its form.
    ///
    /// # Errors
    /// The fault for which it is not a message.
    pub fn parse(command: &str, path: &[u8], form: &[u8]) -> Result<Self, SyntaxFault> {
        let verb = match command {
            "ENABLE-APP" => Verb::Enable,
            "DISABLE-APP" => Verb::Disable,
            "STOP-APP" => Verb::Stop,
            "REMOVE-APP" => Verb::Remove,
            "CONFIG" => return Ok(Self::Config(Box::new(Form::parse(form)?.config()?))),
            "STATUS" => return Form::parse(form)?.status(),
            "PING" => return Ok(Self::Ping),
            "INFO" | "DUMP" => return Ok(Self::Info),
            _ => return Err(SyntaxFault("unknown command")),
        };
        let parameters = Form::parse(form)?;
        let context = match path {
            // The path for all contexts of the node.
            b"/*" => None,
            _ => Some(context(parameters.need("Context")?)?),
        };
        Ok(Self::App(AppMessage {
            verb,
            route: parameters.route()?,
            context,
            alias: parameters.get("Alias").unwrap_or_default().to_owned(),
        }))
    }
}

/// The parameters of a message, as names and values.
struct Form(Vec<(String, String)>);

impl Form {
    /// Parses the pairs of a form, in order. A name without `=` is a fault; an empty pair is ignored.
    fn parse(form: &[u8]) -> Result<Self, SyntaxFault> {
        if form.len() > BYTES_MAX {
            return Err(SyntaxFault("message too long"));
        }
        let mut pairs = Vec::new();
        for pair in form.split(|&byte| byte == b'&') {
            if pair.is_empty() {
                continue;
            }
            let mut halves = pair.splitn(2, |&byte| byte == b'=');
            let (Some(name), Some(value)) = (halves.next(), halves.next()) else {
                return Err(SyntaxFault("parameter without a value"));
            };
            if pairs.len() >= PAIRS_MAX {
                return Err(SyntaxFault("too many parameters"));
            }
            pairs.push((decoded(name)?, decoded(value)?));
        }
        Ok(Self(pairs))
    }

    /// All values with this name, in any case of letters.
    fn values(&self, name: &str) -> impl Iterator<Item = &str> {
        let named = self
            .0
            .iter()
            .filter(move |(key, _)| key.eq_ignore_ascii_case(name));
        named.map(|(_, value)| value.as_str())
    }

    /// The first value with this name; `None`: there is none.
    fn get(&self, name: &str) -> Option<&str> {
        self.values(name).next()
    }

    /// The only value with this name.
    fn need(&self, name: &'static str) -> Result<&str, SyntaxFault> {
        let mut values = self.values(name);
        let value = values.next().ok_or(SyntaxFault("parameter missing"))?;
        if values.next().is_some() {
            // Two readers could take different ones.
            return Err(SyntaxFault("parameter twice"));
        }
        Ok(value)
    }

    fn route(&self) -> Result<String, SyntaxFault> {
        name(self.need("JVMRoute")?)
    }

    /// Reads the parameters of CONFIG. Without a type it is AJP, as in mod_cluster.
    fn config(&self) -> Result<NodeConfig, SyntaxFault> {
        let port: u16 = self
            .need("Port")?
            .parse()
            .map_err(|_| SyntaxFault("Port is no port"))?;
        if port == 0 {
            return Err(SyntaxFault("Port is no port"));
        }
        let speech = match self.get("Type").unwrap_or("ajp") {
            kind if kind.eq_ignore_ascii_case("ajp") => Speech::Ajp,
            kind if kind.eq_ignore_ascii_case("http") => Speech::Http,
            kind if kind.eq_ignore_ascii_case("https") => Speech::Https,
            _ => return Err(SyntaxFault("Type is not ajp, http or https")),
        };
        let domain = self.get("Domain").filter(|domain| !domain.is_empty());
        Ok(NodeConfig {
            route: self.route()?,
            host: host(self.need("Host")?)?,
            port,
            speech,
            domain: domain.map(name).transpose()?,
        })
    }

    /// Reads the parameters of STATUS. A load of -1 means that the node is in trouble, 0 that it is a standby.
    fn status(&self) -> Result<Message, SyntaxFault> {
        let load: i32 = self
            .need("Load")?
            .parse()
            .map_err(|_| SyntaxFault("Load is no number"))?;
        if (-1..=LOAD_MAX).contains(&load) {
            Ok(Message::Status {
                route: self.route()?,
                load,
            })
        } else {
            Err(SyntaxFault("Load is out of range"))
        }
    }
}

/// Decodes the `+` and `%` escapes of a form.
fn decoded(text: &[u8]) -> Result<String, SyntaxFault> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut undecoded = text.iter();
    let hex_digit = |byte: Option<&u8>| {
        let digit = byte.and_then(|byte| char::from(*byte).to_digit(16));
        digit.ok_or(SyntaxFault("broken escape"))
    };
    while let Some(byte) = undecoded.next() {
        match byte {
            b'+' => bytes.push(b' '),
            b'%' => {
                let high = hex_digit(undecoded.next())?;
                let low = hex_digit(undecoded.next())?;
                bytes.push(u8::try_from(high * 16 + low).unwrap_or_default());
            }
            plain => bytes.push(*plain),
        }
    }
    String::from_utf8(bytes).map_err(|_| SyntaxFault("not UTF-8"))
}

/// Checks that a name is safe in a log, a URL and a cookie.
fn name(text: &str) -> Result<String, SyntaxFault> {
    let is_good = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:@!~".contains(&byte);
    if !text.is_empty() && text.len() <= NAME_MAX && text.bytes().all(is_good) {
        Ok(text.to_owned())
    } else {
        Err(SyntaxFault("bad name"))
    }
}

/// Checks and normalises a host: a name, or an address, which for IPv6 may be in brackets.
fn host(text: &str) -> Result<String, SyntaxFault> {
    let in_brackets = text
        .strip_prefix('[')
        .and_then(|text| text.strip_suffix(']'));
    if let Ok(ip) = in_brackets.unwrap_or(text).parse::<IpAddr>() {
        return Ok(ip.to_string());
    }
    // 63 and 253 are the limits of DNS.
    let is_label = |label: &str| {
        let is_good = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
        !label.is_empty() && label.len() <= 63 && label.bytes().all(is_good)
    };
    if text.len() <= 253 && text.split('.').all(is_label) {
        Ok(text.to_ascii_lowercase())
    } else {
        Err(SyntaxFault("Host is none"))
    }
}

/// Checks the path of a context and removes its closing slash; the root context is `/`.
fn context(text: &str) -> Result<String, SyntaxFault> {
    if text == "/" {
        return Ok("/".to_owned());
    }
    let fault = SyntaxFault("Context is no path");
    let path = text.trim_end_matches('/');
    let segments = path.strip_prefix('/').ok_or(fault)?;
    let is_good = |byte: u8| byte.is_ascii_alphanumeric() || b"/-_.~!$&'()*+,=:@".contains(&byte);
    let is_name = |segment: &str| !matches!(segment, "" | "." | "..");
    if segments.split('/').all(is_name) && path.len() <= CONTEXT_MAX && path.bytes().all(is_good) {
        Ok(path.to_owned())
    } else {
        Err(fault)
    }
}

/// The most bytes of one message.
pub const BYTES_MAX: usize = 64 << 10;

const PAIRS_MAX: usize = 256;
const NAME_MAX: usize = 80;
const CONTEXT_MAX: usize = 256;

/// The greatest accepted load factor; mod_cluster sends at most 100.
const LOAD_MAX: i32 = 1000;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_wildfly_sends_is_understood() {
        let form = b"JVMRoute=node1&Host=10.77.0.1&Maxattempts=1&Port=8009&StickySessionForce=No&Type=ajp&ping=10";
        let node = NodeConfig {
            route: "node1".to_owned(),
            host: "10.77.0.1".to_owned(),
            port: 8009,
            speech: Speech::Ajp,
            domain: None,
        };
        assert_eq!(
            Message::parse("CONFIG", b"/", form),
            Ok(Message::Config(Box::new(node)))
        );
        let form = b"JVMRoute=node1&Alias=default-host%2Clocalhost&Context=%2Fdemo";
        let app = AppMessage {
            verb: Verb::Enable,
            route: "node1".to_owned(),
            context: Some("/demo".to_owned()),
            alias: "default-host,localhost".to_owned(),
        };
        assert_eq!(
            Message::parse("ENABLE-APP", b"/", form),
            Ok(Message::App(app))
        );
        let all = AppMessage {
            verb: Verb::Remove,
            route: "node1".to_owned(),
            context: None,
            alias: String::new(),
        };
        assert_eq!(
            Message::parse("REMOVE-APP", b"/*", b"JVMRoute=node1"),
            Ok(Message::App(all))
        );
        let route = "node1".to_owned();
        assert_eq!(
            Message::parse("STATUS", b"/", b"JVMRoute=node1&Load=-1"),
            Ok(Message::Status { route, load: -1 })
        );
        assert_eq!(Message::parse("INFO", b"/", b""), Ok(Message::Info));
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (command, form, fault) in [
            ("GET", "", "unknown command"),
            ("CONFIG", "JVMRoute=a&Host=h&Port=0", "Port is no port"),
            ("CONFIG", "JVMRoute=a&Host=h&Port=65536", "Port is no port"),
            ("CONFIG", "JVMRoute=a&Host=h%2Fi&Port=1", "Host is none"),
            ("CONFIG", "JVMRoute=a&Host=&Port=1", "Host is none"),
            ("CONFIG", "JVMRoute=a&Port=1", "parameter missing"),
            (
                "CONFIG",
                "JVMRoute=a&Host=h&Port=1&Type=ws",
                "Type is not ajp, http or https",
            ),
            ("CONFIG", "JVMRoute=a%0ab&Host=h&Port=1", "bad name"),
            ("CONFIG", "JVMRoute=&Host=h&Port=1", "bad name"),
            (
                "CONFIG",
                "JVMRoute=a&jvmroute=b&Host=h&Port=1",
                "parameter twice",
            ),
            ("STATUS", "JVMRoute=a&Load=x", "Load is no number"),
            ("STATUS", "JVMRoute=a&Load=-2", "Load is out of range"),
            ("STATUS", "JVMRoute", "parameter without a value"),
            ("STATUS", "JVMRoute=%4", "broken escape"),
            ("STATUS", "JVMRoute=%ff&Load=1", "not UTF-8"),
            (
                "ENABLE-APP",
                "JVMRoute=a&Context=demo",
                "Context is no path",
            ),
            (
                "ENABLE-APP",
                "JVMRoute=a&Context=/a/../b",
                "Context is no path",
            ),
            (
                "ENABLE-APP",
                "JVMRoute=a&Context=/a%20b",
                "Context is no path",
            ),
            ("ENABLE-APP", "JVMRoute=a", "parameter missing"),
        ] {
            let said = Message::parse(command, b"/", form.as_bytes());
            assert_eq!(said, Err(SyntaxFault(fault)), "{command} {form}");
        }
        let long = vec![b'a'; BYTES_MAX + 1];
        assert_eq!(
            Message::parse("CONFIG", b"/", &long),
            Err(SyntaxFault("message too long"))
        );
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_message_or_a_fault(
            command in prop::sample::select(vec!["CONFIG", "STATUS", "ENABLE-APP", "REMOVE-APP", "INFO", "x"]),
            form in prop::collection::vec(any::<u8>(), 0..200),
        ) {
            if let Ok(message) = Message::parse(command, b"/", &form) {
                let route = message.route().unwrap_or("a").to_owned();
                prop_assert!(!route.is_empty() && route.bytes().all(|it| it.is_ascii_graphic()));
            }
        }
    }
}

//! The API server of Kubernetes: lists and watches of objects over HTTP, for a thread that may wait.
//!
//! The token and the authorities are read from their files for each connection and request, so that rotated ones are
//! used without a restart. Every wait has a deadline, and each answer, page and line a limit. What the objects mean
//! is decided by [`crate::kubernetes`].

pub(crate) mod control;
pub(crate) mod error;
pub(crate) mod lines;

use std::fmt;
use std::fs::File;
use std::io::{ErrorKind, Read as _};
use std::net::{IpAddr, SocketAddr, ToSocketAddrs as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use catamaran_http_client::{BlockingClient, ClientAnswer, ClientRequest, Fields, ServerAddress};
use catamaran_message::ResponseHead;
use catamaran_tls::{Roots, Trust, TrustSettings};
use http::StatusCode;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use self::control::Control;
use self::error::{ApiError, ApiErrorKind};
use self::lines::{Event, Lines, Metadata, shortened};

/// The API server, and how the front and the server prove themselves to each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiConfig {
    /// The server's URL; `None`: nobody named one, and the process is not in a pod.
    pub server: Option<ApiUrl>,
    /// The file with the token that the front sends over `https`.
    pub token_file: PathBuf,
    /// The file with the authorities that may issue the server's certificate.
    pub ca_file: PathBuf,
}

/// The URL of an API server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiUrl {
    /// Whether the connection has TLS.
    pub is_https: bool,
    /// A name, an IPv4 address, or an IPv6 address without brackets.
    pub host: String,
    /// The port, never 0.
    pub port: u16,
}

impl ApiUrl {
    /// Parses a URL such as `https://10.0.0.1:6443`. In clear text, `http`, only a loopback address is accepted, at
    /// which `kubectl proxy` may listen.
    ///
    /// # Errors
    /// What is wrong with the URL, as a predicate.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        let (is_https, rest) = match text.split_once("://") {
            Some(("https", rest)) => (true, rest),
            Some(("http", rest)) => (false, rest),
            _ => return Err("must begin with https://"),
        };
        let authority = rest.strip_suffix('/').unwrap_or(rest);
        let has_port = authority
            .rsplit_once(':')
            .filter(|(_, port)| !port.ends_with(']'));
        let (host, port) = match has_port {
            Some((host, port)) => (host, port.parse().ok()),
            None => (authority, Some(if is_https { 443 } else { 80 })),
        };
        let bare = host.strip_prefix('[').and_then(|it| it.strip_suffix(']'));
        let host = match bare {
            Some(address) if address.parse::<std::net::Ipv6Addr>().is_ok() => address,
            Some(_) => return Err("has no address between [ and ]"),
            None => host,
        };
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-.".contains(&byte);
        if bare.is_none() && (host.is_empty() || !host.bytes().all(is_name)) {
            return Err("must be https:// with a host, a port and no path");
        }
        let port = port
            .filter(|port| *port != 0)
            .ok_or("has a port that is none")?;
        let is_loopback = host.parse().is_ok_and(|ip: IpAddr| ip.is_loopback());
        if !is_https && !is_loopback {
            return Err("must begin with https://, except for a loopback address");
        }
        let host = host.to_ascii_lowercase();
        Ok(Self {
            is_https,
            host,
            port,
        })
    }

    /// The host and port as they are sent.
    fn authority(&self) -> String {
        if self.host.contains(':') {
            format!("[{}]:{}", self.host, self.port)
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }
}

impl fmt::Display for ApiUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.is_https { "https" } else { "http" };
        write!(f, "{scheme}://{}", self.authority())
    }
}

/// A kind of objects in one namespace, or those of them that have a label.
#[derive(Clone, Debug)]
pub(crate) struct Resource {
    /// The API group with its version, as in a path: `/api/v1`, `/apis/discovery.k8s.io/v1`.
    pub(crate) group: &'static str,
    pub(crate) plural: &'static str,
    pub(crate) namespace: String,
    /// The selector of labels; empty: all objects.
    pub(crate) selector: String,
}

impl Resource {
    fn path(&self) -> String {
        let (group, plural, namespace) = (self.group, self.plural, &self.namespace);
        format!("{group}/namespaces/{namespace}/{plural}")
    }

    /// The rule of a role that allows the verbs.
    fn rule(&self, verbs: &str) -> String {
        let mut parts = self.group.split('/');
        let group = parts.nth(2).filter(|_| self.group.starts_with("/apis/"));
        format!(
            "a Role in namespace {} with apiGroups: [{:?}], resources: [{:?}], verbs: [{verbs}]",
            self.namespace,
            group.unwrap_or_default(),
            self.plural,
        )
    }
}

/// Objects of which the client knows name and version.
pub(crate) trait ApiObject: DeserializeOwned {
    fn metadata(&self) -> &Metadata;
}

/// A whole list, and the version from which a watch goes on.
#[derive(Debug)]
pub(crate) struct ObjectList<T> {
    pub(crate) items: Vec<T>,
    pub(crate) version: String,
}

/// One page of a list.
#[derive(Deserialize)]
struct Page<T> {
    metadata: PageMetadata,
    // `null` for none.
    items: Option<Vec<T>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PageMetadata {
    #[serde(default)]
    resource_version: String,
    #[serde(default)]
    r#continue: String,
}

/// A client of the API server. Each list and each watch has a connection of its own, which `control` may close.
#[derive(Debug)]
pub(crate) struct ApiClient {
    config: ApiConfig,
    control: Arc<Control>,
}

impl ApiClient {
    pub(crate) fn new(config: ApiConfig, control: Arc<Control>) -> Self {
        Self { config, control }
    }

    /// Reads the object with this name.
    pub(crate) fn get<T: DeserializeOwned>(
        &self,
        resource: &Resource,
        name: &str,
    ) -> Result<T, ApiError> {
        let target = format!("{}/{name}", resource.path());
        let mut client = self.connect()?;
        let body = self.read(&mut client, &target, resource, "get", BYTES_MAX)?;
        serde_json::from_slice(&body).map_err(|error| malformed(&error))
    }

    /// Reads all objects, page by page.
    pub(crate) fn list<T: ApiObject>(
        &self,
        resource: &Resource,
    ) -> Result<ObjectList<T>, ApiError> {
        let mut client = self.connect()?;
        let (mut items, mut next) = (Vec::new(), String::new());
        let mut bytes_left = BYTES_MAX;
        for _ in 0..PAGES_MAX {
            let mut target = format!("{}?limit={PAGE_OBJECTS}", resource.path());
            add_parameter(&mut target, "labelSelector", &resource.selector);
            add_parameter(&mut target, "continue", &next);
            let body = self.read(&mut client, &target, resource, "list", bytes_left)?;
            bytes_left = bytes_left.saturating_sub(body.len() as u64);
            let page: Page<T> = serde_json::from_slice(&body).map_err(|error| malformed(&error))?;
            items.extend(page.items.unwrap_or_default());
            if items.len() > OBJECTS_MAX {
                let text = format!("there are more than {OBJECTS_MAX} {}", resource.plural);
                return Err(ApiError::new(ApiErrorKind::TooLarge, text));
            }
            next = page.metadata.r#continue;
            if next.is_empty() {
                let version = page.metadata.resource_version;
                return Ok(ObjectList { items, version });
            }
            if !client.can_reuse() {
                client = self.connect()?;
            }
        }
        let text = format!("a list has more than {PAGES_MAX} pages");
        Err(ApiError::new(ApiErrorKind::TooLarge, text))
    }

    /// Watches objects from this version on. `take` gets what happened, first nothing when the server has accepted the
    /// watch; if it returns `false`, the watch ends. `Ok`: the watch ended in order.
    pub(crate) fn watch<T: ApiObject>(
        &self,
        resource: &Resource,
        version: &str,
        mut take: impl FnMut(Vec<Event<T>>) -> bool,
    ) -> Result<(), ApiError> {
        let mut target = format!(
            "{}?watch=1&allowWatchBookmarks=true&timeoutSeconds={}",
            resource.path(),
            WATCH_MAX.as_secs()
        );
        add_parameter(&mut target, "labelSelector", &resource.selector);
        add_parameter(&mut target, "resourceVersion", version);
        let mut client = self.connect()?;
        client.limit_waits(WATCH_MAX + WATCH_GRACE);
        client.limit_asks(WATCH_MAX + WATCH_GRACE);
        let mut lines = Lines::default();
        let mut refusal = Vec::new();
        let mut outcome = Ok(());
        let mut is_wanted = true;
        let answer = self.ask(&mut client, &target, WATCH_BYTES_MAX, |head, piece| {
            if head.status != StatusCode::OK {
                refusal.extend_from_slice(piece);
                return refusal.len() <= REFUSAL_MAX;
            }
            let mut events = Vec::new();
            outcome = lines.feed(piece, &mut events);
            is_wanted = (events.is_empty() && !piece.is_empty()) || take(events);
            is_wanted && outcome.is_ok()
        })?;
        self.judge(&answer.head, &refusal, resource, "watch")?;
        outcome?;
        if is_wanted && !answer.is_whole {
            let text = format!("a watch had more than {WATCH_BYTES_MAX} bytes");
            return Err(ApiError::new(ApiErrorKind::Cut, text));
        }
        Ok(())
    }

    /// Reads one whole answer with status 200, of at most so many bytes with its head.
    fn read(
        &self,
        client: &mut BlockingClient,
        target: &str,
        resource: &Resource,
        verb: &str,
        bytes_max: u64,
    ) -> Result<Vec<u8>, ApiError> {
        let mut body = Vec::new();
        let answer = self.ask(client, target, bytes_max, |_, piece| {
            body.extend_from_slice(piece);
            true
        })?;
        self.judge(&answer.head, &body, resource, verb)?;
        if answer.is_whole {
            return Ok(body);
        }
        let text = format!("an answer or a list had more than {BYTES_MAX} bytes, or broke off");
        Err(ApiError::new(ApiErrorKind::TooLarge, text))
    }

    /// Sends a request with the token as it is now.
    fn ask(
        &self,
        client: &mut BlockingClient,
        target: &str,
        read_max: u64,
        keep: impl FnMut(&ResponseHead, &[u8]) -> bool,
    ) -> Result<ClientAnswer, ApiError> {
        if target.len() > TARGET_MAX {
            let text = "the API server's version or place in a list is too long".to_owned();
            return Err(ApiError::new(ApiErrorKind::Malformed, text));
        }
        let url = self.url()?;
        let mut fields = Fields::new();
        fields.append("Accept", "application/json");
        if url.is_https {
            let bytes = read_file(&self.config.token_file)?;
            let content = String::from_utf8(bytes).unwrap_or_default();
            let token = content.trim();
            if token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
                let text = format!("{} has no token", self.config.token_file.display());
                return Err(ApiError::new(ApiErrorKind::File, text));
            }
            fields.append("Authorization", format!("Bearer {token}"));
        }
        let host = url.authority();
        let request = ClientRequest {
            fields: &fields,
            ..ClientRequest::get(target, &host)
        };
        let answer = client.ask_while(&request, read_max, keep);
        answer.map_err(|error| ApiError::new(ApiErrorKind::Cut, format!("{url}: {error}")))
    }

    /// Connects to the first of the server's addresses that answers.
    fn connect(&self) -> Result<BlockingClient, ApiError> {
        let url = self.url()?;
        let broken = |error| ApiError::new(ApiErrorKind::Connect, format!("{url}: {error}"));
        let trust = url.is_https.then(|| self.trust(url)).transpose()?;
        // The system's resolver has a deadline of its own (resolv.conf, `timeout` and `attempts`).
        let resolved = (&url.host[..], url.port).to_socket_addrs();
        let addresses: Vec<SocketAddr> = resolved.map_err(broken)?.collect();
        self.control.note_server(addresses.clone());
        let mut failure = std::io::Error::new(ErrorKind::NotFound, "it has no address");
        for address in addresses.into_iter().take(ADDRESSES_MAX) {
            let address = ServerAddress::Tcp(address);
            let connected = match &trust {
                Some(trust) => BlockingClient::connect_tls(&address, trust, CONNECT_TIMEOUT),
                None => BlockingClient::connect(&address, CONNECT_TIMEOUT),
            };
            match connected {
                Ok(mut client) => {
                    client.limit_waits(ANSWER_MAX);
                    client.limit_asks(ANSWER_MAX);
                    client.limit_silence(SILENCE_MAX).map_err(broken)?;
                    self.control.note(client.closer().map_err(broken)?);
                    return Ok(client);
                }
                Err(error) => failure = error,
            }
        }
        Err(broken(failure))
    }

    fn url(&self) -> Result<&ApiUrl, ApiError> {
        self.config.server.as_ref().ok_or_else(|| {
            let text =
                "there is no API server to ask: this is no pod, and [kubernetes] has no `server`";
            ApiError::new(ApiErrorKind::Connect, text.to_owned())
        })
    }

    /// The trust in the server's certificate, by the authorities that the file has now.
    fn trust(&self, url: &ApiUrl) -> Result<Trust, ApiError> {
        let path = &self.config.ca_file;
        let unusable = |reason: String| {
            let text = format!("the file {} {reason}", path.display());
            ApiError::new(ApiErrorKind::File, text)
        };
        let settings = TrustSettings {
            server_name: url.host.clone(),
            verify: true,
            roots: Roots::from_pem(&read_file(path)?).map_err(unusable)?,
            identity: None,
        };
        let made = Trust::new(settings);
        made.map_err(|fault| ApiError::new(ApiErrorKind::Connect, format!("{url}: {fault}")))
    }

    /// The error of an answer whose status is not 200.
    fn judge(
        &self,
        head: &ResponseHead,
        body: &[u8],
        resource: &Resource,
        verb: &str,
    ) -> Result<(), ApiError> {
        let (kind, text) = match head.status {
            StatusCode::OK => return Ok(()),
            StatusCode::UNAUTHORIZED => {
                let file = self.config.token_file.display();
                let text = format!("the API server does not accept the token of {file} (401)");
                (ApiErrorKind::Unauthorized, text)
            }
            StatusCode::FORBIDDEN => {
                let verbs = if verb == "get" { "get" } else { "list, watch" };
                let rule = resource.rule(verbs);
                let text = format!("the API server forbids to {verb} (403): it takes {rule}");
                (ApiErrorKind::Forbidden, text)
            }
            StatusCode::GONE => (ApiErrorKind::Expired, "the version is too old".to_owned()),
            status => {
                let message = shortened(&String::from_utf8_lossy(body));
                let text = format!("the API server answers {status} to {verb}: {message}");
                (ApiErrorKind::Status, text)
            }
        };
        Err(ApiError::new(kind, text))
    }
}

/// Reads a regular file of limited size.
fn read_file(path: &Path) -> Result<Vec<u8>, ApiError> {
    let unusable = |error: std::io::Error| {
        let text = format!("{}: {error}", path.display());
        ApiError::new(ApiErrorKind::File, text)
    };
    // Opening a pipe would wait for its writer.
    if !std::fs::metadata(path).map_err(unusable)?.is_file() {
        return Err(unusable(std::io::Error::other("it is not a regular file")));
    }
    let file = File::open(path).map_err(unusable)?;
    let mut bytes = Vec::new();
    file.take(FILE_MAX)
        .read_to_end(&mut bytes)
        .map_err(unusable)?;
    Ok(bytes)
}

/// Adds a parameter to a target that has a query, unless the value is empty.
fn add_parameter(target: &mut String, name: &str, value: &str) {
    use std::fmt::Write as _;

    if value.is_empty() {
        return;
    }
    write!(target, "&{name}=").expect("a string takes all text");
    for byte in value.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            target.push(char::from(byte));
        } else {
            write!(target, "%{byte:02X}").expect("a string takes all text");
        }
    }
}

fn malformed(error: &serde_json::Error) -> ApiError {
    let text = format!("the API server's answer cannot be read: {error}");
    ApiError::new(ApiErrorKind::Malformed, text)
}

/// How long a watch lasts, by the server's clock. The server ends it in order.
const WATCH_MAX: Duration = Duration::from_secs(240);

/// How long after its end a watch is closed that the server has not ended.
const WATCH_GRACE: Duration = Duration::from_secs(30);

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// How long a page, or an object, may take.
const ANSWER_MAX: Duration = Duration::from_secs(10);

const ADDRESSES_MAX: usize = 8;

/// How many objects a page has: of EndpointSlices with 100 endpoints each, 2.6 MB in all.
const PAGE_OBJECTS: usize = 100;

/// The most bytes of an object, or of all pages of a list.
const BYTES_MAX: u64 = 32 << 20;

/// The most bytes of a target; a server's version of a list has some 20 bytes, and its place in one some hundreds.
const TARGET_MAX: usize = 16 << 10;

/// How long the server's system may be silent when it is asked for a sign of life. A watch has nothing to say for
/// minutes, in which the network may lose the connection.
const SILENCE_MAX: Duration = Duration::from_secs(30);

const OBJECTS_MAX: usize = 10_000;

/// The most pages of a list: twice as many as full ones have.
const PAGES_MAX: usize = 2 * OBJECTS_MAX / PAGE_OBJECTS;

/// The most bytes of one watch, after which another one goes on.
const WATCH_BYTES_MAX: u64 = 1 << 30;

/// The most bytes that are read of an answer that refuses a watch.
const REFUSAL_MAX: usize = 64 << 10;

/// The most bytes of a token, or of authorities.
const FILE_MAX: u64 = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_of_servers() {
        for (text, expected) in [
            ("https://10.0.0.1:6443", Ok("https://10.0.0.1:6443")),
            ("https://API.example/", Ok("https://api.example:443")),
            ("https://[fd00::1]:6443", Ok("https://[fd00::1]:6443")),
            ("https://[fd00::1]", Ok("https://[fd00::1]:443")),
            ("http://127.0.0.1:8001", Ok("http://127.0.0.1:8001")),
            ("http://10.0.0.1:8001", Err("except for a loopback address")),
            ("10.0.0.1:6443", Err("must begin with https://")),
            ("https://a:0", Err("has a port that is none")),
            ("https://a:x", Err("has a port that is none")),
            ("https://", Err("with a host, a port and no path")),
            ("https://a/path", Err("with a host, a port and no path")),
            ("https://[a]:1", Err("has no address between [ and ]")),
        ] {
            match (ApiUrl::parse(text), expected) {
                (Ok(url), Ok(expected)) => assert_eq!(url.to_string(), expected),
                (Err(fault), Err(expected)) => assert!(fault.contains(expected), "{text}: {fault}"),
                (parsed, _) => panic!("{text}: {parsed:?}"),
            }
        }
    }

    #[test]
    fn parameters_cannot_leave_their_place() {
        let mut target = "/a?b".to_owned();
        add_parameter(&mut target, "c", "x/y=z&é");
        add_parameter(&mut target, "d", "");
        assert_eq!(target, "/a?b&c=x%2Fy%3Dz%26%C3%A9");
    }
}

//! The addresses in the file: where to listen, and where a backend is.
//!
//! Both can be given in a file and on the command line. No name is resolved here: the name of a backend is
//! resolved while the front runs, and a listener accepts addresses only.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use catamaran_proxy::config::{Address, BackendConfig, ListenAddress, Protocol};

/// Why a text is not the URL of a backend.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum UrlError {
    /// The URL has no scheme.
    #[error("has no scheme; write ajp://HOST:PORT, http://HOST:PORT or https://HOST:PORT")]
    NoScheme,
    /// The URL asks for AJP over TLS, which does not exist.
    #[error(
        "asks for AJP over TLS, which no container speaks; write https://, or carry ajp:// through a \
         tunnel such as WireGuard or stunnel"
    )]
    Ajps,
    /// The URL asks for TLS over a Unix socket, which nobody can overhear.
    #[error("asks for TLS on a Unix socket, where nobody can listen in; write http+unix:/PATH")]
    HttpsUnix,
    /// The URL has an unknown scheme.
    #[error(
        "has the unknown scheme `{0}`; write ajp://HOST:PORT, http://HOST:PORT, https://HOST:PORT, \
         ajp+unix:/PATH or http+unix:/PATH"
    )]
    Scheme(String),
    /// The URL has a user name or password.
    #[error("has a user name in it; an AJP secret belongs in `secret`, anything else is not sent")]
    User,
    /// The URL has a path, query or fragment.
    #[error(
        "has a path; end it after the port, and change the path of requests with `rewrite` of their [[route]]"
    )]
    Path,
    /// The URL has no port, and none is assumed.
    #[error("has no port; write {0}:{1}")]
    NoPort(String, u16),
    /// The port is not a number from 1 to 65535.
    #[error("has a bad port; write a number from 1 to 65535")]
    Port,
    /// The host is neither a name nor an address.
    #[error("has a bad host; write a name, an IPv4 address, or an IPv6 address in brackets")]
    Host,
    /// The path of the Unix socket is not valid.
    #[error(transparent)]
    Unix(#[from] UnixPathError),
}

/// The parts of the URL of a backend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackendUrl {
    /// The protocol to speak with the backend.
    pub protocol: Protocol,
    /// The address to connect to.
    pub address: Address,
    /// Whether the connections use TLS.
    pub tls: bool,
}

impl BackendUrl {
    /// The settings of this backend with every default. TLS must still be set up.
    pub(crate) fn backend(self) -> BackendConfig {
        let mut backend = BackendConfig::new(self.protocol, self.address);
        if self.tls {
            backend.name = format!("https://{}", backend.address);
            backend.jvm_route.clone_from(&backend.name);
        }
        backend
    }
}

/// Parses the URL of a backend: `ajp://host:port`, `http://host:port`, `https://host:port`, `ajp+unix:/path` or
/// `http+unix:/path`.
///
/// Host names are converted to lower case. A relative path is kept as it is.
///
/// # Errors
/// The text has none of these five forms.
pub fn parse_upstream_url(text: &str) -> Result<BackendUrl, UrlError> {
    let (scheme, rest) = text.split_once(':').ok_or(UrlError::NoScheme)?;
    let scheme = scheme.to_ascii_lowercase();
    let (protocol, address) = match scheme.as_str() {
        "ajp" => (Protocol::Ajp, tcp(&scheme, rest, 8009)?),
        "http" => (Protocol::Http, tcp(&scheme, rest, 8080)?),
        "https" => (Protocol::Http, tcp(&scheme, rest, 8443)?),
        "ajp+unix" => (Protocol::Ajp, Address::Unix(unix_path(rest)?)),
        "http+unix" => (Protocol::Http, Address::Unix(unix_path(rest)?)),
        "ajps" | "ajps+unix" => return Err(UrlError::Ajps),
        "https+unix" => return Err(UrlError::HttpsUnix),
        // `localhost:8009` splits into a scheme and a port: say what is missing instead.
        _ if !rest.starts_with('/') => return Err(UrlError::NoScheme),
        _ => return Err(UrlError::Scheme(scheme)),
    };
    Ok(BackendUrl {
        protocol,
        address,
        tls: scheme == "https",
    })
}

/// Parses the host and port of a URL. Without a port, the error names `usual_port`.
fn tcp(scheme: &str, rest: &str, usual_port: u16) -> Result<Address, UrlError> {
    let authority = rest.strip_prefix("//").ok_or(UrlError::NoScheme)?;
    if authority.contains(['/', '?', '#']) {
        return Err(UrlError::Path);
    }
    if authority.contains('@') {
        return Err(UrlError::User);
    }
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => (host, Some(port)),
        _ => (authority, None),
    };
    let host = host_name(host).ok_or(UrlError::Host)?;
    let Some(port) = port else {
        return Err(UrlError::NoPort(
            format!("{scheme}://{authority}"),
            usual_port,
        ));
    };
    match port_number(port) {
        Some(port @ 1..) => Ok(Address::Tcp { host, port }),
        Some(0) | None => Err(UrlError::Port),
    }
}

/// A host name or address in the form that `Address` needs: in lower case, IPv6 without its brackets.
fn host_name(host: &str) -> Option<String> {
    if let Some(inner) = host.strip_prefix('[') {
        let address: Ipv6Addr = inner.strip_suffix(']')?.parse().ok()?;
        return Some(address.to_string());
    }
    if host.parse::<Ipv4Addr>().is_ok() {
        return Some(host.to_owned());
    }
    let is_name = host.split('.').all(is_label) && host.len() <= 253;
    // A last label of digits only would be an IPv4 address with a slip, such as 10.0.0.256.
    let last_label = host.rsplit('.').next()?;
    let is_numeric = last_label.bytes().all(|byte| byte.is_ascii_digit());
    (is_name && !is_numeric).then(|| host.to_ascii_lowercase())
}

/// Parses an address with a port, such as a `SocketAddr`.
pub(crate) fn parse_socket<T: FromStr>(text: &str) -> Result<T, &'static str> {
    let wrong = "must be an address and port such as \"127.0.0.1:8600\"";
    text.parse().map_err(|_| wrong)
}

/// Parses a name that DNS may know; its labels may begin with an underscore.
pub(crate) fn parse_dns_name(text: &str) -> Result<String, UrlError> {
    let name = text.strip_suffix('.').unwrap_or(text);
    let is_good = |label: &str| is_label(label.strip_prefix('_').unwrap_or(label));
    let labels_good = name.split('.').all(is_good) && name.len() <= 253;
    let is_address = name.parse::<Ipv4Addr>().is_ok();
    if labels_good && !is_address {
        Ok(text.to_ascii_lowercase())
    } else {
        Err(UrlError::Host)
    }
}

/// Parses a host name or an address in the form in which a certificate has it.
pub(crate) fn parse_server_name(text: &str) -> Result<String, UrlError> {
    match text.parse::<Ipv6Addr>() {
        Ok(address) => Ok(address.to_string()),
        Err(_) => host_name(text).ok_or(UrlError::Host),
    }
}

/// Whether a text is a label of a host name. An underscore is allowed: the standard forbids it, but many names
/// of containers have one.
pub(crate) fn is_label(label: &str) -> bool {
    let letters = label
        .bytes()
        .all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_');
    (1..=63).contains(&label.len()) && letters && !label.starts_with('-') && !label.ends_with('-')
}

/// Parses a host and a port such as `log.example.org:514`; `None`: the text is no such thing.
pub(super) fn host_and_port(text: &str) -> Option<(String, u16)> {
    let (host, port) = text.rsplit_once(':')?;
    let port = port_number(port).filter(|&port| port != 0)?;
    Some((host_name(host)?, port))
}

/// Parses a port. It accepts digits only: `str::parse` would accept a leading plus.
fn port_number(text: &str) -> Option<u16> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| digits)
}

/// Whether nobody outside this machine can reach or overhear the address.
pub(crate) fn is_local(address: &Address) -> bool {
    match address {
        Address::Unix(_) => true,
        Address::Tcp { host, .. } => {
            host == "localhost"
                || host
                    .parse()
                    .is_ok_and(|address: IpAddr| address.is_loopback())
        }
    }
}

/// Why a text is not an address to listen on.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum ListenError {
    /// The text is a URL.
    #[error("is a URL; write the address and port alone, such as 127.0.0.1:8080")]
    Url,
    /// The text is the path of a socket without `unix:`.
    #[error("is a path; write unix:{0}")]
    Path(String),
    /// The text has no port.
    #[error("has no port; write 127.0.0.1:8080, or unix:/PATH for a socket")]
    NoPort,
    /// The text is a port and nothing else.
    #[error(
        "is a port alone; write [::]:{0} for all of IPv4 and IPv6, 127.0.0.1:{0} for this machine alone"
    )]
    OnlyPort(u16),
    /// The port is not valid.
    #[error("has a bad port; write a number from 0 to 65535 (0: the system chooses)")]
    Port,
    /// The address is `*` or empty.
    #[error("has no address; write [::]:{0} for all of IPv4 and IPv6, 0.0.0.0:{0} for IPv4 alone")]
    Any(u16),
    /// The text has a name and not an address.
    #[error("has the name `{0}`; write an address, such as 127.0.0.1:{1}, or [::1]:{1}")]
    Name(String, u16),
    /// The path of the Unix socket is not valid.
    #[error(transparent)]
    Unix(#[from] UnixPathError),
}

/// Parses an address to listen on: `127.0.0.1:8080`, `[::1]:8080` or `unix:/path`. A relative path is kept as
/// it is.
///
/// # Errors
/// The text is neither an address with a port nor a valid path after `unix:`.
pub fn parse_listen_address(text: &str) -> Result<ListenAddress, ListenError> {
    if let Some(path) = text.strip_prefix("unix:") {
        return Ok(ListenAddress::Unix(unix_path(path)?));
    }
    if text.starts_with(['/', '.']) && text.contains('/') {
        return Err(ListenError::Path(text.to_owned()));
    }
    if text.contains('/') {
        return Err(ListenError::Url);
    }
    let Some((host, port)) = text.rsplit_once(':') else {
        return Err(port_number(text).map_or(ListenError::NoPort, ListenError::OnlyPort));
    };
    if port.ends_with(']') {
        return Err(ListenError::NoPort);
    }
    let port = port_number(port).ok_or(ListenError::Port)?;
    if host.is_empty() || host == "*" {
        return Err(ListenError::Any(port));
    }
    let bracketed = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'));
    let ip = match bracketed {
        Some(ipv6) => ipv6.parse().ok().map(IpAddr::V6),
        None => host.parse().ok().map(IpAddr::V4),
    };
    match ip {
        Some(ip) => Ok(ListenAddress::Tcp(SocketAddr::new(ip, port))),
        None => Err(ListenError::Name(host.to_owned(), port)),
    }
}

/// Why a text is not the path of a Unix socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnixPathError {
    /// The text is empty, or ends in a slash, as only a directory does.
    #[error("needs the path of a socket after the colon, such as unix:/run/app.sock")]
    Empty,
    /// The text begins with `//`, as in a URL.
    #[error("has slashes before its path; write one, such as unix:/run/app.sock")]
    Slashes,
    /// The text is longer than the address of a socket can be.
    #[error("has a path that is too long for a socket: the system takes {UNIX_PATH_MAX} bytes")]
    Long,
    /// The text has a control character.
    #[error("has a control character in its path; remove it")]
    Control,
}

/// Parses the path of a socket. It is refused if a socket with this path cannot be bound.
pub(super) fn unix_path(text: &str) -> Result<PathBuf, UnixPathError> {
    if text.starts_with("//") {
        return Err(UnixPathError::Slashes);
    }
    if text.is_empty() || text.ends_with('/') {
        return Err(UnixPathError::Empty);
    }
    if text.contains(char::is_control) {
        return Err(UnixPathError::Control);
    }
    let path = PathBuf::from(text);
    fits(&path).map(|()| path)
}

/// Faults a path that is too long for the address of a socket.
fn fits(path: &Path) -> Result<(), UnixPathError> {
    match path.as_os_str().len() {
        0..=UNIX_PATH_MAX => Ok(()),
        _ => Err(UnixPathError::Long),
    }
}

/// Makes the path of a Unix socket start from the directory `base` if it is relative, as other paths of the
/// file do.
pub(crate) fn from_directory(base: &Path, path: &mut PathBuf) -> Result<(), UnixPathError> {
    *path = base.join(&*path);
    fits(path)
}

/// As [`from_directory`], for an address to listen on; an address of TCP is left as it is.
pub(crate) fn listen_from(base: &Path, address: &mut ListenAddress) -> Result<(), UnixPathError> {
    match address {
        ListenAddress::Unix(path) => from_directory(base, path),
        ListenAddress::Tcp(_) => Ok(()),
    }
}

/// As [`from_directory`], for the address of a backend; an address of TCP is left as it is.
pub(crate) fn backend_from(base: &Path, url: &mut BackendUrl) -> Result<(), UnixPathError> {
    match &mut url.address {
        Address::Unix(path) => from_directory(base, path),
        Address::Tcp { .. } => Ok(()),
    }
}

/// The bytes of Linux's `sun_path` without the closing NUL.
const UNIX_PATH_MAX: usize = 107;

#[cfg(test)]
mod tests;

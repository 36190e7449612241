//! The client of the admin listener of a running front.
//!
//! Each request uses a new connection.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use catamaran_admin_api::Problem;
use catamaran_config::{parse_listen_address, read_secret};
use catamaran_http_client::name::{AUTHORIZATION, CONTENT_TYPE, IF_MATCH};
use catamaran_http_client::{BlockingClient, ClientRequest, Fields, ServerAddress};
use catamaran_proxy::config::ListenAddress;
use http::Method;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::failure::Failure;

/// How the admin listener is found.
#[derive(clap::Args, Debug)]
pub(crate) struct At {
    /// The admin listener, such as unix:/run/catamaran/admin.sock or 127.0.0.1:9090 [default: that of
    /// --config, or else unix:/run/catamaran/admin.sock]. Given several times, `drain`, `stop`, `activate`,
    /// `weight` and `reset` change every front, and say where they could not
    #[arg(long, value_name = "ADDRESS", value_parser = parse_listen_address)]
    admin: Vec<ListenAddress>,

    /// The configuration file of the front, for the address of its admin listener
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,

    /// A file with the token, for changes over TCP [default: that of --config]
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
}

/// A client of one admin listener.
#[derive(Debug)]
pub(crate) struct Client {
    address: ListenAddress,
    token: Option<String>,
}

/// The answer to a request.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: Value,
}

impl Answer {
    /// The front's reason for a refusal; `None` if the answer contains none.
    pub(crate) fn detail(&self) -> Option<String> {
        let problem: Problem = serde_json::from_value(self.body.clone()).ok()?;
        Some(problem.detail).filter(|detail| !detail.is_empty())
    }
}

impl At {
    /// The options for one admin listener: at this address, or at the usual socket if it is `None`.
    pub(crate) fn new(admin: Option<ListenAddress>, token_file: Option<PathBuf>) -> Self {
        Self {
            admin: admin.into_iter().collect(),
            config: None,
            token_file,
        }
    }

    /// The client for the admin listener, for commands that ask a single front.
    ///
    /// # Errors
    /// Several admin listeners are given, or as for [`Self::clients`].
    pub(crate) fn client(&self) -> Result<Client, Failure> {
        let mut clients = self.clients()?;
        match (clients.pop(), clients.is_empty()) {
            (Some(client), true) => Ok(client),
            _ => Err(Failure::Usage(
                "this command asks one front: give --admin once".to_owned(),
            )),
        }
    }

    /// The clients for all admin listeners that the options name; there is at least one.
    ///
    /// # Errors
    /// The configuration or the token file cannot be read, or the configuration has no `[admin]`.
    pub(crate) fn clients(&self) -> Result<Vec<Client>, Failure> {
        let admin = match &self.config {
            Some(path) => super::check::load(path)?.config.admin,
            None => None,
        };
        let token = match &self.token_file {
            Some(path) => Some(read_secret(path).map_err(|error| {
                Failure::Fault(format!("cannot read {}: {error}", path.display()))
            })?),
            None => {
                let configured = admin.as_ref().and_then(|admin| admin.token.as_ref());
                configured.map(|token| String::from_utf8_lossy(token.as_bytes()).into_owned())
            }
        };
        let configured = admin.and_then(|admin| preferred(admin.addresses));
        let addresses = if !self.admin.is_empty() {
            self.admin.clone()
        } else if let Some(address) = configured {
            vec![address]
        } else if let Some(path) = &self.config {
            return Err(Failure::Fault(format!(
                "{} has no [admin]; add one, or give the address with --admin",
                path.display()
            )));
        } else {
            vec![ListenAddress::Unix(Path::new(SOCKET).to_owned())]
        };
        let client = |address| Client {
            address,
            token: token.clone(),
        };
        Ok(addresses.into_iter().map(client).collect())
    }
}

/// The address to use of a front's admin listeners: a Unix socket if there is one, because it needs no
/// token.
fn preferred(addresses: Vec<ListenAddress>) -> Option<ListenAddress> {
    let is_unix = |address: &&ListenAddress| matches!(address, ListenAddress::Unix(_));
    let unix = addresses.iter().find(is_unix).cloned();
    unix.or_else(|| addresses.into_iter().next())
}

impl Client {
    /// Sends a request, and returns the answer, also one that is a refusal.
    pub(crate) fn ask(
        &self,
        method: &str,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Answer, Failure> {
        let failed = |error: io::Error| {
            let place = self.place();
            let hint = match error.kind() {
                io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => {
                    "; nothing listens there. Start the front, or give the address of its [admin] \
                     with --admin, or its file with --config"
                }
                io::ErrorKind::PermissionDenied => "; only the front's user may open it",
                io::ErrorKind::InvalidData => return self.stranger(),
                _ => "",
            };
            Failure::Fault(format!("cannot ask the front at {place}: {error}{hint}"))
        };
        let (status, text) = self.exchange(method, path, body).map_err(failed)?;
        let body = serde_json::from_slice(&text).map_err(|_| self.stranger())?;
        Ok(Answer { status, body })
    }

    /// The failure that whatever listens at the address does not answer as an admin listener does.
    fn stranger(&self) -> Failure {
        let place = self.place();
        Failure::Fault(format!("at {place} there is no admin listener of a front"))
    }

    /// As [`Self::ask`], but a refusal is returned as a failure with the front's reason.
    pub(crate) fn expect(
        &self,
        method: &str,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Value, Failure> {
        let answer = self.ask(method, path, body)?;
        match answer.status {
            200..300 => Ok(answer.body),
            status => Err(Failure::Fault(match answer.detail() {
                Some(detail) => detail,
                None => format!("the front answered {status}"),
            })),
        }
    }

    /// As [`Self::expect`], but returns the answer's body as a value of type `T`.
    pub(crate) fn object<T: DeserializeOwned>(
        &self,
        method: &str,
        path: &str,
        body: Option<&Value>,
    ) -> Result<T, Failure> {
        understood(self.expect(method, path, body)?)
    }

    /// Sends a request on a new connection, and returns the status and the body of the answer.
    fn exchange(
        &self,
        method: &str,
        path: &str,
        body: Option<&Value>,
    ) -> io::Result<(u16, Vec<u8>)> {
        let (address, host) = match &self.address {
            ListenAddress::Tcp(address) => {
                (ServerAddress::Tcp(reachable(*address)), address.to_string())
            }
            ListenAddress::Unix(path) => {
                (ServerAddress::Unix(path.clone()), "localhost".to_owned())
            }
        };
        let mut fields = Fields::new();
        if let Some(token) = &self.token {
            fields.append(AUTHORIZATION, format!("Bearer {token}"));
        }
        // Commands are for the front as it is, whatever was read of it before.
        if method != "GET" {
            fields.append(IF_MATCH, "*");
            fields.append(CONTENT_TYPE, "application/json");
        }
        let body = body.map_or_else(String::new, Value::to_string);
        let request = ClientRequest {
            method: &Method::try_from(method).map_err(io::Error::other)?,
            target: path,
            host: &host,
            fields: &fields,
            body: body.as_bytes(),
        };
        let mut text = Vec::new();
        let mut client = BlockingClient::connect(&address, TIMEOUT)?;
        let answer = client.ask(&request, ANSWER_MAX, |bytes| text.extend_from_slice(bytes))?;
        if answer.is_whole {
            Ok((answer.head.status.as_u16(), text))
        } else {
            Err(io::Error::other(format!(
                "the answer is longer than {} MiB",
                ANSWER_MAX >> 20
            )))
        }
    }

    /// The address of the admin listener, in the form that `--admin` takes.
    pub(crate) fn place(&self) -> String {
        match &self.address {
            ListenAddress::Tcp(address) => address.to_string(),
            ListenAddress::Unix(path) => format!("unix:{}", path.display()),
        }
    }
}

/// Converts the JSON of an answer into a value of type `T`. The front's version may differ from this program's, so
/// that this can fail.
pub(super) fn understood<T: DeserializeOwned>(answer: Value) -> Result<T, Failure> {
    serde_json::from_value(answer)
        .map_err(|error| Failure::Fault(format!("the front's answer is not understood: {error}")))
}

/// An object of the API as the JSON text that `--json` prints.
pub(super) fn pretty(object: &impl Serialize) -> Result<String, Failure> {
    let value = serde_json::to_value(object).map_err(|error| Failure::of(&error))?;
    Ok(format!("{value:#}\n"))
}

/// An address at which a listener can be reached: for one on all addresses, the loopback address.
fn reachable(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}

/// Where the front's admin listener is unless something else is configured.
const SOCKET: &str = "/run/catamaran/admin.sock";

/// How long to wait for an answer of the front.
const TIMEOUT: Duration = Duration::from_secs(30);

/// The most bytes of an answer: more than the status of a front with 10,000 backends.
const ANSWER_MAX: u64 = 64 << 20;

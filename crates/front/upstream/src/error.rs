//! Errors between the front and a backend, by operation and by culprit.
//!
//! Each error says who is to blame (only a backend's own failures count against its health), and has
//! a reason token for logs and counters, and the status for the client if no other backend can be
//! tried.

use std::net::SocketAddr;
use std::time::Duration;
use std::{fmt, io};

use catamaran_tls::TlsError;
use catamaran_transport::{HandshakeError, Truncated};
use http::StatusCode;
use thiserror::Error;

/// Who is to blame for a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Culprit {
    /// The backend: unreachable, silent, or wrong on the wire.
    Backend,
    /// The client, or the request that it sent.
    Client,
    /// The front: one of its limits was reached, or it lacks a resource.
    Front,
}

impl fmt::Display for Culprit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Backend => "backend",
            Self::Client => "client",
            Self::Front => "front",
        })
    }
}

/// Why no connection could be leased. Nothing was sent, so any request may be tried elsewhere.
#[derive(Debug, Error)]
pub enum LeaseError {
    /// No connection could be established to any address of the backend.
    #[error("cannot connect{tried}")]
    Dial {
        /// The system's error for the last address that failed.
        source: io::Error,
        /// The addresses that the dial tried.
        tried: Tried,
    },
    /// The connection was not established in time.
    #[error("no connection within {limit:?}{tried}")]
    DialTimeout {
        /// The limit, `connect_timeout`.
        limit: Duration,
        /// The addresses that the dial tried.
        tried: Tried,
    },
    /// The backend's name has never been resolved.
    #[error("its name does not resolve: {reason}")]
    Unresolved {
        /// The resolver's error, in words.
        reason: String,
    },
    /// The TLS handshake failed, for example because the certificate is not trusted.
    #[error("the handshake of TLS failed")]
    Handshake {
        /// Why the handshake failed.
        source: HandshakeError,
    },
    /// A new connection did not answer CPING correctly in time.
    #[error("{how}")]
    Ping {
        /// How the backend reacted to CPING.
        how: PingFailure,
    },
    /// The backend has as many open tunnels as it may.
    #[error("all {limit} tunnels are open")]
    TunnelsMax {
        /// The limit, `tunnels_max`.
        limit: usize,
    },
    /// All connections are in use and the queue is full.
    #[error("all {connections} connections in use and {queue} exchanges waiting")]
    QueueFull {
        /// The limit, `connections_max`.
        connections: usize,
        /// The limit, `queue_max`.
        queue: usize,
    },
    /// All connections stayed in use until the wait in the queue had timed out.
    #[error("no connection became free within {limit:?}")]
    QueueTimeout {
        /// The limit, `queue_timeout`.
        limit: Duration,
    },
}

/// What a backend did instead of answering CPING.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PingFailure {
    /// The backend sent nothing in time.
    Silent,
    /// The backend closed the connection.
    Closed,
    /// The backend sent another AJP13 message, such as a response 403.
    Other,
    /// The backend sent bytes that are not AJP13, or too many.
    Garbled,
}

impl fmt::Display for PingFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Silent => "no answer to CPING",
            Self::Closed => "no answer to CPING: the connection was closed",
            Self::Other => {
                "no answer to CPING: something else came, as from a connector that refuses it (403)"
            }
            Self::Garbled => "no answer to CPING: what came is not AJP13",
        })
    }
}

/// The addresses that a dial tried, in the order in which it tried them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tried(pub(crate) Vec<SocketAddr>);

impl Tried {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Display for Tried {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            Ok(())
        } else {
            write!(f, " to {}", Listed(self.0.iter()))
        }
    }
}

/// Displays items with commas between them.
pub(crate) struct Listed<I>(pub(crate) I);

impl<I: Iterator<Item: fmt::Display> + Clone> fmt::Display for Listed<I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, item) in self.0.clone().enumerate() {
            let separator = if index == 0 { "" } else { ", " };
            write!(f, "{separator}{item}")?;
        }
        Ok(())
    }
}

impl LeaseError {
    /// The error as a token, for logs and counters.
    #[must_use]
    pub fn token(&self) -> &'static str {
        match self {
            Self::Dial { .. } => "connect-failed",
            Self::DialTimeout { .. } => "connect-timeout",
            Self::Unresolved { .. } => "name-unresolved",
            Self::Handshake {
                source: HandshakeError::Tls(error),
            } => error.server_token(),
            Self::Handshake { .. } => "tls-handshake",
            Self::Ping { .. } => "ping-failed",
            Self::TunnelsMax { .. } => "tunnels-max",
            Self::QueueFull { .. } => "queue-full",
            Self::QueueTimeout { .. } => "queue-timeout",
        }
    }

    /// Why the backend is out after this error: a clause in which "it" is the backend.
    pub(crate) fn trouble(&self) -> String {
        match self {
            Self::Unresolved { .. } => self.to_string(),
            _ => format!("it cannot be connected to: {}", self.with_cause()),
        }
    }

    /// The error and what caused it, in words.
    pub(crate) fn with_cause(&self) -> String {
        match std::error::Error::source(self) {
            Some(cause) => format!("{self}: {cause}"),
            None => self.to_string(),
        }
    }

    /// Who is to blame for the failure.
    #[must_use]
    pub fn culprit(&self) -> Culprit {
        match self {
            Self::Dial { source, .. } if is_shortage(source) => Culprit::Front,
            Self::Dial { .. }
            | Self::DialTimeout { .. }
            | Self::Unresolved { .. }
            | Self::Handshake { .. }
            | Self::Ping { .. } => Culprit::Backend,
            Self::TunnelsMax { .. } | Self::QueueFull { .. } | Self::QueueTimeout { .. } => {
                Culprit::Front
            }
        }
    }

    /// The status for the client if no other backend can serve. It is the same as when the backend is
    /// out, so the first request that fails is answered like those after it. 502 and 504 are for
    /// backends that got a request. (HAProxy does the same; nginx gives 502 or 504.) A failed TLS
    /// handshake gives 502: the backend answered, but with a wrong certificate, for example.
    #[must_use]
    pub fn status(&self) -> StatusCode {
        match self {
            Self::Handshake { .. } => StatusCode::BAD_GATEWAY,
            _ => StatusCode::SERVICE_UNAVAILABLE,
        }
    }
}

/// What broke a connection, as a token.
fn io_token(error: &io::Error) -> &'static str {
    match error.get_ref() {
        Some(inner) if inner.is::<Truncated>() => "tls-truncated",
        Some(inner) => match inner.downcast_ref::<TlsError>() {
            Some(error) if error.alert().is_some() => "tls-alert",
            Some(_) => "tls-record",
            None => "io",
        },
        None => "io",
    }
}

/// Whether the front itself lacks what a connection needs: descriptors, memory or ports. Clients can
/// cause that, so the backend is not blamed.
fn is_shortage(error: &io::Error) -> bool {
    /// The Linux error numbers ENFILE (23), EMFILE (24) and ENOBUFS (105), for which there is no `io::ErrorKind`.
    const SHORTAGES: [i32; 3] = [23, 24, 105];
    let number = error.raw_os_error();
    number.is_some_and(|number| SHORTAGES.contains(&number))
        || matches!(
            error.kind(),
            io::ErrorKind::OutOfMemory | io::ErrorKind::AddrNotAvailable
        )
}

/// A request that cannot be encoded in the backend's protocol. Nothing was written, and the
/// connection can be used for another request.
#[derive(Debug, Error)]
pub enum RequestError {
    /// The AJP13 encoder refuses the request, for example because its head is larger than one packet.
    #[error("the request does not fit AJP13")]
    Ajp(#[from] catamaran_ajp::RequestError),
    /// The HTTP/1.1 encoder refuses the request.
    #[error("the request does not fit HTTP/1.1")]
    Http(#[from] catamaran_http1::RequestError),
}

impl RequestError {
    /// The error as a token, for logs and counters.
    #[must_use]
    pub fn token(&self) -> &'static str {
        match self {
            Self::Ajp(catamaran_ajp::RequestError::HeadTooLarge { .. }) => "ajp-head-too-large",
            Self::Ajp(_) => "ajp-head",
            Self::Http(_) => "http-head",
        }
    }

    /// The status for the client. mod_jk answers 413 to a head larger than a packet, mod_proxy_ajp
    /// 400; RFC 6585 has 431 for it.
    #[must_use]
    pub fn status(&self) -> StatusCode {
        use catamaran_ajp::RequestError::{FieldNameTooLong, HeadTooLarge, TooManyFields};
        match self {
            Self::Ajp(HeadTooLarge { .. } | TooManyFields { .. } | FieldNameTooLong { .. }) => {
                StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE
            }
            Self::Ajp(_) | Self::Http(_) => StatusCode::BAD_REQUEST,
        }
    }
}

/// Why an exchange failed. Its connection cannot be used again.
#[derive(Debug, Error)]
pub enum Error {
    /// The connection failed while reading or writing.
    #[error("the connection to the backend failed")]
    Io(#[source] io::Error),
    /// The backend closed the connection before the response ended.
    #[error("the backend closed the connection early")]
    Closed,
    /// The backend sent something that is not AJP13, or that AJP13 does not allow at this point.
    #[error("the backend violated AJP13")]
    Ajp(#[source] catamaran_ajp::Fault),
    /// The backend sent something that is not HTTP/1.1.
    #[error("the backend violated HTTP/1.1")]
    Http(#[source] catamaran_http1::Fault),
}

impl Error {
    /// The error as a token, for logs and counters.
    #[must_use]
    pub fn token(&self) -> &'static str {
        match self {
            Self::Io(error) => io_token(error),
            Self::Closed => "closed",
            Self::Ajp(fault) => fault.token(),
            Self::Http(fault) => fault.token(),
        }
    }

    /// Whether the connection broke, as opposed to a violation of the protocol. A reused connection
    /// may break because the backend closed it as idle.
    #[must_use]
    pub fn is_disconnect(&self) -> bool {
        matches!(self, Self::Io(_) | Self::Closed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_dial_says_where_and_why() {
        let dial = |tried: &[SocketAddr]| LeaseError::Dial {
            source: io::Error::other("refused"),
            tried: Tried(tried.to_vec()),
        };
        let at = |port| SocketAddr::from(([127, 0, 0, 1], port));
        for (error, expected) in [
            (dial(&[]), "cannot connect: refused"),
            (
                dial(&[at(1), at(2)]),
                "cannot connect to 127.0.0.1:1, 127.0.0.1:2: refused",
            ),
        ] {
            assert_eq!(error.with_cause(), expected);
            let trouble = format!("it cannot be connected to: {expected}");
            assert_eq!(error.trouble(), trouble);
        }
        let full = LeaseError::TunnelsMax { limit: 1 };
        assert_eq!(full.with_cause(), full.to_string());
    }

    #[test]
    fn a_shortage_of_ours_is_not_the_backends_fault() {
        let dial = |number| LeaseError::Dial {
            source: io::Error::from_raw_os_error(number),
            tried: Tried::default(),
        };
        // ECONNREFUSED, EHOSTUNREACH, ENOENT of a Unix socket.
        for number in [111, 113, 2] {
            assert_eq!(dial(number).culprit(), Culprit::Backend, "{number}");
        }
        // ENFILE, EMFILE, ENOBUFS, ENOMEM, EADDRNOTAVAIL.
        for number in [23, 24, 105, 12, 99] {
            assert_eq!(dial(number).culprit(), Culprit::Front, "{number}");
        }
    }
}

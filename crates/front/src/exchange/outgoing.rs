//! A request as it goes out: cleaned, with our own fields, the same for each attempt.

use catamaran_http1::{Authority, BodyLength, RequestHead};
use catamaran_upstream::{self as upstream, ClientFacts, Lease, RequestError};
use http::header::HOST;
use http::{HeaderValue, Method, StatusCode, Version};

use super::failure::Failure;
use crate::client::ClientConn;
use crate::counters::{Culprit, Reason};
use crate::forwarded::{self, Identity};
use crate::header;
use crate::path::NormalPath;
use crate::site::{Site, Upstream};
use crate::worker::Worker;

pub(super) struct Outgoing {
    /// Its fields have been cleaned.
    head: RequestHead,
    path: NormalPath,
    host: HeaderValue,
    server_name: String,
    server_port: u16,
    local_ip: std::net::IpAddr,
    pub(super) identity: Identity,
}

impl Outgoing {
    /// Cleans the head for the backends of `upstream`.
    pub(super) fn new(
        worker: &Worker,
        (site, upstream): (&Site, &Upstream),
        client: &ClientConn,
        mut head: RequestHead,
        path: NormalPath,
    ) -> Result<Self, Failure> {
        let host = host_value(head.authority.as_ref(), client)
            .ok_or_else(|| Failure::client(StatusCode::BAD_REQUEST, "host-syntax"))?;
        let headers = &mut head.headers;
        let underscored = header::clean_request(headers);
        if underscored > 0 {
            worker
                .counters()
                .reason(Reason::new(Culprit::Client, "underscore-field-dropped"));
        }
        let identity = forwarded::identify(client.peer(), &site.trusted_proxies, headers);
        headers.insert(HOST, host.clone());
        if upstream.wants_forwarded_fields() {
            forwarded::announce(headers, client.peer(), &identity, Some(&host));
        }
        if let Some(pseudonym) = &site.via {
            forwarded::add_via(headers, pseudonym, head.version);
        }
        let (server_name, server_port) = server(head.authority.as_ref(), client, &identity);
        let local_ip = client.local().ip();
        Ok(Self {
            head,
            path,
            host,
            server_name,
            server_port,
            local_ip,
            identity,
        })
    }

    pub(super) fn method(&self) -> &Method {
        &self.head.method
    }

    pub(super) fn version(&self) -> Version {
        self.head.version
    }

    pub(super) fn has_body(&self) -> bool {
        self.head.body != BodyLength::Known(0)
    }

    pub(super) fn expect_continue(&self) -> bool {
        self.head.expect_continue
    }

    /// Encodes the request on a leased connection.
    pub(super) fn send(&self, lease: &mut Lease) -> Result<(), RequestError> {
        lease.send_request(&upstream::Request {
            method: &self.head.method,
            path: &self.path.forward,
            query: self.head.target.query.as_deref(),
            protocol: if self.head.version == Version::HTTP_10 {
                "HTTP/1.0"
            } else {
                "HTTP/1.1"
            },
            host: self.host.as_bytes(),
            headers: &self.head.headers,
            body: match self.head.body {
                BodyLength::Known(length) => upstream::BodyLength::Known(length),
                BodyLength::Unknown => upstream::BodyLength::Unknown,
            },
            client: ClientFacts {
                remote_ip: self.identity.ip,
                remote_port: self.identity.port,
                local_ip: self.local_ip,
                server_name: &self.server_name,
                server_port: self.server_port,
                secure: self.identity.secure,
            },
        })
    }
}

/// The value of `Host`: what the client asked for, or where it connected to.
fn host_value(authority: Option<&Authority>, client: &ClientConn) -> Option<HeaderValue> {
    match authority {
        Some(authority) => HeaderValue::from_maybe_shared(authority.to_bytes()).ok(),
        None => HeaderValue::from_str(&client.local().to_string()).ok(),
    }
}

/// The server's name and port as the client sees them.
fn server(
    authority: Option<&Authority>,
    client: &ClientConn,
    identity: &Identity,
) -> (String, u16) {
    let Some(authority) = authority else {
        let local = client.local();
        return (local.ip().to_string(), local.port());
    };
    let default_port = if identity.secure { 443 } else { 80 };
    let name = String::from_utf8_lossy(&authority.host).into_owned();
    (name, authority.port.unwrap_or(default_port))
}

//! Makes the address to connect to and the request to send from one URL and the settings.
//!
//! The order of header fields is ab's: Connection, Cookie, credentials, the body's, those of `-H`,
//! and then Host, User-Agent and Accept unless `-H` has them.

use std::fs;
use std::net::IpAddr;
use std::num::NonZeroU32;

use bytes::Bytes;
use catamaran_load::plan::{
    Ajp, ClientIdentity, Endpoint, Header, HttpVersion, Protocol, Request, Tls, TlsVersion,
    Transport, Verify,
};

use crate::flag::request::basic;
use crate::flag::tls::TlsSettings;
use crate::getopt::Mode;
use crate::memcached;
use crate::plan::keeps_alive;
use crate::refusal::{Body, Refusal};
use crate::settings::Settings;
use crate::url::{Scheme, Url};

/// Makes the request for a URL.
pub(crate) fn request(settings: &Settings, url: &Url) -> Result<Request, Refusal> {
    let given = &settings.request;
    let version = match settings.mode {
        Mode::Ours if !given.http10 => HttpVersion::Http11,
        _ => HttpVersion::Http10,
    };
    let target = match &given.proxy {
        None => url.path.clone(),
        Some(_) if settings.mode == Mode::Ab => url.text.clone(),
        Some(_) if url.scheme == Scheme::Http => {
            format!("http://{}{}", url.authority, url.path)
        }
        Some(_) => return Err(Refusal::ProxyScheme),
    };
    let method = match (&given.method, given.body) {
        (Some(method), _) => method.clone(),
        (None, Some(body)) => body.to_string(),
        (None, None) => "GET".to_owned(),
    };
    Ok(Request {
        method,
        target,
        version,
        headers: headers(settings, url, version)?,
        body: Bytes::copy_from_slice(&given.content),
        // In ab mode, braces are sent as they are.
        has_placeholders: settings.mode == Mode::Ours,
        name: None,
        weight: NonZeroU32::MIN,
    })
}

/// Whether the request has a body, even an empty one.
pub(crate) fn sends_body(settings: &Settings) -> bool {
    matches!(settings.request.body, Some(Body::Post | Body::Put))
}

/// The header fields of a request to `url`, in ab's order.
fn headers(settings: &Settings, url: &Url, version: HttpVersion) -> Result<Vec<Header>, Refusal> {
    let given = &settings.request;
    let mut headers = Vec::new();
    let mut push = |name: &str, value: &str| headers.push(header(name, value));
    // HTTP/2 has no Connection field.
    if !given.http2 {
        match (keeps_alive(settings), version) {
            (true, HttpVersion::Http10) => push("Connection", "Keep-Alive"),
            (false, HttpVersion::Http11) => push("Connection", "close"),
            // The connection is kept or closed by the default of the HTTP version, so no field is needed.
            (true, HttpVersion::Http11) | (false, HttpVersion::Http10) => {}
        }
    }
    if !given.cookies.is_empty() {
        push("Cookie", &given.cookies.join("; "));
    }
    for (name, value) in &given.credentials {
        push(name, value);
    }
    let lines = given.headers.iter().map(|line| line_to_header(line));
    let own = lines.collect::<Result<Vec<_>, _>>()?;
    let has = |name: &str| {
        own.iter()
            .any(|field| field.name.eq_ignore_ascii_case(name))
    };
    let mut credential_names = given.credentials.iter().map(|(name, _)| *name);
    if let Some(user) = &url.user
        && !credential_names.any(|name| name == AUTHORIZATION)
        && !has(AUTHORIZATION)
    {
        push(AUTHORIZATION, &basic(user));
    }
    if sends_body(settings) {
        push("Content-length", &given.content.len().to_string());
        // ab writes its own type beside that of `-H`.
        if !has("Content-Type") || settings.mode == Mode::Ab {
            let content_type = given.content_type.as_deref();
            push("Content-type", content_type.unwrap_or("text/plain"));
        }
    }
    let mut defaults = Vec::new();
    for (name, value) in [
        ("Host", url.authority.as_str()),
        ("User-Agent", user_agent(settings.mode)),
        ("Accept", "*/*"),
    ] {
        if !has(name) {
            defaults.push(header(name, value));
        }
    }
    headers.extend(own);
    headers.extend(defaults);
    Ok(headers)
}

fn user_agent(mode: Mode) -> &'static str {
    match mode {
        Mode::Ab => "ApacheBench/2.3",
        Mode::Ours => concat!("catamaran-bench/", env!("CARGO_PKG_VERSION")),
    }
}

pub(crate) fn header(name: &str, value: &str) -> Header {
    Header {
        name: name.to_owned(),
        value: value.as_bytes().to_vec(),
    }
}

pub(crate) fn line_to_header(line: &str) -> Result<Header, Refusal> {
    match line.split_once(':') {
        Some((name, value)) if !name.trim().is_empty() => Ok(header(name.trim(), value.trim())),
        _ => Err(Refusal::HeaderLine(line.to_owned())),
    }
}

/// The address, transport and protocol of connections for a URL.
pub(crate) fn endpoint(settings: &Settings, url: &Url) -> Result<Endpoint, Refusal> {
    let transport = match &settings.request.proxy {
        Some((host, port)) => Transport::Tcp {
            host: host.clone(),
            port: *port,
        },
        None => url.transport.clone(),
    };
    let protocol = match url.scheme {
        Scheme::Http | Scheme::Https if settings.request.http2 => Protocol::Http2,
        Scheme::Http | Scheme::Https => Protocol::Http,
        Scheme::Ajp => Protocol::Ajp(ajp(settings, url)),
        Scheme::Memcached => Protocol::Memcached(memcached::options(settings)),
    };
    Ok(Endpoint {
        transport,
        tls: match url.scheme {
            Scheme::Https => Some(tls(&settings.tls, &asked_host(settings, url))?),
            Scheme::Http | Scheme::Ajp | Scheme::Memcached => None,
        },
        protocol,
    })
}

/// The host: of a Host field given by `-H`, or else of the URL.
fn asked_host(settings: &Settings, url: &Url) -> String {
    let lines = settings.request.headers.iter();
    let mut fields = lines.filter_map(|line| line.split_once(':'));
    match fields.find(|(name, _)| name.trim().eq_ignore_ascii_case("host")) {
        Some((_, host)) => host.trim().to_owned(),
        None => url.hostname.clone(),
    }
}

/// The attributes of AJP13 requests for `url`.
fn ajp(settings: &Settings, url: &Url) -> Ajp {
    let host = match url.transport {
        Transport::Unix(_) => "localhost".to_owned(),
        Transport::Tcp { .. } => asked_host(settings, url),
    };
    let (server_name, server_port) = match host.rsplit_once(':') {
        // The last colon of an IPv6 address without brackets begins no port.
        Some((name, port)) if !name.contains(':') || name.ends_with(']') => {
            (name.to_owned(), port.parse().unwrap_or(80))
        }
        _ => (host, 80),
    };
    Ajp {
        secret: settings
            .request
            .secret
            .as_ref()
            .map(|text| text.as_bytes().to_vec()),
        server_name,
        server_port,
        is_ssl: false,
        // The usual size of an AJP13 packet, which every container accepts.
        packet_bytes: 8192,
    }
}

/// The TLS options for connections to `host`.
fn tls(given: &TlsSettings, host: &str) -> Result<Tls, Refusal> {
    let versions = if given.versions.is_empty() {
        vec![TlsVersion::Tls12, TlsVersion::Tls13]
    } else {
        given.versions.clone()
    };
    let verify = match (&given.roots, given.verify) {
        (Some(roots), _) => Verify::Roots(roots.clone()),
        (None, true) => Verify::Roots(system_roots()?),
        (None, false) => Verify::Nothing,
    };
    // An address is no name for SNI (RFC 6066, section 3).
    let has_name = !given.no_sni && host.parse::<IpAddr>().is_err();
    Ok(Tls {
        server_name: has_name.then(|| host.to_owned()),
        verify,
        versions,
        ciphers: given.ciphers.clone(),
        certificate: given.certificate.as_ref().map(|pem| ClientIdentity {
            chain: pem.clone(),
            key: pem.clone(),
        }),
    })
}

fn system_roots() -> Result<Vec<u8>, Refusal> {
    let mut bundles = ROOTS.iter().filter_map(|path| fs::read(path).ok());
    bundles.next().ok_or(Refusal::NoRoots)
}

/// The name of the header field with credentials, which `-A` and a URL with a user send.
const AUTHORIZATION: &str = "Authorization";

/// The files in which systems keep their root certificates: Debian, Fedora, Alpine and openSUSE.
const ROOTS: [&str; 4] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/cert.pem",
    "/etc/ssl/ca-bundle.pem",
];

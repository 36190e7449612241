//! Flags for the request: method, body, header fields, version.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;

use super::ValueKind::Needed;
use super::{Flag, store, switch_on};
use crate::getopt::Mode;
use crate::number;
use crate::refusal::RunKind::{Http2, Memcached, Replay, RequestsFile};
use crate::refusal::{Body, Refusal, RunKind};
use crate::settings::file;

/// The settings of requests: method, body, header fields, version.
#[derive(Debug, Default)]
pub(crate) struct RequestSettings {
    pub(crate) method: Option<String>,
    pub(crate) body: Option<Body>,
    pub(crate) content: Vec<u8>,
    pub(crate) content_type: Option<String>,
    pub(crate) cookies: Vec<String>,
    pub(crate) cookie_jar: bool,
    /// The header fields of `-A` and `-P`: name and value.
    pub(crate) credentials: Vec<(&'static str, String)>,
    pub(crate) headers: Vec<String>,
    pub(crate) proxy: Option<(String, u16)>,
    pub(crate) http10: bool,
    pub(crate) http2: bool,
    pub(crate) secret: Option<String>,
}

impl RequestSettings {
    /// Sets the method by `-i`, `-p` or `-u`. A second of these is refused; in ab mode also one after `-m`.
    fn choose(&mut self, body: Body, mode: Mode) -> Result<(), Refusal> {
        if self.body.is_some() || (mode == Mode::Ab && self.method.is_some()) {
            return Err(Refusal::MixedMethods(body));
        }
        self.body = Some(body);
        Ok(())
    }

    /// Sets the method that `body` stands for, and reads the request's body from the file at `path`.
    fn take_file(&mut self, body: Body, path: &str, mode: Mode) -> Result<(), Refusal> {
        self.choose(body, mode)?;
        self.content = file(path)?;
        Ok(())
    }

    /// Adds a field with Basic credentials for `text`, which is `user:password`. Credentials that are too long for ab's
    /// buffer are refused.
    fn add_credentials(&mut self, name: &'static str, text: &str) -> Result<(), Refusal> {
        let value = basic(text.trim_start());
        if value.len() > CREDENTIALS_BYTES_MAX {
            let proxy = name.starts_with("Proxy");
            return Err(Refusal::Credentials { proxy });
        }
        self.credentials.push((name, value));
        Ok(())
    }
}

pub(super) static FLAGS: &[Flag] = &[
    Flag {
        short: Some('m'),
        long: "method",
        value: Needed("METHOD"),
        help: "The method, any word",
        conflicts: &[
            (Memcached, "a method or body"),
            (RequestsFile, "-m"),
            (Replay, "-m"),
        ],
        apply: |settings, given| store(&mut settings.request.method, given.owned()),
        ..Flag::OURS
    },
    Flag {
        short: Some('i'),
        long: "head",
        help: "HEAD instead of GET",
        conflicts: BODY_CONFLICTS,
        apply: |settings, given| settings.request.choose(Body::Head, given.mode),
        ..Flag::OURS
    },
    Flag {
        short: Some('p'),
        long: "post",
        aliases: &["body"],
        value: Needed("FILE"),
        help: "POST this file; see -T",
        conflicts: BODY_CONFLICTS,
        apply: |settings, given| {
            let request = &mut settings.request;
            request.take_file(Body::Post, given.text(), given.mode)
        },
        ..Flag::OURS
    },
    Flag {
        short: Some('u'),
        long: "put",
        value: Needed("FILE"),
        help: "PUT this file; see -T",
        conflicts: BODY_CONFLICTS,
        apply: |settings, given| {
            let request = &mut settings.request;
            request.take_file(Body::Put, given.text(), given.mode)
        },
        ..Flag::OURS
    },
    Flag {
        long: "data",
        value: Needed("TEXT"),
        help: "POST this text, or with @FILE that file; see -T",
        conflicts: BODY_CONFLICTS,
        apply: |settings, given| {
            let request = &mut settings.request;
            match given.text().strip_prefix('@') {
                Some(path) => request.take_file(Body::Post, path, given.mode)?,
                None => {
                    request.choose(Body::Post, given.mode)?;
                    request.content = given.text().as_bytes().to_vec();
                }
            }
            Ok(())
        },
        ..Flag::OURS
    },
    Flag {
        short: Some('T'),
        long: "content-type",
        value: Needed("TYPE"),
        help: "Content-type of the body [default: text/plain]",
        conflicts: &[(Memcached, "-T")],
        apply: |settings, given| store(&mut settings.request.content_type, given.owned()),
        ..Flag::OURS
    },
    Flag {
        short: Some('C'),
        long: "cookie",
        value: Needed("NAME=VALUE"),
        help: "A cookie; repeatable (as ab, the last one counts)",
        conflicts: &[(Memcached, "cookies")],
        apply: |settings, given| {
            if given.mode == Mode::Ab {
                settings.request.cookies.clear();
            }
            settings.request.cookies.push(given.owned());
            Ok(())
        },
        ..Flag::OURS
    },
    Flag {
        long: "cookie-jar",
        help: "Each client keeps the cookies that it is given and sends them back",
        conflicts: &[(Memcached, "cookies")],
        apply: |settings, _| switch_on(&mut settings.request.cookie_jar),
        ..Flag::OURS
    },
    Flag {
        short: Some('H'),
        long: "header",
        value: Needed("LINE"),
        help: "A header line, such as 'Accept-Encoding: gzip'; repeatable; replaces our own Host, User-Agent and \
               Accept",
        conflicts: &[(Memcached, "-H")],
        apply: |settings, given| {
            settings.request.headers.push(given.owned());
            Ok(())
        },
        ..Flag::OURS
    },
    Flag {
        short: Some('A'),
        long: "auth",
        value: Needed("USER:PASSWORD"),
        is_secret: true,
        help: "Basic authorization",
        conflicts: &[(Memcached, "-A and -P")],
        apply: |settings, given| {
            let request = &mut settings.request;
            request.add_credentials("Authorization", given.text())
        },
        ..Flag::OURS
    },
    Flag {
        short: Some('P'),
        long: "proxy-auth",
        value: Needed("USER:PASSWORD"),
        is_secret: true,
        help: "Basic authorization for the proxy",
        conflicts: &[(Memcached, "-A and -P")],
        apply: |settings, given| {
            let request = &mut settings.request;
            request.add_credentials("Proxy-Authorization", given.text())
        },
        ..Flag::OURS
    },
    Flag {
        short: Some('X'),
        long: "proxy",
        value: Needed("HOST[:PORT]"),
        help: "Send requests to this HTTP proxy [default port: 80]",
        conflicts: &[(Memcached, "-X"), (Http2, "-X")],
        apply: |settings, given| {
            let proxy = proxy(given.text(), given.mode);
            settings.request.proxy = Some(proxy.ok_or_else(|| given.bad("HOST[:PORT]"))?);
            Ok(())
        },
        ..Flag::OURS
    },
    Flag {
        long: "http1-0",
        aliases: &["http1.0"],
        help: "Speak HTTP/1.0, as ab does (also --http1.0)",
        conflicts: &[(Memcached, "--http1.0"), (Http2, "--http1.0")],
        apply: |settings, _| switch_on(&mut settings.request.http10),
        ..Flag::OURS
    },
    Flag {
        long: "http2",
        aliases: &["h2"],
        help: "Speak HTTP/2: over https if the server agrees to it (ALPN), over http without asking; implies -k",
        conflicts: &[(Memcached, "--http2")],
        apply: |settings, _| switch_on(&mut settings.request.http2),
        ..Flag::OURS
    },
    Flag {
        long: "secret",
        value: Needed("TEXT"),
        is_secret: true,
        help: "The secret of an AJP13 connector",
        conflicts: &[(Memcached, "--secret")],
        apply: |settings, given| store(&mut settings.request.secret, given.owned()),
        ..Flag::OURS
    },
];

/// The value of an Authorization field for `user:password`: Basic credentials (RFC 7617, section 2).
pub(crate) fn basic(user: &str) -> String {
    format!("Basic {}", BASE64_STANDARD.encode(user))
}

/// Splits the proxy's `HOST:PORT`. ab reads the port leniently, as all numbers, and connects to
/// port 0 if it is missing.
fn proxy(text: &str, mode: Mode) -> Option<(String, u16)> {
    let (bracketed, port) = match (text.rsplit_once(':'), mode) {
        // Two colons in a row are part of an IPv6 address.
        (Some((host, port_text)), Mode::Ab) if !host.ends_with(':') => {
            (host, u16::try_from(number::atoi(port_text)).ok()?)
        }
        (Some((host, port_text)), Mode::Ours) if !host.ends_with(':') => {
            (host, port_text.parse().ok()?)
        }
        (_, Mode::Ab) => (text, 0),
        (_, Mode::Ours) => (text, 80),
    };
    let host = bracketed.trim_start_matches('[').trim_end_matches(']');
    (!host.is_empty()).then(|| (host.to_owned(), port))
}

/// The longest credentials: ab's buffer for the encoded ones, without its final byte, and the scheme in front.
const CREDENTIALS_BYTES_MAX: usize = 1023 + "Basic ".len();

/// The kinds of runs in which flags for a body or a method are refused, with the words for the refusal.
const BODY_CONFLICTS: &[(RunKind, &str)] = &[
    (Memcached, "a method or body"),
    (RequestsFile, "a method or body"),
    (Replay, "a method or body"),
];

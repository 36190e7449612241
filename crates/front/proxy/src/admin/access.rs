//! Which requests the admin listener accepts, and from whom. Pure decisions.
//!
//! A client of the Unix socket may do everything. A client over TCP may only read: it needs the token to change
//! anything, and to see which keys of a cache are asked for. On an address beyond loopback it needs the token for
//! everything except [`super::health`] and the files of [`super::page`], which hold no data of this front. If the
//! listener has a sign-on ([`super::sign_on`]), a client over TCP needs the token or a user for everything but
//! [`super::health`], and a user may do what the token allows. Any client
//! may be a browser that a page on the internet controls, even over a forwarded Unix socket. So its `Host` must be a
//! name of the listener (against DNS rebinding).

use std::net::IpAddr;

use catamaran_message::name::{AUTHORIZATION, CONTENT_TYPE, HOST, ORIGIN};
use catamaran_message::{Authority, Fields, RequestHead};
use http::{Method, StatusCode};
use subtle::ConstantTimeEq as _;

use super::reply::Reply;
use super::request::{Peer, Request};
use super::sign_on::Caller;
use super::{caches, page};
use crate::config::AdminConfig;
use crate::listener::BoundAddress;

/// Checks whether the host of a request is a name of the listener. The error is the answer that refuses it. It comes
/// before the password is checked: a page that DNS rebinding leads here must neither learn whether one is right nor use
/// up the failures of the browser's address.
pub(super) fn check_names(
    config: &AdminConfig,
    bound: &BoundAddress,
    peer: Peer,
    head: &RequestHead,
) -> Result<(), Reply> {
    let bound = match (bound, peer) {
        (BoundAddress::Tcp(bound), Peer::Tcp(_)) => Some(bound.ip()),
        _ => None,
    };
    check_host(config, bound, head)
}

/// Checks whether a request, whose host is a name of the listener ([`check_names`]), may go on. The error is the answer
/// that refuses it.
pub(super) fn check(
    config: &AdminConfig,
    bound: &BoundAddress,
    peer: Peer,
    caller: &Caller,
    head: &RequestHead,
) -> Result<(), Reply> {
    let writes = !matches!(head.method, Method::GET | Method::HEAD);
    // Who may open the Unix socket needs no token.
    if let (BoundAddress::Tcp(bound), Peer::Tcp(_)) = (bound, peer) {
        let is_guarded = writes || caches::is_keys(&head.target.path);
        let has_signed_on = matches!(caller, Caller::SignedOn(_));
        if !has_signed_on && (is_guarded || !page::is_part(&head.target.path)) {
            check_token(config, bound.ip(), is_guarded, &head.headers)?;
        }
    }
    if !writes {
        return Ok(());
    }
    if config.read_only {
        let detail = "`read_only` is set in [admin]";
        return Err(Reply::problem(StatusCode::FORBIDDEN, "read-only", detail));
    }
    check_origin(&head.headers)?;
    check_content_type(&head.headers)
}

/// Whether the client may see values of variables and files: over TCP with the token or as a user, over the Unix socket root and the
/// user of this process, who can read them anyway. The mode of the socket may let others steer the front.
pub(super) fn sees_values(config: &AdminConfig, request: &Request, own: u32) -> bool {
    match request.peer {
        Peer::Tcp(_) => {
            let is_user = matches!(request.caller, Caller::SignedOn(_));
            is_user || has_token(config, &request.head.headers)
        }
        Peer::Unix(user) => user.is_some_and(|user| user == 0 || user == own),
    }
}

/// Refuses a request whose host is none of the listener's names or addresses: a stranger's DNS may have led the client
/// here. A Unix socket has no address: `bound` is `None`.
fn check_host(
    config: &AdminConfig,
    bound: Option<IpAddr>,
    head: &RequestHead,
) -> Result<(), Reply> {
    let authority = head.authority.as_ref();
    let host = authority.map_or(&b""[..], |authority| &authority.host);
    let is_own = match (authority.and_then(Authority::ip), bound) {
        (Some(ip), _) if ip.is_loopback() => true,
        // A listener on all addresses may be reached by any of them.
        (Some(ip), Some(bound)) => ip == bound || bound.is_unspecified(),
        (Some(_), None) => false,
        (None, _) => host == b"localhost" || config.hosts.iter().any(|it| it.as_bytes() == host),
    };
    if is_own {
        return Ok(());
    }
    let detail = "this listener has no name like the `Host` of the request; if it should have, add that name to `hosts` in [admin]";
    let status = StatusCode::MISDIRECTED_REQUEST;
    Err(Reply::problem(status, "host", detail))
}

/// Refuses a client without the token if what it asks for is guarded, or if the address `bound` is not loopback.
fn check_token(
    config: &AdminConfig,
    bound: IpAddr,
    is_guarded: bool,
    headers: &Fields,
) -> Result<(), Reply> {
    let wrong = |detail| Reply::problem(StatusCode::UNAUTHORIZED, "token", detail);
    let needs_token = is_guarded || !bound.is_loopback();
    match (&config.token, headers.get(AUTHORIZATION)) {
        (None, _) | (Some(_), None) if !needs_token => Ok(()),
        (None, _) => {
            let detail = "[admin] has no `token_file`, so over TCP nothing can be changed, and only on a loopback \
                          address can more be read than /healthz, /readyz and /metrics; use the Unix socket";
            Err(Reply::problem(StatusCode::FORBIDDEN, "no-token", detail))
        }
        (Some(_), None) => Err(wrong(
            "send the token of `token_file`: Authorization: Bearer TOKEN",
        )),
        (Some(_), Some(_)) if has_token(config, headers) => Ok(()),
        // It is refused even where none is needed, so that the client notices it.
        (Some(_), Some(_)) => Err(wrong("this is not the token")),
    }
}

/// Whether a client has sent the right token.
pub(super) fn has_token(config: &AdminConfig, headers: &Fields) -> bool {
    let (Some(token), Some(authorization)) = (&config.token, headers.get(AUTHORIZATION)) else {
        return false;
    };
    let Some((scheme, credentials)) = authorization.split_at_checked(BEARER.len()) else {
        return false;
    };
    // In constant time, so that the time of an answer tells nothing about the token.
    scheme.eq_ignore_ascii_case(BEARER) && credentials.ct_eq(token.as_bytes()).into()
}

/// Refuses a request that a page of another origin sends. A browser sends `Origin` with each change; other clients
/// send none.
fn check_origin(headers: &Fields) -> Result<(), Reply> {
    let host = headers.get(HOST).unwrap_or_default();
    let is_own = |origin: &[u8]| {
        let http = origin.strip_prefix(b"http://");
        let authority = http.or_else(|| origin.strip_prefix(b"https://"));
        authority.is_some_and(|authority| host.eq_ignore_ascii_case(authority))
    };
    let mut origins = headers.get_all(ORIGIN);
    if origins.all(is_own) {
        return Ok(());
    }
    let detail = "this came from a page of another origin";
    Err(Reply::problem(StatusCode::FORBIDDEN, "origin", detail))
}

/// Refuses a change without `Content-Type: application/json`: a form on any web page could send it without a preflight.
fn check_content_type(headers: &Fields) -> Result<(), Reply> {
    let content_type = headers.get(CONTENT_TYPE).unwrap_or_default();
    let media_type = match memchr::memchr(b';', content_type) {
        Some(parameters) => &content_type[..parameters],
        None => content_type,
    };
    if media_type
        .trim_ascii()
        .eq_ignore_ascii_case(b"application/json")
    {
        return Ok(());
    }
    let detail = "send Content-Type: application/json";
    let status = StatusCode::UNSUPPORTED_MEDIA_TYPE;
    Err(Reply::problem(status, "content-type", detail))
}

const BEARER: &[u8] = b"Bearer ";

#[cfg(test)]
mod tests;

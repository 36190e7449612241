//! Header fields of requests and responses: which ones the front forwards, changes, removes or writes.
//!
//! A head has one flat list of fields ([`catamaran_message::Fields`]), in the order received. The modules here are
//! functions on that list. None keeps a list of its own.
//!
//! | fields | what happens to them | where |
//! |---|---|---|
//! | of a request | | |
//! | `Connection`, what it names, other hop-by-hop fields; names with `_` | removed | [`clean`] |
//! | `Max-Forwards` | counted down if the method is OPTIONS | [`clean`], asked by the verdict |
//! | who the client is (`X-Forwarded-*`, `Forwarded`, `X-Real-IP`, …), which certificate it has | removed, unless a trusted proxy wrote them | [`claims`] names them, [`clean`] removes them, [`forwarded`] reads them |
//! | those in which a route's sign-on tells who the client is | removed from every request, written from the sign-on's answer | [`signed_on`] |
//! | fields that become AJP13's attributes | removed, and read if a trusted proxy wrote them | [`attributes`] |
//! | `X-Forwarded-*`, `Forwarded` | written for backends that speak HTTP | [`own`] |
//! | `Via`, the request's id | written for all backends | [`own`] |
//! | `traceparent`, `tracestate` | written for all backends if requests are traced, else passed on | [`own`] |
//! | those that a route's `request_headers` name | set, added or removed, after the front's own | [`passage`] |
//! | `Client-Cert`, `ssl_client_escaped_cert`, … | written for each backend that asks for them | [`certificate`] |
//! | of a response | | |
//! | `Location`, `Content-Location` | turned back if the route rewrites paths | `reverse` |
//! | `Path` and `Domain` of `Set-Cookie` | replaced by the route's tables, else turned back | `cookies` |
//! | `Set-Cookie` | its flags are changed by the route's tables, then `cookie_flags` of the route are added | `cookies`, `cookie_flags` |
//! | those that a route's `response_headers` name | set, added or removed | [`passage`], as far as [`body`] allows |
//! | `Access-Control-*`, `Vary: Origin` | replaced if the route has `[route.cors]` | [`crate::exchange::cors`], after all these |
//!
//! Fields that belong to one step of the exchange are set there: `Host` by [`crate::exchange::outgoing`];
//! `Accept-Encoding` for a cache by [`crate::exchange::cache_request`]; `Age` and `Cache-Status` by the cached source;
//! `Content-Encoding`, `Vary` and weak tags by [`crate::exchange::compression`]; `Date`, `Strict-Transport-Security`
//! and the front's own cookie by the response policy. The codecs write the framing (`Content-Length`,
//! `Transfer-Encoding`).

pub(crate) mod attributes;
pub(crate) mod body;
pub(crate) mod certificate;
pub(crate) mod claims;
pub(crate) mod clean;
mod cookie_flags;
mod cookies;
pub(crate) mod forwarded;
pub(crate) mod own;
pub(crate) mod passage;
mod reverse;
pub(crate) mod signed_on;

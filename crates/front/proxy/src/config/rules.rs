//! The rules that a route may have besides its target.

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use catamaran_files::FilesConfig;
use catamaran_message::FieldName;
use catamaran_upstream::config::{Activation, HostName};
use http::{HeaderValue, StatusCode};
use ipnet::IpNet;

use super::SameSite;
use super::compress::CompressConfig;
use super::cookies::CookieRules;
use super::cors::CorsConfig;
use super::pages::ErrorPages;
use super::template::Template;
use super::url_rule::UrlRule;

/// How a route changes its requests and their responses, and which it refuses. Most routes have no rules.
///
/// Each field is the key or table of that name of `[[route]]` in `docs/reference.md`, which has its meaning, unit,
/// default and the directives of other servers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RouteRules {
    /// The prefix that replaces the route's path; `None`: the path is forwarded as it is.
    pub rewrite: Option<Rewrite>,
    /// The whole path to forward instead, which may have groups of the route's expression: `rewrite` beside `regex` or
    /// `rewrite_whole`.
    pub new_path: Option<Template>,
    /// The rules for URLs in responses, of which the first that fits is applied; `None`: `rewrite` says what becomes of
    /// them.
    pub reverse_urls: Option<Vec<UrlRule>>,
    /// The host that backends get in `Host` and, over AJP13, as the server's name; `None`: as the backend's `host` says.
    pub forward_host: Option<Arc<HostName>>,
    /// The content of the answer with the route's status; `None`: the page for the status.
    pub text: Option<Arc<RouteText>>,
    /// The directory whose files are served. With an upstream: the files are looked for first.
    pub files: Option<Arc<FilesConfig>>,
    /// The rules for compressing responses; `None`: none is compressed.
    pub compress: Option<Arc<CompressConfig>>,
    /// The name of the cache for responses of this route; `None`: nothing is stored.
    pub cache: Option<String>,
    /// The names of the limits that requests of this route are subject to, besides those of the listener.
    pub limits: Vec<String>,
    /// The name of the sign-on that clients need; `None`: none.
    pub auth: Option<String>,
    /// The pages of other origins that may use the route; `None`: the backend's own fields of CORS decide.
    pub cors: Option<Arc<CorsConfig>>,
    /// The networks whose clients are served. Empty: clients of every network.
    pub allow: Vec<IpNet>,
    /// The networks whose clients get 403, even if `allow` contains them.
    pub deny: Vec<IpNet>,
    /// Whether the route serves only clients with a certificate that the front has verified.
    pub client_certificate: bool,
    /// The timeout for the response's head; `None`: the backend's `first_byte_timeout` holds.
    pub first_byte_timeout: Option<Duration>,
    /// The timeout for silence within the response's body; `None`: the backend's `idle_body_timeout` holds.
    pub idle_body_timeout: Option<Duration>,
    /// How long an exchange may take from its head on, with all its attempts; [`Duration::MAX`]: there is no limit;
    /// `None`: the backend's `exchange_timeout` holds.
    pub exchange_timeout: Option<Duration>,
    /// How long each attempt on a backend may take; `None`: as long as the exchange.
    pub attempt_timeout: Option<Duration>,
    /// Whether its requests have no line in the access log: `log = false`.
    pub unlogged: bool,
    /// The most bytes of a request's body; `u64::MAX`: no limit; `None`: the listener's `body_max` holds.
    pub body_max: Option<u64>,
    /// The most further attempts after a failed one; `None`: the upstream's `retries` holds.
    pub retries: Option<u32>,
    /// Whether the route ignores sessions: `sticky = false`.
    pub unsticky: bool,
    /// Backends, by name, whose activation is restricted on this route.
    pub activation: Vec<(String, Activation)>,
    /// The protocols, in lower case, to which requests may upgrade, which opens a tunnel.
    pub upgrade: Vec<String>,
    /// How long a tunnel may be silent; `None`: the default of the key.
    pub tunnel_idle_timeout: Option<Duration>,
    /// The error pages of this route; `None`: the front's [`ErrorPages`] hold.
    pub error_pages: Option<Arc<ErrorPages>>,
    /// The changes of the request's fields, made in this order.
    pub request_headers: Vec<FieldRule>,
    /// The changes of the response's fields, made in this order.
    pub response_headers: Vec<ResponseFieldRule>,
    /// The attributes that are added to a backend's cookies.
    pub cookie_flags: CookieFlags,
    /// The changes of a backend's cookies, made before `cookie_flags` are added.
    pub cookies: CookieRules,
}

/// The content of an answer with a status: the keys `text` and `text_type`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouteText {
    /// The text that is sent.
    pub content: Template,
    /// The value of `Content-Type`.
    pub media_type: HeaderValue,
}

/// Attributes that each cookie of a backend's response gets unless it has them: the key `cookie_flags`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CookieFlags {
    /// `Secure`: browsers send the cookie only over TLS.
    pub secure: bool,
    /// `HttpOnly`: scripts do not see it.
    pub http_only: bool,
    /// `SameSite`: whether browsers send the cookie with requests from other sites.
    pub same_site: Option<SameSite>,
}

/// The replacement of a route's path by another prefix, and the reverse in responses: the keys `rewrite`,
/// `reverse` and `internal_hosts`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rewrite {
    /// The prefix that replaces the route's path; `/` removes it.
    pub to: String,
    /// Whether paths in `Location`, `Content-Location` and `Set-Cookie` are changed back to the client's form.
    pub reverse: bool,
    /// Hosts, in lower case, that mean this site in `Location` and in the `Domain` of cookies, besides the
    /// backend's own.
    pub internal_hosts: Vec<String>,
}

/// A change of one field of a request or response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FieldRule {
    /// Replaces all lines of the field by one with this value.
    Set(FieldName, Template),
    /// Adds a line with this value.
    Add(FieldName, Template),
    /// Removes the field.
    Remove(FieldName),
}

impl FieldRule {
    /// The name of the field.
    #[must_use]
    pub fn name(&self) -> &FieldName {
        match self {
            Self::Set(name, _) | Self::Add(name, _) | Self::Remove(name) => name,
        }
    }

    /// The template of the new value; `None`: the field is removed.
    pub(crate) fn template(&self) -> Option<&Template> {
        match self {
            Self::Set(_, template) | Self::Add(_, template) => Some(template),
            Self::Remove(_) => None,
        }
    }
}

/// A change of one field of responses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResponseFieldRule {
    /// What is changed.
    pub change: FieldRule,
    /// The statuses of the responses that are changed; empty: all statuses.
    pub statuses: Vec<RangeInclusive<u16>>,
}

impl ResponseFieldRule {
    /// Whether responses with this status are changed.
    pub(crate) fn takes(&self, status: StatusCode) -> bool {
        let mut ranges = self.statuses.iter();
        self.statuses.is_empty() || ranges.any(|range| range.contains(&status.as_u16()))
    }
}

impl From<FieldRule> for ResponseFieldRule {
    fn from(change: FieldRule) -> Self {
        Self {
            change,
            statuses: Vec::new(),
        }
    }
}

/// Where a client is redirected to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Redirect {
    /// The value of `Location`.
    pub to: Template,
    /// The status of the redirect: 301, 302, 307 or 308.
    pub status: StatusCode,
}

/// Requests that a route does not take although they match, so that other routes can.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Exclusion {
    /// Paths equal to this one, or below it.
    Prefix(String),
    /// Paths that match this pattern, in the syntax of the key `pattern`.
    Pattern(String),
}

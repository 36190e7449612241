//! What a route may ask for besides its target.

use std::sync::Arc;
use std::time::Duration;

use catamaran_files::FilesConfig;
use catamaran_message::FieldName;
use catamaran_upstream::config::Activation;
use http::StatusCode;
use ipnet::IpNet;

use super::SameSite;
use super::compress::CompressConfig;
use super::pages::ErrorPages;
use super::template::Template;

/// What a route changes of its requests and of their responses. Most routes change nothing.
///
/// Each field is the key or table of that name of `[[route]]` in `docs/reference.md`, which has its meaning, unit,
/// default and the directives of other servers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RouteRules {
    /// What the route's path is replaced with; `None`: the path is forwarded as it is.
    pub rewrite: Option<Rewrite>,
    /// The directory whose files are served; beside an upstream, before it is asked.
    pub files: Option<Arc<FilesConfig>>,
    /// Which of its responses are compressed; `None`: none.
    pub compress: Option<Arc<CompressConfig>>,
    /// The cache that has responses of this route; `None`: nothing is stored.
    pub cache: Option<String>,
    /// Networks whose clients are served. Empty: everybody is.
    pub allow: Vec<IpNet>,
    /// Networks whose clients are answered 403, even if `allow` has them.
    pub deny: Vec<IpNet>,
    /// Whether only clients are served whose certificate the front has verified.
    pub client_certificate: bool,
    /// Instead of the backend's `first_byte_timeout`.
    pub first_byte_timeout: Option<Duration>,
    /// Instead of the backend's `idle_body_timeout`.
    pub idle_body_timeout: Option<Duration>,
    /// Bytes, instead of the listener's `body_max`; `u64::MAX` is no limit.
    pub body_max: Option<u64>,
    /// Instead of the upstream's `retries`.
    pub retries: Option<u32>,
    /// Whether sessions do not matter here: `sticky = false`.
    pub unsticky: bool,
    /// Backends, by name, that get less on this route than elsewhere.
    pub activation: Vec<(String, Activation)>,
    /// Protocols, in lower case, that requests may change to: tunnels.
    pub upgrade: Vec<String>,
    /// How long a tunnel may be silent; `None` is the default of the file.
    pub tunnel_idle_timeout: Option<Duration>,
    /// In the place of the front's [`ErrorPages`].
    pub error_pages: Option<Arc<ErrorPages>>,
    /// What is changed of the request's fields, in this order.
    pub request_headers: Vec<FieldRule>,
    /// What is changed of the response's fields, in this order.
    pub response_headers: Vec<FieldRule>,
    /// The attributes that are added to a backend's cookies.
    pub cookie_flags: CookieFlags,
}

/// Attributes that each cookie of a backend's response gets unless it has them: the key `cookie_flags`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CookieFlags {
    /// `Secure`: browsers send the cookie over TLS alone.
    pub secure: bool,
    /// `HttpOnly`: scripts do not see it.
    pub http_only: bool,
    /// `SameSite`: whether requests that other sites cause have it.
    pub same_site: Option<SameSite>,
}

/// A prefix in the place of a route's path, and back again in responses: the keys `rewrite`, `reverse` and
/// `internal_hosts`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rewrite {
    /// What the path becomes; `/` removes it.
    pub to: String,
    /// Whether paths in `Location`, `Content-Location` and `Set-Cookie` are turned back.
    pub reverse: bool,
    /// Hosts, besides the backend's, that stand for this site in `Location` and in the `Domain` of
    /// cookies. Lower case.
    pub internal_hosts: Vec<String>,
}

/// A change of one field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FieldRule {
    /// The field has this value alone.
    Set(FieldName, Template),
    /// A line with this value is added.
    Add(FieldName, Template),
    /// The field is removed.
    Remove(FieldName),
}

impl FieldRule {
    /// The field.
    pub(crate) fn name(&self) -> &FieldName {
        match self {
            Self::Set(name, _) | Self::Add(name, _) | Self::Remove(name) => name,
        }
    }

    /// The template of its value; `None`: the field is removed.
    pub(crate) fn template(&self) -> Option<&Template> {
        match self {
            Self::Set(_, template) | Self::Add(_, template) => Some(template),
            Self::Remove(_) => None,
        }
    }
}

/// Where a client is sent instead of being served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Redirect {
    /// The value of `Location`.
    pub to: Template,
    /// 301, 302, 307 or 308.
    pub status: StatusCode,
}

/// Requests that a route leaves to others although its path matches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Exclusion {
    /// This path and all below it.
    Prefix(String),
    /// Whatever this pattern matches, as in `pattern`.
    Pattern(String),
}

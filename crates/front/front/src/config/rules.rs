//! What a route may ask for besides its target.

use std::sync::Arc;
use std::time::Duration;

use catamaran_files::FilesConfig;
use catamaran_upstream::config::Activation;
use http::{HeaderName, StatusCode};
use ipnet::IpNet;

use super::SameSite;
use super::compress::CompressConfig;
use super::pages::ErrorPages;
use super::template::Template;

/// What a route changes of its requests and of their responses. Most routes change nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RouteRules {
    /// What the route's path is replaced with. Default: nothing, the path is forwarded as it is.
    pub rewrite: Option<Rewrite>,
    /// The directory whose files are served; beside an upstream, before it is asked. Default: none.
    pub files: Option<Arc<FilesConfig>>,
    /// What is compressed of its responses. Default: nothing. nginx: `gzip`; httpd: `mod_deflate`.
    pub compress: Option<Arc<CompressConfig>>,
    /// The cache that has responses of this route. Default: none. nginx: `proxy_cache`; httpd:
    /// `CacheEnable`.
    pub cache: Option<String>,
    /// Networks whose clients are served; others are answered 403. Empty: everybody is. httpd:
    /// `Require ip`; nginx: `allow`, `deny all`.
    pub allow: Vec<IpNet>,
    /// Networks whose clients are answered 403, even if `allow` has them. Empty: nobody is. httpd:
    /// `Require not ip`; nginx: `deny`.
    pub deny: Vec<IpNet>,
    /// Whether only clients are served whose certificate the front has verified; others are answered 403.
    /// What a proxy says of a certificate does not count. Default off. nginx: `if ($ssl_client_verify !=
    /// SUCCESS) { return 403; }`; httpd: `SSLVerifyClient require` in a `<Location>`.
    pub client_certificate: bool,
    /// Instead of the backend's `first_byte_timeout`. mod_jk: `reply_timeout` in a rule.
    pub first_byte_timeout: Option<Duration>,
    /// Instead of the backend's `idle_body_timeout`.
    pub idle_body_timeout: Option<Duration>,
    /// Instead of the listener's `body_max`; `u64::MAX` is no limit. nginx: `client_max_body_size` in
    /// a location.
    pub body_max: Option<u64>,
    /// Instead of the upstream's `retries`.
    pub retries: Option<u32>,
    /// Whether sessions do not matter here. mod_jk: `sticky_ignore`.
    pub unsticky: bool,
    /// Backends, by name, that get less on this route than elsewhere. mod_jk: `stopped`, `disabled`
    /// in a rule.
    pub activation: Vec<(String, Activation)>,
    /// Protocols, in lower case, that requests may change to: tunnels. Default: none.
    pub upgrade: Vec<String>,
    /// How long a tunnel may be silent. Default 10 min. HAProxy: `timeout tunnel`.
    pub tunnel_idle_timeout: Option<Duration>,
    /// In the place of the front's [`ErrorPages`]. nginx: `error_page` in a location.
    pub error_pages: Option<Arc<ErrorPages>>,
    /// What is changed of the request's fields, in this order.
    pub request_headers: Vec<FieldRule>,
    /// What is changed of the response's fields, in this order.
    pub response_headers: Vec<FieldRule>,
    /// What a backend's cookies get. Default: nothing.
    pub cookie_flags: CookieFlags,
}

/// Attributes that each cookie of a backend's response gets unless it has them. nginx:
/// `proxy_cookie_flags`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CookieFlags {
    /// `Secure`: browsers send the cookie over TLS alone.
    pub secure: bool,
    /// `HttpOnly`: scripts do not see it.
    pub http_only: bool,
    /// `SameSite`: whether requests that other sites cause have it.
    pub same_site: Option<SameSite>,
}

/// A prefix in the place of a route's path, and back again in responses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rewrite {
    /// What the path becomes; `/` removes it. httpd: the path of `ProxyPass`' URL; nginx: that of
    /// `proxy_pass`.
    pub to: String,
    /// Whether paths in `Location`, `Content-Location` and `Set-Cookie` are turned back. Default on.
    /// httpd: `ProxyPassReverse`, `ProxyPassReverseCookiePath`; nginx: `proxy_redirect`,
    /// `proxy_cookie_path`.
    pub reverse: bool,
    /// Hosts, besides the backend's, that stand for this site in `Location` and in the `Domain` of
    /// cookies. Lower case. httpd: `ProxyPassReverseCookieDomain`.
    pub internal_hosts: Vec<String>,
}

/// A change of one field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FieldRule {
    /// The field has this value alone. nginx: `proxy_set_header`; httpd: `RequestHeader set`.
    Set(HeaderName, Template),
    /// A line with this value is added.
    Add(HeaderName, Template),
    /// The field is removed. nginx: `proxy_hide_header`.
    Remove(HeaderName),
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

//! The rules of a route besides its target, prepared for use: names are resolved to indices, prefixes are
//! split.
//!
//! A route without such rules has no [`Rules`], and its requests pay nothing for them.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use catamaran_files::Directory;
use catamaran_message::RequestHead;
use sha2::{Digest, Sha256};

use crate::config::{
    Activation, CompressConfig, CookieFlags, CookieRules, CorsConfig, ErrorPages, FieldRule,
    FilesConfig, ListenerConfig, PathExpression, ResponseFieldRule, RouteConfig, RouteRules,
    RouteText,
};
use crate::path::{NormalPath, PathFault};
use crate::site::rewrite::{self, PathRewrite};
use crate::trust::is_trusted;
use crate::tunnel_request::{self, TunnelRequest};

#[derive(Clone, Debug)]
pub(crate) struct Rules {
    config: Arc<RouteRules>,
    pub(crate) rewrite: Option<PathRewrite>,
    /// The directory whose files are served; `None`: the route serves no files.
    files: Option<Arc<Directory>>,
    /// The index of the route's cache in the site; `None`: it has no cache.
    cache: Option<usize>,
    /// The index of the route's sign-on in the site; `None`: it has none, or the site does not have it.
    auth: Option<usize>,
    /// Whether the rules change responses in any way.
    changes_responses: bool,
    /// A digest of the rules that change requests. It is part of cache keys.
    digest: Digits,
    /// Members that get no requests on this route.
    stopped: Box<[usize]>,
    /// Members that get only requests of their own sessions on this route.
    drained: Box<[usize]>,
}

impl Rules {
    /// Prepares the rules of a route; `None`: it has none but limits, which are [`Route`](super::route::Route)'s.
    /// [`Self::resolve`] later looks up the members that they name.
    pub(crate) fn new(route: &RouteConfig) -> Option<Self> {
        let config = route.rules.as_ref().filter(|rules| !are_limits(rules))?;
        Some(Self {
            rewrite: config
                .rewrite
                .as_ref()
                .map(|rewrite| PathRewrite::new(&route.path, rewrite)),
            files: config
                .files
                .as_ref()
                .map(|files| Arc::new(Directory::new(FilesConfig::clone(files)))),
            cache: None,
            auth: None,
            changes_responses: changes_responses(config),
            digest: digest(route, config),
            stopped: Box::default(),
            drained: Box::default(),
            config: Arc::clone(config),
        })
    }

    /// Looks up the indices of the members that the rules name.
    pub(super) fn resolve(&mut self, member: impl Fn(&str) -> Option<usize>) {
        let members_with = |wanted: Activation| {
            let activations = self.config.activation.iter();
            let named = activations.filter(move |(_, activation)| *activation == wanted);
            named.filter_map(|(name, _)| member(name)).collect()
        };
        let stopped = members_with(Activation::Stopped);
        (self.stopped, self.drained) = (stopped, members_with(Activation::Drain));
    }

    /// Looks up the index of the cache that the rules name.
    pub(super) fn resolve_cache(&mut self, cache: impl Fn(&str) -> Option<usize>) {
        self.cache = self.config.cache.as_deref().and_then(cache);
    }

    /// Looks up the index of the sign-on that the rules name.
    pub(super) fn resolve_auth(&mut self, auth: impl Fn(&str) -> Option<usize>) {
        self.auth = self.config.auth.as_deref().and_then(auth);
    }

    /// The largest body of a request in bytes: as the route says, or else the listener. `None`: there is
    /// no limit.
    pub(crate) fn body_max(rules: Option<&Self>, listener: &ListenerConfig) -> Option<u64> {
        let of_route = rules.and_then(|rules| rules.config.body_max);
        of_route.or(listener.body_max)
    }

    /// The rules as the file has them, for those that need no preparation.
    pub(crate) fn config(&self) -> &RouteRules {
        &self.config
    }

    /// The index of the route's cache in the site; `None`: it has no cache.
    pub(crate) fn cache(&self) -> Option<usize> {
        self.cache
    }

    /// Whether clients need a sign-on.
    #[inline]
    pub(crate) fn asks_auth(&self) -> bool {
        self.config.auth.is_some()
    }

    /// The index of the route's sign-on in the site.
    pub(crate) fn auth(&self) -> Option<usize> {
        self.auth
    }

    /// The digest of the rules that change requests, which is part of cache keys.
    pub(crate) fn digest(&self) -> &[u8] {
        &self.digest
    }

    /// The content of the answer with the route's status; `None`: the page for the status.
    pub(crate) fn text(&self) -> Option<&RouteText> {
        self.config.text.as_deref()
    }

    /// Whether responses of the route are changed: their fields, cookies or paths, or by compression.
    pub(crate) fn changes_responses(&self) -> bool {
        self.changes_responses
    }

    /// Whether the route forwards other paths than it gets.
    pub(crate) fn changes_path(&self) -> bool {
        self.rewrite.is_some() || self.config.new_path.is_some()
    }

    /// Rewrites the path to forward, if the route says so.
    ///
    /// # Errors
    /// The new path would have a dot segment.
    pub(crate) fn rewrite(&self, path: &mut NormalPath) -> Result<(), PathFault> {
        if let Some(to) = &self.config.new_path {
            return rewrite::replace_whole(path, to);
        }
        if let Some(rewrite) = &self.rewrite {
            rewrite.forward(path);
        }
        Ok(())
    }

    /// The directory whose files are served; `None`: the route serves no files.
    pub(crate) fn files(&self) -> Option<&Arc<Directory>> {
        self.files.as_ref()
    }

    /// Which responses are compressed, and how; `None`: none are.
    pub(crate) fn compress(&self) -> Option<&CompressConfig> {
        self.config.compress.as_deref()
    }

    /// The pages of other origins that may use the route; `None`: the backend's own fields of CORS decide.
    pub(crate) fn cors(&self) -> Option<&CorsConfig> {
        self.config.cors.as_deref()
    }

    /// Whether a client at this address is served.
    pub(crate) fn allows(&self, client: IpAddr) -> bool {
        let RouteRules { allow, deny, .. } = &*self.config;
        !is_trusted(deny, client) && (allow.is_empty() || is_trusted(allow, client))
    }

    /// Whether only clients with a verified certificate are served.
    pub(crate) fn asks_certificate(&self) -> bool {
        self.config.client_certificate
    }

    /// The members that get no requests on this route.
    pub(crate) fn stopped(&self) -> &[usize] {
        &self.stopped
    }

    /// The members that get only requests of their own sessions on this route.
    pub(crate) fn drained(&self) -> &[usize] {
        &self.drained
    }

    /// Whether the route ignores sessions (`sticky = false`).
    pub(crate) fn is_unsticky(&self) -> bool {
        self.config.unsticky
    }

    /// The tunnel that a request asks for; `None`: it asks for none, or the route does not allow it.
    pub(crate) fn tunnel(&self, head: &RequestHead) -> Option<TunnelRequest<'_>> {
        let token = tunnel_request::asked(&self.config.upgrade, head)?;
        let idle_timeout = self.config.tunnel_idle_timeout;
        Some(TunnelRequest {
            token,
            idle: idle_timeout.unwrap_or(TUNNEL_IDLE_TIMEOUT),
            opened: None,
        })
    }

    /// The operator's own error pages for this route; `None`: it has none.
    pub(crate) fn error_pages(&self) -> Option<&ErrorPages> {
        self.config.error_pages.as_deref()
    }

    /// The rules that change the request's fields.
    pub(crate) fn request_fields(&self) -> &[FieldRule] {
        &self.config.request_headers
    }

    /// The attributes that are added to cookies of the backend that lack them.
    pub(crate) fn cookie_flags(&self) -> CookieFlags {
        self.config.cookie_flags
    }

    /// The changes of a backend's cookies.
    pub(crate) fn cookies(&self) -> &CookieRules {
        &self.config.cookies
    }

    /// The rules that change the response's fields.
    pub(crate) fn response_fields(&self) -> &[ResponseFieldRule] {
        &self.config.response_headers
    }
}

/// Whether limits are all that a route's rules say.
fn are_limits(config: &RouteRules) -> bool {
    let others = RouteRules {
        limits: Vec::new(),
        ..config.clone()
    };
    others == RouteRules::default()
}

/// Whether a route's responses need a [`Passage`](crate::exchange::fields::passage::Passage). The function destructures
/// the rules, so that a new one does not compile until somebody has decided whether it changes responses.
fn changes_responses(config: &RouteRules) -> bool {
    let RouteRules {
        rewrite,
        reverse_urls,
        compress,
        cookie_flags,
        cookies,
        response_headers,
        // These concern the request, who answers it, and for how long.
        new_path: _,
        forward_host: _,
        files: _,
        cache: _,
        limits: _,
        auth: _,
        allow: _,
        deny: _,
        client_certificate: _,
        first_byte_timeout: _,
        idle_body_timeout: _,
        exchange_timeout: _,
        attempt_timeout: _,
        unlogged: _,
        body_max: _,
        retries: _,
        unsticky: _,
        activation: _,
        upgrade: _,
        tunnel_idle_timeout: _,
        request_headers: _,
        // The response gets these from the verdict and from `exchange/pages`.
        text: _,
        cors: _,
        error_pages: _,
    } = config;
    let reverses_paths = rewrite.as_ref().is_some_and(|rewrite| rewrite.reverse);
    let changes_urls = reverse_urls.as_ref().is_some_and(|rules| !rules.is_empty());
    reverses_paths
        || changes_urls
        || compress.is_some()
        || *cookie_flags != CookieFlags::default()
        || *cookies != CookieRules::default()
        || !response_headers.is_empty()
}

/// A digest of the rules that change requests, and the URLs of stored responses: the rewrite with its reverse, the host,
/// and the rules for request fields, with the expression whose groups they may name.
fn digest(route: &RouteConfig, config: &RouteRules) -> Digits {
    let RouteRules {
        rewrite,
        new_path,
        reverse_urls,
        forward_host,
        request_headers,
        ..
    } = config;
    let expression = route.regex.as_ref().map(PathExpression::as_str);
    let text = format!(
        "{rewrite:?} {new_path:?} {reverse_urls:?} {forward_host:?} {request_headers:?} {expression:?}"
    );
    let digest = Sha256::digest(text.as_bytes());
    std::array::from_fn(|index| {
        let byte = digest[index / 2];
        let half = if index % 2 == 0 { byte >> 4 } else { byte & 15 };
        b"0123456789abcdef"[usize::from(half)]
    })
}

/// The beginning of a digest as hexadecimal digits, as cache keys contain it.
type Digits = [u8; 16];

/// How long a tunnel may be silent if its route does not say. In nginx `proxy_read_timeout` is 60 s,
/// which WebSocket applications have to raise.
const TUNNEL_IDLE_TIMEOUT: Duration = Duration::from_secs(600);

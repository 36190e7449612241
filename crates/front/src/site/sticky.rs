//! Session affinity of an upstream: requests of a session go to the member that has it.
//!
//! `balance::affinity` decides. This module reads the session ids of a request and says which members
//! are fit. It also has the front's own cookie, whose values are made once, when the site is built.

use std::collections::HashMap;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use catamaran_balance::affinity::{
    Affinity, BackendOut, Decision, Home, Rules, Standing, Trace, values,
};
use catamaran_message::RequestHead;
use hmac::{Hmac, KeyInit as _, Mac as _};
use http::header::{CACHE_CONTROL, COOKIE, SET_COOKIE};
use http::{HeaderMap, HeaderValue, StatusCode};
use sha2::Sha256;

use crate::config::{IdFirst, SameSite, StickyConfig, StickyCookie, UpstreamConfig};

#[derive(Debug)]
pub(crate) struct Sticky {
    config: StickyConfig,
    affinity: Affinity,
    own: Option<OwnCookie>,
}

/// The front's own cookie.
#[derive(Debug)]
struct OwnCookie {
    name: String,
    /// The member of each value.
    members: HashMap<Box<[u8]>, usize>,
    /// Each member's `Set-Cookie`, for connections without TLS and with it.
    fields: Box<[[HeaderValue; 2]]>,
}

/// What the front's own cookie of a request says: a member, or `Some(None)` if it names nobody.
pub(crate) type Own = Option<Option<usize>>;

impl Sticky {
    /// What the upstream says of sessions, if it does.
    pub(super) fn new(config: &UpstreamConfig) -> Option<Self> {
        let sticky = config.sticky.as_ref()?;
        let index = |route: &String| {
            let mut routes = config.backends.iter().map(|it| &it.jvm_route);
            routes.position(|it| it == route)
        };
        let homes = config.backends.iter().map(|backend| Home {
            route: backend.jvm_route.clone(),
            domain: backend.domain.clone(),
            fallback: backend.fallback.as_ref().and_then(index),
        });
        let rules = Rules {
            separator: sticky.separator,
            force: sticky.force,
        };
        Some(Self {
            affinity: Affinity::new(rules, homes),
            own: sticky
                .set_cookie
                .as_ref()
                .map(|own| OwnCookie::new(own, config)),
            config: sticky.clone(),
        })
    }

    /// Reads the front's own cookie and removes it from the fields.
    pub(crate) fn take_own(&self, headers: &mut HeaderMap) -> Own {
        let own = self.own.as_ref()?;
        let name = std::slice::from_ref(&own.name);
        let fields = headers.get_all(COOKIE);
        let mut found = fields
            .iter()
            .flat_map(|field| values::cookies(field.as_bytes(), name));
        let member = own.members.get(found.next()?).copied();
        drop(found);
        let without = |field: &HeaderValue| match values::without(field.as_bytes(), &own.name) {
            Some(rest) => HeaderValue::from_bytes(&rest)
                .ok()
                .filter(|it| !it.is_empty()),
            None => Some(field.clone()),
        };
        let kept: Vec<_> = fields.iter().filter_map(without).collect();
        headers.remove(COOKIE);
        for field in kept {
            headers.append(COOKIE, field);
        }
        Some(member)
    }

    /// Decides where a request goes as far as its session says, and tells `trace` each step.
    pub(super) fn decide<'r>(
        &'r self,
        head: &'r RequestHead,
        own: Own,
        standing: &mut impl Standing,
        trace: &mut impl Trace,
    ) -> Result<Decision<'r>, BackendOut<'r>> {
        let StickyConfig {
            cookies,
            parameters,
            first,
            ..
        } = &self.config;
        // Without a hash: there are few.
        let fields = head.headers.iter().filter(|(name, _)| **name == COOKIE);
        let cookies = fields.flat_map(|(_, field)| values::cookies(field.as_bytes(), cookies));
        let parameters = values::parameters(&head.target.path, parameters);
        match first {
            IdFirst::Cookie => {
                self.affinity
                    .decide_traced(cookies.chain(parameters), own, standing, trace)
            }
            IdFirst::Path => {
                self.affinity
                    .decide_traced(parameters.chain(cookies), own, standing, trace)
            }
        }
    }

    /// The session ids of a request in the order in which they are read, each with where it was
    /// found: the words for it, and its name.
    pub(crate) fn ids<'r>(
        &'r self,
        head: &'r RequestHead,
    ) -> Vec<(&'static str, &'r str, &'r [u8])> {
        let StickyConfig {
            cookies,
            parameters,
            first,
            ..
        } = &self.config;
        let fields = head.headers.get_all(COOKIE).iter();
        let cookies = fields.flat_map(|field| values::named(field.as_bytes(), cookies));
        let cookies = cookies.map(|(name, value)| ("cookie", name, value));
        let parameters = values::named_parameters(&head.target.path, parameters);
        let parameters = parameters.map(|(name, value)| ("path parameter", name, value));
        match first {
            IdFirst::Cookie => cookies.chain(parameters).collect(),
            IdFirst::Path => parameters.chain(cookies).collect(),
        }
    }

    /// The name of the front's own cookie, if there is one.
    pub(crate) fn own_name(&self) -> Option<&str> {
        self.own.as_ref().map(|own| own.name.as_str())
    }

    /// What a member is told of the route that led to it: its own, or the domain's.
    pub(super) fn told_route(&self, member: usize, by_domain: bool) -> Option<&str> {
        let home = self.affinity.home(member)?;
        let domain = home.domain.as_ref().filter(|_| by_domain);
        Some(domain.unwrap_or(&home.route))
    }

    pub(super) fn session_timeout(&self) -> Duration {
        self.config.session_timeout
    }

    /// The ids of sessions that a response begins.
    pub(crate) fn begun<'r>(&'r self, headers: &'r HeaderMap) -> impl Iterator<Item = &'r [u8]> {
        // Without a hash: there are few.
        let fields = headers.iter().filter(|(name, _)| **name == SET_COOKIE);
        fields.flat_map(|(_, field)| {
            let pair = field.as_bytes().split(|&byte| byte == b';').next();
            values::cookies(pair.unwrap_or_default(), &self.config.cookies)
        })
    }

    /// The `Set-Cookie` that leads to a member, if there is one.
    pub(super) fn cookie(&self, member: usize, secure: bool) -> Option<&HeaderValue> {
        Some(&self.own.as_ref()?.fields.get(member)?[usize::from(secure)])
    }
}

impl OwnCookie {
    fn new(config: &StickyCookie, upstream: &UpstreamConfig) -> Self {
        let key = config.key.as_ref().map_or(FIXED_KEY, |key| key.as_bytes());
        let names = || upstream.backends.iter().map(|it| it.name.as_str());
        let values = || names().map(|backend| value(key, &upstream.name, backend));
        let field = |value: String| [false, true].map(|secure| field(config, &value, secure));
        Self {
            name: config.name.clone(),
            members: values()
                .map(|value| value.into_bytes().into())
                .zip(0..)
                .collect(),
            fields: values().map(field).collect(),
        }
    }
}

/// The value that stands for a backend: nobody reads its name from it.
fn value(key: &[u8], upstream: &str, backend: &str) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes keys of any length");
    mac.update(upstream.as_bytes());
    mac.update(&[0]);
    mac.update(backend.as_bytes());
    let mut value = URL_SAFE_NO_PAD.encode(mac.finalize().into_bytes());
    value.truncate(VALUE_LEN);
    value
}

fn field(config: &StickyCookie, value: &str, secure: bool) -> HeaderValue {
    let StickyCookie {
        name,
        path,
        same_site,
        ..
    } = config;
    let same_site = match same_site {
        SameSite::Lax => "Lax",
        SameSite::Strict => "Strict",
        SameSite::None => "None",
    };
    let secure = if secure { "; Secure" } else { "" };
    let field = format!("{name}={value}; Path={path}; HttpOnly; SameSite={same_site}{secure}");
    HeaderValue::from_str(&field).unwrap_or_else(|_| HeaderValue::from_static(""))
}

/// Whether a response may carry a cookie of one client: not if a cache would hand it to others.
pub(crate) fn may_carry_cookie(status: StatusCode, headers: &HeaderMap) -> bool {
    let shared = |field: &HeaderValue| {
        field
            .as_bytes()
            .split(|&byte| byte == b',')
            .any(|directive| {
                let mut parts = directive.split(|&byte| byte == b'=');
                let name = parts.next().unwrap_or_default().trim_ascii();
                name.eq_ignore_ascii_case(b"public") || name.eq_ignore_ascii_case(b"s-maxage")
            })
    };
    status != StatusCode::NOT_MODIFIED && !headers.get_all(CACHE_CONTROL).iter().any(shared)
}

/// The key of values that only have to be opaque: all fronts agree on them.
const FIXED_KEY: &[u8] = b"catamaran sticky cookie";

/// Characters of a value: 72 bits.
const VALUE_LEN: usize = 12;

#[cfg(test)]
mod tests;

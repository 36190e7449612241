//! Session affinity of an upstream: requests of a session go to the member that holds the session.
//!
//! `balance::affinity` decides. This module reads the session ids of a request and lists the members with their
//! routes.

pub(crate) mod own_cookie;
pub(crate) mod response_cookies;

use std::time::Duration;

use catamaran_balance::affinity::{
    Affinity, BackendOut, Decision, Home, MemberStates, Rules, Trace, values,
};
use catamaran_message::RequestHead;
use catamaran_message::name::COOKIE;

use self::own_cookie::{Own, OwnCookie};
use self::response_cookies::ResponseCookies;
use crate::config::{IdFirst, StickyConfig, UpstreamConfig};

#[derive(Debug)]
pub(crate) struct Sticky {
    config: StickyConfig,
    affinity: Affinity,
    /// Reads the front's own session cookie from requests; `None`: the upstream has no such cookie.
    pub(crate) own_cookie: Option<OwnCookie>,
    pub(crate) response_cookies: ResponseCookies,
}

impl Sticky {
    /// Prepares the session settings of an upstream; `None`: it keeps no sessions.
    pub(super) fn new(config: &UpstreamConfig) -> Option<Self> {
        let sticky = config.sticky.as_ref()?;
        let index = |route: &String| {
            let mut routes = config.all().map(|it| &it.jvm_route);
            routes.position(|it| it == route)
        };
        let homes = config.all().map(|backend| Home {
            route: backend.jvm_route.clone(),
            domain: backend.domain.clone(),
            fallback: backend.fallback.as_ref().and_then(index),
        });
        let rules = Rules {
            separator: sticky.separator,
            force: sticky.force,
        };
        let own = sticky.set_cookie.as_ref();
        Some(Self {
            affinity: Affinity::new(rules, homes),
            own_cookie: own.map(|own| OwnCookie::new(own, config)),
            response_cookies: ResponseCookies::new(sticky, config),
            config: sticky.clone(),
        })
    }

    /// Decides by the session which member gets a request, and reports each step to `trace`. `own` is the member that
    /// the front's own cookie names.
    pub(super) fn decide<'r>(
        &'r self,
        head: &'r RequestHead,
        own: Own,
        standing: &mut impl MemberStates,
        trace: &mut impl Trace,
    ) -> Result<Decision<'r>, BackendOut<'r>> {
        let StickyConfig {
            cookies,
            parameters,
            first,
            ..
        } = &self.config;
        let fields = head.headers.get_all(COOKIE);
        let cookies = fields.flat_map(|field| values::cookies(field, cookies));
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

    /// The session ids of a request in the order in which they are read. Each comes with its place, "cookie" or "path
    /// parameter", and its name.
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
        let fields = head.headers.get_all(COOKIE);
        let cookie_pairs = fields.flat_map(|field| values::named(field, cookies));
        let cookies = cookie_pairs.map(|(name, value)| ("cookie", name, value));
        let parameter_pairs = values::named_parameters(&head.target.path, parameters);
        let parameters = parameter_pairs.map(|(name, value)| ("path parameter", name, value));
        match first {
            IdFirst::Cookie => cookies.chain(parameters).collect(),
            IdFirst::Path => parameters.chain(cookies).collect(),
        }
    }

    /// The names of cookies that hold a session id.
    pub(crate) fn cookies(&self) -> &[String] {
        &self.config.cookies
    }

    /// Whether a session is counted even if no response through this front gave out its id.
    pub(super) fn counts_unknown(&self) -> bool {
        self.config.count_unknown
    }

    pub(super) fn session_timeout(&self) -> Duration {
        self.config.session_timeout
    }
}

#[cfg(test)]
mod tests;

//! Session affinity of an upstream: requests of a session go to the member that holds the session.
//!
//! `balance::affinity` decides. This module reads the session ids of a request and lists the members with their
//! routes.

pub(crate) mod own_cookie;
pub(crate) mod response_cookies;

use catamaran_balance::affinity::{
    Affinity, BackendOut, Decision, Home, MemberStates, Outcome, Rules, Trace,
};
use catamaran_message::{RequestHead, pairs};

use self::own_cookie::{Own, OwnCookie};
use self::response_cookies::ResponseCookies;
use crate::config::{IdFirst, StickyConfig, UpstreamConfig};

#[derive(Debug)]
pub(crate) struct Sticky {
    pub(crate) config: StickyConfig,
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
        let own_cookie = sticky.set_cookie.as_ref();
        Some(Self {
            affinity: Affinity::new(rules, homes),
            own_cookie: own_cookie.map(|cookie| OwnCookie::new(cookie, config)),
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
        let ids = self.ids(head).map(|(_, _, id)| id);
        self.affinity.decide_traced(ids, own, standing, trace)
    }

    /// Whether the session of a request belongs to a member of this upstream, in whatever state that is.
    pub(crate) fn has_member(&self, head: &RequestHead) -> bool {
        let cookie = self.own_cookie.as_ref();
        let own = cookie.and_then(|cookie| cookie.read(&head.headers));
        let decision = self.decide(head, own, &mut AllUsable, &mut ());
        decision.is_ok_and(|decision| decision.outcome == Outcome::Kept)
    }

    /// The session ids of a request in the order in which they are read. Each comes with its place, "cookie" or "path
    /// parameter", and its name.
    pub(crate) fn ids<'r>(
        &'r self,
        head: &'r RequestHead,
    ) -> impl Iterator<Item = (&'static str, &'r str, &'r [u8])> {
        let cookies = pairs::cookies(&head.headers, &self.config.cookies)
            .map(|(name, value)| ("cookie", name, value));
        let parameters = pairs::parameters(&head.target.path, &self.config.parameters)
            .map(|(name, value)| ("path parameter", name, value));
        // One type for both orders: one of the two is empty.
        let (before, after) = match self.config.first {
            IdFirst::Cookie => (None, Some(parameters)),
            IdFirst::Path => (Some(parameters), None),
        };
        let cookies_and_before = before.into_iter().flatten().chain(cookies);
        let ids = cookies_and_before.chain(after.into_iter().flatten());
        ids.filter(|(_, _, value)| !value.is_empty())
    }
}

/// Says of every member that it may get the requests of its sessions.
struct AllUsable;

impl MemberStates for AllUsable {
    fn is_usable(&self, _member: usize) -> bool {
        true
    }

    fn is_eligible(&self, _member: usize) -> bool {
        false
    }

    fn pick_among(&mut self, _members: &[usize]) -> Option<usize> {
        None
    }
}

#[cfg(test)]
mod tests;

//! Which limits a request is subject to, and as which key. A pure part of the verdict: nothing is charged here.
//!
//! Limits by user are asked when the sign-on of the route has told the user, all others before.

use std::fmt;
use std::net::IpAddr;

use arrayvec::ArrayVec;
use bytes::Bytes;
use catamaran_limit::{ASKS_MAX, Ask, Network};
use catamaran_message::RequestHead;

use crate::config::{LimitBy, LimitConfig};
use crate::exchange::fields::forwarded::{Peer, Sender};
use crate::exchange::grounds::Grounds;
use crate::site::limits::{SiteLimit, SiteLimits};
use crate::site::route::Route;
use crate::site::rules::Rules;
use crate::trust::is_trusted;
use crate::tunnel_request;

/// A limit that a request is subject to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LimitKey<'s, 'r> {
    pub(crate) limit: &'s SiteLimit,
    /// What the limit is asked; `None`: nothing, because a trusted proxy does not tell who the client is, and all of its
    /// clients would be one key.
    pub(crate) asked: Option<(Ask, LimitSubject<'r>)>,
}

/// All limits that a request is subject to.
pub(crate) type LimitKeys<'s, 'r> = ArrayVec<LimitKey<'s, 'r>, ASKS_MAX>;

/// What a limit counts a request to: its key is made of this.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LimitSubject<'r> {
    Network(Network),
    /// The value of a field, a host, or a user.
    Text(&'r [u8]),
    Everyone,
}

/// The part of a request by which its keys are found once its user is known.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SignedRequest<'r> {
    pub(crate) head: &'r RequestHead,
    /// The user; `None`: the client is anonymous.
    pub(crate) user: Option<&'r Bytes>,
}

/// Which limits are asked, and what is known by then.
#[derive(Clone, Copy, Debug)]
enum LimitStage<'r> {
    /// All but those by user, if the route has a sign-on.
    BeforeSignOn,
    /// Those by user, with the user that the sign-on told.
    AfterSignOn(Option<&'r Bytes>),
}

/// Adds the limits of the listener to `keys`, then those of the route, each once. Those by user are left out if the route
/// has a sign-on. The list is the caller's, because it is large to move.
#[inline]
pub(crate) fn add<'s, 'r>(
    keys: &mut LimitKeys<'s, 'r>,
    grounds: &Grounds<'s>,
    sender: &Sender,
    route: Option<&'s Route>,
    head: &'r RequestHead,
) {
    if let Some(limits) = grounds.site.limits.as_deref()
        && limits.concern_requests()
    {
        match sole_by_client(limits, route) {
            Some(limit) => add_by_client(limits, keys, limit, sender),
            None => {
                let stage = LimitStage::BeforeSignOn;
                add_of(limits, keys, grounds, sender, route, head, stage);
            }
        }
    }
}

/// The limit of the route, if requests are subject to no other, and it counts each to its client's address. This is what
/// most limits are.
fn sole_by_client<'s>(limits: &'s SiteLimits, route: Option<&Route>) -> Option<&'s SiteLimit> {
    let [index] = route?.limits[..] else {
        return None;
    };
    let limit = limits.at(index);
    (limit.is_by_client_alone && !limits.has_listeners()).then_some(limit)
}

/// Does the work of [`add`] for such a limit. Not inlined, because most sites have no limits.
#[inline(never)]
fn add_by_client<'s>(
    limits: &SiteLimits,
    keys: &mut LimitKeys<'s, '_>,
    limit: &'s SiteLimit,
    sender: &Sender,
) {
    let asked = network_of(&limit.config, sender).map(|network| {
        let ask = Ask {
            limit: limit.number,
            key: limits.key(limit, &network),
            enforced: limit.config.enforce,
        };
        (ask, LimitSubject::Network(network))
    });
    keys.push(LimitKey { limit, asked });
}

/// Adds the limits by user, once the sign-on of the route has let the request pass.
pub(crate) fn add_by_user<'s, 'r>(
    keys: &mut LimitKeys<'s, 'r>,
    grounds: &Grounds<'s>,
    sender: &Sender,
    route: Option<&'s Route>,
    request: SignedRequest<'r>,
) {
    if let Some(limits) = grounds.site.limits.as_deref() {
        let stage = LimitStage::AfterSignOn(request.user);
        add_of(limits, keys, grounds, sender, route, request.head, stage);
    }
}

/// Does the work of [`add`]. Not inlined, because most sites have no limits.
#[inline(never)]
fn add_of<'s, 'r>(
    limits: &'s SiteLimits,
    keys: &mut LimitKeys<'s, 'r>,
    grounds: &Grounds<'s>,
    sender: &Sender,
    route: Option<&'s Route>,
    head: &'r RequestHead,
    stage: LimitStage<'r>,
) {
    let asks_auth = route
        .and_then(|route| route.rules.as_deref())
        .is_some_and(Rules::asks_auth);
    let of_route = route.map_or(&[][..], |route| &route.limits);
    let of_listener = if limits.has_listeners() {
        let listener = grounds.site.listener(grounds.listener);
        listener.map_or(&[][..], |listener| limits.of_listener(listener))
    } else {
        &[]
    };
    let mut add = |index: usize| {
        let limit = limits.at(index);
        let user = match stage {
            LimitStage::BeforeSignOn => None,
            LimitStage::AfterSignOn(user) => user,
        };
        // Without a sign-on nobody has a user, and the address counts.
        let is_after = asks_auth && limit.config.by == LimitBy::User;
        if is_after == matches!(stage, LimitStage::AfterSignOn(_))
            && concerns(&limit.config, head, sender.identity.ip)
        {
            let asked = subject(&limit.config, sender, head, user).map(|subject| {
                let ask = Ask {
                    limit: limit.number,
                    key: subject.key(limits, limit),
                    enforced: limit.config.enforce,
                };
                (ask, subject)
            });
            keys.push(LimitKey { limit, asked });
        }
    };
    of_listener.iter().for_each(|index| add(*index));
    for index in of_route {
        // A limit that both name is asked once.
        if !of_listener.contains(index) {
            add(*index);
        }
    }
}

/// Whether a limit applies to a request: it has one of the limit's methods, and its client is not in `except`.
fn concerns(limit: &LimitConfig, head: &RequestHead, client: IpAddr) -> bool {
    let is_method = limit.methods.is_empty()
        || limit
            .methods
            .contains(tunnel_request::method_for_routes(head));
    is_method && !is_trusted(&limit.except, client)
}

/// What the limit counts the request to; `None`: nothing, because the client is not known.
fn subject<'r>(
    limit: &LimitConfig,
    sender: &Sender,
    head: &'r RequestHead,
    user: Option<&'r Bytes>,
) -> Option<LimitSubject<'r>> {
    let text = match &limit.by {
        LimitBy::All => return Some(LimitSubject::Everyone),
        LimitBy::Client => None,
        LimitBy::User => user.map(|user| &user[..]),
        LimitBy::Host => head.authority.as_ref().map(|named| &named.host[..]),
        // Not one of several lines, since a backend may believe any of them.
        LimitBy::Header(name) => head.headers.only(name),
    };
    if let Some(text) = text.filter(|text| !text.is_empty()) {
        return Some(LimitSubject::Text(text));
    }
    // Without such a value the client's address counts. So clients without the field do not share a key, and a client
    // cannot get another key by sending the field twice.
    network_of(limit, sender).map(LimitSubject::Network)
}

/// The network of the client's address; `None`: the client is not known.
#[inline]
fn network_of(limit: &LimitConfig, sender: &Sender) -> Option<Network> {
    let Sender { peer, identity } = sender;
    let may_be_anonymous = peer.trusted || peer.address.port() == 0;
    if may_be_anonymous && is_anonymous(peer, identity.ip) {
        return None;
    }
    Some(Network::new(identity.ip, limit.prefix))
}

/// Whether the client is not known: the request comes from a trusted proxy, or by a Unix socket, and does not say whose
/// it is. Not inlined, because most peers are neither.
#[inline(never)]
fn is_anonymous(peer: &Peer, client: IpAddr) -> bool {
    let is_unix = peer.address.port() == 0 && peer.address.ip().is_loopback();
    (peer.trusted || is_unix) && client == peer.address.ip().to_canonical()
}

impl<'r> LimitSubject<'r> {
    /// The key for a limit.
    #[inline]
    pub(crate) fn key(&self, limits: &SiteLimits, limit: &SiteLimit) -> u64 {
        match self {
            Self::Network(network) => limits.key(limit, network),
            Self::Text(text) => limits.key(limit, text),
            Self::Everyone => limits.key(limit, &()),
        }
    }

    /// The subjects of a limit that an administrator may mean by a text: an address may also be the value of a field.
    ///
    /// # Errors
    /// The text is no key of this limit.
    pub(crate) fn parse(limit: &LimitConfig, text: &'r str) -> Result<Vec<Self>, String> {
        match limit.by {
            LimitBy::All => match text {
                "all" => Ok(vec![Self::Everyone]),
                _ => Err(format!(
                    "the limit {} has one key, which is `all`",
                    limit.name
                )),
            },
            LimitBy::Client => match network(limit, text) {
                Some(network) => Ok(vec![Self::Network(network)]),
                None => Err(format!("{text:?} is no address")),
            },
            LimitBy::Host | LimitBy::Header(_) | LimitBy::User => {
                // The address of a client whose request has no such value.
                let as_network = network(limit, text).map(Self::Network);
                let as_text = Self::Text(text.as_bytes());
                Ok(as_network.into_iter().chain([as_text]).collect())
            }
        }
    }
}

/// Reads the network of an address, with or without the length of its prefix.
fn network(limit: &LimitConfig, text: &str) -> Option<Network> {
    let address = text.split('/').next().unwrap_or_default();
    Some(Network::new(address.parse().ok()?, limit.prefix))
}

impl fmt::Display for LimitSubject<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Network(network) => network.fmt(f),
            Self::Text(text) => f.write_str(&String::from_utf8_lossy(text)),
            Self::Everyone => f.write_str("all"),
        }
    }
}

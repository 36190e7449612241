//! The state of one exchange, which its steps share from its head to its log line.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use catamaran_balance::affinity::Outcome;
use catamaran_message::{BodyLength, Fields, RequestHead};
use http::StatusCode;
use tokio::time::Instant;

use crate::counters::Reason;
use crate::deadlines::Tick;
use crate::exchange::cors::CorsFields;
use crate::exchange::fields::passage::Passage;
use crate::exchange::logged::LoggedRequest;
use crate::exchange::outgoing::Outgoing;
use crate::exchange::pages::Pages;
use crate::exchange::progress::Progress;
use crate::exchange::response_policy::{BackendPolicy, ResponsePolicy};
use crate::exchange::scene::Scene;
use crate::exchange::sites::Sites;
use crate::request_id::RequestId;
use crate::site::limits::Flights;
use crate::site::route::Route;
use crate::site::rules::Rules;
use crate::site::{Member, Upstream};
use crate::traces::Trace;
use crate::tunnel_request::TunnelRequest;
use crate::worker::OwnSite;
use crate::worker::in_flight::Seen;

/// The state of one exchange, from the request's head to the log line.
pub(crate) struct Exchange<'a> {
    pub(crate) scene: Scene<'a>,
    /// The site with which it began.
    pub(crate) site: &'a Arc<OwnSite>,
    pub(crate) sites: &'a Sites,
    pub(crate) id: RequestId,
    /// The trace that the exchange is part of; `None`: requests are not traced.
    pub(crate) trace: Option<&'a Trace>,
    /// The entry that administrators see while the exchange is in flight.
    pub(crate) in_flight: Option<Seen<'a>>,
    pub(crate) began: Instant,
    pub(crate) began_tick: Tick,
    /// The facts about the request for its log line and its span; `None` if it has neither.
    pub(crate) logged: Option<Box<LoggedRequest>>,
    /// The part of the verdict that lasts as long as the exchange.
    pub(crate) decided: Decided<'a>,
    /// The outcome of the attempts so far.
    pub(crate) attempts: Attempts<'a>,
    pub(crate) progress: Progress,
    pub(crate) reason: Option<Reason>,
    /// The status for the log if the client left before a status was sent.
    pub(crate) unsent: Option<StatusCode>,
}

/// The part of the verdict that is needed for as long as the exchange lasts.
pub(crate) struct Decided<'a> {
    /// The client's address, behind trusted proxies as far as they report it.
    pub(crate) client_ip: IpAddr,
    /// The operator's error pages that apply.
    pub(crate) pages: Pages<'a>,
    pub(crate) upstream: Option<&'a Upstream>,
    /// The changes of fields, cookies and paths that the route makes; `None`: it makes none.
    pub(crate) passage: Option<Box<Passage<'a>>>,
    /// The fields of CORS that the response gets; `None`: the route has no `[route.cors]`.
    pub(crate) cors: Option<Box<CorsFields<'a>>>,
    /// The route; `None` if none was found.
    pub(crate) route: Option<&'a Route>,
    /// Whether the route keeps its requests out of the access log.
    pub(crate) is_unlogged: bool,
    /// The tunnel that the request asks for; `None`: it asks for none, or the route does not allow it.
    pub(crate) tunnel: Option<Box<TunnelRequest<'a>>>,
    /// The fields for this client alone: what limits leave it, and cookies of the service of the route's sign-on; `None`:
    /// none.
    pub(crate) client_fields: Option<Box<Fields>>,
    /// The places that the request takes at limits of requests in flight; mostly `None`.
    pub(crate) flights: Option<Box<Flights<'a>>>,
    /// The id that a trusted proxy gave the request; mostly `None`.
    pub(crate) given_id: Option<Bytes>,
}

/// The outcome of the attempts so far; most fields are those of the last attempt.
#[derive(Default)]
pub(crate) struct Attempts<'a> {
    pub(crate) count: u32,
    pub(crate) member: Option<&'a Member>,
    /// The member of the first attempt.
    pub(crate) first_member: Option<&'a Member>,
    /// The outcome for the session; `None`: sessions are not kept.
    pub(crate) sticky: Option<Outcome>,
    /// The route of the session id by which the backend was chosen, for the log.
    pub(crate) session_route: Option<Box<[u8]>>,
    /// When the wait for a first member ends; `None`: the exchange has not waited for one.
    pub(crate) hold_ends: Option<Tick>,
    /// Whether the members are those of a later site than that with which the exchange began.
    pub(crate) is_moved: bool,
}

impl<'a> Decided<'a> {
    /// The rules of the route; `None`: no route was found, or it has none.
    pub(crate) fn rules(&self) -> Option<&'a Rules> {
        self.route?.rules.as_deref()
    }

    /// The policy for a response; `backend` is its part for a response of a backend. `request`: the request that the
    /// backend got, if a cache takes part.
    pub(crate) fn policy<'p>(
        &'p self,
        backend: Option<BackendPolicy<'p>>,
        request: Option<&'p Outgoing<'p>>,
    ) -> ResponsePolicy<'p> {
        ResponsePolicy {
            backend,
            passage: self.passage.as_deref(),
            client_fields: self.client_fields.as_deref(),
            cors: self.cors.as_deref(),
            request,
        }
    }
}

impl<'a> Exchange<'a> {
    /// A new exchange, before the verdict. `head` is `None` if the request was refused or never came: then no verdict
    /// follows.
    pub(crate) fn new(
        scene: Scene<'a>,
        sites: &'a Sites,
        head: Option<&RequestHead>,
        trace: Option<&'a Trace>,
    ) -> Self {
        let site = sites.first();
        let id = scene.worker.next_id();
        let (began, began_tick) = (scene.measured(), scene.now());
        let is_recorded = trace.is_some_and(|trace| trace.recorded.is_some());
        let is_logged = scene.worker.access_log().is_on() || is_recorded;
        let table = scene.worker.in_flight();
        Self {
            scene,
            site,
            sites,
            id,
            trace,
            in_flight: head.and_then(|head| Some(table?.begin(id, began_tick, head))),
            began,
            began_tick,
            logged: head.filter(|_| is_logged).map(|head| {
                let fields = scene.worker.access_log().fields_of(head);
                Box::new(LoggedRequest::new(head, fields))
            }),
            decided: Decided {
                client_ip: scene.peer.remote.ip(),
                pages: Pages::new(site.error_pages.as_deref(), id),
                upstream: None,
                passage: None,
                cors: None,
                route: None,
                is_unlogged: false,
                tunnel: None,
                client_fields: None,
                flights: None,
                given_id: None,
            },
            attempts: Attempts::default(),
            progress: Progress {
                body_complete: head.is_some_and(|head| head.body == BodyLength::Known(0)),
                ..Progress::default()
            },
            reason: None,
            unsent: None,
        }
    }

    /// The time by which the exchange must be over: by the limit of the front itself if it has asked for the response, else
    /// by that of its route, or else by that of a backend.
    pub(crate) fn ends(&self, of_backend: Option<Duration>) -> Tick {
        let rules = self.decided.rules();
        let of_route = rules.and_then(|rules| rules.config().exchange_timeout);
        let of_sink = self.progress.sink.as_ref().and_then(|sink| sink.time_max());
        let limit = of_sink.or(of_route).or(of_backend);
        limit.map_or(Tick::NEVER, |limit| self.began_tick + limit)
    }

    /// Counts the reason why the front answers itself or gives up, and keeps it for the log.
    pub(crate) fn note_reason(&mut self, reason: Reason) {
        self.scene.worker.count(reason);
        self.reason = Some(reason);
    }
}

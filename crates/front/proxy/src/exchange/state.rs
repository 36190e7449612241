//! The state of one exchange, which its steps share from its head to its log line.

use std::net::IpAddr;
use std::sync::Arc;

use bytes::Bytes;
use catamaran_balance::affinity::Outcome;
use catamaran_message::{BodyLength, RequestHead};
use http::StatusCode;
use tokio::time::Instant;

use crate::counters::Reason;
use crate::deadlines::Tick;
use crate::exchange::fields::passage::Passage;
use crate::exchange::logged::LoggedRequest;
use crate::exchange::pages::Pages;
use crate::exchange::progress::Progress;
use crate::exchange::scene::Scene;
use crate::request_id::RequestId;
use crate::site::route::Route;
use crate::site::{Member, Upstream};
use crate::tunnel_request::TunnelRequest;
use crate::worker::OwnSite;
use crate::worker::in_flight::Seen;

/// The state of one exchange, from the request's head to the log line.
pub(crate) struct Exchange<'a> {
    pub(crate) scene: Scene<'a>,
    pub(crate) site: &'a Arc<OwnSite>,
    pub(crate) id: RequestId,
    /// The entry that administrators see while the exchange is in flight.
    pub(crate) seen: Option<Seen<'a>>,
    pub(crate) began: Instant,
    pub(crate) began_tick: Tick,
    /// The facts about the request for its log line; `None` if nothing is logged.
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
    /// The route; `None` if it has no rules.
    pub(crate) route: Option<&'a Route>,
    /// The tunnel that the request asks for; `None`: it asks for none, or the route does not allow it.
    pub(crate) tunnel: Option<Box<TunnelRequest<'a>>>,
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
}

impl<'a> Exchange<'a> {
    /// A new exchange, before the verdict. Without a `head`, since the request was refused or never came, there
    /// will be no verdict.
    pub(crate) fn new(
        scene: Scene<'a>,
        site: &'a Arc<OwnSite>,
        head: Option<&RequestHead>,
    ) -> Self {
        let id = scene.worker.next_id();
        let (began, began_tick) = (scene.measured(), scene.now());
        let is_logged = scene.worker.access_log().is_on();
        let in_flight = scene.worker.in_flight();
        Self {
            scene,
            site,
            id,
            seen: head.and_then(|head| Some(in_flight?.begin(id, began_tick, head))),
            began,
            began_tick,
            logged: head
                .filter(|_| is_logged)
                .map(|head| Box::new(LoggedRequest::new(head))),
            decided: Decided {
                client_ip: scene.peer.remote.ip(),
                pages: Pages::new(site.error_pages.as_deref(), id),
                upstream: None,
                passage: None,
                route: None,
                tunnel: None,
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

    /// Counts the reason why the front answers itself or gives up, and keeps it for the log.
    pub(crate) fn note_reason(&mut self, reason: Reason) {
        self.scene.worker.count(reason);
        self.reason = Some(reason);
    }
}

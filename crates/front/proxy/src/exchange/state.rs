//! What is known of one exchange, from its head to its log line: the state that the steps of an exchange share.

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

/// One exchange: what is known of it, from its head to its log line.
pub(crate) struct Exchange<'a> {
    pub(crate) scene: Scene<'a>,
    pub(crate) site: &'a Arc<OwnSite>,
    pub(crate) id: RequestId,
    /// What administrators see of it while it lasts.
    pub(crate) seen: Option<Seen<'a>>,
    pub(crate) began: Instant,
    pub(crate) began_tick: Tick,
    /// What the log says of the request, if there is a log.
    pub(crate) logged: Option<Box<LoggedRequest>>,
    /// The part of the verdict that is kept.
    pub(crate) decided: Decided<'a>,
    /// The result of the attempts.
    pub(crate) attempts: Attempts<'a>,
    pub(crate) progress: Progress,
    pub(crate) reason: Option<Reason>,
    /// The status in the log if the client left and no status was sent.
    pub(crate) unsent: Option<StatusCode>,
}

/// The part of the verdict that is needed for as long as the exchange lasts.
pub(crate) struct Decided<'a> {
    /// Who the client is, as far as that is known.
    pub(crate) client_ip: IpAddr,
    /// Pages of the operator's own.
    pub(crate) pages: Pages<'a>,
    pub(crate) upstream: Option<&'a Upstream>,
    /// What the route changes, if it changes anything.
    pub(crate) passage: Option<Box<Passage<'a>>>,
    /// The route, if it has rules.
    pub(crate) route: Option<&'a Route>,
    /// The tunnel that the request asks for, if the route allows it.
    pub(crate) tunnel: Option<Box<TunnelRequest<'a>>>,
    /// The id that a trusted proxy gave the request. Most have none.
    pub(crate) given_id: Option<Bytes>,
}

/// The result of the attempts of an exchange: that of the last attempt.
#[derive(Default)]
pub(crate) struct Attempts<'a> {
    pub(crate) count: u32,
    pub(crate) member: Option<&'a Member>,
    /// The member of the first attempt.
    pub(crate) first_member: Option<&'a Member>,
    /// The outcome for the session; `None`: sessions are not kept.
    pub(crate) sticky: Option<Outcome>,
    /// The route of the session id that decided, for the log.
    pub(crate) session_route: Option<Box<[u8]>>,
}

impl<'a> Exchange<'a> {
    /// A new exchange, not yet decided. Without a `head`, because it was refused or never came, it never will be.
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

    /// Counts why the front answers itself or gives up, and keeps it for the log.
    pub(crate) fn note_reason(&mut self, reason: Reason) {
        self.scene.worker.count(reason);
        self.reason = Some(reason);
    }
}

//! The facts, besides a request's head, from which its verdict is made.

use crate::config::ListenerConfig;
use crate::peer::PeerFacts;
use crate::request_id::RequestId;
use crate::site::Site;
use crate::traces::Trace;
use crate::worker::Worker;

/// The facts, besides a request's head, from which its verdict is made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Grounds<'s> {
    pub(crate) site: &'s Site,
    /// The settings of the listener when it accepted the connection.
    pub(crate) listener: &'s ListenerConfig,
    pub(crate) peer: &'s PeerFacts,
    /// The id of the request, unless a trusted proxy gave it one.
    pub(crate) id: RequestId,
    /// The trace that the request is part of; `None`: requests are not traced.
    pub(crate) trace: Option<&'s Trace>,
    /// The worker, whose front a text may describe by counts; `None`: no front runs.
    pub(crate) worker: Option<&'s Worker>,
}

//! The facts, besides a request's head, from which its verdict is made.

use crate::config::ListenerConfig;
use crate::peer::PeerFacts;
use crate::request_id::RequestId;
use crate::site::Site;

/// The facts, besides a request's head, from which its verdict is made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Grounds<'s> {
    pub(crate) site: &'s Site,
    /// The settings of the listener when it accepted the connection.
    pub(crate) listener: &'s ListenerConfig,
    pub(crate) peer: &'s PeerFacts,
    /// The id of the request, unless a trusted proxy gave it one.
    pub(crate) id: RequestId,
}

//! What decides about a request besides its head.

use crate::config::ListenerConfig;
use crate::peer::PeerFacts;
use crate::request_id::RequestId;
use crate::site::Site;

/// What decides about a request besides its head.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Grounds<'s> {
    pub(crate) site: &'s Site,
    /// The settings of the listener when it accepted the connection.
    pub(crate) listener: &'s ListenerConfig,
    pub(crate) peer: &'s PeerFacts,
    /// The id that the request has, unless a trusted proxy gave it one.
    pub(crate) id: RequestId,
}

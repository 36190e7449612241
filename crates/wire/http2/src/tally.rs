//! Counts of frames that cost this side work and the peer almost nothing.

/// Counts of frames since the last [`Connection::take_tally`](crate::Connection::take_tally). This crate has no clock:
/// the caller decides how many in which time are too many. What is never acceptable, such as a head in very many
/// frames, is a [`Fault`](crate::Fault).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Streams that the peer has reset.
    pub resets: u32,
    /// The number of streams that this side had to reset because of a fault of the peer.
    pub provoked_resets: u32,
    /// The number of useless frames: SETTINGS, PING, priorities, empty DATA, unknown frames, and frames for streams
    /// that are over. DATA with bytes for such a stream is not counted: it was on its way, and the windows limit it.
    pub useless: u32,
    /// The number of WINDOW_UPDATEs for windows that were not used up, or for streams that are over. Clients send some
    /// as they read a body.
    pub window_updates: u32,
}

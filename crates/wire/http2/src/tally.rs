//! What a peer has sent that costs this side work and the peer nothing.

/// Frames since the last [`Connection::take_tally`](crate::Connection::take_tally). This crate has no clock: how many are too many in which time
/// is for the caller. What no time allows, such as a head in many frames, is a [`Fault`](crate::Fault).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Streams that the peer has reset.
    pub resets: u32,
    /// Streams that this side had to reset for what the peer sent.
    pub provoked_resets: u32,
    /// SETTINGS, PING, priorities, empty DATA, frames that are not known, and those for streams that are over. Of these
    /// DATA with bytes is not counted: it was on its way, and the windows bound it.
    pub useless: u32,
    /// WINDOW_UPDATE for windows that were open anyway, or of streams that are over. Clients send some as they take a
    /// body.
    pub window_updates: u32,
}

//! The length of a message's body.

/// The length of a message's body, as far as its head says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BodyLength {
    /// Exactly this many bytes; zero means that there is no body.
    Known(u64),
    /// The length is not known before the body ends.
    Unknown,
}

impl Default for BodyLength {
    /// No body: `Known(0)`.
    fn default() -> Self {
        Self::Known(0)
    }
}

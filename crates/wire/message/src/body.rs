//! How long a body is.

/// How long the body of a message is, as far as its head tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BodyLength {
    /// Exactly this many bytes; zero means that there is no body.
    Known(u64),
    /// Not known before the body ends.
    Unknown,
}

impl Default for BodyLength {
    /// No body.
    fn default() -> Self {
        Self::Known(0)
    }
}

//! Body framing.

/// How much body a message has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BodyLength {
    /// So many bytes; `Known(0)` means there is no body.
    Known(u64),
    /// Not known when the head is sent.
    Unknown,
}

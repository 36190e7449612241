//! The rule on retrying requests that a backend may have received.

use http::Method;

/// The methods whose requests are sent again although a backend may have received them. One that certainly did not
/// reach a backend is sent again whatever its method.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RetrySentRule {
    /// Retries idempotent methods (RFC 9110, section 9.2.2).
    #[default]
    Idempotent,
    /// Retries safe methods (RFC 9110, section 9.2.1). mod_jk: `recovery_options` 27.
    Safe,
    /// Retries no method. mod_jk: `recovery_options` 3.
    Nothing,
}

impl RetrySentRule {
    /// Whether a request of this method may be sent again.
    #[must_use]
    pub fn allows(self, method: &Method) -> bool {
        match self {
            Self::Idempotent => method.is_idempotent(),
            Self::Safe => method.is_safe(),
            Self::Nothing => false,
        }
    }
}

//! The reasons for refusing a target or a host.

use thiserror::Error;

/// Why a request target is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
pub enum TargetFault {
    /// A byte that is not allowed in a request target.
    #[error("forbidden byte in the request target")]
    Byte,
    /// A `%` in the path without two hexadecimal digits after it.
    #[error("malformed percent escape in the request target")]
    Escape,
    /// A `#` in the request target.
    #[error("fragment in the request target")]
    Fragment,
    /// A target in a form that its method does not allow (RFC 9112 section 3.2).
    #[error("request target in a form its method does not allow")]
    Form,
    /// The authority of an absolute target is malformed.
    #[error(transparent)]
    Host(#[from] InvalidHost),
}

/// The error for a text that is not `host [":" port]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
#[error("malformed host")]
pub struct InvalidHost;

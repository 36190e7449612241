//! The reasons for refusing a target or a host.

use thiserror::Error;

/// A request target that is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
pub enum TargetFault {
    /// A byte that may not stand in a request target.
    #[error("forbidden byte in the request target")]
    Byte,
    /// A `%` in the path without two hexadecimal digits after it.
    #[error("malformed percent escape in the request target")]
    Escape,
    /// A `#` in the request target.
    #[error("fragment in the request target")]
    Fragment,
    /// A target that is none of the forms its method allows (RFC 9112 section 3.2).
    #[error("request target in a form its method does not allow")]
    Form,
    /// The authority of an absolute target is malformed.
    #[error(transparent)]
    Host(#[from] InvalidHost),
}

/// A text that is not `host [":" port]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
#[error("malformed host")]
pub struct InvalidHost;

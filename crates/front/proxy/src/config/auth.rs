//! The settings of sign-on before the application.

use std::time::Duration;

use bytes::Bytes;
use catamaran_message::FieldName;

use super::template::Template;

/// A sign-on, which routes use by its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuthConfig {
    /// The unique name.
    pub name: String,
    /// Who says whether a client is signed on.
    pub kind: AuthKind,
}

/// Who says whether a client is signed on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AuthKind {
    /// A service, which is asked by a request of its own before each request.
    Forward(ForwardAuth),
}

/// A service that says whether a client is signed on.
///
/// Each field is the key of that name of `[auth.NAME]` in `docs/reference.md`, which has its meaning, unit, default and
/// the directives of other servers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForwardAuth {
    /// The name of the service's upstream.
    pub upstream: String,
    /// The path that is asked for.
    pub path: Bytes,
    /// The field of the service's response that has the user; `None`: no user is known.
    pub user: Option<FieldName>,
    /// The fields of the request for the application, each with the source of its value.
    pub fields: Vec<(FieldName, AuthSource)>,
    /// Further fields of the client's request that the service gets.
    pub request_fields: Vec<FieldName>,
    /// Where browsers are sent to sign on; `None`: they get the service's answer.
    pub sign_in: Option<Template>,
    /// The longest time for the service's answer.
    pub timeout: Duration,
    /// The most bytes of the body of the service's answer.
    pub answer_max: usize,
    /// The cookies that backends do not get: names, or the beginnings of names before a `*`.
    pub hide_cookies: Vec<String>,
}

/// The source of a value in the service's answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AuthSource {
    /// The user.
    User,
    /// The field of this name; several lines are joined by commas.
    Field(FieldName),
}
